"""The claims on what happens before the rounds can fail: wrong metrics, wrong averages and constants are caught."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from dualopt.lab.claims import check
from dualopt.methods import DistributedLBFGS, FedSplit
from dualopt.methods.preparation import OneShotAverage
from dualopt.objectives import LinearModel, Quadratic
from dualopt.objectives.coordinates import InCoordinates, Metric, in_coordinates
from theory._claims import discover
from theory.frontier import metric
from theory.frontier.metric import MetricCase

CHAPTERS = {name: chapter for name, chapter in discover().items() if chapter.module == "theory.frontier.metric"}


def telling_cases(name: str) -> Iterator[Any]:
    return (case for case, verdict in CHAPTERS[name].cases(True) if verdict == "holds")


def verdicts(claim, cases: Iterator[Any]) -> set[str]:
    with np.errstate(all="ignore"):
        return {check(claim, case, check_assumptions=False).verdict for case in cases}


def without_directions(f: Any, M: Metric) -> Any:
    """The identity for the metric."""
    return in_coordinates(f, M._replace(values=0.0 * M.values + 1.0, rest=1.0))


def squared(f: Any, M: Metric) -> Any:
    """``M^2`` for ``M``: the coordinates of M without the root."""
    return in_coordinates(f, M._replace(values=M.values**2, rest=M.rest**2))


def inverted(f: Any, M: Metric) -> Any:
    return in_coordinates(f, M._replace(values=1.0 / M.values, rest=1.0 / M.rest))


class GradientsLeft(InCoordinates):
    """Points are changed, and gradients are not."""

    def value_and_gradient(self, theta):
        return self.objective.value_and_gradient(self.model(theta))

    def gradient(self, theta):
        return self.value_and_gradient(theta)[1]


def gradients_left(f: Any, M: Metric) -> Any:
    return GradientsLeft(objective=f, metric=M) if isinstance(f, LinearModel) else in_coordinates(f, M)


def linear_term_left(f: Any, M: Metric) -> Any:
    changed = in_coordinates(f, M)
    return replace(changed, b=f.b) if isinstance(f, Quadratic) else changed


MUTATIONS: dict[str, Callable[[MetricCase], MetricCase]] = {
    "no metric": lambda case: case.but(changed=without_directions),
    "the metric squared": lambda case: case.but(changed=squared),
    "the inverse metric": lambda case: case.but(changed=inverted),
    "gradients left as they are": lambda case: case.but(changed=gradients_left),
    "linear terms left as they are": lambda case: case.but(changed=linear_term_left),
}


@pytest.mark.parametrize("mutation", MUTATIONS)
@pytest.mark.parametrize("name", ["fedsplit_in_the_metric", "lbfgs_in_the_metric"])
def test_wrong_coordinates_are_caught(name: str, mutation: str) -> None:
    assert "violated" in verdicts(CHAPTERS[name].claim, map(MUTATIONS[mutation], telling_cases(name)))


@pytest.mark.parametrize("times", [0.5, 2.0])
def test_other_steps_are_caught(times: float) -> None:
    def other(case: MetricCase) -> MetricCase:
        method = case.algorithm
        return case.but(algorithm=FedSplit(step=times * method.step, solver=method.solver, stop=method.stop))

    name = "fedsplit_in_the_metric"
    assert "violated" in verdicts(CHAPTERS[name].claim, map(other, telling_cases(name)))


def test_the_contraction_is_attained() -> None:
    """A factor that is smaller by a thousandth is violated, and that of the usual norm is too."""
    cases = [case for case in telling_cases("fedsplit_in_the_metric") if case.attained]

    class Better(MetricCase):
        @property
        def constants(self):
            least, most = super().constants
            return 1.005 * least, most

    better = [Better(**{k: v for k, v in vars(case).items()}) for case in cases]
    assert verdicts(CHAPTERS["fedsplit_in_the_metric"].claim, iter(better)) == {"violated"}


class FewerPairs(DistributedLBFGS):
    """The newest pair is forgotten."""

    def server(self, server, mean, round):
        new, _ = super().server(server, mean, round)
        new = new._replace(s=(*new.s[:-1], 0.0 * new.s[-1]))
        return new, new.theta + new.step


class TwiceTheStep(DistributedLBFGS):
    """Twice the step where there is a pair: no matrix of BFGS gives it."""

    def server(self, server, mean, round):
        new, _ = super().server(server, mean, round)
        if np.any(new.y[-1]):
            new = new._replace(step=2.0 * new.step)
        return new, new.theta + new.step


@pytest.mark.parametrize("kind", [FewerPairs, TwiceTheStep])
def test_another_recursion_is_caught(kind: type) -> None:
    def other(case: MetricCase) -> MetricCase:
        return case.but(algorithm=kind(history=case.algorithm.history))

    name = "lbfgs_in_the_metric"
    assert "violated" in verdicts(CHAPTERS[name].claim, map(other, telling_cases(name)))


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
    cases = (replace(case, start=Wrong(weights=weights)) for case in telling_cases("one_shot_average"))
    assert "violated" in verdicts(CHAPTERS["one_shot_average"].claim, cases)


def test_clients_that_are_less_alike_are_caught() -> None:
    cases = [case for case in telling_cases("one_shot_average") if case.epsilon is not None]
    halved = (replace(case, epsilon=0.5 * case.epsilon) for case in cases)
    assert verdicts(CHAPTERS["one_shot_average"].claim, halved) == {"violated"}


def test_every_claim_is_tried() -> None:
    assert set(CHAPTERS) == {"fedsplit_in_the_metric", "lbfgs_in_the_metric", "one_shot_average"}
    assert set(metric.__all__) == set(CHAPTERS)
