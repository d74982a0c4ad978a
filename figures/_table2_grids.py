"""The grids of Table 2 of the DualFL paper, as points of text.

A point names values of parameters: those of the method, ``solver``, ``solver.NAME``, ``stop`` and ``participation``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

__all__ = ["GRIDS", "Axis", "Point", "paper_grid"]

Point = dict[str, str]


@dataclass(frozen=True, kw_only=True)
class Axis:
    """The values of one parameter.

    Parameters
    ----------
    name : str
        A parameter of the method, ``solver.NAME`` or ``stop``, a number of steps.
    values : sequence of float
        What is tried.
    power : int, default 0
        A value for sums over the m rows of a client is multiplied by ``m**power`` when ``f_j`` is the mean over its
        rows: 1 for steps, which multiply a gradient, -1 for weights, which a gradient is compared with.

    Examples
    --------
    >>> Axis(name="eta", values=(1.0, 0.1), power=1).points(10.0)
    [{'eta': '10'}, {'eta': '1'}]
    """

    name: str
    values: Sequence[float]
    power: int = 0

    def points(self, rows: float = 1.0) -> list[Point]:
        """Return one point for each value, converted from sums over so many rows to means."""
        return [{self.name: f"{value * rows**self.power:.12g}"} for value in self.values]


def _powers(base: float, last: int) -> list[float]:
    return [base**m for m in range(last + 1)]


# Table 2 has all m >= 0; here powers of ten end two beyond the best value of either data set, but FedDualAvg's numbers
# of steps at 1000, and rho at 0.01. What the table computes from the others (eta_y and theta of APDA-Inexact, tau of
# 5GCS, nu of DualFL) the methods suggest.
DUALFL_TABLE_2: dict[str, list[Axis]] = {
    "apda-inexact": [
        Axis(name="eta_x", values=_powers(0.1, 6), power=1),
        Axis(name="beta_y", values=_powers(0.1, 5), power=1),
    ],
    "dualfl": [Axis(name="rho", values=[m * 1e-3 for m in range(11)])],
    "feddr": [Axis(name="eta", values=_powers(0.1, 6), power=1), Axis(name="relaxation", values=[1.0, 2.0])],
    "feddualavg": [
        Axis(name="solver.step", values=_powers(0.1, 6), power=1),
        Axis(name="server_step", values=[1.0]),
        Axis(name="stop", values=_powers(10, 3)),
    ],
    "feddyn": [Axis(name="alpha", values=_powers(10, 5), power=-1)],
    "fedpd": [Axis(name="eta", values=_powers(0.1, 6), power=1)],
    "fivegcs": [Axis(name="gamma", values=_powers(0.1, 6), power=1)],
    "scaffnew": [
        Axis(name="solver.step", values=_powers(0.1, 9), power=1),
        Axis(name="probability", values=_powers(0.1, 5)),
    ],
}
"""Table 2 of the DualFL paper: the axes of every method that it tunes, for sums over rows."""

# Of the primal methods that Remark 7.1 mentions the paper tells no grid: steps and their numbers as FedDualAvg's.
_STEPS = [Axis(name="solver.step", values=_powers(0.1, 6), power=1), Axis(name="stop", values=_powers(10, 2))]
GRIDS = DUALFL_TABLE_2 | {
    "fedavg": _STEPS,
    "fedcm": [*_STEPS, Axis(name="alpha", values=[0.1, 0.3, 1.0])],
    "fedsam": [*_STEPS, Axis(name="radius", values=[0.05, 5e-3, 5e-4])],
}
"""These axes, and those of the primal methods."""


def paper_grid(algorithm: str, *, rows: float = 1.0) -> list[Point]:
    """Return the points of the grid of a method, the last axis varying fastest.

    Parameters
    ----------
    algorithm : str
        Name of a method.
    rows : float, default 1
        Number m of rows of a client, to convert values for sums over rows to those for means; 1 leaves them as they
        are.

    Raises
    ------
    ValueError
        If there is no grid of the method.

    Examples
    --------
    >>> paper_grid("feddyn", rows=100.0)[3], len(paper_grid("scaffnew"))
    ({'alpha': '10'}, 60)
    """
    if algorithm not in GRIDS:
        raise ValueError(f"algorithm must be one of {', '.join(GRIDS)}; not {algorithm}.")
    factors = [axis.points(rows) for axis in GRIDS[algorithm]]
    return [
        _with_options({name: value for part in parts for name, value in part.items()}) for parts in product(*factors)
    ]


def _with_options(point: Point) -> Point:
    """Add the options that the numbers need."""
    if "solver.step" in point:
        point = {"solver": "gradient"} | point
    if "stop" in point:
        point["stop"] = f"steps={point['stop']}"
    if "probability" in point:  # it stands in the method and in the rule of who takes part
        point["participation"] = f"communicate={point['probability']}"
    return point
