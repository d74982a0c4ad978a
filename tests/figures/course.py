"""What the tests of the course share: positions, and what the methods themselves do there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from dualopt.lab.claims import Verdict, check
from figures.lessons._parts import Arrow, Chapter, Map, Theorem
from figures.lessons._quantities import names_of
from figures.lessons._tables import sides, start

__all__ = ["drawn", "measured", "positions", "values", "verdict"]


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
    return {name: value for part in _parts(chapter) for name, value in part(u, values(chapter, pick)).items()}


def _parts(chapter: Chapter) -> list[Callable[..., dict[str, np.ndarray]]]:
    """Return the measurements of a chapter and of its theorems, as functions of a position and the sliders' values."""

    def part(measure: Any, over: tuple[str, ...], number: str, u: np.ndarray, chosen: Mapping[str, Any]) -> dict:
        made = measure(u, **{name: chosen[name] for name in over})
        return {
            f"{name}{number}": np.ravel(np.sum(m.values**2, axis=-1) if m.kind == "squares" else m.values)
            for name, m in made.items()
            if not (number and name == "n")
        }

    judged = enumerate(chapter.theorems)
    return [
        *(partial(part, measure, names_of(measure), "") for measure in chapter.measures),
        *(partial(part, partial(sides, t), names_of(t.sides or t.case), str(k)) for k, t in judged),
    ]


def verdict(theorem: Theorem, u: np.ndarray, chosen: Mapping[str, Any]) -> Verdict:
    """Return what theory's own check says at this position."""
    case = theorem.case(u, **{name: chosen[name] for name in names_of(theorem.case)})
    return check(theorem.claim, case, check_assumptions=not theorem.force)


def drawn(chapter: Chapter, chosen: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Return all quantities that the pictures of a chapter draw at its first positions, by name, flattened.

    Parameters
    ----------
    chapter : Chapter
        The chapter.
    chosen : dict
        The values of the sliders.
    """
    u, found = start(chapter), {}
    known = [part(u, chosen) for part in _parts(chapter)]
    at = {name: value for one in known for name, value in one.items()}
    for picture in (chapter.plane, chapter.chart):
        if isinstance(picture, Map):
            found["classes"], found["border"] = np.ravel(picture.classes), np.ravel(picture.border)
        for mark in getattr(picture, "marks", ()) or getattr(picture, "curves", ()):
            over = next((s for s in chapter.sliders if s.name == getattr(mark, "over", "")), None)
            if over is not None:
                needs = _roots(chapter, mark.of)
                parts = [part for part, one in zip(_parts(chapter), known, strict=True) if needs & set(one)]
                every = [{k: x for p in parts for k, x in p(u, {**chosen, over.name: v}).items()} for v in over.values]
                found[mark.of] = np.concatenate([_follow(chapter, mark.of, one) for one in every])
            elif isinstance(getattr(mark, "of", None), str):
                found[mark.of] = _follow(chapter, mark.of, at)
            if isinstance(mark, Arrow):
                found[mark.at] = at[mark.at]
    return found


def _roots(chapter: Chapter, name: str) -> set[str]:
    """Return the quantities from which a number follows."""
    of = chapter.derived[name].of if name in chapter.derived else ()
    return {root for one in of for root in _roots(chapter, one)} or {name}


def _follow(chapter: Chapter, name: str, known: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return a quantity, or a number that follows from quantities as a page makes it."""
    if name not in chapter.derived:
        return known[name]
    rule = chapter.derived[name]
    of = [_follow(chapter, one, known) for one in rule.of]
    does = {"root": lambda a: np.sqrt(a), "ratio": lambda a, b: a / b, "last": lambda a: a[-1:]}
    return does[rule.does](*of)
