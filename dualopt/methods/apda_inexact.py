"""APDA-Inexact: an accelerated primal-dual method with inexact proximal maps (a reconstruction)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Annotated, Any, NamedTuple, Self

from dualopt.arrays._checks import Positive
from dualopt.arrays.xp import Array, zeros_like
from dualopt.methods._base import AUTO, Algorithm
from dualopt.methods._parameters import OWN_STEPS, largest, require_local_gradients, smallest
from dualopt.methods.oracle import Oracle
from dualopt.methods.participation import Round
from dualopt.objectives import Objective
from dualopt.solvers import LocalSolver
from dualopt.solvers.stopping import Steps, Stop

__all__ = ["APDAInexact"]


class Server(NamedTuple):
    """State of the server."""

    theta: Array  # the mean of x_j - beta_y grad f_j(x_j)


class Client(NamedTuple):
    """States of the clients."""

    theta: Array  # x_j
    sent: Array  # x_j - beta_y grad f_j(x_j)
    dual: Array  # y_j
    previous: Array  # y_j one round earlier


@dataclass(frozen=True, kw_only=True)
class APDAInexact(Algorithm):
    r"""Chambolle-Pock steps for consensus with a dual step that also looks at the gradients (a reconstruction).

    .. math::
        \bar y_j &= y_j + \vartheta(y_j - y_j^-) \\
        x_j^+ &\approx \arg\min f_j + \langle\bar y_j, \cdot\rangle + \tfrac1{2\eta_x}|\cdot - x_j|^2
        \ \text{from } x_j \\
        y^+ &= \text{projection of } y + \eta_y x^+ - \eta_y\beta_y\,(y + \nabla f(x^+))
        \text{ onto } \textstyle\sum_j y_j = 0

    The projection subtracts the mean. So clients upload :math:`w_j = x_j^+ - \beta_y\nabla f_j(x_j^+)`, receive the
    mean :math:`\bar w`, which is the model, and set :math:`y_j^+ = (1 - \eta_y\beta_y)y_j + \eta_y(w_j - \bar w)`: one
    vector in each direction. At the minimiser :math:`y_j = -\nabla f_j(\theta^*)`. Start: no duals, every client at
    ``theta0``.

    This is a reconstruction from the list of parameters in Table 2 of the DualFL paper, not the box of Sadiev, Kovalev
    and Richtarik (2022), which was not at hand: neither their theorem nor their numbers of local steps are claimed for
    it. It needs smooth, strongly convex clients, and in experiments a number of rounds of order :math:`\sqrt\kappa`.

    Parameters
    ----------
    eta_x : float, optional
        Primal step; suggested: :math:`1/(4\sqrt{L\mu})`, which balances the factors :math:`2/(2 + \mu\eta_x)` and
        :math:`1 - \beta_y\eta_y`.
    eta_y : float, optional
        Dual step; suggested: :math:`1/(32\eta_x)`, as in Table 2.
    beta_y : float, optional
        Weight of the gradients in the dual step; suggested: ``1/L``.
    theta : float, optional
        :math:`\vartheta`; suggested: :math:`\max(2/(2 + \mu\eta_x), 1 - \beta_y\eta_y)`, as in Table 2.
    solver : LocalSolver, optional
        Local solver; suggested: ``Gradient()`` with the step ``1/L`` of the local problem.
    stop : Stop
        When a client stops; 10 steps when not given.

    Raises
    ------
    ValueError
        If a parameter is not positive, or the solver does not know the local gradient where it ends; from
        ``suggested`` if the clients are not smooth and strongly convex.

    Examples
    --------
    >>> APDAInexact(eta_x=0.1).stop
    Steps(steps=10)
    """

    without_theorem = "this is a reconstruction, without a theorem"

    eta_x: Positive = AUTO
    eta_y: Positive = AUTO
    beta_y: Positive = AUTO
    theta: Positive = AUTO
    solver: Annotated[LocalSolver, require_local_gradients, OWN_STEPS] = AUTO
    stop: Stop = Steps(steps=10)

    def suggested(self, objective: Objective) -> Self:
        """Fill in the parameters by the formulas of Table 2, from the two that it tunes."""
        mu, L = smallest(objective.mu), largest(objective.L)
        if not (mu > 0 and math.isfinite(L)):
            raise ValueError("objective must be smooth and strongly convex, as nothing is suggested for another.")
        eta_x = 0.25 / math.sqrt(L * mu) if self.eta_x is None else self.eta_x
        eta_y = 1.0 / (32.0 * eta_x) if self.eta_y is None else self.eta_y
        beta_y = 1.0 / L if self.beta_y is None else self.beta_y
        theta = max(2.0 / (2.0 + mu * eta_x), 1.0 - beta_y * eta_y) if self.theta is None else self.theta
        return replace(super().suggested(objective), eta_x=eta_x, eta_y=eta_y, beta_y=beta_y, theta=theta)

    def init(self, theta0: Array, copies: Array) -> tuple[Server, Array, Client]:
        """No duals; every client at ``theta0``."""
        zeros = zeros_like(copies)
        return Server(theta0), theta0, Client(copies, copies, zeros, zeros)

    def local(self, c: Client, message: Array, oracle: Oracle, round: Round) -> tuple[Client, Array]:
        """Take the primal step at the extrapolated dual."""
        dual = c.dual + self.theta * (c.dual - c.previous)
        solution = oracle.solve(start=c.theta, linear=dual, weight=1.0 / self.eta_x, center=c.theta)
        # the next round starts at this point and pays for its gradient there
        sent = oracle.sent(solution.theta - self.beta_y * solution.evaluation.grad_f, since=c.sent)
        return c._replace(theta=solution.theta, sent=sent), sent

    def server(self, server: Server, mean: Array, round: Round) -> tuple[Server, Array]:
        """Average."""
        return Server(mean), mean

    def receive(self, c: Client, message: Array) -> Client:
        """Take the dual step; subtracting the mean is the projection."""
        dual = (1.0 - self.eta_y * self.beta_y) * c.dual + self.eta_y * (c.sent - message)
        return c._replace(dual=dual, previous=c.dual)

    def fixed_point(self, objective: Objective, theta: Array) -> Any:
        """At the minimiser ``y_j = -grad f_j(theta*)``."""
        dual = -objective.gradient(theta)
        return self.start_with(theta, sent=theta + self.beta_y * dual, dual=dual, previous=dual)
