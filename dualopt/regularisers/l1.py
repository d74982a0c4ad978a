"""The weighted sum of absolute values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from dualopt.arrays._checks import Typed
from dualopt.arrays.xp import Array, array_namespace, epsilon
from dualopt.regularisers._protocol import check_weight

__all__ = ["L1"]


@dataclass(frozen=True, kw_only=True)
class L1(Typed):
    r"""Sum of absolute values, weight times ``|theta|_1``: solutions have exact zeros.

    .. math:: g(\theta) = \text{weight} \sum_k |\theta_k|, \qquad
              \mathrm{prox}_{s g}(\theta) = \theta - \text{the projection of } \theta \text{ onto }
              [-s\,\text{weight}, s\,\text{weight}]

    Every entry counts, those of the intercept included. Models have any ``shape``.

    Parameters
    ----------
    weight : float
        Factor of the norm, at least 0.

    Raises
    ------
    ValueError
        If ``weight`` is negative or not finite.

    Examples
    --------
    >>> import numpy as np
    >>> g, theta = L1(weight=0.5), np.array([2.0, -0.25, 0.0])
    >>> g.value(theta), g.prox(theta, 1.0).tolist()
    (1.125, [1.5, 0.0, 0.0])
    >>> g.minimal_subgradient(theta, np.array([-0.5, 0.5, 0.75])).tolist()
    [0.0, 0.0, 0.25]
    """

    example: ClassVar[dict[str, Any]] = {"weight": 0.7}

    weight: float

    def __post_init__(self) -> None:
        check_weight(self.weight)

    @property
    def mu(self) -> float:
        """Zero: it is linear on every orthant."""
        return 0.0

    def value(self, theta: Array) -> float:
        """Return ``weight |theta|_1``."""
        xp = array_namespace(theta)
        return self.weight * float(xp.sum(xp.abs(theta)))

    def prox(self, theta: Array, step: float) -> Array:
        """Move every entry by ``step * weight`` towards zero, and no further."""
        return _shrink(theta, step * self.weight)

    def minimal_subgradient(self, theta: Array, gradient: Array) -> Array:
        """Return ``gradient + weight s``: ``s = sign(theta)``, or the best of ``[-1, 1]`` where ``theta`` is 0."""
        xp = array_namespace(theta, gradient)
        return xp.where(theta == 0, _shrink(gradient, self.weight), gradient + self.weight * xp.sign(theta))

    def share(self, slope: Array, error: float) -> float:
        r"""Return the largest ``s <= 1`` with :math:`s(\max_k|\text{slope}_k| + \text{error}) \le \text{weight}`."""
        largest = float(array_namespace(slope).max(array_namespace(slope).abs(slope))) + error
        return 1.0 if largest <= self.weight else self.weight / largest * (1.0 - 4.0 * epsilon(slope))

    def cvxpy(self, theta: Any) -> Any:
        """Return the CVXPY expression."""
        import cvxpy as cp

        return self.weight * cp.sum(cp.abs(theta))


def _shrink(x: Array, length: float) -> Array:
    """Return ``x`` minus its projection onto ``[-length, length]``."""
    return x - array_namespace(x).clip(x, -length, length)
