"""Lessons by the name of their module."""

from __future__ import annotations

import importlib
import itertools
import math
import pkgutil
from collections.abc import Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any

import figures.lessons
from dualopt.spec.discover import unknown_name
from figures.lessons._scene import Slider, to_json

__all__ = ["answer", "at", "described", "discover", "load", "nearest", "positions"]


def discover() -> list[str]:
    """Return the names of all lessons, in alphabetical order.

    Examples
    --------
    >>> "momentum" in discover(), "_scene" in discover()
    (True, False)
    """
    return sorted(e.name for e in pkgutil.iter_modules(figures.lessons.__path__) if not e.name.startswith("_"))


def load(name: str) -> ModuleType:
    """Return the module of a lesson.

    Raises
    ------
    ValueError
        If there is no lesson of that name; the sentence lists all names.

    Examples
    --------
    >>> load("momentum").TITLE
    'Momentum on the dual'
    """
    known = discover()
    if name not in known:
        raise unknown_name("lesson", name, known)
    return importlib.import_module(f"figures.lessons.{name}")


def at(lesson: ModuleType, position: Sequence[int]) -> dict[str, Any]:
    """Return the values of the sliders at a position: an index into the values of every slider.

    Raises
    ------
    ValueError
        If there are more or fewer indices than sliders, or one is out of range.
    """
    sliders: Sequence[Slider] = lesson.SLIDERS
    if len(position) != len(sliders):
        raise ValueError(f"at must have one index for each of the {len(sliders)} sliders, not {len(position)}.")
    for slider, i in zip(sliders, position, strict=True):
        if not 0 <= i < len(slider.values):
            raise ValueError(f"{slider.name} has {len(slider.values)} values: no index {i}.")
    return {slider.name: slider.values[i] for slider, i in zip(sliders, position, strict=True)}


def nearest(lesson: ModuleType, values: Mapping[str, Any]) -> list[int]:
    """Return the position whose values are nearest to the given ones; sliders without one stay at their start.

    Raises
    ------
    ValueError
        If a name is that of no slider, or a value is none of the choices.
    """
    known = [slider.name for slider in lesson.SLIDERS]
    for name in values:
        if name not in known:
            raise unknown_name("slider", name, known)
    return [slider.nearest(values.get(slider.name, slider.start)) for slider in lesson.SLIDERS]


def positions(lesson: ModuleType, fixed: Mapping[str, int] | None = None) -> Iterator[tuple[int, ...]]:
    """Yield the positions that an export holds, sliders in ``fixed`` at the index given there."""
    fixed = fixed or {}
    axes = [[fixed[s.name]] if s.name in fixed else s.exported_indices() for s in lesson.SLIDERS]
    return itertools.product(*axes)


def answer(lesson: ModuleType, position: Sequence[int]) -> dict[str, Any]:
    """Return the scene at a position, as plain numbers."""
    return to_json(lesson.scene(**at(lesson, position)))


def described(name: str, lesson: ModuleType) -> dict[str, Any]:
    """Return what a page must know of a lesson beside its scenes."""
    sliders = [to_json(slider) | {"start": slider.nearest(slider.start)} for slider in lesson.SLIDERS]
    for slider, made in zip(lesson.SLIDERS, sliders, strict=True):
        made["exported"] = slider.exported_indices()
        made["values"] = [v if isinstance(v, str) or not math.isfinite(v) else float(v) for v in slider.values]
    return {"name": name, "title": lesson.TITLE, "question": lesson.QUESTION, "sliders": sliders}
