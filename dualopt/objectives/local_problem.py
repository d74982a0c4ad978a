"""The one local problem that every method of this package asks its clients to solve."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

from dualopt.arrays.tree import is_everybody, take_clients
from dualopt.arrays.xp import Array, array_namespace, broadcast, reshape
from dualopt.objectives.objective import Objective
from dualopt.objectives.rows import Sample

__all__ = ["Evaluation", "LocalProblem", "Origin", "client_dot", "gap_bound", "per_client"]


def per_client(numbers: float | Array, like: Array) -> float | Array:
    """Reshape ``(N,)`` numbers so that they multiply an array of shape ``(N, *shape)``; pass one number through."""
    if isinstance(numbers, float | int | Fraction):
        return numbers
    return reshape(numbers, (numbers.shape[0],) + (1,) * (like.ndim - 1))


def client_dot(x: Array, y: Array) -> Array:
    """Return the inner products ``<x_j, y_j>`` of two ``(N, *shape)`` arrays, shape ``(N,)``, without a temporary."""
    xp = array_namespace(x, y)
    if x.shape != y.shape:
        x, y = xp.broadcast_arrays(x, y)
    # One flat axis: the summation order, and so the last bit, does not depend on the number of clients.
    if x.ndim == 2:
        return xp.vecdot(x, y)
    rows = x.shape[0], -1
    return xp.vecdot(reshape(x, rows), reshape(y, rows))


def gap_bound(squared_norm: Array, mu: Array) -> Array:
    """Return ``|grad|^2 / (2 mu)``, the largest suboptimality that such a gradient allows; infinite for ``mu = 0``."""
    xp = array_namespace(squared_norm)
    convex = mu > 0
    return xp.where(convex, squared_norm / xp.where(convex, 2.0 * mu, 1.0), math.inf)


class Origin(NamedTuple):
    """Where a call of a local solver began, of a problem whose variable is how far it has gone since."""

    value: Array  # (N,)  what is to be added to the values
    norm: Array  # (N,)  of the gradient at the start of the call


class Evaluation(NamedTuple):
    """The losses and the local problems at one point for each client.

    Both are kept: a linear or proximal term may be far larger than ``f_j``, which could not be had back by subtraction.
    """

    f: Array  # (N,)  f_j(theta_j)
    grad_f: Array  # (N, *shape)  grad f_j(theta_j)
    value: Array  # (N,)  F_j(theta_j)
    gradient: Array  # (N, *shape)  grad F_j(theta_j)


@dataclass(frozen=True, kw_only=True, eq=False)
class LocalProblem:
    r"""The local problem of every client (LOCAL).

    .. math:: \min_{\theta_j} \; F_j(\theta_j) = f_j(\theta_j) + \langle \text{linear}_j, \theta_j\rangle
              + \tfrac{\text{weight}_j}{2} |\theta_j - \text{center}_j|^2

    DualFL's problem (3.1) is ``linear = -nu zeta_j, weight = 0``.

    Parameters
    ----------
    objective : Objective
        The ``f_j``.
    linear : array, shape (N, *shape), optional
        Linear term; zero when not given.
    weight : float or array of shape (N,), default 0
        Weight of the proximal term.
    center : array, shape (N, *shape) or shape, optional
        Center of the proximal term; needed when ``weight`` is not zero.
    unit : array, shape (N,), optional
        How many times ``F_j`` is the function that a method asks for, whose steps and tolerances are in its own units.
    origin : Origin, optional
        Of a problem that goes on with another one: what stopping rules are told of that, in host memory.

    Raises
    ------
    ValueError
        If ``weight`` is given and ``center`` is not.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt.objectives.quadratic import Quadratic
    >>> f = Quadratic(A=np.ones((1, 1, 1)), b=np.zeros((1, 1)))
    >>> problem = LocalProblem(objective=f, linear=np.array([[-2.0]]))
    >>> problem.value(np.array([[2.0]])).tolist(), problem.gap(np.array([[3.0]])).tolist()
    ([-2.0], [0.5])
    """

    objective: Objective
    linear: Array | None = None
    weight: float | Array = 0.0
    center: Array | None = None
    unit: Array | None = None
    origin: Origin | None = None

    def __post_init__(self) -> None:
        if self.center is None and not (isinstance(self.weight, float | int) and self.weight == 0):
            raise ValueError("center is needed when weight is not zero.")

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def n_clients(self) -> int:
        """Number of clients in this call."""
        return self.objective.n_clients

    @property
    def mu(self) -> Array:
        """Strong convexity constants of ``F_j``, shape ``(N,)``."""
        return self.objective.mu if self.center is None else self.objective.mu + self.weight

    @property
    def L(self) -> Array:
        """Smoothness constants of ``F_j``, shape ``(N,)``."""
        return self.objective.L if self.center is None else self.objective.L + self.weight

    def asked(self, gradient: Array) -> Array:
        """Return gradients of ``F_j`` in the units of the method: what its steps are lengths of."""
        return gradient if self.unit is None else gradient / per_client(self.unit, gradient)

    def value(self, theta: Array) -> Array:
        """Return ``F_j(theta_j)``, shape ``(N,)``."""
        return self.objective.value(theta) + self.added_value(theta)

    def gradient(self, theta: Array) -> Array:
        """Return the gradients of ``F_j``, shape ``(N, *shape)``."""
        return self.objective.gradient(theta) + self.added_gradient(theta)

    def evaluate(self, theta: Array) -> Evaluation:
        """Return ``f_j`` and ``F_j`` with their gradients, at the price of one gradient."""
        return self.extend(theta, *self.objective.value_and_gradient(theta))

    def extend(self, theta: Array, f: Array, grad_f: Array) -> Evaluation:
        """Return the evaluation at a point where ``f_j`` and its gradient are known."""
        if self.linear is None and self.center is None:
            return Evaluation(f, grad_f, f, grad_f)
        return Evaluation(f, grad_f, f + self.added_value(theta), grad_f + self.added_gradient(theta))

    def sample_gradient(self, theta: Array, sample: Sample) -> Array:
        """Return the gradients of ``F_j`` with ``grad f_j`` estimated from a sample of rows, shape ``(N, *shape)``."""
        gradient = self.objective.sample_gradient(theta, sample)  # pyright: ignore[reportAttributeAccessIssue]
        return gradient + self.added_gradient(theta)

    def hessian_operator(self, theta: Array) -> Callable[[Array], Array]:
        """Return ``v -> (hess f_j(theta_j) + weight_j I) v_j``."""
        product = self.objective.hessian_operator(theta)  # pyright: ignore[reportAttributeAccessIssue]
        return lambda v: product(v) + per_client(self.weight, v) * v

    @cached_property
    def preconditioner(self) -> Callable[[Array], Array]:
        """An approximation of ``v -> (hess f_j + weight_j I)^{-1} v_j``, of an objective that offers one."""
        return self.objective.preconditioner(self.weight)  # pyright: ignore[reportAttributeAccessIssue]

    def gap(self, theta: Array) -> Array:
        r"""Return an upper bound of ``F_j(theta_j) - min F_j``, shape ``(N,)``.

        It is :math:`|\nabla F_j(\theta_j)|^2 / (2 (\mu_j + \text{weight}_j))`, which equals the primal-dual gap at the
        dual point ``grad g_j(theta_j)``: no conjugate is evaluated. It is infinite only where
        :math:`\mu_j + \text{weight}_j \le 0`.
        """
        gradient = self.gradient(theta)
        return gap_bound(client_dot(gradient, gradient), self.mu)

    def linear_term(self) -> Array:
        """Return ``linear_j - weight_j center_j``: ``F_j`` is ``f_j`` plus this term plus ``weight_j/2 |.|^2``."""
        given = self.objective.zeros() if self.linear is None else self.linear
        term = broadcast(given, (self.n_clients, *self.objective.shape))
        if self.center is not None:
            term = term - per_client(self.weight, term) * self.center
        return term

    def select(self, ids: Sequence[int]) -> LocalProblem:
        """Return the local problems of the clients ``ids`` (positions in this call)."""
        if is_everybody(ids, self.n_clients):
            return self
        shared_center = self.center is not None and self.center.ndim == len(self.objective.shape)
        return replace(
            self,
            objective=self.objective.select(ids),
            linear=take_clients(self.linear, ids),
            weight=self.weight if isinstance(self.weight, float | int | Fraction) else take_clients(self.weight, ids),
            center=self.center if shared_center else take_clients(self.center, ids),
            unit=take_clients(self.unit, ids),
            origin=take_clients(self.origin, ids),
        )

    def added_value(self, theta: Array) -> Array | float:
        """Return the linear and proximal terms at ``theta``, shape ``(N,)``, 0 when there are none."""
        theta = broadcast(theta, (self.n_clients, *self.objective.shape))
        linear = 0.0 if self.linear is None else client_dot(self.linear, theta)
        if self.center is None:
            return linear
        shift = theta - self.center
        return linear + 0.5 * self.weight * client_dot(shift, shift)

    def added_gradient(self, theta: Array) -> Array | float:
        """Return the gradient of the linear and proximal terms, 0 when there are none."""
        if self.center is None:
            return 0.0 if self.linear is None else self.linear
        shift = broadcast(theta, (self.n_clients, *self.objective.shape)) - self.center
        shift *= per_client(self.weight, shift)  # in place: for large models the time goes into making arrays
        if self.linear is not None:
            shift += self.linear
        return shift
