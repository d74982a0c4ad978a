"""The summand of entropies, ``x log x``."""

from __future__ import annotations

from dualopt.arrays.xp import Array, array_namespace

__all__ = ["x_log_x"]


def x_log_x(x: Array) -> Array:
    """Compute ``x log x`` for ``x >= 0``, with its limit 0 at 0.

    Examples
    --------
    >>> import numpy as np
    >>> x_log_x(np.asarray([1.0, np.e])).round(6).tolist()
    [0.0, 2.718282]
    """
    xp = array_namespace(x)
    return x * xp.log(xp.maximum(x, float(xp.finfo(x.dtype).smallest_normal)))
