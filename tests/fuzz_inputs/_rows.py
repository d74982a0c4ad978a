"""What all odd files begin with: a few good rows, the case of a clean archive, and how files are written."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np

from tests.fuzz_inputs._case import Case, typed

__all__ = [
    "COLUMNS",
    "NAMING",
    "OPTIONS",
    "ROWS",
    "Rng",
    "clean_archive",
    "damaged",
    "good_rows",
    "one",
    "write",
    "write_archive",
]

Rng = np.random.Generator
ROWS, COLUMNS = 12, 3
OPTIONS = {"clients": "2", "storage": "dense", "data-param": []}
NAMING = ("path", "data", "X", "y", "clients", "memory", "label", "loss")


def good_rows(rng: Rng) -> tuple[np.ndarray, np.ndarray]:
    """Return features and labels."""
    X = rng.standard_normal((ROWS, COLUMNS)).round(3)
    X[X == 0] = 1.0  # a zero is not stored in a sparse file
    return X, np.where(np.arange(ROWS) % 3 == 0, 1.0, 2.0)


def damaged(rng: Rng, content: bytes) -> bytes:
    """Change, drop or insert some bytes."""
    data = bytearray(content)
    for _ in range(int(rng.integers(1, 4))):
        i, byte = int(rng.integers(len(data))), int(rng.integers(256))
        kind = int(rng.integers(3))
        if kind == 0:
            data[i] = byte
        elif kind == 1 and len(data) > 1:
            del data[i]
        else:
            data.insert(i, byte)
    return bytes(data)


def clean_archive(arrays: dict[str, Any], options: dict[str, Any] | None = None) -> Case:
    """Return the case of an archive with these arrays, with which others are compared."""
    arrays = {name: values.astype(np.int64 if name == "clients" else np.float64) for name, values in arrays.items()}
    words = typed("run", {**OPTIONS, **(options or {}), "data": "rows.npz"})
    return Case(what="clean", words=words, arrange=functools.partial(write_archive, "rows.npz", arrays))


def write(contents: dict[str, bytes], folder: Path) -> None:
    """Write files."""
    for name, content in contents.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def write_archive(name: str, arrays: dict[str, Any], folder: Path) -> None:
    """Write arrays."""
    np.savez(folder / name, **arrays)


def one(rng: Rng, of: list[Any]) -> Any:
    """Draw one."""
    return of[int(rng.integers(len(of)))]
