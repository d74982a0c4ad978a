"""A method and a class of problems: what a worst case and a rate are asked of."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import cycle, islice, product
from typing import Any, NamedTuple

import numpy as np

from dualopt.arrays._checks import at_least, require, require_at_least
from dualopt.arrays.tree import leaves, tree_map
from dualopt.engine.rounds import State, advance, as_participation, initial_state, resolve
from dualopt.lab.chance import Event, events_of
from dualopt.lab.proofs._compressors import AnyCompressor, Contractive, Plain, Unbiased, known_class
from dualopt.lab.proofs._formal import (
    AnyConvex,
    AnySolver,
    Ledger,
    World,
    demanded,
    is_vector,
    require_vectors,
    vectors,
    with_room,
)
from dualopt.lab.proofs._forms import Class, classes_of
from dualopt.lab.proofs._rational import Rational, rational, simplest
from dualopt.lab.proofs._tracked import Vectors
from dualopt.methods import Algorithm
from dualopt.methods.participation import Bernoulli, Full, Round, UniformSubset, WeightedSubset, first_round
from dualopt.objectives import Quadratic
from dualopt.regularisers import Zero
from dualopt.solvers import Exact

__all__ = ["Limits", "Setting", "numbers"]

SETTLED, SETTLING = 400, 4000
"""Rounds after which numbers in states that no longer change are at their limits, and after which all must be."""
SHOWN = 5
"""Rounds of a run in which a method must be linear algebra on vectors."""


class Limits(NamedTuple):
    """Where the numbers in the states of a method end, and whether they are others at the start."""

    numbers: list[Any]
    late: bool


def _close(some: Sequence[Any], others: Sequence[Any]) -> bool:
    return all(np.allclose(a, b, rtol=1e-9, atol=0) for a, b in zip(some, others, strict=True))


def _simple(x: Any) -> Any:
    """Return the simple fraction that a number tends to; truth values and whole numbers stay."""
    if not isinstance(x, float):
        return x
    near = Fraction(x).limit_denominator(1000)
    return Rational(near if math.isclose(near, x, rel_tol=1e-9) else simplest(x))


class _ExactRound(Round):
    """A round in which the fraction of active clients is a rational number."""

    @property
    def turnout(self) -> Any:
        """The number of the active clients over that of all."""
        return Rational(self.n_active, self.n_clients)


def numbers(name: str, given: Any, n_clients: int) -> tuple[float, ...]:
    """Return one number for each client from one for all, or from a sequence."""
    found = tuple(map(float, given)) if isinstance(given, Sequence | np.ndarray) else (float(given),) * n_clients
    require(len(found) == n_clients, f"{name} must be a number, or {n_clients}, one for each client", len(found))
    return found


@dataclass(frozen=True)
class Setting:
    """A method on all federations whose clients have these constants.

    Attributes
    ----------
    algorithm : Algorithm
        With no parameter open.
    mu, L : tuple of float
        The constants of all clients.
    weights : tuple of float or None
        Their weights.
    participation : Participation or None
        Who takes part.
    literal : bool
        Whether each client is a class of its own.
    regulariser : float or None
        Strong convexity of a regulariser, if there is one.
    inexact : bool
        Whether local problems are solved as the stopping rule demands, in place of exactly.
    compressor : Unbiased, Contractive or None
        What is known of what uploads go through.
    rounded : Setting, optional
        Where the numbers of this one are rational: the same with floating-point numbers.
    """

    algorithm: Algorithm
    mu: tuple[float, ...]
    L: tuple[float, ...]
    weights: tuple[float, ...] | None
    participation: Any
    literal: bool
    regulariser: float | None = None
    inexact: bool = False
    compressor: Unbiased | Contractive | None = None
    rounded: Setting | None = None

    @classmethod
    def of(
        cls,
        algorithm: Algorithm | str,
        mu: float | Sequence[float],
        L: float | Sequence[float],
        clients: int | None,
        participation: Any = None,
        weights: Sequence[float] | None = None,
        regulariser: float | None = None,
        *,
        inexact: bool = False,
        compressor: Any = None,
        dimension: int | None = None,
        literal: bool = False,
    ) -> Setting:
        """Return the setting, with the parameters of the method that are open as suggested for it.

        Raises
        ------
        ValueError
            If a number is out of range, or the method does not fit the class of problems.
        """
        given = [x for x in (mu, L, weights) if isinstance(x, Sequence | np.ndarray)]
        N = clients if clients is not None else len(given[0]) if given else 2
        require_at_least(1, clients=N)
        m, M = numbers("mu", mu, N), numbers("L", L, N)
        require(all(0 <= a < np.inf for a in m), "mu must be finite numbers of at least 0", mu)
        require(all(a < b for a, b in zip(m, M, strict=True)), "L must be greater than mu, for every client", L)
        w = None if weights is None else numbers("weights", weights, N)
        require(w is None or all(0 < x < np.inf for x in w), "weights must be positive finite numbers", weights)
        who = as_participation(participation)
        if isinstance(who, WeightedSubset) and who.weights is None:
            who = replace(who, weights=w)
        g = regulariser
        require(g is None or 0 <= g < np.inf, "regulariser must be a finite number of at least 0: its convexity", g)
        kind = known_class(compressor, N, None if dimension is None else at_least(1, "dimension", dimension))
        found = cls(algorithm, m, M, w, who, literal, g, inexact, kind)  # pyright: ignore[reportArgumentType]
        method: Any = resolve(algorithm, found.world(1), who, found.packs())
        if inexact:
            require(isinstance(method.solver, Exact), "algorithm must solve local problems, and have no solver given")
            demanded(method.stop, first_round(N), [1.0] * N)
        if g is None:
            return replace(found, algorithm=method)
        mine = method.regulariser == AnyConvex(g)
        require(mine, "algorithm must be given without a regulariser: worst cases and rates are over all of them")
        return replace(found, algorithm=replace(method, regulariser=Zero()))

    def in_rationals(self) -> Setting:
        """Return the setting with the simplest fractions in place of all its numbers: its arithmetic is exact.

        Examples
        --------
        >>> Setting.of("gradient-descent: step=0.1", 1, 10, 2).in_rationals().algorithm.step
        Rational(1, 10)
        """
        return replace(rational(self), rounded=self)

    @property
    def exact(self) -> bool:
        """Whether numbers are rational."""
        return self.rounded is not None

    @property
    def bounded(self) -> bool:
        """Whether curvatures lie between two positive numbers."""
        return min(self.mu) > 0 and max(self.L) < math.inf

    @property
    def n_clients(self) -> int:
        """Number N of clients."""
        return len(self.mu)

    def world(self, dimension: int, *, tracked: bool = False) -> World:
        """Return the clients in formal coordinates, with an empty ledger."""
        ledger = Ledger(self.n_clients, dimension, exact=self.exact, tracked=tracked)
        return World(ledger, self.mu, self.L, self.weights, convexity=self.regulariser)

    def on(self, f: World) -> Algorithm:
        """Return the method with the regulariser of these clients, and their way to solve local problems."""
        given: dict[str, Any] = {} if self.regulariser is None else {"regulariser": f.regulariser}
        given |= {"solver": AnySolver()} if self.inexact else {}
        return replace(self.algorithm, **given) if given else self.algorithm

    def packs(self, f: World | None = None, time: int = 0) -> Any:
        """Return what the uploads of these clients go through at a time; None where they arrive as they are."""
        return None if self.compressor is None else AnyCompressor(self.compressor, f and f.ledger, time)

    @property
    def plain(self) -> Any:
        """A compressor with which all arrives, and everything else is as it is with that of these clients."""
        return None if self.compressor is None else Plain(self.packs().omega((), self.n_clients))

    def _asks_alike(self, dimension: int) -> bool:
        """Tell whether exchanges of clients with equal constants leave what a regulariser is asked as it is."""
        if self.branched:  # it depends on who takes part
            return False
        f = self.world(dimension)
        self.play(f, 2)
        asked = [v for a in f.ledger.answers if a.client == self.n_clients for v in (a.x, a.gradient)]
        groups = [ids[list(own.clients)] for ids in f.ledger.families for own in self.equals]
        return not any(np.ptp(v[ids]) for v in asked for ids in groups)

    @cached_property
    def equals(self) -> list[Class]:
        """The classes of clients with equal constants, which may be exchanged where a regulariser is one function."""
        return classes_of(self.world(1), literal=self.literal)

    @cached_property
    def classes(self) -> list[Class]:
        """The classes of clients that may be exchanged, whatever a regulariser answers."""
        alike = self.regulariser is None or with_room(self._asks_alike)
        return self.equals if alike else classes_of(self.world(1), literal=True)

    @cached_property
    def others(self) -> list[Class]:
        """The regulariser as one more client, whose weight is that of all clients together."""
        if self.regulariser is None:
            return []
        weight = sum(own.weight * len(own) for own in self.classes)
        return [Class((self.n_clients,), self.regulariser, math.inf, weight)]

    @property
    def _number(self) -> int:
        """The number of a round like all others: the first has an accuracy of its own where solutions are inexact."""
        return 1 if self.inexact else 0

    def events(self, n: int = 0) -> list[Event]:
        """Return everything that may happen in a round."""
        try:
            found = events_of(self.participation or Full(), self.n_clients, n=n)
        except TypeError:
            raise ValueError(
                "participation must have rounds that can be listed: full, subset, importance, bernoulli or communicate."
            ) from None
        if not self.exact:
            return found
        found = [Event(rational(p), _ExactRound(**vars(round))) for p, round in found]
        require(sum(p for p, _ in found) == 1, "participation must have probabilities that are simple fractions")
        return found

    @cached_property
    def orbits(self) -> list[Event]:
        """One round for all that exchanges of clients in classes make of it, with the probability of these."""
        return self.orbits_of([own.clients for own in self.classes])

    def orbits_of(self, groups: Sequence[Sequence[int]]) -> list[Event]:
        """Return one round for all that exchanges of clients in groups make of it, with the probability of these."""
        counted = self._counted(groups)
        if counted is not None:
            return counted
        found: dict[Any, Event] = {}
        for chance, round in self.events(self._number):
            counts = tuple(len(set(own) & set(round.clients)) for own in groups)
            known = found.get((counts, round.communicate))
            found[counts, round.communicate] = Event(chance + (known.probability if known else 0), round)
        return list(found.values())

    def _counted(self, groups: Sequence[Sequence[int]]) -> list[Event] | None:
        """Return the orbits without a list of the cohorts, where cohorts of one size are equally likely and many."""
        who, N = self.participation, self.n_clients
        if isinstance(who, UniformSubset):
            chances = {who.size: Rational(1, math.comb(N, who.size)) if self.exact else 1.0 / math.comb(N, who.size)}
        elif isinstance(who, Bernoulli):
            chances = {k: who.probability**k * (1 - who.probability) ** (N - k) for k in range(N + 1)}
        else:
            return None
        sizes = [*map(len, groups)]
        if math.prod(n + 1 for n in sizes) > sum(math.comb(N, k) for k in chances):
            return None
        kind: type[Round] = _ExactRound if self.exact else Round
        found: list[Event] = []
        common: Any = {"n": self._number, "n_clients": N, "communicate": True, "seed": 0}
        for counts in product(*(range(n, -1, -1) for n in sizes)):
            chance: Any = math.prod(map(math.comb, sizes, counts)) * chances.get(sum(counts), 0)
            if chance > 0:
                clients = tuple(sorted(j for own, n in zip(groups, counts, strict=True) for j in own[:n]))
                found.append(Event(chance, kind(clients=clients, **common)))
        return found

    def alike(self, active: Sequence[int] | None = None) -> list[dict[int, int]]:
        """Return one active and one inactive client of each class, and how many of its clients are; all alike if None.

        Examples
        --------
        >>> Setting.of("fedsplit", 1, 10, 4).alike((0, 2, 3))
        [{0: 3, 1: 1}]
        """
        found = []
        for own in self.classes:
            groups: dict[bool, list[int]] = {}
            for j in own.clients:
                groups.setdefault(active is None or j in active, []).append(j)
            found.append({ids[0]: len(ids) for ids in groups.values()})
        return found

    @cached_property
    def limits(self) -> Limits:
        """The numbers in the states of the method after many rounds.

        Raises
        ------
        ValueError
            If they have no limits.
        """
        if self.rounded is not None:
            numbers, late = self.rounded.limits
            return Limits([(_simple if late else rational)(x) for x in numbers], late)
        N = self.n_clients
        A = np.stack([(m if m > 0 else 1.0) * np.eye(N + 1) for m in self.mu])
        f = Quadratic(A=A, b=np.zeros((N, N + 1)))
        state = initial_state(self.algorithm, f, np.ones(N + 1))

        def numbers_in(state: State) -> list[Any]:
            return [x for x in leaves(state) if np.shape(x) not in ((N + 1,), (N, N + 1))]

        first = before = last = numbers_in(state)
        for n in range(SETTLING if first else 0):
            state = advance(self.algorithm, f, state, replace(first_round(N), n=n), self.plain)[0]
            before, last = last, numbers_in(state)
            if n >= SETTLED and all(map(np.array_equal, before, last)):
                break
        if not _close(before, last):
            raise ValueError(
                "algorithm must have numbers in its states that settle; worst_case takes it round by round."
            )
        late = not _close(first, last)
        return Limits(last if late else first, late)

    def play(self, f: World, rounds: int) -> list[tuple[float, list[State]]]:
        """Return the states before and after each of some rounds from the model zero, with their probabilities."""
        method = self.on(f)
        runs = [(1.0, [initial_state(method, f, f.zeros())])]
        for n in range(rounds):
            todo = self.events(n) if self.branched else self.events(n)[:1]
            operator = self.packs(f, n)
            runs = [(p * q, [*run, advance(method, f, run[-1], r, operator)[0]]) for p, run in runs for q, r in todo]
        return runs

    def require_linear(self, rounds: int = SHOWN, *, dimension: int) -> None:
        """Refuse a method that is not linear algebra on vectors, by a run in which arrays know what they are.

        Every round is done by everybody too: where clients are inactive, the states of the others are stored among
        theirs, as plain numbers.

        Raises
        ------
        ValueError
            If it is not.
        """
        f = self.world(dimension, tracked=True)
        method = self.on(f)
        state = initial_state(method, f, f.zeros())
        for n, (_, round) in enumerate(islice(cycle(self.orbits), rounds)):
            now = replace(round, n=n)
            everybody, operator = replace(now, clients=tuple(range(self.n_clients)), inclusion=None), self.packs(f, n)
            full = advance(method, f, state, everybody, operator)[0]
            require_vectors(vectors(full, f))
            state = advance(method, f, state, now, operator)[0]
            require_vectors(vectors(state._replace(clients=(), memory=()), f))
            state = tree_map(lambda x: x.view(Vectors) if is_vector(x, f) else x, state)
        require_vectors(x for a in f.ledger.answers for x in (a.x, a.gradient))
        require_vectors(e.sent for e in f.ledger.errors)

    @cached_property
    def branched(self) -> bool:
        """Whether chance has a part in it."""
        return len(self.events()) > 1
