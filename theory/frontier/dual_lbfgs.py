r"""L-BFGS on DualFL's dual: its function falls in every accepted round, and nothing is lost by keeping the parts apart.

On tuples :math:`\zeta` with :math:`\sum_j\zeta_j = 0` and the inner product :math:`\langle\zeta, \xi\rangle =
\frac1N\sum_j\langle\zeta_j, \xi_j\rangle`, let :math:`D(\zeta) = \frac1N\sum_j\frac1\nu f_j^*(\nu\zeta_j)`. With
:math:`\theta_j = \arg\min f_j - \nu\langle\zeta_j, \cdot\rangle`, its gradient is :math:`\theta_j` projected onto that
space: :math:`q_j = \theta_j - \theta`. Its minimum is :math:`-\frac1\nu E^*`, by Fenchel's duality, at
:math:`\nu\zeta_j = \nabla f_j(\theta^*)`. Its curvature lies between :math:`\frac\nu L` and
:math:`\frac\nu\mu \le 1`, so that

.. math:: D(\zeta - q) \le D(\zeta) - \tfrac12|q|^2, \qquad |q|^2 \ge \tfrac{2\nu}L(D(\zeta) - D^*), \tag{1}

and every accepted point, be it a plain step or one that has made D fall by :math:`c|q|^2`, :math:`c = 0.1`, has

.. math:: D(\zeta^+) - D^* \le \bigl(1 - 2c\,\tfrac\nu L\bigr)(D(\zeta) - D^*), \tag{2}

whatever the pairs are. A refused point is followed by a plain step, so that this happens in any two rounds. Convexity
of :math:`f_j^*`, whose gradients are :math:`\frac1\mu`-Lipschitz, gives :math:`f_j^*(\xi) - f_j^*(\xi^*) -
\langle\theta^*, \xi - \xi^*\rangle \ge \frac\mu2|\nabla f_j^*(\xi) - \theta^*|^2`, and in the mean

.. math:: D(\zeta) - D^* \ge \tfrac\mu{2\nu}\,\tfrac1N\textstyle\sum_j|\theta_j - \theta^*|^2
          \ge \tfrac\mu{2\nu}\,|\theta - \theta^*|^2. \tag{3}

**Inner products.** All that is kept, :math:`s^i, y^i` and q, has parts that sum to zero. So :math:`\langle q^+,
v\rangle = \frac1N\sum_j\langle\theta_j^+ - a, v_j\rangle` for any point a, and :math:`|q^+|^2 =
\frac1N\sum_j|\theta_j^+ - a|^2 - |\theta^+ - a|^2`; with the last mean for a little is lost to rounding. The products
of :math:`s = \sum_k a_kv^k` and :math:`y = q^+ - q` follow, and the two-loop recursion runs in coordinates.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

import numpy as np

from dualopt.arrays.xp import Array
from dualopt.lab.claims import Inequality, claim
from dualopt.methods import DualLBFGS
from dualopt.methods.distributed_lbfgs import inverse_hessian_product
from dualopt.objectives import LocalProblem, Quadratic
from theory._cases import EPSILON, Case, accurately
from theory._claims import ROUNDING, ExpectedVerdict, deviation
from theory._problems import (
    digits,
    hard_quadratic,
    logistic,
    lopsided,
    quadratic,
    solved,
)
from theory.baselines._runs import baseline_case
from theory.frontier.dane import alike, opposite

__all__ = ["dual_lbfgs_descent", "dual_lbfgs_is_central"]

FALL = 0.1  # c of (2)
ROUNDS = 40
STEPS = 8  # accepted points that are compared: L-BFGS magnifies rounding in later ones
VISIBLE = 1e-9  # of the first dual error
ACCURATE = 1e-12  # gradients where local problems are solved


def isotropic() -> Case:
    """Return clients whose Hessians are the identity: one plain step solves the dual problem."""
    A = np.stack([np.eye(3)] * 3)
    return solved("identities", Quadratic(A=A, b=np.random.default_rng(0).standard_normal((3, 3))))


def dual_case(f: Case, *, times: float = 1.0, history: int = 20, attained: bool = False) -> Case:
    r"""Return the method with ``times`` :math:`\mu` for ``nu``."""
    nu = times * float(np.min(f.objective.mu)) if times != 1.0 else None
    method = DualLBFGS(history=history, **accurately(f.objective, tol=ACCURATE))
    method = method if nu is None else replace(method, nu=nu)
    lowest = float(f.objective.mean(f.objective.value(f.theta)))
    note = f"nu = {times:g} mu, {history} pairs"
    return baseline_case(f, method, ROUNDS, note, attained=attained, lowest=lowest)


def strongly_convex(case: Case) -> list[str]:
    """Return what fails: strongly convex smooth clients, and ``nu`` up to ``mu``."""
    missing = [] if case.mu > 0 and math.isfinite(case.L) else ["smooth and strongly convex clients"]
    return missing + ([] if case.algorithm.nu <= case.mu * (1.0 + 1e-12) else ["nu <= mu"])


# The dual function falls.


def dual_lbfgs_descent_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Alike and different clients, few pairs, a small nu; one that is too large."""
    yield ExpectedVerdict(dual_case(isotropic(), attained=True))
    for f in (quadratic(), lopsided(), hard_quadratic(), alike(0.3), opposite(100.0), logistic()):
        for history in (20, 1):
            yield ExpectedVerdict(dual_case(f, history=history))
    yield ExpectedVerdict(dual_case(lopsided(), times=0.3))
    if not quick:
        yield ExpectedVerdict(dual_case(digits()))
    yield ExpectedVerdict(dual_case(lopsided(), times=3.0), "outside assumptions")


