"""A model as fields of JSON and arrays by name, and back."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from dualopt.losses import Loss
from dualopt.problem.data._scaling import SHIFTS, Scaling
from dualopt.problem.inputs import OffsetOrigin
from dualopt.problem.models._file import Head, is_count, is_object
from dualopt.problem.models._schema import PLAIN, Schema, class_number
from dualopt.problem.models._training import BOUNDS
from dualopt.problem.preprocessing import MISSING, Columns
from dualopt.spec import Spec

if TYPE_CHECKING:
    from dualopt.problem.models._module import Recipe

__all__ = ["described", "parts"]

FOLDER = re.compile(r"[^\s,=@(]*[/\\](?=[^/\\]+\.py:)")  # before FILE.py:NAME
OF_COLUMNS = ("mean", "peak", "factor")


def described(model: Any) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the fields and the arrays of a model."""
    schema, scaling, arrays = model.schema, model.schema.scaling, {}
    for label in schema.classes or ():
        if type(label) not in PLAIN:
            raise ValueError(f"classes must be numbers, words or truth values in a file, not {label!r}.")
    for names, layer in zip(_names(len(model.layers)), model.layers, strict=True):
        arrays |= dict(zip(names, layer, strict=True))
    arrays |= {} if model.module is None else model.module.arrays
    if scaling.how in SHIFTS:
        arrays |= {name: getattr(scaling, name) for name in OF_COLUMNS}
    fields = {
        "layers": list(model.widths),
        "module": None if model.module is None else model.module.fields,
        "loss": _placeless(Spec.of(model.loss, full=True).to_json()),
        "feature_names": schema.feature_names,
        "classes": schema.classes,
        "dtype": schema.dtype,
        "scaling": {"how": scaling.how, "divisor": scaling.divisor},
        "offset": None if schema.offset is None else asdict(schema.offset),
        "columns": None if schema.columns is None else asdict(schema.columns),
        "reading": dict(schema.reading),
        "certificate": dict(model.certificate),
        "record": _placeless(model.record),
    }
    return fields, arrays


def parts(head: Head, types: Iterable[Callable[..., Any]]) -> dict[str, Any]:
    """Return the fields of the model that a description and its arrays are of, each of them checked."""
    types = tuple(types)
    sizes = "a list of at least two numbers of 1 or more"
    widths = head.get("layers", sizes, lambda x: isinstance(x, list) and len(x) > 1 and all(map(is_count, x)))
    dtype = head.text("dtype", "float64", "float32")
    loss = _loss(head, types)
    if loss.outputs != widths[-1]:
        head.refuse(f"its loss has {loss.outputs} outputs, and the last of its layers {widths[-1]}")
    scaling = head.part("scaling")
    how = scaling.text("how", "none", "divide", "unit-rows", *SHIFTS)
    divisor = scaling.get("divisor", "a positive number", lambda x: _is_number(x) and x > 0)
    module = _module(head, types, widths[0])
    of_scaling, names = OF_COLUMNS if how in SHIFTS else (), _names(0 if module else len(widths) - 1)
    shapes: dict[str, tuple[int, ...]] = dict.fromkeys(of_scaling, (widths[0],)) | (module.shapes if module else {})
    for (weights, constants), (inputs, outputs) in zip(names, () if module else pairwise(widths), strict=True):
        shapes |= {weights: (outputs, inputs), constants: (outputs,)}
    schema = {
        "n_features": widths[0],
        "feature_names": head.names("feature_names", widths[0]),
        "classes": _classes(head, loss),
        "dtype": dtype,
        "reading": head.get("reading", "an object of words, numbers and null", _is_plain),
        "columns": _columns(head, widths[0]),
        "offset": _offset(head),
    }
    certificate, record = _certificate(head.part("certificate")), head.get("record", "an object", is_object)
    found = head.arrays(shapes, dtype)
    if how in SHIFTS and not (found["peak"].min() > 0 and found["factor"].min() >= 0):
        head.refuse("its arrays peak and factor must be positive, and factor may be 0")
    schema["scaling"] = Scaling(how=how, divisor=float(divisor), **{name: found[name] for name in of_scaling})
    return {
        "layers": tuple((found[weights], found[constants]) for weights, constants in names),
        "module": None if module is None else module.filled(found),
        "loss": loss,
        "schema": Schema(**schema),
        "certificate": certificate,
        "record": record,
    }


def _module(head: Head, functions: Iterable[Callable[..., Any]], features: int) -> Recipe | None:
    """Return how the module is made that a description is of; None for one of layers."""
    if head.get("module", "null or an object", lambda x: x is None or is_object(x)) is None:
        return None
    from dualopt.problem.models._module import recipe  # few ask for it

    return recipe(head, functions, features)


