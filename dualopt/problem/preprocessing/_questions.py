"""The questions of a plan, what rows answer, and what the answers of all come to.

Rows are a matrix of numbers, in which NaN stands for what is missing; answers are matrices of doubles with a column for
each of its columns. Those of words are lists (`dualopt.problem.preprocessing._columns`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from dualopt.arrays._checks import require
from dualopt.arrays.communicator import Communicator
from dualopt.problem.preprocessing._exact import LARGEST, expansion, sum_of_expansions

__all__ = ["KINDS", "NOTHING", "Numbers", "Question", "asked_of_peers", "combined", "require_sound"]

WIDTH, PIECE = 256, 2**17  # columns, and numbers, that are worked on at once: a megabyte, for the cache


class Question(NamedTuple):
    """What is asked of the columns of a matrix.

    ==============  ==========================  =====================================  ==================
    ``kind``        ``at``                      answer                                 of all
    ==============  ==========================  =====================================  ==================
    ``count``                                   how many numbers there are             sum
    ``sum``                                     their exact sum, an expansion          exact sum
    ``exponent``    centres                     the largest e with 2^e <= abs(x - c)   largest
    ``squares``     centres, units              exact sum of ((x - c) / u)^2           exact sum
    ``least``                                   the smallest number, or infinity       smallest
    ``largest``                                 the largest number, or -infinity       largest
    ``size``                                    the largest abs(x) of all columns      largest
    ``below``       thresholds, shape (n, d)    how many numbers are at most these     sum
    ``words``                                   the categories of each column          union
    ==============  ==========================  =====================================  ==================
    """

    kind: str
    at: tuple[np.ndarray, ...] = ()


KINDS = {
    "count": "sum",
    "below": "sum",
    "sum": "exact sum",
    "squares": "exact sum",
    "least": "smallest",
    "largest": "largest",
    "exponent": "largest",
    "size": "largest",
}
"""How the answers to a question in numbers are combined."""

NOTHING = float(-(2**20))  # the exponent of a column without a number beside its centre


class Numbers:
    """Rows that answer questions in numbers.

    Parameters
    ----------
    X : array, shape (m, d)
        Features in float64 or float32; NaN where one is missing.

    Examples
    --------
    >>> rows = Numbers(np.array([[1.0, np.nan], [4.0, 2.0]]))
    >>> rows.answer(Question("count")).tolist(), rows.answer(Question("sum")).tolist()
    ([[2.0, 1.0]], [[5.0, 2.0]])
    """

    def __init__(self, X: np.ndarray) -> None:
        self.X = X
        self._has_gaps = bool(X.size) and bool(np.isnan(X.min()))
        self._sorted: np.ndarray | None = None

    def answer(self, question: Question) -> np.ndarray:
        """Return the answer of these rows."""
        return getattr(self, f"_{question.kind}")(*question.at)

    def _count(self) -> np.ndarray:
        if not self._has_gaps:
            return np.full((1, self.X.shape[1]), float(self.X.shape[0]))
        return np.concatenate([(~np.isnan(x)).sum(axis=0) for x in self._columns()])[None, :].astype(np.float64)

    def _sum(self) -> np.ndarray:
        return self._side_by_side(lambda x, _: self._filled(x.astype(np.float64)))

    def _exponent(self, centres: np.ndarray) -> np.ndarray:
        found = np.full(self.X.shape[1], NOTHING)
        for x, own in self._pieces():
            differences = self._filled(x - centres[own].astype(x.dtype))
            largest = np.maximum(differences.max(axis=0), -differences.min(axis=0)).astype(np.float64)
            found[own] = np.maximum(found[own], np.where(largest > 0, np.frexp(largest)[1] - 1.0, NOTHING))
        return found[None, :]

    def _squares(self, centres: np.ndarray, units: np.ndarray) -> np.ndarray:
        def of(x: np.ndarray, own: slice) -> np.ndarray:
            quotients = x - centres[own].astype(x.dtype)
            quotients /= units[own].astype(x.dtype)
            squares = self._filled(quotients).astype(np.float64, copy=False)
            squares *= squares
            return squares

        return self._side_by_side(of)

    def _least(self) -> np.ndarray:
        return -self._extremes(-1)

    def _largest(self) -> np.ndarray:
        return self._extremes(1)

    def _size(self) -> np.ndarray:
        return np.array([[max(np.max(self._extremes(sign), initial=0.0) for sign in (-1, 1))]])

    def _extremes(self, sign: int) -> np.ndarray:
        gap = -sign * np.inf
        found = [np.max(sign * np.where(np.isnan(x), gap, x), axis=0, initial=-np.inf) for x in self._columns()]
        return np.concatenate(found)[None, :].astype(np.float64)

    def _below(self, thresholds: np.ndarray) -> np.ndarray:
        if self._sorted is None:
            self._sorted = np.sort(self.X, axis=0)  # NaN at the end
        sides = zip(self._sorted.T, thresholds.T, strict=True)
        return np.stack([np.searchsorted(x, t.astype(np.float64), side="right") for x, t in sides], axis=1) * 1.0

    def _columns(self) -> Iterator[np.ndarray]:
        for start in range(0, self.X.shape[1], WIDTH):
            yield self.X[:, start : start + WIDTH]

    def _pieces(self) -> Iterator[tuple[np.ndarray, slice]]:
        for start in range(0, self.X.shape[1], WIDTH):
            own = slice(start, min(start + WIDTH, self.X.shape[1]))
            yield from ((piece, own) for piece in self._rows_of(own))

    def _rows_of(self, own: slice) -> Iterator[np.ndarray]:
        step = PIECE // (own.stop - own.start)
        for start in range(0, self.X.shape[0], step):
            yield self.X[start : start + step, own]

    def _filled(self, x: np.ndarray) -> np.ndarray:
        """Put zeros in the place of what is missing."""
        if self._has_gaps:
            x[np.isnan(x)] = 0
        return x

    def _side_by_side(self, of: Callable[[np.ndarray, slice], np.ndarray]) -> np.ndarray:
        """Return the exact sums of what a function makes of some rows and columns, each time in a new array."""
        found, d = [], self.X.shape[1]
        for start in range(0, d, WIDTH):
            own = slice(start, min(start + WIDTH, d))
            terms = (of(piece, own) for piece in self._rows_of(own))
            found.append(expansion(terms, own.stop - own.start))
        sums = np.zeros((max(map(len, found), default=1), d))
        for place, part in enumerate(found):
            sums[: len(part), place * WIDTH : place * WIDTH + part.shape[1]] = part
        return sums


def combined(question: Question, answers: Sequence[np.ndarray]) -> np.ndarray:
    """Return what answers come to; it does not depend on their order, nor on who had which rows.

    >>> combined(Question("largest"), [np.array([[1.0, 5.0]]), np.array([[3.0, 2.0]])]).tolist()
    [[3.0, 5.0]]
    """
    how = KINDS[question.kind]
    if how == "exact sum":
        return sum_of_expansions(answers, answers[0].shape[1])
    together = np.stack(answers)
    return {"sum": together.sum, "smallest": together.min, "largest": together.max}[how](axis=0)


def asked_of_peers(rows: Any, peers: Communicator) -> Callable[[Question], np.ndarray]:
    """Return what asks the rows of all processes; each calls it with the same questions.

    Parameters
    ----------
    rows : Numbers
        Those of this process.
    peers : Communicator
        The processes.
    """

    def ask(question: Question) -> np.ndarray:
        with peers.together():  # numbers may be too large in one of them
            own = rows.answer(question)
        if peers.size == 1:
            return combined(question, [own])
        answers = peers.collected(own)
        total = np.zeros((0, own.shape[1])) if answers is None else combined(question, answers)
        length = int(peers.shared(np.array([len(total)]))[0])
        return peers.shared(total if len(total) else np.zeros((length, own.shape[1])))

    return ask


def require_sound(question: Question, found: np.ndarray, columns: int) -> None:
    """Refuse an answer that no rows can give: sites may lie.

    Raises
    ------
    ValueError
        If it is one; the sentence says why, without a full stop.
    """
    kind, width = question.kind, 1 if question.kind == "size" else columns
    rows = {"below": len(question.at[0]) if question.at else 0}.get(kind, 1)
    fits = found.dtype == np.float64 and found.ndim == 2 and found.shape[1] == width and len(found) > 0
    require(fits and (KINDS[kind] == "exact sum" or len(found) == rows), f"its answer to {kind} has another shape")
    free = {"least": np.inf, "largest": -np.inf}.get(kind, 0.0)  # of a column without numbers
    sizes = np.abs(np.where(found == free, 0.0, found))
    require(np.isfinite(sizes).all(), f"its answer to {kind} is not finite")
    require((sizes <= LARGEST * 2.0**20).all(), f"its answer to {kind} is too large")
    if kind in ("count", "below", "exponent"):
        require((found % 1 == 0).all(), f"its answer to {kind} must be whole numbers")
    require(kind != "exponent" or (found < 1024).all(), "its answer to exponent is too large")
    if kind in ("count", "below", "squares", "size"):
        require((found.sum(axis=0) >= 0).all(), f"its answer to {kind} must not be negative")
