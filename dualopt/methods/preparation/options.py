"""Preparations by the names of the command line."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from dualopt.methods.preparation._protocol import Preparation
from dualopt.methods.preparation.one_shot import OneShotAverage
from dualopt.methods.preparation.sketched_metric import SketchedMetric
from dualopt.spec.discover import unknown_name

__all__ = ["PreparationOptions"]

STARTS = ("zero", "one-shot", "jackknife")
COORDINATES = ("plain", "sketch", "own-sketches")


@dataclass(frozen=True, kw_only=True)
class PreparationOptions:
    """What happens before the first round.

    Parameters
    ----------
    start : str
        The first model: zero, one-shot (the mean of the clients' own minimisers) or jackknife (the same, corrected).
    coordinates : str
        plain, or of a metric from the features: sketch[=RANK], common and random, or own-sketches[=RANK] of clients.

    Raises
    ------
    ValueError
        If a name is unknown, or the rank is not a whole number from 1 on.

    Examples
    --------
    >>> PreparationOptions(start="one-shot", coordinates="sketch=10").steps()  # doctest: +ELLIPSIS
    [SketchedMetric(rank=10, common=True, seed=0), OneShotAverage(jackknife=False, solver=None, ..., seed=0)]
    >>> PreparationOptions().steps()
    []
    """

    start: str = "zero"
    coordinates: str = "plain"

    def metric(self, seed: int = 0) -> SketchedMetric | None:
        """Return the change of coordinates, if there is one."""
        name, equals, rank = self.coordinates.partition("=")
        if name not in COORDINATES:
            raise unknown_name("coordinates", name, COORDINATES)
        if (equals and not re.fullmatch(r"[0-9]{1,9}", rank)) or (equals and name == "plain"):
            raise ValueError(f"coordinates must be of the form sketch=RANK, not {self.coordinates!r}.")
        if name == "plain":
            return None
        return SketchedMetric(rank=int(rank) if equals else None, common=name == "sketch", seed=seed)

    def steps(self, seed: int = 0) -> list[Preparation]:
        """Return the preparations in their order, with the seed of everything random."""
        if self.start not in STARTS:
            raise unknown_name("start", self.start, STARTS)
        found: list[Preparation] = []
        if (metric := self.metric(seed)) is not None:
            found.append(metric)
        if self.start != "zero":
            found.append(OneShotAverage(jackknife=self.start == "jackknife", seed=seed))
        return found

    def changed(self, objective: Any, seed: int = 0) -> Any:
        """Return the objective in the coordinates in which methods will work: what their parameters are suggested for.

        Raises
        ------
        ValueError
            If the preparations do not fit the objective.
        """
        for step in self.steps(seed):
            step.check(objective)
        metric = self.metric(seed)
        return objective if metric is None else metric.prepare(objective, objective.zeros()).objective
