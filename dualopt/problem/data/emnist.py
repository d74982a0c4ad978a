"""EMNIST in its IDX files: handwritten letters and digits (Cohen et al. 2017)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from dualopt.problem.data._dataset import RawData
from dualopt.problem.data._files import find
from dualopt.problem.data._idx import paired, read_idx

SECTIONS = {"balanced": 47, "byclass": 62, "bymerge": 47, "digits": 10, "letters": 26, "mnist": 10}
NAMES = {
    "emnist": "EMNIST, handwritten letters and digits of 784 pixels (option section: letters, digits, balanced, "
    "byclass, bymerge, mnist; IDX files in data_home)",
    "emnist-l": "EMNIST-L of the FedDyn paper, the first ten letters: 48000 x 784, 10 classes (IDX files in data_home)",
}
FIRST_LETTERS = 10
FOLDERS = ("emnist/", "emnist/gzip/", "gzip/", "")
ENDS = (".gz", "")


def load(name: str, *, data_home: Path | None, split: str = "train", section: str = "letters") -> RawData:
    """Load a section of EMNIST, or the first ten letters, a to j, upright as in MNIST.

    The files have the images transposed, and letters counted from 1: here classes are counted from 0.

    Raises
    ------
    ValueError
        If an option is another one, or a file is missing or damaged.
    """
    if split not in ("train", "test"):
        raise ValueError(f'split must be "train" or "test", got {split!r}.')
    if section not in SECTIONS or (name == "emnist-l" and section != "letters"):
        known = "letters" if name == "emnist-l" else f"one of {', '.join(SECTIONS)}"
        raise ValueError(f"section must be {known}, got {section!r}.")
    kinds = {"images-idx3": 3, "labels-idx1": 1}
    places = [f"{folder}emnist-{section}-{split}-KIND-ubyte{end}" for folder in FOLDERS for end in ENDS]
    paths = {kind: find(name, data_home, [place.replace("KIND", kind) for place in places]) for kind in kinds}
    images, labels = (read_idx(paths[kind], ndim=ndim) for kind, ndim in kinds.items())
    raw = paired(images.transpose(0, 2, 1), labels, tuple(paths.values()), f"EMNIST, {section}, {split} split")
    classes = raw.y.astype(np.int64) - (section == "letters")
    if len(classes) and not 0 <= classes.min() <= classes.max() < SECTIONS[section]:
        wrong = int(np.argmax((classes < 0) | (classes >= SECTIONS[section])))
        raise ValueError(f"path {str(paths['labels-idx1'])!r} has the label {labels[wrong]}, which {section} does not.")
    if name == "emnist-l":
        chosen = classes < FIRST_LETTERS
        return replace(raw, X=raw.X[chosen], y=classes[chosen], description=f"{raw.description}, a to j")
    return replace(raw, y=classes)
