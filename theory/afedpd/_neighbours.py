r"""A-FedPD on two data sets that differ in one row, with coupled chance, and exact expectations over all of it.

Both runs choose the same clients, and an active client draws the same row numbers in both: K rows, one a step,
uniformly with replacement, as in (13). All subsets and all draws are enumerated in :mod:`theory.afedpd._tree`, so
expectations are exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from dualopt.objectives import LinearModel, LocalProblem
from dualopt.participation import Round, first_round
from dualopt.solvers import LocalSolution
from dualopt.solvers._loop import sampled_solution
from dualopt.stopping import Stop
from dualopt.xp import Array

__all__ = ["Draws", "Neighbours", "Rows"]

Draws = tuple[tuple[int, ...], ...]  # the rows of every client, step by step


@dataclass(frozen=True, kw_only=True)
class Rows:
    """Gradient steps on single rows that are given in advance; the step is ``step``, or ``step/(n + 1)`` in round n."""

    step: float
    decayed: bool = False
    draws: Draws = ()

    def length(self, n: int) -> float:
        """Return the step of round ``n``."""
        return self.step / (n + 1) if self.decayed else self.step

    def initial_state(self, objective: Any) -> Any:
        """Return ``()``."""
        return ()

    def __call__(
        self, problem: LocalProblem, start: Array, stop: Stop, solver_state: Any = (), round: Round | None = None
    ) -> LocalSolution:
        """Take the steps from ``start``."""
        round = round or first_round(problem.n_clients)
        theta = start
        steps = list(zip(*(self.draws[j] for j in round.clients), strict=True))
        for rows in steps:
            sample = tuple(np.asarray([row]) for row in rows)
            theta = theta - self.length(round.n) * problem.sample_gradient(theta, sample)
        return sampled_solution(problem, theta, rows=[len(steps)] * problem.n_clients)


@dataclass(frozen=True, kw_only=True, eq=False)
class Neighbours:
    """Two data sets that differ in one row, and the method on both.

    Attributes
    ----------
    name : str
        For tables.
    algorithm : AFedPD
        The method; its solver is :class:`Rows`.
    objectives : pair of LinearModel
        All clients have S rows, and no ridge.
    differs : (int, int)
        Client and row number of the pair that differs.
    slope : float
        Bound of the derivative of the loss in its predictor.
    active, local_steps, rounds : int
        P, K and T.
    """

    name: str
    algorithm: Any
    objectives: tuple[LinearModel, LinearModel]
    differs: tuple[int, int]
    slope: float
    active: int
    local_steps: int
    rounds: int

    @property
    def n_clients(self) -> int:
        """Number ``N`` of clients."""
        return self.objectives[0].n_clients

    @property
    def size(self) -> int:
        """Number ``S`` of rows of a client."""
        return self.objectives[0].rows.max_rows

    @property
    def rho(self) -> float:
        """Weight of the proximal term."""
        return self.algorithm.rho

    def rows(self) -> tuple[Array, Array]:
        """Return features and labels of both data sets together."""
        X, y, _ = zip(*(rows for f in self.objectives for rows in f.client_rows()), strict=True)
        return np.concatenate(X), np.concatenate(y)

    @property
    def G(self) -> float:
        """Lipschitz constant of the loss of a row."""
        return self.slope * float(np.max(np.linalg.norm(self.rows()[0], axis=1)))

    @property
    def L(self) -> float:
        """Smoothness constant of the loss of a row."""
        return self.objectives[0].loss.curvature * float(np.max(np.sum(self.rows()[0] ** 2, axis=1)))

    def losses(self, theta: Array) -> Array:
        """Return the losses of all rows of both data sets at a model."""
        X, y = self.rows()
        return self.objectives[0].loss.value(X @ theta, y)

    def sequences(self) -> list[tuple[int, ...]]:
        """Return the draws of one client in one round, equally likely."""
        return list(product(range(self.size), repeat=self.local_steps))
