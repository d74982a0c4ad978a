"""The program ``python -m figures``."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

from threadpoolctl import threadpool_limits
from typer import Argument, Exit, Option, Typer

import figures
from dualopt.app.cli import output, program
from dualopt.app.cli.usage import OneSentence, Version, WidthOption
from dualopt.arrays._files import remove_leftovers
from dualopt.runs._sources import module_sources
from dualopt.runs.plotting import styled
from dualopt.runs.recording import check_threads
from dualopt.spec.discover import summary
from dualopt.spec.plugins import find, listed, load, origin
from figures._curves import deviation, exactly
from figures._earlier import described, require_own, write_record
from figures._output import table, write_all, write_caption, write_table
from figures._settings import Settings

__all__ = ["discover", "main"]

ROUNDS = {False: 100, True: 30}
LARGEST_DEVIATION = 0.1

app = Typer(add_completion=False, pretty_exceptions_enable=False)


def discover() -> dict[str, ModuleType]:
    """Return the module of every figure.

    Examples
    --------
    >>> "fig1b_clients" in discover(), "_curves" in discover()
    (True, False)
    """
    modules = [entry for entry in pkgutil.iter_modules(figures.__path__) if not entry.ispkg]
    names = sorted(entry.name for entry in modules if not entry.name.startswith("_"))
    return {name: importlib.import_module(f"figures.{name}") for name in names}


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
        list[str] | None, Argument(metavar="[NAME]...", help="Figures, or files of your own; all of these by default.")
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
    part: Annotated[int, Option(min=1, help="In a search, the number of rows: a random part of them.")] = Settings.part,
    most_gradients: Annotated[
        int, Option(min=1, help="In a search, leave out what prescribes a client more local gradients in all.")
    ] = Settings.most_gradients,
    page: Annotated[
        Path | None,
        Option(help="A page for the rules of which_method, such as docs/which_method.md; tables go beside."),
    ] = None,
    overwrite: Annotated[
        bool, Option("--overwrite", help="Replace what the folder holds of other options, or of something else.")
    ] = False,
    only: Annotated[
        str | None,
        Option(help="Cells 'problem: method' that which_method measures, such as 'MNIST*'; the page keeps the others."),
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
    found = discover()
    for name in names or []:
        if name not in found:
            found |= _plug_in(name, found)
    check_threads(threads)
    console = output.make_console()
    if show_list:
        own = [
            {"figure": name, "shows": summary(module), "takes": getattr(module, "TIME", "")}
            for name, module in found.items()
        ]
        others = [{"figure": name, "shows": line, "takes": ""} for name, line in listed("figures", found).items()]
        output.show_table(console, "figures", own + others)
        return
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
    with threadpool_limits(limits=threads):
        _ = settings.whole  # refuses wrong data before the folder is made
        chosen = {Path(name).stem: found[name] for name in names or found}
        records = {name: described(name, _own_file(module), settings) for name, module in chosen.items()}
        if not overwrite:
            for record in records.values():
                require_own(out, record)
        output.prepare_folder(out)
        for folder in (settings.cache, *settings.cache.glob("tune-*")):
            remove_leftovers(folder)
        largest = [_make(name, module, settings, check, records[name]) for name, module in chosen.items()]
    if max(largest) > LARGEST_DEVIATION:
        raise Exit(1)


def _plug_in(name: str, known: Iterable[str]) -> dict[str, ModuleType]:
    """Return the figure that a file ``FIGURE.py`` or an entry point of the group ``dualopt.figures`` defines."""
    if not name.endswith(".py"):
        return {name: find("figures", name, "figure", known)}
    if Path(name).stem in known:
        raise ValueError(f"figure {name!r} has the name of a figure of this package: rename the file.")
    return {name: load("figures", f"{name}:{Path(name).stem}", "figure")}


def _own_file(module: ModuleType) -> str | None:
    """Return the file of a figure that is not of this package."""
    return None if (source := _source(module)) is None else source["file"]


def _source(module: ModuleType) -> dict[str, str] | None:
    return None if module.__name__.startswith("figures.") else origin(module)


def _make(name: str, module: ModuleType, settings: Settings, check: bool, record: Mapping[str, Any]) -> float:
    """Compute, draw and write one figure; return the largest deviation from exact local solves (0 unchecked)."""
    source = _source(module)
    settings = replace(settings, plug_in=None if source is None else module_sources(module))
    traces = module.compute(settings)
    deviations: dict[str, float] = {}
    if check:
        exact = module.compute(exactly(settings))
        deviations = {
            label: deviation(traces[label], exact[label]) for label in traces if "error" in traces[label].columns
        }
    with styled():
        figure = module.draw(traces, settings)
    files = [write_record(settings.out, record), *write_all(settings.out, name, figure, traces)]
    if hasattr(module, "tabulate"):
        rows = module.tabulate(traces)
        files.append(write_table(settings.out, name, rows))
    else:
        rows = table(traces, deviations)
    output.show_table(settings.console, f"{name}: {summary(module)}", rows)
    if hasattr(module, "caption"):
        caption = module.caption(traces, settings)
        files.append(write_caption(settings.out, name, caption))
        output.say(settings.console, caption)
    output.say(settings.console, f"{settings.out}: {', '.join(files)}")
    return max(deviations.values(), default=0.0)
