"""What lessons read off a run."""

from __future__ import annotations

from itertools import islice
from typing import NamedTuple

from dualopt.certificates import certificate
from theory._cases import Case

__all__ = ["Accuracy", "accuracy"]


class Accuracy(NamedTuple):
    """One number for every round."""

    error: list[float]  # E - E*, which only a lesson knows
    certificate: list[float]  # its certified bound, which everybody can have


def accuracy(case: Case, rounds: int | None = None) -> Accuracy:
    """Return the error and the certificate of the model after every round, or the first ones.

    Examples
    --------
    >>> from dualopt.algorithms import DualFL
    >>> from theory._valleys import valleys
    >>> found = accuracy(Case.of(DualFL(), valleys(3), rounds=4))
    >>> all(e <= c for e, c in zip(*found, strict=True))
    True
    """
    ends = [certificate(case.objective, s.server.theta, s.solution) for s in islice(case.snapshots(), rounds)]
    return Accuracy([end.energy - case.lowest for end in ends], [end.gap for end in ends])
