"""The constants of the A-FedPD paper, derived again from the inequalities of the proofs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy as sp

from dualopt.lab.claims import Inequality
from dualopt.losses import Squared
from dualopt.objectives import LocalProblem, linear_model
from tests.theory._symbolic import assert_same, compared, expects, first, positive, squares, stand_in
from theory.afedpd import inexact, optimization, stability

L, rho, N, P = positive("L rho N P")
R, J, S, E2, D2, s, D, V = positive("R J S E2 D2 s D V")
m = positive("m")


# Lemma 2: rho (theta_j - bar theta) is a sum of four terms.


class Rounds(list):
    """One round, also for a claim that leaves out the first."""

    def __getitem__(self, index: Any) -> Any:
        return self


@pytest.fixture
def one_round(monkeypatch: pytest.MonkeyPatch) -> None:
    step = stand_in(n=1, spread=R, before=stand_in(bar=None))
    monkeypatch.setattr(optimization, "path", lambda case: Rounds([step]))
    monkeypatch.setattr(optimization, "J", lambda step: J)
    monkeypatch.setattr(optimization, "errors", lambda case, step: E2)


def test_lemma_2(one_round: None) -> None:
    bound = squares(L**2 * R, L**2 * J, S, E2) / rho**2
    own = 4 * L**2 * R / rho**2
    q = first(optimization.lemma_2, L=L, rho=rho, squared_gradient=lambda _: S)
    assert_same(q.lhs, R - own)
    assert_same(q.rhs, sp.expand(bound - own))
    form = stand_in(case=stand_in(L=L, rho=rho, squared_gradient=lambda _: S), printed=False)
    (q,) = compared(optimization.a2_gradient_in_lemma_2, form)
    for term in (S, E2):
        assert_same(sp.expand(q.rhs).coeff(term), sp.expand(bound).coeff(term))
    (q,) = compared(optimization.a8_idle_clients, form)
    # the erratum has twice the J of the lemma, as printed
    assert_same(q.rhs, sp.expand(bound - own + 4 * L**2 * J / rho**2))


def test_lemma_3(monkeypatch: pytest.MonkeyPatch) -> None:
    """E|theta_j - bar|^2 is the variance V and that of the mean of P of N, V/P (N-P)/(N-1), at most V each."""
    sampled = V + V / P * (N - P) / (N - 1)
    step = stand_in(n=1, spread=R, all_solutions=np.zeros((2, 1)), E=expects(lambda quantity: sp.Integer(0)))
    monkeypatch.setattr(optimization, "path", lambda case: [step])
    monkeypatch.setattr(optimization, "mean_square", lambda x: V)
    printed, sharp = compared(optimization.lemma_3, fraction=P / N, n_clients=N)
    assert_same(sharp.rhs, sampled)
    assert_same(printed.rhs, 2 * sampled.subs(P, 1).subs(V, R))  # the paper bounds two squares by twice their sum


# Theorem 1 at full participation.


def test_descent_and_gradient() -> None:
    """Minimisation gains (rho - L)/2 D^2, the dual step costs rho (L/rho)^2 D^2, the server gains rho/2 s^2."""
    c = (rho - L) / 2 - rho * (L / rho) ** 2
    assert_same(optimization.descent_constant(rho, L), c)
    (root,) = sp.solve(sp.factor(c * rho), rho)
    assert_same(root, 2 * L)
    # |grad E| <= sqrt(L^2 + rho^2) (L/rho) D + rho s, and (x + y)^2 <= (x^2/A + y^2/B)(A + B) with the falls as
    # x^2/A and y^2/B
    A, B = (L**2 + rho**2) * (L / rho) ** 2 / c, rho**2 / (rho / 2)
    assert_same(optimization.gradient_constant(rho, L), A + B)


def test_cauchy_and_schwarz() -> None:
    """L sqrt(V) + rho m is largest, for V + m^2 = 1, at sqrt(L^2 + rho^2)."""
    angle = sp.Symbol("angle")
    at = sp.atan(rho / L)
    value = (L * sp.cos(angle) + rho * sp.sin(angle)).subs(angle, at)
    assert_same(value, sp.sqrt(L**2 + rho**2))


def test_theorem_1_is_put_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the first round -(rho - L)/2 of the minimisation, for duals that are zero, and rho of the dual step remain."""
    monkeypatch.setattr(optimization, "path", lambda case: [stand_in(spread=R)])
    found = optimization.proved(stand_in(rho=rho, L=L, theta0=None, error=lambda _: S))
    C = optimization.gradient_constant(rho, L)
    assert_same(found, C * (S + (rho - (rho - L) / 2) * R) + (L**2 + rho**2) * R)


