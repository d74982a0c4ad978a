"""The command that predicts for new rows with a saved model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Option

from dualopt.app.cli import output
from dualopt.app.cli.options import option_groups
from dualopt.arrays._checks import require
from dualopt.problem.models import Model
from dualopt.problem.models._new_rows import new_rows
from dualopt.problem.models._predictions import agreement, prediction_columns, write_predictions
from dualopt.problem.options import number
from dualopt.spec import Spec, pairs
from dualopt.spec.plugins import find

__all__ = ["predict"]

SHOWN = 5  # columns that are named


@option_groups
def predict(
    *,
    model: Annotated[
        Path, Option(help="A folder of dualopt run, or one of the files NAME.model.json of dualopt compare.")
    ] = Path("out"),
    data: Annotated[str, Option(help="Path of a file, or name of a data set; columns of a table are found by name.")],
    data_home: Annotated[Path | None, Option(help="Folder that holds your data sets.")] = None,
    split: Annotated[str | None, Option(help="Part of the data set: train or test.")] = None,
    data_param: Annotated[list[str] | None, Option(help="Option of the data set, such as m=500; repeatable.")] = None,
    loss: Annotated[
        str | None, Option(help="The loss of the model, FILE.py:NAME, where it is one of yours: models hold no code.")
    ] = None,
    network: Annotated[
        str | None, Option(help="The module of the model, FILE.py:NAME, where it is one of yours, for the same reason.")
    ] = None,
    without_offset: Annotated[
        bool, Option("--without-offset", help="Predict for an offset of 0, an exposure of 1, whatever the data have.")
    ] = False,
    out: Annotated[Path, Option(help="File for the predictions, in the order of the rows.")] = Path("predictions.csv"),
    overwrite: Annotated[bool, Option("--overwrite", help="Replace the file.")] = False,
) -> None:
    """Predict for new rows with a saved model; write predictions.csv."""
    require(out.suffix == ".csv", "out must be a file whose name ends in .csv", str(out))
    output.check_file(out, "out")
    require(overwrite or not out.exists(), f"out {str(out)!r} is there already: give another --out, or --overwrite")
    types = () if loss is None else (Spec.parse(loss, "loss").target("loss"),)
    types += () if network is None else (find("networks", network, "network"),)
    trained = Model.load(model, types=types)
    options = {name: number(text) for name, text in pairs(data_param or [], "data_param").items()}
    options |= {} if split is None else {"split": split}
    rows = new_rows(trained.schema, data, data_home=data_home, **options)
    offset = 0.0 if without_offset else rows.offset
    if offset is None and trained.schema.offset is not None:
        sentence = trained.schema.without_offsets(f"data {data!r}")
        raise ValueError(sentence.replace("offset=0", "--without-offset"))
    columns = prediction_columns(trained, rows.X, offset)
    write_predictions(out, columns)
    lines = {"model": f"{model}: {_described(trained)}", "rows": f"{len(columns['prediction'])} of {data}"}
    if rows.unused:
        lines["columns not used"] = _some(rows.unused)
    fit = None if rows.y is None else agreement(trained, columns["prediction"], rows.y)
    if fit is not None and trained.classes is not None:
        lines["accuracy"] = f"{fit:.2%} of the labels in the data"
    elif fit is not None:
        lines["root mean square error"] = f"{fit:.6g}, by the labels in the data"
    lines["file"] = f"{out}: {_some(tuple(columns))}"
    output.show_pairs(output.make_console(), "dualopt predict", lines)


def _some(names: tuple[str, ...]) -> str:
    return ", ".join(names[:SHOWN]) + (", ..." if len(names) > SHOWN else "")


def _described(model: Model) -> str:
    """Say what the model is, and how good it is known to be."""
    gap, distance = model.certificate["gap"], model.certificate["distance"]
    words = f"{'-'.join(map(str, model.widths))}, loss {Spec.of(model.loss)}"
    if not model.certificate["certified"] or gap is None:
        return f"{words}, not certified"
    near = "" if distance is None else f", within {distance:.2g} of the minimiser"
    return f"{words}, certified E - E* <= {gap:.2e}{near}"
