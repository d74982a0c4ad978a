"""The Huber loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from dualopt.arrays.xp import Array, array_namespace
from dualopt.losses._checks import positive_number, positive_step, project_to_interval

__all__ = ["Huber"]


@dataclass(frozen=True, kw_only=True)
class Huber:
    r"""Squared loss of small residuals, absolute loss of large ones.

    With :math:`r = z - y`,

    .. math:: \phi(z; y) = r^2/2 \ (|r| \le \delta), \qquad \delta |r| - \delta^2/2 \ (|r| > \delta),

    and :math:`\phi^*(u; y) = u y + u^2/2` on :math:`|u| \le \delta` (where ``8 eps delta`` outside counts as
    inside), ``+inf`` elsewhere. Arrays have shape ``(..., m)``; the methods are those of `Loss`. The second
    derivative, which jumps at :math:`|r| = \delta`, is taken as 1 there. (Huber 1964, "Robust estimation of a
    location parameter".)

    Parameters
    ----------
    delta : float, default 1.0
        The residual at which the loss turns linear.

    Raises
    ------
    ValueError
        If ``delta`` is not positive and finite.

    Examples
    --------
    >>> import numpy as np
    >>> z, y = np.asarray([1.0, 10.0]), np.asarray([0.0, 0.0])
    >>> loss = Huber(delta=2.0)
    >>> loss.value(z, y)
    array([ 0.5, 18. ])
    >>> loss.gradient(z, y)
    array([1., 2.])
    """

    labels: ClassVar[str] = "real"
    nonnegative: ClassVar[bool] = True
    of_differences: ClassVar[bool] = True
    example: ClassVar[dict[str, Any]] = {}
    sklearn: ClassVar[str] = "linear_model.HuberRegressor"

    delta: float = 1.0

    def __post_init__(self) -> None:
        """Check and coerce the parameter."""
        object.__setattr__(self, "delta", positive_number("delta", self.delta))

    @property
    def outputs(self) -> int:
        """One predictor per row."""
        return 1

    @property
    def curvature(self) -> float:
        """The second derivative of the quadratic part."""
        return 1.0

    @property
    def lipschitz(self) -> float:
        """The slope of the linear part."""
        return self.delta

    def value(self, z: Array, y: Array) -> Array:
        """Compute the loss of every row."""
        return self.value_and_gradient(z, y)[0]

    def gradient(self, z: Array, y: Array) -> Array:
        """Compute the residual, clipped to ``[-delta, delta]``."""
        return array_namespace(z).clip(z - y, -self.delta, self.delta)

    def value_and_gradient(self, z: Array, y: Array) -> tuple[Array, Array]:
        """Compute the loss ``c (r - c/2)`` from the clipped residual ``c``, which is the derivative."""
        residual = z - y
        clipped = array_namespace(z).clip(residual, -self.delta, self.delta)
        return clipped * (residual - 0.5 * clipped), clipped

    def hessian_product(self, z: Array, y: Array, v: Array) -> Array:
        """Compute ``v`` in rows whose residual is at most ``delta``, zero in the others."""
        xp = array_namespace(z)
        return v * xp.astype(xp.abs(z - y) <= self.delta, z.dtype)

    def conjugate(self, u: Array, y: Array) -> Array:
        """Compute ``u y + u^2 / 2`` where ``|u| <= delta``, ``+inf`` elsewhere."""
        xp = array_namespace(u)
        u, inside = project_to_interval(u, -self.delta, self.delta)
        return xp.where(inside, u * (y + 0.5 * u), xp.inf)

    def prox(self, z: Array, y: Array, step: float | Array) -> Array:
        """Shrink a small residual by ``1 + step`` and a large one by ``delta step``."""
        step = positive_step(step, z)
        return z - step * array_namespace(z).clip((z - y) / (1.0 + step), -self.delta, self.delta)

    def cvxpy(self, z: Any, y: Any) -> Any:
        """Return the CVXPY expression of the loss of every row, for reference solutions."""
        import cvxpy as cp

        return 0.5 * cp.huber(z - y, self.delta)  # pyright: ignore[reportArgumentType]
