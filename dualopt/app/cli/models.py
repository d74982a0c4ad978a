"""Writing the models of runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from dualopt.app.cli.resume import FREE
from dualopt.problem.models import Model
from dualopt.problem.problem import Problem

__all__ = ["model_files", "model_record", "save_model"]


def model_files(name: str = "") -> list[str]:
    """Return the files of a model, of a method among several with its name.

    >>> model_files(), model_files("fedpd")
    (['model.json', 'model.npz'], ['fedpd.model.json', 'fedpd.model.npz'])
    """
    stem = f"{name}.model" if name else "model"
    return [f"{stem}.json", f"{stem}.npz"]


def save_model(folder: Path, name: str, make: Callable[[], Model]) -> tuple[list[str], dict[str, str]]:
    """Write the model of a run, and return its files; where none can be made, no file is left, and a line says why.

    Parameters
    ----------
    folder : Path
        Where results go.
    name : str
        The name of the method where there are several, else "".
    make : callable
        Returns the model, or raises a ValueError.
    """
    files = model_files(name)
    try:
        make().save(folder / files[0])
    except ValueError as error:
        for file in files:
            (folder / file).unlink(missing_ok=True)  # of an earlier run
        return [], {f"model file{f' of {name}' if name else ''}": f"none: {error}"}
    return files, {}


def model_record(problem: Problem, options: Mapping[str, Any], sha256: str) -> dict[str, Any]:
    """Return what a model tells of its data and options, but for those that say where files of this machine are."""
    told = {key: value for key, value in options.items() if key not in FREE}
    told["data"] = Path(told["data"]).name
    return {"data": {"sha256": sha256, "rows": sum(problem.sizes)}, "options": told}
