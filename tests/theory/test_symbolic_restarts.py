"""The constants of Theorem E, derived again from the inequalities that the proof names."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import sympy as sp

from dualopt.methods._dual_theorems import LEAST_FALL, MOST_FALL, TELLS, longest_run
from dualopt.methods.dualfl import momentum
from theory._problems import quadratic
from theory.frontier import adaptive_dualfl, restarts


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


def test_one_round_of_held_momentum() -> None:
    """The momentum (3.4) makes y of z and xi, and its recursion takes the squares from one round to the next."""
    s, t, t_next, z, last, xi = sp.symbols("s t t_next z last xi", positive=True)
    a = 1 / t_next
    y = z + s * (t_next - 1) * (last - z)
    eta = last + (z - last) / (t - 1) * (t - 1) / t_next * (1 - s * (t_next - 1))
    u = (1 - a) * last + a * xi
    assert sp.simplify(u - eta - a * (xi - y)) == 0
    # convexity of the square: y lies between z and last, with the weight s (t - 1)
    weight = s * (t_next - 1)
    rest = a**2 * ((1 - weight) * (xi - z) ** 2 + weight * (xi - last) ** 2 - (xi - y) ** 2)
    assert sp.simplify(rest - a**2 * weight * (1 - weight) * (z - last) ** 2) == 0
    assert sp.simplify(a**2 * weight - s * a * (1 - a)) == 0
    # (3.4): beta in terms of s, and the recursion of t, for rho = s/(1 + s)
    for now, estimate in ((3.0, 0.01), (10.0, 0.005), (1.0, 0.3)):
        rho = estimate / (1.0 + estimate)
        after, beta = momentum(now, rho)
        assert beta == pytest.approx((now - 1.0) / after * (1.0 - estimate * (after - 1.0)), rel=1e-12, abs=1e-15)
        left, right = (1.0 - estimate * (after - 1.0)) / after**2, (1.0 - 1.0 / after) * (1.0 + estimate) / now**2
        assert left == pytest.approx(right, rel=1e-12)
    held = math.sqrt(1.0 + 1.0 / 0.02)  # where t stays, and (1 + s)/t^2 = s
    assert momentum(held, 0.02 / 1.02)[0] == pytest.approx(held, rel=1e-12)
    assert (1.0 + 0.02) / held**2 == pytest.approx(0.02, rel=1e-12)
    # the claim has B (G_0 + (s/2)|grad g(w-bar) - xi^0|^2)
    case = adaptive_dualfl.adaptive(quadratic(), 40, share=1.0)
    for step, found in zip(
        (step for step in adaptive_dualfl.path(case) if step.held),
        (found for found in adaptive_dualfl.adaptive_gap(case) if found.what == "held momentum"),
        strict=True,
    ):
        t_0 = math.sqrt(1.0 + 1.0 / step.s0)
        whole = step.first + 0.5 * (1.0 + step.s0) / t_0**2 * step.found.slopes
        assert found.rhs == pytest.approx(step.left * whole, rel=1e-12)


def test_rounds_of_the_momentum_that_adapts() -> None:
    r = sp.symbols("r", positive=True)
    # (3) in terms of r^2 = G_0/G, and what it is at most for r >= 1
    assert sp.expand(r**2 + (1 + r) ** 2 - (2 * r**2 + 2 * r + 1)) == 0
    assert sp.solve(sp.Eq(5 * r**2, 2 * r**2 + 2 * r + 1), r) == [1]
    # growing: t >= (n + 1)/2, so that t^2 s >= 4 at the latest for n + 1 = 4/sqrt(s); then G <= G_0
    n, s = sp.symbols("n s", positive=True)
    assert sp.simplify(sp.solve(sp.Eq(((n + 1) / 2) ** 2 * s, TELLS), n)[0] + 1 - 4 / sp.sqrt(s)) == 0
    # or after one round, for s > 16: held momentum is shorter than its bound by more than that one
    for estimate in (16.0, 100.0, 1e6):
        for fall in (1.0, 1e9):
            longest = math.log(5.0 * fall) / -math.log1p(-math.sqrt(estimate / (1.0 + estimate)))
            assert 1.0 + longest <= math.log(5.0 * fall)
    for kappa in (2.1, 5.0, 5.1, 101.0, 1e3, 3e5):
        sigma = 1.0 / (kappa - 1.0)
        for fall in (1.0, 1e3, 1e12):
            alone = 1.0 + math.sqrt(1.0 + 1.0 / sigma) * math.log(5.0 * fall) + 4.0 / math.sqrt(sigma) + 1.0
            assert longest_run(kappa, sigma, fall) == pytest.approx(alone, rel=1e-12)
            failures = [sigma * 2.0**k for k in range(60) if sigma * 2.0**k <= 1.0]  # the s in which (3) fails
            whole = 1.0 + math.sqrt(2.0 * kappa - 1.0) * math.log(fall)
            for least in [0.5 * sigma, *failures]:
                whole += 4.0 / math.sqrt(least) + math.log(5.0) * math.sqrt(1.0 + 1.0 / least) + 1.0
            assert longest_run(kappa, 1.0, fall) == pytest.approx(whole, rel=1e-12)
            short = math.sqrt(2.0 * kappa) * math.log(fall) + 28.0 * math.sqrt(kappa) + 3.0 * math.log2(kappa)
            assert whole <= short
