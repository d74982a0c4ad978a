"""The quantile loss."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from dualopt.arrays._checks import is_number
from dualopt.arrays.xp import Array, array_namespace
from dualopt.losses._checks import positive_step, project_to_interval

__all__ = ["Quantile"]


@dataclass(frozen=True, kw_only=True)
class Quantile:
    r"""Weighted distance of predictor and label, least for the quantile of the labels at a level :math:`q`.

    .. math:: \phi(z; y) = q \max(y - z, 0) + (1 - q) \max(z - y, 0),

    half the absolute deviation at the level 1/2. Its conjugate is :math:`\phi^*(u; y) = u y` on
    :math:`-q \le u \le 1 - q` (where ``8 eps`` of the larger of both outside counts as inside), ``+inf`` elsewhere.
    Arrays have shape ``(..., m)``; the methods are those of `Loss`. At the kink ``z = y`` the subgradient is 0.
    (Koenker and Bassett 1978, "Regression quantiles".)

    Parameters
    ----------
    level : float, default 0.5
        The level ``q`` of the quantile.

    Raises
    ------
    ValueError
        If ``level`` does not lie strictly between 0 and 1.

    Examples
    --------
    >>> import numpy as np
    >>> z, y = np.asarray([0.0, 1.0, 5.0]), np.asarray([1.0, 1.0, 1.0])
    >>> loss = Quantile(level=0.75)
    >>> loss.value(z, y)
    array([0.75, 0.  , 1.  ])
    >>> loss.gradient(z, y)
    array([-0.75,  0.  ,  0.25])
    """

    labels: ClassVar[str] = "real"
    sklearn: ClassVar[str] = "linear_model.QuantileRegressor"
    nonnegative: ClassVar[bool] = True
    of_differences: ClassVar[bool] = True
    kink_at_label: ClassVar[bool] = True
    example: ClassVar[dict[str, Any]] = {}

    level: float = 0.5

    def __post_init__(self) -> None:
        """Check and coerce the parameter."""
        if not (is_number(self.level) and 0 < self.level < 1):
            raise ValueError(f"level must lie strictly between 0 and 1, got {self.level!r}.")
        object.__setattr__(self, "level", float(self.level))

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
        """The larger of both slopes."""
        return max(self.level, 1.0 - self.level)

    def value(self, z: Array, y: Array) -> Array:
        """Compute the loss of every row."""
        return self.value_and_gradient(z, y)[0]

    def gradient(self, z: Array, y: Array) -> Array:
        """Compute ``-q`` where the predictor is below the label, ``1 - q`` above, and 0 at the kink."""
        return self._slope(z - y)

    def value_and_gradient(self, z: Array, y: Array) -> tuple[Array, Array]:
        """Compute the loss and its subgradient from one residual."""
        residual = z - y
        slope = self._slope(residual)
        return slope * residual, slope

    def hessian_product(self, z: Array, y: Array, v: Array) -> Array:
        """Compute zero, the second derivative off the kink, in the shape of ``z``."""
        return array_namespace(z).zeros_like(z)

    def conjugate(self, u: Array, y: Array) -> Array:
        """Compute ``u y`` where ``-q <= u <= 1 - q``, ``+inf`` elsewhere."""
        xp = array_namespace(u)
        u, inside = project_to_interval(u, -self.level, 1.0 - self.level)
        return xp.where(inside, u * y, xp.inf)

    def prox(self, z: Array, y: Array, step: float | Array) -> Array:
        """Return the point nearest to ``y`` from ``z - (1 - q) step`` to ``z + q step``."""
        xp = array_namespace(z)
        step = positive_step(step, z)
        return xp.maximum(z - (1.0 - self.level) * step, xp.minimum(y, z + self.level * step))

    def cvxpy(self, z: Any, y: Any) -> Any:
        """Return the CVXPY expression of the loss of every row, for reference solutions."""
        import cvxpy as cp

        return cp.maximum(-self.level * (z - y), (1.0 - self.level) * (z - y))

    def _slope(self, residual: Array) -> Array:
        xp = array_namespace(residual)
        below, above = (xp.astype(side, residual.dtype) for side in (residual < 0.0, residual > 0.0))
        return (1.0 - self.level) * above - self.level * below
