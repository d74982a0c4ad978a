"""Progress of long work: a bar on terminals, a line every few seconds in files and pipes."""

from __future__ import annotations

import time
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.text import Text

__all__ = ["make_progress"]

SECONDS = 10.0  # between two lines


def make_progress(console: Console, *fields: str) -> Progress:
    """Return what shows a description, how much is done, some fields and the time, while its context lasts.

    On a terminal it is a bar that disappears at the end. Elsewhere lines go to the standard error, so that the results
    on the standard output stay what they are, and none is written before ten seconds have passed.

    Parameters
    ----------
    console : Console
        The standard output.
    *fields : str
        Formats of rich's, such as ``"E {task.fields[energy]:.6g}"``.
    """
    columns: tuple[ProgressColumn, ...] = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        *(TextColumn(field) for field in fields),
        TimeElapsedColumn(),
    )
    if console.is_terminal:
        return Progress(*columns, console=console, transient=True)
    return _Lines(*(column for column in columns if not isinstance(column, BarColumn)), disable=True)


class _Lines(Progress):
    """Writes a line now and then; nothing is drawn."""

    def __init__(self, *columns: ProgressColumn, **options: Any) -> None:
        super().__init__(*columns, console=Console(stderr=True, force_terminal=False, width=120), **options)
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
        parts = (column(task) for column in self.columns if isinstance(column, ProgressColumn))
        self.console.print(*(part for part in parts if isinstance(part, Text) and part.plain), highlight=False)
