"""Semidefinite programs in Gram matrices, solved by Clarabel."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dualopt.arrays._extras import optional
from dualopt.lab.proofs._forms import Form

if TYPE_CHECKING:
    import cvxpy

__all__ = ["TOLERANCES", "columns", "program", "solved", "values"]

TOLERANCES = (1e-9, 1e-8, 1e-7, 1e-6)


def program() -> Any:
    """Return CVXPY.

    Raises
    ------
    ModuleNotFoundError
        If it is not installed.
    """
    return optional("cvxpy", "a worst case or a proof")


def solved(problem: cvxpy.Problem, tolerances: Sequence[float] = TOLERANCES) -> str:
    """Solve a program to the tightest tolerance that the solver meets; return its status."""
    cvxpy = program()
    status = "failed"
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Solution may be inaccurate")
        for digits in tolerances:
            try:
                problem.solve(solver=cvxpy.CLARABEL, tol_gap_abs=digits, tol_gap_rel=digits, tol_feas=digits)
            except cvxpy.SolverError:
                continue
            status = str(problem.status)
            if status != "optimal_inaccurate":
                break
    return status


def columns(forms: Sequence[Form], block: int) -> np.ndarray:
    """Return the entries of a block of several forms, a row each."""
    return np.stack([np.asarray(f.blocks[block], dtype=float).ravel() for f in forms])


def values(forms: Sequence[Form]) -> np.ndarray:
    """Return the coefficients of the values of functions of several forms, a row each."""
    return np.stack([np.asarray(f.values, dtype=float) for f in forms])
