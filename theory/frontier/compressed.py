r"""Theorem D: FedSplit and FedDyn that upload a part of the numbers, with exact limits.

All clients take part and solve exactly; chance decides what each of them uploads.

**Theorem D (i), FedSplit.** Let :math:`C_j` be random maps with :math:`\mathbb E\,C_j(v) = v` and
:math:`\mathbb E|C_j(v)|^2 \le (1 + \omega)|v|^2`, and let :math:`z_j^+ = z_j + \frac1{1 + \omega}C_j\bigl((Tz)_j -
z_j\bigr)` for the operator T of a full round (:mod:`theory.frontier.sampled_fedsplit`), which contracts by
:math:`\delta`. Then

.. math:: \mathbb E\sum_j|z_j^+ - z_j^*|^2 \le \Bigl(1 - \frac{1 - \delta^2}{1 + \omega}\Bigr)\sum_j|z_j - z_j^*|^2.

*Proof.* With :math:`D = Tz - z`, :math:`\mathbb E|z^+ - z^*|^2 \le |z - z^*|^2 + \frac1{1 + \omega}(2\langle z - z^*,
D\rangle + |D|^2)`, and the parenthesis is :math:`|Tz - z^*|^2 - |z - z^*|^2`. ∎ The limit is exact because D vanishes
there: the :math:`z_j`, which client and server both know, are the shifts that other methods learn. For a random set of
k of d coordinates, scaled by d/k, :math:`\omega = \frac dk - 1`, and the step takes these coordinates of D as they are:
the first inequality is an equality, and Hessians that attain :math:`\delta` attain the factor. Rounding at random to
the powers of two on either side has :math:`\omega = \frac18` and sends 9 bits for a number.

**Theorem D (ii), FedDyn.** Each coordinate is uploaded by c of the N clients, every such cohort being equally likely,
and different coordinates may have any joint law; the server takes the means of what it gets, and the memories change in
the coordinates that were sent. Then Theorem A holds with p = c/N.

*Proof.* (2) of :mod:`theory.frontier._feddyn` knows nothing of cohorts, and (3) holds coordinate by coordinate. ∎ With
:math:`\frac cNd` numbers up in a round and about :math:`\frac12\sqrt{\kappa N/c}` rounds per factor e, the numbers fall
by :math:`\sqrt{N/c}` against c = N.

The package has no such method yet: a run counts the numbers of an upload, whose zeros would count too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cache
from itertools import combinations, product
from typing import Any

import numpy as np

from dualopt.algorithms import FedDyn, FedSplit
from dualopt.algorithms._parameters import reflection_factor
from dualopt.claims import Inequality, claim
from dualopt.engine import advance
from dualopt.objectives import Quadratic
from theory._cases import Case, accurately, everybody
from theory._claims import ROUNDING, ExpectedVerdict
from theory._problems import Instance, solved
from theory.baselines._runs import baseline_case
from theory.baselines.contraction import Errors, fedsplit_errors, three_directions
from theory.frontier import sampled_feddyn
from theory.frontier._feddyn import feddyn_errors

Mask = tuple[tuple[float, ...], ...]
"""What each client uploads, 1 or 0 for each of its coordinates."""


@dataclass(frozen=True, kw_only=True)
class MaskedFedSplit(FedSplit):
    """FedSplit with uploads of some coordinates."""

    mask: Mask = ()

    def local(self, c: Any, message: Any, oracle: Any, round: Any) -> tuple[Any, Any]:
        """Change these coordinates of ``z_j`` alone."""
        new, change = super().local(c, message, oracle, round)
        change = np.array(self.mask) * change
        return new._replace(z=c.z + change), change


@dataclass(frozen=True, kw_only=True)
class MaskedFedDyn(FedDyn):
    """FedDyn in which every coordinate has a cohort of its own, of ``fraction`` of the clients."""

    mask: Mask = ()

    def local(self, c: Any, message: Any, oracle: Any, round: Any) -> tuple[Any, Any]:
        """Change these coordinates of the memory alone."""
        new, theta = super().local(c, message, oracle, round)
        mask = np.array(self.mask)
        return new._replace(gradient=c.gradient + mask * (new.gradient - c.gradient)), mask * theta

    def server(self, server: Any, mean: Any, round: Any) -> tuple[Any, Any]:
        """Average every coordinate over those that sent it."""
        p = self.fraction or 1.0
        h = server.h - self.alpha * (mean - p * server.theta)
        theta = mean / p - h / self.alpha
        return server._replace(theta=theta, h=h), theta


@dataclass(frozen=True, kw_only=True, eq=False)
class MaskedCase(Case):
    """A method and everything that its clients may upload, equally likely.

    Attributes
    ----------
    masks : tuple of Mask
        What may be uploaded.
    kept : float
        The expected part of the coordinates.
    """

    masks: tuple[Mask, ...]
    kept: float

    @property
    def fraction(self) -> float:
        """The part p of Theorem A."""
        return self.kept


def independent(n: int, d: int, k: int) -> tuple[Mask, ...]:
    """Return all choices of k of d coordinates by each of n clients.

    Examples
    --------
    >>> len(independent(3, 2, 1))
    8
    """
    rows = [tuple(float(i in chosen) for i in range(d)) for chosen in combinations(range(d), k)]
    return tuple(product(rows, repeat=n))


def cohorts(n: int, d: int, c: int, *, together: bool = False) -> tuple[Mask, ...]:
    """Return all choices of c of n clients for each of d coordinates; ``together``: shifted from one to the next.

    Examples
    --------
    >>> len(cohorts(3, 2, 1)), len(cohorts(3, 2, 1, together=True))
    (9, 3)
    """
    columns = [tuple(float(j in chosen) for j in range(n)) for chosen in combinations(range(n), c)]
    if together:
        chosen = [[tuple(np.roll(column, i)) for i in range(d)] for column in columns]
    else:
        chosen = [list(columns) for columns in product(columns, repeat=d)]
    return tuple(tuple(zip(*columns, strict=True)) for columns in chosen)


def masked(case: Case, method: Any, masks: tuple[Mask, ...], kept: float, note: str) -> MaskedCase:
    """Return the case with what may be uploaded."""
    known = {f.name: getattr(case, f.name) for f in fields(case)}
    return MaskedCase(**known | {"name": f"{case.name}, {note}", "algorithm": method}, masks=masks, kept=kept)


def fedsplit_case(f: Instance, k: int, *, attained: bool = False) -> MaskedCase:
    """Return FedSplit with k coordinates of each client and the best step."""
    n, d = f.objective.b.shape
    method = MaskedFedSplit(step=1.0 / math.sqrt(f.L * f.mu), **accurately(f.objective))
    case = baseline_case(f, method, 12, attained=attained)
    return masked(case, method, independent(n, d, k), k / d, f"{k} of {d} coordinates")


def feddyn_case(f: Instance, c: int, *, times: float = 1.0, together: bool = False) -> MaskedCase:
    """Return FedDyn with c clients for each coordinate and ``times`` the best weight."""
    n, d = f.objective.b.shape
    right = sampled_feddyn.sampled_case(f, c, times=times).algorithm
    method = MaskedFedDyn(**{g.name: getattr(right, g.name) for g in fields(right)})
    case = baseline_case(f, method, 12)
    note = f"{c} of {n} a coordinate, {times:g} alpha*" + (", cohorts shifted" if together else "")
    return masked(case, method, cohorts(n, d, c, together=together), c / n, note)


def one_step(case: MaskedCase, errors: Errors, factor: float) -> Iterator[Inequality]:
    """Compare the mean over all masks with ``factor`` times the value before, on a path and at the worst state."""
    f, rng = case.objective, np.random.default_rng(0)
    methods = [type(case.algorithm)(**_parameters(case.algorithm) | {"mask": mask}) for mask in case.masks]
    round = everybody(case.n_clients)
    state = errors.state(rng.standard_normal(errors.size))
    for n in range(1, case.rounds + 1):
        after = [advance(method, f, state, round)[0] for method in methods]
        mean = float(np.mean([errors.squared(a) for a in after]))
        yield Inequality(n, mean, factor * errors.squared(state), "mean after a round")
        state = after[rng.integers(len(after))]
    units, form = [errors.state(unit) for unit in np.eye(errors.size)], 0.0
    for method in methods:
        rows = np.stack([errors.of(advance(method, f, unit, round)[0]) for unit in units])
        form = form + rows @ rows.T / len(methods)
    growth = float(np.linalg.eigvalsh(form)[-1])
    yield Inequality(0, growth, factor, "worst growth")
    if case.attained:
        yield Inequality(0, factor, growth, "factor and the worst growth")


def _parameters(method: Any) -> dict[str, Any]:
    return {g.name: getattr(method, g.name) for g in fields(method)}


def unbiased(case: MaskedCase) -> list[str]:
    """Return what fails: every coordinate is sent with the same probability, by everybody."""
    means = np.mean(case.masks, axis=0)
    return [] if np.ptp(means) <= ROUNDING and means[0, 0] > 0 else ["unbiased uploads"]


@cache
def directions() -> Instance:
    """Return the clients of :func:`three_directions` with their solution at (1, -2)."""
    f = three_directions().objective
    return solved("three directions from (1, -2)", Quadratic(A=f.A, b=f.b + f.A @ np.array([1.0, -2.0])))


def compressed_fedsplit_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """One coordinate of two and both, several steps; a coordinate that nobody ever sends."""
    for k in (1, 2):
        yield ExpectedVerdict(fedsplit_case(directions(), k, attained=True))
    never = fedsplit_case(directions(), 1)
    yield ExpectedVerdict(
        never.but(name=f"{never.name}, always the first", masks=(((1.0, 0.0),) * 3,)), "outside assumptions"
    )


@claim(
    source="Theorem D (i)",
    statement=r"For $\mu$-strongly convex, $L$-smooth clients, all of them active with exact proximal steps, and"
    r" uploads of k of d coordinates chosen at random ($1 + \omega = \frac dk$): $\mathbb E\sum_j|z_j^+ - z_j^*|^2 \le"
    r" \bigl(1 - \frac{1 - \delta^2}{1 + \omega}\bigr)\sum_j|z_j - z_j^*|^2$, attained by quadratics.",
    assumptions=unbiased,
    rtol=ROUNDING,
    cases=compressed_fedsplit_cases,
)
def compressed_fedsplit(case: MaskedCase) -> Iterator[Inequality]:
    """FedSplit that uploads some coordinates: it contracts, to the solution itself.

    Compare the exact expectation over what is uploaded, at the states of a path and at the worst of all states.
    """
    delta = reflection_factor(case.objective, case.algorithm.step)
    assert delta is not None  # smooth and strongly convex
    yield from one_step(case, fedsplit_errors(case), 1.0 - case.kept * (1.0 - delta**2))


def admitted(case: MaskedCase) -> list[str]:
    """Return what fails of the uploads, and of the assumptions of Theorem A."""
    return unbiased(case) + sampled_feddyn.admitted(case)


def compressed_feddyn_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Cohorts of all sizes for each coordinate, independent of each other or not; a weight that is too small."""
    for c in (1, 2, 3):
        yield ExpectedVerdict(feddyn_case(directions(), c))
    yield ExpectedVerdict(feddyn_case(directions(), 1, together=True))
    yield ExpectedVerdict(feddyn_case(directions(), 1, times=4.0))
    yield ExpectedVerdict(feddyn_case(directions(), 1, times=0.5), "outside assumptions")


@claim(
    source="Theorem D (ii)",
    statement=r"FedDyn, all clients active, each coordinate uploaded by c of N clients, all such cohorts equally"
    r" likely: Theorem A with p = c/N, whatever the joint law of different coordinates.",
    assumptions=admitted,
    rtol=ROUNDING,
    cases=compressed_feddyn_cases,
)
def compressed_feddyn(case: MaskedCase) -> Iterator[Inequality]:
    """FedDyn with a cohort for each coordinate: it contracts as Theorem A says.

    Compare the exact expectation over what is uploaded, at the states of a path and at the worst of all states.
    """
    errors = feddyn_errors(case, sampled_feddyn.dual_weight(case))
    yield from one_step(case, errors, sampled_feddyn.factor(case))
