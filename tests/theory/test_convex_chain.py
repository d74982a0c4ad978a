"""The chains and the lower bounds on them: no method is below, and wrong chains, bounds and methods are caught."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualopt.lab.claims import Claim, Inequality, check
from dualopt.lab.rates import assert_sublinear_rate, estimate_order
from dualopt.losses import AbsoluteDeviation, Squared
from dualopt.methods import ConsensusFedSplit, DualFL, OptimizedDualFL
from dualopt.objectives import LocalProblem, Quadratic
from tests.theory.mutation_table import telling
from tests.theory.mutation_table import verdicts as judged
from theory._cases import Case
from theory._claims import discover
from theory.lower_bounds._convex_chain import Chain, geometric, kinked, level, power, squares
from theory.lower_bounds._convex_methods import ConjugateGradients, chain_case, distances, runs
from theory.lower_bounds.convex_rounds import ACCURACY, chain, needed
from theory.mutations.dualfl import MUTATIONS

CHAPTERS = {name: chapter for name, chapter in discover().items() if name.startswith("convex_")}
INSTANCES = [
    geometric(50.0, 9, pairs=2),
    squares(8),
    squares(9, ridge=0.3, pairs=2),
    level(6),
    power(9, pairs=2),
    kinked("random", np.sort(np.random.default_rng(0).uniform(0.1, 1.0, 7))[::-1]),
]
EXAMPLES = max(5, settings.default.max_examples // 8) if settings.default else 5
SIZES = st.integers(2, 12)
STEPS = st.floats(-2.0, 2.0).map(lambda power: 10.0**power)


def verdicts(claim: Claim, cases: Iterator[Any]) -> Iterator[str]:
    return (found.verdict for found in judged(claim, cases))


def dense(f: Chain, elsewhere: Sequence[int] = ()) -> Quadratic:
    """The same quadratic with matrices; the links ``elsewhere`` are those of the other client of the pair."""
    constant = f.gradient(f.zeros())
    A = np.stack([f.gradient(unit) - constant for unit in np.eye(f.shape[0])], axis=-1)
    for k in elsewhere:
        row = np.eye(f.shape[0])[k] - f.ratios[k] * np.eye(f.shape[0])[k - 1]
        A[k % 2] -= f.weight * np.outer(row, row)
        A[1 - k % 2] += f.weight * np.outer(row, row)
    return Quadratic(A=A, b=-constant, c=f.value(f.zeros()))


@pytest.mark.parametrize("instance", INSTANCES[:3], ids=lambda instance: instance.name)
def test_chains_of_squares_are_quadratics(instance: Case) -> None:
    f, g, rng = instance.objective, dense(instance.objective), np.random.default_rng(1)
    theta, linear, center = rng.standard_normal((3, f.n_clients, *f.shape))
    np.testing.assert_allclose(f.value(theta), g.value(theta), rtol=1e-12)
    np.testing.assert_allclose(f.gradient(theta), g.gradient(theta), rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(f.L, g.L, rtol=1e-12)
    np.testing.assert_allclose(f.mu, g.mu, rtol=1e-12, atol=1e-15)
    weight = rng.uniform(0.5, 2.0, f.n_clients)
    mine, theirs = (LocalProblem(objective=h, linear=linear, weight=weight, center=center) for h in (f, g))
    np.testing.assert_allclose(f.exact_minimiser(mine), g.exact_minimiser(theirs), rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(f.select([1]).gradient(theta[1:2]), g.gradient(theta)[1:2], rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(instance.theta, g.minimiser(), rtol=1e-11)


def test_the_condition_number_of_the_mean_tends_to_that_of_the_clients_from_below() -> None:
    """The smoothest and the roughest vector of E are waves of length d: what is missing falls like 1/d^2."""
    few, many = (100.0 - np.linalg.cond(dense(geometric(100.0, d).objective).A.mean(axis=0)) for d in (60, 120))
    assert 3.0 * many < few < 5.0 * many
    assert many > 0


@pytest.mark.parametrize("instance", INSTANCES, ids=lambda instance: instance.name)
def test_minimisers_are_certified_by_subgradients(instance: Case) -> None:
    f, rng = instance.objective, np.random.default_rng(2)
    np.testing.assert_allclose(instance.subgradients.sum(axis=0), 0.0, atol=1e-12 * f.weight)
    here = f.value(instance.theta)
    for size in 10.0 ** np.arange(-3, 3):
        step = size * rng.standard_normal(f.shape)
        slack = f.value(instance.theta + step) - here - instance.subgradients @ step - 0.5 * f.ridge * step @ step
        assert (slack >= -1e-12 * np.abs(here)).all()


@pytest.mark.parametrize("instance", INSTANCES[3:], ids=lambda instance: instance.name)
def test_local_minimisers_of_kinked_chains_are_the_least_points(instance: Case) -> None:
    f, rng = instance.objective, np.random.default_rng(3)
    linear, center = f.weight * rng.standard_normal((2, f.n_clients, *f.shape))
    problem = LocalProblem(objective=f, linear=linear, weight=0.7, center=center)
    theta = f.exact_minimiser(problem)
    least, curvature = problem.value(theta), f.ridge + 0.7
    for size in 10.0 ** np.arange(-3, 3):
        step = size * rng.standard_normal(theta.shape)
        room = 0.5 * curvature * np.sum(step**2, axis=1)
        assert (problem.value(theta + step) >= least + room - 1e-12 * np.abs(least)).all()


def test_without_a_ridge_a_local_problem_needs_a_proximal_term() -> None:
    with pytest.raises(ValueError, match="no unique minimiser"):
        squares(3).objective.exact_minimiser(LocalProblem(objective=squares(3).objective))


class RandomMethod:
    """Clients that compute what the class of methods admits, and send all of it in every round."""

    def __init__(self, f: Chain, seed: int) -> None:
        self.f, self.rng = f, np.random.default_rng(seed)
        self.shared: list[np.ndarray] = [f.zeros()]

    def combination(self, vectors: list[np.ndarray]) -> np.ndarray:
        return self.rng.standard_normal(len(vectors)) @ np.stack(vectors)

    def computed(self, j: int, size: float) -> list[np.ndarray]:
        """The vectors of client j after some local work."""
        own, mine = self.f.select([j]), list(self.shared)
        for _ in range(self.rng.integers(1, 6)):
            x, a, b = (self.combination(mine) for _ in range(3))
            problem = LocalProblem(objective=own, linear=a[None], weight=size, center=b)
            mine += [own.gradient(x)[0], own.exact_minimiser(problem)[0]]
        return mine

    def round(self, size: float) -> int:
        """Communicate; return the last coordinate that anybody has."""
        every = [self.computed(j, size) for j in range(self.f.n_clients)]
        fresh = [x / max(1.0, float(np.max(np.abs(x)))) for mine in every for x in mine[len(self.shared) :]]
        self.shared = [self.combination(fresh) for _ in range(3)] + fresh
        return int(np.flatnonzero(np.any(np.stack(self.shared) != 0, axis=0))[-1]) + 1


@given(
    d=SIZES, pairs=st.integers(1, 2), size=STEPS, ridge=st.floats(0.0, 1.0), seed=st.integers(0, 99), kink=st.booleans()
)
@settings(max_examples=4 * EXAMPLES)
def test_no_method_of_the_class_gains_two_coordinates_in_a_round(d, pairs, size, ridge, seed, kink) -> None:
    loss = AbsoluteDeviation() if kink else Squared()
    ratios = np.append(np.random.default_rng(seed).uniform(0.2, 2.0, d), 0.0)
    method = RandomMethod(Chain(ratios=ratios, weight=1.0, ridge=ridge, loss=loss, groups=(0, 1) * pairs), seed)
    reached = [method.round(size) for _ in range(d)]
    assert all(last <= n for n, last in enumerate(reached, start=1))
    if not kink:  # a kink may hold a pair of zeros together
        assert reached == list(range(1, d + 1))


@pytest.mark.parametrize(
    ("elsewhere", "verdict"), [((), "holds"), ((2,), "violated"), (range(1, 40, 2), "violated")], ids=str
)
def test_a_client_that_has_neighbouring_links_is_caught(elsewhere, verdict: str) -> None:
    (case, *_) = telling("convex_span")
    f = dense(case.objective, elsewhere)
    np.testing.assert_allclose(f.minimiser(), case.theta, rtol=1e-10)
    found = check(CHAPTERS["convex_span"].claim, replace(case, objective=f))
    assert found.verdict == verdict
    if found.witness:
        assert found.witness.n == min(elsewhere)  # the first round that gains more than one coordinate


def test_dualfl_gains_a_coordinate_in_every_round() -> None:
    (case, *_) = telling("convex_span")
    reached = [np.flatnonzero(s.server.theta)[-1] + 1 for s in case.snapshots()]
    assert reached == list(range(1, case.rounds + 1))


def scaled(claim: Claim, what: str, factor: float) -> Claim:
    """The same claim with a larger lower bound."""

    def compare(case: Any) -> Iterator[Inequality]:
        for c in claim.compare(case):
            if what in c.what:
                yield c._replace(lhs=factor * c.lhs)

    return replace(claim, compare=compare)


@pytest.mark.parametrize(
    ("name", "what", "factor"),
    [
        ("convex_strong_bound", "distance", 1.000001),
        ("convex_strong_bound", "energy", 1.000001),
        ("convex_smooth_bound", "energy", 1.000001),
        ("convex_nonsmooth_bound", "distance", 1.001),
    ],
)
def test_lower_bounds_are_attained(name: str, what: str, factor: float) -> None:
    claim = CHAPTERS[name].claim
    assert set(verdicts(scaled(claim, what, 1.0), telling(name))) == {"holds"}
    assert "violated" in verdicts(scaled(claim, what, factor), telling(name))


@pytest.mark.parametrize("instance", [geometric(100.0, 30, pairs=2), squares(20)], ids=lambda instance: instance.name)
def test_conjugate_gradients_have_the_least_energy_a_round_later(instance: Case) -> None:
    f, n, w = instance.objective, np.arange(1, 15), instance.objective.weight
    best = float(np.mean(f.value(instance.theta)))
    case = chain_case(instance, ConjugateGradients(), 15)
    errors = [float(np.mean(f.value(s.server.theta))) - best for s in case.snapshots()]
    q = (np.sqrt(f.L[0]) - 1.0) / (np.sqrt(f.L[0]) + 1.0)
    least = w * q ** (2 * n + 1) * (1 - q * q) / (1 - q ** (2 * n + 2)) / 4 if f.ridge else w / (4.0 * (n + 1))
    np.testing.assert_allclose(errors[1:], least, rtol=1e-10)


CAUGHT = ("convex_strong_rounds", "convex_smooth_rounds", "convex_nonsmooth_rounds", "convex_nonsmooth_order")


@pytest.mark.parametrize("name", CAUGHT)
def test_dualfl_without_momentum_is_caught(name: str) -> None:
    cases = [case for case in telling(name) if isinstance(case.algorithm, DualFL)]
    assert "violated" in verdicts(CHAPTERS[name].claim, map(MUTATIONS["momentum dropped"], cases))


def test_another_solution_is_not_reached() -> None:
    """With twice the pull at its beginning a kinked chain ends elsewhere, and the order is lost."""
    (case, *_) = telling("convex_nonsmooth_order")
    wrong = replace(case, objective=replace(case.objective, weight=2.0 * case.objective.weight))
    assert check(CHAPTERS["convex_nonsmooth_order"].claim, wrong).verdict == "violated"


def test_a_rate_test_on_the_power_chain_does_not_pass_by_luck() -> None:
    case = chain_case(power(3000), DualFL(rho=0.0), 300)
    start = float(np.sum(case.theta**2))
    accelerated = [start, *distances(case)]
    without: Any = MUTATIONS["momentum dropped"](case)
    plain = [start, *distances(without)]
    found = {name: estimate_order(errors) for name, errors in (("accelerated", accelerated), ("plain", plain))}
    assert found["accelerated"].low <= 2.0 <= found["accelerated"].high < 2.1
    assert 0.9 < found["plain"].low < found["plain"].high < 1.1
    assert_sublinear_rate(accelerated, 2.0)
    with pytest.raises(AssertionError):
        assert_sublinear_rate(plain, 2.0)


# The least number of rounds; DualFL's and those of Theorem 3.3; OptimizedDualFL's and those of its bound.
ROUNDS = {10.0: (15, 25, 56, 19, 27), 100.0: (46, 92, 220, 71, 96), 1000.0: (146, 307, 790, 239, 317)}


@pytest.mark.parametrize("kappa", ROUNDS)
def test_rounds_to_the_accuracy_and_fedsplit_takes_the_least_number(kappa: float) -> None:
    lower, *others = ROUNDS[kappa]
    found = []
    for method in (DualFL(), OptimizedDualFL()):
        first, second, _ = CHAPTERS["convex_strong_rounds"].claim.compare(chain(kappa, method))
        assert first.lhs == lower
        found += [second.lhs, second.rhs]
    assert found == others
    case = chain(kappa, ConsensusFedSplit())
    assert needed(distances(case), ACCURACY * float(case.theta @ case.theta)) == lower


@given(kappa=st.floats(1.5, 500.0), d=st.integers(4, 30), pairs=st.integers(1, 3))
@settings(max_examples=EXAMPLES)
def test_no_method_is_below_the_strongly_convex_bound(kappa: float, d: int, pairs: int) -> None:
    found = verdicts(CHAPTERS["convex_strong_bound"].claim, runs(geometric(kappa, d, pairs=pairs), d // 2))
    assert set(found) == {"holds"}


@given(half=st.integers(1, 10), pairs=st.integers(1, 2))
@settings(max_examples=EXAMPLES)
def test_no_method_is_below_the_nonsmooth_bound(half: int, pairs: int) -> None:
    found = verdicts(CHAPTERS["convex_nonsmooth_bound"].claim, runs(level(2 * half, pairs=pairs), 2 * half))
    assert set(found) == {"holds"}
