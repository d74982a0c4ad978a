"""The kinds of things that have names, and which names each has: modules are imported when one is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

from dualopt.spec.discover import Discovered

__all__ = ["KINDS", "Kind", "interface", "name_of", "names"]


class Kind(NamedTuple):
    """What objects of one kind have in common."""

    interface: str  # by which fields are annotated
    place: str  # a package, each module of which has one, or MODULE:TABLE
    plug_ins: str = ""
    words: str = ""  # what one is called
    further: tuple[str, ...] = ()  # parameters that the interface does not name


KINDS = {
    "algorithm": Kind("Algorithm", "dualopt.methods", "methods", "Algorithm"),
    "solver": Kind("LocalSolver", "dualopt.solvers", "solvers", "local solver"),
    "stop": Kind("Stop", "dualopt.solvers.stopping:RULES", "stopping", "stopping rule"),
    "compressor": Kind("Compressor", "dualopt.methods.compressors", "compressors", "compressor"),
    "regulariser": Kind("Regulariser", "dualopt.regularisers", "regularisers", "regulariser", ("weight",)),
    "schedule": Kind("GapSchedule", "dualopt.solvers.stopping:SCHEDULES"),
    "loss": Kind("Loss", "dualopt.losses", "losses", "loss"),
    "objective": Kind("Objective", "dualopt.problem.options:MODELS", "objectives", "objective"),
    "participation": Kind("Participation", "dualopt.methods.participation:RULES", "participation", "participation"),
    "preparation": Kind("Preparation", "dualopt.methods.preparation", "preparation", "preparation"),
    "engine": Kind("Clustered", "dualopt.engine._places:ENGINES"),
    "problem": Kind("ProblemOptions", "dualopt.problem.options:OPTIONS"),
}


def interface(kind: str) -> type:
    """Return the class by which fields of a kind are annotated.

    >>> interface("stop").__name__
    'Stop'
    """
    return getattr(import_module(KINDS[kind].place.partition(":")[0]), KINDS[kind].interface)


@cache
def names(kind: str) -> Mapping[str, Any]:
    """Return the classes of a kind that this package has, by name; each is imported when it is looked up.

    >>> sorted(names("regulariser"))
    ['l1', 'l2', 'zero']
    """
    place, _, table = KINDS[kind].place.partition(":")
    module = import_module(place)
    return getattr(module, table) if table else Discovered(module, getattr(module, "UNLISTED", {}))


def name_of(target: type, kind: str) -> str | None:
    """Return the name that a class of this package has among those of a kind; None if it has none.

    >>> from dualopt.solvers import LBFGS
    >>> name_of(LBFGS, "solver"), name_of(LBFGS, "loss")
    ('lbfgs', None)
    """
    place, _, table = KINDS[kind].place.partition(":")
    package = place.rpartition(".")[0] if table else place  # what is elsewhere need not be imported to be known as such
    if not target.__module__.startswith(f"{package}."):
        return None
    known = names(kind)
    if isinstance(known, Discovered):
        return known.name_of(target)
    return next((name for name, own in known.items() if own is target), None)
