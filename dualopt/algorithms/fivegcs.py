"""5GCS: accelerated communication with sampled clients (Grudzien, Malinovsky, Richtarik 2023; recalled)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self

from dualopt.algorithms._parameters import (
    given,
    largest,
    loss_gradient,
    require_local_gradients,
    require_positive,
    smallest,
    with_one_gradient_more,
)
from dualopt.objectives import LocalProblem, Objective
from dualopt.participation import Round
from dualopt.solvers import Gradient, LocalSolution, LocalSolver
from dualopt.stopping import Steps, Stop
from dualopt.xp import Array, array_namespace

__all__ = ["FiveGCS"]


class Server(NamedTuple):
    """State of the server."""

    theta: Array  # x
    dual: Array  # v, the sum of all u_m
    xhat: Array  # the point that it sent


class Client(NamedTuple):
    """States of the clients."""

    dual: Array  # u_m
    memory: Any  # of the local solver


@dataclass(frozen=True, kw_only=True)
class FiveGCS:
    r"""Proximal steps on the dual variables of a cohort, each by local gradient steps.

    With :math:`F_m = (f_m - \frac\mu2|\cdot|^2)/N`, so that :math:`E = \sum_m F_m + \frac\mu2|\cdot|^2`, and ``C``
    active clients,

    .. math::
        \hat x &= (x - \gamma v) / (1 + \gamma\mu), \quad v = \textstyle\sum_m u_m \\
        y_m &\approx \arg\min F_m + \tfrac\tau2|\cdot - (\hat x + u_m/\tau)|^2 \ \text{from } \hat x, \quad
        u_m^+ = \nabla F_m(y_m) && m \text{ active} \\
        x^+ &= \hat x - \gamma \tfrac NC \textstyle\sum_{\text{active}} (u_m^+ - u_m)

    One vector travels in each direction, for the active clients only. For ``mu``-strongly convex, ``L``-smooth clients,
    a uniform cohort, :math:`\gamma\tau N \le 1` and exact proximal maps (recalled; one-step expectations confirm it),

    .. math:: \mathbb E\,\Psi^+ \le \max\Bigl(\frac1{1 + \gamma\mu},\ 1 - \frac CN \frac\tau{L_F + \tau}\Bigr)\Psi,
              \qquad \Psi = \tfrac1\gamma|x - x^*|^2
              + \tfrac NC\bigl(\tfrac1\tau + \tfrac1{L_F}\bigr)\textstyle\sum_m|u_m - u_m^*|^2,

    with :math:`L_F = (L - \mu)/N`; the suggestions make it hold with the suggested number of gradient steps too. Start:
    all :math:`u_m` zero, ``x = theta0``. The paper was not at hand.

    Parameters
    ----------
    gamma : float, optional
        :math:`\gamma`; suggested: :math:`\frac3{16}\sqrt{C/(L\mu N)}`.
    tau : float, optional
        :math:`\tau`; suggested: :math:`1/(2\gamma N)`.
    mu : float, optional
        The strong convexity that is split off; suggested: the least of the clients'.
    share : float, default 1
        ``C/N``, which the suggestions of ``gamma`` and the number of steps use and nothing else.
    solver : LocalSolver, optional
        Local solver; suggested: ``Gradient()`` with the step ``1/L`` of the local problem.
    stop : Stop, optional
        When a client stops; suggested: :math:`\lceil(\frac34\sqrt{CL/(N\mu)} + 2)\log(4L/\mu)\rceil` steps.

    Raises
    ------
    ValueError
        If a parameter is out of range, or the solver does not know the local gradient where it ends; from
        ``suggested`` if the clients are not smooth and strongly convex.

    Examples
    --------
    >>> FiveGCS(gamma=0.1, share=0.5).share
    0.5
    """

    supports: ClassVar[frozenset[str]] = frozenset({"partial"})

    gamma: float | None = None
    tau: float | None = None
    mu: float | None = None
    share: float = 1.0
    solver: LocalSolver | None = None
    stop: Stop | None = None

    def __post_init__(self) -> None:
        require_positive(gamma=self.gamma, tau=self.tau, mu=self.mu)
        if not 0 < self.share <= 1:
            raise ValueError(f"share must lie in (0, 1], not {self.share}.")
        require_local_gradients(self.solver)

    def suggested(self, objective: Objective) -> Self:
        """Fill in the parameters of the theorem."""
        mu, L = smallest(objective.mu) if self.mu is None else self.mu, largest(objective.L)
        if not (mu > 0 and math.isfinite(L)):
            raise ValueError("objective must be smooth and strongly convex, as the theory of 5GCS is for no other.")
        gamma = 3.0 / 16.0 * math.sqrt(self.share / (L * mu)) if self.gamma is None else self.gamma
        tau = 1.0 / (2.0 * gamma * objective.n_clients) if self.tau is None else self.tau
        steps = math.ceil((0.75 * math.sqrt(self.share * L / mu) + 2.0) * math.log(4.0 * L / mu))
        solver = Gradient() if self.solver is None else self.solver
        stop = Steps(steps=steps) if self.stop is None else self.stop
        return replace(self, gamma=gamma, tau=tau, mu=mu, solver=solver, stop=stop)

    def check(self, objective: Objective) -> None:
        """Refuse what is outside the theory."""
        mu, product = smallest(objective.mu), given(self.gamma) * given(self.tau) * objective.n_clients
        if given(self.mu) > mu * (1 + 1e-12):
            raise ValueError(f"mu = {self.mu:g} must not exceed {mu:g}, the strong convexity of the clients.")
        if product > 1 + 1e-12:
            raise ValueError(f"tau must be at most 1/(gamma N), but tau gamma N = {product:g}.")

    def regime(self, objective: Objective) -> str:
        """Say how fast Psi contracts with exact proximal maps."""
        self = self.suggested(objective)
        factor = self.factor(objective, self.share)
        return f"the mean of Psi contracts by {factor:.4f} per round with exact proximal maps (recalled)"

    def factor(self, objective: Objective, share: float) -> float:
        """Return the factor of Psi when a uniform cohort of the given share of the clients takes part."""
        gamma, tau, mu = given(self.gamma), given(self.tau), given(self.mu)
        curvature = (largest(objective.L) - mu) / objective.n_clients
        return max(1.0 / (1.0 + gamma * mu), 1.0 - share * tau / (curvature + tau))

    def init(self, objective: Objective, theta0: Array) -> tuple[Server, Array, Client]:
        """No duals."""
        zero = array_namespace(theta0).zeros_like(theta0)
        duals = array_namespace(theta0).broadcast_to(zero, (objective.n_clients, *objective.shape))
        server = self._with_next(theta0, zero)
        return server, server.xhat, Client(duals, given(self.solver).memory(objective))

    def local(
        self, objective: Objective, clients: Client, message: Array, round: Round
    ) -> tuple[Client, Array, LocalSolution]:
        """Approximate the proximal map (N times its box: LOCAL has f_m whole) and upload the change of the dual."""
        mu, weight = given(self.mu), round.n_clients * given(self.tau)
        problem = LocalProblem(
            objective=objective,
            tilt=-weight * message - round.n_clients * clients.dual,
            weight=weight - mu,
            anchor=array_namespace(message).zeros_like(message),
        )
        start = array_namespace(message).broadcast_to(message, clients.dual.shape)
        work = given(self.solver)(problem, start, given(self.stop), clients.memory, round)
        dual = (loss_gradient(problem, work) - mu * work.theta) / round.n_clients
        if isinstance(self.solver, Gradient) and isinstance(self.stop, Steps):
            work = with_one_gradient_more(work)  # the one at the end is the new dual
        return Client(dual, work.memory), dual - clients.dual, work

    def server(self, server: Server, mean: Array, round: Round) -> tuple[Server, Array]:
        """Correct the point that was sent by N/C times the change of the active duals, and find the next one."""
        theta = server.xhat - given(self.gamma) * round.n_clients * mean
        server = self._with_next(theta, server.dual + round.n_active * mean)
        return server, server.xhat

    def fixed_point(self, objective: Objective, theta: Array) -> tuple[Server, Array, Client]:
        """At the minimiser ``u_m = grad F_m(theta*)``, whose sum is ``-mu theta*``."""
        duals = (objective.gradient(theta) - given(self.mu) * theta) / objective.n_clients
        server = self._with_next(theta, array_namespace(theta).sum(duals, axis=0))
        return server, server.xhat, Client(duals, given(self.solver).memory(objective))

    def _with_next(self, theta: Array, dual: Array) -> Server:
        gamma = given(self.gamma)
        return Server(theta, dual, (theta - gamma * dual) / (1.0 + gamma * given(self.mu)))
