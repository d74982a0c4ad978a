"""What a run measured: one row per round, with everything needed to repeat it."""

from __future__ import annotations

import csv
import json
import math
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from html import escape
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import IO, Any

import numpy as np

from dualopt.arrays._files import write_atomically
from dualopt.objectives._compiled import numba_version

__all__ = ["MEASURING", "SENT", "SPENT", "STATUSES", "Trace", "shortest", "versions", "write_atomically"]

DAMAGED = (ValueError, LookupError, TypeError, RuntimeError, EOFError, zipfile.BadZipFile, zlib.error)
SENT = ("floats_up", "floats_down", "bits_up", "bits_down")
MEASURING = ("bits_measuring_up", "bits_measuring_down")
SPENT = ("communications", *SENT, *MEASURING, "gradients", "seconds")
"""Columns that add up over the rounds."""
STATUSES = ("converged", "max_rounds", "diverged", "stalled", "stopped", "contradicted")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Trace:
    """The record of one run.

    Attributes
    ----------
    columns : dict of str to array
        One entry per row: ``round`` (0 is the start), ``communications`` (rounds so far in which something was sent),
        ``floats_up`` and ``floats_down`` (numbers sent so far by all clients and to all clients, whatever their width),
        ``bits_up`` and ``bits_down`` (the bits of all that), ``bits_measuring_up`` and ``bits_measuring_down`` (those
        of measuring and certifying), ``gradients`` (local gradients so far, mean over clients),
        ``seconds`` (so far, of the algorithm alone: measuring is not timed), then what was measured (``energy``,
        ``certificate``, ``error``...).
    status : str
        ``converged`` (the stopping rule was met), ``max_rounds``, ``diverged`` (:mod:`dualopt.runs.divergence`),
        ``stalled`` (the model no longer moves at machine precision), ``stopped`` (by the callback) or ``contradicted``
        (the last certificate is below the error that the reference shows, so that one of both is wrong).
    theta : array
        The final model; of a run that diverged, the one of the least energy that was measured.
    parameters : dict
        What was run, in words and numbers (JSON-compatible).

    Raises
    ------
    ValueError
        If the columns differ in length or the status is unknown.

    Examples
    --------
    >>> t = Trace(columns={"round": [0, 1], "energy": [1.0, 0.5]}, status="max_rounds", theta=np.zeros(2))
    >>> len(t), float(t["energy"][-1]), t.last["round"]
    (2, 0.5, 1.0)
    >>> t
    <Trace of a run: 1 rounds, max_rounds; energy 0.5>
    """

    columns: Mapping[str, Any]
    status: str
    theta: Any
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.status not in STATUSES:
            raise ValueError(f"status must be one of {', '.join(STATUSES)}; not {self.status!r}.")
        columns = {name: np.asarray(values, dtype=float) for name, values in self.columns.items()}
        if len({column.shape for column in columns.values()}) != 1:
            raise ValueError("columns must all have the same length.")
        object.__setattr__(self, "columns", columns)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def __getitem__(self, name: str) -> np.ndarray:
        return self.columns[name]

    def __repr__(self) -> str:
        return f"<Trace of {self._title()}; {', '.join(f'{name} {value}' for name, value in self._summary().items())}>"

    def _repr_html_(self) -> str:
        """For notebooks: what was run, and the last row."""
        rows = {"status": self.status, **self._summary()}
        cells = "".join(f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in rows.items())
        return f"<table><caption>{escape(self._title())}</caption>{cells}</table>"

    def _title(self) -> str:
        rounds = self.last.get("round", len(self) - 1)
        return f"{self.parameters.get('algorithm', 'a run')}: {rounds:.0f} rounds, {self.status}"

    def _summary(self) -> dict[str, str]:
        """Return what the last row says, without what nobody measured."""
        shown = {name: value for name, value in self.last.items() if name != "round" and not math.isnan(value)}
        return {name: f"{value:.6g}" for name, value in shown.items()}

    @property
    def last(self) -> dict[str, float]:
        """The final row."""
        return {name: float(column[-1]) for name, column in self.columns.items()}

    def first_below(self, name: str, level: float) -> int | None:
        """Return the round at which column ``name`` is first at most ``level``, or None."""
        hits = np.flatnonzero(self.columns[name] <= level)
        return int(self.columns["round"][hits[0]]) if len(hits) else None

    def to_csv(self, path: str | Path) -> None:
        """Write the table to ``path``; status and parameters go into ``# key: json`` lines above it."""

        def write(file: IO[Any]) -> None:
            for key, value in {"status": self.status, **self.parameters}.items():
                file.write(f"# {key}: {json.dumps(value)}\n")
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(self.columns)
            for row in zip(*self.columns.values(), strict=True):
                writer.writerow([shortest(x) for x in row])

        write_atomically(path, write)

    @classmethod
    def from_csv(cls, path: str | Path) -> Trace:
        """Read what :meth:`to_csv` wrote; the model is not in it (``theta`` is None).

        Raises
        ------
        ValueError
            If the file is none of these.
        """
        head: dict[str, Any] = {}
        rows: list[list[str]] = []
        try:
            with Path(path).open(newline="") as file:
                for line in file:
                    if line.startswith("# "):
                        key, _, value = line[2:].partition(": ")
                        head[key] = json.loads(value)
                    else:
                        rows.append(next(csv.reader([line])))
            columns = {name: [float(row[i]) for row in rows[1:]] for i, name in enumerate(rows[0])}
            return cls(columns=columns, status=head.pop("status"), theta=None, parameters=head)
        except (ValueError, LookupError, csv.Error, RecursionError, StopIteration) as error:
            raise ValueError(f"path {str(path)!r} is not a trace that to_csv wrote, or it is damaged.") from error

    def to_npz(self, path: str | Path) -> None:
        """Write everything, the model included, to a NumPy archive."""
        head = json.dumps({"status": self.status, "parameters": dict(self.parameters)})
        arrays = {f"column_{name}": column for name, column in self.columns.items()}
        if (classes := self.parameters.get("classes")) is not None:
            known = np.array(classes)  # also in the head, which is what is read
            arrays["classes"] = known.astype(str) if known.dtype.kind == "O" else known
        write_atomically(path, lambda f: np.savez(f, head=np.array(head), theta=_host(self.theta), **arrays), "wb")

    @classmethod
    def from_npz(cls, path: str | Path) -> Trace:
        """Read what :meth:`to_npz` wrote; no pickled object is ever loaded.

        Raises
        ------
        ValueError
            If the file is none of these.
        """
        try:
            with zipfile.ZipFile(path):  # refuses a damaged archive, of which NumPy would leave the file open
                pass
            with np.load(path, allow_pickle=False) as archive:
                head = json.loads(str(archive["head"]))
                columns = {k.removeprefix("column_"): archive[k] for k in archive.files if k.startswith("column_")}
                theta = archive["theta"]
            return cls(columns=columns, theta=theta, **head)
        except DAMAGED as error:
            raise ValueError(f"path {str(path)!r} is not a trace that to_npz wrote, or it is damaged.") from error


def shortest(x: float) -> str:
    """Return a number in the fewest digits from which it is read back.

    >>> shortest(3.0), shortest(0.1)
    ('3', '0.1')
    """
    return str(int(x)) if math.isfinite(x) and x == int(x) and abs(x) < 1e15 else repr(float(x))


def _host(x: Any) -> np.ndarray:
    from dualopt.arrays.xp import to_numpy

    return np.empty(0) if x is None else to_numpy(x)


def versions() -> Mapping[str, str]:
    """Return the versions of what a result depends on; of Numba where it has been used."""
    numba = numba_version()
    return _installed() if numba is None else {**_installed(), "numba": numba}


@cache
def _installed() -> Mapping[str, str]:
    found = {}
    for name in ("dualopt", "numpy", "scipy", "array-api-compat"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
