"""What of an answer is added, as integers of the ring, and the answer that a sum of them stands for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from dualopt.arrays.tree import leaves, tree_map
from dualopt.arrays.xp import Array, asarray_like, to_numpy
from dualopt.engine import _protocol as protocol
from dualopt.engine.secure_sums._ring import decoded, encoded, units_of

__all__ = ["Words", "answers_of_sum", "words_of"]

GRADIENTS = 2  # flags before those of the numbers: how many gradients were computed, and how many hosts say so
COLUMNS, OF_DUAL = 5, 4  # of a certificate, and how many more where there are dual points
VALUE_ERROR, SLOPE_ERROR, CONJUGATE, DUAL_ERROR = 2, 3, 5, 8  # places of columns


class Words(NamedTuple):
    """Numbers of a host as integers of the ring."""

    words: Any  # a tree of arrays
    flags: np.ndarray
    types: tuple[str, ...]
    vectors: int = 0

    @property
    def flat(self) -> np.ndarray:
        """All integers, one after the other."""
        return np.concatenate([self.flags, *(x.reshape(-1) for x in leaves(self.words))])

    def filled(self, flat: np.ndarray) -> Words:
        """Return the same with other integers, as `flat` has them."""
        start = self.flags.size

        def next_part(x: np.ndarray) -> np.ndarray:
            nonlocal start
            start += x.size
            return flat[start - x.size : start].reshape(x.shape)

        return self._replace(flags=flat[: self.flags.size], words=tree_map(next_part, self.words))

    @property
    def form(self) -> Any:
        """What must be the same for all hosts of a sum."""
        kinds = tuple((tuple(x.shape), x.dtype.str) for x in leaves(self.words))
        return str(tree_map(lambda x: 0, self.words)), kinds, self.flags.shape, self.types, self.vectors


def words_of(request: Any, answer: Any, bits: int, largest: float) -> Words:
    """Return the integers that a host adds of an answer.

    Raises
    ------
    OutOfRangeError
        If a number is beyond the range, or an upload is not finite.
    """
    if isinstance(request, protocol.Evaluate):
        return _of_certificate(request, answer, bits, largest)
    flags = [0.0, 0.0] if answer.gradients is None else [float(sum(answer.gradients)), 1.0]
    types: list[str] = []
    infinite: list[int] = []

    def integers(x: Any) -> np.ndarray:
        x = to_numpy(x) if not isinstance(x, float | int) else np.asarray(x)
        types.append(x.dtype.name)
        if x.ndim == 0:  # a number of a client may be plus infinity
            infinite.append(int(x == math.inf))
            x = np.where(x == math.inf, 0.0, x)
        return encoded(x, bits, largest)

    words = tree_map(integers, answer.upload)
    known = np.array(infinite, dtype=np.uint64)
    return Words(words, np.concatenate([encoded(flags, bits, largest), known]), tuple(types), answer.vectors)


def _of_certificate(request: protocol.Evaluate, answer: protocol.PartialSums, bits: int, largest: float) -> Words:
    """Return those of the sums for a certificate, none of which rounding makes smaller than it may be.

    Sizes, errors and conjugates are rounded up, the value, the gradient and the dual points to the nearest number, for
    which their errors are charged. What is infinite or no number counts as infinite; without dual points their
    conjugate does, and so it does where dual points are beyond the range: no certificate is made of them then.
    """
    gradient = to_numpy(answer.gradient)
    columns = np.array(to_numpy(answer.columns), dtype=np.float64)
    dual = None if answer.dual is None else to_numpy(answer.dual)
    if not np.isfinite(gradient).all():
        gradient, columns[:COLUMNS] = np.zeros_like(gradient), math.inf
    if request.dual:
        of_dual = np.array([math.inf, 0.0, 0.0, 0.0])
        if dual is not None and columns.size == COLUMNS + OF_DUAL:
            given = columns[COLUMNS:]
            if np.all(np.abs(dual) <= largest) and np.all(np.abs(given) <= largest):
                of_dual = given
            else:
                dual = None
        columns = np.concatenate([columns[:COLUMNS], of_dual])
        dual = np.zeros_like(gradient) if dual is None else dual
    infinite = ~np.isfinite(columns)
    columns = np.where(infinite, 0.0, columns)
    words = encoded(columns, bits, largest, up=True)
    words[0] = encoded(columns[0], bits, largest)
    units = np.uint64(units_of(gradient.size))
    words[VALUE_ERROR] += np.uint64(1)
    words[SLOPE_ERROR] += units
    if request.dual:
        words[DUAL_ERROR] += units
    parts = words, encoded(gradient, bits, largest), None if dual is None else encoded(dual, bits, largest)
    return Words(parts if request.dual else parts[:2], infinite.astype(np.uint64), (gradient.dtype.name,))


def answers_of_sum(
    requests: Sequence[Any], total: Words, bits: int, sizes: Sequence[int], like: Array | None
) -> list[Any]:
    """Return the answers of the hosts that have added: the sum stands in that of the first, nothing in the others.

    Parameters
    ----------
    requests : sequence of NamedTuple
        What each of them was asked.
    total : Words
        The sum.
    bits : int
        Bits of fractions.
    sizes : sequence of int
        How many clients of each were asked.
    like : array, optional
        A model, in whose library the server computes.
    """

    def native(x: np.ndarray) -> Any:
        return x if like is None else asarray_like(x, like)

    if isinstance(requests[0], protocol.Evaluate):
        return _sums(requests, total, bits, native)
    flags, types = total.flags, iter(total.types)
    waiting = iter(flags[GRADIENTS:].tolist())

    def numbers(x: np.ndarray) -> Any:
        found = decoded(x, bits)
        if x.ndim == 0 and next(waiting):
            found = np.asarray(math.inf)
        kind = next(types)
        found = found.astype(kind if kind.startswith("float") else np.float64)
        return native(found)

    upload = tree_map(numbers, total.words)
    count, hosts = decoded(flags[:GRADIENTS], bits).tolist()
    each = count / sum(sizes)
    return [
        protocol.Uploaded(
            request.run,
            request.n,
            upload if k == 0 else None,
            (each,) * size if hosts else None,
            total.vectors,
        )
        for k, (request, size) in enumerate(zip(requests, sizes, strict=True))
    ]


def _sums(requests: Sequence[Any], total: Words, bits: int, native: Any) -> list[protocol.PartialSums]:
    words, *vectors = total.words
    columns = decoded(words, bits, up=True)
    columns[0] = decoded(words[:1], bits)[0]
    columns = np.where(total.flags.view(np.int64) > 0, math.inf, columns)
    if len(vectors) > 1 and columns[CONJUGATE] == math.inf:  # a host has no dual points
        columns, vectors = columns[:COLUMNS], vectors[:1]

    def sums(*parts: np.ndarray) -> protocol.PartialSums:
        gradient, *dual = (native(x) for x in parts[1:])
        return protocol.PartialSums(parts[0], gradient, dual[0] if dual else None)

    whole = columns, *(decoded(x, bits) for x in vectors)
    return [sums(*whole), *(sums(*map(np.zeros_like, whole)) for _ in requests[1:])]
