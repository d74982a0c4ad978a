"""The rows of the clients: groups of clients of equal size, blocks of rows, samples; shared by all finite sums."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby, pairwise
from typing import Any, Literal

from dualopt.losses import Loss
from dualopt.objectives._dense import Block, Group
from dualopt.objectives._rounding import client_norm, tiny
from dualopt.objectives._sparse import SparseGroup, as_stored
from dualopt.xp import Array, array_namespace, asarray_like, csr_matrix, device, is_host, is_sparse, to_numpy

__all__ = ["Block", "ClientRows", "Group", "Sample", "predictors", "pulled_back"]

Sample = tuple[Any, ...]
"""One host integer array per client: the numbers of its rows that it draws; lengths may differ, rows may repeat."""

# Rows handled at once on a CPU: predictors and slopes of a block stay in the L2 cache between the two products, and the
# rows of the block are still near for the second one. On MNIST, 256 to 1024 differ by 3%; 2048 is 10% slower.
BLOCK_ROWS = 512


@dataclass(frozen=True, kw_only=True, eq=False)
class ClientRows:
    """Features, labels and weights of the rows of ``N`` clients of any sizes; no row is padded.

    Objectives add over rows with `sum`, block by block. On a CPU a block is some rows of one client; on a GPU it is a
    whole group, so that one batched product serves all its clients. Use :meth:`build` to make one.

    Attributes
    ----------
    groups : tuple of Group
        Clients of equal size stored together.
    index : tuple of (int, int)
        Client ``j`` is the one at position ``index[j][1]`` of group ``index[j][0]``.
    max_rows : int
        Number of rows of the largest client of the whole federation, also after ``select``: states with one entry per
        row have this width, so that those of different clients fit together.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt.losses import Squared
    >>> rows = ClientRows.build(np.eye(3), np.array([1.0, 2.0, 3.0]), loss=Squared(), clients=[[0, 1], [2]])
    >>> rows.sizes, rows.n_features, rows.max_rows
    ((2, 1), 3, 2)
    >>> (labels,) = rows.sum(lambda block, points: (points * np.sum(block.w * block.y, axis=1),), np.ones(2))
    >>> labels.tolist()
    [1.5, 3.0]
    """

    groups: tuple[Group | SparseGroup, ...]
    index: tuple[tuple[int, int], ...]
    max_rows: int

    @classmethod
    def build(
        cls,
        X: Array,
        y: Array,
        *,
        loss: Loss,
        clients: Sequence[Sequence[int]] | int = 1,
        intercept: bool = False,
        weights: Literal["clients", "rows"] | Array = "clients",
        storage: str = "auto",
    ) -> ClientRows:
        """Copy rows into groups, by a partition.

        Parameters
        ----------
        X : array or sparse matrix of SciPy or CuPy, shape (m, d)
            Features.
        y : array, shape (m,)
            Labels in the form the loss expects (``dualopt.data.encode_labels`` makes it).
        loss : Loss
            The loss whose kind of labels ``y`` must hold.
        clients : sequence of integer sequences, or int
            Row indices of each client; an integer ``N`` cuts the rows into ``N`` consecutive clients.
        intercept : bool, default False
            Whether to append a constant column of ones.
        weights : "clients", "rows" or array of shape (m,)
            ``"clients"``: ``w_ji = 1/m_j``, every client counts alike. ``"rows"``: ``w_ji = N/m``, so that the mean
            over clients is the mean over all rows. An array gives ``w`` itself.
        storage : "auto", "sparse" or "dense"
            How features are kept; by default dense ones as they are, and sparse ones in the way in which gradients are
            faster (``dualopt.objectives._sparse.sparse_is_faster``).

        Raises
        ------
        ValueError
            If an argument does not fit, with one sentence that names it.
        """
        X = as_stored(X, storage)
        like = X.data if is_sparse(X) else X
        xp = array_namespace(like)
        _check_data(X, like, y, loss)
        parts = _partition(X.shape[0], clients)
        row_weights = _weights(X.shape[0], like, parts, weights)
        by_size: dict[int, list[int]] = defaultdict(list)
        for j, part in enumerate(parts):
            by_size[len(part)].append(j)
        index: list[tuple[int, int]] = [(0, 0)] * len(parts)
        groups = []
        for size, members in by_size.items():
            rows = asarray_like([i for j in members for i in parts[j]], like, dtype=xp.int64)
            for position, j in enumerate(members):
                index[j] = (len(groups), position)
            labels = xp.reshape(xp.take(y, rows, axis=0), (len(members), size))
            weight = xp.stack([row_weights[j] for j in members])
            if is_sparse(X):
                groups.append(SparseGroup.build(X[rows], labels, weight, intercept=intercept))
                continue
            features = xp.take(X, rows, axis=0)
            if intercept:
                ones = xp.ones((features.shape[0], 1), dtype=X.dtype, device=device(X))
                features = xp.concat([features, ones], axis=1)
            features = xp.reshape(features, (len(members), size, features.shape[1]))
            groups.append(Group(X=features, y=labels, w=weight))
        return cls(groups=tuple(groups), index=tuple(index), max_rows=max(by_size))

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the rows of these clients alone: what one process per client is sent."""
        groups, index = [], list(self.index)
        for g in sorted({g for g, _ in self.index}):
            members = [j for j, (own, _) in enumerate(self.index) if own == g]
            groups.append(self.groups[g].select([self.index[j][1] for j in members]))
            for position, j in enumerate(members):
                index[j] = (len(groups) - 1, position)
        return {"groups": tuple(groups), "index": tuple(index), "max_rows": self.max_rows}

    @property
    def n_clients(self) -> int:
        """Number ``N`` of clients."""
        return len(self.index)

    @property
    def n_features(self) -> int:
        """Number ``p`` of columns, the intercept included."""
        return self.groups[0].n_features

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of rows ``m_j`` of each client."""
        return tuple(self.groups[g].n_rows for g, _ in self.index)

    @property
    def like(self) -> Array:
        """An array of the library, the floating-point type and the device of the data."""
        return self.groups[0].w

    @property
    def positions(self) -> Iterator[tuple[Group | SparseGroup, int]]:
        """The group and the position in it of each client, in the order of the clients."""
        return ((self.groups[g], position) for g, position in self.index)

    @property
    def is_sparse(self) -> bool:
        """Whether the features are stored without their zeros."""
        return isinstance(self.groups[0], SparseGroup)

    @property
    def _whole(self) -> bool:
        """Whether blocks are whole groups, one product for all their clients."""
        return not is_host(self.like) or self.groups[0].whole_on_host

    def by_client(self) -> Iterator[tuple[Array, Array, Array]]:
        """Yield features ``(m_j, p)``, labels ``(m_j,)`` and weights ``(m_j,)`` of each client, as views."""
        for group, position in self.positions:
            yield group.client(position)

    def select(self, ids: Sequence[int]) -> ClientRows:
        """Return the rows of the clients ``ids``; data and cached factors are shared, not copied."""
        if list(ids) == list(range(self.n_clients)):
            return self
        return replace(self, index=tuple(self.index[j] for j in ids))

    @cached_property
    def blocks(self) -> list[Any]:
        """All rows, each in one block; those of a client in their order."""
        if self._whole:
            return self._whole_groups()
        return [
            group.block(j, position, slice(start, min(start + BLOCK_ROWS, group.n_rows)))
            for j, (group, position) in enumerate(self.positions)
            for start in range(0, group.n_rows, BLOCK_ROWS)
        ]

    def sum(
        self, function: Callable[[Block, Array], tuple[Array, ...]], points: Array, sample: Sample | None = None
    ) -> tuple[Array, ...]:
        """Add what ``function(block, points of its clients)`` returns over the blocks of each client.

        Parameters
        ----------
        function : callable
            Returns arrays with the client axis first.
        points : array, shape (N, ...)
            One point for each client.
        sample : tuple of N host integer arrays, optional
            The rows to take instead of all, as `draw` returns them. Weights are then multiplied by ``m_j / B_j``, so
            that a weighted sum over the sample estimates the one over the rows.

        Returns
        -------
        tuple of arrays, shape (N, ...)
        """
        totals: dict[tuple[int, ...], list[Array]] = {}
        for block in self.blocks if sample is None else self.sampled_blocks(sample):
            results = function(block, block.points(points))
            if (key := tuple(block.clients)) in totals:
                totals[key] = [total + result for total, result in zip(totals[key], results, strict=True)]
            else:
                totals[key] = list(results)
        xp = array_namespace(points)
        order = [j for clients in totals for j in clients]
        parts = [list(column) for column in zip(*totals.values(), strict=True)]
        columns = [xp.concat(column, axis=0) if len(column) > 1 else column[0] for column in parts]
        if order == list(range(self.n_clients)):
            return tuple(columns)
        inverse = sorted(range(len(order)), key=order.__getitem__)
        return tuple(xp.take(c, xp.asarray(inverse, device=device(c)), axis=0) for c in columns)

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
        if len(rngs) != self.n_clients:
            raise ValueError(f"rngs must hold one generator for each of the {self.n_clients} clients, not {len(rngs)}.")
        if batch is None:
            return tuple(to_numpy(array_namespace(self.like).arange(m)) for m in self.sizes)
        if batch < 1:
            raise ValueError(f"batch must be at least 1, not {batch}.")
        return tuple(rng.integers(0, m, size=batch) for rng, m in zip(rngs, self.sizes, strict=True))

    def check_sample(self, sample: Sample) -> None:
        """Refuse a sample of other clients, empty draws, and row numbers that a client does not have.

        Raises
        ------
        ValueError
            With one sentence that names the client.
        """
        sizes = self.sizes
        if len(sample) != len(sizes):
            raise ValueError(f"sample must hold the rows of {len(sizes)} clients, not of {len(sample)}.")
        lengths = [rows.shape[0] for rows in sample]
        if 0 in lengths:
            raise ValueError(f"sample: client {lengths.index(0)} draws no row.")
        host = array_namespace(*sample)
        together, smallest = host.concat(list(sample)), min(sizes)  # one test for all: clients are many, samples short
        if together.min() >= 0 and together.max() < smallest:
            return
        for j, (rows, m) in enumerate(zip(sample, sizes, strict=True)):
            if rows.min() < 0 or rows.max() >= m:  # in a group these would be the rows of another client
                raise ValueError(f"sample: client {j} has rows 0 to {m - 1} only.")

    def sampled_blocks(self, sample: Sample) -> Iterator[Block]:
        """Yield copies of the sampled rows, clients with samples of equal length together.

        On a CPU a block has at most ``BLOCK_ROWS`` rows: those of several clients if their samples fit, and a part of a
        sample that does not.
        """
        limit = None if self._whole else BLOCK_ROWS
        by_length: dict[int, list[int]] = defaultdict(list)
        for j, rows in enumerate(sample):
            by_length[rows.shape[0]].append(j)
        for length, members in by_length.items():
            members = sorted(members, key=lambda j: self.index[j][0])
            together = len(members) if limit is None else max(1, limit // length)
            at_once = length if limit is None else min(length, limit)
            for first in range(0, len(members), together):
                clients = members[first : first + together]
                for start in range(0, length, at_once):
                    yield self._take(sample, clients, slice(start, start + at_once))

    def _take(self, sample: Sample, clients: list[int], part: slice) -> Any:
        """Copy a part of the samples of some clients, with one gather per group."""
        blocks = []
        for g, neighbours in groupby(clients, key=lambda j: self.index[j][0]):
            members = list(neighbours)
            rows = array_namespace(sample[members[0]]).concat([sample[j][part] for j in members])
            factor = self.groups[g].n_rows / sample[members[0]].shape[0]
            blocks.append(self.groups[g].take(members, [self.index[j][1] for j in members], rows, factor))
        return self.groups[0].join(blocks)

    def _whole_groups(self) -> list[Block]:
        members: dict[int, list[int]] = defaultdict(list)
        for j, (g, _) in enumerate(self.index):
            members[g].append(j)
        blocks = []
        for g, clients in members.items():
            group, positions = self.groups[g], [self.index[j][1] for j in clients]
            if positions == list(range(group.n_clients)):
                blocks.append(group.whole(clients))
            else:  # part of a group: views of single clients, so that no data is copied
                every = slice(0, group.n_rows)
                blocks += [group.block(j, position, every) for j, position in zip(clients, positions, strict=True)]
        return blocks


def predictors(X: Any, theta: Array) -> Array:
    """Return ``theta x_i`` of the rows of a dense or sparse ``X``: ``(m,)``, or ``(k, m)`` for ``theta`` ``(k, p)``."""
    if is_sparse(X):
        return (X @ theta.T).T
    return X @ theta if theta.ndim == 1 else theta @ array_namespace(X).matrix_transpose(X)


def pulled_back(u: Array, X: Any) -> Array:
    """Return ``sum_i u_i x_i'`` for ``u`` of shape ``(m,)`` or ``(k, m)`` and a dense or sparse ``X``."""
    return (X.T @ u.T).T if is_sparse(X) else u @ X


