"""A regulariser of all weights but those of an intercept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from dualopt.arrays.xp import Array, array_namespace

__all__ = ["WithoutIntercept"]


@dataclass(frozen=True, kw_only=True)
class WithoutIntercept:
    r"""``g(w)`` of a model :math:`(w, b)`: the last entry on its last axis does not count.

    ``Composite`` puts it around the regulariser of clients whose intercept is free.

    Parameters
    ----------
    regulariser : Regulariser
        ``g``.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt.regularisers import L1
    >>> g, theta = WithoutIntercept(regulariser=L1(weight=0.5)), np.array([2.0, -0.25, 3.0])
    >>> g.value(theta), g.prox(theta, 1.0).tolist()
    (1.125, [1.5, 0.0, 3.0])
    >>> g.minimal_subgradient(theta, np.array([-0.5, 0.5, 0.75])).tolist()
    [0.0, 0.0, 0.75]
    """

    example: ClassVar[dict[str, Any]] = {}

    regulariser: Any

    @property
    def mu(self) -> float:
        """Strong convexity constant of ``g`` in all but the intercept."""
        return self.regulariser.mu

    def value(self, theta: Array) -> float:
        """Return ``g(w)``."""
        return self.regulariser.value(theta[..., :-1])

    def prox(self, theta: Array, step: float) -> Array:
        """Return the proximal map of ``g`` and the intercept as it is."""
        return _with_intercept(self.regulariser.prox(theta[..., :-1], step), theta)

    def minimal_subgradient(self, theta: Array, gradient: Array) -> Array:
        """Return that of ``g``, and the gradient of the intercept."""
        return _with_intercept(self.regulariser.minimal_subgradient(theta[..., :-1], gradient[..., :-1]), gradient)

    @property
    def share(self) -> Any:
        """That of ``g``, of the slope in ``w``; what is not there raises an AttributeError."""
        own = self.regulariser.share
        return lambda slope, error: own(slope[..., :-1], error)

    def cvxpy(self, theta: Any) -> Any:
        """Return the CVXPY expression."""
        return self.regulariser.cvxpy(theta[..., :-1])


def _with_intercept(weights: Array, theta: Array) -> Array:
    return array_namespace(theta).concat([weights, theta[..., -1:]], axis=-1)
