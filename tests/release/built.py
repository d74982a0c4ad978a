"""Wheel and source distribution, built from what git has committed, and what must and must not be in them."""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PACKAGES = {"dualopt": "dualopt", "theory": "dualopt_programs/theory", "figures": "dualopt_programs/figures"}
WHEEL = ("dualopt/*", "dualopt_programs/theory/*", "dualopt_programs/figures/*", "dualopt-*.dist-info/*")
SOURCES = (
    *("dualopt/*", "theory/*", "figures/*"),
    *("pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff", "PKG-INFO", ".gitignore"),
)
NEVER = ("*.pyc", "*__pycache__*", "*.png", "*.ipynb", "*/conftest.pyc", "*.egg-info*")
METADATA = (
    "License-Expression: MIT",
    "License-File: LICENSE",
    "Requires-Python: >=3.11",
    "Classifier: Typing :: Typed",
)
ENTRY_POINT = "dualopt = dualopt.app.cli:main"
CITATION = "CITATION.cff"


class Built(NamedTuple):
    """What was built, and what is wrong with it."""

    tree: Path
    wheel: Path
    sources: Path
    complaints: tuple[str, ...]


def uv(*words: str | Path, cwd: Path | None = None) -> None:
    """Run ``uv``; what it says is shown if it fails."""
    program = shutil.which("uv")
    if program is None:
        raise SystemExit("release: uv is missing: pip install uv.")
    subprocess.run([program, *map(str, words)], check=True, cwd=cwd)


def build(folder: Path) -> Built:
    """Build wheel and source distribution by ``python -m build`` in a folder, and look at them."""
    tree, dist, tools = folder / "tree", folder / "dist", folder / "tools"
    for old in (tree, dist):
        shutil.rmtree(old, ignore_errors=True)
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(tree, filter="data")
    uv("venv", "--quiet", "--clear", "--python", sys.executable, tools)
    uv("pip", "install", "--quiet", "--python", tools / "bin" / "python", "build", "twine", "cffconvert")
    run = [tools / "bin" / "python", "-m", "build"]
    subprocess.run([*run, "-o", dist, tree], check=True, capture_output=True)  # the wheel is that of the sources
    subprocess.run([*run, "--wheel", "-o", dist / "of the tree", tree], check=True, capture_output=True)
    (wheel,), (sources,), (other,) = dist.glob("*.whl"), dist.glob("*.tar.gz"), dist.glob("*/*.whl")
    found = [*_wheel(tree, wheel), *_sources(tree, sources)]
    if wheel.read_bytes() != other.read_bytes():
        found.append("the wheel of the source distribution is not that of the tree")
    for words in (("twine", "check", "--strict", wheel, sources), ("cffconvert", "--validate", "-i", tree / CITATION)):
        done = subprocess.run([tools / "bin" / words[0], *words[1:]], capture_output=True, text=True)
        if done.returncode:
            found.append(f"{words[0]}: {(done.stdout + done.stderr).strip()}")
    for path in (wheel, sources):
        print(f"{path.name}: {path.stat().st_size / 1e6:.2f} MB", flush=True)
    return Built(tree, wheel, sources, tuple(found))


def files_of(tree: Path) -> Iterator[tuple[str, Path]]:
    """Yield the files of the three packages of a tree: the package, and the path in it."""
    for package in PACKAGES:
        for path in sorted((tree / package).rglob("*")):
            if path.is_file():
                yield package, path.relative_to(tree / package)


def strangers(names: Iterable[str], known: Iterable[str]) -> list[str]:
    """Return the names that fit none of the patterns, and those that nothing may have.

    >>> strangers(["dualopt/run.py", "theory/run.py", "dualopt/a.pyc"], ["dualopt/*"])
    ['theory/run.py', 'dualopt/a.pyc']
    """
    known = list(known)
    return [n for n in names if not any(fnmatch(n, p) for p in known) or any(fnmatch(n, p) for p in NEVER)]


def _wheel(tree: Path, wheel: Path) -> Iterator[str]:
    with zipfile.ZipFile(wheel) as file:
        names = set(file.namelist())
        texts = {n.rpartition("/")[2]: file.read(n).decode() for n in names if ".dist-info/" in n}
    wanted = {f"{PACKAGES[package]}/{path.as_posix()}" for package, path in files_of(tree)}
    yield from (f"the wheel lacks {name}" for name in sorted(wanted - names))
    yield from (f"the wheel has {name}" for name in strangers(sorted(names), WHEEL))
    yield from (f"the metadata lack {line!r}" for line in METADATA if line not in texts["METADATA"].splitlines())
    if ENTRY_POINT not in texts["entry_points.txt"] or "LICENSE" not in texts:
        yield "the wheel lacks its command or its licence"
    version = re.search(r"^version: (.*)$", (tree / CITATION).read_text(), re.MULTILINE)
    if version is None or f"Version: {version[1]}" not in texts["METADATA"].splitlines():
        yield f"{CITATION} is about another version"


def _sources(tree: Path, sources: Path) -> Iterator[str]:
    with tarfile.open(sources) as file:
        names = {name.partition("/")[2] for name in file.getnames()}
    wanted = {f"{package}/{path.as_posix()}" for package, path in files_of(tree)} | set(SOURCES[3:])
    yield from (f"the source distribution lacks {name}" for name in sorted(wanted - names))
    yield from (f"the source distribution has {name}" for name in strangers(sorted(names), SOURCES))
