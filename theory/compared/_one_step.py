"""Lyapunov functions: what one round makes of them in expectation, along a run and over all states."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from dualopt.claims import Inequality
from dualopt.engine import State, advance
from dualopt.objectives import Quadratic
from dualopt.xp import Array
from theory._chance import expectation, worst_growth
from theory.compared._cases import Federation

__all__ = ["Errors", "one_step", "run", "smooth_and_strongly_convex"]

VISIBLE = 1e-6  # a thousandth of the distance at the start: rounding is ten digits smaller


class Errors(NamedTuple):
    """A federation as a vector, zero at the solution, whose squared norm is the Lyapunov function."""

    size: int
    of: Callable[[State], Array]
    state: Callable[[Array], State]  # the federation that has these errors

    def squared(self, state: State) -> float:
        """Return the Lyapunov function."""
        return float(np.sum(self.of(state) ** 2))


def one_step(case: Federation, errors: Errors, factor: float) -> Iterator[Inequality]:
    """Compare the mean of the Lyapunov function after a round with ``factor`` times its value before.

    At every state of a sampled run from random errors; and, where the clients are quadratic, at the worst of all states
    (``n = 0``), which is as bad as the factor says where the case calls it attained.
    """
    for n, (state, mean) in enumerate(run(case, errors), start=1):
        yield Inequality(n, mean, factor * errors.squared(state), "mean after a round")
    if isinstance(case.objective, Quadratic):
        method, f = case.algorithm, case.objective
        growth = worst_growth(method, f, case.outcomes, errors.state, errors.of, errors.size)
        yield Inequality(0, growth, factor, "worst growth")
        if case.attained:
            yield Inequality(0, factor, growth, "factor and the worst growth")


def run(case: Federation, errors: Errors) -> Iterator[tuple[State, float]]:
    """Yield the states of a run from random errors of norm one, each with the mean of the function one round later.

    It ends where rounding shows in the function, if there are so many rounds.
    """
    chance = np.random.default_rng(0)
    start = chance.standard_normal(errors.size)
    state = errors.state(start / np.linalg.norm(start))
    chances = [outcome.probability for outcome in case.outcomes]
    for _ in range(case.rounds):
        if errors.squared(state) < VISIBLE:
            break
        yield state, expectation(errors.squared, case.algorithm, case.objective, state, case.outcomes)
        happens = case.outcomes[chance.choice(len(chances), p=chances)]
        state, _, _ = advance(case.algorithm, case.objective, state, happens.round)


def smooth_and_strongly_convex(case: Federation) -> list[str]:
    """Return what fails of the assumptions that every contraction here needs."""
    return [] if case.mu > 0 and np.isfinite(case.L) else ["smooth and strongly convex clients"]
