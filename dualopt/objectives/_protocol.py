"""What algorithms and solvers ask of an objective."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, Self, runtime_checkable

from dualopt.xp import Array

__all__ = ["Objective"]


@runtime_checkable
class Objective(Protocol):
    r"""The local cost functions ``f_1, ..., f_N`` of all clients at once.

    The federated problem is always :math:`\min_\theta E(\theta) = \frac1N \sum_j f_j(\theta)`; unequal client weights
    are factors inside ``f_j``. Every method returns one row per client and treats the clients independently.
    Wherever ``theta`` is taken it has shape ``(N, *shape)`` (a point for each client) or ``shape`` (one point
    for all).

    Optional members, asked for by the solvers that need them:

    ``hessian_operator(theta)``
        returns ``v -> H_j(theta_j) v``, both ``(N, *shape)``.
    ``preconditioner(weight)``
        returns ``v -> P_j v`` with ``P_j`` an approximation of ``(hess f_j + weight_j I)^{-1}``.
    ``exact_minimiser(problem)``
        the minimisers of a ``LocalProblem`` on this objective, ``(N, *shape)``.
    ``sizes``
        number of rows of each client, a tuple of length ``N``.
    ``draw(rngs, batch)``
        a *sample*: a tuple of ``N`` host integer arrays, the numbers of the rows that each client draws, uniformly with
        replacement from its own generator. Lengths may differ and rows may repeat; ``batch=None`` is every row once.
    ``sample_gradient(theta, sample)``
        the unbiased estimate of the gradients from these rows, ``(N, *shape)``. One sample may be used at two points.
    ``gradient_cost``
        how many gradients of the clients one evaluation of ``gradient`` takes, 1 if not said: what solvers count.
    """

    @property
    def n_clients(self) -> int:
        """Number ``N`` of clients."""
        ...

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the model ``theta``."""
        ...

    @property
    def mu(self) -> Array:
        """Strong convexity constants of ``f_j``, shape ``(N,)``."""
        ...

    @property
    def L(self) -> Array:
        """Smoothness constants of ``f_j``, shape ``(N,)``; ``inf`` when nonsmooth."""
        ...

    def zeros(self) -> Array:
        """Return the zero model, shape ``shape``, in the array type of the data."""
        ...

    def value(self, theta: Array) -> Array:
        """Return ``f_j(theta_j)``, shape ``(N,)``."""
        ...

    def gradient(self, theta: Array) -> Array:
        """Return the gradients (a subgradient when nonsmooth) of ``f_j`` at ``theta_j``, shape ``(N, *shape)``."""
        ...

    def value_and_gradient(self, theta: Array) -> tuple[Array, Array]:
        """Return both, at the price of the gradient alone."""
        ...

    def select(self, ids: Sequence[int]) -> Self:
        """Return the objective of the clients ``ids`` (positions), without a copy of their data."""
        ...
