"""The verdict on a case: what is wrong with how it ended."""

from __future__ import annotations

import csv
import json
import math
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tests.fuzz_inputs._case import RESULTS, Case, Expected
from tests.fuzz_inputs._child import MOST_SECONDS, Ending

__all__ = ["Numbers", "complaints", "numbers"]

Numbers = dict[str, Any]

MOST_GROWTH = 700 * 2**20
LONGEST = 3000  # characters of a refusal, which may list all names
ALIEN = re.compile(  # sentences of Python and its libraries, which name no argument of ours
    r"Exceeds the limit|invalid literal|could not convert|cannot convert|NoneType|index out of range|not supported "
    r"between|\[Errno|object of type|has no attribute|unexpected keyword|Input should be|codec can't|Expecting value|"
    r"unpack|not subscriptable|not iterable|unhashable|ufunc|dtype\('|numpy\.|must be str|"
    r"too long to convert|required argument|positional argument|math range|null (byte|character)|Traceback|"
    r"math domain|out of bounds|broadcast|setting an array|out of range for"
)
# The argument that is wrong may be called differently where it is typed and where it is checked.
UNTIMED = ("seconds",)


def complaints(case: Case, ending: Ending, folder: Path, clean: Numbers | None) -> Iterator[str]:
    """Yield what is wrong; nothing if all is well.

    Parameters
    ----------
    case : Case
        What was run.
    ending : Ending
        How it ended.
    folder : Path
        Where it ran.
    clean : dict, optional
        The numbers of the clean case.
    """
    if ending.seconds >= MOST_SECONDS:
        yield f"ran for more than {MOST_SECONDS:.0f} seconds"
        return
    if "Traceback (most recent call last)" in ending.err:
        yield "traceback"
        return
    if ending.code is None:
        yield "killed by a signal"
        return
    if ending.bytes > MOST_GROWTH:
        yield f"took {ending.bytes / 2**20:.0f} MiB"
    if ending.code == 2:
        yield from _refusal(case, ending)
    elif ending.code == 0:
        yield from _acceptance(case, ending, folder, clean)
    else:
        yield f"exit code {ending.code}"


def numbers(case: Case, ending: Ending, folder: Path) -> Numbers:
    """Return the numbers of a result: what was recorded, but the times."""
    if case.call is not None:
        return {"value": ending.value}
    if case.program != "dualopt":
        return {"out": ending.out}
    out = folder / "here" / case.out
    command = case.words[0]
    if command == "run":
        return _table(out / "trace.csv") | {"theta": _theta(out / "trace.npz")}
    if command == "compare":
        traces = sorted(path for path in out.glob("*.csv") if path.name != "compare.csv")  # which has them all
        return {str(i): _table(path) for i, path in enumerate(traces)}  # labels are names of files
    if command == "tune":
        rows = json.loads((out / "tune.json").read_text())["points"]
        return {"points": [{name: row[name] for name in row if name not in UNTIMED} for row in rows]}
    return {"out": ending.out}


def _refusal(case: Case, ending: Ending) -> Iterator[str]:
    name = {"python": "dualopt"}.get(case.program, case.program)
    if not re.fullmatch(rf"{name}: [^\n]*[.?]\n", ending.err) or len(ending.err) > LONGEST:
        yield "refused, but not in one sentence"
        return
    if case.program == "dualopt" and ending.out:
        yield "printed something before it refused"
    sentence = ending.err.partition(": ")[2].replace("-", "_")
    if case.naming and not any(name.replace("-", "_") in sentence for name in case.naming):
        yield f"the sentence names none of {', '.join(case.naming)}"
    if found := ALIEN.search(_without_quotations(ending.err)):
        yield f"the sentence is not ours: {found[0]!r}"
    if case.expected in (Expected.SAME, Expected.HELP):
        yield "refused what is meant to be taken"
    if case.file_size is None:
        if changed := sorted(p for p in {*ending.before, *ending.after} if ending.before.get(p) != ending.after.get(p)):
            yield f"refused, but left {', '.join(map(repr, changed[:3]))}"
    else:
        yield from _strangers(case, ending)


