"""A chapter in a notebook, and the notebook of a chapter.

The latter is written as a page of the documentation, ``notebooks/NAME.md``, whose cells Sphinx executes; what it draws
stands in a dictionary ``shown``, by the names of the chapter's quantities, and tests compare the two. The course has it
as ``NAME.ipynb``.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

__all__ = ["Shown", "cells", "notebook", "show", "source_of"]

CODE = re.compile(r"^```\{code-cell\} python\n+(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Shown:
    """A page in a frame, which Jupyter, VS Code and marimo display; saved notebooks keep it.

    A frame with ``srcdoc`` inherits what a notebook allows its outputs. The page needs inline scripts and styles, and
    no connection.
    """

    page: str
    height: int

    def _repr_html_(self) -> str:
        """Return the frame, with the page inside."""
        style = f"width: 100%; height: {self.height}px; border: 0"
        return f'<iframe title="lesson" style="{style}" srcdoc="{html.escape(self.page)}"></iframe>'

    def __repr__(self) -> str:
        return f"<a chapter of {len(self.page) / 1e6:.2f} MB, displayed by notebooks>"


def show(name: str, method: Any = None, *, height: int = 1000) -> Shown:
    """Return a chapter for a notebook, whose numbers are computed first.

    Parameters
    ----------
    name : str
        The chapter.
    method : Algorithm, optional
        One of yours, which is drawn beside the others.
    height : int, default 1000
        Of the frame, in pixels.

    Raises
    ------
    ValueError
        If there is no such chapter, or the method cannot be drawn by matrices.

    Examples
    --------
    >>> show("bound")  # doctest: +ELLIPSIS
    <a chapter of ... MB, displayed by notebooks>
    """
    from figures.lessons._export import exported

    return Shown(exported(name, method, type(method).__name__), height)


def source_of(name: str) -> Path:
    """Return the file in which the notebook of a chapter is written."""
    return Path(__file__).parent / "notebooks" / f"{name}.md"


def cells(name: str) -> Iterator[tuple[Literal["markdown", "code"], str]]:
    """Yield the cells of the notebook of a chapter.

    Examples
    --------
    >>> kind, text = next(cells("averaging"))
    >>> kind, text.splitlines()[0]
    ('markdown', '# Averaging is biased')
    """
    text = source_of(name).read_text(encoding="utf-8")
    _, _, body = text.split("---\n", 2)  # what is before is for Sphinx
    for k, part in enumerate(CODE.split(body)):
        if part.strip():
            yield ("code" if k % 2 else "markdown"), part.strip()


def notebook(name: str) -> str:
    """Return the notebook of a chapter as Jupyter opens it, without results."""
    made = []
    for k, (kind, text) in enumerate(cells(name)):
        own = {"execution_count": None, "outputs": []} if kind == "code" else {}
        made.append(
            {"cell_type": kind, "id": f"{name}-{k}", "metadata": {}, "source": text.splitlines(keepends=True)} | own
        )
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    whole = {"cells": made, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, ensure_ascii=False, indent=1) + "\n"
