r"""FedPD, which is A-FedPD if all clients take part, on clients of one variable.

On :math:`\frac{a_j}2x^2` the dual is :math:`\lambda_j = -a_j\theta_j` after a round. Let :math:`w_j = \theta -
\lambda_j/\rho` and :math:`r_j = \frac{\rho - a_j}{\rho + a_j}`, the factor of a reflection in the proximal map. A round
is

.. math:: \theta^+ = \tfrac1N \textstyle\sum_i r_i w_i, \qquad w_j^+ = \theta^+ + \tfrac12(1 - r_j) w_j.

For two kinds of clients, of shares :math:`q_1 + q_2 = 1`, this is a matrix of trace
:math:`1 + \frac12(q_1 - q_2)(r_1 - r_2)` and determinant
:math:`\frac14(1-r_1)(1-r_2) + \frac12(1-r_1)q_2r_2 + \frac12(1-r_2)q_1r_1`.
"""

from __future__ import annotations

import numpy as np

from dualopt.xp import Array

__all__ = ["polynomial"]


def polynomial(rho: float, curvatures: tuple[float, float], fraction: float = 0.5) -> Array:
    """Return the characteristic polynomial for clients of two kinds, ``fraction`` of them of the first.

    Examples
    --------
    >>> polynomial(2.0, (2.0, 2.0)).tolist()
    [1.0, -1.0, 0.25]
    """
    r1, r2 = ((rho - a) / (rho + a) for a in curvatures)
    trace = 1.0 + 0.5 * (2.0 * fraction - 1.0) * (r1 - r2)
    mixed = 0.5 * (1.0 - r1) * (1.0 - fraction) * r2 + 0.5 * (1.0 - r2) * fraction * r1
    return np.array([1.0, -trace, 0.25 * (1.0 - r1) * (1.0 - r2) + mixed])
