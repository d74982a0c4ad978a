"""FedCM: federated averaging with client-level momentum (Xu et al. 2021; recalled)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, NamedTuple

from dualopt.arrays._checks import Fraction, Positive
from dualopt.arrays.xp import Array, array_namespace
from dualopt.methods._base import AUTO, Algorithm
from dualopt.methods._parameters import StepCount, one_step, require_plain_steps, step_of
from dualopt.methods.oracle import Oracle
from dualopt.methods.participation import Round
from dualopt.objectives import Objective
from dualopt.objectives.local_problem import per_client
from dualopt.solvers import SGD, Gradient
from dualopt.solvers.stopping import Steps

__all__ = ["FedCM"]


class Server(NamedTuple):
    """State of the server, which is also what it sends."""

    theta: Array  # x
    momentum: Array  # Delta, the direction of the last round


@dataclass(frozen=True, kw_only=True)
class FedCM(Algorithm):
    r"""Gradient steps mixed with the direction in which the server moved last.

    .. math::
        y_j &\leftarrow y_j - s\,\bigl(\alpha \nabla f_j(y_j) + (1 - \alpha)\,\Delta\bigr), \quad
        K \text{ times from } \theta && j \text{ active} \\
        \Delta^+ &= \tfrac1P \textstyle\sum_{\text{active}} (\theta - y_j) / (K s), \qquad
        \theta^+ = \theta - s_g\,\Delta^+

    :math:`\Delta` is an exponential average of the clients' mean gradients along their paths. Two vectors travel down
    and one up. Clients keep nothing, so any may take part. With ``alpha=1`` and :math:`s_g = K s` it is FedAvg, and
    with more than one step its fixed points are biased for every ``alpha``: there :math:`\Delta = 0`, but the mean of
    the local paths is zero elsewhere than the gradient of ``E``. No theorem of this package covers it. Start: no
    momentum. The paper was not at hand.

    Parameters
    ----------
    alpha : float, default 0.1
        Weight of the gradient in (0, 1]; the default is the value tuned in Table 3 of the A-FedPD paper.
    server_step : float, optional
        :math:`s_g`; ``K s`` when not given, with which the new model is the mean of the active clients'.
    solver : Gradient or SGD, optional
        The steps ``s``; suggested: ``Gradient(step=1/(alpha K max L))``, which makes a round a step of the heavy ball
        method with ``1/L`` and momentum ``1 - alpha``.
    stop : Steps
        The number ``K`` of steps, 10 when not given; ``SGD`` with ``epochs`` counts its own.

    Raises
    ------
    ValueError
        If a parameter is out of range or of another kind; if ``server_step`` is open and epochs are counted.

    Examples
    --------
    >>> FedCM(alpha=0.5).stop
    Steps(steps=10)
    """

    supports: ClassVar[frozenset[str]] = frozenset({"partial"})
    without_theorem = "the limit is biased when the clients differ"

    alpha: Fraction = 0.1
    server_step: Positive | None = None
    solver: Annotated[
        Gradient | SGD, require_plain_steps, one_step(lambda method: 1.0 / (method.alpha * method.stop.steps))
    ] = AUTO
    stop: StepCount = Steps(steps=10)

    def __post_init__(self) -> None:
        if self.server_step is None and isinstance(self.solver, SGD) and self.solver.epochs is not None:
            raise ValueError("server_step must be given when the solver counts epochs.")

    def init(self, theta0: Array, copies: Array) -> tuple[Server, Server, tuple[()]]:
        """No momentum."""
        server = Server(theta0, array_namespace(theta0).zeros_like(theta0))
        return server, server, ()

    def local(self, c: Any, message: Server, oracle: Oracle, round: Round) -> tuple[Any, Array]:
        """Step along the mixture, alpha times ``grad f_j + (1/alpha - 1) Delta``, and upload the mean direction."""
        solution = oracle.solve(
            start=message.theta,
            linear=(1.0 / self.alpha - 1.0) * message.momentum,
            solver=replace(self.solver, step=self.alpha * step_of(self.solver)),
        )
        moved = message.theta - solution.theta
        return c, moved / per_client(solution.length / self.alpha, moved)

    def server(self, server: Server, mean: Array, round: Round) -> tuple[Server, Server]:
        """Move along the mean direction and hand it on."""
        step = self.stop.steps * step_of(self.solver) if self.server_step is None else self.server_step
        server = Server(server.theta - step * mean, mean)
        return server, server

    def fixed_point(self, objective: Objective, theta: Array) -> None:
        """Return None: biased."""
