r"""DualFL with exact local solutions: Theorems 3.2 and 3.3 of the paper, and the duality that proves them.

This is Section 6 of the paper. A local solution is a client's solution of a dual problem (Proposition 3.1), primal and
dual solutions of the whole problem belong together (6.5), the proximal step of FISTA on :math:`E_d` is one problem per
client (Lemma 6.4), and with :math:`\sum_j \zeta_j = 0` (6.10) all that makes DualFL the same method as FISTA
(Lemma 6.5). The momentum (3.4) gives the rates of FISTA, and

.. math:: \tfrac{N\nu}{2}|\theta^{(n)} - \theta^*|^2 \le E_d(\xi^{(n)}) - E_d(\xi^*), \qquad
          E(\theta^{(n)}) - E(\theta^*) \le \tfrac L2 |\theta^{(n)} - \theta^*|^2,

which are (6.13) and (6.14), carry them over to the models.

The first round has an exact worst case. There :math:`\theta_j` minimises :math:`f_j`, so that with subgradients
:math:`s_j` at :math:`\theta^*`, :math:`\sum_js_j = 0`, and :math:`u_j = \theta^* - \theta_j`, strong convexity says
:math:`\langle s_j, u_j\rangle \ge \nu|u_j|^2`, that is :math:`|u_j - \frac{s_j}{2\nu}| \le \frac{|s_j|}{2\nu}`. The
mean of the :math:`u_j` is that of these differences, hence :math:`\frac{N\nu}2|\theta^{(1)} - \theta^*|^2 \le
\frac1{8\nu}\sum_j|s_j|^2`, a quarter of what the theorems say. As :math:`g_j^*(-\nu\theta_j) = -f_j(\theta_j) -
\frac\nu2|\theta_j|^2`, and :math:`f_j(\theta^*) - f_j(\theta_j) \le \langle s_j, u_j\rangle - \frac\nu2|u_j|^2`,

.. math:: E_d(\xi^{(1)}) - E_d^* = \sum_j(f_j(\theta^*) - f_j(\theta_j)) - \tfrac\nu2\sum_j|\theta_j - \theta^{(1)}|^2
          \le \sum_j\bigl(\langle s_j, u_j - \bar u\rangle - \nu|u_j - \bar u|^2\bigr)
          \le \tfrac1{4\nu}\sum_j|s_j|^2,

half of what they say; here :math:`\sum_j|u_j|^2 \ge \sum_j|u_j - \bar u|^2`. Flat and steep clients attain the first
bound, kinks halfway between the others' minima the second one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import islice
from typing import NamedTuple

import numpy as np

from dualopt.arrays.xp import Array
from dualopt.engine.rounds import Snapshot
from dualopt.lab.claims import Inequality, claim
from dualopt.losses import AbsoluteDeviation, Huber
from dualopt.methods.dualfl import momentum
from dualopt.objectives import Quadratic, linear_model
from dualopt.objectives.local_problem import client_dot
from dualopt.problem.data import available
from dualopt.solvers import Gradient
from dualopt.solvers.stopping import Steps
from theory._cases import Case
from theory._claims import ROUNDING, ExpectedVerdict, Form, deviation
from theory._problems import (
    a9a,
    absolute_deviation,
    breast_cancer,
    breast_cancer_hinge,
    digits,
    hard_quadratic,
    hinge,
    logistic,
    lopsided,
    one_concave_client,
    one_flat_client,
    quadratic,
    solved,
)
from theory.dualfl._fista import Fista
from theory.dualfl._runs import (
    DualFLRound,
    conjugates,
    dual_optimum,
    dual_value,
    exact,
    inexact,
    initial_bound,
    linear_regime,
    local_dual,
    local_energies,
    path,
    strongly_convex,
    sublinear_regime,
    suggested,
    uploaded,
    weighted_distance,
)

# Local problems and their duals (Section 3.1).


def proposition_3_1_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Quadratics in closed form, logistic losses with conjugates by Newton's method; nu beyond mu."""
    instances = [quadratic(), hard_quadratic(), lopsided(), logistic()]
    for instance in instances if quick else [*instances, breast_cancer()]:
        yield ExpectedVerdict(instance.case(exact(instance, nu=0.5 * instance.mu), 15, "nu = mu/2"))
    f = quadratic()
    yield ExpectedVerdict(f.case(exact(f, nu=2.0 * f.mu, rho=0.0), 5, "nu = 2 mu"), "outside assumptions")


