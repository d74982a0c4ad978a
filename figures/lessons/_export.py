"""Exported lessons: one self-contained html file each, with all answers inside, and an index."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from figures.lessons import _find
from figures.lessons._page import index, page

__all__ = ["export", "exported"]


def exported(name: str, values: Mapping[str, Any] | None = None) -> str:
    """Return the page of a lesson with its answers inside.

    Parameters
    ----------
    name : str
        The lesson.
    values : dict, optional
        Values of some sliders, which then stand still at the nearest one that there is.

    Raises
    ------
    ValueError
        If there is no such lesson or slider.
    """
    lesson = _find.load(name)
    at = dict(zip((s.name for s in lesson.SLIDERS), _find.nearest(lesson, values or {}), strict=True))
    fixed = {slider: at[slider] for slider in values or {}}
    described = _find.described(name, lesson)
    for slider in described["sliders"]:
        slider["offered"] = [fixed[slider["name"]]] if slider["name"] in fixed else slider.pop("exported")
    scenes = {"-".join(map(str, p)): _find.answer(lesson, p) for p in _find.positions(lesson, fixed)}
    return page(described, json.dumps(scenes, separators=(",", ":"), allow_nan=False).encode())


def export(names: Iterable[str], folder: Path) -> list[Path]:
    """Write ``NAME.html`` for every lesson and ``index.html`` for all of them; return the files."""
    names, files = list(names), []
    for name in names:
        files.append(folder / f"{name}.html")
        files[-1].write_text(exported(name), encoding="utf-8")
    files.append(folder / "index.html")
    files[-1].write_text(index({name: _find.load(name) for name in names}, ".html"), encoding="utf-8")
    return files
