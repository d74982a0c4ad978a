"""Dense rows: clients of equal size in one array, blocks of their rows, and the Gram matrices of their features.

`dualopt.objectives.rows` and the objectives compute products with features by these classes alone, so that sparse rows
(`dualopt.objectives._sparse`), or rows that are read block by block, need two classes with the same methods and no
change of the mathematics.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

from dualopt.arrays.tree import take_clients
from dualopt.arrays.xp import Array, array_namespace, asarray_like, device, to_numpy, transposed
from dualopt.objectives._client_cache import ClientCache
from dualopt.objectives._index import Index

__all__ = ["LEAST_RIDGE", "Block", "ClientBlock", "Group", "eigenvectors", "shifted_inverse"]

# Least ridge of a preconditioner, as a fraction of the largest eigenvalue of the Gram matrix.
LEAST_RIDGE = 1e-6

# Numbers of the features of a client, 256 KB, from which on they are not copied to lie beside those of another client.
LARGE = 2**15

# Numbers of the features of a part of several clients, 1 MB, of which the point and the gradient of a client count as
# so many rows. They lie in the cache beside the features until they are written where they belong: 4096 clients of 15
# rows, 785 columns and 10 classes, each with a point of its own, take 8% less time than with 512 rows.
LARGEST_PART = 2**17
ROWS_OF_POINT = 4

# Largest side of Gram matrices and inverses that are computed again rather than kept for a whole federation: the
# inverse of 20 rows takes as long as four gradients, and as much memory as the rows.
SMALL_GRAM = 64


class Block(NamedTuple):
    """Rows of some clients, equally many of each: features ``(c, b, p)``, labels and row weights ``(c, b)``."""

    clients: Index
    X: Array
    y: Array
    w: Array

    def points(self, theta: Array) -> Array:
        """Return the points of these clients, ``(c, ...)`` out of ``(N, ...)``; one for all, ``(1, ...)``, as it is."""
        return theta if theta.shape[0] == 1 else self.clients.take(theta)

    def rows(self, rows: slice) -> Block:
        """Return some rows of each client."""
        return self._replace(X=self.X[:, rows, :], y=self.y[:, rows], w=self.w[:, rows])

    def predict(self, matrices: Array) -> Array:
        """Return ``M_j x_ji`` for matrices ``(c, k, p)``: ``(c, k, b)``, rows last, which is the layout of losses."""
        return matrices @ transposed(self.X)

    def pull_back(self, slopes: Array) -> Array:
        """Return ``sum_i s_ji x_ji'`` for slopes ``(c, k, b)``: ``(c, k, p)``."""
        return slopes @ self.X


class ClientBlock(NamedTuple):
    """Some clients of a group: their positions in it, and all their rows."""

    positions: Index
    block: Any  # Block or SparseBlock


