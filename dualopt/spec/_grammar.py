"""The grammar of specs: one tree of names and values for text, JSON and TOML."""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn, Self

__all__ = ["Tree", "Word", "pairs", "toml"]

DEEPEST = 20
FORM = "must be of the form NAME: name=value, name=value"
BARE = re.compile(r"[A-Za-z_/.][\w./+-]*")
NAME = re.compile(r"[\w./+-]+(:[A-Za-z_][\w-]*)?")
TOKEN = re.compile(
    r"""\s*(?:(?P<quoted>"(?:[^"\\]|\\.)*")|(?P<mark>[\[\](),:=])|
    (?P<bare>(?:[^\s\[\](),:="][^\[\](),:="]*\.py|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+):[A-Za-z_][\w-]*(?=\s*(?:[:=,)\]]|$))
    |[A-Za-z_]\w*:[A-Za-z_][\w-]*(?=\s*(?:[:,)\]]|$))
    |[^\s\[\](),:="](?:[^\[\](),:="]*[^\s\[\](),:="])?))\s*""",
    re.VERBOSE,
)


class Word(str):
    """A text without quotes: a word, a number, or a name, as the field wants it."""


@dataclass(frozen=True)
class Tree:
    r"""A name and arguments.

    Parameters
    ----------
    name : str
        The name of a class.
    arguments : dict
        Values by parameter: texts, numbers, truth values, None, lists of these, and trees. The one of "" has no name.

    Examples
    --------
    >>> tree = Tree.parse("fedsplit: step=0.1, stop=gap:2")
    >>> print(tree)
    fedsplit: step=0.1, stop=(gap: 2)
    >>> Tree.from_json('{"rand-k": {"size": 3}}') == Tree.from_toml("[rand-k]\nsize = 3")
    True
    """

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str, what: str = "spec") -> Self:
        """Read a spec from text; ``what`` names it in messages.

        Raises
        ------
        ValueError
            If the text is of another form, a parameter comes twice, or objects are nested too deeply.
        """
        return Reader(text, what, cls).whole(Reader.spec)

    @classmethod
    def from_json(cls, source: Any, what: str = "spec") -> Self:
        """Read a spec from JSON, as text or as tables and lists.

        Raises
        ------
        ValueError
            If it is no table of one name with a table of parameters, or one of these comes twice.
        """
        if isinstance(source, str):
            source = _loaded(lambda: json.loads(source, object_pairs_hook=lambda found: _once(found, what)), what)
        found = _tree(source, what, cls)
        return found if isinstance(found, cls) else _refuse_form(what, source)

    @classmethod
    def from_toml(cls, text: str, what: str = "spec") -> Self:
        """Read a spec from TOML, whose empty tables stand for None where an object is a parameter.

        Raises
        ------
        ValueError
            If it is no TOML, or no table of one name.
        """
        return cls.from_json(_loaded(lambda: tomllib.loads(text), what), what)

    def given(self, arguments: Mapping[str, Any], what: str = "spec") -> Self:
        """Return the spec with further parameters, in place of those of the same name.

        Examples
        --------
        >>> print(Tree.parse("dualfl: solver=lbfgs").given({"solver.history": "5", "stop": "steps=3"}))
        dualfl: solver=(lbfgs: history=5), stop=(steps: 3)
        """
        found = dict(self.arguments)
        for name, x in arguments.items():
            value = Reader(x, what, type(self)).whole(Reader.value) if type(x) is str else x
            _put(found, name, value, type(self))
        return replace(self, arguments=found)

    def __str__(self) -> str:
        """Return the text."""
        name = self.name if NAME.fullmatch(self.name) else json.dumps(self.name)
        listed = [f"{key}={_text(x)}" if key else _text(x, alone=True) for key, x in self.arguments.items()]
        return f"{name}: {', '.join(listed)}" if listed else name

    def to_json(self) -> dict[str, Any]:
        """Return tables, lists, numbers and texts; numbers that JSON lacks are texts."""
        return {self.name: {key: _json(x) for key, x in self.arguments.items()}}

    def to_toml(self) -> str:
        """Return the same as a TOML document."""
        lines = [f"{_key(key)} = {toml(x)}" for key, x in self.arguments.items()]
        return "\n".join([f"[{_key(self.name)}]", *lines, ""])


def pairs(texts: Iterable[str], argument: str) -> dict[str, str]:
    """Read ``["rho=0", "nu=0.1"]`` as ``{"rho": "0", "nu": "0.1"}``.

    Raises
    ------
    ValueError
        If a text is of another form, or a name comes twice.

    Examples
    --------
    >>> pairs(["stop=gradient=1e-8"], "algorithm")
    {'stop': 'gradient=1e-8'}
    """
    found: list[tuple[str, str]] = []
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise ValueError(f"{argument} must be of the form name=value, not {text!r}.")
        found.append((name, value))
    return _once(found, argument)


def toml(value: Any) -> str:
    """Return a value as TOML has it in one line."""
    if isinstance(value, Tree):
        return f"{{{_key(value.name)} = {{{', '.join(f'{_key(k)} = {toml(x)}' for k, x in value.arguments.items())}}}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml, value))}]"
    if isinstance(value, float) and not isinstance(value, bool):
        return repr(float(value))
    return "{}" if value is None else json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


