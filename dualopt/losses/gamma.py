"""The gamma loss of positive amounts, with a logarithmic link."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from dualopt.arrays.xp import Array, array_namespace, epsilon, limits
from dualopt.losses._checks import positive_step
from dualopt.losses._exponential import errors_of_exponential, exp_minus_tangent, exponential, logarithm
from dualopt.losses._wright_omega import wright_omega

__all__ = ["Gamma"]

MANY = 20.0  # shape from which the gamma function is expanded


@dataclass(frozen=True, kw_only=True)
class Gamma:
    r"""Half the unit deviance of a gamma variable with the mean :math:`e^z`, for positive labels.

    .. math:: \phi(z; y) = y e^{-z} + z - \log y - 1 \ge 0,

    the negative log-likelihood for the shape 1 up to a number that does not depend on ``z``. With :math:`a = 1 - u` its
    conjugate is :math:`\phi^*(u; y) = a\log a + u (1 + \log y)` on :math:`a \ge 0` (where ``8 eps`` outside counts as
    inside), ``+inf`` elsewhere. Neither slopes nor second derivatives are bounded. Arrays have shape ``(..., m)``; the
    methods are those of `Loss`. Where :math:`y e^{-z}` is near the largest number, from :math:`\log y - z = 283` on in
    double and 35 in single precision, its tangent is taken instead: a lower bound, so that certificates of models
    with larger predictors remain true, and others are infinite. (McCullagh and Nelder 1989, "Generalized linear
    models", Section 8.3.)

    Examples
    --------
    >>> import numpy as np
    >>> z, y = np.asarray([0.0, 1.0, -1e4]), np.asarray([1.0, 1.0, 3.0])
    >>> loss = Gamma()
    >>> loss.value(z, y)[:2].round(6).tolist(), loss.gradient(z, y)[:2].round(6).tolist()
    ([0.0, 0.367879], [0.0, 0.632121])
    >>> bool(np.isfinite(loss.value(z, y)).all())
    True
    """

    labels: ClassVar[str] = "real"
    sklearn: ClassVar[str] = "linear_model.GammaRegressor"
    label_domain: ClassVar[str] = "positive"
    nonnegative: ClassVar[bool] = True
    differentiable: ClassVar[bool] = True
    family: ClassVar[str] = "gamma"
    link: ClassVar[str] = "log"
    ratio: ClassVar[str] = "ratio of means"
    self_concordance: ClassVar[float] = 1.0  # both derivatives are the label over the mean
    example: ClassVar[dict[str, Any]] = {}

    @property
    def outputs(self) -> int:
        """One predictor per row."""
        return 1

    @property
    def curvature(self) -> float:
        """Infinite: the second derivative, the label over the mean, is not bounded."""
        return math.inf

    @property
    def lipschitz(self) -> float:
        """Infinite: the label over the mean is not bounded."""
        return math.inf

    def log_base(self, y: Array) -> Array:
        """Return ``-log y``."""
        return -array_namespace(y).log(y)

    def normaliser(self, dispersion: float) -> float:
        """Return ``-log(s)/s - log Gamma(1/s) - 1/s`` for the dispersion ``s``, one over the shape.

        Of large shapes, where these cancel, it is Stirling's series (DLMF 5.11.1).
        """
        a = 1.0 / dispersion
        if a < MANY:
            return a * (math.log(a) - 1.0) - math.lgamma(a)
        r = 1.0 / (a * a)
        return 0.5 * math.log(0.5 * a / math.pi) - (1 / 12 - r * (1 / 360 - r * (1 / 1260 - r / 1680))) / a

    def pearson(self, z: Array, y: Array) -> Array:
        """Compute ``(y/mean - 1)^2``: the variance function is the square of the mean."""
        return (y * array_namespace(z).exp(-z) - 1.0) ** 2

    def value(self, z: Array, y: Array) -> Array:
        """Compute the loss of every row."""
        return self.value_and_gradient(z, y)[0]

    def gradient(self, z: Array, y: Array) -> Array:
        """Compute one less the label over the mean."""
        return self.value_and_gradient(z, y)[1]

    def value_and_gradient(self, z: Array, y: Array) -> tuple[Array, Array]:
        r"""Compute the loss :math:`e^t - 1 - t` with ``t = log y - z``, and its derivative :math:`1 - e^t`."""
        xp = array_namespace(z)
        t = logarithm(y, z) - z
        ratio, growth = exponential(t)
        near = xp.abs(t) <= 1.0
        value = xp.where(near, exp_minus_tangent(t), ratio - (1.0 + t))
        return value, xp.where(near, 0.0 - xp.expm1(xp.clip(t, -1.0, 1.0)), 1.0 - growth)

    def hessian_product(self, z: Array, y: Array, v: Array) -> Array:
        """Compute ``v`` times the label over the mean; beyond the largest such quotient times this one."""
        return exponential(logarithm(y, z) - z)[1] * v

    def conjugate(self, u: Array, y: Array) -> Array:
        """Compute ``a log a + u (1 + log y)``, ``a = 1 - u``, where that is not negative, ``+inf`` elsewhere."""
        xp = array_namespace(u)
        inside = u <= 1.0 + 8.0 * epsilon(u)
        u = xp.minimum(u, 1.0)
        a = 1.0 - u
        log_a = xp.where(
            xp.abs(u) <= 0.5,
            xp.log1p(-xp.clip(u, -0.5, 0.5)),
            xp.log(xp.maximum(a, limits(a)[1])),
        )
        return xp.where(inside, a * log_a + u * (1.0 + logarithm(y, u)), xp.inf)

    def prox(self, z: Array, y: Array, step: float | Array) -> Array:
        r"""Compute :math:`b + \omega(\log(s y) - b)` with :math:`b = z - s`, and one step of Newton's method.

        The solution satisfies :math:`x - s y e^{-x} = b`, so that :math:`w = s y e^{-x}` has
        :math:`w + \log w = \log(s y) - b`.
        """
        xp = array_namespace(z)
        step = positive_step(step, z)
        b, scale = z - step, xp.log(step) + logarithm(y, z)
        x = b + wright_omega(scale - b)
        pull = xp.exp(scale - x)
        return x - (x - pull - b) / (1.0 + pull)  # a large omega leaves few digits of x

    def mean(self, z: Array) -> Array:
        """Return the means ``e^z`` that predictors stand for."""
        return exponential(z)[0]

    def rounding(self, z: Array, y: Array) -> tuple[Array, Array]:
        """Bound the errors of computed values and slopes, for ``z`` as given."""
        xp = array_namespace(z)
        value, slope = self.value_and_gradient(z, y)
        log_y, growth = logarithm(y, z), 1.0 + xp.abs(slope)  # at least y e^-z
        return errors_of_exponential(value, slope, growth, 1.0 + xp.abs(z) + xp.abs(log_y), log_y - z)

    def cvxpy(self, z: Any, y: Any) -> Any:
        """Return the CVXPY expression of the loss of every row, for reference solutions."""
        import cvxpy as cp

        log_y = array_namespace(y).log(y)
        return cp.exp(log_y - z) + z - (log_y + 1.0)
