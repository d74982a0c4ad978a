r"""The rate of OptimizedDualFL: a potential that never grows, what it says of the model, and how fast its bound falls.

Write :math:`\Phi_n` for the potential of :func:`theory.optimized_dualfl._runs.potential`, :math:`B_n` for its bracket,
:math:`D` for the dual function, :math:`G` for its gradient, :math:`\Phi_0 = \nu|\zeta^*|^2`.

**The potential.** A convex function that is :math:`\nu`-smooth and :math:`\nu\rho`-strongly convex satisfies for all x
and y (Taylor, Hendrickx and Glineur 2017), with the gradients G of both,

.. math:: \mathcal I(x, y) = D(x) - D(y) - \langle G_y, x-y\rangle - \tfrac1{2(1-\rho)}\Bigl(\tfrac1\nu|G_x-G_y|^2
          + \nu\rho|x-y|^2 - 2\rho\langle G_x-G_y, x-y\rangle\Bigr) \ge 0.

The method and A are such that, whatever the values and gradients are,

.. math:: \Phi_n - \Phi_{n+1} = (1-\rho)A_n\,\mathcal I(\zeta^{n-1}, \zeta^n)
          + (1-\rho)(A_{n+1}-A_n)\,\mathcal I(\zeta^*, \zeta^n), \tag{1}

so :math:`\Phi_{n+1} \le \Phi_n`, hence :math:`(1-\rho)A_nB_n \le \nu|\zeta^*|^2` (Taylor and Drori 2023).

**The model.** The same inequality for every :math:`f_j^*(\nu\,\cdot)` between :math:`\zeta_j` and :math:`\zeta_j^*`,
where the gradients are :math:`\nu\theta_j` and :math:`\nu\theta^*`, reads

.. math:: f_j^*(\nu\zeta_j) - f_j^*(\nu\zeta_j^*) - \langle\nu\theta^*, \zeta_j-\zeta_j^*\rangle
          \ge \tfrac\nu2|\theta_j-\theta^*|^2
          + \tfrac{\nu\rho}{2(1-\rho)}|(\zeta_j-\theta_j) - (\zeta_j^*-\theta^*)|^2.

In the sum over the clients the inner products vanish, as all :math:`\zeta` sum to zero. The first squares add up to
:math:`\sum_j|\theta_j-\theta|^2 + N|\theta-\theta^*|^2`, and the second ones, because :math:`\zeta_j - \theta_j = v_j -
\theta`, to :math:`|v-\zeta^*|^2 + N|\theta-\theta^*|^2`. Therefore

.. math:: B_n \ge \tfrac{\nu N}2\Bigl(1 + \tfrac\rho{1-\rho}\Bigr)|\theta^n-\theta^*|^2
          = \tfrac{\nu N}{2(1-\rho)}|\theta^n-\theta^*|^2. \tag{2}

Both together are the theorem, :math:`|\theta^n-\theta^*|^2 \le 2|\zeta^*|^2/(NA_n)`. The first half is attained
(:func:`bent`); the exact worst case of the distance, by :func:`dualopt.lab.proofs.worst_case`,
is 0.55 and 0.64 of its bound after 2 and 5 rounds without smoothness.

**The rate.** :math:`A_{n+1}` is the larger root of :math:`(A_n - (1-\rho)A_{n+1})^2 = 4A_{n+1}(1+\rho A_n)`. Hence
:math:`A_{n+1} \ge A_n/(1-\sqrt\rho)^2`, with equality in the limit, and :math:`A_1 = 4/(1-\rho)^2`; for
:math:`\rho = 0` it is :math:`4t_{n-1}^2` with the momentum (3.4) of DualFL, at least :math:`(n+1)^2`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from dualopt.arrays.xp import Array
from dualopt.lab.claims import Inequality, claim
from dualopt.losses import AbsoluteDeviation
from dualopt.methods import optimized_dualfl
from dualopt.objectives import Quadratic, linear_model
from theory._cases import Case
from theory._claims import ROUNDING, ExpectedVerdict, deviation
from theory._problems import (
    breast_cancer,
    digits,
    hard_quadratic,
    hinge,
    logistic,
    lopsided,
    one_concave_client,
    one_flat_client,
    quadratic,
)
from theory.optimized_dualfl._runs import (
    OptimizedRound,
    admitted,
    bracket,
    dual_optimum,
    growths,
    optimized,
    path,
    potential,
)

# The coefficients.


class Growth(NamedTuple):
    """The numbers A for one rho."""

    name: str
    rho: float
    rounds: int
    growth: Callable[[float, float], float] = optimized_dualfl.growth


def optimized_growth_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """From rho = 0 to almost 1, until A has passed 1e100 or its growth has settled."""
    for rho in (0.0, 1e-4, 1e-2, 0.3, 0.99):
        yield ExpectedVerdict(Growth(f"rho = {rho:g}", rho, 400))


@claim(
    source="Taylor and Drori 2023, the recursion of A",
    statement=r"$(A_n - (1-\rho)A_{n+1})^2 = 4A_{n+1}(1+\rho A_n)$ from $A_0 = 0$ (to 1e-12);"
    r" $A_n \ge (n+1)^2$, $A_n \ge \frac{4}{(1-\rho)^2}(1-\sqrt\rho)^{-2(n-1)}$, $A_{n+1} \ge (1-\sqrt\rho)^{-2}A_n$,"
    r" with equality in the limit; so the bound of the theorem falls by $(1-1/\sqrt\kappa)^2$ a round for"
    r" $\rho = 1/\kappa$.",
    rtol=1e-10,
    cases=optimized_growth_cases,
)
def optimized_growth(case: Growth) -> Iterator[Inequality]:
    """Growth: how fast the bound falls.

    Compare the recursion, both lower bounds, and the factor with its limit from the round on where it has settled.
    """
    rho, A = case.rho, 0.0
    factor = (1.0 - math.sqrt(rho)) ** 2
    linear = 4.0 / (1.0 - rho) ** 2
    for n in range(1, case.rounds + 1):
        A_next = case.growth(A, rho)
        left, right = (A - (1.0 - rho) * A_next) ** 2, 4.0 * A_next * (1.0 + rho * A)
        yield Inequality(n, deviation(left, right), 1e-12, "recursion")
        yield Inequality(n, (n + 1.0) ** 2, A_next, "(n + 1)^2")
        yield Inequality(n, linear, A_next, "4 (1 - sqrt rho)^(-2(n - 1))/(1 - rho)^2")
        yield Inequality(n, A, factor * A_next, "(1 - sqrt rho)^(-2) A")
        if rho * A > 1e14:  # 1 + rho A is rho A, and the factor its limit, up to rounding
            yield Inequality(n, factor * A_next, (1.0 + 1e-6) * A, "equality in the limit")
        A, linear = A_next, linear / factor
        if A > 1e100:
            break


# The method.


def smooth_cases(rounds: int) -> Iterator[ExpectedVerdict]:
    """Quadratics with the optimal rho, a smaller one and none, unequal clients among them; nu below mu."""
    for instance in (quadratic(), hard_quadratic(), lopsided()):
        for share in (1.0, 0.3, 0.0):
            method = optimized(instance, rho=share * instance.mu / instance.L)
            yield ExpectedVerdict(instance.case(method, rounds, f"rho = {share:g} nu/L"))
    f = quadratic(5, L=200.0, seed=1)
    yield ExpectedVerdict(f.case(optimized(f, nu=0.6), rounds, "nu = 0.6"))


def excluded_cases() -> Iterator[ExpectedVerdict]:
    """Parameters that unequal clients do not admit, and clients that admit none."""
    f = lopsided()
    nu, rho = float(np.max(f.objective.mu)), f.mu / float(np.min(f.objective.L))
    yield ExpectedVerdict(f.case(optimized(f, nu=nu, rho=0.0), 5, "nu = max mu_j"), "outside assumptions")
    yield ExpectedVerdict(f.case(optimized(f, rho=rho), 5, "rho = nu/min L_j"), "outside assumptions")
    for instance in (one_flat_client(), one_concave_client()):
        method = optimized(instance, nu=0.5, rho=0.0)
        yield ExpectedVerdict(instance.case(method, 5, "nu = 0.5"), "outside assumptions")


def optimized_is_item_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Quadratics, on which the published form is run in closed form."""
    yield from smooth_cases(30)


