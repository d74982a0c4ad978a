"""The constants of the DualFL paper, derived again from the inequalities of the proofs."""

from __future__ import annotations

import math
from itertools import islice
from typing import Any

import numpy as np
import pytest
import sympy as sp

from dualopt.methods.dualfl import momentum
from dualopt.objectives import Quadratic
from tests.theory._symbolic import assert_same, compared, positive, stand_in
from theory.dualfl import exact_solutions, inexact_solutions, local_steps, regularised
from theory.dualfl._runs import initial_bound, weighted_distance

rho, nu, t, new, mu, L, N = positive("rho nu t new mu L N")
w, u, v, S = positive("w u v S")

STRENGTH = rho / (1 - rho)  # nu times the strong convexity of G_d
RHOS = (sp.Integer(0), sp.Rational(1, 100), sp.Rational(1, 4), sp.Rational(9, 10))


# The momentum (3.4): what makes the potential t^2 d + c |w|^2/(2 nu) telescope, w = x - xi* + (t - 1)(x - x_previous).


def test_momentum_follows_from_the_potential() -> None:
    """With z = (1 - 1/t) x + xi*/t: |t (y - z)|^2 - nu m (t - 1)|x - xi*|^2 <= (1 - rho t) c |w|^2, a square."""
    beta = sp.Symbol("beta")
    step = v / (t - 1)  # x - x_previous, so that w = u + v
    left = (u + new * beta * step) ** 2 - STRENGTH * (new - 1) * u**2
    right = (1 - rho * new) / (1 - rho) * (u + v) ** 2
    # the difference must be a square in v alone: no u^2, no u v
    difference = sp.Poly(sp.expand(right - left), u, v)
    assert sp.simplify(difference.coeff_monomial(u**2)) == 0
    (matching,) = sp.solve(difference.coeff_monomial(u * v), beta)
    q = STRENGTH * (new - 1)
    assert sp.simplify(difference.coeff_monomial(v**2).subs(beta, matching) - q * (1 - q)) == 0  # 0 <= q <= 1
    telescoping = sp.Eq(
        new**2 - new, (1 - rho * new) * t**2
    )  # the factor of the old dual error is t^2 - t, of w 1 - rho t
    (root,) = [r for r in sp.solve(telescoping, new) if sp.N(r.subs({rho: 0.1, t: 2})) > 0]
    for r in RHOS:
        now = 1.0
        for _ in range(4):
            following, used = momentum(now, float(r))
            exact = sp.nsimplify(now)
            assert_same(following, root.subs({rho: r, t: exact}))
            if now > 1:
                assert_same(used, matching.subs({rho: r, t: exact, new: root.subs({rho: r, t: exact})}))
            else:
                assert used == 0
            now = following


def test_rates() -> None:
    """1 - 1/t <= 1 - sqrt(rho) as t = 1/sqrt(rho) is the fixed point; for rho = 0 t grows by 1/2 at least."""
    (fixed,) = sp.solve(sp.Eq(new**2 - new, (1 - rho * new) * new**2), new)
    assert_same(1 - 1 / fixed, 1 - sp.sqrt(rho))
    (free,) = [r for r in sp.solve(sp.Eq(new**2 - new, t**2), new) if sp.N(r.subs(t, 2)) > 0]
    assert sp.simplify((free - sp.Rational(1, 2)) ** 2 - (t**2 + sp.Rational(1, 4))) == 0  # hence free >= t + 1/2
    n = positive("n")
    rate = (1 + (n - 1) / 2) ** -2  # R_n = 1/t_{n-1}^2 with t_0 = 1
    assert_same(4 / (n + 1) ** 2, rate)
    for r in RHOS:
        for k, R in enumerate(islice(inexact_solutions.contractions(float(r)), 20), start=1):
            limit = min((1 - math.sqrt(r)) ** (k - 1), float(rate.subs(n, k)))
            assert limit * (1 + 1e-12) >= R


# Errors: U^2 = S + sum of b_i U_i over the rounds, with U_i <= U, bounds the potential.


