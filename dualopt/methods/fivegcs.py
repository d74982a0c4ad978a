"""5GCS: accelerated communication with sampled clients (Grudzien, Malinovsky, Richtarik 2023; recalled)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple, Self

from dualopt.arrays._checks import Fraction, Positive, require
from dualopt.arrays.xp import Array, zeros_like
from dualopt.methods._base import AUTO, Algorithm
from dualopt.methods._parameters import largest, smallest
from dualopt.methods._primal_dual_theorems import OF_FIVEGCS, PRODUCT, SPLIT_OFF, best_step
from dualopt.methods._theorem import Known
from dualopt.methods.oracle import Oracle
from dualopt.methods.participation import Round
from dualopt.objectives import Objective

__all__ = ["FiveGCS"]


class Server(NamedTuple):
    """State of the server."""

    theta: Array  # x
    dual: Array  # v, the sum of all u_m
    xhat: Array  # the point that it sent


class Client(NamedTuple):
    """States of the clients."""

    dual: Array  # u_m


@dataclass(frozen=True, kw_only=True)
class FiveGCS(Algorithm):
    r"""Proximal steps on the dual variables of a cohort.

    With :math:`F_m = (f_m - \frac\mu2|\cdot|^2)/N`, so that :math:`E = \sum_m F_m + \frac\mu2|\cdot|^2`, and ``C``
    active clients,

    .. math::
        \hat x &= (x - \gamma v) / (1 + \gamma\mu), \quad v = \textstyle\sum_m u_m \\
        y_m &\approx \arg\min F_m + \tfrac\tau2|\cdot - (\hat x + u_m/\tau)|^2 \ \text{from } \hat x, \quad
        u_m^+ = u_m + \tau(\hat x - y_m) && m \text{ active} \\
        x^+ &= \hat x - \gamma \tfrac NC \textstyle\sum_{\text{active}} (u_m^+ - u_m)

    One vector travels in each direction, for the active clients only. The paper has :math:`u_m^+ = \nabla F_m(y_m)`,
    which is the same for the exact :math:`y_m`. For another one it is off by the whole local gradient that is left,
    which the server multiplies by :math:`\gamma N`: with local problems solved to a tenth the models of badly
    conditioned clients then run away. For ``mu``-strongly convex, ``L``-smooth clients,
    a uniform cohort, :math:`\gamma\tau N \le 1` and exact proximal maps (recalled; one-step expectations confirm it),

    .. math:: \mathbb E\,\Psi^+ \le \max\Bigl(\frac1{1 + \gamma\mu},\ 1 - \frac CN \frac\tau{L_F + \tau}\Bigr)\Psi,
              \qquad \Psi = \tfrac1\gamma|x - x^*|^2
              + \tfrac NC\bigl(\tfrac1\tau + \tfrac1{L_F}\bigr)\textstyle\sum_m|u_m - u_m^*|^2,

    with :math:`L_F = (L - \mu)/N`. If :math:`\gamma\tau N = 1`, this is FedDyn with the ridge at the server, and

    .. math:: \mu(L - \mu)\gamma^2 + 2(1 - \tfrac CN)\mu\gamma \le \tfrac CN \quad\Rightarrow\quad
              \mathbb E\,\Psi^+ \le \frac\Psi{1 + 2\gamma\mu}

    for another :math:`\Psi` (Theorem G, ``theory/frontier/sampled_fivegcs.py``), attained if the first is an equality.
    For cohorts of two clients or more a third function mostly falls by :math:`1/(1 + \gamma\mu)^2` (Theorem I,
    ``theory/frontier/cohorts_of_fivegcs.py``, with its condition), as it does for everybody (Theorem H).
    The paper takes :math:`\gamma = \frac3{16}\sqrt{C/(L\mu N)}`, :math:`\tau = 1/(2\gamma N)` and
    :math:`\lceil(\frac34\sqrt{CL/(N\mu)} + 2)\log(4L/\mu)\rceil` gradient steps from :math:`\hat x`; its
    bound has about ten times as many rounds. Start: all :math:`u_m` zero, ``x = theta0``. The paper was not at hand.

    Parameters
    ----------
    gamma : float, optional
        :math:`\gamma`; suggested: the largest one of Theorem G, about :math:`\sqrt{C/(L\mu N)}`, but at most
        :math:`1/\mu`.
    tau : float, optional
        :math:`\tau`; suggested: :math:`1/(\gamma N)`.
    mu : float, optional
        The strong convexity that is split off; suggested: the least of the clients'.
    fraction : float, optional
        ``C/N``, which the suggestion of ``gamma`` uses and nothing else; in a run that of its participation, else 1.
    solver, stop
        As in :class:`dualopt.methods.Algorithm`.

    Raises
    ------
    ValueError
        If a parameter is out of range; from ``suggested`` if the clients are not smooth and strongly convex.

    Examples
    --------
    >>> FiveGCS(gamma=0.1, fraction=0.5).fraction
    0.5
    """

    supports: ClassVar[frozenset[str]] = frozenset({"partial"})
    upload_reference: ClassVar[str] = "errors"
    theorems = OF_FIVEGCS

    gamma: Positive = AUTO
    tau: Positive = AUTO
    mu: Positive = AUTO
    fraction: Fraction | None = None

    def suggested(self, objective: Objective) -> Self:
        """Fill in the parameters of the theorem."""
        mu, L = smallest(objective.mu) if self.mu is None else self.mu, largest(objective.L)
        if not (mu > 0 and math.isfinite(L)):
            raise ValueError("objective must be smooth and strongly convex, as the theory of 5GCS is for no other.")
        gamma = best_step(mu, L, self.fraction or 1.0) if self.gamma is None else self.gamma
        tau = 1.0 / (gamma * objective.n_clients) if self.tau is None else self.tau
        return replace(super().suggested(objective), gamma=gamma, tau=tau, mu=mu)

    def check(self, objective: Objective) -> None:
        """Refuse what is outside the theory."""
        known = Known.of(objective)
        own = f"mu = {self.mu:g} must not exceed {known.mu:g}, the strong convexity of the clients"
        require(SPLIT_OFF.holds(self, known), own)
        product = self.gamma * self.tau * known.N
        require(PRODUCT.holds(self, known), f"tau must be at most 1/(gamma N), but tau gamma N = {product:g}")

    def init(self, theta0: Array, copies: Array) -> tuple[Server, Array, Client]:
        """No duals."""
        zero, zeros = zeros_like(theta0), zeros_like(copies)
        server = self._with_next(theta0, zero)
        return server, server.xhat, Client(zeros)

    def local(self, c: Client, message: Array, oracle: Oracle, round: Round) -> tuple[Client, Array]:
        """Approximate the proximal map (N times its box: LOCAL has f_m whole) and upload the change of the dual."""
        N, weight = round.n_clients, round.n_clients * self.tau
        y = oracle.solve(start=message, linear=-weight * message - N * c.dual, weight=weight - self.mu).theta
        change = self.tau * (message - y)
        return Client(c.dual + change), change

    def server(self, server: Server, mean: Array, round: Round) -> tuple[Server, Array]:
        """Correct the point that was sent by N/C times the change of the active duals, and find the next one."""
        theta = server.xhat - self.gamma * round.n_clients * mean
        server = self._with_next(theta, server.dual + round.n_clients * round.fraction * mean)
        return server, server.xhat

    def fixed_point(self, objective: Objective, theta: Array) -> tuple[Server, Array, Client]:
        """At the minimiser ``u_m = grad F_m(theta*)``, whose sum is ``-mu theta*``."""
        duals = (objective.gradient(theta) - self.mu * theta) / objective.n_clients
        server = self._with_next(theta, objective.n_clients * objective.mean(duals))
        return server, server.xhat, Client(duals)

    def _with_next(self, theta: Array, dual: Array) -> Server:
        return Server(theta, dual, (theta - self.gamma * dual) / (1.0 + self.gamma * self.mu))
