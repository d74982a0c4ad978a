"""``python -m theory.proofs`` writes proofs anew; ``--table`` the table of rates; ``--search`` seeks better methods."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from rich.console import Console
from threadpoolctl import threadpool_limits
from typer import Argument, Option, Typer

from dualopt.app.cli import output, program
from dualopt.app.cli.progress import make_progress
from dualopt.app.cli.usage import OneSentence
from dualopt.lab.proofs import prove
from theory.proofs import FOLDER, SETTINGS
from theory.proofs._page import PAGE, page
from theory.proofs._search import CASES, FAMILIES, search
from theory.proofs._table import complete, keys

__all__ = ["main"]

app = Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command(cls=OneSentence)
def write(
    names: Annotated[list[str] | None, Argument(metavar="[NAME]...", help="Proofs; all of them by default.")] = None,
    table: Annotated[
        bool, Option("--table", help="The rows that docs/proved_rates.csv lacks, and docs/proved_rates.md.")
    ] = False,
    better: Annotated[
        bool, Option("--search", help="Look for better methods, in families around two of ours.")
    ] = False,
) -> None:
    """Write proofs in rational numbers anew, or the table of all proved rates; or look for better methods."""
    if table:
        return _write_table()
    if better:
        return _search()
    for name in names or SETTINGS:
        what = SETTINGS[name]
        rate = prove(
            what.method,
            mu=1.0,
            L=what.L,
            clients=what.clients,
            participation=what.participation,
            memory=what.memory,
        )
        (FOLDER / f"{name}.json").write_text(rate.proof_text(), encoding="utf-8")
        print(f"{name}: {rate}")


def _write_table() -> None:
    """Compute what is missing, and show how far it is."""
    found = []
    prove("gradient-descent", mu=1, L=2)  # the first proof of a process imports the solver: no row counts that
    with threadpool_limits(limits=1), make_progress(Console(stderr=True)) as progress:
        task = progress.add_task("", total=len(keys()))
        for row in complete():
            found.append(row)
            about = row.key
            progress.update(
                task, description=f"{about.method}, {about.law}, N = {about.clients}, {about.kappa:g}", advance=1
            )
    PAGE.write_text(page(found), encoding="utf-8")


def _search() -> None:
    """Search all families, and show the best member of each."""
    rows = []
    with threadpool_limits(limits=1), make_progress(Console(stderr=True)) as progress:
        task = progress.add_task("", total=len(CASES) * len(FAMILIES))
        for found in search():
            rows.append(found.cells())
            progress.update(task, description=f"{found.family}, {found.active} of {found.clients}", advance=1)
    output.show_table(output.make_console(), "the best members of families, by what some clients need", rows)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the program; it ends by ``SystemExit``."""
    program(app, "python -m theory.proofs", arguments)


if __name__ == "__main__":
    main()
