"""Every claim on the methods that the papers compare can fail: wrong methods, coins and starts are caught."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from dualopt.algorithms import (
    DistributedLBFGS,
    DistributedNewtonCG,
    FedAvg,
    FedDR,
    FedProx,
    FedSplit,
    FiveGCS,
    GradientDescent,
    Scaffnew,
    Scaffold,
)
from dualopt.claims import Claim, check
from dualopt.participation import CommunicateWithProbability, UniformSubset
from dualopt.solvers import Gradient
from dualopt.stopping import Steps
from theory._cases import Case
from theory._claims import discover
from theory.baselines.contraction import mean_square_factor, scaffold_case, three_directions

# Orders, whose constants are hidden, have tests of their own (test_table_1.py).
CHAPTERS = {
    name: chapter
    for name, chapter in discover().items()
    if chapter.selection == "baselines" and chapter.claim.constant == "explicit"
}


class ControlAdded(Scaffnew):
    """``grad f_j + h_j``."""

    def local(self, clients, message, oracle, round):
        turned = clients._replace(control=-clients.control)
        new, upload = super().local(turned, message, oracle, round)
        return new._replace(control=clients.control), upload


class ControlStepTurned(Scaffnew):
    """``h_j - (p/s)(x_j - xhat_j)``."""

    def receive(self, clients, message):
        new = super().receive(clients, message)
        return new._replace(control=2 * clients.control - new.control)


class ControlWithoutP(Scaffnew):
    """``h_j + (1/s)(x_j - xhat_j)``."""

    def receive(self, clients, message):
        new = super().receive(clients, message)
        return new._replace(control=clients.control + (new.control - clients.control) / self.probability)


class NoControlStep(Scaffnew):
    def receive(self, clients, message):
        return super().receive(clients, message)._replace(control=clients.control)


class Relaxed(FedSplit):
    """``z_j + prox - theta``, half of the step."""

    def local(self, clients, message, oracle, round):
        new, change = super().local(clients, message, oracle, round)
        return new._replace(z=clients.z + 0.5 * change), 0.5 * change


class Unreflected(FedSplit):
    """The proximal step at ``theta`` for ``2 theta - z_j``."""

    def local(self, clients, message, oracle, round):
        new, _ = super().local(clients._replace(z=0 * clients.z + message), message, oracle, round)
        change = 2.0 * (oracle.solution.theta - message)
        return new._replace(z=clients.z + change), change


class Overrelaxed(FedDR):
    """``y_j + 1.2 a (theta - x_j)``."""

    def local(self, clients, message, oracle, round):
        turned = clients._replace(y=clients.y + 0.2 * self.relaxation * (message - clients.x))
        return super().local(turned, message, oracle, round)


class Undoubled(FedDR):
    """``x_j`` for ``2 x_j - y_j``."""

    def local(self, clients, message, oracle, round):
        new, _ = super().local(clients, message, oracle, round)
        return new._replace(reflected=new.x), new.x - clients.reflected


class ActiveOnly(FedDR):
    """The mean of the active points for that of all."""

    def server(self, server, mean, round):
        return super().server(server, mean / round.fraction, round)


class FractionForgotten(FiveGCS):
    """``gamma sum`` for ``gamma (N/C) sum``."""

    def server(self, server, mean, round):
        dual = server.dual + round.n_active * mean
        new = self._with_next(server.xhat - self.gamma * round.n_active * mean, dual)
        return new, new.xhat


class NoModelStep(FiveGCS):
    """``x+ = xhat``."""

    def server(self, server, mean, round):
        new = self._with_next(server.xhat, server.dual + round.n_active * mean)
        return new, new.xhat


class DualUnscaled(FiveGCS):
    """A dual N times too large."""

    def local(self, clients, message, oracle, round):
        new, _ = super().local(clients, message, oracle, round)
        dual = round.n_clients * new.dual
        return new._replace(dual=dual), dual - clients.dual


class WrongSignOfDual(FiveGCS):
    """``xhat - u_m/tau``."""

    def local(self, clients, message, oracle, round):
        turned = clients._replace(dual=-clients.dual)
        new, _ = super().local(turned, message, oracle, round)
        return new, new.dual - clients.dual


class ControlsSwapped(Scaffold):
    """``c_j - c`` for ``c - c_j``."""

    def local(self, clients, message, oracle, round):
        turned = clients._replace(control=2 * message.control - clients.control)
        new, upload = super().local(turned, message, oracle, round)
        return new, upload._replace(control=new.control - clients.control)


class ActiveForAll(Scaffold):
    """``1/P`` for ``1/N`` in the control of the server."""

    def server(self, server, mean, round):
        return super().server(server, mean._replace(control=mean.control / round.fraction), round)


class ServerControlForgotten(Scaffold):
    """``c_j + (theta - y_j)/(K s)``."""

    def local(self, clients, message, oracle, round):
        new, upload = super().local(clients, message, oracle, round)
        control = new.control + message.control
        return new._replace(control=control), upload._replace(control=control - clients.control)


class NoControls(Scaffold):
    """FedAvg."""

    def local(self, clients, message, oracle, round):
        nothing = message._replace(control=0 * message.control)
        new, upload = super().local(clients._replace(control=0 * clients.control), nothing, oracle, round)
        return new._replace(control=clients.control), upload._replace(control=0 * upload.control)


class StepMore(FedAvg):
    def local(self, clients, message, oracle, round):
        return clients, oracle.solve(start=message, stop=Steps(steps=self.stop.steps + 1)).theta  # pyright: ignore[reportAttributeAccessIssue]


class OverAll(FedAvg):
    """The sum over the active clients divided by N."""

    def server(self, server, mean, round):
        return super().server(server, round.fraction * mean, round)


class OverAllProx(FedProx):
    """The sum over the active clients divided by N."""

    def server(self, server, mean, round):
        return super().server(server, round.fraction * mean, round)


class HalfTheWeight(FedProx):
    """``(w/4)|.|^2``."""

    def local(self, clients, message, oracle, round):
        return clients, oracle.solve(start=message, weight=0.5 * self.mu_prox, center=message).theta


class NearZero(FedProx):
    """The proximal term around zero for that around the model."""

    def local(self, clients, message, oracle, round):
        return clients, oracle.solve(start=message, weight=self.mu_prox, center=0 * message).theta


class OverN(GradientDescent):
    """A mean over one client more than there are."""

    def server(self, server, mean, round):
        return super().server(server, mean * round.n_clients / (round.n_clients + 1), round)


class TwiceTheStep(GradientDescent):
    def server(self, server, mean, round):
        return super().server(server, 2.0 * mean, round)


class Ascent(GradientDescent):
    def server(self, server, mean, round):
        return super().server(server, -mean, round)


class NotShortened(DistributedLBFGS):
    """A refused step is accepted."""

    def server(self, server, mean, round):
        return super().server(server._replace(value=np.asarray(np.inf)), mean, round)


class GradientsSwapped(DistributedLBFGS):
    """``y`` with the wrong sign."""

    def server(self, server, mean, round):
        new, message = super().server(server._replace(y=tuple(-y for y in server.y)), mean, round)
        return new, message


class FirstClientsValue(DistributedLBFGS):
    """The value of the first client for the mean."""

    def local(self, clients, message, oracle, round):
        new, upload = super().local(clients, message, oracle, round)
        return new, upload._replace(value=0 * upload.value + upload.value[:1])


class FirstClientsHessian(DistributedNewtonCG):
    """The Hessian of the first client for the mean."""

    def local(self, clients, message, oracle, round):
        new, upload = super().local(clients, message, oracle, round)
        first = upload.gradient[:1] if message.product else upload.gradient
        return new, upload._replace(gradient=np.broadcast_to(first, upload.gradient.shape))


class ProductAtTheStart(DistributedNewtonCG):
    """Hessians at the point where the run started."""

    def local(self, clients, message, oracle, round):
        _, upload = super().local(clients, message, oracle, round)
        return clients, upload


def only(base: type, case: Case) -> Any:
    """The method of a case, if it is the one that the mutation is about."""
    if type(case.algorithm) is not base:
        raise TypeError(f"a mutation of {base.__name__} says nothing about {type(case.algorithm).__name__}.")
    return case.algorithm


def becomes(kind: type, base: type, case: Case) -> Case:
    """The same parameters in a wrong method."""
    method = only(base, case)
    return case.but(algorithm=kind(**{f.name: getattr(method, f.name) for f in fields(method) if f.init}))


def another_coin(case: Case) -> Case:
    """Communication half as often as the update believes."""
    p = only(Scaffnew, case).probability
    return case.but(participation=CommunicateWithProbability(probability=0.5 * p))


def one_fewer(case: Case) -> Case:
    """A client is missing."""
    return case.but(algorithm=only(FedSplit, case), participation=UniformSubset(size=case.n_clients - 1))


def longer(case: Case) -> Case:
    """Three times the step of FedSplit."""
    method = only(FedSplit, case)
    return case.but(algorithm=replace(method, step=3.0 * method.step))


def few_steps(case: Case) -> Case:
    """Local problems of 5GCS that are far from solved."""
    method = replace(only(FiveGCS, case), solver=Gradient(step=1e-4), stop=Steps(steps=1))
    return case.but(algorithm=method)


MUTATIONS: dict[str, Callable[[Case], Case]] = {
    "Scaffnew: control added": partial(becomes, ControlAdded, Scaffnew),
    "Scaffnew: control step turned": partial(becomes, ControlStepTurned, Scaffnew),
    "Scaffnew: 1/s for p/s": partial(becomes, ControlWithoutP, Scaffnew),
    "Scaffnew: no control step": partial(becomes, NoControlStep, Scaffnew),
    "Scaffnew: another coin": another_coin,
    "FedSplit: half the step": partial(becomes, Relaxed, FedSplit),
    "FedSplit: no reflection": partial(becomes, Unreflected, FedSplit),
    "FedSplit: three times the step": longer,
    "FedSplit: a client missing": one_fewer,
    "FedDR: 1.2 times the relaxation": partial(becomes, Overrelaxed, FedDR),
    "FedDR: points not reflected": partial(becomes, Undoubled, FedDR),
    "FedDR: 1/P for 1/N": partial(becomes, ActiveOnly, FedDR),
    "5GCS: N/C forgotten": partial(becomes, FractionForgotten, FiveGCS),
    "5GCS: model not corrected": partial(becomes, NoModelStep, FiveGCS),
    "5GCS: dual N times too large": partial(becomes, DualUnscaled, FiveGCS),
    "5GCS: wrong sign of the dual": partial(becomes, WrongSignOfDual, FiveGCS),
    "5GCS: far from local solutions": few_steps,
    "SCAFFOLD: controls swapped": partial(becomes, ControlsSwapped, Scaffold),
    "SCAFFOLD: 1/P for 1/N": partial(becomes, ActiveForAll, Scaffold),
    "SCAFFOLD: c forgotten in c_j": partial(becomes, ServerControlForgotten, Scaffold),
    "SCAFFOLD: no controls": partial(becomes, NoControls, Scaffold),
    "FedAvg: a step more": partial(becomes, StepMore, FedAvg),
    "FedAvg: 1/N for 1/P": partial(becomes, OverAll, FedAvg),
    "FedProx: half the weight": partial(becomes, HalfTheWeight, FedProx),
    "FedProx: proximal term at zero": partial(becomes, NearZero, FedProx),
    "FedProx: 1/N for 1/P": partial(becomes, OverAllProx, FedProx),
    "gradient descent: a client too many": partial(becomes, OverN, GradientDescent),
    "gradient descent: uphill": partial(becomes, Ascent, GradientDescent),
    "gradient descent: twice the step": partial(becomes, TwiceTheStep, GradientDescent),
    "L-BFGS: nothing is refused": partial(becomes, NotShortened, DistributedLBFGS),
    "L-BFGS: wrong sign of y": partial(becomes, GradientsSwapped, DistributedLBFGS),
    "L-BFGS: values of one client": partial(becomes, FirstClientsValue, DistributedLBFGS),
    "Newton-CG: the Hessian of one client": partial(becomes, FirstClientsHessian, DistributedNewtonCG),
    "Newton-CG: old Hessians": partial(becomes, ProductAtTheStart, DistributedNewtonCG),
}
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