# Theorem 1 with inexact local solutions, at full participation.

e = positive("e")


def one_client(h: int, r: float, r_before: float) -> tuple[Any, Any, list[Any]]:
    """Return a round of the client h x^2/2 for rho = 3 from x = 0 and theta = 1/2: before, after, and residuals."""
    theta, dual = 0.5, r_before
    x_new = (r - dual + 3 * theta) / (h + 3)
    dual_new = dual + 3 * (x_new - theta)
    theta_new = x_new + dual_new / 3
    states = [(0.0, dual, theta), (x_new, dual_new, theta_new)]
    before, after = (
        stand_in(points=np.array([[x]]), duals=np.array([[y]]), theta=np.array([z]), bar=np.array([x]))
        for x, y, z in states
    )
    return before, after, [np.array([[of]]) for of in (r_before, r)]


@pytest.mark.parametrize(("h", "r", "attained"), [(-1, 0.25, "(1)"), (1, -0.25, "(3)")], ids=["concave", "convex"])
def test_descent_with_errors(h: int, r: float, attained: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exact rounds of one client, whose curvature is L = 1 or -L, attain (1) or (3)."""
    before, after, (last, now) = one_client(h, r, -0.5)
    steps = [stand_in(residuals=last), stand_in(n=1, before=before, taken=after, residuals=now)]
    monkeypatch.setattr(inexact, "path", lambda case: steps)
    energy = lambda theta: 0.5 * h * float(np.sum(theta**2))  # noqa: E731
    objective = stand_in(value=lambda points: 0.5 * h * np.sum(points**2, axis=-1))
    known = {"rho": 3.0, "L": 1.0, "objective": objective, "lowest": -1.0, "error": lambda x: energy(x) + 1.0}
    found = {q.what: q for q in compared(inexact.descent_inexact, **known, squared_gradient=lambda x: float(x @ x))}
    moved, away = (x.item() for x in (after.points - before.points, after.theta - before.theta))
    distance = sp.Abs(moved) + sp.Abs(r) + 0.5  # the duals' step: L D + e + e_before
    assert_same(found["(1)"].lhs, sp.Rational(3 - 1, 2) * moved**2 + sp.Rational(3, 2) * away**2)
    # V + m^2 <= distance^2/rho^2, L sqrt(V) + rho m is at most sqrt(L^2 + rho^2) times its root
    assert_same(found["(2)"].rhs, sp.sqrt(1 + 9) * distance / 3 + 3 * sp.Abs(away) + sp.Abs(r))
    assert all(q.lhs <= q.rhs * (1 + 1e-12) for q in found.values())
    assert_same(found[attained].lhs, found[attained].rhs)


def constants_with_errors() -> tuple[Any, Any]:
    """Return k and C: c/2 D^2 + rho/2 s^2 <= fall + k e^2, and |grad E|^2 <= C (fall + 2 k e^2)."""
    c = (rho - L) / 2 - rho * (L / rho) ** 2
    rest = e * D + (L * D + 2 * e) ** 2 / rho - (rho - L) / 2 * D**2 + c / 2 * D**2
    (largest,) = sp.solve(sp.diff(rest, D), D)
    k = sp.simplify(rest.subs(D, largest) / e**2)
    gradient = sp.expand(sp.sqrt(L**2 + rho**2) / rho * (L * D + 2 * e) + rho * s + e)
    # (x + y + z)^2 <= (x^2/A + y^2/B + z^2/C)(A + B + C) with the three terms on the left, and k e^2, in the brackets
    return k, gradient.coeff(D) ** 2 / (c / 2) + rho**2 / (rho / 2) + gradient.coeff(e) ** 2 / k


def test_theorem_1_with_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sum over the rounds; the first one from zero duals, and the Lagrangian in the end from below."""
    k, C = constants_with_errors()
    assert_same(inexact.error_constant(rho, L), k)
    d = positive("d")
    (lowest,) = sp.solve(sp.diff((rho - L) / 2 * d**2 - e * d, d), d)
    below = -((rho - L) / 2 * lowest**2 - e * lowest)
    lagrangians = S + (rho - (rho - L) / 2) * R + e * sp.sqrt(R) + below
    at = {rho: 3, L: 1, R: sp.Rational(7, 10), S: 2, e: sp.Rational(3, 10)}
    start = (C * lagrangians + (sp.sqrt((L**2 + rho**2) * R) + e) ** 2).subs(at)
    error = (2 * k * C * e**2).subs(at)
    step = stand_in(spread=0.7, taken=stand_in(bar=None))
    monkeypatch.setattr(inexact, "path", lambda case: [step, step, step])
    known = {"rho": 3.0, "L": 1.0, "theta0": None, "error": lambda _: 2.0, "squared_gradient": lambda _: 1.0}
    case = stand_in(**known, algorithm=stand_in(stop=stand_in(tol=0.3)))
    for found in inexact.proved_inexact(case, 0.09), inexact.proved_inexact(case, 0.0):
        if found[1]:
            assert_same(found[0], start)
            assert_same(found[1], error)
    for claim, of in ((inexact.theorem_1_inexact, case), (inexact.a9_error_term, stand_in(case=case, printed=False))):
        for q in compared(claim, of):
            assert_same(q.rhs, start / q.n + error)


def test_remark_1_1(monkeypatch: pytest.MonkeyPatch) -> None:
    """Means that are as large as Theorem 1 admits, B/T, reach epsilon in round B/epsilon rounded up."""
    monkeypatch.setattr(inexact, "proved", lambda case: 6.0)
    monkeypatch.setattr(
        inexact, "theorem_1", lambda case: (Inequality(T, 6.0 / T, 6.0 / T, "") for T in range(1, 3000))
    )
    found = compared(inexact.remark_1_1, rounds=2999)
    assert len(found) == 12
    for q in found:
        assert_same(q.rhs - 1, q.lhs)


def test_steps_of_remark_1_2() -> None:
    """E|x - x*|^2 <= Q/n for n = k + k_0, by induction with steps that are 1/(2M) at first."""
    k, k_0, M, Q, n = positive("k k_0 M Q n")
    (shift,) = sp.solve(2 / (m * k_0) * M - sp.Rational(1, 2), k_0)
    assert_same(inexact.decreasing_step(k, m=m, M=M), 2 / (m * (k + shift)))
    length = 2 / (m * n)
    after = (1 - length * m) * Q / n + 2 * length**2 * Q * m**2 / 8  # 8 sigma^2/m^2 <= Q
    assert sp.simplify(Q / (n + 1) - after - Q / (n**2 * (n + 1))) == 0


@pytest.mark.parametrize(("start", "Q"), [(0.0, 8 * sp.Rational(1, 4)), (10.0, 8 * 100)], ids=["noise", "far away"])
def test_remark_1_2(start: float, Q: Any) -> None:
    """Two rows with gradients x - 1 and x + 1, and rho = 3: m = 2, M = 4, k_0 = 8, sigma = 1."""
    f = linear_model(np.ones((2, 1)), np.array([1.0, -1.0]), loss=Squared(), mu=0.0, clients=1, intercept=False)
    zero = np.zeros((1, 1))
    problem = LocalProblem(objective=f, linear=zero, weight=3.0, center=zero)
    case = inexact.RowsCase(name="", problem=problem, start=zero + start, steps=50)
    found = compared(inexact.remark_1_2, case)
    bounds = [q for q in found if q.what == "E|grad F|^2"]
    for q in bounds:
        assert_same(q.rhs, 4**2 * Q / (q.n + 8))
    counts = [q for q in found if q.what != "E|grad F|^2"]
    assert counts
    for q in counts:
        assert_same(q.rhs - 1, 4**2 * Q / (bounds[0].lhs * 0.5**q.n))


# Stability: Lemmas 4 to 6 and the recursion.

Delta, sigma, delta, pi_, eta, K, G, size, x = positive("Delta sigma delta pi eta K G size x")


def test_chance_of_a_meeting() -> None:
    """A client is active with probability P/N and draws K of S rows: 1 - (1 - 1/S)^K of them, at most K/S."""
    for K_, S_ in ((2, 4), (5, 4)):
        case = stability.Sampling("", 2, 5, S_, K_)
        assert_same(stability.chance_of_a_meeting(case), sp.Rational(2, 5) * (1 - (1 - sp.Rational(1, S_)) ** K_))
        found = compared(stability.a5_draws_of_a_round, stand_in(case=case, printed=False))
        for q in found:
            assert_same(q.rhs, sp.Rational(2, 5) * sp.Rational(K_, S_) * q.n)


@pytest.mark.parametrize("steps", [1, 4])
def test_local_updates(monkeypatch: pytest.MonkeyPatch, steps: int) -> None:
    """Lemmas 5 and 6: a step multiplies by 1 - eta (rho - L) and adds eta times the pull; or Bernoulli."""
    length, weight, smooth = sp.Rational(1, 10), 3, 1
    moved = sp.Integer(0)
    for _ in range(steps):
        moved = (1 - length * (weight - smooth)) * moved + length
    node = stand_in(models=lambda: (np.ones(1), np.zeros(1)), duals=lambda: (np.zeros((1, 1)), np.zeros((1, 1))))
    level = stand_in(n=0, nodes=[node], moved=[np.zeros(1)])
    monkeypatch.setattr(stability, "levels", lambda case: [level, None])
    solver = stand_in(length=lambda n: 0.1)
    case = stand_in(
        local_steps=steps, rho=3.0, L=1.0, G=6.0, size=4, differs=(0, 0), n_clients=1, algorithm=stand_in(solver=solver)
    )
    same_row = list(stability.local_updates(case, [0], 0.0))
    assert_same(same_row[0].rhs, length * steps)
    assert_same(same_row[1].rhs, moved)
    other_row = compared(stability.lemma_6, case)  # gradients of two rows differ by 2 G, with probability 1/S
    assert_same(other_row[0].rhs, length * steps * (1 + sp.Rational(2 * 6, 4)))


def test_remark_2_1(monkeypatch: pytest.MonkeyPatch) -> None:
    """The steps of Lemma 5 without end: a geometric sum; two clients, of which the second has another row."""
    (total,) = sp.solve(x - (1 - eta * (rho - L)) * x - eta, x)  # of the sum and the sum from its second term on
    bound = sp.simplify(total)
    at = {rho: 3, L: 1}
    duals = (np.zeros((2, 1)), np.array([[5.0], [7.0]]))
    node = stand_in(models=lambda: (np.ones(1), np.zeros(1)), duals=lambda: duals)
    monkeypatch.setattr(stability, "levels", lambda case: [stand_in(nodes=[node], moved=[np.zeros(2)])])
    monkeypatch.setattr(stability, "local_recursion", lambda case: ())
    known = {"rho": 3.0, "L": 1.0, "G": 6.0, "size": 4, "differs": (1, 0), "n_clients": 2, "local_steps": 2}
    first, second = compared(stability.remark_2_1, **known)
    assert_same(first.rhs, bound.subs(at) * (1 + 5))
    assert_same(second.rhs, bound.subs(at) * (1 + 7 + sp.Rational(2 * 6, 4)))  # gradients of two rows differ by 2 G


def test_larger_root() -> None:
    """The condition on alpha, at equality, is L x^2 - rho x - (L + rho + 1/(eta K)) = 0 for x = alpha rho."""
    step = eta * K
    condition = (x - 1) / rho - (x / rho + (1 + x) * step) / (1 + (1 + x) * step * L)
    polynomial = sp.Poly(sp.numer(sp.together(condition)), x)
    (unit,) = {sp.simplify(c) for c in [polynomial.coeff_monomial(x**2) / L]}
    expected = L * x**2 - rho * x - (L + rho + 1 / step)
    assert sp.simplify(polynomial.as_expr() / unit - expected) == 0
    for values in ({L: 1, rho: 2, eta: sp.Rational(1, 4), K: 1}, {L: sp.Rational(1, 10), rho: 3, eta: 1, K: 2}):
        root = max(sp.solve(expected.subs(values), x))
        numbers = [float(values[v]) for v in (rho, L, eta)]
        assert_same(stability.larger_root(numbers[0], numbers[1], numbers[2] * values[K]), root)


def test_bound_of_the_larger_root() -> None:
    """sqrt(x^2 + y^2) <= x + y in the root of the polynomial."""
    step = positive("step")
    root = (rho + (rho + 2 * L) + sp.sqrt(4 * L / step)) / (2 * L)
    form = stand_in(case=stability.Coefficients("", 3.0, 2.0, 0.1), printed=False)
    (q,) = compared(stability.a6_larger_root, form)
    values = {rho: 3, L: 2, step: sp.Rational(1, 10)}
    assert_same(q.rhs, root.subs(values))
    assert_same(
        q.lhs,
        max(sp.solve(L * x**2 - rho * x - (L + rho + 1 / step), x), key=lambda r: sp.N(r.subs(values))).subs(values),
    )


def test_recursion(monkeypatch: pytest.MonkeyPatch) -> None:
    """The four inequalities with the weights 1, alpha, 1 and gamma: what is left has the factor 1 + gamma eta K L."""
    alpha = positive("alpha")
    gamma = 1 + alpha * rho
    new_sigma = sigma + rho * pi_
    differing = 2 * eta * K * G / (N * size)
    new_pi = eta * K * (L * Delta + sigma) + differing
    new = (pi_ + Delta) + new_sigma / rho + (alpha - 1 / rho) * new_sigma  # Delta' + (alpha - 1/rho) sigma'
    total = sp.expand(new.subs(pi_, new_pi))
    assert_same(total.coeff(Delta), 1 + gamma * eta * K * L)
    assert_same(total.subs({Delta: 0, sigma: 0}), gamma * differing)
    old, after = (stability.Distances(*numbers) for numbers in ((Delta, sigma, pi_, delta), (R, J, S, V)))
    monkeypatch.setattr(stability, "distances", lambda level: level)
    monkeypatch.setattr(stability, "levels", lambda case: [old, after])
    monkeypatch.setattr(stability.Distances, "n", 0, raising=False)
    monkeypatch.setattr(stability, "gamma", lambda case: gamma)
    solver = stand_in(length=lambda n: eta, decayed=False)
    known = {"local_steps": K, "L": L, "rho": rho, "G": G, "n_clients": N, "size": size}
    found = {q.what: q for q in compared(stability.recursion, **known, algorithm=stand_in(solver=solver))}
    assert_same(found["Delta"].rhs, delta + J / rho)
    assert_same(found["sigma"].rhs, new_sigma)
    assert_same(found["delta"].rhs, pi_ + Delta)
    assert_same(found["pi"].rhs, new_pi)
    weighted = Delta + (alpha - 1 / rho) * sigma
    assert_same(found["Delta + (alpha - 1/rho) sigma"].rhs, (1 + gamma * eta * K * L) * weighted + gamma * differing)
    # Psi' <= (1 + g) Psi + g c from Psi = 0: c ((1 + g)^(n + 1) - 1), with eta K L = 1
    last = found["2 G (1 + gamma)^T / (L N S)"].rhs
    assert_same(last, differing / (eta * K * L) * (1 + gamma))


def test_theorem_2(monkeypatch: pytest.MonkeyPatch) -> None:
    """From tau_0 on Delta^T <= 2 G/(L N S) (T/tau_0)^(mu L); a loss differs by G Delta, or by H if the row was met."""
    monkeypatch.setattr(stability, "loss_difference", lambda case: 0.0)
    monkeypatch.setattr(stability, "largest_loss", lambda case: 1.5)
    monkeypatch.setattr(stability, "gamma", lambda case: 2.0)
    solver = stand_in(step=0.25)
    known = {"G": 3.0, "L": 1.0, "rounds": 40, "n_clients": 5, "size": 4, "active": 2, "local_steps": 2}
    closed, best = compared(stability.theorem_2, **known, algorithm=stand_in(solver=solver))
    tau, power, rows, drawn = positive("tau"), sp.Integer(1), 20, 4  # mu L = gamma eta_0 K L
    late, early = 2 * sp.Integer(3) ** 2 * (40 / tau) ** power, sp.Rational(3, 2) * drawn * tau
    assert_same(best.rhs, min((late + early).subs(tau, k) for k in range(1, 41)) / rows)
    (split,) = sp.solve(late - early, tau)
    assert 1 <= split <= 39
    assert_same(closed.rhs, 3 * early.subs(tau, split) / rows)  # the split rounded up at most doubles the second term
    assert best.rhs <= closed.rhs