@pytest.mark.parametrize("r", [0.0, 0.25])
def test_envelope(r: float) -> None:
    errors, step, squared = (0.3, 0.7, 0.2), sp.Rational(1, 2), 2
    t_now, product, terms, total = sp.Integer(1), sp.Integer(1), [], sp.Integer(squared)
    U = positive("U")
    for k, error in enumerate(errors):
        if k:
            t_now = sp.nsimplify(sp.sqrt((1 - r * t_now**2) ** 2 + 4 * t_now**2) + 1 - r * t_now**2, rational=True) / 2
            product *= 1 - sp.nsimplify(r) * t_now
        # over c/(2 nu) |w|^2 = U^2/(2 nu) Pi: what the error adds, t^2 eps + t/nu |w| sqrt(2 nu c eps), in units of U
        e = sp.nsimplify(error)
        total += 2 * step * t_now**2 * e / product
        terms.append(2 * step * t_now / step * sp.sqrt(2 * step * e) / sp.sqrt(product))
        (largest,) = [x for x in sp.solve(U**2 - sum(terms) * U - total, U) if sp.N(x) > 0]
        # d <= Pi U^2/(2 nu t^2)
        found = list(inexact_solutions.envelope(errors[: k + 1], rho=r, nu=0.5, squared=2.0))[-1]
        assert_same(found, sp.N(product / t_now**2 * largest**2 / (2 * step), 30))


# Theorems 3.2 and 3.3.


@pytest.fixture
def one_round(monkeypatch: pytest.MonkeyPatch) -> None:
    step = stand_in(n=5, theta=None, dual_error=w, rounding=0)
    monkeypatch.setattr(exact_solutions, "path", lambda case: [step])
    monkeypatch.setattr(exact_solutions, "initial_bound", lambda case: S)
    monkeypatch.setattr(exact_solutions, "weighted_distance", lambda case, theta: u)


def test_theorem_3_2(one_round: None) -> None:
    for q in compared(exact_solutions.theorem_3_2):
        assert_same(q.rhs, S * (1 + sp.Rational(5 - 1, 2)) ** -2)


def test_theorem_3_3(one_round: None) -> None:
    """E - E* <= L/2 |theta - theta*|^2, in units of N nu/2 |theta - theta*|^2."""
    algorithm = stand_in(rho=0.25, nu=nu)
    values = iter((0, 7))  # of E at theta* and at theta^n
    known = {"n_clients": N, "L": L, "theta": None, "value": lambda theta: next(values)}
    known["energy_rounding"] = known["distance_rounding"] = lambda theta: 0
    energy, distance, dual = compared(exact_solutions.theorem_3_3, algorithm=algorithm, **known)
    for q in (energy, distance, dual):
        assert_same(q.rhs, S * (1 - sp.sqrt(sp.Rational(1, 4))) ** (5 - 1))
    assert_same(energy.lhs, N * nu / 2 * 7 / (L / 2))


def test_units_of_the_dual_error() -> None:
    """N nu/2 |mean xi/nu|^2 is the second term of E_d around its minimiser; |xi*|^2/(2 nu) a proximal step's bound."""
    case = stand_in(
        n_clients=3,
        algorithm=stand_in(nu=0.5),
        distance=lambda theta: 4.0,
        subgradients=np.array([[1.0], [2.0], [-3.0]]),
        theta=np.array([2.0]),
    )
    xi = sp.symbols("xi1:4")
    second = sum(xi) ** 2 / (2 * 3 * sp.Rational(1, 2))
    assert_same(weighted_distance(case, None), second.subs(dict(zip(xi, (sp.Rational(-1, 2) * 2,) * 3, strict=True))))
    stars = [s - sp.Rational(1, 2) * 2 for s in (1, 2, -3)]
    assert_same(initial_bound(case), sum(x**2 for x in stars) / (2 * sp.Rational(1, 2)))


def test_gap_3_6(monkeypatch: pytest.MonkeyPatch) -> None:
    """The gap of a client of curvature k is r^2/(2 (k - nu)): with k = mu = L both bounds are attained."""
    x, r, k, center = sp.symbols("x r k center")
    xi = nu * (center - x)
    conjugate = xi**2 / (2 * (k - nu))
    gap = k / 2 * x**2 - nu * center * x + conjugate + (xi - nu * center) ** 2 / (2 * nu)
    (start,) = sp.solve(k * x - nu * center - r, center)
    derived = r**2 / (2 * (k - nu))
    assert sp.simplify(gap.subs(center, start) - derived) == 0
    clients = stand_in(theta=np.array([[3.0]]))
    step = stand_in(n=1, zeta=np.array([[5.0]]), snapshot=stand_in(clients=clients))
    monkeypatch.setattr(inexact_solutions, "path", lambda case: [step])
    monkeypatch.setattr(inexact_solutions, "ROUNDING", 0.0)
    f = Quadratic(A=np.full((1, 1, 1), 4.0), b=np.zeros((1, 1)))
    value = derived.subs({r: 4 * 3 - 5, k: 4, nu: 1})
    for q in compared(inexact_solutions.gap_3_6, algorithm=stand_in(nu=1.0), objective=f):
        assert_same(q.lhs, value)
        assert_same(q.rhs, value)


