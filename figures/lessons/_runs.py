"""What lessons read off a run."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

from dualopt.runs.certificates import certificate
from figures.lessons._charts import Curve
from theory._cases import Case

__all__ = ["Accuracy", "accuracy", "error_curves"]


class Accuracy(NamedTuple):
    """One number for every round."""

    error: list[float]  # E - E*, which only a lesson knows
    certificate: list[float]  # its certified bound, which everybody can have


def accuracy(case: Case, rounds: int | None = None) -> Accuracy:
    """Return the error and the certificate of the model after every round, or the first ones.

    Examples
    --------
    >>> from dualopt.methods import DualFL
    >>> from theory._valleys import valleys
    >>> found = accuracy(Case.of(DualFL(), valleys(3), rounds=4))
    >>> all(e <= c for e, c in zip(*found, strict=True))
    True
    """
    ends = [certificate(case.objective, s.server.theta, s.solution) for s in islice(case.snapshots(), rounds)]
    return Accuracy([end.energy - case.lowest for end in ends], [end.gap for end in ends])


def error_curves(label: str, colour: int, found: Accuracy, theorem: Sequence[float] = ()) -> list[Curve]:
    """Return the error of a run with its certificate and what a theorem says, those of them that are not empty."""
    roles = {"error": found.error, "certificate": found.certificate, "theorem": theorem}
    return [Curve(y=y, label=label, colour=colour, role=role) for role, y in roles.items() if len(y)]
