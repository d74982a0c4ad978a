"""FedADMM: FedPD under partial participation (Wang et al. 2022; Gong et al. 2022; recalled)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from dualopt.arrays._checks import Positive
from dualopt.arrays.xp import Array, zeros_like
from dualopt.methods._base import AUTO, Algorithm
from dualopt.methods._parameters import ProximalWeight
from dualopt.methods._splitting_theorems import OF_FEDADMM
from dualopt.methods.oracle import Oracle
from dualopt.methods.participation import Round
from dualopt.objectives import Objective

__all__ = ["FedADMM"]


class Server(NamedTuple):
    """State of the server."""

    theta: Array  # theta^t


class Client(NamedTuple):
    """States of the clients."""

    theta: Array  # theta_j, of the client's latest round
    dual: Array  # lambda_j


@dataclass(frozen=True, kw_only=True)
class FedADMM(Algorithm):
    r"""The active clients do a round of FedPD and upload how far their augmented models moved.

    .. math::
        \theta_j^+ &\approx \arg\min f_j + \langle\lambda_j, \cdot\rangle + \tfrac\rho2|\cdot - \theta|^2, \quad
        \lambda_j^+ = \lambda_j + \rho(\theta_j^+ - \theta) && j \text{ active} \\
        \theta^+ &= \theta + \frac{\eta_s}{P} \textstyle\sum_{\text{active}} \Delta_j, \quad
        \Delta_j = (\theta_j^+ + \lambda_j^+/\rho) - (\theta_j + \lambda_j/\rho)

    Start: no duals, every client at ``theta0``; local solvers start from the server's model. The papers were not at
    hand; the A-FedPD paper writes it without changes and without a server step (:class:`dualopt.methods.FedSpeed`).

    With the server step :math:`\eta_s = P/N` the model stays the mean of all augmented models, as in FedPD. Any
    other step, 1 among them, drifts: every fixed point that can be reached from zero duals solves
    :math:`\nabla E(\theta) = c(\theta - \theta_0)` with :math:`c = \rho(1 - P/(N\eta_s))`. With :math:`P/N` the
    points :math:`\theta_j - \lambda_j/\rho` contract for strongly convex smooth clients, whoever takes part, once all
    of them have (Theorem B, ``theory/frontier/averaged_reflections.py``).

    Parameters
    ----------
    rho : float, optional
        Weight of the proximal term; suggested: :math:`\sqrt{L\mu}`, or :math:`8L/(\sqrt5-1)` when the clients are not
        strongly convex.
    server_step : float, optional
        :math:`\eta_s`; the fraction ``P/N`` of active clients when not given.
    solver, stop
        As in :class:`dualopt.methods.Algorithm`.

    Raises
    ------
    ValueError
        If ``rho`` or ``server_step`` is not positive; from ``check`` if the local problems have no unique solution.

    Examples
    --------
    >>> FedADMM(rho=0.1, server_step=1.0).server_step
    1.0
    """

    supports: ClassVar[frozenset[str]] = frozenset({"partial", "unequal"})
    upload_reference: ClassVar[str] = "errors"
    theorems = OF_FEDADMM

    rho: ProximalWeight = AUTO
    server_step: Positive | None = None

    def init(self, theta0: Array, copies: Array) -> tuple[Server, Array, Client]:
        """No duals; every client at ``theta0``."""
        return Server(theta0), theta0, Client(copies, zeros_like(copies))

    def local(self, c: Client, message: Array, oracle: Oracle, round: Round) -> tuple[Client, Array]:
        """Minimise the augmented Lagrangian, update the dual, upload the change."""
        theta = oracle.solve(start=message, linear=c.dual, weight=self.rho, center=message).theta
        dual = c.dual + self.rho * (theta - message)
        return Client(theta, dual), (theta - c.theta) + (dual - c.dual) / self.rho

    def server(self, server: Server, mean: Array, round: Round) -> tuple[Server, Array]:
        """Move by the server step along the mean change."""
        step = round.fraction if self.server_step is None else self.server_step
        theta = server.theta + step * mean
        return Server(theta), theta

    def fixed_point(self, objective: Objective, theta: Array) -> Any:
        """At the minimiser ``dual_j = -grad f_j(theta*)``."""
        return self.start_with(theta, dual=-objective.gradient(theta))
