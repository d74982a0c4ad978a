"""What the parser of options knows of one: its name, and the type of its values."""

from __future__ import annotations

import inspect
import re
from typing import Annotated, Any, get_args, get_origin

__all__ = ["kind_of", "long_name"]


def kind_of(command: Any, option: Any) -> str:
    """Return the type of the values of an option: ``int``, ``float``, ``bool``, ``Path``, and ``str`` for others."""
    annotation = inspect.signature(command.callback).parameters[option.name].annotation
    written = str(get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation)
    return next((kind for kind in ("int", "float", "bool", "Path") if re.search(rf"\b{kind}\b", written)), "str")


def long_name(option: Any) -> str:
    """Return the name of an option without its dashes."""
    return next(name for name in option.opts if name.startswith("--")).removeprefix("--")
