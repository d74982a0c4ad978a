"""FedDualAvg: federated dual averaging (Yuan, Zaheer, Reddi 2021; recalled)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

from dualopt.arrays._checks import Positive
from dualopt.arrays.xp import Array, array_namespace, broadcast
from dualopt.methods._base import AUTO, Algorithm
from dualopt.methods._parameters import StepCount, TheRegulariser, one_step, require_gradient, step_of
from dualopt.methods.oracle import Oracle
from dualopt.methods.participation import Round
from dualopt.objectives import Objective
from dualopt.regularisers import Zero
from dualopt.solvers import Gradient
from dualopt.solvers.stopping import Steps

__all__ = ["FedDualAvg"]


class Server(NamedTuple):
    """State of the server."""

    theta: Array  # w
    dual: Array  # z
    length: float  # eta_s eta_c r K, all steps so far


class Message(NamedTuple):
    """What the server sends."""

    dual: Array  # z
    length: float  # eta_s eta_c r K


@dataclass(frozen=True, kw_only=True)
class FedDualAvg(Algorithm):
    r"""Gradient steps on dual variables, which are averaged, while models are found by a growing proximal map.

    .. math::
        w_j &= \mathrm{prox}_{\tilde\eta g}(z_j), \quad \tilde\eta = \eta_s \eta_c r K + \eta_c k, \qquad
        z_j \leftarrow z_j - \eta_c \nabla f_j(w_j), \quad k = 0, \dots, K - 1 \text{ from } z && j \text{ active} \\
        z^+ &= z + \eta_s \tfrac1P \textstyle\sum_{\text{active}} (z_j - z), \qquad
        \theta^+ = \mathrm{prox}_{\eta_s \eta_c (r + 1) K g}(z^+)

    Here ``r`` counts the rounds that have communicated. Because averages are taken before the proximal map, they do not
    spoil what it makes, such as zeros. Without a regulariser it is FedAvg with a server step, and like FedAvg it is
    biased when the clients differ and take more than one step; with ``K = 1`` and everybody active it is dual
    averaging, which reaches the minimiser of ``E + g``. No theorem of this package covers it. A vector and a number
    travel down, a vector up. Start: ``z = theta0``. The paper was not at hand; it has stochastic gradients and any
    distance-generating function, of which this is the Euclidean one with full gradients.

    Parameters
    ----------
    regulariser : Regulariser, optional
        ``g``; suggested: that of the objective.
    server_step : float, default 1
        :math:`\eta_s`.
    solver : Gradient, optional
        The step :math:`\eta_c`, one for all clients; suggested: ``Gradient(step=1/max L)``.
    stop : Steps
        The number ``K`` of steps, 10 when not given.

    Raises
    ------
    ValueError
        If ``server_step`` is not positive, or ``solver`` or ``stop`` are of another kind; from ``check`` if the
        regulariser is not the objective's.

    Examples
    --------
    >>> FedDualAvg(server_step=0.5).stop
    Steps(steps=10)
    """

    supports: ClassVar[frozenset[str]] = frozenset({"partial", "regulariser"})
    upload_reference: ClassVar[str] = "errors"
    without_theorem = "the limit is biased when the clients differ"

    regulariser: TheRegulariser = Zero()
    server_step: Positive = 1.0
    solver: Annotated[Gradient, require_gradient, one_step()] = AUTO
    stop: StepCount = Steps(steps=10)

    def init(self, theta0: Array, copies: Array) -> tuple[Server, Message, tuple[()]]:
        """Start with the model as dual variable."""
        return Server(theta0, theta0, 0.0), Message(theta0, 0.0), ()

    def local(self, c: Any, message: Message, oracle: Oracle, round: Round) -> tuple[Any, Array]:
        """Take dual steps and upload the change of the dual variable."""
        xp = array_namespace(message.dual)
        dual = broadcast(message.dual, (round.n_active, *oracle.shape))
        for k in range(self.stop.steps):
            length = message.length + step_of(self.solver) * k
            # one client at a time: a regulariser may look at a whole model
            theta = xp.stack([self.model(dual[j, ...], length) for j in range(round.n_active)])
            dual = dual - step_of(self.solver) * oracle.evaluate(theta).grad_f
        return c, dual - message.dual

    def server(self, server: Server, mean: Array, round: Round) -> tuple[Server, Message]:
        """Average the dual variables and find the model."""
        dual = server.dual + self.server_step * mean
        length = server.length + self.server_step * step_of(self.solver) * self.stop.steps
        return Server(self.model(dual, length), dual, length), Message(dual, length)

    def model(self, dual: Array, length: float) -> Array:
        """Return the proximal map of ``length`` times the regulariser."""
        return self.regulariser.prox(dual, length)

    def fixed_point(self, objective: Objective, theta: Array) -> None:
        """Return None: biased."""
