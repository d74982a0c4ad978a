r"""A-FedPD on two clients that take turns: it does not drift, and ends in a cycle of two models.

This is no statement of the paper; it stands beside FedADMM's drift on the same clients (``fedadmm_two_clients``).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from dualopt.lab.claims import Inequality, claim
from theory._cases import Case
from theory._claims import ROUNDING, deviation

__all__ = ["afedpd_in_turn"]


@claim(
    source="Sun, Shen and Tao, Algorithm 1 on two clients, derived",
    statement=r"A-FedPD on $\frac a2(x - m_1)^2$ and $\frac a2(x - m_2)^2$, which are active in turn:"
    r" $\theta^{n+3} - \theta^{n+1} = \frac\rho{a + \rho}(\theta^{n+2} - \theta^n)$ for $n \ge 1$, so that"
    r" the models of every second round converge.",
)
def afedpd_in_turn(case: Case) -> Iterator[Inequality]:
    r"""Differences of every second model of A-FedPD shrink by one factor in every round.

    Both clients have one dual :math:`\lambda`. With :math:`\alpha = \frac\rho{a + \rho}` the active client ends at
    :math:`\theta_j = \alpha e + (1 - \alpha)m_j`, :math:`e = \theta - \lambda/\rho`; then
    :math:`\theta^+ = 2\theta_j - e` and :math:`\lambda^+/\rho = \theta_j - e`, so that :math:`e^+ = \theta_j`. Two
    rounds later the same client is active, and differences shrink by :math:`\alpha`. In the cycle the two e have the
    mean of :math:`m_1` and :math:`m_2`, the solution, and so have the two models.

    Compare the differences of every second model.
    """
    rho, a = case.algorithm.rho, case.L
    theta = case.models()[:, 0]
    size = float(abs(theta).max())
    for n, (before, after) in enumerate(pairwise(theta[2:] - theta[:-2]), start=1):
        yield Inequality(n, deviation(after, rho / (a + rho) * before, scale=size), ROUNDING, "every second model")
