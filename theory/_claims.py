"""Finding the claims, with the verdicts that are expected of them.

A subpackage of ``theory`` that defines ``PAPER`` holds claims: every decorated function of its modules whose names have
no leading underscore. A new file, or a new function in a file, is found without an entry in any list.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

import theory
from dualopt.arrays.xp import Array
from dualopt.lab.claims import Claim, Verdict, check

__all__ = [
    "ROUNDING",
    "UP_TO_ROUNDING",
    "Chapter",
    "ExpectedVerdict",
    "Form",
    "Result",
    "claims_of",
    "deviation",
    "discover",
    "judge",
]

# Two sides of an identity are computed with some thousand roundings of matrices of condition up to 1e4.
ROUNDING = 1e-10
UP_TO_ROUNDING = 1.0 + 1e-12  # for parameters at the end of an admitted range


class ExpectedVerdict(NamedTuple):
    """A case with the verdict that it must give."""

    case: Any
    verdict: str = "holds"


class Form(NamedTuple):
    """A case of an erratum: whether the statement is taken as printed or corrected."""

    case: Any
    printed: bool
    note: str = ""

    @property
    def name(self) -> str:
        """For tables."""
        form = "as printed" if self.printed else "corrected"
        return f"{form}: {self.note or self.case.name}"


class Chapter(NamedTuple):
    """One claim, and where it stands."""

    paper: str
    module: str
    claim: Claim

    @property
    def folder(self) -> str:
        """The subpackage in which it stands."""
        return self.module.split(".")[1]

    @property
    def selection(self) -> str:
        """What ``python -m theory`` selects it by: its subpackage, or ``errata``, wherever an erratum stands."""
        return "errata" if self.claim.corrects else self.folder

    def cases(self, quick: bool) -> Iterable[tuple[Any, str]]:
        """Return the cases with the verdicts that are expected."""
        assert self.claim.cases is not None
        return self.claim.cases(quick)


class Result(NamedTuple):
    """A verdict beside the expected one."""

    verdict: Verdict
    expected: str

    @property
    def as_expected(self) -> bool:
        """Whether they agree."""
        return self.verdict.verdict == self.expected


def discover() -> dict[str, Chapter]:
    """Return all claims by their names: subpackage by subpackage, file by file, in the order of the file.

    Raises
    ------
    TypeError
        If two claims have the same name, or a claim has no cases.

    Examples
    --------
    >>> discover()["theorem_3_2"].claim.source
    'Park and Xu, Theorem 3.2'
    """
    found: dict[str, Chapter] = {}
    for package in pkgutil.iter_modules(theory.__path__, "theory."):
        folder = importlib.import_module(package.name) if package.ispkg else None
        if folder is None or not hasattr(folder, "PAPER"):
            continue
        for entry in pkgutil.iter_modules(folder.__path__, f"{package.name}."):
            if entry.name.rpartition(".")[2].startswith("_"):
                continue
            for claim in claims_of(importlib.import_module(entry.name)):
                if claim.cases is None:
                    raise TypeError(f"claim {claim.name} in {entry.name} must have cases.")
                if claim.name in found:
                    raise TypeError(f"claim {claim.name} is in {found[claim.name].module} and in {entry.name}.")
                found[claim.name] = Chapter(folder.PAPER, entry.name, claim)
    return found


def claims_of(module: ModuleType) -> list[Claim]:
    """Return the claims that a module defines, without those that it imports."""
    claims = [value for value in vars(module).values() if isinstance(value, Claim)]
    return [claim for claim in claims if claim.compare.__module__ == module.__name__]


def judge(chapter: Chapter, *, quick: bool = False) -> Iterator[Result]:
    """Check a claim on all its cases, one after the other."""
    for case, expected in chapter.cases(quick):
        yield Result(check(chapter.claim, case), expected)


def deviation(a: Array | float, b: Array | float, *, scale: float | None = None) -> float:
    r"""Return :math:`\max|a - b|` relative to the scale, by default the largest entry: at most rounding in an identity.

    Examples
    --------
    >>> deviation(np.array([1.0, 4.0]), np.array([1.0, 3.0]))
    0.25
    """
    size = max(float(np.max(np.abs(a))), float(np.max(np.abs(b)))) if scale is None else scale
    return float(np.max(np.abs(np.asarray(a) - np.asarray(b)))) / (size if size > 0 else 1.0)
