"""Runs of networks that are stopped by their test accuracy."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import numpy as np

from dualopt.arrays.xp import Array, asarray_like, to_numpy
from dualopt.engine.rounds import iterate
from dualopt.methods import Algorithm
from dualopt.methods.participation import Participation
from dualopt.objectives import MLP, TorchModule
from dualopt.runs.trace import Trace
from figures._local_models import LocalModels

__all__ = ["accuracy_trace", "first_reached", "models_sent"]


def accuracy_trace(
    algorithm: Algorithm,
    network: MLP | TorchModule,
    test: tuple[np.ndarray, np.ndarray],
    *,
    participation: Participation,
    rounds: int,
    every: int = 1,
    target: float = np.inf,
    advance: Callable[[Any, Any], Any] = lambda snapshot, row: None,
) -> Trace:
    """Run until the mean of the latest models of all clients has an accuracy.

    The column ``accuracy`` is that of this mean, ``server`` that of the server's model; the paper reports the first.

    Parameters
    ----------
    algorithm : Algorithm
        The method.
    network : MLP or TorchModule
        The clients.
    test : tuple of two arrays
        Rows ``(m, d)`` and classes ``(m,)``.
    participation : Participation
        Who takes part.
    rounds : int
        Largest number of rounds.
    every : int, default 1
        Rounds from one look at the test rows to the next; there is one after the last round too.
    target : float, default infinity
        The accuracy, in [0, 1].
    advance : callable, optional
        It is called with the snapshot and the latest row after every round.
    """
    theta = network.initial(0)
    latest = LocalModels(network, to_numpy(theta))
    test = asarray_like(test[0], theta), test[1]
    at_start = _accuracy(network, theta, test)
    rows = [{"round": 0.0, "floats_up": 0.0, "accuracy": at_start, "server": at_start}]
    sent = 0
    run = iterate(algorithm, network, participation=participation, theta0=theta)
    for n, snapshot in zip(count(1), run, strict=False):
        models = latest.after(snapshot)
        sent += snapshot.floats_up
        theta = snapshot.server.theta
        if n % every == 0 or n == rounds:
            mean, server = (_accuracy(network, point, test) for point in (models.mean(axis=0), theta))
            rows.append({"round": float(n), "floats_up": float(sent), "accuracy": mean, "server": server})
        advance(snapshot, rows[-1])
        if n == rounds or rows[-1]["accuracy"] >= target:
            break
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    status = "converged" if rows[-1]["accuracy"] >= target else "max_rounds"
    return Trace(columns=columns, status=status, theta=theta)


def _accuracy(network: MLP | TorchModule, theta: Array, test: tuple[Array, np.ndarray]) -> float:
    X, y = test
    found = to_numpy(network.predict(asarray_like(theta, X), X))
    return float(np.mean(found == y))  # in float64, so that 972 of 1000 is 0.972


def models_sent(trace: Trace, accuracy: float, each: int, column: str = "accuracy") -> str:
    """Return how many models an active client sends until an accuracy, ``each`` in a round.

    ``> n (x%)`` says that it was not reached with ``n`` models, and the highest that was.

    Examples
    --------
    >>> columns = {"round": [0, 5, 10], "accuracy": [0.1, 0.8, 0.9]}
    >>> trace = Trace(columns=columns, status="max_rounds", theta=None)
    >>> models_sent(trace, 0.8, 2), models_sent(trace, 0.95, 2)
    ('10', '> 20 (90.0%)')
    """
    rounds = first_reached(trace, accuracy, column)
    if rounds is not None:
        return f"{each * rounds}"
    return f"> {each * trace.last['round']:.0f} ({100 * trace[column].max():.1f}%)"


def first_reached(trace: Trace, accuracy: float, column: str = "accuracy") -> int | None:
    """Return the first recorded round with at least this accuracy; None if there is none.

    Examples
    --------
    >>> columns = {"round": [0, 5, 10], "accuracy": [0.1, 0.8, 0.9]}
    >>> trace = Trace(columns=columns, status="max_rounds", theta=None)
    >>> first_reached(trace, 0.8), first_reached(trace, 0.95)
    (5, None)
    """
    hits = np.flatnonzero(trace[column] >= accuracy)
    return int(trace["round"][hits[0]]) if len(hits) else None
