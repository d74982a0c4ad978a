r"""Attacks on claims: a search, among small problems, for one where what a claim measures exceeds its bound.

A *family* makes cases of :class:`Numbers`: it reads as many real numbers as it needs and turns them into a problem and
the parameters of a method, within the assumptions of the claim. :func:`attack` then maximises the logarithm of the
worst ratio measured/bound: from the best of a few random cases, by Powell's method, again and again.

A ratio above 1 is called a violation only if it exceeds 1 by a millionth, and does so at every one of a few cases
nearby, ten digits away: rounding does not. Cases outside the assumptions never count. To find nothing proves nothing;
it says how near the search came to the bound.

Needs the extra ``testing``.
"""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import count
from multiprocessing import get_context
from typing import Any

import numpy as np
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits

from dualopt.claims import Claim, Verdict, check

__all__ = ["Attack", "Family", "Numbers", "attack"]

TRIES = 20  # random cases before each climb
CLIMB = 60  # cases of a climb for each number that the family reads
REACH = 4.0  # numbers stay in [-REACH, REACH]
CLEAR = math.log(10.0)  # a climb ends where the logarithm of the ratio is so large: nobody doubts such a violation
LOWEST = -100.0  # logarithms of ratios below this are not told apart
LEAST = math.log1p(1e-6)  # logarithm of the ratio that a violation exceeds
NEIGHBOURS = 8
NEARBY = 1e-10
TICK = 0.2  # seconds between two looks at the clock


class Numbers:
    r"""Real numbers to be read one after the other, standard normal ones where a climb starts.

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
    >>> numbers = Numbers([0.0, 0.0, 1.5, -0.5])
    >>> numbers.between(0.0, 4.0), numbers.magnitude(0.01, 100.0), numbers.reals(2).tolist()
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
            raise ValueError(f"family must read as many numbers for every case, not more than {len(self.taken)}.")
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
        >>> Numbers([np.pi / 4]).symmetric([1.0, 3.0]).round(12).tolist()
        [[2.0, 1.0], [1.0, 2.0]]
        """
        A = np.diag(np.asarray(eigenvalues, dtype=float))
        for i, j in zip(*np.tril_indices(len(A), -1), strict=True):
            angle, turn = self.real(), np.eye(len(A))
            turn[[i, j], [i, j]], turn[i, j], turn[j, i] = math.cos(angle), -math.sin(angle), math.sin(angle)
            A = turn @ A @ turn.T
        return 0.5 * (A + A.T)


