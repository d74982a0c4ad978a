"""Finding losses, solvers and algorithms by the name of their module: a new file needs no entry in any list."""

from __future__ import annotations

import difflib
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterable
from dataclasses import is_dataclass
from types import ModuleType

__all__ = ["discover", "summary", "unknown_name"]


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
    shared = getattr(package, "SHARED", ())
    names = {entry.name for entry in pkgutil.iter_modules(package.__path__) if not entry.name.startswith("_")}
    return {
        name.replace("_", "-"): _only_class(f"{package.__name__}.{name}") for name in sorted(names.difference(shared))
    }


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
    r"""Return the first line of a docstring in plain text.

    Examples
    --------
    >>> import dualopt.losses
    >>> summary(dualopt.losses.Hinge)
    'Amount by which a margin falls short of 1, phi(z; y) = max(0, 1 - y z).'
    """
    first = (inspect.getdoc(documented) or "").partition("\n")[0]
    return re.sub(r":math:`([^`]*)`", lambda match: _plain(match[1]), first).replace("`", "")


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
