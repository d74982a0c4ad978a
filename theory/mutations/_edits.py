"""Wrong variants as edits: of a step of a method, of its parameters, or of what is known about a case.

A row of a table is a few words, one such edit, and the claims that must notice it. An edit of a step names the method,
the step, the text that is there and the text that stands wrongly in its place. That text must occur exactly once: a row
that no longer fits is an error, whoever applies it.
"""

from __future__ import annotations

import inspect
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any

import numpy as np

from dualopt.arrays.tree import tree_map

__all__ = [
    "OtherMethodError",
    "Variant",
    "becomes",
    "change",
    "edit",
    "edited",
    "first_client",
    "instead",
    "like",
    "parameters",
]

NAMES = {"np": np}  # what an edited step may use besides the names of its module


class OtherMethodError(TypeError):
    """A variant of one method says nothing about another."""


@dataclass(frozen=True)
class Variant:
    """One thing wrong, and what notices it.

    Called with a case, it returns that with the one thing wrong.

    Attributes
    ----------
    change : callable
        Maps a case to the wrong one; raises :class:`OtherMethodError` where it concerns something else.
    caught : frozenset of str
        Claims that are violated on some case.
    emptied : frozenset of str
        Claims that no longer say anything on some case: vacuous, or inconclusive.
    base : type, optional
        The method that it is about.
    wrong : callable
        Makes the wrong method's class, where it is one.
    """

    change: Callable[[Any], Any]
    caught: frozenset[str]
    emptied: frozenset[str]
    base: type | None = None
    wrong: Callable[[], type] | None = None

    def __call__(self, case: Any) -> Any:
        """Return the case with the one thing wrong."""
        return self.change(case)

    def but(self, caught: str, emptied: str = "") -> Variant:
        """Return the same change for another table, with the claims that must notice there."""
        return replace(self, caught=frozenset(caught.split()), emptied=frozenset(emptied.split()))


def change(function: Callable[[Any], Any], caught: str, emptied: str = "") -> Variant:
    """Return the row of a change of a case; ``caught`` and ``emptied`` are names of claims, with blanks between."""
    return Variant(function, frozenset(caught.split()), frozenset(emptied.split()))


def parameters(base: type, wrong: Callable[[Any, Any], dict[str, Any]], caught: str, emptied: str = "") -> Variant:
    """Return the row of a method with other parameters, which ``wrong(method, case)`` says."""
    return change(lambda case: _put(base, lambda method: replace(method, **wrong(method, case)), case), caught, emptied)


def becomes(base: type, wrong: Callable[[], type], caught: str, emptied: str = "") -> Variant:
    """Return the row of a method that becomes one of the class ``wrong()``, with the same parameters."""
    row = change(lambda case: _put(base, lambda method: like(wrong(), method), case), caught, emptied)
    return replace(row, base=base, wrong=wrong)


def edit(base: type, *texts: str, caught: str, emptied: str = "") -> Variant:
    """Return the row of an edited method: a step, its text and the wrong text; another step, and so on.

    Methods that inherit these steps are edited as well.

    Examples
    --------
    >>> from dualopt.methods import FedPD
    >>> from theory import Case, valleys
    >>> twice = edit(FedPD, "server", "Server(mean), mean", "Server(2.0 * mean), 2.0 * mean", caught="fedpd_theorem_1")
    >>> twice(Case.of(FedPD(), valleys(2), rounds=1)).algorithm.server(None, 1.0, None)[1]
    2.0
    """
    row = change(
        lambda case: _put(base, lambda method: like(edited(type(method), *texts), method), case, texts[::3]),
        *(caught, emptied),
    )
    return replace(row, base=base, wrong=lambda: edited(base, *texts))


def instead(base: type, step: str, wrong: Callable[..., Any], caught: str, emptied: str = "") -> Variant:
    """Return the row of a method that does ``wrong(method, right, ...)`` in place of the step ``right(...)``."""

    def of(self: Any, *arguments: Any) -> Any:
        return wrong(self, getattr(super(kind, self), step), *arguments)

    kind: type = type(f"Wrong{base.__name__}", (base,), {step: of})
    return becomes(base, lambda: kind, caught, emptied)


def first_client(method: Any, right: Callable[..., Any], c: Any, *arguments: Any) -> Any:
    """Do a local step, and upload what the first client would for all of them."""
    c, sent = right(c, *arguments)
    return c, tree_map(lambda x: np.broadcast_to(x[:1], x.shape), sent)


@cache
def edited(base: type, *texts: str) -> type:
    """Return a subclass of a method in which steps are edited.

    Raises
    ------
    LookupError
        If a text does not occur exactly once in its step.

    Examples
    --------
    >>> from dualopt.methods import FedPD
    >>> edited(FedPD, "server", "Server(mode), mean", "Server(mean), -mean")
    Traceback (most recent call last):
    LookupError: 'Server(mode), mean' must occur once in FedPD.server, not 0 times.
    """
    sources: dict[str, str] = {}
    for step, old, new in zip(*[iter(texts)] * 3, strict=True):
        source = sources.get(step) or textwrap.dedent(inspect.getsource(getattr(base, step)))
        if source.count(old) != 1:
            raise LookupError(f"{old!r} must occur once in {base.__name__}.{step}, not {source.count(old)} times.")
        sources[step] = source.replace(old, new)
    steps = {step: _compiled(base, step, source) for step, source in sources.items()}
    return type(f"Wrong{base.__name__}", (base,), steps)


def _compiled(base: type, step: str, source: str) -> Callable[..., Any]:
    """Compile a step in the names of its module; ``super()`` means what it meant."""
    owner = next(kind for kind in base.__mro__ if step in vars(kind))
    scope = {**vars(sys.modules[owner.__module__]), **NAMES}
    made: dict[str, Any] = {}
    exec(f"def make(__class__):\n{textwrap.indent(source, '    ')}\n    return {step}", scope, made)
    return made["make"](owner)


def like(kind: type, method: Any) -> Any:
    """Return a method of another kind with the same parameters.

    Examples
    --------
    >>> from dualopt.methods import FedPD
    >>> like(edited(FedPD, "server", "Server(mean)", "Server(-mean)"), FedPD(eta=0.5)).eta
    0.5
    """
    return kind(**{f.name: getattr(method, f.name) for f in fields(method) if f.init})


def _put(base: type, wrong: Callable[[Any], Any], case: Any, steps: tuple[str, ...] = ()) -> Any:
    """Return a case with a wrong method in the place of the right one, or of those of its methods that are right.

    Right are methods of the class ``base``, and those that inherit ``steps`` from it.
    """

    def right(method: Any) -> bool:
        kind = type(method)
        inherits = bool(steps) and issubclass(kind, base) and all(getattr(kind, s) is getattr(base, s) for s in steps)
        return kind is base or inherits

    if hasattr(case, "run") and hasattr(case, "_replace"):
        return case._replace(run=_put(base, wrong, case.run, steps))
    methods = getattr(case, "methods", None)
    if methods is not None and base in map(type, methods.values()):  # one of them: claims compare it with the others
        return replace(case, methods={name: wrong(m) if type(m) is base else m for name, m in methods.items()})
    if not right(getattr(case, "algorithm", None)):
        raise OtherMethodError(f"a mutation of {base.__name__} says nothing about {type(case).__name__}.")
    return replace(case, algorithm=wrong(case.algorithm))