def _names(layers: int) -> list[tuple[str, str]]:
    """Return how the arrays of the layers are called.

    >>> _names(1), _names(2)
    ([('coef', 'intercept')], [('coef_1', 'intercept_1'), ('coef_2', 'intercept_2')])
    """
    ends = [""] if layers == 1 else [f"_{n + 1}" for n in range(layers)]
    return [(f"coef{end}", f"intercept{end}") for end in ends]


def _placeless(x: Any) -> Any:
    """Return names of plug-ins without the folders in which they are on this machine.

    >>> _placeless({"/home/anna/mine.py:Damped": {"solver": "~/it.py:Mine"}, "rows": [3]})
    {'mine.py:Damped': {'solver': 'it.py:Mine'}, 'rows': [3]}
    """
    if isinstance(x, Mapping):
        return {_placeless(key): _placeless(value) for key, value in x.items()}
    if isinstance(x, list | tuple):
        return [_placeless(value) for value in x]
    return FOLDER.sub("", x) if isinstance(x, str) else x


def _loss(head: Head, types: Iterable[Any]) -> Loss:
    """Return the loss; nothing is imported that a file names."""
    given = head.get("loss", "an object", is_object)
    try:
        return Spec.from_json(given, "loss").build("loss", [own for own in types if isinstance(own, type)])
    except (ValueError, RecursionError) as error:
        raise ValueError(f"model {str(head.path)!r} cannot be used here: {error}") from None


def _classes(head: Head, loss: Loss) -> tuple[Any, ...] | None:
    """Return the classes, all of one kind, as many as the loss has."""
    count = class_number(loss)

    def holds(x: Any) -> bool:
        if not isinstance(x, list):
            return x is None
        kinds = {type(label) for label in x}
        return 0 < len(x) == count and len(kinds) == 1 and kinds <= PLAIN and len({*x}) == count

    found = head.get("classes", f"null or a list of {count} different labels of one kind", holds)
    return None if found is None else tuple(found)


def _columns(head: Head, features: int) -> Columns | None:
    """Return how the columns of a table become features."""
    if head.get("columns", "null or an object", lambda x: x is None or is_object(x)) is None:
        return None
    part = head.part("columns")
    words = part.get("words", "a list of null and lists of different words", _is_words)
    names = part.names("names", len(words))
    fills = part.get("fills", f"a list of {len(words)} numbers and null", lambda x: _is_fills(x, words))
    missing = part.text("missing", *MISSING)
    if names is None or len(names) == 0:
        head.refuse("its entry columns.names must be a list of words")
    found = Columns(
        names=names,
        words=tuple(None if listed is None else tuple(listed) for listed in words),
        fills=tuple(None if fill is None else float(fill) for fill in fills),
        missing=missing,
    )
    if found.feature_names != head.names("feature_names", features):
        head.refuse("its entry feature_names must follow from its columns")
    return found


def _is_words(x: Any) -> bool:
    def listed(y: Any) -> bool:
        of_words = isinstance(y, list) and len(y) > 0 and all(isinstance(word, str) for word in y)
        return y is None or (of_words and len({*y}) == len(y))

    return isinstance(x, list) and all(map(listed, x))


def _is_fills(x: Any, words: list[Any]) -> bool:
    if not isinstance(x, list) or len(x) != len(words):
        return False
    return all(fill is None or (_is_number(fill) and listed is None) for fill, listed in zip(x, words, strict=True))


def _offset(head: Head) -> OffsetOrigin | None:
    """Return where offsets came from."""
    if head.get("offset", "null or an object", lambda x: x is None or is_object(x)) is None:
        return None
    part = head.part("offset")
    column = part.get("column", "null or a word", lambda x: x is None or isinstance(x, str))
    return OffsetOrigin(part.text("kind", "offset", "exposure"), column)


def _certificate(head: Head) -> Mapping[str, Any]:
    """Return what is certified: numbers, or null where nothing is known."""
    numbers = {name: head.get(name, "a number or null", lambda x: x is None or _is_number(x)) for name in BOUNDS}
    return {"certified": head.get("certified", "true or false", lambda x: isinstance(x, bool)), **numbers}


def _is_plain(x: Any) -> bool:
    return is_object(x) and all(value is None or type(value) in PLAIN for value in x.values())


def _is_number(x: Any) -> bool:
    return isinstance(x, int | float) and not isinstance(x, bool) and abs(x) <= sys.float_info.max
