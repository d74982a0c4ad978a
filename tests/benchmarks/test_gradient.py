"""One multinomial gradient at MNIST size against plain NumPy and scikit-learn.

Run with ``pytest tests/benchmarks/test_gradient.py --benchmark-only -s``.
"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn._loss import HalfMultinomialLoss
from sklearn.linear_model._linear_loss import LinearModelLoss

from dualopt.losses import Multinomial
from dualopt.objectives import linear_model

from .conftest import CLASSES
from .race import race, report

REPETITIONS = 15


def naive_gradient(X, y, W, b):
    """Mean loss and its gradient with respect to ``W`` and ``b``, written straight from the formulas."""
    rows = np.arange(len(y))
    Z = X @ W.T + b
    Z = Z - Z.max(axis=1, keepdims=True)
    P = np.exp(Z)
    total = P.sum(axis=1, keepdims=True)
    value = np.mean(np.log(total[:, 0]) - Z[rows, y])
    P = P / total
    P[rows, y] -= 1.0
    P = P / len(y)
    return value, np.column_stack([P.T @ X, P.sum(axis=0)])


def test_gradient(benchmark, images):
    """Same numbers to 1e-10, in less time."""
    X, y, source = images
    theta = 0.05 * np.random.default_rng(1).standard_normal((CLASSES, X.shape[1] + 1))
    W, b = np.ascontiguousarray(theta[:, :-1]), theta[:, -1]
    coef = np.asfortranarray(theta)  # the layout of scikit-learn's own solvers
    labels = y.astype(X.dtype)  # scikit-learn wants them in the type of X
    sklearn_loss = LinearModelLoss(base_loss=HalfMultinomialLoss(n_classes=CLASSES), fit_intercept=True)
    ours = {n: linear_model(X, y, loss=Multinomial(classes=CLASSES), mu=0.0, clients=n) for n in (1, 8)}

    timed = race(
        benchmark,
        {
            "dualopt": lambda: ours[1].value_and_gradient(theta),
            "dualopt, 8 clients": lambda: ours[8].value_and_gradient(theta),
            "NumPy": lambda: naive_gradient(X, y, W, b),
            "scikit-learn": lambda: sklearn_loss.loss_gradient(coef, X, labels, n_threads=1),
        },
        repetitions=REPETITIONS,
    )

    value, gradient = timed.results["NumPy"]
    for name, (other_value, other_gradient) in timed.results.items():
        if name.startswith("dualopt"):  # E is the mean over clients of equal size, and so over all rows
            other_value, other_gradient = other_value.mean(), other_gradient.mean(axis=0)
        assert other_value == pytest.approx(value, rel=1e-10, abs=0.0), name
        assert np.abs(other_gradient - gradient).max() <= 1e-10 * np.abs(gradient).max(), name

    seconds = timed.seconds
    ratios = {name: seconds[name] / seconds["dualopt"] for name in seconds}
    benchmark.extra_info.update(data=source, seconds=seconds, ratios=ratios)
    report(
        f"Gradient, {X.shape[0]} x {X.shape[1]}, k = {CLASSES}, {source}, medians of {REPETITIONS}",
        ["contestant", "ms", "time / dualopt"],
        [[name, f"{1e3 * seconds[name]:.1f}", f"{ratios[name]:.2f}"] for name in seconds],
    )
    assert ratios["NumPy"] >= 1.6
    assert ratios["scikit-learn"] >= 1.2
