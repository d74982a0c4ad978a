"""Coordinates in which typical Hessians are near the identity, from a sketch of the features' second moments."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from dualopt.arrays._checks import Typed, require
from dualopt.arrays.xp import Array, array_namespace, asarray_like, epsilon
from dualopt.methods.participation import preparation_rng
from dualopt.methods.preparation._protocol import Prepared
from dualopt.objectives import LinearModel, Objective, Quadratic
from dualopt.objectives.composite import without_regulariser
from dualopt.objectives.coordinates import TYPICAL, Metric, in_coordinates, moments_product
from dualopt.regularisers import L2, Zero

__all__ = ["SketchedMetric"]

LEAST_RANK = 5
OVERSAMPLED, POWERS = 10, 2  # in the clients' own sketches: directions beyond the rank, and products with all


@dataclass(frozen=True, kw_only=True)
class SketchedMetric(Typed):
    r"""Change coordinates by a metric ``M`` that clients sketch once: :math:`w = \theta M^{1/2}`.

    With the second moments :math:`G_j = X_j'W_jX_j` of the features of client ``j``, their mean G, the ridge and the
    largest curvature ``c`` of the loss,

    .. math:: M = 0.2\,c\,\tilde G + \text{ridge}\,I, \qquad \tilde G = U'\mathrm{diag}(g - t)U + tI \approx G,

    a typical Hessian, on the axis of the features. Of it ``r`` directions are known, from which Hessians differ most;
    ``t`` spreads the rest of the trace. Any method then runs in these coordinates unchanged, and what it reports is in
    those of the user. In exact arithmetic it is the method in the inner product of M; FedSplit contracts by
    :math:`1 - 2/(\sqrt{L_M/\mu_M} + 1)` where :math:`\mu_M M \preceq \nabla^2 f_j \preceq L_M M`
    (``fedsplit_in_the_metric``), and L-BFGS has :math:`M^{-1}` for its first matrix.

    ``common=True``: all draw the same :math:`p\times r` matrix S from the seed; a client sends :math:`G_jS` and the
    trace of :math:`G_j`; of which the server needs the means alone; it sends the r pairs of Nyström's approximation
    :math:`GS(S'GS)^{-1}S'G`. ``common=False``: every client sends the r largest pairs of its own :math:`G_j`, of which
    the server takes the mean, whose rank is up to N r, and sends all of that: better coordinates, a larger message
    down. Both cost r p numbers up, ``r/k`` vectors of a model of k outputs.

    Quadratics have :math:`G_j = A_j` and :math:`M = \tilde G`. An :class:`dualopt.L2` regulariser becomes a part of the
    clients' ridges, which leaves the problem as it is; others are refused, because their proximal maps are easy in the
    coordinates of the user alone.

    Parameters
    ----------
    rank : int, optional
        ``r``; as many as the model has outputs, one model's worth, and at least 5, when not given.
    common : bool, default True
        Whether all clients use one random matrix, so that only sums are sent.
    seed : int, default 0
        Of the matrix.

    Raises
    ------
    ValueError
        If ``rank`` is less than 1; from ``prepare`` if it exceeds the number of features, or the objective is not a
        linear model with a smooth loss or a quadratic, or has a regulariser other than L2.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt import GradientDescent, Logistic, linear_model, run
    >>> X, y = np.array([[10.0, 1.0], [9.0, -1.0], [8.0, 1.0]]), np.array([1.0, -1.0, 1.0])
    >>> f = linear_model(X, y, loss=Logistic(), mu=1e-2, clients=3, intercept=False)
    >>> plain, sketched = (run(GradientDescent(), f, prepare=p, rounds=30) for p in (None, SketchedMetric(rank=1)))
    >>> bool(sketched["gradient_norm"][-1] < 0.1 * plain["gradient_norm"][-1]), sketched["floats_up"][:2].tolist()
    (True, [9.0, 15.0])
    """

    rank: int | None = None
    common: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        require(self.rank is None or self.rank >= 1, "rank must be at least 1", self.rank)

    def check(self, objective: Objective) -> None:
        """Refuse an objective without second moments, and a rank above the number of features."""
        f = _without_l2(objective)
        sentence = "coordinates must be plain for this objective: only linear models and quadratics have a sketch"
        require(isinstance(f, LinearModel | Quadratic), sentence)
        smooth = isinstance(f, Quadratic) or math.isfinite(f.loss.curvature)
        require(smooth, "coordinates must be plain where the loss is not smooth: it has no curvature to sketch")
        p = f.shape[-1]
        require(self.rank is None or self.rank <= p, f"rank must be at most the number {p} of features", self.rank)

    def prepare(self, objective: Objective, theta0: Array) -> Prepared:
        """Sketch the second moments, and change coordinates."""
        self.check(objective)
        f = _without_l2(objective)
        N, p, k = f.n_clients, f.shape[-1], math.prod(f.shape[:-1])
        rank = min(max(k, LEAST_RANK), p) if self.rank is None else self.rank
        G, products = self._common(f, rank) if self.common else self._own(f, rank)
        scale, ridge = (TYPICAL * f.loss.curvature, f.ridge) if isinstance(f, LinearModel) else (1.0, 0.0)
        M = Metric(G.vectors, scale * G.values + ridge, scale * G.rest + ridge)
        require(M.bounds[0] > 0, "coordinates must be plain where mu is 0 and a feature is always 0")
        changed = in_coordinates(f, M)
        return Prepared(
            objective=changed,
            theta0=M.power(0.5)(theta0),
            floats_up=N * (rank * p + 1),
            floats_down=N * (math.prod(M.vectors.shape) + M.values.shape[0] + 1),
            gradients=(products / k,) * N,
            exchanges=1,
            model=M.power(-0.5),
            slope=M.power(0.5),
        )

    def _common(self, f: Any, rank: int) -> tuple[Metric, int]:
        """Return the Nyström approximation of the mean moments, and the products that it took."""
        S = _orthonormal(preparation_rng(self.seed).standard_normal((f.shape[-1], rank)), f.zeros())
        xp, p = array_namespace(S), f.shape[-1]
        Y = f.mean(moments_product(f, S[None, ...]))  # (r, p), all that the server knows
        trace = float(f.mean(_traces(f)))
        core = xp.matmul(Y, xp.matrix_transpose(S))
        values, vectors = xp.linalg.eigh(0.5 * (core + xp.matrix_transpose(core)))
        known = values > p * epsilon(values) * float(xp.max(values))
        roots = xp.where(known, 1.0 / xp.sqrt(xp.where(known, values, xp.ones_like(values))), xp.zeros_like(values))
        factor = xp.matmul(xp.matrix_transpose(vectors) * roots[:, None], Y)  # G~ = factor' factor
        return _spread(factor, trace, p), rank

    def _own(self, f: Any, rank: int) -> tuple[Metric, int]:
        """Return the mean of the largest parts of the clients' moments, by subspace iteration at the clients."""
        p, N = f.shape[-1], f.n_clients
        width = min(rank + OVERSAMPLED, p)
        V = _orthonormal(preparation_rng(self.seed).standard_normal((p, width)), f.zeros())[None, ...]
        xp = array_namespace(V)
        for _ in range(POWERS):
            V = xp.matrix_transpose(xp.linalg.qr(xp.matrix_transpose(moments_product(f, V)))[0])
        core = xp.matmul(moments_product(f, V), xp.matrix_transpose(V))
        values, vectors = xp.linalg.eigh(0.5 * (core + xp.matrix_transpose(core)))
        largest = values[:, width - rank :]
        pairs = xp.matmul(xp.matrix_transpose(vectors[:, :, width - rank :]), V)  # (N, r, p)
        zero = xp.zeros_like(largest)
        rest = xp.maximum(_traces(f) - xp.sum(largest, axis=1), zero[:, 0]) / (p - rank) if rank < p else zero[:, 0]
        gains = xp.maximum(largest - rest[:, None], zero)
        gains = gains / N if f.shares is None else gains * asarray_like(f.shares, rest)[:, None]
        factor = xp.sqrt(gains)[:, :, None] * pairs
        t = float(f.mean(rest))
        _, size, U = xp.linalg.svd(xp.reshape(factor, (N * rank, p)), full_matrices=False)
        return Metric(U, size * size + t, t), (POWERS + 1) * width


