"""The least energy of the user's data, or one sentence."""

from __future__ import annotations

from typing import Any

from dualopt.runs.reference import NotOptimalError, solve

__all__ = ["least_energy"]


def least_energy(objective: Any) -> float:
    """Return ``E*``.

    Raises
    ------
    ValueError
        If it cannot be computed to the accuracy that curves need, as for features of very different scale.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt.objectives import Quadratic
    >>> least_energy(Quadratic(A=np.ones((1, 1, 1)), b=np.ones((1, 1))))
    -0.5
    """
    try:
        return float(solve(objective).energy)
    except NotOptimalError as error:
        raise ValueError(f"data: the reference energy cannot be computed: {error}") from error
