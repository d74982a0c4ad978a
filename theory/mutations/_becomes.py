"""A wrong method in the place of the right one."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

__all__ = ["becomes", "like", "only"]


def like(kind: type, method: Any) -> Any:
    """Return a method of another kind with the same parameters.

    Examples
    --------
    >>> from dualopt.methods import FedPD
    >>> class Renamed(FedPD):
    ...     pass
    >>> like(Renamed, FedPD(eta=0.5)).eta
    0.5
    """
    return kind(**{f.name: getattr(method, f.name) for f in fields(method) if f.init})


def only(base: type, case: Any) -> Any:
    """Return the method of a case, if it is the one that a variant is about.

    Raises
    ------
    TypeError
        If it is another one.
    """
    if type(case.algorithm) is not base:
        raise TypeError(f"a mutation of {base.__name__} says nothing about {type(case.algorithm).__name__}.")
    return case.algorithm


def becomes(kind: type, case: Any, *, base: type | None = None) -> Any:
    """Return a case with a wrong method in the place of the right one, which must be a ``base`` where that is given."""
    return replace(case, algorithm=like(kind, case.algorithm if base is None else only(base, case)))
