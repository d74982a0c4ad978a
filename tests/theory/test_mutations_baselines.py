"""Every claim on the methods that the papers compare can fail: wrong methods, coins and starts are caught."""

from __future__ import annotations

import pytest

from tests.theory.mutation_table import TABLES, columns, is_violated, shrunk, telling
from theory._claims import discover
from theory.baselines.contraction import mean_square_factor, scaffold_case, three_directions

# Orders, whose constants are hidden, have tests of their own (test_table_1.py).
CHAPTERS = {
    name: chapter
    for name, chapter in discover().items()
    if chapter.selection == "baselines" and chapter.claim.constant == "explicit"
}


@pytest.mark.parametrize("name", ["fedsplit_contraction", "feddr_contraction", "fivegcs_one_step", "scaffnew_one_step"])
def test_attained_factors_cannot_be_less(name: str) -> None:
    less = shrunk(CHAPTERS[name].claim, 1.0 - 1e-6)
    assert is_violated(less, (case for case in telling(name) if case.attained))


@pytest.mark.parametrize("name", ["fedsplit_contraction", "fivegcs_one_step", "scaffold_fixed_point"])
def test_what_the_assumptions_exclude_goes_wrong(name: str) -> None:
    excluded = [case for case, verdict in CHAPTERS[name].cases(True) if verdict == "outside assumptions"]
    assert excluded
    assert all(is_violated(CHAPTERS[name].claim, iter([case])) for case in excluded)


def test_scaffold_with_one_client_needs_shorter_steps_than_gradient_descent() -> None:
    """With K = P = 1 it is SAGA: a step of 1/L diverges in mean square on three clients, 1/(3L) converges."""
    saga = {"f": three_directions(), "active": 1, "K": 1}
    assert mean_square_factor(scaffold_case(**saga, times=1.0)) == pytest.approx(1.0619, abs=1e-4)
    assert mean_square_factor(scaffold_case(**saga)) < 0.8


def test_the_biases_are_not_small() -> None:
    """The limits are away from the solution by more than the tolerance, except where clients agree."""
    for name, agreeing in (("fedavg_bias", 3), ("fedprox_bias", 2)):
        compared = [{c.what for c in CHAPTERS[name].claim.compare(case)} for case in telling(name)]
        biased = ["nearer to the limit" in whats for whats in compared]
        assert (biased.count(False), biased.count(True) >= 3) == (agreeing, True)


def test_every_claim_is_caught_by_some_mutation() -> None:
    assert set(columns(TABLES["Compared methods"])) == set(CHAPTERS)
