"""Problems of one's own on which a claimed rate is put to the test: their minimisers, and how well these are known."""

from __future__ import annotations

import inspect
import math
from dataclasses import fields
from typing import Any

import numpy as np

from dualopt.arrays._checks import require
from dualopt.arrays.xp import to_numpy
from dualopt.lab.contracts.options import made
from dualopt.lab.verification.instances import Instance, energy, linear_instances
from dualopt.objectives import Objective
from dualopt.runs.reference import NotOptimalError, solve
from dualopt.spec import plugins

__all__ = ["as_instance", "load_instance"]


def as_instance(problem: Instance | Objective, name: str = "") -> Instance:
    r"""Return a problem with its minimiser, and the error below which runs say nothing.

    The minimiser is that of the objective's own ``minimiser()``, if it has one, or of
    :func:`dualopt.runs.reference.solve`. With strong convexity m of E the squared distance of what was found to the
    minimiser is at most :math:`(|\nabla E| + r)^2/m^2`, r for rounding, and at most :math:`2\,\text{gap}/m`. Where E is
    not strongly convex errors are E - E*, to the rounding of E.

    Parameters
    ----------
    problem : Instance or Objective
        An instance stays as it is.
    name : str, optional
        For tables; that of the class when not given.

    Raises
    ------
    ValueError
        If it is neither, its minimiser cannot be found, or runs start there.

    Examples
    --------
    >>> from dualopt import Quadratic
    >>> found = as_instance(Quadratic(A=np.ones((2, 1, 1)), b=np.array([[1.0], [3.0]])))
    >>> found.name, found.theta.tolist(), found.measure, found.resolution < 1e-28
    ('Quadratic', [2.0], 'distance', True)
    """
    if isinstance(problem, Instance):
        return problem
    require(isinstance(problem, Objective), "instance must be an objective", type(problem).__name__)
    name = name or type(problem).__name__
    theta, gap = _minimiser(problem, name)
    mu, norm = problem.mean_mu + problem.regulariser.mu, _gradient_norm(problem, theta)
    if mu > 0:
        found = Instance(name=name, objective=problem, theta=theta, resolution=min((norm / mu) ** 2, 2.0 * gap / mu))
    else:
        room = 2.0 * _rounding_of_energy(problem, theta)
        found = Instance(name=name, objective=problem, theta=theta, measure="energy", resolution=room)
    start = found.error(problem.zeros())
    require(start > found.resolution, f"instance {name!r} must not have its minimiser at the start, zero")
    return found


def load_instance(name: str) -> Instance:
    """Return the problem that ``FILE.py:NAME`` spells, or an entry point of the group ``dualopt.instances``.

    It is a function without arguments, which returns an objective or an :class:`Instance`, or a class of objectives,
    which is built with its ``example``, and around logistic regression if it has a field ``objective``.

    Raises
    ------
    ValueError
        If there is none, or it is no problem.

    Examples
    --------
    >>> load_instance("dualopt.lab.contracts.problems:logistic").objective.n_clients
    4
    """
    maker = plugins.find("instances", name, "instance")
    try:
        problem = _built(maker) if inspect.isclass(maker) else maker()
    except Exception as error:
        raise ValueError(f"instance {name!r}: making it raises {type(error).__name__}: {error}.") from error
    if not isinstance(problem, Objective | Instance):
        raise ValueError(f"instance {name!r}: it must return an objective, not {type(problem).__name__}.")
    return as_instance(problem, name.rpartition(":")[2])


def _built(kind: Any) -> Any:
    """Return an objective of a class, with its example, around logistic regression whose rows are sorted by label."""
    if "objective" not in {f.name for f in fields(kind)}:
        return made(kind)
    return made(kind, objective=next(i.objective for i in linear_instances() if i.name.endswith("by label")))


def _minimiser(problem: Objective, name: str) -> tuple[np.ndarray, float]:
    """Return the minimiser and a bound of the gap there, infinite where none is known."""
    if hasattr(problem, "minimiser"):
        return to_numpy(problem.minimiser()), math.inf  # pyright: ignore[reportAttributeAccessIssue]
    try:
        found = solve(problem)
    except (NotOptimalError, ValueError, ModuleNotFoundError) as error:
        raise ValueError(f"instance {name!r}: its minimiser is not found: {error}") from error
    return to_numpy(found.theta), found.gap


def _gradient_norm(problem: Objective, theta: np.ndarray) -> float:
    """Return a bound of the norm of the least subgradient of E; infinite where kinks leave it open."""
    if not np.all(np.isfinite(to_numpy(problem.L))):
        return math.inf
    value, gradient = problem.value_and_gradient(theta)
    least = problem.regulariser.minimal_subgradient(theta, problem.mean(gradient))
    room = float(problem.mean(problem.rounding(theta, value, gradient).gradient))
    return float(np.sqrt(np.sum(to_numpy(least) ** 2))) + room


def _rounding_of_energy(problem: Objective, theta: np.ndarray) -> float:
    value, gradient = problem.value_and_gradient(theta)
    room = float(problem.mean(problem.rounding(theta, value, gradient).value))
    return room + np.finfo(float).eps * abs(energy(problem, theta))
