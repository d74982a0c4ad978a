"""Regularisers by name and weight."""

from __future__ import annotations

import sys
from typing import Any

from dualopt.spec.discover import lookup

__all__ = ["parse_regulariser"]


def parse_regulariser(text: str) -> Any:
    """Read a regulariser with its weight.

    Raises
    ------
    ValueError
        If the name is unknown, or the text has another form.

    Examples
    --------
    >>> parse_regulariser("l1=0.01")
    L1(weight=0.01)
    """
    name, _, number = text.partition("=")
    kind: Any = lookup(sys.modules["dualopt.regularisers"], name, "regulariser")
    try:
        weight = float(number)
    except ValueError:
        raise ValueError(f"regulariser must be of the form NAME=WEIGHT, such as l1=0.01; not {text!r}.") from None
    return kind(weight=weight)
