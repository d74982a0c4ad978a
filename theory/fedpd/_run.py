"""Runs of FedPD, round by round, with what chance could have done in each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from dualopt.engine import State, advance, initial_state
from dualopt.objectives.local_problem import client_dot
from dualopt.participation import Round
from dualopt.xp import Array
from theory._chance import coin

__all__ = ["Branch", "Run", "Step", "lagrangians", "mean_square", "spread"]


class Branch(NamedTuple):
    """A state that may come next."""

    probability: float
    state: State


class Step(NamedTuple):
    """One round of a run."""

    n: int
    before: State
    after: State
    sent: Array  # x_{0,j}^{r+}, shape (N, d)
    errors: Array  # |e_j|^2 of the local solutions, shape (N,)
    accuracy: float  # the largest of them up to this round: epsilon_1


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """FedPD on a problem.

    Attributes
    ----------
    name : str
        For tables.
    algorithm : FedPD
        The method, or a mutation of it.
    objective : Objective
        The clients.
    lowest : float
        ``inf E``, or a lower bound of it.
    theta0 : array, shape ``shape``
        Where to start.
    rounds : int
        How many rounds to look at.
    skip : float, default 0
        Probability ``p`` that a round does not communicate.
    dissimilarity : float, default infinity
        A bound ``G`` of the differences between the clients' gradients.
    start : State, optional
        A state to start from, in place of the method's own.
    """

    name: str
    algorithm: Any
    objective: Any
    lowest: float
    theta0: Array
    rounds: int
    skip: float = 0.0
    dissimilarity: float = np.inf
    start: State | None = None
    seed: int = 0

    @property
    def L(self) -> float:
        """Largest smoothness constant."""
        return float(np.max(self.objective.L))

    @property
    def eta(self) -> float:
        """The step."""
        return self.algorithm.eta

    @property
    def a(self) -> float:
        """``L eta``."""
        return self.L * self.eta

    def first(self) -> State:
        """Return the state before the first round."""
        return initial_state(self.algorithm, self.objective, self.theta0) if self.start is None else self.start

    def branches(self, state: State, n: int) -> list[Branch]:
        """Return what may follow: one coin for all clients."""
        outcomes = coin(self.objective.n_clients, 1.0 - self.skip, n=n, seed=self.seed)
        return [Branch(o.probability, advance(self.algorithm, self.objective, state, o.round)[0]) for o in outcomes]

    def steps(self) -> Iterator[Step]:
        """Follow one path, sampled by the seed."""
        state, accuracy, rng = self.first(), 0.0, np.random.default_rng(self.seed)
        everybody = tuple(range(self.objective.n_clients))
        for n in range(self.rounds):
            common = {"n": n, "n_clients": len(everybody), "clients": everybody, "seed": self.seed}
            round = Round(communicate=bool(rng.random() >= self.skip), **common)
            after, sent, solution = advance(self.algorithm, self.objective, state, round)
            assert solution is not None  # everybody takes part
            errors = np.full(len(everybody), np.nan)  # not known of solvers that sample
            if solution.evaluation is not None:
                errors = client_dot(solution.evaluation.gradient, solution.evaluation.gradient)
            accuracy = max(accuracy, float(np.max(errors)))
            yield Step(n, state, after, after.clients.x0 if sent is None else sent, errors, accuracy)
            state = after

    def but(self, **changes: Any) -> Run:
        """Return the run with some attributes changed."""
        return replace(self, **changes)


def lagrangians(run: Run, theta: Array, x0: Array, dual: Array) -> Array:
    r"""Return :math:`f_j(x_j) + \langle\lambda_j, x_j - x_0\rangle + \frac{1}{2\eta}|x_j - x_0|^2`, shape (N,)."""
    shift = theta - x0
    return run.objective.value(theta) + client_dot(dual, shift) + client_dot(shift, shift) / (2.0 * run.eta)


def spread(points: Array) -> float:
    """Return the largest distance between two clients' points.

    Examples
    --------
    >>> spread(np.array([[0.0], [1.0], [-2.0]]))
    3.0
    """
    return float(np.max(np.linalg.norm(points[:, None] - points[None], axis=-1)))


def mean_square(points: Array) -> float:
    """Return the mean over clients of the squared distance from their mean.

    Examples
    --------
    >>> mean_square(np.array([[0.0], [2.0]]))
    1.0
    """
    centred = points - np.mean(points, axis=0)
    return float(np.mean(client_dot(centred, centred)))
