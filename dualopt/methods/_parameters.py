"""What the algorithms do alike with their parameters: conditions, suggestions, and types of fields that declare them.

A parameter is declared once. ``rho: ProximalWeight = AUTO`` says that it is positive, what ``suggested`` fills in, and
what ``check`` refuses: an annotation holds functions that refuse a value, ``Suggested`` and ``Checked``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, NamedTuple

from dualopt.arrays._checks import NonNegative, require, require_at_least, require_positive
from dualopt.arrays.xp import Array, array_namespace, to_numpy
from dualopt.objectives import Objective
from dualopt.regularisers import Regulariser, Zero
from dualopt.solvers import LBFGS, SGD, Gradient, LocalSolver, RowLBFGS, Sarah, default_solver
from dualopt.solvers._loop import is_smooth
from dualopt.solvers.stopping import GradientReduction, Steps

__all__ = [
    "OWN_STEPS",
    "AtLeastOne",
    "Checked",
    "GivenSolver",
    "GradientSolver",
    "LocalWeight",
    "PlainSteps",
    "ProximalStep",
    "ProximalWeight",
    "StepCount",
    "Suggested",
    "TheRegulariser",
    "always",
    "common_step",
    "constants",
    "early_stop",
    "fedpd_step_limit",
    "inverse_weight",
    "largest",
    "one_step",
    "plain_steps",
    "reflection_factor",
    "require_convex_local_problem",
    "require_gradient",
    "require_hessians",
    "require_local_gradients",
    "require_plain_steps",
    "require_smooth_clients",
    "require_steps",
    "smallest",
    "smooth_and_strongly_convex",
    "step_of",
    "steps_with",
    "suggested_weight",
    "within",
]


def smallest(numbers: Array) -> float:
    """Return the least of ``(N,)`` constants."""
    return float(array_namespace(numbers).min(numbers))


def largest(numbers: Array) -> float:
    """Return the greatest of ``(N,)`` constants."""
    return float(array_namespace(numbers).max(numbers))


def within(value: float, limit: float) -> bool:
    """Tell whether a parameter is at most its limit, up to the rounding of the constants that the limit is made of.

    Examples
    --------
    >>> within(0.1 * 3.0, 0.3), within(0.3000001, 0.3), within(0.0, 0.0)
    (True, False, True)
    """
    return value <= limit * (1.0 + 1e-12)


def fedpd_step_limit(L: float) -> float:
    r"""Return :math:`(\sqrt5 - 1)/(4L)`, below which FedPD's step ``eta`` must be for nonconvex clients.

    Examples
    --------
    >>> round(fedpd_step_limit(1.0), 6)
    0.309017
    """
    return (math.sqrt(5.0) - 1.0) / (4.0 * L)


def suggested_weight(objective: Objective, name: str, factor: float = 1.0) -> float:
    r"""Return a weight of the proximal term for ``objective``.

    It is ``factor`` times :math:`\sqrt{L\mu}` for strongly convex smooth clients, the order of the optimum, times the
    ``mu`` of nonsmooth ones (with a free intercept that of the other weights), and otherwise times :math:`8L/(\sqrt5 -
    1)`, twice what FedPD's theorems need. An objective that knows a weight better than its ``mu`` says, its
    ``usual_weight``, gives that one.

    Raises
    ------
    ValueError
        If the clients are neither smooth nor strongly convex; the sentence names the parameter ``name``.
    """
    if objective.usual_weight is not None:
        return objective.usual_weight
    mu, L = smallest(objective.mu), largest(objective.L)
    if objective.free_intercept and mu >= 0:  # what holds the other weights
        mu = smallest(objective.partial_mu)
    if mu > 0:
        return factor * (math.sqrt(L * mu) if math.isfinite(L) else mu)
    if not math.isfinite(L):
        raise ValueError(f"{name} must be given: neither mu nor L is known, so nothing can be suggested.")
    return factor * 2.0 / fedpd_step_limit(L)


def constants(objective: Objective) -> list[tuple[float, float]]:
    """Return ``(mu_j, L_j)`` of every client."""
    pairs = zip(to_numpy(objective.mu), to_numpy(objective.L), strict=True)
    return [(float(mu), float(L)) for mu, L in pairs]


def smooth_and_strongly_convex(objective: Objective) -> bool:
    """Tell whether all ``mu_j`` are positive and all ``L_j`` finite."""
    return smallest(objective.mu) > 0 and math.isfinite(largest(objective.L))


def reflection_factor(objective: Objective, step: float) -> float | None:
    r"""Return how much reflections in the clients' proximal maps contract, None where they need not.

    For step ``s`` it is :math:`\max(\frac{1 - s\mu}{1 + s\mu}, \frac{sL - 1}{sL + 1})`, below 1 for strongly convex
    smooth clients.
    """
    if not smooth_and_strongly_convex(objective):
        return None
    mu, L = smallest(objective.mu), largest(objective.L)
    return max((1.0 - step * mu) / (1.0 + step * mu), (step * L - 1.0) / (step * L + 1.0))


def require_convex_local_problem(objective: Objective, weight: float, name: str) -> None:
    """Refuse a proximal term too weak for a local problem with one solution; an unknown ``mu`` (-inf) passes."""
    mu = smallest(objective.mu)
    if mu == 0 and weight <= 0:
        raise ValueError(f"{name} must be positive where clients are not strongly convex, not {weight:g}.")
    if math.isfinite(mu) and weight + mu <= 0:
        raise ValueError(f"{name} gives the proximal weight {weight:g}, which must exceed {-mu:g}, the concavity.")


def require_steps(stop: Any) -> None:
    """Refuse stopping rules other than a number of steps."""
    require(isinstance(stop, Steps), f"stop must be a number of steps, not {stop}")


def require_gradient(solver: Any) -> None:
    """Refuse solvers other than full gradients."""
    named = type(solver).__name__
    require(solver is None or isinstance(solver, Gradient), f"solver must be Gradient, not {named}")


def require_plain_steps(solver: LocalSolver | None) -> None:
    """Refuse solvers other than plain steps: a method counts them, or has gradients that belong to no function."""
    if solver is not None and not isinstance(solver, Gradient | SGD):
        raise ValueError(f"solver must be Gradient or SGD, which take plain steps, not {type(solver).__name__}.")


def require_local_gradients(solver: LocalSolver | None) -> None:
    """Refuse solvers that do not know the gradient of the local problem where they end."""
    if isinstance(solver, SGD | Sarah):
        raise ValueError(f"solver must compute local gradients, which {type(solver).__name__} does not: it samples.")


def require_smooth_clients(objective: Objective, name: str) -> None:
    """Refuse clients whose losses have kinks, for a method ``name`` that follows their gradients."""
    if not is_smooth(objective):
        raise ValueError(f"objective must be smooth for {name}, which follows gradients; use dualfl, which does not.")


def require_hessians(objective: Objective, name: str) -> None:
    """Refuse clients that offer no products with their Hessians, for a method ``name`` that asks for them."""
    require("hessian" in objective.offers, f"objective must offer Hessian products for {name}")


def plain_steps(objective: Objective, weight: float) -> Gradient:
    """Return gradient steps of length ``1/(L + weight)``, as if the gradients were not sharpness-aware."""
    L = largest(objective.L)
    if not math.isfinite(L):
        raise ValueError("solver must be given: no step can be suggested because the loss is not smooth.")
    return Gradient(step=1.0 / (L + weight))


def common_step(objective: Objective, solver: Gradient | SGD | None, factor: float) -> Gradient | SGD:
    """Return the solver with one step for all clients, ``factor/(max L)`` if none is given."""
    if solver is None or solver.step is None:
        return replace(solver or Gradient(), step=factor * step_of(plain_steps(objective, 0.0)))
    return solver


def step_of(solver: Gradient | SGD) -> float:
    """Return the step of a solver with one step for all clients."""
    if solver.step is None:
        raise ValueError("solver must have a step: give one, or have it filled in by suggested(objective).")
    return solver.step


class Suggested(NamedTuple):
    """What ``suggested`` puts in the place of a parameter that is open."""

    value: Callable[[Any, Objective, str], Any]  # of the method so far, the objective, and the name of the parameter
    open: Callable[[Any], bool] = lambda value: value is None


class Checked(NamedTuple):
    """What ``check`` refuses, by a ValueError of one sentence."""

    refuse: Callable[[Any, Objective, str], None]  # of the complete method, the objective, and the name


def steps_with(weight: str) -> Suggested:
    """Return the suggestion of plain steps for losses with a proximal term, whose weight is a parameter."""
    return Suggested(lambda method, f, name: plain_steps(f, getattr(method, weight)))


def one_step(factor: Callable[[Any], float] = lambda method: 1.0) -> Suggested:
    """Return the suggestion of a step for all clients, ``factor(method)/(max L)``, where the solver has none."""
    return Suggested(
        lambda method, f, name: common_step(f, getattr(method, name), factor(method)),
        lambda solver: solver is None or solver.step is None,
    )


def always(value: Any) -> Suggested:
    """Return the suggestion of one value for all clients."""
    return Suggested(lambda method, f, name: value)


def inverse_weight(factor: float = 1.0) -> Suggested:
    """Return the suggestion of a step, 1 over ``factor`` times the usual weight."""
    return Suggested(lambda method, f, name: 1.0 / suggested_weight(f, name, factor))


def early_stop(factor: float) -> Suggested:
    """Return the suggestion of a stop at ``factor`` of the local gradient, for methods that forgive rough solutions.

    It is for L-BFGS where L is known. What is left of the gradient is the start of the next round, and L-BFGS, whose
    pairs are of all rounds, leaves little of it in flat directions. Other solvers, and clients with kinks, stop as
    usual. Measured in docs/no_tuning.md; what is proved for any errors of that size is less, and said there too.
    """

    def stop(method: Any, f: Objective, name: str) -> GradientReduction:
        apt = math.isfinite(largest(f.L)) and isinstance(method.solver, LBFGS | RowLBFGS)
        return GradientReduction(factor=factor) if apt else GradientReduction()

    return Suggested(stop)


USUAL = Suggested(lambda method, f, name: default_solver(f))
GivenSolver = Annotated[LocalSolver, USUAL]
GradientSolver = Annotated[LocalSolver, require_local_gradients, USUAL]
OWN_STEPS = always(Gradient())
PlainSteps = Annotated[Gradient | SGD, require_plain_steps, Suggested(lambda method, f, name: plain_steps(f, 0.0))]
StepCount = Annotated[Steps, require_steps]
AtLeastOne = Annotated[int, partial(require_at_least, 1)]
LocalWeight = Annotated[
    NonNegative, Checked(lambda method, f, name: require_convex_local_problem(f, getattr(method, name), name))
]
ProximalWeight = Annotated[
    float,
    require_positive,
    Suggested(lambda method, f, name: suggested_weight(f, name)),
    Checked(lambda method, f, name: require_convex_local_problem(f, getattr(method, name), name)),
]
ProximalStep = Annotated[
    float,
    require_positive,
    inverse_weight(),
    Checked(lambda method, f, name: require_convex_local_problem(f, 1.0 / getattr(method, name), name)),
]


def _require_that_of(method: Any, f: Objective, name: str) -> None:
    words = f"{name} must be that of the objective: Composite(objective, regulariser)"
    require(getattr(method, name) == f.regulariser, words)


TheRegulariser = Annotated[
    Regulariser,
    Suggested(lambda method, f, name: f.regulariser, lambda g: g is None or g == Zero()),
    Checked(_require_that_of),
]
