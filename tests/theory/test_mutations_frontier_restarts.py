"""The claims on restarts can fail: wrong methods, means, weights and constants are caught."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from dualopt.lab.claims import Claim, check
from dualopt.methods import DualFL
from tests.theory._telling import telling
from theory._cases import Case
from theory._claims import discover
from theory.frontier import restarts
from theory.frontier.restarts import restart_energy, restart_epochs, restart_gap

CHAPTERS = {name: chapter for name, chapter in discover().items() if chapter.module == "theory.frontier.restarts"}


class MomentumKept(DualFL):
    """A restart that resets t alone: the extrapolation goes on."""

    def server(self, server, mean, round):
        new, message = super().server(server, mean, round)
        return new, message._replace(beta=0.9) if new.t == 1.0 and round.n > 0 else message


class WithoutMomentum(DualFL):
    """Beta = 0, and t as if there were momentum."""

    def server(self, server, mean, round):
        new, message = super().server(server, mean, round)
        return new, message._replace(beta=0.0)


class TooMuchMomentum(DualFL):
    """Beta = 1.3."""

    def server(self, server, mean, round):
        new, message = super().server(server, mean, round)
        return new, message._replace(beta=1.3)


class OneClient(DualFL):
    """The first client's point where the mean belongs."""

    def local(self, c, message, oracle, round):
        new, upload = super().local(c, message, oracle, round)
        first = upload if self.restart is None else upload[0]
        first = np.broadcast_to(first[:1], first.shape)
        return new, first if self.restart is None else (first, *upload[1:])


class PlainMean(DualFL):
    """The mean without the weights nu_j."""

    def weighted(self, x, round):
        return x


class AnyFall(DualFL):
    """Restarts in every third round, however little the gap has fallen."""

    def server(self, server, mean, round):
        new, message = super().server(server, mean, round)
        return (new._replace(t=1.0), message._replace(beta=0.0, t=1.0)) if round.n % 3 == 2 else (new, message)


def becomes(kind: type, case: Case) -> Case:
    """The same parameters in a wrong method."""
    method = case.algorithm
    return case.but(algorithm=kind(**{f.name: getattr(method, f.name) for f in fields(method) if f.init}))


def is_violated(claim: Claim, cases: Iterator[Any]) -> bool:
    with np.errstate(all="ignore"):  # a wrong method may diverge
        return any(check(claim, case, check_assumptions=False).verdict == "violated" for case in cases)


METHODS: dict[str, tuple[type, str]] = {
    "momentum kept at a restart": (MomentumKept, "restart_gap"),
    "no momentum": (WithoutMomentum, "restart_gap"),
    "the first client for the mean": (OneClient, "restart_gap"),
    "the mean without weights": (PlainMean, "restart_gap"),
    "momentum beyond 1": (TooMuchMomentum, "restart_energy"),
    "epochs that end after any fall": (AnyFall, "restart_epochs"),
}


@pytest.mark.parametrize("name", METHODS)
def test_wrong_methods_are_caught(name: str) -> None:
    kind, claim = METHODS[name]
    assert is_violated(CHAPTERS[claim].claim, map(partial(becomes, kind), telling(CHAPTERS[claim])))


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
    assert is_violated(wrong, telling(CHAPTERS["restart_gap"]))


@pytest.mark.parametrize("factor", [0.5, 0.85])
def test_a_smaller_bound_of_the_gap_is_caught(factor: float) -> None:
    def compare(case: Case) -> Iterator[Any]:
        return (q._replace(rhs=factor * q.rhs) if q.what == "G_n" else q for q in restart_gap(case))

    assert is_violated(replace(restart_gap, compare=compare), telling(CHAPTERS["restart_gap"]))


@pytest.mark.parametrize(
    "root",
    [lambda kappa: 0.33 * math.sqrt(kappa - 1.0), lambda kappa: kappa**0.25],
    ids=["a third", "kappa^1/4"],
)
def test_shorter_epochs_are_caught(root: Callable[[float], float]) -> None:
    wrong = replace(restart_epochs, compare=lambda case: restart_epochs(case, root=root))
    assert is_violated(wrong, telling(CHAPTERS["restart_epochs"]))


def test_a_faster_fall_of_the_energy_is_caught() -> None:
    wrong = replace(restart_energy, compare=lambda case: restart_energy(case, times=20.0))
    assert is_violated(wrong, telling(CHAPTERS["restart_energy"]))


@pytest.mark.parametrize("rule", ["gradient", "gap"])
def test_most_cases_have_several_epochs(rule: str) -> None:
    cases = [case for case in telling(CHAPTERS["restart_energy"]) if case.algorithm.restart == rule]
    ends = [sum(step.ends for step in restarts.path(case)) for case in cases]
    assert sum(n >= 5 for n in ends) >= 5


def test_every_claim_is_tried() -> None:
    assert set(CHAPTERS) == {"restart_gap", "restart_epochs", "restart_energy"}
