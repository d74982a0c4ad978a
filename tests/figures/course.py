"""What the tests of the course share: positions, and what the methods themselves do there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from dualopt.lab.claims import Verdict, check
from figures.lessons._parts import Chapter, Theorem
from figures.lessons._quantities import names_of
from figures.lessons._tables import sides

__all__ = ["measured", "positions", "values", "verdict"]


def positions(chapter: Chapter, many: int, seed: int = 0) -> Iterator[tuple[np.ndarray, dict[str, int], int]]:
    """Yield random places of all points, an index into the values of every slider, and a round."""
    rng = np.random.default_rng([seed, len(chapter.title)])
    for _ in range(many):
        u = rng.uniform([-0.6, -0.6] * len(chapter.drags), [5.0, 3.0] * len(chapter.drags)).round(3)
        pick = {s.name: int(rng.integers(len(s.values))) for s in chapter.sliders}
        yield u, pick, int(rng.integers(1, max(chapter.rounds, 1) + 1))


def values(chapter: Chapter, pick: Mapping[str, int]) -> dict[str, Any]:
    """Return the values of the sliders at their indices."""
    return {s.name: s.values[pick[s.name]] for s in chapter.sliders}


def measured(chapter: Chapter, u: np.ndarray, pick: Mapping[str, int]) -> dict[str, np.ndarray]:
    """Return all quantities as the methods compute them at this very position, flattened; lengths are squared."""
    chosen, found = values(chapter, pick), {}
    for measure in chapter.measures:
        found |= measure(u, **{name: chosen[name] for name in names_of(measure)})
    for k, theorem in enumerate(chapter.theorems):
        over = names_of(theorem.sides or theorem.case)
        both = sides(theorem, u, **{name: chosen[name] for name in over})
        found |= {f"{name}{k}": m for name, m in both.items() if name != "n"}
    return {
        name: np.ravel(np.sum(m.values**2, axis=-1) if m.kind == "squares" else m.values) for name, m in found.items()
    }


def verdict(theorem: Theorem, u: np.ndarray, chosen: Mapping[str, Any]) -> Verdict:
    """Return what theory's own check says at this position."""
    case = theorem.case(u, **{name: chosen[name] for name in names_of(theorem.case)})
    return check(theorem.claim, case, check_assumptions=not theorem.force)
