"""Compressors as a user types them."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import dualopt.methods.compressors
from dualopt.methods.compressors._protocol import Compressor
from dualopt.spec._text import convert
from dualopt.spec.discover import lookup

__all__ = ["parse_compressor"]


def parse_compressor(text: str) -> Compressor:
    """Read a compressor from text: its name, and ``=NUMBER`` if it has a parameter.

    Raises
    ------
    ValueError
        If there is no such compressor, or its number is missing, superfluous or out of range.

    Examples
    --------
    >>> parse_compressor("natural"), parse_compressor("rand-k=10")
    (NaturalCompression(), RandK(size=10))
    """
    name, equals, number = text.partition("=")
    kind: Any = lookup(dualopt.methods.compressors, name, "compressor")
    names = [f.name for f in fields(kind)]
    if bool(equals) != bool(names):
        form = f"{name}=NUMBER" if names else name
        raise ValueError(f"compressor must be of the form {form}; not {text!r}.")
    return kind(**convert(kind, dict.fromkeys(names, number), "compressor", f"compressor {name}"))
