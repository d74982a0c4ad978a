"""Values that a user types as ``name=value``."""

from __future__ import annotations

import math
import types
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, get_args, get_type_hints

from dualopt.spec.discover import unknown_name

__all__ = ["convert", "pairs"]

PLAIN = {bool: "true or false", int: "a whole number", float: "a number", str: "a word"}
SUGGESTED = "suggested"


def pairs(texts: Sequence[str], argument: str) -> dict[str, str]:
    """Read ``["rho=0", "nu=0.1"]`` as ``{"rho": "0", "nu": "0.1"}``.

    Parameters
    ----------
    texts : sequence of str
        What was typed.
    argument : str
        The argument that took it, for messages.

    Raises
    ------
    ValueError
        If a text is of another form, or a name comes twice.

    Examples
    --------
    >>> pairs(["stop=gradient=1e-8"], "algorithm")
    {'stop': 'gradient=1e-8'}
    """
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise ValueError(f"{argument} must be of the form name=value, not {text!r}.")
        if name in found:
            raise ValueError(f"{argument} {name} is given twice.")
        found[name] = value
    return found


def convert(target: type, texts: Mapping[str, str], argument: str, owner: str) -> dict[str, Any]:
    """Turn texts into arguments of a dataclass, by the annotations of its fields.

    The word ``suggested`` leaves a parameter open.

    Parameters
    ----------
    target : type
        A dataclass; its fields of type bool, int, float, str, or one of them or None, can be given.
    texts : dict of str to str
        Names and values as typed.
    argument, owner : str
        The option and the thing it belongs to, for messages.

    Raises
    ------
    ValueError
        If there is no such parameter, or a value is not of its type.

    Examples
    --------
    >>> from dualopt.methods import DualFL
    >>> convert(DualFL, {"rho": "1e-3", "nu": "suggested", "corrected": "true"}, "param", "algorithm dualfl")
    {'rho': 0.001, 'corrected': True}
    """
    kinds = _plain_fields(target)
    for name in texts:
        if name not in kinds and not kinds:
            raise ValueError(f"{argument} {name} is unknown: {owner} has no parameters.")
        if name not in kinds:
            raise unknown_name(f"{argument} of {owner}", name, kinds)
    return {name: _value(kinds[name], text, f"{argument} {name}") for name, text in texts.items() if text != SUGGESTED}


def _plain_fields(target: type) -> dict[str, type]:
    hints = get_type_hints(target)
    found: dict[str, type] = {}
    for f in fields(target):
        hint = hints[f.name]
        choices = [t for t in (get_args(hint) or (hint,)) if t is not types.NoneType]
        if len(choices) == 1 and choices[0] in PLAIN:
            found[f.name] = choices[0]
    return found


def _value(kind: type, text: str, what: str) -> Any:
    try:
        if kind is bool:
            return {"true": True, "false": False}[text.lower()]
        value = kind(text)
    except (KeyError, ValueError):
        raise ValueError(f"{what} must be {PLAIN[kind]}, not {text!r}.") from None
    if kind is float and math.isnan(value):
        raise ValueError(f"{what} must be {PLAIN[kind]}, not {text!r}.")
    return value
