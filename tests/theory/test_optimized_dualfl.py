"""Every claim on OptimizedDualFL can fail, its identity holds in symbols, and it holds on problems that are drawn."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import pytest
import sympy

from dualopt.lab.claims import Claim
from dualopt.lab.proofs import worst_case
from dualopt.methods import DualFL, OptimizedDualFL
from dualopt.methods.optimized_dualfl import coefficients, growth
from tests.theory.mutation_table import is_violated, telling
from theory._cases import Case
from theory._claims import discover
from theory._problems import hinge, logistic
from theory.optimized_dualfl import rate
from theory.optimized_dualfl._runs import growths, optimized

CHAPTERS = {name: c for name, c in discover().items() if c.module.startswith("theory.optimized_dualfl")}


# ---- wrong variants ----


def is_caught(claim: Claim, mutate: Callable[[Any], Any] = lambda case: case) -> bool:
    return is_violated(claim, map(mutate, telling(claim.name)))


@pytest.mark.parametrize(
    "wrong",
    [
        lambda A, rho: growth(A, 0.9 * rho),
        lambda A, rho: growth(A, 0.0),
        lambda A, rho: 0.999 * growth(A, rho),
        lambda A, rho: growth(A, rho) + 1.0,
    ],
    ids=["smaller rho", "rho = 0", "smaller", "one more"],
)
def test_wrong_growth_is_caught(wrong) -> None:
    assert is_caught(CHAPTERS["optimized_growth"].claim, lambda case: case._replace(growth=wrong))


@pytest.mark.parametrize("shift", [1, 2])
def test_a_bound_that_falls_too_early_is_caught(shift: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A of a later round in the bound: it is attained, so that not one round can be given away."""
    path = rate.path

    def early(case: Case):
        later = islice(growths(case.algorithm.rho), shift, None)
        return (step._replace(A=A) for step, A in zip(path(case), later, strict=False))

    monkeypatch.setattr(rate, "path", early)
    assert is_caught(CHAPTERS["optimized_theorem"].claim)


@pytest.mark.parametrize("n", [1, 3, 10])
def test_the_bound_of_the_dual_error_is_attained(n: int) -> None:
    instance = rate.bent(n)
    case = instance.case(optimized(instance, rho=0.0), n)
    *_, last = rate.path(case)
    assert rate.bracket(case, last) == pytest.approx(2.0 / last.A, rel=1e-12)  # |zeta*|^2 = 2
    subgradients = np.array([1.0, -1.0]) * np.sign(instance.theta - 1.0)[0]
    np.testing.assert_allclose(instance.subgradients[:, 0], subgradients)


# ---- exact worst cases ----

ANY_LOSS, KAPPA_10 = (math.inf, 0.0), (10.0, 0.1)


def largest(method: OptimizedDualFL | DualFL, L: float, rounds: int, measure: str) -> float:
    """Return the worst case of two clients with mu = 1 where |zeta*|^2 <= 1, summed over the clients."""
    pytest.importorskip("clarabel")
    found = worst_case(method, mu=1.0, L=L, clients=2, rounds=rounds, measure=measure, start=(0.0, 1.0))
    return 2.0 * found.value


@pytest.mark.parametrize(("L", "rho"), [ANY_LOSS, KAPPA_10])
def test_the_exact_worst_case_is_below_the_bound_but_not_far(L: float, rho: float) -> None:
    """The dual error attains the bound without smoothness; the distance comes to half of it and more."""
    for n in (2, 5):
        bound = 1.0 / next(islice(growths(rho), n - 1, None))
        assert 0.5 * bound <= largest(OptimizedDualFL(rho=rho, nu=1.0), L, n, "distance") / 2.0 <= bound
    if not rho:
        for n in (2, 4):
            bound = 1.0 / next(islice(growths(rho), n - 1, None))
            assert largest(OptimizedDualFL(rho=rho, nu=1.0), L, n, "dual") == pytest.approx(bound, rel=1e-6)
            assert largest(DualFL(rho=rho, nu=1.0), L, n, "dual") > 1.3 * bound


def test_dualfl_breaks_the_optimized_bound() -> None:
    """kappa = 10: the exponent of DualFL is half of the optimized one, on functions that are not quadratic."""
    (L, rho), bound = KAPPA_10, 2.0 / next(islice(growths(KAPPA_10[1]), 5, None))
    assert largest(OptimizedDualFL(rho=rho, nu=1.0), L, 6, "distance") < 0.6 * bound
    assert largest(DualFL(rho=rho, nu=1.0), L, 6, "distance") > 1.5 * bound


