"""Records of earlier commands, which tell results that may be written again from those that must not be lost."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

__all__ = ["INSTEAD", "other_data", "read_record", "require_same_options"]

INSTEAD = "give another --out, or --overwrite"


def read_record(path: Path, instead: str = INSTEAD, *names: str) -> dict[str, Any]:
    """Return a record, which has a command, options, and perhaps other names.

    Raises
    ------
    ValueError
        If the file is something else; the sentence ends with what to do instead.
    """
    with suppress(UnicodeDecodeError, ValueError, TypeError, KeyError, RecursionError):
        found = json.loads(path.read_text())
        if isinstance(found["options"], dict) and isinstance(found["command"], str) and all(n in found for n in names):
            return found
    raise ValueError(f"file {str(path)!r} is no record of dualopt: {instead}.")


def require_same_options(
    path: Path, there: Mapping[str, Any], here: Mapping[str, Any], but: Sequence[str] = ()
) -> None:
    """Refuse to replace the results of other options.

    Parameters
    ----------
    path : Path
        The record, in the folder of the results.
    there, here : dict
        Options of the record and of this command, as JSON has them.
    but : sequence of str
        Options that may differ.

    Raises
    ------
    ValueError
        If another option differs; the sentence names all of them with both values.

    Examples
    --------
    >>> require_same_options(Path("o/a.json"), {"mu": 1, "threads": 2}, {"mu": 2}, but=["threads"])
    Traceback (most recent call last):
    ValueError: out 'o' holds 'a.json' of other options (mu is 1 there and 2 here): give another --out, or --overwrite.
    """
    differing = [n for n in dict.fromkeys([*here, *there]) if n not in but and here.get(n) != there.get(n)]
    if differing:
        words = ", ".join(f"{n} is {there.get(n)!r} there and {here.get(n)!r} here" for n in differing)
        raise ValueError(f"out {str(path.parent)!r} holds {path.name!r} of other options ({words}): {INSTEAD}.")


def other_data(folder: Path, there: str, here: str) -> ValueError:
    """Return the refusal to replace results of other data, whose hashes differ."""
    hashes = f"hash {there[:12]}... there and {here[:12]}... here"
    return ValueError(f"out {str(folder)!r} holds results of other data ({hashes}): {INSTEAD}.")
