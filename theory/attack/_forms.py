"""Cases of errata: a statement as printed or corrected, on the cases of a generator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dualopt.attack import Parameters
from theory._claims import Form

__all__ = ["form"]


def form(parameters: Parameters, generator: Callable[[Parameters], Any], *, printed: bool) -> Form:
    """Return either form on a case of a generator."""
    return Form(generator(parameters), printed)
