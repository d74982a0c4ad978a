"""The commands that run one method, and compare several."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any

from typer import Exit, Option

from dualopt.app.cli import output, proved_best
from dualopt.app.cli.engine import EngineOptions, placed
from dualopt.app.cli.models import model_files, model_record, save_model
from dualopt.app.cli.options import LoopOptions, MethodOptions, PreparationOptions, option_groups
from dualopt.app.cli.prepared import PreparedRuns, in_picture, prepared_runs
from dualopt.app.cli.resume import KeepOptions, Results
from dualopt.app.cli.usage import WidthOption
from dualopt.arrays._checks import require
from dualopt.methods.compressors import Identity
from dualopt.problem.options import ProblemOptions
from dualopt.runs import plotting
from dualopt.runs.tables import write_blocks, write_rows
from dualopt.spec import Spec
from dualopt.spec.discover import unknown_name

__all__ = ["compare", "run"]


@option_groups
def run(
    *,
    algorithm: Annotated[
        str,
        Option(
            help="A method, such as dualfl or feddyn:alpha=3 (see: dualopt list algorithms), or FILE.py:NAME for one "
            "of yours; auto begins with what is recommended, and changes it where a few rounds show that it must."
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
    """Run one method; write convergence.png, trace.csv, trace.npz, run.json, model.json and model.npz."""
    spec = method.given_to(proved_best.given(Spec.parse(algorithm, "algorithm"), param or []))
    options = output.options_record(problem, method, preparation, loop) | {"algorithm": algorithm, "param": param or []}
    options |= {"width": width}
    files = ["trace.npz", "trace.csv", "run.json", "convergence.png", *model_files()]
    if summary:
        options, files = options | {"summary": True}, [*files, *output.SUMMARY]
    results = Results(command="run", folder=loop.out, options=options | engine.record(), keep=keep, files=files)
    record = {"algorithm": algorithm, "param": param or [], "summary": summary}
    with placed(engine, problem, method, preparation, loop, **record) as place:
        if place.first(lambda: _is_done(results)):
            return
        with prepared_runs(problem, preparation, loop, {algorithm: spec}, results, place) as runs:
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
    with results.opened(runs.problem, runs.parts(), runs.plug_ins) as archive:
        (result,), ending = runs.compute(archive, {algorithm: "run"})
        trace, out = result.trace, results.folder
        trace.to_npz(out / trace_npz)  # the model first, the picture last
        record = model_record(runs.problem, results.options, archive.data)
        model, reason = save_model(out, "", lambda: runs.problem.model(trace, record))
        trace.to_csv(out / trace_csv)
        found = None
        if page is not None:
            found = page.summary_of(runs.problem, trace, intercept=runs.intercept)
            page.write_summary(found, out)
        files = [
            trace_npz,
            trace_csv,
            record_json,
            "convergence.png",
            *model,
            *(() if found is None else output.SUMMARY),
        ]
        output.write_json(out / record_json, runs.record(results, ending, files) | result.record())
        ending.close(archive)
    title = f"{plotting.proper_name(algorithm)} on {runs.problem_title()}"
    plotting.save(plotting.single_run(trace, x="communications", title=title, width=width), out / "convergence.png")
    lines = runs.described() | output.parameters_in_words(result.algorithm)
    if "path" in trace.parameters:
        from dualopt.runs.auto import path_in_words

        lines |= path_in_words(trace)
    clients = runs.clients[result.label]
    said = result.algorithm.guarantee(clients, runs.participation, runs.compressor)
    lines["theory"] = said if runs.downlink == Identity() else "none: no theorem covers messages through a compressor"
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
        with prepared_runs(problem, preparation, loop, specs, results, place) as runs:
            exit_code = 0 if runs is None else _compare(runs, results, names, plot, width)
    if exit_code:
        raise Exit(exit_code)


def _compare(runs: PreparedRuns, place: Results, names: Mapping[str, str], plot: str | None, width: str) -> int:
    """Run the methods, write and show the results, and return the exit code."""
    out = place.folder
    with place.opened(runs.problem, runs.parts(), runs.plug_ins) as archive:
        results, ending = runs.compute(archive, names)
        files, reasons = [], {}
        record = model_record(runs.problem, place.options, archive.data)
        for result in results:
            name, trace = names[result.label], result.trace
            trace.to_csv(out / f"{name}.csv")
            model, reason = save_model(out, name, partial(runs.problem.model, trace, record))
            files, reasons = [*files, f"{name}.csv", *model], reasons | reason
        files += output.COMPARE
        recorded = {result.label: result.record() for result in results}
        output.write_json(out / "compare.json", runs.record(place, ending, files) | {"runs": recorded})
        traces = {result.label: result.trace for result in results}
        write_rows(traces, out / "compare.csv")
        write_blocks(traces, out / "compare.dat")
        ending.close(archive)
    figure = plotting.convergence(
        {in_picture(result.label): result.trace for result in results},
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
