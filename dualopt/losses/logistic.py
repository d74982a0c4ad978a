"""The logistic loss of two classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from dualopt.arrays.xp import Array, array_namespace
from dualopt.losses._checks import positive_step, project_to_interval
from dualopt.losses._entropy import x_log_x
from dualopt.losses._wright_omega import wright_omega

__all__ = ["Logistic"]

NEWTON_STEPS = 6


@dataclass(frozen=True, kw_only=True)
class Logistic:
    r"""Negative log-likelihood of a label in {-1, +1}, :math:`\phi(z; y) = \log(1 + e^{-y z})`.

    With :math:`a = -u y`, its conjugate is :math:`\phi^*(u; y) = a\log a + (1-a)\log(1-a)` on :math:`0 \le a \le 1`
    (where ``8 eps`` outside counts as inside), ``+inf`` elsewhere. Arrays have shape ``(..., m)``; the methods are
    those of `Loss`.

    Examples
    --------
    >>> import numpy as np
    >>> z, y = np.asarray([0.0, -1000.0]), np.asarray([1.0, 1.0])
    >>> loss = Logistic()
    >>> loss.value(z, y).round(6)
    array([6.93147e-01, 1.00000e+03])
    >>> loss.gradient(z, y)
    array([-0.5, -1. ])
    """

    labels: ClassVar[str] = "binary"
    nonnegative: ClassVar[bool] = True
    example: ClassVar[dict[str, Any]] = {}
    sklearn: ClassVar[str] = "linear_model.LogisticRegression"
    family: ClassVar[str] = "binomial"
    ratio: ClassVar[str] = "odds ratio"
    self_concordance: ClassVar[float] = 1.0  # |p (1 - p) (1 - 2p)| <= p (1 - p)

    @property
    def outputs(self) -> int:
        """One predictor per row."""
        return 1

    @property
    def curvature(self) -> float:
        """The second derivative at zero, where it is largest."""
        return 0.25

    @property
    def lipschitz(self) -> float:
        """One, the limit of the slope for very wrong predictions."""
        return 1.0

    def mean(self, z: Array) -> Array:
        r"""Compute the probability of +1, :math:`1/(1 + e^{-z})`."""
        xp = array_namespace(z)
        decay = xp.exp(-xp.abs(z))
        return xp.where(z < 0.0, decay, 1.0) / (1.0 + decay)

    def value(self, z: Array, y: Array) -> Array:
        """Compute the loss of every row."""
        xp = array_namespace(z)
        margin = y * z
        return xp.maximum(-margin, 0.0) + xp.log1p(xp.exp(-xp.abs(margin)))

    def gradient(self, z: Array, y: Array) -> Array:
        """Compute ``-y`` times the probability of the other label."""
        xp = array_namespace(z)
        margin = y * z
        decay = xp.exp(-xp.abs(margin))
        return -y * xp.where(margin > 0.0, decay, 1.0) / (1.0 + decay)

    def value_and_gradient(self, z: Array, y: Array) -> tuple[Array, Array]:
        """Compute the loss and its derivative from one exponential."""
        xp = array_namespace(z)
        margin = y * z
        decay = xp.exp(-xp.abs(margin))  # at most 1: the sign of the margin is put back below
        value = xp.maximum(-margin, 0.0) + xp.log1p(decay)
        return value, -y * xp.where(margin > 0.0, decay, 1.0) / (1.0 + decay)

    def hessian_product(self, z: Array, y: Array, v: Array) -> Array:
        """Compute ``p (1 - p) v``, where ``p`` is the probability of either label."""
        xp = array_namespace(z)
        decay = xp.exp(-xp.abs(y * z))
        return decay / (1.0 + decay) ** 2 * v

    def conjugate(self, u: Array, y: Array) -> Array:
        """Compute the negative entropy of ``(a, 1 - a)``, ``a = -u y``, where it is a distribution."""
        xp = array_namespace(u)
        a, inside = project_to_interval(-u * y, 0.0, 1.0)
        return xp.where(inside, x_log_x(a) + x_log_x(1.0 - a), xp.inf)

    def prox(self, z: Array, y: Array, step: float | Array) -> Array:
        r"""Solve the optimality condition by a fixed number of Newton steps from a start that suffices.

        The margin :math:`w = y x` of the solution satisfies :math:`w - b = s\,\sigma(-w)` with :math:`b = y
        z`, :math:`\sigma(w) = 1/(1 + e^{-w})` and step :math:`s`. Reflection (:math:`w \to -w`, :math:`b \to
        -(b + s)`) makes :math:`w \ge 0`, where :math:`h(w) = w - b - s\,\sigma(-w)` is increasing and
        concave. There :math:`e^{-w}/2 \le \sigma(-w) \le e^{-w}`, so that the solution lies at most
        :math:`\log 2` above the root of :math:`w - b = (s/2) e^{-w}`, a value of the Wright omega function.
        From this start Newton steps rise to the solution, and since :math:`|h''| \le h'` each takes the
        distance :math:`d` to at most :math:`d^2/2`.
        """
        xp = array_namespace(z)
        s = positive_step(step, z)
        b = y * z
        reflected = b + 0.5 * s < 0.0
        b = xp.where(reflected, -(b + s), b)
        w = xp.maximum(b + wright_omega(xp.log(0.5 * s) - b), 0.0)
        for _ in range(NEWTON_STEPS):
            decay = xp.exp(-w)
            probability = decay / (1.0 + decay)
            w = w - (w - b - s * probability) / (1.0 + s * probability / (1.0 + decay))
        return y * xp.where(reflected, -w, w)

    def log_base(self, y: Array) -> Array:
        """Return 0: the largest likelihood of a label is 1."""
        return array_namespace(y).zeros_like(y)

    def cvxpy(self, z: Any, y: Any) -> Any:
        """Return the CVXPY expression of the loss of every row, for reference solutions."""
        import cvxpy as cp

        return cp.logistic(-cp.multiply(y, z))
