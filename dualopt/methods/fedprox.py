"""FedProx: federated averaging with a proximal term (Li et al. 2020)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dualopt.arrays.xp import Array
from dualopt.methods._base import AUTO
from dualopt.methods._parameters import GivenSolver, ProximalWeight
from dualopt.methods.fedavg import FedAvg
from dualopt.methods.oracle import Oracle
from dualopt.methods.participation import Round
from dualopt.solvers.stopping import GradientReduction, Stop

__all__ = ["FedProx"]


@dataclass(frozen=True, kw_only=True)
class FedProx(FedAvg):
    r"""FedAvg on the losses plus a proximal term that keeps clients near the server's model.

    .. math:: \theta_j \approx \arg\min f_j + \tfrac{\mu_{\text{prox}}}2 |\cdot - \theta|^2, \quad j \text{ active},
              \qquad \theta^+ = \tfrac1P \textstyle\sum_{\text{active}} \theta_j

    Its fixed points are not the minimisers of ``E`` unless the clients agree. The default stopping rule is the paper's
    inexactness: the local gradient falls by a factor.

    Parameters
    ----------
    mu_prox : float, optional
        Weight of the proximal term. No theory of this package suggests one: :math:`\sqrt{L\mu}`, or
        :math:`8L/(\sqrt5-1)` when the clients are not strongly convex, so that methods are compared alike.
    solver, stop
        As in :class:`dualopt.methods.Algorithm`.

    Raises
    ------
    ValueError
        If ``mu_prox`` is not positive; from ``check`` if the local problems have no unique solution.

    Examples
    --------
    >>> FedProx(mu_prox=0.1).mu_prox
    0.1
    """

    mu_prox: ProximalWeight = AUTO
    solver: GivenSolver = AUTO
    stop: Stop = GradientReduction()

    without_theorem = FedAvg.without_theorem

    def local(self, c: Any, message: Array, oracle: Oracle, round: Round) -> tuple[Any, Array]:
        """Work on the own loss with the proximal term."""
        return c, oracle.solve(start=message, weight=self.mu_prox, center=message).theta
