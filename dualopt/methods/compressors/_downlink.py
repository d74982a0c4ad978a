"""The way down: what the server sends through a compressor, and what both ends make of it."""

from __future__ import annotations

from typing import Any

from dualopt.arrays.streams import generator
from dualopt.arrays.tree import leaves, tree_map
from dualopt.arrays.xp import Array
from dualopt.methods.compressors._protocol import Compressor
from dualopt.methods.compressors._uplink import kept_part
from dualopt.methods.participation import Round

__all__ = ["Downlink"]

Earlier = tuple[tuple[tuple[int, ...], tuple[Array, ...]], ...]
"""The vectors of the last message of each kind, as they arrived; its kind are the whole numbers and flags in it."""


class Downlink:
    r"""The way down to all clients, which hold every message.

    Of a vector x of a message arrives :math:`r + C(x - r)/(1 + \omega)`, where r is what arrived of the last message of
    this kind: a method may send points and gradients in turns, and says by a whole number or a flag which it is. The
    first message of a run arrives as it is.

    Parameters
    ----------
    compressor : Compressor
        What vectors go through: arrays of the shape of the model. Other numbers are sent as they are.
    shape : tuple of int
        Shape of the model.
    earlier : tuple
        What arrived of earlier messages, as the attribute of this name has it.

    Attributes
    ----------
    earlier : tuple
        The kinds of messages so far, each with the vectors that arrived last.

    Raises
    ------
    ValueError
        If the compressor does not fit the shape.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt.methods.compressors import TopK
    >>> from dualopt.methods.participation import first_round
    >>> down = Downlink(TopK(size=1), (2,))
    >>> down.begin(np.array([1.0, 9.0]))
    >>> down.delivered(np.array([4.0, 8.0]), first_round(3)).tolist(), down.bits(64, first_round(3))
    ([4.0, 9.0], 65)
    """

    def __init__(self, compressor: Compressor, shape: tuple[int, ...], earlier: Earlier = ()) -> None:
        self.earlier, self._compressor, self._shape = earlier, compressor, shape
        self._kept = kept_part(compressor, shape, 1)

    def begin(self, message: Any) -> None:
        """Send the first message of a run, as it is."""
        self.earlier = ((_kind(message), tuple(filter(self.is_vector, leaves(message)))),)

    def delivered(self, message: Any, round: Round) -> Any:
        """Return what arrives of the message with which the round ends."""
        known, kind = dict(self.earlier), _kind(message)
        last, arrived = known.get(kind, ()), []

        def sent(x: Any) -> Any:
            if not self.is_vector(x):
                return x
            r = last[len(arrived)] if len(arrived) < len(last) else None
            step = self._compressor.compress((x if r is None else x - r)[None, ...], _of_server(round))[0, ...]
            arrived.append(self._kept * step if r is None else r + self._kept * step)
            return arrived[-1]

        message = tree_map(sent, message)
        self.earlier = tuple({**known, kind: tuple(arrived)}.items())
        return message

    def numbers(self, round: Round) -> int:
        """Return how many numbers are sent to a client for a vector."""
        return self._compressor.numbers(self._shape, _of_server(round))

    def bits(self, width: int, round: Round) -> int:
        """Return how many bits are sent to a client for a vector of numbers of this width."""
        return self._compressor.bits(self._shape, width, _of_server(round))

    def is_vector(self, x: Any) -> bool:
        """Tell whether a part of a message is compressed."""
        return getattr(x, "shape", None) == self._shape


def _kind(message: Any) -> tuple[int, ...]:
    return tuple(int(x) for x in leaves(message) if isinstance(x, int))


class OfServer(Round):
    """A round with the server in place of the clients: its draws are its own."""

    def compression_rngs(self) -> list[Any]:
        """Return the generator of what the server sends."""
        return [generator(self.seed, (8, self.n))]


def _of_server(round: Round) -> Round:
    return OfServer(n=round.n, n_clients=1, clients=(0,), communicate=True, seed=round.seed)
