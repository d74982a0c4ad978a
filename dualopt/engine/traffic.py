"""How much is sent: numbers and bits."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from dualopt.arrays.tree import leaves
from dualopt.arrays.xp import width
from dualopt.methods.compressors import Compressor
from dualopt.methods.participation import Round

__all__ = ["NOTHING", "Amount", "of_message", "of_upload"]

PYTHON_FLOAT = 64  # bits


class Amount(NamedTuple):
    """Numbers, whatever their width, and all the bits that were sent.

    Examples
    --------
    >>> Amount(10, 640).times(3), Amount(1, 64).plus(Amount(2, 18))
    (Amount(numbers=30, bits=1920), Amount(numbers=3, bits=82))
    """

    numbers: int
    bits: int

    def times(self, n: int) -> Amount:
        """Return what is sent ``n`` times."""
        return Amount(n * self.numbers, n * self.bits)

    def plus(self, other: Amount) -> Amount:
        """Return both together."""
        return Amount(self.numbers + other.numbers, self.bits + other.bits)


NOTHING = Amount(0, 0)


def of_message(message: Any) -> Amount:
    """Return what one client is sent: every number in full, a Python number as 64 bits.

    Examples
    --------
    >>> import numpy as np
    >>> of_message((np.zeros((2, 3)), 0.5, None))
    Amount(numbers=7, bits=448)
    """
    total = NOTHING
    for leaf in leaves(message):
        if hasattr(leaf, "shape"):
            total = total.plus(Amount(1, width(leaf)).times(math.prod(leaf.shape)))
        elif leaf is not None:
            total = total.plus(Amount(1, PYTHON_FLOAT))
    return total


def of_upload(upload: Any, compressor: Compressor, round: Round) -> Amount:
    """Return what the active clients send together; all arrays have the client axis first.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt.methods.compressors import NaturalCompression
    >>> from dualopt.methods.participation import first_round
    >>> of_upload(np.zeros((2, 50)), NaturalCompression(), first_round(2))
    Amount(numbers=100, bits=900)
    """
    total = NOTHING
    for leaf in leaves(upload):
        shape = tuple(leaf.shape[1:])
        bits = compressor.bits(shape, width(leaf), round)
        total = total.plus(Amount(compressor.numbers(shape, round), bits))
    return total
