"""A theorem as an object: where it is from, what it needs, of whom in which rounds, what falls, and how fast."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

from dualopt.arrays.xp import Array, array_namespace, asarray_like
from dualopt.methods._parameters import constants, largest, smallest, within
from dualopt.methods._pivotal import inclusion_probabilities
from dualopt.methods.compressors import Compressor, kept_part
from dualopt.methods.participation import (
    COHORTS,
    EVERYBODY,
    INDEPENDENT,
    SKIPPED,
    UNIFORM,
    Law,
    Participation,
    WeightedSubset,
    law_of,
)
from dualopt.objectives import Objective
from dualopt.objectives.local_problem import client_dot

__all__ = [
    "ALL",
    "ANY_LAW",
    "COIN",
    "DRAWN",
    "EQUALLY_WEIGHTED",
    "ONE_SIZE",
    "SMOOTH",
    "SMOOTH_STRONG",
    "STRONG",
    "SUBSETS",
    "Known",
    "Laws",
    "Need",
    "Theorem",
    "at_least",
    "at_most",
    "guarantee",
    "rounded_up",
    "same",
    "squares",
]


class Laws(NamedTuple):
    """Under which laws of participation a theorem holds: in words, and their names."""

    words: str
    names: frozenset[str]


ALL = Laws(EVERYBODY, frozenset({EVERYBODY}))
COIN = Laws("everybody, with communication by a coin or always", frozenset({EVERYBODY, SKIPPED}))
SUBSETS = Laws(UNIFORM, frozenset({EVERYBODY, UNIFORM}))
ONE_SIZE = Laws(COHORTS, frozenset({EVERYBODY, UNIFORM, COHORTS}))
ANY_LAW = Laws("clients drawn in every round anew", frozenset({EVERYBODY, UNIFORM, COHORTS, INDEPENDENT}))

DIGITS = 6  # of a printed factor


@dataclass(frozen=True)
class Known:
    """What a theorem may ask beside the parameters of a method: the clients, and the law by which they take part.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt import Quadratic, UniformSubset
    >>> f = Quadratic(A=np.array([[[1.0]], [[4.0]]]), b=np.zeros((2, 1)))
    >>> known = Known(f, UniformSubset(size=1).law(2))
    >>> known.mu, known.L, known.p
    (1.0, 4.0, 0.5)
    """

    objective: Objective
    law: Law
    compressor: Compressor | None = None  # what uploads go through

    @classmethod
    def of(
        cls, objective: Objective, participation: Participation | None = None, compressor: Compressor | None = None
    ) -> Known:
        """Return what is known of a run: everybody takes part where nothing is said of it."""
        if isinstance(participation, WeightedSubset) and participation.weights is None:
            participation = replace(participation, weights=objective.weights)
        return cls(objective, law_of(participation, objective.n_clients), compressor)

    @cached_property
    def mu(self) -> float:
        """The least strong convexity of a client."""
        return smallest(self.objective.mu)

    @cached_property
    def L(self) -> float:
        """The greatest smoothness constant of a client."""
        return largest(self.objective.L)

    @cached_property
    def bounds(self) -> list[tuple[float, float]]:
        """The constants of every client."""
        return constants(self.objective)

    @property
    def N(self) -> int:
        """Number of clients."""
        return self.objective.n_clients

    @property
    def p(self) -> float:
        """The least probability with which a client is active."""
        return min(self.law.inclusion)

    @cached_property
    def kept(self) -> float:
        """Which part of a compressed step both ends take; 1 without a compressor."""
        return kept_part(self.compressor, self.objective.shape, self.N)

    @cached_property
    def q(self) -> float:
        """By which part of a vector what arrives of it is off at most; 1 of compressors that do not say so."""
        delta = getattr(self.compressor, "delta", None)
        if self.compressor is None or self.compressor.unbiased or delta is None:
            return 1.0
        return math.sqrt(1.0 - delta(self.objective.shape, self.N))

    @cached_property
    def weights(self) -> tuple[float, ...]:
        """The weights of the clients in the mean, with the sum 1."""
        return self.objective.shares or (1.0 / self.N,) * self.N

    @property
    def equal(self) -> bool:
        """Whether all weights are equal."""
        return self.objective.shares is None

    @cached_property
    def drawn(self) -> tuple[float, ...]:
        r"""The probabilities :math:`\min(1, Kw_j)` of cohorts of this size that are drawn with the weights."""
        return inclusion_probabilities(self.weights, max(1, round(self.law.fraction * self.N)))

    def mean(self, numbers: Array) -> float:
        """Return the mean of numbers of the clients, shape ``(N,)``, with their weights."""
        return float(self.objective.mean(numbers))


def squares(x: Array, weights: Iterable[float] | None = None) -> float:
    """Return the sum of the squares of an array of clients, with one weight for each of them where there are any."""
    found = client_dot(x, x)
    if weights is not None:
        found = asarray_like(list(weights), found) * found
    return float(array_namespace(found).sum(found))


class Need(NamedTuple):
    """An assumption of a theorem, in words and as a test; ``limit`` is the number that the words end with."""

    words: str
    holds: Callable[[Any, Known], bool]
    limit: Callable[[Any, Known], float] | None = None

    def said(self, method: Any, known: Known) -> str:
        """Return the words, with the number."""
        return self.words if self.limit is None else f"{self.words} = {self.limit(method, known):.3g}"


def same(some: Sequence[float], others: Sequence[float]) -> bool:
    """Tell whether probabilities are the same, up to the rounding of the weights that they come from."""
    return all(math.isclose(p, q, rel_tol=1e-9) for p, q in zip(some, others, strict=True))


def at_most(parameter: str, words: str, limit: Callable[[Any, Known], float]) -> Need:
    """Return the assumption that a parameter is at most a limit, up to the rounding of what the limit is made of.

    Examples
    --------
    >>> at_most("nu", "mu", lambda method, known: known.mu).words
    'nu <= mu'
    """
    return Need(f"{parameter} <= {words}", lambda m, k: within(getattr(m, parameter), limit(m, k)), limit)


def at_least(parameter: str, words: str, limit: Callable[[Any, Known], float]) -> Need:
    """Return the assumption that a parameter is at least a limit, up to the rounding of what the limit is made of."""
    return Need(f"{parameter} >= {words}", lambda m, k: within(limit(m, k), getattr(m, parameter)), limit)


STRONG = Need("strongly convex clients", lambda m, k: k.mu > 0)
SMOOTH = Need("smooth clients", lambda m, k: math.isfinite(k.L))
SMOOTH_STRONG = Need("smooth and strongly convex clients", lambda m, k: k.mu > 0 and math.isfinite(k.L))
EQUALLY_WEIGHTED = Need("clients of equal weight", lambda m, k: k.equal)
DRAWN = Need("clients to be active in proportion to their weights", lambda m, k: same(k.law.inclusion, k.drawn))


@dataclass(frozen=True, kw_only=True)
class Theorem:
    r"""What is proved of a method, with exact local solutions.

    Attributes
    ----------
    source : str
        Where it is from: the paper's number, or the letter that :mod:`theory` has for it; empty where it has no name.
    needs : tuple of Need
        Its assumptions on parameters and constants.
    laws : Laws
        Under which laws of :mod:`dualopt.methods.participation` it holds: nothing is promised under another one.
    about : callable
        Whether it is about this form of the method and of the clients, such as equal weights; of others it is silent.
    compressed : bool
        Whether it is about uploads that go through a compressor, and about these alone.
    rate : str or callable
        What falls and how fast, in words, with ``{factor}`` where the factor belongs.
    factor : callable, optional
        By how much the expectation of the potential falls in ``rounds`` rounds; without a potential, the factor per
        round of a bound that has a constant before it.
    rounds : int
        In how many rounds.
    potential : callable, optional
        ``(method, known, theta, state, n)`` to the number whose expectation falls, for the minimiser ``theta`` and the
        state after n rounds; infinite where the theorem says nothing of the state.
    power : int, default 2
        Of the distances that the potential is made of: 1 where it is a norm, whose square falls by the squared factor.
    bound : callable, optional
        ``(method, known, theta, n)`` to what the expectation of :math:`|\theta^n - \theta^*|^2` is at most after n >= 1
        rounds from the start, for the minimiser ``theta``: what an order such as O(1/n^2) stands for.
    best : callable, optional
        The parameters with the least factor, from what is known.
    """

    source: str
    rate: str | Callable[[Any, Known], str]
    needs: tuple[Need, ...] = ()
    laws: Laws = ALL
    about: Callable[[Any, Known], bool] = lambda method, known: True
    compressed: bool = False
    factor: Callable[[Any, Known], float] | None = None
    rounds: int = 1
    potential: Callable[[Any, Known, Array, Any, int], float] | None = None
    power: int = 2
    bound: Callable[[Any, Known, Array, int], float] | None = None
    best: Callable[[Known], dict[str, float]] | None = None

    def concerns(self, method: Any, known: Known) -> bool:
        """Tell whether it is about this form of the method, of the clients and of their uploads."""
        return self.compressed == (known.compressor is not None) and self.about(method, known)

    def fails(self, method: Any, known: Known) -> str:
        """Return the first assumption that fails, in words; nothing if the theorem applies."""
        if known.law.name not in self.laws.names:
            return f"{self.laws.words}, not {known.law.name}"
        return next((need.said(method, known) for need in self.needs if not need.holds(method, known)), "")

    def suggests(self, known: Known) -> dict[str, float]:
        """Return the best parameters; none where it has no say."""
        return {} if self.best is None else self.best(known)

    def says(self, method: Any, known: Known) -> str:
        """Return what it says of a method to which it applies; a factor is rounded up."""
        words = self.rate if isinstance(self.rate, str) else self.rate(method, known)
        if self.factor is not None:
            words = words.replace("{factor}", rounded_up(self.factor(method, known)))
        return f"{self.source}: {words}" if self.source else words


def rounded_up(factor: float) -> str:
    """Return a factor in digits that are not below it, but for rounding.

    Examples
    --------
    >>> rounded_up(1.0 / 3.0), rounded_up(0.95 * 0.95)
    ('0.333334', '0.902500')
    """
    unit = 10.0**DIGITS
    return f"{math.ceil(factor * unit * (1.0 - 1e-12)) / unit:.{DIGITS}f}"


def guarantee(theorems: Iterable[Theorem], method: Any, known: Known, otherwise: str) -> str:
    """Return what all theorems that apply say; or "none", and what each of them lacks.

    ``otherwise`` is why there is none where no theorem is about this form of the method.
    """
    ours = [theorem for theorem in theorems if theorem.concerns(method, known)]
    if known.compressor is not None and not ours:
        return "none: no theorem covers its uploads with a compressor"
    lacks: dict[str, list[str]] = {}
    for theorem in ours:
        lacks.setdefault(theorem.fails(method, known), []).append(theorem.source or "its theorem")
    if "" in lacks:
        return "; ".join(t.says(method, known) for t in ours if not t.fails(method, known))
    needed = []
    for what, sources in lacks.items():
        names = list(dict.fromkeys(sources))
        needed.append(f"{' and '.join(names)} need{'s' if len(names) == 1 else ''} {what}")
    return f"none: {'; '.join(needed) or otherwise}"
