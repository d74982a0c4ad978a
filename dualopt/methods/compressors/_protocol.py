r"""The interface of compressors.

A compressor is a map C, random or not, a part :math:`\frac1{1 + \omega}` of which comes nearer to what was to be sent:

.. math:: \mathbb E\bigl|\tfrac1{1 + \omega}C(x) - x\bigr|^2 \le (1 - \delta)|x|^2, \qquad \delta > 0.

It is *unbiased* if :math:`\mathbb E\,C(x) = x`; then :math:`\omega` bounds its second moment,
:math:`\mathbb E|C(x)|^2 \le (1 + \omega)|x|^2`, so that its variance is at most :math:`\omega|x|^2`, and
:math:`\delta = \frac1{1 + \omega}`. Biased ones say why they contract, and have :math:`\omega = 0`. What is compressed
is a difference to what both ends know, which vanishes at the solution, so that limits are exact
(:class:`dualopt.methods.compressors.Uplink`).

Two things are asked of compressors by :func:`dualopt.lab.proofs.prove` alone: of a biased one :math:`\delta`, by a
method ``delta(shape, n_clients)``, without which nothing is proved; of an unbiased one whether the draws of different
clients are independent, by a class attribute ``independent``, without which they are not taken to be.

Chance comes from the round: :meth:`Round.compression_rngs` has a stream for each client, which does not depend on who
else takes part, and :meth:`Round.compression_rng` one that the server and all clients share. Both ends know the streams
of a run, so that nobody sends which coordinates chance has chosen.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, Protocol

from dualopt.arrays._checks import require
from dualopt.arrays.xp import Array, array_namespace, asarray_like, width
from dualopt.methods.participation import Round

__all__ = ["Compressor", "require_within", "size_of", "uniform"]


class Compressor(Protocol):
    """A map that says what it costs to send its values."""

    example: ClassVar[dict[str, Any]]
    """Arguments that construct an instance, for programs that try every compressor; empty if all have defaults."""

    unbiased: ClassVar[bool]
    """Whether the expectation of what arrives is what was to be sent."""

    def omega(self, shape: tuple[int, ...], n_clients: int) -> float:
        r"""Return :math:`\omega` for one client's x of this shape: both ends take the part 1/(1 + omega) of a step.

        Raises
        ------
        ValueError
            If the compressor does not fit the shape, or the number of clients.
        """
        ...

    def compress(self, x: Array, round: Round) -> Array:
        """Return what arrives of ``x``, shape ``(P, *shape)``, from the active clients of the round."""
        ...

    def numbers(self, shape: tuple[int, ...], round: Round) -> int:
        """Return how many numbers, of whatever width, the active clients of the round send for an ``x`` each."""
        ...

    def bits(self, shape: tuple[int, ...], width: int, round: Round) -> int:
        """Return how many bits they send; ``width`` is that of a number which is not compressed, 32 or 64."""
        ...


def size_of(shape: tuple[int, ...]) -> int:
    """Return the number d of coordinates."""
    return math.prod(shape)


def require_within(size: int, limit: int, what: str) -> None:
    """Refuse a ``size`` beyond what there is."""
    require(size <= limit, f"size of the compressor must be at most the number of {what}, {limit}", size)


def uniform(x: Array, round: Round) -> Array:
    """Return a uniform number in [0, 1) for every number of ``x``, from the streams of the clients.

    Draws are multiples of the spacing of the type: the probabilities of what they decide are exact.
    """
    kind: Any = f"float{width(x)}"
    draws = [asarray_like(rng.random(tuple(x.shape[1:]), dtype=kind), x) for rng in round.compression_rngs()]
    return array_namespace(x).stack(draws)
