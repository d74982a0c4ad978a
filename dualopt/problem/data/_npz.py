"""NumPy archives (``.npz``) with arrays X, y and perhaps clients, or X_train, y_train, X_test, y_test and so on."""

from __future__ import annotations

import math
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np

from dualopt.problem.data._files import file_hash, free_memory
from dualopt.problem.data._source import Source
from dualopt.problem.data._tables import codes_of

__all__ = ["read_arrays", "rows", "source"]

PIECE = 2**24  # bytes that are read at once where some rows are wanted
MAPPED = 2**26  # bytes of an array from which on it stays in its file
MAGIC = b"\x93NUMPY"
HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
WRONG_HEADER = (ArithmeticError, EOFError, LookupError, MemoryError, RecursionError)
WRONG_HEADER += (SyntaxError, TokenError, TypeError, ValueError)
DAMAGED = (EOFError, KeyError, OSError, RuntimeError, ValueError, struct.error, zipfile.BadZipFile, zlib.error)


def source(path: Path, *, dtype: str = "float64", split: str | None = None) -> Source:
    """Read the labels of a NumPy archive, and rows when they are wanted.

    Features with more than two axes are flattened row by row. Unsigned bytes are taken for pixels: their
    default scale is 255. An array clients (clients_train, clients_test) holds the number or the name of
    the client that each row belongs to. Objects are never unpickled. Rows that lie one after the other in a large array
    that is not compressed stay in the file, which is mapped.

    Parameters
    ----------
    path : Path
        The archive.
    dtype : str
        Type that features are going to have.
    split : str, optional
        With ``split="test"`` the arrays X_test and y_test are read. None means the arrays X and y where the
        archive has them, else X_train and y_train.

    Raises
    ------
    ValueError
        If the file is damaged, is not an archive, holds objects, or does not have the two arrays.
    """
    y, clients, client_names, member = _labels(path, split)
    with _reading(path), zipfile.ZipFile(path) as archive, archive.open(member) as file:
        shape, by_columns, kind = _header(archive, member, file)
        stored = archive.getinfo(member).compress_type == zipfile.ZIP_STORED
    width = math.prod(shape[1:])
    large = math.prod(shape) * kind.itemsize >= MAPPED
    mappable = stored and large and not by_columns and len(shape) > 1 and kind == dtype

    def stays(rows: np.ndarray) -> bool:
        return mappable and len(rows) > 0 and rows[-1] - rows[0] == len(rows) - 1

    def read(rows: np.ndarray) -> np.ndarray:
        with _reading(path), zipfile.ZipFile(path) as archive, archive.open(member) as file:
            if stays(rows):
                return _mapped(path, archive, member, file)[rows[0] : rows[-1] + 1]
            return _rows(file, *_header(archive, member, file), rows)

    return Source(
        y=y,
        scale=_scale(kind),
        description=f"NumPy archive {path}",
        shape=shape if len(shape) < 3 else (shape[0], width),
        read=read,
        room=lambda rows: 0 if stays(rows) else len(rows) * width * kind.itemsize,
        contents=lambda: {"contents of the file": file_hash(path)},
        clients=clients,
        client_names=client_names,
    )


def rows(path: Path, *, split: str | None = None) -> tuple[np.ndarray, np.ndarray | None]:
    """Read features as `load` does, and labels where there are some."""
    with _reading(path), zipfile.ZipFile(path) as archive:
        stored = {name.removesuffix(".npy"): name for name in archive.namelist()}
        suffix = f"_{split}" if split else "" if "X" in stored else "_train"
        if f"X{suffix}" not in stored:
            raise ValueError(f"it needs the array X{suffix} and has {sorted(stored)}")
        X = _array(archive, stored[f"X{suffix}"])
        y = _array(archive, stored[name]) if (name := f"y{suffix}") in stored else None
    return (X.reshape(X.shape[0], -1) if X.ndim > 2 and X.size else X), y


def read_arrays(path: Path, shapes: Mapping[str, tuple[int, ...]], dtype: str) -> dict[str, np.ndarray]:
    """Read the arrays of an archive that holds these and no others, of this type and finite.

    Raises
    ------
    ValueError
        If the archive is damaged, or holds anything else; memory is taken only for what fits.
    """
    with _reading(path), zipfile.ZipFile(path) as archive:
        names, found = archive.namelist(), {}
        if sorted(names) != sorted(f"{name}.npy" for name in shapes):
            raise ValueError(f"it needs the arrays {', '.join(shapes)} and has {', '.join(sorted(names)[:20])}")
        for name, shape in shapes.items():
            with archive.open(f"{name}.npy") as file:
                there, _, kind = _header(archive, f"{name}.npy", file)
            if there != shape or kind != np.dtype(dtype):
                raise ValueError(f"its array {name} must be {dtype} of shape {shape}, not {kind} of shape {there}")
            found[name] = _array(archive, f"{name}.npy")
            if not np.isfinite(found[name]).all():
                raise ValueError(f"its array {name} must be finite")
    return found


