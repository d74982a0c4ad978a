"""Sparse rows: the classes `SparseBlock` and `SparseGroup`, with the methods of those of dense rows.

A group is one block-diagonal matrix in compressed sparse rows (CSR). Its diagonal blocks are the rows of the clients,
each with the columns alone that its client has: a product with it serves all clients at once, and costs what their
nonzero features cost. Matrices are those of SciPy, or of CuPy on a GPU, which are called in the same way.

A text set has more columns than a client uses, and more columns than rows. Then the Gram matrices that dense rows keep
would be the largest thing there is, and the preconditioner is diagonal; see `SparseGroup.precondition`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from itertools import accumulate
from random import Random
from typing import Any, ClassVar

from dualopt.arrays.communicator import ALONE, Communicator
from dualopt.arrays.tree import take_clients
from dualopt.arrays.xp import (
    Array,
    array_namespace,
    asarray_like,
    broadcast,
    csr_matrix,
    device,
    epsilon,
    is_host,
    is_sparse,
    to_numpy,
)
from dualopt.objectives._dense import LEAST_RIDGE, ClientBlock, eigenvectors, shifted_inverse
from dualopt.objectives._index import Index
from dualopt.problem.inputs import require_entries

__all__ = ["SparseBlock", "SparseGroup", "as_stored", "canonical", "sparse_is_faster"]

# Largest side of a Gram matrix that is made. For one client of rows of 80 features out of 20,000 and 20 classes, making
# its inverse takes 5 gradients for 500 rows, 40 for 1,000 and 100 for 1,600, and a product with it 2 to 3.
LARGEST_GRAM = 500

# Columns of a block of several clients on a CPU. What a product with X X' has between its two halves then takes 5 MB
# for 20 outputs and stays in the cache: clients of 1,600 rows and 26,000 columns, one by one, take half the time that
# five at once take, and with one output 1.1 times as much.
PART_COLUMNS = 2**15


def canonical(X: Any) -> Any:
    """Return sparse features in compressed rows with sorted columns, each once; what is passed is not changed.

    Entries that occur several times are added, as all formats of SciPy mean them, and stored zeros are dropped.

    Raises
    ------
    ValueError
        If ``X`` does not hold finite numbers of float64 or float32, with columns in range.
    """
    if str(X.dtype) not in ("float64", "float32"):
        raise ValueError(f"X must hold floating-point numbers, not {X.dtype}; sparse ones float64 or float32.")
    rows = X.tocsr()
    # A copy, and with flags that say nothing yet: a matrix may have been changed since it was found to be sorted.
    X = csr_matrix(rows.data.copy(), rows.indices.copy(), rows.indptr.copy(), rows.shape)
    if hasattr(X, "check_format"):  # CuPy has no such method
        try:
            X.check_format(full_check=True)
        except ValueError as error:
            raise ValueError(f"X is not a valid sparse matrix: {str(error).rstrip('.')}.") from None
    X.sum_duplicates()
    X.eliminate_zeros()
    xp = array_namespace(X.data)
    if not bool(xp.all(xp.isfinite(X.data))):
        raise ValueError("X must not contain NaN or infinite features.")
    return X


def sparse_is_faster(density: float, columns: int) -> bool:
    """Tell whether gradients take less time with sparse rows, by the fraction of entries that are not zero.

    Time of a gradient with sparse rows over that with dense rows, for 1 and 10 outputs (CPU time, one thread, OpenBLAS,
    float64, 8 clients, the least of 7; 40,000 rows of 20 and 100 columns, 8,000 of 1,000, 2,000 of 5,000):

    ========  ==========  ==========  ==========  ==========
    Density   20 columns  100         1,000       5,000
    ========  ==========  ==========  ==========  ==========
    0.01      0.37, 0.50  0.31, 0.23  0.08, 0.07  0.08, 0.08
    0.03      0.50, 0.55  0.38, 0.26  0.11, 0.11  0.12, 0.14
    0.1       0.61, 0.63  0.45, 0.38  0.23, 0.28  0.25, 0.33
    0.2       0.67, 0.72  0.52, 0.55  0.41, 0.55  0.79, 0.60
    0.3       0.72, 0.81  0.65, 0.71  0.64, 0.81  1.22, 0.84
    0.5       0.77, 0.97  0.92, 1.08  1.13, 1.27  1.88, 1.36
    ========  ==========  ==========  ==========  ==========

    So the answer is yes up to a density of 0.2 from 50 columns on: below, little is to be gained, and dense rows have a
    smaller overhead on tiny problems. GPUs were not measured.
    """
    return density <= 0.2 and columns >= 50


def as_stored(X: Any, storage: str, peers: Communicator = ALONE) -> Any:
    """Return features dense, or sparse and canonical, whichever is asked for; ``peers`` have further rows.

    Raises
    ------
    ValueError
        If ``X`` is no matrix with rows and columns, ``storage`` is unknown, or sparse features are not valid.
    """
    with peers.together():
        require_entries(X)
        if storage not in ("auto", "sparse", "dense"):
            raise ValueError(f"storage must be 'auto', 'sparse' or 'dense', not {storage!r}.")
        if not is_sparse(X):
            return canonical(_without_zeros(X)) if storage == "sparse" else X
        X = canonical(X)
    entries, rows = peers.total(X.data.shape[0]), peers.total(X.shape[0])
    faster = sparse_is_faster(entries / (rows * X.shape[1]), X.shape[1])
    return X if storage == "sparse" or (storage == "auto" and faster) else X.toarray()


def _without_zeros(X: Array) -> Any:
    """Return a dense matrix in compressed sparse rows."""
    xp = array_namespace(X)
    rows, columns = xp.nonzero(X)
    starts = xp.searchsorted(rows, xp.arange(X.shape[0] + 1, dtype=rows.dtype, device=device(X)))
    return csr_matrix(X[rows, columns], columns, starts, X.shape)


def _compressed(data: Array, keys: Array, indptr: Array) -> tuple[Any, Array]:
    """Return a matrix with the columns alone that occur, and their keys in increasing order."""
    xp = array_namespace(data)
    columns, indices = xp.unique_inverse(keys)
    if columns.shape[0] == 0:  # a client without any feature has its first one, which is zero
        columns = xp.zeros((1,), dtype=keys.dtype, device=device(keys))
    index = xp.int32 if max(data.shape[0], columns.shape[0]) < 2**31 else xp.int64
    shape = (indptr.shape[0] - 1, columns.shape[0])
    matrix = csr_matrix(data, xp.astype(indices, index), xp.astype(indptr, index), shape)
    return matrix, columns


@dataclass(frozen=True, eq=False)
class SparseBlock:
    """Rows of some clients, equally many of each: a block-diagonal matrix, labels and row weights ``(c, b)``.

    A column of the matrix is the feature ``feature`` of the client at position ``owner`` in the block.
    ``by_columns()``, if it is there, returns the matrix in compressed columns. Predictors of several outputs then take
    two thirds to half of the time on a CPU, because the sums of few rows stay in the cache where the entries of many
    columns would not; every sum is added in the same order.
    """

    clients: Index
    X: Any
    owner: Array
    feature: Array
    n_features: int
    y: Array
    w: Array
    by_columns: Callable[[], Any] | None = None

    def points(self, theta: Array) -> Array:
        """Return the points of these clients, ``(c, ...)`` out of ``(N, ...)`` or of one for all, ``(1, ...)``."""
        if theta.shape[0] == 1:
            return broadcast(theta, (len(self.clients), *theta.shape[1:]))
        return self.clients.take(theta)

    def predict(self, matrices: Array) -> Array:
        """Return ``M_j x_ji`` for matrices ``(c, k, p)``: ``(c, k, b)``, rows last, which is the layout of losses."""
        return self.predict_own(self.own(matrices))

    def pull_back(self, slopes: Array) -> Array:
        """Return ``sum_i s_ji x_ji'`` for slopes ``(c, k, b)``: ``(c, k, p)``."""
        xp, (c, k, _) = array_namespace(slopes), slopes.shape
        result = xp.zeros((c, k, self.n_features), dtype=slopes.dtype, device=device(slopes))
        self.put(self.pull_back_own(slopes), result)
        return result

    def kernel(self, slopes: Array) -> Array:
        """Return ``x_ji sum_l s_jl x_jl'`` for slopes ``(c, k, b)`` of all rows of the clients: the same shape."""
        return self.predict_own(self.pull_back_own(slopes))

    def own(self, matrices: Array) -> Array:
        """Return the entries of matrices ``(c, k, p)`` in the ``n`` columns of the block, ``(n, k)``.

        For one output it is ``(n,)``: products with vectors take another way through SciPy.
        """
        if len(self.clients) == 1:  # class by class, in the order of the memory: two thirds of the time
            xp = array_namespace(matrices)
            own = xp.take(matrices[0, ...], self.feature, axis=1)
            return own[0, :] if own.shape[0] == 1 else xp.asarray(xp.matrix_transpose(own), order="C", copy=True)
        return matrices[self.owner, 0 if matrices.shape[1] == 1 else slice(None), self.feature]

    def put(self, own: Array, matrices: Array) -> None:
        """Write entries in the columns of the block, as `own` returns them, into ``matrices``."""
        outputs = 0 if own.ndim == 1 else slice(None)
        if len(self.clients) == 1:
            array_namespace(matrices).matrix_transpose(matrices[0, ...])[self.feature, outputs] = own
        else:
            matrices[self.owner, outputs, self.feature] = own

    def predict_own(self, own: Array) -> Array:
        """Return `predict` of matrices with these entries in the columns of the block."""
        X = self.X if own.ndim == 1 or self.by_columns is None else self.by_columns()
        return self._classes_first(X @ own)

    def pull_back_own(self, slopes: Array) -> Array:
        """Return the entries of `pull_back` in the columns of the block, where alone it is not zero."""
        return self._transposed @ self._rows_first(slopes)

    @cached_property
    def _transposed(self) -> Any:
        """The transposed matrix; to make it takes SciPy longer than a product with 500 short rows."""
        return self.X.T

    def _rows_first(self, slopes: Array) -> Array:
        """Bring ``(c, k, b)`` to the form of products, ``(c b, k)``, or ``(c b,)`` for one output."""
        xp, k = array_namespace(slopes), slopes.shape[1]
        return xp.reshape(slopes, (-1,)) if k == 1 else xp.reshape(xp.matrix_transpose(slopes), (-1, k))

    def _classes_first(self, products: Array) -> Array:
        """Undo `_rows_first`, into contiguous rows of each class: losses run along them."""
        xp = array_namespace(products)
        if products.ndim == 1:
            return xp.reshape(products, (-1, 1, self.y.shape[1]))
        by_client = xp.reshape(products, (*self.y.shape, products.shape[1]))
        return xp.asarray(xp.matrix_transpose(by_client), order="C", copy=True)


