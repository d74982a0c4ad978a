r"""Another metric, and the mean of the clients' own minimisers: what a step before the rounds changes.

**A metric.** For a positive definite M and :math:`w = \theta M^{1/2}` the function :math:`w \mapsto f_j(wM^{-1/2})` has
the Hessian :math:`M^{-1/2}\nabla^2f_jM^{-1/2}`, between :math:`\mu_M` and :math:`L_M` where :math:`\mu_MM \preceq
\nabla^2f_j \preceq L_MM`; norms of w are norms :math:`|\theta|_M`. Proximal maps become :math:`\arg\min f_j +
\frac{1}{2s}|\cdot - v|_M^2`, and means stay means. So every theorem holds with :math:`\mu_M, L_M, |\cdot|_M` for
:math:`\mu, L, |\cdot|`: FedSplit with :math:`s = 1/\sqrt{L_M\mu_M}` has the fixed point :math:`z_j^* = \theta^* -
s\nabla f_j(\theta^*)M^{-1}` and

.. math:: \sum_j|z_j^+ - z_j^*|_M^2 \le \Bigl(1 - \frac{2}{\sqrt{L_M/\mu_M} + 1}\Bigr)^2\sum_j|z_j - z_j^*|_M^2, \tag{1}

an equation where :math:`\mu_M` and :math:`L_M` are the only eigenvalues of :math:`M^{-1}\nabla^2f_j`, for then the
reflections in the proximal maps are that factor times isometries of :math:`|\cdot|_M`.

**L-BFGS.** Gradients by w are those by :math:`\theta` times :math:`M^{-1/2}`, so that the pairs are :math:`s_w =
s M^{1/2}, y_w = yM^{-1/2}`, with the same products :math:`\langle s, y\rangle`. If H is the matrix of the pairs
:math:`(s, y)` that begins with :math:`\gamma M^{-1}`, then :math:`M^{1/2}HM^{1/2}` is that of the pairs :math:`(s_w,
y_w)` that begins with :math:`\gamma I`: with :math:`\rho = 1/\langle s, y\rangle`,

.. math:: M^{1/2}(I - \rho sy^T)H(I - \rho ys^T)M^{1/2} + \rho M^{1/2}ss^TM^{1/2}
          = (I - \rho s_wy_w^T)M^{1/2}HM^{1/2}(I - \rho y_ws_w^T) + \rho s_ws_w^T. \tag{2}

Its steps, brought back, are :math:`-H\nabla E`, and :math:`\gamma = \langle s_w, y_w\rangle/|y_w|^2 = \langle s,
y\rangle/\langle y, M^{-1}y\rangle`. Values do not change, nor does what the line search accepts.

**The one-shot average.** Let the clients be quadratic, :math:`d_j = \theta_j - \theta^*` and :math:`H_j = H + \Delta_j`
with :math:`\sum\Delta_j = 0`. Then :math:`H_jd_j = -\nabla f_j(\theta^*)`, and these have the sum zero, so that
:math:`H\bar d = -\frac1N\sum_j\Delta_jd_j`. If :math:`-\epsilon H \preceq \Delta_j \preceq \epsilon H`,

.. math:: |\bar\theta - \theta^*|_H \le \frac{\epsilon}{N}\sum_j|\theta_j - \theta^*|_H, \qquad
          E(\bar\theta) - E^* = \tfrac12|\bar\theta - \theta^*|_H^2, \tag{3}

for any :math:`\epsilon`. Two clients in one dimension with :math:`\Delta_j = \pm\epsilon H` attain it: their
:math:`d_j` have opposite signs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from dualopt.arrays.xp import Array
from dualopt.engine.rounds import iterate
from dualopt.lab.claims import Inequality, claim
from dualopt.methods import DistributedLBFGS, FedSplit
from dualopt.methods.preparation import OneShotAverage
from dualopt.objectives import Quadratic
from dualopt.objectives.coordinates import Metric, in_coordinates
from dualopt.solvers import Exact
from theory._cases import EPSILON, Case, Derived, accurately
from theory._claims import ROUNDING, ExpectedVerdict, deviation
from theory._problems import hard_quadratic, logistic, lopsided, quadratic, solved
from theory.frontier.dane import alike

__all__ = ["fedsplit_in_the_metric", "lbfgs_in_the_metric", "one_shot_average"]

ROUNDS = 30
VISIBLE = 1e-7  # of the first distance: below, rounding is a part of every distance
ACCURATE = 1e-12  # gradients where local problems are solved


def matrix_of(case: Case) -> Array:
    """Return ``M``, summed up from its eigenpairs."""
    U, values, rest = case.metric
    return rest * np.eye(U.shape[1]) + U.T @ np.diag(values - rest) @ U


def root_of(case: Case, sign: float) -> Array:
    """Return the root of ``M``, or with -1 that of its inverse, by the eigenvalues of the matrix."""
    values, vectors = np.linalg.eigh(case.matrix)
    return vectors @ np.diag(values ** (0.5 * sign)) @ vectors.T


def constants_of(case: Case) -> tuple[float, float]:
    """Return the least ``mu_M`` and the largest ``L_M`` of the clients, by eigenvalues of dense matrices."""
    back = root_of(case, -1.0)
    if isinstance(case.objective, Quadratic):
        found = np.linalg.eigvalsh(back @ case.objective.A @ back)
        return float(np.min(found)), float(np.max(found))
    f = case.objective
    moments = [(X * w[:, None]).T @ X for X, _, w in f.client_rows()]
    largest = np.stack([f.loss.curvature * G + f.ridge * np.eye(len(back)) for G in moments])
    least = np.linalg.eigvalsh(f.ridge * back @ back)[0]
    return float(least), float(np.max(np.linalg.eigvalsh(back @ largest @ back)))


def shots(case: Case) -> Iterator[Any]:
    """Yield the rounds of the method in the coordinates of the metric, from ``theta0``."""
    start = case.theta0 @ root_of(case, 1.0)
    return islice(iterate(case.algorithm, case.changed(case.objective, case.metric), theta0=start), case.rounds)


def metric(d: int, *, rank: int | None = None, most: float = 50.0, seed: int = 7) -> Metric:
    """Return a random metric with eigenvalues from 1 to ``most``, all but ``rank`` of them 1."""
    Q = np.linalg.qr(np.random.default_rng(seed).standard_normal((d, d)))[0]
    return Metric(Q[: rank or d], np.geomspace(1.0, most, d)[::-1][: rank or d], 1.0)


def fitting(f: Case) -> Metric:
    """Return the mean Hessian of quadratic clients as a metric."""
    values, vectors = np.linalg.eigh(np.mean(f.objective.A, axis=0))
    return Metric(vectors.T, values, float(values[0]))


def extremes_in(M: Metric, *, L: float = 100.0, n: int = 3) -> Case:
    """Return quadratics whose Hessians have only the eigenvalues 1 and L relative to a metric."""
    rng, d = np.random.default_rng(4), M.vectors.shape[1]
    spectrum = np.where(np.arange(d) < d // 2, 1.0, L)
    bases = [np.linalg.qr(rng.standard_normal((d, d)))[0] for _ in range(n)]
    values, vectors = np.linalg.eigh(M.rest * np.eye(d) + M.vectors.T @ np.diag(M.values - M.rest) @ M.vectors)
    root = vectors @ np.diag(np.sqrt(values)) @ vectors.T
    A = np.stack([root @ Q @ np.diag(spectrum) @ Q.T @ root for Q in bases])
    f = Quadratic(A=0.5 * (A + np.swapaxes(A, 1, 2)), b=rng.standard_normal((n, d)))
    return solved(f"curvatures 1 and {L:g} in a metric", f)


def metric_case(f: Case, M: Metric, *, method: Any = None, rounds: int = ROUNDS, **more: Any) -> Case:
    """Return a method in a metric, FedSplit with its best step when not given, away from the minimiser.

    The case knows the ``metric``, its dense ``matrix``, what returns the clients ``changed`` to its coordinates, and
    the least and the largest of their ``constants``.
    """
    start = f.theta + np.random.default_rng(3).standard_normal(f.theta.shape)
    r, d = M.vectors.shape
    known = {"metric": M, "changed": in_coordinates, "matrix": Derived(matrix_of), "constants": Derived(constants_of)}
    case = f.case(None, rounds, f"a metric of rank {r} of {d}", theta0=start, known=known, **more)
    least, most = case.constants
    step = 1.0 / math.sqrt(least * most) if least > 0 else 1.0
    return case.but(algorithm=method or FedSplit(step=step, **accurately(f.objective, tol=ACCURATE)))


# FedSplit.


def fedsplit_in_the_metric_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Attained in metrics of full and of low rank; the mean Hessian for a metric; another loss; another step."""
    for rank in (None, 2):
        M = metric(4, rank=rank)
        yield ExpectedVerdict(metric_case(extremes_in(M), M, attained=True))
        yield ExpectedVerdict(metric_case(quadratic(), M))
    for f in (quadratic(), lopsided()):
        yield ExpectedVerdict(metric_case(f, fitting(f)))
    yield ExpectedVerdict(metric_case(hard_quadratic(), metric(6, rank=3)))
    f = logistic()
    yield ExpectedVerdict(metric_case(f, metric(f.theta.shape[0], rank=2)))
    case = metric_case(quadratic(), metric(4))
    longer = case.algorithm.step * 2.0
    yield ExpectedVerdict(
        case.but(algorithm=FedSplit(step=longer, **accurately(case.objective))), "outside assumptions"
    )