# Section 4: a ridge of strength alpha = nu.


def test_theorem_4_1(monkeypatch: pytest.MonkeyPatch) -> None:
    """E(theta^n) - E* <= alpha/2 (|theta*|^2 - |theta^alpha|^2) + G |theta^n - theta^alpha|, by Theorem 3.2."""
    snapshot = stand_in(server=stand_in(theta=None))
    ridge = stand_in(theta=np.array([1.0]), snapshots=lambda: [snapshot] * 4)
    monkeypatch.setattr(regularised, "with_ridge", lambda case: ridge)
    monkeypatch.setattr(regularised, "dual_optimum", lambda case: np.array([[3.0], [4.0]]))
    monkeypatch.setattr(regularised, "_lipschitz", lambda f: 7.0)
    known = {"objective": None, "value": lambda theta: 0.0, "theta": np.array([2.0]), "n_clients": 2}
    q = compared(regularised.theorem_4_1, **known, algorithm=stand_in(nu=0.1))[-1]
    alpha, n = sp.Rational(1, 10), 4
    squared = sp.Rational(25) / (2 * alpha) * (1 + sp.Rational(n - 1, 2)) ** -2  # of Theorem 3.2, in dual units
    assert_same(q.rhs, alpha / 2 * (4 - 1) + 7 * sp.sqrt(squared / (2 * alpha / 2)))


def test_theorem_4_2(monkeypatch: pytest.MonkeyPatch) -> None:
    """|grad E(theta^n) - grad E(theta^alpha)| <= L |theta^n - theta^alpha|, by Theorem 3.3."""
    monkeypatch.setattr(regularised, "dual_optimum", lambda case: np.array([[3.0], [4.0]]))
    case = stand_in(L=6.0, n_clients=2, algorithm=stand_in(nu=0.1, rho=0.25, stop=None))
    found, rate = regularised.constant_of_4_5(case, case), sp.Rational(1, 2)
    n = positive("n")
    squared = sp.Rational(25) / (2 * sp.Rational(1, 10)) * rate ** (n - 1)
    assert_same(found * rate ** (sp.Integer(9) / 2), 6 * sp.sqrt(squared.subs(n, 9) / (2 * sp.Rational(1, 10) / 2)))
    # an error of 12 in the first round, half of it of each client: a = sqrt(2 nu 12), e = 12
    first = stand_in(nu=0.1, rho=0.25, stop=stand_in(schedule=lambda round: 6.0 * (round.n == 0)))
    inexact = regularised.constant_of_4_5(stand_in(L=6.0, n_clients=2, algorithm=first), case)
    a = sp.sqrt(sp.Rational(12, 5))
    assert_same(inexact * 5, found * (a + sp.sqrt(25 + a**2 + a**2)))


def test_rounds_of_theorem_4_2(monkeypatch: pytest.MonkeyPatch) -> None:
    """C (1 - sqrt(rho))^(n/2) <= eps/2 from n = 2 log(2C/eps)/(-log(1 - sqrt(rho))) on; half of it is too few."""
    for ratio in (10, 1000):  # L R_0/eps
        epsilon, C = 2.0 * 0.1, 50.0
        monkeypatch.setattr(regularised, "with_ridge", lambda case: stand_in(objective=None))
        monkeypatch.setattr(regularised, "constant_of_4_5", lambda case, ridge, C=C: C)
        monkeypatch.setattr(regularised, "iterate", lambda algorithm, objective: iter(()))
        case = stand_in(theta=np.array([1.0]), L=ratio * epsilon, algorithm=stand_in(nu=0.1))
        (q,) = compared(regularised.theorem_4_2_rounds, case)
        root = 1 / sp.sqrt(1 + 2 * ratio)  # sqrt(rho) for rho = alpha/(L + alpha), alpha = eps/(2 R_0)
        needed = float(2 * sp.log(2 * C / epsilon) / -sp.log(1 - root))
        assert needed <= q.rhs < 2 * needed


# Local steps.


