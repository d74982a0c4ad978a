"""Functions that several processes call together, each with the clients that it has."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any, TypeVar, cast

from dualopt.arrays.xp import is_array
from dualopt.spec import described

__all__ = ["everywhere"]

# What one process may be given alone: it watches the run, or keeps it.
OF_ONE = ("callback", "checkpoint", "engine", "interruptible", "measure", "parameters", "reference", "reference_gap")
OF_ONE += ("objective", "stop", "watch")

Function = TypeVar("Function", bound=Callable[..., Any])


def everywhere(function: Function) -> Function:
    """Let an engine of several processes call ``function(algorithm, objective, **options)``, in one of them.

    The processes all call the function with that engine, and with the objective of their own clients; the one that runs
    it gets the clients of all. They must all name the same method and options.
    """
    expected = signature(function)

    @wraps(function)
    def call(algorithm: Any, objective: Any, **options: Any) -> Any:
        engine: Any = options.get("engine")
        if not hasattr(engine, "run_everywhere"):
            return function(algorithm, objective, **options)
        given = expected.bind(algorithm, objective, **options)
        given.apply_defaults()
        facts = {name: _fact(x) for name, x in given.arguments.items() if name not in OF_ONE}
        options["engine"] = None
        return engine.run_everywhere(lambda clients: function(algorithm, clients, **options), objective, facts)

    return cast(Function, call)


def _fact(x: Any) -> Any:
    """Return what processes compare of an argument: an array, or a description in words and numbers."""
    return x if is_array(x) else described(x, lambda other: type(other).__name__)
