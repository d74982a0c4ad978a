"""Charts that several chapters have: both sides of a theorem over the rounds, a number over the values of a slider."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from figures.lessons._parts import Chart, Curve, Level

__all__ = ["dual_errors", "of_theorem", "over_slider"]


def of_theorem(title: str, quantity: str, curves: Iterable[Any], **ranges: Any) -> Chart:
    """Return curves over the rounds, with the witness of the first theorem of the chapter in the quantity it compares.

    Examples
    --------
    >>> of_theorem("Both sides", "gap", [Curve(of="lhs0", label="gap", ink="one")], decades=6).theorem
    0
    """
    return Chart(title=title, curves=tuple(curves), x_label="round", y_label=quantity, log_y=True, theorem=0, **ranges)


def dual_errors(title: str, known: str, label: str, own: str, **ranges: Any) -> Chart:
    """Return the dual error that is known at first, then what Theorem 3.3 promises and that of the method judged.

    Examples
    --------
    >>> [curve.of for curve in dual_errors("Dual errors", "slow", "dual ascent", "DualFL").curves]
    ['slow', 'rhs0', 'lhs0']
    """
    curves = (
        Curve(of=known, label=label, ink="third", dash="dotted"),
        Curve(of="rhs0", label="Theorem 3.3", ink="bound", dash="dashed", after=True),
        Curve(of="lhs0", label=own, ink="model", after=True),
    )
    return of_theorem(title, "dual error", curves, **ranges)


def over_slider(
    title: str, of: str, over: str, *, label: str, one: str, x_label: str, y_label: str, top: float
) -> Chart:
    """Return a quantity over all values of a slider, with a line at 1, once the reader has asked for the answer.

    Examples
    --------
    >>> words = {"label": "FedAvg", "one": "a distance of 1", "x_label": "K", "y_label": "distance"}
    >>> over_slider("Distance", "bias", "K", top=2.0, **words).y
    (0.0, 2.0)
    """
    curves = (Curve(of=of, over=over, label=label, ink="model"), Level(of=1.0, label=one))
    return Chart(title=title, curves=curves, x_label=x_label, y_label=y_label, log_x=True, y=(0.0, top), after=True)
