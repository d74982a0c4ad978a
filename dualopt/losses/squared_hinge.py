"""The squared hinge loss of support vector machines."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from dualopt.arrays.xp import Array, array_namespace, epsilon
from dualopt.losses._checks import positive_step

__all__ = ["SquaredHinge"]


@dataclass(frozen=True, kw_only=True)
class SquaredHinge:
    r"""Square of the amount by which a margin falls short of 1, :math:`\phi(z; y) = \max(0, 1 - y z)^2`.

    With :math:`a = -u y`, its conjugate is :math:`\phi^*(u; y) = a^2/4 - a` on :math:`a \ge 0` (where ``8 eps`` outside
    counts as inside), ``+inf`` elsewhere. Arrays have shape ``(..., m)``; the methods are those of `Loss`. The second
    derivative, which jumps at ``y z = 1``, is taken as zero there.

    Examples
    --------
    >>> import numpy as np
    >>> z, y = np.asarray([-1.0, 0.5, 2.0]), np.asarray([1.0, 1.0, 1.0])
    >>> loss = SquaredHinge()
    >>> loss.value(z, y)
    array([4.  , 0.25, 0.  ])
    >>> loss.prox(z, y, 0.5)
    array([0.  , 0.75, 2.  ])
    """

    labels: ClassVar[str] = "binary"
    sklearn: ClassVar[str] = "svm.LinearSVC"
    nonnegative: ClassVar[bool] = True
    example: ClassVar[dict[str, Any]] = {}

    @property
    def outputs(self) -> int:
        """One predictor per row."""
        return 1

    @property
    def curvature(self) -> float:
        """The second derivative below the margin."""
        return 2.0

    @property
    def lipschitz(self) -> float:
        """Infinite: margins are not bounded from below."""
        return math.inf

    def value(self, z: Array, y: Array) -> Array:
        """Compute the loss of every row."""
        return array_namespace(z).maximum(1.0 - y * z, 0.0) ** 2

    def gradient(self, z: Array, y: Array) -> Array:
        """Compute ``-2 y`` times the shortfall."""
        return -2.0 * y * array_namespace(z).maximum(1.0 - y * z, 0.0)

    def value_and_gradient(self, z: Array, y: Array) -> tuple[Array, Array]:
        """Compute the loss and its derivative from one shortfall."""
        shortfall = array_namespace(z).maximum(1.0 - y * z, 0.0)
        return shortfall**2, -2.0 * y * shortfall

    def hessian_product(self, z: Array, y: Array, v: Array) -> Array:
        """Compute ``2 v`` where the margin is below 1, zero elsewhere."""
        return 2.0 * v * array_namespace(z).astype(y * z < 1.0, z.dtype)

    def conjugate(self, u: Array, y: Array) -> Array:
        """Compute ``a^2/4 - a`` where ``a = -u y`` is not negative, ``+inf`` elsewhere."""
        xp = array_namespace(u)
        slope = -u * y
        inside = slope >= -8.0 * epsilon(u)
        slope = xp.maximum(slope, 0.0)
        return xp.where(inside, slope * (0.25 * slope - 1.0), xp.inf)

    def prox(self, z: Array, y: Array, step: float | Array) -> Array:
        """Divide the shortfall by ``1 + 2 step``, in the form that stays accurate for large steps."""
        xp = array_namespace(z)
        step = positive_step(step, z)
        margin = y * z
        return y * xp.where(margin < 1.0, 1.0 - (1.0 - margin) / (1.0 + 2.0 * step), margin)

    def cvxpy(self, z: Any, y: Any) -> Any:
        """Return the CVXPY expression of the loss of every row, for reference solutions."""
        import cvxpy as cp

        return cp.square(cp.pos(1 - cp.multiply(y, z)))
