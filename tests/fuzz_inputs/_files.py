"""Odd files: damaged, of another kind, with strange numbers, or larger than they look."""

from __future__ import annotations

import bz2
import functools
import gzip
import io
import re
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tests.fuzz_inputs._case import Case, Expected, typed

__all__ = ["FAMILIES", "npy"]

Rng = np.random.Generator

ROWS, COLUMNS = 12, 3
NUMBER = rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?"
OPTIONS = {"clients": "2", "storage": "dense", "data-param": []}
NAMING = ("path", "data", "X", "y", "clients", "memory", "label", "loss")
BLOCK = 2**20
BOMB = 600  # blocks
MANY = b"1" + b"".join(b" %d:0" % i for i in range(1, 100)) + b"\n"


def libsvm(rng: Rng) -> Case:
    """A text file with an odd line, or odd bytes; an independent reader says what it holds."""
    lines = _lines(rng)
    if rng.random() < 0.5:
        i = int(rng.integers(len(lines)))
        lines[i] = _one(rng, ODD_LINES)(lines[i])
        content = _one(rng, [b"\n", b"\n", b"\r\n"]).join(lines) + _one(rng, [b"\n", b""])
    else:
        content = _damaged(rng, b"\n".join(lines) + b"\n")
    return _text(content, "a text file with an odd line")


def whole_file(rng: Rng) -> Case:
    """A text file that is odd as a whole."""
    lines = _lines(rng)
    text = b"\n".join(lines)
    content = _one(
        rng,
        [
            b"",
            b"\n\n\n",
            b"# nothing\n",
            b"1\n2\n",
            b"\xef\xbb\xbf" + text,
            b"\r".join(lines),
            text.replace(b" ", b"\t"),
            text.replace(b":", b" : "),
            text.replace(b" ", b","),
            text.replace(b":", b";"),
            text.decode().encode("utf-16"),
            text + b"\n\0\0",
            b"x,y,z\n1,2,3\n",
            b"{}",
            bytes(range(256)),
            b"<html></html>",
            lines[0],
            b"\n".join([b"1" + line[line.index(b" ") :] for line in lines]),
            b"\n".join([b"1.5" + line[line.index(b" ") :] for line in lines]),
            b"\n".join([b"%d" % i + line[line.index(b" ") :] for i, line in enumerate(lines)]),
        ],
    )
    return _text(content, "a text file that is odd")


def compressed(rng: Rng) -> Case:
    """A compressed file that is cut, damaged, plain, doubled, or of the other kind."""
    plain = b"\n".join(_lines(rng)) + b"\n"
    packed = {".gz": gzip.compress(plain, mtime=0), ".bz2": bz2.compress(plain)}
    suffix = _one(rng, [".gz", ".bz2"])
    good = packed[suffix]
    content, text = _one(
        rng,
        [
            (good, plain),
            (good[: int(rng.integers(1, len(good)))], None),
            (good[:-1], None),
            (_damaged(rng, good), plain),
            (plain, None),
            (b"", None),
            (good + good, plain + plain),
            (packed[".bz2" if suffix == ".gz" else ".gz"], None),
            (good + b"\0" * 7, plain),
            (zlib.compress(plain), None),
        ],
    )
    name = f"rows.svm{suffix}"
    words = typed("run", {**OPTIONS, "data": name})
    clean = None if text is None else _clean_text(text)
    # A damaged byte may be in the header, which holds nothing: then the rows are the same.
    expected = Expected.REFUSED if clean is None else Expected.EITHER
    return Case(
        what=f"a {suffix} file of {len(content)} bytes",
        words=words,
        expected=expected,
        naming=NAMING,
        clean=clean,
        arrange=functools.partial(_write, {name: content}),
    )


