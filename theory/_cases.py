"""The case on which claims are checked: a problem with its solution, a method, and all that is known of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple, Self

import numpy as np

from dualopt.arrays.xp import Array
from dualopt.engine.rounds import Snapshot, State, initial_state, iterate
from dualopt.lab import claims
from dualopt.lab.chance import Event, events_of
from dualopt.methods.participation import Full, Participation, Round, first_round
from dualopt.objectives import Quadratic, reweighted
from dualopt.objectives.local_problem import client_dot, per_client
from dualopt.objectives.scales import own_clients
from dualopt.solvers import Exact, NewtonCG
from dualopt.solvers.stopping import GradientNorm

__all__ = ["Case", "Derived", "accurately", "everybody"]

EPSILON = float(np.finfo(float).eps)


class Derived(NamedTuple):
    """Something known of a case that follows from the rest of it."""

    of: Callable[[Any], Any]  # the case


@dataclass(frozen=True, kw_only=True, eq=False)
class Case(claims.Case):
    r"""A method, or a mutation of it, on a problem with a known solution; or the problem, for whatever method.

    Only the name and the clients are needed; a claim needs what it looks at. The method's parameters, and what a proof
    knows of its runs besides, are attributes too, so that claims read like the paper: ``case.rho``, ``case.gamma``.

    Attributes
    ----------
    name : str
        For tables.
    algorithm : Algorithm, optional
        The method, with no parameter left open.
    objective : Objective
        The clients.
    rounds : int, default 0
        How many rounds to look at.
    theta : array, shape ``shape``
        A minimiser of ``E``; where ``E`` is not convex, of a convex function below it.
    subgradients : array, shape (N, *shape)
        Subgradients of the ``f_j`` at ``theta``; they sum to zero where ``theta`` minimises ``E``.
    lowest : float
        ``min E``, or a number below it.
    theta0 : array, shape ``shape``, optional
        The first model; zero when not given.
    state : State or callable, optional
        A state to start from, in place of the method's own, or a function of the case that makes it.
    participation : Participation
        Who takes part, and whether a round communicates.
    seed : int, default 0
        Seed of the sampled path.
    attained : bool, default False
        Whether a constant is the best possible one on these very clients.
    remember : bool, default False
        Whether the run is computed once and its snapshots kept, which takes their memory.
    silent : bool, default True
        Whether rounds in which nothing is sent count.
    known : mapping of str, optional
        What a proof knows besides, by name; :class:`Derived` is worked out of the case as it is.
    """

    algorithm: Any = None
    objective: Any
    rounds: int = 0
    theta: Array = None
    subgradients: Array = None
    lowest: float = math.nan
    theta0: Array | None = None
    state: State | Callable[[Any], State] | None = None
    participation: Participation = field(default_factory=Full)
    seed: int = 0
    attained: bool = False
    remember: bool = False
    silent: bool = True
    known: Mapping[str, Any] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Any:
        """Return what a proof knows by this name, or else the parameter of the method."""
        if name.startswith("_") or name in Case.__dataclass_fields__:
            raise AttributeError(name)
        if name in self.known:
            found = self.known[name]
            return found.of(self) if isinstance(found, Derived) else found
        if hasattr(self.algorithm, name):
            return getattr(self.algorithm, name)
        raise AttributeError(f"nothing is known of {name} in the case {self.name!r}.")

    @classmethod
    def of(cls, algorithm: Any, objective: Any, *, rounds: int, name: str = "", **more: Any) -> Case:
        """Return the case of a method on clients, its open parameters suggested and the solution found.

        The run is remembered: claims and pictures that look at the case share it.

        Parameters
        ----------
        algorithm : Algorithm
            The method.
        objective : Objective
            The clients.
        rounds : int
            How many rounds to look at.
        name : str
            For tables; the name of the method when not given.
        **more
            Further attributes.

        Examples
        --------
        >>> from dualopt.methods import DualFL
        >>> case = Case.of(DualFL(), Quadratic(A=np.ones((2, 1, 1)), b=np.array([[1.0], [3.0]])), rounds=2)
        >>> case.theta.tolist(), [s.server.theta.tolist() for s in case.snapshots()]
        ([2.0], [[2.0], [2.0]])
        >>> next(case.snapshots()) is next(case.snapshots())
        True
        """
        from theory._problems import solved  # which builds cases

        method = algorithm.suggested(objective)
        problem = solved(name or type(algorithm).__name__, objective)
        lowest = problem.value(problem.theta)
        return problem.case(method, rounds, **{"lowest": lowest, "remember": True, **more})

    def case(self, algorithm: Any, rounds: int, note: str = "", **more: Any) -> Self:
        """Return the case of a method on this problem; ``more`` are further attributes."""
        name = f"{self.name}, {note}" if note else self.name
        return self.but(**{"name": name, "algorithm": algorithm, "rounds": rounds, **more})

    @property
    def n_clients(self) -> int:
        """Number ``N`` of clients."""
        return self.objective.n_clients

    @property
    def mu(self) -> float:
        """Smallest convexity constant; rounding of a zero eigenvalue does not count."""
        mu = float(np.min(self.objective.mu))
        rounding = 1e-12 * self.L if math.isfinite(self.L) else 0.0
        return 0.0 if abs(mu) <= rounding else mu

    @property
    def L(self) -> float:
        """Largest smoothness constant."""
        return float(np.max(self.objective.L))

    @property
    def fraction(self) -> float:
        """The fraction ``P/N`` of the clients that take part in a round, unless a proof knows it otherwise."""
        return self.known["fraction"] if "fraction" in self.known else self.events()[0].round.turnout

    def first(self) -> State:
        """Return the state before the first round."""
        if self.state is not None:
            return self.state(self) if callable(self.state) else self.state
        theta0 = self.objective.zeros() if self.theta0 is None else self.theta0
        return initial_state(self.algorithm, self.objective, theta0)

    def events(self, n: int = 0) -> list[Event]:
        """Return everything that may happen in round ``n``, with its probability."""
        return events_of(self.participation, self.n_clients, n=n, seed=self.seed)

    def schedule(self) -> list[Round]:
        """Return the rounds of the path that ``participation`` and ``seed`` sample."""
        return list(islice(self.participation.rounds(self.n_clients, self.seed), self.rounds))

    @cached_property
    def masses(self) -> Array:
        r"""The :math:`Nw_j/\sum_iw_i` of the clients, which are 1 where all weights are equal, shape (N,)."""
        return self.n_clients * np.array(self.objective.shares or (1.0 / self.n_clients,) * self.n_clients)

    @cached_property
    def own_masses(self) -> Array:
        """Those of the clients of the user, of which snapshots tell, where the clients are reweighted."""
        return self.but(objective=own_clients(self.objective)).masses

    @cached_property
    def plain(self) -> Any:
        r"""The clients :math:`Nw_jf_j/\sum_iw_i`, whose plain mean is E: proofs are written for them."""
        f = own_clients(self.objective)
        return f if f.shares is None else reweighted(f, [1.0 / w for w in f.weights])

    @property
    def plain_subgradients(self) -> Array:
        """The subgradients of these clients, shape (N, *shape)."""
        return per_client(self.masses, self.subgradients) * self.subgradients

    def reweighted(self, scales: Any) -> Self:
        """Return the problem with :func:`dualopt.objectives.reweighted` clients."""
        f = reweighted(self.objective, scales)
        ratios = self.masses / self.but(objective=f).masses
        return self.but(objective=f, subgradients=per_client(ratios, self.subgradients) * self.subgradients)

    def models(self) -> Array:
        """Return the server's model after every round, shape (rounds, *shape)."""
        return np.stack([s.server.theta for s in self.snapshots()])

    def local_models(self) -> Array:
        """Return the clients' models after every round, shape (rounds, N, *shape)."""
        return np.stack([np.asarray(s.local_models) for s in self.snapshots()])

    def snapshots(self) -> Iterator[Snapshot]:
        """Yield the rounds of the sampled path from ``theta0``."""
        return iter(self._remembered) if self.remember else self._computed()

    @cached_property
    def _remembered(self) -> list[Snapshot]:
        return list(self._computed())

    def _computed(self) -> Iterator[Snapshot]:
        run = iterate(
            self.algorithm, self.objective, theta0=self.theta0, participation=self.participation, seed=self.seed
        )
        return islice((s for s in run if self.silent or s.floats_up), self.rounds)

    def value(self, theta: Array) -> float:
        r"""Return :math:`E(\theta)`."""
        return float(self.objective.mean(self.objective.value(theta)))

    def error(self, theta: Array) -> float:
        r"""Return :math:`E(\theta) - E^*`, or its difference from the number below :math:`E^*`."""
        return self.value(theta) - self.lowest

    def distance(self, theta: Array) -> float:
        r"""Return :math:`|\theta - \theta^*|^2`."""
        return float(np.sum((theta - self.theta) ** 2))

    def energy_rounding(self, theta: Array) -> float:
        r"""Return how far :meth:`error` may lie above :math:`E(\theta) - E^*` because of rounding.

        Eight units in the last place of what is added, :math:`|f_j| + |\nabla f_j||\theta| + L_j|\theta|^2`, at both
        points; the last term stands for curvature that cancels in the other two, as in quadratics.
        """
        return 8.0 * EPSILON * (self._terms(theta) + self._terms(self.theta))

    def distance_rounding(self, theta: Array) -> float:
        r"""Return how far :meth:`distance` may lie above :math:`|\theta - \theta^*|^2` because of rounding.

        Both points are known to :math:`\delta = 8\epsilon\kappa(|\theta| + |\theta^*|)`, as solutions of systems of
        condition :math:`\kappa`, the largest L over the mean mu (1 where L is infinite, and no system is solved); a
        distance of ``r`` may then be ``r - delta``, whose square is smaller by at most :math:`2r\delta`.
        """
        kappa = self.L / float(np.mean(self.objective.mu)) if math.isfinite(self.L) else 1.0
        delta = 8.0 * EPSILON * kappa * float(np.linalg.norm(theta) + np.linalg.norm(self.theta))
        return 2.0 * math.sqrt(self.distance(theta)) * delta

    def _terms(self, theta: Array) -> float:
        values, gradients = self.objective.value_and_gradient(theta)
        norm = float(np.linalg.norm(theta))
        slopes = np.sqrt(client_dot(gradients, gradients)) + self.objective.L * norm
        return float(self.objective.mean(np.abs(values) + slopes * norm))

    def squared_gradient(self, theta: Array) -> float:
        r"""Return :math:`|\nabla E(\theta)|^2`."""
        return float(np.sum(self.objective.mean(self.objective.gradient(theta)) ** 2))

    def but(self, **changes: Any) -> Self:
        """Return the case with some attributes changed; those that it has not are added to what is known."""
        own = {name: changes.pop(name) for name in tuple(changes) if name in Case.__dataclass_fields__}
        return replace(self, **own, **({"known": {**self.known, **changes}} if changes else {}))


def everybody(n_clients: int, *, n: int = 0, communicate: bool = True) -> Round:
    """Return a round in which all clients take part.

    Examples
    --------
    >>> everybody(3).clients
    (0, 1, 2)
    """
    return replace(first_round(n_clients), n=n, communicate=communicate)


def accurately(objective: Any, *, tol: float = 1e-12) -> dict[str, Any]:
    """Return solver and stopping rule for local solutions that are exact up to rounding.

    Examples
    --------
    >>> from theory._problems import quadratic
    >>> type(accurately(quadratic().objective)["solver"]).__name__
    'Exact'
    """
    quadratic = isinstance(own_clients(objective), Quadratic)
    return {"solver": Exact() if quadratic else NewtonCG(), "stop": GradientNorm(tol=tol)}
