"""The claims on AndersonDANE can fail: another inner product, one client's gradient, and wrong constants are caught."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from dualopt.lab.claims import check
from dualopt.methods import AndersonDANE
from theory._cases import Case
from theory._claims import discover
from theory.frontier import dane

CHAPTERS = {name: chapter for name, chapter in discover().items() if chapter.module == "theory.frontier.dane"}


class EuclideanProduct(AndersonDANE):
    """The usual inner product of residuals."""

    def server(self, server, mean, round):
        if not server.solving or not server.started:
            return super().server(server, mean, round)
        turned = server._replace(gradient=server.point - mean, gradients=tuple(-r for r in server.residuals))
        new, message = super().server(turned, mean, round)
        return new._replace(gradients=(*server.gradients[1:], server.gradient)), message


class OneClientsSolution(AndersonDANE):
    """The solution of the first client for the mean: its inverse Hessian alone."""

    def local(self, clients, message, oracle, round):
        new, upload = super().local(clients, message, oracle, round)
        return new, np.broadcast_to(upload[:1], upload.shape) if message.solve else upload


class OwnGradientKept(AndersonDANE):
    """``g`` for ``g - g_j``."""

    def local(self, clients, message, oracle, round):
        new, upload = super().local(clients._replace(gradient=0 * clients.gradient), message, oracle, round)
        return (clients, upload) if message.solve else (new, upload)


class LongerStep(AndersonDANE):
    """Images with three times the step."""

    def server(self, server, mean, round):
        if not server.solving or not server.started:
            return super().server(server, mean, round)
        new, message = super().server(server._replace(eta=3.0 * server.eta), mean, round)
        return new._replace(eta=server.eta), message


class SumNotOne(AndersonDANE):
    """Weights with the sum 1.01."""

    def _mixed(self, gram, known):
        return tuple(1.01 * a for a in super()._mixed(gram, known))


class Unweighted(AndersonDANE):
    """The mean of all points."""

    def _mixed(self, gram, known):
        return (0.0,) * (self.memory + 1 - known) + (1.0 / known,) * known


def becomes(kind: type, case: Case) -> Case:
    """The same parameters in a wrong method."""
    method = case.algorithm
    return case.but(algorithm=kind(**{f.name: getattr(method, f.name) for f in fields(method) if f.init}))


MUTATIONS: dict[str, Callable[[Case], Case]] = {
    "the usual inner product": partial(becomes, EuclideanProduct),
    "one client's solution": partial(becomes, OneClientsSolution),
    "own gradients kept": partial(becomes, OwnGradientKept),
    "three times the step": partial(becomes, LongerStep),
    "weights with sum 1.01": partial(becomes, SumNotOne),
    "equal weights": partial(becomes, Unweighted),
}


def telling_cases(name: str) -> Iterator[Any]:
    """The cases on which the claim holds."""
    return (case for case, verdict in CHAPTERS[name].cases(True) if verdict == "holds")


def verdicts(claim, cases: Iterator[Any]) -> set[str]:
    with np.errstate(all="ignore"):
        return {check(claim, case, check_assumptions=False).verdict for case in cases}


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_wrong_variants_are_caught(mutation: str) -> None:
    name = "anderson_dane_quadratics"
    assert "violated" in verdicts(CHAPTERS[name].claim, map(MUTATIONS[mutation], telling_cases(name)))


@pytest.mark.parametrize(
    "wrong",
    [
        lambda mu, L, w=0.0: (mu / (mu + w), 0.999 * dane_spectrum(mu, L, w)[1]),
        lambda mu, L, w=0.0: (1.001 * mu / (mu + w), dane_spectrum(mu, L, w)[1]),
        lambda mu, L, w=0.0: (1.0, dane_spectrum(mu, L, w)[1]),
        lambda mu, L, w=0.0: (mu / (mu + w), 1.0),
    ],
    ids=["smaller", "larger", "weight forgotten", "as if alike"],
)
def test_wrong_bounds_of_the_spectrum_are_caught(wrong, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dane, "spectrum", wrong)
    assert "violated" in verdicts(CHAPTERS["dane_spectrum"].claim, telling_cases("dane_spectrum"))


dane_spectrum = dane.spectrum


def test_clients_that_are_less_alike_are_caught() -> None:
    cases = [case for case in telling_cases("dane_spectrum") if case.epsilon is not None]
    halved = (replace(case, epsilon=0.5 * case.epsilon) for case in cases)
    assert verdicts(CHAPTERS["dane_spectrum"].claim, halved) == {"violated"}


def test_too_long_steps_expand_at_first() -> None:
    """Outside of what is assumed a plain step makes the residual many times larger, as the eigenvalue says."""
    too_long = dane.dane_case(dane.opposite(100.0), eta=1.0)
    snapshots = list(too_long.snapshots())
    sizes = [np.linalg.norm(s.server.residuals[-1]) for s in snapshots[2:5:2]]
    assert sizes[1] == pytest.approx(dane.factor_of(too_long) * sizes[0], rel=1e-9)
    assert dane.factor_of(too_long) == pytest.approx(101.0**2 / 400.0 - 1.0, rel=1e-9)


def test_every_claim_is_tried() -> None:
    assert set(CHAPTERS) == {"anderson_dane_quadratics", "dane_spectrum"}
