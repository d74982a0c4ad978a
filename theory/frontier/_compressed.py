"""What may happen to compressed uploads, all of it: masks, and the draws of the package's compressors."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Any, ClassVar

import numpy as np

from dualopt.arrays.xp import Array
from dualopt.lab.chance import equally_likely
from dualopt.methods.compressors import Compressor, kept_part
from dualopt.methods.participation import Round
from theory._cases import Case
from theory.frontier._draws import scripted

__all__ = ["Mask", "Masks", "cohorts", "compressed", "independent", "masked", "through"]

Mask = tuple[tuple[float, ...], ...]
"""What each client uploads, 1 or 0 for each of its coordinates."""


@dataclass(frozen=True, kw_only=True)
class Masks:
    """A compressor that sends the coordinates that the round says, each of which has the probability ``part``."""

    part: float
    unbiased: ClassVar[bool] = True
    example: ClassVar[dict[str, Any]] = {"part": 1.0}

    def omega(self, shape: tuple[int, ...], n_clients: int) -> float:
        """Return ``1/part - 1``."""
        return 1.0 / self.part - 1.0

    def compress(self, x: Array, round: Round) -> Array:
        """Return these coordinates, scaled."""
        return _mask(round) * x / self.part

    def numbers(self, shape: tuple[int, ...], round: Round) -> int:
        """Return how many there are."""
        return int(np.sum(_mask(round)))

    def bits(self, shape: tuple[int, ...], width: int, round: Round) -> int:
        """Return their bits, with no positions."""
        return width * self.numbers(shape, round)


def _mask(round: Round) -> Array:
    drawn: Any = round
    return np.array(drawn.draws)


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


def masked(masks: Iterable[Mask]) -> tuple[Round, ...]:
    """Return the rounds in which :class:`Masks` sends each of the masks."""
    return tuple(scripted(len(mask), mask) for mask in masks)


def compressed(case: Case, compressor: Compressor, rounds: Iterable[Round], note: str) -> Case:
    r"""Return the case with compressed uploads and what may happen to them, equally likely.

    It knows what is ``kept``, :math:`1/(1 + \omega)`, which is the part p of Theorem A.
    """
    part = kept_part(compressor, case.objective.shape, case.n_clients)
    law, known = equally_likely(rounds), {"compressor": None, "kept": part, "fraction": part}
    return through(compressor, case.but(name=f"{case.name}, {note}", participation=law, **known))


def through(compressor: Compressor, case: Case) -> Case:
    """Return the case with its uploads through this compressor."""
    given = [replace(event.round, compressor=compressor) for event in getattr(case.participation, "listed", ())]
    law = {"participation": equally_likely(given)} if given else {}
    return case.but(compressor=compressor, **law)