class Reader:
    """The text of one spec, read from its beginning to its end."""

    def __init__(self, text: str, what: str, make: type[Tree]) -> None:
        self.text, self.what, self.make, self.place, self.depth = text, what, make, 0, 0
        self.tokens: list[tuple[str, str]] = []
        end = 0
        while end < len(text):
            found = TOKEN.match(text, end)
            if found is None:
                self.refuse()
            self.tokens.append((found.lastgroup or "", found[found.lastgroup or 0]))
            end = found.end()

    def whole(self, part: Callable[[Reader], Any]) -> Any:
        found = part(self)
        return found if self.place == len(self.tokens) else self.refuse()

    def refuse(self) -> NoReturn:
        raise ValueError(f"{self.what} {FORM}; not {self.text!r}.")

    def takes(self, *marks: str) -> bool:
        """Go on behind one of the marks, if one is next."""
        found = self.tokens[self.place : self.place + 1]
        self.place += (is_next := bool(found) and found[0][0] == "mark" and found[0][1] in marks)
        return is_next

    def word(self) -> str:
        group, text = self.tokens[self.place] if self.place < len(self.tokens) else ("mark", "")
        if group == "mark":
            self.refuse()
        self.place += 1
        return Word(text) if group == "bare" else _loaded(lambda: json.loads(text), self.what)

    def spec(self) -> Tree:
        name = self.word()
        return self.make(str(name), self.arguments(many=True) if self.takes(":", "=") else {})

    def arguments(self, *, many: bool) -> dict[str, Any]:
        found: dict[str, Any] = {}
        alone: list[Any] = []
        more = True
        while more:
            name = ""
            if self.place + 1 < len(self.tokens) and self.tokens[self.place + 1] == ("mark", "="):
                name = str(self.word())
                self.place += 1
            if name in found and not isinstance(found[name], Tree):
                raise ValueError(f"{self.what} {name} is given twice.")
            if name:
                _put(found, name, self.value(), self.make)
            else:
                alone.append(self.value())
            more = many and self.takes(",")
        if alone:  # several values without a name are one tuple
            found[""] = alone[0] if len(alone) == 1 else alone
        return found

    def value(self) -> Any:
        self.depth += 1
        _require_shallow(self.depth, self.what)
        if self.takes("["):
            found: Any = []
            while not self.takes("]"):
                found.append(self.value())
                if not self.takes(","):
                    if not self.takes("]"):
                        self.refuse()
                    break
        elif self.takes("("):
            found = self.spec()
            if not self.takes(")"):
                self.refuse()
        else:
            found = self.word()
            if self.takes(":", "="):
                found = self.make(str(found), self.arguments(many=False))
        self.depth -= 1
        return found


def _put(arguments: dict[str, Any], name: str, x: Any, make: type[Tree]) -> None:
    """Set a parameter, perhaps of an object within: ``solver.history``."""
    outer, _, inner = name.partition(".")
    before = arguments.get(outer)
    if inner:
        nested = dict(before.arguments) if isinstance(before, Tree) else {}
        _put(nested, inner, x, make)
        known = before.name if isinstance(before, Tree) else before if isinstance(before, str) else ""
        arguments[outer] = make(str(known), nested)
    elif isinstance(before, Tree) and not before.name:
        spec = x if isinstance(x, Tree) else make(str(x))
        arguments[outer] = replace(spec, arguments={**spec.arguments, **before.arguments})
    else:
        arguments[outer] = x


def _require_shallow(depth: int, what: str) -> None:
    if depth > DEEPEST:
        raise ValueError(f"{what} must not be nested more than {DEEPEST} times.")


def _refuse_form(what: str, found: Any) -> NoReturn:
    raise ValueError(f'{what} must be a table of one name, such as {{"fedsplit": {{"step": 0.1}}}}, not {found!r}.')


def _once(found: Iterable[tuple[str, Any]], what: str) -> dict[str, Any]:
    table: dict[str, Any] = {}
    for name, value in found:
        if name in table:
            raise ValueError(f"{what} {name} is given twice.")
        table[name] = value
    return table


def _loaded(load: Callable[[], Any], what: str) -> Any:
    try:
        return load()
    except (json.JSONDecodeError, tomllib.TOMLDecodeError) as error:
        raise ValueError(f"{what} cannot be read: {error}.") from None
    except RecursionError:
        raise ValueError(f"{what} must not be nested more than {DEEPEST} times.") from None


def _tree(x: Any, what: str, make: type[Tree], depth: int = 0) -> Any:
    """Return what JSON has, with trees for tables."""
    _require_shallow(depth, what)
    if isinstance(x, list):
        return [_tree(y, what, make, depth + 1) for y in x]
    if not isinstance(x, dict):
        return x
    if not x and depth:
        return None
    (name, arguments), *others = x.items() or [("", None)]
    if others or not isinstance(arguments, dict):
        _refuse_form(what, x)
    return make(name, {key: _tree(y, what, make, depth + 1) for key, y in arguments.items()})


def _text(x: Any, *, alone: bool = False) -> str:
    if x is None or isinstance(x, bool):
        return "none" if x is None else str(x).lower()
    if isinstance(x, list) and alone and len(x) > 1:  # values without a name
        return ", ".join(map(_text, x))
    if isinstance(x, list):
        return f"[{', '.join(map(_text, x))}]"
    if isinstance(x, Tree):
        return f"({x})" if x.arguments else str(x)
    if not isinstance(x, str):
        return repr(x)
    plain = BARE.fullmatch(x) and x not in ("none", "suggested", "true", "false") and not _is_numeral(x)
    return x if plain or (isinstance(x, Word) and TOKEN.fullmatch(x)) else json.dumps(x)


def _is_numeral(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _json(x: Any) -> Any:
    if isinstance(x, list):
        return [_json(y) for y in x]
    if isinstance(x, float) and not math.isfinite(x):
        return repr(x)
    return x.to_json() if isinstance(x, Tree) else None if isinstance(x, Word) and x == "none" else x


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else toml(name)
