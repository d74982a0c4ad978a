"""Bounds and potentials of theorems in numbers: two clients on a line, and what the papers and ``theory`` print.

That an inequality holds leaves room: a bound of another round, or a potential with half of its weights, may hold too.
"""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dualopt.methods import (
    Algorithm,
    AndersonFedSplit,
    DualAscent,
    DualFL,
    DualLBFGS,
    FedDR,
    FedDyn,
    FedSplit,
    FiveGCS,
    GrowingFedDyn,
    Known,
    OptimizedDualFL,
    SampledDualFL,
)
from dualopt.methods._dual_theorems import longest_run
from dualopt.methods._theorem import SMOOTH, SMOOTH_STRONG, STRONG, same
from dualopt.methods.compressors import Identity, RandK, TopK, kept_part
from dualopt.methods.participation import Bernoulli, Full, Participation, UniformSubset, WeightedSubset
from dualopt.objectives import Quadratic
from theory.feddyn import convex
from theory.frontier import cohorts_of_fivegcs

# mu_j = L_j = 2 and 6, the minimiser 1, gradients 1 and -1 there, or 1 and -3 with weights 3 and 1
EQUAL = Quadratic(A=np.array([[[2.0]], [[6.0]]]), b=np.array([[1.0], [7.0]]))
UNEQUAL = replace(EQUAL, b=np.array([[1.0], [9.0]]), weights=(3.0, 1.0))
ONE = UniformSubset(size=1)

# For nu = 1/2 the means of |s_j|^2 and |xi_j|^2, xi_j = s_j - nu theta*, are 3 and 3.25. Delta/N of Theorem F is at
# most nu/2 |theta*|^2 = 1/4 plus the mean of |xi_j|^2/(2 (mu_j - nu)); t is the root of t^2 + q t = p q, q = 1/15.
DELTA = 0.25 + 0.75 * 0.25 / 3.0 + 0.25 * 12.25 / 11.0
t = -1.0 / 30.0 + math.sqrt(1.0 / 900.0 + 1.0 / 60.0)
START = 0.75 * DELTA + (0.25 + 0.75 / 15.0) * 3.25

BOUNDS: list[tuple[Algorithm, Participation, int, float]] = [
    (DualFL(nu=0.5, rho=0.0), Full(), 1, 4.0 * 3.25 / 0.25 / 4.0),
    (DualFL(nu=0.5, rho=0.0), Full(), 3, 4.0 * 3.25 / 0.25 / 16.0),
    (DualFL(nu=0.5, rho=0.0625), Full(), 3, 0.75**2 * 3.25 / 0.25),
    (OptimizedDualFL(nu=0.5, rho=0.0), Full(), 3, 2.0 * 3.0 / 0.25 / 16.0),
    (OptimizedDualFL(nu=0.5, rho=0.0625), Full(), 3, 0.75**4 * 2.0 * 3.0 / 0.25 / 4.0),
    (SampledDualFL(nu=0.5, rho=0.0), Full(), 3, 4.0 * 3.25 / 0.25 / 16.0),
    (SampledDualFL(nu=0.5, rho=0.0), WeightedSubset(size=1), 3, 4.0 * 4.0 / 2.5**2 * (0.75 * DELTA + 0.25 * 3.25)),
    (SampledDualFL(nu=0.5, rho=0.0625), WeightedSubset(size=1), 3, 4.0 * (15.0 / 16.0) * (1.0 - t) ** 2 * START),
    (SampledDualFL(nu=2.0, rho=0.0), WeightedSubset(size=1), 3, math.inf),
    (SampledDualFL(nu=2.0, rho=0.0), Full(), 3, 4.0 * 7.0 / 4.0 / 16.0),
    (DualAscent(nu=0.5), Full(), 3, 3.0 / 0.25 / 5.0),
]


@pytest.mark.parametrize(("method", "who", "n", "bound"), BOUNDS, ids=[f"{m} {w} {n}" for m, w, n, _ in BOUNDS])
def test_bounds_are_the_printed_ones(method: Any, who: Participation, n: int, bound: float) -> None:
    known = Known.of(UNEQUAL, who)
    (theorem,) = [t for t in method.theorems if t.bound is not None and t.about(method, known)]
    assert theorem.bound(method, known, UNEQUAL.minimiser(), n) == pytest.approx(bound, rel=1e-12)


