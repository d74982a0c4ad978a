"""The result of an inference: estimates with their uncertainty, as arrays, tables, words and JSON."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from dualopt.arrays._checks import require
from dualopt.arrays.xp import Array, array_namespace, asarray_like, reshape, to_numpy
from dualopt.objectives._information import SUMS
from dualopt.runs._tails import half_width, two_sided

__all__ = ["KINDS", "SHOWN", "Inference", "table_of"]

KINDS = ("likelihood", "clients")
MOVES = 0.01  # standard errors by which a Newton step may move a coefficient before that is said
SHOWN = 40  # rows of a printed table


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Inference:
    r"""Estimates with their uncertainty; :func:`inference` makes it, and its module says what each number is.

    Attributes
    ----------
    estimate : array, shape ``shape``
        The model.
    names : tuple of str
        A name for each of its ``D`` numbers, in their order.
    kind : str
        The covariance that everything below belongs to: "likelihood" or "clients"; :meth:`by` returns the other.
    covariance : array, shape (D, D)
        That of the estimate.
    standard_errors, statistics, p_values, lower, upper : array, shape ``shape``
        Roots of its diagonal; estimates over them; probabilities of a statistic that is farther from 0, if the
        parameter is 0; ends of the intervals.
    degrees : float
        Degrees of freedom of Student's t; infinite for the normal distribution.
    level : float
        Probability with which an interval covers.
    ratio : str or None
        What ``exp`` of an estimate, and of the ends of its interval, is: "odds ratio", "rate ratio" (``ratios``).
    rows, clients : float, int
        Their numbers ``n`` and ``N``.
    parameters : float
        ``tr S``, the number of parameters that the ridge leaves.
    family : str or None
        The likelihood; None for a loss that is none, and for importance weights.
    dispersion, deviance, log_likelihood, aic : float or None
        None without a likelihood.
    ridge_shift : array, shape ``shape``
        The bias that the ridge brings, to first order; zero without one.
    newton_step : array, shape ``shape``
        What a Newton step would take off the estimate: how far it is from the minimiser, to first order.
    distance : float or None
        ``sqrt(2 gap / mu)``: the minimiser is at most so far from the estimate, by the certificate.
    estimate_bounds : array, shape ``shape``, or None
        The minimiser is at most so far from the estimate, each number by itself.
    error_bounds : tuple of two arrays, shape ``shape``, or None
        Between which the standard errors at the minimiser lie, of kind "likelihood" with a known dispersion.
    numbers_sent : int
        How many numbers each client has sent: its Hessian, its gradient, its ridge, and the sums.
    """

    estimate: Array
    names: tuple[str, ...]
    kind: str
    covariances: Mapping[str, Array]
    all_degrees: Mapping[str, float]
    level: float
    ratio: str | None
    rows: float
    clients: int
    parameters: float
    small_sample: bool
    ridge: float
    family: str | None
    dispersion: float | None
    deviance: float | None
    log_likelihood: float | None
    aic: float | None
    ridge_shift: Array
    newton_step: Array
    distance: float | None
    estimate_bounds: Array | None
    likelihood_error_bounds: tuple[Array, Array] | None
    model_size: int

    def __repr__(self) -> str:
        what = f"{self.rows:g} rows of {self.clients} clients"
        return f"<Inference on {len(self.names)} parameters from {what}, covariance by the {self.kind}>"

    def __str__(self) -> str:
        """Return a page: what was done, and a row for each parameter."""
        rows = self.table()
        columns = [[name, *(row[name] for row in rows)] for name in rows[0]]
        widths = [max(map(len, column)) for column in columns]
        lines = [f"{name}: {words}" for name, words in self.described().items()] + [""]
        for cells in zip(*columns, strict=True):
            padded = [cell.rjust(width) for cell, width in zip(cells, widths, strict=True)]
            lines.append("  ".join([cells[0].ljust(widths[0]), *padded[1:]]).rstrip())
        return "\n".join(lines)

    def by(self, kind: str) -> Self:
        """Return the same with the covariance of this kind.

        Raises
        ------
        ValueError
            If there is none of this kind.
        """
        known = [name for name in KINDS if name in self.covariances]
        require(kind in known, f"kind must be {' or '.join(known)} here", kind)
        return replace(self, kind=kind)

    def contrasts(self, matrix: Any, names: Sequence[str]) -> Inference:
        """Return the inference on linear functions of the parameters.

        Parameters
        ----------
        matrix : matrix, shape (q, D)
            A linear function in each row, such as the difference of two parameters.
        names : sequence of str
            What they are called.

        Raises
        ------
        ValueError
            If the shapes do not fit.
        """
        like = self.covariance
        xp, C = array_namespace(like), asarray_like(matrix, like)
        D = len(self.names)
        fits = C.ndim == 2 and C.shape[1] == D and C.shape[0] == len(names)
        require(fits, f"matrix must have {D} columns, and a row for each of the {len(names)} names", tuple(C.shape))

        def of(x: Array) -> Array:
            return C @ reshape(x, (-1,))

        bounds = self.estimate_bounds
        return replace(
            self,
            estimate=of(self.estimate),
            names=tuple(names),
            covariances={kind: C @ V @ xp.matrix_transpose(C) for kind, V in self.covariances.items()},
            ridge_shift=of(self.ridge_shift),
            newton_step=of(self.newton_step),
            estimate_bounds=None if bounds is None else xp.abs(C) @ reshape(bounds, (-1,)),
            distance=None,
            likelihood_error_bounds=None,
        )

    def against(self, reference: int = 0) -> Inference:
        """Return the inference on the differences of each class to another one: those that a table of odds ratios has.

        Parameters
        ----------
        reference : int, default 0
            The number of the class.

        Raises
        ------
        ValueError
            If the model has one output, or there is no such class.
        """
        require(self.estimate.ndim == 2, "against is for a model with an output for each class")
        k, p = self.estimate.shape
        require(0 <= reference < k, f"reference must be the number of one of the {k} classes", reference)
        own = [(a * p + c, reference * p + c) for a in range(k) if a != reference for c in range(p)]
        rows = [[float(i == one) - float(i == other) for i in range(k * p)] for one, other in own]
        return self.contrasts(rows, [self.names[one] for one, _ in own])

    @property
    def numbers_sent(self) -> int:
        """How many numbers each client has sent."""
        return self.model_size * (self.model_size + 2) + len(SUMS)

    # --- numbers ------------------------------------------------------------------------------------------------

    @property
    def covariance(self) -> Array:
        """That of the estimate, shape ``(D, D)``."""
        return self.covariances[self.kind]

    @property
    def degrees(self) -> float:
        """Degrees of freedom of Student's t."""
        return self.all_degrees[self.kind]

    @property
    def standard_errors(self) -> Array:
        """Roots of the diagonal of the covariance, shape ``shape``."""
        xp = array_namespace(self.covariance)
        return reshape(xp.sqrt(xp.linalg.diagonal(self.covariance)), tuple(self.estimate.shape))

    @property
    def statistics(self) -> Array:
        """Estimates over standard errors: z, or t with ``degrees``, shape ``shape``."""
        return self.estimate / self.standard_errors

    @property
    def p_values(self) -> Array:
        """Probabilities of a statistic that is farther from 0, shape ``shape``."""
        found = self.statistics
        values = [two_sided(t, self.degrees) for t in to_numpy(reshape(found, (-1,))).tolist()]
        return reshape(asarray_like(values, found), tuple(found.shape))

    @property
    def lower(self) -> Array:
        """Lower ends of the intervals, shape ``shape``."""
        return self.estimate - half_width(self.level, self.degrees) * self.standard_errors

    @property
    def upper(self) -> Array:
        """Upper ends of the intervals, shape ``shape``."""
        return self.estimate + half_width(self.level, self.degrees) * self.standard_errors

    @property
    def ratios(self) -> tuple[Array, Array, Array] | None:
        """``exp`` of the estimates and of the ends of their intervals; None where that has no name."""
        if self.ratio is None:
            return None
        exp = array_namespace(self.estimate).exp
        return exp(self.estimate), exp(self.lower), exp(self.upper)

    @property
    def error_bounds(self) -> tuple[Array, Array] | None:
        """Between which the standard errors at the minimiser lie; None where nothing is proven."""
        return self.likelihood_error_bounds if self.kind == "likelihood" else None

    # --- words --------------------------------------------------------------------------------------------------

    def columns(self) -> dict[str, list[float]]:
        """Return all numbers of the parameters, by name of a column."""
        found = {
            "estimate": self.estimate,
            "standard_error": self.standard_errors,
            "statistic": self.statistics,
            "p_value": self.p_values,
            "lower": self.lower,
            "upper": self.upper,
        }
        if (ratios := self.ratios) is not None:
            name = str(self.ratio).replace(" ", "_")
            found |= dict(zip((name, f"{name}_lower", f"{name}_upper"), ratios, strict=True))
        if self.estimate_bounds is not None:
            found["estimate_bound"] = self.estimate_bounds
        if self.error_bounds is not None:
            found |= dict(zip(("standard_error_least", "standard_error_largest"), self.error_bounds, strict=True))
        found["ridge_shift"] = self.ridge_shift
        return {name: to_numpy(reshape(x, (-1,))).tolist() for name, x in found.items()}

    def table(self, rows: int = SHOWN) -> list[dict[str, str]]:
        """Return a printed row for each of the first parameters, by column."""
        return table_of(self.to_json(), rows)

    def described(self) -> dict[str, str]:
        """Say in words and numbers what the covariance is, how well the model fits, and what was sent."""
        lines = {"covariance": self._covariance_in_words(), "data": f"{self.rows:g} rows of {self.clients} clients"}
        lines["parameters"] = f"{len(self.names)}"
        if self.ridge > 0.0:
            lines["parameters"] += f", {self.parameters:.5g} with the ridge (tr S)"
            lines["ridge"] = (
                f"moves a parameter by up to {self._largest(self.ridge_shift):.2g} of its standard error (to first "
                "order): intervals are for the mean of the minimiser with the ridge"
            )
        if self.family is None:
            lines["likelihood"] = "none: no log-likelihood, deviance or AIC"
        else:
            lines["likelihood"] = (
                f"{self.family}: log-likelihood {self.log_likelihood:.8g}, deviance {self.deviance:.8g}, "
                f"AIC {self.aic:.8g}, dispersion {self.dispersion:.6g}"
            )
        lines["accuracy"] = self._accuracy_in_words()
        D = self.model_size
        lines["sent by each client"] = (
            f"{self.numbers_sent:,} numbers, once: a Hessian of {D:,} x {D:,}, its gradient, its ridge and {len(SUMS)} "
            "sums; a Hessian tells more of the rows than a gradient (docs/security.md)"
        )
        return lines

    def to_json(self) -> dict[str, Any]:
        """Return everything but the covariances, in terms of JSON, where numbers that it does not know are None."""
        numbers = ("kind", "level", "degrees", "rows", "clients", "parameters", "family", "ratio", "dispersion")
        numbers += ("deviance", "log_likelihood", "aic", "distance", "numbers_sent", "small_sample", "ridge")
        columns = self.columns()
        each = zip(self.names, *columns.values(), strict=True)
        rows = [dict(zip(("name", *columns), map(_known, row), strict=True)) for row in each]
        found = {name: _known(getattr(self, name)) for name in numbers}
        return found | {"described": self.described(), "coefficients": rows}

    def to_text(self) -> str:
        """Return that as strict JSON."""
        return json.dumps(self.to_json(), indent=2, allow_nan=False) + "\n"

    def to_csv(self) -> str:
        """Return the numbers of the parameters, a line for each, below the names of the columns."""
        columns, text = self.columns(), io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(("name", *columns))
        writer.writerows(zip(self.names, *columns.values(), strict=True))
        return text.getvalue()

    def _covariance_in_words(self) -> str:
        A = "(H + P)^-1" if self.ridge > 0.0 else "H^-1"
        H = "H the observed information" + (", P the ridge" if self.ridge > 0.0 else "")
        if self.kind == "likelihood":
            middle = f"{A} H {A}" if self.ridge > 0.0 else A
            s = "" if self.dispersion == 1.0 else "s "
            return f"by the likelihood, {s}{middle}, {H}"
        few = "" if self.clients > len(self.names) else f"; of rank below {self.clients}, the number of clients"
        factors = ", times N/(N-1) (n-1)/(n - tr S)" if self.small_sample else ""
        information = H.replace("observed information", "Hessian of the loss")
        return f"by the clients, {A} B {A}{factors}, {information}, B the outer products of the clients' gradients{few}"

    def _accuracy_in_words(self) -> str:
        step = self._largest(self.newton_step)
        words = [f"a Newton step moves a parameter by up to {step:.1e} of its standard error"]
        if step > MOVES:
            words[0] += ", so that this is not the minimiser: run to a smaller tol"
        if self.distance is not None:
            words.append(f"the minimiser is within {self.distance:.1e} of the model (certified)")
        if self.estimate_bounds is not None:
            words.append(f"no parameter is farther than {_most(self.estimate_bounds):.1e} from it")
        if (bounds := self.error_bounds) is not None:
            widest = max(self._largest(end - self.standard_errors) for end in bounds)
            if widest < 1.0:
                words.append(f"standard errors at the minimiser are within {widest:.1e} of these, relatively")
        return "; ".join(words)

    def _largest(self, x: Array) -> float:
        """Return the largest number in standard errors, of the parameters that have one: a column of zeros has none."""
        xp, errors = array_namespace(x), self.standard_errors
        return _most(xp.where(errors > 0.0, x / xp.where(errors > 0.0, errors, 1.0), 0.0))


def table_of(record: Mapping[str, Any], rows: int = SHOWN) -> list[dict[str, str]]:
    """Return a printed row for each of the first parameters of what `Inference.to_json` returns, by column."""
    percent, ratio = f"{100 * record['level']:g}%", record["ratio"]
    letter = "z" if record["degrees"] is None else "t"
    titles = {"estimate": "estimate", "standard_error": "std. error", "statistic": letter, "p_value": f"P>|{letter}|"}
    titles |= {"lower": f"{percent} from", "upper": "to"}
    if ratio is not None:
        key = ratio.replace(" ", "_")
        titles |= {key: ratio, f"{key}_lower": f"{percent} from ", f"{key}_upper": "to "}
    forms = {"statistic": ".2f", "p_value": ".3g"}
    found = []
    for row in record["coefficients"][:rows]:
        cells = {t: "-" if row[key] is None else f"{row[key]:{forms.get(key, '.5g')}}" for key, t in titles.items()}
        found.append({"parameter": row["name"], **cells})
    return found


def _known(x: Any) -> Any:
    return None if isinstance(x, float) and not math.isfinite(x) else x


def _most(x: Array) -> float:
    return float(array_namespace(x).max(array_namespace(x).abs(x)))
