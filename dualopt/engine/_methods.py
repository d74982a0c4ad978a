"""A method in words and numbers, from which hosts make it again; no class is looked up that is not known by name."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any

import dualopt.methods
import dualopt.methods.compressors
import dualopt.regularisers
import dualopt.solvers
import dualopt.solvers.stopping
from dualopt.methods import Algorithm

__all__ = ["known_types", "read_method", "spelled", "types_in"]


def spelled(method: Any) -> str:
    """Return the class and the parameters of a method, in JSON.

    Raises
    ------
    ValueError
        If a parameter is no number, no text, and nothing that consists of these.

    Examples
    --------
    >>> from dualopt import FedAvg
    >>> from dualopt.solvers import SGD
    >>> from dualopt.solvers.stopping import Steps
    >>> method = FedAvg(solver=SGD(step=0.5, batch=2), stop=Steps(steps=3))
    >>> read_method(spelled(method)) == method
    True
    """
    return json.dumps(_words(method))


def read_method(text: str, types: Iterable[type] = ()) -> Any:
    """Return the method that :func:`spelled` described.

    Parameters
    ----------
    text : str
        The description.
    types : iterable of type
        Classes beside those of this package, such as a method of the user's own.

    Raises
    ------
    ValueError
        If it is no such description, or names an unknown class.
    """
    known = known_types() | {kind.__name__: kind for kind in types}

    def build(x: Any) -> Any:
        if isinstance(x, list):
            return tuple(build(y) for y in x)
        if not isinstance(x, dict):
            return x
        if x["class"] not in known:
            raise ValueError(
                f"method names {x['class']!r}, which is not known here: import it, or install its package."
            )
        return known[x["class"]](**{name: build(value) for name, value in x["parameters"].items()})

    try:
        method = build(json.loads(text))
    except (KeyError, TypeError, json.JSONDecodeError):
        raise ValueError("method must be described by its class and its parameters.") from None
    if not isinstance(method, Algorithm):
        raise ValueError(f"method must be an algorithm, not {type(method).__name__}.")
    return method


def types_in(value: Any) -> tuple[type, ...]:
    """Return the classes of a method and of all that it holds."""
    if isinstance(value, tuple):
        return tuple(kind for x in value for kind in types_in(x))
    if not is_dataclass(value):
        return ()
    own = (type(value),)
    return own + tuple(kind for f in fields(value) for kind in types_in(getattr(value, f.name)))


@cache
def known_types() -> dict[str, type]:
    """Return the methods, solvers, stopping rules, compressors and regularisers of this package, by name."""
    packages = (
        dualopt.methods,
        dualopt.solvers,
        dualopt.solvers.stopping,
        dualopt.methods.compressors,
        dualopt.regularisers,
    )
    found = {name: getattr(package, name) for package in packages for name in package.__all__}
    return {name: kind for name, kind in found.items() if isinstance(kind, type) and is_dataclass(kind)}


def _words(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, tuple):
        return [_words(x) for x in value]
    if is_dataclass(value) and not isinstance(value, type):
        given = {f.name: _words(getattr(value, f.name)) for f in fields(value) if f.init}
        return {"class": type(value).__name__, "parameters": given}
    raise ValueError(f"method must have words and numbers as parameters where clients are elsewhere, not {value!r}.")
