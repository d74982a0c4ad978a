"""The constants of the FedDyn paper, derived again: every lemma is solved for from the inequalities of its proof.

``m = N/P``. Of a round, ``eps`` is the mean squared distance of all solutions from the last mean, ``M`` the expected
squared step of the mean, ``C`` the Lyapunov term before it, ``D`` the error of the energy, ``S`` its squared gradient.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import sympy as sp

from tests.theory._symbolic import agree, assert_same, compared, expects, first, positive, squares, stand_in
from theory.feddyn import convex, nonconvex, rates

L, a, mu, m = positive("L alpha mu m")
C, D, S, eps, M, away, T = positive("C D S eps M away T")
kappa, scale = positive("kappa scale")
CASE = stand_in(
    L=L, alpha=a, mu=mu, fraction=1 / m, error=lambda _: D, squared_gradient=lambda _: S, distance=lambda _: away
)


@pytest.fixture(autouse=True)
def one_round_of_symbols(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let claims see one round in which every quantity is a symbol."""
    before = stand_in(gamma=None, C=C)
    after = stand_in(gamma=stand_in(), C=sp.Symbol("C_new"))
    step = stand_in(n=1, before=before, epsilon=eps, E=expects(lambda quantity: quantity(after)))
    for module in (convex, nonconvex):
        monkeypatch.setattr(module, "path", lambda case: [step])
        monkeypatch.setattr(module, "C", lambda case, point: point.C)


# How far the solutions are from the last mean: alpha (theta_k - gamma) is a sum of four gradients' differences.

NEAR_CONVEX = squares(L**2 * eps, C, C, 2 * L * D)  # to those at gamma; memories and h (Lemma 7); smoothness at theta*
NEAR_SMOOTH = squares(L**2 * eps, L**2 * C, L**2 * C, S)


@pytest.mark.parametrize(
    ("claim", "bound"), [(convex.lemma_4, NEAR_CONVEX), (nonconvex.lemma_11, NEAR_SMOOTH)], ids=["4", "11"]
)
def test_lemmas_4_and_11(claim: Any, bound: Any) -> None:
    q = first(claim, CASE)
    own = 4 * L**2 * eps  # goes to the left
    assert_same(q.lhs, eps - own / a**2)
    assert_same(q.rhs, sp.expand(bound - own) / a**2)


# How far the memories are after a round: a client is active with probability 1/m.

KEPT_CONVEX = (1 - 1 / m) * C + squares(L**2 * eps, 2 * L * D) / m


def test_lemma_5() -> None:
    (q,) = compared(convex.lemma_5, CASE)
    assert_same(q.rhs, KEPT_CONVEX)


def test_lemma_12(monkeypatch: pytest.MonkeyPatch) -> None:
    """Young's inequality with the weight that makes the factor of the step 2 N/P."""
    weight = positive("weight")
    (chosen,) = sp.solve(1 + 1 / weight - 2 * m, weight)
    step = compared_steps(monkeypatch)
    case = stand_in(**{**vars(CASE), "objective": None})
    (q,) = nonconvex.lemma_12(case)
    assert step.moved
    assert_same(q.rhs, (1 + chosen) * ((1 - 1 / m) * C + eps / m) + (1 + 1 / chosen) * M)


