"""Memory for what is received in every round."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

__all__ = ["Pool"]


class Pool:
    """Arrays that are used again as soon as nobody looks at them: new memory costs as much as what it receives.

    >>> pool = Pool()
    >>> x = pool.empty((2,), np.dtype(float))
    >>> kept = x[1:]
    >>> x = None
    >>> pool.empty((2,), np.dtype(float)) is kept.base, len(pool.arrays)
    (False, 2)
    """

    def __init__(self) -> None:
        self.arrays: list[np.ndarray] = []

    def empty(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        """Return an array with whatever is in it."""
        for k in range(len(self.arrays)):
            if self.arrays[k].shape == shape and self.arrays[k].dtype == dtype and _unused(self.arrays, k):
                return self.arrays[k]
        self.arrays = [x for k, x in enumerate(self.arrays) if not _unused(self.arrays, k)]
        self.arrays.append(np.empty(shape, dtype))
        return self.arrays[-1]


def _unused(arrays: list[np.ndarray], k: int) -> bool:
    """Tell whether the list alone knows the array: nobody does whom a view could refer to."""
    return sys.getrefcount(arrays[k]) <= _ALONE


def _references() -> int:
    arrays = [np.empty(1)]
    return sys.getrefcount(arrays[0])


_ALONE = _references()
