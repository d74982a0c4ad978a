"""Standard errors of a model: what ``--summary`` prints and writes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from dualopt.app.cli import output
from dualopt.arrays._files import write_atomically
from dualopt.arrays.xp import asarray_like
from dualopt.problem.problem import Problem
from dualopt.runs._inference import SHOWN, Inference, table_of
from dualopt.runs.inference import check_inference, inference
from dualopt.runs.trace import Trace

__all__ = ["check_summary", "show_summary", "summary_of", "write_summary"]


def check_summary(problem: Problem) -> None:
    """Refuse a problem that has no standard errors, before it is solved."""
    check_inference(problem.objective, problem.rows)  # pyright: ignore[reportArgumentType]


def summary_of(problem: Problem, trace: Trace, *, intercept: bool) -> Inference:
    """Return the standard errors of the model of a run; over MPI the clients of all processes are asked."""
    like: Any = problem.rows
    names = like.feature_names or [f"x{i + 1}" for i in range(like.n_features - intercept)]
    theta = asarray_like(trace.theta, problem.objective.zeros())
    return inference(problem.objective, theta, gap=trace.last["certificate"], like=like, names=names)


def write_summary(found: Inference, folder: Path) -> None:
    """Write all numbers but the covariances as JSON, and those of the parameters as a table."""
    for name, text in zip(output.SUMMARY, (found.to_text(), found.to_csv()), strict=True):
        write_atomically(folder / name, lambda file, text=text: file.write(text))


def show_summary(console: Console, record: str | Mapping[str, Any]) -> None:
    """Print what `Inference.to_json` returns, or its text."""
    found = json.loads(record) if isinstance(record, str) else record
    output.show_pairs(console, "standard errors", found["described"])
    output.show_table(console, "", table_of(found))
    more = len(found["coefficients"]) - SHOWN
    if more > 0:
        output.say(console, f"and {more:,} more parameters in summary.json")
