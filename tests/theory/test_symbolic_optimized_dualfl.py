"""The constants of OptimizedDualFL's theorem, derived again from the potential and the inequality of the clients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy as sp

from tests.theory._symbolic import assert_same, compared, positive, stand_in
from theory.optimized_dualfl import rate

nu, rho, A, B, away = positive("nu rho A B away")


def factor_of_the_model(N: int) -> Any:
    """Return the factor of |theta - theta*|^2: what the interpolation of all clients leaves of the bracket."""
    best, models = sp.Symbol("best"), sp.symbols(f"theta1:{N + 1}")
    zeta, optimum = ([*free, -sum(free)] for free in (sp.symbols(f"{name}1:{N}") for name in ("zeta", "xi")))
    theta = sum(models) / sp.Integer(N)
    error = sum(
        nu / 2 * (x - best) ** 2 + nu * rho / (2 * (1 - rho)) * ((z - x) - (o - best)) ** 2
        for x, z, o in zip(models, zeta, optimum, strict=True)
    )
    gradients = [nu * (x - theta) for x in models]
    steps = [z - g / nu for z, g in zip(zeta, gradients, strict=True)]
    bracket = (
        error
        - sum(g**2 for g in gradients) / (2 * nu)
        - nu * rho / (2 * (1 - rho)) * sum((v - o) ** 2 for v, o in zip(steps, optimum, strict=True))
    )
    return sp.simplify(sp.expand(bracket) / (theta - best) ** 2)


def test_theorem(monkeypatch: pytest.MonkeyPatch) -> None:
    """(1 - rho) A_n B_n <= Phi_n <= Phi_0 = nu |zeta*|^2, and B_n is at least what the clients' inequalities leave."""
    N = 3
    unit = factor_of_the_model(N)
    assert not unit.free_symbols - {nu, rho}
    step = stand_in(n=4, A=A, size=0.0, theta=None)
    monkeypatch.setattr(rate, "path", lambda case: [step])
    monkeypatch.setattr(rate, "bracket", lambda case, step: B)
    monkeypatch.setattr(rate, "dual_optimum", lambda case: np.array([[3.0], [4.0], [-7.0]]))
    case = stand_in(
        algorithm=stand_in(nu=0.5, rho=0.25),
        n_clients=N,
        distance=lambda theta: away,
        distance_rounding=lambda theta: 0.0,
    )
    dual, model, distance = compared(rate.optimized_theorem, case)
    at = {nu: sp.Rational(1, 2), rho: sp.Rational(1, 4)}
    potential = (nu * (9 + 16 + 49) / ((1 - rho) * A)).subs(at)
    assert_same(dual.lhs, B)
    assert_same(dual.rhs, potential)
    assert_same(model.lhs, unit.subs(at) * away)
    assert_same(model.rhs, B)
    assert_same(distance.lhs, unit.subs(at) * away)
    assert_same(distance.rhs, potential)