@claim(
    source="derived here",
    statement=r"For $\mu$-strongly convex, $L$-smooth clients, exact solutions, $\nu \le \mu$ and any history: a plain"
    r" step has $D^+ \le D - \frac12|q|^2$, every accepted point $D^+ \le D - 0.1\,|q|^2$ and"
    r" $D^+ - D^* \le (1 - 0.2\,\frac\nu L)(D - D^*)$, one of two rounds is accepted, and"
    r" $\frac\mu{2\nu}|\theta - \theta^*|^2 \le D - D^* = D + \frac1\nu E^*$.",
    assumptions=strongly_convex,
    cases=dual_lbfgs_descent_cases,
)
def dual_lbfgs_descent(case: Case) -> Iterator[Inequality]:
    r"""L-BFGS on the dual falls with every accepted point, for all strongly convex clients.

    Compare the values of D at successive accepted points with :math:`|q|^2` as the clients have it, up to the rounding
    of the energies over :math:`\nu`; local gradients below 1e-12 change D by less than their squares over
    :math:`2\mu\nu` and q by as much as them over :math:`\mu`.
    """
    nu, mu, L = case.algorithm.nu, case.mu, case.L
    least, old, first, refused, q, plain = -case.lowest / nu, math.nan, math.nan, 0, math.nan, True
    for n, s in enumerate(case.snapshots(), start=1):
        before, plain = plain, s.server.plain
        if s.server.plain:
            refused += 1
            yield Inequality(n, refused, 1, "refused points in a row")
            continue
        refused = 0
        assert s.local_models is not None
        new, models = float(s.server.value), s.local_models
        size = float(np.mean(np.sum((models - s.server.theta) ** 2, axis=tuple(range(1, models.ndim)))))
        moved = max(ACCURATE, 8.0 * EPSILON * L * float(np.linalg.norm(s.server.theta))) / mu
        rounding = (case.energy_rounding(s.server.theta) + moved * math.sqrt(L * nu * size)) / nu
        new -= least
        if n > 1:
            share = 0.5 if before or n == 2 else FALL  # without pairs L-BFGS takes a plain step too
            yield Inequality(n, share * q, old - new, "fall by an accepted step", rounding)
            if case.attained:
                yield Inequality(n, old - new, share * q, "fall, attained", rounding)
            yield Inequality(n, new, (1.0 - 2.0 * FALL * nu / L) * old, "dual error", rounding)
        else:
            first = new
        if new < VISIBLE * first:
            break
        distance = 0.5 * mu / nu * case.distance(s.server.theta)
        yield Inequality(n, distance, new, "distance of the model", rounding)
        old, q = new, size


# The parts together are L-BFGS in one place.


def dual_lbfgs_is_central_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """More pairs than are compared, and so few that old ones are dropped."""
    for history in (20, 2):
        for f in (quadratic(), lopsided(), logistic()):
            yield ExpectedVerdict(dual_case(f, history=history))
    yield ExpectedVerdict(dual_case(lopsided(), times=0.3))
    yield ExpectedVerdict(dual_case(lopsided(), times=3.0), "outside assumptions")


@claim(
    source="derived here",
    statement=r"The accepted models of DualLBFGS are those of L-BFGS on $D$ in one place, whose pairs are tuples and"
    r" whose gradient is $\theta_j - \theta$, with the same rule for its steps (compared: eight of them, to 1e-10).",
    assumptions=strongly_convex,
    cases=dual_lbfgs_is_central_cases,
)
def dual_lbfgs_is_central(case: Case) -> Iterator[Inequality]:
    """L-BFGS with its parts at the clients is L-BFGS on the dual function.

    Compare with a loop that has all parts in one array.
    """
    models = (s.server.theta for s in case.snapshots() if not s.server.plain)
    for n, (theta, expected) in enumerate(zip(islice(models, STEPS), central(case), strict=False), start=1):
        yield Inequality(n, deviation(theta, expected), ROUNDING, "difference of the models")


def central(case: Case) -> Iterator[Array]:
    """Yield the models of L-BFGS on D, with the rule that D has to fall by ``0.1 |q|^2`` or a plain step follows."""
    m = case.algorithm.history
    zeta = np.zeros((case.n_clients, *case.objective.shape))
    pairs: list[tuple[Array, Array]] = []
    value, q, theta = dual(case, zeta)
    while True:
        yield theta
        s, y = zip(*(pairs[-m:] or [(0 * q, 0 * q)]), strict=True)
        step = -inverse_hessian_product(s, y, q)
        new, q_new, theta = dual(case, zeta + step)
        if new > value - FALL * np.sum(q * q) / case.n_clients:
            step = -q
            new, q_new, theta = dual(case, zeta + step)
        pairs.append((step, q_new - q))
        zeta, value, q = zeta + step, new, q_new


def dual(case: Case, zeta: Array) -> tuple[float, Array, Array]:
    r"""Return :math:`D(\zeta)`, its gradient and the mean of the :math:`\theta_j`."""
    f, nu = case.objective, case.algorithm.nu
    problem = LocalProblem(objective=f, linear=-nu * zeta)
    models = case.algorithm.solver(problem, 0 * zeta, case.algorithm.stop, case.algorithm.solver.initial_state(f)).theta
    theta = np.mean(models, axis=0)
    value = np.sum(zeta * models) / case.n_clients - np.mean(f.value(models)) / nu
    return float(value), models - theta, theta
