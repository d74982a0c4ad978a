"""Objectives in the coordinates of a metric: the same models, other inner products."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

from dualopt.arrays.xp import Array, array_namespace, asarray_like, device, indices, to_numpy
from dualopt.objectives._client_cache import ClientCache
from dualopt.objectives._index import Index
from dualopt.objectives._rounding import Rounding, client_norm, gamma, tiny
from dualopt.objectives.linear import LinearModel
from dualopt.objectives.quadratic import Quadratic
from dualopt.objectives.rows import ClientRows, Sample
from dualopt.objectives.wrapper import ObjectiveWrapper

__all__ = ["InCoordinates", "Metric", "in_coordinates", "moments_product"]

# The curvature of a typical Hessian, of the largest.
TYPICAL = 0.2

# Of a proximal term, times the root of L_M. AndersonFedSplit is best with 0.15 on digits, with 0.05 on MNIST and with
# 0.2 or more on a9a, alike and by label; with this one it takes at most a third more rounds.
WEIGHT = 0.12

# Steps of Lanczos' method for the largest eigenvalue; with the residual that is left it bounds an eigenvalue.
LANCZOS_STEPS = 40


class Metric(NamedTuple):
    r"""A positive definite matrix, ``M = rest I + U' diag(values - rest) U``, that acts on the last axis of models.

    Examples
    --------
    >>> import numpy as np
    >>> M = Metric(np.array([[0.6, 0.8]]), np.array([4.0]), 1.0)
    >>> M.power(0.5)(M.power(0.5)(np.eye(2))).round(12).tolist()
    [[2.08, 1.44], [1.44, 2.92]]
    >>> M.power(1.0)(np.eye(2)).round(12).tolist()
    [[2.08, 1.44], [1.44, 2.92]]
    """

    vectors: Array  # (r, p)  U, orthonormal rows
    values: Array  # (r,)  the eigenvalues of these, at least rest
    rest: float  # the eigenvalue of all other directions

    @property
    def bounds(self) -> tuple[float, float]:
        """The least and the largest eigenvalue; ``rest`` counts even where no direction is left for it."""
        xp = array_namespace(self.values)
        return min(float(xp.min(self.values)), self.rest), max(float(xp.max(self.values)), self.rest)

    def power(self, exponent: float) -> Callable[[Array], Array]:
        """Return ``v -> v M^exponent`` along the last axis, by products with the ``r`` vectors."""
        U, rest = self.vectors, self.rest**exponent
        xp = array_namespace(U)
        change, transposed = self.values**exponent - rest, xp.matrix_transpose(U)

        def product(v: Array) -> Array:
            rows = v[..., None, :]  # a product for every row: the last bit does not depend on the others
            moved = xp.matmul(xp.matmul(rows, transposed) * change, U)[..., 0, :] if v.ndim < 3 else None
            return rest * v + (xp.matmul(xp.matmul(v, transposed) * change, U) if moved is None else moved)

        return product


@dataclass(frozen=True, kw_only=True, eq=False)
class InCoordinates(ObjectiveWrapper):
    r"""Linear models in the coordinates :math:`w = \theta M^{1/2}`: the functions :math:`f_j(w M^{-1/2})` of ``w``.

    Methods see the inner product of ``M`` without knowing it: with :math:`\mu_M M \preceq \nabla^2 f_j \preceq L_M M`,
    the constants of these functions are :math:`\mu_M` and :math:`L_M`. Points and gradients are changed by products
    with the ``r`` vectors of ``M``; rows stay as they are, sparse or not.

    Known are :math:`\mu_M \ge \mu/\lambda_{\max}(M)`, which says little, and the largest eigenvalue of
    :math:`M^{-1/2}(c X_j'W_jX_j + \text{ridge})M^{-1/2}` with the curvature ``c`` of the loss for :math:`L_M`.
    Certificates that rest on ``mu`` are better made in the coordinates of ``theta``, where :math:`E - E^*` is the same.

    Parameters
    ----------
    objective : LinearModel
        The ``f_j``, with a smooth loss.
    metric : Metric
        ``M``, on the axis of the features.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt.losses import Squared
    >>> from dualopt.objectives.linear import linear_model
    >>> f = linear_model(np.diag([10.0, 1.0]), np.ones(2), loss=Squared(), mu=1e-3, intercept=False)
    >>> M = Metric(np.eye(2), np.array([50.0, 0.5]), 0.5)
    >>> g, w = InCoordinates(objective=f, metric=M), np.ones(2)
    >>> round(float((f.L / f.mu)[0])), g.L.round(3).tolist(), bool(np.isclose(g.value(w), f.value(g.model(w)))[0])
    (50001, [1.002], True)
    """

    forwarded: ClassVar[frozenset[str]] = frozenset({"hessian", "samples", "preconditioner"})

    objective: Any
    metric: Metric
    _chosen: Index | None = None  # the clients among those of `_kept`
    _store: ClientCache | None = None

    def __post_init__(self) -> None:
        if self.objective.free_intercept:
            raise ValueError("objective must have no free intercept, which is no coordinate of a metric.")

    def __getstate__(self) -> dict[str, Any]:
        return {"objective": self.objective, "metric": self.metric, "_chosen": None, "_store": None}

    @cached_property
    def model(self) -> Callable[[Array], Array]:
        """The way back, ``w -> w M^{-1/2}``; the same takes gradients here."""
        return self.metric.power(-0.5)

    @cached_property
    def coordinates(self) -> Callable[[Array], Array]:
        """The way here, ``theta -> theta M^{1/2}``; the same takes gradients back."""
        return self.metric.power(0.5)

    @property
    def rows(self) -> ClientRows:
        """The rows of the clients."""
        return self.objective.rows

    @cached_property
    def mu(self) -> Array:
        """Strong convexity constants ``mu_j / lambda_max(M)``, shape ``(N,)``."""
        return self.objective.mu / self.metric.bounds[1]

    @cached_property
    def mu_rounding(self) -> Array:
        """That of the model, and the rounding of the vectors of ``M``, shape ``(N,)``."""
        largest, mu = self.metric.bounds[1], self.objective.mu
        unit = gamma(8 * math.prod(self.metric.vectors.shape) + 8, mu)
        return (self.objective.mu_rounding + unit * array_namespace(mu).abs(mu)) / largest

    @cached_property
    def usual_weight(self) -> float | None:  # pyright: ignore[reportIncompatibleVariableOverride]
        r"""A proximal weight that suits where ``M`` is made of typical Hessians, :math:`0.12\sqrt{L_M}`.

        It is a quarter where all clients have the moments of M, and as much larger as the root of how far the most
        different client exceeds them.
        """
        return WEIGHT * math.sqrt(float(array_namespace(self.L).max(self.L)))

    @cached_property
    def L(self) -> Array:
        """Smoothness constants, shape ``(N,)``, by Lanczos' method."""
        f, back = self.objective, self.model
        curvature = f.loss.curvature

        def product(v: Array) -> Array:
            points = back(v)
            return back(curvature * moments_product(f, points) + f.ridge * points)

        return _largest_eigenvalues(product, f.n_clients, f.n_features, f.rows.like)

    def zeros(self) -> Array:
        """Return the zero model, shape ``shape``."""
        return self.objective.zeros()

    def initial(self, seed: int = 0) -> Array:
        """Return the model from which runs start."""
        return self.coordinates(self.objective.initial(seed))

    def value(self, theta: Array) -> Array:
        """Return ``f_j`` at the models, shape ``(N,)``."""
        return self.objective.value(self.model(theta))

    def gradient(self, theta: Array) -> Array:
        """Return the gradients by the coordinates, shape ``(N, *shape)``."""
        return self.model(self.objective.gradient(self.model(theta)))

    def value_and_gradient(self, theta: Array) -> tuple[Array, Array]:
        """Return both, at the price of the gradient alone."""
        value, gradient = self.objective.value_and_gradient(self.model(theta))
        return value, self.model(gradient)

    def rounding(self, theta: Array, value: Array, gradient: Array, excess: Array | None = None) -> Rounding:
        r"""Bound the errors by those of ``f_j`` at the computed model, and those of the two changes of coordinates.

        With the norms ``c`` of :math:`M^{-1/2}` and ``b`` of :math:`M^{1/2}`, the computed model is within
        :math:`\delta = \gamma c|w|` of the exact one, which moves linear lower bounds by :math:`|\nabla f_j|\delta`,
        :math:`\nabla f_j` being at most ``b`` times the gradient here, and their quadratic parts by
        :math:`\mu_j c\delta|x - w|` at most.
        """
        r, p = self.metric.vectors.shape
        least, largest = self.metric.bounds
        c, b = least**-0.5, largest**0.5
        points = theta if theta.ndim > len(self.shape) else theta[None, ...]
        unit = gamma(8 * (r + p) + 16, value) * (1.0 + math.sqrt(r * p))
        size = client_norm(points)
        slope, delta = b * (1.0 + unit) * client_norm(gradient), unit * c * size
        own = self.objective.rounding(self.model(points), value, b * gradient, excess)
        xp = array_namespace(value)
        values = own.value + (slope + own.gradient) * delta + 0.5 * xp.abs(self.objective.mu) * delta * delta
        slopes = c * (own.gradient + unit * slope + xp.abs(self.objective.mu) * delta)
        room = math.prod(self.shape) * tiny(value) * (1.0 + c) * (1.0 + b)
        return Rounding(values + room, slopes + room)

    def hessian_product(self, theta: Array, v: Array) -> Array:
        """Return the products with Hessians by the coordinates, shape ``(N, *shape)``."""
        return self.hessian_operator(theta)(v)

    def hessian_operator(self, theta: Array) -> Callable[[Array], Array]:
        """Return ``v -> M^{-1/2} hess f_j M^{-1/2} v_j``."""
        product = self.objective.hessian_operator(self.model(theta))
        return lambda v: self.model(product(self.model(v)))

    def sample_gradient(self, theta: Array, sample: Sample) -> Array:
        """Return estimates of the gradients by the coordinates, shape ``(N, *shape)``."""
        return self.model(self.objective.sample_gradient(self.model(theta), sample))

    def preconditioner(self, weight: float | Array = 0.0) -> Callable[[Array], Array]:
        r"""Return products with :math:`M^{1/2}(A_j + \text{weight}_j M)^{-1}M^{1/2}`, ``A_j`` a typical Hessian.

        The model's preconditioner inverts :math:`B_j = A_j + \text{weight}_j\,\text{rest}`, and the other ``r``
        directions of ``M`` follow by Woodbury's identity, from ``r`` solutions for each client that are kept.
        """
        M, count = self.metric, isinstance(weight, float | int)
        inverse = self.objective.preconditioner(M.rest * weight)
        host = array_namespace(self.objective.rows.group)
        key = host.full(self.n_clients, float(weight)) if count else host.astype(to_numpy(weight), host.float64)
        chosen, kept = self._chosen or Index(range(self.n_clients)), self._kept
        solved, factor = kept.get(chosen, lambda: self._solved(inverse, key), key)
        xp = array_namespace(solved)
        transposed = xp.matrix_transpose(M.vectors)

        def product(v: Array) -> Array:
            once = inverse(self.coordinates(v))  # (N, *shape)
            rows = xp.reshape(once, (self.n_clients, -1, M.vectors.shape[1]))
            rows = rows - xp.matmul(xp.matmul(xp.matmul(rows, transposed), factor), solved)
            return self.coordinates(xp.reshape(rows, once.shape))

        return product

    def _solved(self, inverse: Callable[[Array], Array], weights: Array) -> tuple[Array, Array]:
        """Return ``U B_j^{-1}``, ``(N, r, p)``, and ``S (I + S U B_j^{-1} U' S)^{-1} S``, ``(N, r, r)``.

        ``S^2`` is the diagonal of the weight times ``values - rest``.
        """
        M, N = self.metric, self.n_clients
        xp, (r, p), k = array_namespace(M.vectors), M.vectors.shape, self.objective.loss.outputs
        found = []
        for start in range(0, r, k):  # as many at once as a model has rows
            rows = M.vectors[start : min(start + k, r), :]
            room = xp.zeros((k - rows.shape[0], p), dtype=rows.dtype, device=device(rows))
            point = xp.reshape(xp.concat([rows, room], axis=0), self.shape)
            found.append(xp.reshape(inverse(point), (N, k, p))[:, : rows.shape[0], :])
        solved = xp.concat(found, axis=1)
        scale = asarray_like(weights, solved)[:, None] * xp.maximum(M.values - M.rest, xp.zeros_like(M.values))
        S = xp.sqrt(scale)
        gram = S[:, :, None] * xp.matmul(solved, xp.matrix_transpose(M.vectors)) * S[:, None, :]
        identity = xp.eye(r, dtype=gram.dtype, device=device(gram))
        factor = xp.linalg.inv(identity + 0.5 * (gram + xp.matrix_transpose(gram)))
        return solved, S[:, :, None] * factor * S[:, None, :]

    @property
    def _kept(self) -> ClientCache:
        """What is computed once for each client, shared with the objectives of some of them."""
        if self._store is None:
            object.__setattr__(self, "_store", ClientCache(self.n_clients))
        assert self._store is not None
        return self._store

    def select(self, ids: Sequence[int]) -> Self:
        """Return the objective of the clients ``ids``; what is computed of them is shared."""
        part = self.objective.select(ids)
        if part is self.objective:
            return self
        whole = indices(range(self.n_clients)) if self._chosen is None else self._chosen.ids
        chosen = replace(self, objective=part, _chosen=Index(whole[indices(ids)]), _store=self._kept)
        if "L" in vars(self):
            vars(chosen)["L"] = Index(ids).take(self.L)
        return chosen


