"""The model of a federation: that of one process with all the data, made of the project and the trace."""

from __future__ import annotations

from typing import Any

import numpy as np

from dualopt.arrays._checks import require
from dualopt.federation.preparing import Prepared, Preparing
from dualopt.federation.project import Project
from dualopt.federation.settings import example_of
from dualopt.objectives import Composite
from dualopt.problem.data import class_names
from dualopt.problem.inputs import OffsetOrigin
from dualopt.problem.models import Model, Schema
from dualopt.runs.trace import Trace

__all__ = ["model_of"]


def model_of(project: Project, trace: Trace, prepared: Prepared | None = None) -> Model:
    """Return the model of a run of the project.

    Of data it knows what the project says, and no hash: nobody has all of them, and with the hash of a site whoever
    knows all its rows but one could find that one out by trying.

    Parameters
    ----------
    project : Project
        What the parties agree on.
    trace : Trace
        The run.
    prepared : Prepared, optional
        What was found in the rows of all sites, where the project has something found there.

    Raises
    ------
    ValueError
        If the trace is not one of the project.

    Examples
    --------
    >>> from dualopt import run
    >>> project = Project(name="two", sites=("lyon", "basel"), loss="logistic", classes=("no", "yes"), features=3)
    >>> model_of(project, run("dualfl", example_of(project), rounds=1)).predict([[1, 2, 3]]).tolist()
    ['no']
    """
    found = Preparing(project).found if prepared is None else prepared
    require(found is not None, "prepared must be given: the project has rows scaled by what is found in those of all")
    assert found is not None
    objective: Any = example_of(project, prepared=found)
    columns = found.columns
    if project.regulariser is not None:
        objective = Composite(objective=objective, regulariser=project.regulariser_object)
    classes = class_names(np.asarray(project.classes), project.loss_object.labels) if project.classes else None
    schema = Schema(
        n_features=project.features if columns is None else len(columns.feature_names),
        feature_names=(project.feature_names or None) if columns is None else columns.feature_names,
        classes=classes,
        scaling=found.scaling,
        dtype=project.dtype,
        columns=columns,
        offset=OffsetOrigin.of(project.offset, project.exposure),
    )
    record: dict[str, Any] = {"options": {"project": project.fingerprint}}
    if project.rows:
        record["data"] = {"rows": sum(project.rows)}
    return Model.of(objective, trace, schema=schema, record=record)
