"""A model as a fitted pipeline of scikit-learn."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np

from dualopt.arrays._extras import optional
from dualopt.problem.data._scaling import SHIFTS

__all__ = ["pipeline"]


def pipeline(model: Any) -> Any:
    """Return the pipeline; see `Model.to_sklearn`."""
    made = optional("sklearn.pipeline", "to_sklearn").Pipeline
    if model.schema.columns is not None:
        raise ValueError("to_sklearn needs a model of numbers without gaps, not one that makes features of a table.")
    layers = model.layers
    if model.schema.scaling.how in SHIFTS:  # a constant column is 0 in every row, which no scaler makes it
        first, b = layers[0]
        layers = ((np.where(model.schema.scaling.factor > 0, first, 0.0).astype(first.dtype), b), *layers[1:])
    last = _network(model, layers) if len(layers) > 1 else _linear(model, *layers[0])
    scaler = _scaler(model.schema)
    steps = [last] if scaler is None else [scaler, last]
    for step in steps:
        step.n_features_in_ = model.schema.n_features
    if model.schema.feature_names is not None:
        steps[0].feature_names_in_ = np.asarray(model.schema.feature_names, dtype=object)
    return made([(name, step) for name, step in zip(("scaler", "model")[-len(steps) :], steps, strict=True)])


def _scaler(schema: Any) -> Any:
    """Return the scaler; None where features stay what they are."""
    scaling, d = schema.scaling, schema.n_features
    preprocessing = import_module("sklearn.preprocessing")
    if scaling.how == "none":
        return None
    if scaling.how == "unit-rows":
        return preprocessing.Normalizer()
    if scaling.how == "divide":
        deviations, found = np.full(d, scaling.divisor), preprocessing.StandardScaler(with_mean=False)
        found.mean_ = None
    else:
        factor = np.asarray(scaling.factor, dtype=np.float64)
        deviations = np.where(factor > 0, scaling.peak / np.where(factor > 0, factor, 1.0), 1.0)
        found = preprocessing.StandardScaler()
        found.mean_ = np.asarray(scaling.mean, dtype=np.float64)
    return _with(found, scale_=deviations, var_=deviations**2, n_samples_seen_=1)


def _linear(model: Any, W: np.ndarray, b: np.ndarray) -> Any:
    """Return the estimator that the loss names, with these coefficients; without a name, one that predicts alike."""
    loss, classes = model.loss, model.classes
    name = getattr(loss, "sklearn", None)
    if name is None and not hasattr(loss, "mean"):
        name = {"real": "linear_model.Ridge", "binary": "svm.LinearSVC", "class": "svm.LinearSVC"}[loss.labels]
    if name is None:
        raise ValueError(f"loss {type(loss).__name__} names no estimator of scikit-learn, so that to_sklearn has none.")
    if model.schema.offset is not None:
        raise ValueError("to_sklearn has no model with offsets: the estimators of scikit-learn do not take them.")
    module, _, name = name.rpartition(".")
    found = getattr(import_module(f"sklearn.{module}"), name)()
    if classes is None:
        if hasattr(found, "_get_loss"):  # generalised linear models predict by the link of their loss
            found._base_loss = found._get_loss()
        return _with(found, coef_=W[0], intercept_=float(b[0]), n_iter_=1)
    W, b = _contrast(W, b)
    return _with(found, coef_=W, intercept_=b, classes_=classes, n_iter_=np.ones(1, dtype=np.int32))


def _network(model: Any, layers: Any) -> Any:
    """Return a perceptron; for two classes scikit-learn has one output, the difference of ours."""
    classes, (W, b) = model.classes, _contrast(*layers[-1])
    widths = model.widths[1:-1]
    found = import_module("sklearn.neural_network").MLPClassifier(hidden_layer_sizes=widths)
    layers = [*layers[:-1], (W, b)]
    binarizer = import_module("sklearn.preprocessing").LabelBinarizer().fit(classes)
    return _with(
        found,
        coefs_=[np.array(W.T) for W, _ in layers],
        intercepts_=[b for _, b in layers],
        n_layers_=len(layers) + 1,
        n_outputs_=len(b),
        out_activation_="logistic" if len(b) == 1 else "softmax",
        classes_=classes,
        _label_binarizer=binarizer,
        n_iter_=1,
    )


def _contrast(W: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return one predictor for two classes, whose sign is that of the second less the first; more stay as they are."""
    return (W[1:] - W[:1], b[1:] - b[:1]) if len(b) == 2 else (W, b)


def _with(found: Any, **attributes: Any) -> Any:
    """Return an estimator with attributes, as if it were fitted."""
    known: Mapping[str, Any] = attributes
    for name, value in known.items():
        setattr(found, name, value)
    return found