def best_step(case: Case) -> list[str]:
    """Return what fails: strongly convex clients, the best step."""
    least, most = case.constants
    if least <= 0:
        return ["strongly convex clients"]
    return [] if abs(case.algorithm.step * math.sqrt(least * most) - 1.0) < 1e-9 else ["the step 1/sqrt(L_M mu_M)"]


@claim(
    source="derived here; metrics for this splitting: Giselsson and Boyd 2017 (recalled)",
    statement=r"If $\mu_MM \preceq \nabla^2f_j \preceq L_MM$, FedSplit in the coordinates $\theta M^{1/2}$, with exact"
    r" proximal steps and $s = 1/\sqrt{L_M\mu_M}$, contracts $(\sum_j|z_j - z_j^*|_M^2)^{1/2}$ by"
    r" $1 - 2/(\sqrt{L_M/\mu_M} + 1)$ per round. Clients with $M$-eigenvalues $\mu_M$ and $L_M$ alone attain it.",
    assumptions=best_step,
    cases=fedsplit_in_the_metric_cases,
)
def fedsplit_in_the_metric(case: Case) -> Iterator[Inequality]:
    r"""FedSplit in a metric: the rate of FedSplit with the constants relative to M.

    Compare successive distances in the norm of M, after the points are brought back to :math:`\theta` by a dense root
    of M, up to rounding: 16 units in the last place of the points, times the condition of the local problems and of
    the change of coordinates, and twice the gradients that are left over the curvature of the local problems.
    """
    M, back = case.matrix, root_of(case, -1.0)
    least, most = case.constants
    s, q = case.algorithm.step, 1.0 - 2.0 / (math.sqrt(most / least) + 1.0)
    limits = case.theta - s * case.subgradients @ np.linalg.inv(M)
    points = case.theta0 + 0.0 * limits
    last = first = in_metric(M, points - limits)
    scale = in_metric(M, limits) + first
    unit = 16.0 * EPSILON * ((s * most + 1.0) / (s * least + 1.0) + np.linalg.cond(M))
    left = 2.0 * math.sqrt(case.n_clients) * ACCURATE / (least + 1.0 / s)
    for n, shot in enumerate(shots(case), start=1):
        size = in_metric(M, shot.clients.z @ back - limits)
        error = unit * scale + left
        yield Inequality(n, size, q * last, "distance", error)
        if case.attained:
            yield Inequality(n, q * last, size, "distance, attained", error)
        last = size
        if size < VISIBLE * first:
            break


