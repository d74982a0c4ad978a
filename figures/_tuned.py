"""The grid search of the DualFL paper, on a part of the rows; every outcome is stored as soon as it is known."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from dualopt.app.cli.record import Record, load, search_progress
from dualopt.arrays.xp import array_namespace
from dualopt.problem.build import build_problem
from dualopt.problem.options import ProblemOptions
from dualopt.runs.tuning import Trial, tune
from dualopt.solvers.stopping import GradientReduction
from dualopt.spec import described
from figures._cached import CachedObjective
from figures._reference import least_energy
from figures._settings import Settings
from figures._store import digest, key, missing
from figures._table2 import TUNED, Point, gradients_needed, grid, to_candidate

__all__ = ["CLIENTS", "TARGET", "Search", "Tuned", "best"]

CLIENTS = 8
TARGET = 1e-6
# Gradient steps, times 1/L: a shorter one is beaten by that ten times as long, which is still safe; a longer one leaps.
SHORTEST, LONGEST = 0.1, 300.0
TUNING_STOP = GradientReduction()  # also where the curves themselves are checked with exact local solutions


@dataclass(frozen=True, kw_only=True)
class Tuned:
    """What won a search.

    Parameters
    ----------
    point : dict of str to str
        The parameters.
    outcome : Trial
        How its run on the part of the rows went.
    """

    point: Point
    outcome: Trial

    @property
    def reached(self) -> int | None:
        """Communications to the target; None if it was not reached."""
        return int(self.outcome.cost) if self.outcome.status == "converged" else None


@dataclass(frozen=True)
class Search:
    """The searches of all methods, on one problem: the settings', but with a part of the rows at most."""

    settings: Settings

    def tuned(self, name: str) -> Tuned:
        """Return the stored winner of a method, or search for it.

        The winner needs the fewest communications to the relative error ``TARGET``, by the true error. Of several, and
        when none arrives, it is the one with the lowest error at the end.

        Raises
        ------
        ValueError
            If there are fewer rows than clients, or a search that is not stored must not be made.
        """
        points, outcomes = self.points(name), self.outcomes(name)
        winner = best(outcomes)
        return Tuned(point=points[winner], outcome=outcomes[winner])

    def outcomes(self, name: str) -> Mapping[int, Trial]:
        """Return how the run of every point went, by its number; what is not stored is run and stored."""
        settings, points = self.settings, self.points(name)
        record = self._record(name, points)
        left = len(points) - len(record.known)
        if left and settings.stored_only:
            raise missing(f"the search for the parameters of {name!r}", settings.cache)
        if left == 0:
            return record.known
        record.folder.mkdir(parents=True, exist_ok=True)
        record = record.begin(fresh=not record.known)
        with search_progress(settings.console, f"tuning {TUNED[name].title}", left, record) as advance:
            return tune(
                [to_candidate(name, p, stop=TUNING_STOP, communications=settings.rounds) for p in points],
                self.problem,
                metric="communications",
                target=TARGET,
                reference=self.energy,
                jobs=settings.jobs,
                known=record.known,
                report=advance,
            )

    def points(self, name: str) -> list[Point]:
        """Return the points to be tried, those with the least local work first: they stop the more expensive ones.

        Left out are points that prescribe more local gradients than the settings admit, and gradient steps outside
        ``SHORTEST / L`` to ``LONGEST / L``.
        """
        points = sorted(grid(name, rows_per_client=self.rows / CLIENTS), key=self._work)  # stable
        most = self.settings.most_gradients // (10 if self.settings.quick else 1)
        kept = [point for point in points if self._work(point) <= most and self._moves(point)]
        return kept[::3] if self.settings.quick else kept

    @property
    def rows(self) -> int:
        """Number of rows of all clients in the figure."""
        return self.settings.whole.objective.sizes[0]

    @cached_property
    def problem(self) -> Any:
        """The objective of the search."""
        return CachedObjective(build_problem(self._options).objective)

    @cached_property
    def energy(self) -> float:
        """``E*`` of that objective."""
        return self._number("reference energy", lambda: least_energy(self.problem))

    @cached_property
    def smoothness(self) -> float:
        """The largest ``L_j`` of that objective."""
        return self._number("largest L", lambda: float(array_namespace(self.problem.L).max(self.problem.L)))

    @property
    def _options(self) -> ProblemOptions:
        part = self.settings.part
        return replace(self.settings.options(CLIENTS), rows=part if self.rows > part else self.settings.rows)

    @property
    def _described(self) -> dict[str, Any]:
        return self.settings.described(CLIENTS) | {"rows_used": self._options.rows}

    def _number(self, what: str, compute: Callable[[], float]) -> float:
        settings = self.settings
        description = self._described | {"result": what}
        return settings.stored_number(f"the {what}", description, compute)

    def _work(self, point: Point) -> float:
        return gradients_needed(point, self.settings.rounds)

    def _moves(self, point: Point) -> bool:
        step = float(point.get("solver.step", 1.0 / self.smoothness))
        return SHORTEST <= step * self.smoothness <= LONGEST

    def _record(self, name: str, points: Sequence[Point]) -> Record:
        """Return what is stored of a search: nothing if that is damaged, or of other code."""
        settings = self.settings
        description = self._described | {
            "method": name,
            "points": points,
            "solver": TUNED[name].solver,
            "stop": described(TUNING_STOP),
            "metric": "communications",
            "target": TARGET,
            "rounds": self.settings.rounds,
        }
        wanted = key(description)
        folder = settings.cache / f"tune-{name}-{digest(wanted)}"
        try:
            record = load(folder, wanted, points, fresh=False, keep_stale=settings.keep_stale)
        except ValueError:
            return load(folder, wanted, points, fresh=True)
        if record.stale and settings.stale is not None:
            settings.stale(f"the search for the parameters of {name!r}")
        return record


def best(outcomes: Mapping[int, Trial]) -> int:
    """Return the number of the winner: the cheapest that reached the target, else the lowest error at the end.

    Of several equally cheap ones it is that with the lowest error.

    Examples
    --------
    >>> first = Trial(status="converged", costs=(1.0,), errors=(1e-7,), seconds=0.0)
    >>> best({0: replace(first, errors=(math.nan,), status="diverged"), 1: first, 2: replace(first, errors=(1e-8,))})
    2
    """

    def merit(n: int) -> tuple[bool, float, float]:
        outcome = outcomes[n]
        reached = outcome.status == "converged"
        error = math.inf if math.isnan(outcome.error) else outcome.error
        return not reached, outcome.cost if reached else 0.0, error

    return min(outcomes, key=merit)
