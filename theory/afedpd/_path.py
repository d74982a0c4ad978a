r"""Runs of A-FedPD in the symbols of the paper, with everything that may happen in each round.

The mean :math:`\bar\theta^t` is recovered from the model and the duals of the clients,
:math:`\bar\theta^t = \theta^t - \bar\lambda^t/\rho` (line 12 of Algorithm 1), so that a mean dual that is not the mean
of the duals, or an average over the wrong clients, shows.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from dualopt.engine import State, advance
from dualopt.participation import Round, first_round
from dualopt.xp import Array
from theory._chance import subsets
from theory.afedpd._cases import Federation

__all__ = ["Point", "Step", "path"]


class Point(NamedTuple):
    """The federation before or after a round."""

    state: State
    bar: Array  # the mean of the active models, from the model and the duals
    points: Array  # theta_j^t: the solution of an active client; bar, where the virtual update puts an idle one
    theta: Array
    duals: Array


class Step(NamedTuple):
    """A round: where it began, the solutions of all clients, and every place where it may end."""

    n: int
    before: Point
    all_solutions: Array  # theta_j^{t+1} of all clients, active or not
    residual: Array  # gradients of their local problems there
    after: tuple[Point, ...]  # equally likely
    chosen: Point  # where the path goes on

    def mean(self, quantity: Callable[[Point], float]) -> float:
        """Return the conditional expectation after the round."""
        return float(np.mean([quantity(point) for point in self.after]))

    @property
    def spread(self) -> float:
        r"""Return :math:`R_t = \frac1N\sum_j |\theta_j^{t+1} - \bar\theta^t|^2` over all clients."""
        return mean_square(self.all_solutions - self.before.bar)


@lru_cache(maxsize=64)
def path(case: Federation) -> tuple[Step, ...]:
    """Follow the case along a sampled choice of clients.

    Examples
    --------
    >>> from theory._problems import quadratic
    >>> from theory.afedpd._cases import federation
    >>> steps = path(federation(quadratic(), rho=100.0, active=1, rounds=2))
    >>> [len(step.after) for step in steps]
    [3, 3]
    """
    method, f = case.algorithm, case.objective
    state = case.start()
    before = Point(state, case.theta0, np.broadcast_to(case.theta0, state.clients.dual.shape), *_model(state))
    steps = []
    for n, chosen in enumerate(case.schedule()):
        _, _, solution = advance(method, f, before.state, first_round(f.n_clients))
        assert solution is not None  # everybody takes part
        outcomes = subsets(f.n_clients, case.active, n=n)
        after = {o.round.clients: _point(case, solution.theta, before.state, o.round) for o in outcomes}
        last = after[chosen.clients]
        steps.append(Step(n, before, solution.theta, solution.evaluation.gradient, tuple(after.values()), last))
        before = last
    return tuple(steps)


def mean_square(x: Array) -> float:
    """Return the mean over the clients of the squared norms."""
    return float(np.sum(x**2)) / len(x)


def _model(state: State) -> tuple[Array, Array]:
    return state.server.theta, state.clients.dual


def _point(case: Federation, all_solutions: Array, before: State, round: Round) -> Point:
    state, _, _ = advance(case.algorithm, case.objective, before, round)
    theta, duals = _model(state)
    bar = theta - np.mean(duals, axis=0) / case.rho
    points = np.repeat(bar[None], len(all_solutions), axis=0)
    points[list(round.clients)] = all_solutions[list(round.clients)]
    return Point(state, bar, points, theta, duals)
