"""Which code results depend on, as a hash: results that are stored are not those of other code.

The rule is simple and on the safe side. It covers every byte of every ``.py`` file of ``dualopt``, but for what only
reads options, writes and draws: ``app/`` and ``runs/plotting/``. Results of figures depend on ``theory`` and
``figures`` too, but for the modules named below; and on the file of every class from elsewhere that takes part, with
what it imports from its own folder or package (:mod:`dualopt.runs._imports`).
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from dualopt.runs._imports import own_files

__all__ = ["module_sources", "sources"]

LEFT_OUT = {
    "dualopt": ("app", "runs/plotting", "__main__.py"),
    "theory": ("_program.py", "_report.py", "__main__.py"),
    "figures": ("_drawing.py", "_making.py", "_output.py", "_panels.py", "_program.py", "_store.py", "__main__.py"),
}


UNCHANGED = sys.stdlib_module_names | {"numpy"}  # packages whose classes and functions do not count


def sources(objects: Iterable[Any] = (), *, packages: Iterable[str] = ()) -> str:
    """Return a hash of the code of ``dualopt``, of the classes of some objects, and of some packages.

    Parameters
    ----------
    objects : iterable
        Methods, objectives and others; the fields of a dataclass count too, and so do functions, with what
        `functools.partial` gives them.
    packages : iterable of str
        Names of packages beside ``dualopt``.

    Examples
    --------
    >>> from dualopt import DualFL
    >>> sources() == sources([DualFL()]), len(sources()) == 20, sources() == sources(packages=["theory"])
    (True, True, False)
    """
    own = sorted({path for x in objects for path in _files_of(x)})
    parts = [_package(name) for name in ("dualopt", *packages)] + [_hash([path]) for path in own]
    return hashlib.sha256("".join(parts).encode()).hexdigest()[:20]


def module_sources(module: ModuleType) -> str:
    """Return a hash of a module from elsewhere and of what it imports from its own folder or package."""
    return _hash(own_files(module))


def _files_of(x: Any) -> Iterator[Path]:
    """Yield the files of the classes of an object and of its fields, or of a function; not those of this package."""
    if isinstance(x, partial):
        for part in (x.func, *x.args, *x.keywords.values()):
            yield from _files_of(part)
    for kind in (*type(x).__mro__, *([x] if isinstance(x, FunctionType) else ())):
        module = sys.modules.get(kind.__module__)
        file = getattr(module, "__file__", None)
        if str(kind.__module__).partition(".")[0] in UNCHANGED:
            continue
        if module is not None and file is not None and Path(__file__).parents[1] not in Path(file).resolve().parents:
            yield from own_files(module)
    if is_dataclass(x):
        for f in fields(x):
            yield from _files_of(getattr(x, f.name, None))


@cache
def _package(name: str) -> str:
    """Return the hash of a package; the files are read once."""
    spec = find_spec(name)
    folders = [] if spec is None else spec.submodule_search_locations or []
    left_out = LEFT_OUT.get(name, ())
    found = []
    for folder in map(Path, folders):
        found += [p for p in folder.rglob("*.py") if not any(p.is_relative_to(folder / name) for name in left_out)]
    return _hash(sorted(found))


def _hash(paths: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        content = path.read_bytes()
        digest.update(f"{path.name} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()
