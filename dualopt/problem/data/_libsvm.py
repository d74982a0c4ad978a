"""LIBSVM (svmlight) text files, plain or compressed, as sparse or dense matrices."""

from __future__ import annotations

from array import array
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from dualopt.arrays._checks import at_least, is_number
from dualopt.arrays._extras import optional
from dualopt.arrays.xp import csr_matrix
from dualopt.objectives._sparse import sparse_is_faster
from dualopt.problem.data._files import FILE_SUFFIXES, file_hash, open_binary
from dualopt.problem.data._files import free_memory as _free_memory
from dualopt.problem.data._libsvm_lines import Extent, first_complaint, lines, measured
from dualopt.problem.data._source import Source

__all__ = ["source"]

MOST_COLUMNS = 2**31 - 2
BYTES_PER_ENTRY = 16  # an index and a value take that much, or more
PIECE = 2**13  # lines that are parsed at once where some are wanted


def source(
    path: Path,
    *,
    dtype: str = "float64",
    n_features: int | None = None,
    first_index: int | None = None,
    max_bytes: float | None = None,
    storage: str = "auto",
    split: str | None = None,
    share: float = 1.0,
) -> Source:
    """Read the labels of a LIBSVM text file, and rows when they are wanted, in compressed sparse rows or dense.

    A line is ``label index:value index:value ...`` with increasing indices; ``#`` begins a comment. Indices
    count from 1, or from 0 when the file uses the index 0; of a test set, as those of the training set.

    The file is scanned before it is parsed, so that a matrix too large for the memory is refused at once.

    Parameters
    ----------
    path : Path
        The file; names that end in ``.gz`` or ``.bz2`` are decompressed.
    dtype : str
        Type of the features.
    n_features : int, optional
        Number of columns, at least the number that occur in the file. A test set in which the last features
        never occur needs it.
    first_index : int, optional
        0 or 1: the index of the first feature. A file that belongs to another one, which uses the index 0, needs it
        where itself never does.
    max_bytes : float, optional
        The largest size of the dense matrix, in bytes; a number asks for a dense one. None means half of the free
        physical memory, where the operating system tells it, and no limit elsewhere.
    storage : str
        "sparse", "dense", or "auto": sparse where gradients are then faster.
    split : str, optional
        "train" is the file itself; "test" is the one beside it that has the suffix ``.t``, as ``a9a.t.bz2`` beside
        ``a9a.bz2``, with the columns of the first file.
    share : float
        The part of the rows that the processes of this machine want together.

    Raises
    ------
    ValueError
        If the file is damaged, a line is malformed, ``n_features`` is too small or the matrix is too large.
    """
    labels = array("d")
    plan = _plan(path, dtype, n_features, first_index, max_bytes, storage, split, share, labels)
    return Source(
        y=np.array(labels),
        scale="none",
        description=f"LIBSVM file {plan.path}",
        shape=(len(labels), plan.columns),
        read=plan.read,
        contents=lambda: {"contents of the file": file_hash(plan.path)},
        reading=plan.reading,
    )


class _Plan(NamedTuple):
    """How a file is read."""

    path: Path
    rows: int
    columns: int
    zero_based: bool
    sparse: bool
    dtype: str

    @property
    def reading(self) -> dict[str, Any]:
        """How files with the same features are read."""
        return {"first_index": 0 if self.zero_based else 1}

    def parse(self, stream: BinaryIO) -> tuple[Any, np.ndarray]:
        """Return the features of all lines, sparse, and their labels."""
        datasets = optional("sklearn.datasets", f"data {self.path.name!r}")
        try:
            return datasets.load_svmlight_file(
                stream, n_features=self.columns, dtype=self.dtype, zero_based=self.zero_based
            )
        except (IndexError, OverflowError, TypeError, ValueError) as error:
            reason = first_complaint(self.path)
            raise ValueError(reason or f"path {str(self.path)!r} cannot be read: {str(error).rstrip('.')}.") from error

    def read(self, rows: np.ndarray) -> Any:
        """Return the features of these rows alone; where they are some, a piece of them at a time is there twice."""
        if len(rows) == self.rows:
            with open_binary(self.path) as stream:
                X, _ = self.parse(stream)
            return csr_matrix(X.data, X.indices, X.indptr, X.shape) if self.sparse else X.toarray()
        pieces: list[Any] = []
        text: list[bytes] = []

        def parse() -> None:
            X, _ = self.parse(BytesIO(b"\n".join(text)))
            pieces.append(X if self.sparse else X.toarray())
            text.clear()

        wanted = iter(rows.tolist())
        following = next(wanted, None)
        with open_binary(self.path) as stream:
            for row, (_, content) in enumerate(lines(self.path, stream)):
                if row == following:
                    text.append(content)
                    following = next(wanted, None)
                    if len(text) == PIECE:
                        parse()
                    if following is None:
                        break
        if text or not pieces:
            parse()
        return _joined(pieces) if self.sparse else _stacked(pieces)


