"""Methods, losses, regularisers, solvers, compressors and others, data sets and figures that live outside this package.

A name that a user types may be one of this package; ``FILE.py:Name`` or ``package.module:Name``; or the name of an
entry point that an installed package declares, here for a method::

    [project.entry-points."dualopt.methods"]
    damped = "my_package.damped:Damped"

Names of this package come first: an entry point of the same name is listed as hidden. An entry point that cannot be
imported is named when it is asked for, and the others work.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from dualopt.spec._kinds import KINDS
from dualopt.spec.discover import summary, unknown_name
from dualopt.spec.plugins import files
from dualopt.spec.plugins.requirements import FORMS, fault, is_torch_module

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = [
    "GROUPS",
    "entry_points",
    "find",
    "is_module",
    "is_spelled",
    "listed",
    "load",
    "load_module",
    "origin",
    "record",
]

GROUPS = ("methods", "losses", "regularisers", "solvers", "compressors", "stopping", "participation", "preparation")
GROUPS += ("objectives", "networks", "partitions", "claims", "instances", "data", "figures")
"""The kinds of plug-ins; ``dualopt.KIND`` is the group of their entry points."""

SPELLED = re.compile(r"(?P<module>.+?\.py|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*):(?P<name>[A-Za-z_][\w-]*)")


def is_spelled(name: str) -> bool:
    """Tell whether a name says where the thing is: ``FILE.py:Name`` or ``package.module:Name``.

    Examples
    --------
    >>> [is_spelled(name) for name in ("my.py:Damped", "package.module:Damped", "dualfl", "dualfl:rho=0")]
    [True, True, False, False]
    """
    return SPELLED.fullmatch(name) is not None


def is_module(name: str, argument: str) -> bool:
    """Tell whether a spelled name is that of a module of PyTorch, or of a function, which is to return one.

    Raises
    ------
    ValueError
        If the file is missing or cannot be imported.
    """
    place, _, own = name.rpartition(":")
    thing = getattr(load_module(place, f"{argument} {name!r}"), own, None)
    return inspect.isfunction(thing) or is_torch_module(thing)


def find(kind: str, name: str, argument: str, known: Iterable[str] = ()) -> Any:
    """Return the plug-in of a name that is none of this package.

    Parameters
    ----------
    kind : str
        One of :data:`GROUPS`.
    name : str
        As a user typed it.
    argument : str
        The argument that took it, for messages.
    known : iterable of str
        The names of this package, for the message about an unknown one.

    Raises
    ------
    ValueError
        If there is none, it cannot be imported, or it is not of the kind; one sentence says what is wrong, and where.
    """
    if is_spelled(name):
        return load(kind, name, argument)
    declared = entry_points(kind)
    if name not in declared:
        raise unknown_name(argument, name, [*known, *declared])
    points = declared[name]
    if len(points) > 1:
        raise ValueError(f"{argument} {name!r} is the name of two plug-ins: {' and '.join(map(_words, points))}.")
    return _checked(kind, points[0].value, f"{argument} {name!r} ({_words(points[0])})")


def load(kind: str, name: str, argument: str) -> Any:
    """Return what ``FILE.py:Name`` or ``package.module:Name`` spells.

    Parameters
    ----------
    kind : str
        One of :data:`GROUPS`.
    name : str
        The spelling.
    argument : str
        The argument that took it, for messages.

    Returns
    -------
    type, function, Claim or module
        The class; of a partition the function, of an instance either, of a claim the claim, of data and figures the
        module.

    Raises
    ------
    ValueError
        If the file is missing or cannot be imported, or has nothing of this name and kind.

    Examples
    --------
    >>> load("losses", "dualopt.losses.huber:Huber", "loss").__name__
    'Huber'
    """
    return _checked(kind, name, f"{argument} {name!r}")


def load_module(name: str, what: str) -> ModuleType:
    """Import a file or a module; whatever goes wrong is one sentence.

    Raises
    ------
    ValueError
        If it is missing or cannot be imported.
    """
    is_file = name.endswith(".py")
    if is_file and not Path(name).is_file():
        raise ValueError(f"{what}: there is no file {name!r}.")
    if not is_file and "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))
    try:
        return files.module_of(Path(name)) if is_file else importlib.import_module(name)
    except SyntaxError as error:
        text = (error.text or "").strip()
        where = f"file {error.filename!r}, line {error.lineno}"
        raise ValueError(f"{what}: {where} is no Python, {error.msg}: {text}.") from None
    except ModuleNotFoundError as error:
        raise ValueError(f"{what}: there is no module {error.name!r}{_line(error, name)}.") from None
    except (Exception, SystemExit) as error:
        said = " ".join(str(error).split())
        raise ValueError(f"{what}: importing it raises {type(error).__name__}: {said}{_line(error, name)}.") from None


def entry_points(kind: str) -> Mapping[str, list[EntryPoint]]:
    """Return what installed packages declare, by name; nothing is imported, and several packages may share a name."""
    from importlib import metadata  # takes as long to import as all of this package that a list needs

    found: dict[str, list[EntryPoint]] = {}
    for point in metadata.entry_points(group=f"dualopt.{kind}"):
        same = found.setdefault(point.name, [])
        if (point.value, _package(point)) not in [(other.value, _package(other)) for other in same]:
            same.append(point)
    return dict(sorted(found.items()))


def listed(kind: str, known: Iterable[str]) -> dict[str, str]:
    """Return one line for the entry points of a kind, by name: what they are, or why they cannot be used."""
    lines = {}
    for name, points in entry_points(kind).items():
        source = f" ({' and '.join(map(_words, points))})"
        if name in known:
            lines[f"{name} (hidden)"] = f"hidden by dualopt's own {name}{source}"
            continue
        try:
            found = find(kind, name, kind)
        except ValueError as error:
            lines[name] = f"cannot be used: {error}"
        else:
            text = found.NAMES[name] if kind == "data" else summary(found)
            lines[name] = text + source
    return lines


def origin(thing: Any) -> dict[str, str] | None:
    """Return the file that defines a class, a function, a claim or a module, and its SHA-256; None without a file."""
    module = thing if isinstance(thing, ModuleType) else sys.modules[_module(thing)]
    path = getattr(module, "__file__", None)
    if path is None:
        return None
    found = files.NAME.fullmatch(module.__name__.rpartition(".")[2])  # as imported, whatever has become of it since
    return {"file": path, "sha256": found[2] if found else files.digest(Path(path))}


def record(names: Mapping[str, Iterable[str | None]], known: Mapping[str, Iterable[str]]) -> dict[str, Any]:
    """Return what results say of the plug-ins they come from: for each name as typed its file and hash.

    What the file itself imports is not part of this hash, but of that of all code (:mod:`dualopt.runs._sources`).

    Parameters
    ----------
    names : dict of str to iterable of str
        The names that were used, by kind; None counts as none.
    known : dict of str to iterable of str
        The names of this package, by kind.
    """
    found: dict[str, Any] = {}
    options = {known.plug_ins: option for option, known in KINDS.items()} | {"partitions": "partition"}
    for kind, used in names.items():
        for name in used:
            if name is None or name in known[kind]:  # entry points are files of all installed packages: seldom read
                continue
            if is_spelled(name) or name in entry_points(kind):
                found[name] = origin(find(kind, name, options.get(kind, kind)))
    return found


def _checked(kind: str, spelling: str, what: str) -> Any:
    place, _, name = spelling.rpartition(":")
    if not place:
        raise ValueError(f"{what}: an entry point must be of the form module:Name, not {spelling!r}.")
    module = load_module(place, what)
    if kind in ("data", "figures"):
        problem = fault(kind, module, name)
        if problem:
            raise ValueError(f"{what}: {problem}.")
        return module
    word, is_one = FORMS.get(kind, ("class", inspect.isclass))
    if not is_one(getattr(module, name, None)):
        own = [n for n, thing in vars(module).items() if is_one(thing) and _module(thing) == module.__name__]
        close = difflib.get_close_matches(name, own, 1)
        hint = f" (did you mean {close[0]}?)" if close else ""
        raise ValueError(f"{what}: {place} has no {word} {name}{hint}; it has {', '.join(own) or 'none'}.")
    problem = fault(kind, getattr(module, name), name)
    if problem:
        raise ValueError(f"{what}: {problem}.")
    return getattr(module, name)


def _module(thing: Any) -> str:
    """Return the name of the module of a class or a function; of a claim, that of the function that compares."""
    return getattr(thing, "compare", thing).__module__


def _line(error: BaseException, name: str) -> str:
    """Say in which line of the file an error was raised, where its own lines were running."""
    numbers = []
    step = error.__traceback__
    while step is not None:
        if step.tb_frame.f_code.co_filename == str(Path(name).absolute()):
            numbers.append(step.tb_lineno)
        step = step.tb_next
    return f", line {numbers[-1]} of {name}" if numbers else ""


def _package(point: EntryPoint) -> str:
    return "" if point.dist is None else point.dist.name


def _words(point: EntryPoint) -> str:
    return f"{point.value} of package {_package(point) or 'unknown'}"
