"""What results say of the plug-ins that they come from."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dualopt.problem import data
from dualopt.problem.options import ProblemOptions
from dualopt.spec import KINDS, Spec, names
from dualopt.spec.plugins import record

__all__ = ["plug_ins"]

PARTS = ("solver", "stop")


def plug_ins(problem: ProblemOptions, methods: Iterable[Spec], *compressors: str) -> dict[str, Any]:
    """Return the plug-ins of a command: for each spelling the file and its hash.

    Examples
    --------
    >>> plug_ins(ProblemOptions(), [Spec("dualfl")])
    {}
    >>> own = "dualopt.methods.dualfl:DualFL"
    >>> list(plug_ins(ProblemOptions(), [Spec(own)])[own])
    ['file', 'sha256']
    """
    used: list[tuple[str, Any]] = [("loss", problem.loss), ("regulariser", problem.regulariser)]
    used += [("compressor", text) for text in compressors]
    used.append(("objective", problem.model))
    for spec in methods:
        used += [("algorithm", spec), *((kind, spec.arguments[kind]) for kind in PARTS if kind in spec.arguments)]
    found: dict[str, list[str]] = {"data": [problem.data], "partitions": [problem.partition]}
    for kind, x in used:
        if x is not None:
            name = x.name if isinstance(x, Spec) else Spec.parse(x, kind).name
            found.setdefault(KINDS[kind].plug_ins, []).append(name)
    known = {k.plug_ins: names(kind) for kind, k in KINDS.items() if k.plug_ins in found}
    return record(found, known | {"data": data.available(), "partitions": data.partition_rules()})
