"""FedDyn with a regulariser that grows from round to round, for clients with kinks (Theorem C of this package)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from dualopt.arrays._checks import interval
from dualopt.arrays.xp import Array, zeros_like
from dualopt.methods._base import AUTO, Algorithm, Means
from dualopt.methods._feddyn_theorems import OF_GROWING_FEDDYN, largest_growth
from dualopt.methods._parameters import ProximalWeight, Suggested, smallest
from dualopt.methods.feddyn import Client, Server
from dualopt.methods.oracle import Oracle
from dualopt.methods.participation import Round
from dualopt.objectives import Objective

__all__ = ["GrowingFedDyn"]


def best_growth(method: Any, objective: Objective, name: str) -> float:
    """Return the most that Theorem C admits, 0 where the clients are not strongly convex."""
    return largest_growth(method.alpha, max(smallest(objective.mu), 0.0))


@dataclass(frozen=True, kw_only=True)
class GrowingFedDyn(Algorithm):
    r"""FedDyn with :math:`\alpha_n = \alpha + ng` in round n, counted from 0.

    .. math::
        \theta_j &\approx \arg\min f_j - \langle g_j, \cdot\rangle + \tfrac{\alpha_n}2 |\cdot - \theta|^2, \quad
        g_j^+ = g_j - \alpha_n(\theta_j - \theta) && j \text{ active} \\
        h^+ &= h - \tfrac{\alpha_n}N \textstyle\sum_{\text{active}} (\theta_j - \theta), \quad
        \theta^+ = \tfrac1P \textstyle\sum_{\text{active}} \theta_j - h^+/\alpha_{n+1}

    For strongly convex clients, smooth or not, exact local solutions and cohorts of fixed size, drawn with the weights
    of the clients, :math:`\mathbb E|x - \theta^*|^2 = O(1/n^2)` with the mean x of the active models, if
    :math:`g \le \sqrt{\alpha^2 + 2\alpha\mu} - \alpha` (Theorem C, ``theory/frontier/growing_feddyn.py``). Start, and
    means where weights are unequal, are those of :class:`dualopt.methods.FedDyn`.

    Parameters
    ----------
    alpha : float, optional
        Weight of the proximal term in the first round; suggested: ``mu`` when the clients are not smooth,
        :math:`\sqrt{L\mu}` when they are, :math:`8L/(\sqrt5-1)` when they are not strongly convex.
    growth : float, optional
        What it gains in every round, ``g``; suggested: :math:`\sqrt{\alpha^2 + 2\alpha\mu} - \alpha`, the most that the
        theorem admits, and nothing when the clients are not strongly convex.
    solver, stop
        As in :class:`dualopt.methods.Algorithm`.

    Raises
    ------
    ValueError
        If a parameter is out of range; from ``check`` if the local problems have no unique solution.

    Examples
    --------
    >>> GrowingFedDyn(alpha=0.1, growth=0.01).alpha_of(5)
    0.15000000000000002
    """

    supports: ClassVar[frozenset[str]] = frozenset({"partial", "unequal"})
    upload_reference: ClassVar[str] = "message"
    theorems = OF_GROWING_FEDDYN
    draws: ClassVar[bool] = True

    alpha: ProximalWeight = AUTO
    growth: Annotated[float, interval("[0, inf)"), Suggested(best_growth)] = AUTO

    def alpha_of(self, n: int) -> float:
        """Return the weight in round ``n``, counted from 0."""
        return self.alpha + n * self.growth

    def init(self, theta0: Array, copies: Array) -> tuple[Server, Array, Client]:
        """No gradients are remembered."""
        zero, zeros = zeros_like(theta0), zeros_like(copies)
        return Server(theta0, zero), theta0, Client(zeros)

    def local(self, c: Client, message: Array, oracle: Oracle, round: Round) -> tuple[Client, Array]:
        """Solve the regularised problem with the weight of the round and follow its gradient."""
        alpha = self.alpha_of(round.n)
        theta = oracle.solve(start=message, linear=-c.gradient, weight=alpha, center=message).theta
        theta = oracle.sent(theta, unbiased=True)
        return Client(c.gradient - alpha * round.kept * (theta - message)), theta

    def server(self, server: Server, means: Means, round: Round) -> tuple[Server, Array]:
        """Correct the average of the active models by the memory of all gradients, with the weight of the next one."""
        moved = means.mean - server.theta
        h = server.h - self.alpha_of(round.n) * round.kept * round.fraction * moved
        theta = means.draw - h / self.alpha_of(round.n + 1)
        return Server(theta, h), theta

    def fixed_point(self, objective: Objective, theta: Array) -> Any:
        """At the minimiser the memories hold the gradients, whose mean is zero."""
        return self.start_with(theta, gradient=objective.gradient(theta))
