"""The record of a search: ``tune.json``, from which it can be resumed, ``tune.csv``, its table, and its progress."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO, Any

from rich.console import Console

from dualopt.app.cli import output
from dualopt.app.cli.progress import make_progress
from dualopt.arrays._files import locked
from dualopt.problem.data._files import is_file
from dualopt.runs.trace import write_atomically
from dualopt.runs.tuning import Trial, pruned, winner

__all__ = ["Record", "load", "search_progress"]

Point = Mapping[str, str]
FRESH = "give another --out, or --fresh to start over"


@dataclass(frozen=True, kw_only=True)
class Record:
    """The points of a search, of which the first wins a tie, and the outcomes of those that were run, by number."""

    folder: Path
    search: Mapping[str, Any]  # what all points have in common
    points: Sequence[Point]
    known: Mapping[int, Trial]
    stale: bool = False  # whether other code has computed a part

    def names(self) -> list[str]:
        """Name the parameters that vary, or that some points alone have."""
        return list(dict.fromkeys(name for point in self.points for name in point))

    def begin(self, *, fresh: bool) -> Record:
        """Write the record before anything is computed, so that another search cannot take the folder; return it."""
        with locked(self.folder, "tune"):
            record = load(self.folder, self.search, self.points, fresh=fresh)
            record = replace(record, stale=self.stale)
            record._write(record.known)
        return record

    def save(self, outcomes: Mapping[int, Trial]) -> tuple[Record, Mapping[int, Trial]]:
        """Write both files, each whole whatever happens; return what they hold.

        Points that another process has written meanwhile, of the same search in the same folder, stay in them.
        """
        with locked(self.folder, "tune"):
            there = load(self.folder, self.search, self.points, fresh=False)
            together = pruned({**there.known, **outcomes})
            record = replace(there, stale=self.stale)
            record._write(together)
        return record, together

    def _write(self, outcomes: Mapping[int, Trial]) -> None:
        found = [{"parameters": self.points[n], **asdict(outcome)} for n, outcome in sorted(outcomes.items())]
        output.write_json(self.folder / "tune.json", {"command": "tune", "search": self.search, "points": found})
        write_atomically(self.folder / "tune.csv", lambda file: self._table(file, outcomes))

    def _table(self, file: IO[Any], outcomes: Mapping[int, Trial]) -> None:
        names = self.names()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*names, "status", self.search["metric"], "error", "seconds"])
        for n, outcome in sorted(outcomes.items()):
            values = [self.points[n].get(name, "") for name in names]
            writer.writerow([*values, outcome.status, f"{outcome.cost:.12g}", outcome.error, outcome.seconds])


def load(
    folder: Path, search: Mapping[str, Any], points: Sequence[Point], *, fresh: bool, keep_stale: bool = False
) -> Record:
    """Return the record of a search, with the outcomes that the folder holds.

    Points of earlier grids stay, behind those of the present one: runs that cost more than their best are stopped.

    Parameters
    ----------
    folder : Path
        Where the files are.
    search : dict
        What all points have in common; the search in the folder must have the same.
    points : sequence of dict
        The points of the present grid.
    fresh : bool
        Whether to leave out what the folder holds.
    keep_stale : bool, default False
        Whether to take what other code has computed; the record remains one of that code.

    Raises
    ------
    ValueError
        If the folder holds another search, or a file that is not a record.
    """
    search = json.loads(json.dumps(search, default=str))  # as it will be read again
    path = folder / "tune.json"
    if fresh or not is_file(path):
        return Record(folder=folder, search=search, points=points, known={})
    try:
        stored = json.loads(path.read_text())
        other = dict(stored["search"])
        found = [(dict(entry.pop("parameters")), _outcome(entry)) for entry in stored["points"]]
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
        raise ValueError(f"file {str(path)!r} is not the record of a search: {FRESH}.") from None
    stale = keep_stale and search.get("sources") != other.get("sources")
    if stale:
        search = {**search, "sources": other.get("sources")}
    for name in [*search, *other]:
        if search.get(name) != other.get(name):
            there, here = other.get(name), search.get(name)
            instead = f"{FRESH}, or --keep-stale to keep it" if name == "sources" else FRESH
            raise ValueError(
                f"out {str(folder)!r} holds another search ({name} is {there!r} there and {here!r} here): {instead}."
            )
    everything = [*points, *(point for point, _ in found if point not in points)]
    known = {everything.index(point): outcome for point, outcome in found}
    return Record(folder=folder, search=search, points=everything, known=pruned(known), stale=stale)


@contextmanager
def search_progress(
    console: Console, label: str, points: int, record: Record
) -> Iterator[Callable[[Mapping[int, Trial]], None]]:
    """Show how many points are done; yields the callback that saves them."""
    with make_progress(console, f"best {{task.fields[best]}} {record.search['metric']}") as progress:
        task = progress.add_task(label, total=points, best="none")

        def advance(outcomes: Mapping[int, Trial]) -> None:
            record.save(outcomes)
            best = winner(outcomes)
            cost = "none" if best is None else f"{outcomes[best].cost:.12g}"
            progress.update(task, advance=1, best=cost)

        yield advance


def _outcome(entry: Mapping[str, Any]) -> Trial:
    errors = tuple(math.nan if error is None else float(error) for error in entry["errors"])
    costs = tuple(map(float, entry["costs"]))
    if not costs or len(costs) != len(errors):
        raise ValueError
    status = str(entry["status"])
    return Trial(status=status, costs=costs, errors=errors, seconds=float(entry["seconds"]))
