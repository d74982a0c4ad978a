"""SampledDualFL: the dual problem of DualFL with a few active clients in each round."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

from dualopt.arrays._checks import Fraction, require
from dualopt.arrays.xp import Array, broadcast, zeros_like
from dualopt.methods._base import AUTO, Means
from dualopt.methods._dual_parameters import Dual
from dualopt.methods._dual_theorems import OF_SAMPLED_DUALFL
from dualopt.methods._parameters import Suggested
from dualopt.methods._pivotal import inclusion_probabilities
from dualopt.methods._theorem import DRAWN, ONE_SIZE, Known
from dualopt.methods.oracle import Oracle
from dualopt.methods.participation import Participation, Round
from dualopt.objectives import Objective

__all__ = ["SampledDualFL", "next_step"]


class Server(NamedTuple):
    """State of the server."""

    theta: Array  # theta^(n)
    v: Array  # -sum_j z_j / (N nu), the model of the dual variables
    w: Array  # the point between them that it sends
    t: float  # t_n


class Message(NamedTuple):
    """What the server sends to the active clients."""

    w: Array  # w^(n)
    t: float  # t_n


class Client(NamedTuple):
    """States of the clients."""

    z: Array  # z_j, the dual variable


def least_probability(method: Any, objective: Objective, name: str) -> float:
    """Return the least probability with which a client is active: in cohorts drawn with the weights, if unequal."""
    fraction, weights = method.fraction or 1.0, objective.unequal_weights
    if weights is None:
        return fraction
    return min(inclusion_probabilities(weights, max(1, round(fraction * len(weights)))))


@dataclass(frozen=True, kw_only=True)
class SampledDualFL(Dual):
    r"""Accelerated randomised proximal coordinate descent on the dual problem of DualFL.

    .. math::
        \theta_j &\approx \arg\min f_j - \langle z_j + \nu w, \cdot\rangle
                   + \tfrac\nu2\bigl(\tfrac1t - 1\bigr)|\cdot - w|^2, \quad
        z_j^+ = z_j + \tfrac\nu t(w - \theta_j) && j \text{ active} \\
        \theta^+ &= \tfrac1P\textstyle\sum_{\text{active}}\theta_j, \quad
        v^+ = v - \tfrac{P}{Nt}(w - \theta^+), \quad w^+ = (1 - t^+)\theta^+ + t^+v^+

    with :math:`t` from P/N by :func:`next_step`. All states start at zero, whatever ``theta0`` is, and
    :math:`v = -\sum_jz_j/(N\nu)` always. An idle client does and receives nothing; one vector travels in each
    direction, and no smoothness is needed.

    Local solvers start from ``w``, the center of the proximal term, where the local gradient is at most
    :math:`L - \nu + \nu/t` times :math:`|\theta_j - w|`. A local gradient reduced by the factor r therefore leaves an
    error of :math:`z_j^+` of at most :math:`r\,(1 + t(L/\nu - 1))` times its step :math:`|z_j^+ - z_j|`, with
    :math:`t \approx \sqrt{p\nu/L}` about :math:`1 + \sqrt{pL/\nu}` times r. From where the client ended the last time
    no such bound holds: ``w`` has moved since, and an error of :math:`\theta_j` is :math:`\nu/t` times as large in
    :math:`z_j`.

    The method is APPROX (Fercoq and Richtárik 2015) on :math:`E_d(\xi) = \sum_jg_j^*(\xi_j) +
    \frac1{2N\nu}|\sum_j\xi_j|^2`, :math:`g_j = f_j - \frac\nu2|\cdot|^2`; the rate for ``rho > 0`` and the form with
    models are of this package. For uniform cohorts of :math:`P = pN` clients and exact local solutions
    (``theory/frontier``, Theorem F)

    .. math:: \mathbb E|\theta^n - \theta^*|^2 \le \tfrac{2(1 - \rho)}{N\nu}\prod_{k=1}^{n-1}(1 - t_k)\;
              \Bigl[(1 - p)\,\Delta + \tfrac1{2\nu}\bigl(p + \tfrac{(1 - p)\rho}{1 - \rho}\bigr)
              \textstyle\sum_j|\xi_j^*|^2\Bigr], \qquad \xi_j^* = \nabla f_j(\theta^*) - \nu\theta^*,

    with :math:`\Delta = N E(\theta^*) - \sum_j\inf g_j`. For ``rho = 0``, any loss, the product is at most
    :math:`4/((n-1)p + 2)^2`: Theorem 3.2 of DualFL if all clients are active. For ``rho`` in (0, nu/L] it falls by
    :math:`1 - t`, :math:`t \approx \sqrt{p\rho}`: about :math:`\sqrt{\kappa N/P}` rounds per factor e.

    **Weights of the clients.** With :math:`\omega_j = w_j/\sum_iw_i` and cohorts of fixed size that hold client j with
    probability :math:`\pi_j = \min(1, Kw_j)`, as :class:`dualopt.methods.participation.WeightedSubset` draws
    (``--participation importance=P``), the server takes two means of one upload, ``draw`` and ``mean``:

    .. math:: \theta^+ = \textstyle\sum_{\text{active}}\frac{\omega_j}{\pi_j}\theta_j, \quad
              v^+ = v - \tfrac1t\textstyle\sum_{\text{active}}\omega_j(w - \theta_j).

    Theorem F holds with :math:`p = \min_j\pi_j` and sums with the weights :math:`N\omega_j`. Other cohorts are refused:
    with the weights .97 and .03 and one of two clients, drawn uniformly, the error grows without limit
    (docs/weights.md). With :func:`dualopt.objectives.reweighted` and the scales :math:`\mu_j` every client has its own
    :math:`\nu_j = \mu_j`: about :math:`\sqrt{\kappa N\bar\nu/(P\nu_{\min})}` rounds per factor e, :math:`\kappa` the
    largest :math:`L_j/\mu_j`.

    Parameters
    ----------
    rho : float, optional
        Momentum parameter in [0, 1); suggested: ``nu / max L``, 0 when nonsmooth.
    nu : float, optional
        Duality parameter; suggested: ``min mu``.
    fraction : float, optional
        The expected fraction P/N of active clients; in a run that of its participation, else 1.
    least : float, optional
        The least probability p with which a client is active; suggested: ``fraction`` if all weights are equal, else
        that of cohorts of this size drawn with the weights.
    solver, stop
        As in :class:`dualopt.methods.Algorithm`.

    Raises
    ------
    ValueError
        If a parameter is out of range; from ``check`` if ``nu`` exceeds ``mu``.

    Examples
    --------
    >>> SampledDualFL(nu=0.1, fraction=0.25).fraction
    0.25
    """

    supports: ClassVar[frozenset[str]] = frozenset({"partial", "unequal"})
    upload_reference: ClassVar[str] = "message"
    theorems = OF_SAMPLED_DUALFL
    draws: ClassVar[bool] = True

    fraction: Fraction | None = None
    least: Annotated[Fraction, Suggested(least_probability)] = AUTO

    def check_participation(self, objective: Objective, participation: Participation | None) -> None:
        """Refuse cohorts that are not drawn with unequal weights: the iterates grow without limit."""
        known = Known.of(objective, participation)
        words = "participation must be importance=P for SampledDualFL where weights are unequal: others diverge"
        require(known.equal or (known.law.name in ONE_SIZE.names and DRAWN.holds(self, known)), words)

    def init(self, theta0: Array, copies: Array) -> tuple[Server, Message, Client]:
        """All zero; t is the least probability with which a client is active."""
        zero, zeros, t = zeros_like(theta0), zeros_like(copies), self.least
        return Server(zero, zero, zero, t), Message(zero, t), Client(zeros)

    def local(self, c: Client, message: Message, oracle: Oracle, round: Round) -> tuple[Client, Array]:
        """Take a proximal step on the dual variable."""
        w, t = message
        linear = -(c.z + self.nu * w)
        theta = oracle.solve(start=w, linear=linear, weight=self.nu * (1.0 / t - 1.0), center=w).theta
        theta = oracle.sent(theta)
        return Client(c.z + self.nu / t * (w - theta)), theta

    def server(self, server: Server, means: Means, round: Round) -> tuple[Server, Message]:
        """Follow the sum of the dual variables; a cohort that is larger than expected counts for more."""
        moved = round.fraction * (means.mean - server.w)
        theta = server.w + moved / self.least if round.inclusion is None else means.draw
        v = server.v + moved / server.t
        t = next_step(server.t, self.rho, self.least)
        w = (1.0 - t) * theta + t * v
        return Server(theta, v, w, t), Message(w, t)

    def fixed_point(self, objective: Objective, theta: Array) -> tuple[Server, Message, Client]:
        """At the minimiser ``z_j = grad f_j(theta*) - nu theta*``, and every local solution is ``theta*``."""
        gradient, t = objective.gradient(theta), self.least
        z = gradient - self.nu * broadcast(theta, gradient.shape)
        return Server(theta, theta, theta, t), Message(theta, t), Client(z)


def next_step(t: float, rho: float, fraction: float) -> float:
    r"""Return the :math:`t_+` with :math:`t_+^2 + q(1 - p)t_+ = (1 - t_+)(t^2 + qt)`, :math:`q = \rho/(1 - \rho)`.

    Examples
    --------
    >>> round(next_step(1.0, 0.0, 1.0), 6), round(next_step(0.5, 0.5, 1.0), 6)
    (0.618034, 0.568729)
    """
    q = rho / (1.0 - rho)
    kept = t * (t + q)
    linear = kept + q * (1.0 - fraction)
    return 2.0 * kept / (linear + math.sqrt(linear * linear + 4.0 * kept))
