"""A deep check of bad input: odd files, options, file systems and arguments, each case in a process of its own.

Every case is drawn from its seed. What has to come of it is known beforehand: a refusal (one sentence that names the
argument, exit code 2, nothing written), the numbers of a clean case, or, at the ends of the arithmetic, either a
refusal or numbers that can be true. Damaged files are read by a second, plain reader, which says what they hold. A
process has 1.5 GB of memory and a minute; what it leaves behind is listed.

Run it with::

    python -m tests.fuzz_inputs --cases 1000 --seed 1

The families of cases take turns, so that a new family gives the numbers of all cases to others: ``--seed S --only N``
repeats a case with the same list of families, in whatever environment. Cases that need a package which is missing are
counted and left out.

It prints the cases that fail, each with the command that repeats it, and ends with exit code 1 if there are any.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from tests.fuzz_inputs import _calls, _files, _options, _systems
from tests.fuzz_inputs._case import Case
from tests.fuzz_inputs._child import Ending, execute
from tests.fuzz_inputs._judge import Numbers, complaints, numbers

__all__ = ["FAMILIES", "draw", "examine", "main"]

Family = Callable[[np.random.Generator], Case]

FAMILIES: tuple[Family, ...] = (*_options.FAMILIES, *_files.FAMILIES, *_systems.FAMILIES, *_calls.FAMILIES)


def draw(seed: int, number: int) -> Case:
    """Return a case; the families take turns."""
    return FAMILIES[number % len(FAMILIES)](np.random.default_rng([seed, number]))


def examine(case: Case) -> tuple[list[str], Ending]:
    """Run a case, and the clean one that it is compared with; return what is wrong, and how it ended."""
    clean = None if case.clean is None else _clean(case.clean)
    with _folder() as folder:
        ending = execute(case, folder)
        return list(complaints(case, ending, folder, clean)), ending


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz_inputs", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--cases", type=int, default=1000, help="number of cases")
    parser.add_argument("--seed", type=int, default=1, help="seed of all cases")
    parser.add_argument("--only", type=int, help="number of the one case to run, with what it prints")
    parser.add_argument("--kind", help="family of cases, such as libsvm")
    given = parser.parse_args(arguments)
    _load_programs()
    chosen = range(given.cases) if given.only is None else [given.only]
    started, counts, failed = time.monotonic(), Counter[str](), 0
    for number in chosen:
        family = FAMILIES[number % len(FAMILIES)].__name__
        if given.kind not in (None, family):
            continue
        case = draw(given.seed, number)
        if case.needs is not None and find_spec(case.needs) is None:
            counts[f"left out without {case.needs}"] += 1
            continue
        wrong, ending = examine(case)
        counts["refused" if ending.code == 2 else "taken" if ending.code == 0 else "else"] += 1
        for complaint in wrong:
            failed += 1
            last = (ending.err.strip().splitlines() or [""])[-1][:300]
            print(
                f"FAILED {family}: {case.what[:300]}: {complaint}\n    {last}\n    --seed {given.seed} --only {number}"
            )
            sys.stdout.flush()
        if given.only is not None:
            print(case.what, case.words, case.expected, ending.out, ending.err, sep="\n")
    minutes = (time.monotonic() - started) / 60
    print(f"{sum(counts.values())} cases ({dict(counts)}) in {minutes:.1f} minutes: {failed} complaints")
    return 1 if failed else 0


class _folder:
    """A temporary folder that is removed whatever the permissions in it."""

    def __enter__(self) -> Path:
        self.path = Path(tempfile.mkdtemp(prefix="fuzz-"))
        return self.path

    def __exit__(self, *_: object) -> None:
        for path in _folders_below(self.path):
            path.chmod(0o700)
        shutil.rmtree(self.path, ignore_errors=True)


def _folders_below(path: Path) -> Iterator[Path]:
    yield path
    for below in path.iterdir():
        if below.is_dir() and not below.is_symlink():
            yield from _folders_below(below)


def _clean(case: Case) -> Numbers:
    with _folder() as folder:
        ending = execute(case, folder)
        if ending.code != 0:
            raise AssertionError(f"the clean case fails: {case.words} {ending.err[-2000:]}")
        return numbers(case, ending, folder)


def _load_programs() -> None:
    """Import what cases need, once: each of them is a fork of this process."""
    import matplotlib.figure  # noqa: F401
    import sklearn.datasets  # noqa: F401

    import dualopt.app.cli.run
    import dualopt.app.cli.tune  # noqa: F401
    import figures._program  # noqa: F401
    import theory._program  # noqa: F401
