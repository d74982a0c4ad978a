"""The claims on GIANT, Acc-S-DANE and L-BFGS on the dual can fail: wrong methods and wrong constants are caught."""

from __future__ import annotations

import pytest

from dualopt.lab.claims import check
from tests.theory.mutation_table import TABLES, columns, is_violated, telling
from theory._claims import discover
from theory.frontier import accelerated_dane, dual_lbfgs, giant

MODULES = {f"theory.frontier.{name}" for name in ("giant", "accelerated_dane", "adaptive_dane", "dual_lbfgs")}
CHAPTERS = {name: chapter for name, chapter in discover().items() if chapter.module in MODULES}


def is_caught(name: str) -> bool:
    return is_violated(CHAPTERS[name].claim, telling(name))


def test_a_smaller_rate_of_giant_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    wider = giant.eigenvalues

    def narrower(f, weight):
        found = wider(f, weight)
        found[-1] = found[0] + 0.99 * (found[-1] - found[0])
        return found

    monkeypatch.setattr(giant, "eigenvalues", narrower)
    assert is_caught("giant_quadratics")


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
    assert set(CHAPTERS) == set(columns(TABLES["Clients that are alike"]))
