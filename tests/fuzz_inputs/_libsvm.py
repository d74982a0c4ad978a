"""Odd text files of rows: damaged, of another kind, with strange numbers, compressed."""

from __future__ import annotations

import bz2
import functools
import gzip
import re
import zlib
from collections.abc import Callable

import numpy as np

from tests.fuzz_inputs._case import Case, Expected, typed
from tests.fuzz_inputs._rows import NAMING, OPTIONS, Rng, clean_archive, damaged, good_rows, one, write

__all__ = ["compressed", "libsvm", "rows_of_text", "whole_file"]

NUMBER = rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?"


def libsvm(rng: Rng) -> Case:
    """A text file with an odd line, or odd bytes; an independent reader says what it holds."""
    lines = _lines(rng)
    if rng.random() < 0.5:
        i = int(rng.integers(len(lines)))
        lines[i] = one(rng, ODD_LINES)(lines[i])
        content = one(rng, [b"\n", b"\n", b"\r\n"]).join(lines) + one(rng, [b"\n", b""])
    else:
        content = damaged(rng, b"\n".join(lines) + b"\n")
    return _text(content, "a text file with an odd line")


def whole_file(rng: Rng) -> Case:
    """A text file that is odd as a whole."""
    lines = _lines(rng)
    text = b"\n".join(lines)
    content = one(
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
    suffix = one(rng, [".gz", ".bz2"])
    good = packed[suffix]
    content, text = one(
        rng,
        [
            (good, plain),
            (good[: int(rng.integers(1, len(good)))], None),
            (good[:-1], None),
            (damaged(rng, good), plain),
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
        arrange=functools.partial(write, {name: content}),
    )


def _lines(rng: Rng) -> list[bytes]:
    X, y = good_rows(rng)
    return [
        f"{label:g} {' '.join(f'{j + 1}:{x!r}' for j, x in enumerate(map(float, row)))}".encode()
        for row, label in zip(X, y, strict=True)
    ]


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
        arrange=functools.partial(write, {"rows.svm": content}),
    )


def _clean_text(content: bytes) -> Case | None:
    """Return the case of an archive with the rows of a text file, as another reader sees them; None if it has none."""
    read = rows_of_text(content)
    return (
        None
        if read is None or len(read[1]) < 2 or (len(np.unique(read[1])) < 2 and read[1][0] % 1 == 0)
        else clean_archive(dict(zip("Xy", read, strict=True)))
    )


def rows_of_text(content: bytes) -> tuple[np.ndarray, np.ndarray] | None:
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
