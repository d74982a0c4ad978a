"""Changes a module when it is imported: for files ``sitecustomize.py``, which Python runs before everything else."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from typing import Any

__all__ = ["when_imported"]


def when_imported(name: str, change: Callable[[Any], Any]) -> None:
    """Have ``change(module)`` called with the module of this name as soon as it is there."""
    sys.meta_path.insert(0, _Finder(name, change))


class _Finder(MetaPathFinder):
    def __init__(self, name: str, change: Callable[[Any], Any]) -> None:
        self.name, self.change = name, change

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path, target) if name == self.name else None
        if spec is not None and spec.loader is not None:
            spec.loader = _Changing(spec.loader, self.change)
        return spec


class _Changing(Loader):
    def __init__(self, loader: Any, change: Callable[[Any], Any]) -> None:
        self.loader, self.change = loader, change

    def create_module(self, spec: Any) -> Any:
        return self.loader.create_module(spec)

    def exec_module(self, module: Any) -> None:
        self.loader.exec_module(module)
        self.change(module)
