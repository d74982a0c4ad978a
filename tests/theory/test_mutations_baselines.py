"""Every claim on the methods that the papers compare can fail: wrong methods, coins and starts are caught."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from dualopt.lab.claims import Claim, check
from theory._cases import Case
from theory._claims import discover
from theory.baselines.contraction import mean_square_factor, scaffold_case, three_directions
from theory.mutations import baselines, splitting

# Orders, whose constants are hidden, have tests of their own (test_table_1.py).
CHAPTERS = {
    name: chapter
    for name, chapter in discover().items()
    if chapter.selection == "baselines" and chapter.claim.constant == "explicit"
}


MUTATIONS = splitting.MUTATIONS | baselines.MUTATIONS
CLAIM_OF = {
    "Scaffnew": "scaffnew_one_step",
    "FedSplit": "fedsplit_contraction",
    "FedDR": "feddr_contraction",
    "5GCS": "fivegcs_one_step",
    "SCAFFOLD": "scaffold_fixed_point",
    "FedAvg": "fedavg_bias",
    "FedProx": "fedprox_bias",
    "gradient descent": "gradient_descent_contraction",
    "L-BFGS": "lbfgs_is_central",
    "Newton-CG": "newton_cg_is_central",
}
CATCHES = {name: {CLAIM_OF[name.split(":")[0]]} for name in MUTATIONS}


def telling_cases(name: str) -> Iterator[Case]:
    """The cases on which the claim holds."""
    return (case for case, verdict in CHAPTERS[name].cases(True) if verdict == "holds")


def is_violated(claim: Claim, cases: Iterator[Case]) -> bool:
    with np.errstate(all="ignore"):  # a wrong method may diverge
        return any(check(claim, case, check_assumptions=False).verdict == "violated" for case in cases)


@pytest.mark.parametrize(("mutation", "name"), [(m, name) for m, names in CATCHES.items() for name in sorted(names)])
def test_wrong_variants_are_caught(mutation: str, name: str) -> None:
    assert is_violated(CHAPTERS[name].claim, map(MUTATIONS[mutation], telling_cases(name)))


@pytest.mark.parametrize("name", ["fedsplit_contraction", "feddr_contraction", "fivegcs_one_step", "scaffnew_one_step"])
def test_attained_factors_cannot_be_less(name: str) -> None:
    claim = CHAPTERS[name].claim
    less = replace(claim, compare=lambda case: (c._replace(rhs=(1 - 1e-6) * c.rhs) for c in claim.compare(case)))
    assert is_violated(less, (case for case in telling_cases(name) if case.attained))


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
        compared = [{c.what for c in CHAPTERS[name].claim.compare(case)} for case in telling_cases(name)]
        biased = ["nearer to the limit" in whats for whats in compared]
        assert (biased.count(False), biased.count(True) >= 3) == (agreeing, True)


def test_every_claim_is_caught_by_some_mutation() -> None:
    assert set().union(*CATCHES.values()) == set(CHAPTERS)
    assert set(CATCHES) == set(MUTATIONS)
