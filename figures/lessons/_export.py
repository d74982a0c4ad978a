"""The course as files: a page and a notebook for each chapter, and one page of all of them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from figures.lessons._beside import with_method
from figures.lessons._find import CHAPTERS, load
from figures.lessons._notebook import notebook
from figures.lessons._page import COURSE, page, section
from figures.lessons._parts import Chapter
from figures.lessons._tables import Tables, tables

__all__ = ["INDEX", "export", "exported", "fingerprint"]

INDEX = "index.html"


def exported(name: str, method: Any = None, called: str = "yours") -> str:
    """Return the page of a chapter that stands alone, with a method beside those of the chapter if one is given.

    Raises
    ------
    ValueError
        If there is no such chapter, or the method cannot be drawn.
    """
    chapter, made = _made(name, method, called)
    return page(chapter.title, [section(name, chapter, made, ())], home=False)


def export(folder: Path, names: Iterable[str] = CHAPTERS, method: Any = None, called: str = "yours") -> Iterator[Path]:
    """Write ``NAME.html`` and ``NAME.ipynb`` for every chapter, and ``index.html`` with all; yield each file."""
    names, sections = tuple(names), []
    for name in names:
        chapter, made = _made(name, method, called)
        file = folder / f"{name}.html"
        file.write_text(page(chapter.title, [section(name, chapter, made, names)]), encoding="utf-8")
        sections.append(section(name, chapter, made, names, together=True))
        yield file
        file = folder / f"{name}.ipynb"
        file.write_text(notebook(name), encoding="utf-8")
        yield file
    (folder / INDEX).write_text(page(COURSE, sections, whole=names), encoding="utf-8")
    yield folder / INDEX


def _made(name: str, method: Any, called: str) -> tuple[Chapter, Tables]:
    """Return a chapter and its numbers."""
    if method is None:
        return load(name), _computed(name)
    chapter = with_method(load(name), method, called)
    return chapter, tables(chapter)


@cache
def _computed(name: str) -> Tables:
    return tables(load(name))


def fingerprint() -> str:
    """Return letters that change with the code from which the course is made."""
    import dualopt
    import figures.lessons
    import theory

    found = hashlib.sha256()
    for package in (dualopt, theory, figures.lessons):
        root = Path(package.__path__[0])
        for file in sorted(p for p in root.rglob("*") if p.suffix in {".py", ".js", ".css", ".html", ".md", ".json"}):
            found.update(str(file.relative_to(root)).encode() + file.read_bytes())
    return found.hexdigest()[:16]
