"""Tuning by successive halving: candidates run side by side, the worst are dropped, the first at the target wins."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from dualopt.engine.rounds import iterate
from dualopt.methods import Algorithm
from dualopt.methods.participation import Participation
from dualopt.objectives import LinearModel
from dualopt.runs.trace import Trace
from figures._local_models import LocalModels

__all__ = ["Contestant", "race", "training_loss"]

FINALISTS = 2
FIRST_HEAT, SECOND_HEAT = 1 / 16, 1 / 4  # of the rounds
WARM_UP = 5  # rounds before which nothing is dropped


def training_loss(objective: LinearModel, theta: Any) -> float:
    """Return ``E`` without its ridge; infinite when it is not a number."""
    value = float(objective.mean(objective.value(theta))) - 0.5 * objective.ridge * float(np.sum(theta * theta))
    return math.inf if math.isnan(value) else value


class Contestant:
    """One run that goes on round by round.

    Each row holds the ``loss`` at the mean of the latest models of all clients, and ``server``, that at the server's
    model.

    Examples
    --------
    >>> from dualopt.methods import FedAvg
    >>> from dualopt.losses import Squared
    >>> from dualopt.objectives import linear_model
    >>> from dualopt.methods.participation import Full
    >>> f = linear_model(np.eye(2), np.array([1.0, 3.0]), loss=Squared(), mu=0.0, clients=2, intercept=False)
    >>> contestant = Contestant(FedAvg(), f, Full())
    >>> contestant.advance()
    >>> [row["loss"] for row in contestant.rows]
    [2.5, 0.625]
    """

    def __init__(self, algorithm: Algorithm, objective: LinearModel, participation: Participation) -> None:
        self.objective = objective
        self._run = iterate(algorithm, objective, participation=participation)
        self._latest = LocalModels(objective)
        self.theta = objective.zeros()
        start = training_loss(objective, self.theta)
        self.rows = [{"round": 0.0, "floats_up": 0.0, "floats_down": 0.0, "loss": start, "server": start}]

    def advance(self) -> None:
        """Do one round."""
        snapshot, last = next(self._run), self.rows[-1]
        self.theta = snapshot.server.theta
        self.rows.append(
            {
                "round": last["round"] + 1.0,
                "floats_up": last["floats_up"] + snapshot.floats_up,
                "floats_down": last["floats_down"] + snapshot.floats_down,
                "loss": training_loss(self.objective, np.mean(self._latest.after(snapshot), axis=0)),
                "server": training_loss(self.objective, self.theta),
            }
        )

    @property
    def best(self) -> float:
        """The lowest loss so far."""
        return min(row["loss"] for row in self.rows)

    def trace(self, *, reached: bool, **parameters: Any) -> Trace:
        """Return what was recorded."""
        columns = {name: [row[name] for row in self.rows] for name in self.rows[0]}
        status = "converged" if reached else "max_rounds"
        return Trace(columns=columns, status=status, theta=self.theta, parameters=parameters)


def race(contestants: Mapping[str, Contestant], *, rounds: int, target: float = -math.inf) -> str:
    """Advance all contestants side by side and return the label of the winner.

    It is the first whose loss is at most ``target`` (the lowest loss among those of the same round), or the one with
    the lowest loss of all when none arrives within ``rounds``. After a sixteenth of the rounds only the better third
    goes on, after a quarter of them the best two, by their lowest losses so far.
    """
    running = dict(contestants)
    heats = {max(WARM_UP, round(FIRST_HEAT * rounds)): math.ceil(len(running) / 3)}
    heats.setdefault(max(WARM_UP, round(SECOND_HEAT * rounds)), FINALISTS)
    for n in range(1, rounds + 1):
        for contestant in running.values():
            contestant.advance()
        if min(contestant.best for contestant in running.values()) <= target:
            break
        ranked = sorted(running, key=lambda label: running[label].best)
        running = {label: running[label] for label in ranked[: max(FINALISTS, heats.get(n, len(ranked)))]}
    return min(running, key=lambda label: running[label].best)
