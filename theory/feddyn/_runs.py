r"""FedDyn with P of N clients from starts that the theory admits: cases, paths in the paper's symbols, expectations.

The analysis needs of a start that the memories are gradients, :math:`g_k = \nabla f_k(\theta_k^0)`, that their mean is
:math:`h^0`, and that :math:`\theta^0 = \gamma^0 - h^0/\alpha`, which is (9). Algorithm 1 starts with zero memories, so
that :math:`\theta_k^0` is a stationary point of client k (there may be none) and :math:`\gamma^0 = \theta^0`. The other
start has the memories of one point, :math:`\theta_k^0 = \gamma^0`.

Expectations along whole runs are exact. By enumeration: all histories of chosen clients, each with its probability;
their number is 1 for P = N and grows by a factor of C(N, P) per round otherwise. By moments, where the clients are
quadratic: a round with clients S is then an affine map of the state. With :math:`z = (x, \gamma, \bar\gamma, 1)`, where
x is the state and :math:`\bar\gamma` the weighted mean of the :math:`\gamma^t` so far,

.. math:: \mathbb E\,z z^\top \leftarrow \frac{1}{|\mathcal S|}\sum_{S} Z_S\, \mathbb E[z z^\top]\, Z_S^\top

is exact for any number of rounds, and holds the expectation of every quadratic function of z.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, lru_cache
from itertools import chain, islice
from typing import NamedTuple

import numpy as np

from dualopt.arrays.tree import merge_clients
from dualopt.arrays.xp import Array
from dualopt.engine.rounds import State, advance, initial_state
from dualopt.lab.chance import Branch, Expect
from dualopt.losses import Huber
from dualopt.methods import FedDyn
from dualopt.methods.participation import Round, UniformSubset
from dualopt.objectives import LocalProblem, NonconvexPenalty, Objective, Quadratic, linear_model
from dualopt.solvers import NewtonCG
from dualopt.solvers.stopping import GradientNorm
from theory._cases import Case, accurately
from theory._claims import ExpectedVerdict
from theory._problems import (
    breast_cancer,
    flat_quadratic,
    indefinite,
    logistic,
    lopsided,
    one_concave_client,
    one_flat_client,
    penalised_logistic,
    quadratic,
    solved,
)
from theory._rounds import affine, equally, flatten, histories, moments_after, unflatten
from theory._rounds import path as rounds

__all__ = [
    "FedDynRound",
    "Point",
    "by_enumeration",
    "by_moments",
    "convex_cases",
    "curvatures",
    "expectations",
    "expected",
    "far_away",
    "feddyn_case",
    "flat_along_axes",
    "nonconvex_cases",
    "opposed",
    "path",
    "strongly_convex_cases",
]

# Cases.


def feddyn_case(
    instance: Case,
    *,
    alpha: float,
    active: int,
    rounds: int,
    warm: bool = False,
    solved: bool = False,
    note: str = "",
) -> Case:
    r"""Start FedDyn on a problem, with exact local solutions and every subset of P clients equally likely.

    Besides the weight ``alpha`` the case knows ``gamma``, which is :math:`\gamma^0`, the ``points``
    :math:`\theta_k^0` (NaN where a client with an empty memory has no stationary point that is known), and the
    ``memory``, the gradients there.

    Parameters
    ----------
    instance : Case
        The problem.
    alpha : float
        Weight of the proximal term in units of L.
    active : int
        Number of active clients.
    rounds : int
        How many rounds to look at.
    warm : bool, default False
        Whether the memories start as the gradients at :math:`\gamma^0`; else they are zero, as in Algorithm 1.
    solved : bool, default False
        Whether :math:`\gamma^0 = \theta^*`, so that only the memories are wrong; else it is zero.
    note : str, optional
        What to add to the name.

    Examples
    --------
    >>> case = feddyn_case(quadratic(), alpha=25.0, active=2, rounds=1)
    >>> case.name, float(case.first().server.theta[0])
    ('quadratics (N=3, kappa=50), P = 2, alpha = 25 L', 0.0)
    """
    f = instance.objective
    gamma = instance.theta if solved else f.zeros()
    points = np.broadcast_to(gamma, (f.n_clients, *f.shape)) if warm else _stationary(f)
    starts = (", from the solution" if solved else "") + (", memories of gamma^0" if warm else "")
    below = f.objective if isinstance(f, NonconvexPenalty) else f  # the penalty is nonnegative
    return Case(
        name=f"{instance.name}, P = {active}, alpha = {alpha:g} L{starts}{note}",
        algorithm=FedDyn(alpha=alpha * instance.L, **accurately(f, tol=1e-13 * instance.L)),
        objective=f,
        theta=instance.theta,
        lowest=float(np.mean(below.value(instance.theta))),
        subgradients=instance.subgradients,
        participation=UniformSubset(size=active),
        state=_first,
        rounds=rounds,
        known={
            "gamma": gamma,
            "points": points,
            "memory": f.gradient(gamma) if warm else np.zeros_like(points),
        },
    )


def _first(case: Case) -> State:
    """Return the state before the first round, as (9) asks for it."""
    h = np.mean(case.memory, axis=0)
    theta = case.gamma - h / case.alpha
    start = initial_state(case.algorithm, case.objective, theta)
    return start._replace(server=start.server._replace(h=h), clients=start.clients._replace(gradient=case.memory))


def _stationary(f: Objective) -> Array:
    """Return a stationary point of every client, NaN where it takes more than a linear system or strong convexity."""
    if isinstance(f, Quadratic):
        found = np.linalg.pinv(f.A, hermitian=True) @ f.b[..., None]
        exists = np.allclose(f.A @ found, f.b[..., None], rtol=0.0, atol=1e-9 * float(np.max(np.abs(f.b))))
        return found[..., 0] if exists else np.full_like(f.b, np.nan)
    start = np.broadcast_to(f.zeros(), (f.n_clients, *f.shape))
    if not np.min(f.mu) > 0:
        return np.full_like(start, np.nan)
    return NewtonCG()(LocalProblem(objective=f), start, GradientNorm(tol=1e-14)).theta


# Problems: clients that pull against each other.


@cache
def flat_along_axes() -> Case:
    """Three clients in three dimensions, each of which is flat along an axis of its own; E has curvature 2/3."""
    A = np.stack([np.diag(1.0 - axis) for axis in np.eye(3)])
    b = np.array([[0.0, 2.0, -1.0], [3.0, 0.0, 1.0], [-1.0, 1.0, 0.0]])
    return solved("each flat along one axis", Quadratic(A=A, b=b))


@cache
def opposed(*, pull: float = 3.0) -> Case:
    """Three clients in the plane with equal curvature one, which pull to different sides of the common minimum."""
    angles = 2.0 * np.pi * np.arange(3) / 3
    b = np.array([1.0, 0.5]) + pull * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return solved("three that pull apart", Quadratic(A=np.repeat(np.eye(2)[None], 3, axis=0), b=b))


@cache
def far_away() -> Case:
    """Return two Huber losses of one variable, linear on most of the way from zero to their common minimiser 3."""
    rows = {"X": np.ones((2, 1)), "y": np.array([2.9, 3.1])}
    f = linear_model(**rows, loss=Huber(delta=1.0), mu=0.0, clients=2, intercept=False)
    theta = np.array([3.0])
    return Case(name="two Huber losses far away", objective=f, theta=theta, subgradients=f.gradient(theta))


@cache
def curvatures(*values: float) -> Case:
    """Return clients of one variable with these curvatures, whose minima lie at 1, 2, ..., and maxima where concave.

    Examples
    --------
    >>> round(float(curvatures(1.0, 3.0).theta[0]), 9)
    1.75
    """
    a = np.array(values)
    f = Quadratic(A=a[:, None, None], b=(a * np.arange(1.0, len(a) + 1.0))[:, None])
    return solved(f"curvatures {', '.join(f'{value:g}' for value in values)}", f)


# Cases that several claims share, so that their paths are followed once.

Start = tuple[Case, int, bool]  # a problem, how many clients are active, whether the memories start as gradients


def _convex(quick: bool) -> list[Start]:
    few = [(quadratic(4), 2, False), (opposed(), 1, False), (flat_quadratic(), 2, True), (logistic(), 3, False)]
    few += [
        (lopsided(), 2, False),
        (one_flat_client(), 2, True),
    ]
    return few if quick else [*few, (quadratic(), 3, False), (breast_cancer(), 7, True)]


def _nonconvex(quick: bool) -> list[Start]:
    few = [(indefinite(), 1, False), (indefinite(), 2, True), (penalised_logistic(), 3, True)]
    few += [(one_concave_client(), 2, False)]
    return few if quick else [*few, (indefinite(), 3, False)]


def _rounds(quick: bool, f: Case) -> int:
    return 40 if not quick else 15 if isinstance(f.objective, Quadratic) else 8  # Newton's method takes its time


@cache
def convex_cases(quick: bool, alpha: float) -> tuple[Case, ...]:
    """Clients that are convex, of both kinds of starts; ``alpha`` is in units of L."""
    return tuple(
        feddyn_case(f, alpha=alpha, active=P, rounds=_rounds(quick, f), warm=warm) for f, P, warm in _convex(quick)
    )


@cache
def strongly_convex_cases(quick: bool) -> tuple[Case, ...]:
    """Clients that are strongly convex, with the least alpha of Theorem 3."""
    found = []
    for f, P, warm in _convex(quick):
        if f.mu > 1e-9 * f.L:
            least = max(5.0 * f.objective.n_clients / P * f.mu / f.L, 30.0)
            found.append(feddyn_case(f, alpha=least, active=P, rounds=_rounds(quick, f), warm=warm))
    return tuple(found)


@cache
def nonconvex_cases(quick: bool, alpha: float | None = None) -> tuple[Case, ...]:
    """Clients that are not convex; by default with the least alpha of Theorem 4."""
    found = []
    for f, P, warm in _nonconvex(quick):
        weight = 20.0 * f.objective.n_clients / P if alpha is None else alpha
        found.append(feddyn_case(f, alpha=weight, active=P, rounds=_rounds(quick, f), warm=warm))
    return tuple(found)


def expected(*suites: tuple[Case, ...], verdict: str = "holds") -> Iterator[ExpectedVerdict]:
    """Expect one verdict of all cases."""
    for suite in suites:
        for case in suite:
            yield ExpectedVerdict(case, verdict)


# Paths.


class Point(NamedTuple):
    """The clients and the server after a round."""

    state: State
    gamma: Array  # the mean of the active clients' solutions
    points: Array  # theta_k^t, of inactive clients the old ones
    gradients: Array  # of f_k there: what the memories are meant to hold


class FedDynRound(NamedTuple):
    """A round: where it began, the solutions of all clients, and every place where it may end."""

    n: int
    before: Point
    all_solutions: Array  # the solutions (7) of all clients, active or not
    after: tuple[Point, ...]
    E: Expect  # over them

    @property
    def epsilon(self) -> float:
        """The mean of the squared distances of all solutions from the last mean."""
        return float(np.sum((self.all_solutions - self.before.gamma) ** 2)) / len(self.all_solutions)


@lru_cache(maxsize=64)
def path(case: Case) -> tuple[FedDynRound, ...]:
    """Follow the case along a random choice of clients.

    Examples
    --------
    >>> steps = path(feddyn_case(quadratic(), alpha=25.0, active=1, rounds=2))
    >>> [len(step.after) for step in steps]
    [3, 3]
    """
    chosen = equally(np.random.default_rng(0))
    turns = rounds(case, chosen, start=_start(case), point=lambda before, branch: _point(case, before, branch), first=1)
    return tuple(FedDynRound(t.n, t.before, _all_solutions(case, t.before), t.after, t.E) for t in turns)


def _start(case: Case) -> Point:
    return Point(case.first(), case.gamma, case.points, case.memory)


def _point(case: Case, before: Point, branch: Branch) -> Point:
    clients, upload = branch.round.clients, branch.upload
    found = case.objective.select(clients).gradient(upload)
    points = merge_clients(before.points, upload, clients)
    return Point(branch.state, np.mean(upload, axis=0), points, merge_clients(before.gradients, found, clients))


def _all_solutions(case: Case, before: Point) -> Array:
    """Solve (7) for every client, apart from the method, which may be a mutation."""
    f, method, theta = case.objective, case.algorithm, before.state.server.theta
    problem = LocalProblem(objective=f, linear=-before.gradients, weight=method.alpha, center=theta)
    start = np.broadcast_to(theta, before.points.shape)
    return method.solver(problem, start, method.stop).theta


# Expectations along whole runs.


class Expected(NamedTuple):
    """Expectations after ``T - 1`` rounds."""

    T: int
    error: float  # of E - E* at the mean of gamma^0, ..., gamma^(T-1) with weights r^t
    squared_gradient: float  # of |grad E(gamma^(T-1))|^2


def expectations(case: Case, r: float = 1.0) -> Iterator[Expected]:
    """Yield the expectations for T = 1, 2, ..., as many as the case has rounds, by the route that suits it."""
    route = by_moments if isinstance(case.objective, Quadratic) else by_enumeration
    return islice(route(case, r), case.rounds)


def by_enumeration(case: Case, r: float = 1.0) -> Iterator[Expected]:
    """Follow every history, with the mean of the gamma^t so far."""

    class Followed(NamedTuple):
        state: State
        gamma: Array
        T: int
        mean: Array  # of T points, with weights r^t

    weights = list(islice(_newest(r), case.rounds))

    def point(before: Followed, branch: Branch) -> Followed:
        gamma = np.mean(branch.upload, axis=0)
        mean = before.mean + weights[before.T - 1] * (gamma - before.mean)
        return Followed(branch.state, gamma, before.T + 1, mean)

    start = Followed(case.first(), case.gamma, 1, case.gamma)
    levels = chain([Expect([start], [1.0])], histories(case, start=start, point=point, first=1))
    for T, E in enumerate(levels, start=1):
        yield Expected(T, E[lambda s: case.error(s.mean)], E[lambda s: case.squared_gradient(s.gamma)])


def by_moments(case: Case, r: float = 1.0) -> Iterator[Expected]:
    """Follow the second moments of the state."""
    d = case.objective.shape[0]
    A = np.mean(case.objective.A, axis=0)
    start = case.first()
    after = moments_after([(p, _transition(case, start, round)) for p, round in case.events()])
    z = np.concatenate([flatten(start), case.gamma, case.gamma, [1.0]])
    gamma, mean = slice(-2 * d - 1, -d - 1), slice(-d - 1, -1)
    moments = np.outer(z, z)
    for T, weight in enumerate(_newest(r), start=1):
        above = 0.5 * np.sum(A * _around(moments, mean, case.theta))
        yield Expected(T, float(above), float(np.sum(A @ A * _around(moments, gamma, case.theta))))
        mix = np.eye(len(z))
        mix[mean, mean] *= 1.0 - weight
        mix[mean, gamma] = weight * np.eye(d)
        moments = mix @ after(moments) @ mix.T


def _newest(r: float) -> Iterator[float]:
    """Yield the weight of the newest of T + 1 points in their mean with weights r^t, for T = 1, 2, ..."""
    weight = 1.0
    while True:
        weight = r * weight / (1.0 + r * weight)
        yield weight


def _around(moments: Array, part: slice, centre: Array) -> Array:
    """Return the expectation of (p - c)(p - c)^T for a part p of z, of which the last entry is one."""
    cross = np.outer(centre, moments[-1, part])
    return moments[part, part] - cross - cross.T + np.outer(centre, centre)


def _transition(case: Case, like: State, round: Round) -> Array:
    """Return the matrix of a round on z; the mean so far stays."""

    def image(x: Array) -> Array:
        after, upload, _ = advance(case.algorithm, case.objective, unflatten(x, like), round)
        return np.concatenate([flatten(after), np.mean(upload, axis=0)])

    n, d = flatten(like).size, case.objective.shape[0]
    found = affine(image, n)
    matrix = np.eye(n + 2 * d + 1)
    matrix[: n + d] = 0.0
    matrix[: n + d, :n] = found[:, :-1]
    matrix[: n + d, -1] = found[:, -1]
    return matrix
