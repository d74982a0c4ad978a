"""Judging all mutants of the files that are named."""

from __future__ import annotations

import random
from collections.abc import Sequence
from time import perf_counter
from typing import Annotated

from rich.console import Console
from rich.table import Table
from typer import Argument, Exit, Option, Typer

from tests.mutate import score as scores
from tests.mutate.fixed import FIXED
from tests.mutate.forks import judge_in_forks, judge_source, warm_up
from tests.mutate.mapping import ROOT, files, judges
from tests.mutate.operators import Mutant, mutants

__all__ = ["app", "judged"]

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
        source = (ROOT / file).read_text()
        every = mutants(source)
        drawn = every if sample is None or sample >= len(every) else random.Random(file).sample(every, sample)
        results, fresh_ones = judged(file, source, drawn, jobs=jobs, fresh=fresh)
        explained = scores.explanations(file)
        survivors = [m for m, killed_by in results if killed_by is None and m.key not in explained]
        for mutant in survivors if not toml else ():
            console.print(scores.diff(file, source, mutant), markup=False, highlight=False, soft_wrap=True)
        if toml and survivors:
            console.print(scores.toml(file, survivors), markup=False, highlight=False, soft_wrap=True)
        try:
            found[file] = scores.score(file, results, explained, len(every))
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
        outcome = judge_source(mutant.file, mutant.judges, mutant.source()).ended()
        console.print(
            f"{mutant.name}: {outcome.killed_by or 'survived'}", markup=False, highlight=False, soft_wrap=True
        )
        survived += [mutant.name] if outcome.killed_by is None or outcome.killed_by.startswith("import of") else []
    if survived:
        raise Exit(1)


def judged(
    file: str, source: str, drawn: Sequence[Mutant], *, jobs: int, fresh: bool
) -> tuple[Sequence[tuple[Mutant, str | None]], int]:
    """Return mutants of a file with what killed them, and how many were judged now."""
    cache = scores.Cache(file, judges(file))
    todo = [mutant for mutant in drawn if fresh or not cache.holds(mutant)]
    if todo:
        for mutant, outcome in judge_in_forks(file, cache.judges, source, todo, jobs=jobs, kills=cache.kills()):
            cache.put(mutant, outcome.killed_by, outcome.seconds)
    return [(mutant, cache.killed_by(mutant)) for mutant in drawn], len(todo)


def _table(found: dict[str, scores.Score]) -> Table:
    table = Table(title="mutation score")
    table.add_column("file")
    for name in (*scores.Score._fields, "score"):
        table.add_column(name, justify="right")
    for file, of in found.items():
        table.add_row(file, *map(str, of), of.share)
    return table
