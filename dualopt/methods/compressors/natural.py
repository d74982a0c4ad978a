"""Natural compression (Horvath, Ho, Horvath, Sahu, Canini, Richtarik 2019; recalled)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from dualopt.arrays.xp import Array, array_namespace, asarray_like
from dualopt.methods.compressors._protocol import size_of, uniform
from dualopt.methods.participation import Round

__all__ = ["NaturalCompression"]

LEAST, MOST = -126, 127  # exponents of the normal numbers of float32
POWERS = (0.0, *(2.0**e for e in range(LEAST, MOST + 1)))
NEXT = (*POWERS[1:], POWERS[-1])


@dataclass(frozen=True, kw_only=True)
class NaturalCompression:
    r"""Round every number at random to a power of two: sign and exponent, 9 bits.

    .. math:: C(\pm x) = \pm 2^{e+1} \text{ with probability } x/2^e - 1, \text{ else } \pm 2^e,
        \qquad 2^e \le x < 2^{e+1}

    It is unbiased, and :math:`\omega = \frac18`: with :math:`x = 2^e(1 + p)` the second moment is
    :math:`4^e(1 + 3p)`, and :math:`(1 + 3p)/(1 + p)^2` is largest, 9/8, at :math:`p = \frac13`. Coordinates are
    independent.

    **What is sent** are the first nine bits of an IEEE float32: the sign and the eight bits of the exponent, for arrays
    of float64 too (which have eleven; the paper counts 12 bits there). These are zero and the powers from
    :math:`2^{-126}` to :math:`2^{127}`. A smaller number is rounded to 0 or :math:`2^{-126} \approx 10^{-38}` without
    bias, but then the variance is not relative to it: there, :math:`\omega` does not hold. A number beyond
    :math:`2^{127}` becomes infinite, and NaN stays NaN, so that a run that diverges is seen.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt.methods.participation import first_round
    >>> NaturalCompression().compress(np.array([[3.0, -0.25, 0.0, 5.0]]), first_round(1)).tolist()
    [[4.0, -0.25, 0.0, 4.0]]
    >>> NaturalCompression().bits((650,), 64, first_round(1))
    5850
    """

    example: ClassVar[dict[str, Any]] = {}
    unbiased: ClassVar[bool] = True
    independent: ClassVar[bool] = True

    def omega(self, shape: tuple[int, ...], n_clients: int) -> float:
        """Return 1/8."""
        return 0.125

    def compress(self, x: Array, round: Round) -> Array:
        """Round to one of the two powers."""
        xp = array_namespace(x)
        draws = uniform(x, round)
        size = xp.abs(x)
        place = xp.searchsorted(asarray_like(POWERS, x), xp.reshape(size, (-1,)), side="right") - 1
        low, high = (xp.reshape(xp.take(asarray_like(table, x), place), x.shape) for table in (POWERS, NEXT))
        rounded = xp.where(draws * (high - low) < size - low, high, low)
        return xp.sign(x) * xp.where(size <= POWERS[-1], rounded, size + math.inf)

    def numbers(self, shape: tuple[int, ...], round: Round) -> int:
        """Return ``P d``: none is left out."""
        return round.n_active * size_of(shape)

    def bits(self, shape: tuple[int, ...], width: int, round: Round) -> int:
        """Return ``9 P d``."""
        return 9 * self.numbers(shape, round)
