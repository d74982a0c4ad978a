"""The claims on GIANT, Acc-S-DANE and L-BFGS on the dual can fail: wrong methods and wrong constants are caught."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from dualopt.lab.claims import check
from dualopt.methods import GIANT, AccSDANE, DualLBFGS
from dualopt.methods._line_search import Upload
from dualopt.methods.acc_s_dane import FALL, SOLVE, growth
from dualopt.methods.giant import DIRECTION, POINT, SLOPES
from theory._cases import Case
from theory._claims import discover
from theory.frontier import accelerated_dane, dual_lbfgs, giant

MODULES = {f"theory.frontier.{name}" for name in ("giant", "accelerated_dane", "adaptive_dane", "dual_lbfgs")}
CHAPTERS = {name: chapter for name, chapter in discover().items() if chapter.module in MODULES}


class UnitSteps(GIANT):
    """DANE's step, on quadratics."""

    def server(self, server, mean, round):
        new, message = super().server(server, mean, round)
        if server.asked != SLOPES:
            return new, message
        return new._replace(step=server.step), message._replace(vector=server.theta + server.step)


class ThirdOfAStep(GIANT):
    """Steps that are too short."""

    def server(self, server, mean, round):
        new, message = super().server(server, mean, round)
        if server.asked != SLOPES:
            return new, message
        step = self.share * new.step
        return new._replace(step=step), message._replace(vector=server.theta + step)

    share = 1.0 / 3.0


class TinySteps(ThirdOfAStep):
    """Steps that are far too short."""

    share = 1e-3


class FirstClientsDirection(GIANT):
    """The inverse Hessian of the first client alone."""

    def local(self, clients, message, oracle, round):
        new, upload = super().local(clients, message, oracle, round)
        if message.asks != DIRECTION:
            return new, upload
        directions = np.asarray(upload)
        return new, np.broadcast_to(directions[:1], directions.shape)


class OwnGradients(GIANT):
    """The own gradient in place of the mean: a step towards the mean of the local minimisers."""

    def local(self, clients, message, oracle, round):
        if message.asks != DIRECTION:
            return super().local(clients, message, oracle, round)
        own = oracle.evaluate(clients.theta).grad_f
        return clients, oracle.newton_direction(clients.theta, own, reduction=self.reduction, most=self.max_cg)


class DoubledDirection(GIANT):
    """A direction of twice the length."""

    times = 2.0

    def server(self, server, mean, round):
        changed = mean if server.asked != DIRECTION else self.times * np.asarray(mean)
        return super().server(server, changed, round)


class AFifthOfTheDirection(DoubledDirection):
    """A direction of a fifth of the length."""

    times = 0.2


class EverythingIsAccepted(GIANT):
    """No rule of Armijo, and four times the step."""

    def server(self, server, mean, round):
        if isinstance(mean, Upload):
            lower = server._replace(value=mean.value + 1e6, gradient=-1e-30 * server.step)
            return super().server(lower, mean, round)
        new, message = super().server(server, mean, round)
        if new.asked != POINT:
            return new, message
        return new._replace(step=4.0 * new.step), message._replace(vector=server.theta + 4.0 * new.step)


class OwnGradientKept(AccSDANE):
    """``g`` for ``g - g_j``."""

    def local(self, clients, message, oracle, round):
        new, upload = super().local(clients._replace(gradient=0 * clients.gradient), message, oracle, round)
        return (clients, upload) if message.asks == SOLVE else (new, upload)


class NoMomentum(AccSDANE):
    """DANE: y is the model."""

    def server(self, server, mean, round):
        new, message = super().server(server, mean, round)
        if server.asked != SOLVE:
            return new, message
        return new._replace(point=mean, v=mean), message._replace(vector=mean)


class HalfTheWeight(AccSDANE):
    """The local problems have half of the weight that the server counts with."""

    def local(self, clients, message, oracle, round):
        weight: Any = self.weight
        return AccSDANE.local(replace(self, weight=0.5 * weight), clients, message, oracle, round)


class ThirdVectorForgotten(AccSDANE):
    """v moves as if the mean of the gradients at the local solutions were zero."""

    def server(self, server, mean, round):
        new, message = super().server(server, mean, round)
        if server.asked != SOLVE:
            return new, message
        weight: Any = self.weight
        alpha, _ = accelerated_dane.growth(server.b, weight, self.mu)
        return new._replace(v=new.v + weight * (server.point - mean) / (weight * alpha + self.mu)), message


