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

from dualopt.losses import Loss
from dualopt.objectives import LinearModel, linear_model
from dualopt.problem.data import iid
from dualopt.problem.inputs import by_owner, without_column
from dualopt.problem.models import Model, Schema
from dualopt.runs.recording import run
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

    def __init__(
        self,
        *,
        loss: Any = "auto",
        algorithm: Any = "dualfl",
        mu: float = 1e-2,
        tol: float = 1e-6,
        max_rounds: int = 1000,
        clients: int | str = 8,
        client_weights: Any = "rows",
        participation: Any = None,
        compressor: Any = None,
        fit_intercept: bool = True,
        warm_start: bool = False,
        random_state: Any = 0,
    ) -> None:
        self.loss = loss
        self.algorithm = algorithm
        self.mu = mu
        self.tol = tol
        self.max_rounds = max_rounds
        self.clients = clients
        self.client_weights = client_weights
        self.participation = participation
        self.compressor = compressor
        self.fit_intercept = fit_intercept
        self.warm_start = warm_start
        self.random_state = random_state

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

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

    def _train(self, X: Any, y: np.ndarray, owners: Any, loss: Loss) -> np.ndarray:
        """Run the method on encoded labels; return the model, shape ``(outputs, p)``."""
        self._check_parameters()
        seed = self._seed()
        parts, self.client_names_ = self._parts(X.shape[0], owners, seed)
        objective = linear_model(
            X,
            y,
            loss=loss,
            mu=self.mu,
            clients=parts,
            client_weights=self.client_weights,
            intercept=bool(self.fit_intercept),
        )
        zero = objective.zeros()
        scale = float(objective.mean(objective.value(zero)))
        trace = run(
            self.algorithm,
            objective,
            rounds=int(self.max_rounds),
            tol=self.tol,
            atol=max(self.tol**2 * scale, NOTHING),
            theta0=self._start(objective),
            participation=self.participation,
            compressor=self.compressor,
            seed=seed,
        )
        self.trace_ = trace
        self.n_iter_ = len(trace) - 1
        self.certified_gap_ = float(trace["certificate"][-1])
        self.certified_distance_ = math.sqrt(2.0 * self.certified_gap_ / objective.mean_mu)
        self._warn(objective)
        self.model_ = Model.of(objective, trace, schema=self._schema(X))
        theta = np.atleast_2d(trace.theta)
        p = X.shape[1]
        self.coef_ = np.array(theta[:, :p])
        self.intercept_ = np.array(theta[:, p]) if self.fit_intercept else np.zeros(len(theta), theta.dtype)
        return theta

    def _schema(self, X: Any) -> Schema:
        """Return what rows of the model are; labels are those of a classifier."""
        names, classes = getattr(self, "feature_names_in_", None), getattr(self, "classes_", None)
        return Schema(
            n_features=X.shape[1],
            feature_names=None if names is None else tuple(names.tolist()),
            classes=None if classes is None else tuple(classes.tolist()),
            dtype=str(X.dtype),
        )

    def _parts(self, rows: int, owners: Any, seed: int) -> tuple[list[np.ndarray], tuple[Any, ...]]:
        """Return the rows of each client and its name; without owners all rows are dealt out at random."""
        if owners is not None:
            return by_owner(owners, rows)
        n_clients = int(self.clients)
        return iid(rows, n_clients, seed), tuple(range(n_clients))

    def _start(self, objective: LinearModel) -> np.ndarray | None:
        """Return the latest model, for a warm start on rows of the same columns and classes."""
        if not self.warm_start or not hasattr(self, "coef_"):
            return None
        columns = [np.atleast_2d(self.coef_)]
        if self.fit_intercept:
            columns.append(np.atleast_1d(self.intercept_)[:, None])
        last, zero = np.hstack(columns), objective.zeros()
        return last.reshape(zero.shape).astype(zero.dtype) if last.size == zero.size else None

    def _warn(self, objective: LinearModel) -> None:
        trace = self.trace_
        if trace.status == "diverged":
            raise ValueError(f"algorithm {self.algorithm} diverged after {self.n_iter_} rounds: change its parameters.")
        if trace.status == "converged":
            return
        kappa = float(np.max(objective.L)) / objective.mean_mu
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
        for name in ("mu", "tol"):
            value: Any = getattr(self, name)
            if not isinstance(value, Real) or not 0 < float(value) < math.inf:
                raise ValueError(f"{name} must be a positive finite number, not {value!r}.")
        if not isinstance(self.max_rounds, Integral) or self.max_rounds < 1:
            raise ValueError(f"max_rounds must be an integer of at least 1, not {self.max_rounds!r}.")
        if not isinstance(self.clients, str) and (not isinstance(self.clients, Integral) or self.clients < 1):
            raise ValueError(f"clients must be a number of at least 1 or the name of a column, not {self.clients!r}.")

    def _validated(self, X: Any, y: Any, owners: Any, **options: Any) -> tuple[Any, Any]:
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
            **options,
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

    def _predictors(self, X: Any) -> np.ndarray:
        """Return ``X coef_' + intercept_``, shape ``(m, outputs)``."""
        check_is_fitted(self)
        if self._client_column is not None:
            try:
                rest, _ = without_column(X, self._client_column, "clients")
            except ValueError:  # rows to predict need not say whose they are
                pass
            else:
                X = rest.to_native()
        _require_unmasked(X=X)
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
        return np.asarray(X @ np.atleast_2d(self.coef_).T) + np.atleast_1d(self.intercept_)


def _require_unmasked(**arguments: Any) -> None:
    """Refuse masked values; scikit-learn would take what is below the mask."""
    for name, values in arguments.items():
        if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
            raise ValueError(f"{name} must not have masked values.")
