"""The factors of FedSplit, FedDR and Scaffnew, derived again in one dimension, where the worst case lies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy as sp

from dualopt.methods._parameters import reflection_factor
from tests.theory._symbolic import compared, positive, same, stand_in
from theory.baselines import contraction

s, k, x, h, p = positive("s k x h p")
MU, L = 2, 50
CLIENTS = stand_in(mu=np.array([3.0, 2.0]), L=np.array([50.0, 20.0]))


@pytest.fixture
def factor(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Keep the factor that a claim compares with, in place of the comparison."""
    kept: dict[str, Any] = {}

    def one_step(case: Any, errors: Any, factor: Any) -> Any:
        kept["factor"] = factor
        return iter(())

    monkeypatch.setattr(contraction, "one_step", one_step)
    for method in ("fedsplit", "feddr", "scaffnew"):
        monkeypatch.setattr(contraction, f"{method}_errors", lambda case: stand_in(of=None))
    monkeypatch.setattr(contraction, "path_of", lambda case, errors: iter(()))
    return kept


def reflection(step: Any, curvature: Any) -> Any:
    """Return the factor of 2 prox - 1 for a quadratic."""
    return 2 / (1 + step * curvature) - 1


def test_reflection_factor() -> None:
    """It falls with the curvature, so that its size is largest at an end."""
    assert sp.diff(reflection(s, k), k).is_negative
    for step in (sp.Rational(1, 100), sp.Rational(1, 10), sp.Integer(1)):
        same(reflection_factor(CLIENTS, float(step)), max(reflection(step, MU), -reflection(step, L)))


def test_fedsplit(factor: dict[str, Any]) -> None:
    """The best step makes both ends equal."""
    (best,) = sp.solve(reflection(s, MU) + reflection(s, L), s)
    compared(contraction.fedsplit_contraction, L=float(L), mu=float(MU))
    same(factor["factor"], reflection(best, MU) ** 2)


@pytest.mark.parametrize("relaxation", [1, 2])
def test_feddr(factor: dict[str, Any], relaxation: int) -> None:
    """An active client, one of three, takes a/2 of a reflection and keeps the rest; the others keep everything."""
    algorithm = stand_in(eta=0.1, relaxation=float(relaxation))
    compared(contraction.feddr_contraction, L=float(L), mu=float(MU), algorithm=algorithm, fraction=1 / 3)
    worst = max(reflection(sp.Rational(1, 10), MU), -reflection(sp.Rational(1, 10), L))
    share = sp.Rational(relaxation, 2)
    same(factor["factor"], sp.Rational(2, 3) + ((1 - share) + share * worst) ** 2 / 3)


def test_scaffnew(factor: dict[str, Any]) -> None:
    """Of two clients that deviate by x, with controls that deviate by h, both sides of the coin."""
    moved = x - s * (k * x - h)
    together, apart = (s / p) ** 2 * (h - p / s * moved) ** 2, moved**2 + (s / p) ** 2 * h**2
    after = sp.expand(p * together + (1 - p) * apart)
    same(after, sp.expand((1 - s * k) ** 2 * x**2 + (1 - p**2) * (s / p) ** 2 * h**2))
    for step, chance in ((sp.Rational(1, 50), 0.5), (sp.Rational(3, 100), 0.9), (sp.Rational(1, 200), 0.05)):
        algorithm = stand_in(solver=stand_in(step=float(step)), probability=chance)
        compared(contraction.scaffnew_one_step, L=float(L), mu=float(MU), algorithm=algorithm)
        worst = max(*((1 - step * c) ** 2 for c in (MU, L)), 1 - sp.nsimplify(chance) ** 2)
        same(factor["factor"], worst)
