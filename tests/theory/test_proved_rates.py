"""Every linear rate of every theorem: the claim is no less than what is proved, which is no less than what happens.

``docs/proved_rates.csv`` has these numbers for larger constants and more clients; here they are computed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import pytest

import dualopt.methods
from dualopt.engine.rounds import resolve
from dualopt.lab.proofs import Rate, prove
from dualopt.lab.proofs._promised import promised
from dualopt.methods import Algorithm, Known, Theorem, parameters
from dualopt.methods.participation import as_participation
from dualopt.objectives import Quadratic
from dualopt.spec.discover import discover
from theory.proofs._page import ABOVE, PAGE, above, broken, page
from theory.proofs._table import TOLERANCE, Key, Row, computed, keys, stored
from theory.proofs._table import _clients as clients

METHODS = discover(dualopt.methods)
LINEAR = [name for name, kind in METHODS.items() if any(t.factor is not None for t in kind.theorems)]

REFUSED = {
    "acc-s-dane": "settle",
    "anderson-dane": "linear algebra",
    "anderson-fedsplit": "linear algebra",
    "dual-lbfgs": "linear algebra",
    "giant": "Hessian",
}
"""Methods with linear rates that the prover refuses, and a word of the refusal."""

NEVER_ATTAINED = {"corrected-dualfl", "dualfl", "sampled-dualfl"}
"""Methods whose theorems no clients of the search come near, as their proofs are better."""


class Class(NamedTuple):
    """Clients with mu = 1 and L = kappa."""

    N: int
    kappa: float
    weights: tuple[float, ...] | None = None

    @property
    def f(self) -> Quadratic:
        """Clients of the class."""
        return replace(clients(self.N, self.kappa), weights=self.weights)

    def laws(self, name: str) -> list[str]:
        """Laws that a method admits."""
        own = {"partial": ["subset=1", "subset=2", "bernoulli=0.3"], "skip": ["communicate=0.4"]}
        if self.weights:
            own = {"unequal": ["importance=1"]}
        return ["full", *(law for need, some in own.items() if need in METHODS[name].supports for law in some)]


CLASSES = [Class(3, 4.0), Class(6, 30.0), Class(3, 4.0, (1.0, 1.0, 2.0))]


def complaint(claim: float, proved: float, happens: float | None) -> str:
    """What is wrong with three numbers, if anything is."""
    if happens is not None and claim < happens - TOLERANCE:
        return f"clients need {happens:.6f}, and {claim:.6f} is claimed"
    if happens is not None and proved < happens - TOLERANCE:
        return f"clients need {happens:.6f}, and {proved:.6f} is proved"
    return f"{claim:.6f} is claimed, and {proved:.6f} is the least that is proved" if proved > claim + TOLERANCE else ""


def variants(name: str, f: Quadratic, law: str) -> Iterator[Algorithm]:
    """The method as it is suggested, and for few clients with other numbers."""
    suggested = resolve(name, f, as_participation(law))
    yield suggested
    changes: list[dict[str, float]] = []
    if "probability" in parameters(type(suggested)):  # the coin of the law
        changes.append({"probability": 0.4 if law.startswith("communicate") else 1.0})
    if f.n_clients == 3 and law in ("full", "subset=1"):
        values = {key: getattr(suggested, key) for key in parameters(type(suggested))}
        numbers = {key: value for key, value in values.items() if isinstance(value, float) and value > 0}
        changes += [{key: times * value} for key, value in numbers.items() for times in (0.5, 100.0)]
    for change in changes:
        try:
            changed = replace(suggested, **change)
            changed.check(f)
        except ValueError:  # out of range
            continue
        yield changed


def rates(name: str) -> Iterator[tuple[str, Theorem, float, Rate]]:
    """What theorems claim of a method, where they apply, and what is proved."""
    for own in CLASSES:
        for law in own.laws(name):
            known = Known.of(own.f, as_participation(law))
            for method in variants(name, own.f, law):
                found = promised(method, known)
                if not found:
                    continue
                rate = prove(method, mu=1, L=own.kappa, clients=own.N, participation=law, weights=own.weights)
                for theorem, factor in found:
                    yield f"{method}, {own}, {law}", theorem, factor, rate


@pytest.mark.parametrize("name", [name for name in LINEAR if name not in REFUSED])
def test_claims_are_no_less_than_proofs_and_these_no_less_than_what_happens(name: str) -> None:
    """Of all theorems with a factor; one that is a hundredth too good is noticed where the theorem is attained."""
    reached, noticed = set(), False
    for about, theorem, claim, rate in rates(name):
        assert not complaint(claim, rate.factor, rate.lower_bound), about
        assert rate.lower_bound is not None
        reached.add(METHODS[name].theorems.index(theorem))
        noticed |= bool(complaint(0.99 * claim, rate.factor, rate.lower_bound))
    assert reached == {k for k, t in enumerate(METHODS[name].theorems) if t.factor is not None and not t.compressed}
    assert noticed == (name not in NEVER_ATTAINED)


@pytest.mark.parametrize(("name", "word"), REFUSED.items())
def test_other_linear_rates_are_of_methods_that_are_refused(name: str, word: str) -> None:
    assert name in LINEAR
    with pytest.raises(ValueError, match=word):
        prove(name, mu=1, L=4, clients=3)


# The table of docs/proved_rates.md.


def test_the_table_is_of_all_methods() -> None:
    """Otherwise ``python -m theory.proofs --table`` completes it."""
    assert list(stored()) == keys()


def test_no_row_contradicts_another_number() -> None:
    for row in stored().values():
        assert not broken(row), row
        assert row.proved is not None or row.why
    assert {row.key.method for row in stored().values() if above(row)} == set(ABOVE)


def test_the_page_is_that_of_the_rows() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(list(stored().values()))


SAMPLED = [key for key, row in stored().items() if row.seconds < 0.5][::23]


@pytest.mark.parametrize("key", SAMPLED, ids=["-".join(map(str, key)) for key in SAMPLED])
def test_rows_are_what_the_code_gives(key: Key) -> None:
    """Otherwise delete the rows of the method from ``docs/proved_rates.csv``, and let the command write them anew."""
    old, new = stored()[key], computed(key)
    for name in ("proved", "claimed", "happens"):
        assert getattr(new, name) == pytest.approx(getattr(old, name), abs=TOLERANCE), name
    assert (new.late, new.bound, new.source, new.why) == (old.late, old.bound, old.source, old.why)


WRONG = Row(Key("mine", "all", 4, 10.0), proved=0.8, claimed=0.81, source="Theorem 1", happens=0.8)


def test_wrong_rows_are_noticed() -> None:
    assert not broken(WRONG)
    assert not above(WRONG)
    assert above(WRONG._replace(claimed=0.99 * 0.8))
    assert broken(WRONG._replace(claimed=0.99 * 0.8))
    assert broken(WRONG._replace(proved=0.99 * 0.8))