def test_theorem_3_4() -> None:
    """Steps gamma and weights k: k (F - F*) <= k G^2 gamma/2 + mu/4 (k (k-1) d_k - k (k+1) d_{k+1})."""
    k, G, now, after, n = positive("k G now after n")
    gamma = sp.nsimplify(local_steps.decreasing_step(mu, k))

    def remainder(gamma: Any) -> Any:
        step = k * (G**2 * gamma / 2 + (now - after) / (2 * gamma) - mu / 2 * now)
        return sp.simplify(step - mu / 4 * (k * (k - 1) * now - k * (k + 1) * after))

    assert_same(remainder(gamma), k * G**2 / (mu * (k + 1)))
    assert remainder(2 * gamma).has(now)
    assert remainder(gamma / 2).has(now)
    # each rest is at most G^2/mu, so that the mean with weights 2 k/(n (n + 1)) is within 2 G^2/(mu (n + 1))
    accuracy = n * G**2 / mu * 2 / (n * (n + 1))
    (points,) = sp.solve(accuracy - w, n)
    steps = points - 1  # the mean of n points takes n - 1 steps
    assert sp.simplify(2 * G**2 / (mu * w) - steps) == 2  # the bound of the claim


def test_bound_of_theorem_3_4(monkeypatch: pytest.MonkeyPatch) -> None:
    posed = stand_in(value=lambda theta: np.zeros(1))
    snapshot = stand_in(round=stand_in(n=2), clients=stand_in(theta=None), server=stand_in(theta=None))
    monkeypatch.setattr(local_steps, "local_problems", lambda case: [(snapshot, posed, None)])
    monkeypatch.setattr(local_steps, "averaged_subgradient_steps", lambda *_: (np.ones(1), np.array([3.0])))

    class Schedule:
        """An accuracy that stays, of which the claim knows the power."""

        gamma = 0.1

        def __init__(self, **_: float) -> None: ...

        def __call__(self, round: Any) -> float:
            return 0.01

    monkeypatch.setattr(local_steps, "SublinearSchedule", Schedule)
    monkeypatch.setattr(local_steps, "initial_bound", lambda case: 25.0)  # |xi*|^2/(2 nu)
    algorithm, f = stand_in(nu=0.5), stand_in(mu=np.array([0.5]))
    case = stand_in(algorithm=algorithm, objective=f, n_clients=2, distance=lambda theta: 0.25)
    steps, distance, until = compared(local_steps.theorem_3_4, case)
    assert_same(steps.rhs, 2 * sp.Integer(3) ** 2 / (sp.Rational(1, 2) * sp.Rational(1, 100)))
    # from round n = 1 on: N nu/2 |theta - theta*|^2 <= |xi*|^2/(2 nu) 4/(n + 1)^2
    assert_same(distance.rhs, 25 * (sp.Rational(4, 4)) / sp.Rational(2, 4))
    assert_same(
        until.lhs, steps.lhs / (2 * sp.Integer(3) ** 2 * 2 / 2 / (sp.Rational(1, 2) * sp.nsimplify(local_steps.SCALE)))
    )
    assert_same(until.rhs, sp.Integer(2) ** sp.Rational(41, 10))  # (n + 1)^(4 + gamma)


def test_bound_of_theorem_3_5(monkeypatch: pytest.MonkeyPatch) -> None:
    """|grad F|^2/(2 mu) <= kappa (F - F*) <= kappa (1 - 1/sqrt(kappa))^k (L + mu)/2 D^2, and -log(1 - x) >= x."""
    snapshot = stand_in(round=stand_in(n=3, n_clients=1), clients=stand_in(theta=np.array([[2.0]])))
    monkeypatch.setattr(local_steps, "local_problems", lambda case: [(snapshot, None, np.zeros((1, 1)))])
    monkeypatch.setattr(local_steps, "accelerated_steps", lambda *_, limit: (np.ones(1), None))
    f = stand_in(L=np.array([100.0]), mu=np.array([4.0]), n_clients=1)
    case = stand_in(algorithm=stand_in(rho=0.04), objective=f)
    (q,) = compared(local_steps.theorem_3_5, case)
    kappa, tol = sp.Integer(25), ((1 - sp.Rational(1, 5)) / sp.Rational(11, 10)) ** 3
    start = kappa * sp.Rational(104, 2) * 4
    assert_same(q.rhs - 1, sp.sqrt(kappa) * sp.log(start / tol))
    needed = float(sp.log(start / tol) / -sp.log(1 - 1 / sp.sqrt(kappa)))
    assert needed <= q.rhs < 2 * needed


