"""Checks of arguments: each raises a ``ValueError`` whose one sentence names the argument."""

from __future__ import annotations

import inspect
import math
import re
import types
from collections.abc import Callable
from dataclasses import fields
from functools import cache, partial
from numbers import Integral, Real
from typing import Annotated, Any, Self, get_args, get_type_hints

__all__ = [
    "Fraction",
    "NonNegative",
    "Positive",
    "Typed",
    "at_least",
    "declared",
    "interval",
    "is_flag",
    "is_integer",
    "is_number",
    "nonnegative",
    "require",
    "require_at_least",
    "require_flags",
    "require_fraction",
    "require_integers",
    "require_kept",
    "require_numbers",
    "require_positive",
]

LARGEST = 10**12  # rows or columns: no memory has more


def is_number(value: Any) -> bool:
    """Tell whether a value is a real number, also one of NumPy's, or an array without axes; truth values are none.

    >>> is_number(1.5), is_number(True), is_number("1"), is_number(1j)
    (True, False, False, False)
    """
    if isinstance(value, Real):
        return not is_flag(value)
    if getattr(value, "shape", None) != () or hasattr(value, "mask"):
        return False
    kind = str(value.dtype).rpartition(".")[2]
    return kind.startswith(("float", "int", "uint", "bfloat"))


def is_integer(value: Any) -> bool:
    """Tell whether a value is an integer, also one of NumPy's; truth values are none.

    >>> is_integer(2), is_integer(2.0), is_integer(True)
    (True, False, False)
    """
    return isinstance(value, Integral) and not is_flag(value)


def is_flag(value: Any) -> bool:
    """Tell whether a value is True or False, also of NumPy.

    >>> is_flag(True), is_flag("no"), is_flag(0)
    (True, False, False)
    """
    return isinstance(value, bool) or type(value).__name__ == "bool"


MOST_KEPT = 1000  # vectors of a memory that only the last ones matter to
KINDS = {int: (is_integer, "a whole number"), float: (is_number, "a number"), bool: (is_flag, "true or false")}
KINDS |= {str: (lambda value: isinstance(value, str), "a word")}


class _Parameters:
    """The parameters of the class that inherits ``__new__`` below, for help and editors: those of its ``__init__``."""

    def __get__(self, instance: object, owner: type) -> inspect.Signature:
        _, *others = inspect.signature(owner.__init__).parameters.values()
        return inspect.Signature(others)


class Typed:
    """A dataclass that refuses plain parameters of another type: numbers, truth values and words, or None if it may be.

    What else is asked of a parameter stands in its annotation, as a function that refuses a value given by its name.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True, kw_only=True)
    ... class Step(Typed):
    ...     length: float | None = None
    >>> Step(length=1)
    Step(length=1)
    >>> Step(length="long")
    Traceback (most recent call last):
    ValueError: length must be a number, not 'long'.
    >>> inspect.signature(Step)
    <Signature (*, length: 'float | None' = None)>
    >>> @dataclass(frozen=True, kw_only=True)
    ... class Stride(Typed):
    ...     length: Positive = 1.0
    >>> Stride(length=-1.0)
    Traceback (most recent call last):
    ValueError: length must be a positive finite number, not -1.0.
    """

    __signature__ = _Parameters()

    def __new__(cls, *args: Any, **given: Any) -> Self:
        """Check the types before anything compares the values."""
        for name, value in given.items():
            if (kind := _plain(cls).get(name)) is not None and value is not None:
                holds, words = KINDS[kind]
                _require_type(holds(value), f"{name} must be {words}", value)
        for name, value in given.items():
            for check in declared(cls).get(name, ()):
                if callable(check):
                    check(**{name: value})
        return super().__new__(cls)


@cache
def _plain(cls: type) -> dict[str, type]:
    """Return the fields of a dataclass that hold one plain type, perhaps or None."""
    try:
        hints = get_type_hints(cls)
    except NameError:  # of a class in a function, whose names nobody else sees
        return {}
    found: dict[str, type] = {}
    for f in fields(cls):  # pyright: ignore[reportArgumentType]
        choices = [t for t in (get_args(hints[f.name]) or (hints[f.name],)) if t is not types.NoneType]
        if len(choices) == 1 and choices[0] in KINDS:
            found[f.name] = choices[0]
    return found


@cache
def declared(cls: type) -> dict[str, tuple[Any, ...]]:
    """Return what the annotations of a class say of its fields beside their types.

    >>> class Step:
    ...     length: Positive | None = None
    >>> declared(Step) == {"length": (require_positive,)}
    True
    """
    found: dict[str, tuple[Any, ...]] = {}
    for base in reversed(cls.__mro__):
        try:
            hints = get_type_hints(base, include_extras=True)
        except NameError:  # of a class in a function, whose names nobody else sees
            continue
        found |= {name: _metadata(hints[name]) for name in inspect.get_annotations(base)}
    return {name: metadata for name, metadata in found.items() if metadata}


def _metadata(hint: Any) -> tuple[Any, ...]:
    choices = (hint,) if hasattr(hint, "__metadata__") else get_args(hint)
    return tuple(said for choice in choices for said in getattr(choice, "__metadata__", ()))


def require_numbers(**parameters: Any) -> None:
    """Refuse what is no real number, or NaN; None, a parameter left open, passes.

    >>> require_numbers(tol="small")
    Traceback (most recent call last):
    ValueError: tol must be a number, not 'small'.
    """
    for name, value in parameters.items():
        holds = value is None or (is_number(value) and not math.isnan(value))
        _require_type(holds, f"{name} must be a number", value)


