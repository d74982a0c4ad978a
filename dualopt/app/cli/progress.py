"""Progress of long work: a bar on terminals, a line every few seconds in files and pipes."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, NamedTuple

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskID
from rich.text import Text

__all__ = ["RunProgress", "make_progress", "rounds_left", "run_progress"]

SECONDS = 10.0  # between two lines
WIDE = 120  # a line in a file, and a terminal on which there is room for a bar
BAR = 20
FEWEST = 8  # certified errors from which a rate is estimated
AGREE = 2.0  # largest ratio of two estimates of which one is shown


def make_progress(console: Console, *fields: str) -> Progress:
    """Return what shows a description, how much is done, some fields and the time, while its context lasts.

    On a terminal it is a bar that disappears at the end. Elsewhere lines go to the standard error, so that the results
    on the standard output stay what they are, and none is written before ten seconds have passed. Where a line is not
    wide enough, the last fields are left out; so is one that is empty.

    Parameters
    ----------
    console : Console
        The standard output.
    *fields : str
        Formats of rich's, such as ``"E {task.fields[energy]:.6g}"``.
    """
    if not console.is_terminal:
        return _Lines(_Line(fields, WIDE), disable=True)
    room = console.width - 1
    if console.width < WIDE:
        return Progress(_Line(fields, room), console=console, transient=True)
    return Progress(_Line(fields, room - BAR - 1), BarColumn(BAR), console=console, transient=True)


class _Line(ProgressColumn):
    """What is known of a task, in one line of a certain width."""

    max_refresh = 0.5

    def __init__(self, fields: Sequence[str], room: int) -> None:
        super().__init__()
        self.fields = fields
        self.room = room

    def render(self, task: Task) -> Text:
        """Return the line."""
        label = task.description
        if cell_len(label) > self.room // 3:
            label = f"{set_cell_size(label, max(1, self.room // 3 - 3))}..."
        done = f"{task.completed:.0f}" + ("" if task.total is None else f"/{task.total:.0f}")
        elapsed = f"{timedelta(seconds=int(task.finished_time or task.elapsed or 0.0))}"
        shown = [text for text in (field.format(task=task) for field in self.fields) if text]
        while shown and cell_len("  ".join([label, done, *shown, elapsed])) > self.room:
            shown.pop()
        return Text("  ".join(filter(None, [label, done, *shown, elapsed])), no_wrap=True)


class _Lines(Progress):
    """Writes a line now and then; nothing is drawn."""

    def __init__(self, *columns: ProgressColumn, **options: Any) -> None:
        super().__init__(*columns, console=Console(stderr=True, force_terminal=False, width=WIDE), **options)
        self._written = time.monotonic()

    def stop(self) -> None:
        """Write nothing: some versions of rich end with an empty line, although nothing is drawn."""

    def update(self, task_id: TaskID, **changes: Any) -> None:
        """Change the task, and write a line if the last one is old."""
        super().update(task_id, **changes)
        if time.monotonic() - self._written < SECONDS:
            return
        self._written = time.monotonic()
        task = self._tasks[task_id]
        lines = (column(task) for column in self.columns if isinstance(column, ProgressColumn))
        self.console.print(*lines, highlight=False, soft_wrap=True)


class Measured(NamedTuple):
    """A round after which the error was certified."""

    round: float
    error: float
    time: float  # in seconds, of a clock that only grows


def rounds_left(measured: Sequence[Measured], tol: float) -> float | None:
    r"""Return how many rounds a certified error will take to a tolerance, if it goes on as it did.

    With the errors :math:`e_n` of rounds :math:`n` and the last of them, :math:`e_m`, these are
    :math:`(m - n)\log(e_m/\text{tol})/\log(e_n/e_m)`, of the estimates by the last half and by the last quarter of the
    rounds the larger one.

    Parameters
    ----------
    measured : sequence of Measured
        In ascending order of the rounds, all errors positive and finite.
    tol : float
        Positive.

    Returns
    -------
    float or None
        None after fewer than 8 measurements, and where the error has not fallen or the estimates differ by more than a
        factor of 2, as they do where it falls more and more slowly.

    Examples
    --------
    >>> linear = [Measured(n, 0.5**n, 0.1 * n) for n in range(20)]
    >>> round(rounds_left(linear, tol=0.5**30))
    11
    >>> rounds_left(linear[:4], tol=0.5**30)
    """
    if len(measured) < FEWEST:
        return None
    last, found = measured[-1], []
    for share in (2, 4):
        before = measured[-1 - len(measured) // share]
        if not last.error < before.error:
            return None
        found.append((last.round - before.round) * math.log(last.error / tol) / math.log(before.error / last.error))
    return max(found) if 0 < max(found) <= AGREE * min(found) else None


class RunProgress:
    """The progress of one run: what is known of it is shown, and nothing else.

    Parameters
    ----------
    progress : Progress
        What `make_progress` returns for ``FIELDS``.
    label : str
        The run.
    rounds : int
        Largest number of rounds.
    tol : float
        Certified error at which the run stops; 0 for none.
    """

    FIELDS = ("{task.fields[certified]}", "{task.fields[estimate]}", "{task.fields[energy]}")

    def __init__(self, progress: Progress, label: str, rounds: int, tol: float) -> None:
        self.progress = progress
        self.rounds = rounds
        self.tol = tol
        self.measured: list[Measured] = []
        self.task = progress.add_task(label, total=rounds, energy="", certified="", estimate="")

    def advance(self, _: object, row: Mapping[str, float]) -> None:
        """Take the row of a round; what is not measured in it stays as it was."""
        known = {name: float(x) for name, x in row.items() if isinstance(x, int | float) and math.isfinite(x)}
        done, found = known.get("round", 0.0), {}
        if "energy" in known:
            found["energy"] = f"E {known['energy']:.6g}"
        if "certified_error" in known:
            found["certified"] = f"certified {known['certified_error']:.1e}"
            if known["certified_error"] > 0:
                self.measured.append(Measured(done, known["certified_error"], time.monotonic()))
            found["estimate"] = self._estimate(done)
        self.progress.update(self.task, completed=done, **found)

    def say(self, sentence: str) -> None:
        """Print a sentence above the line."""
        self.progress.console.print(f"dualopt: {escape(sentence)}.", highlight=False)

    def _estimate(self, done: float) -> str:
        """Say when the tolerance will be reached; nothing where nothing is known."""
        left = rounds_left(self.measured, self.tol) if self.tol > 0 else None
        if left is None:
            return ""
        if done + left > self.rounds:
            return f"{self.tol:g} not by round {self.rounds} at this rate"
        before, last = self.measured[-1 - len(self.measured) // 2], self.measured[-1]
        seconds = (last.time - before.time) / (last.round - before.round) * left
        words = f"{seconds:.2g} s" if seconds < 60 else f"{timedelta(seconds=round(seconds))}"
        rounds = "1 round" if left <= 1 else f"{math.ceil(left)} rounds"
        return f"{self.tol:g} in about {rounds}, {words}"


@contextmanager
def run_progress(console: Console, label: str, rounds: int, *, tol: float = 0.0) -> Iterator[RunProgress]:
    """Show the progress of a run while it lasts; ``advance`` of what is yielded takes its rounds."""
    with make_progress(console, *RunProgress.FIELDS) as progress:
        yield RunProgress(progress, label, rounds, tol)
