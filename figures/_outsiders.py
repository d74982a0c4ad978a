"""What a user has who needs no federation: all rows at one place, for SciPy and scikit-learn."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.optimize import minimize

from dualopt.regularisers import L1, Zero
from dualopt.runs.trace import Trace
from dualopt.solvers._loop import is_smooth
from figures._cells import Case, built
from figures._contestants import COLUMNS, TARGETS

__all__ = ["OUTSIDERS"]

HISTORY = 40  # pairs, as many as `distributed-lbfgs` keeps
TOLERANCES = tuple(10.0**-k for k in range(1, 15))


def scipy_lbfgs(case: Case) -> Trace:
    """Run SciPy's L-BFGS-B on the mean over all rows; an l1 norm becomes a sum over two models that are not negative.

    A row for every evaluation that improves the energy; ``gradients`` counts passes over the rows.
    """
    objective, least = built(_pooled(case))
    weight = objective.regulariser.weight if isinstance(objective.regulariser, L1) else 0.0
    if least is None or not is_smooth(objective) or not (weight or objective.regulariser == Zero()):
        return _trace([], "refuses: the problem has kinks other than those of the l1 norm, or no reference")
    size, rows, seconds, evaluations, best = int(np.prod(objective.shape)), [], 0.0, 0, np.inf

    def energy(x: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal seconds, evaluations, best, before
        theta = (x[:size] - x[size:] if weight else x).reshape(objective.shape)
        value, gradient = objective.value_and_gradient(theta)
        value, gradient = float(value[0]), gradient[0].ravel()
        if weight:
            value += weight * float(np.sum(x))
            gradient = np.concatenate([gradient + weight, weight - gradient])
        evaluations += 1
        seconds += time.process_time() - before
        exact = value if not weight else value - weight * float(np.sum(x) - np.sum(np.abs(theta)))
        if exact < best:
            best = exact
            rows.append({"gradients": evaluations, "seconds": seconds, "error": (exact - least.energy) / least.energy})
        if evaluations >= case.limits.gradients or seconds >= case.limits.seconds or rows[-1]["error"] <= TARGETS[-1]:
            raise StopIteration
        before = time.process_time()
        return value, gradient

    before = time.process_time()
    start = np.zeros(2 * size if weight else size)
    options = {"maxcor": HISTORY, "ftol": 0.0, "gtol": 0.0, "maxiter": 10**6, "maxfun": 10**6}
    try:
        bounds = [(0.0, None)] * len(start) if weight else None
        minimize(energy, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    except StopIteration:
        pass
    return _trace(rows, "reached" if rows[-1]["error"] <= TARGETS[-1] else "gradients or seconds")


def scikit_learn(case: Case) -> Trace:
    """Fit the model of scikit-learn that has this energy, with a smaller tolerance each time; a row for every fit."""
    objective, least = built(_pooled(case))
    model = _model(objective)
    if model is None or least is None:
        return _trace([], "refuses: scikit-learn has no such model, or there is no reference")
    ((X, y, _),) = _rows(objective)
    rows = []
    for tol in TOLERANCES:
        fitted = model(tol)
        before = time.process_time()
        with warnings.catch_warnings(action="ignore"):  # of a tolerance that was not met
            fitted.fit(X, y)
        seconds = time.process_time() - before
        theta = np.asarray(fitted.coef_).reshape(objective.shape)
        value = float(objective.value(theta)[0]) + objective.regulariser.value(theta)
        rows.append({"seconds": seconds, "error": (value - least.energy) / least.energy})
        if rows[-1]["error"] <= TARGETS[-1]:
            return _trace(rows, "reached")
        if seconds >= case.limits.seconds / 2:
            return _trace(rows, "seconds")
    return _trace(rows, "tolerances")


OUTSIDERS: dict[str, Callable[[Case], Trace]] = {"scipy-lbfgs": scipy_lbfgs, "scikit-learn": scikit_learn}
"""By their names in the tables."""


def _rows(objective: Any) -> list[tuple[Any, Any, Any]]:
    """Return the rows of every client."""
    inner = getattr(objective, "objective", objective)  # below a regulariser
    return list(inner.client_rows())


def _pooled(case: Case) -> Case:
    return replace(case, options=replace(case.options, clients=1, partition="iid"), participation="full")


def _model(objective: Any) -> Callable[[float], Any] | None:
    """Return what makes the estimator of a tolerance: its energy is ours times ``1/mu`` or the like."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.svm import LinearSVC, LinearSVR

    inner = getattr(objective, "objective", objective)
    m, mu, loss = sum(inner.sizes), float(objective.mu[0]), type(inner.loss).__name__
    if objective.regulariser != Zero() or mu == 0:
        return None
    common: dict[str, Any] = {"C": 1.0 / (mu * m), "fit_intercept": False, "max_iter": 10_000}
    if loss in ("Logistic", "Multinomial"):
        return lambda tol: LogisticRegression(tol=tol, **common)
    if loss == "Hinge":
        return lambda tol: LinearSVC(tol=tol, loss="hinge", **common)
    if loss == "AbsoluteDeviation":
        return lambda tol: LinearSVR(tol=tol, epsilon=0.0, loss="epsilon_insensitive", **common)
    return None


def _trace(rows: list[Mapping[str, float]], end: str) -> Trace:
    columns = {column: [float(row.get(column, np.nan)) for row in rows] for column in COLUMNS}
    return Trace(columns=columns, status="stopped", theta=None, parameters={"certified": False, "end": end})
