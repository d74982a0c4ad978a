"""From an objective and its trace to what a model consists of."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from dualopt.arrays.xp import to_numpy
from dualopt.losses._offset import without_offset
from dualopt.objectives import MLP, LinearModel
from dualopt.objectives.wrapper import ObjectiveWrapper
from dualopt.problem.data._scaling import Scaling
from dualopt.problem.models._schema import Schema, class_number
from dualopt.runs.trace import Trace

if TYPE_CHECKING:
    from dualopt.problem.models._module import TrainedModule

__all__ = ["BOUNDS", "UNCERTIFIED", "trained"]

BOUNDS = ("gap", "energy", "relative_error", "distance")
UNCERTIFIED: dict[str, Any] = {"certified": False, **dict.fromkeys(BOUNDS)}

ROOM = 1.0 + 4.0 * sys.float_info.epsilon  # of a square root and two products
OF_METHOD = ("algorithm", "hyperparameters", "n_clients", "seed", "compressor", "prepare", "versions")


def trained(
    objective: Any, trace: Trace, *, scaling: Scaling | None, schema: Schema | None, rows: Any, record: Any
) -> dict[str, Any]:
    """Return the fields of the model of a run; arguments and errors are those of `Model.of`."""
    base = objective if rows is None else rows
    while isinstance(base, ObjectiveWrapper):
        base = base.objective
    is_module = hasattr(base, "module_at")  # a TorchModule, whose file few need
    if not (is_module or isinstance(base, LinearModel | MLP)):
        raise ValueError(f"objective must be one of rows and labels, not a {type(base).__name__}.")
    if trace.theta is None or tuple(trace.theta.shape) != tuple(base.shape):
        raise ValueError(f"trace must hold a model of shape {tuple(base.shape)}, which predicts for rows.")
    theta = to_numpy(trace.theta)
    module = _module(base, theta) if is_module else None
    layers: Any = () if is_module else _layers(base, theta)
    if not np.isfinite(theta).all():
        raise ValueError(f"trace must hold a model that is finite, and its run has {trace.status}.")
    if schema is None:
        schema = Schema(
            n_features=module.n_features if module is not None else layers[0][0].shape[1],
            feature_names=getattr(base, "feature_names", None),
            classes=getattr(base, "classes", None),
            scaling=Scaling() if scaling is None else scaling,
            dtype=str(theta.dtype),
            offset=getattr(base, "offset", None),
        )
    convexity = objective.mean_mu + objective.regulariser.mu
    convexity = 0.0 if objective.free_intercept else convexity  # which is of the other weights alone
    known = {"status": trace.status, "rounds": int(trace.last.get("round", len(trace) - 1))}
    known |= {name: trace.parameters[name] for name in OF_METHOD if name in trace.parameters}
    _check_classes(schema.classes, class_number(base.loss))
    return {
        "layers": layers,
        "module": module,
        "loss": without_offset(base.loss),
        "schema": schema,
        "certificate": _certificate(trace, convexity),
        "record": known | dict(record or {}),
    }


def _check_classes(classes: tuple[Any, ...] | None, number: int) -> None:
    """Refuse classes that could not be told."""
    if classes is not None and len(classes) != number:
        raise ValueError(f"classes of the data are {len(classes)}, and the loss has {number}: some have no name.")


def _module(base: Any, theta: np.ndarray) -> TrainedModule:
    """Return the module of PyTorch."""
    from dualopt.problem.models._module import TrainedModule  # few ask for it

    return TrainedModule.of(base, theta)


def _layers(base: LinearModel | MLP, theta: np.ndarray) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
    """Return the layers of a model as the objective has it."""
    if isinstance(base, MLP):
        return tuple((np.array(W), np.array(b)) for W, b in base.matrices(theta))
    theta = np.atleast_2d(theta)
    d = theta.shape[1] - base.intercept
    b = theta[:, d] if base.intercept else np.zeros(len(theta), theta.dtype)
    return ((np.array(theta[:, :d]), np.array(b)),)


def _certificate(trace: Trace, convexity: float) -> dict[str, Any]:
    """Return what the last row certifies of the last model; of a run that diverged, the model is of another row."""
    last = {} if trace.status == "diverged" else trace.last
    gap = last.get("certificate", math.nan)
    known = 0.0 <= gap < math.inf
    distance = math.sqrt(2.0 * gap / convexity) * ROOM if known and convexity > 0 else None
    return {
        "certified": known and trace.status != "contradicted",
        "gap": gap if known else None,
        "energy": last.get("energy"),
        "relative_error": last.get("certified_error") if known else None,
        "distance": distance,
    }
