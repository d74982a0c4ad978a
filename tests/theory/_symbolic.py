"""Constants as SymPy reads them: claims are run on symbols, and what they compare is set against a derivation."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any

import sympy as sp

from dualopt.lab.claims import Claim, Inequality

__all__ = ["agree", "assert_same", "compared", "expects", "first", "positive", "squares", "stand_in"]


def stand_in(**known: Any) -> Any:
    """Return something with the attributes that are given, in place of a case."""
    return SimpleNamespace(**known)


class expects:
    """An expectation ``E[quantity]`` that is what ``of(quantity)`` says."""

    def __init__(self, of: Callable[[Any], Any]) -> None:
        self.of = of

    def __getitem__(self, quantity: Any) -> Any:
        return self.of(quantity)


def positive(names: str) -> Any:
    """Return positive symbols."""
    return sp.symbols(names, positive=True)


def agree(found: Any, derived: Any) -> bool:
    """Return whether two expressions are the same: numbers up to rounding, others with decimals read as fractions."""
    found, derived = sp.sympify(found), sp.sympify(derived)
    if not (found.free_symbols | derived.free_symbols):
        return abs(sp.N(found - derived)) <= 1e-12 * abs(sp.N(derived))
    return sp.simplify(sp.nsimplify(found, rational=True) - sp.nsimplify(derived, rational=True)) == 0


def assert_same(found: Any, derived: Any) -> None:
    """Assert that the number in the code is the one derived, and that this tells it from its double and its half."""
    assert agree(found, derived), f"{found} is not {derived}"
    assert not agree(2 * found, derived)
    assert not agree(found / 2, derived)


def compared(claim: Claim | Callable[..., Iterable[Inequality]], case: Any = None, **known: Any) -> list[Inequality]:
    """Return the inequalities of a claim, at least one, on a case or a stand-in with the attributes that are given."""
    found = list(claim(SimpleNamespace(**known) if case is None else case))
    assert found
    return found


def first(claim: Claim | Callable[..., Iterable[Inequality]], case: Any = None, **known: Any) -> Inequality:
    """Return the first inequality alone: the sharper forms after it may ask how large numbers are."""
    return next(iter(claim(SimpleNamespace(**known) if case is None else case)))


def squares(*terms: Any) -> Any:
    """Bound the square of a sum of vectors by the squares of its terms, given those."""
    return len(terms) * sum(terms)
