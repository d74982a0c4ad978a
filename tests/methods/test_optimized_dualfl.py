"""OptimizedDualFL: its published form, its bound with explicit constants, and what it gains over DualFL."""

from __future__ import annotations

import math
from itertools import islice, pairwise

import numpy as np
import pytest

from dualopt.engine.rounds import advance, initial_state, iterate
from dualopt.methods.corrected_optimized_dualfl import CorrectedOptimizedDualFL
from dualopt.methods.dualfl import DualFL, momentum
from dualopt.methods.optimized_dualfl import OptimizedDualFL, coefficients, growth
from dualopt.methods.participation import first_round
from dualopt.objectives import Quadratic
from dualopt.runs.recording import run
from dualopt.runs.reference import newton
from dualopt.solvers import LBFGS, Exact
from dualopt.solvers.stopping import GradientReduction, Steps
from tests.problems import digits, logistic, quadratic


def published_form(f: Quadratic, rho: float, nu: float, rounds: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """The information-theoretic exact method on D(zeta) = sum_j f_j*(nu zeta_j), sum_j zeta_j = 0: (theta, zeta)."""
    N, d = f.b.shape
    L, q = nu, rho  # D is nu-smooth, and nu rho-strongly convex
    inverse = np.linalg.inv(f.A)
    z, v, A, sequence = np.zeros((N, d)), np.zeros((N, d)), 0.0, []
    for _ in range(rounds):
        A_next = ((1 + q) * A + 2 * (1 + np.sqrt((1 + A) * (1 + q * A)))) / (1 - q) ** 2
        beta = A / ((1 - q) * A_next)
        delta = 0.5 * ((1 - q) ** 2 * A_next - (1 + q) * A) / (1 + q + q * A)
        y = (1 - beta) * z + beta * v
        minima = np.einsum("jkl,jl->jk", inverse, f.b + nu * y)  # grad f_j*(nu y_j)
        gradient = nu * (minima - minima.mean(axis=0))  # projected onto sum_j zeta_j = 0
        v = y - gradient / L
        z = (1 - q * delta) * z + q * delta * y - (delta / L) * gradient
        A = A_next
        sequence.append((minima.mean(axis=0), y))
    return sequence


@pytest.mark.parametrize("rho", [0.0, 0.05, 0.6])
def test_is_the_published_method_on_the_dual(rho: float) -> None:
    f = quadratic()
    zeta = np.zeros(f.b.shape)
    method = OptimizedDualFL(rho=rho, nu=0.9, solver=Exact())
    for snapshot, (theta, y) in zip(iterate(method, f), published_form(f, rho, 0.9, 30), strict=False):
        np.testing.assert_allclose(snapshot.server.theta, theta, rtol=0, atol=1e-11)
        np.testing.assert_allclose(zeta, y, rtol=0, atol=1e-11)
        zeta = snapshot.clients.zeta


def test_without_strong_convexity_it_is_the_optimized_gradient_method() -> None:
    t, a = 1.0, 0.0
    for _ in range(50):
        t_next, b = momentum(t, 0.0)
        a, mine_b, mine_c = coefficients(a, 0.0)
        assert a == pytest.approx(4 * t * t, rel=1e-13)
        assert mine_b == pytest.approx(b, rel=1e-12, abs=1e-15)
        assert mine_c == pytest.approx(t / t_next, rel=1e-12)
        t = t_next


@pytest.mark.parametrize("rho", [0.0, 1e-3, 0.1, 0.9])
def test_growth_is_as_promised(rho: float) -> None:
    A = [0.0]
    for _ in range(40):
        A.append(growth(A[-1], rho))
    assert all(a >= (n + 1) ** 2 for n, a in enumerate(A[1:], start=1))
    assert all(after >= before / (1 - math.sqrt(rho)) ** 2 for before, after in pairwise(A))


@pytest.mark.parametrize("rho", [1e-4, 0.1, 0.9, 1 - 1e-9])
def test_coefficients_settle_and_never_overflow(rho: float) -> None:
    """The limit is the triple momentum method's; A itself would pass 1e308."""
    A, b, c = 0.0, 0.0, 0.0
    for _ in range(20000):
        A, b, c = coefficients(A, rho)
    root = math.sqrt(rho)
    beta = (1 - root) / (1 + root)
    assert b == pytest.approx((1 - beta) * (1 - root) * beta / (1 - beta), rel=1e-6)
    assert c == pytest.approx((1 - beta) * ((1 - rho) / root - (1 - root) / (1 - beta)), rel=1e-6)


def worst_ratio(method, f: Quadratic, *, rho: float, rounds: int) -> float:
    """Largest |theta^n - theta*|^2 over 2 |zeta*|^2/(N A_n), down to rounding."""
    theta = f.minimiser()
    squared = ((f.gradient(theta) / method.nu) ** 2).sum()
    A, worst = 0.0, 0.0
    for s in islice(iterate(method, f), rounds):
        A = growth(A, rho)
        error = ((s.server.theta - theta) ** 2).sum()
        if error > 1e-24 * squared:
            worst = max(worst, error * f.n_clients * A / (2 * squared))
    return worst


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_bound_with_its_constants(seed: int, share: float) -> None:
    f = quadratic(n=3, mu=1.0, L=100.0, seed=seed)
    rho = share / 100.0
    assert worst_ratio(OptimizedDualFL(rho=rho, nu=1.0, solver=Exact()), f, rho=rho, rounds=100) <= 1.0


class LostTerm(OptimizedDualFL):
    """A wrong variant: c = 0."""

    def server(self, server, mean, round):
        server, message = super().server(server, mean, round)
        return server, message._replace(c=0.0)


class WrongSign(OptimizedDualFL):
    """A wrong variant: the sign of c."""

    def server(self, server, mean, round):
        server, message = super().server(server, mean, round)
        return server, message._replace(c=-message.c)


@pytest.mark.parametrize("wrong", [LostTerm, WrongSign])
def test_bound_catches_wrong_variants(wrong: type[OptimizedDualFL]) -> None:
    f = quadratic(n=3, mu=1.0, L=100.0)
    right, broken = (
        worst_ratio(kind(rho=0.01, nu=1.0, solver=Exact()), f, rho=0.01, rounds=120)
        for kind in (OptimizedDualFL, wrong)
    )
    assert right <= 1.0
    assert broken > 2.0


@pytest.mark.parametrize("seed", range(3))
def test_dual_bound_without_smoothness(seed: int) -> None:
    """rho = 0: E_d(xi^n) - E_d* <= nu |zeta*|^2 / A_n."""
    nu = 0.9
    f = quadratic(n=3, mu=1.0, L=200.0, seed=seed)
    theta = f.minimiser()
    squared = ((f.gradient(theta) / nu) ** 2).sum()
    inverse = np.linalg.inv(f.A - nu * np.eye(f.shape[0]))

    def dual(xi: np.ndarray) -> float:
        """E_d up to a constant: g_j*(xi) = (xi + b)' inverse (xi + b)/2 + constant."""
        conjugates = 0.5 * np.einsum("jk,jkl,jl->", xi + f.b, inverse, xi + f.b)
        return conjugates + (xi.sum(axis=0) ** 2).sum() / (2 * f.n_clients * nu)

    best = dual(f.gradient(theta) - nu * theta)
    zeta, A = np.zeros(f.b.shape), 0.0
    for s in islice(iterate(OptimizedDualFL(rho=0.0, nu=nu, solver=Exact()), f), 60):
        A = growth(A, 0.0)
        assert dual(nu * (zeta - s.clients.theta)) - best <= nu * squared / A
        zeta = s.clients.zeta


def test_control_variates_sum_to_zero() -> None:
    for s in islice(iterate(OptimizedDualFL(solver=LBFGS(), stop=Steps(steps=2)), logistic()), 30):
        assert np.abs(s.clients.zeta.sum(axis=0)).max() <= 1e-13 * (1 + np.abs(s.clients.zeta).max())


def test_digits_needs_fewer_rounds_than_dualfl() -> None:
    """Sorted by label, 8 clients, rho = 1/kappa: after 60 rounds 1.2e-5 where DualFL has 2.6e-4."""
    f = digits()
    optimum = newton(f).energy
    stop = GradientReduction(factor=1e-2, first=1e-5)
    mine, plain = (run(kind(stop=stop), f, rounds=60, reference=optimum)["error"] for kind in (OptimizedDualFL, DualFL))
    assert mine[-1] == pytest.approx(1.2e-5, rel=0.1)
    assert np.all(mine[2:] < plain[2:])


def test_parameters_are_those_of_dualfl() -> None:
    f = quadratic(mu=2.0, L=50.0)
    method, plain = OptimizedDualFL().suggested(f), DualFL().suggested(f)
    assert (method.rho, method.nu, method.solver) == (plain.rho, plain.nu, plain.solver)


def test_corrected_point_is_what_everyone_uses() -> None:
    f = logistic()
    before = np.zeros((f.n_clients, *f.shape))
    for s in islice(iterate(CorrectedOptimizedDualFL(solver=LBFGS(), stop=Steps(steps=1)), f), 4):
        assert np.abs(s.clients.sent - s.clients.theta).max() > 1e-8
        np.testing.assert_allclose(s.clients.v, before + s.server.theta - s.clients.sent, rtol=1e-14)
        before = s.clients.zeta


@pytest.mark.parametrize("options", [{"rho": 1.0}, {"rho": -0.1}, {"nu": 0.0}])
def test_refuses_parameters_out_of_range(options: dict) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        OptimizedDualFL(**options)


def test_refuses_nu_above_mu_and_missing_rho() -> None:
    f = quadratic(mu=1.0, L=20.0)
    with pytest.raises(ValueError, match=r"nu = 1\.2 must not exceed mu = 1"):
        run(OptimizedDualFL(nu=1.2, rho=0.0, solver=Exact()), f, rounds=3)
    method = OptimizedDualFL(nu=1.0, solver=Exact())
    with pytest.raises(ValueError, match="rho must be given"):
        advance(method, f, initial_state(method, f), first_round(f.n_clients))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "a factor of 0.640000 per round"),
        ({"rho": 0.0}, "O(1/n^2)"),
        ({"rho": 0.041}, "none: 2 |zeta*|^2/(N A_n) needs rho <= nu/L = 0.04"),
        ({"rho": 0.0, "nu": 2.1}, "none: 2 |zeta*|^2/(N A_n) needs nu <= mu"),
    ],
)
def test_says_what_is_promised(options: dict, said: str) -> None:
    assert said in OptimizedDualFL(**options).guarantee(quadratic(mu=2.0, L=50.0))
