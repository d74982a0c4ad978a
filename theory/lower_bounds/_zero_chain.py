"""Zero chains of the FedPD paper: who holds which couplings, in the units of the theorem."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from dualopt.objectives import ZeroChain

__all__ = ["SPLITS", "as_printed", "printed", "zero_chain"]


def thirds(n: int, d: int) -> np.ndarray:
    r"""Return the weights of the split by thirds: the even couplings, half of the first, the rest.

    They are :math:`3\sum_{k \text{ even}} \Theta_k`, :math:`\frac32 \Theta_1` and
    :math:`\frac32 \Theta_1 + 3\sum_{k \ge 3 \text{ odd}} \Theta_k`.

    Examples
    --------
    >>> thirds(3, 4).tolist()
    [[0.0, 3.0, 0.0, 3.0], [1.5, 0.0, 0.0, 0.0], [1.5, 0.0, 3.0, 0.0]]
    """
    if n % 3:
        raise ValueError(f"n must be divisible by 3, not {n}.")
    weights = np.zeros((3, d))
    weights[0, 1::2] = weights[2, 2::2] = 3.0
    weights[1:, 0] = 1.5
    return np.repeat(weights, n // 3, axis=0)


def halves(n: int, d: int) -> np.ndarray:
    """Return the weights of the split in halves, which needs the least smoothness: odd couplings, even couplings.

    Examples
    --------
    >>> halves(2, 4).tolist()
    [[2.0, 0.0, 2.0, 0.0], [0.0, 2.0, 0.0, 2.0]]
    """
    if n % 2:
        raise ValueError(f"n must be even, not {n}.")
    weights = np.zeros((2, d))
    weights[0, 0::2] = weights[1, 1::2] = 2.0
    return np.repeat(weights, n // 2, axis=0)


def printed(n: int, d: int) -> np.ndarray:
    r"""Return the printed weights: everybody has :math:`\Theta_1`, and client ``i`` each ``n``-th of the others.

    Client 0 holds the neighbours :math:`\Theta_1, \Theta_2`, so that the server starts with two entries.

    Examples
    --------
    >>> printed(3, 5).tolist()
    [[1.0, 1.0, 0.0, 0.0, 1.0], [1.0, 0.0, 1.0, 0.0, 0.0], [1.0, 0.0, 0.0, 1.0, 0.0]]
    """
    weights = np.zeros((n, d))
    weights[np.arange(1, d) % n - 1, np.arange(1, d)] = 1.0
    weights[:, 0] = 1.0
    return weights


SPLITS: dict[str, Callable[[int, int], np.ndarray]] = {"thirds": thirds, "halves": halves}


def zero_chain(n: int, d: int, *, split: str = "thirds", L: float = 1.0, eps: float = 1.0) -> ZeroChain:
    """Return ``n`` clients with a chain of ``d`` couplings (the paper's T + 1), ``L``-smooth, above ``eps`` to the end.

    Examples
    --------
    >>> f = zero_chain(6, 10, L=4.0, eps=0.01)
    >>> f.shape, float(f.L.max().round(12)), f.weights.mean(axis=0).tolist() == [1.0] * 10
    ((10,), 4.0, True)
    """
    return ZeroChain(weights=SPLITS[split](n, d)).scaled(L=L, eps=eps)


def as_printed(n: int, d: int, *, L: float = 1.0, eps: float = 1.0) -> ZeroChain:
    r"""Return the printed construction, :math:`f_i(x) = \frac{2\pi\epsilon}L h_i(\frac{xL}{\pi\sqrt{2\epsilon}})`."""
    return ZeroChain(weights=printed(n, d), height=2.0 * math.pi * eps / L, width=math.pi * math.sqrt(2.0 * eps) / L)
