"""The claims on restarts can fail: wrong methods, means, weights and constants are caught."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.theory.mutation_table import is_violated, telling
from theory._cases import Case
from theory._claims import discover
from theory.frontier import restarts
from theory.frontier.restarts import restart_energy, restart_epochs, restart_gap

CHAPTERS = {name: chapter for name, chapter in discover().items() if chapter.module == "theory.frontier.restarts"}


def backwards(models: list, weights: list) -> Any:
    return np.einsum("i,i...->...", np.array(weights[::-1]), np.stack(models)) / sum(weights)


def latest(models: list, weights: list) -> Any:
    return models[-1]


def first(models: list, weights: list) -> Any:
    return models[0]


@pytest.mark.parametrize("mean", [backwards, latest, first])
def test_the_weights_of_the_mean_are_needed(mean: Callable[[list, list], Any]) -> None:
    """Equal weights are not told apart: on these clients their mean is as good, though nothing says so."""
    wrong = replace(restart_gap, compare=lambda case: restart_gap(case, mean=mean))
    assert is_violated(wrong, telling("restart_gap"))


@pytest.mark.parametrize("factor", [0.5, 0.85])
def test_a_smaller_bound_of_the_gap_is_caught(factor: float) -> None:
    def compare(case: Case) -> Iterator[Any]:
        return (q._replace(rhs=factor * q.rhs) if q.what == "G_n" else q for q in restart_gap(case))

    assert is_violated(replace(restart_gap, compare=compare), telling("restart_gap"))


@pytest.mark.parametrize(
    "root",
    [lambda kappa: 0.33 * math.sqrt(kappa - 1.0), lambda kappa: kappa**0.25],
    ids=["a third", "kappa^1/4"],
)
def test_shorter_epochs_are_caught(root: Callable[[float], float]) -> None:
    wrong = replace(restart_epochs, compare=lambda case: restart_epochs(case, root=root))
    assert is_violated(wrong, telling("restart_epochs"))


def test_a_faster_fall_of_the_energy_is_caught() -> None:
    wrong = replace(restart_energy, compare=lambda case: restart_energy(case, times=20.0))
    assert is_violated(wrong, telling("restart_energy"))


@pytest.mark.parametrize("rule", ["gradient", "gap"])
def test_most_cases_have_several_epochs(rule: str) -> None:
    cases = [case for case in telling("restart_energy") if type(case.algorithm) is restarts.RULES[rule]]
    ends = [sum(step.ends for step in restarts.path(case)) for case in cases]
    assert sum(n >= 5 for n in ends) >= 5


def test_every_claim_is_tried() -> None:
    assert set(CHAPTERS) == {"restart_gap", "restart_epochs", "restart_energy"}
