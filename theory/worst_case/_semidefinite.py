"""The semidefinite program of a worst case, the form of its answer, and the check that the answer is certified."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import cvxpy

__all__ = ["TOLERANCES", "Program", "WorstCase", "accept", "solving"]

GAP = 1e-5  # largest difference of primal and dual value that is accepted, relative to the value
# met by the second solution, whose value is about 1; tighter ones make the solver stop short of them
TOLERANCES = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), 1e-6)


@dataclass(frozen=True, kw_only=True)
class Program:
    """A method and a class of problems; ``nu = mu = 1`` and ``g_j = f_j - |.|^2/2`` throughout."""

    coefficients: tuple[tuple[float, float], ...]  # (b, c) of rounds 1 to n - 1
    n_clients: int
    kappa: float | None
    rho: float
    measure: str
    start: str

    @property
    def guess(self) -> float:
        """A rough size of the answer, the unit in which the solver's tolerances make sense at first."""
        n = len(self.coefficients) + 1
        return (1.0 - math.sqrt(self.rho)) ** n / (n + 1)


@dataclass(frozen=True, kw_only=True)
class WorstCase:
    """A worst case with its certificate.

    Attributes
    ----------
    value : float
        Dual value of the semidefinite program: no problem does worse, which the multipliers prove.
    example : float
        Primal value: some problem does as badly. It agrees with ``value`` to 1e-5 of it.
    multipliers : tuple of float
        Of the constraints; that of the initial condition is ``value``. Weighted with them, the inequalities that define
        the class add up to a proof.
    status : str
        Of the solver.
    bound : float or None
        What the theorem of the method promises; None where it promises nothing.
    """

    value: float
    example: float
    multipliers: tuple[float, ...]
    status: str
    bound: float | None = None


def accept(answer: WorstCase) -> WorstCase:
    """Return an answer that proves something.

    Raises
    ------
    RuntimeError
        If the solver stopped early, or the primal and dual values differ by more than 1e-5 of the value.

    Examples
    --------
    >>> accept(WorstCase(value=1.0, example=0.9, multipliers=(), status="optimal"))
    Traceback (most recent call last):
    RuntimeError: The dual value 1.0 and the primal value 0.9 do not agree: there is no certified worst case.
    """
    if answer.status != "optimal":
        raise RuntimeError(f"The solver stopped with status {answer.status}: there is no certified worst case.")
    if not abs(answer.value - answer.example) <= GAP * abs(answer.value):
        raise RuntimeError(
            f"The dual value {answer.value} and the primal value {answer.example} do not agree: "
            "there is no certified worst case."
        )
    return answer


@contextmanager
def solving() -> Iterator[None]:
    """Leave an early stop to :func:`accept`, and raise the same error where the solver fails."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Solution may be inaccurate")
        try:
            yield
        except cvxpy.SolverError as error:
            raise RuntimeError("The solver failed: there is no certified worst case.") from error
