"""The zero chain: random linear-span methods, the inequalities of proofs, and wrong variants that are caught."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualopt.lab.claims import Verdict, check
from dualopt.methods import FedAvg
from dualopt.methods.participation import Bernoulli, CommunicateWithProbability, Full, Schedule, UniformSubset
from dualopt.objectives import ObjectiveWrapper
from dualopt.objectives import zero_chain as functions
from dualopt.solvers import Gradient
from dualopt.solvers.stopping import Steps
from tests.theory.mutation_table import telling
from theory._cases import Case
from theory._claims import discover
from theory.lower_bounds._races import (
    SPLITS,
    CentralisedFedAvg,
    LinearSpan,
    as_printed,
    on_chain,
    races,
    reach,
    zero_chain,
)
from theory.lower_bounds.zero_chain import rounds_needed

EVERY = discover()
CHAPTERS = {name: chapter for name, chapter in EVERY.items() if name.startswith("zero_chain")}
SUPPORT, ROUNDS = CHAPTERS["zero_chain_support"].claim, CHAPTERS["zero_chain_rounds"].claim
few = settings(max_examples=max(15, (settings.default.max_examples if settings.default else 40) // 2))


# The lemmas ------------------------------------------------------------------


def test_the_inequalities_in_the_proof_of_the_better_constant() -> None:
    r, m = 0.3, np.linspace(0.0, 8.0, 200_001)
    psi, slope, low = functions.psi(m), functions.psi_slope(m), float(functions.phi(np.array(-r)))
    two = np.hypot(4.0 / (1.0 + r * r) * psi, low * slope)
    assert np.min(two[m >= r]) > 2.8 > functions.FLOOR
    first = functions.FLOOR / (1.0 + m * m) + low * slope
    assert np.all(first[m <= r] >= functions.FLOOR)
    assert np.min(two) < functions.FLOOR  # without m >= r it would be false


def test_the_inequalities_in_the_proof_of_the_smoothness() -> None:
    u, v = np.meshgrid(np.geomspace(1e-6, 20.0, 400), np.sinh(np.linspace(-14.0, 14.0, 801)))
    a = functions.psi_curvature(u) * functions.phi(v)
    b = functions.psi_slope(u) * functions.phi_slope(v)
    c = functions.psi(u) * functions.phi_curvature(v)
    M = functions.CURVATURE
    for sign in (1.0, -1.0):
        assert np.all(M - sign * a > 0)
        assert np.all((M - sign * a) * (M - sign * c) >= b**2)
    assert np.any((0.99 * M - a) * (0.99 * M - c) < b**2)


# Linear-span methods -----------------------------------------------------------


@st.composite
def linear_span_races(draw: st.DrawFn) -> Case:
    """Random methods of the class, random participation, any number of local steps in each round."""
    split = draw(st.sampled_from(sorted(SPLITS)))
    n = 6 * draw(st.integers(1, 2))
    f = zero_chain(n, draw(st.integers(2, 10)), split=split, L=draw(st.floats(0.1, 10.0)))
    steps = tuple(draw(st.lists(st.integers(0, 5), min_size=1, max_size=4)))
    length = draw(st.floats(0.1, 50.0)) / float(f.L.max())
    subsets = st.lists(
        st.sets(st.integers(0, n - 1), min_size=1).map(lambda s: tuple(sorted(s))), min_size=1, max_size=4
    )
    participation = draw(
        st.one_of(
            st.just(Full()),
            st.builds(UniformSubset, size=st.integers(1, n)),
            st.builds(Bernoulli, probability=st.floats(0.3, 1.0)),
            st.builds(CommunicateWithProbability, probability=st.floats(0.3, 1.0)),
            st.builds(Schedule, clients=subsets.map(tuple)),
        )
    )
    method = LinearSpan(steps=steps, length=length, seed=draw(st.integers(0, 2**32 - 1)))
    return on_chain("drawn", method, f, participation=participation, opens_one=False)


@few
@given(race=linear_span_races())
def test_no_linear_span_method_is_faster(race: Case) -> None:
    for claim in (SUPPORT, ROUNDS):
        verdict = check(claim, race)
        assert verdict.verdict == "holds", verdict.witness


@few
@given(race=linear_span_races())
def test_one_that_reads_other_clients_is_caught(race: Case) -> None:
    """Its clients add gradients of the mean to what they know: two entries in a round of two steps."""
    method = replace(race.algorithm, steps=(2,), length=30.0 / float(race.objective.L.max()))
    centralised = race.but(algorithm=Reader(**vars(method)), participation=Full())
    assert check(SUPPORT, centralised).verdict == "violated"
    assert check(SUPPORT, race.but(algorithm=method, participation=Full())).verdict == "holds"


class Reader(LinearSpan):
    """A linear-span method whose clients take each other's gradients."""

    def local_objective(self, objective: Any) -> Any:
        return MeanGradients(objective)


