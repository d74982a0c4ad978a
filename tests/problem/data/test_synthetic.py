"""Synthetic data: the distributions are the documented ones, by tests on large samples with a fixed seed."""

import numpy as np
import pytest

from dualopt.problem.data import load


@pytest.mark.parametrize("decay", [0.0, 1.2, 2.0])
def test_variances_decay(decay):
    X = load("synthetic-regression", m=40_000, d=3, decay=decay).X
    covariance = X.T @ X / len(X)
    # Six standard deviations of the sample variance, 6 sqrt(2/m) = 4 %.
    np.testing.assert_allclose(np.diag(covariance), np.arange(1.0, 4) ** -decay, rtol=0.043)
    np.testing.assert_allclose(covariance - np.diag(np.diag(covariance)), 0, atol=0.03)


def test_default_decay_and_sizes():
    data = load("synthetic-logistic", m=40_000, d=2)
    assert np.var(data.X[:, 1]) == pytest.approx(2**-1.2, rel=0.043)
    assert load("synthetic-logistic").X.shape == (1000, 20)


def test_regression_residual_is_the_noise():
    """The noise has its standard deviation, and none is exactly linear."""
    data = load("synthetic-regression", m=20_000, d=3, noise=0.5)
    weights, residual, *_ = np.linalg.lstsq(data.X, data.y)
    assert np.sqrt(residual[0] / 20_000) == pytest.approx(0.5, rel=0.03)
    exact = load("synthetic-regression", m=20_000, d=3, noise=0)
    true_weights = np.linalg.lstsq(exact.X, exact.y)[0]
    np.testing.assert_allclose(exact.X @ true_weights, exact.y, atol=1e-12)
    np.testing.assert_allclose(weights, true_weights, atol=0.05)


def logistic_score(X, signs, w):
    """Evaluate the gradient of the logistic likelihood, which has mean 0 at the true weights."""
    return X.T @ (signs / (1 + np.exp(signs * (X @ w)))) / len(X)


def test_logistic_labels_follow_the_logistic_model():
    """The likelihood score vanishes at the true weights (same seed without noise) and not elsewhere."""
    name, m = "synthetic-regression", 40_000
    regression = load(name, m=m, d=3, noise=0, seed=5)
    w = np.linalg.lstsq(regression.X, regression.y)[0]
    data = load("synthetic-logistic", m=m, d=3, seed=5)
    np.testing.assert_array_equal(data.X, regression.X)
    assert set(data.y.tolist()) == {-1, 1}
    assert np.abs(logistic_score(data.X, data.y, w)).max() < 6 * 0.5 / np.sqrt(m)
    assert np.abs(logistic_score(data.X, data.y, 1.5 * w)).max() > 0.02
    halved = load("synthetic-logistic", m=m, d=3, seed=5, noise=2.0)
    assert np.abs(logistic_score(halved.X, halved.y, w / 2)).max() < 6 * 0.5 / np.sqrt(m)


def test_logistic_without_noise_is_separable():
    data = load("synthetic-logistic", m=200, d=3, noise=0, seed=5)
    regression = load("synthetic-regression", m=200, d=3, noise=0, seed=5)
    np.testing.assert_array_equal(data.y, np.sign(regression.y))


def softmax_score(X, labels, W):
    """Evaluate the gradient of the softmax likelihood, which has mean 0 at the true weights."""
    odds = np.exp(X @ W)
    return X.T @ (np.eye(W.shape[1])[labels] - odds / odds.sum(axis=1, keepdims=True)) / len(X)


def test_multinomial_labels_follow_the_softmax_model():
    """The likelihood score vanishes at the true weights, drawn again from the stream, and not elsewhere."""
    m = 40_000
    data = load("synthetic-multinomial", m=m, d=2, classes=3, seed=1)
    rng = np.random.default_rng(np.random.SeedSequence(1, spawn_key=(4,)))
    rng.standard_normal((m, 2))  # the features come first in the stream, then the weights
    W = rng.standard_normal((2, 3))
    assert np.abs(softmax_score(data.X, data.y, W)).max() < 6 * 0.5 / np.sqrt(m)
    assert np.abs(softmax_score(data.X, data.y, 1.5 * W)).max() > 0.02


def test_multinomial_classes():
    """The labels are 0..k-1, ten by default."""
    assert set(load("synthetic-multinomial", m=2000, classes=3).y.tolist()) == {0, 1, 2}
    assert load("synthetic-multinomial", m=2000).y.max() == 9
