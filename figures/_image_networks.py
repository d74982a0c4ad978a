"""Convolutional networks on images: rows by channel, splits, and the network that the images of a data set admit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from dualopt.objectives import TorchModule, torch_module
from dualopt.objectives.torch_networks import cnn, image_shape
from dualopt.problem.data.brightness import brightened
from figures._feddyn_images import Images, images
from figures._settings import SEED

__all__ = ["network", "pictures"]

LEAST_SIDE = 28  # of images for two convolutional layers; smaller ones, for trials, have one
SMALL: dict[str, Any] = {"filters": 8, "layers": 1, "hidden": [32]}


@lru_cache(maxsize=1)
def pictures(data: str, data_home: Path | None, rows: int | None) -> Images:
    """Return the rows of a data set as `images` does, every channel with mean 0 and deviation 1 over the training rows.

    Examples
    --------
    >>> found = pictures("digits", None, 500)
    >>> found.X.shape, bool(abs(found.X.mean()) < 1e-5), bool(abs(found.X.std() - 1) < 1e-4)
    ((500, 64), True, True)
    """
    found = images(data, data_home, rows)
    channels = image_shape(found.X.shape[1])[0]
    parts = found.X.reshape(len(found.X), channels, -1)
    center = parts.mean(axis=(0, 2), dtype=np.float64)[:, None]
    spread = parts.std(axis=(0, 2), dtype=np.float64)[:, None]
    own = {"center": found.center + found.unit * center, "unit": found.unit * spread}
    X, X_test = (_scaled(rows, center, spread) for rows in (found.X, found.X_test))
    return replace(found, X=X, X_test=X_test, **own)


def _scaled(X: np.ndarray, center: Any, unit: Any) -> np.ndarray:
    """Return ``(x - center)/unit`` by channel, in float32."""
    by_channel = (X.reshape(len(X), len(center), -1) - center) / unit
    return by_channel.astype(np.float32).reshape(X.shape)


def network(
    data: Images,
    clients: list[np.ndarray],
    *,
    ridge: float,
    augment: str | Callable[[Any, Any], Any] | None = None,
    brightness: float = 0.0,
    precision: str = "full",
    **size: Any,
) -> TorchModule:
    """Return the network of FedDyn, or one of another size, on the rows of these clients.

    Parameters
    ----------
    data : Images
        The rows.
    clients : list of arrays
        The rows of each client, which may share some.
    ridge : float
        Weight decay.
    augment : str or callable, optional
        As of `torch_module`.
    brightness : float, default 0
        How far the clients' pixels are changed, as of `dualopt.problem.data.brightness`.
    precision : str, default "full"
        As of `torch_module`.
    **size
        As of `dualopt.objectives.torch_networks.cnn`; small images have a network of one layer instead.
    """
    size = size if image_shape(data.X.shape[1])[1] >= LEAST_SIDE else SMALL
    make = partial(cnn, data.X.shape[1], data.classes, **size)
    X, rows, parts = brightened(data.X, clients, spread=0.0, seed=SEED)  # rows that clients share are written out
    if brightness:
        pixels = _scaled(data.X, -data.center / data.unit, 1.0 / data.unit)
        X = _scaled(brightened(pixels, clients, spread=brightness, seed=SEED)[0], data.center, data.unit)
    return torch_module(
        make,
        X,
        data.y[rows],
        classes=data.classes,
        clients=[part.tolist() for part in parts],
        ridge=ridge,
        augment=augment,
        precision=precision,
    )
