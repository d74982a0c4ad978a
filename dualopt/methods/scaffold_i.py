"""SCAFFOLD with option I for the controls: the gradients at the server's model."""

from __future__ import annotations

from dataclasses import dataclass

from dualopt.methods.oracle import Oracle
from dualopt.methods.participation import Round
from dualopt.methods.scaffold import Client, Scaffold, Server, Upload

__all__ = ["ScaffoldI"]


@dataclass(frozen=True, kw_only=True)
class ScaffoldI(Scaffold):
    r"""SCAFFOLD with :math:`c_j^+ = \nabla f_j(\theta)`, which costs a full gradient more in every round.

    Parameters and start are those of :class:`dualopt.methods.Scaffold`.

    Examples
    --------
    >>> ScaffoldI(server_step=0.5).server_step
    0.5
    """

    def local(self, c: Client, message: Server, oracle: Oracle, round: Round) -> tuple[Client, Upload]:
        """Take the controlled steps; the new control is the gradient at the model that was sent."""
        control = oracle.evaluate(message.theta).grad_f
        moved = oracle.solve(start=message.theta, linear=message.control - c.control).theta - message.theta
        return Client(control), Upload(moved, control - c.control)
