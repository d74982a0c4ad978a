"""Quadratic objectives: the instances on which local problems have exact solutions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from dualopt.arrays.tree import is_everybody, take_clients
from dualopt.arrays.xp import Array, array_namespace, broadcast, device, epsilon, summed
from dualopt.objectives._rounding import Rounding, client_norm, gamma, tiny
from dualopt.objectives._weights import of_clients, positive
from dualopt.objectives.objective import Objective, pass_on

if TYPE_CHECKING:
    from dualopt.objectives.local_problem import LocalProblem

__all__ = ["Quadratic"]

OFFERS = frozenset({"hessian", "preconditioner", "exact"})
COMPUTED = (
    "_eigenvalues",
    "_estimate",
    "_discs",
    "_asymmetry",
    "mu_rounding",
)  # once per client, and kept by ``select``


@dataclass(frozen=True, kw_only=True, eq=False)
class Quadratic(Objective):
    r"""Quadratic local functions, :math:`f_j(\theta) = \frac12 \theta^\top A_j \theta - b_j^\top \theta + c_j`.

    Parameters
    ----------
    A : array, shape (N, d, d)
        Symmetric matrices.
    b : array, shape (N, d)
        Linear terms.
    c : array, shape (N,), optional
        Constants; zero when not given.
    weights : tuple of float, optional
        The weights :math:`w_j` of the clients in ``E``; all are 1 when not given.

    Raises
    ------
    ValueError
        If the shapes do not fit, or an entry is not finite, or ``A`` is not symmetric, or a weight is not positive.

    Examples
    --------
    >>> import numpy as np
    >>> f = Quadratic(A=np.stack([np.eye(2), 3 * np.eye(2)]), b=np.array([[1.0, 0.0], [0.0, 3.0]]))
    >>> f.value(np.zeros(2)).shape, f.mu.tolist(), f.L.tolist()
    ((2,), [1.0, 3.0], [1.0, 3.0])
    >>> f.minimiser().tolist()
    [0.25, 0.75]
    """

    computed_once = (*COMPUTED, "_sizes", "proven_mu", "mean_mu", "shares")

    A: Array
    b: Array
    c: Array | None = None
    weights: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        for name, array in (("A", self.A), ("b", self.b)):
            if not hasattr(array, "shape") or not hasattr(array, "dtype"):
                kind = "None" if array is None else f"a {type(array).__name__}"
                raise ValueError(f"{name} must be an array, not {kind}.")
        xp = array_namespace(self.A, self.b)
        if self.A.ndim != 3 or self.A.shape[1] != self.A.shape[2]:
            raise ValueError(f"A must have shape (N, d, d), not {tuple(self.A.shape)}.")
        if tuple(self.b.shape) != tuple(self.A.shape[:2]):
            raise ValueError(f"b must have shape {tuple(self.A.shape[:2])} to fit A, not {tuple(self.b.shape)}.")
        if not bool(xp.all(xp.isfinite(self.A))) or not bool(xp.all(xp.isfinite(self.b))):
            raise ValueError("A and b must not contain NaN or infinite entries.")
        if self.c is not None and tuple(self.c.shape) != tuple(self.A.shape[:1]):
            raise ValueError(f"c must have shape {tuple(self.A.shape[:1])} to fit A, not {tuple(self.c.shape)}.")
        if self.c is not None and not bool(xp.all(xp.isfinite(self.c))):
            raise ValueError("c must not contain NaN or infinite entries.")
        asymmetry = xp.max(xp.abs(self.A - xp.matrix_transpose(self.A)))
        # Products that are symmetric on paper differ by rounding of the type of A: 4e-11 in double, 2e-5 in single.
        if float(asymmetry) > epsilon(self.A) ** (2 / 3) * float(xp.max(xp.abs(self.A))):
            raise ValueError("A must be symmetric for every client.")
        object.__setattr__(self, "weights", positive("weights", self.weights, self.n_clients))

    @property
    def n_clients(self) -> int:
        """Number ``N`` of clients."""
        return self.b.shape[0]

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape ``(d,)`` of the model."""
        return (self.b.shape[1],)

    @cached_property
    def _eigenvalues(self) -> Array:
        return array_namespace(self.A).linalg.eigvalsh(self.A)

    @property
    def mu(self) -> Array:
        r"""Smallest eigenvalue of each ``A_j``, shape ``(N,)``; 0 where it cannot be told from 0.

        Computed eigenvalues are right to about :math:`d \epsilon L_j`. One below that may as well be 0
        and counts as 0, unless Gershgorin's discs prove it, as for diagonal matrices.
        """
        return self._estimate

    @cached_property
    def _estimate(self) -> Array:
        xp = array_namespace(self.A)
        least = xp.min(self._eigenvalues, axis=-1)
        known = xp.abs(least) > self.shape[0] * epsilon(self.A) * self.L
        proven = self._discs
        return xp.where(known, least, xp.where(proven > 0, proven, xp.zeros_like(proven)))

    @cached_property
    def mu_rounding(self) -> Array:
        r"""What the computed ``mu`` may be too large by, shape ``(N,)``; 0 for a diagonal matrix.

        With computed eigenvectors :math:`V` (nearly orthogonal) and eigenvalues :math:`\Lambda`, for every unit vector

        .. math:: v^\top A v = (V^\top v)^\top \Lambda (V^\top v) + v^\top (A - V \Lambda V^\top) v
                  \ge \lambda_1 - |\lambda_1| \, |V V^\top - I|_F - |A - V \Lambda V^\top|_F,

        and both norms are computed. The entries of both matrices are right to :math:`(d + 4) \epsilon/2` (times
        :math:`\max |\Lambda|`), because rows of ``V`` have nearly the norm 1, hence the norms to ``d`` times that.
        Gershgorin's discs give a second bound; the larger counts. No property of the eigenvalue routine is assumed.
        """
        xp, d = array_namespace(self.A), self.shape[0]
        S = 0.5 * self.A + 0.5 * xp.matrix_transpose(self.A)
        largest = xp.max(xp.abs(S), axis=(1, 2))
        unit = xp.where(largest > 0, largest, xp.ones_like(largest))
        S = S / unit[:, None, None]  # products of its entries neither overflow nor underflow
        values, V = xp.linalg.eigh(S)
        identity = xp.eye(d, dtype=S.dtype, device=device(S))
        transposed = xp.matrix_transpose(V)
        error = 0.5 * d * gamma(d + 4, S)
        shear = client_norm(xp.matmul(V, transposed) - identity) + error
        residual = client_norm(S - xp.matmul(V * values[:, None, :], transposed))
        residual = residual + error * xp.max(xp.abs(values), axis=-1) + 2.0 * epsilon(S) * client_norm(S)
        least = xp.min(values, axis=-1)
        bound = xp.maximum(unit * (least - xp.abs(least) * shear - residual), self._discs)
        terms = xp.abs(self._estimate) + xp.abs(bound)
        excess = self._estimate - bound
        return xp.where(excess > 0, excess + 4.0 * epsilon(S) * terms, xp.zeros_like(excess))

    @cached_property
    def _discs(self) -> Array:
        """Lower bounds of the eigenvalues by Gershgorin's discs, shape ``(N,)``; exact for diagonal matrices."""
        xp, d = array_namespace(self.A), self.shape[0]
        off = ~xp.eye(d, dtype=xp.bool, device=device(self.A))
        sizes = 0.5 * xp.abs(self.A) + 0.5 * xp.abs(xp.matrix_transpose(self.A))  # of the symmetric part, at most
        radius = (1.0 + gamma(d + 2, self.A)) * xp.sum(xp.where(off, sizes, xp.zeros_like(sizes)), axis=-1)
        centers = xp.sum(xp.where(off, xp.zeros_like(sizes), self.A), axis=-1)
        edges = centers - radius
        rounded = edges - xp.where(radius > 0, epsilon(self.A) * xp.abs(edges), xp.zeros_like(edges))
        return xp.min(rounded, axis=-1)

    @property
    def L(self) -> Array:
        """Largest absolute eigenvalue of each ``A_j`` as computed, shape ``(N,)``."""
        xp = array_namespace(self.A)
        return xp.max(xp.abs(self._eigenvalues), axis=-1)

    @property
    def offers(self) -> frozenset[str]:
        """Hessians, their inverses and exact solutions."""
        return OFFERS

    def zeros(self) -> Array:
        """Return the zero model, shape ``(d,)``."""
        return array_namespace(self.b).zeros(self.shape, dtype=self.b.dtype, device=device(self.b))

    def value(self, theta: Array) -> Array:
        """Return ``f_j(theta_j)``, shape ``(N,)``."""
        return self.value_and_gradient(theta)[0]

    def gradient(self, theta: Array) -> Array:
        """Return ``A_j theta_j - b_j``, shape ``(N, d)``."""
        return self._product(theta) - self.b

    def value_and_gradient(self, theta: Array) -> tuple[Array, Array]:
        """Return values ``(N,)`` and gradients ``(N, d)``."""
        xp = array_namespace(self.b)
        product = self._product(theta)
        value = xp.vecdot(0.5 * product - self.b, theta)
        return (value if self.c is None else value + self.c), product - self.b

    def rounding(self, theta: Array, value: Array, gradient: Array, excess: Array | None = None) -> Rounding:
        r"""Bound the errors of values and gradients by the sizes of the terms that were added.

        .. math:: \text{value}_j = \gamma_{2d+6} \bigl(\tfrac12 |\theta|^\top |A_j| |\theta|
                  + |b_j|^\top |\theta|\bigr) + \gamma_2 (|c_j| + |f_j|), \qquad
                  \text{gradient}_j = \gamma_{d+3} \bigl||A_j| |\theta| + |b_j|\bigr|
                  + \tfrac12 |A_j - A_j^\top|_F |\theta|

        where the last term is there for matrices that are symmetric up to rounding only.
        """
        xp, d = array_namespace(self.b), self.shape[0]
        A, b = self._sizes
        size = xp.abs(theta)
        product = xp.matmul(A, size[..., None])[..., 0]
        terms = xp.vecdot(0.5 * product + b, size)
        constants = xp.abs(value) if self.c is None else xp.abs(value) + xp.abs(self.c)
        values = gamma(2 * d + 6, value) * terms + gamma(2, value) * constants
        slopes = gamma(d + 3, value) * client_norm(product + b)
        if self._asymmetry is not None:
            slopes = slopes + self._asymmetry * client_norm(broadcast(size, self.b.shape))
        lost = d * d * tiny(value)
        return Rounding(values + lost * (1.0 + summed(size, -1)), slopes + lost)

    @cached_property
    def _sizes(self) -> tuple[Array, Array]:
        xp = array_namespace(self.A)
        return xp.abs(self.A), xp.abs(self.b)

    @cached_property
    def _asymmetry(self) -> Array | None:
        """How much the part of ``A_j`` that is not symmetric may add to a gradient, over ``|theta|``; None for none."""
        xp = array_namespace(self.A)
        difference = self.A - xp.matrix_transpose(self.A)
        if not bool(xp.any(difference != 0)):
            return None
        return (0.5 + gamma(self.shape[0] ** 2, self.A)) * client_norm(difference)

    def hessian_operator(self, theta: Array) -> Callable[[Array], Array]:
        """Return ``v -> A_j v_j``."""
        return self._product

    def preconditioner(self, weight: float | Array = 0.0) -> Callable[[Array], Array]:
        """Return ``v -> (A_j + weight_j I)^{-1} v_j``, exact here."""
        system = self._shifted(weight)
        return lambda v: array_namespace(v).linalg.solve(system, v[..., None])[..., 0]

    def exact_minimiser(self, problem: LocalProblem) -> Array:
        """Solve ``(A_j + weight_j I) theta_j = b_j - linear_j + weight_j center_j``."""
        rhs = self.b - problem.linear_term()
        return array_namespace(rhs).linalg.solve(self._shifted(problem.weight), rhs[..., None])[..., 0]

    def minimiser(self) -> Array:
        """Return the minimiser of ``E``, shape ``(d,)``."""
        xp = array_namespace(self.b)
        return xp.linalg.solve(self.mean(self.A), self.mean(self.b)[..., None])[..., 0]

    def select(self, ids: Sequence[int]) -> Quadratic:
        """Return the clients ``ids``."""
        if is_everybody(ids, self.n_clients):
            return self
        A, b, c = take_clients((self.A, self.b, self.c), ids)
        chosen = Quadratic(A=A, b=b, c=c, weights=of_clients(self.weights, ids))
        pass_on(COMPUTED, self, chosen, ids)
        return chosen

    def _product(self, theta: Array) -> Array:
        return array_namespace(self.b).matmul(self.A, theta[..., None])[..., 0]

    def _shifted(self, weight: float | Array) -> Array:
        if isinstance(weight, float | int) and weight == 0:
            return self.A
        xp = array_namespace(self.A)
        identity = xp.eye(self.shape[0], dtype=self.A.dtype, device=device(self.A))
        return self.A + (weight if isinstance(weight, float | int) else weight[:, None, None]) * identity
