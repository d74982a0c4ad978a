"""The two files of a model: a description in JSON, and the arrays beside it, whose hash the description has.

The arrays are written first, and each file under a temporary name that is then renamed. A description whose arrays are
those of another model, or were changed, is refused. Nothing is unpickled, imported or evaluated.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from dualopt.arrays._files import write_atomically
from dualopt.problem.data._files import file_hash, is_file, is_folder
from dualopt.problem.data._npz import read_arrays

__all__ = ["FORMAT", "VERSION", "Head", "is_count", "is_object", "read_head", "write"]

FORMAT, VERSION = "dualopt model", 1
NAME = "model.json"
LONGEST = 2**26  # bytes of a description
MOST = 10**12  # rows of an array: no memory holds more
ABSENT = object()


class Head:
    """A part of a description, and its place for sentences.

    Parameters
    ----------
    path : Path
        The file.
    fields : dict
        Its content.
    within : str
        Names of what it is in, each with a dot.
    """

    def __init__(self, path: Path, fields: Mapping[str, Any], within: str = "") -> None:
        self.path, self.fields, self._within = path, fields, within

    def refuse(self, reason: str) -> NoReturn:
        """Raise the one sentence that says what is wrong with the file."""
        raise ValueError(f"model {str(self.path)!r} is damaged: {reason}.") from None

    def get(self, name: str, words: str, holds: Callable[[Any], bool]) -> Any:
        """Return a field, or refuse one that is missing or is not what ``words`` say."""
        value = self.fields.get(name, ABSENT)
        if value is ABSENT:
            self.refuse(f"it has no entry {self._within}{name}")
        if not holds(value):
            self.refuse(f"its entry {self._within}{name} must be {words}")
        return value

    def part(self, name: str) -> Head:
        """Return a part that has fields itself."""
        return Head(self.path, self.get(name, "an object", is_object), f"{self._within}{name}.")

    def text(self, name: str, *choices: str) -> str:
        """Return a word, one of these if some are given."""
        words = f"one of {', '.join(choices)}" if choices else "a word"
        return self.get(name, words, lambda x: isinstance(x, str) and (not choices or x in choices))

    def names(self, name: str, count: int) -> tuple[str, ...] | None:
        """Return so many different words, or None."""

        def holds(x: Any) -> bool:
            listed = isinstance(x, list) and len(x) == count and all(isinstance(word, str) for word in x)
            return x is None or (listed and len({*x}) == count)

        found = self.get(name, f"null or a list of {count} different words", holds)
        return None if found is None else tuple(found)

    def arrays(self, shapes: Mapping[str, tuple[int, ...]], dtype: str) -> dict[str, np.ndarray]:
        """Return the arrays beside the description, which must be these and have the hash that it says."""
        known, path = self.part("arrays").text("sha256"), self.path.with_suffix(".npz")
        if not is_file(path):
            raise ValueError(f"model {str(self.path)!r} has no arrays: {path.name!r} must be beside it.")
        if file_hash(path).hex() != known:
            raise ValueError(f"model {str(self.path)!r} does not fit {path.name!r}, damaged or of another one.")
        return read_arrays(path, shapes, dtype)


def is_object(x: Any) -> bool:
    """Tell an object of JSON.

    >>> is_object({}), is_object([])
    (True, False)
    """
    return isinstance(x, dict)


def is_count(x: Any) -> bool:
    """Tell the number of something from other values.

    >>> is_count(3), is_count(0), is_count(True), is_count(10**15)
    (True, False, False, False)
    """
    return isinstance(x, int) and not isinstance(x, bool) and 1 <= x <= MOST


def write(path: str | Path, head: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
    """Write a description and its arrays; numbers that are not finite become null.

    Parameters
    ----------
    path : str or Path
        A folder, or the file of the description, ``NAME.json``; the arrays are in ``NAME.npz`` beside it.
    head : dict
        The fields of the description.
    arrays : dict of str to array
        The arrays.

    Raises
    ------
    OSError
        If a file cannot be written.
    """
    path = _described(Path(path))
    packed = io.BytesIO()
    np.savez(packed, **arrays)  # pyright: ignore[reportArgumentType]
    content = packed.getvalue()
    arrays_of = {"sha256": hashlib.sha256(content).hexdigest()}
    described = _finite({"format": FORMAT, "version": VERSION, **head, "arrays": arrays_of})
    text = json.dumps(described, indent=2, allow_nan=False)  # fails before anything is written
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path.with_suffix(".npz"), lambda file: file.write(content), "wb")
    write_atomically(path, lambda file: file.write(f"{text}\n".encode()), "wb")


def read_head(path: str | Path) -> Head:
    """Read the description that a path means.

    Raises
    ------
    ValueError
        If there is none, or it is damaged, or of a newer version.
    """
    path = _found(Path(path))
    try:
        with path.open("rb") as file:
            content = file.read(LONGEST + 1)
    except OSError as error:
        raise ValueError(f"model {str(path)!r} cannot be read: {error.strerror or error}.") from None
    head = Head(path, {})
    if len(content) > LONGEST:
        head.refuse(f"it is longer than {LONGEST} bytes")
    try:
        found = json.loads(content.decode(), parse_constant=_refused, parse_float=_number, object_pairs_hook=_once)
    except (ValueError, RecursionError):  # also bytes that are no text
        head.refuse("it is cut short, or no text in JSON")
    if not is_object(found) or found.get("format") != FORMAT:
        raise ValueError(f"model {str(path)!r} is no model that dualopt has written.")
    head = Head(path, found)
    version = head.get("version", "a number of 1 or more", is_count)
    if version > VERSION:
        raise ValueError(
            f"model {str(path)!r} is of version {version}, and this dualopt knows {VERSION}: a newer dualopt reads it."
        )
    return head


def _described(path: Path) -> Path:
    """Return the description that is written: a path that ends in ``.json``, or ``model.json`` in a folder."""
    return path if path.suffix == ".json" else path / NAME


def _found(path: Path) -> Path:
    """Return the file that is meant by a file or a folder."""
    if not is_folder(path):
        if not is_file(path):
            raise ValueError(f"model {str(path)!r} is neither a file nor a folder.")
        return path if path.suffix != ".npz" else path.with_suffix(".json")
    if is_file(path / NAME):
        return path / NAME
    others = sorted(other.name for other in path.glob(f"*.{NAME}"))
    hint = f": it has {', '.join(others[:20])}, give one of them" if others else ""
    raise ValueError(f"model {str(path)!r} is a folder without {NAME}{hint}.")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError
    return found


def _number(text: str) -> float:
    """Return a number that JSON writes; one that overflows is refused."""
    number = float(text)
    return number if math.isfinite(number) else _refused(text)


def _refused(_: str) -> NoReturn:
    raise ValueError


def _finite(x: Any) -> Any:
    if isinstance(x, Mapping):
        return {str(key): _finite(value) for key, value in x.items()}
    if isinstance(x, list | tuple):
        return [_finite(value) for value in x]
    if isinstance(x, float):
        return float(x) if math.isfinite(x) else None
    return str(x) if isinstance(x, Path) else x
