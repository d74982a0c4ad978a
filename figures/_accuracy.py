"""Runs of networks that are stopped by their test accuracy."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from dualopt.arrays.xp import Array, asarray_like, to_numpy
from dualopt.engine.checkpoint import Checkpoint, RunProgress, table
from dualopt.engine.rounds import Snapshot, initial_state, on_engine, resolve, rounds_of
from dualopt.methods import Algorithm
from dualopt.methods.participation import Participation
from dualopt.objectives import MLP, TorchModule
from dualopt.runs.trace import Trace
from dualopt.spec import described
from figures._local_models import LocalModels

__all__ = ["accuracy_trace", "first_reached", "models_sent"]

COLUMNS = ("round", "floats_up", "accuracy", "server")
UNSEEN = (math.nan, math.nan)  # of a round without a look


def accuracy_trace(
    algorithm: Algorithm,
    network: MLP | TorchModule,
    test: tuple[np.ndarray, np.ndarray],
    *,
    participation: Participation,
    rounds: int,
    every: int = 1,
    target: float = np.inf,
    server: bool = True,
    checkpoint: Checkpoint | None = None,
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
    server : bool, default True
        Whether the server's model is looked at, too.
    checkpoint : Checkpoint, optional
        Where the run is kept while it lasts, and from where it goes on with the same numbers.
    advance : callable, optional
        It is called with the snapshot and the row after every round; accuracies that were not looked at are NaN.
    """
    theta = network.initial(0)
    test = asarray_like(test[0], theta), test[1]

    def look(n: int, sent: float, mean: Array, theta: Array) -> list[float]:
        return [n, sent, _accuracy(network, mean, test), _accuracy(network, theta, test) if server else math.nan]

    algorithm, (_, hosts) = resolve(algorithm, network, participation), on_engine(network, certified=False)
    kept = None
    if checkpoint is not None:
        description = {"algorithm": described(algorithm), "every": every, "target": target, "server": server}
        begun = initial_state(algorithm, network, theta)
        kept = checkpoint.begin(description, (algorithm, network, participation), begun, theta)
    if kept is None:
        latest, since, rows = LocalModels(network, to_numpy(theta)), None, [look(0, 0.0, theta, theta)]
    else:
        latest, since, rows = LocalModels(network, to_numpy(kept.latest)), kept.resume_point, kept.rows.tolist()
    for snapshot in rounds_of(algorithm, hosts, theta, participation, 0, since):
        n, sent = snapshot.round.n + 1, rows[-1][1] + snapshot.floats_up
        models = latest.after(snapshot)
        looked = n % every == 0 or n == rounds
        rows.append(look(n, sent, models.mean(axis=0), snapshot.server.theta) if looked else [n, sent, *UNSEEN])
        advance(snapshot, dict(zip(COLUMNS, rows[-1], strict=True)))
        theta = snapshot.server.theta
        if n == rounds or rows[-1][2] >= target:
            break
        if checkpoint is not None:
            checkpoint.keep(partial(_progress, rows, models, snapshot))
    seen = [row for row in rows if not math.isnan(row[2])]
    columns: dict[str, Any] = dict(zip(COLUMNS, map(list, zip(*seen, strict=True)), strict=True))
    status = "converged" if rows[-1][2] >= target else "max_rounds"
    return Trace(columns=columns, status=status, theta=theta)


def _progress(rows: list[list[float]], models: np.ndarray, snapshot: Snapshot) -> RunProgress:
    """Return what the further rounds depend on, the latest models of all clients among it: no method keeps these."""
    theta = snapshot.server.theta
    return RunProgress(COLUMNS, table(rows), 0.0, models, 0, theta, theta, snapshot.resume_point)


def _accuracy(network: MLP | TorchModule, theta: Array, test: tuple[Array, np.ndarray]) -> float:
    X, y = test
    found = to_numpy(network.predict(asarray_like(theta, X), X))
    return float(np.mean(found == y))  # in float64, so that 972 of 1000 is 0.972


def models_sent(trace: Trace, accuracy: float, active: int, column: str = "accuracy") -> str:
    """Return how many models are sent until an accuracy, as the paper counts them: over those of a round of FedAvg.

    With ``active`` clients in a round it is the number of rounds, twice that of SCAFFOLD, which sends two models; where
    the active ones are drawn one by one it is what they have sent, over what ``active`` clients send. ``> n (x%)`` says
    that the accuracy was not reached with ``n`` models, and the highest that was.

    Examples
    --------
    >>> columns = {"round": [0, 5, 10], "floats_up": [0, 60, 140], "accuracy": [0.1, 0.8, 0.9]}
    >>> trace = Trace(columns=columns, status="max_rounds", theta=np.zeros(3))
    >>> models_sent(trace, 0.8, 2), models_sent(trace, 0.95, 2)
    ('10', '> 23 (90.0%)')
    """
    hit = first_reached(trace, accuracy, column)
    sent = trace["floats_up"][-1 if hit is None else hit] / (math.prod(trace.theta.shape) * active)
    return f"> {sent:.0f} ({100 * trace[column].max():.1f}%)" if hit is None else f"{sent:.0f}"


def first_reached(trace: Trace, accuracy: float, column: str = "accuracy") -> int | None:
    """Return the place of the first row with at least this accuracy; None if there is none.

    Examples
    --------
    >>> columns = {"round": [0, 5, 10], "accuracy": [0.1, 0.8, 0.9]}
    >>> trace = Trace(columns=columns, status="max_rounds", theta=None)
    >>> first_reached(trace, 0.8), first_reached(trace, 0.95)
    (1, None)
    """
    hits = np.flatnonzero(trace[column] >= accuracy)
    return int(hits[0]) if len(hits) else None
