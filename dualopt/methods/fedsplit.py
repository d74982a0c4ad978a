"""FedSplit: Peaceman-Rachford splitting (Pathak and Wainwright 2020; recalled), also under partial participation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from dualopt.arrays.xp import Array
from dualopt.methods._base import AUTO, Algorithm
from dualopt.methods._parameters import ProximalStep
from dualopt.methods._splitting_theorems import OF_FEDSPLIT
from dualopt.methods.oracle import Oracle
from dualopt.methods.participation import Round
from dualopt.objectives import Objective

__all__ = ["FedSplit"]


class Server(NamedTuple):
    """State of the server."""

    theta: Array  # the model
    consensus: Array  # x^t, the mean of the z_j


class Client(NamedTuple):
    """States of the clients."""

    z: Array  # z_j
    x: Array  # the latest local solution, where the local solver starts


@dataclass(frozen=True, kw_only=True)
class FedSplit(Algorithm):
    r"""Reflect at the clients, average, and reflect at the consensus.

    .. math::
        x_j = \mathrm{prox}_{s f_j}(2\bar z - z_j), \quad z_j \mathrel{+}= 2 (x_j - \bar z), \quad
        j \text{ active}, \qquad \bar z^+ = \text{mean of all } z_j

    For strongly convex smooth clients, all of them active, exact proximal steps and :math:`s = 1/\sqrt{L\mu}` the
    distance of the :math:`z_j` from their limits falls by the factor :math:`1 - 2/(\sqrt\kappa + 1)` per round.
    The model is the mean of the :math:`x_j`, which the server knows as :math:`\frac12(\bar z + \bar z^+)`, and this
    also when some take part; early on it is nearer to the minimiser than :math:`\bar z^+`, which the paper reports, by
    two orders where clients are alike. In the worst case :math:`\bar z^+` is better (``convex_strong_attained``), the
    model of :class:`dualopt.methods.ConsensusFedSplit`. Where some take part, :math:`\bar z` is the mean of the
    :math:`z_j` of all clients, stale ones included, which is one of two forms that the FedDyn paper (Appendix A.4)
    compares with; the mean over the active ones, the other, has no fixed point. Start: every client at ``theta0``. The
    paper of the method itself was not at hand.

    With a compressor C, :math:`z_j \mathrel{+}= C_j(2(x_j - \bar z))/(1 + \omega)`. If it is unbiased, the limit is the
    same, and with :math:`\delta` for the factor of the full round :math:`\mathbb E\sum_j|z_j - z_j^*|^2` falls by
    :math:`1 - (1 - \delta^2)/(1 + \omega)` per round (Theorem D, ``theory/frontier/compressed.py``); with independent
    activity of probability p by :math:`1 - p(1 - \delta^2)/(1 + \omega)`. The model is the midpoint of :math:`\bar z`
    and :math:`\bar z^+` then.

    Parameters
    ----------
    step : float, optional
        Step ``s`` of the proximal maps; suggested: :math:`1/\sqrt{L\mu}`.
    solver, stop
        As in :class:`dualopt.methods.Algorithm`.

    Raises
    ------
    ValueError
        If ``step`` is not positive; from ``check`` if local problems have no unique solution.

    Examples
    --------
    >>> FedSplit(step=0.1).step
    0.1
    """

    supports: ClassVar[frozenset[str]] = frozenset({"partial", "unequal"})
    upload_reference: ClassVar[str] = "nothing"
    theorems = OF_FEDSPLIT

    step: ProximalStep = AUTO

    def init(self, theta0: Array, copies: Array) -> tuple[Server, Array, Client]:
        """Every client at ``theta0``."""
        return Server(theta0, theta0), theta0, Client(copies, copies)

    def local(self, c: Client, message: Array, oracle: Oracle, round: Round) -> tuple[Client, Array]:
        """Take a proximal step at the reflected point."""
        x = oracle.solve(start=c.x, weight=1.0 / self.step, center=2.0 * message - c.z).theta
        change = oracle.sent(2.0 * (x - message))
        return Client(c.z + change, x), change

    def server(self, server: Server, mean: Array, round: Round) -> tuple[Server, Array]:
        """Average the :math:`z_j` of all clients; the model is the mean of the :math:`x_j`."""
        consensus = server.consensus + round.fraction * mean
        return Server(0.5 * (server.consensus + consensus), consensus), consensus

    def delivered(self, server: Server, message: Array) -> Server:
        """Go on with the mean of the :math:`z_j`, which the uploads tell: clients reflect at what arrived."""
        return server

    def fixed_point(self, objective: Objective, theta: Array) -> Any:
        """At the minimiser ``z_j = theta* - s grad f_j(theta*)``."""
        return self.start_with(theta, z=theta - self.step * objective.gradient(theta))
