"""Dense rows: clients of equal size in one array, blocks of their rows, and the Gram matrices of their features.

`dualopt.objectives.rows` and the objectives compute products with features by these two classes alone, so that sparse
rows (`dualopt.objectives._sparse`), or rows that are read block by block, need two classes with the same methods and no
change of the mathematics.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

from dualopt.tree import take_clients
from dualopt.xp import Array, array_namespace, asarray_like, device

__all__ = ["Block", "Grams", "Group"]


class Block(NamedTuple):
    """Rows of some clients, equally many of each: features ``(c, b, p)``, labels and row weights ``(c, b)``."""

    clients: list[int]
    X: Array
    y: Array
    w: Array

    def points(self, theta: Array) -> Array:
        """Return the points of these clients, ``(c, ...)`` out of ``(N, ...)``; a view where they are neighbours."""
        first = self.clients[0]
        if self.clients == list(range(first, first + len(self.clients))):
            return theta[first : first + len(self.clients), ...]
        xp = array_namespace(theta)
        return xp.take(theta, xp.asarray(self.clients, device=device(theta)), axis=0)

    def predict(self, matrices: Array) -> Array:
        """Return ``M_j x_ji`` for matrices ``(c, k, p)``: ``(c, k, b)``, rows last, which is the layout of losses."""
        xp = array_namespace(self.X)
        return xp.matmul(matrices, xp.matrix_transpose(self.X))

    def pull_back(self, slopes: Array) -> Array:
        """Return ``sum_i s_ji x_ji'`` for slopes ``(c, k, b)``: ``(c, k, p)``."""
        return array_namespace(self.X).matmul(slopes, self.X)


class Grams:
    """What clients of dense and of sparse rows do alike with their Gram matrices and entries, kept in ``cache``."""

    cache: dict[tuple[str, int, float], Any]

    def gram(self, position: int) -> Array:
        """Return ``A'A`` or ``A A'``, whichever is smaller."""
        raise NotImplementedError

    def largest_eigenvalue(self, position: int) -> Array:
        """Return the largest eigenvalue of ``A'A``."""
        key = ("eigenvalue", position, 0.0)
        if key not in self.cache:
            gram = self.gram(position)
            xp = array_namespace(gram)
            self.cache[key] = xp.max(xp.linalg.eigvalsh(gram))
        return self.cache[key]

    def ridge_inverse(self, position: int, ridge: float) -> Array:
        """Return ``(A'A + ridge I)^{-1}``, or ``(A A' + ridge I)^{-1}`` when that is smaller."""
        key = ("inverse", position, ridge)
        if key not in self.cache:
            gram = self.gram(position)
            xp = array_namespace(gram)
            identity = xp.eye(gram.shape[0], dtype=gram.dtype, device=device(gram))
            self.cache[key] = xp.linalg.inv(gram + ridge * identity)
        return self.cache[key]

    def norms_of(self, position: int, entries: Array, weights: Array, w: Array) -> Array:
        """Return what ``norms`` returns, from entries, the weight of the row of each, and those of the rows."""
        key = ("norms", position, 0.0)
        if key not in self.cache:
            xp = array_namespace(w)
            largest = xp.max(xp.abs(entries)) if entries.shape[0] else xp.zeros_like(w[0])
            scaled = entries / xp.where(
                largest > 0, largest, xp.ones_like(largest)
            )  # squares do not over- or underflow
            squares = xp.sum(weights * scaled * scaled)
            self.cache[key] = xp.stack([largest * xp.sqrt(squares), xp.sqrt(xp.sum(w)), largest])
        return self.cache[key]


