"""Everything that may become of two neighbouring runs, with its probability."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from dualopt.engine import State, advance, initial_state
from dualopt.participation import first_round
from dualopt.xp import Array
from theory._chance import subsets
from theory.afedpd._neighbours import Draws, Neighbours

__all__ = ["Level", "Node", "levels"]


class Node(NamedTuple):
    """What may have become of both runs."""

    probability: float
    states: tuple[State, State]
    met: int  # the round in which the row that differs was drawn first; T if it was not

    def models(self) -> Array:
        """Return the two models."""
        return np.stack([state.server.theta for state in self.states])

    def duals(self) -> Array:
        """Return the duals of all clients in both runs, shape ``(2, N, d)``."""
        return np.stack([state.clients.dual for state in self.states])


class Level(NamedTuple):
    """All that may have happened before round ``n``, and what all clients would do in it."""

    n: int
    nodes: list[Node]
    moved: list[Array]  # E|(theta_j^+ - theta) - (hat theta_j^+ - hat theta)| of every client, node by node
    apart: list[Array]  # E|theta_j^+ - hat theta_j^+|


@lru_cache(maxsize=24)
def levels(case: Neighbours) -> tuple[Level, ...]:
    """Enumerate the rounds; the last level holds the ends, where nothing is moved any more."""
    start = tuple(initial_state(case.algorithm, f, f.zeros()) for f in case.objectives)
    nodes = [Node(1.0, start, case.rounds)]  # pyright: ignore[reportArgumentType]
    found = []
    for n in range(case.rounds):
        moves = [_all_moves(case, node, n) for node in nodes]
        found.append(Level(n, nodes, [moved for moved, _ in moves], [apart for _, apart in moves]))
        nodes = [child for node in nodes for child in _children(case, node, n)]
    return (*found, Level(case.rounds, nodes, [], []))


def _all_moves(case: Neighbours, node: Node, n: int) -> tuple[Array, Array]:
    """Return the expectations over the draws, client by client."""
    everyone = replace(first_round(case.n_clients), n=n)
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
