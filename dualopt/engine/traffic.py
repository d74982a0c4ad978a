"""How much is sent: numbers and bits."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from dualopt.arrays.tree import leaves
from dualopt.arrays.xp import Array, width
from dualopt.methods.compressors import Compressor
from dualopt.methods.participation import Round

__all__ = ["NOTHING", "Traffic", "of_delivered", "of_message", "of_upload"]

PYTHON_FLOAT = 64  # bits


class Traffic(NamedTuple):
    """Numbers, whatever their width, and all the bits that were sent.

    Examples
    --------
    >>> Traffic(10, 640).times(3), Traffic(1, 64).plus(Traffic(2, 18))
    (Traffic(numbers=30, bits=1920), Traffic(numbers=3, bits=82))
    """

    numbers: int
    bits: int

    def times(self, n: int) -> Traffic:
        """Return what is sent ``n`` times."""
        return Traffic(n * self.numbers, n * self.bits)

    def plus(self, other: Traffic) -> Traffic:
        """Return both together."""
        return Traffic(self.numbers + other.numbers, self.bits + other.bits)


NOTHING = Traffic(0, 0)


def of_message(message: Any) -> Traffic:
    """Return what one client is sent: every number in full, a Python number as 64 bits.

    Examples
    --------
    >>> import numpy as np
    >>> of_message((np.zeros((2, 3)), 0.5, None))
    Traffic(numbers=7, bits=448)
    """
    numbers = bits = 0
    for leaf in leaves(message):
        own = math.prod(leaf.shape) if hasattr(leaf, "shape") else 1
        numbers += own
        bits += own * (width(leaf) if hasattr(leaf, "shape") else PYTHON_FLOAT)
    return Traffic(numbers, bits)


def of_delivered(message: Any, downlink: Any, round: Round) -> Traffic:
    """Return what one client is sent of a message whose vectors have gone through a ``Downlink``.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt.methods.compressors import Rounding
    >>> from dualopt.methods.compressors._downlink import Downlink
    >>> from dualopt.methods.participation import first_round
    >>> of_delivered((np.zeros(50), 0.5), Downlink(Rounding(digits=8), (50,)), first_round(2))
    Traffic(numbers=52, bits=528)
    """
    size = of_message(message)
    for leaf in leaves(message):
        if downlink.is_vector(leaf):
            d, wide = math.prod(leaf.shape), width(leaf)
            size = size.plus(Traffic(downlink.numbers(round) - d, downlink.bits(wide, round) - wide * d))
    return size


def of_upload(upload: Any, compressor: Compressor | None, round: Round, model: Array, vectors: int = 0) -> Traffic:
    """Return what the active clients send together; all arrays have the client axis first.

    Some ``vectors`` of them, of the shape and type of ``model``, go through the compressor, and the rest goes in full.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt.methods.compressors import NaturalCompression
    >>> from dualopt.methods.participation import first_round
    >>> of_upload((np.zeros((2, 50)), np.zeros(2)), NaturalCompression(), first_round(2), np.zeros(50), 1)
    Traffic(numbers=102, bits=1028)
    """
    numbers = bits = 0
    for leaf in leaves(upload):
        own = round.n_active * math.prod(leaf.shape[1:])
        numbers += own
        bits += own * width(leaf)
    if compressor is None or not vectors:
        return Traffic(numbers, bits)
    shape, wide = tuple(model.shape), width(model)
    full, small = round.n_active * math.prod(shape), compressor.numbers(shape, round)
    saved = Traffic(small - full, compressor.bits(shape, wide, round) - wide * full)
    return Traffic(numbers, bits).plus(saved.times(vectors))
