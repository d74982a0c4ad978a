"""A-FedPD: aligned federated primal-dual learning (Algorithm 1 of its paper)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

from dualopt.arrays.xp import Array, zeros_like
from dualopt.methods._base import AUTO, Algorithm
from dualopt.methods._parameters import ProximalWeight, early_stop
from dualopt.methods._primal_dual_theorems import OF_A_FEDPD
from dualopt.methods.oracle import Oracle
from dualopt.methods.participation import Round
from dualopt.objectives import Objective
from dualopt.solvers.stopping import Stop

__all__ = ["AFedPD"]


class Server(NamedTuple):
    """State of the server."""

    theta: Array  # theta^t
    dual: Array  # the mean of the duals of all clients


class Message(NamedTuple):
    """What the server sends to those who take part."""

    theta: Array  # theta^{t+1}
    dual: Array  # the mean of the duals of all clients


class Client(NamedTuple):
    """States of the clients."""

    dual: Array  # lambda_i^t less the mean of the duals of all clients


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

    The mean of the duals obeys :math:`\bar\lambda^+ = \bar\lambda + \rho(\bar\theta - \theta)` exactly: a round adds
    to the duals of inactive clients what it adds to the mean. A client therefore keeps
    :math:`\lambda_j - \bar\lambda`, which does not change while it is inactive, and is told :math:`\bar\lambda` when it
    is active: the iterates are those of the box, and inactive clients hear nothing. The paper lets the server store all
    duals and names that as a limitation; this server stores two vectors. In the mean a round sends
    :math:`P(2 - P/N)` messages of two vectors; telling the inactive clients would take :math:`N - P + P^2/N`, which is
    more for :math:`P < N/2`.

    With one active client per round all duals stay equal, and the method does not converge when the clients differ
    (theory/afedpd, A3).

    For quadratic clients with Hessians :math:`h I`, exact local solutions and uniform cohorts of P clients
    :math:`\sum_j|\lambda_j - \bar\lambda - \lambda_j^*|^2` falls in the mean by exactly
    :math:`1 - \frac{P - 1}{N - 1}\bigl(1 - (\frac h{h + \rho})^2\bigr)` per round, which wants a heavy :math:`\rho`,
    and the mean of :math:`|\bar\theta - \theta^*|^2` by :math:`(\frac\rho{h + \rho})^2`, which wants a light one, but
    for what the spread of the duals adds. At :math:`h = L` and :math:`h = \mu` they are alike for about
    :math:`\rho = \sqrt{L\mu N/P}`; the suggestion is that of everybody.

    Start: no duals; local solvers start from the server's model, as in the box.

    Parameters
    ----------
    rho : float, optional
        Weight of the proximal term; suggested: :math:`\sqrt{L\mu}`, or :math:`8L/(\sqrt5-1)` when the clients are not
        strongly convex. With all clients every :math:`\rho` suffices for strongly convex smooth ones (Theorem B,
        ``theory/frontier/averaged_reflections.py``), :math:`\rho > 2L` for nonconvex ones, no smaller multiple: the
        paper's "any positive constant" is too generous (theory/afedpd, A1).
    solver : LocalSolver, optional
        As in :class:`dualopt.methods.Algorithm`.
    stop : Stop, optional
        When a client stops its local solver; suggested: with L-BFGS and a known L, when the local gradient has fallen
        to 0.2 of what it was, else to a tenth. On a9a in 200 unlike clients, 10 of them active, the model is 1.23 times
        as far from the solution as with a tenth after 20 rounds, the most, and nearer after 100, for 2.57 gradients a
        visit in place of 3.27 (docs/no_tuning.md).

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
    stop: Annotated[Stop, early_stop(0.2)] = AUTO

    def init(self, theta0: Array, copies: Array) -> tuple[Server, Message, Client]:
        """No duals."""
        zero, zeros = zeros_like(theta0), zeros_like(copies)
        return Server(theta0, zero), Message(theta0, zero), Client(zeros)

    def local(self, c: Client, message: Message, oracle: Oracle, round: Round) -> tuple[Client, Array]:
        """Minimise the augmented Lagrangian and update the dual, which is whole until the new mean arrives."""
        dual = c.dual + message.dual
        theta = oracle.solve(start=message.theta, linear=dual, weight=self.rho, center=message.theta).theta
        theta = oracle.sent(theta)
        return Client(dual + self.rho * (theta - message.theta)), theta

    def server(self, server: Server, mean: Array, round: Round) -> tuple[Server, Message]:
        """Average the active models and correct them by the mean dual."""
        dual = server.dual + self.rho * (mean - server.theta)
        theta = mean + dual / self.rho
        return Server(theta, dual), Message(theta, dual)

    def receive(self, c: Client, message: Message) -> Client:
        """Subtract the mean dual."""
        return Client(c.dual - message.dual)

    def fixed_point(self, objective: Objective, theta: Array) -> Any:
        """At the minimiser ``dual_j = -grad f_j(theta*)``, whose mean is zero."""
        return self.start_with(theta, dual=-objective.gradient(theta))
