"""Images that are lighter or darker, and of another tint, at every client: the second heterogeneity of A-FedPD."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dualopt.arrays._checks import require
from dualopt.arrays.streams import BRIGHTNESS_STREAM, generator
from dualopt.arrays.xp import is_sparse

__all__ = ["brightened", "brightness_shift"]


def brightness_shift(mean: float, channels: int, *, spread: float, seed: int, client: int) -> np.ndarray:
    r"""Return what is added to the numbers of each channel of a client's images, shape ``(channels,)``.

    .. math:: \text{spread}\; \bar b_j\, (g_j\, \mathbf{1} + h_j\, e_{c_j}),

    where :math:`\bar b_j` is the mean of all numbers of the images of client ``j``, :math:`g_j` and :math:`h_j` are
    standard normal, and the channel :math:`c_j` is drawn uniformly.

    "After splitting the local dataset, we will calculate the average brightness of each local dataset. Then we generate
    a noise from Gaussian to randomly change the brightness and one of the color channels" (Sun et al. 2024, Appendix
    A.3, Brightness Heterogeneity). How large the noise is, and whether it is added or multiplied, the paper does not
    say: it is added here, in units of the average brightness, and nothing is cut off.

    Parameters
    ----------
    mean : float
        The average brightness.
    channels : int
        Number of channels.
    spread : float
        Deviation of both changes in units of ``mean``.
    seed : int
        Seed; every client has a stream of its own.
    client : int
        Its number ``j``.

    Examples
    --------
    >>> shift = brightness_shift(0.5, 3, spread=0.2, seed=0, client=4)
    >>> len(set(shift.tolist())), bool(brightness_shift(0.5, 3, spread=0.0, seed=0, client=4).any())
    (2, False)
    """
    rng = generator(seed, (*BRIGHTNESS_STREAM, client))
    all_channels, one = rng.standard_normal(2)
    chosen = np.arange(channels) == rng.integers(channels)
    return spread * mean * (all_channels + one * chosen)


def brightened(
    X: Any, clients: Sequence[np.ndarray], *, spread: float, seed: int, first: int = 0
) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    """Return the images of the clients as each of them sees them, one client after the other.

    Parameters
    ----------
    X : array, shape (m, d)
        Images, squares of one channel or three, all of channel 0 first.
    clients : sequence of arrays
        The rows of each client; those that several have are written out for each.
    spread : float
        As of :func:`brightness_shift`.
    seed : int
        Seed.
    first : int, default 0
        The number of the first of these clients.

    Returns
    -------
    array, shape (sum of m_j, d), array of int64, list of arrays
        The changed images in the type of ``X``, the row of ``X`` that each comes from, and the rows of each client.

    Raises
    ------
    ValueError
        If the rows are sparse or no such images, or ``spread`` is negative or not finite.

    Examples
    --------
    >>> X, rows, clients = brightened(np.ones((3, 4)), [np.array([2, 0]), np.array([2])], spread=0.1, seed=0)
    >>> rows.tolist(), [part.tolist() for part in clients], len(np.unique(X))
    ([2, 0, 2], [[0, 1], [2]], 2)
    """
    require(0 <= spread < math.inf, "brightness must be a finite number, at least 0", spread)
    require(not is_sparse(X), "brightness must not be given for sparse rows, which are no images")
    from dualopt.objectives.torch_networks import image_shape  # this module is imported to look for partitions

    channels = image_shape(X.shape[1])[0]
    rows = np.concatenate(clients)
    ends = np.cumsum([len(own) for own in clients])
    found, parts = X[rows].reshape(len(rows), channels, -1), np.split(np.arange(len(rows)), ends[:-1])
    for j, part in enumerate(parts):
        own = found[part[0] : part[-1] + 1]
        mean = float(own.mean(dtype=np.float64))
        shift = brightness_shift(mean, channels, spread=spread, seed=seed, client=first + j)
        own += shift[:, None].astype(found.dtype)
    return found.reshape(len(rows), -1), rows, parts
