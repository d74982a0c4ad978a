"""What results say of the plug-ins that they come from."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import dualopt.losses
import dualopt.methods
import dualopt.regularisers
import dualopt.solvers
from dualopt.problem import data
from dualopt.problem.options import ProblemOptions
from dualopt.spec.discover import discover
from dualopt.spec.plugins import record
from dualopt.spec.variant import Variant

__all__ = ["plug_ins"]


def plug_ins(problem: ProblemOptions, variants: Iterable[Variant]) -> dict[str, Any]:
    """Return the plug-ins of a command: for each spelling the file and its hash.

    Examples
    --------
    >>> plug_ins(ProblemOptions(), [Variant(label="", algorithm="dualfl")])
    {}
    >>> own = "dualopt.methods.dualfl:DualFL"
    >>> list(plug_ins(ProblemOptions(), [Variant(label="", algorithm=own)])[own])
    ['file', 'sha256']
    """
    variants = list(variants)
    used = {
        "methods": [v.algorithm for v in variants],
        "solvers": [v.solver for v in variants],
        "losses": [problem.loss],
        "regularisers": [None if problem.regulariser is None else problem.regulariser.partition("=")[0]],
        "data": [problem.data],
    }
    known = {
        "methods": discover(dualopt.methods),
        "solvers": discover(dualopt.solvers),
        "losses": discover(dualopt.losses),
        "regularisers": discover(dualopt.regularisers),
        "data": data.available(),
    }
    return record(used, known)
