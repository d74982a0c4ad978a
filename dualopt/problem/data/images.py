"""Sets of images in files of the user's.

MNIST (LeCun, Cortes and Burges, 1998), Fashion-MNIST (Xiao, Rasul and Vollgraf, arXiv:1708.07747), CIFAR-10
(Krizhevsky, 2009).
"""

from __future__ import annotations

from pathlib import Path

from dualopt.problem.data import _npz
from dualopt.problem.data._dataset import RawData
from dualopt.problem.data._files import find
from dualopt.problem.data._idx import load_images
from dualopt.problem.data._source import Source

NAMES = {
    "cifar10": "CIFAR-10, small colour images: 50000 x 3072, 10 classes (cifar10.npz in data_home)",
    "fashion-mnist": "Fashion-MNIST, articles of clothing: 60000 x 784, 10 classes (IDX files in data_home)",
    "mnist": "MNIST, handwritten digits: 60000 x 784, 10 classes (IDX files in data_home)",
}


def load(name: str, *, data_home: Path | None, split: str = "train") -> RawData | Source:
    """Load the training (``split="train"``) or test images; pixels are divided by 255 by default."""
    if name == "cifar10":
        return _npz.source(find(name, data_home, ["cifar10.npz", "cifar10/cifar10.npz"]), split=split)
    return load_images(name, data_home, split, {"mnist": "MNIST", "fashion-mnist": "Fashion-MNIST"}[name])
