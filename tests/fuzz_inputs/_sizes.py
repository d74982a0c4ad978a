"""Good files of odd contents: numbers at the ends of the arithmetic, nothing to learn, far more than memory holds."""

from __future__ import annotations

import bz2
import functools
import gzip
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from tests.fuzz_inputs._archives import npy, npy_header
from tests.fuzz_inputs._case import Case, Expected, typed
from tests.fuzz_inputs._rows import NAMING, OPTIONS, ROWS, Rng, good_rows, one, write_archive

__all__ = ["bomb", "extreme", "flat"]

BLOCK = 2**20
BOMB = 600  # blocks
MANY = b"1" + b"".join(b" %d:0" % i for i in range(1, 100)) + b"\n"


def extreme(rng: Rng) -> Case:
    """Numbers at the ends of the arithmetic, in the features or the labels."""
    X, y = good_rows(rng)
    size = float(one(rng, [1e-320, 1e-300, 1e-200, 1e-155, 1e-100, 1e100, 1e150, 1e155, 1e200, 1e300, 1.7e308]))
    where = one(rng, ["everywhere", "in a column", "in one entry", "in the labels"])
    options: dict[str, Any] = {**OPTIONS, "data": "rows.npz"}
    options["loss"] = one(rng, ["auto", "squared", "huber", "logistic", "smoothed-hinge", "hinge"])
    if where == "everywhere":
        X = X / np.abs(X).max() * size
    elif where == "in a column":
        X[:, 1] *= size / np.abs(X[:, 1]).max()
    elif where == "in one entry":
        X[3, 1] = size
    else:
        with np.errstate(over="ignore"):
            y = y * size
    for name, values in (
        ("algorithm", ["dualfl", "fedavg", "fedpd", "a-fedpd", "scaffnew", "fedsplit", "feddyn", "distributed-lbfgs"]),
        ("solver", ["lbfgs", "newton", "gradient", "nesterov", "dual-coordinate", "sgd"]),
        ("scale", ["max", "standard", "unit-rows"]),
        ("dtype", ["float32"]),
        ("client-weights", ["rows"]),
        ("start", ["one-shot", "jackknife"]),
        ("coordinates", ["sketch", "own-sketches"]),
        ("mu", ["1e-12", "1e6", "0"]),
    ):
        if rng.random() < 0.25:
            options[name] = one(rng, values)
    program = "dualopt"
    words = typed("run", options)
    if rng.random() < 0.2:
        words = (*words, "--reference")
    if rng.random() < 0.2:
        words = (*words, "--no-check-assumptions")
    if rng.random() < 0.1:
        program, words = "figures", ("fig1c_rho", "--quick", "--rounds", "2", "--data", "rows.npz")
    return Case(
        what=f"numbers of size {size:g} {where}",
        program=program,
        words=words,
        expected=Expected.EITHER,
        arrange=functools.partial(write_archive, "rows.npz", {"X": X, "y": y}),
        out="figures-out" if program == "figures" else "out",
    )


def flat(rng: Rng) -> Case:
    """Problems without anything to learn: zeros, equal rows, one row for each client, one client."""
    X, y = good_rows(rng)
    kind = one(
        rng, ["zeros", "equal rows", "one row each", "one client", "a column of zeros", "zero labels", "equal labels"]
    )
    options: dict[str, Any] = {
        **OPTIONS,
        "data": "rows.npz",
        "loss": one(rng, ["squared", "huber", "logistic", "auto"]),
    }
    if kind == "zeros":
        X[:] = 0
    elif kind == "equal rows":
        X[:] = X[0]
    elif kind == "one row each":
        options["clients"] = str(ROWS)
    elif kind == "one client":
        options["clients"] = "1"
    elif kind == "a column of zeros":
        X[:, 1] = 0
    elif kind == "zero labels":
        y, options["loss"] = np.zeros(ROWS), "squared"
    else:
        y = np.ones(ROWS)
    if rng.random() < 0.3:
        options["algorithm"] = one(
            rng, ["fedpd", "a-fedpd", "fedavg", "scaffold", "feddyn", "fedsplit", "distributed-lbfgs"]
        )
    words = (
        typed("run", options)
        + (
            (),
            ("--reference",),
            (
                "--intercept",
                "none",
            ),
        )[int(rng.integers(3))]
    )
    # Labels that are all alike are one class, which no loss of classes takes.
    refused = kind == "equal labels" and options["loss"] in ("logistic", "auto")
    return Case(
        what=f"rows that are {kind}",
        words=words,
        expected=Expected.REFUSED if refused else Expected.EITHER,
        naming=NAMING if refused else (),
        arrange=functools.partial(write_archive, "rows.npz", {"X": X, "y": y}),
    )


def bomb(rng: Rng) -> Case:
    """A small file that holds far more than memory, or says so."""
    what, name, arrange = one(
        rng,
        [
            ("one line of zeros, .gz", "rows.svm.gz", functools.partial(_packed, b"0" * BLOCK, b"")),
            ("one line of pairs, .gz", "rows.svm.gz", functools.partial(_packed, b" 1:0" * (BLOCK // 4), b"1")),
            (
                "lines without end, .gz",
                "rows.svm.gz",
                functools.partial(_packed, MANY * (BLOCK // len(MANY)), b"1 1:1\n"),
            ),
            ("a comment, .bz2", "rows.svm.bz2", functools.partial(_packed, b"#" * BLOCK, b"1 1:1\n2 1:1\n")),
            ("empty lines, .bz2", "rows.svm.bz2", functools.partial(_packed, b"\n" * BLOCK, b"1 1:1\n2 1:1\n")),
            ("zeros, .npz", "rows.npz", _zeros),
            ("a cell, .csv.gz", "rows.csv.gz", functools.partial(_packed_table, b"0" * BLOCK)),
            ("lines, .csv.gz", "rows.csv.gz", functools.partial(_packed_table, b"1,2\n" * (BLOCK // 4))),
        ],
    )
    expected = Expected.EITHER if "comment" in what or "empty" in what else Expected.REFUSED
    return Case(
        what=f"a file of much: {what}",
        words=typed("run", {**OPTIONS, "data": name, **({"label": "y"} if "csv" in name else {})}),
        needs="pyarrow" if "csv" in name else None,
        expected=expected,
        naming=NAMING,
        arrange=arrange,
    )


def _packed(block: bytes, first: bytes, folder: Path) -> None:
    name, opener = ("rows.svm.bz2", bz2.open) if block in (b"#" * BLOCK, b"\n" * BLOCK) else ("rows.svm.gz", gzip.open)
    with opener(folder / name, "wb", 1) as file:
        file.write(first)
        for _ in range(BOMB):
            file.write(block)


def _packed_table(block: bytes, folder: Path) -> None:
    with gzip.open(folder / "rows.csv.gz", "wb", 1) as file:
        file.write(b"a,y\n1,1\n")
        for _ in range(BOMB):
            file.write(block)


def _zeros(folder: Path) -> None:
    """Write an archive with a matrix of 2e11 zeros, as far as its header and directory say, and 600 MB of them."""
    with zipfile.ZipFile(folder / "rows.npz", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("y.npy", npy(np.arange(2.0)))
        with archive.open("X.npy", "w", force_zip64=True) as file:
            file.write(npy_header((10**11, 2)))
            for _ in range(BOMB):
                file.write(bytes(BLOCK))
