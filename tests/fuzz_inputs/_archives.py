"""Odd archives of arrays: with other arrays, damaged members, damaged bytes, strange clients."""

from __future__ import annotations

import functools
import gzip
import io
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tests.fuzz_inputs._case import Case, Expected, typed
from tests.fuzz_inputs._rows import (
    NAMING,
    OPTIONS,
    ROWS,
    Rng,
    clean_archive,
    damaged,
    good_rows,
    one,
    write,
    write_archive,
)

__all__ = ["archive", "clients", "damaged_archive", "members", "npy", "npy_header"]


def archive(rng: Rng) -> Case:
    """An archive with an odd array."""
    X, y = good_rows(rng)
    arrays: dict[str, Any] = {"X": X, "y": y}
    what, change, expected = one(rng, ODD_ARRAYS)
    odd = change(dict(arrays))
    clean = None
    if expected == Expected.SAME:
        clean = clean_archive({name: np.asarray(odd[name]) for name in ("X", "y")})
    return Case(
        what=f"an archive with {what}",
        words=typed("run", {**OPTIONS, "data": "rows.npz"}),
        expected=expected,
        naming=NAMING,
        clean=clean,
        arrange=functools.partial(write_archive, "rows.npz", odd),
    )


def members(rng: Rng) -> Case:
    """An archive whose members are not what they should be."""
    X, y = good_rows(rng)
    good = {"X.npy": npy(X), "y.npy": npy(y)}
    what, content = one(
        rng,
        [
            ("a member that is no array", {"X.npy": b"hello", "y.npy": b"hello"}),
            ("labels that are no array", {**good, "y.npy": b"\x93NUMPY"}),
            ("members without suffix", {"X": b"hello", "y": b"hello"}),
            ("an empty member", {**good, "X.npy": b""}),
            ("a cut member", {**good, "X.npy": good["X.npy"][:-5]}),
            ("a header alone", {**good, "X.npy": good["X.npy"][:128]}),
            ("a huge shape", {**good, "X.npy": npy_header((10**12, 3))}),
            ("a huge shape of labels", {**good, "y.npy": npy_header((10**15,))}),
            ("a shape beyond all integers", {**good, "X.npy": npy_header((10**30, 3))}),
            ("a negative shape", {**good, "X.npy": npy_header((-1, 3)) + bytes(240)}),
            ("a shape of words", {**good, "X.npy": npy_header("('a', 3)")}),
            ("a header that is code", {**good, "X.npy": npy_header("__import__('os').mkdir('hacked')")}),
            ("an unknown type", {**good, "X.npy": npy_header((2, 3), "'zz9'") + bytes(64)}),
            ("objects", {**good, "X.npy": npy_header((2, 3), "'|O'") + bytes(64)}),
            ("an unknown version", {**good, "X.npy": b"\x93NUMPY\x09\x00" + good["X.npy"][8:]}),
            ("a long header", {**good, "X.npy": b"\x93NUMPY\x02\x00" + struct.pack("<I", 2**31) + b" " * 100}),
            ("a header that is not closed", {**good, "X.npy": good["X.npy"].replace(b"}", b" ")}),
            ("nothing", {}),
            ("other names", {"a.npy": good["X.npy"], "b.npy": good["y.npy"]}),
            ("a path as name", {"../X.npy": good["X.npy"], "y.npy": good["y.npy"]}),
            ("only a training part without labels", {"X_train.npy": good["X.npy"]}),
            ("clients that are no array", {**good, "clients.npy": b"hello"}),
        ],
    )
    options = {**OPTIONS, "data": "rows.npz"}
    if "clients.npy" in content:
        options["partition"] = "natural"
    return Case(
        what=f"an archive with {what}",
        words=typed("run", options),
        naming=NAMING,
        arrange=functools.partial(_zip, "rows.npz", content),
    )


def damaged_archive(rng: Rng) -> Case:
    """An archive with damaged bytes, which its checksums show unless they hold no data."""
    X, y = good_rows(rng)
    file = io.BytesIO()
    (np.savez_compressed if rng.random() < 0.5 else np.savez)(file, X=X, y=y)
    good = file.getvalue()
    cut = rng.random() < 0.3
    content = good[: int(rng.integers(len(good)))] if cut else damaged(rng, good)
    if rng.random() < 0.1:
        content = one(rng, [npy(X), b"PK", b"PK\x05\x06" + bytes(18), b"", b"\x93NUMPY", gzip.compress(good)])
        cut = True
    return Case(
        what="a cut archive" if cut else "a damaged archive",
        words=typed("run", {**OPTIONS, "data": "rows.npz"}),
        expected=Expected.REFUSED if cut else Expected.EITHER,
        naming=NAMING,
        clean=None if cut else clean_archive({"X": X, "y": y}),
        arrange=functools.partial(write, {"rows.npz": content}),
    )


def clients(rng: Rng) -> Case:
    """An archive whose clients are odd."""
    X, y = good_rows(rng)
    owners, good = one(
        rng,
        [
            (np.arange(ROWS) % 2, True),
            (np.arange(ROWS) % 2 * 10**9 - 5, True),
            ((np.arange(ROWS) % 2).astype(np.uint64) + np.uint64(2**63), True),
            ((np.arange(ROWS) % 2).astype(">i2"), True),
            (np.arange(ROWS) % 2 + 0.5, False),
            (np.full(ROWS, np.nan), False),
            (np.arange(ROWS - 1), False),
            (np.zeros((ROWS, 1), dtype=int), False),
            (np.array(1), False),
            (np.zeros(0, dtype=int), False),
        ],
    )
    options = {**OPTIONS, "data": "rows.npz", "partition": "natural"}
    clean = clean_archive({"X": X, "y": y, "clients": np.arange(ROWS) % 2}, {"partition": "natural"}) if good else None
    return Case(
        what=f"an archive with clients {owners.dtype} {owners.shape}",
        words=typed("run", options),
        expected=Expected.SAME if good else Expected.REFUSED,
        naming=NAMING,
        clean=clean,
        arrange=functools.partial(write_archive, "rows.npz", {"X": X, "y": y, "clients": owners}),
    )


