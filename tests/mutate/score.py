"""What is known about the mutants of each file: results of earlier runs, explanations, and the score."""

from __future__ import annotations

import difflib
import hashlib
import json
import textwrap
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.mutate.mapping import ROOT, UNJUDGED, Judges, mathematics
from tests.mutate.operators import Mutant

__all__ = [
    "EQUIVALENT",
    "SCORE",
    "Cache",
    "Score",
    "diff",
    "explained_files",
    "explanations",
    "lacking",
    "rows",
    "score",
    "toml",
    "update",
]

EQUIVALENT = ROOT / "tests/mutate/equivalent.toml"
SCORE = ROOT / "tests/mutate/SCORE.md"
CACHE = ROOT / ".mutants"

HEADER = """# Mutation score

Written by `python -m tests.mutate`, file by file: what the tests and claims that are mapped to a file
(`mapping.py`) notice of small wrong changes of it. *Equivalent* mutants are explained in `equivalent.toml`; the score
is the share of the others that was killed. `time` counts the killed ones that ran out of time. Where fewer mutants were
judged than there are, they were drawn with a fixed seed (`--sample`). A row is of the file, and of the tests, as they
were when it was judged.

"""
Key = tuple[str, str, str]


class Score(NamedTuple):
    """Counts of a file."""

    mutants: int
    judged: int
    killed: int
    time: int
    equivalent: int
    survivors: int

    @property
    def share(self) -> str:
        """The killed ones among those that are not equivalent."""
        rest = self.judged - self.equivalent
        return f"{100 * self.killed / rest:.1f} %" if rest else "-"


class Cache:
    """Results of a file in JSON lines, under the hash of the whole mutated source, with that of what judged it.

    A kill is kept until the file of the test that did it changes, a survivor until any file of its judges does.
    """

    def __init__(self, file: str, judges: Judges, folder: Path = CACHE) -> None:
        folder.mkdir(exist_ok=True)
        self.path = folder / (file.removesuffix(".py").replace("/", ".") + ".jsonl")
        self.judges = judges
        self.tests = {path: _digest((ROOT / path).read_text()) for path in judges.paths}
        claims = [p.read_text() for p in sorted((ROOT / "theory").rglob("*.py"))] if judges.claims else []
        self.all = _digest(repr([judges, sorted(self.tests.items()), _digest("".join(claims))]))
        self.results: dict[str, dict[str, Any]] = {}
        if self.path.exists():
            for line in self.path.read_text().splitlines():
                result = json.loads(line)
                self.results[result["mutant"]] = result

    def holds(self, mutant: Mutant) -> bool:
        """Whether the fate of a mutant is known."""
        result = self.results.get(_digest(mutant.source))
        return result is not None and result["judges"] == self._of_judge(result["killed_by"])

    def killed_by(self, mutant: Mutant) -> str | None:
        """Return what killed a mutant whose fate is known, None if it survived."""
        return self.results[_digest(mutant.source)]["killed_by"]

    def _of_judge(self, killed_by: str | None) -> str:
        """Return the hash on which a fate depends."""
        path = (killed_by or "").removeprefix("import of ").partition("::")[0]
        return self.tests.get(path, self.all)

    def put(self, mutant: Mutant, killed_by: str | None, seconds: float = 0.0) -> None:
        """Add a result."""
        entry = {
            "mutant": _digest(mutant.source),
            "judges": self._of_judge(killed_by),
            "killed_by": killed_by,
            "seconds": round(seconds, 2),
            "function": mutant.function,
            "becomes": mutant.becomes,
        }
        self.results[entry["mutant"]] = entry
        with self.path.open("a") as file:
            file.write(json.dumps(entry) + "\n")

    def kills(self) -> list[str]:
        """Return what killed mutants, once for each."""
        return [result["killed_by"] for result in self.results.values() if result["killed_by"] is not None]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def explanations(file: str, table: Path = EQUIVALENT) -> dict[Key, str]:
    """Return the equivalent mutants of a file, by their keys, with the reasons.

    Raises
    ------
    ValueError
        If a mutant is explained twice.
    """
    found: dict[Key, str] = {}
    for entry in tomllib.loads(table.read_text())["equivalent"]:
        if entry["file"] != file:
            continue
        for function, line, becomes in entry["mutants"]:
            key = function, line, becomes
            if key in found:
                raise ValueError(f"{table.name} explains twice what {function} becomes with {becomes!r}.")
            found[key] = entry["why"]
    return found


