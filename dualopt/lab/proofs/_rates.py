"""The least factor per round that a quadratic Lyapunov function proves, in the mean over all that may happen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dualopt.arrays._checks import require
from dualopt.lab.proofs._formal import with_room
from dualopt.lab.proofs._forms import Form
from dualopt.lab.proofs._program import columns, program, solved, values
from dualopt.lab.proofs._quadratics import lower_bound
from dualopt.lab.proofs._round import OneRound, one_round
from dualopt.lab.proofs._setting import Setting
from dualopt.methods import Algorithm
from dualopt.methods._theorem import Known
from dualopt.spec import Spec

__all__ = ["Rate", "prove"]

SHOWN = 5
"""Rounds of a run in which a method must be linear algebra on vectors."""
POSITIVE = 1e-6
"""Least eigenvalue of a Lyapunov function of trace 1 that the tolerances of the solver leave no doubt about."""
NEAR_ONE = 1.0 - 1e-6
ROOM = 1e-6
"""By how much, relatively, a proof may be below what happens: rounding."""


@dataclass(frozen=True)
class Rate:
    """A factor per round of the mean of a Lyapunov function, with what proves it.

    Attributes
    ----------
    factor : float
        The least one that was found; infinite where no factor below 1 is provable with such a function.
    lower_bound : float or None
        Some quadratic clients are as slow as that: none is below; None where there are too many clients for the search.
    slowest : tuple of float
        The curvatures of these clients.
    claimed : float or None
        The least factor that a theorem of the method promises for a potential of its own.
    asymptotic : bool
        Whether it is about late rounds: numbers in the states, such as momentum, are taken at their limits.
    lyapunov : tuple of (tuple of str, array)
        V, a quadratic form in the means of states and messages, and for each class of clients one in the deviations
        from them: vectors less their values at the fixed point, and their weights.
    heights : tuple of float
        With ``memory``, the weights in V of f_j(x) - f_j* - <grad f_j*, x - theta*> at the latest points, by class.
    multipliers : array
        Those of the inequalities between points, in their order.
    setting : Setting
        What it is about.
    """

    factor: float
    lower_bound: float | None
    slowest: tuple[float, ...]
    claimed: float | None
    asymptotic: bool
    lyapunov: tuple[tuple[tuple[str, ...], np.ndarray], ...]
    heights: tuple[float, ...]
    multipliers: np.ndarray
    setting: Setting

    @property
    def proved(self) -> bool:
        """Whether a factor below 1 was found."""
        return math.isfinite(self.factor)

    def __str__(self) -> str:
        """Return the sentence."""
        late = ", in late rounds" if self.asymptotic else ""
        if self.proved:
            return f"proved: the mean of V falls by a factor of {self.factor:.6f} per round{late}"
        if self.lower_bound is not None and self.lower_bound >= 1.0:
            clients = ", ".join(f"{h:g}" for h in self.slowest)
            word = "diverges on" if self.lower_bound > 1.0 + 1e-9 else "does not converge on"
            return f"{word} quadratic clients of curvatures {clients}"
        return "not provable with a quadratic Lyapunov function of this kind"

    def to_json(self) -> dict[str, Any]:
        """Return all of it in terms of JSON."""
        s = self.setting
        return {
            "method": Spec.of(s.algorithm, full=True).to_json(),
            "mu": list(s.mu),
            "L": [x if math.isfinite(x) else "inf" for x in s.L],
            "weights": s.weights and list(s.weights),
            "participation": None if s.participation is None else Spec.of(s.participation).to_json(),
            "sentence": str(self),
            "factor": self.factor if self.proved else None,
            "lower_bound": self.lower_bound,
            "slowest": list(self.slowest),
            "claimed": self.claimed,
            "asymptotic": self.asymptotic,
            "lyapunov": [{"vectors": list(names), "weights": P.tolist()} for names, P in self.lyapunov],
            "heights": list(self.heights),
            "multipliers": self.multipliers.tolist(),
        }


def prove(
    algorithm: Algorithm | str,
    *,
    mu: float | Sequence[float],
    L: float | Sequence[float],
    clients: int | None = None,
    participation: Any = None,
    weights: Sequence[float] | None = None,
    memory: bool | None = None,
    tolerance: float = 1e-5,
    literal: bool = False,
) -> Rate:
    r"""Return the least factor per round that is provable of a method, from its own code.

    One round runs in formal coordinates from the most general state near the fixed point that the method can reach. A
    **Lyapunov function** V is sought, a quadratic form in the state, and multipliers :math:`\lambda \ge 0`, with

    .. math::
        \rho V - \mathbb E\,V^+ - \sum_i\lambda_i\,(\text{inequality}_i) \text{ a sum of squares}, \qquad V \ge c|y|^2,

    y everything in the state on which the model or later questions to the clients depend: a semidefinite program for
    each :math:`\rho`, the least of which is found by bisection. It proves :math:`\mathbb E|\theta^n - \theta^*|^2 \le
    C\rho^n` for all federations of the class, from the first round on, to the tolerance of the solver.

    Parameters
    ----------
    algorithm, mu, L, clients, participation, weights, literal
        As in :func:`worst_case`.
    memory : bool, optional
        Whether V has the points too where the clients were asked last, and the values of the functions there:
        accelerated methods need them. Both are tried when not given.
    tolerance : float, default 1e-5
        Of the bisection.

    Returns
    -------
    Rate

    Raises
    ------
    ValueError
        If an argument is out of range; if the method is not linear algebra on vectors, has numbers in its states that
        do not settle, or does not have the minimiser as a fixed point.
    RuntimeError
        If the solver of the semidefinite programs is too inexact.
    ImportError
        Without CVXPY.

    Examples
    --------
    FedDyn with two of four clients; Theorem A promises a factor of 0.739 for a potential of its own:

    >>> from dualopt import UniformSubset
    >>> found = prove("feddyn", mu=1, L=10, clients=4, participation=UniformSubset(size=2), tolerance=1e-4)
    >>> round(found.lower_bound, 3) <= round(found.factor, 3) <= round(found.claimed, 3)
    True
    """
    require(0 < tolerance < 1, "tolerance must lie between 0 and 1", tolerance)
    setting = Setting.of(algorithm, mu, L, clients, participation, weights, literal=literal)
    with_room(lambda dimension: setting.require_linear(SHOWN, dimension))
    best: tuple[float, _Found | None, OneRound] | None = None
    for own in (False, True) if memory is None else (memory,):
        system = one_round(setting, memory=own)
        found, factor = _least(system, tolerance)
        if best is None or factor < best[0] - 2 * tolerance:
            best = factor, found, system
    assert best is not None
    factor, found, system = best
    bound, slowest = lower_bound(setting)
    if bound is not None and factor < bound * (1.0 - ROOM):
        raise RuntimeError(
            f"the solver is too inexact here: it found {factor:.6g}, and a run is as slow as {bound:.6g}."
        )
    return Rate(
        factor=factor,
        lower_bound=bound,
        slowest=slowest,
        claimed=_claimed(setting),
        asymptotic=setting.limits.late,
        lyapunov=() if found is None else tuple(zip(system.names, found.weights, strict=True)),
        heights=() if found is None else found.heights,
        multipliers=np.zeros(0) if found is None else found.multipliers,
        setting=setting,
    )


def _claimed(setting: Setting) -> float | None:
    """Return the least factor per round that a theorem promises for the mean of its potential."""
    known = Known.of(setting.world(1), setting.participation)
    factors = [
        theorem.factor(setting.algorithm, known) ** (1.0 / theorem.rounds)
        for theorem in setting.algorithm.theorems
        if theorem.factor is not None
        and theorem.potential is not None
        and theorem.concerns(setting.algorithm, known)
        and not theorem.fails(setting.algorithm, known)
    ]
    return min(factors, default=None)


@dataclass(frozen=True)
class _Found:
    weights: tuple[np.ndarray, ...]
    multipliers: np.ndarray
    heights: tuple[float, ...]


def _least(system: OneRound, tolerance: float) -> tuple[_Found | None, float]:
    """Return the least factor with a Lyapunov function, and that function; infinity where there is none below 1."""
    low, high, best = 0.0, NEAR_ONE, _search(system, NEAR_ONE)
    if best is None:
        return None, math.inf
    while high - low > tolerance:
        middle = (low + high) / 2
        found = _search(system, middle)
        low, high, best = (low, middle, found) if found is not None else (middle, high, best)
    return best, high


def _search(system: OneRound, factor: float) -> _Found | None:
    """Return the best conditioned Lyapunov function that falls by a factor."""
    cvxpy = program()
    P = [cvxpy.Variable((n, n), symmetric=True) if n else None for n in system.weights]
    multipliers = cvxpy.Variable(len(system.inequalities), nonneg=True)
    heights = cvxpy.Variable(len(system.heights)) if system.heights else None
    least = cvxpy.Variable()

    def form(maps: list[list[np.ndarray]], b: int) -> Any:
        terms = zip(maps, P, strict=True)
        return sum(np.asarray(m[b], dtype=float) @ cvxpy.vec(p, order="C") for m, p in terms if p is not None)

    def of_heights(part: str, factors: tuple[float, float], b: int | None = None) -> Any:
        """Return what the values of functions add to V, times the first factor, and to V after, times the second."""
        if heights is None:
            return 0.0
        pick = (lambda x: x.values) if part == "values" else (lambda x: x.blocks[b].ravel())
        a, c = factors
        rows = [a * np.asarray(pick(x), dtype=float) + c * np.asarray(pick(y), dtype=float) for x, y in system.heights]
        return np.stack(rows).T @ heights

    def positive(flat: Any, b: int, K: np.ndarray) -> Any:
        M = K.T @ cvxpy.reshape(flat, (system.sizes[b],) * 2, order="C") @ K
        return (M + M.T) / 2 >> 0

    demands, trace = [values(system.inequalities).T @ multipliers == of_heights("values", (factor, -1.0))], 0.0
    nu = cvxpy.Variable(len(system.of_latest), nonneg=True) if system.of_latest else None
    for b in (b for b, n in enumerate(system.sizes) if n):
        K = _directions(system, b)
        if not K.shape[1]:
            continue
        change = factor * form(system.before, b) - form(system.after, b) + of_heights("blocks", (factor, -1.0), b)
        demands.append(positive(change - columns(system.inequalities, b).T @ multipliers, b, K))
        if nu is not None:  # V with values of functions is positive by the inequalities at the points where they are
            squares = zip(system.before, system.weights, strict=True)
            ones = sum(np.asarray(m[b], dtype=float) @ np.eye(n).ravel() for m, n in squares if n)
            own = form(system.before, b) + of_heights("blocks", (1.0, 0.0), b) - columns(system.of_latest, b).T @ nu
            demands.append(positive(own - least * ones, b, K))
            trace = trace + cvxpy.sum(own[:: system.sizes[b] + 1])
    if nu is None:
        demands += [p - least * np.eye(p.shape[0]) >> 0 for p in P if p is not None]
        trace = sum(cvxpy.trace(p) for p in P if p is not None)
    else:
        demands.append(values(system.of_latest).T @ nu == of_heights("values", (1.0, 0.0)))
    problem = cvxpy.Problem(cvxpy.Maximize(least), [*demands, trace <= 1.0])
    if solved(problem, (1e-9, 1e-8)) not in ("optimal", "optimal_inaccurate") or not float(least.value) > POSITIVE:
        return None
    unit = 1.0 / float(least.value)
    weights = tuple(np.zeros((0, 0)) if p is None else unit * np.asarray(p.value) for p in P)
    numbers = () if heights is None else tuple((unit * np.asarray(heights.value)).tolist())
    return _Found(weights, unit * np.asarray(multipliers.value), numbers)


def _directions(system: OneRound, b: int) -> np.ndarray:
    """Return an orthonormal basis of the directions in which some form does not vanish: it is asked for there alone."""
    n = system.sizes[b]
    forms: list[Form] = [*system.inequalities, *(x for pair in system.heights for x in pair)]
    _, sizes, V = np.linalg.svd(values(forms).T)
    free = V[int(np.sum(sizes > 1e-9)) :]  # sums of inequalities in which the values of functions cancel
    cancelled = np.tensordot(free, columns(forms, b).reshape(len(forms), n, n), 1)
    maps = [np.asarray(m[b], dtype=float).reshape(n, -1) for m in (*system.before, *system.after) if m[b].shape[1]]
    U, s, _ = np.linalg.svd(np.concatenate([*maps, *cancelled], axis=1), full_matrices=False)
    return U[:, : int(np.sum(s > 1e-9 * s[0]))] if s.size and s[0] > 0 else np.zeros((n, 0))
