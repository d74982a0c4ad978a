"""The squared loss."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from dualopt.arrays.xp import Array, array_namespace
from dualopt.losses._checks import positive_step

__all__ = ["Squared"]


@dataclass(frozen=True, kw_only=True)
class Squared:
    r"""Half the squared distance of predictor and label, :math:`\phi(z; y) = (z - y)^2 / 2`.

    Its conjugate is :math:`\phi^*(u; y) = u y + u^2/2`, finite everywhere. Arrays ``z``, ``y``, ``u`` have
    shape ``(..., m)``; the methods are those of `Loss`.

    Examples
    --------
    >>> import numpy as np
    >>> z, y = np.asarray([0.0, 3.0]), np.asarray([1.0, 1.0])
    >>> loss = Squared()
    >>> loss.value(z, y)
    array([0.5, 2. ])
    >>> loss.prox(z, y, 1.0)
    array([0.5, 2. ])
    """

    labels: ClassVar[str] = "real"
    nonnegative: ClassVar[bool] = True
    of_differences: ClassVar[bool] = True
    example: ClassVar[dict[str, Any]] = {}
    sklearn: ClassVar[str] = "linear_model.Ridge"
    family: ClassVar[str] = "gaussian"
    self_concordance: ClassVar[float] = 0.0

    @property
    def outputs(self) -> int:
        """One predictor per row."""
        return 1

    @property
    def curvature(self) -> float:
        """The second derivative, 1 everywhere."""
        return 1.0

    @property
    def lipschitz(self) -> float:
        """Infinite: residuals are not bounded."""
        return math.inf

    def mean(self, z: Array) -> Array:
        """Return ``z``: the loss is the negative log-likelihood of a normal label with this mean."""
        return z

    def value(self, z: Array, y: Array) -> Array:
        """Compute the loss of every row."""
        return 0.5 * (z - y) ** 2

    def gradient(self, z: Array, y: Array) -> Array:
        """Compute the residual ``z - y``."""
        return z - y

    def value_and_gradient(self, z: Array, y: Array) -> tuple[Array, Array]:
        """Compute the loss and its derivative from one residual."""
        residual = z - y
        return 0.5 * residual**2, residual

    def hessian_product(self, z: Array, y: Array, v: Array) -> Array:
        """Compute ``v``, as a new array."""
        return 1.0 * v

    def conjugate(self, u: Array, y: Array) -> Array:
        """Compute ``u y + u^2 / 2``."""
        return u * (y + 0.5 * u)

    def prox(self, z: Array, y: Array, step: float | Array) -> Array:
        """Compute ``(z + step y) / (1 + step)`` in the form that stays accurate for large steps."""
        step = positive_step(step, z)
        return y + (z - y) / (1.0 + step)

    def log_base(self, y: Array) -> Array:
        """Return 0: all of the density at ``z = y`` is in the normaliser."""
        return array_namespace(y).zeros_like(y)

    def normaliser(self, dispersion: float) -> float:
        """Return ``-log(2 pi s) / 2`` for the variance ``s``."""
        return -0.5 * math.log(2.0 * math.pi * dispersion)

    def pearson(self, z: Array, y: Array) -> Array:
        """Compute ``(y - z)^2``: the variance function is 1."""
        return (y - z) ** 2

    def cvxpy(self, z: Any, y: Any) -> Any:
        """Return the CVXPY expression of the loss of every row, for reference solutions."""
        import cvxpy as cp

        return 0.5 * cp.square(z - y)
