"""The constants of the theorems beyond the papers, derived again from the inequalities of their proofs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import sympy as sp

from dualopt.methods import DualFL, OptimizedDualFL, adaptive_acc_s_dane
from dualopt.methods._dual_theorems import last_step
from dualopt.methods._estimate import growth
from dualopt.methods._feddyn_theorems import largest_growth
from dualopt.methods._gradient_theorems import limit_factor
from dualopt.methods._primal_dual_theorems import best_step
from dualopt.methods.sampled_dualfl import next_step
from tests.theory._symbolic import assert_same, positive, stand_in
from theory._problems import lopsided
from theory.frontier import accelerated_dane, adaptive_dane, cohorts_of_fivegcs, giant, scaled_dualfl
from theory.frontier import sampled_dualfl as theorem_f
from theory.frontier import sampled_feddyn as theorem_a
from theory.frontier import sampled_fivegcs as theorem_g
from theory.optimized_dualfl._runs import growths

gamma, mu, L, p, d, e, b, x, mean = positive("gamma mu L p d e b x mean")


def test_the_identity_2() -> None:
    """The cross terms cancel: of N clients two stand for all, with errors of the memories mean +- b."""
    theta = x - gamma * mean
    squares = [(theta + gamma * (mean + sign * b)) ** 2 for sign in (1, -1)]
    memories = [(mean + sign * b) ** 2 for sign in (1, -1)]
    claimed = x**2 - gamma**2 * mean**2 + gamma**2 * sum(memories) / 2
    assert sp.expand(sum(squares) / 2 - claimed) == 0
    assert sp.expand(sum(squares) / 2 - claimed + gamma**2 * mean**2) != 0


def test_constants_of_theorem_a() -> None:
    """The coefficients of the three squares, and that the condition is where that of the memories fits."""
    m = L * mu / (L + mu)
    r, c = 1 / (1 + 2 * gamma * m), gamma**2 + 2 * gamma / (L + mu)
    C = r * c / p
    case = stand_in(mu=mu, L=L, fraction=p, algorithm=stand_in(alpha=1 / gamma))
    assert_same(theorem_a.factor(case), r)
    assert_same(theorem_a.dual_weight(case), C)
    assert sp.simplify(C * p - r * c) == 0  # the terms with e cancel
    slack = r * C - (r * gamma**2 + (1 - p) * C)
    condition = p - L * mu * gamma**2 - 2 * (1 - p) * m * gamma
    ratio = sp.factor(sp.simplify(slack / condition))
    assert ratio.is_positive  # so that the one is nonnegative where the other is


def test_constants_of_theorem_b() -> None:
    """A client keeps its distance with probability 1 - p_j."""
    q, delta = positive("q delta")
    kept = sp.expand((1 / q) * ((1 - q) + q * delta**2))
    assert sp.simplify(kept - (1 / q - (1 - delta**2))) == 0


def test_theorem_g() -> None:
    """Completing the square; the coefficients of the squares; and that the condition is where the memories fit."""
    q, a, b = 1 + gamma * mu, x, mean
    first = (a - gamma * b) ** 2 / q**2 + 2 * gamma * (a - gamma * b) * b / q  # of x^ - x*, and its product with [b]
    best = sp.solve(sp.diff(first, b), b)[0]
    assert sp.simplify(best - (q - 1) * a / ((2 * q - 1) * gamma)) == 0
    r, c = 1 / (2 * q - 1), gamma**2 + 2 * gamma / (L - mu)
    assert sp.simplify(first.subs(b, best) - r * a**2) == 0
    case = stand_in(gamma=gamma, L=L, fraction=p, algorithm=stand_in(mu=mu))
    assert_same(theorem_g.factor(case), r)
    assert_same(theorem_g.dual_weight(case), c / p)
    slack = c / p * (r - 1 + p) - gamma**2
    condition = p - mu * (L - mu) * gamma**2 - 2 * (1 - p) * mu * gamma
    ratio = sp.simplify(slack / condition - 2 * gamma / (p * (1 + 2 * gamma * mu) * (L - mu)))
    assert ratio == 0


def test_theorem_h() -> None:
    """What is left of r^2 V - V+ - 2 (1 - m) S is a sum of squares: means, and deviations of one of two clients."""
    m, r, A = positive("m r A")
    beta, eps, beta_j, eps_j = sp.symbols("beta epsilon beta_j epsilon_j", real=True)
    q, k = 1 + m, (1 - m) / r
    a = A - m * beta
    d = (a - beta) / q + beta - eps  # the mean of the y_j, which is x+
    assert sp.simplify(d - (A / q - eps)) == 0
    after = d + m * eps
    assert sp.simplify(after - (A / q - (1 - m) * eps)) == 0
    S = A * eps / q + beta_j * eps_j - (eps**2 + eps_j**2) / r
    products = (d * eps + (beta_j - eps_j) * eps_j) - (1 / r - 1) * (eps**2 + eps_j**2)
    assert sp.simplify(S - products) == 0  # [<d, e>] less [|e|^2] (1/r - 1), which is at most that over L - mu
    V, new = A**2 + k * (beta**2 + beta_j**2), after**2 + k * (eps**2 + eps_j**2)
    rest = (r**2 - 1 / q**2) * A**2 + r * (1 - m) * beta**2 + (1 - m) * (1 / r - (1 - m)) * eps**2
    rest += (1 - m) * (sp.sqrt(r) * beta_j - eps_j / sp.sqrt(r)) ** 2
    assert sp.simplify(r**2 * V - new - 2 * (1 - m) * S - rest) == 0
    case = stand_in(gamma=1 / math.sqrt(2 * 5), L=7, algorithm=stand_in(mu=2))  # the best step
    best = math.sqrt(7 / 2 - 1)
    assert theorem_g.slower(case) == pytest.approx(best / (1 + best), rel=1e-14)
    for times in (0.5, 2.0):
        assert theorem_g.slower(stand_in(gamma=times * case.gamma, L=7, algorithm=case.algorithm)) > best / (1 + best)


def test_theorem_i() -> None:
    """What is left of r^2 V - E V+ - 2 tau S: forms in A, in the means, and in the deviations."""
    m, A, t, ell, v = positive("m A t ell v")  # v is the variance of a cohort's mean over that of a client
    beta, eps, beta_j, eps_j = sp.symbols("beta epsilon beta_j epsilon_j", real=True)
    q, D = 1 + m, p * (1 + m) - m
    c, tau, e = m / D, (p - m) / D, m * (1 - p) / D
    eta, r2 = tau * v, 1 - p + p * t**2
    w = t + eta * (1 - t)
    k = tau * w / (p * t**2)
    a = A - c * beta
    moved = sp.symbols("moved", real=True)  # the mean over the cohort of the b_j - e_j, times gamma
    after = (a - beta) / q + moved + c * (beta - p * moved)
    assert sp.simplify(after - (A / q + tau * (moved - beta))) == 0
    squares = after.subs(moved, beta - eps) ** 2 + tau**2 * v * (beta_j - eps_j) ** 2
    new = squares + k * ((1 - p) * (beta**2 + beta_j**2) + p * (eps**2 + eps_j**2))
    d, d_j = (a - beta) / q + beta - eps, beta_j - eps_j
    S = A * eps / q - e * beta * eps + beta_j * eps_j - (1 + ell) * (eps**2 + eps_j**2)
    assert sp.simplify(S - (d * eps + d_j * eps_j - ell * (eps**2 + eps_j**2))) == 0
    rest = (r2 - 1 / q**2) * A**2
    rest += tau * (w * beta**2 + 2 * e * beta * eps + (2 + 2 * ell - tau - w / t**2) * eps**2)
    rest += tau * (t * (1 - eta) * beta_j**2 - 2 * (1 - eta) * beta_j * eps_j)
    rest += tau * (2 + 2 * ell - eta - w / t**2) * eps_j**2
    V = A**2 + k * (beta**2 + beta_j**2)
    assert sp.simplify(r2 * V - new - 2 * tau * S - rest) == 0
    least = sp.symbols("eta")  # with the least ell the forms are as in the proof
    ell_ = (1 / t - 1) + least * (1 / t - 1) ** 2 / 2
    w_ = t + least * (1 - t)
    assert sp.simplify(2 + 2 * ell_ - least - w_ / t**2 - (1 - least) / t) == 0
    assert sp.simplify(2 + 2 * ell_ - tau - w_ / t**2 - (1 - least * (1 - t) - tau * t) / t) == 0


def test_numbers_of_theorem_i() -> None:
    """They are those of the proof, for a step before r is 1/q and one after."""
    for m, times in ((0.1, 0.5), (0.1, 3.0)):
        N, P, ell = 5, 2, 0.3 / times
        p = P / N
        D = p * (1 + m) - m
        tau, e = (p - m) / D, m * (1 - p) / D
        eta = tau * (N - P) / (P * (N - 1))
        found = cohorts_of_fivegcs.numbers(m, p, N, ell)
        s = 1 / math.sqrt(1 - (1 - found.square) / p) - 1  # 1/t - 1
        assert s + eta * s * s / 2 <= ell * (1 + 1e-12)
        assert (found.square > (1 + m) ** -2) == (times == 3.0)
        if times == 3.0:
            assert s + eta * s * s / 2 == pytest.approx(ell, rel=1e-12)
        t = 1 / (1 + s)
        w = t + eta * (1 - t)
        assert found.moved == pytest.approx(m / D, rel=1e-14)
        assert found.weight == pytest.approx(tau * w / (p * t * t), rel=1e-12)
        assert found.fits == (w * (2 + 2 * (s + eta * s * s / 2) - tau - w / t**2) >= e * e)


def bernstein(expression: Any, x: Any, y: Any) -> list[Any]:
    """Return the coefficients of a polynomial in Bernstein's basis of the unit square: it lies between them."""
    found: Any = sp.Poly(sp.expand(expression), x, y)
    n, k = found.degree(x), found.degree(y)
    terms = found.terms()

    def part(i: int, j: int, a: int, b: int) -> Any:
        return sp.binomial(i, a) * sp.binomial(j, b) / (sp.binomial(n, a) * sp.binomial(k, b))

    return [
        sum(part(i, j, a, b) * c for (a, b), c in terms if a <= i and b <= j)
        for i in range(n + 1)
        for j in range(k + 1)
    ]


