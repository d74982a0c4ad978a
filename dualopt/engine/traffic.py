"""How much is sent, numbers and bits, and who holds what was sent."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from dualopt.arrays.tree import leaves
from dualopt.arrays.xp import Array, width
from dualopt.methods.compressors import Compressor
from dualopt.methods.participation import Round

__all__ = ["NOTHING", "Meter", "Traffic", "of_delivered", "of_message", "of_upload"]

PYTHON_FLOAT = 64  # bits
WORD = 64  # bits of a masked number


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
        shape = getattr(leaf, "shape", None)
        own, wide = (1, PYTHON_FLOAT) if shape is None else (math.prod(shape), width(leaf))
        numbers += own
        bits += own * wide
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
        own = len(round.clients) * math.prod(leaf.shape[1:])
        numbers += own
        bits += own * width(leaf)
    if compressor is None or not vectors:
        return Traffic(numbers, bits)
    shape, wide = tuple(model.shape), width(model)
    full, small = round.n_active * math.prod(shape), compressor.numbers(shape, round)
    saved = Traffic(small - full, compressor.bits(shape, wide, round) - wide * full)
    return Traffic(numbers, bits).plus(saved.times(vectors))


class Meter:
    """Counts what is sent in the rounds of a run; clients that have missed messages are sent the present one.

    Parameters
    ----------
    holding : array of bool, shape (N,)
        Who holds the message from which the run goes on.
    size : Traffic
        That message.
    receivers : frozenset of str
        Who gets a new message as soon as it is there, as ``Algorithm.receivers`` says.
    compressor : Compressor, optional
        What uploads go through.
    downlink : Downlink, optional
        What messages go through.
    masked : bool, default False
        Whether uploads are masked numbers, all of one width.

    Attributes
    ----------
    holding : array of bool, shape (N,)
        Who holds the present message; it is never written to.

    Examples
    --------
    >>> from dualopt.methods.participation import first_round
    >>> meter = Meter(np.zeros(2, dtype=bool), Traffic(1, 64), frozenset({"active"}))
    >>> for _ in range(2):  # at first nobody holds a message
    ...     meter.count(first_round(2), np.zeros((2, 3)), (np.zeros(3), 0.5), np.zeros(3))
    (Traffic(numbers=6, bits=384), Traffic(numbers=10, bits=640))
    (Traffic(numbers=6, bits=384), Traffic(numbers=8, bits=512))
    """

    def __init__(
        self,
        holding: np.ndarray,
        size: Traffic,
        receivers: frozenset[str],
        compressor: Compressor | None = None,
        downlink: Any = None,
        *,
        masked: bool = False,
    ) -> None:
        self.holding, self._held, self._size = holding, int(np.count_nonzero(holding)), size
        self._nobody, self._everybody = np.zeros_like(holding), np.ones_like(holding)
        self._to_active, self._to_others = "active" in receivers, "inactive" in receivers
        self._compressor, self._downlink, self._masked = compressor, downlink, masked

    def count(self, round: Round, upload: Any, message: Any, model: Array, vectors: int = 0) -> tuple[Traffic, Traffic]:
        """Return what goes up and down in a round; without an ``upload`` nothing goes up, and there is no new message.

        Some ``vectors`` of a client's upload are compressed, which have the shape and type of ``model``.
        """
        n, active, down = round.n_clients, len(round.clients), NOTHING
        if self._held < n and (behind := active - self._held_by(round)):
            down = self._size.times(behind)
            self._hold(round, self.holding, active=True)
        if upload is None:
            return NOTHING, down
        up = of_upload(upload, self._compressor, round, model, vectors)
        if self._masked:
            up = Traffic(up.numbers, WORD * up.numbers)
        size = of_message(message) if self._downlink is None else of_delivered(message, self._downlink, round)
        held = active * self._to_active + (n - active) * self._to_others
        if not held == self._held == n:
            self._hold(round, self._everybody if self._to_others else self._nobody, active=self._to_active)
        self._size = size
        return up, Traffic(down.numbers + held * size.numbers, down.bits + held * size.bits)

    def _held_by(self, round: Round) -> int:
        """Return how many of the active clients hold the message."""
        if round.n_active == round.n_clients:
            return self._held
        return int(np.count_nonzero(self.holding[list(round.clients)]))

    def _hold(self, round: Round, others: np.ndarray, *, active: bool) -> None:
        """Note whether the active clients hold the message; the others do as ``others`` says."""
        if round.n_active == round.n_clients:
            self.holding, self._held = self._everybody if active else self._nobody, round.n_clients * active
            return
        self.holding = others.copy()
        self.holding[list(round.clients)] = active
        self._held = int(np.count_nonzero(self.holding))
