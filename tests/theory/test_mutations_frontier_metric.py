"""The claims on what happens before the rounds can fail: wrong metrics, wrong averages and constants are caught."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from dualopt.methods.preparation import OneShotAverage
from tests.theory.mutation_table import is_violated, telling, verdicts
from theory._claims import discover
from theory.frontier import metric

CHAPTERS = {name: chapter for name, chapter in discover().items() if chapter.module == "theory.frontier.metric"}


def test_the_contraction_is_attained() -> None:
    """A factor that is smaller by a thousandth is violated, and that of the usual norm is too."""
    cases = [case for case in telling("fedsplit_in_the_metric") if case.attained]

    better = (case.but(constants=(1.005 * case.constants[0], case.constants[1])) for case in cases)
    assert {v.verdict for v in verdicts(CHAPTERS["fedsplit_in_the_metric"].claim, better)} == {"violated"}


@dataclass(frozen=True, kw_only=True)
class Wrong(OneShotAverage):
    """Another mean of the clients' minimisers."""

    weights: Callable[[int], Any]

    def prepare(self, objective, theta0):
        own = np.linalg.solve(objective.A, objective.b[..., None])[..., 0]  # pyright: ignore
        return super().prepare(objective, theta0).__class__(objective=objective, theta0=self.weights(len(own)) @ own)


@pytest.mark.parametrize(
    "weights",
    [
        lambda N: np.eye(N)[0],
        lambda N: np.full(N, 1.05 / N),
        lambda N: np.arange(1.0, N + 1) / np.sum(np.arange(1.0, N + 1)),
        lambda N: 0.0 * np.ones(N),
    ],
    ids=["the first client's", "sum 1.05", "unequal weights", "zero"],
)
def test_other_averages_are_caught(weights) -> None:
    cases = (replace(case, start=Wrong(weights=weights)) for case in telling("one_shot_average"))
    assert is_violated(CHAPTERS["one_shot_average"].claim, cases)


def test_clients_that_are_less_alike_are_caught() -> None:
    cases = [case for case in telling("one_shot_average") if case.epsilon is not None]
    halved = (replace(case, epsilon=0.5 * case.epsilon) for case in cases)
    assert {v.verdict for v in verdicts(CHAPTERS["one_shot_average"].claim, halved)} == {"violated"}


def test_every_claim_is_tried() -> None:
    assert set(CHAPTERS) == {"fedsplit_in_the_metric", "lbfgs_in_the_metric", "one_shot_average"}
    assert set(metric.__all__) == set(CHAPTERS)
