"""Print the worst cases beside the values that they must have: ``python -m theory.worst_case [--all]``."""

from __future__ import annotations

import argparse
import sys

from rich.console import Console
from rich.table import Table

from theory.worst_case.tables import rows

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> int:
    """Return 1 if a value is not the expected one."""
    parser = argparse.ArgumentParser(prog="python -m theory.worst_case", description=__doc__)
    parser.add_argument("--all", action="store_true", help="also the longer runs, of more than 5 rounds")
    every = parser.parse_args(arguments).all
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
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
