"""MNIST: handwritten digits, 28 x 28 pixels (LeCun, Cortes and Burges, 1998)."""

from __future__ import annotations

from pathlib import Path

from dualopt.problem.data._dataset import RawData
from dualopt.problem.data._idx import load_images

NAMES = {"mnist": "MNIST, handwritten digits: 60000 x 784, 10 classes (IDX files in data_home)"}


def load(name: str, *, data_home: Path | None, split: str = "train") -> RawData:
    """Load the training (``split="train"``) or test images; pixels are divided by 255 by default."""
    return load_images(name, data_home, split, "MNIST")
