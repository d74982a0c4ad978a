"""The program ``python -m figures.lessons``."""

from __future__ import annotations

import webbrowser
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from threadpoolctl import threadpool_limits
from typer import Argument, Option, Typer

from dualopt.app.cli import output, program
from dualopt.app.cli.usage import OneSentence
from figures.lessons import _find
from figures.lessons._export import export
from figures.lessons._server import Server

__all__ = ["main"]

app = Typer(add_completion=False, pretty_exceptions_enable=False)


def main(arguments: Sequence[str] | None = None, name: str = "python -m figures.lessons") -> None:
    """Run the program; it ends by ``SystemExit``. A mistake of the user's gives one sentence and exit code 2."""
    program(app, name, arguments)


@app.command(cls=OneSentence)
def lessons(
    names: Annotated[
        list[str] | None, Argument(metavar="[NAME]...", help="Lessons; the first is opened, all when none.")
    ] = None,
    port: Annotated[int, Option(min=0, max=65535, help="Where the server listens; 0 takes a free port.")] = 0,
    show_list: Annotated[bool, Option("--list", help="List the lessons and stop.")] = False,
    folder: Annotated[
        Path | None, Option("--export", metavar="DIR", help="Write one html file a lesson, and stop.")
    ] = None,
    browser: Annotated[bool, Option("--browser/--no-browser", help="Open the browser.")] = True,
) -> None:
    """Open the lessons in a browser: theory that you can move, with numbers that are computed."""
    names = names or []
    for name in names:
        _find.load(name)
    console = output.make_console()
    if show_list:
        found = {name: _find.load(name) for name in _find.discover()}
        output.show_table(console, "lessons", [{"lesson": n, "question": m.QUESTION} for n, m in found.items()])
        return
    with threadpool_limits(limits=1):  # the matrices are tiny: threads cost more than they save
        if folder is not None:
            output.prepare_folder(folder, "export")
            files = export(names or _find.discover(), folder)
            output.say(console, f"{folder}: {', '.join(f.name for f in files)}")
            return
        with Server(port) as server:
            url = server.url(names[0] if names else "")
            console.print(f"{url} (Ctrl+C ends it)", highlight=False, markup=False, soft_wrap=True)
            if browser:
                webbrowser.open(url)
            try:
                server.serve_forever()
            except KeyboardInterrupt:
                return
