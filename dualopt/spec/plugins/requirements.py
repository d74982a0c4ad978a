"""What a plug-in of each kind must have, and in words what one lacks."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from types import ModuleType
from typing import Any

from dualopt.spec._kinds import KINDS, Kind, interface

__all__ = ["FORMS", "fault", "is_torch_module"]

STEPS = ("init", "local", "server")
DECORATOR = "@dataclass(frozen=True, kw_only=True)"
DEALT = ("y", "m", "n_clients", "alpha", "sigma", "seed", "clients")
FORMS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "partitions": ("function", inspect.isfunction),
    "instances": ("function or class", lambda thing: inspect.isfunction(thing) or inspect.isclass(thing)),
    "objectives": ("class", lambda thing: inspect.isfunction(thing) or inspect.isclass(thing)),
    "networks": ("function or class", lambda thing: inspect.isfunction(thing) or inspect.isclass(thing)),
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
    if kind in CHECKS:
        return CHECKS[kind](thing, name)
    for own, known in KINDS.items():
        if kind and known.plug_ins == kind:
            required = interface(own)
            return (
                _lacks(thing, name, known, required)
                if vars(required).get("_is_protocol")
                else _unfit(thing, name, required)
            )
    return None


def _unfit(thing: type, name: str, base: type) -> str | None:
    """Say what is wrong with a subclass of Algorithm."""
    if not issubclass(thing, base) or thing is base:
        return f"{name} is no Algorithm: it must be a subclass of dualopt.Algorithm that defines {', '.join(STEPS)}"
    missing = [step for step in STEPS if getattr(thing, step) is getattr(base, step)]
    if missing:
        return f"{name} is no complete Algorithm: it must define {', '.join(missing)}"
    own = [hint for hint in vars(thing).get("__annotations__", {}).values() if "ClassVar" not in str(hint)]
    if own and "__dataclass_fields__" not in vars(thing):
        return f"{name} has fields and is no dataclass: write {DECORATOR} above it"
    return None


def _lacks(thing: type, name: str, kind: Kind, protocol: type) -> str | None:
    """Say what of an interface a class lacks."""
    if not is_dataclass(thing):
        return f"{name} is no {kind.words}: it must be a dataclass (write {DECORATOR} above it)"
    known = {f.name for f in fields(thing)}.union(*map(vars, thing.__mro__))
    asked = dict.fromkeys((*kind.further, *getattr(protocol, "__annotations__", {}), *vars(protocol)))
    missing = [part for part in asked if (part == "__call__" or not part.startswith("_")) and part not in known]
    return f"{name} is no {kind.words}: it lacks {', '.join(missing)}" if missing else None


def _objective(thing: Any, name: str) -> str | None:
    """Say what a class lacks that is an objective, or a function that makes one for its contract."""
    if not inspect.isclass(thing):
        return _instance(thing, name)
    if not (issubclass(thing, interface("objective")) and is_dataclass(thing)):
        return f"{name} is no objective: it must be a dataclass and a subclass of dualopt.objectives.Objective"
    if abstract := sorted(getattr(thing, "__abstractmethods__", ())):
        return f"{name} is no complete objective: it must define {', '.join(abstract)}"
    return None


def _instance(thing: Any, name: str) -> str | None:
    """Say what a function lacks that makes an objective, or a class of objectives."""
    if inspect.isclass(thing):
        return _objective(thing, name)
    needed = [p.name for p in inspect.signature(thing).parameters.values() if p.default is p.empty]
    return (
        f"{name} makes no instance: it must be a function without arguments, not of {', '.join(needed)}"
        if needed
        else None
    )


def is_torch_module(thing: Any) -> bool:
    """Tell whether a thing is a class of modules of PyTorch, which is imported if it is."""
    torch = sys.modules.get("torch")
    return torch is not None and inspect.isclass(thing) and issubclass(thing, torch.nn.Module)


def _network(thing: Any, name: str) -> str | None:
    if inspect.isclass(thing) and not is_torch_module(thing):
        return f"{name} is no network: it must be a subclass of torch.nn.Module, or a function that returns a module"
    return None


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
    "objectives": _objective,
    "instances": _instance,
    "networks": _network,
    "partitions": _partition,
    "data": _data,
    "figures": _figure,
}