def _spread(factor: Array, trace: float, p: int) -> Metric:
    """Return ``factor' factor`` with the rest of the trace spread over all other directions."""
    xp, rank = array_namespace(factor), factor.shape[0]
    _, size, U = xp.linalg.svd(factor, full_matrices=False)
    values = size * size
    t = max(trace - float(xp.sum(values)), 0.0) / (p - rank) if rank < p else float(values[-1])
    return Metric(U, xp.maximum(values, t * xp.ones_like(values)), t)


def _traces(f: Any) -> Array:
    """Return the traces of the moments, shape ``(N,)``."""
    if isinstance(f, Quadratic):
        return array_namespace(f.A).linalg.trace(f.A)
    return f.moment_traces


def _orthonormal(drawn: Any, like: Array) -> Array:
    """Return random numbers ``(p, r)`` from the host as ``r`` orthonormal rows."""
    S = asarray_like(drawn, like)
    xp = array_namespace(S)
    return xp.matrix_transpose(xp.linalg.qr(S)[0])


def _without_l2(objective: Any) -> Any:
    """Return the clients with an L2 regulariser in their ridges; refuse others."""
    regulariser, f = objective.regulariser, without_regulariser(objective)
    require(
        isinstance(regulariser, L2 | Zero),
        "regulariser must be l2 where coordinates are not plain: others have no simple proximal map there",
        type(regulariser).__name__,
    )
    if isinstance(regulariser, Zero):
        return f
    if isinstance(f, LinearModel):
        return replace(f, ridge=f.ridge + regulariser.weight)
    sentence = "regulariser must not be given where coordinates are not plain, unless the objective is a linear model"
    require(False, sentence)
    return f
