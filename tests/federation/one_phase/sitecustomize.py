"""Put before everything else in PYTHONPATH: a client that keeps what it computed, whether or not it was counted.

This is what a plain stateful client does. ``python -m tests.federation`` shows that it misses the solution.
"""

from __future__ import annotations

import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from typing import Any

NAME = "dualopt.engine._host"


class Patched(MetaPathFinder):
    """Changes the host when it is imported."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path, target) if name == NAME else None
        if spec is not None and spec.loader is not None:
            spec.loader = Hasty(spec.loader)
        return spec


class Hasty(Loader):
    def __init__(self, loader: Any) -> None:
        self.loader = loader

    def create_module(self, spec: Any) -> Any:
        return self.loader.create_module(spec)

    def exec_module(self, module: Any) -> None:
        self.loader.exec_module(module)
        settle = module.Host._commit
        module.Host._commit = lambda self, request: settle(self, request._replace(clients=None))


sys.meta_path.insert(0, Patched())
