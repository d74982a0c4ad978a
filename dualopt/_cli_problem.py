"""From options to what is computed: the objective, and the algorithm with its local solver."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

import dualopt.algorithms
import dualopt.losses
import dualopt.solvers
from dualopt._cli_options import MethodOptions, ProblemOptions, convert, pairs
from dualopt.algorithms import Algorithm
from dualopt.data import class_count, encode_labels, load, partition, subsample
from dualopt.discover import choose
from dualopt.objectives import LinearModel, Objective, linear_model
from dualopt.stopping import Stop, parse_stop
from dualopt.xp import Array, array_namespace

__all__ = ["Problem", "Variant", "accuracy", "build_problem", "parse_variant"]


@dataclass(frozen=True, kw_only=True)
class Problem:
    """An objective and the words that describe it."""

    objective: LinearModel
    name: str  # of the data
    data: str
    loss: str
    loss_was_chosen: bool  # here, not by the user
    partition: str

    @property
    def condition(self) -> float:
        """Return ``kappa = max L / min mu``, infinite for a nonsmooth loss or ``mu = 0``."""
        xp = array_namespace(self.objective.mu)
        mu = float(xp.min(self.objective.mu))
        return float(xp.max(self.objective.L)) / mu if mu > 0 else float("inf")


def build_problem(options: ProblemOptions) -> Problem:
    """Load the data, deal it out to the clients, and build the objective."""
    if options.loss != "auto":
        choose(dualopt.losses, options.loss, "loss")  # before the data, which may take long to load
    data_options = {name: _number(text) for name, text in pairs(options.data_param, "data_param").items()}
    for name in sorted({"name", "data_home", "scale", "dtype", "seed"} & set(data_options)):
        raise ValueError(f"data_param must not be {name}, which has an option of its own.")
    if options.split is not None:
        data_options["split"] = options.split
    data = load(
        options.data,
        data_home=options.data_home,
        scale=_number(options.scale),
        dtype=options.dtype,
        seed=options.seed,
        **data_options,
    )
    name = automatic_loss(data.y) if options.loss == "auto" else options.loss
    loss = _loss(name, options.loss_param, data.y)
    y = encode_labels(data.y, loss.labels)  # before rows are drawn: a part is encoded like the whole
    y = y if loss.labels == "class" else y.astype(data.X.dtype)
    X, labels = data.X, data.y
    if options.rows is not None:
        chosen = subsample(labels, options.rows, options.seed)
        X, y, labels = X[chosen], y[chosen], labels[chosen]
    if not 1 <= options.clients <= len(labels):  # the partitions call it n_clients
        raise ValueError(f"clients must be between 1 and the {len(labels)} rows of the data, not {options.clients}.")
    clients = partition(
        options.partition, labels, options.clients, alpha=options.alpha, sigma=options.sigma, seed=options.seed
    )
    objective = linear_model(
        X,
        y,
        loss=loss,
        mu=options.mu,
        clients=[part.tolist() for part in clients],
        intercept=options.intercept,
        weights=options.weights,  # pyright: ignore[reportArgumentType]
    )
    sizes = objective.sizes
    spread = f"{min(sizes)} rows" if min(sizes) == max(sizes) else f"{min(sizes)} to {max(sizes)} rows"
    return Problem(
        objective=objective,
        name=data.name,
        data=f"{data.name} ({X.shape[0]} x {X.shape[1]}, {X.dtype}): {data.description}",
        loss=name,
        loss_was_chosen=options.loss == "auto",
        partition=f"{len(sizes)} ({options.partition}), {spread} each",
    )


def automatic_loss(labels: Any) -> str:
    """Choose the loss that raw labels call for.

    Fractions call for ``squared``, two distinct labels for ``logistic``, other whole numbers or words for
    ``multinomial``.

    Examples
    --------
    >>> import numpy as np
    >>> [automatic_loss(np.array(y)) for y in ([0.5, 1.0], [1, 2, 1], ["a", "b", "c"])]
    ['squared', 'logistic', 'multinomial']
    """
    if labels.dtype.kind == "f" and bool((labels % 1 != 0).any()):
        return "squared"
    return "logistic" if class_count(labels) == 2 else "multinomial"


def _loss(name: str, texts: list[str], labels: Any) -> Any:
    chosen: Any = choose(dualopt.losses, name, "loss")
    given = convert(chosen, pairs(texts, "loss_param"), "loss_param", f"loss {name}")
    if "classes" in {f.name for f in fields(chosen)}:
        given = {"classes": class_count(labels)} | given
    loss = chosen(**given)
    if loss.labels == "class" and loss.outputs < (count := class_count(labels)):
        raise ValueError(f"loss_param classes must be at least the {count} classes of the data, not {loss.outputs}.")
    return loss


def _number(text: str) -> Any:
    """Return the number that a text is, or the text."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


