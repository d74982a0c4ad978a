"""The numbers of a chapter: what it measures, and both sides of its theorems, as tables of all positions."""

from __future__ import annotations

import base64
import gzip
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from figures.lessons._parts import Chapter, Theorem
from figures.lessons._quantities import Quantity, constant, form, named, names_of, tabulate

__all__ = ["Judged", "Tables", "packed", "sides", "start", "tables"]


@dataclass(frozen=True)
class Judged:
    """What a page must know of a theorem beside both sides: where it does not speak, and the rounds of inequalities."""

    over: tuple[str, ...]
    failed: list[list[str]]  # assumptions, for all values of the parameters
    n: list[int]
    trivial: bool


@dataclass(frozen=True)
class Tables:
    """The quantities of a chapter by name, those of its theorems numbered, and what is known of these."""

    quantities: Mapping[str, Quantity]
    theorems: Sequence[Judged]


def start(chapter: Chapter) -> np.ndarray:
    """Return the position at first, shape (dim,)."""
    return np.array([x for drag in chapter.drags for x in drag.start], dtype=float)


def tables(chapter: Chapter) -> Tables:
    """Compute everything that a page of the chapter multiplies."""
    u, values = start(chapter), {slider.name: slider.values for slider in chapter.sliders}
    quantities: dict[str, Quantity] = {}
    for measure in chapter.measures:
        quantities |= tabulate(measure, len(u), values)
    judged = []
    for k, theorem in enumerate(chapter.theorems):
        over = names_of(theorem.sides or theorem.case)
        combined = [dict(zip(over, chosen, strict=True)) for chosen in product(*(values[name] for name in over))]
        cases = [theorem.case(u, **p) for p in combined]
        failed = [list(theorem.claim.assumptions(case)) for case in cases]
        found = tabulate(named(partial(sides, theorem), over), len(u), values)
        quantities |= {f"{name}{k}": quantity for name, quantity in found.items() if name != "n"}
        rounds = [int(n) for n in np.reshape(found["n"].table, (len(combined), -1))[0]]
        judged.append(Judged(over, failed, rounds, "trivial" in found))
    return Tables(quantities, judged)


def sides(theorem: Theorem, u: np.ndarray, **parameters: Any) -> dict[str, Any]:
    """Measure both sides of the inequalities of a theorem, and what is known without it, where something is."""
    if theorem.sides is not None:
        found = dict(theorem.sides(u, **parameters))
        return {"n": constant(np.arange(1, len(found["lhs"].values) + 1))} | found
    case = theorem.case(u, **parameters)
    compared = [q for q in theorem.claim.compare(case) if q.what == theorem.what]
    trivial = theorem.claim.trivial(case)
    return {
        "n": constant([q.n for q in compared]),
        "lhs": form([q.lhs for q in compared], rounds=True),
        "rhs": form([q.rhs for q in compared], rounds=True),
    } | ({"trivial": form(trivial)} if math.isfinite(trivial) else {})


def packed(data: bytes) -> str:
    """Return data compressed, in letters that html leaves alone; the same data always give the same letters."""
    return base64.b64encode(gzip.compress(data, 9, mtime=0)).decode()