def _scale(dtype: Any) -> str | float:
    return 255.0 if dtype == np.uint8 else "none"


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Turn what a damaged archive raises into a sentence."""
    try:
        yield
    except DAMAGED as error:
        raise ValueError(f"path {str(path)!r} cannot be read as a NumPy archive: {_reason(error)}.") from error


def _labels(path: Path, split: str | None) -> tuple[np.ndarray, np.ndarray | None, tuple[Any, ...] | None, str]:
    """Return the labels, the clients of the rows and their names, and where the features are."""
    with _reading(path), zipfile.ZipFile(path) as archive:  # np.load would take other kinds of file too
        stored = {name.removesuffix(".npy"): name for name in archive.namelist()}
        suffix = f"_{split}" if split else "" if "X" in stored else "_train"
        wanted = f"X{suffix}", f"y{suffix}"
        if not {*wanted} <= {*stored}:
            raise ValueError(f"it needs the arrays {wanted[0]} and {wanted[1]} and has {sorted(stored)}")
        y, owners = _array(archive, stored[wanted[1]]), f"clients{suffix}"
        clients, client_names = (_array(archive, stored[owners]) if owners in stored else None), None
        if clients is not None and clients.ndim == 1 and clients.dtype.kind in "USb":
            clients, client_names = codes_of(clients)
    return y, clients, client_names, stored[wanted[0]]


def _mapped(path: Path, archive: zipfile.ZipFile, member: str, file: Any) -> np.ndarray:
    """Return an array that stays in its archive, flattened, when its checksum has been compared."""
    shape, _, dtype = _header(archive, member, file)
    begin = file.tell()
    while file.read(PIECE):  # compares the checksum at the end
        pass
    with path.open("rb") as whole:
        whole.seek(archive.getinfo(member).header_offset + 26)  # where the lengths of name and extra field are
        before = sum(struct.unpack("<HH", whole.read(4))) + whole.tell()
    offset = before + begin
    return np.memmap(path, dtype, "r", offset, (shape[0], math.prod(shape[1:]))).view(np.ndarray)


def _rows(file: Any, shape: tuple[int, ...], by_columns: bool, dtype: np.dtype, rows: np.ndarray) -> np.ndarray:
    """Return some rows of the array that follows in a file, flattened; the others are read in pieces, and dropped."""
    m, width = shape[0] if shape else 0, math.prod(shape[1:])
    if by_columns and len(shape) > 2:  # the first axis varies fastest, and flattening goes by the last
        X = np.frombuffer(file.read(), dtype).reshape(shape[::-1]).T
        return X[rows].reshape(len(rows), -1)
    X = np.empty((len(rows), width), dtype)
    if by_columns:
        for j in range(width):
            X[:, j] = np.frombuffer(_exactly(file, m * dtype.itemsize), dtype)[rows]
        return X
    piece = max(1, PIECE // max(1, width * dtype.itemsize))
    for start in range(0, m, piece):
        count = min(piece, m - start)
        some = np.frombuffer(_exactly(file, count * width * dtype.itemsize), dtype).reshape(count, width)
        a, b = np.searchsorted(rows, (start, start + count))
        X[a:b] = some[rows[a:b] - start]
    return X


def _exactly(file: Any, count: int) -> bytes:
    found = file.read(count)
    if len(found) != count:
        raise EOFError
    return found


def _array(archive: zipfile.ZipFile, member: str) -> np.ndarray:
    """Read an array once its header says what the archive holds, and that is not more than half of the free memory."""
    with archive.open(member) as file:
        _header(archive, member, file)
    if (size := archive.getinfo(member).file_size) > free_memory() / 2:
        raise ValueError(f"its member {member} does not fit: {size:.3g} bytes are too many")
    with archive.open(member) as file:
        return np.lib.format.read_array(file, allow_pickle=False)


def _header(archive: zipfile.ZipFile, member: str, file: Any) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Return shape, order and type of the array that follows, or refuse it."""
    entry = archive.getinfo(member)
    if file.read(len(MAGIC)) != MAGIC:
        raise ValueError(f"its member {member} is not an array in the format of NumPy")
    version = tuple(file.read(2))
    if version not in HEADERS:
        raise ValueError(f"its member {member} has the unknown version {'.'.join(map(str, version))}")
    try:
        shape, by_columns, dtype = HEADERS[version](file)
    except WRONG_HEADER as error:
        raise ValueError(f"its member {member} has a damaged header") from error
    if dtype.hasobject:
        raise ValueError(f"Object arrays such as {member} are never unpickled")
    if any(n < 0 for n in shape) or math.prod(shape) * dtype.itemsize != entry.file_size - file.tell():
        raise ValueError(f"its member {member} does not hold as much as its shape {shape} says")
    return shape, by_columns, dtype


def _reason(error: Exception) -> str:
    """Say why, in the words of this module or of the archive."""
    if isinstance(error, NotImplementedError):
        return "it is compressed in a way that is not known"
    if isinstance(error, RuntimeError):
        return "it is encrypted"
    if isinstance(error, OSError):
        return error.strerror or "it cannot be opened"
    return str(error).rstrip(".") or "it is cut short"
