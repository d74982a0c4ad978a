r"""The bounds of Psi, Phi and their derivatives, from which everything else follows.

With :math:`\Psi(w) = 1 - e^{-w^2}` for positive ``w``: :math:`\Psi' = 2we^{-w^2}` has its maximum where :math:`\Psi'' =
(2 - 4w^2)e^{-w^2}` vanishes, at :math:`1/\sqrt2`; :math:`\Psi''' = (8w^3 - 12w)e^{-w^2}`, so that :math:`\Psi''` falls
from 2 at :math:`0^+` to its minimum at :math:`\sqrt{3/2}` and rises to 0. With :math:`\Phi = 4\arctan + 2\pi`:
:math:`\Phi'' = -8v/(1 + v^2)^2` is extreme where :math:`1 = 3v^2`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from dualopt.claims import Inequality, claim
from dualopt.objectives import zero_chain as functions
from theory._claims import ExpectedVerdict

EXACTLY = 1e-12  # extrema that are attained are attained at a point of the grid
NEARLY = 1e-6  # and the others are approached


class Extremum(NamedTuple):
    """The least upper bound of a function on the points of a grid."""

    name: str
    function: Callable[[np.ndarray], np.ndarray]
    points: np.ndarray
    bound: float
    attained: bool


def zero_chain_scalars_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Yield every bound, on a grid that holds the extremal points."""
    fine = np.geomspace(1e-8, 1e8, 2001 if quick else 200_001)
    special = np.sqrt([0.5, 1.5, 1.0 / 3.0, 1.0])
    right = np.concatenate([fine, special])
    line = np.concatenate([-right, [0.0], right])
    psi, slope, curvature = functions.psi, functions.psi_slope, functions.psi_curvature
    phi, phi_slope, phi_curvature = functions.phi, functions.phi_slope, functions.phi_curvature
    inside = np.concatenate([np.linspace(-1.0, 1.0, 1001)[1:-1], [1.0 - 1e-9]])
    for case in (
        Extremum("-Psi", lambda w: 1.0 - psi(w), line, 1.0, True),  # 0 on the left
        Extremum("Psi", psi, line, 1.0, True),  # 1 up to rounding from w = 6 on
        Extremum("Psi'", slope, line, math.sqrt(2.0 / math.e), True),
        Extremum("1 - Psi'", lambda w: 1.0 - slope(w), line, 1.0, True),
        Extremum("Psi''", curvature, line, 2.0, False),
        Extremum("-Psi''", lambda w: -curvature(w), line, 4.0 * math.exp(-1.5), True),
        Extremum("Phi", phi, line, 4.0 * math.pi, False),
        Extremum("4 pi - Phi", lambda v: 4.0 * math.pi - phi(v), line, 4.0 * math.pi, False),
        Extremum("Phi'", phi_slope, line, 4.0, True),
        Extremum("4 - Phi'", lambda v: 4.0 - phi_slope(v), line, 4.0, False),
        Extremum("Phi''", phi_curvature, line, 1.5 * math.sqrt(3.0), True),
        Extremum("-Phi''", lambda v: -phi_curvature(v), line, 1.5 * math.sqrt(3.0), True),
        Extremum(
            "1/(Psi Phi')",
            lambda v: 1.0 / (psi(np.array([1.0, 1.5, 9.0]))[:, None] * phi_slope(v)),
            inside,
            0.5 / -math.expm1(-1.0),
            False,
        ),
    ):
        yield ExpectedVerdict(case)


@claim(
    source="FedPD arXiv v1, Lemma 1",
    statement=r"$0 \le \Psi < 1$, $0 \le \Psi' \le \sqrt{2/e}$, $-4e^{-3/2} \le \Psi'' \le 2$, $0 < \Phi < 4\pi$,"
    r" $0 < \Phi' \le 4$, $|\Phi''| \le \frac{3\sqrt3}2$, each the least bound; and $\Psi(w)\Phi'(v) > 2(1 - 1/e) >"
    r" 1$ for $w \ge 1 > |v|$.",
    cases=zero_chain_scalars_cases,
)
def zero_chain_scalars(case: Extremum) -> Iterator[Inequality]:
    """Compare the largest value with the bound, and the bound with the largest value."""
    largest = float(np.max(case.function(case.points)))
    yield Inequality(0, largest, case.bound * (1.0 + EXACTLY), "the largest value")
    yield Inequality(0, case.bound, largest * (1.0 + (EXACTLY if case.attained else NEARLY)), "the bound")
