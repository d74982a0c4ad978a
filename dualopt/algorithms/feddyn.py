"""FedDyn: federated learning with dynamic regularisation (Acar et al., Algorithm 1)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple, Self

from dualopt._checks import require, require_fraction, require_positive
from dualopt.algorithms._base import OPEN, Algorithm
from dualopt.algorithms._parameters import largest, require_convex_local_problem, smallest, suggested_weight, within
from dualopt.objectives import Objective
from dualopt.oracle import Oracle
from dualopt.participation import Round
from dualopt.xp import Array, array_namespace, zeros_like

__all__ = ["FedDyn", "best_weight", "largest_growth"]


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

    With one active client the method is Point-SAGA, with all of them Douglas-Rachford splitting. For strongly convex
    clients, exact local solutions and uniform cohorts of :math:`P = pN` clients (``theory/frontier``), with
    :math:`\gamma = 1/\alpha`, the mean :math:`x` of the active models and :math:`m = L\mu/(L + \mu)`,

    .. math::
        L\mu\gamma^2 + 2(1 - p)m\gamma &\le p \quad\Rightarrow\quad
        \mathbb E\,\Psi^+ \le \Psi/(1 + 2\gamma m), \\
        \Psi &= |x - \theta^*|^2 + C\,\tfrac1N\textstyle\sum_j |g_j - \nabla f_j(\theta^*)|^2

    (Theorem A): with the smallest such :math:`\alpha` about :math:`\frac12\sqrt{\kappa N/P} + \frac N{2P}` rounds per
    factor e, where Theorem 3 has :math:`\kappa`. Without smoothness, :math:`\alpha` that grows by ``growth`` in each
    round gives :math:`\mathbb E|x - \theta^*|^2 = O(1/n^2)` (Theorem C).

    Parameters
    ----------
    alpha : float, optional
        Weight of the proximal term; suggested: the best one of Theorem A (:func:`best_weight`), which is
        :math:`\sqrt{L\mu}` if all clients take part; ``mu`` when the clients are not smooth,
        :math:`8L/(\sqrt5-1)` when they are not strongly convex. Clients that are alike (rows dealt out at random)
        reach the solution in fewer rounds with :math:`\sqrt{L\mu}`, the lighter weight, whoever takes part.
        Theorems 2 and 3 ask for :math:`\alpha \ge 25L` (convex) and :math:`\alpha \ge \max(5\mu N/P, 30L)` (strongly
        convex), Theorem 4 for :math:`20LN/P` (nonconvex).
    growth : float, optional
        What :math:`\alpha` gains in every round; Theorem C admits up to :func:`largest_growth`, which is suggested with
        the suggested ``alpha`` if the clients are not smooth and some of them are idle; otherwise nothing.
    fraction : float, optional
        The expected fraction ``P/N`` of active clients, which the suggestion of ``alpha`` and the guarantee use and
        nothing else; in a run that of its participation, else 1.
    solver, stop
        As in :class:`dualopt.algorithms.Algorithm`.

    Raises
    ------
    ValueError
        If a parameter is out of range; from ``check`` if the local problems have no unique solution.

    Examples
    --------
    >>> FedDyn(alpha=0.1).alpha
    0.1
    """

    supports: ClassVar[frozenset[str]] = frozenset({"partial"})

    alpha: float = OPEN
    growth: float | None = None
    fraction: float | None = None

    def __post_init__(self) -> None:
        require_positive(alpha=self.alpha)
        require(0 <= (self.growth or 0.0) < math.inf, "growth must be a finite number, at least 0", self.growth)
        require_fraction(fraction=self.fraction)

    def suggested(self, objective: Objective) -> Self:
        """Fill in ``alpha``, ``growth`` and the solver."""
        alpha, growth = self._weights(objective)
        return replace(super().suggested(objective), alpha=alpha, growth=growth)

    def _weights(self, objective: Objective) -> tuple[float, float]:
        """Return ``alpha`` and ``growth``, suggested where they are open."""
        growth = self.growth or 0.0
        if self.alpha is not None:
            return self.alpha, growth
        mu, L = smallest(objective.mu), largest(objective.L)
        if mu > 0 and math.isfinite(L):
            return best_weight(mu, L, self._p), growth
        alpha = suggested_weight(objective, "alpha")
        if mu > 0 and self._p < 1 and self.growth is None:
            growth = largest_growth(alpha, mu)
        return alpha, growth

    def alpha_of(self, n: int) -> float:
        """Return the weight in round ``n``, counted from 0."""
        return self.alpha + n * (self.growth or 0.0)

    def check(self, objective: Objective) -> None:
        """Refuse ``alpha`` with which local problems are not strongly convex."""
        require_convex_local_problem(objective, self.alpha, "alpha")

    def guarantee(self, objective: Objective) -> str:
        """Say which theorems cover ``alpha`` when the expected fraction of the clients takes part."""
        found = [said for said in (self._paper(objective), self._frontier(objective)) if said]
        limit = 20.0 * largest(objective.L) / self._p
        return "; ".join(found) or f"none: alpha is below 20 L N/P = {limit:.3g}, or growth above its limit"

    @property
    def _p(self) -> float:
        return self.fraction or 1.0

    def _paper(self, objective: Objective) -> str:
        """Return what the theorems of the paper say of a constant ``alpha``."""
        (alpha, growth), mu, L = self._weights(objective), smallest(objective.mu), largest(objective.L)
        if growth > 0:
            return ""
        if mu > 0 and alpha >= max(30.0 * L, 5.0 * mu / self._p):
            return f"Theorem 3: O((1 + mu/alpha)^-T), a factor of {1.0 / (1.0 + mu / alpha):.6f} per round"
        if mu >= 0 and alpha >= 25.0 * L:
            return "Theorem 2: E of the mean of the models = O(1/T)"
        if alpha >= 20.0 * L / self._p:
            return "Theorem 4: the mean of |grad E|^2 = O(1/T)"
        return ""

    def _frontier(self, objective: Objective) -> str:
        """Return what Theorems A and C say."""
        (alpha, growth), mu, L = self._weights(objective), smallest(objective.mu), largest(objective.L)
        if not mu > 0:
            return ""
        if growth > 0:
            fits = within(growth, largest_growth(alpha, mu))
            return "Theorem C: E |x - theta*|^2 = O(1/n^2), any loss" if fits else ""
        if math.isfinite(L) and within(best_weight(mu, L, self._p), alpha):
            factor = 1.0 / (1.0 + 2.0 * half_harmonic_mean(mu, L) / alpha)
            return f"Theorem A: E Psi falls by a factor of {factor:.6f} per round"
        return ""

    def init(self, theta0: Array, copies: Array) -> tuple[Server, Array, Client]:
        """No gradients are remembered."""
        zero, zeros = zeros_like(theta0), zeros_like(copies)
        return Server(theta0, zero), theta0, Client(zeros)

    def local(self, c: Client, message: Array, oracle: Oracle, round: Round) -> tuple[Client, Array]:
        """Solve the regularised problem (1) and follow its gradient by (2)."""
        alpha = self.alpha_of(round.n)
        theta = oracle.solve(start=message, linear=-c.gradient, weight=alpha, center=message).theta
        return Client(c.gradient - alpha * (theta - message)), theta

    def server(self, server: Server, mean: Array, round: Round) -> tuple[Server, Array]:
        """Correct the average of the active models by the memory of all gradients."""
        h = server.h - self.alpha_of(round.n) * round.fraction * (mean - server.theta)
        theta = mean - h / self.alpha_of(round.n + 1)
        return Server(theta, h), theta

    def fixed_point(self, objective: Objective, theta: Array) -> tuple[Server, Array, Client]:
        """At the minimiser the memories hold the gradients, whose mean is zero."""
        server = Server(theta, array_namespace(theta).zeros_like(theta))
        return server, theta, Client(objective.gradient(theta))


