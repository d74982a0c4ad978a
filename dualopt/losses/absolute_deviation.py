"""The absolute loss."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from dualopt.arrays.xp import Array, array_namespace
from dualopt.losses._checks import positive_step, project_to_interval

__all__ = ["AbsoluteDeviation"]


@dataclass(frozen=True, kw_only=True)
class AbsoluteDeviation:
    r"""Distance of predictor and label, :math:`\phi(z; y) = |z - y|`.

    Its conjugate is :math:`\phi^*(u; y) = u y` on :math:`|u| \le 1` (where ``8 eps`` outside counts as
    inside), ``+inf`` elsewhere. Arrays have shape ``(..., m)``; the methods are those of `Loss`. At the kink
    ``z = y`` the subgradient is 0.

    Examples
    --------
    >>> import numpy as np
    >>> z, y = np.asarray([0.0, 1.0, 4.0]), np.asarray([1.0, 1.0, 1.0])
    >>> loss = AbsoluteDeviation()
    >>> loss.gradient(z, y)
    array([-1.,  0.,  1.])
    >>> loss.prox(z, y, 2.0)
    array([1., 1., 2.])
    """

    labels: ClassVar[str] = "real"
    nonnegative: ClassVar[bool] = True
    of_differences: ClassVar[bool] = True
    kink_at_label: ClassVar[bool] = True
    example: ClassVar[dict[str, Any]] = {}
    sklearn: ClassVar[str] = "svm.LinearSVR"

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
        """One: the slopes are -1, 0 and 1."""
        return 1.0

    def value(self, z: Array, y: Array) -> Array:
        """Compute the loss of every row."""
        return array_namespace(z).abs(z - y)

    def gradient(self, z: Array, y: Array) -> Array:
        """Compute the sign of ``z - y``, 0 at the kink."""
        return array_namespace(z).sign(z - y)

    def value_and_gradient(self, z: Array, y: Array) -> tuple[Array, Array]:
        """Compute the loss and its subgradient from one residual."""
        xp = array_namespace(z)
        residual = z - y
        return xp.abs(residual), xp.sign(residual)

    def hessian_product(self, z: Array, y: Array, v: Array) -> Array:
        """Compute zero, the second derivative off the kink, in the shape of ``z``."""
        return array_namespace(z).zeros_like(z)

    def conjugate(self, u: Array, y: Array) -> Array:
        """Compute ``u y`` where ``|u| <= 1``, ``+inf`` elsewhere."""
        xp = array_namespace(u)
        u, inside = project_to_interval(u, -1.0, 1.0)
        return xp.where(inside, u * y, xp.inf)

    def prox(self, z: Array, y: Array, step: float | Array) -> Array:
        """Return the point nearest to ``y`` within ``step`` of ``z``."""
        xp = array_namespace(z)
        step = positive_step(step, z)
        return xp.maximum(z - step, xp.minimum(y, z + step))

    def cvxpy(self, z: Any, y: Any) -> Any:
        """Return the CVXPY expression of the loss of every row, for reference solutions."""
        import cvxpy as cp

        return cp.abs(z - y)