def test_cohorts_of_two_clients_meet_the_condition_of_theorem_i() -> None:
    """At both ends of the interval of eta it is a polynomial without negative coefficients, for 1/3 <= t <= r <= 1."""
    r, t, u, z, eta = sp.symbols("r t u z eta", positive=True)
    here = {p: (1 - r**2) / (1 - t**2)}
    m = 1 / r - 1
    D = p * (1 + m) - m
    tau, e = 1 - (1 - r**2) / (r + t**2), (r**2 - t**2) / (r + t**2)
    assert sp.simplify(((p - m) / D).subs(here) - tau) == 0
    assert sp.simplify((m * (1 - p) / D).subs(here) - e) == 0
    two = (r**2 - t**2) / (1 + r**2 - 2 * t**2)
    assert sp.simplify(((1 - p) / (2 - p)).subs(here) - two) == 0
    condition = (t + eta * (1 - t)) * (1 - eta * (1 - t) - tau * t) - t * e**2
    assert sp.simplify(sp.diff(condition, eta, 2) + 2 * (1 - t) ** 2) == 0  # concave
    box = {t: sp.Rational(1, 3) + sp.Rational(2, 3) * u}

    def nonnegative(polynomial: sp.Expr) -> bool:
        inside = polynomial.subs(r, t + (1 - t) * z).subs(box)
        return min(bernstein(inside, u, z)) >= 0

    none = sp.cancel(condition.subs(eta, 0) / t * (r + t**2) ** 2)
    assert nonnegative(none)
    pair = sp.cancel(condition.subs(eta, tau * two) * (r + t**2) ** 2 * (1 + r**2 - 2 * t**2) ** 2)
    H = sp.cancel((pair - (1 - t**2) ** 3 * (t**2 + 2 * t - 1) ** 2) / (1 - r))
    assert sp.denom(sp.together(H)) == 1
    assert nonnegative(H)
    one = sp.cancel(condition.subs(eta, tau) * (r + t**2) ** 2)  # of cohorts of one client
    there = {r: sp.Rational(97, 100), t: sp.Rational(1, 2)}
    assert one.subs(there) < 0 < tau.subs(there)