def explained_files(table: Path = EQUIVALENT) -> list[str]:
    """Return the files of which a mutant is explained."""
    return [entry["file"] for entry in tomllib.loads(table.read_text())["equivalent"]]


def score(file: str, results: Sequence[tuple[Mutant, str | None]], explained: Mapping[Key, str], mutants: int) -> Score:
    """Return the counts of a file that has so many mutants, of those that were judged.

    Raises
    ------
    ValueError
        If an explanation belongs to no mutant, or to one that is killed.
    """
    fates: dict[Key, list[str | None]] = {}
    for mutant, killed_by in results:
        fates.setdefault(mutant.key, []).append(killed_by)
    for key in explained:
        if key not in fates and len(results) < mutants:
            continue
        if key not in fates:
            raise ValueError(f"{EQUIVALENT.name} explains a mutant of {file} that there is not: {key}.")
        if (by := next((by for by in fates[key] if by is not None), None)) is not None:
            raise ValueError(f"{EQUIVALENT.name} calls a mutant of {file} equivalent that {by} kills: {key}.")
    killed = [killed_by for _, killed_by in results if killed_by is not None]
    equivalent = sum(killed_by is None and mutant.key in explained for mutant, killed_by in results)
    late = sum(by == "time" for by in killed)
    return Score(mutants, len(results), len(killed), late, equivalent, len(results) - len(killed) - equivalent)


def diff(file: str, source: str, mutant: Mutant) -> str:
    """Return a mutant as a unified diff."""
    before, after = (text.splitlines(keepends=True) for text in (source, mutant.source))
    return "".join(difflib.unified_diff(before, after, file, f"{file} ({mutant.operator})", n=1))


def toml(file: str, survivors: Iterable[Mutant]) -> str:
    """Return an entry for the table of equivalent mutants, whose reason is still to be written."""
    rows = "".join(f"    [{', '.join(_quoted(part) for part in mutant.key)}],\n" for mutant in survivors)
    return f'[[equivalent]]\nfile = "{file}"\nwhy = ""\nmutants = [\n{rows}]\n'


def _quoted(text: str) -> str:
    return f"'{text}'" if "'" not in text and "\n" not in text else json.dumps(text)


def rows(page: Path = SCORE) -> dict[str, Score]:
    """Return the counts of the files in the table that there still are."""
    cells = [line.strip("|").split("|") for line in page.read_text().splitlines()] if page.exists() else []
    found = {name.strip(" `"): of for name, *of in cells if name.strip().startswith("`")}
    return {file: Score._make(map(int, of[:-1])) for file, of in found.items() if (ROOT / file).exists()}


def _missing(known: Mapping[str, Score]) -> list[str]:
    return [file for file in mathematics() if file not in known and file not in UNJUDGED]


def lacking(page: Path = SCORE) -> list[str]:
    """Return the files of the mathematics that have no row in the table, and those whose rows have survivors."""
    known = rows(page)
    found = [f"{file}: no row" for file in _missing(known)]
    return found + [f"{file}: {of.survivors} survivors" for file, of in known.items() if of.survivors]


def update(scores: Mapping[str, Score], page: Path = SCORE) -> None:
    """Write the counts of some files to the table; the other rows remain."""
    known = dict(sorted({**rows(page), **scores}.items()))
    head = ["file", *Score._fields, "score"]
    total = Score._make(map(sum, zip(*known.values(), strict=True)))
    table = [head, ["---", *["---:"] * (len(head) - 1)]]
    table += [[f"`{file}`", *map(str, of), of.share] for file, of in known.items()]
    table.append(["all", *map(str, total), total.share])
    missing = _missing(known)
    told = [f"Without a row: {_listed(missing)}."] if missing else []
    for why in dict.fromkeys(UNJUDGED.values()):
        told.append(f"Not judged ({why}): {_listed(file for file in UNJUDGED if UNJUDGED[file] == why)}.")
    tail = "".join(f"\n{textwrap.fill(x, 120, break_long_words=False, break_on_hyphens=False)}\n" for x in told)
    page.write_text(HEADER + "\n".join("| " + " | ".join(row) + " |" for row in table) + "\n" + tail)


def _listed(files: Iterable[str]) -> str:
    return ", ".join(f"`{file}`" for file in files)