class TripleMu(AccSDANE):
    """The server counts with three times the convexity."""

    def server(self, server, mean, round):
        return AccSDANE.server(replace(self, mu=3.0 * self.mu), server, mean, round)


class WrongSign(AccSDANE):
    """The Bregman distances are added: a bound above E."""

    def _judged(self, server: Any, mean: Any) -> Any:
        return super()._judged(server, mean._replace(excess=-np.asarray(mean.excess)))


class NothingIsJudged(AccSDANE):
    """The weight falls, and the share is alpha, whatever the solutions are."""

    def _judged(self, server: Any, mean: Any) -> Any:
        held = mean._replace(excess=0.0 * np.asarray(mean.excess))
        found: Any = super()._judged(server, held)
        new, message = found
        weight = server.search.weight * FALL
        search = new.search._replace(weight=weight, accepted=True)
        return new._replace(search=search), message._replace(weight=weight)


class OldWeight(AccSDANE):
    """The gradient of the bound, and the point that follows, belong to the weight before."""

    def _judged(self, server: Any, mean: Any) -> Any:
        older = server.search._replace(weight=server.search.weight / FALL)
        return super()._judged(server._replace(search=older), mean)


class PointOfTheOldWeight(AccSDANE):
    """The next point is made for the weight that has just been judged."""

    def _judged(self, server: Any, mean: Any) -> Any:
        found: Any = super()._judged(server, mean)
        new, message = found
        alpha, _ = growth(new.b, server.search.weight, self.mu)
        point = (1.0 - alpha) * new.theta + alpha * new.v
        return new._replace(point=point), message._replace(vector=point)


class NeverRaised(AccSDANE):
    """A refused weight falls too."""

    def _judged(self, server: Any, mean: Any) -> Any:
        found: Any = super()._judged(server, mean)
        new, message = found
        weight = min(new.search.weight, server.search.weight * FALL)
        return new._replace(search=new.search._replace(weight=weight)), message._replace(weight=weight)


class RaisedTooFar(AccSDANE):
    """A refused weight becomes 16 times as large."""

    def _judged(self, server: Any, mean: Any) -> Any:
        found: Any = super()._judged(server, mean)
        new, message = found
        weight = new.search.weight * (8.0 if new.search.accepted is False else 1.0)
        return new._replace(search=new.search._replace(weight=weight)), message._replace(weight=weight)


class AlwaysTaken(AccSDANE):
    """The new point is the model whatever its energy is."""

    def _judged(self, server: Any, mean: Any) -> Any:
        found: Any = super()._judged(server, mean)
        new, message = found
        return new._replace(theta=server.search.mean), message


class FullShare(AccSDANE):
    """A refused step is made in full."""

    def _judged(self, server: Any, mean: Any) -> Any:
        found: Any = super()._judged(server, mean)
        new, message = found
        if new.search.accepted is not False:
            return found
        full: Any = super()._judged(server, mean._replace(excess=0.0 * np.asarray(mean.excess)))[0]
        return full._replace(search=new.search._replace(share=full.search.share)), message


class ShortPlainSteps(DualLBFGS):
    """Plain steps of a fifth of the length."""

    def _direction(self, gram):
        step = super()._direction(gram)
        return step if np.any(step[:-1]) else 0.2 * step


class DoubledPlainSteps(DualLBFGS):
    """Plain steps of twice the length."""

    def _direction(self, gram):
        step = super()._direction(gram)
        return step if np.any(step[:-1]) else 2.5 * step


class NothingIsRefused(DualLBFGS):
    """Three times the step, whatever it does."""

    def server(self, server, mean, round):
        return super().server(server._replace(plain=True), mean, round)

    def _direction(self, gram):
        return 3.0 * super()._direction(gram)


class LocalModels(DualLBFGS):
    """The gradient without the mean, so that the parts do not sum to zero."""

    def local(self, clients, message, oracle, round):
        shifted = message._replace(theta=message.theta * 0.5)
        return super().local(clients, shifted, oracle, round)


class MeanForgotten(DualLBFGS):
    """The square of the gradient without the shift of the mean."""

    def server(self, server, mean, round):
        return super().server(server._replace(latest=mean.theta), mean, round)


