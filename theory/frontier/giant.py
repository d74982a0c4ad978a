r"""GIANT: the mean of Newton directions is always downhill, and on quadratics it is steepest descent in another metric.

Let :math:`g = \nabla E(\theta)`, :math:`A_j = \nabla^2 f_j(\theta) + w` and :math:`|g - A_jp_j| \le \eta|g|`.

**Directions.** Conjugate gradients from zero, with any preconditioner, end where the error is least in a space that
contains :math:`p_j`, so that :math:`\langle p_j, g - A_jp_j\rangle = 0`. With :math:`r_j = g - A_jp_j`,

.. math:: \langle g, p_j\rangle = \langle p_j, A_jp_j\rangle = \langle g - r_j, A_j^{-1}(g - r_j)\rangle
          \ge (1 - \eta)^2\tfrac{|g|^2}{L + w}, \qquad
          |p_j|^2 \le \tfrac{\langle p_j, A_jp_j\rangle}{\mu + w} = \tfrac{\langle g, p_j\rangle}{\mu + w},

and the means :math:`p` of the :math:`p_j` have the same bounds, since squares are convex:

.. math:: \langle g, p\rangle \ge (1 - \eta)^2\tfrac{|g|^2}{L + w}, \qquad
          |p|^2 \le \tfrac{\langle g, p\rangle}{\mu + w}. \tag{1}

**Steps.** By (1), :math:`E(\theta - tp) \le E(\theta) - t\langle g, p\rangle(1 - \frac{tL}{2(\mu + w)})`: Armijo's rule
with :math:`c = 10^{-4}` admits all :math:`t \le 2(1 - c)\frac{\mu + w}L`. Those that it refuses are made shorter, not
below a tenth. The first one: :math:`\phi(t) = E(\theta - tp)` has a slope that grows by at most :math:`L|p|^2 \le
\frac L{\mu + w}\langle g, p\rangle`, so that interpolation from 0 gives at least :math:`\frac{\mu + w}L`; otherwise
it lies beyond a step where the slope is negative, or halfway to one where it is not finite. So the accepted one is at
least

.. math:: \tau = \min\bigl(0.2(1 - c)\tfrac{\mu + w}L,\ (1 - \rho)\tfrac{\mu + w}L,\
          (1 - \rho)\tfrac12\min\text{steps}\bigr), \tag{2}

and as :math:`|g|^2 \ge 2\mu(E(\theta) - E^*)`, every accepted point has

.. math:: E(\theta^+) - E^* \le \bigl(1 - 2c\,\tau\,(1 - \eta)^2\tfrac\mu{L + w}\bigr)(E(\theta) - E^*). \tag{3}

This says that the method converges, and not how fast.

**Quadratics**, with :math:`w = 0` and exact directions: :math:`p = Kg`, :math:`K = \frac1N\sum_jH_j^{-1}`, H the mean
of the :math:`H_j`. Along p the least energy is at :math:`t = \frac{\langle g, Kg\rangle}{\langle Kg, HKg\rangle}`,
between the inverses of the extreme eigenvalues of KH and so in (0, 1], which linear interpolation of slopes
finds. A share r of it makes the energy fall by :math:`r(2 - r)\frac{\langle g, Kg\rangle^2}{2\langle Kg,
HKg\rangle}`. In coordinates :math:`K^{1/2}` this is steepest descent for :math:`K^{1/2}HK^{1/2}`, and Kantorovich's
inequality gives with :math:`1 - r = \rho(1 - t) \le \rho` and the ratio k of the extreme eigenvalues of KH

.. math:: E(\theta^+) - E^* \le \bigl(1 - (1 - \rho^2)\tfrac{4k}{(k + 1)^2}\bigr)(E(\theta) - E^*), \tag{4}

for :math:`\rho = 0` the square of :math:`\frac{k - 1}{k + 1}`, which two eigenvalues of equal weight attain in every
step. How large k may be is ``dane_spectrum``. Armijo's rule admits these steps, of which a half does.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from dualopt.arrays.xp import Array
from dualopt.lab.claims import Inequality, claim
from dualopt.methods import GIANT
from dualopt.methods.giant import POINT, SLOPES
from dualopt.objectives import Quadratic
from dualopt.solvers._line_search import SUFFICIENT_DECREASE
from theory._cases import EPSILON, Case
from theory._claims import ROUNDING, ExpectedVerdict
from theory._problems import (
    digits,
    flat_quadratic,
    logistic,
    lopsided,
    one_flat_client,
    quadratic,
    solved,
)
from theory.baselines._runs import baseline_case, smooth_and_strongly_convex
from theory.frontier.dane import alike, eigenvalues, opposite, preconditioner

__all__ = ["giant_descent", "giant_quadratics"]

ITERATIONS = 12  # of three rounds
VISIBLE = 1e-7  # of the first distance
ACCURATE = 1e-14


def giant_case(f: Case, *, start: Array | None = None, attained: bool = False, **more: Any) -> Case:
    """Return the method, started away from the minimiser."""
    if start is None:
        start = f.theta + np.random.default_rng(3).standard_normal(f.theta.shape)
    method = GIANT(**more)
    words = ", ".join(f"{name} = {value}" for name, value in more.items())
    known: dict[str, Any] = {
        "theta0": start,
        "attained": attained,
        "lowest": float(f.objective.mean(f.objective.value(f.theta))),
    }
    return baseline_case(f, method, 3 * ITERATIONS + 1, words, **known)


def accepted(case: Case) -> Iterator[tuple[int, Array]]:
    """Yield the models, the start included, with the rounds at which they come."""
    last = math.inf
    for n, s in enumerate(case.snapshots(), start=1):
        if s.server.asked != POINT and s.server.value is not last:
            last = s.server.value
            yield n, s.server.theta


# Quadratics.


def two_eigenvalues(kappa: float) -> Case:
    """Return two clients that agree in one direction and are opposite in two, so that KH has two eigenvalues."""
    A = np.stack([np.diag([kappa, 1.0]), np.diag([kappa, kappa])])
    return solved(f"two eigenvalues (kappa={kappa:g})", Quadratic(A=A, b=np.array([[1.0, 2.0], [0.0, 1.0]])))


def worst_start(f: Case) -> Array:
    """Return the start from which exact steps keep the two parts of the error in the same proportion."""
    K, k = (
        np.diag(preconditioner(f.objective, 0.0)),
        np.diag(preconditioner(f.objective, 0.0)) * np.diag(np.mean(f.objective.A, axis=0)),
    )
    return f.theta + np.sqrt(K) / k


def quadratic_clients(case: Case) -> list[str]:
    """Return what fails: strongly convex quadratic clients without a weight, and a step of one among the steps."""
    missing = [] if isinstance(case.objective, Quadratic) else ["quadratic clients"]
    missing += smooth_and_strongly_convex(case)
    missing += [] if case.algorithm.weight == 0 else ["weight = 0"]
    return missing + ([] if max(case.algorithm.steps) >= 1 else ["a step of 1 or more"])


def giant_quadratics_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Alike and different clients; the worst start; one slope and several; another loss, a weight, short steps."""
    exactly: dict[str, Any] = {"reduction": ACCURATE}
    for relaxation in (0.0, 0.2, 0.5):
        more: dict[str, Any] = {"relaxation": relaxation, **exactly}
        for kappa in (4.0, 100.0):
            f = two_eigenvalues(kappa)
            yield ExpectedVerdict(giant_case(f, start=worst_start(f), attained=relaxation == 0, **more))
        for f in (quadratic(), lopsided(), alike(0.3)):
            yield ExpectedVerdict(giant_case(f, **more))
    yield ExpectedVerdict(giant_case(lopsided(), steps=(1.0,), **exactly))
    yield ExpectedVerdict(giant_case(quadratic(), weight=3.0, **exactly), "outside assumptions")
    yield ExpectedVerdict(giant_case(quadratic(), steps=(0.1,), **exactly), "outside assumptions")
    yield ExpectedVerdict(giant_case(logistic(), **exactly), "outside assumptions")
    yield ExpectedVerdict(giant_case(flat_quadratic(), weight=1.0), "outside assumptions")


