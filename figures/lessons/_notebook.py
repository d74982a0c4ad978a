"""A chapter in a notebook."""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import Any

__all__ = ["Shown", "show"]


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