@claim(
    source="Park and Xu, Proposition 3.1",
    statement=r"If $\theta_j$ solves (3.1) and nu in (0, mu], then $\xi_j = \nu(\zeta_j - \theta_j)$ solves (3.5), and"
    r" $E^{n,j}(\theta_j) + E_d^{n,j}(\xi_j) = 0$ (checked to 1e-10 of its terms).",
    assumptions=strongly_convex,
    cases=proposition_3_1_cases,
)
def proposition_3_1(case: Case) -> Iterator[Inequality]:
    """Proposition 3.1: a local solution and its dual point have opposite energies.

    Compare the two energies at the uploaded points, the conjugate computed from its definition.
    """
    for step in path(case):
        zeta, sent = step.zeta, uploaded(step.snapshot)
        primal, dual = local_energies(case, zeta, sent)
        scale = float(np.max(np.abs(case.objective.value(sent)) + case.algorithm.nu * client_dot(zeta, zeta)))
        yield Inequality(step.n, deviation(primal, -dual, scale=scale), ROUNDING, "E^{n,j} + E_d^{n,j}")


# The dual problem (Section 6.1).


def relation_6_5_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Independent dual solutions of quadratics; gradients or, for the hinge loss, multipliers at the reference."""
    instances = [quadratic(), lopsided(), logistic(), hinge()]
    for instance in instances if quick else [*instances, breast_cancer()]:
        yield ExpectedVerdict(instance.case(exact(instance, nu=0.5 * instance.mu, rho=0.0), 15, "nu = mu/2"))


@claim(
    source="Park and Xu, equation (6.5)",
    statement=r"$\theta^* = -\frac{1}{N\nu}\sum_j\xi_j^*$, $\xi_j^* = \nabla g_j(\theta^*)$, $N E^* + E_d^* = 0$; and"
    r" $\theta^n = -\frac{1}{N\nu}\sum_j\xi_j^n$ in every round (checked to 1e-10).",
    assumptions=strongly_convex,
    cases=relation_6_5_cases,
)
def relation_6_5(case: Case) -> Iterator[Inequality]:
    r"""Relation (6.5): the primal solution is the averaged dual one, and so in every round.

    Compare both sides in every round, and at the end for a dual solution: that of the linear dual problem for
    quadratics, else the reference's. Where conjugates can be computed, also strong duality :math:`N E^* + E_d^* = 0`.
    """
    nu, f, N = case.algorithm.nu, case.objective, case.objective.n_clients
    scale = float(np.max(np.abs(case.theta)))
    for step in path(case):
        xi = nu * (step.zeta - uploaded(step.snapshot))  # (6.9a)
        averaged = -np.sum(xi, axis=0) / (N * nu)
        yield Inequality(step.n, deviation(step.theta, averaged, scale=scale), ROUNDING, "theta^n + mean xi^n/nu")
    xi = _dual_solution(f, nu) if isinstance(f, Quadratic) else dual_optimum(case)
    n = case.rounds
    yield Inequality(n, deviation(case.theta, -np.sum(xi, axis=0) / (N * nu), scale=scale), ROUNDING, "theta*")
    if np.isfinite(f.L).all():
        yield Inequality(n, deviation(xi, f.gradient(case.theta) - nu * case.theta), ROUNDING, "xi* - grad g(theta*)")
        best = float(np.sum(f.value(case.theta)))
        yield Inequality(n, deviation(best, -dual_value(case, xi, conjugates(f, nu, xi))), ROUNDING, "N E* + E_d*")


def _dual_solution(f: Quadratic, nu: float) -> Array:
    r"""Solve :math:`(A_j - \nu I)^{-1}(\xi_j + b_j) + \frac{1}{N\nu}\sum_i \xi_i = 0` as one linear system."""
    N, d = f.b.shape
    inverse = np.linalg.inv(f.A - nu * np.eye(d))
    system = np.tile(np.eye(d) / (N * nu), (N, N))
    for j in range(N):
        system[j * d : (j + 1) * d, j * d : (j + 1) * d] += inverse[j]
    right = -np.einsum("jkl,jl->jk", inverse, f.b).reshape(-1)
    return np.linalg.solve(system, right).reshape(N, d)


# DualFL is FISTA (Sections 6.2 and 6.3).


def auxiliary_sequences(case: Case, *, as_printed: bool = False) -> Iterator[tuple[Snapshot, Array, Array]]:
    r"""Run DualFL and yield :math:`\xi^{(n)}` (6.9a) and :math:`\eta^{(n)}` (6.9b) after every round.

    The paper prints the clients' points in (6.9b), where the server's belong (D1):
    :math:`\eta_j^{(n+1)} = \nu(\zeta_j^{(n+1)} - (1 + \beta_n)\theta^{(n+1)} + \beta_n\theta^{(n)})`.
    """
    nu = case.algorithm.nu
    zeta = sent = np.zeros_like(case.subgradients)
    theta = np.zeros_like(case.theta)
    for s in case.snapshots():
        beta = s.message.beta
        new, old = (uploaded(s), sent) if as_printed else (s.server.theta, theta)
        yield s, nu * (zeta - uploaded(s)), nu * (s.clients.zeta - (1.0 + beta) * new + beta * old)
        zeta, sent, theta = s.clients.zeta, uploaded(s), s.server.theta


def lemma_6_4_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Quadratics with conjugates in closed form, logistic losses with conjugates by Newton's method."""
    for instance in (quadratic(), hard_quadratic(), lopsided(), logistic()):
        yield ExpectedVerdict(instance.case(exact(instance, nu=0.5 * instance.mu), 10, "nu = mu/2"))


