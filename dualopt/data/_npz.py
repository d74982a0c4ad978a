"""NumPy archives (``.npz``) with arrays X, y and perhaps clients, or X_train, y_train, X_test, y_test and so on."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path

import numpy as np

from dualopt.data._dataset import RawData
from dualopt.data._tables import codes_of

__all__ = ["load"]


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
            stored = {name.removesuffix(".npy") for name in archive.namelist()}
        suffix = f"_{split}" if split else "" if "X" in stored else "_train"
        wanted = f"X{suffix}", f"y{suffix}"
        if not stored.issuperset(wanted):
            raise ValueError(f"it needs the arrays {wanted[0]} and {wanted[1]} and has {sorted(stored)}")
        with np.load(path, allow_pickle=False) as arrays:
            X, y = (arrays[name] for name in wanted)
            owners = f"clients{suffix}"
            clients, client_names = (arrays[owners] if owners in stored else None), None
            if clients is not None and clients.ndim == 1 and clients.dtype.kind in "USb":
                clients, client_names = codes_of(clients)
    except (EOFError, OSError, RuntimeError, ValueError, zipfile.BadZipFile, zlib.error) as error:
        reason = str(error).rstrip(".")
        raise ValueError(f"path {str(path)!r} cannot be read as a NumPy archive: {reason}.") from error
    if X.ndim > 2 and X.size:
        X = X.reshape(X.shape[0], -1)
    scale = 255.0 if X.dtype == np.uint8 else "none"
    return RawData(
        X=X, y=y, scale=scale, description=f"NumPy archive {path}", clients=clients, client_names=client_names
    )
