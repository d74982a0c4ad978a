"""Cases: a method, P active clients of N, and a start."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from dualopt.algorithms import AFedPD
from dualopt.engine import State, initial_state
from dualopt.objectives import NonconvexPenalty, Quadratic
from dualopt.participation import Round, UniformSubset
from dualopt.solvers import Exact, NewtonCG
from dualopt.stopping import GradientNorm
from dualopt.xp import Array
from theory._problems import Instance

__all__ = ["Federation", "federation", "largest_constant"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Federation:
    """A-FedPD, or a mutation of it, with ``active`` of N clients, every subset equally likely.

    Attributes
    ----------
    name : str
        For tables.
    algorithm : AFedPD
        The method.
    objective : Objective
        The clients.
    theta : array, shape ``shape``
        A minimiser of ``E``; with a nonconvex penalty, of ``E`` without it.
    lowest : float
        ``min E``, or a number below it.
    theta0 : array, shape ``shape``
        The start.
    active : int
        Number ``P`` of active clients.
    rounds : int
        How many rounds to look at.
    """

    name: str
    algorithm: Any
    objective: Any
    theta: Array
    lowest: float
    theta0: Array
    active: int
    rounds: int

    @property
    def n_clients(self) -> int:
        """Number ``N`` of clients."""
        return self.objective.n_clients

    @property
    def rho(self) -> float:
        """Weight of the proximal term."""
        return self.algorithm.rho

    @property
    def L(self) -> float:
        """Largest smoothness constant."""
        return largest_constant(self.objective)

    def start(self) -> State:
        """Return the state before the first round."""
        return initial_state(self.algorithm, self.objective, self.theta0)

    def schedule(self) -> list[Round]:
        """Return the rounds of one sampled path."""
        return list(islice(UniformSubset(size=self.active).rounds(self.n_clients, seed=0), self.rounds))


def federation(
    f: Instance, *, rho: float, active: int, rounds: int, theta0: Array | None = None, note: str = ""
) -> Federation:
    """Return A-FedPD with local solutions that are exact up to rounding.

    Examples
    --------
    >>> from theory._problems import quadratic
    >>> federation(quadratic(), rho=100.0, active=2, rounds=5).name
    'quadratics (N=3, kappa=50), 2 of 3 active, rho = 100'
    """
    solver = Exact() if isinstance(f.objective, Quadratic) else NewtonCG()
    convex = f.objective.objective if isinstance(f.objective, NonconvexPenalty) else f.objective
    return Federation(
        name=f"{f.name}, {active} of {f.objective.n_clients} active, rho = {rho:.4g}" + (f", {note}" if note else ""),
        algorithm=AFedPD(rho=rho, solver=solver, stop=GradientNorm(tol=1e-12)),
        objective=f.objective,
        theta=f.theta,
        lowest=float(np.mean(convex.value(f.theta))),
        theta0=f.theta + 1.0 if theta0 is None else theta0,
        active=active,
        rounds=rounds,
    )


def largest_constant(objective: Any) -> float:
    """Return the largest of the clients' smoothness constants."""
    return float(np.max(objective.L))
