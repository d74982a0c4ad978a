"""Rounding to a few bits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from dualopt.arrays._checks import Typed, require
from dualopt.arrays.xp import Array, array_namespace
from dualopt.methods.compressors._protocol import size_of
from dualopt.methods.participation import Round

__all__ = ["Rounding"]

MOST = 32


@dataclass(frozen=True, kw_only=True)
class Rounding(Typed):
    r"""Round every number to the nearest multiple of the largest one over :math:`m = 2^{b-1} - 1`: b bits, no chance.

    .. math:: C(x)_i = \tfrac sm\,\mathrm{round}\bigl(\tfrac{m x_i}s\bigr), \qquad s = \max_i|x_i|

    **It is biased, and contracts**:

    .. math:: |C(x) - x|^2 \le \frac c{1 + c}|x|^2, \qquad c = \frac{d - 1}{4m^2},

    a hundredth for 650 numbers in 8 bits. *Proof.* Zero and s are levels: s itself is sent exactly, and the error of
    any other number is at most :math:`\frac s{2m}` and at most its size. So the square of the error is at most
    :math:`|x|^2 - s^2` and at most :math:`c s^2`: of both the convex combination with the weights
    :math:`\frac c{1 + c}` and :math:`\frac1{1 + c}` is the bound. ∎ It is attained: by s and :math:`d - 1` numbers
    :math:`\frac s{2m}`.

    So methods take the whole step, :math:`\omega = 0`, and errors go to zero with what is rounded, a difference to
    what both ends know. Theorem D needs :math:`\mathbb E\,C(x) = x` and does not cover it.

    **What is sent** by each client: s in full width, and one of the 2m + 1 levels for each number, in b bits.

    Parameters
    ----------
    digits : int
        b, from 2 to 32: binary digits of a number, one of them its sign.

    Raises
    ------
    ValueError
        If ``digits`` is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt.methods.participation import first_round
    >>> Rounding(digits=3).compress(np.array([[3.0, -1.6, 0.4]]), first_round(1)).tolist()
    [[3.0, -2.0, 0.0]]
    >>> Rounding(digits=8).bits((650,), 64, first_round(1))
    5264
    """

    example: ClassVar[dict[str, Any]] = {"digits": 8}
    unbiased: ClassVar[bool] = False

    digits: int

    def __post_init__(self) -> None:
        require(2 <= self.digits <= MOST, f"digits must be from 2 to {MOST}", self.digits)

    def omega(self, shape: tuple[int, ...], n_clients: int) -> float:
        """Return 0: it contracts as it is."""
        return 0.0

    def delta(self, shape: tuple[int, ...], n_clients: int) -> float:
        r"""Return :math:`\frac1{1 + c}`.

        >>> Rounding(digits=2).delta((5,), 1)
        0.5
        """
        m = 2.0 ** (self.digits - 1) - 1.0
        return 1.0 / (1.0 + (size_of(shape) - 1) / (4.0 * m * m))

    def compress(self, x: Array, round: Round) -> Array:
        """Round to the nearest level."""
        xp = array_namespace(x)
        largest = xp.max(xp.abs(x), axis=tuple(range(1, x.ndim)), keepdims=True)
        m = float(2 ** (self.digits - 1) - 1)
        level = xp.round(m * (x / xp.where(largest > 0, largest, xp.ones_like(largest))))
        return level * (largest / m)

    def numbers(self, shape: tuple[int, ...], round: Round) -> int:
        """Return ``P (d + 1)``, the largest ones included."""
        return round.n_active * (size_of(shape) + 1)

    def bits(self, shape: tuple[int, ...], width: int, round: Round) -> int:
        """Return the bits of ``P`` largest numbers and ``P d`` levels."""
        return round.n_active * (width + size_of(shape) * self.digits)
