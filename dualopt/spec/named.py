"""Objects by their names: ``"logistic"`` for ``Logistic()``, wherever an object is taken."""

from __future__ import annotations

from dataclasses import MISSING, fields, is_dataclass
from types import ModuleType
from typing import Any

from dualopt.spec.discover import lookup

__all__ = ["open_parameters", "require_instance", "resolved"]


def resolved(value: Any, package: ModuleType, argument: str) -> Any:
    """Return an object, or the one that a name stands for.

    Parameters
    ----------
    value : object or str
        What a user passed; a name is one of ``dualopt list``.
    package : module
        Where names are looked up, such as ``dualopt.losses``.
    argument : str
        The argument that took it, for messages.

    Raises
    ------
    ValueError
        If the name is unknown or stands for a class with parameters that have no default, or a class is passed in place
        of an instance.

    Examples
    --------
    >>> import dualopt.losses
    >>> resolved("hinge", dualopt.losses, "loss")
    Hinge()
    >>> resolved(dualopt.losses.Hinge, dualopt.losses, "loss")
    Traceback (most recent call last):
    ValueError: loss must be an instance, such as Hinge(), not the class Hinge.
    """
    require_instance(value, argument)
    if not isinstance(value, str):
        return value
    kind = lookup(package, value, argument)
    if needed := open_parameters(kind):
        example = f"{kind.__name__}({', '.join(f'{name}=...' for name in needed)})"
        raise ValueError(f"{argument} {value!r} needs {' and '.join(needed)}: pass {example}.")
    return kind()


def require_instance(value: Any, argument: str) -> None:
    """Refuse a class where an instance is meant.

    >>> from dualopt.methods.participation import Bernoulli
    >>> require_instance(Bernoulli, "participation")
    Traceback (most recent call last):
    ValueError: participation must be an instance, such as Bernoulli(probability=...), not the class Bernoulli.
    """
    if isinstance(value, type):
        name, open_ones = value.__name__, ", ".join(f"{name}=..." for name in open_parameters(value))
        raise ValueError(f"{argument} must be an instance, such as {name}({open_ones}), not the class {name}.")


def open_parameters(kind: type) -> list[str]:
    """Return the parameters of a dataclass that have no default.

    >>> from dualopt.losses import Hinge, Multinomial
    >>> open_parameters(Multinomial), open_parameters(Hinge)
    (['classes'], [])
    """
    if not is_dataclass(kind):
        return []
    return [f.name for f in fields(kind) if f.init and f.default is MISSING and f.default_factory is MISSING]
