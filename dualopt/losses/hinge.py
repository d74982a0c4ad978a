"""The hinge loss of support vector machines."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from dualopt.arrays.xp import Array, array_namespace
from dualopt.losses._checks import positive_step, project_to_interval

__all__ = ["Hinge"]


@dataclass(frozen=True, kw_only=True)
class Hinge:
    r"""Amount by which a margin falls short of 1, :math:`\phi(z; y) = \max(0, 1 - y z)`.

    With :math:`a = -u y`, its conjugate is :math:`\phi^*(u; y) = -a` on :math:`0 \le a \le 1` (where ``8 eps`` outside
    counts as inside), ``+inf`` elsewhere. Arrays have shape ``(..., m)``; the methods are those of `Loss`. At the kink
    ``y z = 1`` the subgradient is 0.

    Examples
    --------
    >>> import numpy as np
    >>> z, y = np.asarray([-1.0, 0.5, 2.0]), np.asarray([1.0, 1.0, 1.0])
    >>> loss = Hinge()
    >>> loss.value(z, y)
    array([2. , 0.5, 0. ])
    >>> loss.prox(z, y, 1.0)
    array([0., 1., 2.])
    """

    labels: ClassVar[str] = "binary"
    nonnegative: ClassVar[bool] = True
    kink_at_label: ClassVar[bool] = True
    example: ClassVar[dict[str, Any]] = {}
    sklearn: ClassVar[str] = "svm.LinearSVC"

    @property
    def outputs(self) -> int:
        """One predictor per row."""
        return 1

    @property
    def curvature(self) -> float:
        """Infinite: the derivative jumps."""
        return math.inf

    @property
    def lipschitz(self) -> float:
        """One: the slopes are 0 and 1 in absolute value."""
        return 1.0

    def value(self, z: Array, y: Array) -> Array:
        """Compute the loss of every row."""
        return array_namespace(z).maximum(1.0 - y * z, 0.0)

    def gradient(self, z: Array, y: Array) -> Array:
        """Compute ``-y`` where the margin is below 1, and 0 elsewhere."""
        return -y * array_namespace(z).astype(y * z < 1.0, z.dtype)

    def value_and_gradient(self, z: Array, y: Array) -> tuple[Array, Array]:
        """Compute the loss and its subgradient from one margin."""
        xp = array_namespace(z)
        shortfall = 1.0 - y * z
        return xp.maximum(shortfall, 0.0), -y * xp.astype(shortfall > 0.0, z.dtype)

    def hessian_product(self, z: Array, y: Array, v: Array) -> Array:
        """Compute zero, the second derivative off the kink, in the shape of ``z``."""
        return array_namespace(z).zeros_like(z)

    def conjugate(self, u: Array, y: Array) -> Array:
        """Compute ``u y`` where ``-1 <= u y <= 0``, ``+inf`` elsewhere."""
        xp = array_namespace(u)
        product, inside = project_to_interval(u * y, -1.0, 0.0)
        return xp.where(inside, product, xp.inf)

    def prox(self, z: Array, y: Array, step: float | Array) -> Array:
        """Raise the margin by at most ``step``, and no further than 1."""
        xp = array_namespace(z)
        step = positive_step(step, z)
        margin = y * z
        return y * xp.maximum(margin, xp.minimum(margin + step, 1.0))

    def cvxpy(self, z: Any, y: Any) -> Any:
        """Return the CVXPY expression of the loss of every row, for reference solutions."""
        import cvxpy as cp

        return cp.pos(1 - cp.multiply(y, z))
