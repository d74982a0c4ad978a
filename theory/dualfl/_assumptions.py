"""Assumptions of the theorems, as words for those that fail."""

from __future__ import annotations

import math

import numpy as np

from dualopt.claims import Case

__all__ = ["dual_corrected", "linear_regime", "strongly_convex", "sublinear_regime"]

from theory._claims import UP_TO_ROUNDING


def strongly_convex(case: Case) -> list[str]:
    """``nu`` lies in (0, mu]."""
    holds = 0 < case.algorithm.nu <= float(np.min(case.objective.mu)) * UP_TO_ROUNDING
    return [] if holds else ["0 < nu <= mu"]


def sublinear_regime(case: Case) -> list[str]:
    """Those of Theorem 3.2 that concern parameters."""
    return strongly_convex(case) + ([] if case.algorithm.rho == 0 else ["rho = 0"])


def linear_regime(case: Case) -> list[str]:
    """Those of Theorem 3.3 that concern parameters, with the printed range of rho: zero is admitted."""
    L = float(np.max(case.objective.L))
    smooth = [] if math.isfinite(L) else ["L < inf"]
    admitted = 0 <= case.algorithm.rho <= case.algorithm.nu / L * UP_TO_ROUNDING
    return strongly_convex(case) + smooth + ([] if admitted else ["0 <= rho <= nu/L"])


def dual_corrected(case: Case) -> list[str]:
    """Clients upload points whose dual error is known."""
    return [] if case.algorithm.corrected else ["dual-corrected local solutions"]
