"""The constants of Theorem E, derived again from the inequalities that the proof names."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import sympy as sp

from dualopt.methods._dual_theorems import LEAST_FALL, MOST_FALL
from dualopt.methods.dualfl import momentum
from theory._problems import quadratic
from theory.frontier import restarts


def test_the_gap_of_an_epoch() -> None:
    """The momentum makes u - eta and u - xi^i multiples of xi - z, and the weights add up."""
    t, last, now, z, xi = sp.symbols("t last now z xi", real=True)
    u = (1 - 1 / t) * last + xi / t
    eta = last + (z - last) / t  # z = z^(i-1)
    assert sp.expand(u - eta - (xi - z) / t) == 0
    z_next = last + t * (now - last)
    assert sp.expand(u - now - (xi - z_next) / t) == 0
    t_next, beta = momentum(7.3, 0.0)
    assert t_next * t_next - t_next == pytest.approx(7.3 * 7.3, rel=1e-14)
    previous = np.array([0.3, -1.0])
    after = np.array([0.7, 2.0])
    z_value = previous + 7.3 * (after - previous)
    np.testing.assert_allclose(after + (z_value - after) / t_next, after + beta * (after - previous), rtol=1e-14)
    # the lower model: h(eta) - <grad h(eta), eta> = -(S/2)|w|^2 for w = -sum eta/S
    S, total = sp.symbols("S total", positive=True)
    assert sp.simplify(total**2 / (2 * S) - total * total / S + S / 2 * (total / S) ** 2) == 0
    # the claim has |grad g(w-bar) - xi^0|^2 / (2 T): in the first round w-bar = 0, xi^0 = 0, T = 1, g' = -b
    f = quadratic()
    case = restarts.restarted(f, None, 1)
    (found, _) = restarts.restart_gap(case)
    assert found.rhs == pytest.approx(0.5 * float(np.sum(f.objective.b**2)) / f.mu, rel=1e-12)


def test_epochs() -> None:
    """q from |a + b| <= |a| + |b| with two distances of 2(kappa - 1) errors each, and T >= (n + 1)^2/4."""
    kappa, n, r = sp.symbols("kappa n r", positive=True)
    error = sp.symbols("error", positive=True)
    distance = sp.sqrt(2 * (kappa - 1) * error)
    q = sp.simplify(distance / sp.sqrt(2 * (n + 1) ** 2 / 4) / sp.sqrt(error))
    assert sp.simplify(q - 2 * sp.sqrt(kappa - 1) / (n + 1)) == 0
    (longest,) = sp.solve(sp.Eq(1, (2 * sp.sqrt(kappa - 1) / (n + 1)) * (1 + r)), n)  # G_0 = r^2 G_n
    assert sp.simplify(longest + 1 - 2 * (1 + r) * sp.sqrt(kappa - 1)) == 0
    rate = (1 + r) / sp.log(r)  # 2 (1 + r) sqrt(kappa) rounds for a fall of 2 ln r
    best: Any = sp.nsolve(sp.diff(rate, r), r, 3.5)
    assert LEAST_FALL < best < MOST_FALL
    assert float(rate.subs(r, best)) == pytest.approx(3.591, abs=1e-3)
    assert max(float(rate.subs(r, end)) for end in (LEAST_FALL, MOST_FALL)) <= 4.8


def test_energy_whatever_the_restarts() -> None:
    tau, kappa, r, e, L = sp.symbols("tau kappa r e L", positive=True)
    greatest = sp.maximum((r + e) ** 2 / 2 - (1 + tau) * r**2 / 2, r, sp.Interval(0, sp.oo))
    assert sp.simplify(greatest - (1 + 1 / tau) * e**2 / 2) == 0
    # W_(n+2) is at most the error and K of round n + 1; (1/2)|e|^2 is at most 2 (K + K')
    whole = 2 * (1 + 1 / tau) + 1
    assert sp.simplify(1 / (whole / tau) - tau**2 / (2 + 3 * tau)) == 0
    told = 1 / ((kappa - 1) * (2 * kappa + 1))
    assert sp.simplify((tau**2 / (2 + 3 * tau)).subs(tau, 1 / (kappa - 1)) - told) == 0
    # tau is nu times the strong convexity 1/(L - nu) of the conjugate
    assert sp.simplify((1 / (L - 1) - tau).subs(tau, 1 / (kappa - 1)).subs(kappa, L)) == 0
    case = restarts.restarted(quadratic(), "gradient", 3)
    whole_factor = 1.0 + 1.0 / (49.0 * 101.0)
    inequalities = [q for q in restarts.restart_energy(case) if q.what == "two rounds"]
    plain = [q for q in restarts.restart_energy(case, times=1e-300) if q.what == "two rounds"]
    assert math.isclose(inequalities[0].lhs / plain[0].lhs, whole_factor, rel_tol=1e-9)
