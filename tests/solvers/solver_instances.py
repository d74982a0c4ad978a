"""Solvers found by walking the package, and small local problems on which they are tried."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pkgutil
from typing import Any

import dualopt.solvers as package
from dualopt.lab.contracts.solver_problems import (
    OBJECTIVES,
    SIZES,
    arrays,
    by_client,
    first,
    in_turn,
    labels,
    linear,
    local_problem,
    move_problem,
    quadratic,
    starts,
    to_backend,
)
from dualopt.lab.contracts.test_solvers import applies


def discovered() -> dict[str, type]:
    """Return the public dataclass of every module of ``dualopt.solvers``."""
    found = {}
    for info in pkgutil.iter_modules(package.__path__):
        if info.name.startswith("_") or info.name in vars(package)["SHARED"]:
            continue
        module = importlib.import_module(f"{package.__name__}.{info.name}")
        own = [c for _, c in inspect.getmembers(module, inspect.isclass) if c.__module__ == module.__name__]
        public = [c for c in own if dataclasses.is_dataclass(c) and not c.__name__.startswith("_")]
        assert len(public) == 1, f"{info.name} must define one public dataclass, found {public}"
        found[info.name] = public[0]
    return found


__all__ = [
    "OBJECTIVES",
    "PAIRS",
    "SAMPLED",
    "SIZES",
    "SOLVERS",
    "applies",
    "arrays",
    "by_client",
    "discovered",
    "first",
    "in_turn",
    "labels",
    "linear",
    "local_problem",
    "move_problem",
    "quadratic",
    "starts",
    "to_backend",
]

# Solvers that see samples only: no tolerance, gap or dual point can be asked of them. See test_sampled.py.
SAMPLED: dict[str, Any] = {
    "sgd": package.SGD(step=0.05, batch=3),
    "sgd, epochs": package.SGD(step=0.05, batch=4, epochs=2, decay=0.9),
    "sgd, clipped": package.SGD(step=0.05, batch=3, max_norm=0.5),
    "sarah": package.Sarah(gamma=0.05, batch=3, refresh=3),
    "sarah, all rows": package.Sarah(gamma=0.05, batch=None, refresh=2),
}

SOLVERS: dict[str, Any] = {name: cls() for name, cls in discovered().items() if name not in SAMPLED}
SOLVERS["lbfgs_plain"] = package.LBFGS(precondition=False, history=5)


PAIRS = [(solver, objective) for solver in SOLVERS for objective, make in OBJECTIVES.items() if applies(solver, make())]
