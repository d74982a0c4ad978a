"""The claims on one scale for each client under sampling can fail: wrong means, weights and cohorts are caught."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from dualopt.methods._scales import cohort_weights, multiplied, of_clients, weights
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from dualopt.lab.claims import check
from dualopt.methods import FedDR, FedDyn, SampledDualFL
from dualopt.methods._feddyn_rules import best_weights
from dualopt.methods.feddyn import Upload
from dualopt.methods.participation import UniformSubset, WeightedSubset
from tests.theory._telling import telling
from tests.theory.test_frontier import becomes, is_violated
from tests.theory.test_properties import UNEQUAL
from theory._cases import Case
from theory._claims import discover
from theory._problems import solved
from theory.frontier import sampled_feddr, weighted_dualfl, weighted_feddyn

MODULES = {module.__name__ for module in (sampled_feddr, weighted_dualfl, weighted_feddyn)}
CHAPTERS = {name: chapter for name, chapter in discover().items() if chapter.module in MODULES}


def telling_cases(name: str) -> Iterator[Any]:
    """The cases on which the claim says something and holds, the cheapest first."""
    return telling(CHAPTERS[name])


# ---- FedDyn ----


class MeanOfSteps(FedDyn):
    """``theta = x - mean(gamma_j) mean u``: the arithmetic mean of the steps for the harmonic one."""

    def server(self, server, mean, round):
        new, _ = super().server(server, mean, round)
        scales = np.array(self.scales or ())
        theta = new.theta + new.h / (self.alpha * np.mean(scales)) - new.h * np.mean(1.0 / scales) / self.alpha
        return new._replace(theta=theta), theta


class PlainMemory(FedDyn):
    """``h`` from the plain sum of differences."""

    def local(self, c, message, oracle, round):
        new, upload = super().local(c, message, oracle, round)
        return new, upload._replace(moved=oracle.solution.theta - message)  # pyright: ignore[reportOptionalMemberAccess]


class CommonWeight(FedDyn):
    """One weight in the local problems, the clients' own ones in the memories and at the server."""

    def local(self, c, message, oracle, round):
        theta = oracle.solve(start=message, linear=-c.gradient, weight=self.alpha, center=message).theta
        scales = of_clients(self.scales, round, message)
        weights = cohort_weights(self.scales or (), self.inclusion, round, message)
        gradient = c.gradient - multiplied(self.alpha * scales, theta - message)
        return c._replace(gradient=gradient), Upload(multiplied(weights, theta), multiplied(scales, theta - message))


class WeightedMean(FedDyn):
    """The mean of the active models with the weights ``alpha_j``, as if all clients were active."""

    def local(self, c, message, oracle, round):
        everybody = replace(self, inclusion=(1.0,) * round.n_clients)
        return FedDyn.local(everybody, c, message, oracle, round)


class OtherMemory(FedDyn):
    """``u_j`` with the common weight."""

    def local(self, c, message, oracle, round):
        new, upload = super().local(c, message, oracle, round)
        theta = oracle.solution.theta  # pyright: ignore[reportOptionalMemberAccess]
        return new._replace(gradient=c.gradient - self.alpha * (theta - message)), upload


def drawn_uniformly(case: Case) -> Case:
    return case.but(participation=UniformSubset(size=round(case.fraction * case.n_clients)))


def drawn_by(power: float, case: Case) -> Case:
    """Cohorts with the weights to a power."""
    chance = case.participation
    if not isinstance(chance, WeightedSubset) or chance.weights is None:
        raise TypeError("only weighted cohorts have weights.")
    return case.but(participation=replace(chance, weights=tuple(a**power for a in chance.weights)))


def times_alpha(factor: float, case: Case) -> Case:
    return case.but(algorithm=replace(case.algorithm, alpha=factor * case.algorithm.alpha))


# ---- FedDR ----


