r"""Runs of FedPD: cases, paths in the paper's symbols, the constant ``G`` of A4, and the clients of the cases.

The paper's :math:`x_i, x_{0,i}, \lambda_i` are ``theta``, ``x0``, ``dual`` of the clients' states; a round that is
skipped with probability ``p`` is one of ``CommunicateWithProbability(probability=1 - p)``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from itertools import combinations
from typing import Any, NamedTuple, TypeGuard

import numpy as np

from dualopt.arrays.xp import Array
from dualopt.engine.rounds import State
from dualopt.lab.chance import Branch, Expect
from dualopt.lab.random_problems import random_quadratic
from dualopt.losses import Logistic
from dualopt.methods import FedPD
from dualopt.methods.participation import CommunicateWithProbability, Full
from dualopt.objectives import LinearModel, NonconvexPenalty, Quadratic, linear_model
from dualopt.objectives.local_problem import client_dot
from dualopt.solvers import Gradient
from dualopt.solvers.stopping import GradientNorm
from theory import _rounds
from theory._cases import Case, Derived, accurately
from theory._problems import lopsided, one_concave_client, one_flat_client, solved

__all__ = [
    "LIMIT",
    "FedPDRound",
    "admitted",
    "concave",
    "dissimilarity",
    "equal_hessians",
    "fedpd_case",
    "heterogeneous",
    "known_of",
    "lagrangians",
    "logistic",
    "logistic_bound",
    "logistic_bound_v1",
    "nonconvex",
    "one_hessian",
    "path",
    "penalised",
    "residuals",
    "similar",
    "spread",
    "unequal",
]

LIMIT = (math.sqrt(5.0) - 1.0) / 4.0  # L eta must be less in Theorems 1 and 3


# Cases and assumptions.


def fedpd_case(
    name: str,
    objective: Any,
    *,
    rounds: int = 30,
    a: float = 0.5 * LIMIT,
    skip: float = 0.0,
    tol: float = 0.0,
    theta0: Array | None = None,
    lowest: float | None = None,
) -> Case:
    r"""Start FedPD on an objective.

    Besides the step ``eta`` the case knows ``a``, which is ``L eta``, the probability ``skip`` that a round does not
    communicate, and a bound ``dissimilarity`` of the differences between the clients' gradients (the G of A4).

    Parameters
    ----------
    name : str
        For tables; the parameters are added.
    objective : Objective
        The clients.
    rounds : int, default 30
        How many rounds to look at.
    a : float, optional
        ``L eta``, by default half of what Theorem 1 admits.
    skip : float, default 0
        Probability ``p`` that a round does not communicate.
    tol : float, default 0
        Local solutions are found by gradient steps until the gradient is at most ``tol``, the paper's Oracle I with
        :math:`\varepsilon_1` = ``tol**2``; with 0 they are exact up to rounding.
    theta0 : array, shape ``shape``, optional
        The first model; a point of norm 2 when not given.
    lowest : float, optional
        ``inf E``, or a lower bound of it. When not given, it is computed for quadratics and strongly convex linear
        models, and is zero for other losses, which are not negative.

    Examples
    --------
    >>> case = fedpd_case("quadratics", heterogeneous(), a=0.2, skip=0.5)
    >>> case.name, round(case.a, 12), case.skip
    ('quadratics, L eta = 0.2, p = 0.5', 0.2, 0.5)
    """
    oracle = {"solver": Gradient(), "stop": GradientNorm(tol=tol)} if tol > 0 else accurately(objective, tol=1e-13)
    notes = [f"p = {skip:g}"] * (skip > 0) + [f"|e| <= {tol:g}"] * (tol > 0)
    return Case(
        name=", ".join([name, f"L eta = {a:.3g}", *notes]),
        algorithm=FedPD(eta=a / float(np.max(objective.L)), **oracle),
        objective=objective,
        theta0=_far(objective) if theta0 is None else theta0,
        rounds=rounds,
        participation=CommunicateWithProbability(probability=1.0 - skip) if skip > 0 else Full(),
        lowest=_lowest(objective) if lowest is None else lowest,
        known=known_of(objective, skip),
    )


def known_of(objective: Any, skip: float) -> dict[str, Any]:
    """Return what the claims look at besides the parameters of FedPD."""
    return {"dissimilarity": dissimilarity(objective), "skip": skip, "a": Derived(lambda case: case.L * case.eta)}


def _far(objective: Any) -> Array:
    """Return a point of norm 2, the same for every problem of the same dimension."""
    point = np.random.default_rng(7).standard_normal(objective.shape)
    return 2.0 * point / np.linalg.norm(point)


def _lowest(objective: Any) -> float:
    if isinstance(objective, Quadratic):
        return float(np.mean(objective.value(objective.minimiser())))
    if isinstance(objective, LinearModel) and objective.ridge > 0:
        return float(np.mean(objective.value(solved("", objective).theta)))
    return 0.0


def admitted(case: Case) -> list[str]:
    r"""Return what fails of :math:`0 < \eta < (\sqrt5 - 1)/(4L)`."""
    return [] if 0 < case.a < LIMIT else ["0 < eta < (sqrt(5) - 1)/(4L)"]


def similar(case: Case) -> list[str]:
    """Return what fails of A4: gradients of two clients differ by a bounded amount."""
    return [] if math.isfinite(case.dissimilarity) else ["A4: G < inf"]


# Paths.


class FedPDRound(NamedTuple):
    """One round of a path, and everything that could have happened in it."""

    n: int
    before: State
    after: State
    copies: Array  # x_{0,j}^{r+}, shape (N, d), which a round that communicates averages
    errors: Array  # |e_j|^2 of the local solutions, shape (N,)
    accuracy: float  # the largest of them up to this round: epsilon_1
    E: Expect  # over all that could have happened


def path(case: Case) -> Iterator[FedPDRound]:
    """Follow the case along one sample of the coins, one for all clients in each round.

    Examples
    --------
    >>> steps = list(path(fedpd_case("quadratics", heterogeneous(), skip=0.5, rounds=3)))
    >>> [(len(step.E.found), bool(np.ptp(step.after.clients.x0, axis=0).any())) for step in steps]
    [(2, False), (2, True), (2, True)]
    """
    accuracy, rng = 0.0, np.random.default_rng(case.seed)
    for turn in _rounds.path(case, lambda chances: int(rng.random() < case.skip)):
        after = turn.taken.state
        copies = after.clients.x0 if turn.taken.upload is None else turn.taken.upload
        errors = residuals(turn.taken)
        accuracy = max(accuracy, float(np.max(errors)))
        yield FedPDRound(turn.n, turn.before, after, copies, errors, accuracy, turn.E)


def residuals(branch: Branch) -> Array:
    r"""Return :math:`|e_j|^2` of the local solutions, shape (N,); NaN for solvers that see samples only."""
    evaluation = branch.solution.evaluation
    if evaluation is None:
        return np.full(branch.round.n_clients, np.nan)
    return client_dot(evaluation.gradient, evaluation.gradient)


def lagrangians(case: Case, theta: Array, x0: Array, dual: Array) -> Array:
    r"""Return :math:`f_j(x_j) + \langle\lambda_j, x_j - x_0\rangle + \frac{1}{2\eta}|x_j - x_0|^2`, shape (N,)."""
    shift = theta - x0
    return case.objective.value(theta) + client_dot(dual, shift) + client_dot(shift, shift) / (2.0 * case.eta)


def spread(points: Array) -> float:
    """Return the largest distance between two clients' points.

    Examples
    --------
    >>> spread(np.array([[0.0], [1.0], [-2.0]]))
    3.0
    """
    return float(np.max(np.linalg.norm(points[:, None] - points[None], axis=-1)))


# A4: a bound G of |grad f_i - grad f_j| on the whole space, for pairs of clients.


def dissimilarity(objective: Any) -> float:
    r"""Return ``G``: exact for quadratics, and from the data for logistic losses.

    The paper calls :math:`|\nabla f_i - \nabla f| \le G` for all ``i`` an equivalent form; with the same ``G`` it is
    weaker (it allows 2G between two clients), and the proof of Lemma 2 uses the pairs.

    Quadratics: :math:`\max|b_i - b_j|` where all :math:`A_j` agree, else infinite. What clients have in common (a
    ridge, a penalty) cancels.

    Examples
    --------
    >>> dissimilarity(Quadratic(A=np.ones((2, 1, 1)), b=np.array([[1.0], [4.0]])))
    3.0
    >>> dissimilarity(Quadratic(A=np.array([[[1.0]], [[2.0]]]), b=np.array([[1.0], [4.0]])))
    inf
    """
    if isinstance(objective, NonconvexPenalty):
        return dissimilarity(objective.objective)
    if isinstance(objective, LinearModel) and isinstance(objective.loss, Logistic):
        return logistic_bound(objective)
    if not one_hessian(objective):
        return np.inf
    return max((float(np.linalg.norm(a - b)) for a, b in combinations(objective.b, 2)), default=0.0)


def one_hessian(objective: Any) -> TypeGuard[Quadratic]:
    """Return whether the clients are quadratics that differ in their linear terms only."""
    return isinstance(objective, Quadratic) and not np.ptp(objective.A, axis=0).any()


def logistic_bound(objective: LinearModel) -> float:
    r"""Bound ``G`` for logistic losses from the rows: Appendix A of the first version, with its finer analysis done.

    The gradient of :math:`\sum_i w_i \log(1 + e^{-y_i\langle x_i, \theta\rangle})` is
    :math:`-\sum_i w_i y_i s_i x_i` with :math:`0 < s_i < 1`; its distance from the gradient at 0, where
    :math:`s_i = \frac12`, is at most :math:`\frac12 \|X^\top W^{1/2}\| (\sum_i w_i)^{1/2}`.

    Examples
    --------
    >>> X, y = np.array([[1.0], [1.0], [3.0]]), np.array([1.0, 1.0, -1.0])
    >>> parts = linear_model(X, y, loss=Logistic(), mu=0.0, clients=[[0, 1], [2]], intercept=False)
    >>> round(logistic_bound(parts), 9)  # (1 + 3)/2 for the centres, and as much again
    4.0
    """
    centres = objective.gradient(objective.zeros())
    radii = [0.5 * _gradient_bound(X, w) for X, _, w in objective.client_rows()]
    pairs = combinations(zip(centres, radii, strict=True), 2)
    return max((float(np.linalg.norm(c - d)) + r + s for (c, r), (d, s) in pairs), default=0.0)


def logistic_bound_v1(objective: LinearModel) -> float:
    r"""Bound ``G`` as the first version does, by :math:`0 < s_i < 1` alone: the two gradients' norms added.

    Examples
    --------
    >>> X, y = np.array([[1.0], [1.0], [3.0]]), np.array([1.0, 1.0, 1.0])
    >>> parts = linear_model(X, y, loss=Logistic(), mu=0.0, clients=[[0, 1], [2]], intercept=False)
    >>> round(logistic_bound_v1(parts), 9), round(logistic_bound(parts), 9)
    (4.0, 3.0)
    """
    norms = sorted(_gradient_bound(X, w) for X, _, w in objective.client_rows())
    return sum(norms[-2:])


def _gradient_bound(X: Array, w: Array) -> float:
    """Bound ``|sum_i w_i s_i x_i|`` over all ``|s_i| <= 1``."""
    return float(np.linalg.norm(np.sqrt(w)[:, None] * X, 2) * np.sqrt(np.sum(w)))


# Clients.


@cache
def nonconvex(n: int = 4, *, L: float = 1.0) -> Quadratic:
    """Quadratics with curvatures of both signs on every client and a convex mean.

    Examples
    --------
    >>> f = nonconvex()
    >>> bool(np.all(f.mu < 0)), bool(np.linalg.eigvalsh(np.mean(f.A, axis=0))[0] > 0.1)
    (True, True)
    """
    rng = np.random.default_rng(3)
    noise = rng.standard_normal((n, 3, 3))
    noise = noise + np.swapaxes(noise, 1, 2)
    noise -= np.mean(noise, axis=0)
    A = 0.15 * np.eye(3) + 0.8 * noise / np.max(np.abs(np.linalg.eigvalsh(noise)))
    A *= L / np.max(np.abs(np.linalg.eigvalsh(A)))
    return Quadratic(A=A, b=L * rng.standard_normal((n, 3)), c=np.ones(n))


@cache
def heterogeneous(n: int = 3, *, L: float = 4.0) -> Quadratic:
    """Strongly convex quadratics with Hessians and minimisers of their own."""
    return random_quadratic(seed=5, n_clients=n, dimension=3, mu=1.0, L=L, heterogeneity=1.0)


def unequal(**known: Any) -> Iterator[Case]:
    """Yield a case for each family of clients that are not alike, with the parameters of :func:`fedpd_case`.

    Examples
    --------
    >>> [case.name for case in unequal(a=0.2)]
    ['lopsided quadratics, L eta = 0.2', 'one flat client, L eta = 0.2', 'one concave client, L eta = 0.2']
    """
    for instance in (lopsided(), one_flat_client(), one_concave_client()):
        yield fedpd_case(instance.name, instance.objective, **known)


@cache
def equal_hessians(n: int = 4, *, G: float = 1.0, L: float = 1.0) -> Quadratic:
    """One Hessian for all, with eigenvalues L/4 to L, and gradients that differ by exactly ``G`` at most.

    Examples
    --------
    >>> round(dissimilarity(equal_hessians(G=0.25)), 12)
    0.25
    """
    b = np.random.default_rng(3).standard_normal((n, 3))
    b *= G / max(float(np.linalg.norm(x - y)) for x in b for y in b)
    return Quadratic(A=np.tile(np.diag(np.geomspace(0.25 * L, L, 3)), (n, 1, 1)), b=b, c=np.zeros(n))


@cache
def logistic(*, mu: float = 0.05) -> LinearModel:
    """Logistic regression on 60 rows of three clients."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 2))
    y = np.sign(X[:, 0] - 0.3 * X[:, 1] + 0.5 * rng.standard_normal(60))
    return linear_model(X, y, loss=Logistic(), mu=mu, clients=3)


@cache
def penalised() -> NonconvexPenalty:
    """Logistic regression with the nonconvex penalty of Section V."""
    return NonconvexPenalty(objective=logistic(mu=0.0))


def concave(*, p: float, a: float = 0.2) -> Case:
    r"""Return a case on which Lemma 2 is attained: two clients, both :math:`-\frac12|\cdot|^2`, in different states."""
    f = Quadratic(A=-np.ones((2, 1, 1)), b=np.zeros((2, 1)))
    case = fedpd_case("a concave function", f, rounds=1, a=a, skip=p, theta0=np.zeros(1), lowest=-np.inf)
    first = case.first()
    theta, x0 = np.array([[0.0], [1.0]]), np.array([[1.0], [0.0]])
    different = first.clients._replace(theta=theta, x0=x0, dual=-f.gradient(theta))
    return case.but(state=first._replace(clients=different))
