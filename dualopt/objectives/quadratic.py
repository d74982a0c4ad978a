"""Quadratic objectives: the instances on which local problems have exact solutions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from dualopt.objectives.objective import Objective
from dualopt.tree import take_clients
from dualopt.xp import Array, array_namespace, broadcast, device, epsilon

if TYPE_CHECKING:
    from dualopt.objectives.local_problem import LocalProblem

__all__ = ["Quadratic"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Quadratic(Objective):
    r"""Quadratic local costs, :math:`f_j(\theta) = \frac12 \theta^\top A_j \theta - b_j^\top \theta + c_j`.

    Parameters
    ----------
    A : array, shape (N, d, d)
        Symmetric matrices.
    b : array, shape (N, d)
        Linear terms.
    c : array, shape (N,), optional
        Constants; zero when not given.

    Raises
    ------
    ValueError
        If the shapes do not fit, or an entry is not finite, or ``A`` is not symmetric.

    Examples
    --------
    >>> import numpy as np
    >>> f = Quadratic(A=np.stack([np.eye(2), 3 * np.eye(2)]), b=np.array([[1.0, 0.0], [0.0, 3.0]]))
    >>> f.value(np.zeros(2)).shape, f.mu.tolist(), f.L.tolist()
    ((2,), [1.0, 3.0], [1.0, 3.0])
    >>> f.minimiser().tolist()
    [0.25, 0.75]
    """

    A: Array
    b: Array
    c: Array | None = None

    def __post_init__(self) -> None:
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
        """Smallest eigenvalue of each ``A_j``, shape ``(N,)``."""
        return array_namespace(self.A).min(self._eigenvalues, axis=-1)

    @property
    def L(self) -> Array:
        """Largest absolute eigenvalue of each ``A_j``, shape ``(N,)``."""
        xp = array_namespace(self.A)
        return xp.max(xp.abs(self._eigenvalues), axis=-1)

    @property
    def offers(self) -> frozenset[str]:
        """Hessians, their inverses and exact solutions."""
        return frozenset({"hessian", "preconditioner", "exact"})

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
        value = xp.sum((0.5 * product - self.b) * theta, axis=-1)
        return (value if self.c is None else value + self.c), product - self.b

    def hessian_operator(self, theta: Array) -> Callable[[Array], Array]:
        """Return ``v -> A_j v_j``."""
        return self._product

    def preconditioner(self, weight: float | Array = 0.0) -> Callable[[Array], Array]:
        """Return ``v -> (A_j + weight_j I)^{-1} v_j``, exact here."""
        system = self._shifted(weight)
        return lambda v: array_namespace(v).linalg.solve(system, v[..., None])[..., 0]

    def exact_minimiser(self, problem: LocalProblem) -> Array:
        """Solve ``(A_j + weight_j I) theta_j = b_j - tilt_j + weight_j anchor_j``."""
        rhs = self.b - problem.linear_term()
        return array_namespace(rhs).linalg.solve(self._shifted(problem.weight), rhs[..., None])[..., 0]

    def minimiser(self) -> Array:
        """Return the minimiser of ``E``, shape ``(d,)``."""
        xp = array_namespace(self.b)
        return xp.linalg.solve(xp.mean(self.A, axis=0), xp.mean(self.b, axis=0)[..., None])[..., 0]

    def select(self, ids: Sequence[int]) -> Quadratic:
        """Return the clients ``ids``."""
        if list(ids) == list(range(self.n_clients)):
            return self
        A, b, c = take_clients((self.A, self.b, self.c), ids)
        return Quadratic(A=A, b=b, c=c)

    def _product(self, theta: Array) -> Array:
        xp = array_namespace(self.b)
        theta = broadcast(theta, self.b.shape)
        return xp.matmul(self.A, theta[..., None])[..., 0]

    def _shifted(self, weight: float | Array) -> Array:
        xp = array_namespace(self.A)
        identity = xp.eye(self.shape[0], dtype=self.A.dtype, device=device(self.A))
        return self.A + (weight if isinstance(weight, float | int) else weight[:, None, None]) * identity
