"""The convolutional networks of the papers, as modules of PyTorch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from dualopt.arrays._extras import optional

__all__ = ["TORCH_NETWORKS", "cnn", "image_shape", "lenet"]

KERNEL, POOL = 5, 2


def image_shape(features: int) -> tuple[int, int, int]:
    """Return ``(channels, side, side)`` of square images with so many numbers, of one channel or of three.

    Raises
    ------
    ValueError
        If there are no such images.

    Examples
    --------
    >>> image_shape(784), image_shape(3072)
    ((1, 28, 28), (3, 32, 32))
    """
    for channels in (1, 3):
        side = math.isqrt(features // channels)
        if channels * side * side == features:
            return channels, side, side
    raise ValueError(f"images must be square images of one channel or three, not {features} features.")


def cnn(
    features: int,
    outputs: int,
    *,
    filters: int = 64,
    layers: int = 2,
    hidden: int | tuple[int, ...] = (394, 192),
) -> Any:
    """Make the network of the FedDyn paper for CIFAR-10 and CIFAR-100.

    "A CNN consisting of two convolutional layers with 64 5x5 filters, two 2x2 max pooling layers, two fully connected
    layers with 394 and 192 neurons, and finally a softmax layer" (Acar et al. 2021, Appendix A.2, Models), with ReLU
    after each but the last (after the pooling, with which it commutes), no padding, and the initial parameters of
    PyTorch: 815,892 parameters for CIFAR-10. It takes images ``(b, channels, side, side)``, as its attribute
    ``input_shape`` says.

    Parameters
    ----------
    features : int
        Numbers of an image, all of channel 0 first.
    outputs : int
        Number of classes.
    filters : int, default 64
        Filters of a convolutional layer.
    layers : int, default 2
        Number of convolutional layers.
    hidden : int or tuple of int, default (394, 192)
        Widths of the fully connected layers.
    """
    widths = [hidden] if isinstance(hidden, int) else list(hidden)
    return _network(features, outputs, [filters] * layers, widths)


def lenet(features: int, outputs: int) -> Any:
    """Make LeNet-5 of LeCun et al. (1998), which the A-FedPD paper names: 6 and 16 filters, 120 and 84 units.

    With ReLU and max pooling, as it is used today; the A-FedPD paper does not say more of its own.

    Parameters
    ----------
    features, outputs : int
        As of :func:`cnn`.
    """
    return _network(features, outputs, [6, 16], [120, 84])


def _network(features: int, outputs: int, filters: Sequence[int], widths: Sequence[int]) -> Any:
    """Return convolutions, each with pooling and ReLU, and fully connected layers with ReLU between them, of images."""
    nn = optional("torch", "a convolutional network").nn
    channels, side, _ = shape = image_shape(features)
    layers: list[Any] = []
    for before, after in pairwise([channels, *filters]):
        side = (side - KERNEL + 1) // POOL
        layers += [nn.Conv2d(before, after, KERNEL), nn.MaxPool2d(POOL), nn.ReLU()]
    if side < 1:
        raise ValueError(f"a convolutional network needs larger images than of {features} features.")
    layers.append(nn.Flatten())
    for before, after in pairwise([filters[-1] * side * side, *widths, outputs]):
        layers += [nn.Linear(before, after), nn.ReLU()]
    network = nn.Sequential(*layers[:-1])
    network.input_shape = shape
    return network


TORCH_NETWORKS = {"cnn": cnn, "lenet": lenet}
"""Functions that make modules, by the name that ``--model`` takes."""