def _stacked(pieces: list[np.ndarray]) -> np.ndarray:
    """Put dense pieces under each other; each is dropped when it is copied."""
    X = np.empty((sum(len(piece) for piece in pieces), pieces[0].shape[1]), pieces[0].dtype)
    end = len(X)
    while pieces:
        piece = pieces.pop()
        X[end - len(piece) : end] = piece
        end -= len(piece)
    return X


def _joined(pieces: list[Any]) -> Any:
    """Put sparse pieces under each other."""
    starts = np.cumsum([0] + [X.indptr[-1] for X in pieces])
    indptr = np.concatenate([[0], *(X.indptr[1:] + start for X, start in zip(pieces, starts, strict=False))])
    data, indices = (np.concatenate([getattr(X, name) for X in pieces]) for name in ("data", "indices"))
    index = np.int32 if max(len(data), pieces[0].shape[1]) < 2**31 else np.int64
    return csr_matrix(data, indices.astype(index), indptr.astype(index), (len(indptr) - 1, pieces[0].shape[1]))


def _plan(
    path: Path,
    dtype: str,
    n_features: int | None,
    first_index: int | None,
    max_bytes: float | None,
    storage: str,
    split: str | None,
    share: float,
    labels: array[float],
) -> _Plan:
    """Scan a file, whose labels are appended to ``labels``, and decide how it is read."""
    if storage not in ("auto", "sparse", "dense"):
        raise ValueError(f"storage must be 'auto', 'sparse' or 'dense', not {storage!r}.")
    if n_features is not None:
        n_features = at_least(1, "n_features", n_features)
    if max_bytes is not None and not (is_number(max_bytes) and max_bytes > 0):
        raise ValueError(f"max_bytes must be a positive number, not {max_bytes!r}.")
    if first_index is not None and at_least(0, "first_index", first_index) > 1:
        raise ValueError(f"first_index must be 0 or 1, not {first_index}.")
    if split == "test":
        trained = _scan(path)
        first_index = (0 if trained.zero_based else 1) if first_index is None else first_index
        n_features = _columns(path, trained, first_index) if n_features is None else n_features
        path = _test_file(path)
    elif split not in (None, "train"):
        raise ValueError(f'split must be "train" or "test", got {split!r}.')
    extent = _scan(path, share, labels)
    zero_based = extent.zero_based if first_index is None else first_index == 0
    own = _columns(path, extent, first_index)
    columns = own if n_features is None else n_features
    if columns < own:
        raise ValueError(f"n_features = {columns} is too small: path {str(path)!r} has {own} features.")
    size = extent.rows * columns * np.dtype(dtype).itemsize
    limit = _free_memory() / 2 / share if max_bytes is None else max_bytes
    density = extent.entries / (extent.rows * columns)
    automatic = max_bytes is None and sparse_is_faster(density, columns)
    sparse = automatic if storage == "auto" else storage == "sparse"
    if not sparse and size > limit:
        raise ValueError(
            f"path {str(path)!r} does not fit: {extent.rows} x {columns} dense {dtype} values need "
            f"{size:.3g} bytes and max_bytes is {limit:.3g}."
        )
    if columns > MOST_COLUMNS:
        raise ValueError(f"path {str(path)!r} has {columns} features, above the {MOST_COLUMNS} of a sparse matrix.")
    return _Plan(path, extent.rows, columns, zero_based, sparse, dtype)


def _columns(path: Path, extent: Extent, first_index: int | None) -> int:
    """Return the number of columns that a file has if its first feature has this index."""
    if first_index == 1 and extent.zero_based:
        raise ValueError(f"path {str(path)!r} uses the index 0, where the first feature has the index 1.")
    return extent.columns + (first_index == 0 and not extent.zero_based)


def _scan(path: Path, share: float = 1.0, labels: array[float] | None = None) -> Extent:
    return measured(path, _free_memory() / 2 / share / BYTES_PER_ENTRY, labels)


def _test_file(path: Path) -> Path:
    """Return the file of the test part beside a file."""
    suffix = path.suffix if path.suffix in FILE_SUFFIXES else ""
    test = path.with_name(f"{path.name.removesuffix(suffix)}.t{suffix}")
    if not test.is_file():
        raise ValueError(f'split must not be "test", because there is no file {str(test)!r}.')
    return test
