"""The chapters, in the order of the article."""

from __future__ import annotations

import importlib

from dualopt.spec.discover import unknown_name
from figures.lessons._parts import Chapter

__all__ = ["CHAPTERS", "load"]

CHAPTERS = (
    "averaging",
    "bound",
    "momentum",
    "stopping",
    "names",
    "drift",
    "coin",
    "phases",
    "chain",
    "worst",
    "wrong",
    "your_own",
)


def load(name: str) -> Chapter:
    """Return a chapter.

    Raises
    ------
    ValueError
        If there is no chapter of that name; the sentence lists all names.

    Examples
    --------
    >>> load("averaging").title
    'Averaging is biased'
    """
    if name not in CHAPTERS:
        raise unknown_name("chapter", name, CHAPTERS)
    return importlib.import_module(f"figures.lessons.{name}").CHAPTER