@claim(
    source="derived here; Wang, Roosta, Xu and Mahoney 2018 (recalled) for clients that are random samples",
    statement=r"For strongly convex quadratic clients, exact directions and $w = 0$:"
    r" $E(\theta^+) - E^* \le (1 - (1 - \rho^2)\frac{4k}{(k + 1)^2})(E(\theta) - E^*)$ with the ratio $k$ of the"
    r" extreme eigenvalues of $\frac1N\sum_jH_j^{-1}\,H$; for $\rho = 0$ two eigenvalues attain"
    r" $(\frac{k - 1}{k + 1})^2$.",
    assumptions=quadratic_clients,
    cases=giant_quadratics_cases,
)
def giant_quadratics(case: Case) -> Iterator[Inequality]:
    r"""GIANT on quadratics: its linear rate.

    Compare distances :math:`|\theta - \theta^*|_H`, whose squares are twice the energies, up to rounding: 8 units in
    the last place of the points and of the systems that give the direction, of condition :math:`\kappa`.
    """
    spectrum = eigenvalues(case.objective, 0.0)
    k = float(spectrum[-1] / spectrum[0])
    rho = case.algorithm.relaxation
    factor = math.sqrt(rho**2 + (1.0 - rho**2) * ((k - 1.0) / (k + 1.0)) ** 2)
    root = np.linalg.cholesky(np.mean(case.objective.A, axis=0)).T
    unit = 8.0 * (EPSILON * float(np.linalg.norm(root, 2)) * case.L / case.mu)
    first = last = math.inf
    for n, theta in accepted(case):
        size = float(np.linalg.norm(root @ (theta - case.theta)))
        first = min(first, size) if math.isinf(last) else first
        if size < VISIBLE * first:
            break
        error = unit * float(np.linalg.norm(theta) + np.linalg.norm(case.theta))
        if math.isfinite(last):
            yield Inequality(n, size, factor * last, "distance after an iteration", error)
            if case.attained:
                yield Inequality(n, factor * last, size, "factor and distance", error)
        last = size


