"""FedAvg's gradient steps between two averages, and how large gradients may be."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dualopt.algorithms import FedAvg
from dualopt.engine import advance, initial_state
from dualopt.objectives import LinearModel
from dualopt.participation import Full
from dualopt.solvers import Gradient
from dualopt.stopping import Steps
from dualopt.xp import Array

__all__ = ["LocalRound", "LocalSteps", "Vanishing", "bounded_gradient", "squares"]


class Vanishing(NamedTuple):
    """Steps ``first / (r + 1)^power``, constant for the power 0."""

    first: float
    power: float = 0.0

    def __call__(self, n: int) -> float:
        """Return the length of the steps of round ``n``."""
        return self.first / (n + 1.0) ** self.power


class LocalRound(NamedTuple):
    """One round: its step and the mean of the clients' models after 0, 1, ..., Q local steps."""

    n: int
    step: float
    means: list[Array]


@dataclass(frozen=True, kw_only=True, eq=False)
class LocalSteps:
    """FedAvg with Q gradient steps of a length that may change from round to round.

    Attributes
    ----------
    name : str
        For tables.
    objective : Objective
        The clients.
    schedule : callable
        Maps the index of a round to the length of its steps.
    steps : int
        The paper's ``Q``.
    rounds : int
        How many rounds to look at.
    G : float
        Bound of all clients' gradients (A3 with D = 0).
    lowest : float, default 0
        A lower bound of ``E``.
    start : array, shape ``shape``, optional
        The first model; zero when not given.
    """

    name: str
    objective: Any
    schedule: Callable[[int], float]
    steps: int
    rounds: int
    G: float
    lowest: float = 0.0
    start: Array | None = None

    @property
    def L(self) -> float:
        """Largest smoothness constant."""
        return float(np.max(self.objective.L))

    def algorithm(self, length: float, steps: int) -> FedAvg:
        """Return FedAvg with some gradient steps of a given length."""
        return FedAvg(solver=Gradient(step=length), stop=Steps(steps=steps))

    def run(self) -> Iterator[LocalRound]:
        """Follow the run; the model after q steps is what averaging them would give."""
        theta = self.objective.zeros() if self.start is None else self.start
        for n, round in zip(range(self.rounds), Full().rounds(self.objective.n_clients, seed=0), strict=False):
            length, means = self.schedule(n), [theta]
            for q in range(1, self.steps + 1):
                method = self.algorithm(length, q)
                start = initial_state(method, self.objective, theta)
                means.append(advance(method, self.objective, start, round)[0].server.theta)
            yield LocalRound(n, length, means)
            theta = means[-1]


def bounded_gradient(objective: LinearModel) -> float:
    r"""Return :math:`G \ge (\frac1N\sum_j |\nabla f_j|^2)^{1/2}` for losses of slope at most 1 without a ridge.

    Examples
    --------
    >>> from dualopt.losses import Logistic
    >>> from dualopt.objectives import linear_model
    >>> round(bounded_gradient(linear_model(np.eye(2), np.ones(2), loss=Logistic(), mu=0.0, intercept=False)), 9)
    1.0
    """
    assert objective.ridge == 0
    sizes = [float(np.sum(w * np.linalg.norm(X, axis=1))) for X, _, w in objective.client_rows()]
    return float(np.sqrt(np.mean(np.square(sizes))))


def squares(steps: int) -> int:
    """Return ``0^2 + 1^2 + ... + (Q-1)^2``, which sums the drifts of one round.

    Examples
    --------
    >>> squares(4)
    14
    """
    return (steps - 1) * steps * (2 * steps - 1) // 6
