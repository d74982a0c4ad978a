"""The weighted squared norm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from dualopt.arrays._checks import Typed
from dualopt.arrays.xp import Array, array_namespace
from dualopt.regularisers._protocol import check_weight

__all__ = ["L2"]


@dataclass(frozen=True, kw_only=True)
class L2(Typed):
    r"""Squared norm, weight/2 times ``|theta|^2``, on the server instead of the clients.

    .. math:: g(\theta) = \tfrac{\text{weight}}{2} |\theta|^2, \qquad
              \mathrm{prox}_{s g}(\theta) = \theta / (1 + s\,\text{weight})

    The minimiser of ``E + g`` is that of clients whose ridge is larger by ``weight``. Models have any ``shape``.

    Parameters
    ----------
    weight : float
        Strong convexity constant, at least 0.

    Raises
    ------
    ValueError
        If ``weight`` is negative or not finite.

    Examples
    --------
    >>> import numpy as np
    >>> g, theta = L2(weight=0.5), np.array([2.0, -3.0])
    >>> g.value(theta), g.prox(theta, 2.0).tolist(), g.minimal_subgradient(theta, np.array([-1.0, 0.0])).tolist()
    (3.25, [1.0, -1.5], [0.0, -1.5])
    """

    example: ClassVar[dict[str, Any]] = {"weight": 0.7}

    weight: float

    def __post_init__(self) -> None:
        check_weight(self.weight)

    @property
    def mu(self) -> float:
        """The weight."""
        return self.weight

    def value(self, theta: Array) -> float:
        """Return ``weight/2 |theta|^2``."""
        return 0.5 * self.weight * float(array_namespace(theta).sum(theta * theta))

    def prox(self, theta: Array, step: float) -> Array:
        """Return ``theta / (1 + step * weight)``."""
        return theta / (1.0 + step * self.weight)

    def minimal_subgradient(self, theta: Array, gradient: Array) -> Array:
        """Return ``gradient + weight theta``, the only subgradient."""
        return gradient + self.weight * theta

    def cvxpy(self, theta: Any) -> Any:
        """Return the CVXPY expression."""
        import cvxpy as cp

        return 0.5 * self.weight * cp.sum_squares(theta)
