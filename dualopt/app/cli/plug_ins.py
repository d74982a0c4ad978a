"""What results say of the plug-ins that they come from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from dualopt.problem import data
from dualopt.problem.options import ProblemOptions, network_of
from dualopt.spec import KINDS, Spec, names
from dualopt.spec.plugins import record

__all__ = ["plug_ins"]


def plug_ins(problem: ProblemOptions, methods: Iterable[Spec], **others: Iterable[str | Spec]) -> dict[str, Any]:
    """Return the plug-ins of a command, those in the parameters of others too: for each spelling the file and its hash.

    Parameters
    ----------
    problem : ProblemOptions
        The options of the problem.
    methods : iterable of Spec
        The methods.
    **others : iterable of str or Spec
        What else is named, by its kind, such as ``compressor``.

    Examples
    --------
    >>> plug_ins(ProblemOptions(), [Spec("dualfl")], compressor=["identity"])
    {}
    >>> own = "dualopt.methods.dualfl:DualFL"
    >>> list(plug_ins(ProblemOptions(), [Spec(own)])[own])
    ['file', 'sha256']
    """
    used: list[tuple[str, Any]] = [("loss", problem.loss), ("regulariser", problem.regulariser)]
    used += [("algorithm", spec) for spec in methods]
    used += [(kind, x) for kind, several in others.items() for x in several]
    found: dict[str, list[str]] = {"data": [problem.data], "partitions": [problem.partition]}
    network = network_of(problem.model)
    if network is None:
        used.append(("objective", problem.model))
    else:
        found["networks"] = [network.name]
    for kind, x in used:
        for of, name in _named(kind, x):
            found.setdefault(KINDS[of].plug_ins, []).append(name)
    known = {k.plug_ins: names(kind) for kind, k in KINDS.items() if k.plug_ins in found}
    return record(found, known | {"data": data.available(), "partitions": data.partition_rules(), "networks": ()})


def _named(kind: str, x: Any) -> Iterator[tuple[str, str]]:
    """Yield the names in the spec of an object with their kinds: its own, and those of solvers and others within."""
    if x is None or not KINDS[kind].plug_ins:
        return
    spec = x if isinstance(x, Spec) else Spec.parse(x, kind)
    yield kind, spec.name
    for name, value in spec.arguments.items():
        if name in KINDS and isinstance(value, str | Spec):
            yield from _named(name, value)
