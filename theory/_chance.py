"""Exact expectations over what chance may do in one round: every subset of the clients, both sides of a coin."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations
from math import comb
from typing import Any, NamedTuple

import numpy as np

from dualopt.arrays.xp import Array
from dualopt.engine.rounds import State, advance
from dualopt.methods.participation import (
    CommunicateWithProbability,
    Full,
    Participation,
    Round,
    UniformSubset,
    WeightedSubset,
)

__all__ = ["Outcome", "coin", "expectation", "outcomes_of", "subsets", "worst_growth"]


class Outcome(NamedTuple):
    """One thing that may happen in a round."""

    probability: float
    round: Round


def subsets(n_clients: int, size: int, *, n: int = 0, seed: int = 0) -> list[Outcome]:
    """Return all subsets of ``size`` clients, equally likely.

    Examples
    --------
    >>> [(outcome.probability, outcome.round.clients) for outcome in subsets(3, 1)]
    [(0.3333333333333333, (0,)), (0.3333333333333333, (1,)), (0.3333333333333333, (2,))]
    """
    probability = 1.0 / comb(n_clients, size)
    return [
        Outcome(probability, Round(n=n, n_clients=n_clients, clients=chosen, communicate=True, seed=seed))
        for chosen in combinations(range(n_clients), size)
    ]


def coin(n_clients: int, probability: float, *, n: int = 0, seed: int = 0) -> list[Outcome]:
    """Return the round that communicates, with the given probability, and the one that does not.

    Examples
    --------
    >>> [(outcome.probability, outcome.round.communicate) for outcome in coin(2, 0.25)]
    [(0.25, True), (0.75, False)]
    """
    clients = tuple(range(n_clients))
    return [
        Outcome(chance, Round(n=n, n_clients=n_clients, clients=clients, communicate=communicate, seed=seed))
        for chance, communicate in ((probability, True), (1.0 - probability, False))
        if chance > 0
    ]


def outcomes_of(participation: Participation, n_clients: int, *, n: int = 0, seed: int = 0) -> list[Outcome]:
    """Return everything that may happen in a round of a participation.

    Raises
    ------
    TypeError
        If the rounds of the participation are not subsets of a given size, or one coin for all.

    Examples
    --------
    >>> [outcome.round.clients for outcome in outcomes_of(UniformSubset(size=2), 3)]
    [(0, 1), (0, 2), (1, 2)]
    """
    common = {"n": n, "seed": seed}
    if isinstance(participation, Full):
        return subsets(n_clients, n_clients, **common)
    if isinstance(participation, UniformSubset):
        return subsets(n_clients, participation.size, **common)
    if isinstance(participation, WeightedSubset):
        rounds = Round(n_clients=n_clients, clients=(), communicate=True, **common)
        found = participation.cohorts(n_clients).items()
        return [Outcome(chance, replace(rounds, clients=clients)) for clients, chance in found]
    if isinstance(participation, CommunicateWithProbability):
        return coin(n_clients, participation.probability, **common)
    raise TypeError(f"the outcomes of {type(participation).__name__} are not listed.")


def expectation(
    quantity: Callable[[State], Any], algorithm: Any, objective: Any, state: State, outcomes: Sequence[Outcome]
) -> Any:
    """Return the mean of ``quantity`` after one round from ``state``, exactly: the sum over all outcomes."""
    found = [o.probability * quantity(advance(algorithm, objective, state, o.round)[0]) for o in outcomes]
    return sum(found[1:], start=found[0])


def worst_growth(
    algorithm: Any,
    objective: Any,
    outcomes: Sequence[Outcome],
    state: Callable[[Array], State],
    errors: Callable[[State], Array],
    size: int,
) -> float:
    """Return the largest ``E Psi+ / Psi`` over all states of quadratic clients, ``Psi`` the squared norm of ``errors``.

    ``state`` makes the state whose errors are given. Rounds act linearly on errors, so that the unit vectors tell all.
    """
    form = np.zeros((size, size))
    states = [state(unit) for unit in np.eye(size)]
    for chance, round in outcomes:
        rows = np.stack([errors(advance(algorithm, objective, s, round)[0]) for s in states])
        form += chance * rows @ rows.T
    return float(np.linalg.eigvalsh(form)[-1])
