"""Every numbered statement of the papers, with the claims that check it, and how much of it, or why none does.

A subpackage of a paper defines ``STATEMENTS`` beside ``PAPER``: in the order of the paper, the label of each statement
with the names of its claims, separated by commas, or with one sentence that says why there is none. Claims that check a
statement in part come with the words that say which special case they check, and a sentence that says why no more.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import theory

__all__ = ["Entry", "Statement", "statements", "summary"]

Entry = str | tuple[str, str, str]


class Statement(NamedTuple):
    """A statement of a paper: some claims check all of it, or there is a reason why none does, or none of the rest.

    Examples
    --------
    >>> Statement.read("paper", "Lemma 1", "first_half, second_half").covered
    'all'
    >>> Statement.read("paper", "Lemma 2", ("one_claim", "quadratics", "Others are as hard to solve.")).covered
    'special case: quadratics'
    >>> Statement.read("paper", "Lemma 3", "It defines a notation.").reason
    'It defines a notation.'
    """

    paper: str  # the name that selects its claims in ``python -m theory``
    label: str
    claims: tuple[str, ...]
    special: str  # which special case the claims check; empty where they check all
    reason: str  # why no claim checks it, or what is not of the special case; empty where they check all

    @classmethod
    def read(cls, paper: str, label: str, entry: Entry) -> Statement:
        """Read an entry of ``STATEMENTS``: a sentence ends with a full stop, names of claims do not."""
        text, special, why = (entry, "", "") if isinstance(entry, str) else entry
        if text.endswith("."):
            return cls(paper, label, (), special, text)
        return cls(paper, label, tuple(name.strip() for name in text.split(",")), special, why)

    @property
    def covered(self) -> str:
        """How much of it is checked, in words."""
        if not self.claims:
            return "not"
        return f"special case: {self.special}" if self.special else "all"


def statements() -> list[Statement]:
    """Return the statements of all papers, in the order of the papers.

    Examples
    --------
    >>> next(s for s in statements() if s.label == "Theorem 3.2").claims[0]
    'theorem_3_2'
    """
    found = []
    for package in pkgutil.iter_modules(theory.__path__, "theory."):
        folder = importlib.import_module(package.name) if package.ispkg else None
        entries: Mapping[str, Entry] = getattr(folder, "STATEMENTS", {})
        name = package.name.rpartition(".")[2]
        found += [Statement.read(name, label, entry) for label, entry in entries.items()]
    return found


def summary(found: Iterable[Statement]) -> str:
    """Return how many statements are checked, how many of them in part, and how many have a reason, in one sentence.

    Examples
    --------
    >>> summary([Statement.read("P", "Lemma 1", "a"), Statement.read("P", "Lemma 2", "It is a definition.")])
    '2 statements of 1 paper: 1 checked, 0 of them in a special case; 1 with the reason why there is no claim'
    """
    known = list(found)
    checked = [statement for statement in known if statement.claims]
    papers = len({statement.paper for statement in known})
    return (
        f"{len(known)} statements of {papers} paper{'s' * (papers != 1)}: {len(checked)} checked, "
        f"{sum(bool(statement.special) for statement in checked)} of them in a special case; "
        f"{len(known) - len(checked)} with the reason why there is no claim"
    )
