"""Some coordinates at random, other ones for every client."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from dualopt.arrays._checks import Typed, require_at_least
from dualopt.arrays.xp import Array, array_namespace, asarray_like
from dualopt.methods.compressors._protocol import require_within, size_of
from dualopt.methods.participation import Round

__all__ = ["RandK"]


@dataclass(frozen=True, kw_only=True)
class RandK(Typed):
    r"""Some coordinates at random, rand-k: k of d, scaled by d/k.

    Every set of k coordinates is equally likely and every client draws its own, so that
    :math:`\mathbb E|C(x)|^2 = \frac dk|x|^2`: :math:`\omega = \frac dk - 1`, exactly.

    **What is sent** are k numbers in full width. The server draws the same coordinates from the client's stream, whose
    seed it knows: no positions travel.

    Parameters
    ----------
    size : int
        k.

    Raises
    ------
    ValueError
        If ``size`` is less than 1; in use if it exceeds the number of coordinates.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt.methods.participation import first_round
    >>> RandK(size=2).compress(np.ones((2, 4)), first_round(2)).tolist()
    [[2.0, 0.0, 0.0, 2.0], [0.0, 2.0, 0.0, 2.0]]
    >>> RandK(size=2).omega((4,), 2), RandK(size=2).bits((4,), 32, first_round(2))
    (1.0, 128)
    """

    example: ClassVar[dict[str, Any]] = {"size": 2}
    unbiased: ClassVar[bool] = True
    independent: ClassVar[bool] = True

    size: int

    def __post_init__(self) -> None:
        require_at_least(1, size=self.size)

    def omega(self, shape: tuple[int, ...], n_clients: int) -> float:
        """Return ``d/k - 1``."""
        require_within(self.size, size_of(shape), "coordinates")
        return size_of(shape) / self.size - 1.0

    def compress(self, x: Array, round: Round) -> Array:
        """Return the chosen coordinates, scaled, and zeros."""
        xp = array_namespace(x)
        d = size_of(tuple(x.shape[1:]))
        require_within(self.size, d, "coordinates")
        orders = [asarray_like(rng.permutation(d), x, dtype=xp.int64) for rng in round.compression_rngs()]
        chosen = xp.reshape(xp.stack(orders) < self.size, x.shape)
        return xp.where(chosen, (d / self.size) * x, xp.zeros_like(x))

    def numbers(self, shape: tuple[int, ...], round: Round) -> int:
        """Return ``P k``."""
        return round.n_active * self.size

    def bits(self, shape: tuple[int, ...], width: int, round: Round) -> int:
        """Return ``P k`` times the width."""
        return width * self.numbers(shape, round)
