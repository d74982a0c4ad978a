"""Regularised linear models: any loss of a linear predictor, rows held by clients of any sizes."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal

from dualopt.losses import Loss, Squared
from dualopt.objectives._sampling import Sample, check_sample, draw_rows, sampled_pieces
from dualopt.objectives.local import LocalProblem, client_dot
from dualopt.tree import take_clients
from dualopt.xp import Array, array_namespace, asarray_like, device, is_host, to_numpy

__all__ = ["Bucket", "LinearModel", "linear_model"]

# Rows handled at once on a CPU: predictors and slopes of a block stay in the L2 cache between the two products, and the
# rows of the block are still near for the second one. On MNIST, 256 to 1024 differ by 3%; 2048 is 10% slower.
BLOCK_ROWS = 512


@dataclass(frozen=True, kw_only=True, eq=False)
class Bucket:
    """Clients of equal size, stored together: features ``(c, m, p)``, labels ``(c, m)``, row weights ``(c, m)``."""

    X: Array
    y: Array
    w: Array
    cache: dict[tuple[str, int, float], Array] = field(default_factory=dict, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return {"X": self.X, "y": self.y, "w": self.w, "cache": {}}  # what is cached can be computed again

    def weighted_rows(self, row: int) -> Array:
        """Return the rows of one client, each scaled by the square root of its weight, ``(m, p)``."""
        return self.X[row, ...] * array_namespace(self.w).sqrt(self.w[row, :, None])

    def gram(self, row: int) -> Array:
        """Return ``A'A`` or ``A A'``, whichever is smaller, for ``A`` the weighted rows of one client."""
        key = ("gram", row, 0.0)
        if key not in self.cache:
            A = self.weighted_rows(row)
            xp = array_namespace(A)
            transposed = xp.matrix_transpose(A)
            self.cache[key] = transposed @ A if A.shape[1] <= A.shape[0] else A @ transposed
        return self.cache[key]

    def largest_eigenvalue(self, row: int) -> Array:
        """Return the largest eigenvalue of ``A'A`` for one client."""
        key = ("eigenvalue", row, 0.0)
        if key not in self.cache:
            gram = self.gram(row)
            xp = array_namespace(gram)
            self.cache[key] = xp.max(xp.linalg.eigvalsh(gram))
        return self.cache[key]

    def ridge_inverse(self, row: int, ridge: float) -> Array:
        """Return ``(A'A + ridge I)^{-1}``, or ``(A A' + ridge I)^{-1}`` when that is smaller."""
        key = ("inverse", row, ridge)
        if key not in self.cache:
            gram = self.gram(row)
            xp = array_namespace(gram)
            identity = xp.eye(gram.shape[0], dtype=gram.dtype, device=device(gram))
            self.cache[key] = xp.linalg.inv(gram + ridge * identity)
        return self.cache[key]

    def apply_ridge_inverse(self, row: int, ridge: float, v: Array) -> Array:
        """Return ``v (A'A + ridge I)^{-1}`` for ``v`` of shape ``(k, p)``."""
        inverse = self.ridge_inverse(row, ridge)
        if inverse.shape[0] == v.shape[-1]:
            return v @ inverse
        # Fewer rows than columns: Woodbury's identity. The roots of the weights go to the (k, m) products, because
        # weighting all rows anew would cost more than the products.
        xp = array_namespace(v)
        X, root = self.X[row, ...], xp.sqrt(self.w[row, :])
        products = (v @ xp.matrix_transpose(X)) * root
        return (v - ((products @ inverse) * root) @ X) / ridge


