"""DualFL with the optimal gradient method on the dual: one more term, a provably smaller error in every round."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from dualopt.arrays.xp import Array, zeros_like
from dualopt.methods._dual_parameters import Dual
from dualopt.methods._dual_theorems import OF_OPTIMIZED_DUALFL
from dualopt.methods.dualfl import Client
from dualopt.methods.oracle import Oracle
from dualopt.methods.participation import Round

__all__ = ["OptimizedDualFL", "coefficients", "growth"]

LARGEST = 1e100  # A grows without limit; beyond this its size no longer matters, only the ratio of two successive ones


class Server(NamedTuple):
    """State of the server."""

    theta: Array  # theta^(n)
    A: float  # A_n


class Message(NamedTuple):
    """What the server sends to every client."""

    theta: Array  # theta^(n+1)
    b: float  # b_n
    c: float  # c_n


@dataclass(frozen=True, kw_only=True)
class OptimizedDualFL(Dual):
    r"""DualFL with the momentum of the information-theoretic exact method (Taylor and Drori 2023).

    .. math::
        \theta_j &\approx \arg\min f_j - \nu \langle \zeta_j, \cdot\rangle, \qquad
        \theta = \tfrac1N \textstyle\sum_j \theta_j \\
        v_j &= \zeta_j + \theta - \theta_j, \quad \zeta_j^+ = v_j + b (v_j - v_j^{\text{prev}}) + c (v_j - \zeta_j)

    DualFL is this with ``c = 0``. On :math:`\sum_j \zeta_j = 0` the dual function
    :math:`D(\zeta) = \sum_j f_j^*(\nu \zeta_j)` is ``nu``-smooth and ``nu^2/L``-strongly convex and v is a gradient
    step of length ``1/nu``, so any gradient method may drive it; this one has the best worst case and needs no horizon.
    For ``rho`` in [0, nu/L], ``nu`` in (0, mu] and exact local solutions,

    .. math:: |\theta^n - \theta^*|^2 \le \frac{2 |\zeta^*|^2}{N A_n}, \qquad \nu \zeta_j^* = \nabla f_j(\theta^*),

    with :math:`A_n` of :func:`growth`, which is at least :math:`(n + 1)^2` and grows by
    :math:`(1 - \sqrt\rho)^{-2}` per round: the exponent of Theorem 3.3, doubled. At ``rho = 0`` (any loss) also
    :math:`E_d(\xi^n) - E_d^* \le \nu |\zeta^*|^2 / A_n`, half of Theorem 3.2, and attained. Proof: where the
    clients solve, :math:`D - D^* - |\nabla D|^2/(2 \nu) - \tfrac{\nu \rho}{2 (1 - \rho)} |v - \zeta^*|^2` is at most
    :math:`\nu |\zeta^*|^2/((1 - \rho) A_n)` (Taylor and Drori 2023) and at least
    :math:`\tfrac{\nu N}{2 (1 - \rho)} |\theta^n - \theta^*|^2`, by the curvature of every :math:`f_j`.

    Parameters
    ----------
    rho, nu, solver, stop
        As in :class:`dualopt.methods.DualFL`.

    Raises
    ------
    ValueError
        As from :class:`dualopt.methods.DualFL`.

    Examples
    --------
    >>> OptimizedDualFL(rho=0.1, nu=0.5).rho
    0.1
    """

    theorems = OF_OPTIMIZED_DUALFL
    upload_reference: ClassVar[str] = "message"

    def init(self, theta0: Array, copies: Array) -> tuple[Server, Message, Client]:
        """All zero; message 0 is the zero model."""
        zero, zeros = zeros_like(theta0), zeros_like(copies)
        return Server(zero, 0.0), Message(zero, 0.0, 0.0), Client(copies, zeros, zeros)

    def local(self, c: Client, message: Message, oracle: Oracle, round: Round) -> tuple[Client, Array]:
        """Solve the local problem (3.1) of DualFL."""
        theta = oracle.sent(oracle.solve(start=c.theta, linear=-self.nu * c.zeta).theta)
        return c._replace(theta=theta), theta

    def server(self, server: Server, mean: Array, round: Round) -> tuple[Server, Message]:
        """Average; the coefficients depend on nothing but the round and ``rho``."""
        A, b, c = coefficients(server.A, self.rho)
        return Server(mean, A), Message(mean, b, c)

    def receive(self, c: Client, message: Message) -> Client:
        """Extrapolate, along the last change of v and along the last step."""
        v = c.zeta + message.theta - c.theta
        return c._replace(zeta=v + message.b * (v - c.v) + message.c * (v - c.zeta), v=v)


def growth(A: float, rho: float) -> float:
    """Return ``A_{n+1}``; ``A_0 = 0``, so that ``A_1 = 4/(1 - rho)^2``.

    Examples
    --------
    >>> growth(0.0, 0.0), growth(4.0, 0.0)
    (4.0, 10.47213595499958)
    """
    return ((1.0 + rho) * A + 2.0 * (1.0 + math.sqrt((1.0 + A) * (1.0 + rho * A)))) / (1.0 - rho) ** 2


def coefficients(A: float, rho: float) -> tuple[float, float, float]:
    r"""Return ``A_{n+1}``, ``b_n`` and ``c_n`` from ``A_n``.

    The published form keeps a third sequence :math:`z`, with :math:`\zeta = (1 - \beta) z + \beta v`,
    :math:`z^+ = z + \rho \delta (\zeta - z) + \delta (v^+ - \zeta)`; here it is eliminated.

    Examples
    --------
    >>> coefficients(0.0, 0.0)
    (4.0, 0.0, 0.6180339887498949)
    """
    A_next = growth(A, rho)
    beta, beta_next = A / ((1.0 - rho) * A_next), A_next / ((1.0 - rho) * growth(A_next, rho))
    delta = (1.0 + math.sqrt((1.0 + A) * (1.0 + rho * A))) / (1.0 + rho + rho * A)
    kept = (1.0 - rho * delta) / (1.0 - beta)
    b, c = (1.0 - beta_next) * kept * beta, (1.0 - beta_next) * ((1.0 - rho) * delta - kept)
    return min(A_next, LARGEST), b, c
