"""A-FedPD: aligned federated primal-dual learning (Algorithm 1 of its paper)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from dualopt.arrays.xp import Array, zeros_like
from dualopt.methods._base import AUTO, Algorithm
from dualopt.methods._parameters import ProximalWeight
from dualopt.methods._primal_dual_theorems import OF_A_FEDPD
from dualopt.methods.oracle import Oracle
from dualopt.methods.participation import Round
from dualopt.objectives import Objective

__all__ = ["AFedPD"]


class Server(NamedTuple):
    """State of the server."""

    theta: Array  # theta^t
    dual: Array  # the mean of the duals of all clients


class Message(NamedTuple):
    """What the server sends."""

    theta: Array  # theta^{t+1}
    drift: Array  # bar^{t+1} - theta^t, with bar the mean of the active models; for the virtual updates


class Client(NamedTuple):
    """States of the clients."""

    dual: Array  # lambda_i^t


@dataclass(frozen=True, kw_only=True)
class AFedPD(Algorithm):
    r"""FedPD in which inactive clients follow by virtual dual updates.

    .. math::
        \theta_j &\approx \arg\min f_j + \langle\lambda_j, \cdot\rangle + \tfrac\rho2|\cdot - \theta|^2
        && j \text{ active} \\
        \lambda_j^+ &= \lambda_j + \rho(\theta_j - \theta) \ (j \text{ active}), \quad
        \lambda_j + \rho(\bar\theta - \theta) \ (\text{else}),
        && \bar\theta = \tfrac1P \textstyle\sum_{\text{active}} \theta_j \\
        \theta^+ &= \bar\theta + \tfrac1{\rho N} \textstyle\sum_j \lambda_j^+

    The mean of the duals obeys :math:`\bar\lambda^+ = \bar\lambda + \rho(\bar\theta - \theta)` exactly. With one active
    client per round all duals stay equal, and the method does not converge when the clients differ (theory/afedpd, A3).

    For quadratic clients with Hessians :math:`h I`, exact local solutions and uniform cohorts of P clients
    :math:`\sum_j|\lambda_j - \bar\lambda - \lambda_j^*|^2` falls in the mean by exactly
    :math:`1 - \frac{P - 1}{N - 1}\bigl(1 - (\frac h{h + \rho})^2\bigr)` per round, which wants a heavy :math:`\rho`,
    and the mean of :math:`|\bar\theta - \theta^*|^2` by :math:`(\frac\rho{h + \rho})^2`, which wants a light one, but
    for what the spread of the duals adds. At :math:`h = L` and :math:`h = \mu` they are alike for about
    :math:`\rho = \sqrt{L\mu N/P}`; the suggestion is that of everybody.

    Here the inactive clients receive every message and update their duals themselves; the paper lets the server store
    all duals. :class:`dualopt.methods.LazyAFedPD` needs neither. Start: no duals; local solvers start from the
    server's model, as in the box.

    Parameters
    ----------
    rho : float, optional
        Weight of the proximal term; suggested: :math:`\sqrt{L\mu}`, or :math:`8L/(\sqrt5-1)` when the clients are not
        strongly convex. With all clients every :math:`\rho` suffices for strongly convex smooth ones (Theorem B,
        ``theory/frontier/averaged_reflections.py``), :math:`\rho > 2L` for nonconvex ones, no smaller multiple: the
        paper's "any positive constant" is too generous (theory/afedpd, A1).
    solver, stop
        As in :class:`dualopt.methods.Algorithm`.

    Raises
    ------
    ValueError
        If ``rho`` is not positive; from ``check`` if the local problems have no unique solution.

    Examples
    --------
    >>> AFedPD(rho=0.1).rho
    0.1
    """

    supports: ClassVar[frozenset[str]] = frozenset({"partial"})
    upload_reference: ClassVar[str] = "message"
    theorems = OF_A_FEDPD

    rho: ProximalWeight = AUTO

    def init(self, theta0: Array, copies: Array) -> tuple[Server, Message, Client]:
        """No duals."""
        zero, zeros = zeros_like(theta0), zeros_like(copies)
        return Server(theta0, zero), Message(theta0, zero), Client(zeros)

    def local(self, c: Client, message: Message, oracle: Oracle, round: Round) -> tuple[Client, Array]:
        """Minimise the augmented Lagrangian and update the dual."""
        theta = oracle.solve(start=message.theta, linear=c.dual, weight=self.rho, center=message.theta).theta
        theta = oracle.sent(theta)
        return c._replace(dual=c.dual + self.rho * (theta - message.theta)), theta

    def server(self, server: Server, mean: Array, round: Round) -> tuple[Server, Message]:
        """Average the active models and correct them by the mean dual."""
        drift = mean - server.theta
        dual = server.dual + self.rho * drift
        theta = mean + dual / self.rho
        return Server(theta, dual), Message(theta, drift)

    def receive_inactive(self, c: Client, message: Message) -> Client:
        """Update the dual virtually, as if the client had ended at the mean of the active models."""
        return c._replace(dual=c.dual + self.rho * message.drift)

    def fixed_point(self, objective: Objective, theta: Array) -> Any:
        """At the minimiser ``dual_j = -grad f_j(theta*)``, whose mean is zero."""
        return self.start_with(theta, dual=-objective.gradient(theta))
