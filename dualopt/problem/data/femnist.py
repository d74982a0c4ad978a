"""FEMNIST: handwritten digits and letters, and who wrote them, in the files of LEAF."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dualopt.problem.data._dataset import RawData
from dualopt.problem.data._leaf import User, load_users, pixels, whole_numbers

NAMES = {
    "femnist": "FEMNIST of LEAF, digits and letters: 784 pixels, 62 classes, a client for each writer "
    "(femnist/train/*.json)"
}
PIXELS, CLASSES = 784, 62


def load(
    name: str, *, data_home: Path | None, split: str = "train", users: int | None = None, most: int | None = None
) -> RawData:
    """Load the samples of the writers: ``split`` train or test, the first ``users``, the first ``most`` of each."""

    def convert(x: list[Any], y: list[Any]) -> User:
        return User(pixels(x, PIXELS), whole_numbers(y, CLASSES, "the label"))

    title = "FEMNIST, handwritten digits and letters by writer"
    return load_users(name, data_home, split, convert, title=title, users=users, most=most)
