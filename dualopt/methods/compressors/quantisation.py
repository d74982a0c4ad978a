"""Random quantisation (QSGD: Alistarh, Grubic, Li, Tomioka, Vojnovic 2017, Section 3; recalled)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from dualopt.arrays._checks import Typed, require_at_least
from dualopt.arrays.xp import Array, array_namespace
from dualopt.methods.compressors._protocol import size_of, uniform
from dualopt.methods.participation import Round

__all__ = ["RandomQuantisation"]


@dataclass(frozen=True, kw_only=True)
class RandomQuantisation(Typed):
    r"""Round every number at random to a multiple of the norm over s.

    .. math:: C(x)_i = \mathrm{sign}(x_i)\tfrac{|x|}s \bigl(\lfloor a_i\rfloor + \text{a coin of probability }
        a_i - \lfloor a_i\rfloor\bigr), \qquad a_i = s|x_i|/|x|

    It is unbiased, coordinates are independent, and a coin of probability p has the variance
    :math:`p(1 - p) \le \min(\frac14, a_i)`; with :math:`\sum a_i \le s\sqrt d` this gives
    :math:`\omega = \min(\frac d{4s^2}, \frac{\sqrt d}s)`. The paper has :math:`\frac d{s^2}` in the first place.

    Draws are multiples of :math:`2^{-53}` (:math:`2^{-24}` for float32), so that the mean of a coordinate is off by up
    to that times :math:`|x|/s`.

    **What is sent** by each client: the norm in full width, and one of the 2s + 1 levels from -s to s for each
    coordinate, in :math:`\lceil\log_2(2s + 1)\rceil` bits. The paper's variable-length code is not used.

    Parameters
    ----------
    levels : int
        s.

    Raises
    ------
    ValueError
        If ``levels`` is less than 1.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt.methods.participation import first_round
    >>> RandomQuantisation(levels=5).compress(np.array([[3.0, -4.0, 0.0]]), first_round(1)).tolist()
    [[3.0, -4.0, 0.0]]
    >>> RandomQuantisation(levels=7).bits((100,), 64, first_round(1))
    464
    """

    example: ClassVar[dict[str, Any]] = {"levels": 7}
    unbiased: ClassVar[bool] = True
    independent: ClassVar[bool] = True

    levels: int

    def __post_init__(self) -> None:
        require_at_least(1, levels=self.levels)

    def omega(self, shape: tuple[int, ...], n_clients: int) -> float:
        r"""Return :math:`\min(d/(4s^2), \sqrt d/s)`."""
        d, s = size_of(shape), self.levels
        return min(d / (4.0 * s * s), math.sqrt(d) / s)

    def compress(self, x: Array, round: Round) -> Array:
        """Round to one of the two nearest levels."""
        xp = array_namespace(x)
        draws = uniform(x, round)
        norm = xp.sqrt(xp.sum(x * x, axis=tuple(range(1, x.ndim)), keepdims=True))
        a = self.levels * (xp.abs(x) / xp.where(norm > 0, norm, xp.ones_like(norm)))
        low = xp.floor(a)
        level = xp.where(draws < a - low, low + 1.0, low)
        return xp.sign(x) * level * (norm / self.levels)

    def numbers(self, shape: tuple[int, ...], round: Round) -> int:
        """Return ``P (d + 1)``, norms included."""
        return round.n_active * (size_of(shape) + 1)

    def bits(self, shape: tuple[int, ...], width: int, round: Round) -> int:
        """Return the bits of ``P`` norms and ``P d`` levels."""
        return round.n_active * (width + size_of(shape) * (2 * self.levels).bit_length())
