"""OptimizedDualFL: its published form, its bound with explicit constants, and what it gains over DualFL."""

from __future__ import annotations

import math
from itertools import islice, pairwise

import numpy as np
import pytest

from dualopt.engine.rounds import iterate
from dualopt.methods.corrected_optimized_dualfl import CorrectedOptimizedDualFL
from dualopt.methods.dualfl import momentum
from dualopt.methods.optimized_dualfl import OptimizedDualFL, coefficients, growth
from dualopt.objectives import Quadratic
from dualopt.solvers import LBFGS, Exact
from dualopt.solvers.stopping import Steps
from tests.problems import logistic, quadratic


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


def test_corrected_point_is_what_everyone_uses() -> None:
    f = logistic()
    before = np.zeros((f.n_clients, *f.shape))
    for s in islice(iterate(CorrectedOptimizedDualFL(solver=LBFGS(), stop=Steps(steps=1)), f), 4):
        assert np.abs(s.clients.sent - s.clients.theta).max() > 1e-8
        np.testing.assert_allclose(s.clients.v, before + s.server.theta - s.clients.sent, rtol=1e-14)
        before = s.clients.zeta
