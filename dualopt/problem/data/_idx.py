"""IDX files (the format of MNIST): unsigned bytes with a header of dimensions, plain or gzip-compressed."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from dualopt.problem.data._dataset import RawData
from dualopt.problem.data._files import find, open_binary

__all__ = ["load_images", "paired", "read_idx"]

_UNSIGNED_BYTE = 0x08
_PREFIX = {"train": "train", "test": "t10k"}


def read_idx(path: Path, *, ndim: int) -> np.ndarray:
    """Read an IDX file of unsigned bytes.

    The file is a magic number ``00 00 08 ndim``, then ``ndim`` big-endian 32-bit lengths, then the bytes in
    row-major order.

    Parameters
    ----------
    path : Path
        The file; a name that ends in ``.gz`` is decompressed.
    ndim : int
        How many axes the array must have: 3 for images, 1 for labels.

    Returns
    -------
    array of uint8 with ``ndim`` axes, read-only

    Raises
    ------
    ValueError
        If the file cannot be read, is not of this kind, or is shorter or longer than its header says.
    """
    with open_binary(path) as stream:
        raw = stream.read()
    start = 4 + 4 * ndim
    if raw[:4] != bytes((0, 0, _UNSIGNED_BYTE, ndim)):
        raise ValueError(
            f"path {str(path)!r} is not an IDX file of unsigned bytes with {ndim} axes: "
            f"it begins with the bytes {raw[:4].hex(' ')!r}."
        )
    if len(raw) < start:
        raise ValueError(f"path {str(path)!r} is truncated: its header has {len(raw)} of {start} bytes.")
    shape = struct.unpack_from(f">{ndim}I", raw, 4)
    if len(raw) != start + math.prod(shape):
        raise ValueError(
            f"path {str(path)!r} is damaged: its header announces {math.prod(shape)} bytes for the "
            f"shape {shape}, but {len(raw) - start} follow."
        )
    return np.frombuffer(raw, np.uint8, offset=start).reshape(shape)


def load_images(name: str, data_home: Path | None, split: str, title: str) -> RawData:
    """Load images and labels from four IDX files under their usual names.

    The folder ``data_home/name`` comes before ``data_home`` itself, because different sets use the same file
    names.

    Raises
    ------
    ValueError
        If ``split`` is not "train" or "test", a file is missing or damaged, or images and labels differ in
        number.
    """
    if split not in _PREFIX:
        raise ValueError(f'split must be "train" or "test", got {split!r}.')
    files = [f"{_PREFIX[split]}-images-idx3-ubyte", f"{_PREFIX[split]}-labels-idx1-ubyte"]
    paths = [
        find(name, data_home, [folder + file + end for folder in (f"{name}/", "") for end in (".gz", "")])
        for file in files
    ]
    images, labels = read_idx(paths[0], ndim=3), read_idx(paths[1], ndim=1)
    return paired(images, labels, paths, f"{title}, {split} split")


def paired(images: np.ndarray, labels: np.ndarray, paths: Sequence[Path], title: str) -> RawData:
    """Return images ``(m, height, width)`` as rows, with their labels; ``paths`` are where they come from.

    Raises
    ------
    ValueError
        If there are not as many labels as images.
    """
    if images.shape[0] != labels.shape[0]:
        raise ValueError(
            f"path {str(paths[0])!r} has {images.shape[0]} images, but {str(paths[1])!r} has {labels.shape[0]} labels."
        )
    pixels = images.shape[1] * images.shape[2]
    return RawData(
        X=images.reshape(images.shape[0], pixels),
        y=labels,
        scale=255.0,
        description=f"{title}, from {paths[0].parent}",
    )
