"""The base class of objectives: values, gradients, constants, and the names of what an objective offers beside them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import ClassVar, Self

from dualopt.arrays.tree import take_clients
from dualopt.arrays.xp import Array, array_namespace, epsilon
from dualopt.objectives._rounding import Rounding, client_norm, gamma, tiny
from dualopt.objectives._weights import mean, shares
from dualopt.regularisers import Regulariser, Zero

__all__ = ["OPTIONAL_MEMBERS", "Objective", "pass_on"]

OPTIONAL_MEMBERS: dict[str, tuple[str, ...]] = {
    "hessian": ("hessian_operator",),
    "preconditioner": ("preconditioner",),
    "curvatures": ("curvatures", "curvature_costs"),
    "exact": ("exact_minimiser",),
    "samples": ("sizes", "draw", "sample_gradient"),
    "remainder": ("precision",),
}
"""The members that an objective has beside the common ones when its ``offers`` holds the key."""


def pass_on(names: Sequence[str], whole: Objective, part: Objective, ids: Sequence[int]) -> None:
    """Give ``part``, the clients ``ids`` of ``whole``, those of its cached arrays, a row per client, that are known."""
    known = {name: vars(whole)[name] for name in names if name in vars(whole)}
    vars(part).update({name: take_clients(numbers, ids) for name, numbers in known.items()})


class Objective(ABC):
    r"""The local cost functions ``f_1, ..., f_N`` of all clients at once.

    The federated problem is always :math:`\min_\theta E(\theta) = \sum_j w_j f_j(\theta) / \sum_j w_j` with the
    ``weights`` :math:`w_j`, which are never factors inside ``f_j``: without any, E is the mean
    :math:`\frac1N \sum_j f_j`. Every method returns one row per client and treats the clients independently.
    Wherever ``theta`` is taken it has shape ``(N, *shape)`` (a point for each client) or ``shape`` (one point
    for all).

    A subclass defines ``n_clients``, ``shape``, ``mu``, ``L``, ``zeros``, ``value``, ``gradient`` and ``select``, and
    ``rounding`` and ``mu_rounding`` where terms cancel that are larger than their sum. It may offer more, and names
    what it offers in ``offers``:

    ``"hessian"``
        ``hessian_operator(theta)`` returns ``v -> H_j(theta_j) v``, both ``(N, *shape)``.
    ``"preconditioner"``
        ``preconditioner(weight)`` returns ``v -> P_j v`` with ``P_j`` an approximation of
        ``(hess f_j + weight_j I)^{-1}``.
    ``"curvatures"``
        ``curvatures(theta)`` returns arrays with one row for each client, which say more of the Hessians at ``theta_j``
        to ``preconditioner(weight, curvatures)``, and ``curvatures()`` those of no point; ``curvature_costs`` are the
        gradients that ``curvatures(theta)`` takes, a number for each client.
    ``"exact"``
        ``exact_minimiser(problem)`` returns the minimisers of a ``LocalProblem`` on this objective, ``(N, *shape)``.
    ``"samples"``
        ``sizes``, the number of rows of each client, a tuple of length ``N``; ``draw(rngs, batch)``, which returns a
        *sample*, a tuple of ``N`` host integer arrays, the numbers of the rows that each client draws, uniformly with
        replacement from its own generator (lengths may differ and rows may repeat; ``batch=None`` is every row once);
        ``sample_gradient(theta, sample)``, the unbiased estimate of the gradients from these rows, ``(N, *shape)``.
        One sample may be used at two points.
    ``"remainder"``
        ``precision`` is "mixed", and `dualopt.objectives.remainder.remainder` makes the functions of displacements in
        single precision that local solvers minimise then (`dualopt.solvers._mixed`): of linear models alone.

    Examples
    --------
    Quartic local costs :math:`(\theta - a_j)^4 / 4` of one variable, convex and not smooth:

    >>> import numpy as np
    >>> class Quartic(Objective):
    ...     shape, n_clients = (1,), property(lambda self: len(self.a))
    ...     mu, L = property(lambda self: 0.0 * self.a[:, 0]), property(lambda self: self.mu + np.inf)
    ...
    ...     def __init__(self, a):
    ...         self.a = a
    ...
    ...     def zeros(self):
    ...         return np.zeros(1)
    ...
    ...     def value(self, theta):
    ...         return ((theta - self.a) ** 4 / 4)[:, 0]
    ...
    ...     def gradient(self, theta):
    ...         return (theta - self.a) ** 3
    ...
    ...     def select(self, ids):
    ...         return Quartic(self.a[list(ids)])
    >>> f = Quartic(np.array([[0.0], [2.0]]))
    >>> f.value_and_gradient(f.initial(seed=0))[1].tolist(), sorted(f.offers), f.gradient_cost
    ([[0.0], [-8.0]], [], 1.0)
    """

    regulariser: Regulariser = Zero()
    """The convex function ``g`` of the composite problem ``min E + g``; zero but for ``Composite``."""

    weights: tuple[float, ...] | None = None
    """The weights ``w_j`` of the clients, positive numbers; None where all are 1."""

    free_intercept: bool = False
    r"""Whether ``partial_mu`` leaves out the intercept :math:`b`, the last entry on the last axis of a model
    :math:`(w, b)`: then :math:`f_j - \frac{m_j}{2} |w|^2` are convex, and ``mu`` need not be positive."""

    shift_invariant: bool = False
    """Whether no value changes where the intercepts of all outputs grow by the same number, as with `Multinomial`."""

    kink_at_label: bool = False
    """Whether the losses of linear models have one kink, at the label, on which the choice of a solver rests."""

    nonnegative: bool = False
    """Whether every ``f_j`` is at least 0, on which certificates rest where nothing is strongly convex."""

    computed_once: ClassVar[tuple[str, ...] | None] = None
    """The members that are computed of the data and kept. An objective that names all of them can be part of a compiled
    program (`dualopt.arrays.compiled`), which takes them as they are; others are not compiled. A subclass that keeps
    more names that, too."""

    usual_weight: float | None = None
    """A proximal weight that is known to suit; by default None, and methods suggest one from ``mu`` and ``L``."""

    @property
    @abstractmethod
    def n_clients(self) -> int:
        """Number ``N`` of clients."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """Shape of the model ``theta``."""

    @property
    @abstractmethod
    def mu(self) -> Array:
        """Strong convexity constants of ``f_j``, shape ``(N,)``."""

    @property
    def partial_mu(self) -> Array:
        """Strong convexity constants of ``f_j`` in all but a free intercept, shape ``(N,)``; ``mu`` without one."""
        return self.mu

    @property
    def mu_rounding(self) -> Array:
        """Numbers ``r_j`` for which ``partial_mu_j - r_j`` is proven to be such a constant, shape ``(N,)``.

        By default four units in the last place. Certificates rest on ``partial_mu_j - r_j``, all else on ``mu_j``.
        """
        mu = self.partial_mu
        return 4.0 * epsilon(mu) * array_namespace(mu).abs(mu)

    @cached_property
    def proven_mu(self) -> Array:
        """Constants that are proven, ``partial_mu - mu_rounding`` rounded down, shape ``(N,)``."""
        mu, rounding = self.partial_mu, self.mu_rounding
        xp, least = array_namespace(mu), mu - rounding  # right to half a unit in its last place
        return least - xp.where(rounding > 0, epsilon(mu) * xp.abs(least), xp.zeros_like(least))

    @cached_property
    def mean_mu(self) -> float:
        """A lower bound of the mean of the proven constants: one of ``E``, in all but a free intercept."""
        mu, N = self.proven_mu, self.n_clients
        room = gamma(N, mu) if self.shares is None else gamma(2 * N + 4, mu)
        room = room * float(self.mean(array_namespace(mu).abs(mu))) if N > 1 else 0.0
        room += 0.0 if self.shares is None else N * tiny(mu)
        return float(self.mean(mu)) - room

    @cached_property
    def unequal_weights(self) -> tuple[float, ...] | None:
        """The weights of the clients; None where all are equal, so that means need no products."""
        return None if self.shares is None else self.weights

    @cached_property
    def shares(self) -> tuple[float, ...] | None:
        """The parts ``w_j / sum w`` of the clients in ``E``; None where all weights are equal."""
        return shares(self.weights)

    def held(self, theta: Array) -> Array:
        """Return models, shape ``(..., *shape)``, with 0 for a free intercept; without one as they are."""
        if not self.free_intercept:
            return theta
        xp, kept = array_namespace(theta), theta.shape[-1] - 1
        return xp.concat([theta[..., :kept], xp.zeros_like(theta[..., kept:])], axis=-1)

    def mean(self, rows: Array) -> Array:
        """Return ``sum_j w_j x_j / sum_j w_j`` for rows ``x_j`` of all clients, shape ``(N, ...)``."""
        return mean(rows, self.shares)

    @property
    @abstractmethod
    def L(self) -> Array:
        """Smoothness constants of ``f_j``, shape ``(N,)``; ``inf`` when nonsmooth. No certificate rests on them."""

    @property
    def offers(self) -> frozenset[str]:
        """Names of the optional members that the objective has, keys of ``OPTIONAL_MEMBERS``; none by default."""
        return frozenset()

    @property
    def gradient_cost(self) -> float:
        """Gradients of the clients that one evaluation of ``gradient`` takes, as solvers count them; 1 by default."""
        return 1.0

    @abstractmethod
    def zeros(self) -> Array:
        """Return the zero model, shape ``shape``, in the array type of the data."""

    def initial(self, seed: int = 0) -> Array:
        """Return the model from which runs start, shape ``shape``: the zero model by default."""
        return self.zeros()

    @abstractmethod
    def value(self, theta: Array) -> Array:
        """Return ``f_j(theta_j)``, shape ``(N,)``."""

    @abstractmethod
    def gradient(self, theta: Array) -> Array:
        """Return the gradients (a subgradient when nonsmooth) of ``f_j`` at ``theta_j``, shape ``(N, *shape)``."""

    def value_and_gradient(self, theta: Array) -> tuple[Array, Array]:
        """Return both; a subclass that shares work between them overrides this, at the price of the gradient alone."""
        return self.value(theta), self.gradient(theta)

    def rounding(self, theta: Array, value: Array, gradient: Array, excess: Array | None = None) -> Rounding:
        """Bound the errors of computed values and gradients.

        By default they are taken to be right to 16 units in the last place (for the gradient, of its norm).

        Parameters
        ----------
        theta : array, shape (N, *shape) or shape
            Where they were computed.
        value : array, shape (N,)
            The values.
        gradient : array, shape (N, *shape)
            The gradients.
        excess : array, shape (N,), optional
            That of the subgradients of a dual solver (see ``LocalSolution``).
        """
        xp, unit = array_namespace(value), gamma(16, value)
        n = math.prod(gradient.shape[1:])
        return Rounding(unit * xp.abs(value) + tiny(value), unit * client_norm(gradient) + n * tiny(value))

    @abstractmethod
    def select(self, ids: Sequence[int]) -> Self:
        """Return the objective of the clients ``ids`` (positions), without a copy of their data."""