def test_theorem_i_at_the_best_step_of_theorem_g() -> None:
    """Its condition holds, and r is 1/q, for cohorts of two clients or more where kappa is at least 4."""
    for N in (2, 3, 5, 8, 20, 100, 10**5):
        for P in {2, 3, 5, N // 4, N // 2, N - 1} & set(range(2, N)):
            for kappa in (4.0, 5.0, 10.0, 100.0, 1e3, 1e5):
                m = best_step(1.0, kappa, P / N)
                found = cohorts_of_fivegcs.numbers(m, P / N, N, 1.0 / (m * (kappa - 1.0)))
                assert found.fits
                assert found.square == pytest.approx((1.0 + m) ** -2.0, rel=1e-14)
    m = best_step(1.0, 3.0, 2 / 3)
    assert cohorts_of_fivegcs.numbers(m, 2 / 3, 3, 1.0 / (2.0 * m)).square > (1.0 + m) ** -2.0


def test_constants_of_theorem_c() -> None:
    """The largest growth makes the first round an equality, and later ones have room."""
    g, n, alpha = positive("g n alpha")
    largest = sp.sqrt(alpha**2 + 2 * alpha * mu) - alpha
    assert_same(largest_growth(3.0, 2.0), sp.N(largest.subs({alpha: 3, mu: 2})))
    room = (alpha + n * g) ** 2 + 2 * mu * (alpha + n * g) - (alpha + (n + 1) * g) ** 2
    assert sp.simplify(room.subs(n, 0).subs(g, largest)) == 0
    assert sp.simplify(room - room.subs(n, 0) - 2 * n * g * (mu - g)) == 0
    values = {alpha: sp.Rational(1, 3), mu: 2}
    assert largest.subs(values) < mu.subs(values)


def test_one_round_of_theorem_f() -> None:
    """The terms with the new z of all clients and of the cohort, as they follow from the minimum and from (a)."""
    t, nu, q, old, full = positive("t nu q old full")
    after = (1 - p) * old + p * full  # E|z+ - xi*|^2
    gained = t * (t / (2 * nu) * old - (t / nu + q / nu) / 2 * full)  # of the bracket, beyond E_d*
    case = stand_in(fraction=p, algorithm=stand_in(rho=q / (1 + q), nu=nu))
    K = theorem_f.weight(case, t)
    assert_same(K, t * (t + q) / (2 * p * nu))
    assert sp.expand(sp.simplify(gained + K * after - (K - q * t / (2 * nu)) * old)) == 0
    # (a): |sum over S|^2 <= P sum over S, P = p N, with h = |.|^2/(2 N nu), of steps t/p times z~ - z
    N = positive("N")
    assert sp.simplify(p * (p * N) / (2 * N * nu) * (t / p) ** 2 - t * t / (2 * nu)) == 0


def test_steps_of_theorem_f() -> None:
    """(3) is that K fits, and next_step solves it; the first bracket is K(p) - q p/(2 nu)."""
    t, u, nu, q = positive("t u nu q")
    case = stand_in(fraction=p, algorithm=stand_in(rho=q / (1 + q), nu=nu))
    fits = theorem_f.weight(case, u) - q * u / (2 * nu) - (1 - u) * theorem_f.weight(case, t)
    recursion = u**2 + q * (1 - p) * u - (1 - u) * (t**2 + q * t)
    assert sp.simplify(fits * 2 * p * nu - recursion) == 0
    first = theorem_f.weight(case, p) - q * p / (2 * nu)
    assert sp.simplify(first - (p + q * (1 - p)) / (2 * nu)) == 0
    rho, fraction, start = sp.Rational(1, 50), sp.Rational(2, 5), sp.Rational(3, 10)
    values = {q: rho / (1 - rho), p: fraction, t: start}
    (root,) = (x for x in sp.solve(recursion.subs(values), u) if x > 0)
    assert_same(next_step(float(start), float(rho), float(fraction)), root)
    limit = 2 * p / (1 + sp.sqrt(1 + 4 * p / q))
    assert_same(last_step(float(rho), float(fraction)), limit.subs(values))
    assert sp.simplify(limit**2 + q * limit - p * q) == 0


def test_distances_of_theorem_f() -> None:
    """h and the strong convexity of the conjugates, in the distance of the model."""
    N, nu, rho = positive("N nu rho")
    sigma = rho / (1 - rho) / nu
    total = N * nu / 2 + sigma / 2 * (N * nu) ** 2 / N  # |sum of N|^2 <= N sum of squares
    assert sp.simplify(total - N * nu / (2 * (1 - rho))) == 0


def test_distances_of_theorem_f_with_scales() -> None:
    """The same with nu_j: the least of the strongly convex terms for a given sum is where e_j is as nu_j."""
    nus, e, rho, s = positive("nu_0 nu_1 nu_2"), sp.symbols("e_0:3", real=True), positive("rho"), sp.Symbol("s")
    total, q = sum(nus), rho / (1 - rho)
    convex: Any = sum(q / (2 * nu) * x**2 for nu, x in zip(nus, e, strict=True))
    best = [s * nu / total for nu in nus]
    slack = sp.symbols("d_0:2", real=True)  # any other point with the sum s is no better: a square is added
    other = [best[0] + slack[0], best[1] + slack[1], best[2] - slack[0] - slack[1]]
    least = convex.subs(dict(zip(e, best, strict=True)))
    more = sum(q / (2 * nu) * x**2 for nu, x in zip(nus, (slack[0], slack[1], slack[0] + slack[1]), strict=True))
    assert sp.simplify(convex.subs(dict(zip(e, other, strict=True))) - least - more) == 0
    distance = s / total  # theta = -sum xi_j / sum nu_j
    assert sp.simplify(s**2 / (2 * total) + least - total / (2 * (1 - rho)) * distance**2) == 0


@pytest.mark.parametrize("kind", [DualFL, OptimizedDualFL])
def test_bounds_with_one_parameter_for_each_client(kind: type) -> None:
    """The dual error is at most |xi*|^2 2/(n + 1)^2 or |xi*|^2 (1 - rho)/A_n over 1 - rho, in the weighted norm."""
    f = lopsided()
    case = scaled_dualfl.scaled_case(f, kind, 4, rho=0.0 if kind is DualFL else None)
    nu = np.array([0.5, 1.0, 6.0, 0.8])
    first = f.subgradients - nu[:, None] * f.theta if kind is DualFL else f.subgradients
    norm = sum(float(xi @ xi) / weight for xi, weight in zip(first, nu, strict=True))
    rho = case.algorithm.rho
    for n, A, found in zip(range(1, 5), growths(rho), scaled_dualfl.scaled_dualfl(case), strict=False):
        error = 2.0 / (n + 1) ** 2 * norm if kind is DualFL else norm / ((1.0 - rho) * A)
        gained = float(np.sum(nu)) / (2.0 * (1.0 - rho))  # times |theta - theta*|^2 is at most the error
        assert_same(found.rhs, error / gained)


def test_one_solution_of_acc_s_dane() -> None:
    """(1): with two clients, E = h |.|^2/2 and d_j = +-(c |.|^2/2 + e .), the difference is a sum of squares."""
    w, h, c, e, y = sp.symbols("w h c e y", real=True)
    u, local = sp.symbols("u"), []
    f = [h * u**2 / 2 + sign * (c * u**2 / 2 + e * u) for sign in (1, -1)]
    slopes = [sp.diff(part, u) for part in f]
    g = sum(slopes) / 2
    for slope in slopes:
        linear = (g - slope).subs(u, y)
        local.append(sp.solve(slope + linear + w * (u - y), u)[0])
    mean = sum(local) / 2
    gradients = [slope.subs(u, x) for slope, x in zip(slopes, local, strict=True)]
    assert sp.simplify(sum(gradients) / 2 - w * (y - mean)) == 0  # the third vector
    parts = [part.subs(u, x) + s * (mean - x) for part, x, s in zip(f, local, gradients, strict=True)]
    Q = sum(parts) / 2 + w / 2 * (mean - y) ** 2
    V = sum((x - mean) ** 2 for x in local) / 2
    moved = [(x - y) ** 2 for x in local]
    claimed = (w + h) / 2 * V + c / 4 * (moved[0] - moved[1]) + w / 4 * sum(moved)
    difference = Q - sum(part.subs(u, mean) for part in f) / 2 - claimed
    assert sp.simplify(difference) == 0
    assert sp.simplify(difference + w / 4 * sum(moved)) != 0


def test_one_iteration_of_acc_s_dane() -> None:
    """The minimum of psi and its curvature, and the numbers of the first and of late iterations."""
    w, alpha, v, gradient, x = sp.symbols("w alpha v gradient x", real=True)
    u = sp.symbols("u")
    psi = w * alpha**2 / 2 * (u - v) ** 2 + alpha * (gradient * u + mu / 2 * (u - x) ** 2)  # b (1 - alpha) = w alpha^2
    least = sp.solve(sp.diff(psi, u), u)[0]
    claimed = (w * alpha * v + mu * x - gradient) / (w * alpha + mu)
    assert sp.simplify(least - claimed) == 0
    assert sp.simplify(sp.diff(psi, u, 2) - (w * alpha**2 + mu * alpha)) == 0
    for weight, strong in ((2.0, 0.5), (7.0, 1e-3)):
        late = 1.0 - limit_factor(weight, strong)
        assert_same(weight * late**2 + strong * late, strong)
        assert_same(growth(np.inf, weight, strong)[1], weight + strong)
        assert_same(growth(strong, weight, strong)[1], strong)
    assert accelerated_dane.growth is growth


def test_shares_of_adaptive_acc_s_dane() -> None:
    """The bound with Bregman distances, the least value of the estimate, and the quadratic equation of the share."""
    u, v, b, share, h, fall = sp.symbols("u v b share h fall", real=True)
    x, f, slope = (sp.symbols(f"{name}:2", real=True) for name in "xfs")
    mean, at_mean = sum(x) / 2, sp.symbols("m:2", real=True)
    lower = sum(f[j] + slope[j] * (u - x[j]) + mu / 2 * (u - x[j]) ** 2 for j in (0, 1)) / 2
    excess = sum(at_mean[j] - f[j] - slope[j] * (mean - x[j]) - mu / 2 * (mean - x[j]) ** 2 for j in (0, 1)) / 2
    bound = sum(at_mean) / 2 - excess + sum(slope) / 2 * (u - mean) + mu / 2 * (u - mean) ** 2
    assert sp.simplify(bound - lower) == 0
    assert sp.simplify(bound + 2 * excess - lower) != 0
    height, gradient = sp.symbols("height gradient", real=True)  # of the bound at v, above E at the new point
    curvature = (1 - share) * b + share * mu
    estimate = (1 - share) * (h + fall + b / 2 * (u - v) ** 2)
    estimate += share * (height + gradient * (u - v) + mu / 2 * (u - v) ** 2)
    least = estimate.subs(u, v - share / curvature * gradient)
    assert sp.simplify(sp.diff(estimate, u).subs(u, v - share / curvature * gradient)) == 0
    assert sp.simplify(least - (1 - share) * (h + fall) - share * height + share**2 * gradient**2 / 2 / curvature) == 0
    c0, c1, c2 = 2 * h * b, 2 * ((height - h) * b - h * (b - mu)), 2 * (height - h) * (b - mu) + gradient**2
    assert sp.simplify(2 * curvature * least.subs(fall, 0) - (c0 + c1 * share - c2 * share**2)) == 0
    late, heavy = 1.0 - limit_factor(14.0, 0.5), 14.0
    assert_same(heavy * late**2 + 0.5 * late, 0.5)
    rules = adaptive_dane.WEIGHTS
    assert_same(rules["rise"], adaptive_acc_s_dane.RISE)
    assert_same(1.0 / rules["first fall"], adaptive_acc_s_dane.FIRST_FALL)
    assert_same(1.0 / rules["fall"], adaptive_acc_s_dane.FALL)


def test_constants_of_giant() -> None:
    """Armijo's rule at the longest step, and Kantorovich's bound with a share r of the best step."""
    t, c, slope, w = positive("t c slope w")
    bound = -t * slope * (1 - t * L / (2 * (mu + w)))  # of the change of E
    longest = 2 * (1 - c) * (mu + w) / L
    assert sp.simplify(bound.subs(t, longest) + c * longest * slope) == 0
    case = stand_in(mu=0.5, L=10.0, algorithm=stand_in(weight=0.25, relaxation=0.2, steps=(1.0, 0.25)))
    assert_same(giant.shortest_step(case), 0.1 * float(longest.subs({c: 1e-4, mu: 0.5, w: 0.25, L: 10.0})))
    r, k, rho = positive("r k rho")
    kept = 1 - r * (2 - r) * 4 * k / (k + 1) ** 2  # of E - E*, by Kantorovich's inequality
    assert sp.simplify(kept.subs(r, 1) - ((k - 1) / (k + 1)) ** 2) == 0
    assert_same(sp.simplify(kept.subs(r, 1 - rho)), rho**2 + (1 - rho**2) * ((k - 1) / (k + 1)) ** 2)


def test_constants_of_dual_ascent() -> None:
    """One coordinate of f_j = h |.|^2/2, mu <= h <= L, and for any loss a D with a kink that is smoothed."""
    nu, h, z, best = positive("nu h z best")
    D = nu**2 * z**2 / (2 * h) - nu * best * z  # f_j*(nu z), with a multiplier for the sum of the parts
    least = sp.solve(sp.diff(D, z), z)[0]
    after = z - sp.diff(D, z) / nu
    assert_same(sp.simplify((after - least) / (z - least)), 1 - nu / h)  # at most 1 - nu/L in size, as nu <= mu <= h
    assert_same(sp.simplify((nu * z / h - nu * least / h) / (z - least)), nu / h)  # theta_j - theta*: at most 1
    m, R, n = positive("m R n")
    slope = nu * R / (2 * m + 1)  # of nu-smooth D = slope |x| - slope^2/(2 nu) beyond slope/nu
    last = R - m * slope / nu  # after m steps of length 1/nu, still beyond
    assert sp.simplify(last - slope / nu - m * R / (2 * m + 1)) == 0
    attained = sp.simplify(slope * last - slope**2 / (2 * nu))
    assert_same(attained, nu * R**2 / (4 * m + 2))
    # nu N/2 |theta - theta*|^2 is at most D
    assert_same(sp.simplify(attained.subs(m, n - 1) * 2 / nu), R**2 / (2 * n - 1))


def test_constants_of_the_dual_lbfgs() -> None:
    """For one coordinate of f_j = h |.|^2/2: the fall of a plain step, the error by the gradient, and (3)."""
    nu, h, zeta, least, z = positive("nu h zeta least z")
    D = nu * z**2 / (2 * h) - least * z  # f_j*(nu z)/nu, with a multiplier for the sum of the parts
    q = sp.diff(D, z)
    plain = sp.factor((D - D.subs(z, z - q)) / q**2)
    assert sp.simplify(plain - (1 - nu / (2 * h))) == 0
    assert_same(plain.subs(h, nu), sp.Rational(1, 2))
    minimum = sp.solve(q, z)[0]
    assert_same(sp.simplify(q**2 / (D - D.subs(z, minimum))).subs(h, L), 2 * nu / L)
    theta, best = nu * zeta / h, nu * least / h  # gradients of f_j* at nu zeta and at the solution
    fenchel = (nu * zeta) ** 2 / (2 * h) - (nu * least) ** 2 / (2 * h) - best * nu * (zeta - least)
    assert_same(sp.simplify(fenchel / (theta - best) ** 2), h / 2)
