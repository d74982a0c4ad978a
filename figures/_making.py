"""Computing, drawing and writing figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import ModuleType
from typing import Any

from threadpoolctl import threadpool_limits

from dualopt.app.cli import output
from dualopt.arrays._files import remove_leftovers
from dualopt.runs._checks import check_threads
from dualopt.runs._sources import module_sources
from dualopt.runs.plotting import styled
from dualopt.spec.discover import summary
from dualopt.spec.plugins import origin
from figures._curves import deviation, exactly
from figures._earlier import described, require_own, write_record
from figures._output import table, write_all, write_caption, write_table
from figures._settings import Settings

__all__ = ["Settings", "make"]


def make(
    chosen: Mapping[str, ModuleType], settings: Settings, *, threads: int | None, check: bool, overwrite: bool
) -> float:
    """Compute, draw and write figures; return the largest deviation from exact local solves (0 unchecked).

    Parameters
    ----------
    chosen : dict of str to module
        The figures.
    settings : Settings
        The options of all.
    threads : int, optional
        Threads of the linear algebra.
    check : bool
        Whether exact local solves are run too.
    overwrite : bool
        Whether files of other options, or of something else, are replaced.
    """
    check_threads(threads)
    with threadpool_limits(limits=threads):
        _ = settings.whole  # refuses wrong data before the folder is made
        records = {name: described(name, _own_file(module), settings) for name, module in chosen.items()}
        if not overwrite:
            for record in records.values():
                require_own(settings.out, record)
        output.prepare_folder(settings.out)
        for folder in (settings.cache, *settings.cache.glob("tune-*")):
            remove_leftovers(folder)
        return max([_make(name, module, settings, check, records[name]) for name, module in chosen.items()])


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