def row_norms(X: Any) -> Array:
    """Return ``|x_i|`` of the rows of a dense or sparse ``X``, ``(m,)``, without overflow of the squares."""
    if not is_sparse(X):
        return client_norm(X)
    xp = array_namespace(X.data)
    largest = xp.max(xp.abs(X.data)) if X.data.shape[0] else xp.zeros((), dtype=X.data.dtype, device=device(X.data))
    unit = xp.where(largest > 0, largest, xp.ones_like(largest))
    squares = csr_matrix((X.data / unit) ** 2, X.indices, X.indptr, X.shape)
    # an entry whose square underflows is below sqrt(tiny) of the largest: that much is added
    room = math.sqrt(X.shape[1] * tiny(X.data))
    return unit * (xp.sqrt(squares @ xp.ones((X.shape[1],), dtype=X.data.dtype, device=device(X.data))) + room)


def _check_data(X: Array, like: Array, y: Array, loss: Loss) -> None:
    xp = array_namespace(like)
    if X.ndim != 2 or X.shape[0] == 0 or X.shape[1] == 0:
        raise ValueError(f"X must be a matrix with at least one row and one column, not of shape {tuple(X.shape)}.")
    if not xp.isdtype(X.dtype, "real floating"):
        raise ValueError(f"X must hold floating-point numbers, not {X.dtype}.")
    if not bool(xp.all(xp.isfinite(like))):
        raise ValueError("X must not contain NaN or infinite features.")
    if tuple(y.shape) != (X.shape[0],):
        raise ValueError(f"y must have one label for each of the {X.shape[0]} rows of X, not shape {tuple(y.shape)}.")
    if loss.labels == "class":
        if not xp.isdtype(y.dtype, "integral") or bool(xp.any(y < 0)) or bool(xp.any(y >= loss.outputs)):
            raise ValueError(f"y must hold integers 0 to {loss.outputs - 1} for the loss {loss}.")
        return
    if y.dtype != X.dtype or not bool(xp.all(xp.isfinite(y))):
        raise ValueError(f"y must hold finite numbers of the type {X.dtype} of X for the loss {loss}.")
    if loss.labels == "binary" and bool(xp.any(xp.abs(y) != 1)):
        raise ValueError(f"y must hold only -1 and +1 for the loss {loss}.")