def half_harmonic_mean(mu: float, L: float) -> float:
    r"""Return :math:`m = L\mu/(L + \mu)`.

    Examples
    --------
    >>> half_harmonic_mean(1.0, 3.0)
    0.75
    """
    return L * mu / (L + mu)


def best_weight(mu: float, L: float, fraction: float) -> float:
    r"""Return the smallest :math:`\alpha` that Theorem A admits, which has the fastest rate.

    It is :math:`1/\gamma` for the positive root of :math:`L\mu\gamma^2 + 2(1 - p)m\gamma = p` with
    :math:`m = L\mu/(L + \mu)`: :math:`\sqrt{L\mu}` at p = 1, about :math:`\sqrt{L\mu/p}` otherwise.

    Examples
    --------
    >>> best_weight(1.0, 100.0, 1.0), round(best_weight(1.0, 100.0, 0.1), 6)
    (10.0, 41.765175)
    """
    m = (1.0 - fraction) * half_harmonic_mean(mu, L)
    return (m + math.sqrt(m * m + fraction * L * mu)) / fraction


def largest_growth(alpha: float, mu: float) -> float:
    r"""Return the largest g with :math:`(\alpha + g)^2 \le \alpha^2 + 2\mu\alpha`, which Theorem C admits.

    Examples
    --------
    >>> largest_growth(1.0, 4.0)
    2.0
    """
    return math.sqrt(alpha * (alpha + 2.0 * mu)) - alpha
