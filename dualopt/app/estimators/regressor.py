"""The regressor."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin

from dualopt.app.estimators._base import FederatedLinearModel
from dualopt.losses import Squared

__all__ = ["FederatedRegressor"]


class FederatedRegressor(RegressorMixin, FederatedLinearModel):
    r"""Linear regression trained over clients, with a certified accuracy.

    It minimises what :class:`FederatedClassifier` does, for a loss of numbers. With ``client_weights="rows"`` and
    ``intercept="free"`` or ``"none"`` that is the problem of ``Ridge(alpha=mu * m)``, and with the penalties "l1" and
    "elasticnet" that of ``Lasso(alpha=mu)`` and ``ElasticNet(alpha=mu, l1_ratio)``; with the loss "absolute-deviation"
    that of ``LinearSVR(epsilon=0, C=1/(mu * m))``, with a penalised intercept; with ``Huber(delta=epsilon * scale)``
    that of ``HuberRegressor(epsilon, alpha=mu * m / scale)``, which finds its ``scale_`` along the way.

    Parameters
    ----------
    loss : str or Loss, default "auto"
        "squared" (auto), "huber", "absolute-deviation", "quantile:level=0.9", "poisson", "gamma", or an object such as
        ``Huber(delta=0.5)``. With "poisson" and "gamma" predictions are means, exponentials of the predictors.
    algorithm, mu, penalty, l1_ratio, tol, max_rounds, clients, client_weights, participation, compressor
        As for :class:`FederatedClassifier`.
    intercept, precision, warm_start, random_state
        As for :class:`FederatedClassifier`.

    Attributes
    ----------
    coef_ : array, shape (p,)
        The weights.
    intercept_ : float
        The intercept; zero without one.
    algorithm_, model_, trace_, n_iter_, certified_gap_, certified_distance_
        As for :class:`FederatedClassifier`.
    client_names_, n_features_in_, feature_names_in_
        As for :class:`FederatedClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> X, y = make_regression(n_samples=60, n_features=3, noise=1.0, random_state=0)
    >>> model = FederatedRegressor(mu=1e-3, clients=4).fit(X, y)
    >>> round(model.score(X, y), 3), model.certified_gap_ < 1e-5
    (1.0, True)
    """

    def fit(
        self,
        X: Any,
        y: Any,
        groups: Any = None,
        clients: Any = None,
        sample_weight: Any = None,
        offset: Any = None,
        exposure: Any = None,
    ) -> Self:
        """Train on the rows of all clients.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame, shape (m, p)
            Features.
        y : vector, shape (m,)
            Numbers.
        groups, clients : vector, shape (m,), or str, optional
            Whose each row is, by names of any hashable kind; the two words mean the same. A string is the name of a
            column of the DataFrame ``X``.
        sample_weight : vector, shape (m,), optional
            What each row counts, at least 0; a row of weight 2 is the same as the row twice.
        offset : vector, shape (m,), or str, optional
            What is added to the predictor of each row; a string is the name of a column of the DataFrame ``X``, in
            which predictions find it, too.
        exposure : vector, shape (m,), or str, optional
            In place of ``offset``, positive numbers whose logarithm it is, such as days under observation: for
            "poisson" and "gamma".

        Raises
        ------
        ValueError
            If an argument does not fit, or the method diverges.
        """
        X, offset = self._with_offset(X, offset, exposure)
        X, owners = self._rows(X, groups, clients)
        X, y = self._validated(X, y, owners)
        loss = Squared() if self.loss == "auto" else self._named_loss()
        if loss.labels != "real":
            raise ValueError(f"loss {self.loss} is for classes: use FederatedClassifier.")
        counts = self._counts(sample_weight, None, X, y, loss)
        self._train(X, np.asarray(y, dtype=X.dtype), owners, loss, counts, offset)
        self.coef_, self.intercept_ = self.coef_[0], float(self.intercept_[0])
        return self

    def predict(self, X: Any, offset: Any = None, exposure: Any = None) -> np.ndarray:
        """Return the predictions for rows, shape ``(m,)``: means, for a loss that has them.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame, shape (m, p)
            Features.
        offset, exposure : vector, shape (m,), optional
            As for ``fit``: needed where it had one, unless it is a column of ``X``.

        Raises
        ------
        ValueError
            If rows do not fit those of ``fit``.
        """
        z = self._predictors(X, offset, exposure)[:, 0]
        mean = getattr(self._named_loss(), "mean", None) if self.loss != "auto" else None
        return z if mean is None else mean(z)
