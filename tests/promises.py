"""What methods promise, held against exact expectations over everything that chance may do in a round.

A promise is a factor that is printed. For theorems with a potential it must be at least as large as the growth of its
expectation, from the states of paths and from the worst of all states in their affine hull, which satisfy what all
states of the method satisfy; for the others, at least as large as the rate of the exact mean squares of a long run.

On quadratic clients the rounds of most methods are affine maps of the state. A problem that stands many times side by
side, as coordinates of one, shows all columns of such a map in one round; what a map says of a state is compared with
a round of this state alone, and a method whose norms or decisions join the coordinates is followed state by state.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import combinations, product
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import qr
from scipy.stats import binom

import dualopt.methods
from dualopt.arrays.tree import leaves, tree_map
from dualopt.engine.rounds import State, initial_state
from dualopt.lab.chance import do_round
from dualopt.methods import Algorithm, Known, Theorem
from dualopt.methods._base import with_participation
from dualopt.methods.compressors import Compressor
from dualopt.methods.participation import (
    Bernoulli,
    CommunicateWithProbability,
    Full,
    Participation,
    Round,
    UniformSubset,
    WeightedSubset,
)
from dualopt.objectives import Quadratic
from dualopt.solvers import Exact
from dualopt.spec.discover import discover

__all__ = [
    "ALGORITHMS",
    "PROVED",
    "ROUNDED",
    "VISIBLE",
    "Outcome",
    "Promise",
    "Rounds",
    "broken",
    "completed",
    "difference",
    "exact",
    "mean_squares",
    "of_everybody",
    "outcomes",
    "promises",
    "quadratics",
]

ALGORITHMS = discover(dualopt.methods)
PROVED = [name for name, kind in ALGORITHMS.items() if kind.theorems]
SIMILAR = "where no Hessian is below their mean by more than the weight"  # which is for the user to know
PRINTED = re.compile(r"factor of (\d+\.\d+)")
ROUNDED = 1e-12  # of the largest potential seen
VISIBLE = 1e-9  # of it: below, rounding is a part of the smaller ones
AFFINE = 1e-9  # of the largest entry: how near a map and a round are that are the same
FOLLOWED = 3  # starts from which the potential is followed
LONG = 60  # rounds, whose mean squares show a rate
FAR = 10_000  # rounds, after which an order shows in its bound
LARGE = 64  # numbers of a state: its matrices are not worth their while
COMPARED = 5  # rounds at first, and then each fifth of them, are compared with one of a state alone
LATER = 7  # rounds, in which a map that depends on the number of the round has changed


# Clients and laws.


def quadratics(N: int, d: int, spread: float, seed: int, ends: bool = False) -> Quadratic:
    """Clients of which no two have the same curvatures, from 1 to ``spread``; or with no others than these ``ends``."""
    rng = np.random.default_rng(seed)
    A = []
    for j in range(N):
        Q, _ = np.linalg.qr(rng.standard_normal((d, d)))
        places = rng.uniform(0.0, math.log(spread), d)
        eigenvalues = np.exp(np.round(places / math.log(spread)) * math.log(spread) if ends else places)
        eigenvalues[0] = spread ** (round(j / max(N - 1, 1)) if ends else j / max(N - 1, 1))
        A.append((Q * eigenvalues) @ Q.T)
    return Quadratic(A=0.5 * (np.array(A) + np.array(A).transpose(0, 2, 1)), b=3.0 * rng.standard_normal((N, d)))


def side_by_side(f: Quadratic, times: int) -> Quadratic:
    """The same clients that many times, as coordinates of one model."""
    N, d = f.b.shape
    A = np.einsum("jab,kl->jkalb", f.A, np.eye(times)).reshape(N, times * d, times * d)
    return replace(f, A=A, b=np.tile(f.b, (1, times)))


class Outcome(NamedTuple):
    """A round, and how likely it is."""

    chance: float
    round: Round


def outcomes(who: Participation, N: int, n: int) -> list[Outcome]:
    """Everything that may happen in round n, with probabilities that add up to one."""
    law: list[tuple[float, tuple[int, ...], bool]]
    everybody = tuple(range(N))
    match who:
        case Full():
            law = [(1.0, everybody, True)]
        case UniformSubset(size=size):
            cohorts = list(combinations(everybody, size))
            law = [(1.0 / len(cohorts), cohort, True) for cohort in cohorts]
        case WeightedSubset():
            law = [(chance, cohort, True) for cohort, chance in who.cohorts(N).items()]
        case Bernoulli(probability=p):
            law = []
            for coins in product((True, False), repeat=N):
                chance = math.prod(p if coin else 1.0 - p for coin in coins)
                law.append((chance, tuple(j for j in everybody if coins[j]), True))
        case CommunicateWithProbability(probability=p):
            law = [(p, everybody, True), (1.0 - p, everybody, False)]
        case _:
            raise AssertionError(f"the outcomes of {who} are not listed")
    assert math.isclose(sum(chance for chance, *_ in law), 1.0)
    chances = who.law(N).inclusion
    common: dict[str, Any] = {"n": n, "n_clients": N, "seed": 0}
    common |= {"inclusion": chances} if len(set(chances)) > 1 else {}
    return [Outcome(p, Round(clients=clients, communicate=coin, **common)) for p, clients, coin in law if p > 0]


# States as vectors.


def _is_number(x: Any) -> bool:
    return isinstance(x, np.ndarray | np.generic) and x.dtype.kind == "f"


def rest(state: State) -> list[Any]:
    """What of a state is no array of numbers."""
    return [x for x in leaves(tuple(state[:3])) if not _is_number(x)]


def flat(state: State) -> np.ndarray:
    """All arrays of a state as one vector."""
    return np.concatenate([np.ravel(x) for x in leaves(tuple(state[:3])) if _is_number(x)])


def filled(like: State, z: np.ndarray) -> State:
    """The state with this vector; what is no array of numbers is that of ``like``."""
    at = 0

    def one(x: Any) -> Any:
        nonlocal at
        if not _is_number(x):
            return x
        at += x.size
        return z[at - x.size : at].reshape(x.shape)

    return State(*tree_map(one, tuple(like[:3])))


def same_kind(states: Sequence[State]) -> bool:
    """Whether states differ in arrays of finite numbers alone."""
    finite = all(np.isfinite(flat(state)).all() for state in states)
    return finite and all(rest(s) == rest(states[0]) for s in states)


def spanning(columns: np.ndarray) -> np.ndarray:
    """Which of the columns the others are combinations of, to rounding."""
    factors: Any = qr(columns, mode="economic", pivoting=True)
    _, R, order = factors
    sizes = np.abs(np.diag(R))
    return order[: int(np.sum(sizes > ROUNDED * sizes[0]))]


def columns_of(states: Sequence[State]) -> np.ndarray:
    """States as columns with a one below: combinations of states are those whose coefficients have the sum one."""
    return np.vstack([np.stack([flat(state) for state in states], axis=1), np.ones(len(states))])


# Rounds.


class Maps(NamedTuple):
    """What may happen in a round: chances, and matrices that act on a state with a one below it."""

    chances: list[float]
    matrices: list[np.ndarray]


@dataclass(frozen=True)
class Rounds:
    """The rounds of a method on a problem under a law."""

    method: Algorithm
    f: Quadratic
    who: Participation
    draws: tuple[Round, ...] = ()  # what chance gives to compressors, all equally likely
    busy: bool = False  # rounds with somebody active alone

    def outcomes(self, n: int) -> list[Outcome]:
        every = [Outcome(1.0 / len(self.draws), round) for round in self.draws]
        every = every or outcomes(self.who, self.f.n_clients, n)
        if not self.busy:
            return every
        found = [outcome for outcome in every if outcome.round.clients]
        likely = sum(chance for chance, _ in found)
        return [Outcome(chance / likely, round) for chance, round in found]

    def done(self, state: State, round: Round) -> State:
        return do_round(self.method, self.f, state, round)[0]

    @cached_property
    def start(self) -> State:
        """Where a run starts."""
        return initial_state(self.method, self.f, self.f.initial())

    @cached_property
    def affine(self) -> _Affine:
        return _Affine(self)

    @cached_property
    def _walks(self) -> dict[int, list[list[State]]]:
        return {}

    def _starts(self, count: int) -> list[State]:
        rng, f = np.random.default_rng(0), self.f
        starts = [initial_state(self.method, f, 10.0 * rng.standard_normal(f.shape)) for _ in range(count)]
        found = self.method.fixed_point(f, f.minimiser())
        return [*starts, State(*found)] if isinstance(found, tuple) else starts

    def states(self, n: int, count: int) -> list[State]:
        """States after n rounds, on ways of their own from random starts, and from where the method rests."""
        walks = self._walks.setdefault(count, [self._starts(count)])
        while len(walks) <= n:
            k, states = len(walks) - 1, walks[-1]
            every = self.outcomes(k)
            drawn = np.random.default_rng([k, count]).integers(len(every), size=len(states))
            maps, like = self._acting(states, k)
            if maps is None:
                new = [self.done(state, every[e].round) for state, e in zip(states, drawn, strict=True)]
            else:
                columns = columns_of(states).T
                new = [filled(like, maps.matrices[e][:-1] @ z) for z, e in zip(columns, drawn, strict=True)]
            walks.append(new)
        return walks[n]

    def _acting(self, states: Sequence[State], n: int) -> tuple[Maps | None, State]:
        """The matrices that act on these states in round n, if there are any, and a state after it."""
        maps, like = self.affine.at(n)
        if maps is None or any(rest(state) != rest(like) for state in states):
            return None, like
        return maps, self.affine.at(n + 1)[1]

    def after(self, states: Sequence[State], n: int) -> list[tuple[float, list[State]]]:
        """What may become of each of the states in round n."""
        maps, like = self._acting(states, n)
        if maps is None:
            return [(p, [self.done(state, round) for state in states]) for p, round in self.outcomes(n)]
        columns = columns_of(states)
        found = []
        for chance, M in zip(*maps, strict=True):
            found.append((chance, [filled(like, z) for z in (M[:-1] @ columns).T]))
        return found

    def later(self, states: Sequence[State], n: int, rounds: int) -> list[tuple[float, list[State]]]:
        """What may become of them in several rounds."""
        found: list[tuple[float, list[State]]] = [(1.0, list(states))]
        for k in range(n, n + rounds):
            found = [(p * q, new) for p, old in found for q, new in self.after(old, k)]
        return found

    @cached_property
    def _moments(self) -> list[np.ndarray]:
        z = columns_of([self.start])
        return [z @ z.T]

    def moments(self, n: int) -> np.ndarray:
        """The expectation of the products of all entries of the state after n rounds, with a one below it."""
        every = self.outcomes(0)
        if len(every) == 1:  # no matrix is needed, and none need exist
            z = columns_of([self._only(n)])
            return z @ z.T
        while len(self._moments) <= n:
            maps, _ = self.affine.at(len(self._moments) - 1)
            assert maps is not None, f"rounds of {self.method} are not affine: mean squares are not known"
            now = self._moments[-1]
            self._moments.append(np.sum([p * M @ now @ M.T for p, M in zip(*maps, strict=True)], axis=0))
        return self._moments[n]

    @cached_property
    def _path(self) -> list[State]:
        return [self.start]

    def _only(self, n: int) -> State:
        """The state after n rounds in which nothing is left to chance."""
        while len(self._path) <= n:
            ((_, round),) = self.outcomes(len(self._path) - 1)
            self._path.append(self.done(self._path[-1], round))
        return self._path[n]


def _near(x: np.ndarray, y: np.ndarray) -> bool:
    return bool(np.abs(x - y).max(initial=0.0) <= AFFINE * (1.0 + np.abs(x).max(initial=0.0)))


class _Affine:
    """The rounds of a method as matrices, made when they are asked for, as long as they are affine.

    Its states must differ in arrays alone, each of them with one axis along the model, and the rest of a state must not
    depend on chance. What a matrix says is compared with a round of a state that goes on alone, and is moved a little.
    """

    def __init__(self, rounds: Rounds) -> None:
        self.rounds, self.refused, self.constant = rounds, math.inf, math.inf
        self.maps, self.likes, self.checked = list[Maps](), [rounds.start], 0
        self.size, self.alone = flat(rounds.start).size, rounds.start
        self.axes = None if rounds.draws or self.size > LARGE else self._axes()
        if self.axes is None:
            self.refused = 0
            return
        self.wide = side_by_side(rounds.f, self.size + 2)
        self.wide_likes = [initial_state(rounds.method, self.wide, self.wide.initial())]

    def _axes(self) -> list[int] | None:
        """Which axis of each array is along the model; None where one has none."""
        found, twice = [], side_by_side(self.rounds.f, 2)
        wide = initial_state(self.rounds.method, twice, twice.initial())
        for one, many in zip(leaves(tuple(self.rounds.start[:3])), leaves(tuple(wide[:3])), strict=True):
            if not _is_number(one):
                continue
            differ = [axis for axis, (a, b) in enumerate(zip(one.shape, many.shape, strict=True)) if a != b]
            if len(differ) != 1:
                return None
            found += differ
        return found

    def at(self, n: int) -> tuple[Maps | None, State]:
        """The matrices of round n, None if it is none; and a state before it, for what in it is no array of numbers."""
        while self.checked <= n and self.checked < self.refused:
            self._check(self.checked)
            self.checked += 1
        like = self.likes[min(n, len(self.likes) - 1)]
        return (None, like) if n >= self.refused else (self.maps[int(min(n, self.constant))], like)

    def _check(self, n: int) -> None:
        """Make the matrices of a round, if they are not those of the one before, and compare them with a round."""
        rng, every = np.random.default_rng(n), self.rounds.outcomes(n)
        drawn, now = int(rng.integers(len(every))), flat(self.alone)
        try:
            if n < self.constant:
                self._make(n, every)
            like = self.likes[min(n + 1, len(self.likes) - 1)]
            said = filled(like, self.maps[-1].matrices[drawn][:-1] @ np.append(now, 1.0))
            if n < COMPARED or n % COMPARED == 0:
                alone = self.rounds.done(self.alone, every[drawn].round)
                if not _near(flat(alone), flat(said)) or rest(alone) != rest(like):
                    self.refused = n
            self.alone = filled(like, flat(said) + rng.standard_normal(self.size))
        except (ValueError, ArithmeticError):  # such as a line search that does not end
            self.refused = n

    def _make(self, n: int, every: Sequence[Outcome]) -> None:
        columns = np.random.default_rng([n, 1]).standard_normal((self.size, self.size + 2))
        columns[:, :-1] = np.eye(self.size, self.size + 1, 1)  # nothing, the unit vectors, and one to be compared
        found = [self._map(columns, n, round) for _, round in every]
        wide = found[0][1]
        if any(rest(other) != rest(wide) for _, other in found):
            raise ArithmeticError("the rest of a state depends on chance")
        self.maps.append(Maps([chance for chance, _ in every], [matrix for matrix, _ in found]))
        if rest(wide) == rest(self.wide_likes[n]) and (n == 0 or rest(self.wide_likes[n - 1]) != rest(wide)):
            later = self.rounds.outcomes(n + LATER)[0].round
            if np.array_equal(self._map(columns, n, later)[0], found[0][0]):
                self.constant = n
                return
        new = iter(rest(wide))
        following = tree_map(lambda x: x if _is_number(x) else next(new), tuple(self.likes[n][:3]))
        self.likes.append(State(*following))
        self.wide_likes.append(wide)

    def _map(self, columns: np.ndarray, n: int, round: Round) -> tuple[np.ndarray, State]:
        """The matrix of a round, and a state after it."""
        new, _, _ = do_round(self.rounds.method, self.wide, self._beside(columns, n), round)
        found = self._apart(new)
        if not _near(found[:, -1], found[:, 0] + (found[:, 1:-1] - found[:, :1]) @ columns[:, -1]):
            raise ArithmeticError("the round is not affine")
        M = np.zeros((self.size + 1, self.size + 1))
        M[:-1, :-1], M[:-1, -1], M[-1, -1] = found[:, 1:-1] - found[:, :1], found[:, 0], 1.0
        return M, new

    def _beside(self, columns: np.ndarray, n: int) -> State:
        """Vectors of states as one state of the wide problem."""
        assert self.axes is not None
        axes, at, like = iter(self.axes), 0, self.rounds.start
        parts: list[np.ndarray] = []
        for x in leaves(tuple(like[:3])):
            if _is_number(x):
                axis = next(axes)
                part = columns[at : at + x.size].T.reshape(-1, *x.shape)
                shape = [*x.shape[:axis], len(part) * x.shape[axis], *x.shape[axis + 1 :]]
                parts.append(np.moveaxis(part, 0, axis).reshape(shape))
                at += x.size
        new = iter(parts)
        return State(*tree_map(lambda x: next(new) if _is_number(x) else x, tuple(self.wide_likes[n][:3])))

    def _apart(self, wide: State) -> np.ndarray:
        """The vectors of the states side by side."""
        assert self.axes is not None
        axes, found = iter(self.axes), []
        shapes = [x.shape for x in leaves(tuple(self.rounds.start[:3])) if _is_number(x)]
        for x, shape in zip([x for x in leaves(tuple(wide[:3])) if _is_number(x)], shapes, strict=True):
            axis = next(axes)
            split = np.asarray(x).reshape(*shape[:axis], -1, *shape[axis:])
            found.append(np.moveaxis(split, axis, 0).reshape(split.shape[axis], -1).T)
        return np.concatenate(found)


# Promises.


@dataclass(frozen=True)
class Promise:
    """What one theorem says of the rounds of a method."""

    rounds: Rounds
    known: Known
    theorem: Theorem
    printed: float

    @property
    def is_measured(self) -> bool:
        """Whether a factor is printed, or a potential or a bound stated."""
        stated = self.theorem.factor, self.theorem.potential, self.theorem.bound
        return any(x is not None for x in stated)

    @property
    def method(self) -> Any:
        return self.rounds.method

    @property
    def f(self) -> Quadratic:
        return self.rounds.f

    @cached_property
    def theta(self) -> np.ndarray:
        return self.f.minimiser()

    def potential(self, state: State, n: int) -> float:
        assert self.theorem.potential is not None
        return self.theorem.potential(self.method, self.known, self.theta, state, n)

    def means_after(self, states: Sequence[State], n: int) -> np.ndarray:
        """The expectations of the potential after as many rounds as the factor is for."""
        last = n + self.theorem.rounds
        every = self.rounds.later(states, n, self.theorem.rounds)
        return np.sum([[p * self.potential(state, last) for state in new] for p, new in every], axis=0)


def growths(promise: Promise) -> Iterator[tuple[float, float, float]]:
    """What the potential is, its mean after a round, and what rounding may add: on paths, and at the worst."""
    unit, N, rounds, times = 0.0, promise.f.n_clients, promise.rounds, promise.theorem.rounds
    certain, alike = len(rounds.outcomes(0)) == 1, rounds.affine.at(0)[0] is not None and rounds.affine.constant == 0
    for n in range((1 if alike else 3) * N + 1):  # where all rounds are alike, the worst states tell of all of them
        states = rounds.states(n, FOLLOWED)[:FOLLOWED]  # not the one at rest
        before = [promise.potential(state, n) for state in states]
        if certain:
            after = [promise.potential(state, n + times) for state in rounds.states(n + times, FOLLOWED)[:FOLLOWED]]
        else:
            after = promise.means_after(states, n)
        for was, mean in zip(before, after, strict=True):
            if math.isfinite(was) and was >= VISIBLE * unit:
                unit = max(was, unit)
                yield was, mean, ROUNDED * unit
    for n in [2 * N] if alike else [1, 2 * N]:
        yield from worst(promise, n, ROUNDED * unit)


def worst(promise: Promise, n: int, rounding: float) -> Iterator[tuple[float, float, float]]:
    """The worst of the states in the affine hull of those after n rounds, if all is quadratic there.

    A state is a combination with coefficients c of sum one. Both potentials are then quadratic forms P and A of c, and
    for every c if ``A - factor P`` has no positive eigenvalue: this is compared, as ``0 + eigenvalue <= 0``.
    """
    maps, _ = promise.rounds.affine.at(n)
    if promise.theorem.rounds > 1 and maps is None:
        return
    count = 2 + (promise.f.n_clients + 1) * math.prod(promise.f.shape)
    states = [state for state in promise.rounds.states(n, count) if math.isfinite(promise.potential(state, n))]
    if len(states) < 3 or not same_kind(states):
        return
    states = [states[i] for i in spanning(columns_of(states))]
    every, last = promise.rounds.later(states, n, promise.theorem.rounds), n + promise.theorem.rounds
    if not same_kind([state for _, new in every for state in new]):
        return
    before, after = form(promise, states, n), _mean_form(promise, every, last)
    rng = np.random.default_rng(n)
    trials = 3.0 * rng.standard_normal((5, len(states)))  # more than one: a norm is linear as long as no sign changes
    trials += (1.0 - trials.sum(axis=1, keepdims=True)) / len(states)
    columns = columns_of(states)[:-1]
    tried = [filled(states[0], columns @ trial) for trial in trials]
    measured = [promise.potential(state, n) for state in tried], promise.means_after(tried, n)
    for trial, *values in zip(trials, *measured, strict=True):
        unit = 1e-6 * (1.0 + trial @ trial)
        forms = zip((before, after), values, strict=True)
        if any(abs(trial @ f @ trial - value) > unit * np.abs(f).max() for f, value in forms):
            yield values[0], values[1], rounding  # not quadratic: any combination will do
            return
    rounding += 1e3 * ROUNDED * float(np.abs(before).max())
    if np.linalg.eigvalsh(before)[0] < -rounding:
        yield values[0], values[1], rounding  # a norm whose sign has not changed: nothing quadratic is negative
        return
    yield 0.0, float(np.linalg.eigvalsh(after - promise.printed * before)[-1]), rounding


def form(promise: Promise, states: Sequence[State], n: int) -> np.ndarray:
    """The potential of combinations of states as a quadratic form, from two of them at a time."""
    one = np.array([promise.potential(state, n) for state in states])
    vectors, found = [flat(state) for state in states], np.diag(one)
    for i, k in combinations(range(len(states)), 2):
        middle = promise.potential(filled(states[0], 0.5 * (vectors[i] + vectors[k])), n)
        found[i, k] = found[k, i] = 2.0 * middle - 0.5 * (one[i] + one[k])
    return found


def _mean_form(promise: Promise, every: Sequence[tuple[float, list[State]]], n: int) -> np.ndarray:
    """The mean of the potential of what becomes of combinations of states, as a quadratic form of these."""
    columns = np.concatenate([columns_of(new) for _, new in every], axis=1)
    states = [state for _, new in every for state in new]
    basis = spanning(columns)
    P = form(promise, [states[i] for i in basis], n)
    C, *_ = np.linalg.lstsq(columns[:, basis], columns)
    parts = np.split(C, len(every), axis=1)
    return np.sum([p * part.T @ P @ part for (p, _), part in zip(every, parts, strict=True)], axis=0)


def mean_squares(rounds: Rounds, count: int, of: np.ndarray | None = None) -> np.ndarray:
    """The exact means of |of (theta - theta*)|^2 after 1, ..., ``count`` rounds, by second moments of the state."""
    best = rounds.f.minimiser()
    matrix = np.eye(best.size) if of is None else of
    places = [x for x in leaves(tuple(rounds.start[:3])) if _is_number(x)]
    theta = next(i for i, x in enumerate(places) if x is rounds.start.server.theta)
    start = sum(x.size for x in places[:theta])
    part = np.zeros((best.size, sum(x.size for x in places) + 1))
    part[:, start : start + best.size], part[:, -1] = np.eye(best.size), -best
    off = matrix @ part
    idle = sum(chance for chance, round in rounds.outcomes(0) if not round.clients)
    among = replace(rounds, busy=True) if 0 < idle < 1 else rounds  # nothing changes in the other rounds
    squares = np.array([float(np.trace(off @ among.moments(n) @ off.T)) for n in range(count + 1)])
    if among is rounds:
        return squares[1:]
    n, k = np.mgrid[1 : count + 1, : count + 1]
    return binom.pmf(k, n, 1.0 - idle) @ squares


def difference(f: Quadratic) -> float:
    """By how much the Hessian of a client is below their mean, at most."""
    return max(0.0, float(np.linalg.eigvalsh(f.mean(f.A) - f.A).max()))


def exact(kind: type[Algorithm]) -> Algorithm:
    """The method with exact local solutions, where it has a choice."""
    given = {f.name for f in fields(kind) if f.init}
    options: dict[str, Any] = {"reduction": 1e-12} if "reduction" in given else {}
    try:
        return kind(solver=Exact(), **options)
    except (TypeError, ValueError):
        return kind(**options)


def completed(method: Algorithm, f: Quadratic, who: Participation, compressor: Compressor | None = None) -> Any:
    """The method with no parameter open."""
    return with_participation(method, f, who, compressor).suggested(f)


def promises(
    method: Algorithm,
    f: Quadratic,
    who: Participation,
    compressor: Compressor | None = None,
    draws: tuple[Round, ...] = (),
) -> list[Promise]:
    """What the method promises: the guarantee is made of them, and every printed factor is one of them."""
    said = method.guarantee(f, who, compressor)
    complete, known = completed(method, f, who, compressor), Known.of(f, who, compressor)
    ours = [t for t in method.theorems if t.concerns(complete, known) and not t.fails(complete, known)]
    assert ("; ".join(t.says(complete, known) for t in ours) == said) != said.startswith("none")
    found, rounds = [], Rounds(complete, f, who, draws)
    for theorem in ours:
        if SIMILAR in theorem.says(complete, known) and complete.weight < difference(f):
            continue
        printed = PRINTED.findall(theorem.says(complete, known))
        assert len(printed) == (theorem.factor is not None)
        found.append(Promise(rounds, known, theorem, float(printed[0]) if printed else 1.0))
    return found


def broken(promise: Promise) -> str:
    """Return how a factor, a potential or a bound is broken; nothing if it is kept, or if there is none of them."""
    source = promise.theorem.source
    if promise.theorem.potential is not None:
        for before, after, rounding in growths(promise):
            if after > promise.printed * before + rounding:
                return f"{source}: {after} after {before}, where {promise.printed} is promised"
    elif promise.theorem.factor is not None:
        errors = np.maximum(mean_squares(promise.rounds, LONG), 1e-300)
        constants = np.log(errors) - np.arange(LONG) * math.log(promise.printed)  # of the bound, if it is an equation
        visible = errors > VISIBLE * max(errors[0], float(np.sum(promise.f.minimiser() ** 2)))
        if (constants > constants[: LONG // 2].max() + math.log(1.5))[visible].any():
            return f"{source}: mean squares fall more slowly than {promise.printed}"
    return _above(promise)


def _above(promise: Promise) -> str:
    """Return where mean squares are above their bound, or the bound falls more slowly than is said of it."""
    if promise.theorem.bound is None:
        return ""
    words = promise.theorem.says(promise.method, promise.known)
    bounds = np.array([promise.theorem.bound(promise.method, promise.known, promise.theta, n + 1) for n in range(LONG)])
    if not np.isfinite(bounds).all():
        return ""
    errors = mean_squares(promise.rounds, LONG)
    for n in np.flatnonzero(errors > bounds + ROUNDED * (errors[0] + float(np.sum(promise.theta**2)))):
        return f"{words}: {errors[n]} after {n + 1} rounds, where at most {bounds[n]} is promised"
    if promise.theorem.factor is not None:
        slow = bounds[-1] > 1.01 * promise.printed ** (LONG // 2) * bounds[LONG // 2 - 1]
    else:
        far = [promise.theorem.bound(promise.method, promise.known, promise.theta, n) for n in (FAR, 10 * FAR)]
        slow = words.endswith("O(1/n^2)") and far[1] > 1.01 * far[0] / 100.0
    return f"{words}: its bound falls more slowly" if slow else ""


def of_everybody(theorem: Theorem, **changes: Any) -> dict[str, Any]:
    """The factor that the theorem has where everybody takes part, for a method with other parameters."""
    assert theorem.factor is not None
    factor: Callable[[Any, Known], float] = theorem.factor
    return {"factor": lambda m, k: factor(replace(m, **changes), Known.of(k.objective))}