def npy(values: Any, version: tuple[int, int] | None = None, **options: Any) -> bytes:
    """Return an array as the bytes of a file."""
    file = io.BytesIO()
    np.lib.format.write_array(file, np.asarray(values), version, **options)
    return file.getvalue()


def npy_header(shape: Any, descr: str = "'<f8'") -> bytes:
    """Return the beginning of the file of an array."""
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}"
    text = text.ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode()


ODD_ARRAYS: list[tuple[str, Callable[[dict[str, Any]], dict[str, Any]], str]] = [
    ("columns in order", lambda a: a | {"X": np.asfortranarray(a["X"])}, Expected.SAME),
    ("the other end first", lambda a: a | {"X": a["X"].astype(">f8"), "y": a["y"].astype(">i4")}, Expected.SAME),
    ("half precision", lambda a: a | {"X": a["X"].astype(np.float16)}, Expected.SAME),
    ("integers", lambda a: a | {"X": (a["X"] * 100).astype(np.int8)}, Expected.SAME),
    ("unsigned integers", lambda a: a | {"X": np.abs(a["X"] * 100).astype(np.uint64)}, Expected.SAME),
    ("booleans", lambda a: a | {"X": a["X"] > 0}, Expected.SAME),
    ("boolean labels", lambda a: a | {"y": a["y"] > 1}, Expected.SAME),
    ("more arrays", lambda a: a | {"z": np.array("words"), "w": np.zeros(0)}, Expected.SAME),
    ("objects nobody asks for", lambda a: a | {"z": np.array([{}], dtype=object)}, Expected.SAME),
    ("images", lambda a: a | {"X": a["X"].reshape(ROWS, 3, 1)}, Expected.EITHER),
    ("words as labels", lambda a: a | {"y": np.array(["no", "yes"])[(a["y"] > 1).astype(int)]}, Expected.EITHER),
    ("bytes as labels", lambda a: a | {"y": np.array([b"no", b"yes"])[(a["y"] > 1).astype(int)]}, Expected.EITHER),
    ("long numbers", lambda a: a | {"X": a["X"].astype(np.longdouble)}, Expected.EITHER),
    ("no labels", lambda a: {"X": a["X"]}, Expected.REFUSED),
    ("no features", lambda a: {"y": a["y"]}, Expected.REFUSED),
    ("objects", lambda a: a | {"X": a["X"].astype(object)}, Expected.REFUSED),
    ("labels that are objects", lambda a: a | {"y": a["y"].astype(object)}, Expected.REFUSED),
    ("complex numbers", lambda a: a | {"X": a["X"] * 1j}, Expected.REFUSED),
    ("complex labels", lambda a: a | {"y": a["y"] * 1j}, Expected.REFUSED),
    ("times", lambda a: a | {"X": a["X"].astype("datetime64[s]")}, Expected.REFUSED),
    ("words", lambda a: a | {"X": a["X"].astype(str)}, Expected.REFUSED),
    ("records", lambda a: a | {"X": np.zeros((ROWS, 2), dtype=[("a", float)])}, Expected.REFUSED),
    ("a number", lambda a: a | {"X": np.array(1.0)}, Expected.REFUSED),
    ("a vector", lambda a: a | {"X": a["X"][:, 0]}, Expected.REFUSED),
    ("no rows", lambda a: {"X": a["X"][:0], "y": a["y"][:0]}, Expected.REFUSED),
    ("no columns", lambda a: a | {"X": a["X"][:, :0]}, Expected.REFUSED),
    ("no images", lambda a: a | {"X": np.zeros((ROWS, 0, 3))}, Expected.REFUSED),
    ("a column of labels", lambda a: a | {"y": a["y"][:, None]}, Expected.REFUSED),
    ("too few labels", lambda a: a | {"y": a["y"][:-1]}, Expected.REFUSED),
    ("too many labels", lambda a: a | {"y": np.arange(ROWS + 1)}, Expected.REFUSED),
    ("one class", lambda a: a | {"y": np.ones(ROWS)}, Expected.REFUSED),
    ("NaN", lambda a: a | {"X": np.where(a["X"] == a["X"].max(), np.nan, a["X"])}, Expected.REFUSED),
    ("infinity", lambda a: a | {"X": np.where(a["X"] == a["X"].max(), np.inf, a["X"])}, Expected.REFUSED),
    ("labels that are NaN", lambda a: a | {"y": np.where(np.arange(ROWS) == 3, np.nan, a["y"])}, Expected.REFUSED),
    ("infinite labels", lambda a: a | {"y": np.where(np.arange(ROWS) == 3, np.inf, a["y"])}, Expected.REFUSED),
    (
        "large long numbers",
        lambda a: a | {"X": a["X"].astype(np.longdouble) * np.longdouble("1e4000")},
        Expected.REFUSED,
    ),
]


def _zip(name: str, content: dict[str, bytes], folder: Path) -> None:
    with zipfile.ZipFile(folder / name, "w") as archive:
        for member, data in content.items():
            archive.writestr(zipfile.ZipInfo(member), data)
