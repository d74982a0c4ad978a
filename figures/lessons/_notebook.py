"""A lesson in a notebook."""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import Any

__all__ = ["Shown", "show"]


@dataclass(frozen=True)
class Shown:
    """A page in a frame, which Jupyter, VS Code and marimo display; saved notebooks keep it.

    A frame with ``srcdoc`` inherits what a notebook allows its outputs. The page needs inline scripts and styles and
    ``eval``, which VS Code allows, and no connection.
    """

    page: str
    height: int

    def _repr_html_(self) -> str:
        """Return the frame, with the page inside."""
        style = f"width: 100%; height: {self.height}px; border: 0"
        return f'<iframe title="lesson" style="{style}" srcdoc="{html.escape(self.page)}"></iframe>'

    def __repr__(self) -> str:
        return f"<a lesson of {len(self.page) / 1e6:.2f} MB, displayed by notebooks>"


def show(name: str, *, height: int = 900, **values: Any) -> Shown:
    """Return a lesson for a notebook: the exported page, whose answers are computed first.

    Parameters
    ----------
    name : str
        The lesson.
    height : int, default 900
        Of the frame, in pixels.
    **values
        Sliders that stand still, and where; the fewer move, the sooner the page is there.

    Raises
    ------
    ValueError
        If there is no such lesson or slider.

    Examples
    --------
    >>> show("momentum", kappa=32, rho=1)  # doctest: +ELLIPSIS
    <a lesson of ... MB, displayed by notebooks>
    """
    from figures.lessons._export import exported

    return Shown(exported(name, values), height)
