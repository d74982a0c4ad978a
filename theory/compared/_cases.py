"""Cases: a method, a problem, and everything that chance may do in a round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dualopt.xp import Array
from theory._chance import Outcome, subsets
from theory._problems import Instance

__all__ = ["Federation", "federation"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Federation:
    """A method, or a mutation of it, whose rounds have a few equally known outcomes.

    Attributes
    ----------
    name : str
        For tables.
    algorithm : Algorithm
        The method, with no parameter left open.
    objective : Objective
        The clients.
    theta : array, shape ``shape``
        The minimiser of ``E``.
    subgradients : array, shape (N, *shape)
        Gradients of the ``f_j`` there.
    outcomes : sequence of Outcome
        What may happen in a round.
    rounds : int
        How many rounds to look at.
    attained : bool
        Whether a constant is the best possible one on these very clients.
    """

    name: str
    algorithm: Any
    objective: Any
    theta: Array
    subgradients: Array
    outcomes: Sequence[Outcome]
    rounds: int
    attained: bool = False

    @property
    def mu(self) -> float:
        """Smallest strong convexity constant."""
        return float(np.min(self.objective.mu))

    @property
    def L(self) -> float:
        """Largest smoothness constant."""
        return float(np.max(self.objective.L))

    @property
    def fraction(self) -> float:
        """The fraction P/N of active clients."""
        return self.outcomes[0].round.fraction


def federation(
    instance: Instance,
    algorithm: Any,
    *,
    rounds: int,
    active: int | None = None,
    outcomes: Sequence[Outcome] | None = None,
    attained: bool = False,
    note: str = "",
) -> Federation:
    """Put a method on a problem: with ``active`` clients, every subset equally likely, or with other outcomes.

    Examples
    --------
    >>> from dualopt.algorithms import FedAvg
    >>> from theory._problems import quadratic
    >>> case = federation(quadratic(), FedAvg(), active=2, rounds=1)
    >>> case.name, len(case.outcomes), round(case.fraction, 3)
    ('quadratics (N=3, kappa=50), 2 of 3', 3, 0.667)
    """
    N = instance.objective.n_clients
    chosen = "" if active is None else f", {active} of {N}"
    return Federation(
        name=f"{instance.name}{chosen}{note and ', '}{note}",
        algorithm=algorithm.suggested(instance.objective),
        objective=instance.objective,
        theta=instance.theta,
        subgradients=instance.subgradients,
        outcomes=subsets(N, active or N) if outcomes is None else outcomes,
        rounds=rounds,
        attained=attained,
    )
