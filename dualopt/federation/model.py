"""The model of a federation: that of one process with all the data, made of the project and the trace."""

from __future__ import annotations

from typing import Any

import numpy as np

from dualopt.federation.project import Project
from dualopt.federation.settings import example_of
from dualopt.objectives import Composite
from dualopt.problem.data import class_names
from dualopt.problem.data._scaling import Scaling
from dualopt.problem.models import Model, Schema
from dualopt.runs.trace import Trace

__all__ = ["model_of"]


def model_of(project: Project, trace: Trace) -> Model:
    """Return the model of a run of the project.

    Of data it knows what the project says, and no hash: nobody has all of them.

    Parameters
    ----------
    project : Project
        What the parties agree on.
    trace : Trace
        The run.

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
    objective: Any = example_of(project)
    if project.regulariser is not None:
        objective = Composite(objective=objective, regulariser=project.regulariser_object)
    classes = class_names(np.asarray(project.classes), project.loss_object.labels) if project.classes else None
    schema = Schema(
        n_features=project.features,
        feature_names=project.feature_names or None,
        classes=classes,
        scaling=_scaling(project.divisor),
        dtype=project.dtype,
    )
    record: dict[str, Any] = {"options": {"project": project.fingerprint}}
    if project.rows:
        record["data"] = {"rows": sum(project.rows)}
    return Model.of(objective, trace, schema=schema, record=record)


def _scaling(divisor: str | float) -> Scaling:
    return Scaling(how=divisor) if isinstance(divisor, str) else Scaling(how="divide", divisor=divisor)
