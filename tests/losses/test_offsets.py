"""Offsets of predictors: the same losses, with other labels and weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dualopt import AbsoluteDeviation, Gamma, Huber, Poisson, Quantile, Squared, linear_model, run
from dualopt.methods import DistributedNewtonCG

LOSSES = [Squared(), Huber(delta=0.4), AbsoluteDeviation(), Quantile(level=0.9), Poisson(), Gamma()]
rng = np.random.default_rng(0)
m, SIZES = 60, [range(7), range(7, 20), range(20, 60)]
X, OFFSET = rng.normal(size=(m, 3)), rng.normal(size=m)
PARTS = [1.0, 5.0, 0.2]


def labels(loss):
    y = np.random.default_rng(1).normal(size=m)
    return np.floor(3.0 * np.abs(y)) if isinstance(loss, Poisson) else np.abs(y) if isinstance(loss, Gamma) else y


@pytest.mark.parametrize("weights", [None, rng.uniform(0.1, 2.0, m)], ids=["means", "weights"])
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_losses_are_those_of_shifted_predictors(loss, weights):
    """Values and gradients, with the offset added by hand."""
    y = labels(loss)
    f = linear_model(X, y, loss=loss, mu=0.3, clients=SIZES, weights=weights, offset=OFFSET, client_weights=PARTS)
    theta = np.random.default_rng(2).normal(size=f.shape)
    value, gradient = f.value_and_gradient(theta)
    design = np.hstack([X, np.ones((m, 1))])
    for j, rows in enumerate(SIZES):
        own = list(rows)
        w = np.full(len(own), 1.0 / len(own)) if weights is None else weights[own]
        z = design[own] @ theta + OFFSET[own]
        np.testing.assert_allclose(value[j], w @ loss.value(z, y[own]) + 0.15 * theta @ theta, rtol=1e-13)
        expected = (w * loss.gradient(z, y[own])) @ design[own] + 0.3 * theta
        np.testing.assert_allclose(gradient[j], expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_conjugates_are_those_of_shifted_losses(loss):
    """``(phi(. + o))* (u) = phi*(u) - o u``, and a factor ``c`` gives ``c phi*(u/c)``."""
    y = labels(loss) + (0.1 if isinstance(loss, Gamma) else 0.0)
    u = loss.gradient(0.7 * np.random.default_rng(3).normal(size=m), y)
    label, factor = loss.with_offset(y, OFFSET)
    factor = 1.0 if factor is None else factor
    found = factor * loss.conjugate(u / factor, label)
    np.testing.assert_allclose(found, loss.conjugate(u, y) - OFFSET * u, rtol=1e-12, atol=1e-13)


def test_exposures_are_those_of_statsmodels():
    sm = pytest.importorskip("statsmodels.api")
    exposure = np.exp(OFFSET)
    y = np.random.default_rng(4).poisson(exposure * np.exp(0.5 * X[:, 0])).astype(float)
    fitted = sm.GLM(y, X, family=sm.families.Poisson(), exposure=exposure).fit(tol=1e-14, maxiter=200)
    f = linear_model(
        X, y, loss="poisson", mu=1e-9, clients=SIZES, client_weights="rows", offset=OFFSET, intercept=False
    )
    trace = run(DistributedNewtonCG(), f, rounds=200, tol=1e-13)
    # the ridge, and the gap, over the least eigenvalue of the Hessian, which is above 0.1 here
    H = np.stack([f.mean(f.hessian_operator(trace.theta)(np.tile(e, (3, 1)))) for e in np.eye(3)])
    least = float(np.linalg.eigvalsh(H)[0])
    allowed = 2.0 * (1e-9 * np.linalg.norm(trace.theta) / least + np.sqrt(2.0 * trace["certificate"][-1] / least))
    assert np.linalg.norm(trace.theta - fitted.params) <= allowed <= 1e-5
    without = linear_model(X, y, loss="poisson", mu=1e-9, clients=SIZES, client_weights="rows", intercept=False)
    assert np.linalg.norm(run(DistributedNewtonCG(), without, rounds=200).theta - fitted.params) > 0.1


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"loss": "logistic"}, r"offset needs a loss of numbers, such as 'poisson', not Logistic\(\)\."),
        ({"offset": OFFSET[:5]}, r"offset must be 60 finite numbers, one for each row of X\."),
        (
            {"offset": np.where(np.arange(m) == 3, np.nan, OFFSET)},
            r"offset must be 60 finite numbers, one for each row",
        ),
        ({"offset": np.full(m, 1e3)}, r"offset must have numbers whose exponentials are within the range of the type"),
        ({"y": -np.ones(m)}, r"y must hold only nonnegative numbers for the loss Poisson\(\)\."),
    ],
)
def test_offsets_are_refused_in_one_sentence(changes, words):
    arguments: Any = {"X": X, "y": np.ones(m), "loss": "poisson", "mu": 0.1, "offset": OFFSET} | changes
    if arguments["loss"] == "logistic":
        arguments["y"] = np.sign(X[:, 0])
    with pytest.raises(ValueError, match=f"^{words}"):
        linear_model(**arguments)


def test_an_offset_may_be_a_column():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "log exposure": OFFSET, "count": labels(Poisson())})
    f = linear_model(frame, "count", loss="poisson", mu=0.1, offset="log exposure")
    g = linear_model(X[:, :2], labels(Poisson()), loss="poisson", mu=0.1, offset=OFFSET)
    assert f.feature_names == ("a", "b")
    assert f.value(np.ones(3)).tolist() == g.value(np.ones(3)).tolist()
