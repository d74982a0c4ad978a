"""What may happen once, before the first round: a better start, or better coordinates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from dualopt.arrays.xp import Array
from dualopt.objectives import Objective
from dualopt.solvers import LocalSolution
from dualopt.solvers._lazy import LazyEvaluation

__all__ = ["Preparation", "Prepared", "prepared_by"]


@dataclass(frozen=True, kw_only=True)
class Prepared:
    r"""What the rounds start from, what it has cost, and the way back to the coordinates of the user.

    Attributes
    ----------
    objective : Objective
        The functions that the method works on, with the same minimum.
    theta0 : array, shape ``shape``
        The first model, in the coordinates of ``objective``.
    floats_up, floats_down : int
        Numbers that all clients sent, and that were sent to them.
    gradients : tuple of float
        Local gradients of each client; one may be a share of a gradient.
    exchanges : int
        Round trips.
    model : callable, optional
        Brings models from the coordinates of ``objective`` to those of the user; None where they are the same.
    slope : callable, optional
        Brings gradients there.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt.objectives import Quadratic
    >>> from dualopt.methods.preparation import OneShotAverage
    >>> f = Quadratic(A=np.stack([np.eye(1), 3 * np.eye(1)]), b=np.array([[1.0], [9.0]]))
    >>> start = OneShotAverage().prepare(f, np.zeros(1))
    >>> start.theta0.tolist(), f.minimiser().tolist(), start.floats_up, start.gradients
    ([2.0], [2.5], 2, (1.0, 1.0))
    """

    objective: Objective
    theta0: Array
    floats_up: int = 0
    floats_down: int = 0
    gradients: tuple[float, ...] = ()
    exchanges: int = 0
    model: Callable[[Array], Array] | None = None
    slope: Callable[[Array], Array] | None = None

    def shown(self, theta: Array) -> Array:
        """Return a model in the coordinates of the user."""
        return theta if self.model is None else self.model(theta)

    def shown_solution(self, solution: LocalSolution | None, objective: Objective) -> LocalSolution | None:
        """Return local solutions in the coordinates of the user, whose clients ``objective`` holds.

        Values and gradients of the ``f_j`` are computed anew there when somebody asks for them: a certificate
        charges the rounding of one evaluation, not that of a change of coordinates.
        """
        if solution is None or self.model is None or self.slope is None:
            return solution
        theta, found, slope = self.model(solution.theta), solution.evaluation, self.slope
        if found is not None:
            found = LazyEvaluation(objective, theta, found.value, lambda: slope(solution.evaluation.gradient))
        return solution._replace(theta=theta, evaluation=found, mu=None)

    def after(self, earlier: Prepared) -> Prepared:
        """Return both, one after the other: ``earlier`` prepared what this one began with."""
        return replace(
            self,
            floats_up=earlier.floats_up + self.floats_up,
            floats_down=earlier.floats_down + self.floats_down,
            gradients=_sum(earlier.gradients, self.gradients),
            exchanges=earlier.exchanges + self.exchanges,
            model=_chain(self.model, earlier.model),
            slope=_chain(self.slope, earlier.slope),
        )


class Preparation(Protocol):
    """A step before the rounds."""

    def check(self, objective: Any) -> None:
        """Refuse an objective that the preparation is not for, by a ValueError of one sentence."""
        ...

    def prepare(self, objective: Any, theta0: Array) -> Prepared:
        """Return what the rounds start from instead of ``objective`` and ``theta0``.

        Raises
        ------
        ValueError
            If the objective is not one that the preparation is for.
        """
        ...


def prepared_by(
    preparation: Preparation | Sequence[Preparation] | None, objective: Objective, theta0: Array
) -> Prepared:
    """Return what the rounds start from after one preparation, several in turn, or none.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt.objectives import Quadratic
    >>> f = Quadratic(A=np.ones((1, 1, 1)), b=np.zeros((1, 1)))
    >>> prepared_by(None, f, f.zeros()).objective is f
    True
    """
    steps = [] if preparation is None else preparation if isinstance(preparation, Sequence) else [preparation]
    found = Prepared(objective=objective, theta0=theta0)
    for step in steps:
        if isinstance(step, type) or not hasattr(step, "prepare"):
            raise ValueError(f"prepare must be preparations, such as OneShotAverage(), not {step!r}.")
        found = step.prepare(found.objective, found.theta0).after(found)
    return found


def _sum(a: tuple[float, ...], b: tuple[float, ...]) -> tuple[float, ...]:
    return tuple(x + y for x, y in zip(a, b, strict=True)) if a and b else a or b


def _chain(
    first: Callable[[Array], Array] | None, second: Callable[[Array], Array] | None
) -> Callable[[Array], Array] | None:
    if first is None or second is None:
        return first or second
    return lambda x: second(first(x))