def require_integers(**parameters: Any) -> None:
    """Refuse what is no integer.

    >>> require_integers(rounds=1.5)
    Traceback (most recent call last):
    ValueError: rounds must be a whole number, not 1.5.
    """
    for name, value in parameters.items():
        _require_type(is_integer(value), f"{name} must be a whole number", value)


def require_flags(**parameters: Any) -> None:
    """Refuse what is neither True nor False.

    >>> require_flags(intercept="no")
    Traceback (most recent call last):
    ValueError: intercept must be True or False, not 'no'.
    """
    for name, value in parameters.items():
        _require_type(is_flag(value), f"{name} must be True or False", value)


def require(condition: object, sentence: str, *value: object) -> None:
    """Refuse an argument unless a condition holds.

    Parameters
    ----------
    condition : object
        What must be true.
    sentence : str
        What the argument must be, without a full stop.
    value : object, optional
        The argument, which the sentence then ends with.

    Raises
    ------
    ValueError
        If the condition is not true.

    Examples
    --------
    >>> require(0 < 1.5 < 1, "factor must lie in (0, 1)", 1.5)
    Traceback (most recent call last):
    ValueError: factor must lie in (0, 1), not 1.5.
    >>> require(False, "split must not be given with reference")
    Traceback (most recent call last):
    ValueError: split must not be given with reference.
    """
    if not condition:
        raise ValueError(f"{sentence}, not {_shown(value[0])}." if value else f"{sentence}.")


def require_positive(**parameters: float | None) -> None:
    """Refuse numbers that are not positive and finite; None, a parameter left open, passes.

    Raises
    ------
    ValueError
        If one is not, such as NaN.

    Examples
    --------
    >>> require_positive(step=0.1, nu=None)
    >>> require_positive(step=0.0)
    Traceback (most recent call last):
    ValueError: step must be a positive finite number, not 0.0.
    """
    for name, value in parameters.items():
        if value is not None:
            require(
                is_number(value) and math.isfinite(value) and value > 0,
                f"{name} must be a positive finite number",
                value,
            )


def require_at_least(least: float, **parameters: float | None) -> None:
    """Refuse numbers below ``least``; None, a parameter left open, passes.

    Raises
    ------
    ValueError
        If one is, or is NaN.

    Examples
    --------
    >>> require_at_least(1, rounds=0)
    Traceback (most recent call last):
    ValueError: rounds must be at least 1, not 0.
    """
    for name, value in parameters.items():
        if value is not None:
            require(is_number(value) and value >= least, f"{name} must be at least {least}", value)


def require_kept(**parameters: int | None) -> None:
    """Refuse numbers of vectors to be kept that are below 1, or that no memory is meant for.

    >>> require_kept(history=1001)
    Traceback (most recent call last):
    ValueError: history must be at most 1000, not 1001.
    """
    require_at_least(1, **parameters)
    for name, value in parameters.items():
        require(value is None or value <= MOST_KEPT, f"{name} must be at most {MOST_KEPT}", value)


def require_fraction(**parameters: float | None) -> None:
    """Refuse numbers outside of (0, 1]; None, a parameter left open, passes.

    Raises
    ------
    ValueError
        If one is, or is NaN.

    Examples
    --------
    >>> require_fraction(fraction=0.0)
    Traceback (most recent call last):
    ValueError: fraction must lie in (0, 1], not 0.0.
    """
    for name, value in parameters.items():
        if value is not None:
            require(is_number(value) and 0 < value <= 1, f"{name} must lie in (0, 1]", value)


def at_least(lower: int, name: str, value: int) -> int:
    """Return ``value`` as an int, or refuse it when it is not an integer, below ``lower``, or no size of an array."""
    if not is_integer(value):
        raise ValueError(f"{name} must be an integer, got {value!r}.")
    number = int(value)
    if number < lower:
        raise ValueError(f"{name} must be at least {lower}, got {number}.")
    if name != "seed" and number > LARGEST:
        raise ValueError(f"{name} must be at most {LARGEST}, got {number}.")
    return number


def nonnegative(name: str, value: float) -> float:
    """Return ``value`` as a float, or refuse it when it is negative, infinite or NaN."""
    if not (is_number(value) and 0 <= value < math.inf):
        raise ValueError(f"{name} must be nonnegative and finite, got {value!r}.")
    return float(value)


def interval(text: str) -> Callable[..., None]:
    """Return the check that a number lies in an interval, written with its brackets; None passes.

    >>> interval("[0, 1)")(rho=0.0)
    >>> interval("[0, 1)")(rho=1.0)
    Traceback (most recent call last):
    ValueError: rho must lie in [0, 1), not 1.0.
    """
    least, most = map(float, text[1:-1].split(","))

    def check(**parameters: Any) -> None:
        for name, x in parameters.items():
            if x is not None:
                above, below = x >= least if text[0] == "[" else x > least, x <= most if text[-1] == "]" else x < most
                require(above and below, f"{name} must lie in {text}", x)

    return check


Positive = Annotated[float, require_positive]
NonNegative = Annotated[float, partial(require_at_least, 0.0)]
Fraction = Annotated[float, require_fraction]


def _require_type(holds: bool, sentence: str, value: Any) -> None:
    """Refuse a value of another type, which is shown as it is written: words in quotes."""
    if not holds:
        raise ValueError(f"{sentence}, not {value if is_number(value) or is_flag(value) else _written(value)}.")


def _shown(value: Any) -> str:
    """Return a value as a sentence shows it: numbers and names plainly, on one line."""
    plain = is_number(value) or is_flag(value) or (isinstance(value, str) and value.isidentifier())
    return str(value) if plain else _written(value)


def _written(value: Any) -> str:
    return re.sub(r" at 0x\w+|\s+", " ", repr(value))
