"""CIFAR-10: small colour images, 32 x 32 x 3 (Krizhevsky, 2009)."""

from __future__ import annotations

from pathlib import Path

from dualopt.problem.data import _npz
from dualopt.problem.data._dataset import RawData
from dualopt.problem.data._files import find

NAMES = {"cifar10": "CIFAR-10, small colour images: 50000 x 3072, 10 classes (cifar10.npz in data_home)"}


def load(name: str, *, data_home: Path | None, split: str = "train") -> RawData:
    """Load the training (``split="train"``) or test images; pixels are divided by 255 by default."""
    return _npz.load(find(name, data_home, ["cifar10.npz", "cifar10/cifar10.npz"]), split=split)