def test_bounds_know_where_the_minimiser_is() -> None:
    """In two dimensions, at (2, -3), with the gradients (1, 2) and (-3, -6): |xi_j|^2 is 49/4 and 145/4."""
    f = Quadratic(
        A=np.stack([2.0 * np.eye(2), 6.0 * np.eye(2)]), b=np.array([[3.0, -8.0], [15.0, -12.0]]), weights=(3.0, 1.0)
    )
    delta = 0.25 * 13.0 + 0.5 * (0.75 * 12.25 / 1.5 + 0.25 * 36.25 / 5.5)
    for method, who, n, expected in (
        (DualFL(nu=0.5, rho=0.0), Full(), 1, 18.25 / 0.25),
        (SampledDualFL(nu=0.5, rho=0.0), WeightedSubset(size=1), 3, 4.0 * 4.0 / 2.5**2 * (0.75 * delta + 0.25 * 18.25)),
    ):
        known = Known.of(f, who)
        (theorem,) = [t for t in method.theorems if t.bound is not None and t.about(method, known)]
        assert theorem.bound is not None
        assert theorem.bound(method, known, f.minimiser(), n) == pytest.approx(expected, rel=1e-12)


def test_the_potentials_on_the_dual() -> None:
    """The squared distance of the zeta_j, off by 1 and -2 here, and D less its least value, -E*/nu."""
    theta, known = UNEQUAL.minimiser(), Known.of(UNEQUAL)
    zeta = UNEQUAL.gradient(theta) / 0.25 + np.array([[1.0], [-2.0]])
    state = SimpleNamespace(clients=SimpleNamespace(zeta=zeta), server=SimpleNamespace(value=np.asarray(9.0)))
    ascent, lbfgs = DualAscent.theorems[0].potential, DualLBFGS.theorems[0].potential
    assert ascent is not None
    assert lbfgs is not None
    assert ascent(DualAscent(nu=0.25), known, theta, state, 2) == pytest.approx(1.75, rel=1e-12)
    energy = 0.75 * (1.0 - 1.0) + 0.25 * (3.0 - 9.0)  # of x^2 - x and 3 x^2 - 9 x at 1
    assert lbfgs(DualLBFGS(nu=0.25), known, theta, state, 2) == pytest.approx(9.0 + energy / 0.25, rel=1e-12)


@pytest.mark.parametrize("kappa", [1.25, 3.0, 9.0, 101.0])
@pytest.mark.parametrize("first", [1e-3, 0.25, 0.5, 0.75, 1.0, 4.0, 16.0])
@pytest.mark.parametrize("fall", [0.5, 1.0, 1.5, 1e6])
def test_rounds_of_adaptive_dualfl_are_those_of_its_theorem(kappa: float, first: float, fall: float) -> None:
    """(4) of theory/frontier/adaptive_dualfl.py: failures are of estimates of sigma, 2 sigma, ... up to the first."""
    sigma = 1.0 / (kappa - 1.0)
    failed = [sigma * 2.0**k for k in range(64) if first > sigma and sigma * 2.0**k <= first]
    estimates = [0.5 * sigma, *failed] if failed else [first]
    expected = 1.0 + math.sqrt(1.0 + 1.0 / estimates[0]) * math.log(max(fall, 1.0))
    for s in estimates:
        expected += 4.0 / math.sqrt(s) + math.log(5.0) * math.sqrt(1.0 + 1.0 / s) + 1.0
    assert longest_run(kappa, first, fall) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("fall", [1.0, 1e3, 1e12])
def test_rounds_of_adaptive_dualfl_in_one_formula(fall: float) -> None:
    """With a first estimate of 1, from kappa = 2 on; a twentieth less would be too few."""
    kappa = 2.0 ** np.arange(1.0, 41.0, 0.25)
    rounds = np.array([longest_run(k, 1.0, fall) for k in kappa])
    bounds = np.sqrt(2.0 * kappa) * math.log(fall) + 28.0 * np.sqrt(kappa) + 3.0 * np.log2(kappa)
    assert np.all(rounds <= bounds)
    assert np.any(rounds > 0.95 * bounds)


def test_what_theorems_know_of_a_run() -> None:
    f, coins = UNEQUAL, Bernoulli(probability=0.1)
    known = Known.of(f, WeightedSubset(size=1))
    assert (known.mu, known.L, known.N, known.bounds) == (2.0, 6.0, 2, [(2.0, 2.0), (6.0, 6.0)])
    assert known.law.inclusion == known.drawn == known.weights == (0.75, 0.25)  # drawn by the weights of the clients
    assert Known.of(f, WeightedSubset(size=1, weights=(1.0, 3.0))).law.inclusion == (0.25, 0.75)
    assert (Known.of(EQUAL).weights, Known.of(EQUAL).equal, known.equal) == ((0.5, 0.5), True, False)
    assert (known.p, Known.of(f, coins).p, Known.of(f).p) == (0.25, 0.1, 1.0)
    assert Known.of(f, coins).drawn == (0.75, 0.25)  # of the smallest cohort, where fewer are expected
    assert Known.of(f).drawn == (1.0, 1.0)
    assert known.mean(np.array([1.0, 5.0])) == 2.0


