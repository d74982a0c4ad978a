"""Other clients with the same mean: each ``f_j`` divided by a number, and its weight multiplied by it."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from dualopt.arrays._checks import require
from dualopt.arrays.xp import Array, array_namespace, asarray_like, epsilon, to_numpy
from dualopt.objectives._rounding import Rounding, client_norm, tiny
from dualopt.objectives._weights import mean_of, of_clients, positive
from dualopt.objectives.composite import Composite, without_regulariser
from dualopt.objectives.local_problem import LocalProblem, per_client
from dualopt.objectives.rows import Sample
from dualopt.objectives.wrapper import ObjectiveWrapper

__all__ = ["Reweighted", "common_scales", "in_own_units", "own_clients", "reweighted", "scales_of"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Reweighted(ObjectiveWrapper):
    r"""The clients :math:`f_j/s_j` with the weights :math:`w_js_j`; :func:`reweighted` builds it.

    Parameters
    ----------
    objective : Objective
        The ``f_j`` and the weights ``w_j``.
    scales : tuple of float
        The ``s_j``, as they are.
    """

    objective: Any
    scales: tuple[float, ...]

    @property
    def weights(self) -> tuple[float, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The weights ``w_j s_j`` of the clients."""
        weights = self.objective.weights
        return self.scales if weights is None else tuple(w * s for w, s in zip(weights, self.scales, strict=True))

    @property
    def usual_weight(self) -> float | None:  # pyright: ignore[reportIncompatibleVariableOverride]
        """A proximal weight that is known to suit: that of the ``f_j``, as the mean of the scales is 1."""
        return self.objective.usual_weight

    @property
    def mu(self) -> Array:
        """Strong convexity constants ``mu_j/s_j``, shape ``(N,)``."""
        return self.over_scales(self.objective.mu)

    @property
    def nonnegative(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether every ``f_j`` is at least 0."""
        return self.objective.nonnegative

    @property
    def partial_mu(self) -> Array:
        """Those in all but a free intercept, over the scales, shape ``(N,)``."""
        return self.over_scales(self.objective.partial_mu)

    @property
    def mu_rounding(self) -> Array:
        """Those of the constants over the scales, and that of the quotients, shape ``(N,)``."""
        mu = self.objective.partial_mu
        rounding = self.objective.mu_rounding + 4.0 * epsilon(mu) * array_namespace(mu).abs(mu)
        return self.over_scales(rounding) * (1.0 + 4.0 * epsilon(mu))

    @property
    def L(self) -> Array:
        """Smoothness constants ``L_j/s_j``, shape ``(N,)``."""
        return self.over_scales(self.objective.L)

    def value(self, theta: Array) -> Array:
        """Return ``f_j(theta_j)/s_j``, shape ``(N,)``."""
        return self.over_scales(self.objective.value(theta))

    def gradient(self, theta: Array) -> Array:
        """Return their gradients, shape ``(N, *shape)``."""
        return self.over_scales(self.objective.gradient(theta))

    def value_and_gradient(self, theta: Array) -> tuple[Array, Array]:
        """Return both, at the price of the gradient alone."""
        value, gradient = self.objective.value_and_gradient(theta)
        return self.over_scales(value), self.over_scales(gradient)

    def rounding(self, theta: Array, value: Array, gradient: Array, excess: Array | None = None) -> Rounding:
        """Return bounds of the errors of the ``f_j`` over the scales, with those of a product and a quotient."""
        s, unit = self._scales(value), 8.0 * epsilon(value)
        own = self.objective.rounding(theta, s * value, per_client(s, gradient) * gradient, _times(s, excess))
        values = own.value / s + unit * array_namespace(value).abs(value) + tiny(value)
        return Rounding(values, own.gradient / s + unit * client_norm(gradient) + math.prod(self.shape) * tiny(value))

    def hessian_operator(self, theta: Array) -> Callable[[Array], Array]:
        """Return ``v -> hess f_j(theta_j) v_j / s_j``."""
        product = self.objective.hessian_operator(theta)
        return lambda v: self.over_scales(product(v))

    def preconditioner(self, weight: float | Array = 0.0, *curvatures: Any) -> Callable[[Array], Array]:
        """Return ``v -> s_j P_j v_j`` with the ``P_j`` of the ``f_j``, and their curvatures, for ``s_j weight_j``."""
        s = self._scales(self.objective.mu)
        product = self.objective.preconditioner(s * weight, *curvatures)
        return lambda v: per_client(s, found := product(v)) * found

    def exact_minimiser(self, problem: LocalProblem) -> Array:
        """Return the minimisers of local problems, which are those of the ``f_j`` with all terms times ``s_j``."""
        return self.objective.exact_minimiser(in_own_units(problem))

    def sample_gradient(self, theta: Array, sample: Sample) -> Array:
        """Return the gradients estimated from a sample of rows, shape ``(N, *shape)``."""
        return self.over_scales(self.objective.sample_gradient(theta, sample))

    def select(self, ids: Sequence[int]) -> Self:
        """Return the objective of the clients ``ids``, with their scales as they are."""
        return replace(self, objective=self.objective.select(ids), scales=of_clients(self.scales, ids))

    def _scales(self, like: Array) -> Array:
        return asarray_like(self.scales, like)

    def over_scales(self, rows: Array) -> Array:
        """Return rows ``(N, ...)`` divided by the scales."""
        return rows / per_client(self._scales(rows), rows)


def reweighted(objective: Any, scales: Sequence[float] | None) -> Any:
    r"""Return the same ``E`` made of other clients: :math:`f_j/s_j` with the weights :math:`w_js_j`.

    The scales are normalised to :math:`\sum_jw_js_j = \sum_jw_j`, so that

    .. math:: \sum_j w_js_j\,\frac{f_j}{s_j} \Big/ \sum_jw_js_j = \sum_jw_jf_j \Big/ \sum_jw_j.

    A method on these clients has one scale for each client: with :math:`\nu` or :math:`\alpha` it has :math:`\nu s_j`
    or :math:`\alpha s_j` for the :math:`f_j`, with a step :math:`\eta` it has :math:`\eta/s_j`, and it averages with
    the weights :math:`w_js_j`. The constants are :math:`\mu_j/s_j` and :math:`L_j/s_j`. A regulariser stays what it is.

    Parameters
    ----------
    objective : Objective
        The ``f_j``, with their weights.
    scales : sequence of float, optional
        The ``s_j``, positive, up to a common factor; without any, the objective itself is returned.

    Raises
    ------
    ValueError
        If there is not one positive number for each client.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt.objectives import Quadratic
    >>> f = Quadratic(A=np.array([[[1.0]], [[9.0]]]), b=np.array([[2.0], [0.0]]))
    >>> g = reweighted(f, f.L)
    >>> g.L.tolist(), g.weights, float(g.mean(g.value(np.ones(1)))), float(f.mean(f.value(np.ones(1))))
    ([5.0, 5.0], (0.2, 1.8), 1.5, 1.5)
    """
    if scales is None:
        return objective
    if isinstance(objective, Composite):
        return replace(objective, objective=reweighted(objective.objective, scales))
    numbers = positive("scales", scales, objective.n_clients)
    assert numbers is not None
    if isinstance(objective, Reweighted):
        return reweighted(objective.objective, [a * b for a, b in zip(objective.scales, numbers, strict=True)])
    center = mean_of(numbers, objective.weights)
    if all(s == numbers[0] for s in numbers):
        return objective
    if abs(center - 1.0) > 4 * len(numbers) * sys.float_info.epsilon:  # else they are normalised already
        numbers = tuple(s / center for s in numbers)
    return Reweighted(objective=objective, scales=numbers)


def common_scales(objective: Any) -> tuple[float, ...]:
    r"""Return :math:`\sqrt{L_j\mu_j}` for every client, :math:`\mu_j` or :math:`L_j` where that is all that is known.

    Raises
    ------
    ValueError
        If neither all :math:`\mu_j` nor all :math:`L_j` are positive and finite.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt.objectives import Quadratic
    >>> f = Quadratic(A=np.stack([np.diag([1.0, 4.0]), np.diag([4.0, 100.0])]), b=np.zeros((2, 2)))
    >>> common_scales(f)
    (2.0, 20.0)
    """
    mu, L = ([float(x) for x in to_numpy(numbers)] for numbers in (objective.mu, objective.L))
    known = [x for x in (mu, L) if all(0 < number < math.inf for number in x)]
    require(known, "scales must be none or numbers for clients that are neither smooth nor strongly convex")
    return tuple(math.prod(pair) ** (1.0 / len(pair)) for pair in zip(*known, strict=True))


def scales_of(objective: Any) -> list[float]:
    """Return the scales of reweighted clients, normalised; nothing for others."""
    f = without_regulariser(objective)
    return list(f.scales) if isinstance(f, Reweighted) else []


def own_clients(objective: Any) -> Any:
    """Return the ``f_j`` that were reweighted; other objectives as they are.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt.objectives import Quadratic
    >>> f = Quadratic(A=np.ones((2, 1, 1)), b=np.zeros((2, 1)))
    >>> own_clients(reweighted(f, [1, 2])) is f is own_clients(f)
    True
    """
    if isinstance(objective, Composite):
        inner = own_clients(objective.objective)
        return objective if inner is objective.objective else replace(objective, objective=inner)
    return objective.objective if isinstance(objective, Reweighted) else objective


def in_own_units(problem: LocalProblem) -> LocalProblem:
    r"""Return local problems on :math:`f_j/s_j` as ones on :math:`f_j` with the same minimisers.

    All terms are multiplied by :math:`s_j`. What solvers make of them certifies the :math:`f_j` without another
    rounding. ``unit`` tells the scales to those who compare with numbers of the method's, as steps and absolute
    tolerances are. Other problems are returned as they are.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt.objectives import Quadratic
    >>> f = Quadratic(A=np.array([[[1.0]], [[9.0]]]), b=np.array([[2.0], [0.0]]))
    >>> problem = LocalProblem(objective=reweighted(f, [1, 9]), weight=10.0, center=np.zeros(1))
    >>> in_own_units(problem).weight.tolist()
    [2.0, 18.0]
    """
    g = problem.objective
    if type(g) is not Reweighted:  # quicker than isinstance with abstract classes, and asked in every call
        return problem
    s = asarray_like(g.scales, g.objective.mu)
    linear = None if problem.linear is None else per_client(s, problem.linear) * problem.linear
    plain = isinstance(problem.weight, float | int) and problem.weight == 0
    weight = problem.weight if plain else s * problem.weight
    unit = s if problem.unit is None else s * problem.unit
    return LocalProblem(objective=g.objective, linear=linear, weight=weight, center=problem.center, unit=unit)


def _times(scales: Array, numbers: Array | None) -> Array | None:
    return None if numbers is None else scales * numbers
