"""Functions that several processes call together, each with the clients that it has."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

__all__ = ["everywhere"]

Function = TypeVar("Function", bound=Callable[..., Any])


def everywhere(function: Function) -> Function:
    """Let an engine of several processes call ``function(algorithm, objective, **options)``, in one of them.

    The processes all call the function with that engine, and with the objective of their own clients; the one that runs
    it gets the clients of all.
    """

    @wraps(function)
    def call(algorithm: Any, objective: Any, **options: Any) -> Any:
        engine: Any = options.get("engine")
        if not hasattr(engine, "run_everywhere"):
            return function(algorithm, objective, **options)
        options["engine"] = None
        return engine.run_everywhere(lambda clients: function(algorithm, clients, **options), objective)

    return cast(Function, call)
