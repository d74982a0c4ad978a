"""The server's end of a run: the loop over the sites, its checkpoint, and what is told of it meanwhile."""

from __future__ import annotations

import json
import logging
import math
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from dualopt.arrays._files import InUseError, locked
from dualopt.engine import LostError, RemoteClients, SecureSums
from dualopt.engine._session import Session
from dualopt.engine.checkpoint import Checkpoint
from dualopt.engine.rounds import resolve, scaled
from dualopt.federation.agreed import require_agreed_client_info
from dualopt.federation.engine import SitesEngine
from dualopt.federation.preparing import Prepared, prepared_by
from dualopt.federation.project import Project
from dualopt.federation.settings import example_of
from dualopt.federation.submission import OUTCOME, PREPARED, SUMMARY
from dualopt.methods.participation import as_participation
from dualopt.objectives import Composite
from dualopt.objectives._weights import parse_numbers
from dualopt.runs.inference import inference
from dualopt.runs.recording import run
from dualopt.runs.trace import Trace

__all__ = ["PROGRESS", "Serving"]

PROGRESS = "dualopt-progress"  # the administrator's question to a job that runs
WAIT = 60.0  # seconds for an earlier job of the run to end

log = logging.getLogger(__name__)


class Serving:
    """Runs a project over its sites, from the checkpoint where there is one.

    Parameters
    ----------
    project : Project
        What the parties agree on.
    state : Path
        Folder of the server that outlives jobs: the checkpoint is there, under the name of the run.
    result : Path
        Folder for what is left at the end: ``trace.npz`` and ``outcome.json``.
    """

    def __init__(self, project: Project, state: Path, result: Path) -> None:
        self.project, self._state, self._result = project, state, result
        self._row: dict[str, float] = {}
        self._rounds: list[float] = []

    def progress(self) -> dict[str, Any]:
        """Return the latest row of the trace, as JSON has it."""
        return {name: value for name, value in self._row.items() if math.isfinite(value)}

    def run(self, engine: SitesEngine) -> None:
        """Run to the end; what the run itself refuses is written into the outcome, and anything else is raised."""
        self._result.mkdir(parents=True, exist_ok=True)
        try:
            outcome = self._served(engine)
        except LostError as error:
            if engine.unreachable:  # not late, but gone: another job will find it again
                raise RuntimeError(str(error)) from error
            outcome = {"refused": str(error)}
        except ValueError as error:
            log.error("refused: %s", error)
            outcome = {"refused": str(error)}
        (self._result / OUTCOME).write_text(json.dumps(outcome))

    def _served(self, engine: SitesEngine) -> dict[str, Any]:
        project, self._state = self.project, self._state.resolve()
        self._state.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = self._state / f"{project.run_name}.journal"
        with ExitStack() as held:
            _take(held, file)
            used = engine if project.secure == "none" else SecureSums(engine, largest=project.secure_range)
            preparing = prepared_by(project, Session(used, [(h,) for h in range(project.n_clients)]))
            (self._result / PREPARED).write_text(preparing.to_text())
            clients = RemoteClients(used, run=project.run_name, project=project.fingerprint)
            require_agreed_client_info(project, clients.client_info, preparing.found)
            objective: Any = clients
            if project.regulariser is not None:
                objective = Composite(objective=clients, regulariser=project.regulariser_object)
            participation = as_participation(project.participation)
            scales = parse_numbers(project.scales)
            reweighted = scaled(project.method, objective, scales, participation)
            compressor = project.compressor_object
            algorithm = resolve(project.method, reweighted, participation, compressor)
            trace = run(
                algorithm,
                objective,
                rounds=project.rounds,
                tol=project.tol,
                atol=project.atol,
                certify_every=project.certify_every,
                participation=participation,
                scales=scales,
                compressor=compressor,
                seed=project.seed,
                checkpoint=Checkpoint(file, resume=True),
                callback=self._note,
                parameters={"project": project.fingerprint, "sites": list(project.sites)},
                interruptible=False,
            )
            trace.to_npz(self._result / "trace.npz")
            summary = self._summary(objective, trace, preparing.found) if project.inference else {}
        return {
            "refused": None,
            "status": trace.status,
            "theory": algorithm.guarantee(reweighted, participation, compressor),
            "method": repr(algorithm),
            "lost": list(clients.server.lost),
            "ms_per_round": _median(self._rounds),
            "rounds_here": len(self._rounds) + 1,
            **summary,
            **{name: getattr(engine, name) for name in ("bytes_up", "bytes_down", "numbers_up", "numbers_down")},
        }

    def _summary(self, objective: Any, trace: Trace, prepared: Prepared | None) -> dict[str, Any]:
        """Leave the standard errors of the model in a file, or say why there are none: the run counts without them."""
        project = self.project
        columns = None if prepared is None else prepared.columns
        features = project.feature_names if columns is None else columns.feature_names
        named = replace(
            example_of(project, prepared=prepared), classes=project.classes or None, feature_names=features or None
        )
        names = None if features else [f"x{i + 1}" for i in range(project.features)]
        try:
            found = inference(objective, trace.theta, gap=trace.last["certificate"], like=named, names=names)
        except (LostError, ValueError) as error:
            log.error("no standard errors: %s", error)
            return {"no_summary": str(error)}
        (self._result / SUMMARY).write_text(found.to_text())
        return {}

    def _note(self, snapshot: Any, row: Mapping[str, float]) -> None:
        self._row = dict(row)
        self._rounds.append(time.perf_counter())


def _take(held: ExitStack, file: Path) -> None:
    """Hold the run; wait for a job that is about to end."""
    end = time.monotonic() + WAIT
    while True:
        try:
            held.enter_context(locked(file.parent, file.name, wait=False))
            return
        except InUseError:
            if time.monotonic() > end:
                raise RuntimeError(f"another job of the run {file.stem} is at work") from None
            time.sleep(0.5)


def _median(stamps: list[float]) -> float | None:
    """Return the median time between rounds, in milliseconds."""
    gaps = sorted(b - a for a, b in pairwise(stamps))
    return 1e3 * gaps[len(gaps) // 2] if gaps else None
