"""What the estimators share: from rows and clients to a certified linear model."""

from __future__ import annotations

import math
import sys
import warnings
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from dualopt.arrays._checks import require
from dualopt.losses import Loss
from dualopt.methods.participation import as_participation
from dualopt.objectives import Composite, linear_model
from dualopt.objectives.linear import kind_of_intercept
from dualopt.problem.data import iid
from dualopt.problem.inputs import (
    OffsetOrigin,
    as_offset,
    as_row_weights,
    by_owner,
    require_takes,
    row_weights,
    without_column,
)
from dualopt.problem.inputs._frames import as_frame
from dualopt.problem.models import Model, Schema
from dualopt.regularisers import L1
from dualopt.runs._data_hash import rows_hash
from dualopt.runs.auto import last_method
from dualopt.runs.inference import Inference, inference
from dualopt.runs.recording import run
from dualopt.runs.trace import Trace
from dualopt.spec import built

__all__ = ["FederatedLinearModel"]


NOTHING = sys.float_info.min / sys.float_info.epsilon**2  # an energy that small is zero: its rounding alone is larger


class FederatedLinearModel(BaseEstimator):
    """Base of the estimators: parameters, clients, the run, and the predictors of rows."""

    coef_: Any
    intercept_: Any
    model_: Model
    n_features_in_: int
    feature_names_in_: np.ndarray
    _offset_origin: OffsetOrigin | None

    def __init__(
        self,
        *,
        loss: Any = "auto",
        algorithm: Any = "auto",
        mu: float = 1e-2,
        penalty: str = "l2",
        l1_ratio: float = 0.5,
        tol: float = 1e-6,
        max_rounds: int = 1000,
        clients: int | str = 8,
        client_weights: Any = "rows",
        participation: Any = None,
        compressor: Any = None,
        intercept: Any = "penalised",
        precision: str = "double",
        warm_start: bool = False,
        random_state: Any = 0,
    ) -> None:
        self.loss = loss
        self.algorithm = algorithm
        self.mu = mu
        self.penalty = penalty
        self.l1_ratio = l1_ratio
        self.tol = tol
        self.max_rounds = max_rounds
        self.clients = clients
        self.client_weights = client_weights
        self.participation = participation
        self.compressor = compressor
        self.intercept = intercept
        self.precision = precision
        self.warm_start = warm_start
        self.random_state = random_state

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def __getstate__(self) -> dict[str, Any]:
        state: Any = super().__getstate__()
        return {name: x for name, x in state.items() if name != "_fitted_on"}  # no rows in a pickle

    def summary(self, *, kind: str = "auto", level: float = 0.95) -> Inference:
        """Return standard errors, intervals and tests of weights and intercepts, from one more round of all clients.

        The rows of the latest ``fit`` are kept for it, but neither pickled nor cloned.

        Parameters
        ----------
        kind, level
            As in :func:`dualopt.inference`.

        Raises
        ------
        ValueError
            If the loss has neither a likelihood nor second derivatives, or the estimator was unpickled since ``fit``.
        """
        check_is_fitted(self)
        if not hasattr(self, "_fitted_on"):
            raise ValueError("summary needs the rows of fit, which a pickle does not hold: fit again.")
        columns = getattr(self, "feature_names_in_", [f"x{i + 1}" for i in range(self.n_features_in_)])
        objective, theta = self._fitted_on
        return inference(
            objective, theta, gap=self.certified_gap_, kind=kind, level=level, names=list(map(str, columns))
        )

    def _with_offset(self, X: Any, offset: Any, exposure: Any) -> tuple[Any, Any]:
        """Return the features without a column of offsets, and the offsets; both are remembered for predictions."""
        self._offset_origin = origin = OffsetOrigin.of(offset, exposure)
        if origin is None:
            return X, None
        if origin.column is not None:
            X, given = without_column(X, origin.column, origin.kind)
            X = X.to_native()
            offset, exposure = origin.pair(given)
        return X, as_offset(offset, exposure, np.zeros(0), np.shape(X)[0])

    def _new_offset(self, X: Any, offset: Any, exposure: Any) -> tuple[Any, Any]:
        """Return the features of new rows without a column of offsets, and their offsets."""
        given, origin = OffsetOrigin.of(offset, exposure), self._offset_origin
        if origin is not None and origin.column is not None and as_frame(X, "X") is not None:
            try:
                rest, column = without_column(X, origin.column, origin.kind)
            except ValueError:
                if given is None:
                    raise
            else:
                X = rest.to_native()
                if given is None:
                    offset, exposure = origin.pair(column)
        if origin is not None and offset is None and exposure is None:
            raise ValueError(f"{origin.kind} must be given for predictions, too, as it was for fit.")
        if offset is None and exposure is None:
            return X, 0.0
        found = as_offset(offset, exposure, np.zeros(0), np.shape(X)[0])
        assert found is not None
        return X, found[:, None]

    def _rows(self, X: Any, groups: Any, clients: Any) -> tuple[Any, Any]:
        """Return the features and who owns each row, None where the rows are to be dealt out."""
        if groups is not None and clients is not None:
            raise ValueError("groups and clients mean the same: give one of them.")
        owners = groups if clients is None else clients
        self._client_column = owners if isinstance(owners, str) else None
        if owners is None and isinstance(self.clients, str):
            self._client_column = self.clients
        if self._client_column is not None:
            rest, owners = without_column(X, self._client_column, "clients")
            X = rest.to_native()
        return X, owners

    def _train(
        self, X: Any, y: np.ndarray, owners: Any, loss: Loss, counts: np.ndarray | None, offset: np.ndarray | None
    ) -> None:
        """Run the method on encoded labels of rows that count as much as is said."""
        origin = self._offset_origin
        if origin is not None:
            require_takes(loss, exposure=origin.kind == "exposure")
        self._check_parameters()
        seed = self._seed()
        parts, self.client_names_ = self._parts(X.shape[0], owners, seed, counts)
        own = {"l2": 0.0, "elasticnet": float(self.l1_ratio), "l1": 1.0}[self.penalty]
        objective: Any = linear_model(
            X,
            y,
            loss=loss,
            mu=(1.0 - own) * self.mu,
            clients=parts,
            sample_weight=counts,
            offset=None if offset is None else offset.astype(X.dtype),
            client_weights=self.client_weights,
            intercept=self.intercept,
            precision=self.precision,
        )
        data = {"sha256": rows_hash(objective, objective.sizes, objective.weights), "rows": sum(objective.sizes)}
        if own:
            objective = Composite(objective=objective, regulariser=L1(weight=own * self.mu))
        self.algorithm_, trace = self._run(objective, seed)
        self.trace_ = trace
        self.n_iter_ = len(trace) - 1
        self.certified_gap_ = float(trace["certificate"][-1])
        m = objective.mean_mu
        self.certified_distance_ = math.sqrt(2.0 * self.certified_gap_ / m) if m > 0 else math.inf
        self._fitted_on = objective, trace.theta
        self._warn(objective)
        self.model_ = Model.of(objective, trace, schema=self._schema(X), record={"data": data})
        theta = np.atleast_2d(trace.theta)
        p = X.shape[1]
        self.coef_ = np.array(theta[:, :p])
        self.intercept_ = np.array(theta[:, p]) if theta.shape[1] > p else np.zeros(len(theta), theta.dtype)

    def _run(self, objective: Any, seed: int) -> tuple[Any, Trace]:
        """Return the method, the last one where it is chosen for the problem, and the trace."""
        scale = float(objective.mean(objective.value(objective.zeros())))
        chooses = isinstance(self.algorithm, str) and self.algorithm == "auto"
        participation = as_participation(self.participation)
        trace = run(
            "auto: minimise=gradients" if chooses else self.algorithm,  # nothing is sent here
            objective,
            rounds=int(self.max_rounds),
            tol=self.tol,
            atol=max(self.tol**2 * scale, NOTHING),
            theta0=self._start(objective),
            participation=participation,
            compressor=self.compressor,
            seed=seed,
        )
        if not chooses:
            return self.algorithm, trace
        return last_method(trace, objective, participation, self.compressor)[0], trace

    def _schema(self, X: Any) -> Schema:
        """Return what rows of the model are; labels are those of a classifier."""
        names, classes = getattr(self, "feature_names_in_", None), getattr(self, "classes_", None)
        return Schema(
            n_features=X.shape[1],
            feature_names=None if names is None else tuple(names.tolist()),
            classes=None if classes is None else tuple(classes.tolist()),
            dtype=str(X.dtype),
            offset=self._offset_origin,
        )

    def _counts(
        self, sample_weight: Any, class_weight: Any, X: Any, y: np.ndarray, loss: Loss, classes: Any = None
    ) -> np.ndarray | None:
        """Return what each row counts; None where all count alike."""
        like = np.zeros(0, X.dtype)
        if sample_weight is not None:
            sample_weight = as_row_weights(sample_weight, like, X.shape[0], "sample_weight")
            require(bool(sample_weight.any()), "sample_weight must not be zero for all rows")
        return row_weights(sample_weight, class_weight, y, like, loss, classes)

    def _parts(
        self, rows: int, owners: Any, seed: int, counts: np.ndarray | None
    ) -> tuple[list[np.ndarray], tuple[Any, ...]]:
        """Return the rows of each client and its name; without owners all rows are dealt out at random.

        Rows that do not count are of no client, and clients without rows that count are left out.
        """
        counted = np.arange(rows) if counts is None else np.flatnonzero(counts)
        if owners is None:
            n_clients = min(int(self.clients), len(counted)) if len(counted) < rows else int(self.clients)
            parts = iid(len(counted), n_clients, seed) if n_clients else []
            return [counted[part] for part in parts], tuple(range(n_clients))
        parts, names = by_owner(owners, rows)
        parts = [part if counts is None else part[counts[part] > 0] for part in parts]
        found = [(part, name) for part, name in zip(parts, names, strict=True) if len(part)]
        return [part for part, _ in found], tuple(name for _, name in found)

    def _start(self, objective: Any) -> np.ndarray | None:
        """Return the latest model, for a warm start on rows of the same columns and classes."""
        if not self.warm_start or not hasattr(self, "coef_"):
            return None
        columns = [np.atleast_2d(self.coef_)]
        if kind_of_intercept(self.intercept) != "none":
            columns.append(np.atleast_1d(self.intercept_)[:, None])
        last, zero = np.hstack(columns), objective.zeros()
        return last.reshape(zero.shape).astype(zero.dtype) if last.size == zero.size else None

    def _warn(self, objective: Any) -> None:
        trace = self.trace_
        if trace.status == "diverged":
            method, rounds = self.algorithm_, self.n_iter_
            raise ValueError(f"algorithm {method} diverged after {rounds} rounds: change its parameters.")
        if trace.status == "converged":
            return
        kappa = float(np.max(objective.L)) / objective.mean_mu if objective.mean_mu > 0 else math.inf
        scaling = f"; kappa = L/mu is {kappa:.1e}: scale the features" if 1e6 < kappa < math.inf else ""
        warnings.warn(
            f"The certified gap is {self.certified_gap_:.1e} after {self.n_iter_} rounds ({trace.status}), more than "
            f"tol = {self.tol:g} asks for{scaling}.",
            ConvergenceWarning,
            stacklevel=4,
        )

    def _seed(self) -> int:
        if isinstance(self.random_state, Integral):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _named_loss(self) -> Any:
        return built(self.loss, "loss")

    def _check_parameters(self) -> None:
        kind_of_intercept(self.intercept)
        if self.penalty not in ("l2", "l1", "elasticnet"):
            raise ValueError(f"penalty must be 'l2', 'l1' or 'elasticnet', not {self.penalty!r}.")
        if not isinstance(self.l1_ratio, Real) or not 0 <= float(self.l1_ratio) <= 1:
            raise ValueError(f"l1_ratio must be a number from 0 to 1, not {self.l1_ratio!r}.")
        for name in ("mu", "tol"):
            value: Any = getattr(self, name)
            if not isinstance(value, Real) or not 0 < float(value) < math.inf:
                raise ValueError(f"{name} must be a positive finite number, not {value!r}.")
        if not isinstance(self.max_rounds, Integral) or self.max_rounds < 1:
            raise ValueError(f"max_rounds must be an integer of at least 1, not {self.max_rounds!r}.")
        if not isinstance(self.clients, str) and (not isinstance(self.clients, Integral) or self.clients < 1):
            raise ValueError(f"clients must be a number of at least 1 or the name of a column, not {self.clients!r}.")

    def _validated(self, X: Any, y: Any, owners: Any) -> tuple[Any, Any]:
        """Return rows and labels as scikit-learn checks them."""
        _require_unmasked(X=X, y=y)
        few = self.clients if owners is None and isinstance(self.clients, Integral) else 1
        validated: Any = validate_data(
            self,
            X,
            y,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            ensure_min_samples=max(1, int(few)),
        )
        return validated

    def save_model(self, path: str | Path) -> None:
        """Write the model for other programs, and for ``dualopt predict``: ``model.json`` and ``model.npz``.

        Steps of a pipeline before the estimator are not in it.

        Parameters
        ----------
        path : str or Path
            A folder, or the file of the description, which ends in ``.json`` (:meth:`dualopt.Model.save`).

        Raises
        ------
        ValueError
            If classes are neither numbers nor words.
        OSError
            If a file cannot be written.
        """
        check_is_fitted(self)
        self.model_.save(path)

    def _predictors(self, X: Any, offset: Any = None, exposure: Any = None) -> np.ndarray:
        """Return ``X coef_' + intercept_ + offset``, shape ``(m, outputs)``."""
        check_is_fitted(self)
        X, offset = self._new_offset(X, offset, exposure)
        if self._client_column is not None:
            try:
                rest, _ = without_column(X, self._client_column, "clients")
            except ValueError:  # rows to predict need not say whose they are
                pass
            else:
                X = rest.to_native()
        _require_unmasked(X=X)
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
        return np.asarray(X @ np.atleast_2d(self.coef_).T) + np.atleast_1d(self.intercept_) + offset


def _require_unmasked(**arguments: Any) -> None:
    """Refuse masked values; scikit-learn would take what is below the mask."""
    for name, values in arguments.items():
        if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
            raise ValueError(f"{name} must not have masked values.")
