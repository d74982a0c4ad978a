"""Cases of methods that the papers compare theirs with, and what all contractions assume."""

from __future__ import annotations

from typing import Any

import numpy as np

from dualopt.methods.participation import UniformSubset
from theory._cases import Case

__all__ = ["baseline_case", "reflection", "smooth_and_strongly_convex"]


def baseline_case(
    instance: Case, algorithm: Any, rounds: int, note: str = "", *, active: int | None = None, **more: Any
) -> Case:
    """Return the case of a method on a problem, its open parameters as it suggests them.

    With ``active`` clients every subset of that size is equally likely; otherwise everybody takes part, or the
    ``participation`` among the further attributes ``more`` of :class:`theory._cases.Case` decides.

    Examples
    --------
    >>> from dualopt.methods import FedAvg
    >>> from theory._problems import quadratic
    >>> case = baseline_case(quadratic(), FedAvg(), 1, active=2)
    >>> case.name, len(case.events()), round(case.fraction, 3)
    ('quadratics (N=3, kappa=50), 2 of 3', 3, 0.667)
    """
    f = instance.objective
    if active is not None:
        note = f"{active} of {f.n_clients}{note and ', '}{note}"
        more["participation"] = UniformSubset(size=active)
    return instance.case(algorithm.suggested(f), rounds, note, **more)


def smooth_and_strongly_convex(case: Case) -> list[str]:
    """Return what fails: every client is smooth and strongly convex."""
    return [] if case.mu > 0 and np.isfinite(case.L) else ["smooth and strongly convex clients"]


def reflection(steps: Any, mu: Any, L: Any) -> float:
    r"""Return :math:`\max_j\max\bigl(\frac{1 - s_j\mu_j}{1 + s_j\mu_j}, \frac{s_jL_j - 1}{s_jL_j + 1}\bigr)`.

    By so much reflections in proximal maps of steps :math:`s_j` contract; with numbers for all clients, or arrays.

    Examples
    --------
    >>> reflection(0.5, 1.0, 4.0), reflection(np.array([0.5, 1.0]), np.ones(2), np.array([4.0, 3.0]))
    (0.3333333333333333, 0.5)
    """
    ends = steps * mu, steps * L
    return float(max(np.max((1.0 - ends[0]) / (1.0 + ends[0])), np.max((ends[1] - 1.0) / (ends[1] + 1.0))))
