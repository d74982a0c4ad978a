"""What methods promise, held against exact expectations over everything that chance may do in a round.

No method is named where promises are tested: every method of the package, with the parameters that it suggests and
others, on lopsided quadratics, under every law of participation that it admits (``tests/promises.py``).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from dualopt.engine.rounds import advance, initial_state
from dualopt.lab.proofs import worst_case
from dualopt.methods import (
    GIANT,
    Algorithm,
    DualLBFGS,
    FedDR,
    FedDyn,
    FedSplit,
    FiveGCS,
    GradientDescent,
    GrowingFedDyn,
    Known,
    SampledDualFL,
    Theorem,
    parameters,
)
from dualopt.methods._gradient_theorems import largest_step_with_memory
from dualopt.methods._theorem import ANY_LAW
from dualopt.methods.compressors import Compressor, CoordinateCohorts, RandK, Rounding
from dualopt.methods.participation import (
    Bernoulli,
    CommunicateWithProbability,
    Full,
    Participation,
    Schedule,
    UniformSubset,
    WeightedSubset,
    first_round,
)
from dualopt.objectives import Quadratic
from dualopt.solvers import Exact
from tests.promises import (
    ALGORITHMS,
    PROVED,
    Promise,
    Rounds,
    broken,
    completed,
    exact,
    of_everybody,
    outcomes,
    promises,
    quadratics,
)
from theory.frontier._draws import Scripted, orders_for_all, orders_for_each

every_method = pytest.mark.parametrize("name", PROVED)


# Clients and laws.

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


@pytest.mark.parametrize("who", laws(INSTANCES["three"])[:-1], ids=str)
def test_laws_have_the_chances_of_the_outcomes(who: Participation) -> None:
    found, law = outcomes(who, 3, 0), who.law(3)
    for j, p in enumerate(law.inclusion):
        assert sum(o.chance for o in found if j in o.round.clients) == pytest.approx(p)
    assert sum(o.chance for o in found if o.round.communicate) == pytest.approx(law.communication)
    assert sum(o.chance * o.round.fraction for o in found) == pytest.approx(law.fraction)


# The promises.


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
    draws = tuple(replace(round, compressor=compressor) for round in orders)
    (promise,) = promises(replace(method, solver=Exact()), f, Full(), compressor, draws)
    assert not broken(promise)
    faster = of_everybody(promise.theorem)["factor"](promise.method, promise.known)
    assert broken(replace(promise, printed=faster)) or isinstance(method, FedDyn)


BEST = [(name, t) for name in PROVED for t in ALGORITHMS[name].theorems if t.best]


@pytest.mark.parametrize(("name", "theorem"), BEST, ids=[f"{name}-{i}" for i, (name, _) in enumerate(BEST)])
def test_the_best_parameters_are_admitted_and_best(name: str, theorem: Theorem) -> None:
    """Others nearby are not admitted, or their factor is not smaller; suggestions are these where a method says so."""
    f = replace(INSTANCES["three"], A=2.5 * INSTANCES["three"].A)  # mu is not 1
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


@pytest.mark.parametrize("digits", [2, 4], ids=lambda digits: f"gradient-descent-{digits}")
def test_rounded_uploads_keep_the_promise(digits: int) -> None:
    """With memories, E - E* plus the mean square of what has not arrived, as before the round: written out."""
    theorem, f, compressor = GradientDescent.theorems[0], INSTANCES["three"], Rounding(digits=digits)
    known, best = Known.of(f, None, compressor), f.minimiser()
    method = GradientDescent(step=0.99 * largest_step_with_memory(f, compressor))
    mu, s = float(f.mean(f.mu)), method.step
    assert theorem.factor is not None
    assert theorem.potential is not None
    assert theorem.concerns(method, known)
    assert not theorem.fails(method, known)
    assert theorem.factor(method, known) == pytest.approx(1.0 - s * mu, rel=1e-14)
    longer = replace(method, step=1.02 * s)
    assert theorem.fails(longer, known)
    weight, found = s / (2.0 * (1.0 - known.q - s * mu)), []
    state = initial_state(method, f, np.array([30.0, -7.0])[: f.shape[0]])
    for n in range(40):
        before = state.server.theta
        state = advance(method, f, state, replace(first_round(3), n=n), compressor)[0]
        (memory,) = state.memory
        missing = f.mean(np.sum((f.gradient(before) - memory) ** 2, axis=1))
        expected = float(f.mean(f.value(before)) - f.mean(f.value(best)) + weight * missing)
        found.append(theorem.potential(method, known, best, state, n + 1))
        assert found[-1] == pytest.approx(expected, rel=1e-9, abs=1e-12 * found[0])
    assert all(new <= (1.0 - s * mu) * old + 1e-12 * found[0] for old, new in pairwise(found))


FACTORS = [(name, k) for name in PROVED for k, t in enumerate(ALGORITHMS[name].theorems) if t.factor]


@pytest.mark.parametrize(("name", "place"), FACTORS)
def test_a_factor_is_of_as_many_rounds_as_is_said(name: str, place: int) -> None:
    theorem, f = ALGORITHMS[name].theorems[place], INSTANCES["three"]
    said = re.search("(two|three) rounds", theorem.says(completed(exact(ALGORITHMS[name]), f, Full()), Known.of(f)))
    assert (said is not None) == (name in ("acc-s-dane", "dual-lbfgs", "giant"))
    assert said is None or theorem.rounds == {"two": 2, "three": 3}[said[1]]


POTENTIALS = [(name, k) for name in PROVED for k, t in enumerate(ALGORITHMS[name].theorems) if t.potential]


@pytest.mark.parametrize(("name", "place"), POTENTIALS)
def test_potentials_are_as_large_as_their_power_says(name: str, place: int) -> None:
    """Twice as far away they are twice or four times as large, with rounded uploads where a theorem admits them.

    Rounding scales with what it rounds.
    """
    theorem, f = ALGORITHMS[name].theorems[place], INSTANCES["three"]
    compressor = Rounding(digits=8) if theorem.compressed else None
    method = completed(exact(ALGORITHMS[name]), f, Full())
    found = []
    for g in (f, replace(f, b=2.0 * f.b)):
        state = initial_state(method, g, g.initial())
        for n in range(6):
            state = advance(method, g, state, replace(first_round(3), n=n), compressor)[0]
        assert theorem.potential is not None
        known = Known.of(g, None, compressor)
        found.append(theorem.potential(method, known, g.minimiser(), state, 6))
    assert math.log2(found[1] / found[0]) == pytest.approx(theorem.power, abs=1e-3)


# Bounds, against the worst case of all clients.

BOUNDED = [(name, i) for name in PROVED for i, t in enumerate(ALGORITHMS[name].theorems) if t.bound is not None]


def attained(name: str, place: int, rounds: int, who: Participation) -> float:
    """Return which part of a bound the worst clients reach, with constants from 1 to 10, or without smoothness."""
    theorem, mu, L = ALGORITHMS[name].theorems[place], 1.0, 10.0
    changed = {"rho": 0.0} if theorem.factor is None and "rho" in parameters(ALGORITHMS[name]) else {}
    changed |= {} if who == Full() else {"nu": 0.5}  # where the bound is finite
    method = replace(exact(ALGORITHMS[name]), **changed)

    def bound(at: float, slope: float) -> float:
        """For a minimiser and gradients there, whose squares are all that it depends on."""
        A = np.array([np.diag([mu, L])] * 2)
        f = Quadratic(A=A, b=A[:, 0] * at + slope * np.array([[1.0, 0.0], [-1.0, 0.0]]))
        complete, known = completed(method, f, who), Known.of(f, who)
        assert theorem.bound is not None
        assert theorem.about(complete, known)
        assert not theorem.fails(complete, known)
        return theorem.bound(complete, known, f.minimiser(), rounds)

    start = bound(1.0, 0.0), 0.5 * bound(0.0, 1.0)
    assert bound(1.0, 1.0) == pytest.approx(start[0] + 2.0 * start[1])
    L = math.inf if theorem.factor is None else L
    return worst_case(method, mu=mu, L=L, clients=2, rounds=rounds, participation=who, start=start).value


@pytest.mark.parametrize(("name", "place"), BOUNDED)
def test_no_clients_break_a_bound(name: str, place: int) -> None:
    """None of any kind and dimension; a fifth of any of the bounds would be broken."""
    partial = [UniformSubset(size=1)] if "partial" in ALGORITHMS[name].supports else []
    reached = [attained(name, place, rounds, who) for who in [Full(), *partial] for rounds in (1, 3)]
    assert 0.2 < max(reached) < 1.0


# What would be noticed.


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
    ("SampledDualFL, uniform", HEAVY, SampledDualFL(), UniformSubset(size=1), lambda t: NO_NEED),
    ("5GCS, coins", TWO, FiveGCS(), Bernoulli(probability=0.1), lambda t: ANY),
    ("B, as if all", TWO, FedSplit(), UniformSubset(size=1), of_everybody),
    ("FedDR, as if all", INSTANCES["three"], FedDR(), UniformSubset(size=1), of_everybody),
    ("FedDR, coins as if all", FIVE, FedDR(), Bernoulli(probability=0.7), of_everybody),
    ("SampledDualFL, as if all", FIVE, SampledDualFL(), UniformSubset(size=1), of_everybody),
    ("SampledDualFL, coins", TWO, SampledDualFL(), Bernoulli(probability=0.2), lambda t: ANY),
    ("DualLBFGS, no refusals", quadratics(3, 2, 1e3, 0, True), DualLBFGS(), Full(), lambda t: {"rounds": 1}),
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
    rounds = Rounds(complete, f, who)
    found = [Promise(rounds, known, t, factor) for t, factor in zip(altered, factors, strict=True)]
    assert any(broken(promise) for promise in found)
    assert not any(broken(promise) for promise in promises(method, f, who))
