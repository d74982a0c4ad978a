"""Solvers found by walking the package, and small local problems on which they are tried."""

from __future__ import annotations

from typing import Any

import dualopt.solvers as package
from dualopt.lab.contracts.solver_problems import *  # noqa: F403
from dualopt.lab.contracts.solver_problems import OBJECTIVES
from dualopt.lab.contracts.test_solvers import applies
from dualopt.spec.discover import discover

# Solvers that see samples only: no tolerance, gap or dual point can be asked of them. See test_sampled.py.
SAMPLED: dict[str, Any] = {
    "sgd": package.SGD(step=0.05, batch=3),
    "sgd, epochs": package.SGD(step=0.05, batch=4, epochs=2, decay=0.9),
    "sgd, clipped": package.SGD(step=0.05, batch=3, max_norm=0.5),
    "sarah": package.Sarah(gamma=0.05, batch=3, refresh=3),
    "sarah, all rows": package.Sarah(gamma=0.05, batch=None, refresh=2),
}

SOLVERS: dict[str, Any] = {
    name.replace("-", "_"): kind() for name, kind in discover(package).items() if name not in SAMPLED
}
SOLVERS["lbfgs_plain"] = package.LBFGS(precondition=False, history=5)


PAIRS = [(solver, objective) for solver in SOLVERS for objective, make in OBJECTIVES.items() if applies(solver, make())]
