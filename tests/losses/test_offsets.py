"""Offsets of predictors, and exposures: values, gradients, conjugates, certificates, and statsmodels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dualopt import (
    AbsoluteDeviation,
    Gamma,
    Hinge,
    Huber,
    LinearModel,
    Logistic,
    Poisson,
    Quantile,
    SmoothedHinge,
    Squared,
    SquaredHinge,
    linear_model,
    run,
)
from dualopt.arrays.xp import to_numpy
from dualopt.losses._offset import WithOffset, labels_with_offset
from dualopt.methods import DistributedNewtonCG
from dualopt.runs.reference import solve

LOSSES = [Squared(), Huber(delta=0.4), AbsoluteDeviation(), Quantile(level=0.9), Poisson(), Gamma()]
LOSSES += [Logistic(), Hinge(), SmoothedHinge(), SquaredHinge()]
SHIFTED = [loss for loss in LOSSES if not hasattr(loss, "of_differences")]
rng = np.random.default_rng(0)
m, SIZES = 60, [range(7), range(7, 20), range(20, 60)]
X, OFFSET = rng.normal(size=(m, 3)), rng.normal(size=m)
PARTS = [1.0, 5.0, 0.2]


def labels(loss):
    y = np.random.default_rng(1).normal(size=m)
    if loss.labels == "binary":
        return np.sign(y)
    return np.floor(3.0 * np.abs(y)) if isinstance(loss, Poisson) else np.abs(y) if isinstance(loss, Gamma) else y


@pytest.mark.parametrize("storage", ["dense", "sparse"])
@pytest.mark.parametrize("weights", [None, rng.uniform(0.1, 2.0, m)], ids=["means", "weights"])
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_losses_are_those_of_shifted_predictors(loss, weights, storage):
    """Values, gradients and Hessians, with the offset added by hand."""
    y = labels(loss)
    f = linear_model(
        X, y, loss=loss, mu=0.3, clients=SIZES, weights=weights, offset=OFFSET, client_weights=PARTS, storage=storage
    )
    theta, v = np.random.default_rng(2).normal(size=(2, *f.shape))
    value, gradient = f.value_and_gradient(theta)
    design = np.hstack([X, np.ones((m, 1))])
    for j, rows in enumerate(SIZES):
        own = list(rows)
        w = np.full(len(own), 1.0 / len(own)) if weights is None else weights[own]
        z = design[own] @ theta + OFFSET[own]
        np.testing.assert_allclose(value[j], w @ loss.value(z, y[own]) + 0.15 * theta @ theta, rtol=1e-13)
        expected = (w * loss.gradient(z, y[own])) @ design[own] + 0.3 * theta
        np.testing.assert_allclose(gradient[j], expected, rtol=1e-12, atol=1e-13)
        if "hessian" in f.offers:
            expected = (w * loss.hessian_product(z, y[own], design[own] @ v)) @ design[own] + 0.3 * v
            np.testing.assert_allclose(f.hessian_product(theta, v)[j], expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("loss", SHIFTED, ids=repr)
def test_conjugates_and_proximal_points_are_those_of_shifted_losses(loss, backend):
    r"""``(phi(. + o))*(u) = phi*(u) - o u``, and ``p = prox(v)`` has ``v - p`` in the subdifferential at ``p + o``."""
    y = labels(loss) + (0.1 if isinstance(loss, Gamma) else 0.0)
    u = loss.gradient(0.7 * np.random.default_rng(3).normal(size=m), y)
    shifted = WithOffset(loss)
    both = labels_with_offset(loss, backend(y), backend(OFFSET))
    found = to_numpy(shifted.conjugate(backend(u), both))
    np.testing.assert_allclose(found, loss.conjugate(u, y) - OFFSET * u, rtol=1e-12, atol=1e-13)
    p = to_numpy(shifted.prox(backend(u), both, 0.5))
    np.testing.assert_allclose(p + OFFSET, loss.prox(u + OFFSET, y, 0.5), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_certificates_hold_in_every_round(loss):
    """Against a reference solution, whose dual point has a gap of its own."""
    f = linear_model(X, labels(loss), loss=loss, mu=0.2, clients=SIZES, offset=3.0 * OFFSET)
    found = solve(f)
    assert found.gap <= 1e-8 * found.energy
    trace = run("fedsplit", f, rounds=12, tol=1e-12)
    for energy, gap in zip(trace["energy"][1:], trace["certificate"][1:], strict=True):
        assert energy - gap <= found.energy + 1e-14
        assert found.energy - found.gap <= energy + 1e-14
    assert trace["certificate"][-1] <= found.energy


def test_exposures_are_those_of_statsmodels():
    sm = pytest.importorskip("statsmodels.api")
    exposure = np.exp(OFFSET)
    y = np.random.default_rng(4).poisson(exposure * np.exp(0.5 * X[:, 0])).astype(float)
    fitted = sm.GLM(y, X, family=sm.families.Poisson(), exposure=exposure).fit(tol=1e-14, maxiter=200)
    f = linear_model(
        X, y, loss="poisson", mu=1e-9, clients=SIZES, client_weights="rows", exposure=exposure, intercept=False
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
        (
            {"loss": "multinomial", "y": np.arange(m) % 3},
            r"offset must not be given with the loss Multinomial\(classes=3\), which has a predictor for each class\.",
        ),
        ({"offset": OFFSET[:5]}, r"offset must be 60 finite numbers, one for each row of X\."),
        (
            {"offset": np.where(np.arange(m) == 3, np.nan, OFFSET)},
            r"offset must be 60 finite numbers, one for each row",
        ),
        ({"offset": np.full(m, 1e3)}, r"offset must have numbers whose exponentials are within the range of the type"),
        ({"exposure": np.ones(m)}, r"exposure must not be given beside offset: add its logarithm to the offset\."),
        ({"offset": None, "exposure": np.zeros(m)}, r"exposure must be 60 positive finite numbers, one for each row"),
        (
            {"offset": None, "exposure": np.ones(m), "loss": "squared"},
            r"exposure must be given with a loss whose link is the logarithm, such as poisson, not Squared\(\)\.",
        ),
        ({"y": -np.ones(m)}, r"y must hold only nonnegative numbers for the loss Poisson\(\)\."),
    ],
)
def test_offsets_are_refused_in_one_sentence(changes, words):
    arguments: Any = {"X": X, "y": np.ones(m), "loss": "poisson", "mu": 0.1, "offset": OFFSET} | changes
    with pytest.raises(ValueError, match=f"^{words}"):
        linear_model(**arguments)


def test_an_offset_may_be_a_column():
    pd = pytest.importorskip("pandas")
    y = labels(Poisson())
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "exposure": np.exp(OFFSET), "o": OFFSET, "count": y})
    for argument, drop in (("offset", "exposure"), ("exposure", "o")):
        own: Any = {argument: "o" if argument == "offset" else "exposure"}
        f = linear_model(frame.drop(columns=drop), "count", loss="poisson", mu=0.1, **own)
        g = linear_model(X[:, :2], y, loss="poisson", mu=0.1, offset=OFFSET)
        assert isinstance(f, LinearModel)
        assert f.feature_names == ("a", "b")
        np.testing.assert_allclose(f.value(np.ones(3)), g.value(np.ones(3)), rtol=1e-14)
