"""Every numbered statement of the papers, with the claims that check it or the reason why none does.

A subpackage of a paper defines ``STATEMENTS`` beside ``PAPER``: in the order of the paper, the label of each statement
with the names of its claims, separated by commas, or with one sentence that says why there is none.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import theory

__all__ = ["Statement", "statements", "summary"]


class Statement(NamedTuple):
    """A statement of a paper: either some claim checks it, or there is a reason why none does.

    Examples
    --------
    >>> Statement.read("paper", "Lemma 1", "first_half, second_half").claims
    ('first_half', 'second_half')
    >>> Statement.read("paper", "Lemma 2", "It defines a notation.").reason
    'It defines a notation.'
    """

    paper: str  # the name that selects its claims in ``python -m theory``
    label: str
    claims: tuple[str, ...]
    reason: str

    @classmethod
    def read(cls, paper: str, label: str, text: str) -> Statement:
        """Read an entry of ``STATEMENTS``: a sentence ends with a full stop, names of claims do not."""
        if text.endswith("."):
            return cls(paper, label, (), text)
        return cls(paper, label, tuple(name.strip() for name in text.split(",")), "")


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
        entries: Mapping[str, str] = getattr(folder, "STATEMENTS", {})
        name = package.name.rpartition(".")[2]
        found += [Statement.read(name, label, text) for label, text in entries.items()]
    return found


def summary(found: Iterable[Statement]) -> str:
    """Return how many statements have a claim, and how many a reason, in one sentence.

    Examples
    --------
    >>> summary([Statement.read("P", "Lemma 1", "a"), Statement.read("P", "Lemma 2", "It is a definition.")])
    '2 statements of 1 paper: 1 with a claim, 1 with the reason why there is none'
    """
    known = list(found)
    checked = sum(bool(statement.claims) for statement in known)
    papers = len({statement.paper for statement in known})
    return (
        f"{len(known)} statements of {papers} paper{'s' * (papers != 1)}: {checked} with a claim, "
        f"{len(known) - checked} with the reason why there is none"
    )
