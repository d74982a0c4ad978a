r"""A-FedPD with P of N clients: cases, paths in the paper's symbols, exact expectations.

The mean :math:`\bar\theta^t` of the active models is recovered from the model and the duals of the clients,
:math:`\bar\theta^t = \theta^t - \bar\lambda^t/\rho` (line 12 of Algorithm 1), so that a mean dual that is not the mean
of the duals, or an average over the wrong clients, shows. A client that was not active stands at
:math:`\theta_j^t = \bar\theta^t`, for which its virtual update is the dual step.

On quadratic clients with exact local solutions a round is an affine map of
:math:`z = (\theta, \lambda_1, \dots, \lambda_N)`, one for each choice S of clients. With its matrix :math:`Z_S` on
:math:`(z, 1)`,

.. math:: \mathbb E\,(z, 1)(z, 1)^\top \leftarrow \frac{1}{|\mathcal S|}\sum_{S} Z_S\,
          \mathbb E[(z, 1)(z, 1)^\top]\, Z_S^\top

is exact for any number of rounds, and holds the expectation of every quadratic function of z.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, lru_cache
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from dualopt.arrays.tree import merge_clients
from dualopt.arrays.xp import Array
from dualopt.engine.rounds import State
from dualopt.lab.chance import Branch, Expect
from dualopt.methods import AFedPD
from dualopt.methods.participation import UniformSubset
from dualopt.objectives import NonconvexPenalty, Quadratic
from theory._cases import Case, accurately
from theory._problems import solved
from theory._rounds import all_solutions, round_matrices, second_moments
from theory._rounds import path as rounds

__all__ = [
    "AFedPDRound",
    "Point",
    "afedpd_case",
    "duals",
    "fixed_point",
    "gradient_form",
    "matrices",
    "mean_square",
    "one_client",
    "one_concave",
    "path",
    "pulled_apart",
    "squared_gradients",
    "start_vector",
    "two_signs",
]

# Cases.


def afedpd_case(
    instance: Case, *, rho: float, active: int, rounds: int, theta0: Array | None = None, note: str = ""
) -> Case:
    r"""Start A-FedPD on a problem, with exact local solutions.

    Parameters
    ----------
    instance : Case
        The problem. With a nonconvex penalty, ``lowest`` is the minimum of ``E`` without it, which is below ``E``.
    rho : float
        Weight of the proximal term.
    active : int
        Number P of active clients.
    rounds : int
        How many rounds to look at.
    theta0 : array, shape ``shape``, optional
        The first model; :math:`\theta^* + 1` when not given.
    note : str, optional
        What to add to the name.

    Examples
    --------
    >>> from theory._problems import quadratic
    >>> afedpd_case(quadratic(), rho=100.0, active=2, rounds=5).name
    'quadratics (N=3, kappa=50), 2 of 3 active, rho = 100'
    """
    f = instance.objective
    convex = f.objective if isinstance(f, NonconvexPenalty) else f
    return Case(
        name=f"{instance.name}, {active} of {f.n_clients} active, rho = {rho:.4g}" + (f", {note}" if note else ""),
        algorithm=AFedPD(rho=rho, **accurately(f)),
        objective=f,
        theta=instance.theta,
        subgradients=instance.subgradients,
        lowest=float(np.mean(convex.value(instance.theta))),
        theta0=instance.theta + 1.0 if theta0 is None else theta0,
        participation=UniformSubset(size=active),
        rounds=rounds,
    )


# Problems: E is bounded below, its clients need not be.


@cache
def one_client(curvature: float) -> Case:
    """One client alone: nothing but proximal steps is left of the method."""
    f = Quadratic(A=np.full((1, 1, 1), curvature), b=np.zeros((1, 1)))
    return solved(f"one client of curvature {curvature:g}", f)


@cache
def two_signs() -> Case:
    """Clients 3x^2/2 and -x^2/2: E has the curvature 1, every client is stationary at 0."""
    f = Quadratic(A=np.array([[[3.0]], [[-1.0]]]), b=np.zeros((2, 1)))
    return solved("3x^2/2 and -x^2/2", f)


@cache
def one_concave(n: int, *, excess: float = 0.1) -> Case:
    """One client of curvature -1, all others of (1 + excess)/(n - 1): E is just convex, and L = 1 from n = 3 on."""
    curvature = np.append(np.full(n - 1, (1.0 + excess) / (n - 1)), -1.0)
    return solved(f"one concave of {n}", Quadratic(A=curvature[:, None, None], b=np.zeros((n, 1))))


@cache
def pulled_apart(n: int = 3) -> Case:
    """Clients (x - b_j)^2/2 whose minima are spread around 1."""
    b = 1.0 + np.linspace(-2.0, 2.0, n)[:, None]
    return solved(f"{n} pulled apart", Quadratic(A=np.ones((n, 1, 1)), b=b))


# Paths.


def duals(state: State) -> Array:
    r"""Return the :math:`\lambda_j`: clients keep them less what the server keeps, the mean.

    Examples
    --------
    >>> from theory._problems import quadratic
    >>> duals(afedpd_case(quadratic(), rho=100.0, active=2, rounds=1).first()).shape
    (3, 4)
    """
    return state.clients.dual + state.server.dual


class Point(NamedTuple):
    """The clients and the server before or after a round."""

    state: State
    bar: Array  # bar theta^t, from the model and the duals
    points: Array  # theta_j^t: the solution of an active client, bar theta^t of an inactive one

    @property
    def theta(self) -> Array:
        """The model."""
        return self.state.server.theta

    @property
    def duals(self) -> Array:
        r"""The :math:`\lambda_j`."""
        return duals(self.state)


class AFedPDRound(NamedTuple):
    """A round: where it began, the solutions of all clients, and every place where it may end."""

    n: int
    before: Point
    all_solutions: Array  # theta_j^{t+1} of all clients, active or not
    residuals: Array  # gradients of their local problems there
    after: tuple[Point, ...]
    E: Expect  # over them
    taken: Point  # how the path goes on

    @property
    def spread(self) -> float:
        r"""Return :math:`R_t = \frac1N\sum_j |\theta_j^{t+1} - \bar\theta^t|^2` over all clients."""
        return mean_square(self.all_solutions - self.before.bar)


@lru_cache(maxsize=64)
def path(case: Case) -> tuple[AFedPDRound, ...]:
    """Follow the case along a sampled choice of clients.

    Examples
    --------
    >>> from theory._problems import quadratic
    >>> steps = path(afedpd_case(quadratic(), rho=100.0, active=1, rounds=2))
    >>> [len(step.after) for step in steps]
    [3, 3]
    """
    start, solved = case.first(), {}
    theta0 = start.server.theta

    def solutions(before: Point) -> Any:
        """Return the solutions of all clients, which are the same for all that may happen in a round."""
        if solved.get("of") is not before.state:
            solved.update(of=before.state, found=all_solutions(case.algorithm, case.objective, before.state))
        return solved["found"]

    def point(before: Point, branch: Branch) -> Point:
        return _point(case, branch, solutions(before).theta)

    steps = []
    points = np.broadcast_to(theta0, (case.n_clients, *theta0.shape))
    for t in rounds(case, start=Point(start, theta0, points), point=point):
        found = solutions(t.before)
        steps.append(AFedPDRound(t.n, t.before, found.theta, found.evaluation.gradient, t.after, t.E, t.taken))
    return tuple(steps)


def _point(case: Case, branch: Branch, solutions: Array) -> Point:
    state, clients = branch.state, list(branch.round.clients)
    bar = state.server.theta - np.mean(duals(state), axis=0) / case.rho
    inactive = np.broadcast_to(bar, solutions.shape)
    return Point(state, bar, merge_clients(inactive, solutions[clients], clients))


def mean_square(x: Array) -> float:
    """Return the mean over the clients of the squared norms.

    Examples
    --------
    >>> mean_square(np.array([[1.0, 1.0], [2.0, 0.0]]))
    3.0
    """
    return float(np.sum(x**2)) / len(x)


# Expectations along whole runs.


@lru_cache(maxsize=64)
def matrices(case: Case) -> tuple[Array, ...]:
    """Return the matrices of a round on ``(z, 1)``, equally likely.

    Examples
    --------
    >>> [Z.shape for Z in matrices(afedpd_case(two_signs(), rho=1.2, active=1, rounds=1))]
    [(4, 4), (4, 4)]
    """
    return tuple(M for _, M in round_matrices(case, flat=_flat, filled=_filled))


def fixed_point(case: Case) -> Array:
    """Return ``(z*, 1)``: the minimiser with the duals ``-grad f_j``."""
    return np.append(np.concatenate([case.theta[None], -case.subgradients]).ravel(), 1.0)


def start_vector(case: Case) -> Array:
    """Return ``(z, 1)`` before the first round."""
    return np.append(_flat(case.first()), 1.0)


def gradient_form(case: Case) -> Array:
    r"""Return the matrix that makes :math:`\nabla E(\bar\theta)` of ``(z, 1)``."""
    f, d, N = case.objective, case.theta.size, case.n_clients
    bar = np.hstack([np.eye(d), np.tile(-np.eye(d) / (case.rho * N), N), np.zeros((d, 1))])
    A, b = np.mean(f.A, axis=0), np.mean(f.b, axis=0)
    return A @ bar - np.outer(b, np.append(np.zeros(d * (N + 1)), 1.0))


def squared_gradients(case: Case) -> Iterator[float]:
    r"""Yield :math:`\mathbb E|\nabla E(\bar\theta^t)|^2` for t = 1, 2, ..., exactly."""
    gradient, rounds = gradient_form(case), [(1.0 / len(matrices(case)), Z) for Z in matrices(case)]
    for moments in islice(second_moments(rounds, start_vector(case)), 1, case.rounds + 1):
        yield float(np.trace(gradient @ moments @ gradient.T))


def _flat(state: State) -> Array:
    """Return z."""
    return np.concatenate([state.server.theta[None], duals(state)]).ravel()


def _filled(z: Array, like: State) -> State:
    """Return the state of ``z``: the server's dual is the mean of the duals."""
    theta, whole = np.split(z.reshape(len(like.clients.dual) + 1, -1), [1])
    mean = np.mean(whole, axis=0)
    server, message = (part._replace(theta=theta[0], dual=mean) for part in (like.server, like.message))
    return State(server, message, like.clients._replace(dual=whole - mean), like.solver)
