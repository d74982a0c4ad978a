"""The hinge loss with its kink rounded off."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from dualopt.arrays.xp import Array, array_namespace
from dualopt.losses._checks import positive_number, positive_step, project_to_interval

__all__ = ["SmoothedHinge"]


@dataclass(frozen=True, kw_only=True)
class SmoothedHinge:
    r"""Hinge loss with a quadratic piece of width :math:`\gamma` in place of its kink.

    With the shortfall :math:`r = 1 - y z`,

    .. math::
        \phi(z; y) = 0 \ (r \le 0), \qquad r^2/(2\gamma) \ (0 < r < \gamma), \qquad
        r - \gamma/2 \ (r \ge \gamma),

    and with :math:`a = -u y` the conjugate is :math:`\phi^*(u; y) = -a + \gamma a^2/2` on
    :math:`0 \le a \le 1` (where ``8 eps`` outside counts as inside), ``+inf`` elsewhere: the hinge's plus a
    quadratic, which is why the loss is smooth. Arrays have shape ``(..., m)``; the methods are those of
    `Loss`. The second derivative, which jumps where :math:`r` is 0 or :math:`\gamma`, is taken as zero there.
    (Shalev-Shwartz and Zhang 2013, "Stochastic dual coordinate ascent methods".)

    Parameters
    ----------
    gamma : float, default 1.0
        Width of the quadratic piece.

    Raises
    ------
    ValueError
        If ``gamma`` is not positive and finite.

    Examples
    --------
    >>> import numpy as np
    >>> z, y = np.asarray([-1.0, 0.5, 2.0]), np.asarray([1.0, 1.0, 1.0])
    >>> loss = SmoothedHinge(gamma=1.0)
    >>> loss.value(z, y)
    array([1.5  , 0.125, 0.   ])
    >>> loss.curvature
    1.0
    """

    labels: ClassVar[str] = "binary"
    nonnegative: ClassVar[bool] = True
    example: ClassVar[dict[str, Any]] = {}
    sklearn: ClassVar[str] = "svm.LinearSVC"

    gamma: float = 1.0

    def __post_init__(self) -> None:
        """Check and coerce the parameter."""
        object.__setattr__(self, "gamma", positive_number("gamma", self.gamma))

    @property
    def outputs(self) -> int:
        """One predictor per row."""
        return 1

    @property
    def curvature(self) -> float:
        """The second derivative of the quadratic piece."""
        return 1.0 / self.gamma

    @property
    def lipschitz(self) -> float:
        """One, the slope of the linear piece."""
        return 1.0

    def value(self, z: Array, y: Array) -> Array:
        """Compute the loss of every row."""
        return self.value_and_gradient(z, y)[0]

    def gradient(self, z: Array, y: Array) -> Array:
        """Compute ``-y a``, where ``a`` is the shortfall over gamma, clipped to [0, 1]."""
        return -y * array_namespace(z).clip((1.0 - y * z) / self.gamma, 0.0, 1.0)

    def value_and_gradient(self, z: Array, y: Array) -> tuple[Array, Array]:
        """Compute the loss ``a (r - gamma a / 2)`` and its derivative ``-y a`` from one slope ``a``."""
        xp = array_namespace(z)
        shortfall = xp.maximum(1.0 - y * z, 0.0)
        slope = xp.minimum(shortfall / self.gamma, 1.0)
        return slope * (shortfall - 0.5 * self.gamma * slope), -y * slope

    def hessian_product(self, z: Array, y: Array, v: Array) -> Array:
        """Compute ``v / gamma`` on the quadratic piece, zero elsewhere."""
        shortfall = 1.0 - y * z
        quadratic = (shortfall > 0.0) & (shortfall < self.gamma)
        return v * array_namespace(z).astype(quadratic, z.dtype) / self.gamma

    def conjugate(self, u: Array, y: Array) -> Array:
        """Compute ``gamma a^2 / 2 - a`` where ``a = -u y`` is in [0, 1], ``+inf`` elsewhere."""
        xp = array_namespace(u)
        slope, inside = project_to_interval(-u * y, 0.0, 1.0)
        return xp.where(inside, slope * (0.5 * self.gamma * slope - 1.0), xp.inf)

    def prox(self, z: Array, y: Array, step: float | Array) -> Array:
        """Raise the margin by ``step`` times the slope at the result, which is again a clipped quotient."""
        step = positive_step(step, z)
        return z + y * step * array_namespace(z).clip((1.0 - y * z) / (self.gamma + step), 0.0, 1.0)

    def cvxpy(self, z: Any, y: Any) -> Any:
        """Return the CVXPY expression of the loss of every row, for reference solutions."""
        import cvxpy as cp

        shortfall = cp.pos(1 - cp.multiply(y, z))
        return cp.huber(shortfall, self.gamma) / (2 * self.gamma)  # pyright: ignore[reportArgumentType]
