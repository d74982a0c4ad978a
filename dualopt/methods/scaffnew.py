"""Scaffnew: gradient steps with control variates and rare communication (Mishchenko et al. 2022; recalled)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, NamedTuple, Self

from dualopt.arrays._checks import Fraction
from dualopt.arrays.xp import Array, zeros_like
from dualopt.methods._base import AUTO, Algorithm
from dualopt.methods._parameters import common_step, largest, require_plain_steps, smallest, step_of
from dualopt.methods._primal_dual_theorems import OF_SCAFFNEW
from dualopt.methods.oracle import Oracle
from dualopt.methods.participation import Round
from dualopt.objectives import Objective
from dualopt.solvers import SGD, Gradient
from dualopt.solvers.stopping import Steps, Stop

__all__ = ["Scaffnew"]


class Server(NamedTuple):
    """State of the server."""

    theta: Array  # the model as last averaged


class Client(NamedTuple):
    """States of the clients."""

    theta: Array  # x_j, and xhat_j until the average arrives
    control: Array  # h_j


@dataclass(frozen=True, kw_only=True)
class Scaffnew(Algorithm):
    r"""One controlled gradient step per round, after which a coin decides whether the clients average (ProxSkip).

    .. math::
        \hat x_j &= x_j - s\,(\nabla f_j(x_j) - h_j) \\
        x_j^+ &= \tfrac1N \textstyle\sum_i \hat x_i \text{ with probability } p, \text{ else } \hat x_j, \qquad
        h_j^+ = h_j + \tfrac ps (x_j^+ - \hat x_j)

    Controls change only when there is communication, and their sum stays zero; one vector travels in each direction
    then, and nothing in the other rounds. For ``mu``-strongly convex, ``L``-smooth clients and all :math:`p \in (0, 1]`

    .. math:: \mathbb E\,\Psi^+ \le \max\bigl((1 - s\mu)^2, (1 - sL)^2, 1 - p^2\bigr)\,\Psi, \qquad
              \Psi = \textstyle\sum_j |x_j - \theta^*|^2 + \tfrac{s^2}{p^2} \sum_j |h_j - \nabla f_j(\theta^*)|^2,

    since gradient steps are Lipschitz and averages orthogonal projections; quadratics attain it. For :math:`s \le 1/L`
    it is at most the paper's :math:`1 - \min(s\mu, p^2)`. The best step is :math:`2/(L + \mu)`, and
    :math:`p = 2\sqrt\kappa/(\kappa + 1)` is the least probability at which all three are
    :math:`((\kappa - 1)/(\kappa + 1))^2`: a quarter of the rounds, and half of the communications, that the bound takes
    with the paper's :math:`1/L` and :math:`1/\sqrt\kappa`. The probability stands in the update and in the rule of
    participation, and the theorem needs both to be the same; left open, it is that of the participation. With every
    round communicating it is gradient descent. Start: no controls, every client at ``theta0``. The paper was not at
    hand.

    Parameters
    ----------
    probability : float, optional
        ``p`` in (0, 1]; in a run that of :class:`dualopt.CommunicateWithProbability`, 1 where every round communicates.
        Where no law is known ``suggested`` has the least p that does not slow down its step,
        :math:`p^2 = 1 - \max(|1 - s\mu|, |1 - sL|)^2`.
    solver : Gradient or SGD, optional
        The step ``s``, one for all clients and rounds; suggested: ``Gradient(step=2/(max L + min mu))``, and
        ``1/max L`` for clients that are not strongly convex.

    Raises
    ------
    ValueError
        If ``probability`` is out of range or cannot be suggested, or the solver is of another kind or varies its steps.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt import CommunicateWithProbability, Quadratic, run
    >>> f = Quadratic(A=np.stack([np.eye(2), 4 * np.eye(2)]), b=np.array([[5.0, 0.0], [0.0, 10.0]]))
    >>> rare = CommunicateWithProbability(probability=0.5)
    >>> run(Scaffnew(), f, rounds=200, participation=rare).theta.round(6).tolist()
    [1.0, 2.0]
    >>> best = Scaffnew().suggested(f)
    >>> round(best.probability, 9), best.solver.step
    (0.8, 0.4)
    """

    supports: ClassVar[frozenset[str]] = frozenset({"skip"})
    upload_reference: ClassVar[str] = "message"
    theorems = OF_SCAFFNEW

    probability: Fraction = AUTO
    solver: Annotated[Gradient | SGD, require_plain_steps] = AUTO
    stop: Stop = field(default=Steps(steps=1), init=False)

    def __post_init__(self) -> None:
        if isinstance(self.solver, SGD) and (self.solver.epochs is not None or self.solver.decay != 1):
            raise ValueError("solver must take one step of one length in every round: SGD without epochs and decay.")

    def suggested(self, objective: Objective) -> Self:
        """Fill in the step and the probability that go together."""
        mu, L = smallest(objective.mu), largest(objective.L)
        solver = common_step(objective, self.solver, 2.0 * L / (L + mu) if mu > 0 else 1.0)
        if self.probability is not None:
            return replace(self, solver=solver)
        step = step_of(solver)
        kept = max(abs(1.0 - step * mu), abs(1.0 - step * L))
        if not kept < 1.0:
            raise ValueError(
                "probability must be given: it is suggested for strongly convex clients and steps below 2/L only."
            )
        return replace(self, probability=math.sqrt((1.0 - kept) * (1.0 + kept)), solver=solver)

    def init(self, theta0: Array, copies: Array) -> tuple[Server, Array, Client]:
        """No controls; every client at ``theta0``."""
        return Server(theta0), theta0, Client(copies, zeros_like(copies))

    def local(self, c: Client, message: Array, oracle: Oracle, round: Round) -> tuple[Client, Array]:
        """Take one controlled step from the own model."""
        theta = oracle.sent(oracle.solve(start=c.theta, linear=-c.control).theta)
        return c._replace(theta=theta), theta

    def server(self, server: Server, mean: Array, round: Round) -> tuple[Server, Array]:
        """Average the models."""
        return Server(mean), mean

    def receive(self, c: Client, message: Array) -> Client:
        """Adopt the average and correct the control by what it changed."""
        return Client(message, c.control + self.probability / step_of(self.solver) * (message - c.theta))

    def fixed_point(self, objective: Objective, theta: Array) -> Any:
        """At the minimiser ``h_j = grad f_j(theta*)``, which rounds without communication keep as well."""
        return self.start_with(theta, control=objective.gradient(theta))
