"""One multinomial gradient at MNIST size against what else computes it: NumPy, scikit-learn, PyTorch and C.

Run with ``pytest tests/benchmarks/test_gradient.py --benchmark-only -s``; CPU times of one thread, medians of
contestants that take turns. A reading of the features alone is what no program can do without.
"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn._loss import HalfMultinomialLoss
from sklearn.linear_model._linear_loss import LinearModelLoss

from dualopt.losses import Multinomial
from dualopt.objectives import linear_model

from .compiled import gradient_in_c
from .conftest import CLASSES
from .race import in_turns, report

REPETITIONS = 15
OTHERS = ("NumPy", "scikit-learn", "PyTorch")


def naive_gradient(X, y, theta):
    """Mean loss and its gradient, written straight from the formulas."""
    rows = np.arange(len(y))
    Z = X @ theta.T
    Z = Z - Z.max(axis=1, keepdims=True)
    P = np.exp(Z)
    total = P.sum(axis=1, keepdims=True)
    value = np.mean(np.log(total[:, 0]) - Z[rows, y])
    P = P / total
    P[rows, y] -= 1.0
    P = P / len(y)
    return value, P.T @ X


def torch_gradient(X, y, theta):
    """Return the same by automatic differentiation, as a function of the tensors; None without PyTorch."""
    try:
        import torch  # pyright: ignore[reportMissingImports]
    except ModuleNotFoundError:
        return None
    torch.set_num_threads(1)
    rows, labels = torch.from_numpy(X), torch.from_numpy(y)

    def gradient():
        model = torch.from_numpy(theta).clone().requires_grad_()
        loss = torch.nn.functional.cross_entropy(rows @ model.T, labels)
        loss.backward()
        assert model.grad is not None
        return float(loss.detach()), model.grad.numpy()

    return gradient


@pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=lambda d: d.__name__)
def test_gradient(benchmark, monkeypatch, images, tmp_path, dtype):
    """The same numbers to rounding; faster than the others where Numba is installed."""
    X, y, source = images
    X = np.column_stack([X, np.ones(len(X))]).astype(dtype)
    theta = (0.05 * np.random.default_rng(1).standard_normal((CLASSES, X.shape[1]))).astype(dtype)
    coef = np.asfortranarray(theta)  # the layout of scikit-learn's own solvers
    labels = y.astype(dtype)  # scikit-learn wants them in the type of X
    loss = Multinomial(classes=CLASSES)
    sklearn_loss = LinearModelLoss(base_loss=HalfMultinomialLoss(n_classes=CLASSES), fit_intercept=False)
    monkeypatch.setenv("DUALOPT_FAST", "0")
    ours = {n: linear_model(X, y, loss=loss, mu=0.0, clients=n, intercept=False) for n in (1, 8)}
    monkeypatch.delenv("DUALOPT_FAST")
    compiled = linear_model(X, y, loss=loss, mu=0.0, clients=8, intercept=False)
    in_c, in_torch = gradient_in_c(tmp_path, dtype), torch_gradient(X, y, theta)
    contestants = {
        "dualopt": lambda: ours[1].value_and_gradient(theta),
        "dualopt, 8 clients": lambda: ours[8].value_and_gradient(theta),
        **(
            {"dualopt, 8 clients, Numba": lambda: compiled.value_and_gradient(theta)}
            if compiled.rows.is_compiled
            else {}
        ),
        "NumPy": lambda: naive_gradient(X, y, theta),
        "scikit-learn": lambda: sklearn_loss.loss_gradient(coef, X, labels, n_threads=1),
        **({} if in_torch is None else {"PyTorch": in_torch}),
        **({} if in_c is None else {"C": lambda: in_c(X, y, theta)}),
        "one reading of X": lambda: X.sum(),
    }
    seconds, results = in_turns(contestants, REPETITIONS)
    benchmark.pedantic(contestants["dualopt"], rounds=3)

    value, gradient = naive_gradient(X.astype(np.float64), y, theta.astype(np.float64))
    tolerance = 1e-10 if dtype is np.float64 else 1e-4
    for name, result in results.items():
        if name == "one reading of X":
            continue
        other_value, other_gradient = result
        if name.startswith("dualopt"):  # E is the mean over clients of equal size, and so over all rows
            other_value, other_gradient = other_value.mean(), other_gradient.mean(axis=0)
        assert other_value == pytest.approx(value, rel=tolerance, abs=0.0), name
        assert np.abs(other_gradient - gradient).max() <= tolerance * np.abs(gradient).max(), name

    ratios = {name: seconds[name] / seconds["dualopt"] for name in seconds}
    report(
        f"Gradient, {X.shape[0]:,} x {X.shape[1]}, {CLASSES} classes, {np.dtype(dtype)}, {source}",
        ["contestant", "ms of CPU time", "time / dualopt"],
        [[name, f"{1e3 * seconds[name]:.1f}", f"{ratios[name]:.2f}"] for name in seconds],
    )
    if compiled.rows.is_compiled:  # without it all of them wait for the same BLAS
        assert seconds["dualopt, 8 clients, Numba"] < min(s for name, s in seconds.items() if name in OTHERS)