def _partition(m: int, clients: Sequence[Sequence[int]] | int) -> Sequence[Sequence[int]]:
    """Return the row numbers of each client, checked."""
    if isinstance(clients, int):
        if not 1 <= clients <= m:
            raise ValueError(f"clients must be between 1 and the number of rows {m}, not {clients}.")
        small, larger = divmod(m, clients)
        starts = [j * small + min(j, larger) for j in range(clients + 1)]
        return [range(a, b) for a, b in pairwise(starts)]
    parts = [[int(i) for i in part] for part in clients]
    if not parts:
        raise ValueError("clients must name at least one client.")
    for j, part in enumerate(parts):
        if not part:
            raise ValueError(f"clients: client {j} has no rows.")
        if min(part) < 0 or max(part) >= m:
            raise ValueError(f"clients: client {j} has a row index outside 0 to {m - 1}.")
    return parts


def _weights(
    m: int, like: Array, parts: Sequence[Sequence[int]], weights: Literal["clients", "rows"] | Array
) -> Sequence[Array]:
    """Return the row weights of each client, ``(m_j,)``, arrays like the features."""
    xp = array_namespace(like)
    if isinstance(weights, str):
        if weights not in ("clients", "rows"):
            raise ValueError(f"weights must be 'clients', 'rows' or an array, not {weights!r}.")
        values = [1.0 / len(part) if weights == "clients" else len(parts) / m for part in parts]
        return [asarray_like([value] * len(part), like) for value, part in zip(values, parts, strict=True)]
    fits = tuple(weights.shape) == (m,) and weights.dtype == like.dtype
    if not fits or not bool(xp.all(xp.isfinite(weights))) or bool(xp.any(weights < 0)):
        raise ValueError(
            f"weights must be {m} finite nonnegative numbers of the type {like.dtype}, one for each row of X."
        )
    return [xp.take(weights, asarray_like(part, like, dtype=xp.int64), axis=0) for part in parts]
