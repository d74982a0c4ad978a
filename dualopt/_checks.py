"""Checks of arguments: each raises a ``ValueError`` whose one sentence names the argument."""

from __future__ import annotations

import math

__all__ = ["require", "require_at_least", "require_fraction", "require_positive"]


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
        raise ValueError(f"{sentence}, not {value[0]}." if value else f"{sentence}.")


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
            require(math.isfinite(value) and value > 0, f"{name} must be a positive finite number", value)


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
            require(value >= least, f"{name} must be at least {least}", value)


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
            require(0 < value <= 1, f"{name} must lie in (0, 1]", value)
