"""The claims on AndersonDANE can fail: another inner product, one client's gradient, and wrong constants are caught."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.theory.mutation_table import is_violated, telling, verdicts
from theory._claims import discover
from theory.frontier import dane

CHAPTERS = {name: chapter for name, chapter in discover().items() if chapter.module == "theory.frontier.dane"}


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
    assert is_violated(CHAPTERS["dane_spectrum"].claim, telling("dane_spectrum"))


dane_spectrum = dane.spectrum


def test_clients_that_are_less_alike_are_caught() -> None:
    cases = [case for case in telling("dane_spectrum") if case.epsilon is not None]
    halved = (replace(case, epsilon=0.5 * case.epsilon) for case in cases)
    assert {v.verdict for v in verdicts(CHAPTERS["dane_spectrum"].claim, halved)} == {"violated"}


def test_too_long_steps_expand_at_first() -> None:
    """Outside of what is assumed a plain step makes the residual many times larger, as the eigenvalue says."""
    too_long = dane.dane_case(dane.opposite(100.0), eta=1.0)
    snapshots = list(too_long.snapshots())
    sizes = [np.linalg.norm(s.server.residuals[-1]) for s in snapshots[2:5:2]]
    assert sizes[1] == pytest.approx(dane.factor_of(too_long) * sizes[0], rel=1e-9)
    assert dane.factor_of(too_long) == pytest.approx(101.0**2 / 400.0 - 1.0, rel=1e-9)


def test_every_claim_is_tried() -> None:
    assert set(CHAPTERS) == {"anderson_dane_quadratics", "dane_spectrum"}
