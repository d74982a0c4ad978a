"""FedDR: randomised Douglas-Rachford splitting (Tran-Dinh, Pham, Phan, Nguyen 2021, Algorithm 1; recalled)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

from dualopt.arrays._checks import interval, require_positive
from dualopt.arrays.xp import Array
from dualopt.methods._base import AUTO, Algorithm
from dualopt.methods._parameters import (
    Checked,
    Suggested,
    TheRegulariser,
    largest,
    require_convex_local_problem,
    smallest,
    smooth_and_strongly_convex,
    suggested_weight,
)
from dualopt.methods._splitting_theorems import OF_FEDDR
from dualopt.methods.oracle import Oracle
from dualopt.methods.participation import Round
from dualopt.objectives import Objective
from dualopt.regularisers import Zero

__all__ = ["FedDR"]

WITHOUT_MU = 16.0  # steps for convex clients, times 1/L


class Server(NamedTuple):
    """State of the server."""

    theta: Array  # xbar
    mean: Array  # xtilde, the mean of the reflected points of all clients, stale ones included


class Client(NamedTuple):
    """States of the clients."""

    y: Array  # y_i
    x: Array  # x_i, the latest local solution
    reflected: Array  # xhat_i = 2 x_i - y_i


def step_of_maps(method: Any, objective: Objective, name: str) -> float:
    """Return 1 over the usual weight, and for convex clients without ``mu`` a multiple of ``1/L``."""
    held = smallest(objective.partial_mu if objective.free_intercept else objective.mu)
    L = largest(objective.L)
    if held == 0 and objective.usual_weight is None and math.isfinite(L):
        return WITHOUT_MU / L
    return 1.0 / suggested_weight(objective, name)


Step = Annotated[
    float,
    require_positive,
    Suggested(step_of_maps),
    Checked(lambda method, f, name: require_convex_local_problem(f, 1.0 / method.eta, name)),
]


def best_relaxation(method: Any, objective: Objective, name: str) -> float:
    """Return 2 where reflections contract, else 1."""
    return 2.0 if smooth_and_strongly_convex(objective) else 1.0


@dataclass(frozen=True, kw_only=True)
class FedDR(Algorithm):
    r"""Minimise ``E + g`` by proximal steps of the active clients and of ``g`` on the server.

    .. math::
        y_j &\mathrel{+}= a(\theta - x_j), \quad x_j \approx \mathrm{prox}_{\eta f_j}(y_j), \quad
        \hat x_j = 2x_j - y_j && j \text{ active} \\
        \theta &= \mathrm{prox}_{\eta g}\bigl(\text{mean of all } \hat x_j\bigr)

    The server adds the uploaded changes of the :math:`\hat x_j` with their parts of the mean, so that inactive clients
    count with their latest point. Start: :math:`x_j = y_j = \hat x_j` at ``theta0``; local solvers go on from the
    client's own :math:`x_j`. The points :math:`y_j` contract (Theorem B, ``theory/frontier``) once every client has
    been active: before that its :math:`x_j` is no proximal point. The paper was not at hand.

    Parameters
    ----------
    eta : float, optional
        Step of the proximal maps; suggested: :math:`1/\sqrt{L\mu}`; ``16/L`` for smooth clients with ``mu = 0``, whose
        best step depends on the solution (between 4 and 64 over ``L`` on four lassos); half of FedPD's limit for
        clients that are not convex.
    regulariser : Regulariser, optional
        ``g``; suggested: that of the objective, the zero function if it has none.
    relaxation : float, optional
        The factor ``a`` in (0, 2]; 2 is the Peaceman-Rachford splitting of FedSplit. Suggested: 2, the best factor of
        Theorem B, or 1 when the clients are not smooth and strongly convex, where 2 need not converge.
    solver, stop
        As in :class:`dualopt.methods.Algorithm`.

    Raises
    ------
    ValueError
        If a parameter is out of range; from ``check`` if the local problems have no unique solution.

    Examples
    --------
    >>> FedDR(eta=0.1, relaxation=1.5).relaxation
    1.5
    """

    supports: ClassVar[frozenset[str]] = frozenset({"partial", "unequal", "regulariser"})
    upload_reference: ClassVar[str] = "errors"
    theorems = OF_FEDDR

    eta: Step = AUTO
    regulariser: TheRegulariser = Zero()
    relaxation: Annotated[float, interval("(0, 2]"), Suggested(best_relaxation)] = AUTO

    def init(self, theta0: Array, copies: Array) -> tuple[Server, Array, Client]:
        """Every client at ``theta0``."""
        return Server(theta0, theta0), theta0, Client(copies, copies, copies)

    def local(self, c: Client, message: Array, oracle: Oracle, round: Round) -> tuple[Client, Array]:
        """Take a proximal step and upload the change of the reflected point."""
        y = c.y + self.relaxation * (message - c.x)
        x = oracle.solve(start=c.x, weight=1.0 / self.eta, center=y).theta
        reflected = 2.0 * x - y
        return Client(y, x, reflected), reflected - c.reflected

    def server(self, server: Server, mean: Array, round: Round) -> tuple[Server, Array]:
        """Average the reflected points of all clients and apply the proximal map of the regulariser."""
        xtilde = server.mean + round.fraction * mean
        theta = self.regulariser.prox(xtilde, self.eta)
        return Server(theta, xtilde), theta

    def fixed_point(self, objective: Objective, theta: Array) -> Any:
        """At the minimiser ``y_j = theta* + eta grad f_j(theta*)``."""
        y = theta + self.eta * objective.gradient(theta)
        server, message, clients = self.start_with(theta, y=y, reflected=2.0 * theta - y)
        return server._replace(mean=objective.mean(clients.reflected)), message, clients
