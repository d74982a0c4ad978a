r"""Attacks on claims: a search, among small problems, for one where what a claim measures exceeds its bound.

A *generator* makes a case of :class:`Parameters`: it reads as many real numbers as it needs and turns them into a
problem and the hyperparameters of a method, within the assumptions of the claim. :func:`attack` maximises the
logarithm of the worst ratio measured/bound by a local search with random restarts: each begins at the best of a few
random points and goes on by Powell's method.

A ratio above 1 is called a violation only if it exceeds 1 by a millionth, and does so at every one of a few points
nearby, at a distance of 1e-10: rounding does not. Cases outside the assumptions never count. To find nothing proves
nothing; it says how near the search came to the bound.

Needs the extra ``testing``.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from dualopt.arrays._checks import require, require_at_least
from dualopt.arrays._extras import optional
from dualopt.lab.claims import Claim, Verdict, check
from dualopt.runs._workers import ENDED, Limit, Workers

__all__ = ["Attack", "Generator", "Parameters", "attack"]

minimize = optional("scipy.optimize", "dualopt.lab.attack").minimize

RANDOM_POINTS = 20  # before each local search
POINTS_PER_PARAMETER = 60  # of a local search
REACH = 4.0  # parameters stay in [-REACH, REACH]
CLEAR = math.log(10.0)  # logarithm of a ratio that no rounding explains: a local search ends there
LOWEST = -100.0  # logarithms of ratios below this count as this
LEAST = math.log1p(1e-6)  # logarithm of the ratio that a violation exceeds
NEIGHBOURS = 8
NEARBY = 1e-10


class Parameters:
    r"""Real numbers to be read one after the other, standard normal ones at a random point.

    Parameters
    ----------
    values : iterable of float
        The numbers.

    Attributes
    ----------
    taken : list of float
        What has been read.

    Examples
    --------
    >>> parameters = Parameters([0.0, 0.0, 1.5, -0.5])
    >>> parameters.between(0.0, 4.0), parameters.magnitude(0.01, 100.0), parameters.reals(2).tolist()
    (2.0, 1.0, [1.5, -0.5])
    """

    def __init__(self, values: Iterable[float]) -> None:
        self._values = iter(values)
        self.taken: list[float] = []

    def real(self) -> float:
        """Return the next number.

        Raises
        ------
        ValueError
            If there is none.
        """
        value = next(self._values, None)
        if value is None:
            raise ValueError(f"generator must read as many numbers for every case, not more than {len(self.taken)}.")
        self.taken.append(float(value))
        return self.taken[-1]

    def reals(self, *shape: int) -> np.ndarray:
        """Return an array of the next numbers."""
        return np.array([self.real() for _ in range(math.prod(shape))]).reshape(shape)

    def between(self, low: float, high: float) -> float:
        r"""Return a number of ``[low, high]``, both ends included: bounds are often tight at an end.

        It is :math:`\text{low} + (\text{high} - \text{low})(1 + \sin x)/2`.
        """
        return low + (high - low) * 0.5 * (1.0 + math.sin(self.real()))

    def magnitude(self, low: float, high: float) -> float:
        """Return a number of ``[low, high]``, all orders of magnitude alike."""
        return low * (high / low) ** self.between(0.0, 1.0)

    def symmetric(self, eigenvalues: Sequence[float]) -> np.ndarray:
        """Return a symmetric matrix with these eigenvalues, turned by an angle in every pair of directions.

        Examples
        --------
        >>> Parameters([np.pi / 4]).symmetric([1.0, 3.0]).round(12).tolist()
        [[2.0, 1.0], [1.0, 2.0]]
        """
        A = np.diag(np.asarray(eigenvalues, dtype=float))
        for i, j in zip(*np.tril_indices(len(A), -1), strict=True):
            angle, turn = self.real(), np.eye(len(A))
            turn[[i, j], [i, j]], turn[i, j], turn[j, i] = math.cos(angle), -math.sin(angle), math.sin(angle)
            A = turn @ A @ turn.T
        return 0.5 * (A + A.T)


Generator = Callable[[Parameters], Any]
"""Makes a case of parameters, always of the same number of them."""


@dataclass(frozen=True, kw_only=True)
class Attack:
    """What a search has found.

    Attributes
    ----------
    claim : str
        Name of the claim.
    violated : bool
        Whether a violation was found.
    ratio : float
        The largest ratio measured/bound; 0 when none was found.
    point : tuple of float
        The parameters that give it; of a violation with as few digits as show it clearly.
    generator : int
        Which generator reads them.
    verdict : Verdict, optional
        The verdict there.
    evaluations, rejected, starts : int
        Cases that were looked at; how many of them did not count, because they were outside the assumptions, could not
        be compared, or exceeded the bound by rounding; local searches.
    seconds : float
        What it took.
    interrupted : bool
        Whether Ctrl-C ended it.
    """

    claim: str
    violated: bool = False
    ratio: float = 0.0
    point: tuple[float, ...] = ()
    generator: int = 0
    verdict: Verdict | None = None
    evaluations: int = 0
    rejected: int = 0
    starts: int = 0
    seconds: float = 0.0
    interrupted: bool = False

    def __str__(self) -> str:
        if self.violated and self.verdict is not None:
            return f"violated: ratio {self.ratio:.6g} at {self.verdict.witness}"
        return f"no violation found in {self.evaluations} evaluations, largest ratio {self.ratio:.6g}"


def attack(
    claim: Claim,
    generators: Generator | Sequence[Generator],
    *,
    evaluations: int | None = None,
    seconds: float | None = None,
    seed: int = 0,
    jobs: int = 1,
    report: Callable[[Attack], Any] | None = None,
) -> Attack:
    """Look for a violation of a claim.

    The search ends with the first local search that finds one, or with its budget; Ctrl-C ends it, too, and what was
    found is returned. With one job and a budget of evaluations, the result depends on the seed alone.

    Parameters
    ----------
    claim : Claim
        What is attacked.
    generators : callable or sequence of callable
        Each makes a case of :class:`Parameters`, or None where there is none. Of several, such as problems of several
        sizes, local searches take turns.
    evaluations : int, optional
        Largest number of cases to look at.
    seconds : float, optional
        Time to spend; the case at hand is finished.
    seed : int, default 0
        Seed of the random points.
    jobs : int, default 1
        Number of processes; 1 computes in this one. For more, claim and generators must pickle, as functions of modules
        do, and the main module must be one that can be imported.
    report : callable, optional
        Called after each local search with what is known so far.

    Returns
    -------
    Attack
        With the worst case.

    Raises
    ------
    ValueError
        If an argument is out of range.
    MemoryError
        If a process is killed, which systems do that run out of memory.

    Examples
    --------
    Gradient descent on two curvatures, claimed to halve errors with any step below 2/L:

    >>> from dualopt.lab.claims import Claim, Inequality
    >>> halves = Claim(
    ...     name="halves",
    ...     source="an example",
    ...     statement=r"max_i |1 - s l_i| <= 1/2 for s < 2/L",
    ...     compare=lambda case: [Inequality(1, max(abs(1 - case["s"] * l) for l in case["l"]), 0.5)],
    ...     assumptions=lambda case: [] if case["s"] < 2 / max(case["l"]) else ["s < 2/L"],
    ... )
    >>> def descent(parameters):
    ...     curvatures = [parameters.magnitude(0.1, 10) for _ in range(2)]
    ...     return {"l": curvatures, "s": parameters.between(0, 2)}
    >>> found = attack(halves, descent, evaluations=200)
    >>> found.violated, 1.5 < found.ratio <= 2
    (True, True)
    >>> case = descent(Parameters(found.point))
    >>> check(halves, case).worst_ratio == found.ratio
    True
    """
    require_at_least(1, evaluations=evaluations)
    require(seconds is None or seconds > 0, "seconds must be positive", seconds)
    require(evaluations is not None or seconds is not None, "evaluations or seconds must be given", "neither")
    require_at_least(1, jobs=jobs)
    require_at_least(0, seed=seed)
    several = [generators] if callable(generators) else list(generators)
    require(several, "generators must hold at least one", "none")
    search = _Search(claim, several, seed)
    plan = _Plan(search, evaluations)
    began = time.monotonic()
    found = Attack(claim=claim.name)

    def over() -> bool:
        return found.violated or found.interrupted or (seconds is not None and time.monotonic() > began + seconds)

    results = Workers(search.restart, jobs).results(plan.next_start, over)
    with closing(results), threadpool_limits(limits=1):  # the matrices are small
        try:
            for start, best in results:
                plan.refund(start, best)
                found = search.add(found, best, time.monotonic() - began)
                if report is not None:
                    report(found)
        except KeyboardInterrupt:
            found = replace(found, interrupted=True)
    return found


class _Start(NamedTuple):
    """A local search to be made."""

    number: int
    allowed: int  # evaluations


@dataclass
class _Best:
    """The largest ratio that a local search has met."""

    generator: int
    score: float = -math.inf  # logarithm of the ratio
    point: tuple[float, ...] = ()
    evaluations: int = 0
    rejected: int = 0
    interrupted: bool = False


class _Over(Exception):
    """Ends a local search."""


@dataclass(frozen=True)
class _Search:
    """What all local searches have in common."""

    claim: Claim
    generators: Sequence[Generator]
    seed: int

    def count_parameters(self, start: int) -> int:
        """Return how many parameters the generator of a start reads."""
        return len(self._random_point(start % len(self.generators), self._rng(start)))

    def restart(self, start: _Start, limit: Limit) -> _Best:
        """Search locally from the best of a few random points."""
        rng = self._rng(start.number)
        best = _Best(start.number % len(self.generators))

        def loss(point: Sequence[float]) -> float:
            if best.evaluations >= start.allowed or limit() == ENDED:
                raise _Over
            best.evaluations += 1
            score = self._score(best.generator, point)
            if score > max(best.score, LEAST):
                best.evaluations += NEIGHBOURS
                score = score if self._is_robust(best.generator, point) else -math.inf
            best.rejected += score == -math.inf
            if score > best.score:
                best.score, best.point = score, tuple(map(float, point))
            if best.score >= CLEAR:
                raise _Over
            return -max(score, LOWEST)

        try:
            for _ in range(RANDOM_POINTS):
                loss(self._random_point(best.generator, rng))
            if best.point:
                bounds = [(-REACH, REACH)] * len(best.point)
                minimize(loss, best.point, method="Powell", bounds=bounds, options={"xtol": 1e-4, "ftol": 1e-6})
        except _Over:
            pass
        except KeyboardInterrupt:
            best.interrupted = True
        return best

    def add(self, found: Attack, best: _Best, seconds: float) -> Attack:
        """Return what is known with one more local search."""
        counted = replace(
            found,
            evaluations=found.evaluations + best.evaluations,
            rejected=found.rejected + best.rejected,
            starts=found.starts + 1,
            seconds=seconds,
            interrupted=found.interrupted or best.interrupted,
        )
        if best.score <= (math.log(found.ratio) if found.ratio > 0 else -math.inf):
            return counted
        violated = best.score > LEAST
        point = self._rounded(best) if violated else best.point
        verdict = self._verdict(best.generator, point)
        ratio = 0.0 if verdict is None else verdict.worst_ratio
        return replace(counted, violated=violated, ratio=ratio, point=point, generator=best.generator, verdict=verdict)

    def _rounded(self, best: _Best) -> tuple[float, ...]:
        """Round a violation to the fewest digits at which the logarithm of its ratio is at least half as large.

        Where that is infinite, ten is as clear as can be asked for.
        """
        half = 0.5 * best.score if math.isfinite(best.score) else CLEAR
        for digits in range(17):
            point = tuple(round(x, digits) + 0.0 for x in best.point)  # no -0.0
            clear = self._score(best.generator, point) > max(half, LEAST)
            if clear and self._is_robust(best.generator, point):
                return point
        return best.point

    def _is_robust(self, generator: int, point: Sequence[float]) -> bool:
        """Tell whether a violation is one at every point nearby, so that rounding does not explain it."""
        moves = np.random.default_rng(0).standard_normal((NEIGHBOURS, len(point)))
        return all(self._score(generator, moved) > LEAST for moved in point + NEARBY * moves)

    def _score(self, generator: int, point: Sequence[float]) -> float:
        """Return the logarithm of the worst ratio; minus infinity where there is none."""
        verdict = self._verdict(generator, point)
        if verdict is None or not verdict.worst_ratio > 0:
            return -math.inf
        return math.log(verdict.worst_ratio)

    def _verdict(self, generator: int, point: Sequence[float]) -> Verdict | None:
        if not len(point):
            return None
        try:
            with np.errstate(all="ignore"):  # what diverges is a violation, not a mistake
                case = self.generators[generator](Parameters(point))
                return None if case is None else check(self.claim, case)
        except np.linalg.LinAlgError:  # such as a singular problem
            return None

    def _random_point(self, generator: int, rng: np.random.Generator) -> tuple[float, ...]:
        """Return the parameters of a random case."""
        parameters = Parameters(min(max(rng.standard_normal(), -REACH), REACH) for _ in count())
        try:
            with np.errstate(all="ignore"):
                self.generators[generator](parameters)
        except np.linalg.LinAlgError:
            pass
        return tuple(parameters.taken)

    def _rng(self, start: int) -> np.random.Generator:
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(start,)))


class _Plan:
    """Numbers the starts, and deals out the evaluations among them."""

    def __init__(self, search: _Search, evaluations: int | None) -> None:
        self._search = search
        self._number = 0
        self._left = math.inf if evaluations is None else evaluations

    def next_start(self) -> _Start | None:
        """Return a start; None while there are no evaluations left."""
        if self._left <= 0:
            return None
        number, self._number = self._number, self._number + 1
        wanted = RANDOM_POINTS + POINTS_PER_PARAMETER * self._search.count_parameters(number)
        allowed = int(min(wanted, self._left))
        self._left -= allowed
        return _Start(number, allowed)

    def refund(self, start: _Start, best: _Best) -> None:
        """Take back the evaluations that a local search has not used."""
        self._left += start.allowed - best.evaluations