@pytest.mark.parametrize(("r", "g"), [(0.25, 3.0), (0.04, 0.44)])
def test_size_of_theorem_3_5(r: float, g: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """U^2 = |xi*|^2 + 2 nu e + 2 a U with the sums of eps_i/R_i and sqrt(2 nu eps_i/R_i), geometric both."""
    monkeypatch.setattr(local_steps, "dual_optimum", lambda case: np.array([[3.0], [4.0]]))
    case: Any = stand_in(algorithm=stand_in(rho=r, nu=0.5))
    gamma, size, s = sp.nsimplify(g), sp.Rational(1, 2), sp.Rational(1, 5)
    over = s / sp.nsimplify(r)  # eps_i/R_i <= s/rho (1 + gamma)^(1 - i), because R_i >= rho (1 - sqrt(rho))^(i - 1)
    e = over / (1 - 1 / (1 + gamma))
    a = sp.sqrt(2 * size * over) / (1 - sp.sqrt(1 / (1 + gamma)))
    (U,) = [x for x in sp.solve(w**2 - 25 - 2 * size * e - 2 * a * w, w) if sp.N(x) > 0]
    B = local_steps.admitted_size(case, gamma=g, scale=0.2)
    assert_same(B, U)
    errors = [0.2 * ((1 - math.sqrt(r)) / (1 + g)) ** i for i in range(30)]
    for n, bound in enumerate(inexact_solutions.envelope(errors, rho=r, nu=0.5, squared=25.0)):
        assert bound <= (1 - math.sqrt(r)) ** n * B**2


def test_bound_of_theorem_3_5_target(monkeypatch: pytest.MonkeyPatch) -> None:
    """N nu/2 |theta - theta*|^2 <= (1 - sqrt(rho))^(n-1) B^2/(2 nu); distances are as large as that in the run.

    The steps are those of Theorem 3.5 with F - F* and mu/2 D^2 at most g^2/(2 mu) at first: |grad F|^2 is at most
    2 kappa g^2 (1 - kappa^(-1/2))^k, and admitted are 2 nu s/N ((1 - sqrt(rho))/(1 + gamma))^n.
    """
    size, clients, base, bound = 0.5, 2, sp.Rational(4, 5), sp.Integer(36)
    first = bound / (2 * sp.Rational(1, 2)) / (clients * sp.Rational(1, 2) / 2)  # 1 - sqrt(rho) is 4/5
    monkeypatch.setattr(local_steps, "admitted_size", lambda case, gamma, scale: 6.0)
    posed = [
        (
            stand_in(
                round=stand_in(n=n),
                server=stand_in(theta=float(first * base**n)),
                solution=stand_in(gradients=np.zeros(1)),
            ),
            stand_in(gradient=lambda start: np.array([[7.0]])),
            None,
        )
        for n in range(60)
    ]
    monkeypatch.setattr(local_steps, "local_problems", lambda case: iter(posed))
    stop = stand_in(schedule=stand_in(gamma=0.1, scale=0.3))
    case = stand_in(
        objective=stand_in(L=np.array([100.0]), mu=np.array([4.0])),
        algorithm=stand_in(nu=size, rho=0.04, stop=stop),
        n_clients=clients,
        distance=lambda theta: theta,
        rounds=60,
    )
    found = compared(local_steps.theorem_3_5_target, case)
    distances = [q for q in found if q.what == "|theta^n - theta*|^2"]
    for q in distances:
        assert_same(q.rhs, first * base ** (q.n - 1))
    rounds = [q for q in found if q.what == "rounds to eps_out"]
    assert len(rounds) > 1
    limits = iter([q for q in found if q.what == "M_n until eps_out"])
    for q in rounds:
        assert q.rhs - 1 <= q.lhs * (1 + 1e-12)
        assert q.lhs <= q.rhs
        more = q.n * sp.log(10) / -sp.log(base)  # rounds: base^(n - 1) first <= first 10^-n
        assert_same(q.rhs, 2 + more)
        for n in range(int(q.lhs)):
            start = sp.Integer(2 * 25 * 7**2)
            # n log(1/base) is at most that of the last round before the accuracy
            admitted = (
                2 * sp.Rational(1, 2) * sp.Rational(3, 10) / clients * base ** (more + 1) / sp.Rational(11, 10) ** n
            )
            assert_same(next(limits).rhs - 1, sp.sqrt(25) * sp.log(start / admitted))
