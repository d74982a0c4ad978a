"""The zero function: the regulariser of a problem without one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from dualopt.arrays.xp import Array

__all__ = ["Zero"]


@dataclass(frozen=True, kw_only=True)
class Zero:
    r"""No regulariser, :math:`g = 0`: the default of every objective.

    .. math:: g(\theta) = 0, \qquad \mathrm{prox}_{s g}(\theta) = \theta, \qquad \partial g(\theta) = \{0\}

    Examples
    --------
    >>> import numpy as np
    >>> g, theta = Zero(), np.array([2.0, -3.0])
    >>> g.value(theta), g.prox(theta, 2.0).tolist(), g.minimal_subgradient(theta, np.array([-1.0, 0.0])).tolist()
    (0.0, [2.0, -3.0], [-1.0, 0.0])
    >>> Zero() == Zero()
    True
    """

    example: ClassVar[dict[str, Any]] = {}

    @property
    def mu(self) -> float:
        """Zero."""
        return 0.0

    def value(self, theta: Array) -> float:
        """Return 0."""
        return 0.0

    def prox(self, theta: Array, step: float) -> Array:
        """Return ``theta``."""
        return theta

    def minimal_subgradient(self, theta: Array, gradient: Array) -> Array:
        """Return ``gradient``."""
        return gradient

    def cvxpy(self, theta: Any) -> Any:
        """Return the constant 0."""
        return 0.0
