"""A statement in one of two forms."""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["Form"]


class Form(NamedTuple):
    """A case, and whether the statement is taken as printed or corrected."""

    case: Any
    printed: bool
    note: str = ""

    @property
    def name(self) -> str:
        """For tables."""
        form = "as printed" if self.printed else "corrected"
        return f"{form}: {self.note or self.case.name}"
