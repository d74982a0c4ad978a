"""A deep check: what ``guarantee`` prints, against exact expectations over all that chance may do.

Every problem is drawn from its seed: a few quadratic clients, every other time of unequal weights, every other time
with no curvatures but those at the ends of their range, where most worst cases are, and one law of participation of
every kind. Every method of the package is asked what it promises there: as it is suggested, or with a number that is
zero or changed, half of these as far as something is promised. A factor is held against the growth of the theorem's
own potential in one round, from the states of paths and from the worst ones, or else against the rate of exact mean
squares, all by the machinery of ``tests/promises``. An order, such as O(1/n^2), is held against the bound that its
theorem states, and this against the exact expectation of the error over rounds. Without a bound the error times n^2
must not be more than 1.5 times as large in the second half of the rounds as in the first; where it is, four times as
many rounds must show it too, for an order says nothing of the first ones. An inequality is tested as it stands. A
sentence that is none of these must be listed here, with the place where it is tested.

Run it with::

    python -m tests.fuzz_guarantees --problems 500 --seed 0

It prints the promises that are broken, each with the command that repeats it, and ends with exit code 1 if there are
any. ``--old NAME`` puts a promise back that was once printed, or would be without one of its assumptions, and that is
broken.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from dualopt.arrays.xp import silent
from dualopt.engine.rounds import initial_state
from dualopt.methods import Theorem
from dualopt.methods._base import parameters
from dualopt.methods._theorem import ANY_LAW
from dualopt.methods.participation import (
    Bernoulli,
    CommunicateWithProbability,
    Full,
    Participation,
    UniformSubset,
    WeightedSubset,
)
from dualopt.objectives import Quadratic
from tests.promises import (
    ALGORITHMS,
    PROVED,
    ROUNDED,
    Promise,
    broken,
    completed,
    difference,
    exact,
    mean_squares,
    of_everybody,
    promises,
    quadratics,
)

__all__ = ["OLD", "Broken", "draw", "failures", "main", "put_back"]

ROUNDS = 20  # over the least probability of a client: errors stay as they are until all have been active
LEAST = 0.2  # such probability, of orders that are followed
VISIBLE = 1e-9  # of the largest error: below, rounding is a part of it
SLACK = 1.5
BISECTIONS = 12
FURTHER = (1, 4)  # times as many rounds: the kappa of the clients may be 60, and methods take as many to settle


class Broken(NamedTuple):
    """A promise that is not kept, and what shows it."""

    method: Any
    law: Participation
    why: str


class Case(NamedTuple):
    """A problem with laws of every kind."""

    f: Quadratic
    laws: list[Participation]


def draw(seed: int) -> Case:
    """Return the problem of a seed."""
    rng = np.random.default_rng(seed)
    N, d = int(rng.integers(2, 4)), int(rng.integers(1, 3))
    spread, ends = math.exp(rng.uniform(math.log(1.5), math.log(60.0))), bool(rng.random() < 0.5)
    f = quadratics(N, d, spread, seed, ends)
    if rng.random() < 0.5:
        f = replace(f, weights=tuple(np.exp(rng.uniform(-2.0, 2.0, N)).tolist()))
    size, odd = int(rng.integers(1, N)), tuple(np.exp(rng.uniform(-1.0, 1.0, N)).tolist())
    chance, coin = rng.uniform(0.05, 0.95, 2).tolist()
    coin = coin if rng.random() < 0.5 else math.sqrt(float(f.mu.min() / f.L.max()))  # which may be that of a method
    own = WeightedSubset(size=size, weights=f.weights) if f.weights else WeightedSubset(size=size, weights=odd)
    every = [Full(), UniformSubset(size=size), own, Bernoulli(probability=chance)]
    return Case(f, [*every, CommunicateWithProbability(probability=coin)])


# Orders and inequalities.


def _grows(constants: np.ndarray, errors: np.ndarray) -> bool:
    """Whether what should be bounded is larger in the second half, where errors are not rounding."""
    half, visible = len(constants) // 2, errors > VISIBLE * errors.max()
    return bool((constants[half:] > SLACK * constants[:half].max())[visible[half:]].any())


def _exceeds(promise: Promise, measured: Any, constants: Callable[[np.ndarray], np.ndarray]) -> bool:
    """Whether exact mean squares of ``measured`` make constants that grow, however far they are followed."""
    for times in FURTHER:
        errors = mean_squares(promise.rounds, times * math.ceil(ROUNDS / promise.known.p), measured)
        if not _grows(constants(errors), errors):
            return False
    return True


def _of_squares(promise: Promise) -> bool:
    return _exceeds(promise, None, lambda errors: np.arange(1, len(errors) + 1) ** 2 * errors)


def _of_gradients(promise: Promise) -> bool:
    return _exceeds(promise, np.einsum("j,jkl->kl", np.array(promise.known.weights), promise.f.A), np.cumsum)


def _path(promise: Promise, count: int = 2 * ROUNDS) -> Iterator[Any]:
    """The start of a run in which everybody takes part, and the states after its rounds."""
    rounds = promise.rounds
    state = initial_state(rounds.method, rounds.f, 10.0 * np.random.default_rng(0).standard_normal(rounds.f.shape))
    yield state
    for n in range(count):
        ((_, round),) = rounds.outcomes(n)
        state = rounds.done(state, round)
        yield state


def _energy(promise: Promise, state: Any) -> float:
    return float(promise.f.mean(promise.f.value(state.server.theta)))


def _of_energies(promise: Promise) -> bool:
    energies = [_energy(promise, state) for state in _path(promise)]
    return any(new > old + 1e-12 * (1.0 + abs(old)) for old, new in pairwise(energies))


def _of_dual_values(promise: Promise) -> bool:
    values = [float(state.server.value) for state in _path(promise)]
    return any(new > old + 1e-12 * (1.0 + abs(old)) for old, new in pairwise(values))


def _of_iterations(promise: Promise) -> bool:
    """Whether energies are above 2 w |theta0 - theta*|^2/(n + 1)^2 after n iterations of two rounds."""
    start, *states = _path(promise)
    return _above(promise, start, states[1::2], promise.method.weight)


def _of_accepted(promise: Promise) -> bool:
    """Whether they are after n accepted iterations of three rounds, or above q^(n - 1) w/2 |theta0 - theta*|^2."""
    start, *states = _path(promise, 3 * ROUNDS)
    accepted = [state for state in states[2::3] if state.server.search.accepted]
    mu, w = promise.method.mu, max(promise.method.first, 2.0 * difference(promise.f))
    q = 1.0 - 2.0 / (1.0 + math.sqrt(1.0 + 4.0 * w / mu)) if mu else 0.0
    return _above(promise, start, accepted, w, q)


def _above(promise: Promise, start: Any, states: Sequence[Any], w: float, q: float = 0.0) -> bool:
    least = float(promise.f.mean(promise.f.value(promise.theta)))
    away, first = float(np.sum((start.server.theta - promise.theta) ** 2)), _energy(promise, start) - least
    bounds = [min(2.0 / (n + 1) ** 2, 0.5 * q ** (n - 1) if q else 1.0) * w * away for n in range(1, len(states) + 1)]
    rounding = ROUNDED * (first + abs(least))
    return any(_energy(promise, s) - least > b + rounding for s, b in zip(states, bounds, strict=True))


def _of_epochs(promise: Promise) -> bool:
    """Whether an epoch, at whose end the gap is certified, takes more rounds than are promised."""
    words = promise.theorem.says(promise.method, promise.known)
    most = int(words.split()[-2])
    gaps = [state.server.gap for state in _path(promise, 2 * most + ROUNDS)]
    ends = [n for n in range(1, len(gaps)) if gaps[n] != gaps[n - 1]]
    visible = [n for n in ends if gaps[n] > ROUNDED * gaps[1]]
    return any(new - old > most for old, new in pairwise(visible)) or len(visible) < 2


CHECKS: list[tuple[str, Callable[[Promise], bool]]] = [
    (r"\|theta - theta\*\|\^2 = O\(1/n\^2\)$", _of_squares),
    (r"the mean of \|grad E\|\^2 = O\(1/T\)$", _of_gradients),
    (r"E falls in every iteration, by a factor$", _of_energies),
    (r"the dual function falls with every accepted point$", _of_dual_values),
    (r"after n iterations of two rounds$", _of_iterations),
    (r"after n accepted iterations of three rounds", _of_accepted),
    (r"the certified gap falls by \d+ in at most \d+ rounds$", _of_epochs),
]
ELSEWHERE = {
    r"^linear for smooth clients": "theory/frontier/restarts.py",
    r"between plain steps, one in \d+ rounds, for any loss$": "theory/frontier/anderson.py",
    r"a bound that does not vanish": "theory/fedpd/communication.py",
    r"gap falls by a factor of e in at most [\d.]+ rounds each, after \d+": "theory/frontier/adaptive_dualfl.py",
}


def unfactored(promise: Promise) -> str:
    """Return what is wrong with a sentence that has neither a factor nor a potential."""
    words = promise.theorem.says(promise.method, promise.known)
    check = next((check for pattern, check in CHECKS if re.search(pattern, words)), None)
    if check is None:
        return "" if any(re.search(pattern, words) for pattern in ELSEWHERE) else f"{words}: nothing tests it"
    if check in (_of_squares, _of_gradients) and promise.known.p < LEAST:
        return ""
    return f"{words}: it does not hold" if check(promise) else ""


# The check.


def _drawn(method: Any, f: Quadratic, who: Participation, rng: np.random.Generator) -> Any:
    """Return the method as it is suggested, with a number that is zero, or with a number or a switch changed.

    Without momentum methods promise other things; of a changed number the promise must remain one.
    """
    kind, suggested = rng.integers(3), completed(method, f, who)
    if kind == 0:
        return method
    names = [name for name in parameters(type(method)) if isinstance(getattr(suggested, name), float | bool | tuple)]
    for name in rng.permutation(names):
        value, times = getattr(suggested, name), math.exp(rng.uniform(-3.0, 3.0))
        for factor in (0.0,) if kind == 1 else (times, 1.0 / times):
            other = _other(value, factor)
            changed = None if other == value else _admitted(method, {name: other}, f, who)
            if changed is not None:
                return _nearly_refused(changed, name, f, who, rng) if rng.random() < 0.5 else changed
    return method


def _other(value: Any, factor: float) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, tuple):
        return tuple(factor * v for v in value)
    return factor * value or float(factor > 0)


def _admitted(method: Any, change: dict[str, Any], f: Quadratic, who: Participation) -> Any:
    """Return the method with a change, if it is admitted and something is promised."""
    try:
        changed = replace(method, **change)
        completed(changed, f, who).check(f)
        return changed if promises(changed, f, who) else None
    except (TypeError, ValueError):
        return None


def _nearly_refused(method: Any, name: str, f: Quadratic, who: Participation, rng: np.random.Generator) -> Any:
    """Return the method with the number as far as something is promised: where a condition is wrong, it shows there."""
    value = getattr(method, name)
    if not isinstance(value, float) or not value:
        return method
    inside, outside = 0.0, float(rng.choice((-5.0, 5.0)))
    if _admitted(method, {name: value * math.exp(outside)}, f, who) is not None:
        return method
    for _ in range(BISECTIONS):
        middle = 0.5 * (inside + outside)
        fits = _admitted(method, {name: value * math.exp(middle)}, f, who) is not None
        inside, outside = (middle, outside) if fits else (inside, middle)
    return replace(method, **{name: value * math.exp(inside)})


def failures(
    seeds: Sequence[int],
    names: Sequence[str] = tuple(PROVED),
    seen: Counter[str] | None = None,
    given: Any = None,
) -> Iterator[tuple[int, Broken]]:
    """Yield the promises of these methods, or of a given one, that are broken on the problems of these seeds."""
    seen = Counter() if seen is None else seen
    for seed in seeds:
        f, laws = draw(seed)
        for name in names:
            for k, who in enumerate(laws):
                if not who.needs(f.n_clients) <= ALGORITHMS[name].supports:
                    continue
                rng, method = np.random.default_rng([seed, k]), exact(ALGORITHMS[name])
                method = given or _drawn(method, f, who, rng)
                for promise in promises(method, f, who):
                    seen[f"{name}, {promise.known.law.name}"] += 1
                    if why := (broken if promise.is_measured else unfactored)(promise):
                        yield seed, Broken(method, who, why)


@dataclass(frozen=True)
class Old:
    """A promise that is not kept: a method, and its theorems as they were, or would be without an assumption.

    The parameters are those that it suggests, or given ones.
    """

    name: str
    wrong: Callable[[Theorem], dict[str, Any]]
    parameters: dict[str, Any] | None = None

    @property
    def given(self) -> Any:
        """The method."""
        return replace(exact(ALGORITHMS[self.name]), **self.parameters or {})


ANY: dict[str, Any] = {"laws": ANY_LAW, "needs": ()}
OLD = {
    "feddyn": Old("feddyn", lambda t: ANY if t.source == "Theorem A" else {}),
    "feddyn-weights": Old("feddyn", lambda t: {"needs": ()} if t.source == "Theorem A'" else {}),
    "fedsplit": Old("fedsplit", of_everybody),
    "feddr": Old("feddr", of_everybody),
    "fivegcs": Old("fivegcs", lambda t: ANY),
    "sampled-dualfl": Old("sampled-dualfl", lambda t: ANY),
    "sampled-dualfl-order": Old("sampled-dualfl", lambda t: ANY if t.factor is None else {}, {"rho": 0.0, "nu": 0.5}),
    "giant": Old("giant", lambda t: {"needs": ()}, {"steps": (0.1,)}),
}


@contextmanager
def put_back(old: Old) -> Iterator[None]:
    """Let a method print an old promise."""
    kind = ALGORITHMS[old.name]
    now = kind.theorems
    kind.theorems = tuple(replace(theorem, **old.wrong(theorem)) for theorem in now)
    try:
        yield
    finally:
        kind.theorems = now


def main(arguments: list[str] | None = None) -> int:
    """Check many problems; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz_guarantees", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--problems", type=int, default=500, help="number of problems")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first problem; the others follow")
    parser.add_argument("--method", choices=PROVED, action="append", help="this method alone; repeatable")
    parser.add_argument("--old", choices=OLD, help="a promise to put back, which fails")
    options = parser.parse_args(arguments)
    names = [OLD[options.old].name] if options.old else options.method or PROVED
    seen, failed, start = Counter[str](), 0, time.process_time()
    again = " ".join(f"--method {name}" for name in names) if options.method else ""
    old = OLD[options.old] if options.old else None
    seeds = range(options.seed, options.seed + options.problems)
    with silent(), put_back(old) if old else nullcontext():
        for seed, found in failures(seeds, names, seen, old and old.given):
            failed += 1
            put = f" --old {options.old}" if options.old else ""
            print(f"{found.method}, {found.law}\n  {found.why}")
            print(f"  python -m tests.fuzz_guarantees --problems 1 --seed {seed}{put} {again}".rstrip(), flush=True)
    said = f"{seen.total()} promises of {len(seen)} pairs of a method and a law"
    print(
        f"{options.problems} problems, {said}, {failed} broken, {time.process_time() - start:.0f} s of processor time"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
