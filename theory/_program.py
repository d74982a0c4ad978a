"""The program ``python -m theory``."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from rich.console import Console
from threadpoolctl import threadpool_limits
from typer import Argument, Exit, Option, Typer

from dualopt.app.cli import output, program
from dualopt.app.cli.progress import make_progress
from dualopt.app.cli.usage import OneSentence, Version
from dualopt.arrays._checks import require
from dualopt.runs._workers import Workers
from dualopt.runs.trace import write_atomically
from dualopt.runs.tuning import MOST_JOBS
from theory._claims import Chapter, Result, discover, judge
from theory._report import overview, record, report, statement_row, statements_page
from theory._report import table as row_of
from theory._statements import Statement, statements, summary
from theory._witnesses import load, untested

__all__ = ["main", "renewed"]

STATEMENTS_HEADING = "## Statements of the papers"
WORTH_PROCESSES = 20  # claims; a process takes two seconds to start

app = Typer(add_completion=False, pretty_exceptions_enable=False)


def main(arguments: Sequence[str] | None = None, name: str = "python -m theory") -> None:
    """Run the program; it ends by ``SystemExit``.

    The exit code is 1 if a verdict is not the expected one, and 2, with one sentence on the standard error, for a
    mistake of the user's.

    Parameters
    ----------
    arguments : sequence of str, optional
        What follows the name of the program; ``sys.argv[1:]`` when not given.
    name : str
        What a user types to run it.
    """
    program(app, name, arguments)


@app.command(cls=OneSentence)
def check(
    names: Annotated[
        list[str] | None, Argument(metavar="[NAME]...", help="Claims, or papers such as fedpd; all by default.")
    ] = None,
    quick: Annotated[bool, Option("--quick", help="Fewer and smaller cases, in about two minutes.")] = False,
    verbose: Annotated[
        bool, Option("--verbose", "-v", help="A line for each claim, as for claims that are named.")
    ] = False,
    jobs: Annotated[int | None, Option(help="Processes; as many as processors by default, 1 for few claims.")] = None,
    json: Annotated[Path | None, Option(metavar="FILE", help="Write all verdicts as JSON.")] = None,
    report_to: Annotated[
        Path | None, Option("--report", metavar="FILE", help="Write statements and verdicts as Markdown.")
    ] = None,
    show_list: Annotated[bool, Option("--list", help="List the claims and stop.")] = False,
    show_statements: Annotated[
        bool,
        Option("--statements", help="List the statements with what is checked of them, and stop; --report writes it."),
    ] = False,
    version: Version = False,
) -> None:
    """Check the theorems of the papers, constants and all, on problems with known solutions.

    A claim of several inequalities is refused if one of them is tested on no case.

    Data sets that are not embedded are used where DUALOPT_DATA_HOME holds them.
    """
    found = discover()
    chapters = _chosen(found, names or [])
    processes = _jobs(jobs, len(chapters))
    console = output.make_console()
    if show_list:
        output.show_pairs(console, "claims", {name: chapter.claim.source for name, chapter in chapters.items()})
        return
    known = [statement for statement in statements() if not names or statement.paper in names]
    for option, file in (("json", json), ("report", report_to)):
        if file is not None:
            output.check_file(file, option)
    if show_statements:
        output.show_table(console, "statements of the papers", [statement_row(statement) for statement in known])
        output.say(console, summary(known))
        if report_to is not None:
            page = renewed(report_to.read_text(encoding="utf-8") if report_to.exists() else "", known)
            write_atomically(report_to, lambda file: file.write(page))
        return
    results = _judge_all(console, chapters, quick, processes)
    checked = [(chapters[name], of) for name, of in results.items()]
    brief = not (names or verbose)
    output.show_table(console, "theorems", overview(checked) if brief else [row_of(*pair) for pair in checked])
    if json is not None:
        output.write_json(json, {"quick": quick, "claims": [record(*pair) for pair in checked]})
    if report_to is not None:
        text = report(checked, known)
        write_atomically(report_to, lambda file: file.write(text))
    if known:
        output.say(console, f"{summary(known)} (--statements lists them)")
    if brief:
        output.say(console, "-v prints a line for each claim, a chapter's name those of the chapter.")
    surprises = [result for of in results.values() for result in of if not result.as_expected]
    for result in surprises:
        output.say(console, _explain(result))
    table = load()
    silent = {name: untested(name, (result.verdict for result in of), table) for name, of in results.items()}
    for name, labels in silent.items():
        for label in labels:
            output.say(console, f"{name}: no case tests {label!r}")
    if surprises or any(silent.values()):
        raise Exit(1)


def renewed(page: str, known: Sequence[Statement]) -> str:
    """Return a page with the table of statements in the place of that at its end, or added to it."""
    before, _, _ = page.partition(STATEMENTS_HEADING)
    return f"{before.rstrip()}\n\n{STATEMENTS_HEADING}\n\n{summary(known)}.\n\n{statements_page(known)}".lstrip()


def _chosen(found: Mapping[str, Chapter], names: Sequence[str]) -> dict[str, Chapter]:
    """Return the claims that are named, and those of the papers that are named; all if nothing is."""
    selections = sorted({chapter.selection for chapter in found.values()})
    wanted = list(names)
    for name in wanted:
        if name not in found and name not in selections:
            close = get_close_matches(name, [*selections, *found], 1)
            hint = f" (did you mean {close[0]}?)" if close else ""
            raise ValueError(
                f"claim must be one of {', '.join(selections)}, or of the {len(found)} that --list shows; "
                f"not {name!r}{hint}."
            )
    if not wanted:
        return dict(found)  # an erratum stands behind the claim that it corrects
    return {name: chapter for want in wanted for name, chapter in found.items() if want in (name, chapter.selection)}


def _judge_all(console: Console, chapters: Mapping[str, Chapter], quick: bool, jobs: int) -> dict[str, list[Result]]:
    """Check everything, and show how far it is."""
    found: dict[str, list[Result]] = {}
    waiting = iter(chapters)
    with (
        threadpool_limits(limits=1),  # the matrices are small
        make_progress(console) as progress,
    ):
        task = progress.add_task("", total=len(chapters))
        workers: Workers[str, list[Result]] = Workers(partial(_judge, quick), jobs)
        for name, results in workers.results(lambda: next(waiting, None), lambda: False):
            found[name] = results
            progress.update(task, description=name, advance=1)
    return {name: found[name] for name in chapters}


def _judge(quick: bool, name: str, limit: Any) -> list[Result]:
    """Check one claim, in whatever process."""
    return list(judge(discover()[name], quick=quick))


def _jobs(jobs: int | None, n_claims: int) -> int:
    """Return the number of processes; one where the start of more takes longer than the work."""
    if jobs is None:
        return (os.cpu_count() or 1) if n_claims >= WORTH_PROCESSES else 1
    require(1 <= jobs <= MOST_JOBS, f"jobs must be at least 1 and at most {MOST_JOBS}", jobs)
    return min(jobs, n_claims)


def _explain(result: Result) -> str:
    v = result.verdict
    reason = str(v.witness or ", ".join(v.failed) or v.case)
    return f"{v.claim}: {v.verdict} where {result.expected!r} is expected; {reason}"
