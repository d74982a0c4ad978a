"""Cases of errata, whose statements have two forms."""

from __future__ import annotations

from dualopt.lab.attack import Generator, Parameters
from theory._claims import Form

__all__ = ["form"]


def form(parameters: Parameters, generator: Generator, *, printed: bool) -> Form:
    """Return a case of a generator for the statement as printed, or as corrected."""
    return Form(generator(parameters), printed)
