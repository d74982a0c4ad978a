"""What a run refuses before its first round, each with a sentence that names the argument."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from dualopt.arrays._checks import is_number, require, require_at_least, require_flags, require_integers
from dualopt.arrays.xp import array_namespace, device
from dualopt.objectives import Objective
from dualopt.runs.trace import SPENT

__all__ = ["check_functions", "check_names", "check_rounds", "check_run", "check_start", "check_threads"]

COLUMNS = ("round", *SPENT, "energy", "certificate", "certified_error", "gradient_norm", "error")


def check_rounds(rounds: int, done: int) -> None:
    if rounds < done:
        raise ValueError(f"rounds must be at least the {done} that the checkpoint holds, not {rounds}.")


def check_threads(threads: Any) -> None:
    """Refuse a number of threads that libraries of linear algebra cannot take: they count in C.

    >>> check_threads(0)
    Traceback (most recent call last):
    ValueError: threads must be at least 1, not 0.
    """
    if threads is not None:
        require_integers(threads=threads)
        require_at_least(1, threads=threads)
        require(threads < 2**31, "threads must be at most 2147483647", threads)


def check_run(
    *,
    rounds: Any,
    seed: Any,
    tol: Any,
    atol: Any,
    certify_every: Any,
    measure_every: Any,
    threads: Any,
    reference: Any = None,
    reference_gap: Any = 0.0,
) -> None:
    """Refuse numbers that :func:`run` cannot take, before there is an objective.

    Raises
    ------
    ValueError
        If one is of another type or out of range.

    Examples
    --------
    >>> check_run(rounds=1.5, seed=0, tol=None, atol=None, certify_every=0, measure_every=1, threads=None)
    Traceback (most recent call last):
    ValueError: rounds must be a whole number, not 1.5.
    """
    require_integers(rounds=rounds, seed=seed, certify_every=certify_every, measure_every=measure_every)
    require_at_least(0, rounds=rounds, seed=seed, certify_every=certify_every)
    require_at_least(1, measure_every=measure_every)
    check_threads(threads)
    for name, value in (("tol", tol), ("atol", atol)):
        require(value is None or (is_number(value) and value >= 0), f"{name} must be at least 0", value)
        require(value is None or value < math.inf, f"{name} must be finite", value)
    holds = reference is None or (is_number(reference) and math.isfinite(reference))
    require(holds, "reference must be a finite number", reference)
    require(is_number(reference_gap) and reference_gap >= 0, "reference_gap must be at least 0", reference_gap)


def check_names(measure: Mapping[str, Any], reference: float | None) -> None:
    """Refuse names of columns that the run measures itself; it has no error without a reference."""
    taken = COLUMNS if reference is not None else tuple(name for name in COLUMNS if name != "error")
    for name in measure:
        require(name not in taken, f"measure must not have the name {name}, which is a column of every trace")


def check_functions(measure: Any, stop: Any, callback: Any, check_assumptions: Any, parameters: Any) -> None:
    require_flags(check_assumptions=check_assumptions)
    for name, function in (("stop", stop), ("callback", callback)):
        require(function is None or callable(function), f"{name} must be a function", function)
    require(measure is None or isinstance(measure, Mapping), "measure must map names to functions", measure)
    for name, function in (measure or {}).items():
        require(isinstance(name, str) and bool(name), "measure must have words as names", name)
        require(callable(function), f"measure {name} must be a function", function)
    require(parameters is None or isinstance(parameters, Mapping), "parameters must map names to values", parameters)
    require("status" not in (parameters or {}), "parameters must not have the name status, which a trace has itself")
    try:
        json.dumps(dict(parameters or {}))
    except (TypeError, ValueError):
        raise ValueError("parameters must hold what JSON can: words, numbers, truth values, lists of them.") from None


def check_start(theta0: Any, objective: Objective) -> None:
    if theta0 is None:
        return
    require(hasattr(theta0, "shape") and hasattr(theta0, "dtype"), "theta0 must be an array", theta0)
    zero = objective.zeros()
    if tuple(theta0.shape) != tuple(objective.shape):
        raise ValueError(f"theta0 must have shape {tuple(objective.shape)}, not {tuple(theta0.shape)}.")
    if theta0.dtype != zero.dtype or device(theta0) != device(zero):
        raise ValueError("theta0 must have the array type and device of the data.")
    if not bool(array_namespace(theta0).all(array_namespace(theta0).isfinite(theta0))):
        raise ValueError("theta0 must not contain NaN or infinite entries.")
