"""The figure of the scales: what is computed, tabulated and drawn."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from dualopt.methods import FedDyn, FedSplit
from figures import scales
from figures._settings import Settings

NAMES = ("fedsplit", "feddyn")


@pytest.fixture(scope="module")
def settings(tmp_path_factory) -> Settings:
    return Settings(data="breast_cancer", out=tmp_path_factory.mktemp("figures"), quick=True)


@pytest.fixture(scope="module")
def traces(settings: Settings):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scales, "SPREADS", {True: (1.0, 100.0)})
        patch.setattr(scales, "ACTIVE", (5,))
        patch.setattr(scales, "METHODS", {name: scales.METHODS[name] for name in NAMES})
        yield scales.compute(settings)


def test_scales_of_their_own_take_fewer_rounds_and_equal_ones_change_nothing(traces) -> None:
    assert len(traces) == 8
    for kind in ("quadratics", "data"):
        for name in NAMES:
            one, own = (traces[f"{kind}, 5 of 20: {name}, {form}"]["rounds"] for form in scales.FORMS.values())
            assert own[1] < 0.75 * one[1]
    one, own = (traces[f"quadratics, 5 of 20: fedsplit, {form}"]["rounds"] for form in scales.FORMS.values())
    assert own[0] == one[0]


def test_the_problems_have_the_spread() -> None:
    f = scales.quadratics(100.0).objective
    np.testing.assert_allclose(f.L / f.mu, scales.KAPPA, rtol=1e-9)
    assert np.max(f.L) / np.min(f.L) == pytest.approx(100.0, rel=1e-9)
    assert scales.quadratics(100.0).error(f.zeros()) == 1.0


def test_features_are_scaled(settings: Settings) -> None:
    plain, scaled = (scales.scaled_rows(settings, spread).objective for spread in (1.0, 100.0))
    ratios = np.sort((scaled.L - settings.mu) / (plain.L - settings.mu))
    np.testing.assert_allclose(ratios, np.geomspace(0.01, 1.0, scales.N), rtol=1e-6)
    np.testing.assert_allclose(scaled.mu, settings.mu)


def test_runs_that_are_too_long_have_a_dash(traces, settings: Settings) -> None:
    assert math.isnan(scales.rounds(scales.quadratics(1.0), FedSplit(), "none", 2, 3, 0))
    assert math.isnan(scales.rounds(scales.scaled_rows(settings, 1.0), FedDyn(), "suggested", 2, 3, 0))
    rows = scales.tabulate(traces)
    assert [row["method"] for row in rows] == ["FedSplit", "FedSplit", "FedDyn", "FedDyn"] * 2
    label = "data, 5 of 20: feddyn, one scale"
    long = replace(traces[label], columns={**traces[label].columns, "rounds": np.array([math.nan, 7.0])})
    assert [row["one scale"] for row in scales.tabulate(traces | {label: long})[6:]] == ["-", "7"]


def test_the_figure_has_both_forms(traces, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scales, "ACTIVE", (5,))
    monkeypatch.setattr(scales, "LEGEND", {name: scales.LEGEND[name] for name in NAMES})
    figure = scales.draw(traces, settings)
    panels = figure.get_axes()
    assert [len(panel.get_lines()) for panel in panels] == [4, 4]
    assert [line.get_linestyle() for line in panels[0].get_lines()] == ["--", "-"] * 2
    assert panels[0].get_title() == "quadratics, $\\kappa_j$ = 100, to $10^{-10}$\n5 of 20 active"
