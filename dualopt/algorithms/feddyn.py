"""FedDyn: federated learning with dynamic regularisation (Acar et al., Algorithm 1)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple, Self

from dualopt._checks import require_positive
from dualopt.algorithms._base import OPEN, Algorithm
from dualopt.algorithms._parameters import largest, require_convex_local_problem, smallest, suggested_weight
from dualopt.objectives import Objective
from dualopt.oracle import Oracle
from dualopt.participation import Round
from dualopt.xp import Array, array_namespace, zeros_like

__all__ = ["FedDyn"]


class Server(NamedTuple):
    """State of the server."""

    theta: Array  # theta^t
    h: Array  # h^t, the mean of all gradient memories


class Client(NamedTuple):
    """States of the clients."""

    gradient: Array  # the memory of grad L_k(theta_k^t)


@dataclass(frozen=True, kw_only=True)
class FedDyn(Algorithm):
    r"""A regulariser that changes from round to round and bends the clients' minima to the common one.

    .. math::
        \theta_j &\approx \arg\min f_j - \langle g_j, \cdot\rangle + \tfrac\alpha2 |\cdot - \theta|^2, \quad
        g_j^+ = g_j - \alpha(\theta_j - \theta) && j \text{ active} \\
        h^+ &= h - \tfrac\alpha N \textstyle\sum_{\text{active}} (\theta_j - \theta), \quad
        \theta^+ = \tfrac1P \textstyle\sum_{\text{active}} \theta_j - h^+/\alpha

    Start: :math:`g_j = 0`, ``theta0``; local solvers start from the server's model, as in the authors' code.

    Clients of unequal size carry their weight :math:`w_j = N n_j/\sum n` as a factor inside :math:`f_j`
    (``linear_model(..., weights="rows")``). The local problem divided by :math:`w_j` then has the proximal weight
    :math:`\alpha/w_j`, which is what the authors' code does for unbalanced data.

    Parameters
    ----------
    alpha : float, optional
        Weight of the proximal term; suggested: :math:`\sqrt{L\mu}`, or :math:`8L/(\sqrt5-1)` when the clients are not
        strongly convex. Theorems 2 and 3 ask for :math:`\alpha \ge 25L` (convex) and
        :math:`\alpha \ge \max(5\mu N/P, 30L)` (strongly convex), Theorem 4 for :math:`20LN/P` (nonconvex).
    solver, stop
        As in :class:`dualopt.algorithms.Algorithm`.

    Raises
    ------
    ValueError
        If ``alpha`` is not positive; from ``check`` if the local problems have no unique solution.

    Examples
    --------
    >>> FedDyn(alpha=0.1).alpha
    0.1
    """

    supports: ClassVar[frozenset[str]] = frozenset({"partial"})

    alpha: float = OPEN

    def __post_init__(self) -> None:
        require_positive(alpha=self.alpha)

    def suggested(self, objective: Objective) -> Self:
        """Fill in ``alpha`` and the solver."""
        alpha = suggested_weight(objective, "alpha") if self.alpha is None else self.alpha
        return replace(super().suggested(objective), alpha=alpha)

    def check(self, objective: Objective) -> None:
        """Refuse ``alpha`` with which local problems are not strongly convex."""
        require_convex_local_problem(objective, self.alpha, "alpha")

    def guarantee(self, objective: Objective) -> str:
        """Say which theorem covers ``alpha`` when all clients take part."""
        alpha, mu, L = self.suggested(objective).alpha, smallest(objective.mu), largest(objective.L)
        if mu > 0 and alpha >= 30.0 * L:  # above 5 mu, as mu <= L
            return f"Theorem 3: O((1 + mu/alpha)^-T), a factor of {1.0 / (1.0 + mu / alpha):.6f} per round"
        if mu >= 0 and alpha >= 25.0 * L:
            return "Theorem 2: E of the mean of the models = O(1/T)"
        if alpha >= 20.0 * L:
            return "Theorem 4: the mean of |grad E|^2 = O(1/T)"
        return f"none: alpha is below 20 L = {20.0 * L:.3g}"

    def init(self, theta0: Array, copies: Array) -> tuple[Server, Array, Client]:
        """No gradients are remembered."""
        zero, zeros = zeros_like(theta0), zeros_like(copies)
        return Server(theta0, zero), theta0, Client(zeros)

    def local(self, c: Client, message: Array, oracle: Oracle, round: Round) -> tuple[Client, Array]:
        """Solve the regularised problem (1) and follow its gradient by (2)."""
        theta = oracle.solve(start=message, linear=-c.gradient, weight=self.alpha, center=message).theta
        return Client(c.gradient - self.alpha * (theta - message)), theta

    def server(self, server: Server, mean: Array, round: Round) -> tuple[Server, Array]:
        """Correct the average of the active models by the memory of all gradients."""
        h = server.h - self.alpha * round.fraction * (mean - server.theta)
        theta = mean - h / self.alpha
        return Server(theta, h), theta

    def fixed_point(self, objective: Objective, theta: Array) -> tuple[Server, Array, Client]:
        """At the minimiser the memories hold the gradients, whose mean is zero."""
        server = Server(theta, array_namespace(theta).zeros_like(theta))
        return server, theta, Client(objective.gradient(theta))
