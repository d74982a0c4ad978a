"""Finding losses, solvers and algorithms by the name of their module: a new file needs no entry in any list."""

from __future__ import annotations

import ast
import difflib
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import is_dataclass
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

__all__ = ["Discovered", "discover", "summary", "syntax", "unknown_name"]


def discover(package: ModuleType) -> dict[str, type]:
    """Return the public class of every module of a package.

    A module counts unless its name begins with an underscore, or the package names it in ``SHARED``. It defines exactly
    one dataclass that its ``__all__`` names; the key is the name of the module with ``_`` turned into ``-``.

    Parameters
    ----------
    package : module
        ``dualopt.methods``, ``dualopt.losses``, ``dualopt.solvers``, or a package of the user's built alike.

    Returns
    -------
    dict of str to type
        In alphabetical order of the names.

    Raises
    ------
    TypeError
        If a module does not define exactly one public dataclass.

    Examples
    --------
    >>> import dualopt.losses
    >>> discover(dualopt.losses)["smoothed-hinge"].__name__
    'SmoothedHinge'
    """
    return dict(Discovered(package))


class Discovered(Mapping[str, Any]):
    """What `discover` finds, by name; a module is imported when its class is looked up.

    Parameters
    ----------
    package : module
        As in `discover`.
    unlisted : dict, optional
        Further entries.

    Examples
    --------
    >>> import dualopt.losses
    >>> found = Discovered(dualopt.losses)
    >>> "hinge" in found, found.name_of(found["smoothed-hinge"])
    (True, 'smoothed-hinge')
    """

    def __init__(self, package: ModuleType, unlisted: Mapping[str, Any] | None = None) -> None:
        shared = getattr(package, "SHARED", ())
        own = {entry.name for entry in pkgutil.iter_modules(package.__path__) if not entry.name.startswith("_")}
        self._modules = {
            name.replace("_", "-"): f"{package.__name__}.{name}" for name in sorted(own.difference(shared))
        }
        self._unlisted = unlisted or {}

    def __getitem__(self, name: str) -> Any:
        return _only_class(self._modules[name]) if name in self._modules else self._unlisted[name]

    def __contains__(self, name: object) -> bool:
        return name in self._modules or name in self._unlisted

    def __iter__(self) -> Iterator[str]:
        return iter([*self._modules, *self._unlisted])

    def __len__(self) -> int:
        return len(self._modules) + len(self._unlisted)

    def name_of(self, target: type) -> str | None:
        """Return the name of a class; None if it is none of these. Nothing is imported."""
        for name, own in self._unlisted.items():
            if own is target:
                return name
        modules = {module: name for name, module in self._modules.items()}
        name = modules.get(target.__module__)
        return name if name is not None and self[name] is target else None


def unknown_name(argument: str, name: str, known: Iterable[str]) -> ValueError:
    """Return the error that lists the names that an argument takes and proposes a close one.

    Examples
    --------
    >>> str(unknown_name("x", "gradients", ["round", "gradient"]))
    "x must be one of round, gradient; not 'gradients' (did you mean gradient?)."
    """
    known = list(known)
    close = difflib.get_close_matches(name, known, 1) if isinstance(name, str) else []
    hint = f" (did you mean {close[0]}?)" if close else ""
    return ValueError(f"{argument} must be one of {', '.join(known)}; not {name!r}{hint}.")


def summary(documented: object) -> str:
    r"""Return the first line of a docstring, or of what has one, in plain text.

    Examples
    --------
    >>> import dualopt.losses
    >>> summary(dualopt.losses.Hinge)
    'Amount by which a margin falls short of 1, phi(z; y) = max(0, 1 - y z).'
    """
    text = documented if isinstance(documented, str) else inspect.getdoc(documented)
    first = (text or "").partition("\n")[0]
    formulas = re.sub(r":math:`([^`]*)`", lambda match: _plain(match[1]), first)
    return re.sub(r":[a-z]+:`~?(?:[\w.]*\.)?(\w+)`", r"\1", formulas).replace("`", "")  # links are names


def syntax(module: str) -> ast.Module:
    """Return the syntax tree of a module, which is not imported; the packages that it is in are.

    Raises
    ------
    ModuleNotFoundError
        If there is no such module.

    Examples
    --------
    >>> ast.get_docstring(syntax("dualopt.losses.hinge"))
    'The hinge loss of support vector machines.'
    """
    found = find_spec(module)
    if found is None or found.origin is None:
        raise ModuleNotFoundError(f"module {module} has no source.", name=module)
    return ast.parse(Path(found.origin).read_bytes())


def _plain(formula: str) -> str:
    r"""Write a short TeX formula in plain text: ``e^{-y z}`` as ``e^(-y z)``, ``\theta`` as ``theta``."""
    formula = re.sub(r"\\text\{(\w+)\}", r"\1", formula)
    for tex, plain in ((r"\leftarrow", "<-"), (r"\nabla", r"\grad"), (r"\,", " "), ("{", "("), ("}", ")")):
        formula = formula.replace(tex, plain)
    formula = re.sub(r"\\([A-Za-z]+)", r" \1", formula)
    return re.sub(r"(?<=\() | (?= )", "", formula).strip()


def _only_class(module_name: str) -> type:
    module = importlib.import_module(module_name)
    public = [getattr(module, name) for name in module.__all__]
    own = [x for x in public if isinstance(x, type) and is_dataclass(x) and x.__module__ == module_name]
    if len(own) != 1:
        raise TypeError(f"module {module_name} must define exactly one public dataclass, not {len(own)}.")
    return own[0]
