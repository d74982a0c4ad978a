"""The program ``python -m figures.lessons``, which is ``dualopt lessons`` too."""

from __future__ import annotations

import os
import shutil
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from threadpoolctl import threadpool_limits
from typer import Argument, Option, Typer

from dualopt.app.cli import output, program
from dualopt.app.cli.usage import OneSentence
from dualopt.spec import Spec
from figures.lessons._export import INDEX, export, fingerprint
from figures.lessons._find import CHAPTERS, load

__all__ = ["main"]

app = Typer(add_completion=False, pretty_exceptions_enable=False)


def main(arguments: Sequence[str] | None = None, name: str = "python -m figures.lessons") -> None:
    """Run the program; it ends by ``SystemExit``. A mistake of the user's gives one sentence and exit code 2."""
    program(app, name, arguments)


@app.command(cls=OneSentence)
def lessons(
    names: Annotated[
        list[str] | None, Argument(metavar="[NAME]...", help="Chapters; the first is opened, the course when none.")
    ] = None,
    show_list: Annotated[bool, Option("--list", help="List the chapters and stop.")] = False,
    folder: Annotated[
        Path | None,
        Option("--export", metavar="DIR", help="Write pages and notebooks of chapters and a page of all, and stop."),
    ] = None,
    method: Annotated[
        str | None,
        Option(help="A method of yours, FILE.py:NAME with its parameters, drawn beside those of the chapters."),
    ] = None,
    browser: Annotated[bool, Option("--browser/--no-browser", help="Open the browser.")] = True,
) -> None:
    """Open the course in a browser: theory that you can move, with numbers that are computed."""
    chosen = tuple(names or CHAPTERS)
    for name in chosen:
        load(name)
    console = output.make_console()
    if show_list:
        rows = [{"chapter": n, "title": load(n).title, "minutes": str(load(n).minutes)} for n in chosen]
        output.show_table(console, "lessons", rows)
        return
    own = None if method is None else Spec.parse(method, "method").build("algorithm")
    place = folder or (_kept() if own is None else _kept() / "own")  # which replaces no page of the course
    if folder is None and own is None and (place / INDEX).is_file():
        return _open(place / (f"{names[0]}.html" if names else INDEX), browser, console)
    output.prepare_folder(place, "export" if folder else "cache")
    with threadpool_limits(limits=1):  # the matrices are tiny: threads cost more than they save
        called = "yours" if own is None else type(own).__name__
        files = []
        for file in export(place, chosen if folder else CHAPTERS, own, called):
            files.append(file.name)
            if folder is None:
                output.say(console, f"{file.name} ({len(files)} of {2 * len(CHAPTERS) + 1})")
    if folder is not None:
        output.say(console, f"{folder}: {', '.join(files)}")
        return
    _open(place / (f"{names[0]}.html" if names else INDEX), browser, console)


def _kept() -> Path:
    """Return where the course of this version is kept; those of others are removed."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dualopt" / "lessons"
    place = home / fingerprint()
    for other in home.glob("*"):
        if other != place:
            shutil.rmtree(other, ignore_errors=True)
    return place


def _open(file: Path, browser: bool, console: object) -> None:
    console.print(file.as_uri(), highlight=False, markup=False, soft_wrap=True)  # type: ignore[attr-defined]
    if browser:
        webbrowser.open(file.as_uri())
