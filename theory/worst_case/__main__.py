"""``python -m theory.worst_case [--all]`` prints the worst cases beside the values that they must have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from rich.console import Console
from rich.table import Table
from typer import Exit, Option, Typer

from dualopt.app.cli import program
from theory.worst_case.dualfl import WorstCase, worst_case

__all__ = ["Row", "main", "rows"]

app = Typer(add_completion=False, pretty_exceptions_enable=False)


@dataclass(frozen=True, kw_only=True)
class Row:
    """A worst case, what it must be and what of it: the value, or the value over the bound of the theorem.

    Examples
    --------
    >>> row = Row(title="one round", arguments={"n": 1}, expected=0.125)
    >>> row.agrees(row.solve())
    True
    """

    title: str
    arguments: dict[str, Any]
    expected: float
    over_bound: bool = False

    def solve(self) -> WorstCase:
        """Solve the semidefinite program."""
        return worst_case(**self.arguments)

    def measured(self, worst: WorstCase) -> float:
        """Return the number to compare."""
        return worst.value / worst.bound if self.over_bound and worst.bound is not None else worst.value

    def agrees(self, worst: WorstCase) -> bool:
        """Compare to the four digits that are given."""
        return abs(self.measured(worst) - self.expected) <= 5e-4 * self.expected


VALUES: list[tuple[str, dict[str, Any], dict[int, float]]] = [
    ("nonsmooth", {}, {1: 0.12500, 2: 0.06250, 3: 0.038688, 5: 0.020070, 8: 0.010391}),
    ("nonsmooth, N = 3", {"n_clients": 3}, {1: 0.083333, 2: 0.041667, 3: 0.025792, 5: 0.013380, 8: 0.0069271}),
    ("kappa = 10", {"kappa": 10.0}, {1: 0.10125, 3: 0.021647, 5: 0.0065731, 8: 0.0012200}),
    ("kappa = 100", {"kappa": 100.0}, {1: 0.122512, 3: 0.036588, 5: 0.017990, 8: 0.0083507}),
    (
        "kappa = 10, dual error",
        {"kappa": 10.0, "measure": "dual"},
        {1: 0.232957, 2: 0.132201, 4: 0.047846, 7: 0.011059},
    ),
    (
        "kappa = 100, dual error",
        {"kappa": 100.0, "measure": "dual"},
        {1: 0.264491, 2: 0.167542, 4: 0.081911, 7: 0.036985},
    ),
    (
        "optimized, kappa = 10",
        {"kappa": 10.0, "momentum": "optimized"},
        {1: 0.10125, 3: 0.0134089, 5: 0.0027100, 8: 0.00027195},
    ),
    (
        "optimized, kappa = 100",
        {"kappa": 100.0, "momentum": "optimized"},
        {1: 0.122512, 3: 0.0282105, 5: 0.0123248, 8: 0.0049365},
    ),
]

RATIOS: list[tuple[str, dict[str, Any], dict[int, float]]] = [
    ("beta of (3.4)", {}, {2: 0.28125, 5: 0.36127, 10: 0.45180, 14: 0.50039}),
    ("beta one round early", {"momentum": "early"}, {2: 0.28125, 5: 0.39953, 10: 0.49216}),
    ("beta one round late", {"momentum": "late"}, {2: 0.25151, 5: 0.32462, 10: 0.41468}),
    ("beta = 0", {"momentum": "none"}, {2: 0.28125, 5: 0.45531, 10: 0.77206, 14: 1.02876}),
    ("rho = 0.3 > 1/kappa = 0.1, dual error", {"kappa": 10.0, "rho": 0.3, "measure": "dual"}, {6: 2.1940}),
    ("optimized", {"momentum": "optimized"}, {2: 0.55279, 5: 0.63631, 10: 0.70213}),
    ("optimized, dual error", {"momentum": "optimized", "measure": "dual"}, {2: 1.0, 5: 1.0, 10: 1.0}),
]


def rows(*, every: bool) -> Iterator[Row]:
    """Yield the rows, those of at most 5 rounds or all.

    Examples
    --------
    >>> len(list(rows(every=False))) < len(list(rows(every=True)))
    True
    """
    for table, over_bound in ((VALUES, False), (RATIOS, True)):
        for title, arguments, expected in table:
            for n, number in expected.items():
                if every or n <= 5:
                    yield Row(title=title, arguments={"n": n, **arguments}, expected=number, over_bound=over_bound)


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