@dataclass(frozen=True, kw_only=True, eq=False)
class Group:
    """Clients of equal size, stored together: features ``(c, m, p)``, labels ``(c, m)``, row weights ``(c, m)``.

    Gram matrices are those of ``A``, the rows of one client, each scaled by the root of its weight. They are computed
    for all clients of a part in one call, and each client's in the same way whoever is beside it.
    """

    whole_on_host: ClassVar[bool] = False
    """Whether a block is best a whole group on a CPU too; blocks of few rows stay in the cache between two products."""

    block: ClassVar[type[Block]] = Block
    """The class that multiplies."""

    X: Array
    y: Array
    w: Array
    cache: dict[str, Any] = field(default_factory=dict, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return {"X": self.X, "y": self.y, "w": self.w, "cache": {}}  # what is cached can be computed again

    @property
    def n_clients(self) -> int:
        """Number ``c`` of clients."""
        return self.X.shape[0]

    @property
    def n_rows(self) -> int:
        """Number ``m`` of rows of each client."""
        return self.X.shape[1]

    @property
    def n_features(self) -> int:
        """Number ``p`` of columns."""
        return self.X.shape[2]

    def in_single(self) -> Group:
        """Return the group with features and weights in single precision, copied once; labels are what they are."""
        if "single" not in self.cache:
            xp = array_namespace(self.X)
            X, w = (xp.astype(x, xp.float32) for x in (self.X, self.w))
            self.cache["single"] = type(self)(X=X, y=self.y, w=w)
        return self.cache["single"]

    def select(self, positions: Sequence[int]) -> Group:
        """Return a group of the clients at these positions alone, a copy."""
        X, y, w = take_clients((self.X, self.y, self.w), positions)
        return type(self)(X=X, y=y, w=w)

    def client(self, position: int) -> tuple[Array, Array, Array]:
        """Return features ``(m, p)``, labels ``(m,)`` and weights ``(m,)`` of one client, as views."""
        return self.X[position, ...], self.y[position, :], self.w[position, :]

    def parts(self, clients: Array, positions: Array, limit: int | None) -> list[ClientBlock]:
        """Return all rows of some clients, in parts of at most ``limit`` rows or of one client.

        Neighbours in the group are views. Others are copied, but for large clients, which become parts of their own:
        products with a matrix of more than a few rows cost the same beside other matrices and alone.

        Parameters
        ----------
        clients, positions : host integer arrays, shape (c,)
            The positions of the clients in the call, and those in the group, in increasing order.
        limit : int or None
            Largest number of rows; without it there is one part.
        """
        numbers, together = self.n_rows * self.n_features, len(clients)
        if limit is not None:
            taken = numbers + ROWS_OF_POINT * self.n_features
            together = max(1, min(limit // self.n_rows, LARGEST_PART // taken))
        large = limit is not None and numbers > LARGE
        parts = []
        for first in range(0, len(clients), together):
            own, there = Index(clients[first : first + together]), Index(positions[first : first + together])
            if large and there.run is None:
                parts += [self._part(own[i : i + 1], there[i : i + 1]) for i in range(len(own))]
            else:
                parts.append(self._part(own, there))
        return parts

    def _part(self, clients: Index, positions: Index) -> ClientBlock:
        return ClientBlock(positions, self.block(clients, *(positions.take(x) for x in (self.X, self.y, self.w))))

    def take(self, clients: Index, positions: Array, rows: Array, factor: float) -> Block:
        """Return copies of rows, with weights times ``factor``.

        ``rows`` is a host array of their numbers, as many for each client, one client after the other.
        """
        xp, host = array_namespace(self.X), array_namespace(rows)
        c, m, p = self.X.shape
        shape = (len(positions), rows.shape[0] // len(positions))
        offsets = host.asarray(positions, dtype=rows.dtype) * m
        numbers = host.reshape(host.reshape(rows, shape) + offsets[:, None], (-1,))
        index = asarray_like(numbers, self.X, dtype=xp.int64)
        X = xp.take(xp.reshape(self.X, (c * m, p)), index, axis=0)
        y = xp.take(xp.reshape(self.y, (c * m,)), index, axis=0)
        w = xp.take(xp.reshape(self.w, (c * m,)), index, axis=0) * factor
        return self.block(clients, xp.reshape(X, (*shape, p)), xp.reshape(y, shape), xp.reshape(w, shape))

    @staticmethod
    def join(blocks: Sequence[Block]) -> Block:
        """Return one block of the clients of several with equally many rows."""
        if len(blocks) == 1:
            return blocks[0]
        clients, *columns = zip(*blocks, strict=True)
        X, y, w = (array_namespace(column[0]).concat(list(column), axis=0) for column in columns)
        return type(blocks[0])(Index([j for part in clients for j in part]), X, y, w)

    def label_moments(self, part: ClientBlock) -> Array:
        """Return ``X' (w y)`` of the clients, ``(c, p)``."""
        _, X, y, w = part.block
        xp = array_namespace(X)
        return xp.matmul(xp.matrix_transpose(X), (w * y)[..., None])[..., 0]

    def client_norms(self, part: ClientBlock) -> Array:
        """Return ``(sum_i w_i |x_i|^2)^(1/2)``, ``(sum_i w_i)^(1/2)`` and the greatest entry of ``X``, ``(c, 3)``."""

        def compute() -> tuple[Array]:
            _, X, _, w = part.block
            xp = array_namespace(X)
            c = X.shape[0]
            largest = xp.max(xp.abs(xp.reshape(X, (c, -1))), axis=-1)
            scaled = X / xp.where(largest > 0, largest, xp.ones_like(largest))[:, None, None]
            squares = xp.sum(xp.reshape(w[:, :, None] * scaled * scaled, (c, -1)), axis=-1)  # no over- or underflow
            return (xp.stack([largest * xp.sqrt(squares), xp.sqrt(xp.sum(w, axis=-1)), largest], axis=-1),)

        return self._kept("norms").get(part.positions, compute)[0]

    def largest_eigenvalues(self, part: ClientBlock) -> Array:
        """Return the largest eigenvalues of ``A'A``, ``(c,)``."""
        return self._kept("eigenvalue").get(part.positions, lambda: (_largest_eigenvalues(self._grams(part)),))[0]

    def ridge_inverse_product(self, part: ClientBlock, ridges: Array) -> Callable[[Array], Array]:
        """Return ``v -> v_j (A'A + ridge_j I)^{-1}`` for ``v`` of shape ``(c, k, p)`` or ``(1, k, p)``.

        ``ridges`` is a host array of positive numbers, ``(c,)``.
        """
        return self._product("inverse", part, ridges, lambda gram: ridges)

    def preconditioner_product(self, part: ClientBlock, ridges: Array) -> Callable[[Array], Array]:
        """Return the same with ridges raised to ``LEAST_RIDGE`` times the largest eigenvalue of ``A'A``.

        Where all features are zero, a ridge of zero becomes 1.
        """

        def raised(gram: Array) -> Array:
            # No eigenvalue is larger than the trace, so that most ridges are found to be large enough without any.
            host, trace = array_namespace(ridges), array_namespace(gram).linalg.trace(gram)
            if (ridges > 1.01 * LEAST_RIDGE * to_numpy(trace)).all():
                return ridges
            least = LEAST_RIDGE * host.astype(to_numpy(self.largest_eigenvalues(part)), ridges.dtype)
            return host.maximum(ridges, host.where(least == 0, 1.0, least))

        return self._product("preconditioner", part, ridges, raised)

    def curved_product(
        self, part: ClientBlock, bends: Array, outputs: Array, ridges: Array
    ) -> Callable[[Array], Array]:
        r"""Return products with :math:`(C_j \otimes A'A + \text{ridge}_j I)^{-1}` for ``v`` like above.

        ``C_j`` has the eigenvalues ``bends`` ``(c, k)`` and the eigenvectors ``outputs`` ``(c, k, k)``, in columns. A
        ridge below ``LEAST_RIDGE`` times the largest eigenvalue beside it is raised to that; one of zero becomes 1.
        """
        small = min(self.n_rows, self.n_features) <= SMALL_GRAM
        kept = self._kept("eigenvectors", 0.5 * math.prod(self.X.shape) if small else math.inf)
        values, vectors = kept.get(part.positions, lambda: eigenvectors(self._grams(part)))
        _, X, _, w = part.block
        xp = array_namespace(X)
        ridge = xp.maximum(asarray_like(ridges, values)[:, None], LEAST_RIDGE * bends * values[:, -1:])
        ridge = xp.where(ridge > 0, ridge, 1.0)[:, :, None]
        scale = 1.0 / (bends[:, :, None] * values[:, None, :] + ridge)
        back, inverse = transposed(outputs), transposed(vectors)
        if self.n_rows >= self.n_features:
            return lambda v: outputs @ ((back @ v @ vectors * scale) @ inverse)
        root, scale = xp.sqrt(w)[:, None, :], bends[:, :, None] * scale

        def woodbury(v: Array) -> Array:
            v = back @ v
            products = part.block.predict(v) * root @ vectors * scale
            return outputs @ ((v - part.block.pull_back(products @ inverse * root)) / ridge)

        return woodbury

    def _product(
        self, name: str, part: ClientBlock, ridges: Array, final: Callable[[Array], Array]
    ) -> Callable[[Array], Array]:
        """Return products with inverses kept by this name; ``final(gram)`` are the ridges that are added."""

        def compute() -> tuple[Array, Array]:
            gram = self._grams(part)
            added = asarray_like(final(gram), gram)[:, None, None]
            return shifted_inverse(gram, added), added

        inverse, ridge = self._kept_for(name, part.positions, ridges).get(part.positions, compute, ridges)
        _, X, _, w = part.block
        if self.n_rows >= self.n_features:
            return lambda v: v @ inverse
        # Fewer rows than columns: Woodbury's identity. The roots of the weights go to the (k, m) products, because
        # weighting all rows anew would cost more than the products.
        root = array_namespace(X).sqrt(w)[:, None, :]

        def woodbury(v: Array) -> Array:
            products = part.block.predict(v) * root
            return (v - part.block.pull_back(products @ inverse * root)) / ridge

        return woodbury

    def _grams(self, part: ClientBlock) -> Array:
        """Return ``A'A`` or ``A A'``, whichever is smaller, of the clients, ``(c, s, s)``."""

        def compute() -> tuple[Array]:
            _, X, _, w = part.block
            xp = array_namespace(X)
            A = X * xp.sqrt(w[:, :, None])
            transposed = xp.matrix_transpose(A)
            return (xp.matmul(transposed, A) if self.n_features <= self.n_rows else xp.matmul(A, transposed),)

        if min(self.n_rows, self.n_features) <= SMALL_GRAM:
            return compute()[0]
        return self._kept("gram").get(part.positions, compute)[0]

    def _kept(self, name: str, limit: float = math.inf) -> ClientCache:
        return self.cache.setdefault(name, ClientCache(self.n_clients, limit=limit))

    def _kept_for(self, name: str, positions: Index, ridges: Array) -> ClientCache:
        """Return what is kept by this name for these ridges; of several ridges of a client, the latest two are."""
        found: list[ClientCache] = self.cache.setdefault(name, [])
        for kept in found:
            if kept.fits(positions, ridges):
                return kept
        small = min(self.n_rows, self.n_features) <= SMALL_GRAM
        found.insert(0, ClientCache(self.n_clients, limit=0.5 * math.prod(self.X.shape) if small else math.inf))
        del found[2:]
        return found[0]


def shifted_inverse(gram: Array, ridge: float | Array) -> Array:
    """Return ``(gram + ridge I)^{-1}`` of a matrix, or of several with a ridge for each.

    Raises
    ------
    ValueError
        If a sum is singular: a positive ridge is lost beside entries that are too large.
    """
    xp = array_namespace(gram)
    shifted = gram + ridge * xp.eye(gram.shape[-1], dtype=gram.dtype, device=device(gram))
    try:
        return xp.linalg.inv(shifted)
    except ValueError:  # LinAlgError is one
        raise ValueError("X must be scaled: mu + weight is lost beside features that large and dependent.") from None


def eigenvectors(grams: Array) -> tuple[Array, Array]:
    """Return the eigenvalues of matrices, at least 0, and their eigenvectors."""
    xp = array_namespace(grams)
    values, vectors = xp.linalg.eigh(grams)
    return xp.maximum(values, xp.zeros_like(values)), vectors


def _largest_eigenvalues(grams: Array) -> Array:
    xp = array_namespace(grams)
    return xp.max(xp.linalg.eigvalsh(grams), axis=-1)
