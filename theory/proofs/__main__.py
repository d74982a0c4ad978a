"""``python -m theory.proofs [NAME]...`` writes proofs anew, ``python -m theory.proofs --table`` the table of rates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from rich.console import Console
from threadpoolctl import threadpool_limits
from typer import Argument, Option, Typer

from dualopt.app.cli import program
from dualopt.app.cli.progress import make_progress
from dualopt.app.cli.usage import OneSentence
from dualopt.lab.proofs import prove
from theory.proofs import FOLDER, SETTINGS
from theory.proofs._page import PAGE, page
from theory.proofs._table import complete, keys

__all__ = ["main"]

app = Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command(cls=OneSentence)
def write(
    names: Annotated[list[str] | None, Argument(metavar="[NAME]...", help="Proofs; all of them by default.")] = None,
    table: Annotated[
        bool, Option("--table", help="The rows that docs/proved_rates.csv lacks, and docs/proved_rates.md.")
    ] = False,
) -> None:
    """Write proofs in rational numbers anew, or the table of all proved rates."""
    if table:
        return _write_table()
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


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the program; it ends by ``SystemExit``."""
    program(app, "python -m theory.proofs", arguments)


if __name__ == "__main__":
    main()