class CommonProximalStep(FedDR):
    """``eta`` in the proximal map of the regulariser."""

    def server(self, server, mean, round):
        xtilde = server.mean + round.fraction * mean
        theta = self.regulariser.prox(xtilde, self.eta)
        return server._replace(theta=theta, mean=xtilde), theta


class PlainReflections(FedDR):
    """The plain mean of changes whose weights are unequal."""

    def local(self, c, message, oracle, round):
        new, _ = super().local(c, message, oracle, round)
        return new, new.reflected - c.reflected


class CommonStep(FedDR):
    """``eta`` in the local problems."""

    def local(self, c, message, oracle, round):
        y = c.y + self.relaxation * (message - c.x)
        x = oracle.solve(start=c.x, weight=1.0 / self.eta, center=y).theta
        change = 2.0 * x - y - c.reflected
        weighed = weights(tuple(1.0 / s for s in self.scales or (1.0,) * round.n_clients), round, change)
        return c._replace(y=y, x=x, reflected=2.0 * x - y), weighed * change


class ActiveOnly(FedDR):
    """The mean change of the active clients for that of all."""

    def server(self, server, mean, round):
        return super().server(server, mean / round.fraction, round)


# ---- SampledDualFL ----


class PlainDualSum(SampledDualFL):
    """``v`` from the plain sum of differences."""

    def local(self, c, message, oracle, round):
        new, upload = super().local(c, message, oracle, round)
        return new, upload._replace(moved=new.theta - message.w)


class ExpectedFraction(SampledDualFL):
    """Steps t for P/N, not for the least probability."""

    def least(self, n_clients):
        return self.fraction or 1.0


class CommonParameter(SampledDualFL):
    """One nu in the dual steps, the clients' own ones in the local problems."""

    def local(self, c, message, oracle, round):
        new, upload = super().local(c, message, oracle, round)
        return new._replace(z=c.z + self.nu / message.t * (message.w - new.theta)), upload


class DualWeightedMean(SampledDualFL):
    """The mean of the active models with the weights ``nu_j``, as if all clients were active."""

    def local(self, c, message, oracle, round):
        everybody = replace(self, inclusion=(1.0,) * round.n_clients)
        return SampledDualFL.local(everybody, c, message, oracle, round)


MUTATIONS: dict[str, Callable[[Any], Any]] = {
    "FedDyn: the mean of the steps": partial(becomes, MeanOfSteps, FedDyn),
    "FedDyn: the plain sum in h": partial(becomes, PlainMemory, FedDyn),
    "FedDyn: one weight in the local problems": partial(becomes, CommonWeight, FedDyn),
    "FedDyn: weights as if all were active": partial(becomes, WeightedMean, FedDyn),
    "FedDyn: one weight in the memories": partial(becomes, OtherMemory, FedDyn),
    "FedDyn: uniform cohorts": drawn_uniformly,
    "FedDyn: cohorts by the squares": partial(drawn_by, 2.0),
    "FedDyn: cohorts by the inverses": partial(drawn_by, -1.0),
    "FedDyn: half the weights": partial(times_alpha, 0.5),
    "FedDR: eta in the map of the regulariser": partial(becomes, CommonProximalStep, FedDR),
    "FedDR: weights forgotten": partial(becomes, PlainReflections, FedDR),
    "FedDR: one step in the local problems": partial(becomes, CommonStep, FedDR),
    "FedDR: 1/P for 1/N": partial(becomes, ActiveOnly, FedDR),
    "SampledDualFL: the plain sum in v": partial(becomes, PlainDualSum, SampledDualFL),
    "SampledDualFL: t for P/N": partial(becomes, ExpectedFraction, SampledDualFL),
    "SampledDualFL: one nu in the dual steps": partial(becomes, CommonParameter, SampledDualFL),
    "SampledDualFL: weights as if all were active": partial(becomes, DualWeightedMean, SampledDualFL),
    "SampledDualFL: uniform cohorts": drawn_uniformly,
    "SampledDualFL: cohorts by the inverses": partial(drawn_by, -1.0),
}
CLAIM_OF = {"FedDyn": "weighted_feddyn", "FedDR": "sampled_feddr", "SampledDualFL": "weighted_dualfl"}
CATCHES = {name: {CLAIM_OF[name.split(":")[0]]} for name in MUTATIONS}


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_wrong_variants_are_caught(mutation: str) -> None:
    name = CLAIM_OF[mutation.split(":")[0]]
    assert is_violated(CHAPTERS[name].claim, map(MUTATIONS[mutation], telling_cases(name)))