def test_what_theorems_know_of_a_compressor() -> None:
    """Of one that is biased, by which part of a vector it is off at most; of others nothing, which is 1."""
    wide = Quadratic(A=np.stack([np.eye(4)] * 2), b=np.ones((2, 4)))
    known = {c: Known.of(wide, None, c) for c in (None, Identity(), RandK(size=1), TopK(size=1))}
    assert [of.kept for of in known.values()] == [1.0, 1.0, 0.25, pytest.approx(kept_part(TopK(size=1), (4,), 2))]
    assert [of.q for of in known.values()] == [1.0, 1.0, 1.0, pytest.approx(math.sqrt(0.75))]
    in_the_mean: Any = SimpleNamespace(unbiased=True, delta=lambda shape, n_clients: 0.75)
    silent: Any = SimpleNamespace(unbiased=False)
    assert Known.of(wide, None, in_the_mean).q == Known.of(wide, None, silent).q == 1.0


def test_needs_on_both_sides() -> None:
    assert same((0.1 + 0.2, 1.0), (0.3, 1.0))
    assert not same((0.3, 0.5), (0.3, 0.6))
    assert not same((0.30001,), (0.3,))
    for A, strong in (((0.25, 1.0), True), ((0.0, 1.0), False), ((-0.5, 1.0), False)):
        known = Known.of(replace(EQUAL, A=np.reshape(A, (2, 1, 1))))
        assert [need.holds(None, known) for need in (STRONG, SMOOTH_STRONG, SMOOTH)] == [strong, strong, True]
    kinks: Any = SimpleNamespace(mu=0.5, L=math.inf)
    assert [need.holds(None, kinks) for need in (STRONG, SMOOTH_STRONG, SMOOTH)] == [True, False, False]


def of_feddyn(method: Any, f: Quadratic, who: Participation, source: str) -> float:
    """The potential of a theorem where the model is off by 1, h = alpha/2, and the memories are off by 1 and -2."""
    theta, off = f.minimiser(), np.array([[1.0], [-2.0]])
    server = SimpleNamespace(theta=theta + 1.0, h=np.array([0.5 * method.alpha]))
    state = SimpleNamespace(server=server, clients=SimpleNamespace(gradient=f.gradient(theta) + off))
    (theorem,) = [t for t in method.theorems if t.source == source and t.potential]
    return theorem.potential(method, Known.of(f, who), theta, state, 2)


@pytest.mark.parametrize(
    ("source", "alpha", "constants"),
    [("Theorem 2", 200.0, convex.constants_of_lemma_1), ("Theorem 3", 200.0, convex.constants_of_lemma_8)],
)
def test_the_potentials_of_feddyns_paper_are_those_of_the_claims(source: str, alpha: float, constants: Any) -> None:
    kappa, _ = constants(SimpleNamespace(L=6.0, mu=2.0, alpha=alpha, fraction=0.5))
    assert of_feddyn(FedDyn(alpha=alpha), EQUAL, ONE, source) == pytest.approx(2.25 + kappa * 2.5, rel=1e-12)


def test_the_potentials_of_feddyn_with_few_clients() -> None:
    """Theorems A, A' and C with alpha = 3: r, p and w_j in the weights of the squares."""
    a = 0.5 / 0.5 * (1.0 / 9.0 + 2.0 / 3.0 / 8.0) * 2.5  # m = 3/2, and r = 1/2
    assert of_feddyn(FedDyn(alpha=3.0), EQUAL, ONE, "Theorem A") == pytest.approx(2.25 + a, rel=1e-12)
    first, second = 1.5 * (1.0 / 9.0 + 2.0 / 3.0 / 4.0), 0.5 * (1.0 / 9.0 + 2.0 / 3.0 / 12.0)  # m_j = 1 and 3, r = 3/5
    weighted = 2.25 + 0.6 * (first * 1.0 + second * 4.0)
    assert of_feddyn(FedDyn(alpha=3.0), UNEQUAL, ONE, "Theorem A'") == pytest.approx(weighted, rel=1e-12)
    growing = 16.0 * 1.375**2 + 1.5 * 1.0 + 0.5 * 4.0  # alpha is 4 after two rounds
    assert of_feddyn(GrowingFedDyn(alpha=3.0, growth=0.5), UNEQUAL, ONE, "Theorem C") == pytest.approx(growing)


def test_weights_of_everybody_are_not_those_of_cohorts() -> None:
    """Theorem A admits sqrt(L mu), whatever the weights, where all take part, and Theorem A' more where few do."""
    assert FedDyn().suggested(UNEQUAL).alpha == pytest.approx(math.sqrt(12.0), rel=1e-12)


def test_what_is_proved_of_all_clients_needs_all_to_be_active_at_times() -> None:
    never = WeightedSubset(size=1, weights=(1e-300, 1e300))
    assert never.inclusion(2) == (0.0, 1.0)
    assert FedSplit().guarantee(EQUAL, never) == "none: Theorem B needs clients that are all active at times"


