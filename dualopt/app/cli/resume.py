"""What a command finds in its folder, and what it keeps there while it computes, so that it can be continued.

While ``dualopt run`` computes, the folder of its results holds ``run.checkpoint``: ``session.json`` (the command, a
hash of the data, what is finished), a journal for each method that was begun (:mod:`dualopt.engine.checkpoint`), and
a trace for each that is finished. It is removed when the results are written.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dualopt.app.cli import output
from dualopt.app.cli.earlier import INSTEAD, other_data, read_record, require_same_options
from dualopt.arrays._checks import require
from dualopt.arrays._files import locked, remove_leftovers
from dualopt.engine.checkpoint import Checkpoint
from dualopt.engine.journal import VERSION
from dualopt.problem.data._files import is_file
from dualopt.runs._data_hash import data_hash
from dualopt.runs._sources import sources
from dualopt.runs.trace import Trace

__all__ = ["Archive", "KeepOptions", "Results", "repeated"]

FREE = ("data_home", "out", "threads")
"""Options without effect on what is computed (``threads`` on how it is rounded)."""
MOVED = ("data", "data_home", "out", "engine", "checkpoint_every", "resume", "overwrite", "keep_stale", "from_record")
"""Options that may be given when all others come from a record."""


@dataclass(frozen=True, kw_only=True)
class KeepOptions:
    """What is kept while it lasts, and what happens to earlier results.

    Parameters
    ----------
    checkpoint_every : float
        Keep the whole federation every so many seconds, and when Ctrl-C or SIGTERM ends the command (0: then only).
    resume : bool
        Continue what was interrupted in the folder, to the same digits; begin if nothing was.
    overwrite : bool
        Replace what the folder holds of another command.
    keep_stale : bool
        With resume: keep what other code has computed, and say so.
    from_record : Path, optional
        Repeat the command of this run.json or compare.json, on data that must have the same hash.
    """

    checkpoint_every: float = 60.0
    resume: bool = False
    overwrite: bool = False
    keep_stale: bool = False
    from_record: Path | None = field(default=None, metadata={"option": "--from"})


@dataclass(frozen=True, kw_only=True)
class Results:
    """The folder of a command.

    Parameters
    ----------
    command : str
        ``run`` or ``compare``: the record of its results is ``run.json``.
    folder : Path
        The folder.
    options : dict
        All options that results depend on, as they were typed.
    keep : KeepOptions
        What to do about earlier results.
    files : sequence of str
        The files that the command will write.
    """

    command: str
    folder: Path
    options: Mapping[str, Any]
    keep: KeepOptions
    files: Sequence[str]

    def are_complete(self) -> bool:
        """Refuse to overwrite results of other options; tell whether those of ``--resume`` are there already.

        Raises
        ------
        ValueError
            If the folder holds something that must not be lost; the sentence names the file and the options.
        """
        keep = self.keep
        require(not (keep.resume and keep.overwrite), "resume must not be given with overwrite, which starts over")
        require(keep.checkpoint_every >= 0, "checkpoint_every must be at least 0", keep.checkpoint_every)
        if keep.overwrite:
            return False
        session = self._session()
        if session is not None and self._holds_something():
            if not keep.resume:
                raise ValueError(
                    f"out {str(self.folder)!r} holds an unfinished dualopt {self.command}: "
                    f"--resume continues it, --overwrite starts over."
                )
            self._require_same(session["options"], session["command"], self.store / "session.json", but=("rounds",))
            return False
        record = self._record()
        if record is None:
            return False
        self._require_same(record["options"], record["command"], self.record)
        whole = all((self.folder / file).exists() for file in record.get("files", self.files))
        return keep.resume and record.get("complete", True) and whole

    def earlier(self, name: str) -> Any:
        """Return what is kept under a name of the command that is continued, or in the record that is repeated."""
        session = self._session() if self.keep.resume else None
        if session is None and self.keep.from_record is not None:
            session = read_record(self.keep.from_record, "give a record that dualopt has written")
        return (session or {}).get(name)

    @contextmanager
    def opened(self, problem: Any, parts: Iterable[Any], plug_ins: Mapping[str, Any]) -> Iterator[Archive]:
        """Hold the folder, which no other command can use meanwhile, and refuse results of other data.

        Parameters
        ----------
        problem : Problem
            The problem, built.
        parts : iterable
            Methods and others whose code counts.
        plug_ins : dict
            Of each plug-in the file and its hash.
        """
        with locked(self.folder, self.command, wait=False):
            self.are_complete()  # again: another command may have ended meanwhile
            data, code = data_hash(problem), sources(parts)
            self._require_same_data(data, code)
            session = self._session() if self.keep.resume else None
            if session is None:
                shutil.rmtree(self.store, ignore_errors=True)
                if self.keep.resume:
                    _say(f"nothing is there to be resumed in {str(self.folder)!r}: begun at round 0.")
            self.store.mkdir(exist_ok=True)
            remove_leftovers(self.store)
            if session is not None and session["sources"] != code and self._holds_something():
                if not self.keep.keep_stale:
                    there = session.get("plug_ins", {})
                    changed = [f"{name} has changed" for name, own in plug_ins.items() if own != there.get(name, own)]
                    which = f" ({', '.join(changed)})" if changed else ""
                    raise ValueError(
                        f"out {str(self.folder)!r} holds an unfinished dualopt {self.command} of other code{which}, "
                        "which would not end with the digits of an unbroken one: --overwrite starts over, "
                        "--keep-stale continues it."
                    )
                _say("part of this was computed by other code (--keep-stale).")
            kept = Archive(results=self, data=data, code=code, session=session or {"plug_ins": dict(plug_ins)})
            try:
                kept.save()
                yield kept
            finally:
                if not self._holds_something():  # nothing that would be lost
                    kept.clear()

    @property
    def record(self) -> Path:
        """The file that describes results."""
        return self.folder / f"{self.command}.json"

    @property
    def store(self) -> Path:
        """The folder of what is kept while it lasts."""
        return self.folder / f"{self.command}.checkpoint"

    def plain_options(self) -> dict[str, Any]:
        """Return the options as JSON has them."""
        found = json.loads(json.dumps(self.options, default=str))
        return {name: value for name, value in found.items() if name not in FREE}

    def _holds_something(self) -> bool:
        """Tell whether something of the command was computed and kept."""
        return any(path.suffix in (".journal", ".npz") for path in self.store.glob("*"))

    def _record(self) -> dict[str, Any] | None:
        """Return the record of earlier results, None if there are none."""
        if not is_file(self.record):
            for file in self.files:
                if is_file(self.folder / file):
                    raise ValueError(f"out {str(self.folder)!r} holds {file!r} of something else: {INSTEAD}.")
            return None
        return read_record(self.record)

    def _session(self) -> dict[str, Any] | None:
        path = self.store / "session.json"
        if not is_file(path):
            return None
        found = read_record(path, "--overwrite starts over", "sources", "data")
        if found.get("version") != VERSION:
            raise ValueError(f"file {str(path)!r} is of another version of dualopt: --overwrite starts over.")
        return found

    def _require_same(self, there: Mapping[str, Any], command: str, path: Path, but: Sequence[str] = ()) -> None:
        here = self.plain_options()
        require(
            command == self.command, f"out {str(self.folder)!r} holds {path.name!r} of dualopt {command}: {INSTEAD}"
        )
        require_same_options(path, there, here, but=(*FREE, *but))

    def _require_same_data(self, data: str, code: str) -> None:
        if self.keep.from_record is not None:
            record = read_record(self.keep.from_record, "give a record that dualopt has written")
            there = record.get("problem", {}).get("sha256")
            if there is None:
                _say(f"{str(self.keep.from_record)!r} has no hash of its data: they may be others.")
            elif there != data:
                raise ValueError(
                    f"from {str(self.keep.from_record)!r} has other data: their hash is {there[:12]}... there and "
                    f"{data[:12]}... here."
                )
            if record.get("sources", code) != code:
                _say(f"the code has changed since {str(self.keep.from_record)!r} was written: digits may differ.")
        if self.keep.overwrite:
            return
        session, record = self._session(), read_record(self.record) if is_file(self.record) else None
        held = session["data"] if session is not None else (record or {}).get("problem", {}).get("sha256", data)
        if held != data:
            raise other_data(self.folder, held, data)


@dataclass(frozen=True, kw_only=True)
class Archive:
    """What is kept of a command while it lasts."""

    results: Results
    data: str  # hashes of the data and of the code
    code: str
    session: dict[str, Any]

    def reference(self, compute: Callable[[], tuple[float, float]]) -> tuple[float, float]:
        """Return ``E*`` and how far it may be from that, computed once."""
        if "reference" not in self.session:
            self.session["reference"] = [number.hex() for number in compute()]
            self.save()
        energy, gap = map(float.fromhex, self.session["reference"])
        return energy, gap

    def note(self, name: str, value: Any) -> None:
        """Keep something that a continued command must not choose anew."""
        self.session[name] = value
        self.save()

    def checkpoint(self, name: str) -> Checkpoint:
        """Return where the run of a method is kept."""
        keep = self.results.keep
        return Checkpoint(
            self._journal(name),
            seconds=keep.checkpoint_every,
            resume=keep.resume,
            keep_stale=keep.keep_stale,
        )

    def finished(self, name: str) -> Trace | None:
        """Return the run of a method that was finished before the command was interrupted."""
        path = self.results.store / f"{name}.finished.npz"
        return Trace.from_npz(path) if name in self.session.get("finished", ()) and path.exists() else None

    def finish(self, name: str, trace: Trace) -> None:
        """Keep a run that is finished."""
        trace.to_npz(self.results.store / f"{name}.finished.npz")
        self.session["finished"] = [*self.session.get("finished", ()), name]
        self.save()
        self._journal(name).unlink(missing_ok=True)

    def _journal(self, name: str) -> Path:
        return self.results.store / f"{name}.journal"

    def save(self) -> None:
        """Write the description of what is kept."""
        described = {
            "version": VERSION,
            "command": self.results.command,
            "options": self.results.plain_options(),
            "data": self.data,
            "sources": self.session.get("sources", self.code),
        }
        self.session.update(described)
        output.write_json(self.results.store / "session.json", self.session)

    def clear(self) -> None:
        """Remove all of it: the results are written."""
        (self.results.store / "session.json").unlink(missing_ok=True)
        shutil.rmtree(self.results.store, ignore_errors=True)

    def hint(self) -> None:
        """Say how to go on."""
        _say(f"--resume continues what is kept in {str(self.results.store)!r}.")


def repeated(command: str, values: Mapping[str, Any], given: Iterable[str]) -> dict[str, Any]:
    """Return the options of a record in place of those that were not typed.

    Parameters
    ----------
    command : str
        The command that is to be repeated.
    values : dict
        All options of the command by name; ``from_record`` names the file.
    given : iterable of str
        Those that the user typed.

    Raises
    ------
    ValueError
        If the file is no record of the command, or an option is typed that the record has.
    """
    path = values["from_record"]
    record = read_record(path, "give a record that dualopt has written")
    require(record["command"] == command, f"from {str(path)!r} is a record of dualopt {record['command']}: use that")
    for name in given:
        typed = name.replace("_", "-")
        require(
            name in MOVED, f"{name} must not be given with --from, which repeats {str(path)!r}: leave --{typed} out"
        )
    for name in record["options"]:
        require(name in values, f"from {str(path)!r} has the option {name}, which this version does not know")
    own = {name: value for name, value in record["options"].items() if name not in given and name != "out"}
    if own.get("data_home") is not None:
        own["data_home"] = Path(own["data_home"])
    return {**values, **own}


def _say(sentence: str) -> None:
    print(f"dualopt: {sentence}", file=sys.stderr)
