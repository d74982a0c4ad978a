"""The interface of regularisers."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Protocol

from dualopt.arrays.xp import Array

__all__ = ["Regulariser", "check_weight"]


class Regulariser(Protocol):
    r"""A convex function ``g`` of the model with a proximal map in closed form.

    One that grows in all directions may have ``share(slope, error)``, the largest ``s`` in [0, 1] with
    :math:`s\langle\text{slope}, x\rangle - s\,\text{error}\,|x| + g(x) \ge 0` for all ``x``: it makes certificates
    possible where nothing is strongly convex.
    """

    example: ClassVar[dict[str, Any]]
    """Arguments that construct an instance, for programs that try every regulariser; empty if all have defaults."""

    @property
    def mu(self) -> float:
        """Strong convexity constant of ``g``, 0 if it has none."""
        ...

    def value(self, theta: Array) -> float:
        """Return ``g(theta)``."""
        ...

    def prox(self, theta: Array, step: float) -> Array:
        r"""Return :math:`\arg\min_x g(x) + |x - \theta|^2/(2\,\text{step})`, the shape of ``theta``."""
        ...

    def minimal_subgradient(self, theta: Array, gradient: Array) -> Array:
        r"""Return the element of :math:`\text{gradient} + \partial g(\theta)` of minimal norm; zero at a minimiser."""
        ...

    def cvxpy(self, theta: Any) -> Any:
        """Return ``g`` as a CVXPY expression, for reference solutions."""
        ...


def check_weight(weight: float) -> None:
    """Refuse a weight that is negative or not finite."""
    if not (math.isfinite(weight) and weight >= 0):
        raise ValueError(f"weight must be a finite number, at least 0, not {weight}.")