def test_the_potentials_of_5gcs() -> None:
    """Models off by 1, duals times N by 1, -2, 3 and 4: the squares add up to 30, and L - mu = 6.5."""
    A = np.array([1.0, 3.0, 2.0, 7.0])[:, None, None]
    f = Quadratic(A=A, b=np.array([[2.0], [1.0], [0.0], [5.0]]))
    theta, off = f.minimiser(), np.array([[1.0], [-2.0], [3.0], [4.0]])
    duals = (f.gradient(theta) - 0.5 * theta + off) / 4.0
    state = SimpleNamespace(server=SimpleNamespace(theta=theta + 1.0), clients=SimpleNamespace(dual=duals))
    r = 1.0 / 1.05  # which is more than 0.65/1.65
    for source, tau, who, expected in (
        ("Theorem G", 2.5, UniformSubset(size=2), 1.0 + (0.01 + 0.2 / 6.5) / 0.5 * 30.0 / 4.0),
        ("Theorem H", 2.5, Full(), (1.0 + 0.05 * 0.1 * 1.5) ** 2 + 0.95 / r * 0.01 / 4.0 * 30.0),
        ("", 2.0, UniformSubset(size=2), 10.0 + (1.0 / 2.0 + 4.0 / 6.5) / 0.5 * 30.0 / 16.0),
    ):
        (theorem,) = [t for t in FiveGCS.theorems if t.source == source]
        assert theorem.potential is not None
        method = FiveGCS(gamma=0.1, mu=0.5, tau=tau)
        assert theorem.potential(method, Known.of(f, who), theta, state, 2) == pytest.approx(expected, rel=1e-12)


def test_mixtures_are_regularised() -> None:
    """AndersonFedSplit: sqrt(1 + lambda) delta, lambda = 2^(-104/3) in double precision."""
    f = replace(EQUAL, A=np.array([[[0.5]], [[10.0]]]))
    theorem, method = AndersonFedSplit.theorems[0], AndersonFedSplit(step=0.1)
    assert theorem.factor is not None
    expected = math.sqrt(1.0 + 2.0 ** (-104.0 / 3.0)) * 0.95 / 1.05
    assert theorem.factor(method, Known.of(f)) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize(("off", "reached"), [(0.0, True), (1e-9, True), (1e-7, False)])
def test_a_point_whose_model_is_another_one_is_not_reached(off: float, reached: bool) -> None:
    """FedDR: the distance is finite where every model is the proximal point of its point, up to rounding."""
    theta, x = EQUAL.minimiser(), np.array([[3.0], [-1.0]])
    y = (x + 0.3 * EQUAL.gradient(x)) * (1.0 + off)
    limits = theta + 0.3 * EQUAL.gradient(theta)
    (theorem,) = FedDR.theorems
    assert theorem.potential is not None
    state = SimpleNamespace(clients=SimpleNamespace(x=x, y=y))
    expected = 0.5 * float(np.sum((y - limits) ** 2)) if reached else math.inf
    found = theorem.potential(FedDR(eta=0.3, relaxation=2.0), Known.of(EQUAL), theta, state, 2)
    assert found == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("size", "gamma"), [(2, 0.1), (2, 0.6), (1, 0.1)])
def test_theorem_i_is_that_of_the_claim(size: int, gamma: float) -> None:
    """Its factor and its potential: models off by 1, duals times N by 1, -2, 3 and 4."""
    A = np.array([1.0, 3.0, 2.0, 7.0])[:, None, None]
    f, who = Quadratic(A=A, b=np.array([[2.0], [1.0], [0.0], [5.0]])), UniformSubset(size=size)
    method = FiveGCS(gamma=gamma, mu=0.5).suggested(f)
    known, theta, off = Known.of(f, who), f.minimiser(), np.array([[1.0], [-2.0], [3.0], [4.0]])
    duals = (f.gradient(theta) - 0.5 * theta + off) / 4.0
    state = SimpleNamespace(server=SimpleNamespace(theta=theta + 1.0), clients=SimpleNamespace(dual=duals))
    (theorem,) = [t for t in method.theorems if t.source == "Theorem I"]
    c, k, square, fits = cohorts_of_fivegcs.numbers(0.5 * gamma, size / 4.0, 4, 1.0 / (gamma * 6.5))
    assert fits
    assert theorem.fails(method, known) == ""
    assert theorem.factor is not None
    assert theorem.potential is not None
    assert theorem.factor(method, known) == pytest.approx(square, rel=1e-12)
    claimed = (1.0 + c * gamma * 1.5) ** 2 + k * gamma**2 / 4.0 * 30.0
    assert theorem.potential(method, known, theta, state, 2) == pytest.approx(claimed, rel=1e-12)
