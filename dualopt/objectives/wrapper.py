"""The base class of objectives that change another one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

from dualopt.arrays.xp import Array, array_namespace
from dualopt.objectives._rounding import Rounding
from dualopt.objectives.objective import OPTIONAL_MEMBERS, Objective

__all__ = ["ObjectiveWrapper", "class_labels"]


class ObjectiveWrapper(Objective):
    """Base of the dataclasses that change an ``objective`` and leave its clients and rows as they are.

    The common members are forwarded; a subclass overrides those that it changes. Of the optional ones it offers those
    of the objective that ``forwarded`` names.
    """

    forwarded: ClassVar[frozenset[str]] = frozenset(OPTIONAL_MEMBERS) - {"remainder"}
    """Names of the offers that remain, unchanged or overridden; by default all but remainders, which are those of
    another function wherever values are."""

    objective: Any

    def __getattr__(self, name: str) -> Any:
        # Optional members that are not overridden.
        if any(name in OPTIONAL_MEMBERS[offer] for offer in self.forwarded):
            return getattr(self.objective, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def offers(self) -> frozenset[str]:
        """The offers of the objective that remain."""
        return self.objective.offers & self.forwarded

    @property
    def n_clients(self) -> int:
        """Number ``N`` of clients."""
        return self.objective.n_clients

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the model ``theta``."""
        return self.objective.shape

    @property
    def weights(self) -> tuple[float, ...] | None:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The weights ``w_j`` of the clients."""
        return self.objective.weights

    @property
    def free_intercept(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether ``partial_mu`` leaves out the intercept."""
        return self.objective.free_intercept

    @property
    def shift_invariant(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether no value changes where the intercepts of all outputs grow by the same number."""
        return self.objective.shift_invariant

    @property
    def partial_mu(self) -> Array:
        """Constants in all but a free intercept, shape ``(N,)``; -inf where there is one: nothing is known."""
        return -math.inf * array_namespace(self.mu).ones_like(self.mu) if self.free_intercept else self.mu

    @property
    def mu(self) -> Array:
        """Strong convexity constants of ``f_j``, shape ``(N,)``."""
        return self.objective.mu

    @property
    def mu_rounding(self) -> Array:
        """What is to be taken off ``partial_mu`` for a proven constant, shape ``(N,)``."""
        return self.objective.mu_rounding

    @property
    def L(self) -> Array:
        """Smoothness constants of ``f_j``, shape ``(N,)``."""
        return self.objective.L

    @property
    def gradient_cost(self) -> float:
        """Gradients of the clients that one evaluation of ``gradient`` takes."""
        return self.objective.gradient_cost

    def zeros(self) -> Array:
        """Return the zero model, shape ``shape``."""
        return self.objective.zeros()

    def initial(self, seed: int = 0) -> Array:
        """Return the model from which runs start, shape ``shape``."""
        return self.objective.initial(seed)

    def value(self, theta: Array) -> Array:
        """Return ``f_j(theta_j)``, shape ``(N,)``."""
        return self.objective.value(theta)

    def gradient(self, theta: Array) -> Array:
        """Return the gradients of ``f_j``, shape ``(N, *shape)``."""
        return self.objective.gradient(theta)

    def value_and_gradient(self, theta: Array) -> tuple[Array, Array]:
        """Return both, at the price of the gradient alone."""
        return self.objective.value_and_gradient(theta)

    def rounding(self, theta: Array, value: Array, gradient: Array, excess: Array | None = None) -> Rounding:
        """Return bounds of the errors of values and gradients."""
        return self.objective.rounding(theta, value, gradient, excess)

    def select(self, ids: Sequence[int]) -> Self:
        """Return the objective of the clients ``ids``."""
        return replace(self, objective=self.objective.select(ids))  # pyright: ignore[reportArgumentType]


def class_labels(objective: Any) -> list[Any] | None:
    """Return the labels that the codes of an objective stand for, as JSON has them; None where it keeps none.

    Examples
    --------
    >>> from dualopt import linear_model
    >>> class_labels(linear_model([[0.0], [1.0]], ["ill", "well"], loss="logistic", mu=1.0, clients=1))
    ['ill', 'well']
    """
    while isinstance(objective, ObjectiveWrapper):
        objective = objective.objective
    classes = getattr(objective, "classes", None)
    return None if classes is None else [c if isinstance(c, bool | int | float | str) else repr(c) for c in classes]