def test_every_claim_is_caught_by_some_mutation() -> None:
    assert {*CLAIM_OF.values(), "weighted_feddyn_weights"} == set(CHAPTERS)


@pytest.mark.parametrize("name", ["weighted_feddyn", "sampled_feddr"])
def test_attained_factors_cannot_be_less(name: str) -> None:
    claim = CHAPTERS[name].claim
    less = replace(claim, compare=lambda case: (c._replace(rhs=(1 - 1e-6) * c.rhs) for c in claim.compare(case)))
    attained = [case for case in telling_cases(name) if case.attained]
    assert all(is_violated(less, iter([case])) for case in attained)
    assert len(attained) >= 5


@pytest.mark.parametrize("name", sorted(CLAIM_OF.values()))
def test_what_the_assumptions_exclude_goes_wrong(name: str) -> None:
    """But for clients that no theorem of this kind is about, and a client that is never active."""
    excluded = [case for case, verdict in CHAPTERS[name].cases(True) if verdict == "outside assumptions"]
    telling = [case for case in excluded if case.mu > 0 and "never" not in case.name]
    assert len(telling) >= (0 if name == "sampled_feddr" else 3)
    assert all(is_violated(CHAPTERS[name].claim, iter([case])) for case in telling)


@pytest.mark.parametrize("wrong", [0.5, 2.0])
def test_the_weights_of_the_memories_are_needed(wrong: float, monkeypatch: pytest.MonkeyPatch) -> None:
    right: Any = weighted_feddyn.Weights.dual
    monkeypatch.setattr(weighted_feddyn.Weights, "dual", property(lambda self: wrong * right.fget(self)))
    assert is_violated(CHAPTERS["weighted_feddyn"].claim, telling_cases("weighted_feddyn"))


@pytest.mark.parametrize("name", ["weights", "first_bound"])
def test_theorem_f_needs_its_constants(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right = getattr(weighted_dualfl.Follower, name)
    monkeypatch.setattr(weighted_dualfl.Follower, name, lambda *arguments: 0.5 * right(*arguments))
    assert is_violated(CHAPTERS["weighted_dualfl"].claim, telling_cases("weighted_dualfl"))


@pytest.mark.parametrize("power", [0.9, 1.1])
def test_other_weights_are_not_the_best(power: float, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(bounds, size):
        return weighted_feddyn.admitted_multiple(bounds, size, [a**power for a in best_weights(bounds, size)])

    monkeypatch.setattr(weighted_feddyn, "best_weights", wrong)
    assert is_violated(CHAPTERS["weighted_feddyn_weights"].claim, telling_cases("weighted_feddyn_weights"))


@settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(objective=UNEQUAL, share=st.floats(0.0, 0.99), times=st.floats(1.0, 10.0), proportional=st.booleans())
def test_theorem_a_on_drawn_problems(objective, share: float, times: float, proportional: bool) -> None:
    f = solved("drawn", objective)
    assume(np.linalg.norm(f.theta) < 100)
    size = 1 + int(share * objective.n_clients)
    case = weighted_feddyn.weighted_case(f, size, times=times, proportional=proportional)
    verdict = check(CHAPTERS["weighted_feddyn"].claim, case)
    assert verdict.verdict == "holds", verdict.witness or verdict.failed
