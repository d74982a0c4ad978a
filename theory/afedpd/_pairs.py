"""A-FedPD on two data sets that differ in one row: cases, and everything that may become of them.

Both runs choose the same clients, and an active client draws the same row numbers in both: K rows, one a step,
uniformly with replacement, as in (13). All subsets and all draws are enumerated, so that expectations are exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from dualopt.arrays.xp import Array
from dualopt.engine.rounds import State, advance, initial_state
from dualopt.lab.chance import subsets
from dualopt.losses import Huber, Logistic
from dualopt.methods import AFedPD
from dualopt.methods.participation import Round, first_round
from dualopt.objectives import LinearModel, LocalProblem, linear_model
from dualopt.solvers import LocalSolution
from dualopt.solvers._loop import sampled_solution
from dualopt.solvers.stopping import Steps, Stop
from theory._cases import everybody
from theory.afedpd._runs import duals

__all__ = ["Level", "Neighbours", "Node", "Rows", "levels", "neighbours"]

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
        draws = [self.draws[j] for j in round.clients]
        for rows in zip(*draws, strict=True):
            sample = tuple(np.asarray([row]) for row in rows)
            theta = theta - self.length(round.n) * problem.sample_gradient(theta, sample)
        return sampled_solution(problem, theta, rows=[len(own) for own in draws])


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


@cache
def neighbours(
    loss: Huber | Logistic,
    *,
    size: int,
    local_steps: int,
    rounds: int,
    step: float,
    rho: float,
    decayed: bool,
    seed: int = 4,
) -> Neighbours:
    """Return two clients, of which one is active, whose rows lie in the unit disc.

    Parameters
    ----------
    loss : Huber or Logistic
        Of a row, with a bounded slope.
    size : int
        Number S of rows of a client.
    local_steps, rounds : int
        K and T.
    step : float
        Length of the (first) step, in units of ``1/(K L)``.
    rho : float
        Weight of the proximal term, in units of ``L``.
    decayed : bool
        Whether steps fall like ``1/(t + 1)``.
    seed : int, default 4
        Of the rows.

    Examples
    --------
    >>> case = neighbours(Logistic(), size=3, local_steps=2, rounds=4, step=0.5, rho=1.2, decayed=True)
    >>> case.name, round(case.L, 12), round(case.algorithm.solver.length(1), 12)
    ('Logistic(), S = 3, K = 2, T = 4, decayed step', 0.25, 0.5)
    """
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((2 * size, 2))
    X = X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1.0)
    y = X @ np.array([2.0, -1.0]) + rng.standard_normal(2 * size)
    y = np.sign(y) if isinstance(loss, Logistic) else y
    X[0], other = (0.6, 0.8), X.copy()
    labels = y.copy()
    other[0], labels[0] = (-0.8, 0.6), -y[0]

    def clients(rows: Array, values: Array) -> LinearModel:
        return linear_model(rows, values, loss=loss, mu=0.0, clients=2, intercept=False)

    steps = "decayed" if decayed else "constant"
    case = Neighbours(
        name=f"{loss}, S = {size}, K = {local_steps}, T = {rounds}, {steps} step",
        algorithm=AFedPD(rho=1.0, solver=Rows(step=1.0, decayed=decayed), stop=Steps(steps=local_steps)),
        objectives=(clients(X, y), clients(other, labels)),
        differs=(0, 0),
        slope=loss.delta if isinstance(loss, Huber) else 1.0,
        active=1,
        local_steps=local_steps,
        rounds=rounds,
    )
    solver = Rows(step=step / (local_steps * case.L), decayed=decayed)
    return replace(case, algorithm=replace(case.algorithm, rho=rho * case.L, solver=solver))


class Node(NamedTuple):
    """One thing that may have become of both runs."""

    probability: float
    states: tuple[State, State]
    met: int  # the round in which the row that differs was drawn first; T if it was not

    def models(self) -> Array:
        """Return the two models."""
        return np.stack([state.server.theta for state in self.states])

    def duals(self) -> Array:
        """Return the duals of all clients in both runs, shape ``(2, N, d)``."""
        return np.stack([duals(state) for state in self.states])


class Level(NamedTuple):
    """All that may have happened before round ``n``, and what all clients would do in it."""

    n: int
    nodes: list[Node]
    moved: list[Array]  # E|(theta_j^+ - theta) - (hat theta_j^+ - hat theta)| of every client, node by node
    apart: list[Array]  # E|theta_j^+ - hat theta_j^+|


@lru_cache(maxsize=24)
def levels(case: Neighbours) -> tuple[Level, ...]:
    """Enumerate the rounds; the last level holds the ends, where nothing is moved any more."""
    a, b = (initial_state(case.algorithm, f, f.zeros()) for f in case.objectives)
    nodes = [Node(1.0, (a, b), case.rounds)]
    found = []
    for n in range(case.rounds):
        moves = [_all_moves(case, node, n) for node in nodes]
        found.append(Level(n, nodes, [moved for moved, _ in moves], [apart for _, apart in moves]))
        nodes = [child for node in nodes for child in _children(case, node, n)]
    return (*found, Level(case.rounds, nodes, [], []))


def _all_moves(case: Neighbours, node: Node, n: int) -> tuple[Array, Array]:
    """Return the expectations over the draws, client by client."""
    everyone = everybody(case.n_clients, n=n)
    ends = np.stack(
        [
            [advance(_with_draws(case, (rows,) * case.n_clients), f, s, everyone)[1] for rows in case.sequences()]
            for f, s in zip(case.objectives, node.states, strict=True)
        ]
    )  # (2, draws, N, d)
    apart = ends[0] - ends[1]
    moved = apart - (node.models()[0] - node.models()[1])
    return _mean_norm(moved), _mean_norm(apart)


def _children(case: Neighbours, node: Node, n: int) -> Iterator[Node]:
    client, row = case.differs
    probability = len(case.sequences()) ** -case.active
    for outcome in subsets(case.n_clients, case.active, n=n):
        active = outcome.round.clients
        for drawn in product(case.sequences(), repeat=case.active):
            draws = dict(zip(active, drawn, strict=True))
            method = _with_draws(case, tuple(draws.get(j, ()) for j in range(case.n_clients)))
            a, b = (advance(method, f, s, outcome.round)[0] for f, s in zip(case.objectives, node.states, strict=True))
            met = n if row in draws.get(client, ()) else case.rounds
            yield Node(node.probability * outcome.probability * probability, (a, b), min(node.met, met))


def _with_draws(case: Neighbours, draws: Draws) -> Any:
    return replace(case.algorithm, solver=replace(case.algorithm.solver, draws=draws))


def _mean_norm(x: Array) -> Array:
    return np.mean(np.linalg.norm(x, axis=-1), axis=0)
