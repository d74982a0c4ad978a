"""The rows of a trace, as a run collects them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any

from dualopt.arrays.xp import Array, epsilon, limits, width
from dualopt.engine._errors import LostError
from dualopt.engine._server import Server
from dualopt.engine.checkpoint import Checkpoint, RunProgress, table
from dualopt.engine.rounds import Snapshot
from dualopt.methods.preparation import Prepared
from dualopt.objectives import Objective
from dualopt.runs._due import next_certificate
from dualopt.runs.certificates import Certificate, Sums, certificate_from
from dualopt.runs.divergence import above, diverges
from dualopt.runs.trace import MEASURING, SENT

__all__ = ["EXPLOSION", "Recorder", "communicated"]

EXPLOSION = 1e8  # above the start: a model of that size is measured, and a run that diverges need not go on


class Recorder:
    """Collects the rows of a trace."""

    def __init__(
        self,
        objective: Objective,
        hosts: Server,
        reference: float | None,
        reference_gap: float,
        measure: Mapping[str, Callable],
    ) -> None:
        self.objective, self.hosts = objective, hosts
        self.reference, self.reference_gap = reference, reference_gap
        self.contradicted = False  # whether a certificate was below the error that the reference shows
        self.measure = measure
        self.rows: list[dict[str, float]] = []
        self.gradients = 0.0  # of all clients together
        self.snapshot: Snapshot | None = None
        self.theta: Any = None  # the model of the latest row
        self.best: Any = None  # the one of the least energy that was measured
        self.least = math.inf
        self._complete: tuple[int, Any, Any] = (0, None, None)  # rows that are, the model and snapshot of the last
        self.seen = True  # whether the latest row has an energy
        self.measuring: dict[str, float] = dict.fromkeys(MEASURING, 0.0)  # bits so far

    def start(self, theta: Array, prepared: Prepared, seconds: float, *, certify: bool) -> None:
        self.gradients, self.theta = sum(prepared.gradients), theta
        spent = {
            "round": 0.0,
            "communications": float(prepared.exchanges),
            "floats_up": float(prepared.floats_up),
            "floats_down": float(prepared.floats_down),
            "bits_up": float(prepared.floats_up * width(theta)),
            "bits_down": float(prepared.floats_down * width(theta)),
            "gradients": self.gradients / self.objective.n_clients,
            "seconds": seconds,
        }
        bound = self._certified(theta) if certify else None
        quality = self._quality(theta, bound)
        self.rows.append(spent | self.measuring | quality | dict.fromkeys(self.measure, math.nan))
        self._complete = 1, theta, None
        self._judge(theta)

    def add(
        self, snapshot: Snapshot, seconds: float, *, measured: bool, certify: bool
    ) -> tuple[dict[str, float], Certificate | None]:
        last, theta = self.rows[-1], snapshot.server.theta
        self.snapshot = snapshot
        bound, quality = None, None
        if measured:
            try:
                bound = self._certified(theta) if certify else None
                quality = self._quality(theta, bound) | self._further()
            except LostError as error:
                self._without_energy(error)
        if snapshot.solution is not None:
            self.gradients += sum(snapshot.solution.gradients)
        row = {
            "round": float(len(self.rows)),
            "communications": last["communications"] + float(communicated(snapshot)),
            **{name: last[name] + getattr(snapshot, name) for name in SENT},
            **self.measuring,
            "gradients": self.gradients / self.objective.n_clients,
            "seconds": last["seconds"] + seconds,
        }
        names = [name for name in self.rows[0] if name not in row]
        row |= dict.fromkeys(names, math.nan) if quality is None else quality
        self.rows.append(row)
        self._judge(theta)
        self.seen = quality is not None
        self.theta = theta
        self._complete = len(self.rows), theta, snapshot
        return row, bound

    def _judge(self, theta: Array) -> None:
        """Keep the model if there is no better one."""
        energy = self.rows[-1]["energy"]
        if self.best is None or energy < self.least:
            self.best, self.least = theta, energy if energy == energy else math.inf

    def is_due(self, tol: float | None, atol: float | None) -> bool:
        """Tell whether the next row should have a certificate, by how far those so far are from a tolerance."""
        tolerances = [(name, most) for name, most in (("certified_error", tol), ("certificate", atol)) if most]
        known = list(islice((row for row in reversed(self.rows) if not math.isnan(row["certificate"])), 2))
        ratios = [(int(row["round"]), min(row[name] / most for name, most in tolerances)) for row in reversed(known)]
        return not ratios or len(self.rows) >= next_certificate(ratios)

    def progress(self, still: int) -> RunProgress:
        """Return what a checkpoint holds of the run after the latest row."""
        snapshot, names = self.snapshot, tuple(self.rows[0])
        assert snapshot is not None
        rows = table([[row[name] for name in names] for row in self.rows])
        return RunProgress(
            names, rows, self.gradients, self.hosts.solutions, still, self.theta, self.best, snapshot.resume_point
        )

    def resume(self, kept: RunProgress, checkpoint: Checkpoint) -> None:
        """Go on from a checkpoint, whose first row must be that of this run: data are not in the file."""
        first, start = dict(zip(kept.columns, kept.rows[0].tolist(), strict=True)), self.rows[0]
        for name in start:
            close = math.isclose(first[name], start[name], rel_tol=epsilon(self.theta) ** 0.5)
            if name != "seconds" and not close and not (math.isnan(first[name]) and math.isnan(start[name])):
                raise ValueError(
                    f"{checkpoint} is of other data: "
                    f"{name} is {first[name]:.8g} at the start there and {start[name]:.8g} here."
                )
        self.rows = [dict(zip(kept.columns, row, strict=True)) for row in kept.rows.tolist()]
        self.gradients, self.theta, self.best = kept.gradients, kept.theta, kept.best
        self.measuring = {name: self.rows[-1][name] for name in MEASURING}
        self.least = min((row["energy"] for row in self.rows if row["energy"] == row["energy"]), default=math.inf)
        self._complete = len(self.rows), kept.theta, None

    def interrupted(self) -> Array:
        """Return the model of the last row that is complete, and forget what an interrupt may have left half done."""
        count, model, self.snapshot = self._complete
        del self.rows[count:]
        self.hosts.drop(count - 1)
        self.gradients = self.rows[-1]["gradients"] * self.objective.n_clients
        self.measuring = {name: self.rows[-1][name] for name in MEASURING}
        return model

    def finish(self, theta: Array) -> None:
        """Measure and certify the final model if that is not done yet."""
        try:
            self._finish(theta)
        except LostError as error:
            self._without_energy(error)

    def _finish(self, theta: Array) -> None:
        row = self.rows[-1]
        if math.isnan(row["energy"]) and self.snapshot is not None:
            row.update(self._quality(theta, None) | self._further())
        if math.isnan(row["certificate"]) and math.isfinite(row["energy"]):
            row.update(self._quality(theta, self._certified(theta)))
        row.update(self.measuring)
        self.seen = True

    def diverged(self, shortest: float) -> bool:
        """Tell whether the run diverges: at once if squares of its energy overflow, otherwise not in few rounds."""
        overflows = not abs(self.rows[-1]["energy"]) <= math.sqrt(limits(self.theta)[2])
        return self.seen and (overflows or diverges([row["energy"] for row in self.rows], shortest))

    def exploded(self, shortest: float) -> bool:
        """Tell whether it does, and need not go on."""
        return not self.rows[-1]["energy"] <= above(self.rows[0]["energy"], EXPLOSION) and self.diverged(shortest)

    def columns(self) -> dict[str, list[float]]:
        return {name: [row[name] for row in self.rows] for name in self.rows[0]}

    def _certified(self, theta: Array) -> Certificate:
        """Return the certificate from what the hosts know, their latest local solutions too."""
        return certificate_from(self.objective, theta, self._sums)

    def _sums(self, theta: Array) -> Sums:
        """Return what a certificate takes from the clients: of each a gradient and three numbers, or two and five."""
        found, d = self.hosts.certificate_sums(theta), math.prod(self.objective.shape)
        self._measured(theta, d + 3 if found.dual is None else 2 * d + 5)
        return found

    def _measured(self, theta: Array, numbers: int) -> None:
        """Count a model to all clients, and so many numbers from each."""
        one = self.objective.n_clients * width(theta)
        for name, sent in zip(MEASURING, (numbers, math.prod(self.objective.shape)), strict=True):
            self.measuring[name] += float(one * sent)

    def _without_energy(self, error: LostError) -> None:
        """Go on without an energy where clients that do not answer may be absent."""
        if not self.hosts.tolerant:
            raise error
        self.hosts.lost.append(f"round {len(self.rows)}: no energy: {error}")

    def _further(self) -> dict[str, float]:
        return {name: _result(name, function, self.snapshot) for name, function in self.measure.items()}

    def _quality(self, theta: Array, bound: Certificate | None) -> dict[str, float]:
        if bound is None:
            if self.hosts.is_secure:
                energy = self.hosts.mean_value(theta)
            else:
                energy = float(self.objective.mean(self.objective.value(theta)))
            energy += self.objective.regulariser.value(theta)
            self._measured(theta, 1)
            gap, relative, norm = math.nan, math.nan, math.nan
        else:
            energy, gap, relative, norm = bound.energy, bound.gap, bound.relative, bound.gradient_norm
        quality = {"energy": energy, "certificate": gap, "certified_error": relative, "gradient_norm": norm}
        if self.reference is not None:
            quality["error"] = (energy - self.reference) / (abs(self.reference) or 1.0)
            least = energy - self.reference - self.reference_gap  # of E - E*, but for the rounding of both energies
            self.contradicted |= bound is not None and least > bound.gap + bound.rounding
        return quality


def _result(name: str, function: Callable, snapshot: Snapshot | None) -> float:
    """Return the number of a function of the user's, or say which function has none."""
    try:
        return float(function(snapshot))
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"measure {name!r} must return a number for a Snapshot, but raises {type(error).__name__}."
        ) from error


def communicated(snapshot: Snapshot) -> bool:
    """Tell whether anything was sent in the round: it communicates, and somebody was active."""
    return snapshot.round.communicate and snapshot.solution is not None
