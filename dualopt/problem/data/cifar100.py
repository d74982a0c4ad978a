"""CIFAR-100 in its binary version: a record of two labels and 3072 pixels for each image."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dualopt.problem.data._dataset import RawData
from dualopt.problem.data._files import find, open_binary

NAMES = {"cifar100": "CIFAR-100, small colour images: 50000 x 3072, 100 classes (cifar-100-binary in data_home)"}
PIXELS = 3072
LABELS = {"coarse": (0, 20), "fine": (1, 100)}
FOLDERS = ("cifar-100-binary/", "cifar100/", "")


def load(name: str, *, data_home: Path | None, split: str = "train", labels: str = "fine") -> RawData:
    """Load images, all of channel red first; ``labels`` are "fine" (100 classes) or "coarse" (20).

    The version for Python is a pickle, which could run anything, and is not read.

    Raises
    ------
    ValueError
        If an option is another one, or the file is missing or damaged.
    """
    if split not in ("train", "test"):
        raise ValueError(f'split must be "train" or "test", got {split!r}.')
    if labels not in LABELS:
        raise ValueError(f"labels must be one of {', '.join(LABELS)}, got {labels!r}.")
    ends = ("", ".gz", ".bz2")
    path = find(name, data_home, [f"{folder}{split}.bin{end}" for folder in FOLDERS for end in ends])
    with open_binary(path) as stream:
        raw = stream.read()
    width = len(LABELS) + PIXELS
    if not raw or len(raw) % width:
        raise ValueError(f"path {str(path)!r} is no CIFAR-100 in binary: {len(raw)} bytes are not {width} an image.")
    records = np.frombuffer(raw, np.uint8).reshape(-1, width)
    for kind, (place, classes) in LABELS.items():
        if records[:, place].max() >= classes:
            row = int(np.argmax(records[:, place]))
            raise ValueError(
                f"path {str(path)!r} is no CIFAR-100 in binary: image {row} has the {kind} label {records[row, place]}."
            )
    return RawData(
        X=records[:, len(LABELS) :].copy(),
        y=records[:, LABELS[labels][0]].astype(np.int64),
        scale=255.0,
        description=f"CIFAR-100, {labels} labels, {split} split, from {path.parent}",
    )
