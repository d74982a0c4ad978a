"""The modules of this package, which are searched for data sets and partitions."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from types import ModuleType

__all__ = ["modules"]


def modules() -> Iterator[ModuleType]:
    """Import and yield the modules of `dualopt.problem.data`, in alphabetical order."""
    package = importlib.import_module("dualopt.problem.data")
    for entry in sorted(pkgutil.iter_modules(package.__path__), key=lambda entry: entry.name):
        yield importlib.import_module(f"dualopt.problem.data.{entry.name}")
