"""The Poisson loss of counts and rates, with a logarithmic link."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from dualopt.arrays.xp import Array, array_namespace, asarray_like, epsilon, limits, reshape, to_numpy
from dualopt.losses._checks import positive_step
from dualopt.losses._entropy import x_log_x
from dualopt.losses._exponential import (
    errors_of_exponential,
    exp_minus_tangent,
    exponential,
    floor_of_labels,
    logarithm,
)
from dualopt.losses._wright_omega import wright_omega

__all__ = ["Poisson"]


@dataclass(frozen=True, kw_only=True)
class Poisson:
    r"""Half the unit deviance of a Poisson count with the mean :math:`e^z`, for nonnegative labels.

    .. math:: \phi(z; y) = e^z - y z + y\log y - y \ge 0,

    the negative log-likelihood up to a number that does not depend on ``z``; :math:`0 \log 0 = 0`. With
    :math:`a = u + y` its conjugate is :math:`\phi^*(u; y) = a\log a - y\log y - u` on :math:`a \ge 0` (where
    ``8 eps y`` outside counts as inside), ``+inf`` elsewhere. Neither slopes nor second
    derivatives are bounded. Arrays have shape ``(..., m)``; the methods are those of `Loss`. Where :math:`e^z` is near
    the largest number, from :math:`z = 283` on in double and 35 in single precision, its tangent is taken instead: a
    lower bound, so that certificates of models with smaller predictors remain true, and others are infinite. (McCullagh
    and Nelder 1989, "Generalized linear models", Section 6.2.)

    Examples
    --------
    >>> import numpy as np
    >>> z, y = np.asarray([0.0, 1.0, 1e4]), np.asarray([1.0, 0.0, 3.0])
    >>> loss = Poisson()
    >>> loss.value(z, y)[:2].round(6).tolist(), loss.gradient(z, y)[:2].round(6).tolist()
    ([0.0, 2.718282], [0.0, 2.718282])
    >>> bool(np.isfinite(loss.value(z, y)).all())
    True
    """

    labels: ClassVar[str] = "real"
    sklearn: ClassVar[str] = "linear_model.PoissonRegressor"
    label_domain: ClassVar[str] = "nonnegative"
    nonnegative: ClassVar[bool] = True
    differentiable: ClassVar[bool] = True
    family: ClassVar[str] = "poisson"
    link: ClassVar[str] = "log"
    ratio: ClassVar[str] = "rate ratio"
    self_concordance: ClassVar[float] = 1.0  # both derivatives are the mean
    example: ClassVar[dict[str, Any]] = {}

    @property
    def outputs(self) -> int:
        """One predictor per row."""
        return 1

    @property
    def curvature(self) -> float:
        """Infinite: the second derivative is the mean, which is not bounded."""
        return math.inf

    @property
    def lipschitz(self) -> float:
        """Infinite: the mean is not bounded."""
        return math.inf

    def log_base(self, y: Array) -> Array:
        """Return ``y log y - y - log y!``, the logarithm of the largest probability of a count."""
        factorials = [math.lgamma(count + 1.0) for count in to_numpy(y).reshape(-1).tolist()]
        return x_log_x(y) - y - reshape(asarray_like(factorials, y), tuple(y.shape))

    def value(self, z: Array, y: Array) -> Array:
        """Compute the loss of every row."""
        return self.value_and_gradient(z, y)[0]

    def gradient(self, z: Array, y: Array) -> Array:
        """Compute the mean less the label."""
        return exponential(z)[1] - y

    def value_and_gradient(self, z: Array, y: Array) -> tuple[Array, Array]:
        r"""Compute the loss and its derivative; as :math:`y (e^d - 1 - d)`, ``d = z - log y``, where that is small."""
        xp = array_namespace(z)
        floor = floor_of_labels(z)
        d = z - logarithm(y, z, floor)
        mean, slope = exponential(z)
        near = (xp.abs(d) <= 1.0) & (y > floor)
        value = xp.where(near, y * exp_minus_tangent(d), mean - y * (1.0 + d))
        return xp.maximum(value, 0.0), slope - y

    def hessian_product(self, z: Array, y: Array, v: Array) -> Array:
        """Compute the mean times ``v``; beyond the largest predictor that of this one."""
        return exponential(z)[1] * v

    def conjugate(self, u: Array, y: Array) -> Array:
        """Compute ``a log(a/y) + u (log y - 1)``, ``a = u + y``, where that is not negative, ``+inf`` elsewhere."""
        xp = array_namespace(u)
        a = u + y
        inside = a >= -8.0 * epsilon(u) * y
        a, u = xp.maximum(a, 0.0), xp.maximum(u, -y)
        none = y <= floor_of_labels(u)
        unit = xp.where(none, 1.0, y)
        near = xp.clip(u / unit, -0.5, 0.5)
        ratio = xp.maximum(a / unit, limits(a)[1])
        entropy = a * xp.where(xp.abs(u) <= 0.5 * unit, xp.log1p(near), xp.log(ratio)) + u * (logarithm(unit, u) - 1.0)
        return xp.where(inside, xp.where(none, x_log_x(a) - a, entropy), xp.inf)

    def prox(self, z: Array, y: Array, step: float | Array) -> Array:
        r"""Compute :math:`b - \omega(b + \log s)` with :math:`b = z + s y`, and one step of Newton's method.

        The solution satisfies :math:`x + s e^x = b`, so that :math:`w = s e^x` has :math:`w + \log w = b + \log s`.
        """
        xp = array_namespace(z)
        step = positive_step(step, z)
        b = z + step * y
        x = b - wright_omega(b + xp.log(step))
        grown = step * xp.exp(x)
        return x - (x + grown - b) / (1.0 + grown)  # a large omega leaves few digits of x

    def mean(self, z: Array) -> Array:
        """Return the means ``e^z`` that predictors stand for."""
        return exponential(z)[0]

    def rounding(self, z: Array, y: Array) -> tuple[Array, Array]:
        """Bound the errors of computed values and slopes, for ``z`` as given."""
        xp = array_namespace(z)
        value, slope = self.value_and_gradient(z, y)
        size = 1.0 + xp.abs(z) + xp.abs(logarithm(y, z, floor_of_labels(z)))
        return errors_of_exponential(value, slope, slope + 2.0 * y, size, z)

    def cvxpy(self, z: Any, y: Any) -> Any:
        """Return the CVXPY expression of the loss of every row, for reference solutions."""
        import cvxpy as cp

        return cp.exp(z) - cp.multiply(y, z) + (x_log_x(y) - y)
