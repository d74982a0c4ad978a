"""``python -m theory.worst_case [--all]`` prints the worst cases beside the values that they must have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from rich.console import Console
from rich.table import Table
from typer import Exit, Option, Typer

from dualopt.cli import program
from theory.worst_case.tables import rows

__all__ = ["main"]

app = Typer(add_completion=False, pretty_exceptions_enable=False)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the program; it ends by ``SystemExit``.

    The exit code is 1 if a value is not the expected one.

    Parameters
    ----------
    arguments : sequence of str, optional
        What follows the name of the program; ``sys.argv[1:]`` when not given.
    """
    program(app, "python -m theory.worst_case", arguments)


@app.command()
def compare(
    every: Annotated[bool, Option("--all", help="Also the longer runs, of more than 5 rounds.")] = False,
) -> None:
    """Print the worst cases beside the values that they must have."""
    table = Table("case", "n", "worst case", "theorem", "ratio", "expected", "agrees", title="Exact worst cases")
    wrong = 0
    for row in rows(every=every):
        worst = row.solve()
        agrees = row.agrees(worst)
        wrong += not agrees
        bound = ("", "") if worst.bound is None else (f"{worst.bound:.5g}", f"{worst.value / worst.bound:.4f}")
        expected = f"{row.expected:.5g}" + (" (ratio)" if row.over_bound else "")
        verdict = "[green]yes" if agrees else "[red]NO"
        table.add_row(row.title, str(row.arguments["n"]), f"{worst.value:.5g}", *bound, expected, verdict)
    Console().print(table)
    if wrong:
        raise Exit(1)


if __name__ == "__main__":
    main()
