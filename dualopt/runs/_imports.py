"""The modules that a plug-in imports from its own folder or package, and those that they import: read, never run."""

from __future__ import annotations

import ast
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType

from dualopt.spec.plugins import GROUPS, entry_points

__all__ = ["own_files"]

Parts = tuple[str, ...]
INSTALLED = {"site-packages", "dist-packages"}  # folders of installed packages, of another environment too
PACKAGE = Path(__file__).resolve().parents[1]  # this one, which is nobody's own where it lies beside a plug-in


def own_files(module: ModuleType) -> list[Path]:
    """Return the file of a module, and those of its own folder or package that it needs, sorted.

    For a module of a package these are modules of the same package; for a file of its own, what is beside it or below.
    All import statements count, those inside of functions too. What ``importlib`` imports under a computed name is not
    seen. Of the standard library and of installed packages that declare no plug-ins it is the file alone.

    Parameters
    ----------
    module : ModuleType
        A module with a file.

    Examples
    --------
    >>> import tabnanny  # of the standard library
    >>> [path.name for path in own_files(tabnanny)]
    ['tabnanny.py']
    """
    path = Path(module.__file__ or "").resolve()
    spec = getattr(module, "__spec__", None)
    name = spec.name if module.__name__ == "__main__" and spec is not None else module.__name__  # of python -m
    top, root = _place(name, path)
    if _is_library(path) and top not in _declaring():
        return [path]
    found, waiting = {path}, [path]
    while waiting:
        for parts in _imported(waiting.pop(), root):
            if top and parts[0] != top:
                continue
            for file in _files(root, parts):
                if file not in found and PACKAGE not in file.parents:
                    found.add(file)
                    waiting.append(file)
    return sorted(found)


def _place(name: str, path: Path) -> tuple[str, Path]:
    """Return the package of a module, "" if it has none, and the folder in which its imports are looked up."""
    parts = name.split(".")
    folders = parts if path.name == "__init__.py" else parts[:-1]
    if not folders or tuple(folders) != path.parent.parts[-len(folders) :]:  # a file, a script, or imported by its path
        return "", path.parent
    return folders[0], path.parents[len(folders)]


def _is_library(path: Path) -> bool:
    places = {Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "purelib", "platlib")}
    return not INSTALLED.isdisjoint(path.parts) or any(place in path.parents for place in places)


def _declaring() -> set[str]:
    """Return the packages that declare plug-ins."""
    points = (point for kind in GROUPS for same in entry_points(kind).values() for point in same)
    return {point.value.partition(":")[0].partition(".")[0] for point in points}


def _imported(path: Path, root: Path) -> Iterator[Parts]:
    """Yield the names of modules that a file imports, or may import: the last part may also be a thing in a module."""
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):  # it cannot be imported either
        return
    package = path.relative_to(root).parts[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (tuple(alias.name.split(".")) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level <= len(package) + 1:
            base = package[: len(package) - node.level + 1] if node.level else ()
            base += tuple(node.module.split(".")) if node.module else ()
            yield from ((*base, alias.name) for alias in node.names)


def _files(root: Path, parts: Iterable[str]) -> Iterator[Path]:
    """Yield the files that an import of this name runs: of all packages on the way, and of the module."""
    folder = root
    for part in parts:
        for file in (folder / f"{part}.py", folder / part / "__init__.py"):
            if file.is_file():
                yield file
        folder = folder / part
