"""The matrices of standard errors: sandwiches of the inverse information, and what is proven of them at the minimiser.

The mathematics is in the docstring of `dualopt.runs.inference`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dualopt.arrays._checks import require
from dualopt.arrays.xp import Array, array_namespace, asarray_like, device, epsilon, reshape
from dualopt.objectives._information import ClientInformation

__all__ = ["Covariances"]

FAR = 30.0  # of s, where bounds have long ceased to be of use: factors of 1e13
SINGULAR = "objective must have an information that is not singular: give a ridge mu > 0, or leave columns out"


@dataclass(frozen=True, eq=False)
class Covariances:
    r"""The matrices at a model, in sums over rows.

    Where a shift of a column's weights by the same number in all classes changes neither a predictor's part of the loss
    nor the ridge, ``A`` is singular in that direction, and all of this is of the one model of equal predictions whose
    weights of the column sum to 0 over the classes.

    Attributes
    ----------
    theta : array, shape ``shape``
        The model, in double precision.
    root : array, shape (D, r)
        ``R`` with ``H = R R'``.
    pulled, scores, inverse : array, shape (D, r), (D, N), (D, D)
        :math:`A^{-1}R`, :math:`A^{-1}\psi_j` and :math:`A^{-1}`.
    gradient, ridge_shift, newton_step : array, shape (D,)
        ``g``, :math:`-A^{-1}P\theta` and :math:`A^{-1}g`.
    ridge : float
        The largest number of ``P``.
    """

    theta: Array
    root: Array
    pulled: Array
    scores: Array
    inverse: Array
    gradient: Array
    ridge_shift: Array
    newton_step: Array
    ridge: float

    @classmethod
    def at(
        cls,
        found: ClientInformation,
        theta: Array,
        weights: Sequence[float],
        more: Array,
        scale: float,
        *,
        shift_invariant: bool,
    ) -> Covariances:
        """Return the matrices.

        Parameters
        ----------
        found : ClientInformation
            What the clients tell.
        theta : array, shape ``shape``
            The model.
        weights : sequence of float
            Those of the clients.
        more : array, shape ``shape``
            The diagonal of the Hessian of the server's regulariser.
        scale : float
            What a unit of ``sum_j w_j f_j`` is in rows.
        shift_invariant : bool
            Whether the loss is one of the differences of its outputs.

        Raises
        ------
        ValueError
            If there are numbers that are not finite, or the information is singular.
        """
        xp, D = array_namespace(theta), found.hessian.shape[0]
        told = found.gradient, found.hessian, found.penalty, theta, more
        gradient, hessian, ridge, theta, more = (xp.astype(x, xp.float64) for x in told)
        w = scale * asarray_like(list(weights), theta)
        flat, more = reshape(theta, (D,)), reshape(more, (D,))
        penalty = xp.sum(w) * (reshape(ridge, (D,)) + more)
        psi = w[:, None] * (reshape(gradient, (w.shape[0], D)) + (more * flat)[None, :])
        H = 0.5 * scale * (hessian + xp.matrix_transpose(hessian))
        diagonal = xp.linalg.diagonal(H) + penalty
        finite = xp.isfinite(xp.sum(diagonal)) & xp.isfinite(xp.sum(psi))
        require(bool(finite), "theta must be a model at which Hessians and gradients are finite")
        require(bool(xp.all(diagonal > 0.0)), SINGULAR)
        shifts = _shifts(penalty, tuple(theta.shape)) if shift_invariant else None

        # Coordinates in which the diagonal of A is 1, so that units of columns do not matter.
        unit = 1.0 / xp.sqrt(diagonal)
        scaled = unit[:, None] * H * unit[None, :]
        eye = xp.eye(D, dtype=H.dtype, device=device(H))
        A = scaled + (unit * penalty * unit)[:, None] * eye
        if shifts is not None:
            directions = shifts / unit[:, None]
            directions = directions / xp.sqrt(xp.sum(directions**2, axis=0))[None, :]
            A = A + directions @ xp.matrix_transpose(directions)
        least = D * epsilon(H)
        values = xp.linalg.eigvalsh(A)
        require(float(values[0]) > least * float(values[-1]), SINGULAR)
        values, vectors = xp.linalg.eigh(scaled)
        values = xp.where(values > least * values[-1], values, xp.zeros_like(values))  # the rest is rounding
        root, total = vectors * xp.sqrt(values)[None, :] / unit[:, None], xp.sum(psi, axis=0)
        columns = [root, xp.matrix_transpose(psi), (penalty * flat)[:, None], total[:, None], eye]
        N, solved = psi.shape[0], unit[:, None] * xp.linalg.solve(A, unit[:, None] * xp.concat(columns, axis=1))
        inverse = solved[:, D + N + 2 :]
        if shifts is not None:
            inverse = xp.matrix_transpose(_without(xp.matrix_transpose(inverse), shifts))
            solved, inverse, flat = _without(solved, shifts), _without(inverse, shifts), _without(flat, shifts)
        return cls(
            theta=reshape(flat, tuple(theta.shape)),
            root=root,
            pulled=solved[:, :D],
            scores=solved[:, D : D + N],
            inverse=inverse,
            gradient=total,
            ridge_shift=-solved[:, D + N],
            newton_step=solved[:, D + N + 1],
            ridge=float(xp.max(penalty)),
        )

    @property
    def parameters(self) -> float:
        """``tr A^-1 H``."""
        return float(array_namespace(self.root).sum(self.pulled * self.root))

    @property
    def parameters_squared(self) -> float:
        """``tr (A^-1 H)^2``."""
        xp = array_namespace(self.root)
        return float(xp.sum((xp.matrix_transpose(self.root) @ self.pulled) ** 2))

    def by_likelihood(self) -> Array:
        """Return ``A^-1 H A^-1``."""
        return self.pulled @ array_namespace(self.root).matrix_transpose(self.pulled)

    def by_clients(self) -> Array:
        """Return ``A^-1 sum_j psi_j psi_j' A^-1``."""
        return self.scores @ array_namespace(self.root).matrix_transpose(self.scores)

    def bounds(
        self, concordance: float, largest: float, distance: float | None
    ) -> tuple[Array | None, tuple[Array, Array] | None]:
        """Return how far the minimiser may be, and between what the standard errors by the likelihood lie there.

        Parameters
        ----------
        concordance : float
            ``M`` of the loss; infinite where there is none.
        largest : float
            The largest length of a row.
        distance : float, optional
            What bounds the distance of the model to the minimiser.
        """
        xp = array_namespace(self.root)
        if not math.isfinite(concordance):
            return None, None
        decrement = math.sqrt(max(0.0, float(xp.sum(self.gradient * self.newton_step))))
        # The largest number of A^-1, and not the smallest of A, which is rounding where units of columns differ.
        q = concordance * largest * decrement * math.sqrt(float(xp.linalg.eigvalsh(self.inverse)[-1]))
        s = -math.log1p(-q) if q < 1.0 else math.inf
        if distance is not None:
            s = min(s, concordance * largest * distance)
        if not s < FAR:
            return None, None
        radii = xp.sqrt(xp.linalg.diagonal(self.inverse))
        away = decrement * (s / -math.expm1(-s) if s > 0.0 else 1.0)  # in the norm of A
        beside = away * (math.expm1(s) / s - 1.0 if s > 0.0 else 0.0)
        moved = xp.minimum(radii * away, xp.abs(self.newton_step) + radii * beside)
        errors = xp.sqrt(xp.linalg.diagonal(self.by_likelihood()))
        upper = math.exp(0.5 * s) * radii
        if math.exp(s) < 2.0:
            upper = xp.minimum(upper, math.exp(0.5 * s) / (2.0 - math.exp(s)) * errors)
        return self.shaped(moved), (self.shaped(math.exp(-1.5 * s) * errors), self.shaped(upper))

    def shaped(self, x: Array) -> Array:
        """Return numbers ``(D,)`` in the shape of the model."""
        return reshape(x, tuple(self.theta.shape))


def _shifts(penalty: Array, shape: tuple[int, ...]) -> Array | None:
    """Return an orthonormal direction for each column without a ridge, ``(D, q)``: its weights in all classes alike."""
    xp, (k, p) = array_namespace(penalty), shape
    largest = xp.max(reshape(penalty, shape), axis=0)
    free = [c for c in range(p) if float(largest[c]) == 0.0]
    if not free:
        return None
    rows = [[float(i % p == c) / math.sqrt(k) for c in free] for i in range(k * p)]
    return asarray_like(rows, penalty)


def _without(x: Array, directions: Array) -> Array:
    """Return the part of columns ``x`` that is orthogonal to orthonormal directions."""
    return x - directions @ (array_namespace(x).matrix_transpose(directions) @ x)