def compared_steps(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Let the first mean that Lemma 12 takes, that of the squared step, be M."""
    seen = stand_in(moved=False)

    def mean(quantity: Any) -> Any:
        if not seen.moved:
            seen.moved = True
            return M
        return sp.Symbol("C_new")

    step = stand_in(n=1, before=stand_in(gamma=None, C=C), epsilon=eps, E=expects(mean))
    monkeypatch.setattr(nonconvex, "path", lambda case: [step])
    return seen


# The Lyapunov functions. For a client's solution x with gradient s, f(gamma) <= f(x) + s(gamma - x) + L/2 |gamma - x|^2
# and f(theta*) >= f(x) + s(theta* - x) + mu/2 |theta* - x|^2. With Lemmas 2, 3, 9 and alpha(gamma+ - gamma) = -mean s,
# r E|gamma+ - theta*|^2 <= |gamma - theta*|^2 - 2/alpha D + (L/alpha + 1) eps for r = 1 + mu/alpha.

TERMS = (C, eps)


def lyapunov(fall: Any, r: Any, gain: Any) -> tuple[Any, Any]:
    """Solve for kappa and kappa_0: the inequalities add up so that ``C`` keeps its weight and ``eps`` has none.

    ``fall`` bounds the change of the first part, ``r kappa`` times ``kept`` the second; the bound of ``eps`` is scaled.
    """
    near, kept, slope = gain
    total = sp.expand(fall + r * kappa * kept - kappa * C + scale * (near / a**2 - eps))
    found = sp.solve([total.coeff(term) for term in TERMS], [kappa, scale], dict=True)
    assert len(found) == 1
    return found[0][kappa], sp.simplify(-total.coeff(slope).subs(found[0]))


def constants(which: str) -> tuple[Any, Any]:
    """Return the derived kappa and kappa_0."""
    if which == "1":
        return lyapunov(-2 / a * D + (L / a + 1) * eps, 1, (NEAR_CONVEX, KEPT_CONVEX, D))
    if which == "8":
        return lyapunov(-2 / a * D + (L / a + 1) * eps, 1 + mu / a, (NEAR_CONVEX, KEPT_CONVEX, D))
    # -<grad E, mean s>/alpha <= (-S + L^2 eps)/(2 alpha), and Lemma 3 turns the squared step into eps
    kept = 2 / (2 * m - 1) * ((m - 1) * C + eps) + 2 * m * eps
    return lyapunov(-S / (2 * a) + L**2 / (2 * a) * eps + L / 2 * eps, 1, (NEAR_SMOOTH, kept, S))


STATED = {"1": convex.constants_of_lemma_1, "8": convex.constants_of_lemma_8, "10": nonconvex.constants_of_lemma_10}


@pytest.mark.parametrize("which", STATED)
def test_lyapunov_functions(which: str) -> None:
    for stated, derived in zip(STATED[which](CASE), constants(which), strict=True):
        assert_same(stated, derived)


def test_the_sign_of_y2_is_the_corrected_one() -> None:
    assert not agree(nonconvex.constants_of_lemma_10(CASE, as_printed=True)[1], constants("10")[1])


@pytest.mark.parametrize(
    ("theorem", "which"), [(convex.theorem_2, "1"), (convex.theorem_3, "8"), (nonconvex.theorem_4, "10")]
)
def test_theorems_are_the_lemmas_summed(theorem: Any, which: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The Lyapunov function at the start, over kappa_0 times the sum of the weights; a printed bound is not below."""
    for module in (convex, nonconvex):
        monkeypatch.setattr(module, "expectations", lambda case, r=1.0: [(1, D, S), (2, D, S)])
    ones = np.ones((1, 1))
    case = stand_in(
        **vars(CASE), gamma=0.0, memory=ones, subgradients=0.0 * ones, points=ones, value=lambda _: away, lowest=0
    )
    k, k_0 = constants(which)
    weights = 2 + mu / a if which == "8" else 2
    proved = [q for q in compared(theorem, case) if q.what == "proved"]
    assert_same(proved[-1].rhs, (away + k) / (k_0 * weights))
    printed = [q for q in compared(theorem, case) if q.what == "printed"]
    numbers = {"1": (10 * a, 100 * m / a), "8": (20 * a, 400 * m / a), "10": (3 * a, 30 * L**3 * m / a)}[which]
    assert_same(printed[-1].rhs, (numbers[0] * away + numbers[1]) / (1 + mu / a if which == "8" else 2))
    least = {"1": (25, 0), "8": (30, 0), "10": (0, 20)}[which]
    for share in (1, 3, 50):
        for factor in (1, 2, 10):
            for small in (sp.Rational(1, 10**6), sp.Rational(1, 10)):
                at = {L: 1, mu: small / share, m: share, a: factor * (least[0] + least[1] * share)}
                gap = sp.expand(sp.sympify(printed[-1].rhs - proved[-1].rhs).subs(at))
                assert all(c >= 0 for c in sp.Poly(gap, away).all_coeffs())


# Theorem 1: the printed bounds of Theorems 2 to 4 at the alphas that the paper names.


@pytest.mark.parametrize(
    ("kind", "theorem", "alpha"),
    [
        ("convex", convex.theorem_2, 30 * 2 * 2),
        ("strongly convex", convex.theorem_3, 30 * 2),
        ("nonconvex", nonconvex.theorem_4, 30 * 2 * 4),
    ],
)
def test_theorem_1(kind: Any, theorem: Any, alpha: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """L = 2 and N/P = 4; with mu = L the factor r is 31/30, the largest that there is with alpha >= 30 L."""
    asked: list[float] = []

    def expectations(case: Any, r: float = 1.0) -> list[tuple[int, float, float]]:
        asked.append(r)
        return [(1, 0.0, 0.0), (2, 0.0, 0.0)]

    for module in (convex, nonconvex, rates):
        monkeypatch.setattr(module, "expectations", expectations)
    case: Any = stand_in(kind=kind, m=4.0, fraction=0.25, L=2.0, mu=2.0, n_clients=1, gamma=-1.0, lowest=1.0)
    vars(case).update(distance=lambda _: 3.0, value=lambda _: 4.0, error=lambda _: 0.0, squared_gradient=lambda _: 0.0)
    case.points, case.memory, case.subgradients = (np.full((1, 1), x) for x in (4.0, 7.0, 2.0))
    case.alpha = rates.named_alpha(case)
    assert_same(case.alpha, alpha)
    start = rates.bound_at_one(case)
    monkeypatch.setattr(rates, "at_the_start", lambda case: 1e-9 * start)
    printed = [q for q in compared(theorem, case) if q.what == "printed"]
    for q, expected in zip(compared(rates.theorem_1, case), printed, strict=True):
        assert_same(q.rhs, expected.rhs)
    assert_same(asked[-1], sp.Rational(31, 30) if kind == "strongly convex" else 1)
    for share in (0.7, 1e-3):
        T = rates.rounds_for(case, share * start)
        needed = math.log(1 / share) / math.log1p(2 / alpha) if kind == "strongly convex" else 1 / share
        most = needed * (1 + 2 / alpha) if kind == "strongly convex" else needed  # x/(1 + x) <= log(1 + x) <= x
        assert needed <= T <= most + 1
