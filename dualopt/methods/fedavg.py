"""FedAvg: federated averaging (McMahan et al. 2017)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

from dualopt.arrays.xp import Array
from dualopt.methods._base import AUTO, Algorithm
from dualopt.methods._parameters import OWN_STEPS
from dualopt.methods.oracle import Oracle
from dualopt.methods.participation import Round
from dualopt.objectives import Objective
from dualopt.solvers import LocalSolver
from dualopt.solvers.stopping import Steps, Stop

__all__ = ["FedAvg"]


class Server(NamedTuple):
    """State of the server."""

    theta: Array  # the global model


@dataclass(frozen=True, kw_only=True)
class FedAvg(Algorithm):
    r"""Some steps on the own loss, then an average.

    .. math:: \theta_j = \text{solver}(f_j;\ \theta), \quad j \text{ active}, \qquad
              \theta^+ = \tfrac1P \textstyle\sum_{\text{active}} \theta_j

    With more than one local step its fixed points are not the minimisers of ``E`` unless the clients agree.

    Parameters
    ----------
    solver : LocalSolver, optional
        ``Gradient`` (local GD, suggested), ``SGD``, or any other.
    stop : Stop
        When a client stops; 10 steps when not given.

    Examples
    --------
    >>> FedAvg(stop=Steps(steps=5)).stop
    Steps(steps=5)
    """

    supports: ClassVar[frozenset[str]] = frozenset({"partial"})
    upload_reference: ClassVar[str] = "message"
    without_theorem = "the limit is biased when the clients differ"

    solver: Annotated[LocalSolver, OWN_STEPS] = AUTO
    stop: Stop = Steps(steps=10)

    def init(self, theta0: Array, copies: Array) -> tuple[Server, Array, tuple[()]]:
        """Nothing but the model."""
        return Server(theta0), theta0, ()

    def local(self, c: Any, message: Array, oracle: Oracle, round: Round) -> tuple[Any, Array]:
        """Work on the own loss from the server's model."""
        return c, oracle.solve(start=message).theta

    def server(self, server: Server, mean: Array, round: Round) -> tuple[Server, Array]:
        """Average the active models."""
        return Server(mean), mean

    def fixed_point(self, objective: Objective, theta: Array) -> None:
        """Return None: biased."""
