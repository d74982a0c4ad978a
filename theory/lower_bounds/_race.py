"""Methods on a zero chain, communication by communication."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Self

from dualopt.algorithms import AFedPD, FedADMM, FedAvg, FedDyn, FedPD, FedProx, Scaffnew, Scaffold
from dualopt.engine import Snapshot, iterate
from dualopt.objectives import ZeroChain
from dualopt.participation import CommunicateWithProbability, Full, Participation, UniformSubset
from dualopt.solvers import LBFGS, Gradient
from dualopt.stopping import Steps
from theory.lower_bounds._span import LinearSpan
from theory.lower_bounds._zero_chain import zero_chain

__all__ = ["STEPS", "Race", "races"]

STEPS = 20  # local steps between two communications: enough to bring a new entry from near zero to the order of width
LONG = 100.0  # times 1/L: no step is too long, as all partial derivatives of a chain are negative or zero
WEAK = 0.1  # the proximal weight over L, small enough for these steps to go as far


@dataclass(frozen=True, kw_only=True, eq=False)
class Race:
    """A method on a zero chain.

    Attributes
    ----------
    name : str
        For tables.
    algorithm : Algorithm
        The method, started at zero.
    objective : ZeroChain
        The chain.
    participation : Participation
        Who takes part.
    everybody : bool
        Whether all clients take part and go along their gradients, so that each communication does open an entry.
    eps : float
        The accuracy for which the chain is scaled.
    """

    name: str
    algorithm: Any
    objective: ZeroChain
    participation: Participation = field(default_factory=Full)
    everybody: bool = True
    eps: float = 1.0

    @property
    def d(self) -> int:
        """Number of entries of the model."""
        return self.objective.shape[0]

    def but(self, **changes: Any) -> Self:
        """Return the race with some attributes changed."""
        return replace(self, **changes)

    def communications(self) -> Iterator[tuple[int, Snapshot]]:
        """Yield the federation after each round in which something was sent, with the number of such rounds so far."""
        shots = iterate(self.algorithm, self.objective, participation=self.participation)
        yield from enumerate((shot for shot in shots if shot.floats_up), start=1)


def races(n: int = 6, d: int = 12, *, split: str = "thirds") -> Iterator[Race]:
    """Yield methods with gradient steps that all clients share, then others."""
    f = zero_chain(n, d, split=split)
    step, weight, stop = 1.0 / float(f.L.max()), WEAK * float(f.L.max()), Steps(steps=STEPS)
    same, own, rarely, some = Gradient(step=step), Gradient(), 1.0 / STEPS, UniformSubset(size=n // 2)

    def race(name: str, algorithm: Any, **more: Any) -> Race:
        return Race(name=name, algorithm=algorithm, objective=f, **more)

    yield race("FedAvg", FedAvg(solver=same, stop=stop))
    yield race("SCAFFOLD", Scaffold(solver=same, stop=stop))
    yield race(
        "Scaffnew",
        Scaffnew(probability=rarely, solver=same),
        participation=CommunicateWithProbability(probability=rarely),
    )
    yield race("FedPD", FedPD(eta=1.0 / weight, solver=own, stop=stop))
    yield race("FedDyn", FedDyn(alpha=weight, solver=own, stop=stop))
    yield race("FedProx", FedProx(mu_prox=weight, solver=own, stop=stop))
    yield race("FedAvg, long steps", FedAvg(solver=Gradient(step=LONG * step), stop=stop))
    yield race("FedAvg, L-BFGS", FedAvg(solver=LBFGS(), stop=Steps(steps=3)))
    yield race("FedAvg, one step", FedAvg(solver=same, stop=Steps(steps=1)), everybody=False)
    yield race("FedADMM, half", FedADMM(rho=weight, solver=own, stop=stop), participation=some, everybody=False)
    yield race("A-FedPD, half", AFedPD(rho=weight, solver=own, stop=stop), participation=some, everybody=False)
    yield race("linear span", LinearSpan(steps=(1, 4), length=STEPS * step), everybody=False)
