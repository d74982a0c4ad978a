"""The classifier."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets

from dualopt.app.estimators._base import FederatedLinearModel
from dualopt.losses import Logistic, Loss, Multinomial

__all__ = ["FederatedClassifier"]


def _has_probabilities(self: Any) -> bool:
    """Tell whether the loss is a likelihood; refuse by an AttributeError, as scikit-learn expects."""
    loss = self.loss
    if loss in ("auto", "logistic", "multinomial") or isinstance(loss, Logistic | Multinomial):
        return True
    raise AttributeError(f"predict_proba needs the loss logistic or multinomial, not {loss}.")


class FederatedClassifier(ClassifierMixin, FederatedLinearModel):
    r"""Linear classifier trained over clients, with a certified accuracy.

    It minimises, over the weights and the intercept together,

    .. math:: E(\theta) = \sum_j \frac{w_j}{\sum_kw_k}\, \frac1{m_j}\sum_{i \in j} \phi(\theta x_i;\, y_i)
              + \tfrac{\text{mu}}{2} |\theta|^2

    with the weights :math:`w_j` of the clients. With ``client_weights="rows"`` (:math:`w_j = m_j`) and
    ``intercept="free"`` or ``"none"`` that is the problem of ``LogisticRegression(C=1/(mu * m))``, for two classes and
    for more; with the loss "hinge" that of ``LinearSVC(loss="hinge", C=1/(mu * m))``, with a penalised intercept, which
    both put into the penalty. The solution is the same however the rows are dealt out. With ``sample_weight`` rows
    count :math:`s_i`: the means over them are weighted, ``m`` and :math:`m_j` are the sums of the weights.

    Parameters
    ----------
    loss : str or Loss, default "auto"
        A loss for two classes ("logistic", "hinge", "smoothed-hinge") or for several ("multinomial"); auto is logistic
        for two and multinomial for more.
    algorithm : str or Algorithm, default "auto"
        The method, or its name; "auto" is what :func:`dualopt.recommend` says of the problem for few local gradients,
        as nothing is sent inside a process, and the next best where that diverges.
    mu : float, default 1e-2
        Weight of the penalty, positive.
    penalty : {"l2", "l1", "elasticnet"}, default "l2"
        The ridge above, which makes ``E`` strongly convex; :math:`\text{mu}\,|\theta|_1`; or
        :math:`\text{mu}\,(r|\theta|_1 + \frac{1 - r}2|\theta|^2)` with ``r = l1_ratio``.
    l1_ratio : float, default 0.5
        The share of the L1 norm in "elasticnet".
    tol : float, default 1e-6
        Stop when ``E - E*`` is certified to be at most ``tol E*``, or ``tol^2 E(0)``, which counts where ``E*`` is
        almost 0.
    max_rounds : int, default 1000
        Largest number of communication rounds; ending there gives a ``ConvergenceWarning``.
    clients : int or str, default 8
        Where ``fit`` is not told whose the rows are: the number of clients to whom they are dealt out at random, or the
        name of the column of a DataFrame that says it, which is then no feature.
    client_weights : "rows", "equal" or numbers, default "rows"
        Whether every row counts alike, or every client, or each client as a number says.
    class_weight : dict or "balanced", optional
        What the rows of each class count, beside ``sample_weight``; "balanced": as much as those of every other class,
        counted over all clients.
    participation : str or Participation, optional
        Who takes part in a round, such as "subset=10"; everybody when not given.
    compressor : str or Compressor, optional
        What clients' uploads go through, such as "rounding=8"; nothing when not given.
    intercept : {"penalised", "free", "none"}, default "penalised"
        Whether a column of ones is appended, whose weight is in the penalty like the others, for which the theorems
        hold, or not, which is what statisticians mean: a penalty moves the probabilities of rare classes towards 1/2.
    precision : {"double", "mixed"}, default "double"
        Whether clients work in single precision where they can, on features in double precision
        (:func:`dualopt.linear_model`): for large data.
    warm_start : bool, default False
        Whether ``fit`` starts from the latest model where it fits; methods on the dual start their local solvers there.
    random_state : int, RandomState or None, default 0
        Seed of the dealing out, of participation and of the method.

    Attributes
    ----------
    coef_ : array, shape (1, p) or (k, p)
        The weights.
    intercept_ : array, shape (1,) or (k,)
        The intercepts; zero without one.
    classes_ : array, shape (k,)
        The labels, sorted.
    trace_ : Trace
        The record of the run, round by round.
    model_ : Model
        The same model, for other programs: ``save_model`` writes it.
    n_iter_ : int
        Number of rounds.
    certified_gap_ : float
        Upper bound of ``E - E*``, rounding included.
    certified_distance_ : float
        Upper bound of the distance of the weights to the minimiser, a penalised intercept among them,
        ``sqrt(2 certified_gap_ / mu)`` with the ridge's share of ``mu``; infinite for "l1".
    algorithm_ : Algorithm
        The method that ran, with what "auto" has chosen.
    client_names_ : tuple
        The clients, in the order of the run.
    n_features_in_ : int
        Number ``p`` of features.
    feature_names_in_ : array, shape (p,)
        The names of the columns of a DataFrame.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), FederatedClassifier(clients=5))
    >>> round(model.fit(X, y).score(X, y), 2), model[-1].trace_.status
    (0.99, 'converged')
    """

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
        class_weight: Any = None,
        participation: Any = None,
        compressor: Any = None,
        intercept: Any = "penalised",
        precision: str = "double",
        warm_start: bool = False,
        random_state: Any = 0,
    ) -> None:
        super().__init__(
            loss=loss,
            algorithm=algorithm,
            mu=mu,
            penalty=penalty,
            l1_ratio=l1_ratio,
            tol=tol,
            max_rounds=max_rounds,
            clients=clients,
            client_weights=client_weights,
            participation=participation,
            compressor=compressor,
            intercept=intercept,
            precision=precision,
            warm_start=warm_start,
            random_state=random_state,
        )
        self.class_weight = class_weight

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        several = self.loss in ("auto", "multinomial") or getattr(self.loss, "labels", None) == "class"
        tags.classifier_tags.multi_class = several
        return tags

    def fit(
        self,
        X: Any,
        y: Any,
        groups: Any = None,
        clients: Any = None,
        sample_weight: Any = None,
        offset: Any = None,
    ) -> Self:
        """Train on the rows of all clients.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame, shape (m, p)
            Features.
        y : vector, shape (m,)
            Labels of any kind.
        groups, clients : vector, shape (m,), or str, optional
            Whose each row is, by names of any hashable kind; the two words mean the same. A string is the name of a
            column of the DataFrame ``X``.
        sample_weight : vector, shape (m,), optional
            What each row counts, at least 0; a row of weight 2 is the same as the row twice.
        offset : vector, shape (m,), or str, optional
            What is added to the predictor of each row; a string is the name of a column of the DataFrame ``X``, in
            which predictions find it, too; for two classes.

        Raises
        ------
        ValueError
            If an argument does not fit, or the method diverges.
        """
        X, offset = self._with_offset(X, offset, None)
        X, owners = self._rows(X, groups, clients)
        X, y = self._validated(X, y, owners)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        loss = self._loss_for(len(self.classes_))
        labels = codes if loss.labels == "class" else (2.0 * codes - 1.0).astype(X.dtype)
        counts = self._counts(sample_weight, self.class_weight, X, labels, loss, self.classes_.tolist())
        self._train(X, labels, owners, loss, counts, offset)
        return self

    def decision_function(self, X: Any, offset: Any = None) -> np.ndarray:
        """Return the predictors, shape ``(m,)`` for two classes, positive for the second one, else ``(m, k)``.

        An ``offset``, of shape ``(m,)``, is needed where ``fit`` had one, unless it is a column of ``X``.
        """
        z = self._predictors(X, offset)
        if len(self.classes_) > 2:
            return z
        return z[:, 0] if z.shape[1] == 1 else z[:, 1] - z[:, 0]

    def predict(self, X: Any, offset: Any = None) -> np.ndarray:
        """Return the labels of rows, shape ``(m,)``."""
        z = self.decision_function(X, offset)
        return self.classes_[(z > 0).astype(np.int64) if z.ndim == 1 else np.argmax(z, axis=1)]

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any, offset: Any = None) -> np.ndarray:
        """Return the probabilities of the classes, shape ``(m, k)``."""
        z = self.decision_function(X, offset)
        z = np.stack([-z / 2, z / 2], axis=1) if z.ndim == 1 else z
        z = np.exp(z - z.max(axis=1, keepdims=True))
        return z / z.sum(axis=1, keepdims=True)

    @available_if(_has_probabilities)
    def predict_log_proba(self, X: Any, offset: Any = None) -> np.ndarray:
        """Return the logarithms of the probabilities, shape ``(m, k)``."""
        z = self.decision_function(X, offset)
        z = np.stack([-z / 2, z / 2], axis=1) if z.ndim == 1 else z
        z = z - z.max(axis=1, keepdims=True)
        return z - np.log(np.exp(z).sum(axis=1, keepdims=True))

    def _loss_for(self, n_classes: int) -> Loss:
        if n_classes < 2:
            raise ValueError("y must have at least two classes, but it has only 1 class.")
        if self.loss == "auto":
            return Logistic() if n_classes == 2 else Multinomial(classes=n_classes)
        if self.loss == "multinomial":
            return Multinomial(classes=n_classes)
        loss = self._named_loss()
        if loss.labels == "real":
            raise ValueError(f"loss {self.loss} is for numbers: use FederatedRegressor.")
        if loss.labels == "binary" and n_classes > 2:
            raise ValueError(  # in the words that scikit-learn looks for
                "Only binary classification is supported. The type of the target is multiclass. The loss is "
                f"{self.loss}, and y has {n_classes} classes: use the loss multinomial, or OneVsRestClassifier."
            )
        if loss.labels == "class" and loss.outputs != n_classes:
            raise ValueError(f"loss {self.loss} has another number of classes than y, which has {n_classes}.")
        return loss