@claim(
    source="Park and Xu, Lemma 6.4 and (6.11)",
    statement=r"$E_d^n(\xi) = \sum_j \bigl(g_j^*(\xi_j) + \frac{1}{2\nu}|\xi_j - \eta_j + \frac1N\sum_i\eta_i|^2\bigr)"
    r" + $ constant, so that local errors $\delta/N$ add up to $\delta$; in DualFL"
    r" $\nu\zeta_j = \eta_j - \frac1N\sum_i \eta_i$ (checked to 1e-10).",
    assumptions=strongly_convex,
    cases=lemma_6_4_cases,
)
def lemma_6_4(case: Case) -> Iterator[Inequality]:
    r"""Lemma 6.4: the proximal problem (6.7) of FISTA splits into the clients' dual problems.

    Compare differences of both sides between two points, and the centers with :math:`\nu\zeta_j` (6.11).
    """
    nu, f = case.algorithm.nu, case.objective
    rng = np.random.default_rng(0)
    for n, (s, xi, eta) in enumerate(auxiliary_sequences(case), start=1):
        center = eta - np.mean(eta, axis=0)
        yield Inequality(n, deviation(center, nu * s.clients.zeta), ROUNDING, "eta_j - mean eta and nu zeta_j")
        whole, parts = [], []
        for point in (xi, xi + rng.standard_normal(xi.shape)):
            conjugate = conjugates(f, nu, point)
            whole.append(_proximal_energy(point, conjugate, eta, nu))
            parts.append(float(np.sum(local_dual(conjugate, point, center, nu))))
        scale = max(map(abs, whole + parts))
        yield Inequality(n, deviation(whole[0] - whole[1], parts[0] - parts[1], scale=scale), ROUNDING, "energies")


