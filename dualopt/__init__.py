"""Duality-based federated convex optimization whose theory can be run.

The public names, by what they are for:

* problems: :func:`linear_model`, :class:`LinearModel`, :class:`Quadratic`, :class:`LocalProblem`, and the losses;
* methods: :class:`DualFL`, :class:`OptimizedDualFL`;
* local solvers in :mod:`dualopt.solvers`, their stopping rules in :mod:`dualopt.stopping`;
* running: :func:`run`, :func:`iterate`, :class:`Trace`, :func:`certificate`;
* references: :func:`newton`, :func:`cvxpy`, :func:`solve`.
"""

from dualopt.algorithms import DualFL, OptimizedDualFL
from dualopt.certificate import certificate
from dualopt.federation import Snapshot, iterate, run
from dualopt.losses import (
    AbsoluteDeviation,
    Hinge,
    Huber,
    Logistic,
    Multinomial,
    SmoothedHinge,
    Squared,
)
from dualopt.objectives import LinearModel, LocalProblem, Quadratic, linear_model
from dualopt.participation import Full, Round
from dualopt.reference import NotOptimalError, Reference, cvxpy, newton, solve
from dualopt.trace import Trace

__version__ = "0.1.0"

__all__ = [
    "AbsoluteDeviation",
    "DualFL",
    "Full",
    "Hinge",
    "Huber",
    "LinearModel",
    "LocalProblem",
    "Logistic",
    "Multinomial",
    "NotOptimalError",
    "OptimizedDualFL",
    "Quadratic",
    "Reference",
    "Round",
    "SmoothedHinge",
    "Snapshot",
    "Squared",
    "Trace",
    "certificate",
    "cvxpy",
    "iterate",
    "linear_model",
    "newton",
    "run",
    "solve",
]
