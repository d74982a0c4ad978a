r"""Scaffnew beyond the step 2/L: clients of equal curvature, whatever the coins say.

On :math:`\frac L2(x - m_j)^2` the mean of the clients' models moves as in gradient descent: the controls have sum zero,
and averaging does not change it. So its distance from the solution is multiplied by :math:`1 - sL` in every round,
with any probability and for every sequence of coins, and the method diverges for :math:`s > 2/L` even if it is lucky.
Up to 2/L all states converge in mean square (``scaffnew_one_step``).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product, repeat

import numpy as np

from dualopt.algorithms import Scaffnew
from dualopt.claims import Inequality, claim
from dualopt.engine import Snapshot, State, advance, initial_state
from dualopt.participation import CommunicateWithProbability
from dualopt.solvers import Gradient
from theory._chance import coin
from theory._claims import ROUNDING, ExpectedVerdict, deviation
from theory.counterexamples._recursion import Run, follow, scalars

TOSSES = 5


def scaffnew_long_step_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Both sides of the longest step, rare and frequent communication."""
    for times in (0.5, 1.97, 2.03, 3.0) if quick else (0.5, 1.98, 2.02, 3.0):
        for p in (0.1, 0.6):
            yield ExpectedVerdict(tossed(times, p))


@claim(
    source="Mishchenko et al. 2022 (recalled): what long steps do",
    statement=r"Scaffnew on $\frac L2(x - m_j)^2$: the mean of the clients' models satisfies $\bar x^n - \theta^* ="
    r" (1 - sL)^n(\theta^0 - \theta^*)$ for every probability and every outcome of the coins; it converges if and only"
    r" if $s < 2/L$.",
    assumptions=lambda run: [] if np.ptp(run.curvatures) == 0 else ["equal curvatures"],
    rounding=0.0,
    cases=scaffnew_long_step_cases,
)
def scaffnew_long_step(run: Run) -> Iterator[Inequality]:
    """Compare the mean model with its closed form for all sequences of a few coins, and follow it for a long one."""
    rate = factor(run.algorithm.solver.step, float(run.curvatures[0]))
    outcomes = coin(run.objective.n_clients, run.algorithm.probability)
    start = initial_state(run.algorithm, run.objective, np.array([run.theta0]))
    for outcomes_in_turn in product(outcomes, repeat=TOSSES):
        state = start
        for outcome in outcomes_in_turn:
            state, _, _ = advance(run.algorithm, run.objective, state, outcome.round)
        expected = run.solution + rate**TOSSES * (run.theta0 - run.solution)
        yield Inequality(TOSSES, deviation(mean_model(state), expected), ROUNDING, "mean model after all coins")
    yield from follow(run, repeat(np.array([1.0, -rate])), abs(rate))


def factor(s: float, L: float) -> float:
    """Return what a round multiplies the distance from the solution by."""
    return 1.0 - s * L


def longest_step(L: float) -> float:
    """Return the step up to which the method converges."""
    return 2.0 / L


def mean_model(state: State | Snapshot) -> float:
    """Return the mean of the clients' models."""
    return float(np.mean(state.clients.theta))


def tossed(times: float, p: float, L: float = 4.0) -> Run:
    """Return Scaffnew with a step of ``times/L`` on three clients, with its coin."""
    return Run(
        label=f"s = {times:g}/L, p = {p:g}",
        algorithm=Scaffnew(probability=p, solver=Gradient(step=times / L)),
        objective=scalars([L] * 3, [-1.0, 0.0, 4.0]),
        converges=times / L < longest_step(L),
        theta0=-2.0,
        participation=CommunicateWithProbability(probability=p),
        read=mean_model,
    )
