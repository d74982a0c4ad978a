r"""The semidefinite program of a Lyapunov function: a quadratic form V that falls by a factor in one round.

Unknown are the weights of V, its heights (weights of the values of functions), and multipliers of inequalities. All
that is asked for is linear in these but for the factor, a parameter: the program is made once and solved for many.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dualopt.lab.proofs._forms import Form
from dualopt.lab.proofs._program import columns, program, solved, values
from dualopt.lab.proofs._round import OneRound

__all__ = ["Lyapunov", "LyapunovProgram"]

POSITIVE = 1e-6
"""Least eigenvalue of a Lyapunov function of trace 1 that the tolerances of the solver leave no doubt about."""
MISSED = 1e-5
"""Of the least eigenvalue: by how much a solution that the solver calls inaccurate may miss what is asked for."""


@dataclass(frozen=True)
class Lyapunov:
    """A function that falls, and what shows it; it is at least the squared norm of what it weighs."""

    weights: tuple[np.ndarray, ...]
    heights: np.ndarray
    multipliers: np.ndarray
    positive: np.ndarray  # multipliers by which V with values of functions is positive
    least: float  # eigenvalue of V where its trace is 1


class LyapunovProgram:
    """The best conditioned Lyapunov function for a factor.

    Parameters
    ----------
    system : OneRound
        One round of a method.
    least : float, optional
        An eigenvalue that is small enough: the function has this condition, and its proof the most room for rounding.
    """

    def __init__(self, system: OneRound, least: float | None = None) -> None:
        cvxpy, self.system = program(), system
        entries = [n * (n + 1) // 2 for n in system.weights]
        counts = (*entries, *map(len, (system.heights, system.inequalities, system.of_latest)))
        ends = np.cumsum(counts).tolist()
        *weights, self._heights, self._multipliers, self._positive = map(slice, [0, *ends], ends)
        self._weights, self._n = weights, ends[-1]
        self._factor, self._x = cvxpy.Parameter(nonneg=True), cvxpy.Variable(self._n)
        self._least = cvxpy.Variable() if least is None else cvxpy.Constant(least)
        room = cvxpy.Variable() if least is not None else cvxpy.Constant(0.0)
        self._goal = self._least if least is None else room
        x, factor, first, second = self._x, self._factor, *([pair[k] for pair in system.heights] for k in (0, 1))
        falls, stays = (slice_ for slice_ in (self._multipliers, self._positive))
        demands = [x[part] >= 0 for part in (falls, stays) if part.stop > part.start]
        own = self._linear(values, first, ())
        rest = self._linear(values, second, (falls, system.inequalities))
        demands.append(factor * (own @ x) - rest @ x == 0)
        with_heights, trace = bool(system.heights), 0.0
        if with_heights:
            demands.append(self._linear(values, first, (stays, system.of_latest), -1.0) @ x == 0)
        for b in (b for b, n in enumerate(system.sizes) if n):
            K = _directions(system, b)
            if not K.shape[1]:
                continue
            V = self._quadratic(b, system.before, first)
            after = self._quadratic(b, system.after, second, (falls, system.inequalities), 1.0)
            one = np.eye(K.shape[1]).ravel()
            demands.append(_psd(factor * (_within(K, V) @ x) - _within(K, after) @ x - room * one))
            if with_heights:  # V is positive by the inequalities at the points where the values are
                V = self._quadratic(b, system.before, first, (stays, system.of_latest), -1.0)
                square = self._quadratic(b, system.before, ()) @ self._ones
                demands.append(_psd(_within(K, V) @ x - self._least * _within(K, square[:, None])[:, 0]))
            trace = trace + cvxpy.sum((V @ x)[:: system.sizes[b] + 1]) if with_heights else trace
        if not with_heights:
            for n, part in zip(system.weights, weights, strict=True):
                if n:
                    demands.append(_psd(_symmetric(n) @ x[part] - self._least * np.eye(n).ravel()))
            trace = self._ones @ x
        self._problem = cvxpy.Problem(cvxpy.Maximize(self._goal), [*demands, trace <= 1.0])

    @property
    def _ones(self) -> np.ndarray:
        """The unknowns of the sum of squares of what V weighs."""
        found = np.zeros(self._n)
        for n, part in zip(self.system.weights, self._weights, strict=True):
            found[part] = _symmetric(n).T @ np.eye(n).ravel()
        return found

    def _linear(self, of: Any, heights: Sequence[Form], given: Any, sign: float = 1.0) -> np.ndarray:
        """Return what heights and inequalities are of all unknowns, in the values of functions or in a block."""
        forms = [*heights, *(given[1] if given else ())] or self.system.inequalities[:1]
        found = np.zeros((of(forms).shape[1], self._n))
        if heights:
            found[:, self._heights] = of(heights).T
        if given and given[1]:
            found[:, given[0]] = sign * of(given[1]).T
        return found

    def _quadratic(self, b: int, maps: Any, heights: Sequence[Form], given: Any = (), sign: float = 1.0) -> np.ndarray:
        """Return the entries of a block of V, and of inequalities times a sign, as matrix on the unknowns."""
        found = self._linear(lambda forms: columns(forms, b), heights, given, sign)
        for own, n, part in zip(maps, self.system.weights, self._weights, strict=True):
            if n:
                found[:, part] = np.asarray(own[b], dtype=float) @ _symmetric(n)
        return found

    def at(self, factor: float) -> Lyapunov | None:
        """Return the function that falls by a factor, if there is one."""
        self._factor.value = factor
        status = solved(self._problem, (1e-9, 1e-8))
        if status not in ("optimal", "optimal_inaccurate"):
            return None
        least = float(self._least.value)
        if not (float(self._goal.value) > 0.0 and least > POSITIVE):
            return None
        if status != "optimal" and max(np.max(c.violation()) for c in self._problem.constraints) > MISSED * least:
            return None
        x = np.asarray(self._x.value) / least
        pairs = zip(self.system.weights, self._weights, strict=True)
        weights = tuple((_symmetric(n) @ x[part]).reshape(n, n) for n, part in pairs)
        return Lyapunov(weights, x[self._heights], x[self._multipliers], x[self._positive], least)


def _symmetric(n: int) -> np.ndarray:
    """Return the matrix that makes the entries of a symmetric matrix of those on and below its diagonal."""
    rows, cols = np.tril_indices(n)
    found = np.zeros((n, n, len(rows)))
    found[rows, cols, np.arange(len(rows))] = found[cols, rows, np.arange(len(rows))] = 1.0
    return found.reshape(n * n, len(rows))


def _within(K: np.ndarray, A: np.ndarray) -> np.ndarray:
    """Return the symmetric part of K'MK for matrices M whose entries are the columns of A."""
    n = len(K)
    M = np.einsum("ik,ijn,jl->kln", K, A.reshape(n, n, A.shape[1]), K)
    return ((M + M.transpose(1, 0, 2)) / 2).reshape(-1, A.shape[1])


def _psd(flat: Any) -> Any:
    """Return the demand that a matrix is positive semidefinite."""
    n = round(flat.shape[0] ** 0.5)
    return program().reshape(flat, (n, n), order="C") >> 0


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
