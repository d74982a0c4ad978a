r"""Phase maps: what becomes of a method on scalar quadratic clients, computed from its rounds instead of long runs.

With exact local solutions, or a fixed number of gradient steps, a round is an affine map of the state for each thing
that chance may do in it: every subset of the clients, both sides of a coin. From the method's own start the state never
leaves a subspace, on which the maps are :math:`y \mapsto A_i y + c_i`. The second moments then obey
:math:`\mathbb E\,(A_i \otimes A_i)`. Where it contracts, the mean tends to :math:`m = \bar A m + \bar c` and the
covariance to :math:`C = \mathbb E\,A_i C A_i^\top + \mathbb E\,e_i e_i^\top` with :math:`e_i = A_i m + c_i - m`.
Without the restriction, quantities that a method conserves would count as directions in which it does not converge.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from dualopt.arrays.tree import leaves, tree_map
from dualopt.engine.rounds import State, advance, initial_state
from dualopt.lab.chance import Event
from dualopt.objectives import Quadratic
from theory._rounds import flatten, unflatten

__all__ = ["CONVERGES", "Clients", "LimitStatistics", "limit_statistics", "phase_map"]

PARALLEL = 1e-9  # directions nearer than this are one
CONVERGES = 1e-6  # largest error of a limit that is called the solution: rounding is smaller, a bias that shows larger


class Clients(NamedTuple):
    r"""The functions :math:`f_j(\theta) = \frac12 l_j \theta^2 - b_j \theta`; the solution is 1."""

    curvature: np.ndarray  # l_j, shape (N,)
    linear: np.ndarray  # b_j, shape (N,)

    def repeated(self, d: int) -> Quadratic:
        """Return the clients in ``d`` separate coordinates; the linear terms are in the last one."""
        N = len(self.curvature)
        b = np.zeros((N, d))
        b[:, -1] = self.linear
        return Quadratic(A=self.curvature[:, None, None] * np.eye(d), b=b)


class LimitStatistics(NamedTuple):
    """How a method ends on some clients; arrays of one shape for several of them."""

    radius: Any  # factor per round of the root mean square distance from the limit
    error: Any  # root mean square distance of the model from the solution in the limit; NaN without a limit


def limit_statistics(
    algorithm: Any, clients: Clients, outcomes: Sequence[Event], *, weight: float = math.inf
) -> LimitStatistics:
    """Return how a method ends that starts at 0.

    Parameters
    ----------
    algorithm : Algorithm
        The method, whose rounds are affine maps of its state.
    clients : Clients
        The clients.
    outcomes : sequence of Event
        What may happen in a round, with probabilities: :mod:`dualopt.lab.chance` lists them.
    weight : float, optional
        That of the proximal terms of the local problems; where it is not above minus the least curvature, a local
        problem has no solution, and both numbers are NaN. No local problem lacks one when not given.

    Examples
    --------
    Gradient descent with steps of 1/4 on curvatures 1 and 3:

    >>> from dualopt.methods import FedAvg
    >>> from dualopt.solvers import Gradient
    >>> from dualopt.solvers.stopping import Steps
    >>> from dualopt.lab.chance import coin
    >>> method = FedAvg(solver=Gradient(step=0.25), stop=Steps(steps=1))
    >>> found = limit_statistics(method, Clients(np.array([1.0, 3.0]), np.array([4.0, 0.0])), coin(2, 1.0))
    >>> round(found.radius, 12), found.error < 1e-12
    (0.5, True)
    """
    if not weight + np.min(clients.curvature) > 0:
        return LimitStatistics(np.nan, np.nan)
    start, maps = _maps(algorithm, clients, outcomes)
    chances = np.array([outcome.probability for outcome in outcomes])
    moved = np.stack([A @ start + c - start for A, c in maps])
    basis = _reachable([A for A, _ in maps], moved)
    A = np.stack([basis.T @ A @ basis for A, _ in maps])
    c = moved @ basis
    if len(maps) == 1:
        radius = float(np.max(np.abs(np.linalg.eigvals(A[0])), initial=0.0))
    else:
        second = np.einsum("i,iab,icd->acbd", chances, A, A).reshape(len(c[0]) ** 2, -1)
        radius = float(np.sqrt(np.max(np.abs(np.linalg.eigvals(second)), initial=0.0)))
    if not radius < 1.0:
        return LimitStatistics(radius, np.nan)
    mean = np.linalg.solve(np.eye(len(c[0])) - np.tensordot(chances, A, 1), chances @ c)
    variance = 0.0
    if len(maps) > 1:
        e = A @ mean + c - mean
        source = np.einsum("i,ia,ib->ab", chances, e, e)
        covariance = np.linalg.solve(np.eye(source.size) - second, source.ravel()).reshape(source.shape)
        variance = max(float(basis[0] @ covariance @ basis[0]), 0.0)
    bias = start[0] + float(basis[0] @ mean) - 1.0
    return LimitStatistics(radius, float(np.hypot(bias, np.sqrt(variance))))


def phase_map(
    method: Callable[[float], Any],
    clients: Callable[[float], Clients],
    outcomes: Sequence[Event],
    *,
    steps: Sequence[float],
    heterogeneity: Sequence[float],
    proximal: bool,
) -> LimitStatistics:
    """Return how a method ends for every step on all clients, arrays of shape (len(heterogeneity), len(steps)).

    Parameters
    ----------
    method : callable
        From a step to the method.
    clients : callable
        From a number, how different they are, to the clients.
    outcomes : sequence of Event
        What may happen in a round.
    steps, heterogeneity : sequence of float
        The axes of the map.
    proximal : bool
        Whether local problems have proximal terms, of weight 1/step.

    Examples
    --------
    FedPD on clients of the curvatures 1 and -1/2 in units of L: it converges, diverges, and has no local solutions.

    >>> from dualopt.methods import FedPD
    >>> from dualopt.solvers import Exact
    >>> from dualopt.lab.chance import coin
    >>> own = lambda s: Clients(np.array([1.0, -s]), np.array([1.0, -s]))
    >>> found = phase_map(
    ...     lambda step: FedPD(eta=step, solver=Exact()),
    ...     own,
    ...     coin(2, 1.0),
    ...     steps=[1.0, 1.9, 2.5],
    ...     heterogeneity=[0.5],
    ...     proximal=True,
    ... )
    >>> found.radius.round(2).tolist()
    [[0.5, 1.81, nan]]
    """
    cells = [
        limit_statistics(method(step), clients(s), outcomes, weight=1.0 / step if proximal else math.inf)
        for s in heterogeneity
        for step in steps
    ]
    radius, error = np.array(cells).T.reshape(2, len(heterogeneity), len(steps))
    return LimitStatistics(radius, error)


def _maps(
    algorithm: Any, clients: Clients, outcomes: Sequence[Event]
) -> tuple[np.ndarray, list[tuple[np.ndarray, np.ndarray]]]:
    """Return the start and the affine maps, which begin with the server's model.

    They are those of :func:`theory._rounds.round_matrix`, in a tenth of the time: coordinates do not mix, so that one
    round in n + 1 of them does everything. Unit vectors without linear terms give the columns of the matrix, and the
    start with them gives the constant.
    """
    algorithm = algorithm.suggested(clients.repeated(1))
    first = _first(algorithm, clients.repeated(1))
    start = flatten(first)
    n = len(start)
    f = clients.repeated(n + 1)
    states = [unflatten(z, first) for z in (*np.eye(n), start)]
    state = tree_map(lambda *leaves: np.concatenate(leaves, axis=-1), *states)
    maps = []
    for outcome in outcomes:
        after = advance(algorithm, f, state, outcome.round)[0]
        image = np.concatenate([leaf.reshape(-1, n + 1) for leaf in leaves(after)])
        maps.append((image[:, :n], image[:, n] - image[:, :n] @ start))
    return start, maps


def _reachable(matrices: Sequence[np.ndarray], moved: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis of the smallest subspace with these moves that the matrices map into itself."""
    basis = _orthonormal(moved.T)
    while True:
        larger = _orthonormal(np.hstack([basis, *(A @ basis for A in matrices)]))
        if larger.shape[1] == basis.shape[1]:
            return basis
        basis = larger


def _orthonormal(vectors: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(vectors, axis=0)
    u, s, _ = np.linalg.svd(vectors[:, lengths > 0] / lengths[lengths > 0], full_matrices=False)
    return u[:, s > PARALLEL]


def _first(algorithm: Any, f: Quadratic) -> State:
    return initial_state(algorithm, f, f.zeros())
