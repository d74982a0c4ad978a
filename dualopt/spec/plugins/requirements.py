"""What a plug-in of each kind must have, and in words what one lacks."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass
from types import ModuleType
from typing import Any

__all__ = ["FORMS", "fault"]

STEPS = ("init", "local", "server")
DECORATOR = "@dataclass(frozen=True, kw_only=True)"
OBJECTIVE = ("n_clients", "shape", "mu", "L", "zeros", "value", "gradient", "select")
DEALT = ("y", "m", "n_clients", "alpha", "sigma", "seed", "clients")
FORMS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "partitions": ("function", inspect.isfunction),
    "claims": ("claim", lambda thing: hasattr(thing, "compare") and not inspect.isclass(thing)),
}
"""What plug-ins are that are no classes: in a word, and as a test."""


def fault(kind: str, thing: Any, name: str) -> str | None:
    """Return in words what a class, or a module of data or figures, lacks to be of a kind; None for nothing.

    Examples
    --------
    >>> fault("losses", int, "int")
    'int is no loss: it must be a dataclass (write @dataclass(frozen=True, kw_only=True) above it)'
    >>> from dualopt.losses import Huber
    >>> fault("losses", Huber, "Huber"), fault("solvers", Huber, "Huber")
    (None, 'Huber is no local solver: it lacks initial_state, __call__')
    """
    return CHECKS[kind](thing, name) if kind in CHECKS else None


def _algorithm(thing: type, name: str) -> str | None:
    from dualopt.methods import Algorithm

    if not issubclass(thing, Algorithm) or thing is Algorithm:
        return f"{name} is no Algorithm: it must be a subclass of dualopt.Algorithm that defines {', '.join(STEPS)}"
    missing = [step for step in STEPS if getattr(thing, step) is getattr(Algorithm, step)]
    if missing:
        return f"{name} is no complete Algorithm: it must define {', '.join(missing)}"
    own = [hint for hint in vars(thing).get("__annotations__", {}).values() if "ClassVar" not in str(hint)]
    if own and "__dataclass_fields__" not in vars(thing):
        return f"{name} has fields and is no dataclass: write {DECORATOR} above it"
    return None


def _loss(thing: type, name: str) -> str | None:
    from dualopt.losses import Loss

    return _has(thing, name, "loss", (*Loss.__annotations__, *vars(Loss)))


def _regulariser(thing: type, name: str) -> str | None:
    from dualopt.regularisers import Regulariser

    return _has(thing, name, "regulariser", ("weight", *Regulariser.__annotations__, *vars(Regulariser)))


def _solver(thing: type, name: str) -> str | None:
    return _has(thing, name, "local solver", ("initial_state", "__call__"))


def _compressor(thing: type, name: str) -> str | None:
    from dualopt.methods.compressors import Compressor

    return _has(thing, name, "compressor", (*Compressor.__annotations__, *vars(Compressor)))


def _stop(thing: type, name: str) -> str | None:
    return _has(thing, name, "stopping rule", ("finished",))


def _participation(thing: type, name: str) -> str | None:
    return _has(thing, name, "participation", ("needs", "fraction", "rounds"))


def _preparation(thing: type, name: str) -> str | None:
    return _has(thing, name, "preparation", ("check", "prepare"))


def _objective(thing: type, name: str) -> str | None:
    if abstract := sorted(getattr(thing, "__abstractmethods__", ())):
        return f"{name} is no complete objective: it must define {', '.join(abstract)}"
    members = (*OBJECTIVE, "value_and_gradient", "rounding", "offers")
    return _has(thing, name, "subclass of dualopt.objectives.Objective", members)


def _partition(thing: Any, name: str) -> str | None:
    own = inspect.signature(thing).parameters.values()
    unknown = [p.name for p in own if p.name not in DEALT and p.default is p.empty]
    if unknown:
        return f"{name} is no partition: it takes {', '.join(DEALT)}, and not {', '.join(unknown)}"
    return None


def _data(thing: ModuleType, name: str) -> str | None:
    names = getattr(thing, "NAMES", None)
    if not isinstance(names, dict) or not callable(getattr(thing, "load", None)):
        return 'a file of data sets must define NAMES, such as {"my-data": "what it is"}, and load(name)'
    return None if name in names else f"its NAMES are {', '.join(names) or 'empty'}, not {name!r}"


def _figure(thing: ModuleType, name: str) -> str | None:
    missing = [part for part in ("compute", "draw") if not callable(getattr(thing, part, None))]
    return f"a figure must define {' and '.join(missing)}" if missing else None


CHECKS: dict[str, Callable[[Any, str], str | None]] = {
    "methods": _algorithm,
    "losses": _loss,
    "regularisers": _regulariser,
    "solvers": _solver,
    "compressors": _compressor,
    "stopping": _stop,
    "participation": _participation,
    "preparation": _preparation,
    "objectives": _objective,
    "partitions": _partition,
    "data": _data,
    "figures": _figure,
}


def _has(thing: type, name: str, what: str, names: Iterable[str]) -> str | None:
    if not is_dataclass(thing):
        return f"{name} is no {what}: it must be a dataclass (write {DECORATOR} above it)"
    known = {f.name for f in fields(thing)}.union(*map(vars, thing.__mro__))
    public = [part for part in dict.fromkeys(names) if part == "__call__" or not part.startswith("_")]
    missing = [part for part in public if part not in known]
    return f"{name} is no {what}: it lacks {', '.join(missing)}" if missing else None