@dataclass(frozen=True, kw_only=True)
class Variant:
    """An algorithm as the user named it, still without a problem."""

    label: str
    algorithm: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    solver: str | None = None
    solver_parameters: Mapping[str, str] = field(default_factory=dict)
    stop: str | None = None

    def build(self, objective: Objective | None = None) -> Algorithm:
        """Return the algorithm; with an objective, nothing is left open any more.

        Raises
        ------
        ValueError
            If a name is unknown, a value is out of range, or (with an objective) an assumption fails.
        """
        chosen: Any = choose(dualopt.algorithms, self.algorithm, "algorithm")
        owner = f"algorithm {self.algorithm}"
        slots = {f.name for f in fields(chosen)}
        given = convert(chosen, self.parameters, "param", owner)
        if self.solver is not None or self.solver_parameters:
            _require("solver", slots, owner)
            given["solver"] = self._solver()
        algorithm = chosen(**given)
        stop = self.stop
        if stop is not None:
            _require("stop", slots, owner)
            _stop(stop, nu=1.0, rho=0.0)  # refuses a bad rule before there is an objective
        if objective is None:
            return algorithm
        algorithm = algorithm.suggested(objective)
        if stop is not None:
            smallest = float(array_namespace(objective.mu).min(objective.mu))
            nu, rho = getattr(algorithm, "nu", smallest), getattr(algorithm, "rho", 0.0)
            algorithm = replace(algorithm, stop=_stop(stop, nu=nu, rho=rho))
        return algorithm

    def _solver(self) -> Any:
        """Return the solver that was named with the parameters that were given."""
        if self.solver is None:
            raise ValueError("solver_param needs solver: without a name the objective decides which solver is used.")
        kind: Any = choose(dualopt.solvers, self.solver, "solver")
        return kind(**convert(kind, self.solver_parameters, "solver_param", f"solver {self.solver}"))


def parse_variant(text: str, defaults: MethodOptions) -> Variant:
    """Read ``"label@algorithm:name=value,..."``, where label and values may be left out.

    The names are the parameters of the algorithm, ``solver``, ``stop``, and ``solver.NAME`` for the parameters of
    the local solver. What is not named comes from ``defaults``.

    Raises
    ------
    ValueError
        If the text is not of this form.

    Examples
    --------
    >>> v = parse_variant("plain@dualfl:rho=0,stop=gradient=1e-8", MethodOptions())
    >>> v.label, v.algorithm, dict(v.parameters), v.stop
    ('plain', 'dualfl', {'rho': '0'}, 'gradient=1e-8')
    """
    label, at, rest = text.rpartition("@")
    algorithm, colon, listed = rest.partition(":")
    if (at and not label) or not algorithm or (colon and not listed):
        raise ValueError(f"algorithm must be of the form LABEL@NAME:name=value,name=value; not {text!r}.")
    given = pairs(listed.split(","), "algorithm") if colon else {}
    solver = given.pop("solver", None)
    stop = given.pop("stop", None)
    own = {n.removeprefix("solver."): given.pop(n) for n in list(given) if n.startswith("solver.")}
    # Parameters of the default solver would be wrong for another one.
    common = {} if solver is not None else pairs(defaults.solver_param, "solver_param")
    return Variant(
        label=label or rest,
        algorithm=algorithm,
        parameters=given,
        solver=solver or defaults.solver,
        solver_parameters=common | own,
        stop=stop or defaults.stop,
    )


def accuracy(objective: LinearModel, theta: Array) -> float | None:
    """Return the share of rows whose label the model predicts, or None for real labels."""
    labels = objective.loss.labels
    if labels == "real":
        return None
    xp = array_namespace(theta)
    right = 0
    for X, y, _ in objective.client_rows():
        z = xp.matmul(theta, xp.matrix_transpose(X))
        hits = xp.argmax(z, axis=0) == xp.astype(y, xp.int64) if labels == "class" else z * y > 0
        right += int(xp.sum(xp.astype(hits, xp.int64)))
    return right / sum(objective.sizes)


def _stop(text: str, *, nu: float, rho: float) -> Stop:
    try:
        return parse_stop(text, nu=nu, rho=rho)
    except ValueError as error:
        reason = str(error)
        raise ValueError(reason if reason.startswith("stop ") else f"stop {text!r}: {reason}") from None


def _require(name: str, slots: set[str], owner: str) -> None:
    if name not in slots:
        raise ValueError(f"{name} cannot be given because {owner} has none.")
