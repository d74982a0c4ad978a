"""Everything is sent as it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from dualopt.arrays.xp import Array
from dualopt.methods.compressors._protocol import size_of
from dualopt.methods.participation import Round

__all__ = ["Identity"]


@dataclass(frozen=True, kw_only=True)
class Identity:
    r"""No compression, :math:`C(x) = x`: all bits of every number.

    Examples
    --------
    >>> from dualopt.methods.participation import first_round
    >>> Identity().bits((10,), 64, first_round(3))
    1920
    """

    example: ClassVar[dict[str, Any]] = {}
    unbiased: ClassVar[bool] = True
    independent: ClassVar[bool] = True

    def omega(self, shape: tuple[int, ...], n_clients: int) -> float:
        """Return 0."""
        return 0.0

    def compress(self, x: Array, round: Round) -> Array:
        """Return ``x``."""
        return x

    def numbers(self, shape: tuple[int, ...], round: Round) -> int:
        """Return ``P d``."""
        return round.n_active * size_of(shape)

    def bits(self, shape: tuple[int, ...], width: int, round: Round) -> int:
        """Return ``P d`` times the width."""
        return width * self.numbers(shape, round)
