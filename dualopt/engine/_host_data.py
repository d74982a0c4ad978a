"""What a host says of its clients' functions: constants before a run, values and gradients in it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from dualopt.arrays.xp import Array
from dualopt.engine import _protocol as protocol
from dualopt.objectives import LinearModel, ObjectiveWrapper
from dualopt.objectives.wrapper import class_labels
from dualopt.runs.certificates import certificate_sums, dual_point
from dualopt.solvers import LocalSolution

__all__ = ["client_info", "evaluated", "with_max_rows"]


def client_info(f: Any, clients: tuple[int, ...] | None, project: str) -> protocol.ClientInfo:
    """Return what the server knows of the clients of ``f`` before the first round."""
    rows, classes = getattr(f, "rows", None), class_labels(f)
    return protocol.ClientInfo(
        clients=clients,
        n_clients=f.n_clients,
        mu=f.partial_mu,
        free_intercept=f.free_intercept,
        shift_invariant=f.shift_invariant,
        mu_rounding=f.mu_rounding,
        L=f.L,
        nonnegative=f.nonnegative,
        kink_at_label=f.kink_at_label,
        weights=f.weights,
        zero=f.zeros(),
        offers=tuple(sorted(f.offers)),
        gradient_cost=f.gradient_cost,
        usual_weight=f.usual_weight,
        sizes=tuple(f.sizes) if "samples" in f.offers else None,
        max_rows=None if rows is None else rows.max_rows,
        n_features=None if rows is None else rows.n_features,
        is_sparse=rows is not None and rows.is_sparse,
        linear_ridge=float(f.ridge) if isinstance(f, LinearModel) else None,
        classes="" if classes is None else json.dumps(classes),
        project=project,
    )


def evaluated(
    f: Any, theta: Array, solution: LocalSolution | None, weights: tuple[float, ...] | None, *, partial_sums: bool
) -> protocol.Evaluated | protocol.PartialSums:
    """Return all that a certificate of ``theta`` is made from, with the dual points of a solution if there is one.

    Sums have ``weights``, or 1 each.
    """
    if partial_sums:
        return protocol.PartialSums(*certificate_sums(f, theta, solution, weights)[:3])
    values, gradients = f.value_and_gradient(theta)
    rounding = f.rounding(theta, values, gradients)
    point = None if solution is None else dual_point(f, solution)
    of_dual = (None, None, None) if point is None else point
    return protocol.Evaluated(values, gradients, rounding.value, rounding.gradient, *of_dual)


def with_max_rows(objective: Any, max_rows: int | None) -> Any:
    """Return the objective with this number of rows of the largest client of the federation, by which solvers choose.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt import Quadratic, linear_model
    >>> from dualopt.losses import Squared
    >>> f = linear_model(np.eye(4), np.ones(4), loss=Squared(), mu=0.1, clients=2)
    >>> with_max_rows(f, 5).rows.max_rows, with_max_rows(f, None) is f, with_max_rows(f, 2) is f
    (5, True, True)
    >>> g = Quadratic(A=np.ones((1, 1, 1)), b=np.ones((1, 1)))  # without rows
    >>> with_max_rows(g, 5) is g
    True
    """
    rows = getattr(objective, "rows", None)
    if max_rows is None or rows is None or rows.max_rows == max_rows:
        return objective
    if isinstance(objective, ObjectiveWrapper):
        return replace(objective, objective=with_max_rows(objective.objective, max_rows))  # pyright: ignore
    return replace(objective, rows=replace(rows, max_rows=max_rows))
