"""The command that lists what there is to choose from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from importlib import import_module
from typing import Annotated, Any

from typer import Argument

from dualopt.app.cli import output
from dualopt.objectives.torch_networks import TORCH_NETWORKS
from dualopt.problem import data
from dualopt.spec import KINDS, names
from dualopt.spec.discover import discover, summary, unknown_name
from dualopt.spec.plugins import listed

__all__ = ["list_names"]


def list_names(
    kind: Annotated[
        str | None,
        Argument(
            help="algorithms, losses, regularisers, solvers, compressors, data, partitions, models, stopping, "
            "participation or preparation; all by default."
        ),
    ] = None,
) -> None:
    """List what there is to choose from, plug-ins of installed packages included, with one line for each name."""
    catalogue = {
        "algorithms": _named("algorithm"),
        "losses": _named("loss"),
        "regularisers": _named("regulariser", "WEIGHT"),
        "solvers": _named("solver"),
        "compressors": _named("compressor", "NUMBER"),
        "data": data.available()
        | listed("data", data.available())
        | {"FILE": "LIBSVM format (.gz, .bz2), sparse or not, a .npz with X and y, or a .csv or .parquet with --label"},
        "partitions": _summaries(data.partition_rules()) | listed("partitions", data.partition_rules()),
        "models": {
            "linear": "one linear predictor, or one for each class",
            "mlp=WIDTHS": "a network with hidden layers of these widths, for classes",
            "FILE.py:NAME": "any torch.nn.Module, or clients of yours made of the linear ones",
        }
        | _summaries(TORCH_NETWORKS)
        | listed("networks", TORCH_NETWORKS)
        | listed("objectives", ()),
        "stopping": _named("stop", "NUMBER"),
        "participation": _named("participation", "NUMBER"),
        "preparation": _named("preparation"),
    }
    if kind is not None and kind not in catalogue:
        raise unknown_name("kind", kind, catalogue)
    console = output.make_console()
    for title in catalogue if kind is None else [kind]:
        output.show_pairs(console, title, catalogue[title])


def _summaries(documented: Mapping[str, Any]) -> dict[str, str]:
    return {name: summary(thing) for name, thing in documented.items()}


def _named(kind: str, number: str = "") -> dict[str, str]:
    """Return one line for each name of a kind, and for its plug-ins; with ``=NUMBER`` where one can be given alone."""
    place, _, table = KINDS[kind].place.partition(":")
    own, lines = names(kind) if table else discover(import_module(place)), {}
    for name, known in own.items():
        takes = number and any(f.type in ("int", "float") for f in fields(known)[:1])
        lines[f"{name}={number}" if takes else name] = summary(known)
    return lines | listed(KINDS[kind].plug_ins, own)