@claim(
    source="Taylor and Drori 2023, the information-theoretic exact method",
    statement=r"$\zeta^n$ and $\theta^n$ of OptimizedDualFL are those of ITEM on $D$:"
    r" $\zeta = (1-\beta)z + \beta v$, $v^+ = \zeta - G/\nu$, $z^+ = (1-\rho\delta)z + \rho\delta\zeta - \delta G/\nu$,"
    r" $\beta = \frac{A_n}{(1-\rho)A_{n+1}}$,"
    r" $\delta = \frac{(1-\rho)^2A_{n+1} - (1+\rho)A_n}{2(1+\rho+\rho A_n)}$ (checked to 1e-10).",
    assumptions=admitted,
    cases=optimized_is_item_cases,
)
def optimized_is_item(case: Case) -> Iterator[Inequality]:
    """OptimizedDualFL is ITEM on the dual function.

    Compare the model and the points with the published form, which keeps a third sequence.
    """
    assert isinstance(case.objective, Quadratic)  # conjugates in closed form
    nu = case.algorithm.nu
    scale = float(np.max(np.abs(dual_optimum(case))))
    published = _item(case.objective, case.algorithm.rho, nu)
    for step, (zeta, theta) in zip(path(case), published, strict=False):
        yield Inequality(step.n, deviation(step.zeta, zeta, scale=scale), ROUNDING, "zeta")
        yield Inequality(step.n, deviation(step.theta, theta, scale=scale), ROUNDING, "theta")


