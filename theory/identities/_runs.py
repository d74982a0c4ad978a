"""Several methods on one problem: their models must agree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Self

import numpy as np

from dualopt.arrays.xp import Array
from dualopt.engine.rounds import Snapshot, iterate
from dualopt.lab.claims import Inequality
from dualopt.methods.participation import Full, Participation
from theory._cases import Case
from theory._claims import deviation

__all__ = ["EXACT", "NEWTON", "ROUNDS", "Runs", "SharedRuns", "agree", "runs", "starting_point"]

EXACT = 1e-12  # local solutions in closed form: what rounding may do to models
NEWTON = 1e-9  # local solutions to gradients of 1e-12, where curvature is 0.05 or more
ROUNDS = 30


@dataclass(frozen=True, kw_only=True, eq=False)
class Runs:
    """Several methods with one start and the same clients in every round.

    Attributes
    ----------
    name : str
        For tables.
    objective : Objective
        The clients.
    methods : dict of str to Algorithm
        The first one is compared with the others.
    theta0 : array, shape ``shape``
        Where all of them start.
    participation : Participation
        Who takes part; everybody when not given.
    rounds : int
        How many rounds to look at.
    tolerance : float
        Largest relative deviation that is rounding.
    """

    name: str
    objective: Any
    methods: Mapping[str, Any]
    theta0: Array
    participation: Participation = field(default_factory=Full)
    rounds: int = ROUNDS
    tolerance: float = EXACT

    def snapshots(self, name: str) -> Iterator[Snapshot]:
        """Yield the rounds of one of the methods."""
        run = iterate(self.methods[name], self.objective, theta0=self.theta0, participation=self.participation)
        return islice(run, self.rounds)


@dataclass(frozen=True, kw_only=True, eq=False)
class SharedRuns(Runs):
    """Runs that are those of cases, which remember them: a claim and a picture look at the same ones."""

    cases: Mapping[str, Case]

    @classmethod
    def of(cls, cases: Mapping[str, Case]) -> Self:
        """Return the runs of cases with the same clients, start and participation.

        Examples
        --------
        >>> from dualopt.methods import FedADMM, FedDR
        >>> from theory._valleys import valleys
        >>> cases = {m.__name__: Case.of(m(), valleys(2), rounds=2) for m in (FedADMM, FedDR)}
        >>> next(SharedRuns.of(cases).snapshots("FedDR")) is next(cases["FedDR"].snapshots())
        True
        """
        one = next(iter(cases.values()))
        return cls(
            name=str(one.participation),
            objective=one.objective,
            methods={name: case.algorithm for name, case in cases.items()},
            theta0=one.theta0,
            participation=one.participation,
            rounds=one.rounds,
            cases=cases,
        )

    def snapshots(self, name: str) -> Iterator[Snapshot]:
        """Yield the rounds of one of the methods."""
        return self.cases[name].snapshots()


def runs(f: Case, methods: Mapping[str, Any], note: str, **more: Any) -> Runs:
    """Return the runs of methods on a problem; ``more`` are further attributes of :class:`Runs`."""
    start = starting_point(f.objective)
    return Runs(name=f"{f.name}, {note}", objective=f.objective, methods=methods, theta0=start, **more)


def agree(case: Runs) -> Iterator[Inequality]:
    """Compare the models of all methods with those of the first one, round by round."""
    first, *others = case.methods
    models = [s.server.theta for s in case.snapshots(first)]
    for other in others:
        for n, (a, s) in enumerate(zip(models, case.snapshots(other), strict=True), start=1):
            yield Inequality(n, deviation(a, s.server.theta), case.tolerance, f"{first} - {other}")


def starting_point(objective: Any) -> Array:
    """Return a model away from zero, so that a term with the start cannot hide."""
    return np.random.default_rng(7).standard_normal(objective.shape)
