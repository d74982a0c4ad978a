"""The claims on AndersonFedSplit can fail: wrong weights, wrong Gram matrices and a missing safeguard are caught."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from dualopt.lab.claims import check
from dualopt.methods import AndersonFedSplit
from dualopt.methods._anderson import mixing_weights
from dualopt.solvers import Gradient
from dualopt.solvers.stopping import Steps
from theory._cases import Case
from theory._claims import discover
from theory.frontier.anderson import Wild

CHAPTERS = {name: chapter for name, chapter in discover().items() if chapter.module == "theory.frontier.anderson"}


class SumNotOne(AndersonFedSplit):
    """Weights with the sum 1.01."""

    def _mixed(self, gram, known):
        return tuple(1.01 * a for a in super()._mixed(gram, known))


class Unweighted(AndersonFedSplit):
    """The mean of all points."""

    def _mixed(self, gram, known):
        return (0.0,) * (self.memory + 1 - known) + (1.0 / known,) * known


class FirstClientsGram(AndersonFedSplit):
    """The products of the first client for the mean of those of all."""

    def local(self, clients, message, oracle, round):
        new, upload = super().local(clients, message, oracle, round)
        return new, upload._replace(products=np.broadcast_to(upload.products[:1], upload.products.shape))


class ProductsTurned(AndersonFedSplit):
    """Products with the residuals in the wrong order."""

    def local(self, clients, message, oracle, round):
        new, upload = super().local(clients, message, oracle, round)
        turned = np.concatenate([upload.products[:, -2::-1], upload.products[:, -1:]], axis=1)
        return new, upload._replace(products=turned)


class PointsMixed(AndersonFedSplit):
    """The points mixed where their images belong: no step at all."""

    def local(self, clients, message, oracle, round):
        new, upload = super().local(clients, message, oracle, round)
        return new._replace(images=(*new.images[:-1], new.images[-1] - new.residuals[-1])), upload


class OtherConsensus(AndersonFedSplit):
    """The server takes the newest image where the clients take the mixture."""

    def server(self, server, mean, round):
        new, message = super().server(server, mean, round)
        return new._replace(consensus=new.images[-1]), message._replace(consensus=new.images[-1])


class LargestResidual(AndersonFedSplit):
    """The largest mixture for the smallest."""

    def _mixed(self, gram, known):
        found = mixing_weights(np.linalg.pinv(gram[-known:, -known:]))
        return (0.0,) * (self.memory + 1 - known) + tuple(map(float, found))


class Trusting(Wild):
    """Nothing is refused."""

    def server(self, server, mean, round):
        return super().server(server._replace(history=server.history._replace(least=np.inf)), mean, round)


class NeverPlain(Wild):
    """No plain step but after a refusal, with weights that are not refused and do not help."""

    def server(self, server, mean, round):
        age = min(server.history.age, 1) if self.memory > 1 else 0
        return super().server(server._replace(history=server.history._replace(age=age)), mean, round)

    def _mixed(self, gram, known):
        return (0.0,) * (self.memory + 1 - known) + (1.0,) + (0.0,) * (known - 1)


class FromTheNewest(Wild):
    """Plain steps from the newest point, whatever its residual is."""

    def _plain(self, best):
        return super()._plain(0)


class ModelOfRefusedPoints(Wild):
    """The mean of the x_j as the model, refused or not."""

    def server(self, server, mean, round):
        new, message = super().server(server, mean, round)
        return new._replace(theta=server.consensus + 0.5 * mean.residual), message


def becomes(kind: type, case: Case) -> Case:
    """The same parameters in a wrong method."""
    method = case.algorithm
    return case.but(algorithm=kind(**{f.name: getattr(method, f.name) for f in fields(method) if f.init}))


def one_step_only(case: Case) -> Case:
    """Local problems that are not solved."""
    return case.but(algorithm=replace(case.algorithm, solver=Gradient(), stop=Steps(steps=1)))


MUTATIONS: dict[str, Callable[[Case], Case]] = {
    "weights with sum 1.01": partial(becomes, SumNotOne),
    "equal weights": partial(becomes, Unweighted),
    "the first client's Gram matrix": partial(becomes, FirstClientsGram),
    "products in the wrong order": partial(becomes, ProductsTurned),
    "the largest residual": partial(becomes, LargestResidual),
    "points for images": partial(becomes, PointsMixed),
    "another consensus": partial(becomes, OtherConsensus),
    "nothing refused": partial(becomes, Trusting),
    "no plain steps": partial(becomes, NeverPlain),
    "plain steps from the newest point": partial(becomes, FromTheNewest),
    "the model of refused points": partial(becomes, ModelOfRefusedPoints),
    "local problems not solved": one_step_only,
}
QUADRATIC, SAFE = "anderson_quadratics", "anderson_safeguard"
CATCHES = {
    "weights with sum 1.01": {QUADRATIC},
    "equal weights": {QUADRATIC},
    "the first client's Gram matrix": {QUADRATIC},
    "products in the wrong order": {QUADRATIC},
    "the largest residual": {QUADRATIC},
    "points for images": {QUADRATIC, SAFE},
    "another consensus": {QUADRATIC, SAFE},
    "nothing refused": {SAFE},
    "no plain steps": {SAFE},
    "plain steps from the newest point": {SAFE},
    "the model of refused points": {SAFE},
    "local problems not solved": {QUADRATIC, SAFE},
}


def telling_cases(name: str) -> Iterator[Any]:
    """The cases on which the claim holds."""
    return (case for case, verdict in CHAPTERS[name].cases(True) if verdict == "holds")


def verdicts(mutation: str, name: str) -> set[str]:
    with np.errstate(all="ignore"):  # a wrong method may diverge
        cases = map(MUTATIONS[mutation], telling_cases(name))
        return {check(CHAPTERS[name].claim, case, check_assumptions=False).verdict for case in cases}


@pytest.mark.parametrize(("mutation", "name"), [(m, name) for m, names in CATCHES.items() for name in sorted(names)])
def test_wrong_variants_are_caught(mutation: str, name: str) -> None:
    assert "violated" in verdicts(mutation, name)


def test_attained_factors_cannot_be_less() -> None:
    claim = CHAPTERS[QUADRATIC].claim
    less = replace(claim, compare=lambda case: (c._replace(rhs=(1 - 1e-6) * c.rhs) for c in claim.compare(case)))
    attained = [case for case in telling_cases(QUADRATIC) if case.attained]
    assert {check(less, case).verdict for case in attained} == {"violated"}


def test_wild_points_are_refused() -> None:
    """A refusal, its plain step, the step from a history of one point, the next wild point: every fourth or fifth."""
    for case in telling_cases(SAFE):
        if type(case.algorithm) is Wild:
            known = [s.server.history.known for s in case.snapshots()]
            assert known.count(0) >= case.rounds // 5


def test_every_claim_is_caught_by_some_mutation() -> None:
    assert set().union(*CATCHES.values()) == set(CHAPTERS)
    assert set(CATCHES) == set(MUTATIONS)