@dataclass(frozen=True, kw_only=True, eq=False)
class SparseGroup:
    """Clients of equal size, stored together: features as a block-diagonal matrix, labels and row weights ``(c, m)``.

    ``columns`` are ``position p + feature`` for each column of the matrix, in increasing order. Gram matrices, their
    inverses, eigenvalues and the blocks of single clients are kept in ``cache``.
    """

    whole_on_host: ClassVar[bool] = True
    """Whether a block is best a whole group on a CPU too: a sparse product finds nothing in the cache anyway."""

    X: Any
    columns: Array
    n_features: int
    y: Array
    w: Array
    cache: dict[tuple[str, int, float], Any] = field(default_factory=dict, repr=False)

    @classmethod
    def build(cls, X: Any, y: Array, w: Array, *, intercept: bool) -> SparseGroup:
        """Return the group of clients whose rows are ``X`` of shape ``(c m, d)``, canonical, client by client."""
        xp = array_namespace(X.data)
        p = X.shape[1] + intercept
        data, indices, indptr = X.data, xp.astype(X.indices, xp.int64), X.indptr
        if intercept:  # one more entry at the end of each row
            indptr = indptr + xp.arange(X.shape[0] + 1, dtype=indptr.dtype, device=device(indptr))
            own = xp.ones((int(indptr[-1]),), dtype=xp.bool, device=device(data))
            own[indptr[1:] - 1] = False
            data, indices = (
                xp.ones(own.shape, dtype=data.dtype, device=device(data)),
                xp.full_like(own, p - 1, dtype=xp.int64),
            )
            data[own], indices[own] = X.data, X.indices
        keys = indices + (_row_numbers(indptr) // y.shape[1]) * p
        matrix, columns = _compressed(data, keys, indptr)
        return cls(X=matrix, columns=columns, n_features=p, y=y, w=w)

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("X", "columns", "n_features", "y", "w")} | {"cache": {}}

    @property
    def n_clients(self) -> int:
        """Number ``c`` of clients."""
        return self.y.shape[0]

    @property
    def n_rows(self) -> int:
        """Number ``m`` of rows of each client."""
        return self.y.shape[1]

    def in_single(self) -> SparseGroup:
        """Return the group with features and weights in single precision, copied once; labels are what they are."""
        if (key := ("single", 0, 0.0)) not in self.cache:
            xp = array_namespace(self.w)
            data, w = (xp.astype(x, xp.float32) for x in (self.X.data, self.w))
            X = csr_matrix(data, self.X.indices, self.X.indptr, self.X.shape)
            self.cache[key] = replace(self, X=X, w=w, cache={})
        return self.cache[key]

    def select(self, positions: Sequence[int]) -> SparseGroup:
        """Return a group of the clients at these positions alone, a copy."""
        m = self.n_rows
        y, w = take_clients((self.y, self.w), positions)
        parts = [self.X[position * m : (position + 1) * m] for position in positions]
        keys = [
            self.columns[part.indices] + (i - position) * self.n_features
            for i, (position, part) in enumerate(zip(positions, parts, strict=True))
        ]
        matrix, columns = _compressed(*_stacked(parts, keys))
        return SparseGroup(X=matrix, columns=columns, n_features=self.n_features, y=y, w=w)

    def client(self, position: int) -> tuple[Any, Array, Array]:
        """Return features ``(m, p)``, a sparse matrix, labels ``(m,)`` and weights ``(m,)`` of one client."""
        key = ("client", position, 0.0)
        if key not in self.cache:
            own, shape = self._own(position).X, (self.n_rows, self.n_features)
            features = array_namespace(self.w).astype(self._own(position).feature, own.indices.dtype)
            self.cache[key] = csr_matrix(own.data, features[own.indices], own.indptr, shape)
        return self.cache[key], self.y[position, :], self.w[position, :]

    def parts(self, clients: Array, positions: Array, limit: int | None) -> list[ClientBlock]:
        """Return all rows of some clients: every client as one part, and the whole group as one or a few.

        On a CPU those have at most ``PART_COLUMNS`` columns or one client. ``clients`` are their positions in the call,
        ``positions`` those in the group, in increasing order.
        """
        if not (own := Index(positions)).are_all(self.n_clients):
            every = slice(0, self.n_rows)
            pairs = zip(clients.tolist(), positions.tolist(), strict=True)
            return [ClientBlock(Index([position]), self.block(client, position, every)) for client, position in pairs]
        if not is_host(self.w) or self.columns.shape[0] <= PART_COLUMNS:
            return [ClientBlock(own, replace(self._own(0, self.n_clients), clients=Index(clients)))]
        xp, c = array_namespace(self.columns), self.n_clients
        bounds = xp.arange(c + 1, dtype=self.columns.dtype, device=device(self.columns)) * self.n_features
        ends, parts, first = to_numpy(xp.searchsorted(self.columns, bounds)).tolist(), [], 0
        for last in range(1, c + 1):
            if last == c or ends[last + 1] - ends[first] > PART_COLUMNS:
                block = replace(self._own(first, last - first), clients=Index(clients[first:last]))
                parts.append(ClientBlock(own[first:last], block))
                first = last
        return parts

    def whole(self, clients: Index) -> SparseBlock:
        """Return all rows of the group as one block of the clients of these numbers."""
        block = self._block(clients, self.X, self.columns, self.y, self.w)
        return replace(block, by_columns=cache(self.X.tocsc)) if is_host(self.w) else block

    def block(self, client: int, position: int, rows: slice) -> SparseBlock:
        """Return consecutive rows of one client as a block."""
        own = self._own(position)
        if rows == slice(0, self.n_rows):
            return replace(own, clients=Index([client]))
        some = replace(own, X=own.X[rows], y=own.y[:, rows], w=own.w[:, rows], by_columns=None)
        return replace(some, clients=Index([client]))

    def take(self, clients: Index, positions: Array, rows: Array, factor: float) -> SparseBlock:
        """Return copies of rows, with weights times ``factor``.

        ``rows`` is a host array of their numbers, as many for each client, one client after the other.
        """
        xp, host = array_namespace(self.w), array_namespace(rows)
        shape = (len(positions), rows.shape[0] // len(positions))
        offsets = host.asarray(positions, dtype=rows.dtype) * self.n_rows
        numbers = host.reshape(host.reshape(rows, shape) + offsets[:, None], (-1,))
        index = asarray_like(numbers, self.w, dtype=xp.int64)
        y, w = (xp.reshape(xp.take(xp.reshape(part, (-1,)), index), shape) for part in (self.y, self.w))
        X = self.X[index]
        # keys of the block: the number of the client in it takes the place of that in the group
        keys = self.columns[X.indices] % self.n_features + (_row_numbers(X.indptr) // shape[1]) * self.n_features
        return self._block(clients, *_compressed(X.data, keys, X.indptr), y, w * factor)

    @staticmethod
    def join(blocks: Sequence[SparseBlock]) -> SparseBlock:
        """Return one block of the clients of several with equally many rows."""
        first = blocks[0]
        if len(blocks) == 1:
            return first
        xp, p = array_namespace(first.w), first.n_features
        y, w = (xp.concat([getattr(block, name) for block in blocks], axis=0) for name in ("y", "w"))
        starts = list(accumulate((len(block.clients) for block in blocks), initial=0))
        keys = [
            (block.owner[block.X.indices] + start) * p + block.feature[block.X.indices]
            for block, start in zip(blocks, starts, strict=False)
        ]
        matrix, columns = _compressed(*_stacked([block.X for block in blocks], keys))
        clients = Index([j for block in blocks for j in block.clients])
        return SparseBlock(clients, matrix, columns // p, columns % p, p, y, w)

    def label_moment(self, position: int) -> Array:
        """Return ``X' (w y)`` of one client, ``(p,)``."""
        own = self._own(position)
        return own.pull_back((own.w * own.y)[:, None, :])[0, 0, :]

    def gram(self, position: int) -> Array:
        """Return ``A'A`` in the columns that the client has, or ``A A'``, whichever is smaller."""
        key = ("gram", position, 0.0)
        if key not in self.cache:
            A = self._weighted(position)
            self.cache[key] = (A.T @ A if A.shape[1] <= A.shape[0] else A @ A.T).toarray()
        return self.cache[key]

    def largest_eigenvalue(self, position: int) -> Array:
        """Return the largest eigenvalue of ``A'A``, by Lanczos' method where the Gram matrix is large."""
        key = ("eigenvalue", position, 0.0)
        if key not in self.cache and min(self._own(position).X.shape) <= LARGEST_GRAM:
            xp = array_namespace(self.w)
            self.cache[key] = xp.max(xp.linalg.eigvalsh(self.gram(position)))
        elif key not in self.cache:
            A = self._weighted(position)
            self.cache[key] = _largest_eigenvalue(A if A.shape[0] < A.shape[1] else A.T, self.w)
        return self.cache[key]

    def norms(self, position: int) -> Array:
        """Return ``(sum_i w_i |x_i|^2)^(1/2)``, ``(sum_i w_i)^(1/2)`` and the greatest entry of ``X``, ``(3,)``."""
        key = ("norms", position, 0.0)
        if key not in self.cache:
            w, X = self.w[position, :], self._own(position).X
            xp = array_namespace(w)
            largest = xp.max(xp.abs(X.data)) if X.data.shape[0] else xp.zeros_like(w[0])
            scaled = X.data / xp.where(largest > 0, largest, xp.ones_like(largest))  # squares do not over- or underflow
            squares = xp.sum(xp.take(w, _row_numbers(X.indptr)) * scaled * scaled)
            self.cache[key] = xp.stack([largest * xp.sqrt(squares), xp.sqrt(xp.sum(w)), largest])
        return self.cache[key]

    def apply_ridge_inverse(self, position: int, ridge: float, v: Array) -> Array:
        """Return ``v (A'A + ridge I)^{-1}`` for ``v`` of shape ``(k, p)``; only divided in columns that are zero."""
        own, inverse = self._own(position), self.ridge_inverse(position, ridge)
        inside = array_namespace(v).take(v, own.feature, axis=1)
        result = v / ridge
        if own.X.shape[1] <= own.X.shape[0]:
            result[:, own.feature] = inside @ inverse
        else:  # Woodbury's identity
            root = array_namespace(v).sqrt(self.w[position, :])
            products = (own.X @ inside.T).T * root
            result[:, own.feature] = (inside - (own.X.T @ ((products @ inverse) * root).T).T) / ridge
        return result

    def precondition(self, position: int, ridge: float, v: Array) -> Array:
        """Return ``v`` times an approximation of ``(A'A + ridge I)^{-1}``.

        It is exact where the Gram matrix has at most ``LARGEST_GRAM`` rows, and the inverse of the diagonal elsewhere.
        """
        if min(self._own(position).X.shape) <= LARGEST_GRAM:
            return self.apply_ridge_inverse(position, ridge, v)
        return v / (self._diagonal(position) + ridge)

    def _diagonal(self, position: int) -> Array:
        """Return the diagonal of ``A'A``, ``(p,)``."""
        key = ("diagonal", position, 0.0)
        if key not in self.cache:
            own = self._own(position)
            squares = csr_matrix(own.X.data**2, own.X.indices, own.X.indptr, own.X.shape)
            self.cache[key] = replace(own, X=squares, by_columns=None).pull_back(own.w[:, None, :])[0, 0, :]
        return self.cache[key]

    def curve(self, position: int, ridge: float, bends: Array, outputs: Array, v: Array) -> Array:
        r"""Return ``v`` times an approximation of :math:`(C \otimes A'A + \text{ridge} I)^{-1}`, as `precondition`.

        ``C`` has the eigenvalues ``bends`` ``(k,)`` and the eigenvectors ``outputs`` ``(k, k)``, in columns; the ridge
        beside each is raised as `Group.curved_product` raises it.
        """
        xp, own, key = array_namespace(v), self._own(position), ("eigenvectors", position, 0.0)
        small = min(own.X.shape) <= LARGEST_GRAM
        if small and key not in self.cache:
            self.cache[key] = eigenvectors(self.gram(position))
        largest = self.cache[key][0][-1] if small else self.largest_eigenvalue(position)
        ridges = xp.maximum(xp.full_like(bends, ridge), LEAST_RIDGE * bends * largest)
        ridges, bends = xp.where(ridges > 0, ridges, 1.0)[:, None], bends[:, None]
        v = outputs.T @ v
        if not small:
            return outputs @ (v / (bends * self._diagonal(position) + ridges))
        values, vectors = self.cache[key]
        scale, inside, result = 1.0 / (bends * values + ridges), xp.take(v, own.feature, axis=1), v / ridges
        if own.X.shape[1] <= own.X.shape[0]:
            result[:, own.feature] = (inside @ vectors * scale) @ vectors.T
        else:  # Woodbury's identity
            root = xp.sqrt(self.w[position, :])
            products = ((own.X @ inside.T).T * root) @ vectors * (bends * scale)
            result[:, own.feature] = (inside - (own.X.T @ ((products @ vectors.T) * root).T).T) / ridges
        return outputs @ result

    def _own(self, position: int, count: int = 1) -> SparseBlock:
        """Return the rows of one client, or of several neighbours, in their own columns."""
        key = ("block", position, float(count))
        if key not in self.cache:
            some = self if self.n_clients == count else self.select(range(position, position + count))
            self.cache[key] = some.whole(Index(range(count)))
        return self.cache[key]

    def _weighted(self, position: int) -> Any:
        """Return ``A``, the rows of one client in its own columns, each scaled by the root of its weight."""
        xp, own = array_namespace(self.w), self._own(position)
        roots = xp.take(xp.sqrt(self.w[position, :]), _row_numbers(own.X.indptr))
        return csr_matrix(own.X.data * roots, own.X.indices, own.X.indptr, own.X.shape)

    def _block(self, clients: Index, X: Any, columns: Array, y: Array, w: Array) -> SparseBlock:
        p = self.n_features
        return SparseBlock(clients, X, columns // p, columns % p, p, y, w)

    def ridge_inverse(self, position: int, ridge: float) -> Array:
        """Return ``(A'A + ridge I)^{-1}``, or ``(A A' + ridge I)^{-1}`` when that is smaller."""
        key = ("inverse", position, ridge)
        if key not in self.cache:
            self.cache[key] = shifted_inverse(self.gram(position), ridge)
        return self.cache[key]

    # The same for the clients of a part, as `Group` has them.

    def largest_eigenvalues(self, part: ClientBlock) -> Array:
        """Return the largest eigenvalues of ``A'A``, ``(c,)``."""
        return _stack([self.largest_eigenvalue(position) for position in part.positions])

    def client_norms(self, part: ClientBlock) -> Array:
        """Return the `norms` of the clients, ``(c, 3)``."""
        return _stack([self.norms(position) for position in part.positions])

    def label_moments(self, part: ClientBlock) -> Array:
        """Return ``X' (w y)`` of the clients, ``(c, p)``."""
        return _stack([self.label_moment(position) for position in part.positions])

    def ridge_inverse_product(self, part: ClientBlock, ridges: Array) -> Callable[[Array], Array]:
        """Return ``v -> v_j (A'A + ridge_j I)^{-1}`` for ``v`` of shape ``(c, k, p)`` or ``(1, k, p)``."""
        return _products(self.apply_ridge_inverse, list(zip(part.positions, ridges.tolist(), strict=True)))

    def preconditioner_product(self, part: ClientBlock, ridges: Array) -> Callable[[Array], Array]:
        """Return the products of `precondition`, with ridges raised as `Group` raises them."""
        least = [LEAST_RIDGE * float(self.largest_eigenvalue(position)) or 1.0 for position in part.positions]
        raised = [max(ridge, floor) for ridge, floor in zip(ridges.tolist(), least, strict=True)]
        return _products(self.precondition, list(zip(part.positions, raised, strict=True)))

    def curved_product(
        self, part: ClientBlock, bends: Array, outputs: Array, ridges: Array
    ) -> Callable[[Array], Array]:
        """Return the products of `curve`."""
        own = zip(part.positions, ridges.tolist(), bends, outputs, strict=True)
        return _products(self.curve, list(own))


def _row_numbers(indptr: Array) -> Array:
    """Return the number of the row of each stored entry."""
    xp = array_namespace(indptr)
    entries = xp.arange(int(indptr[-1]), dtype=indptr.dtype, device=device(indptr))
    return xp.searchsorted(indptr[1:], entries, side="right")


def _stacked(matrices: Sequence[Any], keys: Sequence[Array]) -> tuple[Array, Array, Array]:
    """Return entries, keys and the starts of the rows of matrices put below each other."""
    xp = array_namespace(matrices[0].data)
    entries = list(accumulate((X.data.shape[0] for X in matrices), initial=0))
    starts = [xp.astype(X.indptr[:-1], xp.int64) + first for X, first in zip(matrices, entries, strict=False)]
    last = asarray_like([entries[-1]], matrices[0].data, dtype=xp.int64)
    return xp.concat([X.data for X in matrices]), xp.concat(list(keys)), xp.concat([*starts, last])


def _largest_eigenvalue(A: Any, like: Array) -> Array:
    """Return the largest eigenvalue of ``A A'`` for a wide ``A``, by Lanczos' method with full orthogonalisation.

    Ritz values come from below; the residual of the Ritz vector, at most ``4 eps`` times the value at the end, is
    added. The start is random with a fixed seed, so that it is not orthogonal to the eigenvector but by chance.
    """
    xp = array_namespace(like)
    rng = Random(0)
    v = asarray_like([rng.gauss() for _ in range(A.shape[0])], like)
    basis = (v / xp.sqrt(xp.sum(v * v)))[None, :]
    diagonal, beside = [], []
    while True:
        v = A @ (A.T @ basis[-1, :])
        diagonal.append(float(xp.sum(v * basis[-1, :])))
        for _ in range(2):  # twice is enough (Parlett 1998)
            v = v - (basis @ v) @ basis
        length = float(xp.sqrt(xp.sum(v * v)))
        n = len(diagonal)
        T = [[0.0] * n for _ in range(n)]
        for i in range(n):
            T[i][i] = diagonal[i]
        for i in range(n - 1):
            T[i][i + 1] = T[i + 1][i] = beside[i]
        values, vectors = xp.linalg.eigh(asarray_like(T, like))
        residual = length * abs(float(vectors[-1, -1]))
        if residual <= 4.0 * epsilon(like) * float(values[-1]) or n == A.shape[0]:
            return values[-1] + residual
        beside.append(length)
        basis = xp.concat([basis, (v / length)[None, :]], axis=0)


def _stack(arrays: list[Array]) -> Array:
    return array_namespace(arrays[0]).stack(arrays)


def _products(function: Callable[..., Array], clients: Sequence[tuple[Any, ...]]) -> Callable[[Array], Array]:
    """Return ``v -> function(position, ridge, ..., v_j)`` of all clients; a single row of ``v`` is everybody's."""
    return lambda v: _stack([function(*client, v[j if v.shape[0] > 1 else 0, ...]) for j, client in enumerate(clients)])