def in_coordinates(objective: LinearModel | Quadratic, metric: Metric) -> InCoordinates | Quadratic:
    """Return the functions of ``w = theta M^{1/2}``; of quadratics they are quadratics.

    Examples
    --------
    >>> import numpy as np
    >>> f = Quadratic(A=np.diag([4.0, 1.0])[None], b=np.array([[2.0, 3.0]]))
    >>> g = in_coordinates(f, Metric(np.eye(2), np.array([4.0, 1.0]), 1.0))
    >>> g.A.tolist(), g.b.tolist()
    ([[[1.0, 0.0], [0.0, 1.0]]], [[1.0, 3.0]])
    """
    if not isinstance(objective, Quadratic):
        return InCoordinates(objective=objective, metric=metric)
    back = metric.power(-0.5)
    xp = array_namespace(objective.A)
    A = back(xp.matrix_transpose(back(objective.A)))
    A = 0.5 * (A + xp.matrix_transpose(A))
    return replace(objective, A=A, b=back(objective.b))


def moments_product(objective: LinearModel | Quadratic, points: Array) -> Array:
    """Return ``V_j X_j' W_j X_j`` for ``V`` of shape ``(N, r, p)`` or ``(1, r, p)``; of quadratics ``V_j A_j``.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt.losses import Squared
    >>> from dualopt.objectives.linear import linear_model
    >>> f = linear_model(np.array([[1.0, 2.0]]), np.ones(1), loss=Squared(), mu=0.0, intercept=False)
    >>> moments_product(f, np.eye(2)[None]).tolist()
    [[[1.0, 2.0], [2.0, 4.0]]]
    """
    if isinstance(objective, Quadratic):
        return array_namespace(points).matmul(points, objective.A)

    def one(block: Any, own: Array) -> tuple[Array]:
        return (block.pull_back(block.predict(own) * block.w[:, None, :]),)

    return objective.rows.sum(one, points)[0]