def archive(rng: Rng) -> Case:
    """An archive with an odd array."""
    X, y = _rows(rng)
    arrays: dict[str, Any] = {"X": X, "y": y}
    what, change, expected = _one(rng, ODD_ARRAYS)
    odd = change(dict(arrays))
    clean = None
    if expected == Expected.SAME:
        clean = _clean({name: np.asarray(odd[name]) for name in ("X", "y")})
    return Case(
        what=f"an archive with {what}",
        words=typed("run", {**OPTIONS, "data": "rows.npz"}),
        expected=expected,
        naming=NAMING,
        clean=clean,
        arrange=functools.partial(_archive, "rows.npz", odd),
    )


def members(rng: Rng) -> Case:
    """An archive whose members are not what they should be."""
    X, y = _rows(rng)
    good = {"X.npy": npy(X), "y.npy": npy(y)}
    what, content = _one(
        rng,
        [
            ("a member that is no array", {"X.npy": b"hello", "y.npy": b"hello"}),
            ("labels that are no array", {**good, "y.npy": b"\x93NUMPY"}),
            ("members without suffix", {"X": b"hello", "y": b"hello"}),
            ("an empty member", {**good, "X.npy": b""}),
            ("a cut member", {**good, "X.npy": good["X.npy"][:-5]}),
            ("a header alone", {**good, "X.npy": good["X.npy"][:128]}),
            ("a huge shape", {**good, "X.npy": _header((10**12, 3))}),
            ("a huge shape of labels", {**good, "y.npy": _header((10**15,))}),
            ("a shape beyond all integers", {**good, "X.npy": _header((10**30, 3))}),
            ("a negative shape", {**good, "X.npy": _header((-1, 3)) + bytes(240)}),
            ("a shape of words", {**good, "X.npy": _header("('a', 3)")}),
            ("a header that is code", {**good, "X.npy": _header("__import__('os').mkdir('hacked')")}),
            ("an unknown type", {**good, "X.npy": _header((2, 3), "'zz9'") + bytes(64)}),
            ("objects", {**good, "X.npy": _header((2, 3), "'|O'") + bytes(64)}),
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
    X, y = _rows(rng)
    file = io.BytesIO()
    (np.savez_compressed if rng.random() < 0.5 else np.savez)(file, X=X, y=y)
    good = file.getvalue()
    cut = rng.random() < 0.3
    content = good[: int(rng.integers(len(good)))] if cut else _damaged(rng, good)
    if rng.random() < 0.1:
        content = _one(rng, [npy(X), b"PK", b"PK\x05\x06" + bytes(18), b"", b"\x93NUMPY", gzip.compress(good)])
        cut = True
    return Case(
        what="a cut archive" if cut else "a damaged archive",
        words=typed("run", {**OPTIONS, "data": "rows.npz"}),
        expected=Expected.REFUSED if cut else Expected.EITHER,
        naming=NAMING,
        clean=None if cut else _clean({"X": X, "y": y}),
        arrange=functools.partial(_write, {"rows.npz": content}),
    )


def clients(rng: Rng) -> Case:
    """An archive whose clients are odd."""
    X, y = _rows(rng)
    owners, good = _one(
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
    clean = _clean({"X": X, "y": y, "clients": np.arange(ROWS) % 2}, {"partition": "natural"}) if good else None
    return Case(
        what=f"an archive with clients {owners.dtype} {owners.shape}",
        words=typed("run", options),
        expected=Expected.SAME if good else Expected.REFUSED,
        naming=NAMING,
        clean=clean,
        arrange=functools.partial(_archive, "rows.npz", {"X": X, "y": y, "clients": owners}),
    )


def extreme(rng: Rng) -> Case:
    """Numbers at the ends of the arithmetic, in the features or the labels."""
    X, y = _rows(rng)
    size = float(_one(rng, [1e-320, 1e-300, 1e-200, 1e-155, 1e-100, 1e100, 1e150, 1e155, 1e200, 1e300, 1.7e308]))
    where = _one(rng, ["everywhere", "in a column", "in one entry", "in the labels"])
    options: dict[str, Any] = {**OPTIONS, "data": "rows.npz"}
    options["loss"] = _one(rng, ["auto", "squared", "huber", "logistic", "smoothed-hinge", "hinge"])
    if where == "everywhere":
        X = X / np.abs(X).max() * size
    elif where == "in a column":
        X[:, 1] *= size / np.abs(X[:, 1]).max()
    elif where == "in one entry":
        X[3, 1] = size
    else:
        y = y * size
    for name, values in (
        ("algorithm", ["dualfl", "fedavg", "fedpd", "a-fedpd", "scaffnew", "fedsplit", "feddyn", "distributed-lbfgs"]),
        ("solver", ["lbfgs", "newton", "gradient", "nesterov", "dual-coordinate", "sgd"]),
        ("scale", ["max", "standard", "unit-rows"]),
        ("dtype", ["float32"]),
        ("weights", ["rows"]),
        ("start", ["one-shot", "jackknife"]),
        ("coordinates", ["sketch", "own-sketches"]),
        ("mu", ["1e-12", "1e6", "0"]),
    ):
        if rng.random() < 0.25:
            options[name] = _one(rng, values)
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
        arrange=functools.partial(_archive, "rows.npz", {"X": X, "y": y}),
        out="figures-out" if program == "figures" else "out",
    )


def flat(rng: Rng) -> Case:
    """Problems without anything to learn: zeros, equal rows, one row for each client, one client."""
    X, y = _rows(rng)
    kind = _one(
        rng, ["zeros", "equal rows", "one row each", "one client", "a column of zeros", "zero labels", "equal labels"]
    )
    options: dict[str, Any] = {
        **OPTIONS,
        "data": "rows.npz",
        "loss": _one(rng, ["squared", "huber", "logistic", "auto"]),
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
        options["algorithm"] = _one(
            rng, ["fedpd", "a-fedpd", "fedavg", "scaffold", "feddyn", "fedsplit", "distributed-lbfgs"]
        )
    words = typed("run", options) + ((), ("--reference",), ("--no-intercept",))[int(rng.integers(3))]
    # Labels that are all alike are one class, which no loss of classes takes.
    refused = kind == "equal labels" and options["loss"] in ("logistic", "auto")
    return Case(
        what=f"rows that are {kind}",
        words=words,
        expected=Expected.REFUSED if refused else Expected.EITHER,
        naming=NAMING if refused else (),
        arrange=functools.partial(_archive, "rows.npz", {"X": X, "y": y}),
    )


def bomb(rng: Rng) -> Case:
    """A small file that holds far more than memory, or says so."""
    what, name, arrange = _one(
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
        ],
    )
    expected = Expected.EITHER if "comment" in what or "empty" in what else Expected.REFUSED
    return Case(
        what=f"a file of much: {what}",
        words=typed("run", {**OPTIONS, "data": name}),
        expected=expected,
        naming=NAMING,
        arrange=arrange,
    )


def table(rng: Rng) -> Case:
    """A table as text, with a line that is odd, or odd as a whole; Python's reader of such files says what it holds."""
    X, y = _rows(rng)
    rows = [
        ["a", "b", "c", "y"],
        *([*map(repr, map(float, row)), f"{label:g}"] for row, label in zip(X, y, strict=True)),
    ]
    what, change, good = _one(rng, ODD_TABLES)
    content = change(rows)
    return Case(
        what=f"a table with {what}",
        words=typed("run", {**OPTIONS, "data": "rows.csv", "label": "y"}),
        expected=Expected.SAME if good else Expected.REFUSED,
        naming=("column", "label", "path", *NAMING),
        clean=_clean({"X": X, "y": y}) if good else None,
        arrange=functools.partial(_write, {"rows.csv": content}),
    )


def tune_record(rng: Rng) -> Case:
    """The record of an earlier search that is damaged: refused, or of no consequence."""
    base = {"grid": ["rho=0,0.1"]}
    good = (
        b'{"command": "tune", "search": {}, "points": [{"parameters": {"rho": "0"}, "status": "converged", '
        b'"costs": [1], "errors": [0], "seconds": 0}]}'
    )
    content = _one(
        rng,
        [
            b"",
            b"{}",
            b"[]",
            b"null",
            b"1",
            good,
            good[:-1],
            b"\xff\xfe",
            b"[" * 100_000,
            b"{" * 5000,
            b'{"search": 1, "points": 2}',
            b'{"search": {}, "points": [1]}',
            b'{"search": {}, "points": [{"parameters": 1}]}',
            good.replace(b'"search": {}', b'"search": {"rounds": ' + b"9" * 5000 + b"}"),
            b"9" * 5000,
            b'{"points": []}',
            b"NaN",
        ],
    )
    return Case(
        what=f"tune.json with {content[:30]!r}",
        words=typed("tune", base),
        naming=("out", "file"),
        arrange=functools.partial(_write, {"out/tune.json": content}),
    )


FAMILIES: tuple[Callable[[Rng], Case], ...] = (
    libsvm,
    libsvm,
    whole_file,
    compressed,
    archive,
    archive,
    members,
    damaged_archive,
    clients,
    extreme,
    extreme,
    flat,
    bomb,
    table,
    table,
    tune_record,
)


def npy(values: Any, version: tuple[int, int] | None = None, **options: Any) -> bytes:
    """Return an array as the bytes of a file."""
    file = io.BytesIO()
    np.lib.format.write_array(file, np.asarray(values), version, **options)
    return file.getvalue()


def _header(shape: Any, descr: str = "'<f8'") -> bytes:
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}"
    text = text.ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode()


def _rows(rng: Rng) -> tuple[np.ndarray, np.ndarray]:
    X = rng.standard_normal((ROWS, COLUMNS)).round(3)
    X[X == 0] = 1.0  # a zero is not stored in a sparse file
    return X, np.where(np.arange(ROWS) % 3 == 0, 1.0, 2.0)


def _lines(rng: Rng) -> list[bytes]:
    X, y = _rows(rng)
    return [
        f"{label:g} {' '.join(f'{j + 1}:{x!r}' for j, x in enumerate(map(float, row)))}".encode()
        for row, label in zip(X, y, strict=True)
    ]


def _damaged(rng: Rng, content: bytes) -> bytes:
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


def _pair(text: bytes) -> Callable[[bytes], bytes]:
    """Replace the last pair of a line."""
    return lambda line: line[: line.rindex(b" ")] + b" " + text


ODD_LINES: list[Callable[[bytes], bytes]] = [
    *map(
        _pair,
        [b"3:nan", b"3:inf", b"3:1e999", b"3:-1e999", b"3:abc", b"3:", b":1", b"3", b"3:1:1", b"2:1", b"1:1", b"-1:1"],
    ),
    *map(
        _pair,
        [
            b"3:1e-400",
            b"3:1_0",
            b"3:+1",
            b"+3:1",
            b"03:1",
            b"3:0x10",
            b"3.0:1",
            b"99999999999999999999:1",
            b"0:1",
            b"3:1,5",
        ],
    ),
    *map(
        _pair,
        [b"4294967297:1", b"9223372036854775808:1", b"2147483648:1", b"3:1 # note", b"#3:1", b"3:\xc2\xb2", b"\0"],
    ),
    *map(_pair, [b"3:" + b"1" * 400, b"3:." + b"0" * 5000 + b"1", b"9" * 5000 + b":1", b"3:.5e1", b"3:1d3", b"3:TRUE"]),
    lambda line: b"nan" + line[line.index(b" ") :],
    lambda line: b"inf" + line[line.index(b" ") :],
    lambda line: b"abc" + line[line.index(b" ") :],
    lambda line: b"1,2" + line[line.index(b" ") :],
    lambda line: b"" + line[line.index(b" ") :],
    lambda line: b"+2" + line[line.index(b" ") :],
    lambda line: b"1e0" + line[line.index(b" ") :],
    lambda line: b"0x1" + line[line.index(b" ") :],
    lambda line: b"1" * 400 + line[line.index(b" ") :],
    lambda line: line.replace(b" ", b" qid:3 ", 1),
    lambda line: line.replace(b" ", b" sid:3 ", 1),
    lambda line: b"   " + line + b"   ",
    lambda line: line.replace(b" ", b"\t"),
    lambda line: line.replace(b" ", b"\x0b"),
    lambda line: line.replace(b" ", b"\x0c"),
    lambda line: line.replace(b" ", b"\xc2\xa0"),
    lambda line: line.replace(b"-", "\N{MINUS SIGN}".encode()),
    lambda line: line.partition(b" ")[0],
    lambda line: b"",
    lambda line: b"# " + line,
    lambda line: line + b"\n" + line,
]


def _text(content: bytes, what: str) -> Case:
    clean = _clean_text(content)
    return Case(
        what=f"{what}: {content[:200]!r}",
        words=typed("run", {**OPTIONS, "data": "rows.svm"}),
        expected=Expected.REFUSED if clean is None else Expected.SAME,
        naming=NAMING,
        clean=clean,
        arrange=functools.partial(_write, {"rows.svm": content}),
    )


def _clean_text(content: bytes) -> Case | None:
    """Return the case of an archive with the rows of a text file, as another reader sees them; None if it has none."""
    read = _read(content)
    return (
        None
        if read is None or len(read[1]) < 2 or (len(np.unique(read[1])) < 2 and read[1][0] % 1 == 0)
        else _clean(dict(zip("Xy", read, strict=True)))
    )


def _read(content: bytes) -> tuple[np.ndarray, np.ndarray] | None:
    """Read a text file line by line, with the grammar of the format and nothing more."""
    labels, rows = [], []
    for line in content.split(b"\n"):
        words = line.partition(b"#")[0].split()
        if not words:
            continue
        if not re.fullmatch(NUMBER, words[0]):
            return None
        pairs = []
        for word in words[1:]:
            if re.fullmatch(rb"qid:\d+", word):
                continue
            if not (found := re.fullmatch(rb"(\d+):(" + NUMBER + rb")", word)) or len(found[1]) > 15:
                return None
            pairs.append((int(found[1]), float(found[2])))
        indices = [index for index, _ in pairs]
        if indices != sorted(set(indices)):
            return None
        labels.append(float(words[0]))
        rows.append(pairs)
    first = 0 if any(pairs and pairs[0][0] == 0 for pairs in rows) else 1
    columns = max((pairs[-1][0] + 1 - first for pairs in rows if pairs), default=0)
    if not rows or columns < 1 or columns > 10**6:
        return None
    X, y = np.zeros((len(rows), columns)), np.array(labels)
    for i, pairs in enumerate(rows):
        for index, value in pairs:
            X[i, index - first] = value
    return (X, y) if np.isfinite(X).all() and np.isfinite(y).all() else None


def _clean(arrays: dict[str, Any], options: dict[str, Any] | None = None) -> Case:
    arrays = {name: values.astype(np.int64 if name == "clients" else np.float64) for name, values in arrays.items()}
    words = typed("run", {**OPTIONS, **(options or {}), "data": "rows.npz"})
    return Case(what="clean", words=words, arrange=functools.partial(_archive, "rows.npz", arrays))


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


def _lines_of(rows: list[list[str]], separator: str = ",", end: str = "\n") -> bytes:
    return "".join(separator.join(row) + end for row in rows).encode()


def _with(i: int, j: int, text: str) -> Callable[[list[list[str]]], bytes]:
    """Replace one cell."""

    def change(rows: list[list[str]]) -> bytes:
        rows = [list(row) for row in rows]
        rows[i][j] = text
        return _lines_of(rows)

    return change


ODD_TABLES: list[tuple[str, Callable[[list[list[str]]], bytes], bool]] = [
    ("commas", _lines_of, True),
    ("semicolons", lambda rows: _lines_of(rows, ";"), True),
    ("tabs", lambda rows: _lines_of(rows, "\t"), True),
    ("the ends of lines of Windows", lambda rows: _lines_of(rows, end="\r\n"), True),
    ("quotes", lambda rows: _lines_of([[f'"{cell}"' for cell in row] for row in rows]), True),
    ("a mark of its byte order", lambda rows: b"\xef\xbb\xbf" + _lines_of(rows), True),
    ("no end of its last line", lambda rows: _lines_of(rows)[:-1], True),
    ("names in quotes", lambda rows: _lines_of([['"a, or not"', *rows[0][1:]], *rows[1:]]), True),
    ("a word", _with(3, 1, "many"), False),
    ("an empty cell", _with(3, 1, ""), False),
    ("an empty label", _with(3, 3, ""), False),
    ("a NaN", _with(3, 1, "nan"), False),
    ("infinity", _with(3, 1, "inf"), False),
    ("a number too large", _with(3, 1, "1e999"), False),
    ("a decimal comma", _with(3, 1, '"1,5"'), False),
    ("a short row", lambda rows: _lines_of([*rows, ["1", "2"]]), False),
    ("a long row", lambda rows: _lines_of([*rows, ["1"] * 5]), False),
    ("a quote that is not closed", _with(3, 1, '"1'), False),
    ("no names", lambda rows: _lines_of(rows[1:]), False),
    ("no rows", lambda rows: _lines_of(rows[:1]), False),
    ("nothing", lambda rows: b"", False),
    ("a line without anything", lambda rows: b"\n", False),
    ("a name twice", _with(0, 1, "a"), False),
    ("no name of labels", _with(0, 3, "z"), False),
    ("a name that is empty", _with(0, 1, ""), False),
    ("bytes", lambda rows: bytes(range(256)), False),
    ("two bytes for a letter", lambda rows: _lines_of(rows).decode().encode("utf-16"), False),
    ("nulls", lambda rows: _lines_of(rows).replace(b".", b"\0"), False),
    ("labels alone", lambda rows: _lines_of([row[3:] for row in rows]), False),
    ("one class", lambda rows: _lines_of([rows[0], *([*row[:3], "1"] for row in rows[1:])]), False),
    ("a page", lambda rows: b"<html>\n<body></body>\n</html>\n", False),
]


def _write(contents: dict[str, bytes], folder: Path) -> None:
    for name, content in contents.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def _archive(name: str, arrays: dict[str, Any], folder: Path) -> None:
    np.savez(folder / name, **arrays)


def _zip(name: str, content: dict[str, bytes], folder: Path) -> None:
    with zipfile.ZipFile(folder / name, "w") as archive:
        for member, data in content.items():
            archive.writestr(zipfile.ZipInfo(member), data)


def _packed(block: bytes, first: bytes, folder: Path) -> None:
    name, opener = ("rows.svm.bz2", bz2.open) if block in (b"#" * BLOCK, b"\n" * BLOCK) else ("rows.svm.gz", gzip.open)
    with opener(folder / name, "wb", 1) as file:
        file.write(first)
        for _ in range(BOMB):
            file.write(block)


def _zeros(folder: Path) -> None:
    """Write an archive with a matrix of 2e11 zeros, as far as its header and directory say, and 600 MB of them."""
    with zipfile.ZipFile(folder / "rows.npz", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("y.npy", npy(np.arange(2.0)))
        with archive.open("X.npy", "w", force_zip64=True) as file:
            file.write(_header((10**11, 2)))
            for _ in range(BOMB):
                file.write(bytes(BLOCK))


def _one(rng: Rng, of: list[Any]) -> Any:
    return of[int(rng.integers(len(of)))]