class MeanGradients(ObjectiveWrapper):
    def __init__(self, objective: Any) -> None:
        self.objective = objective

    def __getattr__(self, name: str) -> Any:
        return getattr(self.objective, name)

    def value_and_gradient(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Gradients of the mean, at each client's own point."""
        whole = replace(self.objective, split=np.mean(self.objective.split, axis=0, keepdims=True))
        return self.objective.value(theta), np.concatenate([whole.gradient(point) for point in theta])


def opened(race: Case, rounds: int) -> list[int]:
    return [reach(shot.server.theta) for shot in race.but(rounds=rounds).snapshots()]


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_a_centralised_fedavg_gains_one_entry_per_step(steps: int) -> None:
    fedavg = next(races(6, 7))
    centralised = fedavg.but(algorithm=CentralisedFedAvg(solver=Gradient(step=20.0), stop=Steps(steps=steps)))
    assert opened(centralised, 2) == [steps, 2 * steps]
    verdict = check(SUPPORT, centralised, check_assumptions=False)
    assert verdict.verdict == ("holds" if steps == 1 else "violated")
    assert check(SUPPORT, centralised).verdict == "outside assumptions"


def test_a_centralised_fedavg_breaks_the_bound_on_rounds() -> None:
    fedavg = next(races(6, 12))
    centralised = fedavg.but(algorithm=CentralisedFedAvg(solver=Gradient(step=100.0), stop=Steps(steps=30)))
    verdict = check(ROUNDS, centralised)
    assert verdict.verdict == "violated"
    assert verdict.witness
    assert verdict.witness.n <= 3


# Wrong splits and units --------------------------------------------------------


def one_client_holds_the_first_two(weights: np.ndarray) -> np.ndarray:
    weights = weights.copy()
    weights[:, 0] = 0.0
    weights[weights[:, 1] > 0, 0] = 3.0  # the mean stays the same
    return weights


def all_hold_all(weights: np.ndarray) -> np.ndarray:
    return np.ones_like(weights)


@pytest.mark.parametrize(
    ("wrong", "expected"), [(one_client_holds_the_first_two, [2, 3, 4, 5]), (all_hold_all, [8, 8, 8, 8])]
)
def test_wrong_splits_are_caught(wrong: Callable[[np.ndarray], np.ndarray], expected: list[int]) -> None:
    fedavg = next(races(6, 8))
    f = replace(fedavg.objective, split=wrong(fedavg.objective.split))
    np.testing.assert_allclose(f.split.mean(axis=0), 1.0)
    method = FedAvg(solver=Gradient(step=20.0), stop=Steps(steps=20))
    case = fedavg.but(objective=f, algorithm=method)
    assert opened(case, 4) == expected
    assert check(SUPPORT, case).verdict == "violated"
    assert opened(fedavg.but(algorithm=method), 4) == [1, 2, 3, 4]


def test_the_printed_split_starts_with_two_entries() -> None:
    f = as_printed(6, 8)
    method = FedAvg(solver=Gradient(step=1.0), stop=Steps(steps=20))
    assert opened(on_chain("printed", method, f), 5) == [2, 3, 4, 5, 6]


def test_psi_must_not_round_to_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    """With 1 - exp(-w^2) the chain stalls where entries are small."""
    slow = next(races(6, 8)).but(algorithm=FedAvg(solver=Gradient(step=1.0), stop=Steps(steps=3)))
    assert opened(slow, 5) == [1, 2, 3, 4, 5]
    monkeypatch.setattr(functions, "psi", lambda t: np.where(t > 0, 1.0 - np.exp(-t * t), 0.0))
    assert opened(slow, 5)[-1] < 5
    assert check(SUPPORT, slow).verdict == "violated"


@pytest.mark.parametrize(
    "name", ["zero_chain_gradient", "zero_chain_infimum", "zero_chain_scalars", "zero_chain_rounds"]
)
def test_phi_must_be_positive(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without 2 pi the parts of a partial derivative cancel."""
    monkeypatch.setattr(functions, "phi", lambda t: 4.0 * np.arctan(t))
    assert any(v.verdict == "violated" for v in verdicts(name, lambda case: case))


def verdicts(name: str, mutate: Callable[[Any], Any]) -> Iterator[Verdict]:
    return (check(CHAPTERS[name].claim, mutate(case)) for case in telling(name))


def with_weights(change: Callable[[np.ndarray], np.ndarray]) -> Callable[[Any], Any]:
    def mutate(case: Any) -> Any:
        f = replace(case.objective, split=change(case.objective.split))
        return case.but(objective=f) if isinstance(case, Case) else case._replace(objective=f)

    return mutate


def mean_misses_a_factor(weights: np.ndarray) -> np.ndarray:
    weights = weights.copy()
    weights[:, 1:] /= 3.0
    return weights


def heavier_by_a_tenth(weights: np.ndarray) -> np.ndarray:
    return 1.1 * weights


def lower(case: Case) -> Case:
    return case.but(objective=replace(case.objective, height=0.9 * case.objective.height))


CATCHES: dict[str, tuple[Callable[[Any], Any], set[str]]] = {
    "mean misses a factor": (
        with_weights(mean_misses_a_factor),
        {"zero_chain_gradient", "zero_chain_smoothness", "zero_chain_infimum"},
    ),
    "heavier by a tenth": (with_weights(heavier_by_a_tenth), {"zero_chain_smoothness", "zero_chain_infimum"}),
    "one client holds the first two": (with_weights(one_client_holds_the_first_two), {"zero_chain_support"}),
    "lower by a tenth": (lower, {"zero_chain_rounds"}),
}


@pytest.mark.parametrize(("mutation", "name"), [(m, n) for m, (_, names) in CATCHES.items() for n in sorted(names)])
def test_wrong_variants_are_caught(mutation: str, name: str) -> None:
    assert any(v.verdict == "violated" for v in verdicts(name, CATCHES[mutation][0]))


@pytest.mark.parametrize("split", sorted(SPLITS))
def test_the_bound_with_its_constant(split: str) -> None:
    f = zero_chain(6, 21, split=split, L=3.0, eps=0.01)
    fall = float(np.mean(f.value(f.zeros()) - f.infimum))
    constant = {"thirds": 15.02, "halves": 10.02}[split]
    stated = 3.0 * fall / (constant * math.pi**2 * 0.01)
    assert stated <= rounds_needed(f, 0.01) == pytest.approx(stated, rel=1e-3)
    assert rounds_needed(f, 0.01) == pytest.approx(20.0 + 0.5 * functions.PSI_1)
    assert np.sum(np.mean(f.gradient(f.zeros()), axis=0) ** 2) == pytest.approx(0.01)


def test_splits_need_fitting_numbers_of_clients() -> None:
    with pytest.raises(ValueError, match="n must be divisible by 3, not 4"):
        zero_chain(4, 5)
    with pytest.raises(ValueError, match="n must be even, not 3"):
        zero_chain(3, 5, split="halves")
