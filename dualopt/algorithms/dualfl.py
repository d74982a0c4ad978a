"""DualFL: dualized federated learning (Park and Xu, Algorithm 1)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple, Self

from dualopt._checks import require, require_positive
from dualopt.algorithms._base import OPEN, Algorithm
from dualopt.algorithms._parameters import largest, require_local_gradients, smallest, within
from dualopt.algorithms._scales import constants, of_clients, require_scales, weights
from dualopt.objectives import Objective
from dualopt.objectives.local_problem import per_client
from dualopt.oracle import Oracle
from dualopt.participation import Round, first_round
from dualopt.xp import Array, broadcast, zeros_like

__all__ = ["DualFL", "momentum"]


class Server(NamedTuple):
    """State of the server."""

    theta: Array  # theta^(n)
    t: float  # t_n


class Message(NamedTuple):
    """What the server sends to every client."""

    theta: Array  # theta^(n+1)
    beta: float  # beta_n


class Client(NamedTuple):
    """States of the clients."""

    theta: Array  # theta_j, the point where the local solver starts next time
    sent: Array  # the point that was uploaded: theta_j, or its dual correction
    zeta: Array  # zeta_j
    v: Array  # zeta_j^(n-1) + theta^(n) - theta_j^(n), the latest bracket of (3.3)


@dataclass(frozen=True, kw_only=True)
class DualFL(Algorithm):
    r"""Accelerated forward-backward splitting on the dual problem, one round per iteration.

    .. math::
        \theta_j &\approx \arg\min f_j - \nu \langle \zeta_j, \cdot\rangle && (3.1) \\
        \theta &= \tfrac1N \textstyle\sum_j \theta_j && (3.2) \\
        v_j &= \zeta_j + \theta - \theta_j, \quad \zeta_j^+ = (1 + \beta) v_j - \beta v_j^{\text{prev}} && (3.3)

    All states start at zero, whatever ``theta0`` is (it is only where the local solvers start).
    :math:`\sum_j \zeta_j = 0` always. With ``nu`` in (0, mu]: ``|theta - theta*|^2 = O(1/n^2)`` for ``rho = 0``
    (Theorem 3.2, any loss) and :math:`O((1 - \sqrt\rho)^n)` for ``rho`` in (0, nu/L] (Theorem 3.3).

    Parameters
    ----------
    rho : float, optional
        Momentum parameter in [0, 1); suggested: ``nu / max L``, 0 when nonsmooth.
    nu : float, optional
        Duality parameter; suggested: ``min mu``.
    solver, stop
        As in :class:`dualopt.algorithms.Algorithm`.
    scaled : bool, default False
        Whether ``scales`` are suggested: :math:`\nu_j = \mu_j` for each client.
    scales : tuple of float, optional
        The clients' duality parameters :math:`\nu_j` in units of ``nu``; 1 when not given. The clients then count with
        the weights :math:`\nu_j` in (3.2), and ``rho`` may be the least :math:`\nu_j/L_j` in place of
        :math:`\min\nu_j/\max L_j`.
    corrected : bool, default False
        Upload the dual-corrected point ``theta_j - grad/nu``, for which the inexact theorems hold at every accuracy
        (the gap (3.6) of the plain point is usually infinite), and restart from the plain one: the
        correction is a step ``1/nu``, far too long to start from. The plain point converges faster in practice.

    Raises
    ------
    ValueError
        If ``rho`` or ``nu`` is out of range; from ``check`` if ``nu`` exceeds ``mu``.

    Examples
    --------
    >>> DualFL(rho=0.1, nu=0.5).rho
    0.1
    """

    listens: ClassVar[frozenset[str]] = frozenset({"active"})

    rho: float = OPEN
    nu: float = OPEN
    corrected: bool = False
    scaled: bool = False
    scales: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        require_scales(self.scales)
        if self.rho is not None and not 0 <= self.rho < 1:
            raise ValueError(f"rho must lie in [0, 1), not {self.rho}.")
        require_positive(nu=self.nu)
        if self.corrected:
            require_local_gradients(self.solver)

    def suggested(self, objective: Objective) -> Self:
        """Fill in ``nu = min_j mu_j`` and ``rho = nu / max_j L_j`` (the optimal choice of Theorem 3.3); also scales."""
        nu = smallest(objective.mu) if self.nu is None else self.nu
        if nu <= 0:
            raise ValueError(f"nu cannot be suggested because mu is {nu:g}: give mu > 0 (Section 4 adds a ridge).")
        scales = self.scales
        if self.scaled and scales is None:
            require(smallest(objective.mu) > 0, "scaled must be False for clients that are not strongly convex")
            scales = tuple(mu / smallest(objective.mu) for mu, _ in constants(objective))
        rho = replace(self, nu=nu, scales=scales).limit(objective) if self.rho is None else self.rho
        # for mu = L any rho near 1 solves the problem in one round
        return replace(super().suggested(objective), nu=nu, rho=min(rho, 1.0 - 1e-9), scales=scales)

    def limit(self, objective: Objective) -> float:
        """Return the least ``nu_j/L_j``, for one ``nu`` ``nu / max_j L_j``: the largest ``rho`` of Theorem 3.3."""
        if self.scales is None:
            return self.nu / largest(objective.L)
        require_scales(self.scales, objective.n_clients)
        return min(self.nu * s / L for s, (_, L) in zip(self.scales, constants(objective), strict=True))

    def fits(self, objective: Objective) -> bool:
        """Tell whether every ``nu_j`` is at most ``mu_j``."""
        if self.scales is None:
            return within(self.nu, smallest(objective.mu))
        require_scales(self.scales, objective.n_clients)
        return all(within(self.nu * s, mu) for s, (mu, _) in zip(self.scales, constants(objective), strict=True))

    def check(self, objective: Objective) -> None:
        """Refuse ``nu > mu``, outside the theory: the dual problem is then not convex."""
        mu = smallest(objective.mu)
        unless = "unless check_assumptions is False (--no-check-assumptions on the command line)"
        times, own = ("", f"mu = {mu:g}") if self.scales is None else (" times scales", "every mu_j")
        require(self.fits(objective), f"nu = {self.nu:g}{times} must not exceed {own}, {unless}")

    def guarantee(self, objective: Objective) -> str:
        """Say which theorem covers these parameters, for exact local solutions."""
        method = self.suggested(objective)
        rho, limit = method.rho, method.limit(objective)
        if not method.fits(objective):
            return "none: nu exceeds mu"
        if rho == 0:
            return "Theorem 3.2: |theta - theta*|^2 = O(1/n^2)"
        if not within(rho, limit):
            return f"none: rho exceeds nu/L = {limit:.3g}"
        return f"Theorem 3.3: E - E* = O((1 - sqrt(rho))^n), a factor of {1 - math.sqrt(rho):.4f} per round"

    def init(self, theta0: Array, copies: Array) -> tuple[Server, Message, Client]:
        """All zero; message 0 is the zero model."""
        zero, zeros = zeros_like(theta0), zeros_like(copies)
        return Server(zero, 1.0), Message(zero, 0.0), Client(copies, zeros, zeros, zeros)

    def local(self, c: Client, message: Message, oracle: Oracle, round: Round) -> tuple[Client, Array]:
        """Solve (3.1)."""
        nu = self._nu_of(round, c.zeta)
        solution = oracle.solve(start=c.theta, linear=-nu * c.zeta)
        theta = solution.theta
        sent = theta - solution.evaluation.gradient / nu if self.corrected else theta
        upload = sent if self.scales is None else weights(self.scales, round, sent) * sent
        return c._replace(theta=theta, sent=sent), upload

    def _nu_of(self, round: Round, like: Array) -> float | Array:
        """Return ``nu``, or the ``nu_j`` of the clients of a round for arrays like ``like``."""
        return per_client(self.nu * of_clients(self.scales, round, like), like)

    def server(self, server: Server, mean: Array, round: Round) -> tuple[Server, Message]:
        """Average (3.2)."""
        t, beta = momentum(server.t, self.rho)
        return Server(mean, t), Message(mean, beta)

    def receive(self, c: Client, message: Message) -> Client:
        """Extrapolate (3.3)."""
        v = c.zeta - c.sent  # in place from here on: where models are large, new arrays cost more than the sums
        v += message.theta
        zeta = v - c.v
        zeta *= message.beta
        zeta += v
        return c._replace(zeta=zeta, v=v)

    def fixed_point(self, objective: Objective, theta: Array) -> tuple[Server, Message, Client]:
        """At the minimiser ``nu zeta_j = grad f_j(theta*)``, and every local solution is ``theta*``."""
        gradient = objective.gradient(theta)
        zeta = gradient / self._nu_of(first_round(objective.n_clients), gradient)
        start = broadcast(theta, zeta.shape)
        return Server(theta, 1.0), Message(theta, 0.0), Client(start, start, zeta, zeta)


def momentum(t: float, rho: float) -> tuple[float, float]:
    """Return ``t_{n+1}`` and ``beta_n`` of (3.4).

    Examples
    --------
    >>> momentum(1.0, 0.0)
    (1.618033988749895, 0.0)
    """
    shrink = 1.0 - rho * t * t
    t_next = 0.5 * (shrink + math.sqrt(shrink * shrink + 4.0 * t * t))
    return t_next, (t - 1.0) / t_next * (1.0 - t_next * rho) / (1.0 - rho)
