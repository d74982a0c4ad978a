"""Gradient descent on ``E`` (Cauchy 1847; recalled): the baseline of all baselines."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

from dualopt.arrays._checks import Positive, require
from dualopt.arrays.xp import Array
from dualopt.methods._base import AUTO
from dualopt.methods._gradient_theorems import OF_GRADIENT_DESCENT
from dualopt.methods._line_search import AtServer
from dualopt.methods._parameters import Suggested
from dualopt.methods.oracle import Oracle
from dualopt.methods.participation import Round
from dualopt.objectives import Objective

__all__ = ["GradientDescent"]


class Server(NamedTuple):
    """State of the server."""

    theta: Array  # theta


def largest_step(method: Any, objective: Objective, name: str) -> float:
    r"""Return :math:`1/\bar L`."""
    L = float(objective.mean(objective.L))
    require(0 < L < math.inf, "step must be given: L is not known, so nothing can be suggested")
    return 1.0 / L


@dataclass(frozen=True, kw_only=True)
class GradientDescent(AtServer):
    r"""One gradient per client and round, one step of the server.

    .. math:: \theta^+ = \theta - s \cdot \tfrac1N \textstyle\sum_j \nabla f_j(\theta)

    ``E`` is strongly convex with the mean of the :math:`\mu_j` and smooth with the mean of the :math:`L_j`, called
    :math:`\bar\mu` and :math:`\bar L`, and

    .. math:: |\theta^+ - \theta^*| \le \max(|1 - s\bar\mu|, |1 - s\bar L|)\,|\theta - \theta^*|.

    FedAvg with one local step ``s`` at every client is the same method. All clients must take part.

    Parameters
    ----------
    step : float, optional
        Step ``s``; suggested: :math:`1/\bar L`.

    Raises
    ------
    ValueError
        If ``step`` is not positive; from ``suggested`` if the clients are not smooth, or it must be given.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt import Quadratic, run
    >>> f = Quadratic(A=np.stack([np.eye(2), 3 * np.eye(2)]), b=np.array([[4.0, 0.0], [0.0, 8.0]]))
    >>> run(GradientDescent(), f, rounds=1).theta.tolist()
    [1.0, 2.0]
    """

    theorems = OF_GRADIENT_DESCENT

    step: Annotated[Positive, Suggested(largest_step)] = AUTO

    def init(self, theta0: Array, copies: Array) -> tuple[Server, Array, tuple[()]]:
        """Nothing but the model."""
        return Server(theta0), theta0, ()

    def local(self, c: Any, message: Array, oracle: Oracle, round: Round) -> tuple[Any, Array]:
        """Compute the own gradient."""
        return c, oracle.evaluate(message).grad_f

    def server(self, server: Server, mean: Array, round: Round) -> tuple[Server, Array]:
        """Take a step."""
        theta = server.theta - self.step * mean
        return Server(theta), theta

    def delivered(self, server: Server, message: Array) -> Server:
        """Take the point that arrived for the model."""
        return Server(message)

    def fixed_point(self, objective: Objective, theta: Array) -> tuple[Server, Array, tuple[()]]:
        """At the minimiser."""
        return Server(theta), theta, ()
