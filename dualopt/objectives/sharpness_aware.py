"""Sharpness-aware gradients on top of any objective."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from dualopt.arrays._checks import require_positive
from dualopt.arrays.xp import Array, array_namespace
from dualopt.objectives.local_problem import client_dot, per_client
from dualopt.objectives.rows import Sample
from dualopt.objectives.wrapper import ObjectiveWrapper
from dualopt.regularisers import Zero

__all__ = ["SharpnessAware"]


@dataclass(frozen=True, kw_only=True, eq=False)
class SharpnessAware(ObjectiveWrapper):
    r"""An objective whose gradients are taken at a point a fixed distance up the gradient (Foret et al. 2020).

    .. math:: G_j(\theta) = \nabla f_j\Bigl(\theta + \text{radius}\, \frac{g}{|g| + \epsilon}\Bigr), \qquad
              g = \nabla f_j(\theta)

    A sampled gradient uses one sample at both points. A-FedPDSAM (Sun et al., Algorithm 2, line 3) and FedSpeed train
    with it; the norm is taken client by client. The box of A-FedPDSAM divides by ``|g|`` alone and is not defined
    where ``g = 0``; its table of parameters lists an epsilon of 1e-2 and the text does not say where it enters. Here
    it is added to the norm, which is the usual form and makes the point continuous in ``theta``.

    The perturbed gradient is the gradient of no function and ``value`` is that of ``f_j``: meant for ``SGD`` and for
    gradient descent with a step, not for line searches. Dual points and gaps made from it would certify
    nothing, so that ``mu`` is ``-inf``: no solver makes any. An evaluation costs two gradients, and solvers
    count two.

    Parameters
    ----------
    objective : Objective
        The ``f_j``.
    radius : float, default 0.1
        Length of the step along the gradient, positive.
    epsilon : float, default 1e-2
        Added to the norm, positive.

    Raises
    ------
    ValueError
        If ``radius`` or ``epsilon`` is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt.objectives.quadratic import Quadratic
    >>> f = Quadratic(A=np.full((1, 1, 1), 2.0), b=np.zeros((1, 1)))
    >>> SharpnessAware(objective=f, radius=0.5, epsilon=2.0).gradient(np.ones(1)).tolist()
    [[2.5]]
    """

    forwarded: ClassVar[frozenset[str]] = frozenset({"samples"})

    objective: Any
    radius: float = 0.1
    epsilon: float = 1e-2

    def __post_init__(self) -> None:
        if self.objective.regulariser != Zero():
            raise ValueError("objective must not have a regulariser: put Composite around the whole instead.")
        require_positive(radius=self.radius, epsilon=self.epsilon)

    @property
    def mu(self) -> Array:
        """``-inf``: nothing is claimed about the convexity of a field that is no gradient, shape ``(N,)``."""
        return -math.inf * array_namespace(self.objective.mu).ones_like(self.objective.mu)

    @property
    def L(self) -> Array:
        r"""Lipschitz constants :math:`L_j (1 + \text{radius}\, L_j / \epsilon)` of ``G_j``, shape ``(N,)``.

        The map :math:`g \mapsto g/(|g| + \epsilon)` has the Lipschitz constant :math:`1/\epsilon`: the derivative is
        :math:`1/(|g| + \epsilon)` across ``g`` and :math:`\epsilon/(|g| + \epsilon)^2` along it.
        """
        return self.objective.L * (1.0 + self.radius / self.epsilon * self.objective.L)

    @property
    def gradient_cost(self) -> float:
        """Two gradients of the objective."""
        return 2.0 * self.objective.gradient_cost

    def value(self, theta: Array) -> Array:
        """Return ``f_j(theta_j)``, unperturbed, shape ``(N,)``."""
        return self.objective.value(theta)

    def gradient(self, theta: Array) -> Array:
        """Return ``G_j(theta_j)``, shape ``(N, *shape)``."""
        return self.objective.gradient(self._perturbed(theta, self.objective.gradient(theta)))

    def value_and_gradient(self, theta: Array) -> tuple[Array, Array]:
        """Return ``f_j(theta_j)`` and ``G_j(theta_j)``."""
        value, gradient = self.objective.value_and_gradient(theta)
        return value, self.objective.gradient(self._perturbed(theta, gradient))

    def sample_gradient(self, theta: Array, sample: Sample) -> Array:
        """Return ``G_j`` with both gradients estimated from the same sample, ``(N, *shape)``."""
        gradient = self.objective.sample_gradient(theta, sample)
        return self.objective.sample_gradient(self._perturbed(theta, gradient), sample)

    def _perturbed(self, theta: Array, gradient: Array) -> Array:
        norm = array_namespace(gradient).sqrt(client_dot(gradient, gradient))
        return theta + per_client(self.radius / (norm + self.epsilon), gradient) * gradient