def _acceptance(case: Case, ending: Ending, folder: Path, clean: Numbers | None) -> Iterator[str]:
    if case.expected == Expected.REFUSED:
        yield "silent: taken, though it must be refused"
        return
    if case.expected == Expected.HELP:
        if not ending.out.strip() or ending.err:
            yield "no help"
        return
    if ending.err and case.program == "dualopt":
        yield f"warned: {ending.err.strip().splitlines()[0][:200]}"
    yield from _strangers(case, ending)
    found = numbers(case, ending, folder)
    if clean is not None and (name := _difference(found, clean)):
        yield f"silent: {name} is not that of the clean case"
    if clean is None and case.expected == Expected.EITHER and case.program == "dualopt" and case.words[0] == "run":
        yield from _unsound(found)


def _strangers(case: Case, ending: Ending) -> Iterator[str]:
    """Yield files that do not belong there, such as temporary ones."""
    new = {path for path in ending.after if ending.before.get(path) != ending.after[path]}
    if case.call is not None:
        allowed: set[str] = set()
    else:
        out = Path(case.out)
        folders = {str(part) for part in [out, *out.parents] if str(part) != "."}
        allowed = {str(out / name) for name in RESULTS.get(case.words[0] if case.words else "", ())} | folders
        if case.words and case.words[0] == "compare":
            ends = (".csv", ".model.json", ".model.npz")
            allowed |= {path for path in new if path.endswith(ends) and not Path(path).name.startswith(".")}
    allowed |= set(case.leaves)
    if case.program != "dualopt":
        allowed |= {path for path in new if not Path(path).name.startswith(".")}
    if strange := sorted(new - allowed):
        yield f"leaves {', '.join(map(repr, strange[:3]))}"


def _unsound(found: Numbers) -> Iterator[str]:
    """Yield what no sound run shows: energies that are no numbers, bounds that cannot be."""
    status = found["# status"]
    energies = np.array(found["energy"])
    if status != "diverged" and not np.isfinite(energies).all():
        yield f"silent: an energy is not finite, but the status is {status}"
    gaps = np.array(found["certificate"])
    known = np.isfinite(gaps) & np.isfinite(energies)
    if known.any():
        lowest = np.min(energies[np.isfinite(energies)])
        slack = 1e-12 * np.abs(energies[known]) + 1e-300
        if (gaps[known] < 0).any() or (energies[known] - lowest > gaps[known] + slack).any():
            yield "silent: a certificate is below the true gap"


def _difference(found: Any, clean: Any) -> str:
    """Return the name of what differs, "" if all is equal; NaN equals NaN."""
    if isinstance(found, dict) and isinstance(clean, dict):
        for name in {*found, *clean}:
            if name not in found or name not in clean or _difference(found[name], clean[name]):
                return str(name)
        return ""
    if isinstance(found, float) and isinstance(clean, float) and math.isnan(found) and math.isnan(clean):
        return ""
    if isinstance(found, list | tuple) and isinstance(clean, list | tuple):
        different = len(found) != len(clean) or any(_difference(a, b) for a, b in zip(found, clean, strict=True))
        return "a list" if different else ""
    if isinstance(found, np.ndarray) and isinstance(clean, np.ndarray):
        same = found.dtype == clean.dtype and found.shape == clean.shape and np.array_equal(found, clean, True)
        return "" if same else "an array"
    return "" if type(found) is type(clean) and found == clean else "a value"


def _table(path: Path) -> Numbers:
    """Return status and columns of a trace, read without the library that wrote it."""
    found: Numbers = {}
    with path.open(newline="") as file:
        lines = file.read().splitlines()
    head = [line for line in lines if line.startswith("# ")]
    found["# status"] = json.loads(next(line for line in head if line.startswith("# status: "))[10:])
    names, *rows = csv.reader(line for line in lines if not line.startswith("# "))
    for i, name in enumerate(names):
        if name not in UNTIMED:
            found[name] = [float(row[i]) for row in rows]
    return found


def _theta(path: Path) -> np.ndarray:
    with zipfile.ZipFile(path) as archive, archive.open("theta.npy") as file:
        return np.lib.format.read_array(file, allow_pickle=False)


def _without_quotations(sentence: str) -> str:
    """Leave out what the user typed, which a sentence quotes."""
    return re.sub(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"", "''", sentence)
