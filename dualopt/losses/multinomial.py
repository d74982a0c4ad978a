"""The multinomial logistic loss of several classes."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar

from dualopt.arrays.xp import Array, array_namespace, device, epsilon, largest, numbers_like, summed
from dualopt.losses._checks import positive_step
from dualopt.losses._entropy import x_log_x
from dualopt.losses._wright_omega import wright_omega

__all__ = ["Multinomial"]


@dataclass(frozen=True, kw_only=True)
class Multinomial:
    r"""Negative log-likelihood of a class, :math:`\phi(z; y) = \log\sum_l e^{z_l} - z_y`.

    The predictor ``z`` has shape ``(..., k, m)``, classes on axis -2; ``y`` holds integers from 0 to
    ``k - 1`` in shape ``(..., m)``. The methods are those of `Loss`. With :math:`a = u + e_y`, the conjugate
    is :math:`\phi^*(u; y) = \sum_l a_l \log a_l` if :math:`a` is in the probability simplex, ``+inf``
    elsewhere. A sum within ``4 k eps`` of 1 and parts above ``-4 k eps`` count as inside; negative parts are
    then taken as 0. The curvature is 1/2 (Böhning 1992, "Multinomial logistic regression algorithm").

    Parameters
    ----------
    classes : int
        Number of classes ``k``.

    Raises
    ------
    ValueError
        If ``classes`` is not an integer of at least 2, or, in a method, if axis -2 of ``z`` is not
        ``classes`` long.

    Examples
    --------
    >>> import numpy as np
    >>> z = np.zeros((4, 2))  # 4 classes, 2 rows
    >>> y = np.asarray([0, 3])
    >>> loss = Multinomial(classes=4)
    >>> loss.value(z, y).round(6)
    array([1.386294, 1.386294])
    >>> loss.gradient(z, y)
    array([[-0.75,  0.25],
           [ 0.25,  0.25],
           [ 0.25,  0.25],
           [ 0.25, -0.75]])
    """

    labels: ClassVar[str] = "class"
    nonnegative: ClassVar[bool] = True
    shift_invariant: ClassVar[bool] = True
    example: ClassVar[dict[str, Any]] = {"classes": 4}
    sklearn: ClassVar[str] = "linear_model.LogisticRegression"
    family: ClassVar[str] = "multinomial"
    ratio: ClassVar[str] = "odds ratio"
    # the third derivative is E[(v - Ev) (h - Eh)^2] under the softmax, and |v_l - Ev| <= max v - min v <= sqrt(2) |v|
    self_concordance: ClassVar[float] = 2.0**0.5

    classes: int

    def __post_init__(self) -> None:
        """Check and coerce the number of classes."""
        if not isinstance(self.classes, Integral) or self.classes < 2:
            raise ValueError(f"classes must be an integer of at least 2, got {self.classes!r}.")
        object.__setattr__(self, "classes", int(self.classes))

    @property
    def outputs(self) -> int:
        """One predictor per class."""
        return self.classes

    @property
    def curvature(self) -> float:
        """The largest eigenvalue of a softmax covariance: two classes of probability 1/2."""
        return 0.5

    @property
    def lipschitz(self) -> float:
        """Root of two: that of a wrong class of probability 1, less the unit vector of the right one."""
        return 2.0**0.5

    def mean(self, z: Array) -> Array:
        """Compute the probabilities of the classes, the softmax of ``z``, shape ``(..., k, m)``."""
        return softmax(z)

    def value(self, z: Array, y: Array) -> Array:
        """Compute the loss of every row."""
        xp = array_namespace(z)
        own = self._own_class(z, y)
        shifted = z - xp.max(z, axis=-2, keepdims=True)
        return xp.log(xp.sum(xp.exp(shifted), axis=-2)) - xp.sum(xp.where(own, shifted, 0.0), axis=-2)

    def gradient(self, z: Array, y: Array) -> Array:
        """Compute the softmax of ``z`` less the indicator of the row's class."""
        own = self._own_class(z, y)
        return softmax(z) - array_namespace(z).astype(own, z.dtype)

    def value_and_gradient(self, z: Array, y: Array) -> tuple[Array, Array]:
        """Compute the loss and its gradient from one exponential per entry, reusing the arrays made here."""
        xp = array_namespace(z)
        own = self._own_class(z, y)
        shifted = z - largest(z, -2, keepdims=True)
        gradient = xp.exp(shifted)
        total = summed(gradient, -2, keepdims=True)
        value = xp.log(total[..., 0, :]) - summed(xp.where(own, shifted, 0.0), -2)
        gradient /= total
        gradient -= xp.astype(own, z.dtype)
        return value, gradient

    def hessian_product(self, z: Array, y: Array, v: Array) -> Array:
        """Compute ``p * (v - <p, v>)`` with the softmax ``p`` of ``z``; it does not depend on the class."""
        p = softmax(z)
        return p * (v - array_namespace(z).sum(p * v, axis=-2, keepdims=True))

    def hessian_sum(self, z: Array, y: Array, w: Array) -> Array:
        """Compute the sum of ``w (diag(p) - p p')`` over rows with the softmax ``p`` of ``z``, ``(..., k, k)``."""
        xp, p = array_namespace(z), softmax(z)
        weighted = p * w[..., None, :]
        identity = xp.eye(self.classes, dtype=z.dtype, device=device(z))
        return xp.sum(weighted, axis=-1)[..., None] * identity - weighted @ xp.matrix_transpose(p)

    def conjugate(self, u: Array, y: Array) -> Array:
        """Compute the negative entropy of ``u + e_y`` where it is a distribution, ``+inf`` elsewhere."""
        xp = array_namespace(u)
        a = u + xp.astype(self._own_class(u, y), u.dtype)
        tolerance = 4 * self.classes * epsilon(u)
        inside = (xp.min(a, axis=-2) >= -tolerance) & (xp.abs(xp.sum(a, axis=-2) - 1.0) <= tolerance)
        return xp.where(inside, xp.sum(x_log_x(xp.maximum(a, 0.0)), axis=-2), xp.inf)

    def prox(self, z: Array, y: Array, step: float | Array) -> Array:
        r"""Solve the optimality condition by Newton's method in one unknown per row.

        With step :math:`s`, :math:`a = z + s e_y` and :math:`c = \log\sum_l e^{x_l}`, the solution satisfies
        :math:`x_l + s e^{x_l - c} = a_l`, hence :math:`a_l - x_l = \omega(\log s + a_l - c)` with the Wright
        omega function, and :math:`c` is the root of :math:`S(c) = \sum_l \omega(\log s + a_l - c) - s`. As
        :math:`\omega` is increasing and convex, :math:`S` is decreasing and convex: from the start
        :math:`\log\sum_l e^{a_l} - s`, which is no greater than the root, Newton steps only rise, and since
        :math:`S'' \le |S'|` a step :math:`d` leaves an error of about :math:`d^2/2`. A row therefore stops
        after its first step below the square root of rounding; its result does not depend on the other
        rows.
        """
        xp = array_namespace(z)
        s = positive_step(step, z)
        if s.ndim > 0:
            s = s[..., None, :]
        a = z + s * xp.astype(self._own_class(z, y), z.dtype)
        relative = a - xp.max(a, axis=-2, keepdims=True)  # adding a number to a row adds it to the solution
        t = xp.log(s) + relative
        c = xp.log(xp.sum(xp.exp(relative), axis=-2, keepdims=True)) - s
        tolerance = epsilon(z) ** 0.5
        moving = xp.ones_like(c, dtype=xp.bool)
        # Where omega is nearly max(0, .), each step drops a class or more for good, so the number of classes
        # bounds the steps before convergence turns quadratic; five to ten are usual.
        for _ in range(self.classes + 50):
            omega = wright_omega(t - c)
            slope = xp.sum(omega / (1.0 + omega), axis=-2, keepdims=True)
            rise = (xp.sum(omega, axis=-2, keepdims=True) - s) / slope
            previous = c
            c = xp.where(moving, c + rise, c)
            moving = moving & (c - previous > tolerance)
            if not bool(xp.any(moving)):
                break
        return a - wright_omega(t - c)

    def log_base(self, y: Array) -> Array:
        """Return 0 for each row: the largest likelihood of a class is 1."""
        return array_namespace(y).zeros_like(y)

    def cvxpy(self, z: Any, y: Any) -> Any:
        """Return the CVXPY expression of the loss of every row, for reference solutions."""
        import cvxpy as cp

        own = 1.0 * (array_namespace(y).arange(self.classes)[:, None] == y)
        return cp.log_sum_exp(z, axis=0) - cp.sum(cp.multiply(own, z), axis=0)

    def _own_class(self, z: Array, y: Array) -> Array:
        """Return, in shape ``(..., k, m)``, whether a class is the row's own, after a check of the layout."""
        if z.ndim < 2 or z.shape[-2] != self.classes:
            raise ValueError(f"z must have {self.classes} classes on axis -2, got shape {tuple(z.shape)}.")
        return numbers_like(self.classes, y)[:, None] == y[..., None, :]


def softmax(z: Array) -> Array:
    """Compute ``exp(z) / sum(exp(z))`` over axis -2 without overflow."""
    xp = array_namespace(z)
    p = xp.exp(z - xp.max(z, axis=-2, keepdims=True))
    p /= xp.sum(p, axis=-2, keepdims=True)
    return p
