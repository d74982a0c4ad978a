"""What may happen to compressed uploads, all of it: masks, and the draws of the package's compressors."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from itertools import combinations, product
from typing import Any, ClassVar

import numpy as np

from dualopt.arrays.xp import Array
from dualopt.engine.rounds import State, advance
from dualopt.methods.compressors import Compressor, kept
from dualopt.methods.participation import Round
from theory._cases import Case, everybody

__all__ = ["CompressedCase", "Mask", "Masks", "Ways", "cohorts", "compressed", "drawn", "independent", "masked"]

Ways = tuple[tuple[Compressor, Round], ...]
"""What compresses the uploads, with rounds that say what chance gives to it; all equally likely."""

Mask = tuple[tuple[float, ...], ...]
"""What each client uploads, 1 or 0 for each of its coordinates."""


@dataclass(frozen=True, kw_only=True)
class Masks:
    """A compressor that sends given coordinates, each of which has the probability ``part``."""

    mask: Mask
    part: float
    unbiased: ClassVar[bool] = True
    example: ClassVar[dict[str, Any]] = {"mask": ((1.0,),), "part": 1.0}

    def omega(self, shape: tuple[int, ...], n_clients: int) -> float:
        """Return ``1/part - 1``."""
        return 1.0 / self.part - 1.0

    def compress(self, x: Array, round: Round) -> Array:
        """Return these coordinates, scaled."""
        return np.array(self.mask) * x / self.part

    def numbers(self, shape: tuple[int, ...], round: Round) -> int:
        """Return how many there are."""
        return int(np.sum(self.mask))

    def bits(self, shape: tuple[int, ...], width: int, round: Round) -> int:
        """Return their bits, with no positions."""
        return width * self.numbers(shape, round)


@dataclass(frozen=True, kw_only=True, eq=False)
class CompressedCase(Case):
    """A method and everything that may happen to its uploads, equally likely.

    Attributes
    ----------
    ways : Ways
        What may happen.
    """

    ways: Ways

    @property
    def kept(self) -> float:
        r"""Return :math:`1/(1 + \omega)`."""
        compressor, round = self.ways[0]
        return kept(compressor, self.objective.shape, round)

    @property
    def fraction(self) -> float:
        """The part p of Theorem A."""
        return self.kept

    def after(self, state: State) -> list[State]:
        """Return all states after a round, equally likely."""
        methods = [(replace(self.algorithm, compressor=compressor), round) for compressor, round in self.ways]
        return [advance(method, self.objective, state, round)[0] for method, round in methods]


def independent(n: int, d: int, k: int) -> tuple[Mask, ...]:
    """Return all choices of k of d coordinates by each of n clients.

    Examples
    --------
    >>> len(independent(3, 2, 1))
    8
    """
    rows = [tuple(float(i in chosen) for i in range(d)) for chosen in combinations(range(d), k)]
    return tuple(product(rows, repeat=n))


def cohorts(n: int, d: int, c: int, *, together: bool = False) -> tuple[Mask, ...]:
    """Return all choices of c of n clients for each of d coordinates; ``together``: shifted from one to the next.

    Examples
    --------
    >>> len(cohorts(3, 2, 1)), len(cohorts(3, 2, 1, together=True))
    (9, 3)
    """
    columns = [tuple(float(j in chosen) for j in range(n)) for chosen in combinations(range(n), c)]
    if together:
        chosen = [[tuple(np.roll(column, i)) for i in range(d)] for column in columns]
    else:
        chosen = [list(columns) for columns in product(columns, repeat=d)]
    return tuple(tuple(zip(*columns, strict=True)) for columns in chosen)


def masked(masks: tuple[Mask, ...], part: float) -> Ways:
    """Return what may happen to the uploads if each of the masks is equally likely."""
    return tuple((Masks(mask=mask, part=part), everybody(len(mask))) for mask in masks)


def compressed(case: Case, ways: Ways, note: str) -> CompressedCase:
    """Return the case with what may happen to the uploads."""
    known: dict[str, Any] = {f.name: getattr(case, f.name) for f in fields(case)}
    known["name"] = f"{case.name}, {note}"
    return CompressedCase(**known, ways=ways)


def drawn(compressor: Compressor, rounds: tuple[Round, ...]) -> Ways:
    """Return what may happen to the uploads if each of the rounds is equally likely."""
    return tuple((compressor, round) for round in rounds)
