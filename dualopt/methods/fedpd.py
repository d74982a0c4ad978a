"""FedPD: federated primal-dual algorithm (Zhang, Hong, Dhople, Yin, Liu, Algorithm 2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from dualopt.arrays.xp import Array, zeros_like
from dualopt.methods._base import AUTO, Algorithm
from dualopt.methods._parameters import ProximalStep
from dualopt.methods._primal_dual_theorems import OF_FEDPD
from dualopt.methods.oracle import Oracle
from dualopt.methods.participation import Round
from dualopt.objectives import Objective

__all__ = ["FedPD"]


class Server(NamedTuple):
    """State of the server."""

    theta: Array  # x_0^r, as last averaged


class Client(NamedTuple):
    """States of the clients."""

    theta: Array  # x_i^r
    dual: Array  # lambda_i^r
    x0: Array  # x_{0,i}^r, the client's own copy of the global model


@dataclass(frozen=True, kw_only=True)
class FedPD(Algorithm):
    r"""Alternating minimisation of the augmented Lagrangian of consensus, with rounds that may skip communication.

    .. math::
        \theta_j &\approx \arg\min f_j + \langle \lambda_j, \cdot\rangle + \tfrac1{2\eta} |\cdot - x_{0,j}|^2 \\
        \lambda_j^+ &= \lambda_j + (\theta_j - x_{0,j}) / \eta, \quad x_{0,j}^+ = \theta_j + \eta \lambda_j^+ \\
        x_{0,j} &= \tfrac1N \textstyle\sum_i x_{0,i}^+ \text{ if the round communicates, else } x_{0,j}^+

    Start: no duals, every client at ``theta0``; local solvers go on from the client's own ``theta_j``. With
    ``Gradient`` or ``SGD`` as solver this is Oracle I, with ``Sarah`` Oracle II. For nonconvex clients
    :math:`\eta < (\sqrt5 - 1)/(4L)` makes the mean of :math:`|\nabla E|^2` fall like 1/T if every round communicates
    (Theorem 1). If rounds are skipped, a bound needs clients whose gradients differ by a bounded amount, and a term in
    it does not vanish (Theorem 3). For strongly convex smooth clients and every :math:`\eta` the squared distances of
    the points :math:`x_{0,j} - \eta\lambda_j` from their limits fall by :math:`(\frac{1 + \delta}2)^2` per round,
    :math:`\delta = \max\bigl(\frac{1 - \eta\mu}{1 + \eta\mu}, \frac{\eta L - 1}{\eta L + 1}\bigr)`, if every
    round communicates (Theorem B, ``theory/frontier/averaged_reflections.py``).

    Parameters
    ----------
    eta : float, optional
        Inverse weight of the proximal term; suggested: :math:`1/\sqrt{L\mu}`, or half of Theorem 1's limit when the
        clients are not strongly convex.
    solver, stop
        As in :class:`dualopt.methods.Algorithm`.

    Raises
    ------
    ValueError
        If ``eta`` is not positive; from ``check`` if the local problems have no unique solution.

    Examples
    --------
    >>> FedPD(eta=0.1).eta
    0.1
    """

    supports: ClassVar[frozenset[str]] = frozenset({"skip"})
    theorems = OF_FEDPD

    eta: ProximalStep = AUTO

    def init(self, theta0: Array, copies: Array) -> tuple[Server, Array, Client]:
        """No duals; every client at ``theta0``."""
        return Server(theta0), theta0, Client(copies, zeros_like(copies), copies)

    def local(self, c: Client, message: Array, oracle: Oracle, round: Round) -> tuple[Client, Array]:
        """Minimise the augmented Lagrangian, update the dual, and go on from the own copy until a message arrives."""
        theta = oracle.solve(start=c.theta, linear=c.dual, weight=1.0 / self.eta, center=c.x0).theta
        dual = c.dual + (theta - c.x0) / self.eta
        x0 = theta + self.eta * dual
        return Client(theta, dual, x0), x0

    def server(self, server: Server, mean: Array, round: Round) -> tuple[Server, Array]:
        """Average the copies."""
        return Server(mean), mean

    def receive(self, c: Client, message: Array) -> Client:
        """Replace the own copy by the average."""
        return c._replace(x0=message)

    def fixed_point(self, objective: Objective, theta: Array) -> Any:
        """At the minimiser ``dual_j = -grad f_j(theta*)``."""
        return self.start_with(theta, dual=-objective.gradient(theta))
