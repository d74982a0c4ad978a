"""FedSpeed: partially participating FedPD with sharpness-aware steps (Sun et al. 2023; recalled)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from dualopt.arrays._checks import NonNegative, Positive
from dualopt.arrays.xp import Array
from dualopt.methods._base import AUTO
from dualopt.methods._parameters import Suggested, always, plain_steps, require_plain_steps
from dualopt.methods._sharpness import Sharp
from dualopt.methods.fedadmm import Client, FedADMM, Server
from dualopt.methods.oracle import Oracle
from dualopt.methods.participation import Round
from dualopt.objectives import Objective
from dualopt.solvers import LocalSolver, default_solver

__all__ = ["FedSpeed"]


def sharp_steps(method: Any, objective: Objective, name: str) -> LocalSolver:
    """Return plain gradient steps, or the usual solver for radius 0."""
    return plain_steps(objective, method.rho) if method.radius > 0 else default_solver(objective)


@dataclass(frozen=True, kw_only=True)
class FedSpeed(Sharp, FedADMM):
    r"""Sharpness-aware steps on the augmented Lagrangian, and the mean of the active augmented models.

    .. math::
        \theta_j^+ &\approx \arg\min f_j + \langle\lambda_j, \cdot\rangle + \tfrac\rho2|\cdot - \theta|^2, \quad
        \lambda_j^+ = \lambda_j + \rho(\theta_j^+ - \theta) && j \text{ active} \\
        \theta^+ &= \theta + \eta_s \bigl(\tfrac1P \textstyle\sum_{\text{active}} (\theta_j^+ + \lambda_j^+/\rho)
        - \theta\bigr)

    The gradient of the loss is taken at :math:`\theta_j + r\, g/(|g| + \epsilon)`, :math:`g = \nabla f_j(\theta_j)`,
    on the same rows. Only solvers that take plain steps suit: ``Gradient`` or ``SGD``, a number of steps. Starts as
    FedADMM. The paper was not at hand: the step is as the A-FedPD paper describes it, what is sent and averaged as in
    two implementations by others. The authors' own code takes the mean of all duals in place of the active ones, and
    does not drift where clients are missing: :class:`dualopt.methods.FedDynSAM`.

    Parameters
    ----------
    rho, solver, stop
        As in :class:`dualopt.methods.FedADMM`; ``stop`` is a number of steps, 10 when not given.
    server_step : float, optional
        :math:`\eta_s`; 1 when not given.
    radius : float, default 0.1
        ``r``; with 0 it is FedPD on the active clients, which is how the A-FedPD paper writes FedADMM (Section 3.2):
        the server forgets the others, and as the active duals have no mean of zero the model never settles.
    epsilon : float, default 1e-2
        Keeps the neighbour defined where the gradient vanishes.

    Raises
    ------
    ValueError
        If a parameter is out of range, or the solver takes other steps.

    Examples
    --------
    >>> FedSpeed(rho=0.1).radius
    0.1
    """

    supports: ClassVar[frozenset[str]] = frozenset({"partial"})
    upload_reference: ClassVar[str] = "memory"

    server_step: Annotated[Positive, always(1.0)] = AUTO
    solver: Annotated[LocalSolver, Suggested(sharp_steps)] = AUTO
    radius: NonNegative = 0.1

    def __post_init__(self) -> None:
        if self.radius > 0:
            require_plain_steps(self.solver)

    def local(self, c: Client, message: Array, oracle: Oracle, round: Round) -> tuple[Client, Array]:
        """Do what FedADMM does; upload the augmented model, not its change."""
        c, _ = super().local(c, message, oracle, round)
        return c, c.theta + c.dual / self.rho

    def server(self, server: Server, mean: Array, round: Round) -> tuple[Server, Array]:
        """Move towards the mean of the active augmented models."""
        theta = server.theta + self.server_step * (mean - server.theta)
        return Server(theta), theta
