"""FedDyn: federated learning with dynamic regularisation (Acar et al., Algorithm 1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

from dualopt.arrays._checks import Fraction
from dualopt.arrays.xp import Array, zeros_like
from dualopt.methods._base import AUTO, Algorithm, Means
from dualopt.methods._feddyn_theorems import OF_FEDDYN, best_weights, suggested_alpha
from dualopt.methods._parameters import ProximalWeight, Suggested, constants, smooth_and_strongly_convex
from dualopt.methods.oracle import Oracle
from dualopt.methods.participation import Round
from dualopt.objectives import Objective

__all__ = ["FedDyn"]


class Server(NamedTuple):
    """State of the server."""

    theta: Array  # theta^t
    h: Array  # h^t, the mean of all gradient memories


class Client(NamedTuple):
    """States of the clients."""

    gradient: Array  # the memory of grad L_k(theta_k^t)


def best_alpha(method: Any, objective: Objective, name: str) -> float:
    """Return the best ``alpha`` for the fraction of the clients."""
    return suggested_alpha(objective, method.fraction or 1.0, method._size(objective))


@dataclass(frozen=True, kw_only=True)
class FedDyn(Algorithm):
    r"""A regulariser that changes from round to round and bends the clients' minima to the common one.

    .. math::
        \theta_j &\approx \arg\min f_j - \langle g_j, \cdot\rangle + \tfrac\alpha2 |\cdot - \theta|^2, \quad
        g_j^+ = g_j - \alpha(\theta_j - \theta) && j \text{ active} \\
        h^+ &= h - \tfrac\alpha N \textstyle\sum_{\text{active}} (\theta_j - \theta), \quad
        \theta^+ = \tfrac1P \textstyle\sum_{\text{active}} \theta_j - h^+/\alpha

    Start: :math:`g_j = 0`, ``theta0``; local solvers start from the server's model, as in the authors' code.

    The authors' code has :math:`\alpha/w_j` for unbalanced data, :math:`w_j = N n_j/\sum n`, and averages plainly: that
    is this method on ``reweighted(f, [1/w for w in weights])``, the clients :math:`w_jf_j` with equal weights.

    With one active client the method is Point-SAGA, with all of them Douglas-Rachford splitting. For strongly convex
    clients, exact local solutions and uniform cohorts of :math:`P = pN` clients (``theory/frontier``), with
    :math:`\gamma = 1/\alpha`, the mean :math:`x` of the active models and :math:`m = L\mu/(L + \mu)`,

    .. math::
        L\mu\gamma^2 + 2(1 - p)m\gamma &\le p \quad\Rightarrow\quad
        \mathbb E\,\Psi^+ \le \Psi/(1 + 2\gamma m), \\
        \Psi &= |x - \theta^*|^2 + C\,\tfrac1N\textstyle\sum_j |g_j - \nabla f_j(\theta^*)|^2

    (Theorem A): with the smallest such :math:`\alpha` about :math:`\frac12\sqrt{\kappa N/P} + \frac N{2P}` rounds per
    factor e, where Theorem 3 has :math:`\kappa`. With all clients, for every :math:`\alpha`, the squared distances of
    the :math:`\theta + g_j/\alpha` fall by :math:`(\frac{1 + \delta}2)^2`, :math:`\delta = \max\bigl(\frac{\alpha -
    \mu}{\alpha + \mu}, \frac{L - \alpha}{L + \alpha}\bigr)` (Theorem B). Without smoothness :math:`\alpha` has to grow:
    :class:`dualopt.methods.GrowingFedDyn`.

    **Weights of the clients** (Theorem A'). With :math:`\omega_j = w_j/\sum_iw_i` and cohorts of fixed size that hold
    client j with probability :math:`\pi_j`, the server takes

    .. math::
        x^+ = \textstyle\sum_{\text{active}} \frac{\omega_j}{\pi_j}\theta_j, \quad
        h^+ = h - \alpha\textstyle\sum_{\text{active}} \omega_j(\theta_j - \theta), \quad
        \theta^+ = x^+ - h^+ / \alpha,

    two means of one upload, ``draw`` and ``mean``. If :math:`\pi_j = \min(1, Kw_j)`, as
    :class:`dualopt.methods.participation.WeightedSubset` draws (``--participation importance=P``), and
    :math:`L_j\mu_j\gamma^2 + 2(1 - \pi_j)m_j\gamma \le \pi_j` for all clients, a Lyapunov function falls by
    :math:`\max_j1/(1 + 2\gamma m_j)` per round in the mean. Under other cohorts it may grow: with the weights .97 and
    .03 and one of two clients, drawn uniformly, by 1.039 a round on quadratics where 0.849 would be promised
    (docs/weights.md).

    One :math:`\alpha` for each client is the same on other clients: with :func:`dualopt.objectives.reweighted` and
    :math:`s_j` in the ratios of the :math:`\alpha_j`, local problems and memories have :math:`\alpha s_j` for the
    :math:`f_j`. Where curvatures spread over a factor S, and the :math:`\kappa_j` do not, the best scales are as the
    curvatures to the power 2/3, and take about :math:`S^{1/3}` times the rounds of equal clients, at most; one
    :math:`\alpha` takes :math:`S^{1/2}` times as many.

    With a compressor C the server receives :math:`\theta + C_j(\theta_j - \theta)` for :math:`\theta_j`, and both ends
    take :math:`\alpha/(1 + \omega)` for :math:`\alpha` in the memories. If every coordinate comes from c of the N
    clients, all of them active, that is Theorem A with p = c/N (Theorem D, ``theory/frontier/compressed.py``).

    Parameters
    ----------
    alpha : float, optional
        Weight of the proximal term; suggested: the best one of Theorem A, which is
        :math:`\sqrt{L\mu}` if all clients take part; ``mu`` when the clients are not smooth,
        :math:`8L/(\sqrt5-1)` when they are not strongly convex. Clients that are alike (rows dealt out at random)
        reach the solution in fewer rounds with :math:`\sqrt{L\mu}`, the lighter weight, whoever takes part.
        Theorems 2 and 3 ask for :math:`\alpha \ge 25L` (convex) and :math:`\alpha \ge \max(5\mu N/P, 30L)` (strongly
        convex), Theorem 4 for :math:`20LN/P` (nonconvex).
    fraction : float, optional
        The expected fraction ``P/N`` of active clients, which the suggestion of ``alpha`` uses and nothing else, as if
        cohorts were of one size; in a run that of its participation, else 1. A compressor leaves the part
        :math:`1/(1 + \omega)` of it: c/N of cohorts of coordinates.
    solver, stop
        As in :class:`dualopt.methods.Algorithm`.

    Raises
    ------
    ValueError
        If a parameter is out of range; from ``check`` if the local problems have no unique solution.

    Examples
    --------
    >>> FedDyn(alpha=0.1).alpha
    0.1
    """

    supports: ClassVar[frozenset[str]] = frozenset({"partial", "unequal"})
    upload_reference: ClassVar[str] = "message"
    theorems = OF_FEDDYN
    draws: ClassVar[bool] = True

    alpha: Annotated[ProximalWeight, Suggested(best_alpha)] = AUTO
    fraction: Fraction | None = None

    def _size(self, objective: Objective) -> int:
        """Return the number P of active clients."""
        return max(1, round((self.fraction or 1.0) * objective.n_clients))

    def suggested_scales(self, objective: Objective) -> tuple[float, ...]:
        """Return the smallest ``alpha_j`` that Theorem A' admits, all at once; for everybody the common rule."""
        if self._size(objective) == objective.n_clients or not smooth_and_strongly_convex(objective):
            return super().suggested_scales(objective)
        return best_weights(constants(objective), self._size(objective), objective.weights)

    def init(self, theta0: Array, copies: Array) -> tuple[Server, Array, Client]:
        """No gradients are remembered."""
        zero, zeros = zeros_like(theta0), zeros_like(copies)
        return Server(theta0, zero), theta0, Client(zeros)

    def local(self, c: Client, message: Array, oracle: Oracle, round: Round) -> tuple[Client, Array]:
        """Solve the regularised problem (1) and follow its gradient by (2)."""
        theta = oracle.solve(start=message, linear=-c.gradient, weight=self.alpha, center=message).theta
        theta = oracle.sent(theta, unbiased=True)
        return Client(c.gradient - self._memory(round) * (theta - message)), theta

    def server(self, server: Server, means: Means, round: Round) -> tuple[Server, Array]:
        """Correct the average of the active models by the memory of all gradients."""
        x, moved = means.draw, means.mean - server.theta
        h = server.h - self._memory(round) * round.fraction * moved
        theta = x - h / self.alpha
        return Server(theta, h), theta

    def _memory(self, round: Round) -> float:
        """Return the weight with which memories follow what is received: ``alpha``, damped by a compressor."""
        return self.alpha * round.kept

    def fixed_point(self, objective: Objective, theta: Array) -> Any:
        """At the minimiser the memories hold the gradients, whose mean is zero."""
        return self.start_with(theta, gradient=objective.gradient(theta))
