"""The largest coordinates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from dualopt.arrays._checks import Typed, require_at_least
from dualopt.arrays.xp import Array, array_namespace
from dualopt.methods.compressors._protocol import require_within, size_of
from dualopt.methods.participation import Round

__all__ = ["TopK"]


@dataclass(frozen=True, kw_only=True)
class TopK(Typed):
    r"""The largest coordinates, top-k: the k of largest absolute value, as they are.

    **It is biased**, and no theorem of this package covers a method that uses it: Theorem D needs
    :math:`\mathbb E\,C(x) = x`. What holds is :math:`|C(x) - x|^2 \le (1 - \frac kd)|x|^2`, so :math:`\omega = 0` and
    methods take the whole step. FedSplit still rests at the solution, where the changes are zero, but nothing shows
    that it gets there.

    **What is sent** are k numbers in full width and their positions, :math:`\lceil\log_2 d\rceil` bits each. Of equal
    absolute values the first goes first.

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
    >>> TopK(size=2).compress(np.array([[1.0, -3.0, 2.0]]), first_round(1)).tolist()
    [[0.0, -3.0, 2.0]]
    >>> TopK(size=2).bits((3,), 64, first_round(1))
    132
    """

    example: ClassVar[dict[str, Any]] = {"size": 2}
    unbiased: ClassVar[bool] = False

    size: int

    def __post_init__(self) -> None:
        require_at_least(1, size=self.size)

    def omega(self, shape: tuple[int, ...], n_clients: int) -> float:
        """Return 0: it contracts as it is."""
        require_within(self.size, size_of(shape), "coordinates")
        return 0.0

    def delta(self, shape: tuple[int, ...], n_clients: int) -> float:
        r"""Return :math:`\frac kd`.

        >>> TopK(size=2).delta((8,), 1)
        0.25
        """
        require_within(self.size, size_of(shape), "coordinates")
        return self.size / size_of(shape)

    def compress(self, x: Array, round: Round) -> Array:
        """Return the largest coordinates and zeros."""
        xp = array_namespace(x)
        d = size_of(tuple(x.shape[1:]))
        require_within(self.size, d, "coordinates")
        order = xp.argsort(-xp.abs(xp.reshape(x, (x.shape[0], d))), axis=-1, stable=True)
        rank = xp.argsort(order, axis=-1)
        return xp.where(xp.reshape(rank < self.size, x.shape), x, xp.zeros_like(x))

    def numbers(self, shape: tuple[int, ...], round: Round) -> int:
        """Return ``P k``; positions are no numbers."""
        return round.n_active * self.size

    def bits(self, shape: tuple[int, ...], width: int, round: Round) -> int:
        """Return ``P k`` times the width and the bits of a position."""
        return (width + (size_of(shape) - 1).bit_length()) * self.numbers(shape, round)