class OldPairs(DualLBFGS):
    """The newest pair is not used."""

    def _direction(self, gram):
        wrong = gram.copy()
        wrong[[self.history - 1, 2 * self.history - 1], :] = 0.0
        wrong[:, [self.history - 1, 2 * self.history - 1]] = 0.0
        return super()._direction(wrong)


MUTATIONS: dict[str, tuple[type, ...]] = {
    "giant_quadratics": (UnitSteps, ThirdOfAStep, FirstClientsDirection, OwnGradients),
    "giant_descent": (TinySteps, DoubledDirection, AFifthOfTheDirection, OwnGradients, EverythingIsAccepted),
    "acc_s_dane": (OwnGradientKept, NoMomentum, HalfTheWeight, ThirdVectorForgotten, TripleMu),
    "acc_s_dane_adaptive": (
        *(OwnGradientKept, WrongSign, NothingIsJudged, OldWeight, PointOfTheOldWeight),
        *(NeverRaised, RaisedTooFar, AlwaysTaken, FullShare),
    ),
    "dual_lbfgs_descent": (ShortPlainSteps, NothingIsRefused, LocalModels),
    "dual_lbfgs_is_central": (DoubledPlainSteps, LocalModels, MeanForgotten, OldPairs),
}


def becomes(kind: type, case: Case) -> Case:
    """The same parameters in a wrong method."""
    method = case.algorithm
    return case.but(algorithm=kind(**{f.name: getattr(method, f.name) for f in fields(method) if f.init}))


def telling_cases(name: str) -> Iterator[Any]:
    """The cases on which the claim holds."""
    return (case for case, verdict in CHAPTERS[name].cases(True) if verdict == "holds")


def is_caught(name: str, change: Callable[[Any], Any] = lambda case: case) -> bool:
    """Whether a changed case violates the claim."""
    with np.errstate(all="ignore"):
        claim = CHAPTERS[name].claim
        return any(
            check(claim, change(case), check_assumptions=False).verdict == "violated" for case in telling_cases(name)
        )


@pytest.mark.parametrize(("name", "kind"), [(name, kind) for name, kinds in MUTATIONS.items() for kind in kinds])
def test_wrong_variants_are_caught(name: str, kind: type) -> None:
    assert is_caught(name, lambda case: becomes(kind, case))


def test_a_smaller_rate_of_giant_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    wider = giant.eigenvalues

    def narrower(f, weight):
        found = wider(f, weight)
        found[-1] = found[0] + 0.99 * (found[-1] - found[0])
        return found

    monkeypatch.setattr(giant, "eigenvalues", narrower)
    assert is_caught("giant_quadratics")


def test_a_relaxation_that_is_not_said_is_caught() -> None:
    def said(case):
        class Relaxed(GIANT):
            def server(self, server, mean, round):
                return GIANT.server(replace(self, relaxation=0.6), server, mean, round)

        return becomes(Relaxed, case)

    assert is_caught("giant_quadratics", said)


def test_weights_below_the_differences_are_caught() -> None:
    """The theorem asks for w >= delta: a tenth of it is too little for clients that are opposite."""
    case = accelerated_dane.acc_case(accelerated_dane.opposite(100.0), 0.1)
    assert check(CHAPTERS["acc_s_dane"].claim, case, check_assumptions=False).verdict == "violated"


@pytest.mark.parametrize("part", ["growth", "limit_factor"])
def test_faster_rates_of_acc_s_dane_are_caught(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With four times as large an alpha, or its limit."""
    growth, limit_factor = accelerated_dane.growth, accelerated_dane.limit_factor
    wrong = {
        "growth": lambda b, w, mu: (min(1.0, 4.0 * growth(b, w, mu)[0]), growth(b, w, mu)[1]),
        "limit_factor": lambda w, mu: max(0.0, 1.0 - 4.0 * (1.0 - limit_factor(w, mu))),
    }
    monkeypatch.setattr(accelerated_dane, part, wrong[part])
    assert is_caught("acc_s_dane")


def test_another_rule_is_another_method(monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop in one place that refuses nearly every step has other points."""
    monkeypatch.setattr(dual_lbfgs, "FALL", 5.0)
    assert is_caught("dual_lbfgs_is_central")


def test_every_claim_is_tried() -> None:
    assert set(CHAPTERS) == set(MUTATIONS)
