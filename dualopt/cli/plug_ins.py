"""What results say of the plug-ins that they come from."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dualopt import data
from dualopt.plugins import GROUPS, record
from dualopt.problem import ProblemOptions
from dualopt.spec import KINDS, Spec, names

__all__ = ["plug_ins"]

PARTS = ("solver", "stop", "compressor")


def plug_ins(problem: ProblemOptions, methods: Iterable[Spec]) -> dict[str, Any]:
    """Return the plug-ins of a command: for each spelling the file and its hash.

    Examples
    --------
    >>> plug_ins(ProblemOptions(), [Spec("dualfl")])
    {}
    >>> own = "dualopt.algorithms.dualfl:DualFL"
    >>> list(plug_ins(ProblemOptions(), [Spec(own)])[own])
    ['file', 'sha256']
    """
    used: list[tuple[str, Any]] = [("loss", problem.loss), ("regulariser", problem.regulariser)]
    for spec in methods:
        used += [("algorithm", spec), *((kind, spec.arguments[kind]) for kind in PARTS if kind in spec.arguments)]
    found: dict[str, list[str]] = {"data": [problem.data]}
    for kind, x in used:
        if x is not None:
            name = x.name if isinstance(x, Spec) else Spec.parse(x, kind).name
            found.setdefault(KINDS[kind].plug_ins, []).append(name)
    known = {k.plug_ins: names(kind) for kind, k in KINDS.items() if k.plug_ins in GROUPS}
    return record(found, known | {"data": data.available()})
