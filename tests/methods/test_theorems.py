"""What methods promise, held against exact expectations over everything that chance may do in a round.

No method is named where promises are tested: every method of the package, with the parameters that it suggests and
others, on lopsided quadratics, under every law of participation that it admits. A promise is a factor that is printed.
For theorems with a potential it must be at least as large as the growth of its expectation in one round, from the
states of paths and from the worst of all states in their affine hull, which satisfy what all states of the method
satisfy; for the others, at least as large as the rate of the exact mean squares of a long run.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import combinations, islice, product
from typing import Any, NamedTuple

import numpy as np
import pytest

import dualopt.methods
from dualopt.arrays.tree import leaves, tree_map
from dualopt.arrays.xp import is_array
from dualopt.engine.rounds import State, initial_state
from dualopt.lab.chance import do_round
from dualopt.methods import (
    GIANT,
    Algorithm,
    FedDR,
    FedDyn,
    FedSplit,
    FiveGCS,
    GrowingFedDyn,
    Known,
    SampledDualFL,
    Theorem,
    parameters,
)
from dualopt.methods._base import with_participation
from dualopt.methods._theorem import ANY_LAW
from dualopt.methods.compressors import Compressor, CoordinateCohorts, RandK
from dualopt.methods.participation import (
    Bernoulli,
    CommunicateWithProbability,
    Full,
    Participation,
    Round,
    Schedule,
    UniformSubset,
    WeightedSubset,
)
from dualopt.objectives import Quadratic
from dualopt.solvers import Exact
from dualopt.spec.discover import discover
from theory.frontier._draws import Scripted, orders_for_all, orders_for_each
from theory.frontier.accelerated_dane import difference

ALGORITHMS = discover(dualopt.methods)
PROVED = [name for name, kind in ALGORITHMS.items() if kind.theorems]
SIMILAR = "where no Hessian is below their mean by more than the weight"  # which is for the user to know
PRINTED = re.compile(r"factor of (\d+\.\d+)")
ROUNDED = 1e-12  # of the largest potential seen
VISIBLE = 1e-9  # of it: below, rounding is a part of the smaller ones

every_method = pytest.mark.parametrize("name", PROVED)


# Clients and laws.


def quadratics(N: int, d: int, spread: float, seed: int) -> Quadratic:
    """Clients of which no two have the same curvatures, from 1 to ``spread``."""
    rng = np.random.default_rng(seed)
    A = []
    for j in range(N):
        Q, _ = np.linalg.qr(rng.standard_normal((d, d)))
        eigenvalues = np.exp(rng.uniform(0.0, math.log(spread), d))
        eigenvalues[0] = spread ** (j / max(N - 1, 1))
        A.append((Q * eigenvalues) @ Q.T)
    return Quadratic(A=0.5 * (np.array(A) + np.array(A).transpose(0, 2, 1)), b=3.0 * rng.standard_normal((N, d)))


INSTANCES = {
    "two scalars": quadratics(2, 1, 30.0, 0),
    "three": quadratics(3, 2, 10.0, 1),
    "five scalars": quadratics(5, 1, 4.0, 2),
    "weights": replace(quadratics(3, 2, 10.0, 3), weights=(3.0, 0.4, 1.0)),
}


def laws(f: Quadratic) -> list[Participation]:
    """Participations of every kind."""
    N, kappa = f.n_clients, float(f.L.max() / f.mu.min())
    every = [
        Full(),
        UniformSubset(size=1),
        UniformSubset(size=N - 1),
        WeightedSubset(size=N - 1, weights=f.weights),
        WeightedSubset(size=1, weights=tuple(1.0 + 3.0 * j for j in range(N))),
        Bernoulli(probability=0.1),
        Bernoulli(probability=0.7),
        CommunicateWithProbability(probability=0.4),
        CommunicateWithProbability(probability=kappa**-0.5),
        Schedule(clients=((0,), (1,))),
    ]
    return list(dict.fromkeys(every))


class Outcome(NamedTuple):
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
    assert sum(chance for chance, *_ in law) == pytest.approx(1.0)
    chances = who.law(N).inclusion
    common: dict[str, Any] = {"n": n, "n_clients": N, "seed": 0}
    common |= {"inclusion": chances} if len(set(chances)) > 1 else {}
    return [Outcome(p, Round(clients=clients, communicate=coin, **common)) for p, clients, coin in law]


@pytest.mark.parametrize("who", laws(INSTANCES["three"])[:-1], ids=str)
def test_laws_have_the_chances_of_the_outcomes(who: Participation) -> None:
    found, law = outcomes(who, 3, 0), who.law(3)
    for j, p in enumerate(law.inclusion):
        assert sum(o.chance for o in found if j in o.round.clients) == pytest.approx(p)
    assert sum(o.chance for o in found if o.round.communicate) == pytest.approx(law.communication)
    assert sum(o.chance * o.round.fraction for o in found) == pytest.approx(law.fraction)


# States.


def mixed(states: list[State], weights: np.ndarray) -> State:
    """The sum of states with weights; what is no array of numbers is that of the first state."""

    def one(*parts: Any) -> Any:
        if not is_array(parts[0]) or parts[0].dtype.kind != "f":
            return parts[0]
        return sum(w * part for w, part in zip(weights[1:], parts[1:], strict=True)) + weights[0] * parts[0]

    server, message, clients = (tree_map(one, *(s[i] for s in states)) for i in range(3))
    return State(server, message, clients)


def same_kind(states: list[State]) -> bool:
    """Whether states differ in arrays of finite numbers alone."""

    def rest(state: State) -> list[Any]:
        return [x for x in leaves(tuple(state[:3])) if not (is_array(x) and x.dtype.kind == "f")]

    finite = all(np.isfinite(x).all() for s in states for x in leaves(tuple(s[:3])) if is_array(x))
    return finite and all(rest(s) == rest(states[0]) for s in states)


@dataclass(frozen=True)
class Promise:
    """A method under a law, and what one theorem says of it."""

    method: Algorithm
    known: Known
    who: Participation
    theorem: Theorem
    printed: float
    draws: tuple[Round, ...] = ()  # what chance gives to compressors, all equally likely

    @property
    def f(self) -> Quadratic:
        return self.known.objective  # pyright: ignore[reportReturnType]

    @cached_property
    def theta(self) -> np.ndarray:
        return self.f.minimiser()

    def potential(self, state: State, n: int) -> float:
        assert self.theorem.potential is not None
        return self.theorem.potential(self.method, self.known, self.theta, state, n)

    def outcomes(self, n: int) -> list[Outcome]:
        every = [Outcome(1.0 / len(self.draws), round) for round in self.draws]
        return every or outcomes(self.who, self.f.n_clients, n)

    def after(self, state: State, n: int) -> list[tuple[float, State]]:
        return [(p, do_round(self.method, self.f, state, round)[0]) for p, round in self.outcomes(n)]

    def mean_after(self, state: State, n: int) -> float:
        """The expectation of the potential after as many rounds as the factor is for."""
        branches = [(1.0, state)]
        for k in range(n, n + self.theorem.rounds):
            branches = [(p * q, new) for p, old in branches for q, new in self.after(old, k)]
        return sum(p * self.potential(new, n + self.theorem.rounds) for p, new in branches)

    def path(self, rounds: int, rng: np.random.Generator, start: State | None = None) -> Iterator[State]:
        """States on the way from a random start, with cohorts that are equally likely to be seen."""
        state = start or initial_state(self.method, self.f, 10.0 * rng.standard_normal(self.f.shape))
        for n in range(rounds + 1):
            yield state
            every = self.outcomes(n)
            state, _, _ = do_round(self.method, self.f, state, every[rng.integers(len(every))].round)

    def resting(self) -> State | None:
        found = self.method.fixed_point(self.f, self.theta)
        if not isinstance(found, tuple):
            return None
        server, message, clients = found
        return State(server, message, clients)


def growths(promise: Promise) -> Iterator[tuple[float, float, float]]:
    """What the potential is, its mean after a round, and what rounding may add: on paths, and at the worst."""
    rng, unit = np.random.default_rng(0), 0.0
    for _ in range(2):
        for n, state in enumerate(promise.path(3 * promise.f.n_clients, rng)):
            before = promise.potential(state, n)
            if math.isfinite(before) and before >= VISIBLE * unit:
                unit = max(before, unit)
                yield before, promise.mean_after(state, n), ROUNDED * unit
    for n in (1, 2 * promise.f.n_clients):
        yield from worst(promise, n, rng, ROUNDED * unit)


def worst(promise: Promise, n: int, rng: np.random.Generator, rounding: float) -> Iterator[tuple[float, float, float]]:
    """The worst of the states in the affine hull of those after n rounds, if all is quadratic there.

    A state is a combination with coefficients c of sum one. Both potentials are then quadratic forms P and A of c, and
    for every c if ``A - factor P`` has no positive eigenvalue: this is compared, as ``0 + eigenvalue <= 0``.
    """
    if promise.theorem.rounds > 1:
        return
    states = list(islice(settled(promise, n, rng), 2 + (promise.f.n_clients + 1) * math.prod(promise.f.shape)))
    if len(states) < 3 or not same_kind(states):
        return
    trials = 3.0 * rng.standard_normal((5, len(states)))  # more than one: a norm is linear as long as no sign changes
    trials += (1.0 - trials.sum(axis=1, keepdims=True)) / len(states)
    branches = list(zip(*(promise.after(state, n) for state in states), strict=True))
    after = np.zeros((len(states),) * 2)
    for branch in branches:
        after += branch[0][0] * form(promise, [state for _, state in branch], n + 1)
    before = form(promise, states, n)
    for trial in trials:
        at = mixed(states, trial)
        measured = promise.potential(at, n), promise.mean_after(at, n)
        unit = 1e-6 * (1.0 + trial @ trial)
        if any(
            abs(trial @ f @ trial - m) > unit * np.abs(f).max() for f, m in zip((before, after), measured, strict=True)
        ):
            yield *measured, rounding  # not quadratic: any combination will do
            return
    excess = float(np.linalg.eigvalsh(after - promise.printed * before)[-1])
    yield 0.0, excess, 1e3 * ROUNDED * float(np.abs(before).max()) + rounding


def settled(promise: Promise, n: int, rng: np.random.Generator) -> Iterator[State]:
    """States after n rounds of which the theorem speaks: at rest, and on paths."""
    rest = promise.resting()
    for start in [rest] * (rest is not None) + [None] * 60:
        *_, state = promise.path(n, rng, start)
        if math.isfinite(promise.potential(state, n)):
            yield state


def form(promise: Promise, states: list[State], n: int) -> np.ndarray:
    """The potential of combinations of states as a quadratic form, from two of them at a time."""
    count = len(states)
    one = np.array([promise.potential(s, n) for s in states])
    found = np.diag(one)
    for i, k in combinations(range(count), 2):
        middle = promise.potential(mixed([states[i], states[k]], np.array([0.5, 0.5])), n)
        found[i, k] = found[k, i] = 2.0 * middle - 0.5 * (one[i] + one[k])
    return found


# Long runs, for bounds with a constant before them.


def mean_squares(promise: Promise, rounds: int, of: np.ndarray | None = None) -> np.ndarray:
    """The exact means of |of (theta - theta*)|^2, by the second moments of the state: rounds are affine maps of it."""
    f, best = promise.f, promise.f.minimiser()
    matrix = np.eye(best.size) if of is None else of
    state = initial_state(promise.method, f, f.initial())
    places = [x for x in leaves(tuple(state[:3])) if is_array(x) and x.dtype.kind == "f"]
    size = sum(x.size for x in places)
    theta = next(i for i, x in enumerate(places) if x is state.server.theta)
    start = sum(x.size for x in places[:theta])

    def filled(like: State, z: np.ndarray) -> State:
        left = list(np.split(z, np.cumsum([x.size for x in places])[:-1]))

        def one(x: Any) -> Any:
            return left.pop(0).reshape(x.shape) if is_array(x) and x.dtype.kind == "f" else x

        server, message, clients = tree_map(one, tuple(like[:3]))
        return State(server, message, clients)

    def flat(state: State) -> np.ndarray:
        return np.concatenate([np.ravel(x) for x in leaves(tuple(state[:3])) if is_array(x) and x.dtype.kind == "f"])

    z = np.append(flat(state), 1.0)
    moments, found = np.outer(z, z), []
    for n in range(rounds):
        new = np.zeros_like(moments)
        for chance, round in outcomes(promise.who, f.n_clients, n):
            offset = flat(do_round(promise.method, f, filled(state, np.zeros(size)), round)[0])
            columns = [
                flat(do_round(promise.method, f, filled(state, unit), round)[0]) - offset for unit in np.eye(size)
            ]
            M = np.zeros_like(moments)
            M[:size, :size], M[:size, size], M[size, size] = np.array(columns).T, offset, 1.0
            new += chance * M @ moments @ M.T
        state = do_round(promise.method, f, state, round)[0]  # for what is no array, the same whoever takes part
        moments = new
        part = slice(start, start + best.size)
        mean, goal = matrix @ moments[part, size], matrix @ best.ravel()
        second = np.diag(matrix @ moments[part, part] @ matrix.T) - 2.0 * goal * mean + goal**2
        found.append(float(np.sum(second)))
    return np.array(found)


# The promises.


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


def variants(method: Algorithm, f: Quadratic, who: Participation) -> Iterator[Algorithm]:
    """The method as it is suggested; for two clients also with other numbers, and with every switch the other way."""
    yield method
    if f.n_clients > 2:
        return
    suggested = completed(method, f, who)
    for name in [f.name for f in fields(method) if f.init]:
        value = getattr(suggested, name)
        if isinstance(value, bool):
            changed: list[Any] = [not value]
        elif isinstance(value, float):
            changed = [times * value for times in (0.05, 0.5, 2.0, 20.0)] if value else [1.0]
        elif isinstance(value, tuple) and all(isinstance(v, float) for v in value):
            changed = [tuple(0.1 * v for v in value), tuple(2.0 * v for v in value)]
        else:
            continue
        for other in changed:
            try:
                new = replace(method, **{name: other})
                completed(new, f, who).check(f)
            except ValueError:
                continue
            yield new


def promises(
    method: Algorithm, f: Quadratic, who: Participation, compressor: Compressor | None = None
) -> list[Promise]:
    """What the method promises: the guarantee is made of them, and every printed factor is one of them."""
    said = method.guarantee(f, who, compressor)
    complete, known = completed(method, f, who, compressor), Known.of(f, who, compressor)
    ours = [t for t in method.theorems if t.concerns(complete, known) and not t.fails(complete, known)]
    assert ("; ".join(t.says(complete, known) for t in ours) == said) != said.startswith("none")
    found = []
    for theorem in ours:
        if SIMILAR in theorem.says(complete, known) and complete.weight < difference(f):
            continue
        printed = PRINTED.findall(theorem.says(complete, known))
        assert len(printed) == (theorem.factor is not None)
        if printed or theorem.potential is not None:
            found.append(Promise(complete, known, who, theorem, float(printed[0]) if printed else 1.0))
    return found


def broken(promise: Promise) -> str:
    """Return how the promise is broken; nothing if it is kept."""
    if promise.theorem.potential is not None:
        for before, after, rounding in growths(promise):
            if after > promise.printed * before + rounding:
                return f"{promise.theorem.source}: {after} after {before}, where {promise.printed} is promised"
        return ""
    errors, half = np.maximum(mean_squares(promise, 60), 1e-300), 30
    constants = np.log(errors) - np.arange(60) * math.log(promise.printed)  # of the bound, if it were an equation
    visible = errors > VISIBLE * max(errors[0], float(np.sum(promise.f.minimiser() ** 2)))
    if (constants > constants[:half].max() + math.log(1.5))[visible].any():
        return f"{promise.theorem.source}: mean squares fall more slowly than {promise.printed}"
    return ""


@pytest.mark.parametrize("instance", INSTANCES)
@every_method
def test_promises_are_kept(name: str, instance: str) -> None:
    f, kind = INSTANCES[instance], ALGORITHMS[name]
    for who in laws(f):
        if not who.needs(f.n_clients) <= kind.supports:
            assert exact(kind).guarantee(f, who).startswith("none")
            continue
        for method in variants(exact(kind), f, who):
            for promise in promises(method, f, who):
                assert not broken(promise), (method, who)


@every_method
def test_something_is_promised(name: str) -> None:
    f = INSTANCES["two scalars"]
    methods = [(m, who) for who in laws(f) for m in variants(exact(ALGORITHMS[name]), f, who)]
    assert any(not m.guarantee(f, who).startswith("none") for m, who in methods)


COMPRESSED: list[tuple[Algorithm, Compressor, tuple[Scripted, ...]]] = [
    (FedSplit(), RandK(size=1), orders_for_each(3, 2)),
    (FedSplit(), CoordinateCohorts(size=2), orders_for_all(3)),
    (FedDyn(), CoordinateCohorts(size=1), orders_for_all(3)),
    (FedDyn(), CoordinateCohorts(size=2), orders_for_all(3)),
]


@pytest.mark.parametrize(("method", "compressor", "orders"), COMPRESSED, ids=[f"{m} {c}" for m, c, _ in COMPRESSED])
def test_promises_are_kept_with_every_draw_of_a_compressor(method: Any, compressor: Compressor, orders: Any) -> None:
    f = INSTANCES["three"]
    (promise,) = promises(replace(method, solver=Exact()), f, Full(), compressor)
    draws = tuple(replace(round, compressor=compressor) for round in orders)
    assert not broken(replace(promise, draws=draws))
    faster = of_everybody(promise.theorem)["factor"](promise.method, promise.known)
    assert broken(replace(promise, draws=draws, printed=faster)) or isinstance(method, FedDyn)


BEST = [(name, t) for name in PROVED for t in ALGORITHMS[name].theorems if t.best]


@pytest.mark.parametrize(("name", "theorem"), BEST, ids=[f"{name}-{i}" for i, (name, _) in enumerate(BEST)])
def test_the_best_parameters_are_admitted_and_best(name: str, theorem: Theorem) -> None:
    """Others nearby are not admitted, or their factor is not smaller; suggestions are these where a method says so."""
    f = INSTANCES["three"]
    for who in [who for who in laws(f) if who.law(3).name in theorem.laws.names]:
        if not who.needs(3) <= ALGORITHMS[name].supports:
            continue
        known = Known(f, who.law(3))
        best = theorem.suggests(known)
        method = exact(ALGORITHMS[name])
        complete = completed(replace(method, **best), f, who)
        if theorem.fails(complete, known):  # for a law with other chances
            assert who == WeightedSubset(size=1, weights=(1.0, 4.0, 7.0))
            continue
        assert theorem.factor is not None
        least = theorem.factor(complete, known)
        for parameter, value in best.items():
            for times in (0.9, 0.999, 1.001, 1.1):
                if (parameter, times > 1.0) == ("relaxation", True):
                    continue  # 2 is the most that there is
                other = replace(complete, **{parameter: times * value})
                assert theorem.fails(other, known) or theorem.factor(other, known) >= least * (1.0 - 1e-12)


# What would be noticed.


def of_everybody(theorem: Theorem, **changes: Any) -> dict[str, Any]:
    """The factor that the theorem has where everybody takes part, for a method with other parameters."""
    assert theorem.factor is not None
    factor = theorem.factor
    return {"factor": lambda m, k: factor(replace(m, **changes), Known.of(k.objective))}


ANY: dict[str, Any] = {"laws": ANY_LAW, "needs": ()}
NO_NEED: dict[str, Any] = {"needs": ()}
TWO, FIVE = INSTANCES["two scalars"], INSTANCES["five scalars"]
HEAVY = Quadratic(A=np.array([[[50.0]], [[1.0]]]), b=np.array([[1.0], [-3.0]]), weights=(0.97, 0.03))
WRONG: list[tuple[str, Quadratic, Algorithm, Participation, Callable[[Theorem], dict[str, Any]]]] = [
    ("A, coins", TWO, FedDyn(), Bernoulli(probability=0.1), lambda t: ANY),
    ("A, coins of five", FIVE, FedDyn(), Bernoulli(probability=0.1), lambda t: ANY),
    ("A, importance", TWO, FedDyn(), WeightedSubset(size=1, weights=(1.0, 4.0)), lambda t: NO_NEED),
    ("A, light", TWO, FedDyn(alpha=0.3), UniformSubset(size=1), lambda t: NO_NEED),
    ("C, steep", TWO, GrowingFedDyn(alpha=1.0, growth=1.5), UniformSubset(size=1), lambda t: NO_NEED),
    ("A', uniform", HEAVY, FedDyn(), UniformSubset(size=1), lambda t: NO_NEED),
    ("F, uniform", HEAVY, SampledDualFL(), UniformSubset(size=1), lambda t: NO_NEED),
    ("5GCS, coins", TWO, FiveGCS(), Bernoulli(probability=0.1), lambda t: ANY),
    ("B, as if all", TWO, FedSplit(), UniformSubset(size=1), of_everybody),
    ("FedDR, as if all", INSTANCES["three"], FedDR(), UniformSubset(size=1), of_everybody),
    ("FedDR, coins as if all", FIVE, FedDR(), Bernoulli(probability=0.7), of_everybody),
    ("F, as if all", FIVE, SampledDualFL(), UniformSubset(size=1), of_everybody),
    ("F, coins", TWO, SampledDualFL(), Bernoulli(probability=0.2), lambda t: ANY),
    ("GIANT, short steps", FIVE, GIANT(steps=(0.1,), reduction=1e-12), Full(), lambda t: NO_NEED),
]


@pytest.mark.parametrize(("f", "method", "who", "wrong"), [w[1:] for w in WRONG], ids=[w[0] for w in WRONG])
def test_wrong_promises_are_noticed(
    f: Quadratic, method: Algorithm, who: Participation, wrong: Callable[[Theorem], dict[str, Any]]
) -> None:
    """Theorems without their assumptions or for another law: some of these promises have been printed."""
    method = replace(method, solver=Exact()) if "solver" in parameters(type(method)) else method
    complete, known = completed(method, f, who), Known.of(f, who)
    theorems = [t for t in method.theorems if t.concerns(complete, known) and (t.factor or t.potential)]
    altered = [replace(t, **wrong(t)) for t in theorems if t.factor or wrong is not of_everybody]
    factors = [1.0 if t.factor is None else t.factor(complete, known) for t in altered]
    found = [Promise(complete, known, who, t, factor) for t, factor in zip(altered, factors, strict=True)]
    assert any(broken(promise) for promise in found)
    assert not any(broken(promise) for promise in promises(method, f, who))
