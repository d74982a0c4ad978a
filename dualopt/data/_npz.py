"""NumPy archives (``.npz``) with arrays X, y and perhaps clients, or X_train, y_train, X_test, y_test and so on."""

from __future__ import annotations

import math
import struct
import zipfile
import zlib
from pathlib import Path
from tokenize import TokenError

import numpy as np

from dualopt.data._dataset import RawData
from dualopt.data._files import free_memory
from dualopt.data._tables import codes_of

__all__ = ["load"]

MAGIC = b"\x93NUMPY"
HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
WRONG_HEADER = (ArithmeticError, EOFError, LookupError, MemoryError, RecursionError)
WRONG_HEADER += (SyntaxError, TokenError, TypeError, ValueError)
DAMAGED = (EOFError, KeyError, OSError, RuntimeError, ValueError, struct.error, zipfile.BadZipFile, zlib.error)


def load(path: Path, *, split: str | None = None) -> RawData:
    """Read features and labels from a NumPy archive.

    Features with more than two axes are flattened row by row. Unsigned bytes are taken for pixels: their
    default scale is 255. An array clients (clients_train, clients_test) holds the number or the name of
    the client that each row belongs to. Objects are never unpickled.

    Parameters
    ----------
    path : Path
        The archive.
    split : str, optional
        With ``split="test"`` the arrays X_test and y_test are read. None means the arrays X and y where the
        archive has them, else X_train and y_train.

    Raises
    ------
    ValueError
        If the file is damaged, is not an archive, holds objects, or does not have the two arrays.
    """
    try:
        with zipfile.ZipFile(path) as archive:  # np.load would take other kinds of file too
            stored = {name.removesuffix(".npy"): name for name in archive.namelist()}
            suffix = f"_{split}" if split else "" if "X" in stored else "_train"
            wanted = f"X{suffix}", f"y{suffix}"
            if not {*wanted} <= {*stored}:
                raise ValueError(f"it needs the arrays {wanted[0]} and {wanted[1]} and has {sorted(stored)}")
            X, y = (_array(archive, stored[name]) for name in wanted)
            owners = f"clients{suffix}"
            clients, client_names = (_array(archive, stored[owners]) if owners in stored else None), None
            if clients is not None and clients.ndim == 1 and clients.dtype.kind in "USb":
                clients, client_names = codes_of(clients)
    except DAMAGED as error:
        raise ValueError(f"path {str(path)!r} cannot be read as a NumPy archive: {_reason(error)}.") from error
    if X.ndim > 2 and X.size:
        X = X.reshape(X.shape[0], -1)
    scale = 255.0 if X.dtype == np.uint8 else "none"
    return RawData(
        X=X, y=y, scale=scale, description=f"NumPy archive {path}", clients=clients, client_names=client_names
    )


def _array(archive: zipfile.ZipFile, member: str) -> np.ndarray:
    """Read an array once its header says what the archive holds, and that is not more than half of the free memory."""
    entry = archive.getinfo(member)
    with archive.open(member) as file:
        if file.read(len(MAGIC)) != MAGIC:
            raise ValueError(f"its member {member} is not an array in the format of NumPy")
    with archive.open(member) as file:
        version = np.lib.format.read_magic(file)
        if version not in HEADERS:
            raise ValueError(f"its member {member} has the unknown version {version[0]}.{version[1]}")
        try:
            shape, _, dtype = HEADERS[version](file)
        except WRONG_HEADER as error:
            raise ValueError(f"its member {member} has a damaged header") from error
        if dtype.hasobject:
            raise ValueError(f"Object arrays such as {member} are never unpickled")
        if any(n < 0 for n in shape) or math.prod(shape) * dtype.itemsize != entry.file_size - file.tell():
            raise ValueError(f"its member {member} does not hold as much as its shape {shape} says")
        if entry.file_size > free_memory() / 2:
            raise ValueError(f"its member {member} does not fit: {entry.file_size:.3g} bytes are too many")
    with archive.open(member) as file:
        return np.lib.format.read_array(file, allow_pickle=False)


def _reason(error: Exception) -> str:
    """Say why, in the words of this module or of the archive."""
    if isinstance(error, NotImplementedError):
        return "it is compressed in a way that is not known"
    if isinstance(error, RuntimeError):
        return "it is encrypted"
    if isinstance(error, OSError):
        return error.strerror or "it cannot be opened"
    return str(error).rstrip(".") or "it is cut short"