def _largest_eigenvalues(product: Callable[[Array], Array], n: int, p: int, like: Array) -> Array:
    """Return the largest eigenvalues of symmetric matrices ``(n, p, p)`` by their products with ``(n, 1, p)``.

    Lanczos' method, orthogonalised twice. The residual that is left is added.
    """
    xp = array_namespace(like)
    steps = min(p, LANCZOS_STEPS)
    start = 1.0 + xp.astype(xp.arange(p, device=device(like)) % 7, like.dtype)  # any vector without a pattern of zeros
    q = xp.zeros((n, 1, p), dtype=like.dtype, device=device(like)) + start / xp.sqrt(xp.sum(start * start))
    basis, diagonal, off = q, [], []
    for _ in range(steps):
        v = product(q)
        diagonal.append(xp.sum(v * q, axis=-1)[:, 0])
        for _ in range(2):
            v = v - xp.matmul(xp.matmul(v, xp.matrix_transpose(basis)), basis)
        size = xp.sqrt(xp.sum(v * v, axis=-1))[:, 0]
        off.append(size)
        good = size > 1e-12 * xp.abs(diagonal[0]) + tiny(like)
        q = v * xp.where(good, 1.0 / xp.where(good, size, xp.ones_like(size)), xp.zeros_like(size))[:, None, None]
        basis = xp.concat([basis, q], axis=1)
    T = xp.zeros((n, steps, steps), dtype=like.dtype, device=device(like))
    identity = xp.eye(steps, dtype=like.dtype, device=device(like))
    T = T + xp.stack(diagonal, axis=-1)[:, :, None] * identity
    beside = xp.eye(steps, k=1, dtype=like.dtype, device=device(like))
    upper = xp.stack(off, axis=-1)[:, :, None] * beside
    values, vectors = xp.linalg.eigh(T + upper + xp.matrix_transpose(upper))
    return values[:, -1] + off[-1] * xp.abs(vectors[:, -1, -1])