def _proximal_energy(xi: Array, conjugate: Array, eta: Array, nu: float) -> float:
    r"""Return :math:`E_d^n(\xi)` of (6.7)."""
    slope = np.sum(eta, axis=0) / (len(eta) * nu)  # grad F_d(eta)
    return float(np.sum(slope * (xi - eta)) + np.sum((xi - eta) ** 2) / (2.0 * nu) + np.sum(conjugate))


def sum_zeta_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Exact and very inexact local solutions."""
    yield ExpectedVerdict(quadratic().case(exact(quadratic()), 100))
    for instance in [logistic()] if quick else [logistic(), digits()]:
        once = inexact(instance, Steps(steps=1), rho=0.01, solver=Gradient())
        yield ExpectedVerdict(instance.case(once, 100, "one gradient step"))


@claim(
    source="Park and Xu, equation (6.10)",
    statement=r"$\sum_j \zeta_j^n = 0$ for every $n$, exact or not (checked to $10^{-14}(n+1)$ of its terms).",
    cases=sum_zeta_cases,
)
def sum_zeta(case: Case) -> Iterator[Inequality]:
    """Equation (6.10): the control variates sum to zero, whatever the clients do.

    Compare the sum with the size of what is added and the rounding of n rounds.
    """
    for n, s in enumerate(case.snapshots(), start=1):
        zeta = s.clients.zeta
        sent = np.sum(np.abs(uploaded(s)), axis=0)
        scale = float(np.max(np.sum(np.abs(zeta), axis=0) + sent))
        yield Inequality(n, deviation(np.sum(zeta, axis=0), 0.0, scale=scale), 1e-14 * (n + 1), "sum zeta")


def lemma_6_5_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Quadratics, with momentum for either regime."""
    for instance in (quadratic(), quadratic(5, L=200.0, seed=1), hard_quadratic(), lopsided()):
        nu = 0.9 * instance.mu
        for rho in (0.0, nu / instance.L):
            yield ExpectedVerdict(instance.case(exact(instance, rho=rho, nu=nu), 25, f"rho = {rho:.2g}"))


@claim(
    source="Park and Xu, Lemma 6.5, with (6.9b) corrected",
    statement=r"$\xi_j^{n+1} = \nu(\zeta_j^n - \theta_j^{n+1})$ and $\eta_j^{n+1} = \nu(\zeta_j^{n+1} -"
    r" (1+\beta_n)\theta^{n+1} + \beta_n\theta^n)$ are the iterates of FISTA on (6.6) (checked to 1e-10).",
    assumptions=strongly_convex,
    cases=lemma_6_5_cases,
)
def lemma_6_5(case: Case, *, as_printed: bool = False) -> Iterator[Inequality]:
    """Lemma 6.5: DualFL is FISTA on the dual problem.

    Compare both sequences with Algorithm 2, run on the dual problem itself.
    """
    assert isinstance(case.objective, Quadratic)  # Algorithm 2 is run in closed form
    fista = Fista(rho=case.algorithm.rho, nu=case.algorithm.nu).sequence(case.objective)
    pairs = zip(auxiliary_sequences(case, as_printed=as_printed), islice(fista, case.rounds), strict=True)
    for n, ((_, xi, eta), iterate) in enumerate(pairs, start=1):
        yield Inequality(n, deviation(xi, iterate.xi), ROUNDING, "xi")
        yield Inequality(n, deviation(eta, iterate.eta), ROUNDING, "eta")


