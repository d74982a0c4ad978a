"""Specs: objects in words and numbers, and what their fields say of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Self, Union, get_args, get_origin, get_type_hints

from dualopt.arrays._checks import is_flag, is_integer, is_number
from dualopt.spec import plugins
from dualopt.spec._grammar import Tree, Word
from dualopt.spec._kinds import KINDS, name_of, names
from dualopt.spec.discover import unknown_name
from dualopt.spec.plugins.requirements import fault

__all__ = ["Spec", "built", "described", "required", "resolved", "types_in"]


PLAIN = {bool: "true or false", int: "a whole number", float: "a number", str: "a word", Path: "a path"}


@dataclass(frozen=True)
class Spec(Tree):
    """An object in words and numbers: the name of its class, and parameters.

    Parameters
    ----------
    name : str
        As ``dualopt list`` has it, or a plug-in, ``FILE.py:Name`` or ``package.module:Name``.
    arguments : dict
        Values by parameter: texts, numbers, truth values, None, lists of these, and specs. The one of "" has no name.

    Examples
    --------
    >>> spec = Spec.parse("fedsplit: step=0.1, solver=lbfgs:history=5, stop=steps:3")
    >>> method = spec.build("algorithm")
    >>> method.step, method.solver, method.stop
    (0.1, LBFGS(history=5, precondition=None, max_iter=1000), Steps(steps=3))
    >>> print(Spec.of(method))
    fedsplit: solver=(lbfgs: history=5), stop=(steps: steps=3), step=0.1
    >>> Spec.of(method.stop).to_json()
    {'steps': {'steps': 3}}
    >>> print(Spec.of(method.stop).to_toml(), end="")
    [steps]
    steps = 3
    """

    @classmethod
    def of(
        cls, value: Any, kind: str | None = None, *, full: bool = False, unknown: Callable[[Any], Any] | None = None
    ) -> Self:
        """Return the spec of an object.

        Parameters
        ----------
        value : dataclass
            The object.
        kind : str, optional
            Its kind, one of ``KINDS``; found by its class when not given.
        full : bool, default False
            Whether to name also the parameters that are at their defaults.
        unknown : callable, optional
            Describes parameters that no spec can: functions and arrays.

        Raises
        ------
        ValueError
            If a parameter is no number, no text, and nothing that consists of these.
        """
        target, arguments = type(value), {}
        for f in fields(value):
            x = getattr(value, f.name)
            if f.init and (full or not _at_default(f, x)):
                arguments[f.name] = _plain(x, lambda y: cls.of(y, full=full, unknown=unknown), unknown)
        return cls(_name(target, kind), arguments)

    def expanded(self, kind: str | None) -> Spec:
        """Return the spec with the name of a class in place of one that is short for more."""
        known = names(kind) if kind else {}
        head, _, tail = self.name.partition(":")
        if tail and head in known:  # a colon without a space, before a value that is a word
            return Spec(head, {"": Spec(tail, self.arguments) if self.arguments else Word(tail)})
        if isinstance(text := known.get(self.name), str):
            short = Spec.parse(text)
            return Spec(short.name, {**short.arguments, **self.arguments})
        return self

    def target(self, kind: str | None, types: Iterable[type] | None = None) -> Any:
        """Return the class that is named.

        Raises
        ------
        ValueError
            If there is none; the sentence proposes a close name.
        """
        known = names(kind) if kind else {}
        self = self.expanded(kind)
        if self.name in known:
            return known[self.name]
        if types is None and kind and KINDS[kind].plug_ins:
            return plugins.find(KINDS[kind].plug_ins, self.name, kind, known)
        own = {t.__name__: t for t in types or ()} | {_name(t): t for t in types or ()}
        found = own.get(self.name) or own.get(self.name.rpartition(":")[2] if ":" in self.name else "")
        if found is None and not kind:
            every = (t for k in KINDS for t in names(k).values() if isinstance(t, type))
            found = next((t for t in every if _name(t, "") == self.name), None)
        if found is None and types is not None:
            raise ValueError(
                f"{kind} names {self.name!r}, which is not known here: only what dualopt has, or was loaded, can be."
            )
        if found is None:
            raise unknown_name(kind or "class", self.name, known)
        problem = fault(KINDS[kind].plug_ins, found, self.name) if kind else None
        if problem:
            raise ValueError(f"{kind} {self.name!r}: {problem}.")
        return found

    def build(self, kind: str | None, types: Iterable[type] | None = None) -> Any:
        """Return the object.

        Parameters
        ----------
        kind : str
            One of ``KINDS``.
        types : iterable of type, optional
            For a spec that others have sent: the classes that it may name beside those of this package. Nothing is
            imported or looked up for it then. When not given, plug-ins are found where their names say.

        Raises
        ------
        ValueError
            If a name is unknown, a value is of another type or out of range, or one is missing.

        Examples
        --------
        >>> Spec.parse("subset=10").build("participation")
        UniformSubset(size=10)
        >>> Spec.parse("subset: share=0.5").build("participation")
        Traceback (most recent call last):
        ValueError: parameter of participation subset must be one of size; not 'share'.
        """
        spec = self.expanded(kind)
        return spec.made(spec.target(kind, types), f"{kind or 'class'} {spec.name}", types)

    def made(self, target: Any, owner: str, types: Iterable[type] | None = None) -> Any:
        """Return an object of a dataclass with these parameters; ``owner`` names it in messages.

        Raises
        ------
        ValueError
            If a parameter is unknown, of another type, out of range, or missing.
        """
        hints, own = _hints(target), {f.name: f for f in fields(target)}
        given: dict[str, Any] = {}
        for name, x in self.arguments.items():
            if not own:
                raise ValueError(f"{owner} has no parameters: {name or x} is unknown.")
            key = name or _first(target)
            if key not in own:
                raise unknown_name(f"parameter of {owner}", key, [n for n, f in own.items() if f.init])
            if not own[key].init:
                raise ValueError(f"{key} cannot be given because {owner} has none.")
            if not name and key in self.arguments:
                raise ValueError(f"{owner}: {key} is given twice.")
            if not (isinstance(x, Word) and x == "suggested"):
                x = x if name or isinstance(x, list) or get_origin(hints[key]) is not tuple else [x]
                given[key] = _value(x, hints[key], f"{owner}: {key}", own[key], types)
        missing = [name for name in required(target) if name not in given]
        if missing:
            listed = ", ".join(f"{name}=..." for name in missing)
            raise ValueError(f"{owner} needs {' and '.join(missing)}: write {f'{self.name}: {listed}'!r}.")
        try:
            return target(**given)
        except ValueError as error:
            error.args = (f"{owner}: {error}",)  # with the place in a plug-in where it was raised
            raise


def built(value: Any, kind: str) -> Any:
    """Return an object, or the one that a spec or its text stands for.

    Raises
    ------
    ValueError
        If the text is wrong, or a class is passed in place of an instance.

    Examples
    --------
    >>> built("hinge", "loss")
    Hinge()
    >>> from dualopt.methods.participation import Bernoulli
    >>> built(Bernoulli, "participation")
    Traceback (most recent call last):
    ValueError: participation must be an instance, such as Bernoulli(probability=...), not the class Bernoulli.
    """
    if isinstance(value, type):
        example = f"{value.__name__}({', '.join(f'{name}=...' for name in required(value))})"
        raise ValueError(f"{kind} must be an instance, such as {example}, not the class {value.__name__}.")
    spec = Spec.parse(value, kind) if isinstance(value, str) else value
    return spec.build(kind) if isinstance(spec, Spec) else value


def required(target: type) -> list[str]:
    """Return the parameters of a dataclass that have no default.

    >>> from dualopt.losses import Hinge, Multinomial
    >>> required(Multinomial), required(Hinge)
    (['classes'], [])
    """
    own = fields(target) if is_dataclass(target) else ()
    return [f.name for f in own if f.init and _default(f) is MISSING]


def resolved(value: Any) -> Any:
    """Return an object in which parameters that were given in text are objects.

    Examples
    --------
    >>> from dualopt import FedAvg
    >>> resolved(FedAvg(stop="steps=3")).stop
    Steps(steps=3)
    """
    hints = _hints(type(value))
    kinds = {f.name: kind for f in fields(value) if (kind := _kind(hints[f.name])) is not None}
    given = {name: x for name in kinds if isinstance(x := getattr(value, name), str | type | Spec)}
    return replace(value, **{name: built(x, kinds[name]) for name, x in given.items()}) if given else value


def described(value: Any, unknown: Callable[[Any], Any] = repr) -> Any:
    """Return an object with all its parameters for a record in JSON; what no spec can say is shown as Python does.

    ``unknown`` returns what is shown instead, such as the name of the type: some objects are shown by their address.

    Examples
    --------
    >>> from dualopt.solvers import Gradient
    >>> described(Gradient(step=0.5)), described(None)
    ({'gradient': {'step': 0.5, 'max_iter': 10000}}, None)
    """
    found = _plain(value, lambda x: Spec.of(x, full=True, unknown=unknown), unknown)
    return found.to_json() if isinstance(found, Spec) else found


def types_in(value: Any) -> tuple[type, ...]:
    """Return the classes of an object and of all that it holds."""
    if isinstance(value, tuple):
        return tuple(kind for x in value for kind in types_in(x))
    if not is_dataclass(value):
        return ()
    return (type(value), *(kind for f in fields(value) for kind in types_in(getattr(value, f.name))))


def _plain(x: Any, spec: Callable[[Any], Spec], unknown: Callable[[Any], Any] | None) -> Any:
    """Return a value of Python as a value of a spec."""
    if x is None or isinstance(x, str):
        return x
    if is_flag(x) or is_number(x):
        return bool(x) if is_flag(x) else int(x) if is_integer(x) else float(x)
    if isinstance(x, list | tuple):
        return [_plain(y, spec, unknown) for y in x]
    if is_dataclass(x) and not isinstance(x, type):
        return spec(x)
    if isinstance(x, Path):
        return str(x)
    if unknown is None:
        raise ValueError(f"parameters must be words, numbers and objects that consist of these, not {x!r}.")
    return unknown(x)


def _name(target: type, kind: str | None = None) -> str:
    """Return the name of a class: that in ``names``, or where it is."""
    if kind != "" and target.__module__.partition(".")[0] == "dualopt":
        for one in KINDS if kind is None else (kind,):
            if (name := name_of(target, one)) is not None:
                return name
    found = plugins.files.NAME.fullmatch(target.__module__.rpartition(".")[2])
    return f"{bytes.fromhex(found[1]).decode() if found else target.__module__}:{target.__qualname__}"


@cache
def _hints(target: type) -> dict[str, Any]:
    """Return the annotations of the fields; Any for those of a class in a function, whose names nobody else sees."""
    found = dict.fromkeys((f.name for f in fields(target)), Any)  # pyright: ignore[reportArgumentType]
    for base in reversed(target.__mro__):
        try:
            found |= {name: hint for name, hint in get_type_hints(base).items() if name in found}
        except NameError:
            continue
    return found


def _choices(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if isinstance(hint, UnionType) or get_origin(hint) is Union else (hint,)


@cache
def _kind(hint: Any) -> str | None:
    """Return of which kind the objects are that a field takes; "" for a dataclass of none, None for no object."""
    for choice in _choices(hint):
        for kind, known in KINDS.items():
            if getattr(choice, "__name__", "") == known.interface:
                return kind
        if isinstance(choice, type) and is_dataclass(choice):
            return next((kind for kind in KINDS if name_of(choice, kind) is not None), "")
    return None


def _first(target: type) -> str:
    """Return the parameter whose name may be left out: the first that is no object."""
    own, hints = [f.name for f in fields(target) if f.init], _hints(target)  # pyright: ignore[reportArgumentType]
    return next((name for name in own if _kind(hints[name]) is None), own[0])


def _default(f: Field[Any]) -> Any:
    return f.default if f.default_factory is MISSING else f.default_factory()


def _at_default(f: Field[Any], x: Any) -> bool:
    default = _default(f)
    return x is default or (type(x) is type(default) and bool(x == default))


def _value(x: Any, hint: Any, what: str, f: Field[Any] | None, types: Iterable[type] | None) -> Any:
    """Return the value of a field, or of an entry of a tuple."""
    choices, kind, default = _choices(hint), _kind(hint), None if f is None else _default(f)
    if kind and is_dataclass(x) and not isinstance(x, Spec):
        return x
    as_text = isinstance(x, Word) or (isinstance(x, str) and str not in choices and Any not in choices)
    if (x is None or (as_text and x == "none")) and (NoneType in choices or Any in choices or (f and default is None)):
        return None
    sequences = [choice for choice in choices if get_origin(choice) in (tuple, list)]
    if isinstance(x, list) and (sequences or Any in choices):
        entries = get_args(sequences[0]) if sequences else (Any, ...)
        each = [entries[0]] * len(x) if len(entries) == 1 or entries[-1] is ... else list(entries)
        if len(each) == len(x):
            found = [_value(y, one, what, None, types) for y, one in zip(x, each, strict=True)]
            return found if sequences and get_origin(sequences[0]) is list else tuple(found)
    if kind is not None and isinstance(x, str | Spec):
        return _object(x, hint, kind, what, default, types)
    if isinstance(x, Spec) and Any in choices:
        return x.build(None, types)
    if isinstance(x, Spec) and str in choices:
        return str(x)
    for choice in (bool, int, float, str, Path):
        if choice in choices or Any in choices:
            found = _scalar(x, choice, as_text=as_text)
            if found is not None:
                return found
    words = [PLAIN[choice] for choice in choices if choice in PLAIN] or ["a list, such as [1, 2]"]
    shown = str(x) if isinstance(x, str | Spec) else x
    raise ValueError(f"{what} must be {f'a {kind}' if kind else ' or '.join(words)}, not {shown!r}.")


def _object(x: Any, hint: Any, kind: str, what: str, default: Any, types: Iterable[type] | None) -> Any:
    spec = x if isinstance(x, Spec) else Spec.parse(x, what) if not isinstance(x, Word) else Spec(str(x))
    if not spec.name:  # solver.history=5 alone
        if default is None or default is MISSING:
            name, inner = what.rpartition(" ")[2], next(iter(spec.arguments))
            raise ValueError(f"{name} must be named for {name}.{inner}: without a name the objective decides which.")
        base = Spec.of(default, kind or None)
        spec = replace(base, arguments={**base.arguments, **spec.arguments})
    if kind:
        return spec.build(kind, types)
    return spec.build(None, [*(types or ()), *(choice for choice in _choices(hint) if isinstance(choice, type))])


def _scalar(x: Any, kind: type, *, as_text: bool) -> Any:
    """Return a value as one of a type; None if it is none."""
    if as_text:
        try:
            if kind is bool:
                return {"true": True, "false": False}.get(x.lower())
            if kind is int:
                return int(x) if x.lstrip("+-").isdigit() else int(y) if (y := float(x)).is_integer() else None
            found = kind(x)
        except (ValueError, OverflowError):
            return None
        return None if found != found else found
    if kind is float:
        return x if is_number(x) and x == x else None
    if kind is Path:
        return Path(x) if isinstance(x, str) else None
    return x if isinstance(x, kind) and (kind is bool or not isinstance(x, bool)) else None