Family = Callable[[Numbers], Any]
"""Makes a case of numbers, always of the same count."""


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
    vector : tuple of float
        The numbers that give it; of a violation with as few digits as show it clearly.
    family : int
        Which family reads them.
    verdict : Verdict, optional
        The verdict there.
    evaluations, rejected, starts : int
        Cases that were looked at; how many of them did not count, because they were outside the assumptions, could not
        be compared, or exceeded the bound by rounding; climbs.
    seconds : float
        What it took.
    interrupted : bool
        Whether Ctrl-C ended it.
    """

    claim: str
    violated: bool = False
    ratio: float = 0.0
    vector: tuple[float, ...] = ()
    family: int = 0
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
    families: Family | Sequence[Family],
    *,
    evaluations: int | None = None,
    seconds: float | None = None,
    seed: int = 0,
    jobs: int = 1,
    report: Callable[[Attack], Any] | None = None,
) -> Attack:
    """Look for a violation of a claim.

    The search ends with the first climb that finds one, or with its budget; Ctrl-C ends it, too, and what was found is
    returned. With one job and a budget of evaluations, the result depends on the seed alone.

    Parameters
    ----------
    claim : Claim
        What is attacked.
    families : callable or sequence of callable
        Where: each makes a case of :class:`Numbers`, or None where there is none. Of several, such as problems of
        several sizes, the climbs take turns.
    evaluations : int, optional
        Largest number of cases to look at.
    seconds : float, optional
        Time to spend; the case at hand is finished.
    seed : int, default 0
        Seed of the starts.
    jobs : int, default 1
        Number of processes; 1 computes in this one. For more, claim and families must pickle, as functions of modules
        do, and the main module must be one that can be imported.
    report : callable, optional
        Called after each climb with what is known so far.

    Returns
    -------
    Attack
        With the worst case.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Examples
    --------
    Gradient descent on two curvatures, claimed to halve errors with any step below 2/L:

    >>> from dualopt.claims import Claim, Comparison
    >>> halves = Claim(
    ...     name="halves",
    ...     source="an example",
    ...     statement=r"max_i |1 - s l_i| <= 1/2 for s < 2/L",
    ...     compare=lambda case: [Comparison(1, max(abs(1 - case["s"] * l) for l in case["l"]), 0.5)],
    ...     assumptions=lambda case: [] if case["s"] < 2 / max(case["l"]) else ["s < 2/L"],
    ... )
    >>> def descent(numbers):
    ...     return {"l": [numbers.magnitude(0.1, 10), numbers.magnitude(0.1, 10)], "s": numbers.between(0, 2)}
    >>> found = attack(halves, descent, evaluations=200)
    >>> found.violated, 1.5 < found.ratio <= 2
    (True, True)
    >>> case = descent(Numbers(found.vector))
    >>> check(halves, case).worst_ratio == found.ratio
    True
    """
    _require(evaluations is None or evaluations >= 1, "evaluations must be at least 1", evaluations)
    _require(seconds is None or seconds > 0, "seconds must be positive", seconds)
    _require(evaluations is not None or seconds is not None, "evaluations or seconds must be given", "neither")
    _require(jobs >= 1, "jobs must be at least 1", jobs)
    _require(seed >= 0, "seed must be at least 0", seed)
    several = [families] if callable(families) else list(families)
    _require(several, "families must hold at least one", "none")
    search = _Search(claim, several, seed)
    began = time.monotonic()
    found = Attack(claim=claim.name)

    def over() -> bool:
        return found.violated or found.interrupted or (seconds is not None and time.monotonic() > began + seconds)

    plan = _Plan(search, evaluations)
    climbs = _in_turn(search, plan, over) if jobs == 1 else _in_processes(search, plan, over, jobs)
    with closing(climbs), threadpool_limits(limits=1):  # the matrices are small
        for climb in climbs:
            found = search.add(found, climb, time.monotonic() - began)
            if report is not None:
                report(found)
    return found


@dataclass
class _Climb:
    """One start: the largest ratio that it has met."""

    family: int
    allowed: int  # evaluations
    score: float = -math.inf  # logarithm of the ratio
    vector: tuple[float, ...] = ()
    evaluations: int = 0
    rejected: int = 0
    interrupted: bool = False


class _Over(Exception):
    """Ends a climb."""


@dataclass(frozen=True)
class _Search:
    """What all climbs have in common."""

    claim: Claim
    families: Sequence[Family]
    seed: int

    def size(self, start: int) -> int:
        """Return how many numbers the family of a start reads."""
        return len(self._draw(start % len(self.families), self._generator(start)))

    def climb(self, start: int, allowed: int, over: Callable[[], bool]) -> _Climb:
        """Go uphill from the best of a few random cases."""
        rng = self._generator(start)
        climb = _Climb(start % len(self.families), allowed)

        def loss(vector: Sequence[float]) -> float:
            if climb.evaluations >= allowed or over():
                raise _Over
            climb.evaluations += 1
            score = self._score(climb.family, vector)
            if score > max(climb.score, LEAST):
                climb.evaluations += NEIGHBOURS
                score = score if self._stands(climb.family, vector) else -math.inf
            climb.rejected += score == -math.inf
            if score > climb.score:
                climb.score, climb.vector = score, tuple(map(float, vector))
            if climb.score >= CLEAR:
                raise _Over
            return -max(score, LOWEST)

        try:
            for _ in range(TRIES):
                loss(self._draw(climb.family, rng))
            if climb.vector:
                bounds = [(-REACH, REACH)] * len(climb.vector)
                minimize(loss, climb.vector, method="Powell", bounds=bounds, options={"xtol": 1e-4, "ftol": 1e-6})
        except _Over:
            pass
        except KeyboardInterrupt:
            climb.interrupted = True
        return climb

    def add(self, found: Attack, climb: _Climb, seconds: float) -> Attack:
        """Return what is known with one more climb."""
        told = replace(
            found,
            evaluations=found.evaluations + climb.evaluations,
            rejected=found.rejected + climb.rejected,
            starts=found.starts + 1,
            seconds=seconds,
            interrupted=found.interrupted or climb.interrupted,
        )
        violated = climb.score > LEAST
        better = climb.score > (math.log(found.ratio) if found.ratio > 0 else -math.inf)
        if not better:
            return told
        vector = self._plain(climb) if violated else climb.vector
        verdict = self._verdict(climb.family, vector)
        ratio = 0.0 if verdict is None else verdict.worst_ratio
        return replace(told, violated=violated, ratio=ratio, vector=vector, family=climb.family, verdict=verdict)

    def _plain(self, climb: _Climb) -> tuple[float, ...]:
        """Round a violation to the fewest digits at which the logarithm of its ratio is at least half as large."""
        for digits in range(17):
            vector = tuple(round(x, digits) + 0.0 for x in climb.vector)  # no -0.0
            clear = self._score(climb.family, vector) > max(0.5 * climb.score, LEAST)
            if clear and self._stands(climb.family, vector):
                return vector
        return climb.vector

    def _stands(self, family: int, vector: Sequence[float]) -> bool:
        """Tell whether a violation is one at every case nearby, so that rounding does not explain it."""
        moves = np.random.default_rng(0).standard_normal((NEIGHBOURS, len(vector)))
        return all(self._score(family, move) > LEAST for move in vector + NEARBY * moves)

    def _score(self, family: int, vector: Sequence[float]) -> float:
        """Return the logarithm of the worst ratio; minus infinity where there is none."""
        verdict = self._verdict(family, vector)
        if verdict is None or not verdict.worst_ratio > 0:
            return -math.inf
        return math.log(verdict.worst_ratio)

    def _verdict(self, family: int, vector: Sequence[float]) -> Verdict | None:
        if not len(vector):
            return None
        try:
            with np.errstate(all="ignore"):  # what diverges is a violation, not a mistake
                case = self.families[family](Numbers(vector))
                return None if case is None else check(self.claim, case)
        except np.linalg.LinAlgError:  # such as a singular problem
            return None

    def _draw(self, family: int, rng: np.random.Generator) -> tuple[float, ...]:
        """Return the numbers of a random case."""
        numbers = Numbers(min(max(rng.standard_normal(), -REACH), REACH) for _ in count())
        try:
            with np.errstate(all="ignore"):
                self.families[family](numbers)
        except np.linalg.LinAlgError:
            pass
        return tuple(numbers.taken)

    def _generator(self, start: int) -> np.random.Generator:
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(start,)))


class _Plan:
    """Numbers the starts, and deals out the evaluations among them."""

    def __init__(self, search: _Search, evaluations: int | None) -> None:
        self._search = search
        self._start = 0
        self._left = math.inf if evaluations is None else evaluations

    def next(self) -> tuple[int, int] | None:
        """Return a start and how many cases it may look at; None when there are none left."""
        if self._left <= 0:
            return None
        start, self._start = self._start, self._start + 1
        allowed = int(min(TRIES + CLIMB * self._search.size(start), self._left))
        self._left -= allowed
        return start, allowed

    def settle(self, climb: _Climb) -> _Climb:
        """Take back what a climb has not used."""
        self._left += climb.allowed - climb.evaluations
        return climb


def _in_turn(search: _Search, plan: _Plan, over: Callable[[], bool]) -> Generator[_Climb, None, None]:
    while not over() and (planned := plan.next()) is not None:
        yield plan.settle(search.climb(*planned, over))


def _in_processes(search: _Search, plan: _Plan, over: Callable[[], bool], jobs: int) -> Generator[_Climb, None, None]:
    context = get_context("spawn")  # threads of the linear algebra do not survive a fork
    ended: Any = context.Value("b", False, lock=False)  # written here, read by the processes
    interrupted, running = False, set()
    with ProcessPoolExecutor(jobs, mp_context=context, initializer=_begin, initargs=(search, ended)) as pool:
        try:
            while True:
                ended.value = interrupted or over()
                while not ended.value and len(running) < jobs and (planned := plan.next()) is not None:
                    running.add(pool.submit(_run, *planned))
                if not running:
                    return
                try:
                    done, running = wait(running, timeout=TICK, return_when=FIRST_COMPLETED)
                except KeyboardInterrupt:
                    done, interrupted = set(), True
                for future in done:
                    yield replace(plan.settle(future.result()), interrupted=interrupted)
        finally:
            ended.value = True  # climbs end with the case at hand


_process: Any = None  # of a worker: the search and the shared flag


def _begin(search: _Search, ended: Any) -> None:
    global _process
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that waits
    threadpool_limits(limits=1)
    _process = search, ended


def _run(start: int, allowed: int) -> _Climb:
    search, ended = _process
    return search.climb(start, allowed, lambda: bool(ended.value))


def _require(condition: Any, sentence: str, value: Any) -> None:
    if not condition:
        raise ValueError(f"{sentence}, not {value}.")