def d1_auxiliary_sequence_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Either form along the same run."""
    f = quadratic()
    case = f.case(exact(f, rho=0.9 / f.L, nu=0.9), 25)
    yield ExpectedVerdict(Form(case, printed=True), "violated")
    yield ExpectedVerdict(Form(case, printed=False))


@lemma_6_5.as_printed(
    source="DualFL (6.9b)",
    statement=r"The $\eta^n$ of (6.9b) are FISTA's. Printed with $\theta_j$:"
    r" $\nu(\zeta_j^{n+1} - (1+\beta_n)\theta_j^{n+1} + \beta_n\theta_j^n)$. Corrected, with the server's model:"
    r" $\nu(\zeta_j^{n+1} - (1+\beta_n)\theta^{n+1} + \beta_n\theta^n)$; and $+\nu\beta_n\theta^n$ in the last line.",
    cases=d1_auxiliary_sequence_cases,
)
def d1_auxiliary_sequence(form: Form) -> Iterable[Inequality]:
    """D1: equation (6.9b) and the last lines of the proof of Lemma 6.5.

    Compare either form with Algorithm 2.
    """
    return lemma_6_5(form.case, as_printed=form.printed)


# The rates (Sections 3.2 and 6.4). With R_n as below the dual error is at most R_n |xi*|^2/(2 nu); the derivation, with
# errors, is that of `inexact_solutions.envelope`.


def relations_6_13_and_6_14_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Exact rounds of unequal clients and of two that are nearly equal; a few gradient steps."""
    for instance in (flat_and_steep(), quadratic(), nearly_equal(), logistic()):
        nu = 0.9 * instance.mu
        yield ExpectedVerdict(instance.case(exact(instance, nu=nu), 10))
        few = inexact(instance, Steps(steps=3), rho=nu / instance.L, nu=nu, solver=Gradient())
        yield ExpectedVerdict(instance.case(few, 10, "three gradient steps"))


@cache
def nearly_equal() -> Case:
    """Return clients of one variable with the curvatures 9 and 10."""
    return solved("curvatures 9 and 10", Quadratic(A=np.array([[[9.0]], [[10.0]]]), b=np.array([[4.0], [-1.0]])))


@claim(
    source="Park and Xu, equations (6.13) and (6.14)",
    statement=r"In every round, exact or dual-corrected,"
    r" $|\theta^n - \theta^*|^2 \le \frac2{N\nu}(E_d(\xi^n) - E_d^*)$"
    r" and $E(\theta^n) - E^* \le \frac L2|\theta^n - \theta^*|^2$.",
    assumptions=lambda case: strongly_convex(case) + ([] if math.isfinite(case.L) else ["L < inf"]),
    cases=relations_6_13_and_6_14_cases,
)
def relations_6_13_and_6_14(case: Case) -> Iterator[Inequality]:
    """Relations (6.13) and (6.14): what the dual error says of the model, and the distance of the energy.

    Compare in every round, up to the rounding of both sides.
    """
    unit = 0.5 * case.n_clients * case.algorithm.nu
    for step in path(case):
        away, rounding = case.distance(step.theta), case.distance_rounding(step.theta)
        yield Inequality(step.n, unit * away, step.dual_error, "distance", unit * rounding + step.rounding)
        rounding = case.energy_rounding(step.theta) + 0.5 * case.L * rounding
        above = case.value(step.theta) - case.value(case.theta)
        yield Inequality(step.n, above, 0.5 * case.L * away, "energy", rounding)


class Recursion(NamedTuple):
    """The recursion for one rho; ``momentum(t, rho)`` returns the next t and beta."""

    name: str
    rho: float
    rounds: int
    momentum: Callable[[float, float], tuple[float, float]] = momentum


def momentum_3_4_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """From rho = 0 to almost 1."""
    for rho in (0.0, 1e-4, 1e-2, 0.3, 0.99):
        yield ExpectedVerdict(Recursion(f"rho = {rho:g}", rho, 300))


