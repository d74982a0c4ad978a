"""The rows of the clients: groups of clients of equal size, blocks of rows, samples; shared by all finite sums."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from typing import Any, NamedTuple

from dualopt.arrays._checks import require
from dualopt.arrays.communicator import ALONE, Communicator
from dualopt.arrays.tree import is_everybody
from dualopt.arrays.xp import (
    Array,
    array_namespace,
    asarray_like,
    device,
    indices,
    is_host,
    is_sparse,
    is_writable,
)
from dualopt.losses import Loss
from dualopt.losses._offset import labels_with_offset
from dualopt.objectives._compiled import CompiledGroup, dense_group
from dualopt.objectives._dense import Block, ClientBlock, Group
from dualopt.objectives._index import Index
from dualopt.objectives._row_inputs import check_data, gathered, partition, weights_at
from dualopt.objectives._sparse import SparseGroup, as_stored

__all__ = [
    "Block",
    "ClientBlock",
    "ClientRows",
    "Group",
    "PaddedNumbers",
    "RowNumbers",
    "Sample",
]

Sample = tuple[Any, ...]
"""One host integer array per client: the numbers of its rows that it draws; lengths may differ, rows may repeat."""

# Numbers of the features that are handled at once on a CPU, 2 MB: they are still near for the second of the two
# products, and calls are few. Predictors and slopes, one for each row and output, should stay in the L2 cache.
BLOCK_NUMBERS = 2**18
LEAST_ROWS, MOST_ROWS = 2**9, 2**13


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ClientRows:
    """Features, labels and weights of the rows of ``N`` clients of any sizes; no row is padded.

    Objectives add over rows with `sum`, block by block. On a CPU a block is some rows of one client, or all rows of
    several small ones; on a GPU it is a whole group, so that one batched product serves all its clients. Use
    :meth:`build` to make one.

    Attributes
    ----------
    groups : tuple of Group
        Clients of equal size stored together.
    group, position : host integer arrays, shape (N,)
        Client ``j`` is the one at ``position[j]`` in ``groups[group[j]]``.
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
    >>> rows
    <2 clients, 3 rows of 3 features>
    >>> (labels,) = rows.sum(lambda block, points: (points * np.sum(block.w * block.y, axis=1),), np.ones(2))
    >>> labels.tolist()
    [1.5, 3.0]
    """

    groups: tuple[Group | SparseGroup, ...]
    group: Array
    position: Array
    max_rows: int

    def __repr__(self) -> str:
        return f"<{self.n_clients} clients, {sum(self.sizes)} rows of {self.n_features} features>"

    @classmethod
    def build(
        cls,
        X: Array,
        y: Array,
        *,
        loss: Loss,
        clients: Sequence[Sequence[int]] | int = 1,
        intercept: bool = False,
        weights: Array | None = None,
        shares: bool = False,
        offset: Array | None = None,
        storage: str = "auto",
        outputs: int | None = None,
        copy: bool = True,
        peers: Communicator = ALONE,
    ) -> ClientRows:
        """Copy rows into groups, by a partition.

        Parameters
        ----------
        X : array or sparse matrix of SciPy or CuPy, shape (m, d)
            Features.
        y : array, shape (m,)
            Labels in the form the loss expects (``dualopt.problem.data.encode_labels`` makes it).
        loss : Loss
            The loss whose kind of labels ``y`` must hold.
        clients : sequence of integer sequences or of masks, or int
            Row indices of each client, or for each a truth value per row; an integer ``N`` cuts the rows into ``N``
            consecutive clients.
        intercept : bool, default False
            Whether to append a constant column of ones.
        weights : array of shape (m,), optional
            The ``w_ji``; ``1/m_j`` when not given.
        shares : bool, default False
            Whether the weights are divided by their sums over each client (`row_sums`), which must be positive.
        offset : array of shape (m,), optional
            What is added to the predictors; labels hold it (`dualopt.losses._offset`).
        storage : "auto", "sparse" or "dense"
            How features are kept; by default dense ones as they are, and sparse ones in the way in which gradients are
            faster (``dualopt.objectives._sparse.sparse_is_faster``).
        outputs : int, optional
            Rows of the matrices by which features are multiplied, if not the outputs of the loss: it decides how
            (``dualopt.objectives._compiled.dense_group``).
        copy : bool, default True
            Whether dense rows without an ``intercept`` are copied, too, where those of clients of one size lie one
            after the other in ``X``. Those of a mapped file stay in it.
        peers : Communicator, optional
            The processes that hold the other clients, each with rows and a partition of its own. Their numbers enter
            where those of the whole federation count: in ``storage="auto"``, ``max_rows``, and in how products are
            computed.

        Raises
        ------
        ValueError
            If an argument does not fit, with one sentence that names it.
        """
        X = as_stored(X, storage, peers)
        like = X.data if is_sparse(X) else X
        xp = array_namespace(like)
        with peers.together():
            check_data(X, like, y, loss)
            rows, sizes = partition(X.shape[0], clients)
            if offset is not None:
                y = labels_with_offset(loss, y, offset)
        m = peers.total(X.shape[0])
        columns, outputs = X.shape[1] + intercept, loss.outputs if outputs is None else outputs
        dense = Group if is_sparse(X) else dense_group(X, columns=columns, outputs=outputs, rows=m)
        row_weights = weights_at(X.shape[0], like, sizes, rows, weights)
        host = array_namespace(rows)
        starts = host.cumulative_sum(sizes) - sizes
        values, first, group, _ = host.unique_all(sizes)
        order = host.argsort(first)  # groups in the order of their first clients
        group, position, groups = host.argsort(order)[group], host.zeros_like(group), []
        for g, size in enumerate(values[order].tolist()):
            members = host.nonzero(group == g)[0]
            position[members] = host.arange(members.shape[0])
            places = host.reshape(starts[members, None] + host.arange(size), (-1,))
            own = asarray_like(rows[places], like, dtype=xp.int64)
            shape = (members.shape[0], size)
            labels, weight = xp.reshape(xp.take(y, own, axis=0), shape), xp.reshape(row_weights(places), shape)
            if shares:
                weight = weight / xp.sum(weight, axis=1, keepdims=True)
            if is_sparse(X):
                groups.append(SparseGroup.build(X[own], labels, weight, intercept=intercept))
            else:
                features = gathered(X, own, intercept, copy)
                groups.append(dense(X=xp.reshape(features, (*shape, features.shape[1])), y=labels, w=weight))
        if not peers.largest(max(float(xp.max(group.w)) for group in groups)) > 0:
            raise ValueError("weights must not be 0 for all rows.")
        max_rows = int(peers.largest(int(sizes.max())))
        return cls(groups=tuple(groups), group=group, position=position, max_rows=max_rows)

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the rows of these clients alone: what one process per client is sent."""
        host = array_namespace(self.group)
        used, group = host.unique_inverse(self.group)
        groups, position = [], host.zeros_like(self.position)
        for own in used.tolist():
            members = host.nonzero(self.group == own)[0]
            groups.append(self.groups[own].select(self.position[members].tolist()))
            position[members] = host.arange(members.shape[0])
        return {"groups": tuple(groups), "group": group, "position": position, "max_rows": self.max_rows}

    @property
    def n_clients(self) -> int:
        """Number ``N`` of clients."""
        return self.group.shape[0]

    @cached_property
    def n_features(self) -> int:
        """Number ``p`` of columns, the intercept included."""
        return self.groups[0].n_features

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Number of rows ``m_j`` of each client."""
        return tuple(indices([group.n_rows for group in self.groups])[self.group].tolist())

    @property
    def like(self) -> Array:
        """An array of the library, the floating-point type and the device of the data."""
        return self.groups[0].w

    @property
    def is_sparse(self) -> bool:
        """Whether the features are stored without their zeros."""
        return isinstance(self.groups[0], SparseGroup)

    @property
    def is_compiled(self) -> bool:
        """Whether products with the features are compiled by Numba, and not those of the array library."""
        return isinstance(self.groups[0], CompiledGroup)

    @property
    def _limit(self) -> int | None:
        """The largest number of rows of a block; None where blocks are whole groups, one product for all clients."""
        if not is_host(self.like) or self.groups[0].whole_on_host:
            return None
        return block_rows(self.n_features)

    def by_client(self) -> Iterator[tuple[Array, Array, Array]]:
        """Yield features ``(m_j, p)``, labels ``(m_j,)`` and weights ``(m_j,)`` of each client, as views."""
        for g, position in zip(self.group.tolist(), self.position.tolist(), strict=True):
            yield self.groups[g].client(position)

    def select(self, ids: Sequence[int]) -> ClientRows:
        """Return the rows of the clients ``ids``; data and what is computed of them are shared.

        No data is copied here. Small clients that do not lie beside each other are, when their rows are first used.
        """
        chosen = indices(ids)
        if is_everybody(chosen, self.n_clients):
            return self
        return replace(self, group=self.group[chosen], position=self.position[chosen])

    @cached_property
    def parts(self) -> list[tuple[Group | SparseGroup, ClientBlock]]:
        """All clients, each in one part with all its rows; on a CPU a part has the rows of a block, or one client."""
        host, found = array_namespace(self.group), []
        for g in dict.fromkeys(self.group.tolist()):  # in the order of their first clients
            group, members = self.groups[g], host.nonzero(self.group == g)[0]
            members = members[host.argsort(self.position[members], stable=True)]
            found += [(group, part) for part in group.parts(members, self.position[members], self._limit)]
        return found

    @cached_property
    def blocks(self) -> list[Any]:
        """All rows, each in one block; those of a client in their order."""
        return [block for _, blocks in self._units for block in blocks]

    @cached_property
    def _units(self) -> list[tuple[Index, list[Any]]]:
        """The clients of each part, and their rows in blocks."""
        return [(part.block.clients, self._cut(part.block)) for _, part in self.parts]

    def _cut(self, block: Any) -> list[Any]:
        m, limit = block.y.shape[1], self._limit
        if limit is None or m <= limit:
            return [block]
        return [block.rows(slice(start, min(start + limit, m))) for start in range(0, m, limit)]

    def sum(
        self,
        function: Callable[..., tuple[Array, ...]],
        points: Array,
        sample: Sample | None = None,
        finish: Callable[..., tuple[Array, ...]] | None = None,
        numbers: RowNumbers | PaddedNumbers | None = None,
    ) -> tuple[Array, ...]:
        """Add what ``function(block, points of its clients)`` returns over the blocks of each client.

        Parameters
        ----------
        function : callable
            Returns arrays with the client axis first, made there.
        points : array, shape (N, ...) or (1, ...)
            One point for each client, or one for all.
        sample : tuple of N host integer arrays, optional
            The rows to take instead of all, as `draw` returns them. Weights are then multiplied by ``m_j / B_j``, so
            that a weighted sum over the sample estimates the one over the rows.
        finish : callable, optional
            Returns the results of some clients from their points and their sums, ``finish(points, *sums)``. It is
            called as soon as their rows are added, when both are still in the cache.
        numbers : RowNumbers, optional
            What is known of all rows, of which ``function(block, points, own)`` is told those of the block, ``own``
            of shape ``(c, q, b)``; not with a ``sample``.

        Returns
        -------
        tuple of arrays, shape (N, ...)
        """

        def results() -> Iterator[tuple[Index, tuple[Array, ...]]]:
            for clients, blocks in self._units if sample is None else self._sampled_units(sample):
                own: Any = None
                total: tuple[Array, ...] | None = None
                for point, result in _by_block(function, clients, blocks, points, numbers):
                    own = point
                    total = result if total is None else tuple(a + b for a, b in zip(total, result, strict=True))
                assert total is not None
                yield clients, total if finish is None else finish(own, *total)

        return self.assemble(results())

    def numbers(
        self, function: Callable[..., Array], points: Array, numbers: RowNumbers | PaddedNumbers | None = None
    ) -> RowNumbers:
        """Return what ``function(block, points of its clients)`` says of each row, shape ``(c, q, b)``.

        Where ``numbers`` are known already the function is told those of the block, as in `sum`.
        """
        host, found, place = array_namespace(self.group), defaultdict(list), 0 * self.group
        counts: dict[int, int] = defaultdict(int)
        for clients, blocks in self._units:
            g = int(self.group[clients.ids[0]])
            parts = [own for _, own in _by_block(function, clients, blocks, points, numbers)]
            found[g].append(array_namespace(*parts).concat(parts, axis=-1) if len(parts) > 1 else parts[0])
            place[clients.ids] = counts[g] + host.arange(len(clients))
            counts[g] += len(clients)
        whole = {g: array_namespace(*x).concat(x, axis=0) if len(x) > 1 else x[0] for g, x in found.items()}
        return RowNumbers(whole, self.group, place)

    def require_single(self) -> None:
        """Refuse features that have no copy in single precision, or that have one already.

        Raises
        ------
        ValueError
            If features are in single precision, or squares of rows would overflow in it.
        """
        like = self.like
        xp = array_namespace(like)
        require(like.dtype == xp.float64, "precision must be double for features in single precision", "mixed")
        bound = math.sqrt(float(xp.finfo(xp.float32).max) / self.n_features)
        for group in self.groups:
            X = group.X.data if is_sparse(group.X) else group.X
            if X.shape[0] and not -bound <= float(xp.min(X)) <= float(xp.max(X)) <= bound:
                raise ValueError(
                    f"precision must be double where X has entries above {bound:.2g}, whose squares cannot be summed "
                    "in single precision: scale X."
                )

    @cached_property
    def in_single(self) -> ClientRows:
        """The same rows with features and weights in single precision, copied once; labels are what they are."""
        return replace(self, groups=tuple(group.in_single() for group in self.groups))

    def assemble(self, results: Iterable[tuple[Index, tuple[Array, ...]]]) -> tuple[Array, ...]:
        """Put the results of disjoint parts of the clients together, ``(N, ...)`` each.

        On a CPU they are written into one array as they come, so that there is no other one of its size; on a GPU,
        where parts are few, and where arrays cannot be written to, they are put beside each other and then in order.
        """
        like = self.like
        if not is_host(like) or not is_writable(like):
            return self._in_order(list(results))
        found: tuple[Array, ...] | None = None
        n = self.n_clients
        for clients, arrays in results:
            if clients.are_all(n):
                return arrays
            if found is None:
                shapes = [(n, *x.shape[1:]) for x in arrays]
                found = tuple(
                    array_namespace(x).empty(shape, dtype=x.dtype, device=device(x))
                    for x, shape in zip(arrays, shapes, strict=True)
                )
            for x, rows in zip(found, arrays, strict=True):
                clients.put(x, rows)
        assert found is not None
        return found

    def _in_order(self, results: list[tuple[Index, tuple[Array, ...]]]) -> tuple[Array, ...]:
        host = array_namespace(self.group)
        order = host.concat([clients.ids for clients, _ in results])
        columns = [list(column) for column in zip(*(arrays for _, arrays in results), strict=True)]
        together = [array_namespace(*c).concat(c, axis=0) if len(c) > 1 else c[0] for c in columns]
        if (key := order.tobytes()) not in self._backs:
            self._backs[key] = Index(host.argsort(order))
        return tuple(self._backs[key].take(x) for x in together)

    @cached_property
    def _backs(self) -> dict[bytes, Index]:
        """Where the results of each client are, by the order in which parts have them."""
        return {}

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
            every = {m: indices(range(m)) for m in set(self.sizes)}
            return tuple(every[m] for m in self.sizes)
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

    def _sampled_units(self, sample: Sample) -> Iterator[tuple[Index, Iterator[Any]]]:
        """Yield clients, and one after the other blocks of copies of the rows in their samples, of equal length.

        On a CPU the rows of a block are limited: it holds those of several clients if their samples fit, and a part of
        a sample that does not.
        """
        limit = self._limit
        by_length: dict[int, list[int]] = defaultdict(list)
        for j, rows in enumerate(sample):
            by_length[rows.shape[0]].append(j)
        group = self.group.tolist()
        for length, members in by_length.items():
            members = sorted(members, key=group.__getitem__)
            together = len(members) if limit is None else max(1, limit // length)
            at_once = length if limit is None else min(length, limit)
            for first in range(0, len(members), together):
                clients = Index(members[first : first + together])
                cuts = [slice(start, start + at_once) for start in range(0, length, at_once)]
                yield clients, (self._take(sample, clients, cut) for cut in cuts)

    def _take(self, sample: Sample, clients: Index, part: slice) -> Any:
        """Copy a part of the samples of some clients, with one gather per group."""
        blocks = []
        for g, neighbours in groupby(clients, key=lambda j: int(self.group[j])):
            members = list(neighbours)
            rows = array_namespace(sample[members[0]]).concat([sample[j][part] for j in members])
            own, factor = Index(members), self.groups[g].n_rows / sample[members[0]].shape[0]
            blocks.append(self.groups[g].take(own, self.position[own.ids], rows, factor))
        return self.groups[0].join(blocks)


class RowNumbers(NamedTuple):
    """Numbers of the rows of clients, as `ClientRows.numbers` computes them; no row is padded."""

    arrays: dict[int, Array]  # (c, q, m)  by the group, for clients of m rows
    group: Array  # (N,)  of each client, in host memory
    place: Array  # (N,)  where it is in the array of its group, in host memory

    def of(self, clients: Index) -> Array:
        """Return those of some clients of one group, ``(c, q, m)``."""
        array, place = self.arrays[int(self.group[clients.ids[0]])], self.place[clients.ids]
        return array[int(place[0]) : int(place[0]) + 1, ...] if len(place) == 1 else Index(place).take(array)

    def padded(self, width: int) -> Array:
        """Return one array ``(N, q, width)``, with zeros behind the rows of each client."""
        host, parts, order = array_namespace(self.group), [], []
        for g, x in self.arrays.items():
            own = host.nonzero(self.group == g)[0]
            order.append(own)
            x, xp = Index(self.place[own]).take(x), array_namespace(x)
            missing = xp.zeros((*x.shape[:2], width - x.shape[2]), dtype=x.dtype, device=device(x))
            parts.append(xp.concat([x, missing], axis=2) if width > x.shape[2] else x)
        if len(parts) == 1:
            return parts[0]
        return Index(host.argsort(host.concat(order))).take(array_namespace(*parts).concat(parts, axis=0))

    def select(self, ids: Sequence[int]) -> RowNumbers:
        """Return those of the clients ``ids``; nothing is copied."""
        chosen = indices(ids)
        return RowNumbers(self.arrays, self.group[chosen], self.place[chosen])


class PaddedNumbers(NamedTuple):
    """The same in one array ``(N, q, width)``, such as the states of solvers have."""

    array: Array

    def of(self, clients: Index) -> Array:
        """Return those of some clients."""
        return clients.take(self.array)


def _by_block(
    function: Callable[..., Any],
    clients: Index,
    blocks: Iterable[Any],
    points: Array,
    numbers: RowNumbers | PaddedNumbers | None,
) -> Iterator[tuple[Array, Any]]:
    """Yield the points of some clients, and what the function returns of each of their blocks."""
    own: Any = None
    known, start = None if numbers is None else numbers.of(clients), 0
    for block in blocks:
        own = block.points(points) if own is None else own
        if known is None:
            yield own, function(block, own)
        else:
            end = start + block.y.shape[1]
            yield own, function(block, own, known[..., start:end])
            start = end


def block_rows(columns: int) -> int:
    """Return the number of rows that are handled at once on a CPU.

    >>> block_rows(20), block_rows(100), block_rows(785)
    (8192, 2621, 512)
    """
    return max(LEAST_ROWS, min(MOST_ROWS, BLOCK_NUMBERS // columns))
