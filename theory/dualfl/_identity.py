"""Identities as claims: the relative deviation of two sides that must agree."""

from __future__ import annotations

import numpy as np

from dualopt.xp import Array

__all__ = ["ROUNDING", "deviation"]

# Two sides of an identity are computed with some thousand roundings of matrices of condition up to 1e4.
ROUNDING = 1e-10


def deviation(a: Array | float, b: Array | float, *, scale: float | None = None) -> float:
    r"""Return :math:`\max|a - b|` relative to the scale, by default the largest entry.

    Examples
    --------
    >>> deviation(np.array([1.0, 4.0]), np.array([1.0, 3.0]))
    0.25
    """
    size = max(float(np.max(np.abs(a))), float(np.max(np.abs(b)))) if scale is None else scale
    return float(np.max(np.abs(np.asarray(a) - np.asarray(b)))) / (size if size > 0 else 1.0)
