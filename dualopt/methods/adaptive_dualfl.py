"""DualFL whose momentum follows the curvature that its own rounds meet, checked by a certified gap."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

from dualopt.arrays._checks import require_positive
from dualopt.arrays.xp import Array, epsilon
from dualopt.methods._dual_theorems import OF_ADAPTIVE_DUALFL, TELLS
from dualopt.methods._restarts import leads_uphill, slope, squared_norm
from dualopt.methods.dualfl import momentum
from dualopt.methods.gap_restarted_dualfl import GapRestartedDualFL, Message, conjugate
from dualopt.methods.oracle import Oracle
from dualopt.methods.participation import Round
from dualopt.objectives import Objective
from dualopt.objectives.local_problem import client_dot

__all__ = ["AdaptiveDualFL"]

ROUNDING = 256.0  # units in the last place of the two parts of the gap, below which it tells nothing
LEAST = 1e-12  # estimate of the curvature: so that a run which goes on after convergence keeps a finite momentum


class Server(NamedTuple):
    """State of the server."""

    theta: Array  # theta^(n)
    t: float  # t_n
    s: float  # the estimate of the curvature
    left: float  # B_n, which part of an epoch's first gap is left; 0 while the momentum grows
    gap: float  # G_0, infinite before the first round
    dual: float  # the dual value of the latest round
    energy: float  # the least E at a mean model so far


class Upload(NamedTuple):
    """What a client sends."""

    theta: Array  # (P, *shape)  theta_j
    slope: Array  # (P,)  its part of the slope of the dual function along the momentum
    energy: Array  # (P,)  f_j at the mean model
    dual: Array  # (P,)  g_j^* at its dual point
    product: Array  # (P,)  of the changes of its solution and of its dual point
    square: Array  # (P,)  of the change of its dual point
    slope_product: Array  # (P,)  of the changes of its solution and of the gradient of g_j there
    slope_square: Array  # (P,)  of the change of that gradient


class Client(NamedTuple):
    """States of the clients."""

    theta: Array  # theta_j, where the local solver starts next time
    zeta: Array  # zeta_j
    v: Array  # zeta_j^(n-1) + theta^(n) - theta_j^(n), the latest bracket of (3.3)
    model: Array  # theta^(n)
    mean: Array  # w-bar_(n+1)
    gradient: Array  # grad g_j(theta_j)/nu


@dataclass(frozen=True, kw_only=True)
class AdaptiveDualFL(GapRestartedDualFL):
    r"""DualFL with a momentum parameter from the curvature that is met.

    The dual function is at least :math:`\sigma = \min_j\nu/(L_j - \nu)` times as curved as its quadratic part, and with
    :math:`\rho = \sigma/(1 + \sigma) = \nu/L` DualFL has the rate of Theorem 3.3. Along the way of a run it is often
    much more curved. With the changes :math:`\Delta` of a round, and the dual points :math:`\xi_j/\nu = \zeta_j -
    \theta_j`, the estimate s is the least so far of ``first`` and

    .. math:: \frac{\sum_jw_j\langle\Delta\theta_j, \Delta(\zeta_j - \theta_j)\rangle}
                   {\sum_jw_j|\Delta(\zeta_j - \theta_j)|^2} \ge \sigma. \tag{3}

    For inexact local solutions (3) may be anything. With the gradients :math:`\nabla g_j(\theta_j)/\nu` in place of the
    dual points it is at least :math:`\sigma` whatever the solutions are, though farther from it: what counts is the
    larger of (3) and a half of that.

    **The momentum grows**, :math:`\rho = 0`, until it leads uphill or is longer than s can bear, :math:`t^2s \ge 4`,
    and the gap is no larger than that with which the epoch began. Meanwhile the gap (2) is an upper bound too,
    :math:`\sigma \le (\sqrt{G_n} + \sqrt{G_0})^2/(t_n^2G_n)`, and s is at most that. **Then it is held**: forgotten
    once, and :math:`t = 1/\sqrt\rho`, :math:`\rho = s/(1 + s)`, where s may still fall. If s were at most
    :math:`\sigma`, it would be

    .. math:: G_n \le B_n\bigl(G_0 + (\sqrt{G_n} + \sqrt{G_0})^2\bigr), \qquad
              B_n = \prod_i\Bigl(1 - \frac1{t_i}\Bigr), \tag{4}

    :math:`G_0` of the round in which it was forgotten. As soon as (4) fails, s was wrong: the dual point of the round
    before is taken back, s is halved, and the momentum grows anew. So with exact local solutions the certified gap
    falls as the estimate says, s is never below :math:`\min(\text{first}, \sigma/2)`, and for ``first`` = 1 the rounds
    for a certified gap are at most :math:`\sqrt{2L/\nu}\,\log(G/\epsilon)` and a multiple of :math:`\sqrt{L/\nu}`, with
    all constants in ``theory/frontier/adaptive_dualfl.py``. It does not know L. Clients with kinks have :math:`\sigma =
    0`, and no rate is proved for them. Clients compute one value of :math:`f_j` more in each round, half a gradient,
    keep one vector more than with the gap restart, and send seven scalars. Measured in docs/no_tuning.md.

    Parameters
    ----------
    nu : float, optional
        Duality parameter; suggested: ``min mu``.
    first : float, default 1
        The first estimate of the curvature, such as ``nu/(L - nu)`` where L is known.
    solver, stop
        As in :class:`dualopt.methods.Algorithm`.

    Raises
    ------
    ValueError
        If ``nu`` or ``first`` is not positive, or the solver does not know the local gradient where it ends; from
        ``check`` if ``nu`` exceeds ``mu``.

    Examples
    --------
    >>> AdaptiveDualFL(nu=0.5).first
    1.0
    """

    theorems = OF_ADAPTIVE_DUALFL

    first: Annotated[float, require_positive] = 1.0

    def init(self, theta0: Array, copies: Array) -> tuple[Server, Message, Client]:
        """All zero; message 0 is the zero model."""
        server, message, c = super().init(theta0, copies)
        return Server(server.theta, 1.0, self.first, 0.0, math.inf, math.inf, math.inf), message, Client(*c, c.v)

    def local(self, c: Client, message: Message, oracle: Oracle, round: Round) -> tuple[Client, Upload]:
        """Solve (3.1), and send the parts of the slope, of the gap, and of the curvature."""
        solution = oracle.solve(start=c.theta, linear=-self.nu * c.zeta)
        theta = oracle.sent(solution.theta)
        gradient = solution.evaluation.grad_f / self.nu - solution.theta
        moved, change, bend = theta - c.theta, (c.zeta - theta) - (c.v - c.model), gradient - c.gradient
        slopes, energy = slope(theta, message.theta, c.zeta, c.v), oracle.value(c.mean)
        met = (client_dot(x, y) for x, y in ((moved, change), (change, change), (moved, bend), (bend, bend)))
        c = c._replace(theta=theta, gradient=gradient)
        return c, Upload(theta, slopes, energy, conjugate(solution, self.nu), *met)

    def server(self, server: Server, mean: Upload, round: Round) -> tuple[Server, Message]:
        """Average (3.2), and choose the momentum."""
        theta, energy, dual = mean.theta, float(mean.energy), float(mean.dual)
        rounding = ROUNDING * epsilon(theta) * (abs(energy) + abs(dual))
        dual += 0.5 * self.nu * squared_norm(theta)
        gap = energy + dual  # (2)
        now = server._replace(theta=theta, dual=dual, energy=min(energy, server.energy))
        if math.isinf(server.gap):  # the first round: what clients moved since is no difference of two solutions
            return now._replace(gap=gap), Message(theta, 0.0, 1.0)
        met = max(quotient(mean.product, mean.square), 0.5 * quotient(mean.slope_product, mean.slope_square))  # (3)
        s = min(server.s, met) if met > 0.0 else server.s
        tells = gap > rounding
        both = (math.sqrt(max(gap, 0.0)) + math.sqrt(max(server.gap, 0.0))) ** 2
        if server.left == 0.0:
            s = max(min(s, both / (server.t**2 * gap)) if tells else s, LEAST)
            uphill = server.t > 1.0 and leads_uphill(mean.slope, theta, server.theta)
            if gap <= server.gap and (uphill or server.t**2 * s >= TELLS):
                t = math.sqrt(1.0 + 1.0 / s)
                return now._replace(t=t, s=s, left=1.0 - 1.0 / t, gap=gap), Message(theta, 0.0, t)
            t, beta = momentum(server.t, 0.0)
            return now._replace(t=t, s=s), Message(theta, beta, t)
        if tells and gap > server.left * (server.gap + both):  # (4) fails
            back = now._replace(t=1.0, s=max(0.5 * s, LEAST), left=0.0, gap=now.energy + server.dual, dual=server.dual)
            return back, Message(theta, -1.0, 1.0)  # with which zeta is the v of the round before
        s = max(s, LEAST)
        t, beta = momentum(server.t, s / (1.0 + s))
        return now._replace(t=t, s=s, left=server.left * (1.0 - 1.0 / t)), Message(theta, beta, t)

    def fixed_point(self, objective: Objective, theta: Array) -> Any:
        """As for DualFL, with all models at the minimiser and the gradients there."""
        server, message, c = super().fixed_point(objective, theta)
        return server, message, c._replace(gradient=c.zeta - c.theta)


def quotient(product: Array, square: Array) -> float:
    """Return what is met of two scalars, 0 where there is nothing to see.

    Examples
    --------
    >>> import numpy as np
    >>> quotient(np.asarray(1.0), np.asarray(4.0)), quotient(np.asarray(0.0), np.asarray(0.0))
    (0.25, 0.0)
    """
    return float(product) / float(square) if float(square) > 0.0 else 0.0