@dataclass(frozen=True, kw_only=True, eq=False)
class LinearModel:
    r"""Regularised linear models of ``N`` clients.

    .. math:: f_j(\theta) = \sum_{i=1}^{m_j} w_{ji}\, \phi(\theta x_{ji};\, y_{ji}) + \tfrac{\text{ridge}}{2} |\theta|^2

    The ridge acts on all weights, the intercept included. Use :func:`linear_model` to build one from rows.

    Attributes
    ----------
    loss : Loss
        ``phi``.
    ridge : float
        Weight of the squared norm; the strong convexity constant ``mu`` of every ``f_j``.
    buckets : tuple of Bucket
        Clients of equal size stored together: no row is padded.
    places : tuple of (int, int)
        Client ``j`` is row ``places[j][1]`` of bucket ``places[j][0]``.
    largest : int
        Number of rows of the largest client of the whole federation, also after ``select``: states with one entry per
        row have this width, so that those of different clients fit together.
    """

    loss: Loss
    ridge: float
    buckets: tuple[Bucket, ...]
    places: tuple[tuple[int, int], ...]
    largest: int

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the rows of these clients alone: what one process per client is sent."""
        buckets, places = [], list(self.places)
        for b in sorted({b for b, _ in self.places}):
            members = [j for j, (own, _) in enumerate(self.places) if own == b]
            rows = [self.places[j][1] for j in members]
            bucket = self.buckets[b]
            X, y, w = take_clients((bucket.X, bucket.y, bucket.w), rows)
            buckets.append(Bucket(X=X, y=y, w=w))
            for row, j in enumerate(members):
                places[j] = (len(buckets) - 1, row)
        return _rebuild, (self.loss, self.ridge, tuple(buckets), tuple(places), self.largest)

    @property
    def n_clients(self) -> int:
        """Number ``N`` of clients."""
        return len(self.places)

    @property
    def n_features(self) -> int:
        """Number ``p`` of columns, the intercept included."""
        return self.buckets[0].X.shape[-1]

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of ``theta``: ``(p,)``, or ``(k, p)`` for a loss of ``k`` outputs."""
        return (self.n_features,) if self.loss.outputs == 1 else (self.loss.outputs, self.n_features)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of rows ``m_j`` of each client."""
        return tuple(self.buckets[b].X.shape[1] for b, _ in self.places)

    @cached_property
    def mu(self) -> Array:
        """Strong convexity constants, all equal to ``ridge``, shape ``(N,)``."""
        return asarray_like([self.ridge] * self.n_clients, self.buckets[0].X)

    @cached_property
    def L(self) -> Array:
        r"""Smoothness constants ``curvature * lambda_max(X_j' W_j X_j) + ridge``, shape ``(N,)``."""
        if not math.isfinite(self.loss.curvature):
            return asarray_like([math.inf] * self.n_clients, self.buckets[0].X)
        xp = array_namespace(self.buckets[0].X)
        largest = xp.stack([self.buckets[b].largest_eigenvalue(row) for b, row in self.places])
        return self.loss.curvature * largest + self.ridge

    def zeros(self) -> Array:
        """Return the zero model, shape ``shape``."""
        X = self.buckets[0].X
        return array_namespace(X).zeros(self.shape, dtype=X.dtype, device=device(X))

    def value(self, theta: Array) -> Array:
        """Return ``f_j(theta_j)``, shape ``(N,)``."""
        theta = self._stack(theta)
        xp = array_namespace(theta)

        def one(points: Array, X: Array, y: Array, w: Array) -> tuple[Array]:
            return (xp.sum(w * self.loss.value(self._predict(points, X), y), axis=-1),)

        (value,) = self.sum_over_rows(theta, one)
        return value + 0.5 * self.ridge * client_dot(theta, theta)

    def gradient(self, theta: Array) -> Array:
        """Return the gradients (a subgradient when nonsmooth), shape ``(N, *shape)``."""
        return self.value_and_gradient(theta)[1]

    def value_and_gradient(self, theta: Array) -> tuple[Array, Array]:
        """Return values ``(N,)`` and gradients ``(N, *shape)`` in one pass over the rows."""
        theta = self._stack(theta)
        xp = array_namespace(theta)

        def one(points: Array, X: Array, y: Array, w: Array) -> tuple[Array, Array]:
            value, slope = self.loss.value_and_gradient(self._predict(points, X), y)
            return xp.sum(w * value, axis=-1), self._pull_back(slope, X, w)

        value, gradient = self.sum_over_rows(theta, one)
        return (
            value + 0.5 * self.ridge * client_dot(theta, theta),
            xp.reshape(gradient + self.ridge * theta, (self.n_clients, *self.shape)),
        )

    def draw(self, rngs: Sequence[Any], batch: int | None) -> Sample:
        """Draw ``batch`` rows per client, uniformly with replacement; ``None`` takes every row once.

        Parameters
        ----------
        rngs : sequence of numpy.random.Generator
            One generator per client, such as ``round.rngs()``.
        batch : int or None
            Number of rows of each client; more than it has is allowed.

        Returns
        -------
        tuple of N host integer arrays
            Row numbers within the client.

        Raises
        ------
        ValueError
            If ``batch`` is less than 1, or there is not one generator per client.
        """
        return draw_rows(self.sizes, rngs, batch, self.buckets[0].X)

    def sample_gradient(self, theta: Array, sample: Sample) -> Array:
        r"""Return the gradients estimated from a sample of rows, shape ``(N, *shape)``.

        .. math:: \frac{1}{B_j} \sum_{b=1}^{B_j} m_j w_{j i_b} \nabla_\theta
                  \phi(\theta_j x_{j i_b};\, y_{j i_b}) + \text{ridge}\, \theta_j

        The expectation over uniform rows ``i_b`` is the gradient, and so is the value for a sample of every row once.
        The lengths ``B_j`` may differ; a sample may be used at several points.

        Raises
        ------
        ValueError
            If the sample is not one nonempty array of row numbers per client.

        Examples
        --------
        >>> import numpy as np
        >>> f = linear_model(np.eye(3), np.array([1.0, 2.0, 3.0]), loss=Squared(), mu=0.1, intercept=False)
        >>> f.sample_gradient(np.zeros(3), (np.array([2, 2]),)).tolist()
        [[0.0, 0.0, -3.0]]
        """
        check_sample(self.sizes, sample)
        theta = self._stack(theta)

        def one(points: Array, X: Array, y: Array, w: Array) -> tuple[Array]:
            return (self._pull_back(self.loss.gradient(self._predict(points, X), y), X, w),)

        (gradient,) = self.sum_over_rows(theta, one, sample)
        return array_namespace(theta).reshape(gradient + self.ridge * theta, (self.n_clients, *self.shape))

    def hessian_product(self, theta: Array, v: Array) -> Array:
        """Return ``hess f_j(theta_j) v_j``, shape ``(N, *shape)``."""
        return self.hessian_operator(theta)(v)

    def hessian_operator(self, theta: Array) -> Callable[[Array], Array]:
        """Return ``v -> hess f_j(theta_j) v_j``; the predictors of ``theta`` are computed once."""
        theta = self._stack(theta)
        xp = array_namespace(theta)
        predictors = [self._predict(self._points(theta, piece), piece[1]) for piece in self._pieces]

        def product(v: Array) -> Array:
            v = self._stack(v)
            z = iter(predictors)

            def one(points: Array, X: Array, y: Array, w: Array) -> tuple[Array]:
                return (self._pull_back(self.loss.hessian_product(next(z), y, self._predict(points, X)), X, w),)

            (result,) = self.sum_over_rows(v, one)
            return xp.reshape(result + self.ridge * v, (self.n_clients, *self.shape))

        return product

    def preconditioner(self, weight: float | Array = 0.0) -> Callable[[Array], Array]:
        r"""Return ``v -> (0.2 curvature X_j' W_j X_j + (ridge + weight_j) I)^{-1} v_j``.

        A fifth of the largest curvature is a typical one along a path: on MNIST, 0.1 X'WX needs fewer gradients
        than half or twice as much. The inverse is computed at first use and kept with the data of the client; it is
        ``p x p`` when the client has at least ``p`` rows and ``m_j x m_j`` otherwise, so that it never needs
        more memory than the data. A ridge below 1e-6 times the largest eigenvalue of ``X_j' W_j X_j`` is raised to that
        number, because without strong convexity the matrix may be singular.
        """
        fraction = 0.2 * (self.loss.curvature if math.isfinite(self.loss.curvature) else 1.0)
        wanted = [ridge / fraction for ridge in self._ridges(weight)]
        ridges = [max(ridge, least) for ridge, least in zip(wanted, self._least_ridges, strict=True)]

        def apply(v: Array) -> Array:
            xp = array_namespace(v)
            v = self._stack(v)
            rows = [
                self.buckets[b].apply_ridge_inverse(row, ridge, v[j, ...]) / fraction
                for j, ((b, row), ridge) in enumerate(zip(self.places, ridges, strict=True))
            ]
            return xp.reshape(xp.stack(rows), (self.n_clients, *self.shape))

        return apply

    @property
    def has_exact_minimiser(self) -> bool:
        """Whether local problems are quadratic, so that they can be solved in closed form."""
        return isinstance(self.loss, Squared)

    def exact_minimiser(self, problem: LocalProblem) -> Array:
        """Solve the normal equations of local problems with the squared loss, shape ``(N, *shape)``."""
        if not self.has_exact_minimiser:
            raise ValueError(f"solver 'exact' needs quadratic local problems, and the loss {self.loss} is not squared.")
        ridges = self._ridges(problem.weight)
        if not min(ridges) > 0:
            raise ValueError(f"solver 'exact' needs mu + weight > 0 for a linear model, not {min(ridges)}.")
        xp = array_namespace(self.buckets[0].X)
        linear = problem.linear_term()
        rows = []
        for j, (b, row) in enumerate(self.places):
            bucket = self.buckets[b]
            right = xp.matrix_transpose(bucket.X[row, ...]) @ (bucket.w[row, :] * bucket.y[row, :]) - linear[j, ...]
            rows.append(bucket.apply_ridge_inverse(row, ridges[j], right[None, :])[0, ...])
        return xp.stack(rows)

    def client_rows(self) -> Iterator[tuple[Array, Array, Array]]:
        """Yield features ``(m_j, p)``, labels ``(m_j,)`` and weights ``(m_j,)`` of each client, as views."""
        for b, row in self.places:
            bucket = self.buckets[b]
            yield bucket.X[row, ...], bucket.y[row, :], bucket.w[row, :]

    def select(self, ids: Sequence[int]) -> LinearModel:
        """Return the objective of the clients ``ids``; data and cached factors are shared, not copied."""
        if list(ids) == list(range(self.n_clients)):
            return self
        return replace(self, places=tuple(self.places[j] for j in ids))

    # Everything below works on pieces: (clients, X (c, b, p), y (c, b), w (c, b)). On a CPU a piece is one block of
    # rows of one client; on a GPU it is a whole bucket, so that one batched product serves all its clients.

    @cached_property
    def _pieces(self) -> list[tuple[list[int], Array, Array, Array]]:
        if not is_host(self.buckets[0].X):
            return self._whole_buckets()
        pieces = []
        for j, (b, row) in enumerate(self.places):
            bucket, one = self.buckets[b], slice(row, row + 1)
            m = bucket.X.shape[1]
            for start in range(0, m, BLOCK_ROWS):
                block = slice(start, min(start + BLOCK_ROWS, m))
                pieces.append(([j], bucket.X[one, block, :], bucket.y[one, block], bucket.w[one, block]))
        return pieces

    def _whole_buckets(self) -> list[tuple[list[int], Array, Array, Array]]:
        members: dict[int, list[int]] = defaultdict(list)
        for j, (b, _) in enumerate(self.places):
            members[b].append(j)
        pieces = []
        for b, clients in members.items():
            bucket, rows = self.buckets[b], [self.places[j][1] for j in clients]
            if rows == list(range(bucket.X.shape[0])):
                pieces.append((clients, bucket.X, bucket.y, bucket.w))
            else:  # part of a bucket: views of single clients, so that no data is copied
                for j, row in zip(clients, rows, strict=True):
                    one = slice(row, row + 1)
                    pieces.append(([j], bucket.X[one, ...], bucket.y[one, :], bucket.w[one, :]))
        return pieces

    @cached_property
    def _least_ridges(self) -> list[float]:
        """Ridges that keep the preconditioner of each client regular; 1 for a client whose features are all zero."""
        return [1e-6 * float(self.buckets[b].largest_eigenvalue(row)) or 1.0 for b, row in self.places]

    def _ridges(self, weight: float | Array) -> list[float]:
        """Return ``ridge + weight_j`` of every client."""
        numbers = [weight] * self.n_clients if isinstance(weight, float | int) else to_numpy(weight).tolist()
        return [self.ridge + number for number in numbers]

    def _stack(self, theta: Array) -> Array:
        """Bring ``(N, *shape)`` or ``shape`` to ``(N, k, p)``."""
        xp = array_namespace(theta)
        theta = xp.broadcast_to(theta, (self.n_clients, *self.shape))
        return xp.reshape(theta, (self.n_clients, self.loss.outputs, self.n_features))

    def _points(self, theta: Array, piece: tuple[list[int], Array, Array, Array]) -> Array:
        clients = piece[0]
        if clients == list(range(clients[0], clients[0] + len(clients))):
            return theta[clients[0] : clients[0] + len(clients), ...]
        xp = array_namespace(theta)
        return xp.take(theta, xp.asarray(clients, device=device(theta)), axis=0)

    def _predict(self, points: Array, X: Array) -> Array:
        """Return linear predictors in the layout of the loss: rows last, ``(c, k, b)`` or ``(c, b)``."""
        xp = array_namespace(X)
        z = xp.matmul(points, xp.matrix_transpose(X))
        return z[:, 0, :] if self.loss.outputs == 1 else z

    def _pull_back(self, slope: Array, X: Array, w: Array) -> Array:
        """Return ``sum_i w_i slope_i x_i'``, shape ``(c, k, p)``."""
        weighted = (slope * w)[:, None, :] if self.loss.outputs == 1 else slope * w[:, None, :]
        return array_namespace(X).matmul(weighted, X)

    def sum_over_rows(
        self, theta: Array, one: Callable[..., tuple[Array, ...]], sample: Sample | None = None
    ) -> tuple[Array, ...]:
        """Add what ``one`` returns for the pieces of each client, all rows or a sample; put the clients in order."""
        totals: dict[tuple[int, ...], list[Array]] = {}
        limit = BLOCK_ROWS if is_host(self.buckets[0].X) else None
        pieces = self._pieces if sample is None else sampled_pieces(self.buckets, self.places, sample, limit=limit)
        for piece in pieces:
            clients, X, y, w = piece
            results = one(self._points(theta, piece), X, y, w)
            if (key := tuple(clients)) in totals:
                totals[key] = [total + result for total, result in zip(totals[key], results, strict=True)]
            else:
                totals[key] = list(results)
        xp = array_namespace(theta)
        order = [j for clients in totals for j in clients]
        parts = [list(column) for column in zip(*totals.values(), strict=True)]
        columns = [xp.concat(column, axis=0) if len(column) > 1 else column[0] for column in parts]
        if order == list(range(self.n_clients)):
            return tuple(columns)
        inverse = sorted(range(len(order)), key=order.__getitem__)
        return tuple(xp.take(c, xp.asarray(inverse, device=device(c)), axis=0) for c in columns)


def linear_model(
    X: Array,
    y: Array,
    *,
    loss: Loss,
    mu: float,
    clients: Sequence[Sequence[int]] | int = 1,
    intercept: bool = True,
    weights: Literal["clients", "rows"] | Array = "clients",
) -> LinearModel:
    r"""Build a :class:`LinearModel` from rows and a partition.

    Parameters
    ----------
    X : array, shape (m, d)
        Features.
    y : array, shape (m,)
        Labels in the form the loss expects (``dualopt.data.encode_labels`` makes it).
    loss : Loss
        ``phi``.
    mu : float
        Weight of the ridge, at least 0.
    clients : sequence of integer sequences, or int
        Row indices of each client; an integer ``N`` cuts the rows into ``N`` consecutive clients.
    intercept : bool, default True
        Whether to append a constant column of ones (its weights are regularised too, as in the paper).
    weights : "clients", "rows" or array of shape (m,)
        ``"clients"``: ``w_ji = 1/m_j``, every client counts alike. ``"rows"``: ``w_ji = N/m``, so that ``E`` is the
        mean over all rows. An array gives ``w`` itself.

    Raises
    ------
    ValueError
        If an argument does not fit, with one sentence that names it.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt.losses import Squared
    >>> f = linear_model(np.eye(3), np.array([1.0, 2.0, 3.0]), loss=Squared(), mu=0.1, clients=[[0, 1], [2]])
    >>> f.n_clients, f.shape, f.value(f.zeros()).tolist()
    (2, (4,), [1.25, 4.5])
    """
    xp = array_namespace(X)
    _check_arguments(X, y, loss=loss, mu=mu)
    m = X.shape[0]
    rows: Sequence[Sequence[int]] = (
        _consecutive(m, clients) if isinstance(clients, int) else [[int(i) for i in part] for part in clients]
    )
    _check_clients(rows, m)
    if isinstance(weights, str):
        if weights not in ("clients", "rows"):
            raise ValueError(f"weights must be 'clients', 'rows' or an array, not {weights!r}.")
        row_weight = [1.0 / len(part) if weights == "clients" else len(rows) / m for part in rows]
        parts = [asarray_like([value] * len(part), X) for value, part in zip(row_weight, rows, strict=True)]
    else:
        fits = tuple(weights.shape) == (m,) and weights.dtype == X.dtype
        if not fits or not bool(xp.all(xp.isfinite(weights))) or bool(xp.any(weights < 0)):
            raise ValueError(
                f"weights must be {m} finite nonnegative numbers of the type {X.dtype}, one for each row of X."
            )
        parts = [xp.take(weights, asarray_like(part, X, dtype=xp.int64), axis=0) for part in rows]

    by_size: dict[int, list[int]] = defaultdict(list)
    for j, part in enumerate(rows):
        by_size[len(part)].append(j)
    places: list[tuple[int, int]] = [(0, 0)] * len(rows)
    buckets = []
    for size, members in by_size.items():
        index = asarray_like([i for j in members for i in rows[j]], X, dtype=xp.int64)
        features = xp.take(X, index, axis=0)
        if intercept:
            ones = xp.ones((features.shape[0], 1), dtype=X.dtype, device=device(X))
            features = xp.concat([features, ones], axis=1)
        for row, j in enumerate(members):
            places[j] = (len(buckets), row)
        buckets.append(
            Bucket(
                X=xp.reshape(features, (len(members), size, features.shape[1])),
                y=xp.reshape(xp.take(y, index, axis=0), (len(members), size)),
                w=xp.stack([parts[j] for j in members]),
            )
        )
    return LinearModel(loss=loss, ridge=float(mu), buckets=tuple(buckets), places=tuple(places), largest=max(by_size))


def _check_arguments(X: Array, y: Array, *, loss: Loss, mu: float) -> None:
    xp = array_namespace(X)
    if X.ndim != 2 or X.shape[0] == 0 or X.shape[1] == 0:
        raise ValueError(f"X must be a matrix with at least one row and one column, not of shape {tuple(X.shape)}.")
    if not xp.isdtype(X.dtype, "real floating"):
        raise ValueError(f"X must hold floating-point numbers, not {X.dtype}.")
    if not bool(xp.all(xp.isfinite(X))):
        raise ValueError("X must not contain NaN or infinite features.")
    if tuple(y.shape) != (X.shape[0],):
        raise ValueError(f"y must have one label for each of the {X.shape[0]} rows of X, not shape {tuple(y.shape)}.")
    if not (math.isfinite(mu) and mu >= 0):
        raise ValueError(f"mu must be a finite number, at least 0, not {mu}.")
    if loss.labels == "class":
        if not xp.isdtype(y.dtype, "integral") or bool(xp.any(y < 0)) or bool(xp.any(y >= loss.outputs)):
            raise ValueError(f"y must hold integers 0 to {loss.outputs - 1} for the loss {loss}.")
        return
    if y.dtype != X.dtype or not bool(xp.all(xp.isfinite(y))):
        raise ValueError(f"y must hold finite numbers of the type {X.dtype} of X for the loss {loss}.")
    if loss.labels == "binary" and bool(xp.any(xp.abs(y) != 1)):
        raise ValueError(f"y must hold only -1 and +1 for the loss {loss}.")


def _check_clients(rows: Sequence[Sequence[int]], m: int) -> None:
    if not rows:
        raise ValueError("clients must name at least one client.")
    for j, part in enumerate(rows):
        if not part:
            raise ValueError(f"clients: client {j} has no rows.")
        if min(part) < 0 or max(part) >= m:
            raise ValueError(f"clients: client {j} has a row index outside 0 to {m - 1}.")


def _consecutive(m: int, n_clients: int) -> list[range]:
    if not 1 <= n_clients <= m:
        raise ValueError(f"clients must be between 1 and the number of rows {m}, not {n_clients}.")
    small, larger = divmod(m, n_clients)
    starts = [j * small + min(j, larger) for j in range(n_clients + 1)]
    return [range(a, b) for a, b in pairwise(starts)]


def _rebuild(loss: Loss, ridge: float, buckets: Any, places: Any, largest: int) -> LinearModel:
    return LinearModel(loss=loss, ridge=ridge, buckets=buckets, places=places, largest=largest)
