r"""For which rho A-FedPD converges on quadratics: measured exactly, in mean square.

Full participation converges for :math:`\rho > 2L` (``afedpd_descent``), and no smaller multiple of L is enough for all
N: with one client of curvature -L, :math:`u = L/\rho`, and N - 1 clients of :math:`(1+\delta)L/(N-1)`, a factor -1 per
round belongs to :math:`\frac{1+u}{2u-1} = N + (N-1)\frac{1-v}{1+2v}`, :math:`v = \frac{(1+\delta)u}{N-1}`, whose
solution tends to :math:`u = 1/2`. With P of N clients more may be needed than :math:`2L`, the more the larger N/P is.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np

from dualopt.claims import Inequality, claim
from dualopt.objectives import Quadratic
from theory._claims import ExpectedVerdict, deviation
from theory._problems import Instance, solved
from theory.afedpd._cases import Federation, federation
from theory.afedpd._instances import one_concave
from theory.afedpd._moments import fixed_point, maps, mean_square_radius


@cache
def half_concave(n: int) -> Instance:
    """Clients of curvature 1 and -0.97 in equal numbers, pulled apart."""
    curvature = np.repeat([1.0, -0.97], n // 2)
    b = np.linspace(-1.0, 1.0, n)[:, None]
    return solved(f"half of {n} concave", Quadratic(A=curvature[:, None, None], b=b))


def range_of_rho_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Both sides of every measured end."""
    for f, active, below, above in ENDS if quick else (*ENDS, LARGE):
        yield ExpectedVerdict(federation(f, rho=below, active=active, rounds=1), "violated")
        yield ExpectedVerdict(federation(f, rho=above, active=active, rounds=1))


@claim(
    name="afedpd_range_of_rho",
    source="Sun, Shen and Tao, Theorem 1: the range of rho, measured",
    statement=r"$\mathbb{E}|(\theta^t, \lambda^t) - (\theta^*, \lambda^*)|^2$ contracts, on quadratics with"
    r" $|\nabla^2 f_j| \le L$ and convex E. Full participation: for $\rho > 2L$ always; one concave client of N:"
    r" from 1.36, 1.65, 1.84, 1.97 L on for N = 3, 5, 10, 50. P = 2 of N, half of them concave: from 2.1, 2.75,"
    r" 3.2, 3.6 L on for N = 4, 6, 8, 10.",
    rounding=0.0,
    cases=range_of_rho_cases,
)
def range_of_rho(case: Federation) -> Iterator[Inequality]:
    """Compare the factor of the second moments with 1, after making sure that the limit is the minimiser."""
    z = fixed_point(case)
    for M in maps(case):
        yield Inequality(0, deviation(M @ z, z), 1e-12, "a round from the fixed point")
    yield Inequality(1, mean_square_radius(case), 1.0, "factor of E|z - z*|^2")


# instance, active clients, the last rho/L on a grid of 0.05 that diverges, and the first one that converges
ENDS = (
    (one_concave(3), 3, 1.35, 1.4),
    (one_concave(5), 5, 1.6, 1.65),
    (one_concave(10), 10, 1.8, 1.85),
    (one_concave(50), 50, 1.95, 2.0),
    (one_concave(5), 2, 1.25, 1.3),
    (half_concave(4), 2, 2.05, 2.1),
    (half_concave(6), 2, 2.7, 2.75),
    (half_concave(6), 3, 1.75, 1.8),
    (half_concave(8), 2, 3.15, 3.2),
)
LARGE = (half_concave(10), 2, 3.55, 3.6)
