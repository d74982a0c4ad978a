"""The widths of pictures: those of a column and of a page of a journal."""

from __future__ import annotations

__all__ = ["WIDTHS", "check_width"]

WIDTHS = {"column": 3.5, "page": 7.2}  # inches: 89 and 183 mm, those of Nature; IEEE's are 3.5 and 7.16


def check_width(width: str) -> None:
    """Refuse what is no width.

    Raises
    ------
    ValueError
        If it is not one of ``WIDTHS``.
    """
    if width not in WIDTHS:
        raise ValueError(f"width must be column or page, not {width!r}.")
