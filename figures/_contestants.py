"""A method on a problem, as suggested, until it is accurate or has spent too much: what it spent round by round."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

import dualopt.methods
from dualopt.arrays.xp import width
from dualopt.engine.rounds import Snapshot, iterate, resolve, scaled
from dualopt.methods import Algorithm, Scaffnew
from dualopt.methods.participation import CommunicateWithProbability, Full, Participation
from dualopt.methods.preparation import Prepared, prepared_by
from dualopt.objectives import Objective
from dualopt.runs.certificates import LatestSolutions, certificate
from dualopt.runs.trace import Trace
from dualopt.spec import described
from dualopt.spec.discover import discover
from figures._cells import Case, Reference, built
from figures.vectors import PREPARED

__all__ = ["COLUMNS", "TARGETS", "VARIANTS", "contestants", "measured"]

TARGETS = (1e-4, 1e-10)
COLUMNS = ("rounds", "vectors", "gradients", "seconds", "numbers_up", "numbers_down", "bits_up", "error")
KNOWN = 5.0  # an error is not told below this many times that of the reference
EVERY = 1.01  # the error is measured when this many times as much has been sent as at the last time


@dataclass(frozen=True)
class Contestant:
    """A method with what makes it, as it is suggested, what happens before its first round, and its scales."""

    make: Callable[[], Algorithm]
    prepare: Any = None
    scales: str = "none"

    def described(self) -> Any:
        """Return what defines it, in terms of JSON."""
        plain = described(self.make())
        if self.scales != "none":
            plain = {"algorithm": plain, "scales": self.scales}
        return plain if self.prepare is None else {"algorithm": plain, "prepare": repr(self.prepare)}


VARIANTS = {
    "fedsplit, scales=suggested": Contestant(dualopt.methods.FedSplit, scales="suggested"),
    **{name: Contestant(partial(replace, entry.algorithm), entry.prepare) for name, entry in PREPARED.items()},
}
"""Methods in other than their plain form, by their names in the tables."""


def contestants() -> dict[str, Contestant]:
    """Return all methods of ``dualopt list algorithms``, as they are suggested, and ``VARIANTS``.

    Examples
    --------
    >>> "fedsplit" in contestants(), "fedsplit, scales=suggested" in contestants()
    (True, True)
    """
    plain: dict[str, Any] = dict(discover(dualopt.methods))
    return {**{name: Contestant(kind) for name, kind in plain.items()}, **VARIANTS}


def measured(name: str, case: Case) -> Trace:
    """Run a method on a problem, and return what it spent, a row for every measurement.

    ``rounds`` counts those that communicate; ``vectors`` and ``gradients`` are of a client on average; ``seconds`` is
    the CPU time of the method alone; numbers and bits are those of all clients together. ``error`` is relative to the
    least energy, or the certified one where that is not known (``parameters["certified"]``). ``parameters["end"]`` is
    ``reached``, ``diverged``, the limit at which it was cut off, or the sentence by which the method refuses the
    problem, without rows.
    """
    objective, least = built(case)
    contestant = contestants()[name]
    algorithm: Any = contestant.make()
    participation = case.parsed
    facts: dict[str, Any] = {"certified": least is None}
    try:
        if isinstance(algorithm, Scaffnew):
            algorithm, participation = _with_coin(algorithm, objective, participation)
        if contestant.prepare is not None and not isinstance(participation, Full):
            raise ValueError("a preparation asks all clients.")
        clients = scaled(algorithm, objective, contestant.scales, participation)
        resolve(algorithm, clients, participation).check(clients)
        begun = time.process_time()
        prepared = prepared_by(contestant.prepare, objective, objective.initial())
        f, theta0 = prepared.objective, prepared.theta0
        snapshots = iterate(algorithm, f, theta0=theta0, participation=participation, scales=contestant.scales)
        first = next(snapshots)  # a local solver may refuse the loss
        seconds = time.process_time() - begun
    except ValueError as refusal:
        columns: dict[str, list[float]] = {column: [] for column in COLUMNS}
        return _trace(columns, {**facts, "end": f"refuses: {refusal}"})
    rounds = chain([(first, seconds)], _timed(snapshots))
    columns, end = _spent(rounds, objective, least, case, prepared)
    return _trace(columns, {**facts, "end": end})


def _trace(columns: Mapping[str, list[float]], facts: Mapping[str, Any]) -> Trace:
    return Trace(columns=columns, status="stopped", theta=None, parameters=facts)


def _with_coin(algorithm: Scaffnew, objective: Objective, participation: Participation) -> tuple[Scaffnew, Any]:
    """Return Scaffnew with the coin that it suggests; it knows nobody who sleeps."""
    if not isinstance(participation, Full):
        raise ValueError("Scaffnew does not support partial participation.")
    algorithm = algorithm.suggested(objective)
    return algorithm, CommunicateWithProbability(probability=algorithm.probability)


def _timed(snapshots: Iterator[Snapshot]) -> Iterator[tuple[Snapshot, float]]:
    """Yield every round with the CPU time that it took."""
    while True:
        begun = time.process_time()
        snapshot = next(snapshots)
        yield snapshot, time.process_time() - begun


def _spent(
    rounds: Iterable[tuple[Snapshot, float]],
    objective: Objective,
    least: Reference | None,
    case: Case,
    prepared: Prepared,
) -> tuple[dict[str, list[float]], str]:
    """Return the columns and why the run ended."""
    N, size = objective.n_clients, math.prod(objective.shape)
    latest, begun, limits = LatestSolutions(objective), time.process_time(), case.limits
    spent = dict.fromkeys(COLUMNS[:-1], 0.0)
    spent["numbers_up"], spent["numbers_down"] = float(prepared.floats_up), float(prepared.floats_down)
    spent["gradients"] = sum(prepared.gradients) / N
    spent["bits_up"] = float(width(prepared.theta0) * prepared.floats_up)
    columns: dict[str, list[float]] = {column: [] for column in COLUMNS}
    next_measure = 0.0
    for s, seconds in rounds:
        spent["seconds"] += seconds
        sent = s.round.communicate and s.solution is not None
        spent["rounds"] += float(sent)
        spent["numbers_up"] += s.floats_up
        spent["numbers_down"] += s.floats_down
        spent["bits_up"] += s.bits_up
        spent["vectors"] = spent["numbers_up"] / (N * size)
        if s.solution is not None:
            spent["gradients"] += float(np.sum(np.asarray(s.solution.gradients))) / N
        if least is None and prepared.model is None:
            latest.update(s.round.clients, s.solution)
        over = [what for what in ("vectors", "gradients") if spent[what] >= getattr(limits, what)]
        over += ["seconds"] * (time.process_time() - begun >= limits.seconds)
        if over or (sent and spent["vectors"] >= next_measure):
            next_measure = EVERY * spent["vectors"]
            error = _error(objective, prepared.in_user_coordinates(s.server.theta), least, latest)
            for column, number in {**spent, "error": error}.items():
                columns[column].append(number)
            if error <= case.accuracy:
                return columns, "reached"
            if math.isnan(error) or (least is not None and error > 1e8):
                return columns, "diverged"
        if over:
            return columns, over[0]
    raise AssertionError("a run has no last round")


def _error(objective: Objective, theta: Any, least: Reference | None, latest: LatestSolutions) -> float:
    """Return the relative error of the energy as far as the reference tells it, or a certified bound of it."""
    if least is None:
        return certificate(objective, theta, latest.solution).relative
    with np.errstate(all="ignore"):
        energy = float(objective.mean(objective.value(theta))) + objective.regulariser.value(theta)
    return max((energy - least.energy) / least.energy, KNOWN * least.error)
