"""LIBSVM (svmlight) text files, plain or compressed, as sparse or dense matrices."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dualopt.data._dataset import RawData
from dualopt.data._files import FILE_SUFFIXES, open_binary
from dualopt.data._random import at_least
from dualopt.data._sklearn import sklearn_datasets
from dualopt.objectives._sparse import sparse_is_faster
from dualopt.xp import csr_matrix

__all__ = ["load"]


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
    if split == "test":
        n_features = _scan(path).columns if n_features is None else n_features
        path = _test_file(path)
    elif split not in (None, "train"):
        raise ValueError(f'split must be "train" or "test", got {split!r}.')
    extent = _scan(path)
    columns = extent.columns if n_features is None else at_least(1, "n_features", n_features)
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
    with open_binary(path) as stream:
        for number, line in enumerate(stream, 1):
            content = line.partition(b"#")[0].strip()
            if not content:
                continue
            rows += 1
            before, colon, _ = content.rpartition(b":")
            if not colon:  # a row of zeros
                continue
            last = before.rsplit(None, 1)[-1:]
            if not last or not last[0].isdigit():
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
        for number, line in enumerate(stream, 1):
            content = line.partition(b"#")[0].strip()
            if content and not _well_formed(content):
                return _sentence(path, number, content)
    return None


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


def _free_memory() -> float:
    """Return the free physical memory in bytes, infinity where the operating system does not tell."""
    try:
        return float(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, OSError, ValueError):  # not a POSIX system, or one without this name
        return float("inf")
