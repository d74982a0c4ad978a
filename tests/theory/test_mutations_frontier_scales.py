"""The claims on one scale for each client under sampling can fail: wrong means, weights and cohorts are caught."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from dualopt.lab.claims import check
from dualopt.methods._feddyn_theorems import best_weights
from tests.theory.mutation_table import is_violated, shrunk, telling
from tests.theory.test_properties import UNEQUAL
from theory._claims import discover
from theory._problems import solved
from theory.frontier import sampled_feddr, weighted_dualfl, weighted_feddyn, weights
from theory.mutations.scales import CLAIM_OF, MUTATIONS

MODULES = {module.__name__ for module in (sampled_feddr, weighted_dualfl, weighted_feddyn, weights)}
CHAPTERS = {name: chapter for name, chapter in discover().items() if chapter.module in MODULES}


def test_every_claim_is_caught_by_some_mutation() -> None:
    rows = {name for row in MUTATIONS.values() for name in row.caught}
    formulas = {"weighted_feddyn_weights", "best_scales"}  # below
    assert {*CLAIM_OF.values()} <= rows
    assert rows | formulas == set(CHAPTERS)


@pytest.mark.parametrize("power", [(0.4, 0.4), (0.6, 0.3), (0.0, 0.0)])
def test_other_scales_are_not_the_best(power: tuple[float, float], monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = lambda f: f.L ** power[0] * f.mu ** power[1]  # noqa: E731
    monkeypatch.setattr(weights, "common_scales", wrong)
    assert is_violated(CHAPTERS["best_scales"].claim, telling("best_scales"))


def test_scales_that_are_not_normalised_have_another_energy(monkeypatch: pytest.MonkeyPatch) -> None:
    right = weights.reweighted
    monkeypatch.setattr(weights, "reweighted", lambda f, s: replace(right(f, s), scales=tuple(np.asarray(s).tolist())))
    assert is_violated(CHAPTERS["best_scales"].claim, telling("best_scales"))


@pytest.mark.parametrize("name", ["uniform_cohorts", "uniform_sampled_dualfl"])
def test_cohorts_that_are_drawn_with_the_weights_do_not_diverge(name: str) -> None:
    free = replace(CHAPTERS[name].claim, assumptions=lambda case: [])
    drawn = [case.but(participation=weights.drawn(case, 1)) for case in telling(name)]
    assert all(is_violated(free, iter([case])) for case in drawn)


@pytest.mark.parametrize("name", ["weighted_feddyn", "sampled_feddr"])
def test_attained_factors_cannot_be_less(name: str) -> None:
    less = shrunk(CHAPTERS[name].claim, 1.0 - 1e-6)
    attained = [case for case in telling(name) if case.attained]
    assert all(is_violated(less, iter([case])) for case in attained)
    assert len(attained) >= 5


@pytest.mark.parametrize("name", sorted(CLAIM_OF.values()))
def test_what_the_assumptions_exclude_goes_wrong(name: str) -> None:
    """But for clients that no theorem of this kind is about, and a client that is never active."""
    excluded = [case for case, verdict in CHAPTERS[name].cases(True) if verdict == "outside assumptions"]
    plain = [case for case in excluded if case.mu > 0 and "never" not in case.name]
    assert len(plain) >= (0 if name == "sampled_feddr" else 3)
    assert all(is_violated(CHAPTERS[name].claim, iter([case])) for case in plain)


@pytest.mark.parametrize("wrong", [0.5, 2.0])
def test_the_weights_of_the_memories_are_needed(wrong: float, monkeypatch: pytest.MonkeyPatch) -> None:
    right: Any = weighted_feddyn.Weights.dual
    monkeypatch.setattr(weighted_feddyn.Weights, "dual", property(lambda self: wrong * right.fget(self)))
    assert is_violated(CHAPTERS["weighted_feddyn"].claim, telling("weighted_feddyn"))


@pytest.mark.parametrize("name", ["weights", "first_bound"])
def test_theorem_f_needs_its_constants(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right = getattr(weighted_dualfl.Follower, name)
    monkeypatch.setattr(weighted_dualfl.Follower, name, lambda *arguments: 0.5 * right(*arguments))
    assert is_violated(CHAPTERS["weighted_dualfl"].claim, telling("weighted_dualfl"))


@pytest.mark.parametrize("power", [0.9, 1.1])
def test_other_weights_are_not_the_best(power: float, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(bounds, size, weights=None):
        ratios = [a**power for a in best_weights(bounds, size, weights)]
        return weighted_feddyn.admitted_multiple(bounds, size, weights, ratios)

    monkeypatch.setattr(weighted_feddyn, "best_weights", wrong)
    assert is_violated(CHAPTERS["weighted_feddyn_weights"].claim, telling("weighted_feddyn_weights"))


@settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(objective=UNEQUAL, share=st.floats(0.0, 0.99), times=st.floats(1.0, 10.0), proportional=st.booleans())
def test_theorem_a_on_drawn_problems(objective, share: float, times: float, proportional: bool) -> None:
    f = solved("drawn", objective)
    assume(np.linalg.norm(f.theta) < 100)
    size = 1 + int(share * objective.n_clients)
    case = weighted_feddyn.weighted_case(f, size, times=times, proportional=proportional)
    verdict = check(CHAPTERS["weighted_feddyn"].claim, case)
    assert verdict.verdict == "holds", verdict.witness or verdict.failed
