"""Judging all mutants of the files that are named."""

from __future__ import annotations

import random
from collections.abc import Sequence
from time import perf_counter
from typing import Annotated, NamedTuple

from rich.console import Console
from rich.table import Table
from typer import Argument, Exit, Option, Typer

from tests.mutate import score as scores
from tests.mutate.fixed import FIXED
from tests.mutate.forks import Task, judge_in_forks, judge_source, warm_up
from tests.mutate.mapping import ROOT, files, judges
from tests.mutate.operators import Mutant, mutants

__all__ = ["app"]

app = Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def main(
    names: Annotated[
        list[str] | None, Argument(metavar="[FILE]...", help="Files, or folders; all that are mapped by default.")
    ] = None,
    jobs: Annotated[int, Option(help="Processes at a time.")] = 1,
    fresh: Annotated[bool, Option("--fresh", help="Forget earlier results.")] = False,
    dry_run: Annotated[bool, Option("--dry-run", help="Leave SCORE.md as it is.")] = False,
    toml: Annotated[bool, Option("--toml", help="Print survivors as entries of equivalent.toml.")] = False,
    sample: Annotated[int | None, Option(help="Judge so many mutants of a file, drawn with a fixed seed.")] = None,
    fixed: Annotated[bool, Option("--fixed", help="Judge the few mutants of fixed.py, and nothing else.")] = False,
    show_list: Annotated[bool, Option("--list", help="Print the number of mutants of each file, and stop.")] = False,
    missing: Annotated[bool, Option("--missing", help="Print the files without a row, or with survivors.")] = False,
) -> None:
    """Change the sources in small wrong ways, and see which changes no test and no claim notices."""
    console = Console()
    if fixed:
        _judge_fixed(console)
        return
    if missing:
        console.print("\n".join(lacking := scores.lacking()), highlight=False, soft_wrap=True)
        raise Exit(bool(lacking))
    chosen = [file for file in files() if not names or any(file.startswith(name.removeprefix("./")) for name in names)]
    if not chosen:
        raise SystemExit(f"FILE must be, or begin, one of {', '.join(files())}.")
    if show_list:
        for file in chosen:
            console.print(f"{len(mutants((ROOT / file).read_text())):5d} {file}", highlight=False)
        return
    drawn = [_draw(file, sample, fresh) for file in chosen]
    caches = {of.file: of.cache for of in drawn}
    tasks = [Task(of.file, of.cache.judges, of.source, of.todo, of.cache.kills()) for of in drawn if of.todo]
    if tasks:
        warm_up()
    ends = judge_in_forks(tasks, lambda file, mutant, of: caches[file].put(mutant, of.killed_by, of.seconds), jobs=jobs)
    found: dict[str, scores.Score] = {}
    mistakes: list[str] = []  # of the table of equivalent mutants, and files that fail as they are
    for of in drawn:
        start = perf_counter()
        failed = next(ends) if of.todo else None
        if failed is not None:
            mistakes.append(f"{of.file} as it is fails {failed}.")
            console.print(mistakes[-1], markup=False, highlight=False, soft_wrap=True)
            continue
        results = [(mutant, of.cache.killed_by(mutant)) for mutant in of.drawn]
        explained = scores.explanations(of.file)
        survivors = [m for m, killed_by in results if killed_by is None and m.key not in explained]
        for mutant in survivors if not toml else ():
            console.print(scores.diff(of.file, of.source, mutant), markup=False, highlight=False, soft_wrap=True)
        if toml and survivors:
            console.print(scores.toml(of.file, survivors), markup=False, highlight=False, soft_wrap=True)
        try:
            found[of.file] = scores.score(of.file, results, explained, of.every)
        except ValueError as error:
            mistakes.append(str(error))
            console.print(mistakes[-1], markup=False, highlight=False, soft_wrap=True)
            continue
        if not dry_run:
            scores.update({of.file: found[of.file]})
        took = f"{perf_counter() - start:.0f} s for {len(of.todo)} that were not known"
        line = f"{of.file}: {found[of.file].share}, {found[of.file].survivors} survivors, {took}"
        console.print(line, highlight=False, soft_wrap=True)
    console.print(_table(found))
    if mistakes or any(of.survivors for of in found.values()):
        raise Exit(1)


class _Drawn(NamedTuple):
    """The mutants of a file that were drawn from so many, and which of them are not known."""

    file: str
    source: str
    every: int
    drawn: Sequence[Mutant]
    cache: scores.Cache
    todo: Sequence[Mutant]


def _draw(file: str, sample: int | None, fresh: bool) -> _Drawn:
    source = (ROOT / file).read_text()
    every = mutants(source)
    drawn = every if sample is None or sample >= len(every) else random.Random(file).sample(every, sample)
    cache = scores.Cache(file, judges(file))
    todo = [mutant for mutant in drawn if fresh or not cache.holds(mutant)]
    return _Drawn(file, source, len(every), drawn, cache, todo)


def _judge_fixed(console: Console) -> None:
    warm_up()
    survived = []
    for mutant in FIXED:
        outcome = judge_source(mutant.file, mutant.judges, mutant.source()).ended()
        console.print(
            f"{mutant.name}: {outcome.killed_by or 'survived'}", markup=False, highlight=False, soft_wrap=True
        )
        survived += [mutant.name] if outcome.killed_by is None or outcome.killed_by.startswith("import of") else []
    if survived:
        raise Exit(1)


def _table(found: dict[str, scores.Score]) -> Table:
    table = Table(title="mutation score")
    table.add_column("file")
    for name in (*scores.Score._fields, "score"):
        table.add_column(name, justify="right")
    for file, of in found.items():
        table.add_row(file, *map(str, of), of.share)
    return table