def in_metric(M: Array, x: Array) -> float:
    """Return the norm of all clients' parts together, each in the metric."""
    return math.sqrt(float(np.sum((x @ M) * x)))


# L-BFGS.


def lbfgs_in_the_metric_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Quadratics and another loss, in metrics of full and of low rank; few pairs."""
    f = logistic()
    for history in (3, 40):
        method = DistributedLBFGS(history=history)
        yield ExpectedVerdict(metric_case(quadratic(), metric(4), method=method, rounds=8))
        yield ExpectedVerdict(metric_case(f, metric(f.theta.shape[0], rank=2), method=method, rounds=8))


@claim(
    source="derived here",
    statement=r"The steps of L-BFGS in the coordinates $\theta M^{1/2}$, brought back, are those of L-BFGS in $\theta$"
    r" with the first matrix $\frac{\langle s, y\rangle}{\langle y, M^{-1}y\rangle}M^{-1}$ of the newest pair,"
    r" and $M^{-1}$ before there is one.",
    cases=lbfgs_in_the_metric_cases,
)
def lbfgs_in_the_metric(case: Case) -> Iterator[Inequality]:
    """L-BFGS in a metric is L-BFGS with its inverse as the first matrix.

    Compare each new step with that of the dense matrix which the BFGS formula makes of the pairs of models and
    gradients of the user.
    """
    back, inverse = root_of(case, -1.0), np.linalg.inv(case.matrix)
    theta = gradient = None
    pairs: list[tuple[Array, Array]] = []
    for n, shot in enumerate(shots(case), start=1):
        new = shot.server.theta @ back
        if theta is not None and np.array_equal(new, theta):
            continue  # a refused point: the old direction, shortened
        g = np.mean(case.objective.gradient(new), axis=0)
        if theta is not None:
            pairs = [*pairs, (new - theta, g - gradient)][-case.algorithm.history :]
        theta, gradient = new, g
        step = -dense_bfgs(inverse, pairs) @ g
        far = deviation(shot.server.step @ back, step, scale=float(np.max(np.abs(step))))
        yield Inequality(n, far, ROUNDING, "step")


def dense_bfgs(inverse: Array, pairs: list[tuple[Array, Array]]) -> Array:
    """Return the matrix of BFGS, from a first one in the proportion of the newest pair, by all pairs in turn.

    Examples
    --------
    >>> e = np.eye(2)
    >>> dense_bfgs(e, [(e[0], 2.0 * e[0]), (e[1], 5.0 * e[1])]).tolist()
    [[0.5, 0.0], [0.0, 0.2]]
    """
    H, identity = inverse, np.eye(len(inverse))
    if pairs:
        s, y = pairs[-1]
        H = (s @ y) / (y @ inverse @ y) * inverse
    for s, y in pairs:
        V = identity - np.outer(s, y) / (s @ y)
        H = V @ H @ V.T + np.outer(s, s) / (s @ y)
    return H


# The one-shot average.


@dataclass(frozen=True, kw_only=True)
class Shot:
    """Quadratic clients, how alike they are when that is known, and what makes the average of them."""

    name: str
    instance: Case
    epsilon: float | None = None
    attained: bool = False
    start: Any = OneShotAverage(solver=Exact())  # noqa: RUF009 - frozen


def opposite_scalars(epsilon: float) -> Case:
    """Return two clients in one dimension with the curvatures 1 + epsilon and 1 - epsilon."""
    A = np.array([[[1.0 + epsilon]], [[1.0 - epsilon]]])
    return solved(f"curvatures 1 + and - {epsilon:g}", Quadratic(A=A, b=np.array([[3.0], [-1.0]])))


def one_shot_average_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Alike and different clients, and two that attain it."""
    for epsilon in (0.05, 0.3, 0.8):
        f = alike(epsilon)
        yield ExpectedVerdict(Shot(name=f.name, instance=f, epsilon=epsilon))
        f = opposite_scalars(epsilon)
        yield ExpectedVerdict(Shot(name=f.name, instance=f, epsilon=epsilon, attained=True))
    for f in (quadratic(), lopsided(), hard_quadratic()):
        yield ExpectedVerdict(Shot(name=f.name, instance=f))


