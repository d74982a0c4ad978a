"""A nonconvex penalty on top of any objective."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from dualopt.arrays._checks import require_positive
from dualopt.arrays.xp import Array, array_namespace, broadcast, epsilon
from dualopt.objectives._rounding import Rounding, client_norm, gamma, tiny
from dualopt.objectives.rows import Sample
from dualopt.objectives.wrapper import ObjectiveWrapper
from dualopt.regularisers import Zero

__all__ = ["NonconvexPenalty"]


@dataclass(frozen=True, kw_only=True, eq=False)
class NonconvexPenalty(ObjectiveWrapper):
    r"""An objective with a bounded nonconvex penalty on every entry of the model.

    .. math:: f_j(\theta) + \sum_k h(\theta_k), \qquad h(t) = \text{lam}\, \frac{\alpha t^2}{1 + \alpha t^2}

    Every client has the penalty, so ``E`` has it once. With :math:`u = \alpha t^2`,

    .. math:: h'(t) = \frac{2\, \text{lam}\, \alpha\, t}{(1 + u)^2}, \qquad
              h''(t) = 2\, \text{lam}\, \alpha\, \frac{1 - 3 u}{(1 + u)^3}.

    The derivative of :math:`(1 - 3u)/(1 + u)^3` in ``u`` is :math:`6 (u - 1)/(1 + u)^4`: it falls from 1 at ``u = 0``
    to -1/4 at ``u = 1`` and rises towards 0 from there. Hence
    :math:`-\text{lam}\,\alpha/2 \le h'' \le 2\, \text{lam}\,\alpha`, both attained, and ``mu = mu_j - lam alpha / 2``
    (negative when ``f_j`` is not convex enough), ``L = L_j + 2 lam alpha``. The experiments of the FedPD paper
    (Section V) add it to logistic losses with ``lam = 0.1`` and ``alpha = 1``.

    Parameters
    ----------
    objective : Objective
        The ``f_j``.
    lam : float, default 0.1
        Height of the penalty, at least 0.
    alpha : float, default 1
        Its curvature scale, positive.

    Raises
    ------
    ValueError
        If ``lam`` or ``alpha`` is out of range, or the curvature ``2 lam alpha`` overflows.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt.objectives.quadratic import Quadratic
    >>> f = Quadratic(A=np.ones((1, 1, 1)), b=np.zeros((1, 1)))
    >>> g = NonconvexPenalty(objective=f, lam=4.0)
    >>> g.value(np.ones(1)).tolist(), g.gradient(np.ones(1)).tolist(), g.mu.tolist(), g.L.tolist()
    ([2.5], [[3.0]], [-1.0], [9.0])
    """

    forwarded: ClassVar[frozenset[str]] = frozenset({"hessian", "samples"})

    objective: Any
    lam: float = 0.1
    alpha: float = 1.0

    def __post_init__(self) -> None:
        if self.objective.regulariser != Zero():
            raise ValueError("objective must not have a regulariser: put Composite around the whole instead.")
        if not (math.isfinite(self.lam) and self.lam >= 0):
            raise ValueError(f"lam must be a finite number, at least 0, not {self.lam}.")
        require_positive(alpha=self.alpha)
        if not math.isfinite(2.0 * self.lam * self.alpha):
            raise ValueError(f"lam = {self.lam:g} times alpha = {self.alpha:g} is too large for a number.")

    @property
    def mu(self) -> Array:
        """Lower bounds ``mu_j - lam alpha / 2`` of the curvature, shape ``(N,)``; negative: not convex."""
        return self.objective.mu - 0.5 * self.lam * self.alpha

    @property
    def mu_rounding(self) -> Array:
        """That of the objective, and four units in the last place of both terms of ``mu``, shape ``(N,)``."""
        mu = self.objective.mu
        terms = array_namespace(mu).abs(mu) + 0.5 * self.lam * self.alpha
        return self.objective.mu_rounding + 4.0 * epsilon(mu) * terms

    @property
    def L(self) -> Array:
        """Smoothness constants ``L_j + 2 lam alpha``, shape ``(N,)``."""
        return self.objective.L + 2.0 * self.lam * self.alpha

    def value(self, theta: Array) -> Array:
        """Return the values with the penalty, shape ``(N,)``."""
        return self.objective.value(theta) + self._penalty(theta)

    def gradient(self, theta: Array) -> Array:
        """Return the gradients with that of the penalty, shape ``(N, *shape)``."""
        return self.objective.gradient(theta) + self._slope(theta)

    def value_and_gradient(self, theta: Array) -> tuple[Array, Array]:
        """Return both, at the price of the gradient alone."""
        value, gradient = self.objective.value_and_gradient(theta)
        return value + self._penalty(theta), gradient + self._slope(theta)

    def rounding(self, theta: Array, value: Array, gradient: Array, excess: Array | None = None) -> Rounding:
        """Add the errors of the penalty, a sum of positive terms, of its slopes, and of the two additions."""
        penalty, slope = self._penalty(theta), broadcast(self._slope(theta), gradient.shape)
        own, n = self.objective.rounding(theta, value - penalty, gradient - slope, excess), math.prod(slope.shape[1:])
        xp = array_namespace(value)
        values = gamma(n + 16, value) * penalty + gamma(2, value) * xp.abs(value)
        slopes = gamma(16, value) * (client_norm(slope) + client_norm(gradient))
        least = n * tiny(value) * (1.0 + self.lam) * (1.0 + self.alpha)
        return Rounding(own.value + values + least, own.gradient + slopes + least)

    def hessian_operator(self, theta: Array) -> Callable[[Array], Array]:
        """Return ``v -> (hess f_j(theta_j) + diag h''(theta_j)) v_j``."""
        product = self.objective.hessian_operator(theta)
        u = self.alpha * theta * theta
        diagonal = 2.0 * self.lam * self.alpha * (1.0 - 3.0 * u) / (1.0 + u) ** 3
        return lambda v: product(v) + diagonal * v

    def sample_gradient(self, theta: Array, sample: Sample) -> Array:
        """Return the estimates of the gradients of ``f_j`` with the gradient of the penalty, ``(N, *shape)``."""
        return self.objective.sample_gradient(theta, sample) + self._slope(theta)

    def _penalty(self, theta: Array) -> Array:
        """Return ``sum_k h(theta_jk)``, shape ``(N,)``, or one number for one point."""
        xp = array_namespace(theta)
        u = self.alpha * theta * theta
        leading = u.shape[: u.ndim - len(self.shape)]
        return self.lam * xp.sum(xp.reshape(u / (1.0 + u), (*leading, -1)), axis=-1)

    def _slope(self, theta: Array) -> Array:
        u = self.alpha * theta * theta
        return 2.0 * self.lam * self.alpha * theta / (1.0 + u) ** 2