@claim(
    source="Park and Xu, equation (3.4); Chambolle and Pock 2016, Appendix B",
    statement=r"$t_{k+1}(t_{k+1}-1) = (1-\rho t_{k+1})t_k^2$ from $t_0 = 1$,"
    r" $t_{k+1}\beta_k = (t_k-1)(1-\nu m(t_{k+1}-1))$ with $\nu m = \rho/(1-\rho)$, $t_k \le \rho^{-1/2}$,"
    r" and $R_n = \prod_{k=1}^{n-1}(1-1/t_k) \le \min\{(1-\sqrt\rho)^{n-1}, 4/(n+1)^2\}$.",
    cases=momentum_3_4_cases,
)
def momentum_3_4(case: Recursion) -> Iterator[Inequality]:
    """Momentum (3.4): the numbers that give the rates.

    Compare what the proof needs of t and beta, and the product that is the rate.
    """
    rho, t, product = case.rho, 1.0, 1.0
    strength = rho / (1.0 - rho)  # strong convexity times step size
    for n in range(1, case.rounds + 1):
        t_next, beta = case.momentum(t, rho)
        telescoping = deviation(t_next * (t_next - 1.0), (1.0 - rho * t_next) * t * t, scale=t_next * t_next)
        yield Inequality(n, telescoping, 1e-12, "t'(t'-1) - (1 - rho t')t^2")
        matching = deviation(t_next * beta, (t - 1.0) * (1.0 - strength * (t_next - 1.0)), scale=t_next)
        yield Inequality(n, matching, 1e-12, "t' beta - (t-1)(1 - nu m (t'-1))")
        yield Inequality(n, math.sqrt(rho) * t_next, 1.0 + 1e-14, "sqrt(rho) t")
        product *= 1.0 - 1.0 / t_next
        yield Inequality(n, product, min((1.0 - math.sqrt(rho)) ** n, 4.0 / (n + 2.0) ** 2), "R_{n+1}")
        t = t_next


def excluded_cases(share: float) -> Iterator[ExpectedVerdict]:
    """Yield what is not admitted: nu above the least mu_j, rho for the least L_j, any nu where some mu_j <= 0."""
    f = lopsided()
    greatest, least = float(np.max(f.objective.mu)), float(np.min(f.objective.L))
    wide = exact(f, nu=greatest, rho=share * greatest / f.L)
    yield ExpectedVerdict(f.case(wide, 5, "nu = max mu_j"), "outside assumptions")
    if share:
        yield ExpectedVerdict(f.case(exact(f, rho=f.mu / least), 5, "rho = nu/min L_j"), "outside assumptions")
    for instance in (one_flat_client(), one_concave_client()):
        method = exact(instance, nu=0.5, rho=share * 0.5 / instance.L)
        yield ExpectedVerdict(instance.case(method, 5, "nu = 0.5"), "outside assumptions")


@cache
def flat_and_steep() -> Case:
    """Curvatures 1 and 31, pulled apart: in the first round about as bad as any problem of two clients."""
    curvatures, b = np.array([1.0, 31.0]), np.array([[-2.0], [5.0]])
    return solved("one flat and one steep client", Quadratic(A=curvatures[:, None, None], b=b))


@cache
def kinks(*, smooth: bool = False) -> Case:
    """Return two absolute deviations, or Huber losses with kappa = 101, whose kinks are 0.9 as far as is worst."""
    mu = 0.01 if smooth else 1.0
    loss, name = (Huber(delta=mu), "two smooth kinks") if smooth else (AbsoluteDeviation(), "two kinks")
    rows = {"X": np.ones((2, 1)), "y": np.array([0.45, -0.45])}
    return solved(name, linear_model(**rows, loss=loss, mu=mu, clients=2, intercept=False))


def first_round(case: Case, step: DualFLRound) -> Iterator[Inequality]:
    """Compare the first round with its exact worst case, which is zero for equal clients.

    The dual error rounds, the least dual energy rounds likewise, and so does the gap to which clients solve.
    """
    unit = float(np.sum(case.subgradients**2)) / case.algorithm.nu
    rounding = 3.0 * step.rounding + step.local_error
    yield Inequality(1, step.dual_error, unit / 4.0, "dual error after one round", rounding)
    distance, rounding = weighted_distance(case, step.theta), case.distance_rounding(step.theta)
    yield Inequality(1, distance, unit / 8.0, "distance after one round", case.n_clients * case.algorithm.nu * rounding)


