"""The program ``python -m figures``: what a user asks for, and the list of the figures. `_making` makes them."""

from __future__ import annotations

import ast
import pkgutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

from typer import Argument, Exit, Option, Typer

import figures
from dualopt.app.cli import program
from dualopt.app.cli.tables import make_console, show_table
from dualopt.app.cli.usage import OneSentence, Version, WidthOption
from dualopt.spec.discover import summary, syntax
from dualopt.spec.plugins import find, listed, load
from figures._sizes import MOST_GRADIENTS, PART

__all__ = ["discover", "main"]

ROUNDS = {False: 100, True: 30}
LARGEST_DEVIATION = 0.1

app = Typer(add_completion=False, pretty_exceptions_enable=False)


class Figures(Mapping[str, ModuleType]):
    """The modules of the figures by name; one is imported when it is looked up."""

    def __init__(self) -> None:
        modules = [entry for entry in pkgutil.iter_modules(figures.__path__) if not entry.ispkg]
        self._names = sorted(entry.name for entry in modules if not entry.name.startswith("_"))

    def __getitem__(self, name: str) -> ModuleType:
        if name not in self._names:
            raise KeyError(name)
        return import_module(f"figures.{name}")

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def discover() -> Figures:
    """Return the module of every figure.

    Examples
    --------
    >>> "fig1b_clients" in discover(), "_curves" in discover()
    (True, False)
    """
    return Figures()


def main(arguments: Sequence[str] | None = None, name: str = "python -m figures") -> None:
    """Run the program; it ends by ``SystemExit``.

    A mistake of the user's gives one sentence on the standard error and exit code 2; a bug keeps its traceback.

    Parameters
    ----------
    arguments : sequence of str, optional
        What follows the name of the program; ``sys.argv[1:]`` when not given.
    name : str
        What a user types to run it.
    """
    program(app, name, arguments)


@app.command(cls=OneSentence)
def draw(
    names: Annotated[
        list[str] | None,
        Argument(
            metavar="[NAME]...", help="Figures, or files of your own; by default all but those that take many hours."
        ),
    ] = None,
    data: Annotated[str, Option(help="digits, mnist, fashion-mnist, ... or the path of a file.")] = "digits",
    data_home: Annotated[Path | None, Option(help="Folder that holds your data sets.")] = None,
    out: Annotated[Path, Option(help="Folder for the figures.")] = Path("figures-out"),
    traces: Annotated[Path | None, Option(help="Folder of stored traces; OUT/cache by default.")] = None,
    quick: Annotated[bool, Option("--quick", help="30 rounds instead of 100, and fewer curves.")] = False,
    rounds: Annotated[int | None, Option(min=1, help="Communication rounds of every curve.")] = None,
    check: Annotated[
        bool, Option("--check", help="Compare with exact local solves; exit code 1 if a curve is off by over 10%.")
    ] = False,
    threads: Annotated[int | None, Option(min=1, help="Threads of the linear algebra.")] = None,
    jobs: Annotated[int, Option(min=1, help="Processes of a search for parameters, each with one thread.")] = 1,
    rows: Annotated[int | None, Option(min=1, help="Use so many rows, drawn at random; all by default.")] = None,
    part: Annotated[int, Option(min=1, help="In a search, the number of rows: a random part of them.")] = PART,
    most_gradients: Annotated[
        int, Option(min=1, help="In a search, leave out what prescribes a client more local gradients in all.")
    ] = MOST_GRADIENTS,
    page: Annotated[
        Path | None,
        Option(help="A page for the rules of which_method, such as docs/which_method.md; tables go beside."),
    ] = None,
    overwrite: Annotated[
        bool, Option("--overwrite", help="Replace what the folder holds of other options, or of something else.")
    ] = False,
    only: Annotated[
        str | None,
        Option(
            help="Cells 'problem: method' to be run, such as 'MNIST*', of figures that have cells; the others are kept."
        ),
    ] = None,
    width: WidthOption = "page",
    redraw: Annotated[bool, Option("--redraw", help="Draw from stored traces, compute nothing.")] = False,
    keep_stale: Annotated[
        bool, Option("--keep-stale", help="Keep stored traces that other code has computed, and say so.")
    ] = False,
    show_list: Annotated[bool, Option("--list", help="List the figures and stop.")] = False,
    version: Version = False,
) -> None:
    """Compute and draw the figures of the papers: NAME.png, NAME.pdf and NAME.csv for each.

    A figure with a table leaves NAME_table.csv too, one with a caption NAME.txt. NAME.json has its options: the same
    command replaces its files, another one needs --overwrite. Traces are stored, so that only what is missing is
    computed, or was computed by other code.
    """
    known = discover()
    own: dict[str, ModuleType] = {}
    for name in names or []:
        if name not in known:
            own |= _plug_in(name, known)
    console = make_console()
    if show_list:
        shown = [_row(name) for name in known]
        shown += [{"figure": n, "shows": summary(m), "takes": getattr(m, "TIME", "")} for n, m in own.items()]
        shown += [{"figure": n, "shows": line, "takes": ""} for n, line in listed("figures", {*known, *own}).items()]
        show_table(console, "figures", shown)
        return
    from figures._making import Settings, make  # Matplotlib and the figures take longer to import than the list

    settings = Settings(
        data=data,
        data_home=data_home,
        out=out,
        traces=traces,
        rounds=ROUNDS[quick] if rounds is None else rounds,
        quick=quick,
        stored_only=redraw,
        keep_stale=keep_stale,
        jobs=jobs,
        rows=rows,
        part=part,
        most_gradients=most_gradients,
        page=page,
        only=only,
        width=width,
        console=console,
    )
    usual = [name for name in known if not _by_name(name)]
    chosen = {Path(name).stem: own[name] if name in own else known[name] for name in names or usual}
    if make(chosen, settings, threads=threads, check=check, overwrite=overwrite) > LARGEST_DEVIATION:
        raise Exit(1)


def _row(name: str) -> dict[str, str]:
    """Return what the list says of a figure, which is not imported."""
    shows = summary(ast.get_docstring(syntax(f"figures.{name}")) or "")
    return {"figure": name, "shows": shows, "takes": _constant(name, "TIME", "")}


def _by_name(name: str) -> bool:
    """Tell whether a figure takes so long, or needs so much, that it is drawn where it is named alone."""
    return _constant(name, "BY_NAME", False)


def _constant(name: str, constant: str, default: Any) -> Any:
    """Return a constant of the module of a figure, which is not imported."""
    assigned = {ast.unparse(x.targets[0]): x.value for x in syntax(f"figures.{name}").body if isinstance(x, ast.Assign)}
    return ast.literal_eval(assigned[constant]) if constant in assigned else default


def _plug_in(name: str, known: Iterable[str]) -> dict[str, ModuleType]:
    """Return the figure that a file ``FIGURE.py`` or an entry point of the group ``dualopt.figures`` defines."""
    if not name.endswith(".py"):
        return {name: find("figures", name, "figure", known)}
    if Path(name).stem in known:
        raise ValueError(f"figure {name!r} has the name of a figure of this package: rename the file.")
    return {name: load("figures", f"{name}:{Path(name).stem}", "figure")}