def _item(f: Quadratic, rho: float, nu: float) -> Iterator[tuple[Array, Array]]:
    """Yield the points of ITEM and the models, from its definition alone."""
    inverse = np.linalg.inv(f.A)
    z = v = np.zeros_like(f.b)
    A = 0.0
    for A_next in growths(rho):
        beta = A / ((1.0 - rho) * A_next)
        delta = 0.5 * ((1.0 - rho) ** 2 * A_next - (1.0 + rho) * A) / (1.0 + rho + rho * A)
        zeta = (1.0 - beta) * z + beta * v
        points = np.einsum("jkl,jl->jk", inverse, f.b + nu * zeta)  # grad f_j*(nu zeta_j)
        theta = np.mean(points, axis=0)
        G = nu * (points - theta)
        v, z = zeta - G / nu, (1.0 - rho * delta) * z + rho * delta * zeta - delta * G / nu
        A = A_next
        yield zeta, theta


# The potential.


def optimized_potential_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Quadratics, logistic and hinge losses, unequal clients; and what is not admitted."""
    yield from smooth_cases(25)
    yield ExpectedVerdict(logistic().case(optimized(logistic()), 25))
    yield ExpectedVerdict(hinge().case(optimized(hinge(), rho=0.0), 10))
    yield from excluded_cases()


@claim(
    source="Taylor and Drori 2023, the potential of the information-theoretic exact method",
    statement=r"For rho in [0, nu/L], nu in (0, mu] and exact local solutions,"
    r" $\Phi_n = (1-\rho)A_n\bigl(D(\zeta^{n-1}) - D^* - \frac{|G^{n-1}|^2}{2\nu}"
    r" - \frac{\nu\rho}{2(1-\rho)}|v^n-\zeta^*|^2\bigr) + \nu(1+\rho A_n)|z^n-\zeta^*|^2$ falls from"
    r" $\nu|\zeta^*|^2$ by exactly $(1-\rho)\bigl(A_n\mathcal I(\zeta^{n-1},\zeta^n)"
    r" + (A_{n+1}-A_n)\mathcal I(\zeta^*,\zeta^n)\bigr)$,"
    r" the gaps $\mathcal I \ge 0$ of smooth strongly convex interpolation (both up to 1e-10 of their terms).",
    assumptions=admitted,
    cases=optimized_potential_cases,
)
def optimized_potential(case: Case) -> Iterator[Inequality]:
    """Potential: it falls in every round by a sum of gaps that are not negative.

    Compare its fall with zero and with the gaps (1); what is lost to rounding grows with A.
    """
    nu, rho, best = case.algorithm.nu, case.algorithm.rho, dual_optimum(case)
    size = nu * float(np.sum(best**2))
    optimum = OptimizedRound(0, 0.0, best, case.theta, 0.0 * best, 0.0, 0.0, best, best)
    start = optimum._replace(z=0.0 * best)  # A_0 = 0: nothing but |z - zeta*|^2 is left
    for before, after in pairwise((start, *path(case))):
        terms = size + after.A * (after.size + before.size)
        fall = potential(case, before) - potential(case, after)
        gaps = (1.0 - rho) * (after.A - before.A) * _gap(case, optimum, after)
        if before.n:
            gaps += (1.0 - rho) * before.A * _gap(case, before, after)
        yield Inequality(after.n, deviation(fall, gaps, scale=terms), ROUNDING, "fall of Phi and the gaps")
        yield Inequality(after.n, potential(case, after), potential(case, before) + ROUNDING * terms, "Phi")


def _gap(case: Case, x: OptimizedRound, y: OptimizedRound) -> float:
    r"""Return :math:`\mathcal I(x, y)`."""
    nu, rho = case.algorithm.nu, case.algorithm.rho
    point, slope = x.zeta - y.zeta, x.gradient - y.gradient
    linear = float(np.sum(y.gradient * point))
    squares = np.sum(slope**2) / nu + nu * rho * np.sum(point**2) - 2.0 * rho * np.sum(slope * point)
    return x.error - y.error - linear - float(squares) / (2.0 * (1.0 - rho))


# The theorem.


@cache
def bent(n: int) -> Case:
    r"""Return the clients for which the bound of the dual error is attained in round ``n``.

    They are :math:`|\theta \mp r| + \frac12|\theta|^2`: both conjugates are Huber functions around the
    :math:`\zeta_j^*`, of slope r until the distance r is reached. For :math:`r = 2/A_n` the first n rounds stay where
    they are linear, and nothing is gained but by the length of the steps.
    """
    (*_, A) = (A for _, A in zip(range(n), growths(0.0), strict=False))
    r = 2.0 / A
    rows, values = np.ones((2, 1)), np.array([r, -r])
    clients = linear_model(rows, values, loss=AbsoluteDeviation(), mu=1.0, clients=2, intercept=False)
    signs = np.array([[-1.0], [1.0]])  # slopes of |theta - r| and |theta + r| at theta* = 0
    return Case(name=f"bent after {n} rounds", objective=clients, theta=np.zeros(1), subgradients=signs)


def optimized_theorem_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """All losses, unequal clients, what is not admitted; and clients for which the dual error is attained."""
    yield from smooth_cases(60)
    instances: list[tuple[Case, dict[str, float], int]] = [
        (logistic(), {}, 40),
        (hinge(), {"rho": 0.0}, 15 if quick else 30),
    ]
    if not quick:
        instances += [(breast_cancer(), {}, 60), (digits(), {}, 60)]
    for instance, parameters, rounds in instances:
        yield ExpectedVerdict(instance.case(optimized(instance, **parameters), rounds))
    for n in (3, 10):
        yield ExpectedVerdict(bent(n).case(optimized(bent(n), rho=0.0), n, attained=True))
    yield from excluded_cases()


def _at_zero(case: Case) -> float:
    r"""Return :math:`\frac\nu2|\zeta^*|^2`, by smoothness a bound of :math:`D(0) - D^*`."""
    return 0.5 * case.algorithm.nu * float(np.sum(dual_optimum(case) ** 2))


@claim(
    source="Taylor and Drori 2023 on the dual problem: the theorem of OptimizedDualFL",
    statement=r"For rho in [0, nu/L], nu in (0, mu] and exact local solutions, $\frac{\nu N}{2(1-\rho)}"
    r"|\theta^n-\theta^*|^2 \le B_n \le \frac{\nu|\zeta^*|^2}{(1-\rho)A_n}$, hence"
    r" $|\theta^n-\theta^*|^2 \le \frac{2|\zeta^*|^2}{NA_n}$, $\nu\zeta_j^* = \nabla f_j(\theta^*)$, with"
    r" $A_n \ge (n+1)^2$ and $A_n \ge \frac4{(1-\rho)^2}(1-\sqrt\rho)^{-2(n-1)}$. For $\rho = 0$, any loss, $B_n$ is"
    r" the dual error $E_d(\xi^n) - E_d^*$, at most $\nu|\zeta^*|^2/A_n$, which is attained.",
    assumptions=admitted,
    rtol=1e-9,
    trivial=_at_zero,
    cases=optimized_theorem_cases,
)
def optimized_theorem(case: Case) -> Iterator[Inequality]:
    """OptimizedDualFL: the squared distance falls by (1 - sqrt(rho))^2 in every round.

    Compare the bracket and the distance with the bound, and with each other (2). The bracket is a difference of
    energies, known to 1e-12 of them; the distance is compared in late rounds too.
    """
    nu, rho = case.algorithm.nu, case.algorithm.rho
    first = nu * float(np.sum(dual_optimum(case) ** 2)) / (1.0 - rho)
    for step in path(case):
        B, unknown = bracket(case, step), 1e-12 * step.size
        unit = 0.5 * nu * case.n_clients / (1.0 - rho)
        distance, rounding = unit * case.distance(step.theta), unit * case.distance_rounding(step.theta)
        yield Inequality(step.n, B, first / step.A + unknown, "B_n")
        yield Inequality(step.n, distance, B + unknown, "(2)")
        yield Inequality(step.n, distance, first / step.A, "nu N/(2(1 - rho)) |theta - theta*|^2", rounding)
