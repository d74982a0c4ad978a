r"""The gradient restart of DualFL and OptimizedDualFL with ``rho = 0`` (O'Donoghue and Candès 2015).

A restart at the end of a round sets :math:`t = 1` and :math:`\zeta = v`. On :math:`\sum_jw_j\zeta_j = 0` the gradient
of the dual function at :math:`\zeta` is :math:`\zeta - v = (\theta_j - \theta)_j` in the inner product with the weights
:math:`w_j` of the clients. The momentum leads uphill when

.. math:: \sum_jw_j\langle\theta_j - \theta, v_j - v_j^{\text{prev}}\rangle > 0, \qquad
          v_j = \zeta_j - (\theta_j - \theta).

The clients do not know :math:`\theta` when they upload, and need not: with :math:`\delta_j = \theta_j -
\theta^{\text{prev}}` and its weighted mean :math:`\bar\delta = \theta - \theta^{\text{prev}}` the sum is

.. math:: \sum_jw_j\langle\delta_j, \zeta_j - v_j^{\text{prev}} - \delta_j\rangle
          + \sum_jw_j\,|\bar\delta|^2 \tag{1}

because :math:`\sum_jw_j(\zeta_j - v_j^{\text{prev}}) = 0`. So the server decides in the same round. All terms of (1)
vanish with the changes of a round: nothing large cancels. It cannot be positive in the first round of an epoch, where
:math:`\zeta = v^{\text{prev}}`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from dualopt.arrays.xp import Array
from dualopt.methods._dual_parameters import Dual
from dualopt.methods.oracle import Oracle
from dualopt.methods.participation import Round
from dualopt.objectives.local_problem import client_dot

__all__ = ["GradientRestart", "Upload", "leads_uphill", "slope", "squared_norm"]


class Upload(NamedTuple):
    """What a client sends."""

    theta: Array  # (P, *shape)  theta_j
    slope: Array  # (P,)  its part of the slope of the dual function along the momentum


@dataclass(frozen=True, kw_only=True)
class GradientRestart(Dual):
    """To be inherited before a method that uploads its local solutions: the parts of (1) go with them."""

    rho: float = field(default=0.0, init=False)

    def local(self, c: Any, message: Any, oracle: Oracle, round: Round) -> tuple[Any, Upload]:
        """Solve (3.1), and tell how the dual function rises along the momentum."""
        c, theta = super().local(c, message, oracle, round)
        return c, Upload(theta, slope(theta, message.theta, c.zeta, c.v))


def slope(sent: Array, theta: Array, zeta: Array, v: Array) -> Array:
    r"""Return :math:`\langle\delta_j, \zeta_j - v_j - \delta_j\rangle` of (1), shape ``(P,)``, for the last model."""
    moved = sent - theta
    return client_dot(moved, zeta - v - moved)


def leads_uphill(slope: Array, theta: Array, before: Array) -> bool:
    r"""Tell whether (1) is positive: from the mean of the slopes, the new model and the one before.

    Examples
    --------
    >>> import numpy as np
    >>> before, model = np.zeros(2), np.array([0.5, 0.5])
    >>> leads_uphill(np.asarray(-0.4), model, before), leads_uphill(np.asarray(-0.6), model, before)
    (True, False)
    """
    return float(slope) + squared_norm(theta - before) > 0.0


def squared_norm(x: Array) -> float:
    """Return the squared norm of a model."""
    return float(client_dot(x[None, ...], x[None, ...])[0])
