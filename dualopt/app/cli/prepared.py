"""A problem with the methods that are to run on it: what is refused beforehand, the runs, and how they end."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from threading import Event
from typing import TYPE_CHECKING, Any

from rich.console import Console

from dualopt.app.cli import output, proved_best
from dualopt.app.cli.engine import Place
from dualopt.app.cli.options import LoopOptions, PreparationOptions
from dualopt.app.cli.plug_ins import plug_ins
from dualopt.app.cli.progress import run_progress
from dualopt.app.cli.reporting import CONTRADICTED, TERMINATED
from dualopt.app.cli.resume import Archive, Results
from dualopt.arrays._checks import require
from dualopt.arrays.xp import asarray_like
from dualopt.engine.checkpoint import Checkpoint
from dualopt.engine.rounds import as_downlink, resolve, scaled
from dualopt.methods import Algorithm
from dualopt.methods._support import supported
from dualopt.methods.compressors import Compressor, Identity
from dualopt.methods.participation import Participation, as_participation
from dualopt.methods.preparation import Preparation
from dualopt.objectives import Objective
from dualopt.objectives._weights import parse_numbers
from dualopt.objectives.linear import kind_of_intercept
from dualopt.problem.options import ProblemOptions
from dualopt.problem.problem import Problem
from dualopt.runs._checks import check_run
from dualopt.runs._data_hash import data_hash
from dualopt.runs._sources import sources
from dualopt.runs.recording import is_auto
from dualopt.runs.recording import run as run_federation
from dualopt.runs.trace import Trace, versions
from dualopt.spec import Spec, built

if TYPE_CHECKING:
    from dualopt.runs.auto import Auto

__all__ = ["Ending", "PreparedRuns", "Result", "in_picture", "prepared_runs"]


@dataclass(frozen=True, kw_only=True)
class Result:
    """One method that has run."""

    label: str
    algorithm: Algorithm
    clients: Objective  # in its coordinates, with its scales
    trace: Trace
    accuracy: float | None
    wall_seconds: float  # everything since it was begun or continued, measuring included

    def record(self) -> dict[str, Any]:
        """Return what the JSON file says of it."""
        return {
            "status": self.trace.status,
            "parameters": self.trace.parameters,
            "final": self.trace.last,
            "training_accuracy": self.accuracy,
            "wall_seconds": self.wall_seconds,
        }


@dataclass(frozen=True)
class Ending:
    """How a command ended."""

    complete: bool
    exit_code: int  # 0 unless a signal ended it, or a certificate is false
    false: tuple[str, ...] = ()  # a sentence for each of these

    @property
    def signal(self) -> str:
        """What a user calls it."""
        return "SIGTERM" if self.exit_code == TERMINATED else "Ctrl-C"

    def close(self, archive: Archive) -> None:
        """Remove the archive, or say how to go on."""
        archive.clear() if self.complete else archive.hint()

    def tell(self) -> None:
        """Say which certificates are false."""
        for sentence in self.false:
            output.alarm(sentence)


@dataclass(frozen=True, kw_only=True)
class PreparedRuns:
    """A problem with the methods to run on it."""

    problem: Problem
    prepare: Sequence[Preparation]
    clients: Mapping[str, Objective]  # of each method: in its coordinates, with its scales
    algorithms: Mapping[str, Algorithm | Auto]
    loop: LoopOptions
    participation: Participation
    compressor: Compressor
    downlink: Compressor
    seed: int
    intercept: bool
    plug_ins: Mapping[str, Any]  # by spelling: file and hash
    best: Mapping[str, Mapping[str, Any]]  # of the methods that asked for it: what is proved of their parameters
    console: Console
    place: Place

    def compute(self, archive: Archive, names: Mapping[str, str]) -> tuple[list[Result], Ending]:
        """Run the methods one after the other until Ctrl-C or SIGTERM; return what has run, and how it ended."""
        if self.best:
            archive.note("proved_best", self.best)
        reference = archive.reference(self.problem.minimum) if self.loop.reference else (None, 0.0)
        results: list[Result] = []
        with output.interruptible() as interrupt:
            for label, algorithm in self.algorithms.items():
                results.append(self._run(label, algorithm, reference, interrupt, archive, names[label]))
                if interrupt.is_set():
                    break
        complete = len(results) == len(self.algorithms) and results[-1].trace.status != "stopped"
        false = tuple(output.contradiction(r.label, r.trace) for r in results if r.trace.status == "contradicted")
        return results, Ending(
            complete, interrupt.exit_code if interrupt.is_set() else CONTRADICTED * bool(false), false
        )

    def parts(self) -> list[Any]:
        """Return all objects whose code counts."""
        return [
            *self.algorithms.values(),
            self.problem.objective,
            self.participation,
            self.compressor,
            self.downlink,
            *self.prepare,
        ]

    def _run(
        self,
        label: str,
        algorithm: Algorithm | Auto,
        reference: tuple[float | None, float],
        interrupt: Event,
        archive: Archive,
        name: str,
    ) -> Result:
        problem, start = self.problem, time.perf_counter()
        trace = archive.finished(name)
        if trace is None:
            trace = self._trace(label, algorithm, reference, interrupt, archive.checkpoint(name))
            if trace.status != "stopped":
                archive.finish(name, trace)
        clients = self.clients[label]
        if not isinstance(algorithm, Algorithm):
            from dualopt.runs.auto import last_method  # few runs choose

            algorithm, clients = last_method(trace, clients, self.participation, self.compressor)
        return Result(
            label=label,
            algorithm=algorithm,
            clients=clients,
            trace=trace,
            accuracy=problem.training_accuracy(asarray_like(trace.theta, problem.objective.zeros())),
            wall_seconds=time.perf_counter() - start,
        )

    def _trace(
        self,
        label: str,
        algorithm: Algorithm | Auto,
        reference: tuple[float | None, float],
        interrupt: Event,
        checkpoint: Checkpoint,
    ) -> Trace:
        """Run one method, from its checkpoint if there is one."""
        loop, problem = self.loop, self.problem
        objective = problem.objective
        measure = {}
        if problem.test is not None:
            X, y = problem.test
            measure["test_accuracy"] = lambda snapshot: problem.accuracy(snapshot.server.theta, X, y)
        with run_progress(self.console, label, loop.rounds, tol=loop.tol) as progress:

            def callback(snapshot: Any, row: Mapping[str, float]) -> bool:
                progress.advance(snapshot, row)
                if self.place.signal:  # another process was asked to end
                    interrupt.set()
                return interrupt.is_set()

            return run_federation(
                algorithm,
                objective,
                **loop.numbers,
                participation=self.participation,
                seed=self.seed,
                reference=reference[0],
                reference_gap=reference[1],
                measure=measure,
                callback=callback,
                check_assumptions=loop.check_assumptions,
                prepare=self.prepare or None,
                scales=parse_numbers(loop.scales),
                compressor=self.compressor,
                downlink=self.downlink,
                parameters={
                    "data": problem.data,
                    "loss": problem.loss,
                    "mu": problem.rows.ridge,
                    "participation": loop.participation,
                },
                checkpoint=checkpoint,
                interruptible=False,
            )

    def quality_column(self, traces: Sequence[Trace]) -> str:
        """Name the column that says most about how good the models are."""
        if self.loop.reference:
            return "error"
        if not (self.loop.certify_every or self.loop.tol or self.loop.atol):
            return "energy"
        known = any(math.isfinite(error) for trace in traces for error in trace["certified_error"])
        if self.problem.quality == "certified_error" and not known:
            return "certificate"  # E* may be 0
        return self.problem.quality

    def problem_title(self) -> str:
        """Name the problem for the title of a figure."""
        problem, rows = self.problem, self.problem.rows
        return f"{in_picture(problem.name)}: {len(problem.sizes)} clients, {problem.loss}, $\\mu$ = {rows.ridge:g}"

    def described(self) -> dict[str, str]:
        """Say what the problem is."""
        problem = self.problem
        of = " without the intercept" if problem.objective.free_intercept else ""
        return {
            "data": problem.data,
            "clients": problem.partition,
            "loss": problem.loss + (" (chosen for the labels; --loss changes it)" if problem.loss_was_chosen else ""),
            "mu, kappa": f"mu = {problem.rows.ridge:g}{of}, kappa = L/mu = {problem.condition:.4g}",
            **problem.added,
            **{f"proved best, {in_picture(label)}": one["sentence"] for label, one in self.best.items()},
            **({"before round 1": ", ".join(str(step) for step in self.prepare)} if self.prepare else {}),
            **({"participation": self.loop.participation} if self.loop.participation != "full" else {}),
            **({"scales": self.loop.scales} if self.loop.scales != "none" else {}),
            **({"compressor": self.loop.compressor} if self.loop.compressor != "identity" else {}),
            **({"downlink": self.loop.downlink} if self.loop.downlink != "identity" else {}),
            **self.place.described,
        }

    def record(self, results: Results, ending: Ending, files: Sequence[str]) -> dict[str, Any]:
        """Return what the JSON file says of the command, its files, the problem and the plug-ins."""
        problem = self.problem
        return {
            "command": results.command,
            "options": results.options,
            "complete": ending.complete and not ending.false,
            "files": files,
            "versions": dict(versions()),
            "sources": sources(self.parts()),
            "problem": {
                "sha256": data_hash(problem),
                "data": problem.data,
                "loss": problem.loss,
                "client_rows": problem.sizes,
                "kappa": problem.condition,
                **problem.added,
            },
            "plug_ins": self.plug_ins,
            **({"proved_best": self.best} if self.best else {}),
            **self.place.described,
        }


@contextmanager
def prepared_runs(
    options: ProblemOptions,
    preparation: PreparationOptions,
    loop: LoopOptions,
    specs: Mapping[str, Spec],
    results: Results,
    place: Place,
) -> Iterator[PreparedRuns | None]:
    """Refuse whatever is wrong, cheapest check first, before anything is computed; yield None where others go on."""
    found = {label: proved_best.split(spec) for label, spec in specs.items()}
    specs = {label: spec for label, (spec, _) in found.items()}
    with place.peers.together():
        check_run(**loop.numbers, seed=options.seed)
        preparation.steps(options.seed)
        regulariser = options.regulariser is not None and preparation.metric() is None  # a metric takes it in
        named = [spec for spec in specs.values() if not is_auto(spec.name)]
        for spec in named:
            supported(spec, participation=loop.participation, regulariser=regulariser, compressor=loop.compressor)
        built(loop.downlink, "compressor")
        if len(named) < len(specs):
            from dualopt.runs.auto import check_auto

            check_auto(preparation.steps(options.seed), loop.scales)
        place.check(preparation)
        participation = as_participation(loop.participation)
        own = plug_ins(
            options,
            named,
            preparation=preparation.named().values(),
            participation=[loop.participation],
            compressor=[loop.compressor, loop.downlink],
        )
    place.peers.agree({f"contents of {name}": repr(x and x["sha256"]).encode() for name, x in own.items()})
    with place.shared(place.built(options, test=loop.test_accuracy), loop.threads) as problem:
        asked = [label for label, (_, best) in found.items() if best]
        known = results.earlier("proved_best") or {} if asked and problem else {}
        best = {label: known.get(label) for label in asked}
        yield problem and _built_runs(options, preparation, loop, specs, best, participation, own, problem, place)


def _built_runs(
    options: ProblemOptions,
    preparation: PreparationOptions,
    loop: LoopOptions,
    specs: Mapping[str, Spec],
    best: Mapping[str, Any],
    participation: Participation,
    own: Mapping[str, Any],
    problem: Problem,
    place: Place,
) -> PreparedRuns:
    """Refuse what does not fit the problem, and make the methods."""
    next(participation.rounds(problem.objective.n_clients, options.seed))  # refuses more clients than there are
    changed = preparation.changed(problem.objective, options.seed)
    scales = parse_numbers(loop.scales)
    chosen = {label: _choice(spec) for label, spec in specs.items() if is_auto(spec.name)}
    methods = {label: spec.build("algorithm") for label, spec in specs.items() if label not in chosen}
    clients: dict[str, Objective] = {label: changed for label in chosen}
    clients |= {label: scaled(method, changed, scales, participation) for label, method in methods.items()}
    compressor, downlink = (built(text, "compressor") for text in (loop.compressor, loop.downlink))
    require(
        not best or downlink == Identity(), "downlink must be identity with proved-best: nothing is proved of others"
    )
    console, proved = output.make_console(), {}
    with console.status("proved-best") if best else nullcontext():
        for label, earlier in best.items():
            found = proved_best.chosen(methods[label], clients[label], participation, compressor, earlier)
            methods[label], proved[label] = found
    algorithms = {label: resolve(m, clients[label], participation, compressor) for label, m in methods.items()}
    for label, algorithm in algorithms.items():
        as_downlink(downlink, algorithm, clients[label], participation)
    if loop.check_assumptions:
        for label, algorithm in algorithms.items():
            algorithm.check(clients[label])
    if loop.reference and not problem.is_convex:
        raise ValueError("reference must not be asked for when E is not convex: its minimum cannot be certified.")
    every = {label: chosen.get(label) or algorithms[label] for label in specs}
    output.prepare_folder(loop.out)  # last, so that a mistake leaves no empty folder behind
    return PreparedRuns(
        problem=problem,
        prepare=preparation.steps(options.seed),
        clients=clients,
        algorithms=every,
        loop=loop,
        participation=participation,
        compressor=compressor,
        downlink=downlink,
        seed=options.seed,
        intercept=kind_of_intercept(options.intercept) != "none",
        plug_ins=own,
        best=proved,
        console=console,
        place=place,
    )


def _choice(spec: Spec) -> Auto:
    """Return the choice that the word auto stands for."""
    from dualopt.runs.auto import Auto

    found = Auto.of(spec)
    assert found is not None
    return found


def in_picture(text: str) -> str:
    """Keep what a user typed from being read as a formula in a figure."""
    return output.shortened(text).replace("$", r"\$")