def theorem_3_2_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Nonsmooth losses, quadratics of both kinds, real data; and a momentum parameter that the theorem excludes."""
    for instance, rounds in [(quadratic(), 60), (hard_quadratic(L=300.0), 100), (hinge(), 15 if quick else 30)]:
        yield ExpectedVerdict(instance.case(exact(instance, rho=0.0), rounds))
    smaller = quadratic(5, L=200.0, seed=1)
    yield ExpectedVerdict(smaller.case(exact(smaller, rho=0.0, nu=0.4), 60, "nu = 0.4"))
    yield ExpectedVerdict(flat_and_steep().case(exact(flat_and_steep(), rho=0.0), 30))
    yield ExpectedVerdict(kinks().case(exact(kinks(), rho=0.0), 10))
    yield ExpectedVerdict(quadratic().case(exact(quadratic()), 10, "rho = 1/kappa"), "outside assumptions")
    yield ExpectedVerdict(lopsided().case(exact(lopsided(), rho=0.0), 60))
    yield from excluded_cases(0.0)
    if not quick:
        for instance, rounds in [(absolute_deviation(), 40), (breast_cancer(), 60), (breast_cancer_hinge(), 15)]:
            yield ExpectedVerdict(instance.case(exact(instance, rho=0.0), rounds))


@claim(
    source="Park and Xu, Theorem 3.2",
    statement=r"For rho = 0, nu in (0, mu] and exact local solutions, $E_d(\xi^n) - E_d^* \le"
    r" \frac{2|\xi^*|^2}{\nu(n+1)^2}$ and $|\theta^n - \theta^*|^2 \le \frac{4|\xi^*|^2}{N\nu^2(n+1)^2}$. In the"
    r" first round $\frac12$ and $\frac14$ of that for $|s|^2 \le |\xi^*|^2$, $s_j \in \partial f_j(\theta^*)$,"
    r" in the place of $|\xi^*|^2$.",
    assumptions=sublinear_regime,
    trivial=initial_bound,
    cases=theorem_3_2_cases,
)
def theorem_3_2(case: Case) -> Iterator[Inequality]:
    """Theorem 3.2: without smoothness the squared distance falls like 1/n^2.

    Compare the dual error, and the squared distance in its units (6.13).
    """
    for step in path(case):
        if step.n == 1:
            yield from first_round(case, step)
        bound = 4.0 * initial_bound(case) / (step.n + 1.0) ** 2
        yield Inequality(step.n, step.dual_error, bound, "dual error")
        yield Inequality(step.n, weighted_distance(case, step.theta), bound, "N nu/2 |theta - theta*|^2")


def theorem_3_3_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Yield the optimal rho and a smaller one; rho = 0, which makes the statement empty; rho too large."""
    instances = [(quadratic(), 80), (hard_quadratic(), 400), (logistic(), 60), (breast_cancer(), 20 if quick else 60)]
    if not quick:
        instances += [(digits(), 60), *((instance, 30) for instance in a9a())]
    for instance, rounds in instances:
        yield ExpectedVerdict(instance.case(exact(instance), rounds, "rho = nu/L"))
    f = quadratic(5, L=200.0, seed=1)
    yield ExpectedVerdict(f.case(exact(f, rho=0.3 * 0.9 / f.L, nu=0.9), 100, "rho = 0.3 nu/L, nu = 0.9"))
    yield ExpectedVerdict(flat_and_steep().case(exact(flat_and_steep()), 30, "rho = nu/L"))
    yield ExpectedVerdict(kinks(smooth=True).case(exact(kinks(smooth=True)), 20, "rho = nu/L"))
    yield ExpectedVerdict(quadratic().case(exact(quadratic(), rho=0.0), 40, "rho = 0"), "vacuous")
    yield ExpectedVerdict(lopsided().case(suggested(lopsided()), 80, "as suggested"))
    yield from excluded_cases(1.0)
    yield ExpectedVerdict(digits().case(exact(digits(), rho=3e-3), 1, "rho = 3e-3 of Table 2"), "outside assumptions")


