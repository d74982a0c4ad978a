"""OptimizedDualFL that forgets its momentum when this leads uphill (gradient restart)."""

from __future__ import annotations

from dataclasses import dataclass

from dualopt.methods._restarts import GradientRestart, Upload, leads_uphill
from dualopt.methods.optimized_dualfl import Message, OptimizedDualFL, Server, coefficients
from dualopt.methods.participation import Round

__all__ = ["RestartedOptimizedDualFL"]


@dataclass(frozen=True, kw_only=True)
class RestartedOptimizedDualFL(GradientRestart, OptimizedDualFL):
    r"""OptimizedDualFL with ``rho = 0`` and the gradient restart.

    As soon as the momentum leads uphill on the dual problem, as in :class:`dualopt.methods.RestartedDualFL`, the server
    sends :math:`b = c = 0` and goes on from :math:`A = 0`. One scalar more travels up; L is not used. Nothing is proved
    of it; on the smooth clients of docs/no_tuning.md no method that does not know L needs fewer rounds. There is no gap
    restart, because its proof needs models that are averaged with the weights of DualFL.

    Parameters
    ----------
    nu, solver, stop
        As in :class:`dualopt.methods.RestartedDualFL`.

    Raises
    ------
    ValueError
        If ``nu`` is not positive; from ``check`` if it exceeds ``mu``.

    Examples
    --------
    >>> RestartedOptimizedDualFL(nu=0.5).rho
    0.0
    """

    def server(self, server: Server, mean: Upload, round: Round) -> tuple[Server, Message]:
        """Average, and begin anew where the momentum leads uphill."""
        again = leads_uphill(mean.slope, mean.theta, server.theta)
        A, b, c = (0.0, 0.0, 0.0) if again else coefficients(server.A, self.rho)
        return Server(mean.theta, A), Message(mean.theta, b, c)
