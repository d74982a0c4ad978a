"""SampledDualFL: the dual problem of DualFL with a few active clients in each round."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple, Self

from dualopt.arrays._checks import require_fraction
from dualopt.arrays.xp import Array, broadcast, zeros_like
from dualopt.methods._base import OPEN, Algorithm
from dualopt.methods._dual_theorems import OF_SAMPLED_DUALFL
from dualopt.methods._pivotal import inclusion_probabilities
from dualopt.methods._scales import cohort_weights, multiplied, of_clients, weights
from dualopt.methods.dualfl import DualFL
from dualopt.methods.oracle import Oracle
from dualopt.methods.participation import Round, first_round
from dualopt.objectives import Objective
from dualopt.objectives.local_problem import per_client

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


class Upload(NamedTuple):
    """What a client sends where there is one scale for each of them."""

    theta: Array  # theta_j, with its weight in the mean of the cohort
    moved: Array  # theta_j - w, times nu_j


class Client(NamedTuple):
    """States of the clients."""

    theta: Array  # theta_j, where the local solver starts next time
    z: Array  # z_j, the dual variable


@dataclass(frozen=True, kw_only=True)
class SampledDualFL(Algorithm):
    r"""Accelerated randomised proximal coordinate descent on the dual problem of DualFL.

    .. math::
        \theta_j &\approx \arg\min f_j - \langle z_j + \nu w, \cdot\rangle
                   + \tfrac\nu2\bigl(\tfrac1t - 1\bigr)|\cdot - w|^2, \quad
        z_j^+ = z_j + \tfrac\nu t(w - \theta_j) && j \text{ active} \\
        \theta^+ &= \tfrac1P\textstyle\sum_{\text{active}}\theta_j, \quad
        v^+ = v - \tfrac{P}{Nt}(w - \theta^+), \quad w^+ = (1 - t^+)\theta^+ + t^+v^+

    with :math:`t` from P/N by :func:`next_step`. All states start at zero, whatever ``theta0`` is (it is only where the
    local solvers start), and :math:`v = -\sum_jz_j/(N\nu)` always. An idle client does nothing and hears nothing; one
    vector travels in each direction, and no smoothness is needed.

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

    **One duality parameter for each client.** With :math:`\nu_j` in the local problems, :math:`\omega_j =
    \nu_j/\sum_i\nu_i` and cohorts of fixed size that hold client j with probability :math:`\pi_j = \min(1, K\nu_j)`,
    the server takes

    .. math:: \theta^+ = \textstyle\sum_{\text{active}}\frac{\omega_j}{\pi_j}\theta_j, \quad
              v^+ = v - \tfrac1t\textstyle\sum_{\text{active}}\omega_j(w - \theta_j).

    Theorem F holds with :math:`p = \min_j\pi_j`, :math:`\sum_j\nu_j` for :math:`N\nu` and ``rho`` up to
    :math:`\min_j\nu_j/L_j`: about :math:`\sqrt{\kappa N\bar\nu/(P\nu_{\min})}` rounds per factor e,
    :math:`\kappa` the largest :math:`L_j/\nu_j`. The server needs two sums over the cohort unless all clients are
    active: two vectors go up here.

    Parameters
    ----------
    rho : float, optional
        Momentum parameter in [0, 1); suggested: ``nu / max L``, 0 when nonsmooth.
    nu : float, optional
        Duality parameter; suggested: ``min mu``.
    fraction : float, optional
        The expected fraction p of active clients; in a run that of its participation, else 1.
    scaled : bool, default False
        Whether ``scales`` are suggested: :math:`\nu_j = \mu_j` for each client.
    scales : tuple of float, optional
        The clients' :math:`\nu_j` in units of ``nu``; 1 when not given.
        :class:`dualopt.methods.participation.WeightedSubset` draws cohorts with them (``--participation
        importance=P``).
    inclusion : tuple of float, optional
        The :math:`\pi_j`, where there are scales; in a run those of a ``WeightedSubset`` whose weights are given, else
        those of the theorem.
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
    theorems = OF_SAMPLED_DUALFL

    rho: float = OPEN
    nu: float = OPEN
    fraction: float | None = None
    scaled: bool = False
    scales: tuple[float, ...] | None = None
    inclusion: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        self._dualfl()
        require_fraction(fraction=self.fraction)

    def _dualfl(self) -> DualFL:
        """Return the method that shares the parameters."""
        common = {"rho": self.rho, "nu": self.nu, "scaled": self.scaled, "scales": self.scales}
        return DualFL(**common, solver=self.solver, stop=self.stop)

    def suggested(self, objective: Objective) -> Self:
        """Fill in ``nu = min_j mu_j``, ``rho = nu / max_j L_j``, and the scales if they are asked for."""
        filled = self._dualfl().suggested(objective)
        return replace(self, rho=filled.rho, nu=filled.nu, scales=filled.scales, solver=filled.solver)

    def sampling_weights(self) -> tuple[float, ...] | None:
        """Return the weights with which Theorem F has cohorts drawn."""
        return self.scales

    def least(self, n_clients: int) -> float:
        """Return p, the least probability with which a client is active."""
        fraction = self.fraction or 1.0
        return fraction if self.scales is None else min(self.inclusion or self._needed(self.scales, n_clients))

    def _needed(self, scales: tuple[float, ...], n_clients: int) -> tuple[float, ...]:
        """Return the probabilities of Theorem F."""
        return inclusion_probabilities(scales, max(1, round((self.fraction or 1.0) * n_clients)))

    def limit(self, objective: Objective) -> float:
        """Return the largest ``rho``, as for DualFL."""
        return self._dualfl().limit(objective)

    def fits(self, objective: Objective) -> bool:
        """Tell whether every ``nu_j`` is at most ``mu_j``."""
        return self._dualfl().fits(objective)

    def check(self, objective: Objective) -> None:
        """Refuse ``nu > mu``, outside the theory."""
        self._dualfl().check(objective)

    def init(self, theta0: Array, copies: Array) -> tuple[Server, Message, Client]:
        """All zero; t is the fraction of active clients."""
        zero, zeros, t = zeros_like(theta0), zeros_like(copies), self.least(copies.shape[0])
        return Server(zero, zero, zero, t), Message(zero, t), Client(copies, zeros)

    def local(self, c: Client, message: Message, oracle: Oracle, round: Round) -> tuple[Client, Array | Upload]:
        """Take a proximal step on the dual variable."""
        w, t = message
        nu = self.nu * of_clients(self.scales, round, w)
        linear = -(c.z + per_client(nu, c.z) * w)
        theta = oracle.solve(start=c.theta, linear=linear, weight=nu * (1.0 / t - 1.0), center=w).theta
        client = Client(theta, c.z + multiplied(nu / t, w - theta))
        if self.scales is None:
            return client, theta
        mean = multiplied(cohort_weights(self.scales, self.inclusion, round, w), theta)
        return client, Upload(mean, weights(self.scales, round, theta) * (theta - w))

    def server(self, server: Server, mean: Array | Upload, round: Round) -> tuple[Server, Message]:
        """Follow the sum of the dual variables; a cohort that is larger than expected counts for more."""
        p = self.least(round.n_clients)
        if isinstance(mean, Upload):
            theta, moved = mean.theta, round.fraction * mean.moved
        else:
            moved = round.fraction * (mean - server.w)
            theta = server.w + moved / p
        v = server.v + moved / server.t
        t = next_step(server.t, self.rho, p)
        w = (1.0 - t) * theta + t * v
        return Server(theta, v, w, t), Message(w, t)

    def fixed_point(self, objective: Objective, theta: Array) -> tuple[Server, Message, Client]:
        """At the minimiser ``z_j = grad f_j(theta*) - nu_j theta*``, and every local solution is ``theta*``."""
        gradient, t = objective.gradient(theta), self.least(objective.n_clients)
        nu = self.nu * of_clients(self.scales, first_round(objective.n_clients), gradient)
        z = gradient - multiplied(nu, broadcast(theta, gradient.shape))
        return Server(theta, theta, theta, t), Message(theta, t), Client(broadcast(theta, z.shape), z)


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
