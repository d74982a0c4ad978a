"""DualFL that forgets its momentum when this leads uphill (gradient restart, O'Donoghue and Candès 2015)."""

from __future__ import annotations

from dataclasses import dataclass

from dualopt.methods._base import AUTO
from dualopt.methods._dual_parameters import EarlyStop
from dualopt.methods._dual_theorems import OF_RESTARTED_DUALFL
from dualopt.methods._restarts import GradientRestart, Upload, leads_uphill
from dualopt.methods.dualfl import DualFL, Message, Server, momentum
from dualopt.methods.participation import Round

__all__ = ["RestartedDualFL"]


@dataclass(frozen=True, kw_only=True)
class RestartedDualFL(GradientRestart, DualFL):
    r"""DualFL with ``rho = 0`` and the gradient restart.

    As soon as the momentum leads uphill on the dual problem, :math:`\sum_j\langle\theta_j - \theta, v_j -
    v_j^{\text{prev}}\rangle > 0`, the server sends :math:`\beta = 0`, with which :math:`\zeta_j^+ = v_j`, and goes on
    from :math:`t = 1`. One scalar more travels up; L is not used. For smooth clients it is linear, by a proof without a
    useful factor (``theory/frontier/restarts.py``); for clients with kinks nothing is proved, and
    :class:`dualopt.methods.DualFL` has the rate of Theorem 3.2. Measured in docs/no_tuning.md.

    Parameters
    ----------
    nu : float, optional
        Duality parameter; suggested: ``min mu``.
    solver : LocalSolver, optional
        As in :class:`dualopt.methods.Algorithm`.
    stop : Stop, optional
        As for :class:`dualopt.methods.DualFL`.

    Raises
    ------
    ValueError
        If ``nu`` is not positive; from ``check`` if it exceeds ``mu``.

    Examples
    --------
    >>> RestartedDualFL(nu=0.5).rho
    0.0
    """

    theorems = OF_RESTARTED_DUALFL

    stop: EarlyStop = AUTO

    def server(self, server: Server, mean: Upload, round: Round) -> tuple[Server, Message]:
        """Average (3.2), and begin anew where the momentum leads uphill."""
        again = leads_uphill(mean.slope, mean.theta, server.theta)
        t, beta = (1.0, 0.0) if again else momentum(server.t, self.rho)
        return Server(mean.theta, t), Message(mean.theta, beta)
