"""Checks of parameters and membership that several losses share."""

from __future__ import annotations

import math

from dualopt.arrays._checks import is_number
from dualopt.arrays.xp import Array, array_namespace, asarray_like, epsilon

__all__ = ["positive_number", "positive_step", "project_to_interval"]


def positive_number(name: str, value: float) -> float:
    """Return ``value`` as a Python float, or raise ``ValueError`` unless it is positive and finite."""
    if not (is_number(value) and value > 0 and math.isfinite(value)):
        raise ValueError(f"{name} must be positive and finite, got {value!r}.")
    return float(value)


def positive_step(step: float | Array, z: Array) -> Array:
    """Return ``step`` as an array like ``z``, or raise ``ValueError`` unless it is positive and finite."""
    xp = array_namespace(z)
    steps = asarray_like(step, z) if isinstance(step, float | int) or step.dtype != z.dtype else step
    if not (bool(xp.min(steps) > 0) and bool(xp.max(steps) < math.inf)):  # both are false for NaN
        raise ValueError(f"step must be positive and finite, got {step!r}.")
    return steps


def project_to_interval(a: Array, low: float, high: float) -> tuple[Array, Array]:
    """Return the nearest point of ``[low, high]``, and whether ``a`` is in it up to 8 units of rounding.

    A unit of rounding is the spacing of floating-point numbers at the larger of ``|low|`` and ``|high|``.
    """
    xp = array_namespace(a)
    projected = xp.clip(a, low, high)
    return projected, xp.abs(a - projected) <= 8.0 * epsilon(a) * max(abs(low), abs(high))
