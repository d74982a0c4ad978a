"""Dense rows whose products are compiled by Numba (`dualopt.objectives._kernels`), and when they are chosen.

Results are those of BLAS to rounding. Nothing else depends on Numba, which is imported where it is used alone.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

from dualopt.arrays._extras import optional
from dualopt.arrays.xp import Array, is_numpy
from dualopt.objectives._dense import Block, Group

__all__ = ["CompiledBlock", "CompiledGroup", "dense_group", "numba_version"]

# Numbers of the features from which on compiled products are chosen. They save 1.6 ns a number and gradient for ten
# classes (0.5 ns in float32), and Numba takes 0.3 s to load, 1.5 s more when it compiles for the first time on a
# machine: about a hundred gradients make up for loading it.
LARGE = 2**22


class CompiledBlock(Block):
    """A block with compiled products, where they are faster."""

    __slots__ = ()

    def predict(self, matrices: Array) -> Array:
        """Return ``M_j x_ji`` for matrices ``(c, k, p)``: ``(c, k, b)``."""
        return _kernels().predict(self.X, matrices) if self._fits(matrices) else super().predict(matrices)

    def pull_back(self, slopes: Array) -> Array:
        """Return ``sum_i s_ji x_ji'`` for slopes ``(c, k, b)``: ``(c, k, p)``."""
        return _kernels().pull_back(slopes, self.X) if self._fits(slopes) else super().pull_back(slopes)

    def _fits(self, factor: Array) -> bool:
        return factor.dtype == self.X.dtype and _kernels().fits(factor.shape[1], self.X.shape[2], self.X.itemsize)


@dataclass(frozen=True, kw_only=True, eq=False)
class CompiledGroup(Group):
    """Clients of equal size, stored together, with compiled products; a machine without Numba does them by BLAS."""

    block = CompiledBlock


def dense_group(X: Array, *, columns: int, outputs: int, rows: int | None = None) -> type[Group]:
    """Choose how products with dense features are computed, once for all clients that share the data.

    A client's result must not depend on which clients are in a call: the choice is made for the whole federation, and
    stays with the rows when clients are selected or sent to processes of their own.

    Parameters
    ----------
    X : array, shape (m, d)
        Features.
    columns : int
        ``d``, and one more for an intercept.
    outputs : int
        Rows of the matrices by which features are multiplied.
    rows : int, optional
        Rows of the whole federation, where ``X`` has a part of them.

    Returns
    -------
    CompiledGroup or Group
        The first for NumPy arrays with at least ``LARGE`` numbers where Numba is installed and has a faster product.
        The environment variable ``DUALOPT_FAST`` changes this: 0 never chooses it, 1 does so for small data, too.

    Raises
    ------
    ValueError
        If the variable holds something else.
    ModuleNotFoundError
        If it is 1 and Numba cannot be imported.
    """
    setting = os.environ.get("DUALOPT_FAST", "auto")
    if setting not in ("auto", "0", "1"):
        raise ValueError(f"the environment variable DUALOPT_FAST must be auto, 0 or 1, not {setting!r}.")
    large = setting == "1" or (X.shape[0] if rows is None else rows) * columns >= LARGE
    if setting == "0" or not large or not is_numpy(X):
        return Group
    if setting == "1" and _kernels().numba is None:
        optional("numba", "DUALOPT_FAST=1")
        raise ModuleNotFoundError("DUALOPT_FAST=1 needs a Numba that fits this NumPy and this processor.")
    return CompiledGroup if _kernels().fits(outputs, columns, X.itemsize) else Group


def numba_version() -> str | None:
    """Return the version of Numba if this process has loaded it for products, else None."""
    loaded = _kernels.cache_info().currsize > 0 and _kernels().numba is not None
    return _kernels().numba.__version__ if loaded else None


@cache
def _kernels() -> Any:
    return import_module("dualopt.objectives._kernels")
