"""SCAFFOLD: federated averaging with control variates (Karimireddy et al. 2020, Algorithm 1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

from dualopt.arrays._checks import Positive
from dualopt.arrays.xp import Array, zeros_like
from dualopt.methods._base import AUTO, Algorithm
from dualopt.methods._parameters import StepCount, Suggested, common_step, require_plain_steps
from dualopt.methods.oracle import Oracle
from dualopt.methods.participation import Round
from dualopt.objectives import Objective
from dualopt.objectives.local_problem import per_client
from dualopt.solvers import SGD, Gradient
from dualopt.solvers.stopping import Steps

__all__ = ["Scaffold"]


class Server(NamedTuple):
    """State of the server, which is also what it sends."""

    theta: Array  # x
    control: Array  # c, the mean of all c_i


class Client(NamedTuple):
    """States of the clients."""

    control: Array  # c_i


class Upload(NamedTuple):
    """What an active client sends."""

    theta: Array  # y_i - x
    control: Array  # c_i^+ - c_i


def third_of_a_step(method: Any, objective: Objective, name: str) -> Gradient | SGD:
    """Return ``K`` steps that together are a third of the step of gradient descent: whoever takes part."""
    return common_step(objective, None, 1.0 / (3.0 * method.stop.steps))


@dataclass(frozen=True, kw_only=True)
class Scaffold(Algorithm):
    r"""Gradient steps that control variates turn from the client's own descent to the common one.

    .. math::
        y_j &\leftarrow y_j - s\,(\nabla f_j(y_j) - c_j + c), \quad K \text{ times from } \theta && j \text{ active} \\
        c_j^+ &= c_j - c + (\theta - y_j)/(K s) \\
        \theta^+ &= \theta + s_g \tfrac1P \textstyle\sum_{\text{active}} (y_j - \theta), \quad
        c^+ = c + \tfrac1N \textstyle\sum_{\text{active}} (c_j^+ - c_j)

    These controls are the paper's option II; option I is :class:`dualopt.methods.ScaffoldI`. Two vectors travel in each
    direction. Start: all controls zero, ``theta0``. On quadratics :math:`K s \le 1/(3L)` was never seen to diverge,
    whoever takes part (theory/baselines); with ``K = P = 1``, which is SAGA, ``1/L`` may.

    Parameters
    ----------
    solver : Gradient or SGD, optional
        The local steps; suggested: ``Gradient(step=1/(3 K max L))``.
    stop : Steps
        The number ``K`` of steps, 10 when not given; ``SGD`` with ``epochs`` counts its own.
    server_step : float, default 1
        :math:`s_g`.

    Raises
    ------
    ValueError
        If ``server_step`` is not positive, or ``stop`` or the solver are of another kind.

    Examples
    --------
    >>> Scaffold(server_step=0.5).stop
    Steps(steps=10)
    """

    supports: ClassVar[frozenset[str]] = frozenset({"partial"})
    upload_reference: ClassVar[str] = "errors"

    solver: Annotated[Gradient | SGD, require_plain_steps, Suggested(third_of_a_step)] = AUTO
    stop: StepCount = Steps(steps=10)
    server_step: Positive = 1.0

    def init(self, theta0: Array, copies: Array) -> tuple[Server, Server, Client]:
        """No controls."""
        zero, zeros = zeros_like(theta0), zeros_like(copies)
        server = Server(theta0, zero)
        return server, server, Client(zeros)

    def local(self, c: Client, message: Server, oracle: Oracle, round: Round) -> tuple[Client, Upload]:
        """Take the controlled steps and renew the control."""
        solution = oracle.solve(start=message.theta, linear=message.control - c.control)
        moved = solution.theta - message.theta
        control = c.control - message.control - moved / per_client(solution.length, moved)
        return Client(control), Upload(moved, control - c.control)

    def server(self, server: Server, mean: Upload, round: Round) -> tuple[Server, Server]:
        """Move the model along the mean of the active clients, the control by their fraction of all."""
        theta = server.theta + self.server_step * mean.theta
        server = Server(theta, server.control + round.fraction * mean.control)
        return server, server

    def fixed_point(self, objective: Objective, theta: Array) -> Any:
        """At the minimiser the controls are the gradients, whose mean is zero."""
        return self.start_with(theta, control=objective.gradient(theta))
