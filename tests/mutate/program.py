"""Judging all mutants of the files that are named."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import Annotated, Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from typer import Argument, Exit, Option, Typer

from tests.mutate import score as scores
from tests.mutate.fixed import FIXED
from tests.mutate.forks import LAST_SECONDS, Outcome, judge_in_forks, warm_up
from tests.mutate.mapping import ROOT, files, judges
from tests.mutate.operators import Mutant, mutants

__all__ = ["app", "judged"]

app = Typer(add_completion=False, pretty_exceptions_enable=False)
PATIENCE = 5.0  # times as long as the source as it is


@app.command()
def main(
    names: Annotated[
        list[str] | None, Argument(metavar="[FILE]...", help="Files, or folders; all that are mapped by default.")
    ] = None,
    jobs: Annotated[int, Option(help="Processes at a time.")] = 1,
    fresh: Annotated[bool, Option("--fresh", help="Forget earlier results.")] = False,
    dry_run: Annotated[bool, Option("--dry-run", help="Leave SCORE.md as it is.")] = False,
    toml: Annotated[bool, Option("--toml", help="Print survivors as entries of equivalent.toml.")] = False,
    fixed: Annotated[bool, Option("--fixed", help="Judge the few mutants of fixed.py, and nothing else.")] = False,
    show_list: Annotated[bool, Option("--list", help="Print the number of mutants of each file, and stop.")] = False,
) -> None:
    """Change the sources in small wrong ways, and see which changes no test and no claim notices."""
    console = Console()
    if fixed:
        _judge_fixed(console)
        return
    chosen = [file for file in files() if not names or any(file.startswith(name.removeprefix("./")) for name in names)]
    if not chosen:
        raise SystemExit(f"FILE must be, or begin, one of {', '.join(files())}.")
    if show_list:
        for file in chosen:
            console.print(f"{len(mutants((ROOT / file).read_text())):5d} {file}", highlight=False)
        return
    warm_up()
    found: dict[str, scores.Score] = {}
    mistakes: list[str] = []  # of the table of equivalent mutants
    for file in chosen:
        start = perf_counter()
        source, results, fresh_ones = judged(file, jobs=jobs, fresh=fresh, console=console)
        explained = scores.explanations(file)
        survivors = [m for m, killed_by in results if killed_by is None and m.key not in explained]
        for mutant in survivors if not toml else ():
            console.print(scores.diff(file, source, mutant), markup=False, highlight=False, soft_wrap=True)
        if toml and survivors:
            console.print(scores.toml(file, survivors), markup=False, highlight=False, soft_wrap=True)
        try:
            found[file] = scores.score(file, results, explained)
        except ValueError as error:
            mistakes.append(str(error))
            console.print(mistakes[-1], markup=False, highlight=False, soft_wrap=True)
            continue
        if not dry_run:
            scores.update({file: found[file]})
        took = f"{perf_counter() - start:.0f} s for {fresh_ones} that were not known"
        line = f"{file}: {found[file].share}, {found[file].survivors} survivors, {took}"
        console.print(line, highlight=False, soft_wrap=True)
    console.print(_table(found))
    if mistakes or any(of.survivors for of in found.values()):
        raise Exit(1)


def _judge_fixed(console: Console) -> None:
    warm_up()
    survived = []
    for mutant in FIXED:
        ((_, outcome),) = judge_in_forks(mutant.file, mutant.judges, [(None, mutant.source())])
        console.print(
            f"{mutant.name}: {outcome.killed_by or 'survived'}", markup=False, highlight=False, soft_wrap=True
        )
        survived += [mutant.name] if outcome.killed_by is None or outcome.killed_by.startswith("import of") else []
    if survived:
        raise Exit(1)


def judged(
    file: str, *, jobs: int, fresh: bool, console: Console
) -> tuple[str, Sequence[tuple[Mutant, str | None]], int]:
    """Return the source of a file, its mutants with what killed them, and how many were judged now."""
    source, wanted = (ROOT / file).read_text(), judges(file)
    cache = scores.Cache(file, wanted)
    known = {} if fresh else {m: cache.killed_by(m) for m in mutants(source) if cache.holds(m)}
    todo = [mutant for mutant in mutants(source) if mutant not in known]
    if todo:
        ((_, unmutated),) = judge_in_forks(file, wanted, [(None, None)])
        if unmutated.killed_by is not None or not unmutated.durations:
            raise SystemExit(f"{file} as it is fails {unmutated.killed_by or 'to have any test'}.")
        known |= _judge(file, cache, todo, unmutated, jobs, console)
    return source, [(mutant, known[mutant]) for mutant in mutants(source)], len(todo)


def _judge(
    file: str, cache: scores.Cache, todo: Sequence[Mutant], unmutated: Outcome, jobs: int, console: Console
) -> dict[Mutant, str | None]:
    columns: Any = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    found: dict[Mutant, str | None] = {}
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(file, total=len(todo))
        for mutant, outcome in judge_in_forks(
            file,
            cache.judges,
            ((mutant, mutant.source) for mutant in todo),
            jobs=jobs,
            limit=lambda: LAST_SECONDS + PATIENCE * unmutated.seconds,
            order=lambda: cache.order(unmutated.durations),
        ):
            found[mutant] = outcome.killed_by
            cache.put(mutant, outcome.killed_by)
            progress.advance(task)
    return found


def _table(found: dict[str, scores.Score]) -> Table:
    table = Table(title="mutation score")
    table.add_column("file")
    for name in (*scores.Score._fields, "score"):
        table.add_column(name, justify="right")
    for file, of in found.items():
        table.add_row(file, *map(str, of), of.share)
    return table
