"""Cases whose rounds are counted where the lower bounds count them: when something is sent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from dualopt.engine.rounds import Snapshot, iterate
from theory._cases import Case

__all__ = ["ChainCase"]


@dataclass(frozen=True, kw_only=True, eq=False)
class ChainCase(Case):
    """A method on a chain, from zero; its rounds are those in which something is sent."""

    @property
    def d(self) -> int:
        """Number of coordinates."""
        return self.objective.shape[0]

    def _computed(self) -> Iterator[Snapshot]:
        shots = iterate(self.algorithm, self.objective, participation=self.participation, seed=self.seed)
        return islice((shot for shot in shots if shot.floats_up), self.rounds)
