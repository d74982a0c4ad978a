"""LIBSVM (svmlight) text files, plain or compressed, as sparse or dense matrices."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from dualopt._checks import is_number
from dualopt.data._dataset import RawData
from dualopt.data._files import FILE_SUFFIXES, open_binary
from dualopt.data._files import free_memory as _free_memory
from dualopt.data._random import at_least
from dualopt.data._sklearn import sklearn_datasets
from dualopt.objectives._sparse import sparse_is_faster
from dualopt.xp import csr_matrix

__all__ = ["load"]

LONGEST_LINE = 2**26  # bytes: a row of some million features
MOST_EMPTY = 10**6
MOST_COLUMNS = 2**31 - 2
BYTES_PER_ENTRY = 16  # an index and a value take that much, or more


class _Extent(NamedTuple):
    rows: int
    columns: int
    entries: int
    zero_based: bool


def load(
    path: Path,
    *,
    dtype: str = "float64",
    n_features: int | None = None,
    max_bytes: float | None = None,
    storage: str = "auto",
    split: str | None = None,
) -> RawData:
    """Read a LIBSVM text file into a matrix in compressed sparse rows, or a dense one.

    A line is ``label index:value index:value ...`` with increasing indices; ``#`` begins a comment. Indices
    count from 1, or from 0 when the file uses the index 0.

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
    max_bytes : float, optional
        The largest size of the dense matrix, in bytes; a number asks for a dense one. None means half of the free
        physical memory, where the operating system tells it, and no limit elsewhere.
    storage : str
        "sparse", "dense", or "auto": sparse where gradients are then faster.
    split : str, optional
        "train" is the file itself; "test" is the one beside it that has the suffix ``.t``, as ``a9a.t.bz2`` beside
        ``a9a.bz2``, with the columns of the first file.

    Raises
    ------
    ValueError
        If the file is damaged, a line is malformed, ``n_features`` is too small or the matrix is too large.
    """
    if storage not in ("auto", "sparse", "dense"):
        raise ValueError(f"storage must be 'auto', 'sparse' or 'dense', not {storage!r}.")
    if n_features is not None:
        n_features = at_least(1, "n_features", n_features)
    if max_bytes is not None and not (is_number(max_bytes) and max_bytes > 0):
        raise ValueError(f"max_bytes must be a positive number, not {max_bytes!r}.")
    if split == "test":
        n_features = _scan(path).columns if n_features is None else n_features
        path = _test_file(path)
    elif split not in (None, "train"):
        raise ValueError(f'split must be "train" or "test", got {split!r}.')
    extent = _scan(path)
    columns = extent.columns if n_features is None else n_features
    if columns < extent.columns:
        raise ValueError(f"n_features = {columns} is too small: path {str(path)!r} has {extent.columns} features.")
    size = extent.rows * columns * np.dtype(dtype).itemsize
    limit = _free_memory() / 2 if max_bytes is None else max_bytes
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
    datasets = sklearn_datasets()
    try:
        with open_binary(path) as stream:
            X, y = datasets.load_svmlight_file(stream, n_features=columns, dtype=dtype, zero_based=extent.zero_based)
    except (IndexError, OverflowError, TypeError, ValueError) as error:
        reason = _first_complaint(path) or f"path {str(path)!r} cannot be read: {str(error).rstrip('.')}."
        raise ValueError(reason) from error
    X = csr_matrix(X.data, X.indices, X.indptr, X.shape) if sparse else X.toarray()
    return RawData(X=X, y=y, scale="none", description=f"LIBSVM file {path}")


def _scan(path: Path) -> _Extent:
    """Measure the matrix from the last index of each line, without parsing any value."""
    rows, largest, entries, zero_based = 0, -1, 0, False
    room = _free_memory() / 2 / BYTES_PER_ENTRY
    with open_binary(path) as stream:
        for number, content in _lines(path, stream):
            rows += 1
            if max(entries, rows) > room:
                raise ValueError(f"path {str(path)!r} does not fit: half of the free memory is full after {rows} rows.")
            if b"_" in content:  # Python reads 1_0 as 10
                raise ValueError(_sentence(path, number, content))
            before, colon, _ = content.rpartition(b":")
            if not colon:  # a row of zeros
                continue
            last = before.rsplit(None, 1)[-1:]
            if not last or not last[0].isdigit() or len(last[0]) > 18:
                raise ValueError(_sentence(path, number, content))
            largest = max(largest, int(last[0]))
            entries += content.count(b":")
            zero_based = zero_based or b" 0:" in content or b"\t0:" in content
    if largest < 0:
        raise ValueError(f"path {str(path)!r} holds no features.")
    return _Extent(rows, largest + 1 if zero_based else largest, entries, zero_based)


def _test_file(path: Path) -> Path:
    """Return the file of the test part beside a file."""
    suffix = path.suffix if path.suffix in FILE_SUFFIXES else ""
    test = path.with_name(f"{path.name.removesuffix(suffix)}.t{suffix}")
    if not test.is_file():
        raise ValueError(f'split must not be "test", because there is no file {str(test)!r}.')
    return test


def _first_complaint(path: Path) -> str | None:
    """Return a sentence about the first malformed line, or None; only called when parsing has failed."""
    with open_binary(path) as stream:
        for number, content in _lines(path, stream):
            if not _well_formed(content):
                return _sentence(path, number, content)
    return None


def _lines(path: Path, stream: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Yield number and content of each line that has a row; refuse what no file of rows looks like.

    A compressed file of a few megabytes can hold a line of gigabytes: lines are read up to a limit.
    """
    number = empty = 0
    while line := stream.readline(LONGEST_LINE):
        number += 1
        if len(line) == LONGEST_LINE:
            raise ValueError(
                f"path {str(path)!r} is malformed in line {number}: it is longer than {LONGEST_LINE} bytes."
            )
        if content := line.partition(b"#")[0].strip():
            yield number, content
            continue
        empty += 1
        if empty > MOST_EMPTY:
            raise ValueError(f"path {str(path)!r} is malformed: it has more than {MOST_EMPTY} lines without a row.")


def _well_formed(content: bytes) -> bool:
    label, *pairs = content.split()
    try:
        float(label)
        split = [pair.partition(b":") for pair in pairs if not pair.startswith(b"qid:")]
        indices = [int(index) for index, _, _ in split]
        for _, _, value in split:
            float(value)
    except ValueError:
        return False
    return all(a < b for a, b in zip([-1, *indices], indices, strict=False))


def _sentence(path: Path, number: int, content: bytes) -> str:
    shown = content[:60].decode("ascii", "replace")
    return (
        f"path {str(path)!r} is malformed in line {number}: it needs a label and pairs index:value with "
        f"increasing indices, got {shown!r}."
    )
