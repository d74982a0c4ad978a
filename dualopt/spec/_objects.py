"""What a run is given by name, as objects."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import dualopt.methods
import dualopt.methods.compressors
import dualopt.solvers
import dualopt.solvers.stopping
from dualopt.methods import Algorithm
from dualopt.methods.compressors import Compressor, parse_compressor
from dualopt.solvers.stopping import parse_stop
from dualopt.spec.named import resolved

__all__ = ["as_compressor", "with_objects"]


def with_objects(algorithm: Any, objective: Any) -> Algorithm:
    """Return the method with what was given by name: itself, its local solver, its stopping rule, its compressor.

    Raises
    ------
    ValueError
        If a name is unknown, a class is passed in place of an instance, or one of the two is something else.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt import Quadratic
    >>> with_objects("fedavg", Quadratic(A=np.ones((1, 1, 1)), b=np.zeros((1, 1))))  # doctest: +ELLIPSIS
    FedAvg(...)
    """
    algorithm = resolved(algorithm, dualopt.methods, "algorithm")
    if not isinstance(algorithm, Algorithm):
        raise ValueError(f"algorithm must be an Algorithm or its name, such as 'dualfl', not {_what(algorithm)}.")
    if isinstance(objective, type) or not hasattr(objective, "n_clients"):  # what has the members need be no subclass
        raise ValueError(f"objective must be an Objective, such as linear_model returns, not {_what(objective)}.")
    changes: dict[str, Any] = {}
    if isinstance(algorithm.solver, str | type):
        changes["solver"] = resolved(algorithm.solver, dualopt.solvers, "solver")
    if isinstance(algorithm.stop, str):
        changes["stop"] = parse_stop(algorithm.stop)
    elif isinstance(algorithm.stop, type):
        resolved(algorithm.stop, dualopt.solvers.stopping, "stop")  # refuses it
    if isinstance(compressor := getattr(algorithm, "compressor", None), str | type):
        changes["compressor"] = as_compressor(compressor)
    return replace(algorithm, **changes) if changes else algorithm


def as_compressor(compressor: Any) -> Compressor:
    """Return what compresses, also where it is text.

    Raises
    ------
    ValueError
        If the text is wrong, or a class is passed in place of an instance.

    Examples
    --------
    >>> as_compressor("top-k=3")
    TopK(size=3)
    """
    if isinstance(compressor, str):
        return parse_compressor(compressor)
    return resolved(compressor, dualopt.methods.compressors, "compressor")


def _what(x: Any) -> str:
    if x is None:
        return "None"
    return f"the class {x.__name__}" if isinstance(x, type) else f"a {type(x).__name__}"
