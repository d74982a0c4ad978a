"""Colours as they are seen: contrasts as WCAG 2.2 defines them, for eyes without green cones, and in greyscale."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

__all__ = ["VISIONS", "blended", "contrast"]

LUMINANCE = np.array([0.2126, 0.7152, 0.0722])  # of linear red, green and blue
VISIONS = {  # what becomes of linear colours; the second by Machado, Oliveira and Fernandes 2009, at full severity
    "full colour": np.eye(3),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "greyscale": np.tile(LUMINANCE, (3, 1)),
}


def contrast(
    one: Sequence[float] | np.ndarray, other: Sequence[float] | np.ndarray, vision: str = "full colour"
) -> float:
    """Return the contrast of two colours, from 1 to 21; channels are numbers up to 255.

    Examples
    --------
    >>> round(contrast((0, 0, 0), (255, 255, 255))), round(contrast((119, 119, 119), (255, 255, 255)), 2)
    (21, 4.48)
    >>> round(contrast((255, 0, 0), (0, 135, 0), "greyscale"), 1)
    1.2
    """
    high, low = sorted((_light(colour, vision) for colour in (one, other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def _light(colour: Sequence[float] | np.ndarray, vision: str) -> float:
    channels = np.asarray(colour, dtype=float) / 255.0
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return float(LUMINANCE @ np.clip(VISIONS[vision] @ linear, 0.0, 1.0))


def blended(colour: Sequence[float], opacity: float, ground: Sequence[float]) -> np.ndarray:
    """Return a colour that lets the ground through.

    Examples
    --------
    >>> blended((0, 0, 0), 0.25, (200, 200, 200)).tolist()
    [150.0, 150.0, 150.0]
    """
    return opacity * np.asarray(colour, dtype=float) + (1.0 - opacity) * np.asarray(ground, dtype=float)
