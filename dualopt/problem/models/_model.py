"""Trained models: what predicts, and what is known of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from dualopt.arrays.xp import is_sparse
from dualopt.losses import Loss
from dualopt.problem.data._scaling import SHIFTS, Scaling
from dualopt.problem.models._description import described, parts
from dualopt.problem.models._file import read_head, write
from dualopt.problem.models._schema import Schema
from dualopt.problem.models._training import UNCERTIFIED, trained
from dualopt.runs.trace import Trace
from dualopt.spec import Spec

if TYPE_CHECKING:
    from dualopt.problem.models._module import TrainedModule

__all__ = ["Model"]

PIECE = 2**22  # numbers of rows that are scaled at once, in a copy


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Model:
    r"""A trained model, which predicts for rows that no client had.

    .. math:: z = W_K a_{K-1} + b_K, \qquad a_l = \max(0,\, W_l a_{l-1} + b_l), \qquad a_0 = s(x)

    with the scaling ``s`` of the features; a linear model has ``K = 1``, :math:`z = W s(x) + b`. Of a module of PyTorch
    :math:`z = \text{module}(s(x))`. Real labels are
    predicted by ``z``, or by the mean that the loss gives it, such as :math:`e^z` where its link is the logarithm;
    two classes by the sign of ``z``, several by the largest.

    ``dualopt run --out out`` leaves one in ``out/model.json`` and ``out/model.npz``, estimators write one with
    ``save_model``, and :meth:`of` makes one of an objective and its trace.

    Attributes
    ----------
    layers : tuple of pairs of arrays
        ``(W_l, b_l)`` of each layer, shapes ``(outputs, inputs)`` and ``(outputs,)``; of a linear model with one
        predictor for each of ``k`` classes ``W`` is ``(k, d)``, with one alone ``(1, d)``. Empty with a ``module``.
    loss : Loss
        The loss that was minimised.
    schema : Schema
        What rows must be.
    certificate : dict
        ``certified``: whether ``gap`` bounds ``E - E*`` (no where the run has found that it is false); ``gap``,
        ``energy``, ``relative_error`` and ``distance``, a bound of the distance of the trained parameters to the
        minimiser, :math:`\sqrt{2\,\text{gap}/\mu}` with the strong convexity constant of ``E``. None where nothing is
        known; of a run that diverged nothing is, and with a free intercept no distance.
    record : dict
        Where it comes from, as JSON has it: status, rounds, method, options, versions, and a hash of the data.
    module : TrainedModule, optional
        A module of PyTorch, in place of layers.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt import linear_model, run
    >>> X, y = [[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]], ["no", "yes", "yes"]
    >>> f = linear_model(X, y, loss="logistic", mu=0.1, clients=3)
    >>> model = Model.of(f, run("dualfl", f, tol=1e-8))
    >>> model.predict([[2.0, 1.0]]).tolist(), model.certificate["certified"]
    (['yes'], True)
    """

    layers: tuple[tuple[np.ndarray, np.ndarray], ...]
    loss: Loss
    schema: Schema
    certificate: Mapping[str, Any] = field(default_factory=UNCERTIFIED.copy)
    record: Mapping[str, Any] = field(default_factory=dict)
    module: TrainedModule | None = None

    def __repr__(self) -> str:
        """Say what it predicts, and from what."""
        widths = "-".join(map(str, self.widths))
        widths = widths if self.module is None else f"{self.module.name} {widths}"
        return f"<Model {widths}, loss {Spec.of(self.loss, unknown=repr)}, {self.schema.dtype}>"

    @classmethod
    def of(
        cls,
        objective: Any,
        trace: Trace,
        *,
        scaling: Scaling | None = None,
        schema: Schema | None = None,
        rows: Any = None,
        record: Mapping[str, Any] | None = None,
    ) -> Self:
        """Return the model of a run.

        Parameters
        ----------
        objective : LinearModel or MLP, perhaps with a penalty or a regulariser
            What was minimised.
        trace : Trace
            The run; its model is in the coordinates of the objective, whatever prepared or scaled the run.
        scaling : Scaling, optional
            What was done to the features before the objective was built, such as that of
            ``dualopt.problem.data.load(...)``; nothing when not given.
        schema : Schema, optional
            All that is known of the rows, in place of what the objective knows.
        rows : LinearModel or MLP, optional
            The rows under the objective, where it does not hold them itself: those of its clients are elsewhere.
        record : dict, optional
            What else is to be known, of values that JSON has, such as ``{"data": {"sha256": ...}}``.

        Raises
        ------
        ValueError
            If the objective is none of rows and labels, or its model is not one that predicts.
        """
        parts = trained(objective, trace, scaling=scaling, schema=schema, rows=rows, record=record)
        return cls(**parts)

    @property
    def widths(self) -> tuple[int, ...]:
        """Number of features, of the units of hidden layers, and of predictors; of a module the first and the last."""
        if self.module is not None:
            return (self.schema.n_features, self.loss.outputs)
        return (self.schema.n_features, *(len(b) for _, b in self.layers))

    @property
    def coef(self) -> np.ndarray:
        """The weights of the scaled features of a linear model, shape ``(k, d)``."""
        return self._linear()[0]

    @property
    def intercept(self) -> np.ndarray:
        """The intercepts of a linear model, shape ``(k,)``; zero without one."""
        return self._linear()[1]

    @property
    def classes(self) -> np.ndarray | None:
        """The labels that are predicted, shape ``(k,)``, in the order of the probabilities; None for numbers."""
        return self.schema.labels(self.loss.labels, self.loss.outputs)

    @property
    def has_probabilities(self) -> bool:
        """Whether the loss is a likelihood of classes."""
        return self.loss.labels != "real" and hasattr(self.loss, "mean")

    def predict(self, X: Any, offset: Any = None) -> np.ndarray:
        """Return the labels of rows, shape ``(m,)``: classes, or numbers.

        Parameters
        ----------
        X : DataFrame, array, sparse matrix of SciPy, tensor or list of lists, shape (m, d)
            The features as the data had them, before they were scaled; :class:`Schema` says how columns are found.
        offset : number or vector of shape (m,), optional
            What is added to the predictors, such as logarithms of exposures; by default the column of ``X`` that the
            model was trained with.

        Raises
        ------
        ValueError
            If the rows do not fit the model, with one sentence.
        """
        return self.labels(self.predictors(X, offset))

    def predict_proba(self, X: Any, offset: Any = None) -> np.ndarray:
        """Return the probabilities of the classes, shape ``(m, k)``; arguments are those of :meth:`predict`.

        Raises
        ------
        ValueError
            If the loss is no likelihood, such as the hinge loss, or of numbers.
        """
        if not self.has_probabilities:
            raise ValueError(f"predict_proba needs a loss that is a likelihood of classes, not {Spec.of(self.loss)}.")
        return self.probabilities(self.predictors(X, offset))

    def decision_function(self, X: Any, offset: Any = None) -> np.ndarray:
        """Return the predictors, ``(m,)`` for numbers and two classes, positive for the second, else ``(m, k)``."""
        z = self.predictors(X, offset)
        if len(z) == 2:
            return z[1] - z[0]
        return z[0] if len(z) == 1 else z.T

    def predictors(self, X: Any, offset: Any = None) -> np.ndarray:
        """Return ``z`` of rows, shape ``(k, m)``, with ``k`` the number of outputs of the loss."""
        found = [self._forward(piece) for piece in self._pieces(self.schema.rows(X))]
        return np.concatenate(found, axis=1) + self.schema.offsets(X, offset)

    def labels(self, z: np.ndarray) -> np.ndarray:
        """Return what is predicted at predictors of shape ``(k, m)``, shape ``(m,)``."""
        classes = self.classes
        if classes is None:
            mean = getattr(self.loss, "mean", None)
            return z[0] if mean is None else mean(z[0])
        return classes[(z[0] > 0).astype(np.int64) if len(z) == 1 else np.argmax(z, axis=0)]

    def probabilities(self, z: np.ndarray) -> np.ndarray:
        """Return the probabilities of the classes at predictors of shape ``(k, m)``, shape ``(m, classes)``."""
        mean: Any = self.loss.mean  # pyright: ignore[reportAttributeAccessIssue]
        return np.stack([mean(-z[0]), mean(z[0])], axis=1) if self.loss.labels == "binary" else mean(z).T

    def to_sklearn(self) -> Any:
        """Return the same model as a fitted pipeline of scikit-learn, a scaler and an estimator.

        It predicts the same to rounding, without this package: for joblib, skl2onnx, and whatever reads scikit-learn.

        Raises
        ------
        ValueError
            If no estimator of scikit-learn predicts as the loss does, or the model has offsets, which none of them has.
        ModuleNotFoundError
            If scikit-learn is missing.
        """
        from dualopt.problem.models._sklearn import pipeline  # few ask for it

        return pipeline(self)

    def save(self, path: str | Path) -> None:
        """Write ``model.json`` and ``model.npz`` into a folder, or two files named as a path that ends in ``.json``.

        Each is whole or not there. The description says how predictions are made and where the model comes from; it
        holds no rows, but names of columns and classes, and, of a scaling, means and deviations of columns.

        Parameters
        ----------
        path : str or Path
            A folder, which is made where there is none, or the file of the description.

        Raises
        ------
        ValueError
            If classes are neither numbers nor words nor truth values, which JSON could not tell.
        OSError
            If a file cannot be written.
        """
        write(path, *described(self))

    @classmethod
    def load(cls, path: str | Path, *, types: Iterable[Callable[..., Any]] = ()) -> Self:
        """Read what :meth:`save` wrote.

        The files may come from anywhere: nothing in them is executed, and what is damaged, or not as large as it
        says, is refused.

        Parameters
        ----------
        path : str or Path
            The folder, or the file of the description.
        types : iterable of classes and functions, optional
            Losses of your own, and what makes your modules of PyTorch, which a file may name beside those of this
            package.

        Raises
        ------
        ValueError
            If there is no model, or it is damaged, of a newer version, or has an unknown loss or module; the sentence
            names it.

        Examples
        --------
        >>> import tempfile
        >>> from dualopt import Squared
        >>> schema = Schema(n_features=2)
        >>> with tempfile.TemporaryDirectory() as out:
        ...     Model(layers=((np.ones((1, 2)), np.zeros(1)),), loss=Squared(), schema=schema).save(out)
        ...     Model.load(out).predict([[1, 2], [3, 4]]).tolist()
        [3.0, 7.0]
        """
        return cls(**parts(read_head(path), types))

    def _linear(self) -> tuple[np.ndarray, np.ndarray]:
        if len(self.layers) != 1:
            raise AttributeError("coef and intercept are those of a linear model; a network has layers.")
        return self.layers[0]

    def _pieces(self, X: Any) -> Iterator[Any]:
        """Yield some rows at a time, scaled, in a copy; dense where the model needs it."""
        scaling, dense = self.schema.scaling, len(self.layers) != 1 or self.schema.scaling.how in SHIFTS
        step = max(1, PIECE // X.shape[1]) if dense or not is_sparse(X) else X.shape[0]
        for start in range(0, X.shape[0], step):
            piece = X[start : start + step]
            piece = piece.toarray() if dense and is_sparse(piece) else piece
            with np.errstate(all="ignore"):  # what is too large for float32, or for the scaling, is refused below
                piece = scaling.apply_in_place(piece.astype(self.schema.dtype, copy=True))
            entries = piece.data if is_sparse(piece) else piece
            if not np.isfinite(entries).all():
                raise ValueError(f"X must be finite in {self.schema.dtype} when it is scaled.")
            yield piece

    def _forward(self, X: Any) -> np.ndarray:
        """Return ``z`` of scaled rows, shape ``(k, b)``."""
        if self.module is not None:
            return self.module.predictors(X)
        a = None
        for W, b in self.layers:
            z = ((X @ W.T).T if a is None else W @ a) + b[:, None]
            a = np.maximum(z, 0)
        return z
