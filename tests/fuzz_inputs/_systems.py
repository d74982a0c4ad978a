"""Odd file systems: names, links, permissions, pipes and full disks."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tests.fuzz_inputs._case import RESULTS, Case, Expected, typed

__all__ = ["FAMILIES"]

Rng = np.random.Generator

LINES = "".join(f"{(-1) ** i} 1:{i} 2:{i % 3} 3:1\n" for i in range(12))


def data_path(rng: Rng) -> Case:
    """Data that are no file, or no file that can be read."""
    what, name, arrange, permissions = _one(
        rng,
        [
            ("a folder", "rows.svm", lambda folder: (folder / "rows.svm").mkdir(), False),
            ("a folder that ends in .npz", "rows.npz", lambda folder: (folder / "rows.npz").mkdir(), False),
            ("a pipe", "rows.svm", lambda folder: os.mkfifo(folder / "rows.svm"), False),
            ("a device", "/dev/zero", _nothing, False),
            ("the standard input", "/dev/stdin", _nothing, False),
            ("nothing", "/dev/null", _nothing, False),
            ("a loop of links", "rows.svm", lambda folder: (folder / "rows.svm").symlink_to("rows.svm"), False),
            ("a link to nowhere", "rows.svm", lambda folder: (folder / "rows.svm").symlink_to("nowhere"), False),
            ("unreadable", "rows.svm", functools.partial(_locked, "rows.svm"), True),
            ("in an unreadable folder", "in/rows.svm", functools.partial(_locked, "in"), True),
            ("a long name", "a" * 5000 + ".svm", _nothing, False),
            ("a long path", "a/" * 5000 + ".svm", _nothing, False),
            ("below a file", "rows.svm/rows.svm", functools.partial(_rows, "rows.svm"), False),
            ("of nobody's home", "~nosuchuser/rows.svm", _nothing, False),
            ("a line break", "a\nb.svm", _nothing, False),
            ("a dash", "-", _nothing, False),
            ("an address", "http://localhost/rows.svm", _nothing, False),
            ("memory of the process", "/proc/self/mem", _nothing, False),
            ("a null", "a\0b.svm", _nothing, False),
        ],
    )
    words = typed("run", {"data": name, "clients": "2"})
    naming = ("data", "path")
    return Case(what=f"data that are {what}", words=words, naming=naming, arrange=arrange, permissions=permissions)


def good_name(rng: Rng) -> Case:
    """A good file with a strange name: the rows are the same."""
    name = _one(
        rng,
        [
            "a b.svm",
            "a\nb.svm",
            "é.svm",
            "�.svm",
            "$x$.svm",
            "[red].svm",
            "#.svm",
            "%s.svm",
            "日本.svm",
            "-x.svm",
            "'.svm",
            ".svm",
            "digits.svm",
            "digits/rows.svm",
            "a.npz.svm",
            "rows",
            "\u202e.svm",
            "\x1b[31m.svm",
            "{0}.svm",
            "\\alpha.svm",
        ],
    )
    clean = Case(
        what="clean",
        words=typed("run", {"data": "rows.svm", "clients": "2"}),
        arrange=functools.partial(_rows, "rows.svm"),
    )
    return Case(
        what=f"data called {name!r}",
        words=typed("run", {"data": "=".join(("", name))[1:], "clients": "2"}),
        expected=Expected.SAME,
        clean=clean,
        arrange=functools.partial(_rows, name),
    )


def data_home(rng: Rng) -> Case:
    """A folder of data sets that is none."""
    what, name, arrange, permissions = _one(
        rng,
        [
            ("a file", "home", functools.partial(_rows, "home"), False),
            ("missing", "home", _nothing, False),
            ("empty", "", _nothing, False),
            ("a loop of links", "home", lambda folder: (folder / "home").symlink_to("home"), False),
            ("a long name", "a" * 5000, _nothing, False),
            ("nobody's", "~nosuchuser", _nothing, False),
            ("without what it needs", ".", _nothing, False),
            ("unreadable", "in", functools.partial(_locked, "in"), True),
        ],
    )
    by_environment = bool(rng.random() < 0.3) and name != ""
    options = {"data": "mnist"} if by_environment else {"data": "mnist", "data-home": name}
    return Case(
        what=f"data_home that is {what}",
        words=typed("run", options),
        naming=("data_home",),
        arrange=arrange,
        permissions=permissions,
        environment={"DUALOPT_DATA_HOME": name} if by_environment else {},
    )


def damaged_home(rng: Rng) -> Case:
    """Named data sets whose files are damaged."""
    name, files = _one(
        rng,
        [
            ("mnist", ["train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz", "mnist.npz"]),
            ("fashion-mnist", ["train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz"]),
            ("cifar10", ["data_batch_1.bin", "cifar-10-batches-bin/data_batch_1.bin", "cifar10.npz"]),
        ],
    )
    content = _one(
        rng, [b"", b"\x1f\x8b", b"abc", b"\0\0\x08\x03" + b"\xff" * 12, b"\0\0\x08\x01\0\0\0\x02ab", bytes(100)]
    )

    def arrange(folder: Path) -> None:
        for file in files:
            for place in ("home", f"home/{name}"):
                path = folder / place / file
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)

    words = typed("run", {"data": name, "data-home": "home"})
    return Case(what=f"{name} of {content[:8]!r}", words=words, naming=("data", "path", "data_home"), arrange=arrange)


def out(rng: Rng) -> Case:
    """A place for the results where none can be written."""
    command = _one(rng, ["run", "compare", "tune"])
    what, name, arrange, permissions = _one(
        rng,
        [
            ("empty", "", _nothing, False),
            ("a file", "rows", functools.partial(_rows, "rows"), False),
            ("below a file", "rows/a/b", functools.partial(_rows, "rows"), False),
            ("a device", "/dev/full", _nothing, False),
            ("below a device", "/dev/null/out", _nothing, False),
            ("in the processes", "/proc/out", _nothing, False),
            ("a pipe", "pipe", lambda folder: os.mkfifo(folder / "pipe"), False),
            ("a loop of links", "loop", lambda folder: (folder / "loop").symlink_to("loop"), False),
            ("below a loop of links", "loop/out", lambda folder: (folder / "loop").symlink_to("loop"), False),
            ("a link to nowhere", "link", lambda folder: (folder / "link").symlink_to("nowhere"), False),
            ("a long name", "a" * 300, _nothing, False),
            ("a long path", "a/" * 3000, _nothing, False),
            ("read only", "in", functools.partial(_read_only, "in"), True),
            ("below what is read only", "in/out", functools.partial(_read_only, "in"), True),
            ("unreadable", "in", functools.partial(_locked, "in"), True),
            ("taken by folders", "out", functools.partial(_folders, command), False),
            ("taken by a file of something else", "out", functools.partial(_earlier, command), False),
        ],
    )
    options: dict[str, Any] = {"out": name}
    options |= {"compare": {"algorithm": ["dualfl"]}, "tune": {"grid": ["rho=0,0.1"]}}.get(command, {})
    naming = ("out",)
    return Case(
        what=f"{command} --out that is {what}",
        words=typed(command, options),
        naming=naming,
        arrange=arrange,
        permissions=permissions,
    )


def good_out(rng: Rng) -> Case:
    """A strange place for the results that can be written."""
    name, arrange = _one(
        rng,
        [
            ("a b", _nothing),
            ("a\nb", _nothing),
            ("é/日本", _nothing),
            ("[red]", _nothing),
            ("\udcff", _nothing),
            ("$x$", _nothing),
            ("a/b/c", _nothing),
            (".", _nothing),
            ("link", lambda folder: ((folder / "there").mkdir(), (folder / "link").symlink_to("there"))),
            ("out", functools.partial(_earlier, "run")),
            ("-x", _nothing),
            ("~", _nothing),
        ],
    )
    clean = Case(what="clean", words=typed("run", {}))
    leaves = tuple(f"there/{n}" for n in RESULTS["run"]) if name == "link" else ()
    return Case(
        what=f"--out {name!r}",
        words=typed("run", {"out": name, **({"overwrite": True} if name == "out" else {})}),
        expected=Expected.SAME,
        clean=clean,
        out=name,
        arrange=arrange,
        leaves=leaves,
    )


def full_disk(rng: Rng) -> Case:
    """A disk that is full, at once or after so many bytes: no temporary and no half file stays."""
    command = _one(rng, ["run", "compare", "tune"])
    size = int(_one(rng, [0, 1, 100, 500, 1500, 3000, 20000]))
    options: dict[str, Any] = {"compare": {"algorithm": ["dualfl"]}, "tune": {"grid": ["rho=0,0.1"]}}.get(command, {})
    return Case(
        what=f"{command} on a disk with room for files of {size} bytes",
        words=typed(command, options),
        naming=("file", "out"),
        file_size=size,
        expected=Expected.EITHER,
    )


def screen(rng: Rng) -> Case:
    """A standard output that takes nothing, or not every letter."""
    clean = Case(what="clean", words=typed("compare", {"algorithm": ["é@dualfl"]}))
    if rng.random() < 0.6:
        encoding = _one(rng, ["ascii", "latin-1", "cp1252", "utf-16", "ascii:replace"])
        return Case(
            what=f"output in {encoding}",
            words=typed("compare", {"algorithm": ["é@dualfl"]}),
            expected=Expected.SAME,
            clean=clean,
            environment={"PYTHONIOENCODING": encoding},
        )
    return Case(
        what="output on a full device",
        words=typed("run", {}),
        expected=Expected.EITHER,
        naming=("file", "output"),
        file_size=2**30,
        environment={"FUZZ_OUT": "/dev/full"},
    )


FAMILIES: tuple[Callable[[Rng], Case], ...] = (
    data_path,
    data_path,
    good_name,
    data_home,
    damaged_home,
    out,
    out,
    good_out,
    full_disk,
    screen,
)


def _nothing(folder: Path) -> None:
    pass


def _rows(name: str, folder: Path) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(LINES)


def _locked(name: str, folder: Path) -> None:
    if name.endswith(".svm"):
        _rows(name, folder)
    else:
        _rows(f"{name}/rows.svm", folder)
    (folder / name).chmod(0)


def _read_only(name: str, folder: Path) -> None:
    (folder / name).mkdir()
    (folder / name).chmod(0o555)


def _folders(command: str, folder: Path) -> None:
    names = {"run": ["trace.csv"], "compare": ["compare.json"], "tune": ["tune.csv"]}[command]
    for name in names:
        (folder / "out" / name).mkdir(parents=True)


def _earlier(command: str, folder: Path) -> None:
    name = {"run": "trace.csv", "compare": "compare.png", "tune": "tune.json"}[command]
    (folder / "out").mkdir()
    (folder / "out" / name).write_text("earlier")


def _one(rng: Rng, of: list[Any]) -> Any:
    return of[int(rng.integers(len(of)))]