@claim(
    source="Park and Xu, Theorem 3.3; Chambolle and Pock 2016, Theorem B.1",
    statement=r"For rho in [0, nu/L], nu in (0, mu] and exact local solutions, $\frac{N\nu}{L}(E(\theta^n) - E^*) \le"
    r" \frac{N\nu}{2}|\theta^n - \theta^*|^2 \le E_d(\xi^n) - E_d^* \le (1-\sqrt\rho)^{n-1}\frac{|\xi^*|^2}{2\nu}$."
    r" In the first round the dual error is at most $\frac{|s|^2}{4\nu}$, $s_j = \nabla f_j(\theta^*)$, and what is on"
    r" its left half of that.",
    assumptions=linear_regime,
    trivial=initial_bound,
    cases=theorem_3_3_cases,
)
def theorem_3_3(case: Case) -> Iterator[Inequality]:
    """Theorem 3.3: with smoothness the error shrinks by 1 - sqrt(rho) in every round.

    Compare the dual error, and in its units the squared distance (6.13) and the energy error (6.14).
    """
    rho, weight = case.algorithm.rho, case.n_clients * case.algorithm.nu / case.L
    lowest, distance_weight = case.value(case.theta), 0.5 * weight * case.L
    for step in path(case):
        if step.n == 1:
            yield from first_round(case, step)
        bound, theta = (1.0 - np.sqrt(rho)) ** (step.n - 1) * initial_bound(case), step.theta
        energy, rounding = weight * (case.value(theta) - lowest), weight * case.energy_rounding(theta)
        yield Inequality(step.n, energy, bound, "N nu/L (E - E*)", rounding)
        distance, rounding = weighted_distance(case, theta), distance_weight * case.distance_rounding(theta)
        yield Inequality(step.n, distance, bound, "N nu/2 |theta - theta*|^2", rounding)
        yield Inequality(step.n, step.dual_error, bound, "dual error", step.rounding)


def d3_range_of_rho_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Yield the end point that is too much, the other one, and the tuned value on pixels in [0, 1]."""
    f = quadratic()
    yield ExpectedVerdict(Form(f.case(exact(f, rho=0.0), 40, "rho = 0"), printed=True), "vacuous")
    yield ExpectedVerdict(Form(f.case(exact(f), 40, "rho = nu/L"), printed=False))
    tuned = digits().case(exact(digits(), rho=3e-3), 1, "rho = 3e-3")
    yield ExpectedVerdict(Form(tuned, printed=True), "outside assumptions")


@theorem_3_3.as_printed(
    source="DualFL Theorem 3.3 and Table 2",
    statement=r"For every rho of the range, $E_d(\xi^n) - E_d^* \le (1-\sqrt\rho)^{n-1}|\xi^*|^2/(2\nu)$ says that the"
    r" method converges. Printed: $[0, \nu/L]$, where rho = 0 gives the rate 1. Corrected: $(0, \nu/L]$."
    r" The rho = 3e-3 of Table 2 may lie outside either.",
    assumptions=lambda form: linear_regime(form.case),
    trivial=lambda form: initial_bound(form.case),
    cases=d3_range_of_rho_cases,
)
def d3_range_of_rho(form: Form) -> Iterable[Inequality]:
    """D3: the range of rho in Theorem 3.3.

    Compare as in Theorem 3.3.
    """
    return theorem_3_3(form.case)


# Numerical experiments (Section 7).


def d4_rows_of_cifar10_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Yield the data set as the loader describes it."""
    known = available()["cifar10"]
    yield ExpectedVerdict(Form(known, printed=True, note="n = 60,000"), "violated")
    yield ExpectedVerdict(Form(known, printed=False, note="n = 50,000"))


@claim(
    source="DualFL Section 7",
    statement=r"The training set of CIFAR-10 has n rows. Printed: n = 60,000. Corrected: n = 50,000.",
    corrects="Section 7",
    cases=d4_rows_of_cifar10_cases,
)
def d4_rows_of_cifar10(form: Form) -> Iterator[Inequality]:
    """D4: the number of rows of CIFAR-10.

    Compare with the size in the loader's description.
    """
    size = re.search(r"(\d+) x 3072", form.case)
    rows = float(size[1] if size else "nan")
    yield Inequality(0, abs(rows - (60_000 if form.printed else 50_000)), 0.0, "error in rows")
