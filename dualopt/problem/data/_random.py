"""Random streams of data sets and partitions, and the checks of their parameters."""

from __future__ import annotations

import numpy as np

from dualopt.arrays._checks import is_integer, is_number

__all__ = ["PARTITION_STREAM", "SAMPLE_STREAM", "SYNTHETIC_STREAM", "at_least", "generator", "nonnegative"]

# First entries 0, 1 and 2 of a spawn key belong to the rounds of a run: one seed serves all, and nothing
# overlaps.
PARTITION_STREAM = (3,)
SAMPLE_STREAM = (3, 1)
SYNTHETIC_STREAM = (4,)
LARGEST = 10**12  # rows or columns: no memory has more


def at_least(lower: int, name: str, value: int) -> int:
    """Return ``value`` as an int, or refuse it when it is not an integer, below ``lower``, or no size of an array."""
    if not is_integer(value):
        raise ValueError(f"{name} must be an integer, got {value!r}.")
    number = int(value)
    if number < lower:
        raise ValueError(f"{name} must be at least {lower}, got {number}.")
    if name != "seed" and number > LARGEST:
        raise ValueError(f"{name} must be at most {LARGEST}, got {number}.")
    return number


def generator(seed: int, stream: tuple[int, ...]) -> np.random.Generator:
    """Return the generator of one stream of ``seed``."""
    return np.random.default_rng(np.random.SeedSequence(at_least(0, "seed", seed), spawn_key=stream))


def nonnegative(name: str, value: float) -> float:
    """Return ``value`` as a float, or refuse it when it is negative, infinite or NaN."""
    if not (is_number(value) and 0 <= value < np.inf):
        raise ValueError(f"{name} must be nonnegative and finite, got {value!r}.")
    return float(value)