# All smooth strongly convex clients.


def shortest_step(case: Case) -> float:
    r"""Return :math:`\tau`."""
    a, ratio = case.algorithm, (case.mu + case.algorithm.weight) / case.L
    first = (1.0 - a.relaxation) * min(ratio, 0.5 * min(a.steps))
    return min(0.2 * (1.0 - SUFFICIENT_DECREASE) * ratio, first)


def giant_descent_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Different clients and losses, inaccurate directions, a weight, long steps; a flat client without a weight."""
    for f in (quadratic(), lopsided(), opposite(100.0), logistic(), logistic(mu=1e-3)):
        for reduction in (0.01, 0.9):
            yield ExpectedVerdict(giant_case(f, reduction=reduction))
    yield ExpectedVerdict(giant_case(logistic(), weight=0.3))
    yield ExpectedVerdict(giant_case(opposite(100.0), steps=(4.0,), relaxation=0.0))
    if not quick:
        yield ExpectedVerdict(giant_case(digits()))
    yield ExpectedVerdict(giant_case(one_flat_client(), weight=1.0), "outside assumptions")


@claim(
    source="derived here",
    statement=r"For $\mu$-strongly convex, $L$-smooth clients, local residuals of at most $\eta|g|$ and any steps:"
    r" $\langle g, p\rangle \ge (1 - \eta)^2\frac{|g|^2}{L + w}$, $|p|^2 \le \frac{\langle g, p\rangle}{\mu + w}$,"
    r" accepted steps are $t \ge \tau = \min(0.2(1 - c)\frac{\mu + w}L, (1 - \rho)\frac{\mu + w}L,"
    r" \frac{1 - \rho}2\min\text{steps})$ with $E(\theta - tp) \le E(\theta) - ct\langle g, p\rangle$, $c = 10^{-4}$,"
    r" and $E(\theta^+) - E^* \le (1 - 2c\tau(1 - \eta)^2\frac\mu{L + w})(E(\theta) - E^*)$.",
    assumptions=smooth_and_strongly_convex,
    rtol=ROUNDING,
    cases=giant_descent_cases,
)
def giant_descent(case: Case) -> Iterator[Inequality]:
    """GIANT falls in every iteration, for all smooth strongly convex clients.

    Compare the direction with the gradient, the accepted steps with the shortest one, and energies. All but the
    energies are compared until the gradient is rounding.
    """
    a, tau = case.algorithm, shortest_step(case)
    factor = 1.0 - 2.0 * SUFFICIENT_DECREASE * tau * (1.0 - a.reduction) ** 2 * case.mu / (case.L + a.weight)
    first, before, p = math.nan, None, None
    for n, s in enumerate(case.snapshots(), start=1):
        g = s.server.gradient
        first = float(np.linalg.norm(g)) if n == 1 else first
        if float(np.linalg.norm(g)) < VISIBLE * first:
            break
        if s.server.asked == SLOPES:
            p, before = -s.server.step, s.server
            slope = float(np.sum(g * p))
            least = (1.0 - a.reduction) ** 2 * float(np.sum(g * g)) / (case.L + a.weight)
            yield Inequality(n, least, slope, "slope of the direction")
            yield Inequality(n, float(np.sum(p * p)), slope / (case.mu + a.weight), "length of the direction")
        elif s.server.asked != POINT and before is not None and p is not None:
            moved = before.theta - s.server.theta
            t = float(np.linalg.norm(moved) / np.linalg.norm(p))
            rounding = case.energy_rounding(before.theta) + case.energy_rounding(s.server.theta)
            old, new = case.error(before.theta), case.error(s.server.theta)
            yield Inequality(n, tau, t, "accepted step")
            fall = SUFFICIENT_DECREASE * float(np.sum(before.gradient * moved))
            yield Inequality(n, new, old - fall, "Armijo's rule", rounding)
            yield Inequality(n, new, factor * old, "energy after an iteration", rounding)
            before = None
