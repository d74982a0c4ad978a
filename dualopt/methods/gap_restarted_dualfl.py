"""DualFL that forgets its momentum when a certified gap has fallen (Theorem E of this package)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from dualopt.arrays.xp import Array
from dualopt.methods._base import AUTO
from dualopt.methods._dual_theorems import LEAST_FALL, MOST_FALL, OF_GAP_RESTARTED_DUALFL
from dualopt.methods._parameters import GradientSolver
from dualopt.methods._restarts import leads_uphill, slope, squared_norm
from dualopt.methods.dualfl import DualFL, momentum
from dualopt.methods.oracle import Oracle
from dualopt.methods.participation import Round
from dualopt.objectives import Objective
from dualopt.objectives.local_problem import client_dot
from dualopt.solvers import LocalSolution
from dualopt.solvers.stopping import GradientReduction, Stop

__all__ = ["GapRestartedDualFL"]


class Server(NamedTuple):
    """State of the server."""

    theta: Array  # theta^(n)
    t: float  # t_n
    gap: float  # with which the epoch began, infinite before the first round


class Message(NamedTuple):
    """What the server sends to every client."""

    theta: Array  # theta^(n+1)
    beta: float  # beta_n
    t: float  # t_(n+1)


class Client(NamedTuple):
    """States of the clients."""

    theta: Array  # theta_j, where the local solver starts next time
    zeta: Array  # zeta_j
    v: Array  # zeta_j^(n-1) + theta^(n) - theta_j^(n), the latest bracket of (3.3)
    model: Array  # theta^(n)
    mean: Array  # w-bar_(n+1)


class Upload(NamedTuple):
    """What a client sends."""

    theta: Array  # (P, *shape)  theta_j
    slope: Array  # (P,)  its part of the slope of the dual function along the momentum
    energy: Array  # (P,)  its part of the gap


@dataclass(frozen=True, kw_only=True)
class GapRestartedDualFL(DualFL):
    r"""DualFL with ``rho = 0`` and the gap restart.

    The gap

    .. math:: G_n = \sum_j\omega_j\bigl(f_j(\bar w_n) + g_j^*(\xi_j^n)\bigr) + \tfrac\nu2|\theta^n|^2, \qquad
              \omega_j = w_j \big/ \sum_iw_i \tag{2}

    bounds the error of the mean :math:`\bar w_n = \frac1{T_n}\sum_it_iw_{i-1}` of the extrapolated models :math:`w =
    \theta + \beta(\theta - \theta^{\text{prev}})`; here :math:`g_j = f_j - \frac\nu2|\cdot|^2`. An epoch ends, :math:`t
    = 1` and :math:`\beta = 0`, when the gap has fallen to a ninth and the momentum leads uphill, and when it has fallen
    to a hundredth. Clients know the models and :math:`\beta` from the messages; as these hold t too, :math:`\bar w`
    costs a client two arrays and, in each round, one value of :math:`f_j`, half a gradient. Two scalars more travel up.
    The first round is an epoch of its own: before it no gap is known.

    At most :math:`22\sqrt{L/\nu - 1}` rounds are needed for a hundredth of the gap, without knowing L; for any loss the
    order of Theorem 3.2 is kept (Theorem E, ``theory/frontier/restarts.py``). Measured in docs/no_tuning.md.

    Parameters
    ----------
    nu : float, optional
        Duality parameter; suggested: ``min mu``.
    solver, stop
        As in :class:`dualopt.methods.Algorithm`.

    Raises
    ------
    ValueError
        If ``nu`` is not positive, or the solver does not know the local gradient where it ends; from ``check`` if
        ``nu`` exceeds ``mu``.

    Examples
    --------
    >>> GapRestartedDualFL(nu=0.5).rho
    0.0
    """

    theorems = OF_GAP_RESTARTED_DUALFL

    rho: float = field(default=0.0, init=False)
    solver: GradientSolver = AUTO
    stop: Stop = GradientReduction()  # of DualFL's own one the gaps, and the curvature, would be spoilt

    def init(self, theta0: Array, copies: Array) -> tuple[Server, Message, Client]:
        """All zero; message 0 is the zero model."""
        server, message, c = super().init(theta0, copies)
        return Server(*server, math.inf), Message(*message, 1.0), Client(*c, c.v, c.v)

    def local(self, c: Client, message: Message, oracle: Oracle, round: Round) -> tuple[Client, Upload]:
        """Solve (3.1), and send the parts of the slope and of the gap."""
        solution = oracle.solve(start=c.theta, linear=-self.nu * c.zeta)
        theta = oracle.sent(solution.theta)
        slopes = slope(theta, message.theta, c.zeta, c.v)
        energy = oracle.value(c.mean) + conjugate(solution, self.nu)
        return c._replace(theta=theta), Upload(theta, slopes, energy)

    def server(self, server: Server, mean: Upload, round: Round) -> tuple[Server, Message]:
        """Average (3.2), and begin anew where the gap has fallen enough."""
        theta = mean.theta
        gap = float(mean.energy) + 0.5 * self.nu * squared_norm(theta)  # (2)
        factor = LEAST_FALL if leads_uphill(mean.slope, theta, server.theta) else MOST_FALL
        again = math.isinf(server.gap) or 0.0 < gap <= server.gap / factor**2  # what is not positive is rounding
        t, beta = (1.0, 0.0) if again else momentum(server.t, self.rho)
        return Server(theta, t, gap if again else server.gap), Message(theta, beta, t)

    def receive(self, c: Any, message: Any) -> Any:
        r"""Extrapolate (3.3); :math:`\bar w` moves by :math:`t/T = 1/t` of the way to the new extrapolated model."""
        w = message.theta + message.beta * (message.theta - c.model)
        mean = c.mean + (w - c.mean) / message.t
        return super().receive(c, message)._replace(model=message.theta, mean=mean)

    def fixed_point(self, objective: Objective, theta: Array) -> tuple[Server, Message, Client]:
        """As for DualFL, with all models at the minimiser."""
        server, message, c = super().fixed_point(objective, theta)
        return server, message, c._replace(model=c.theta, mean=c.theta)


def conjugate(solution: LocalSolution, nu: float) -> Array:
    r"""Return :math:`g_j^*(\nabla g_j(\theta_j))`, shape ``(P,)``; an inexact subgradient adds its excess."""
    theta, f, gradient = solution.theta, solution.evaluation.f, solution.evaluation.grad_f
    found = client_dot(gradient, theta) - f - 0.5 * client_dot(nu * theta, theta)
    return found if solution.excess is None else found + solution.excess
