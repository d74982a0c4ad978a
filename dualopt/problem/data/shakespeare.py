"""Shakespeare: the next character of a role's lines, in the files of LEAF."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from dualopt.problem.data._dataset import RawData
from dualopt.problem.data._leaf import User, load_users

NAMES = {
    "shakespeare": "Shakespeare of LEAF: 80 characters, the next one is the class, 80 classes, a client for each role "
    "(shakespeare/train/*.json)"
}
LENGTH = 80
CHARACTERS = "\n !\"&'(),-.0123456789:;>?ABCDEFGHIJKLMNOPQRSTUVWXYZ[]abcdefghijklmnopqrstuvwxyz}"
"""The alphabet of LEAF; a character is its place here, in features (as a number of floating point) and labels."""

PLACES = {character: place for place, character in enumerate(CHARACTERS)}


def load(
    name: str, *, data_home: Path | None, split: str = "train", users: int | None = None, most: int | None = None
) -> RawData:
    """Load the samples of the roles: ``split`` train or test, the first ``users``, the first ``most`` of each.

    The FedDyn paper has ``users=100`` and ``most=2000``; which hundred roles it took is not told.
    """

    def convert(x: list[Any], y: list[Any]) -> User:
        rows = [_codes(text, LENGTH) for text in x]
        return User(np.array(rows, dtype=np.float32), np.array([_codes(text, 1)[0] for text in y], dtype=np.int64))

    title = "Shakespeare, the next character by role"
    return load_users(name, data_home, split, convert, title=title, users=users, most=most)


def _codes(text: Any, length: int) -> list[int]:
    if not isinstance(text, str) or len(text) != length:
        raise ValueError(f"a text {str(text)[:20]!r} that is not of {length} character{'s' if length > 1 else ''}")
    try:
        return [PLACES[character] for character in text]
    except KeyError as error:
        raise ValueError(f"the character {error.args[0]!r}, which LEAF's alphabet does not have") from None
