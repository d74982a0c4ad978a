"""The commands that run one method, compare several, and list what there is."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, fields
from functools import partial
from importlib import import_module
from threading import Event
from typing import Annotated, Any

from rich.console import Console
from typer import Argument, Exit, Option

from dualopt.app.cli import output, proved_best
from dualopt.app.cli.engine import EngineOptions, Place, placed
from dualopt.app.cli.models import model_files, model_record, save_model
from dualopt.app.cli.options import LoopOptions, MethodOptions, PreparationOptions, option_groups
from dualopt.app.cli.plug_ins import plug_ins
from dualopt.app.cli.reporting import CONTRADICTED, TERMINATED
from dualopt.app.cli.resume import Archive, KeepOptions, Results
from dualopt.app.cli.usage import WidthOption
from dualopt.arrays._checks import require
from dualopt.arrays.xp import asarray_like
from dualopt.engine.checkpoint import Checkpoint
from dualopt.engine.rounds import resolve, scaled
from dualopt.methods import Algorithm
from dualopt.methods._support import supported
from dualopt.methods.compressors import Compressor
from dualopt.methods.participation import Participation, as_participation
from dualopt.methods.preparation import Preparation
from dualopt.objectives import Objective
from dualopt.objectives._weights import parse_numbers
from dualopt.objectives.linear import kind_of_intercept
from dualopt.problem import data
from dualopt.problem.options import Problem, ProblemOptions
from dualopt.runs import plotting
from dualopt.runs._data_hash import data_hash
from dualopt.runs._sources import sources
from dualopt.runs.recording import check_run, versions
from dualopt.runs.recording import run as run_federation
from dualopt.runs.tables import write_blocks, write_rows
from dualopt.runs.trace import Trace
from dualopt.spec import KINDS, Spec, built, names
from dualopt.spec.discover import discover, summary, unknown_name
from dualopt.spec.plugins import listed

__all__ = ["compare", "list_names", "run"]

PICTURES = ("convergence.png", "convergence.pdf")


@option_groups
def run(
    *,
    algorithm: Annotated[
        str,
        Option(
            help="A method, such as dualfl or feddyn:alpha=3 (see: dualopt list algorithms), or FILE.py:NAME for one "
            "of yours."
        ),
    ] = "dualfl",
    param: Annotated[
        list[str] | None,
        Option(
            "--param",
            "-p",
            help="Parameter of the algorithm, such as rho=1e-3; repeatable. proved-best chooses the numbers that are "
            "left open by what is proved.",
        ),
    ] = None,
    summary: Annotated[
        bool,
        Option(
            "--summary",
            help="Standard errors, intervals and tests, from one more round in which clients send Hessians.",
        ),
    ] = False,
    problem: ProblemOptions,
    method: MethodOptions,
    preparation: PreparationOptions,
    loop: LoopOptions,
    width: WidthOption = "page",
    keep: KeepOptions,
    engine: EngineOptions,
) -> None:
    """Run one method; write convergence.png and .pdf, trace.csv, trace.npz, run.json, model.json and model.npz."""
    spec = method.given_to(proved_best.given(Spec.parse(algorithm, "algorithm"), param or []))
    options = output.options_record(problem, method, preparation, loop) | {"algorithm": algorithm, "param": param or []}
    options |= {"width": width}
    files = ["trace.npz", "trace.csv", "run.json", *PICTURES, *model_files()]
    if summary:
        options, files = options | {"summary": True}, [*files, *output.SUMMARY]
    results = Results(command="run", folder=loop.out, options=options | engine.record(), keep=keep, files=files)
    told = {"algorithm": algorithm, "param": param or [], "summary": summary}
    with placed(engine, problem, method, preparation, loop, **told) as place:
        if place.first(lambda: _is_done(results)):
            return
        with _prepared(problem, preparation, loop, {algorithm: spec}, results, place) as runs:
            exit_code = 0 if runs is None else _run(runs, results, algorithm, summary, width)
    if exit_code:
        raise Exit(exit_code)


def _run(runs: PreparedRuns, results: Results, algorithm: str, summary: bool, width: str) -> int:
    """Run the method, write and show the results, and return the exit code."""
    trace_npz, trace_csv, record_json, *_ = results.files
    page: Any = None
    if summary:
        import dualopt.app.cli.summary as page  # few ask for it

        page.check_summary(runs.problem)
    with results.opened(runs.problem, runs.parts()) as kept:
        (result,), ending = runs.compute(kept, {algorithm: "run"})
        trace, out = result.trace, results.folder
        trace.to_npz(out / trace_npz)  # the model first, the picture last
        told = model_record(runs.problem, results.options, kept.data)
        model, reason = save_model(out, "", lambda: runs.problem.model(trace, told))
        trace.to_csv(out / trace_csv)
        found = None
        if page is not None:
            found = page.summary_of(runs.problem, trace, intercept=runs.intercept)
            page.write_summary(found, out)
        files = [trace_npz, trace_csv, record_json, *PICTURES, *model, *(() if found is None else output.SUMMARY)]
        output.write_json(out / record_json, runs.record(results, ending, files) | result.record())
        ending.close(kept)
    title = f"{plotting.proper_name(algorithm)} on {runs.problem_title()}"
    plotting.save_for_print(
        plotting.single_run(trace, x="communications", title=title, width=width), out / "convergence"
    )
    lines = runs.described() | output.parameters_in_words(result.algorithm)
    clients = runs.clients[result.label]
    lines["theory"] = result.algorithm.guarantee(clients, runs.participation, runs.compressor)
    lines |= output.outcome(trace, result.accuracy, signal=ending.signal)
    lines |= reason | {"files": f"{out}: {', '.join(files)}"}
    output.show_pairs(runs.console, f"dualopt run: {algorithm}", lines)
    if page is not None and found is not None:
        page.show_summary(runs.console, found.to_json())
    ending.tell()
    return ending.exit_code


@option_groups
def compare(
    *,
    algorithm: Annotated[
        list[str] | None,
        Option(
            help="A method, or LABEL@NAME:name=value,... such as plain@dualfl:rho=0,solver=newton, "
            "or mine@FILE.py:NAME:alpha=3; repeatable."
        ),
    ] = None,
    plot: Annotated[
        str | None, Option(help="Column to draw, such as energy or test_accuracy; default: the best measure of error.")
    ] = None,
    problem: ProblemOptions,
    method: MethodOptions,
    preparation: PreparationOptions,
    loop: LoopOptions,
    width: WidthOption = "page",
    keep: KeepOptions,
    engine: EngineOptions,
) -> None:
    """Run several methods on one problem; write compare.png and .pdf, and a CSV file and a model for each.

    compare.csv has all rows for pandas, compare.dat has them for gnuplot, compare.json has every option and result.
    """
    require(algorithm, "algorithm must be given: --algorithm NAME, once for each method")
    labelled = [_labelled(text) for text in algorithm or []]
    names = dict(
        zip(
            (label for label, _ in labelled),
            output.file_names([label for label, _ in labelled], {"compare"}),
            strict=True,
        )
    )
    specs = {label: method.given_to(spec) for label, spec in labelled}
    options = output.options_record(problem, method, preparation, loop) | {
        "algorithm": algorithm,
        "plot": plot,
        "width": width,
    }
    if plot is not None and plot not in (columns := _columns(loop)):
        raise unknown_name("plot", plot, columns)
    files = [file for name in names.values() for file in (f"{name}.csv", *model_files(name))]
    files += output.COMPARE
    results = Results(command="compare", folder=loop.out, options=options | engine.record(), keep=keep, files=files)
    with placed(engine, problem, method, preparation, loop, algorithm=algorithm) as place:
        if place.first(lambda: _is_done(results)):
            return
        with _prepared(problem, preparation, loop, specs, results, place) as runs:
            exit_code = 0 if runs is None else _compare(runs, results, names, plot, width)
    if exit_code:
        raise Exit(exit_code)


def _compare(runs: PreparedRuns, place: Results, names: Mapping[str, str], plot: str | None, width: str) -> int:
    """Run the methods, write and show the results, and return the exit code."""
    out = place.folder
    with place.opened(runs.problem, runs.parts()) as kept:
        results, ending = runs.compute(kept, names)
        files, reasons = [], {}
        told = model_record(runs.problem, place.options, kept.data)
        for result in results:
            name, trace = names[result.label], result.trace
            trace.to_csv(out / f"{name}.csv")
            model, reason = save_model(out, name, partial(runs.problem.model, trace, told))
            files, reasons = [*files, f"{name}.csv", *model], reasons | reason
        files += output.COMPARE
        recorded = {result.label: result.record() for result in results}
        output.write_json(out / "compare.json", runs.record(place, ending, files) | {"runs": recorded})
        traces = {result.label: result.trace for result in results}
        write_rows(traces, out / "compare.csv")
        write_blocks(traces, out / "compare.dat")
        ending.close(kept)
    figure = plotting.convergence(
        {_escape(result.label): result.trace for result in results},
        x=("communications", "gradients", "bits_up"),
        y=plot or runs.quality_column([result.trace for result in results]),
        title=runs.problem_title(),
        width=width,
    )
    plotting.save_for_print(figure, out / "compare")
    lines = runs.described() | reasons | {"files": f"{out}: {', '.join(files)}"}
    output.show_pairs(runs.console, "dualopt compare", lines)
    rows = [output.table_row(result.label, result.trace, result.accuracy) for result in results]
    output.show_table(runs.console, "", rows)
    ending.tell()
    return ending.exit_code


def list_names(
    kind: Annotated[
        str | None,
        Argument(
            help="algorithms, losses, regularisers, solvers, compressors, data, partitions, models, stopping, "
            "participation or preparation; all by default."
        ),
    ] = None,
) -> None:
    """List what there is to choose from, plug-ins of installed packages included, with one line for each name."""
    catalogue = {
        "algorithms": _named("algorithm"),
        "losses": _named("loss"),
        "regularisers": _named("regulariser", "WEIGHT"),
        "solvers": _named("solver"),
        "compressors": _named("compressor", "NUMBER"),
        "data": data.available()
        | listed("data", data.available())
        | {"FILE": "LIBSVM format (.gz, .bz2), sparse or not, a .npz with X and y, or a .csv or .parquet with --label"},
        "partitions": _summaries(data.partition_rules()) | listed("partitions", data.partition_rules()),
        "models": {
            "linear": "one linear predictor, or one for each class",
            "mlp=WIDTHS": "a network with hidden layers of these widths, for classes",
        }
        | listed("objectives", ()),
        "stopping": _named("stop", "NUMBER"),
        "participation": _named("participation", "NUMBER"),
        "preparation": _named("preparation"),
    }
    if kind is not None and kind not in catalogue:
        raise unknown_name("kind", kind, catalogue)
    console = output.make_console()
    for title in catalogue if kind is None else [kind]:
        output.show_pairs(console, title, catalogue[title])


@dataclass(frozen=True, kw_only=True)
class Result:
    """One method that has run."""

    label: str
    algorithm: Algorithm
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

    def close(self, kept: Archive) -> None:
        """Remove what was kept, or say how to go on."""
        kept.clear() if self.complete else kept.hint()

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
    algorithms: Mapping[str, Algorithm]
    loop: LoopOptions
    participation: Participation
    compressor: Compressor
    seed: int
    intercept: bool
    plug_ins: Mapping[str, Any]  # by spelling: file and hash
    best: Mapping[str, Mapping[str, Any]]  # of the methods that asked for it: what is proved of their parameters
    console: Console
    place: Place

    def compute(self, kept: Archive, names: Mapping[str, str]) -> tuple[list[Result], Ending]:
        """Run the methods one after the other until Ctrl-C or SIGTERM; return what has run, and how it ended."""
        if self.best:
            kept.note("proved_best", self.best)
        reference = kept.reference(self.problem.minimum) if self.loop.reference else (None, 0.0)
        results: list[Result] = []
        with output.interruptible() as interrupt:
            for label, algorithm in self.algorithms.items():
                results.append(self._run(label, algorithm, reference, interrupt, kept, names[label]))
                if interrupt.is_set():
                    break
        complete = len(results) == len(self.algorithms) and results[-1].trace.status != "stopped"
        false = tuple(output.contradiction(r.label, r.trace) for r in results if r.trace.status == "contradicted")
        return results, Ending(
            complete, interrupt.exit_code if interrupt.is_set() else CONTRADICTED * bool(false), false
        )

    def parts(self) -> list[Any]:
        """Return all objects whose code counts."""
        return [*self.algorithms.values(), self.problem.objective, self.participation, self.compressor, *self.prepare]

    def _run(
        self,
        label: str,
        algorithm: Algorithm,
        reference: tuple[float | None, float],
        interrupt: Event,
        kept: Archive,
        name: str,
    ) -> Result:
        problem, start = self.problem, time.perf_counter()
        trace = kept.finished(name)
        if trace is None:
            trace = self._trace(label, algorithm, reference, interrupt, kept.checkpoint(name))
            if trace.status != "stopped":
                kept.finish(name, trace)
        return Result(
            label=label,
            algorithm=algorithm,
            trace=trace,
            accuracy=problem.training_accuracy(asarray_like(trace.theta, problem.objective.zeros())),
            wall_seconds=time.perf_counter() - start,
        )

    def _trace(
        self,
        label: str,
        algorithm: Algorithm,
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
        with output.progress_bar(self.console, label, loop.rounds) as advance:

            def callback(snapshot: Any, row: Mapping[str, float]) -> bool:
                advance(snapshot, row)
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
        return f"{_escape(problem.name)}: {len(problem.sizes)} clients, {problem.loss}, $\\mu$ = {rows.ridge:g}"

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
            **{f"proved best, {_escape(label)}": one["sentence"] for label, one in self.best.items()},
            **({"before round 1": ", ".join(str(step) for step in self.prepare)} if self.prepare else {}),
            **({"participation": self.loop.participation} if self.loop.participation != "full" else {}),
            **({"scales": self.loop.scales} if self.loop.scales != "none" else {}),
            **({"compressor": self.loop.compressor} if self.loop.compressor != "identity" else {}),
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
def _prepared(
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
        for spec in specs.values():
            supported(spec, participation=loop.participation, regulariser=regulariser, compressor=loop.compressor)
        place.check(preparation)
        participation = as_participation(loop.participation)
        own = plug_ins(options, specs.values(), loop.compressor)
    place.peers.agree({f"contents of {name}": repr(x and x["sha256"]).encode() for name, x in own.items()})
    with place.shared(place.built(options, test=loop.test_accuracy), loop.threads) as problem:
        asked = [label for label, (_, best) in found.items() if best]
        known = results.earlier("proved_best") or {} if asked and problem else {}
        best = {label: known.get(label) for label in asked}
        yield problem and _session(options, preparation, loop, specs, best, participation, own, problem, place)


def _session(
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
    methods = {label: spec.build("algorithm") for label, spec in specs.items()}
    clients = {label: scaled(method, changed, scales, participation) for label, method in methods.items()}
    compressor = built(loop.compressor, "compressor")
    console, told = output.make_console(), {}
    with console.status("proved-best") if best else nullcontext():
        for label, earlier in best.items():
            found = proved_best.chosen(methods[label], clients[label], participation, compressor, earlier)
            methods[label], told[label] = found
    algorithms = {label: resolve(m, clients[label], participation, compressor) for label, m in methods.items()}
    if loop.check_assumptions:
        for label, algorithm in algorithms.items():
            algorithm.check(clients[label])
    if loop.reference and not problem.is_convex:
        raise ValueError("reference must not be asked for when E is not convex: its minimum cannot be certified.")
    output.prepare_folder(loop.out)  # last, so that a mistake leaves no empty folder behind
    return PreparedRuns(
        problem=problem,
        prepare=preparation.steps(options.seed),
        clients=clients,
        algorithms=algorithms,
        loop=loop,
        participation=participation,
        compressor=compressor,
        seed=options.seed,
        intercept=kind_of_intercept(options.intercept) != "none",
        plug_ins=own,
        best=told,
        console=console,
        place=place,
    )


def _is_done(results: Results) -> bool:
    """Tell, and say, that the results that are to be resumed are complete."""
    done = results.are_complete()
    if done:
        print(f"{results.folder}: complete, {', '.join(results.files)}")
    return done


def _labelled(text: str) -> tuple[str, Spec]:
    """Read ``LABEL@NAME: name=value, ...``, whose label is the text itself when not given."""
    label, at, rest = text.rpartition("@")
    if (at and not label) or not rest:
        raise ValueError(f"algorithm must be of the form LABEL@NAME:name=value,name=value; not {text!r}.")
    return label or rest, Spec.parse(rest, "algorithm")


def _columns(loop: LoopOptions) -> list[str]:
    """Name the columns that a comparison can draw."""
    known = ["energy", "certificate", "certified_error", "gradient_norm"]
    return known + ["error"] * loop.reference + ["test_accuracy"] * loop.test_accuracy


def _escape(text: str) -> str:
    """Keep what a user typed from being read as a formula in a figure."""
    return output.shortened(text).replace("$", r"\$")


def _summaries(documented: Mapping[str, Any]) -> dict[str, str]:
    return {name: summary(thing) for name, thing in documented.items()}


def _named(kind: str, number: str = "") -> dict[str, str]:
    """Return one line for each name of a kind, and for its plug-ins; with ``=NUMBER`` where one can be given alone."""
    place, _, table = KINDS[kind].place.partition(":")
    own, lines = names(kind) if table else discover(import_module(place)), {}
    for name, known in own.items():
        takes = number and any(f.type in ("int", "float") for f in fields(known)[:1])
        lines[f"{name}={number}" if takes else name] = summary(known)
    return lines | listed(KINDS[kind].plug_ins, own)