@dataclass(frozen=True, kw_only=True)
class Chosen(OptimizedDualFL):
    """With coefficients b and c of its own, those of the first rounds."""

    pairs: tuple[tuple[float, float], ...]

    def server(self, server, mean, round):
        server, message = super().server(server, mean, round)
        return server, message._replace(**dict(zip("bc", (*self.pairs, (0.0, 0.0))[round.n], strict=True)))


@pytest.mark.parametrize("change", [-0.02, 0.02])
def test_optimized_coefficients_cannot_be_improved_one_at_a_time(change: float) -> None:
    """Nonsmooth dual error of three rounds: any change of one coefficient makes the worst case larger."""
    A, pairs = 0.0, []
    for _ in range(2):
        A, *pair = coefficients(A, 0.0)
        pairs.append(pair)
    best = largest(OptimizedDualFL(rho=0.0, nu=1.0), math.inf, 3, "dual")
    for round, which in ((0, 1), (1, 0), (1, 1)):  # b of the first round multiplies v - 0, as c does
        changed = [list(pair) for pair in pairs]
        changed[round][which] += change
        other = Chosen(rho=0.0, nu=1.0, pairs=tuple((b, c) for b, c in changed))
        assert largest(other, math.inf, 3, "dual") > best * (1.0 + 1e-4)


# ---- the identity of the potential ----


def fall_and_gaps(scale: Any = 1) -> Any:
    """The fall of the potential less the two gaps, in symbols; ``scale`` multiplies the new step.

    Every term is linear in inner products, so that numbers may stand for vectors. In units of nu; s is the root in
    the recursion of A.
    """
    A, q, s, z, best, y_old, g_old, D_old, g, D = sympy.symbols("A q s z best y_old g_old D_old g D")
    grown = ((1 + q) * A + 2 * (1 + s)) / (1 - q) ** 2
    beta, v_old = A / ((1 - q) * grown), y_old - g_old
    delta = ((1 - q) ** 2 * grown - (1 + q) * A) / (2 * (1 + q + q * A))
    y = (1 - beta) * z + beta * v_old
    v, z_new = y - g, (1 - q * delta) * z + q * delta * y - scale * delta * g

    def potential(A, D, g, v, z):
        return (1 - q) * A * (D - g**2 / 2 - q / (2 * (1 - q)) * (v - best) ** 2) + (1 + q * A) * (z - best) ** 2

    def gap(D_x, g_x, x):
        squares = (g_x - g) ** 2 + q * (x - y) ** 2 - 2 * q * (g_x - g) * (x - y)
        return D_x - D - g * (x - y) - squares / (2 * (1 - q))

    fall = potential(A, D_old, g_old, v_old, z) - potential(grown, D, g, v, z_new)
    gaps = (1 - q) * (A * gap(D_old, g_old, y_old) + (grown - A) * gap(0, 0, best))
    numerator = sympy.numer(sympy.together(fall - gaps))
    return sympy.rem(sympy.expand(numerator), s**2 - (1 + A) * (1 + q * A), s)


def test_the_fall_of_the_potential_is_the_sum_of_the_gaps() -> None:
    assert sympy.expand(fall_and_gaps()) == 0
    assert sympy.expand(fall_and_gaps(scale=sympy.Rational(99, 100))) != 0


# ---- problems that are drawn ----


@pytest.mark.parametrize("build", [logistic, hinge])
def test_the_bracket_is_the_dual_error_without_smoothness(build: Callable[[], Any]) -> None:
    """rho = 0: E_d of (6.4) at xi_j = nu (zeta_j - theta_j), with conjugates by Fenchel's equality."""
    f = build()
    case = f.case(optimized(f, rho=0.0), 8)
    nu = case.algorithm.nu
    lowest = -case.n_clients * case.value(case.theta)
    for s, step in zip(case.snapshots(), rate.path(case), strict=True):
        points = s.clients.sent
        xi = nu * (step.zeta - points)
        g = f.objective.value(points) - 0.5 * nu * (points**2).sum(axis=1)
        dual = ((xi * points).sum(axis=1) - g).sum() + (xi.sum(axis=0) ** 2).sum() / (2 * case.n_clients * nu)
        assert rate.bracket(case, step) == pytest.approx(dual - lowest, abs=1e-9)