@dataclass(frozen=True, kw_only=True, eq=False)
class Group(Grams):
    """Clients of equal size, stored together: features ``(c, m, p)``, labels ``(c, m)``, row weights ``(c, m)``.

    ``position`` is that of a client in the group. Gram matrices are those of ``A``, the rows of one client, each scaled
    by the root of its weight; they, their largest eigenvalues and inverses are kept in ``cache``.
    """

    whole_on_host: ClassVar[bool] = False
    """Whether a block is best a whole group on a CPU too; blocks of few rows stay in the cache between two products."""

    X: Array
    y: Array
    w: Array
    cache: dict[tuple[str, int, float], Array] = field(default_factory=dict, repr=False)

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

    def select(self, positions: Sequence[int]) -> Group:
        """Return a group of the clients at these positions alone, a copy."""
        X, y, w = take_clients((self.X, self.y, self.w), positions)
        return Group(X=X, y=y, w=w)

    def client(self, position: int) -> tuple[Array, Array, Array]:
        """Return features ``(m, p)``, labels ``(m,)`` and weights ``(m,)`` of one client, as views."""
        return self.X[position, ...], self.y[position, :], self.w[position, :]

    def whole(self, clients: list[int]) -> Block:
        """Return all rows of the group as one block of the clients of these numbers."""
        return Block(clients, self.X, self.y, self.w)

    def block(self, client: int, position: int, rows: slice) -> Block:
        """Return consecutive rows of one client as a block, views."""
        one = slice(position, position + 1)
        return Block([client], self.X[one, rows, :], self.y[one, rows], self.w[one, rows])

    def take(self, clients: list[int], positions: Sequence[int], rows: Array, factor: float) -> Block:
        """Return copies of rows, with weights times ``factor``.

        ``rows`` is a host array of their numbers, as many for each client, one client after the other.
        """
        xp, host = array_namespace(self.X), array_namespace(rows)
        c, m, p = self.X.shape
        shape = (len(positions), rows.shape[0] // len(positions))
        offsets = host.asarray([position * m for position in positions], dtype=rows.dtype)
        numbers = host.reshape(host.reshape(rows, shape) + offsets[:, None], (-1,))
        index = asarray_like(numbers, self.X, dtype=xp.int64)
        X = xp.take(xp.reshape(self.X, (c * m, p)), index, axis=0)
        y = xp.take(xp.reshape(self.y, (c * m,)), index, axis=0)
        w = xp.take(xp.reshape(self.w, (c * m,)), index, axis=0) * factor
        return Block(clients, xp.reshape(X, (*shape, p)), xp.reshape(y, shape), xp.reshape(w, shape))

    @staticmethod
    def join(blocks: Sequence[Block]) -> Block:
        """Return one block of the clients of several with equally many rows."""
        if len(blocks) == 1:
            return blocks[0]
        clients, *columns = zip(*blocks, strict=True)
        X, y, w = (array_namespace(column[0]).concat(list(column), axis=0) for column in columns)
        return Block([j for part in clients for j in part], X, y, w)

    def label_moment(self, position: int) -> Array:
        """Return ``X' (w y)`` of one client, ``(p,)``."""
        X, y, w = self.client(position)
        return array_namespace(X).matrix_transpose(X) @ (w * y)

    def gram(self, position: int) -> Array:
        """Return ``A'A`` or ``A A'``, whichever is smaller."""
        key = ("gram", position, 0.0)
        if key not in self.cache:
            xp = array_namespace(self.w)
            A = self.X[position, ...] * xp.sqrt(self.w[position, :, None])
            transposed = xp.matrix_transpose(A)
            self.cache[key] = transposed @ A if A.shape[1] <= A.shape[0] else A @ transposed
        return self.cache[key]

    def norms(self, position: int) -> Array:
        """Return ``(sum_i w_i |x_i|^2)^(1/2)``, ``(sum_i w_i)^(1/2)`` and the greatest entry of ``X``, ``(3,)``."""
        w = self.w[position, :]
        return self.norms_of(position, self.X[position, ...], w[:, None], w)

    def apply_ridge_inverse(self, position: int, ridge: float, v: Array) -> Array:
        """Return ``v (A'A + ridge I)^{-1}`` for ``v`` of shape ``(k, p)``."""
        inverse = self.ridge_inverse(position, ridge)
        if inverse.shape[0] == v.shape[-1]:
            return v @ inverse
        # Fewer rows than columns: Woodbury's identity. The roots of the weights go to the (k, m) products, because
        # weighting all rows anew would cost more than the products.
        xp = array_namespace(v)
        X, root = self.X[position, ...], xp.sqrt(self.w[position, :])
        products = (v @ xp.matrix_transpose(X)) * root
        return (v - ((products @ inverse) * root) @ X) / ridge

    def precondition(self, position: int, ridge: float, v: Array) -> Array:
        """Return ``v`` of shape ``(k, p)`` times an approximation of ``(A'A + ridge I)^{-1}``, here exact."""
        return self.apply_ridge_inverse(position, ridge, v)