@claim(
    source="derived here",
    statement=r"For quadratic clients with $(1 - \epsilon)H \preceq H_j \preceq (1 + \epsilon)H$,"
    r" $H = \frac1N\sum_jH_j$, and their minimisers $\theta_j$: $|\bar\theta - \theta^*|_H \le"
    r" \frac\epsilon N\sum_j|\theta_j - \theta^*|_H$, for any $\epsilon$; two clients attain it.",
    rtol=ROUNDING,
    cases=one_shot_average_cases,
)
def one_shot_average(case: Shot) -> Iterator[Inequality]:
    r"""One-shot average: nearer to the minimiser than the clients' own ones, by how alike they are.

    Compare both sides, and the energy; where :math:`\epsilon` is not known it is the largest eigenvalue of the
    :math:`H^{-1/2}(H_j - H)H^{-1/2}`. Rounding: 16 units in the last place of the points, times the condition.
    """
    f, theta = case.instance.objective, case.instance.theta
    H = np.mean(f.A, axis=0)
    values, vectors = np.linalg.eigh(H)
    root, back = (vectors @ np.diag(values**power) @ vectors.T for power in (0.5, -0.5))
    epsilon = float(np.max(np.abs(np.linalg.eigvalsh(back @ (f.A - H) @ back))))
    if case.epsilon is not None:
        yield Inequality(0, epsilon, case.epsilon, "how alike the clients are", 1e-12)
        epsilon = case.epsilon
    own = np.linalg.solve(f.A, f.b[..., None])[..., 0]
    lengths = np.linalg.norm((own - theta) @ root, axis=-1)
    average = case.start.prepare(f, f.zeros()).theta0
    bound, size = epsilon * float(np.mean(lengths)), float(np.linalg.norm((average - theta) @ root))
    error = 16.0 * EPSILON * float(np.max(f.L) / np.min(f.mu)) * float(np.max(np.linalg.norm(own @ root, axis=-1)))
    yield Inequality(1, size, bound, "distance", error)
    if case.attained:
        yield Inequality(1, bound, size, "distance, attained", error)
    gap = float(np.mean(f.value(average)) - np.mean(f.value(theta)))
    terms = float(np.mean(np.abs(f.value(average)) + np.abs(f.value(theta))) + np.mean(np.abs(f.b @ theta)))
    yield Inequality(1, gap, 0.5 * bound**2, "energy", 64.0 * EPSILON * terms + bound * error)
