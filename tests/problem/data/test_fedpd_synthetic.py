"""FedPD's synthetic data: the laws of both cases, the literal recipe, and a published order of magnitude."""

import numpy as np
import pytest
from scipy.special import ndtr

from dualopt.problem.data import fedpd_synthetic as generators
from dualopt.problem.data import load, natural

STRONG = "synthetic-fedpd-strong"
CASES = [("synthetic-fedpd-weak", {}), (STRONG, {"recipe": "paper"}), (STRONG, {"recipe": "code"})]


def by_client(name, **options):
    """Load features and labels with a client axis."""
    data = load(name, **options)
    parts = natural(data.clients)
    return np.stack([data.X[rows] for rows in parts]), np.stack([data.y[rows] for rows in parts])


@pytest.mark.parametrize(("name", "options"), CASES)
def test_shapes_features_and_owners(name, options):
    """The documented defaults: 100 clients of 400 rows in order, 19 normal features and ones, labels -1 and +1."""
    data = load(name, **options)
    assert data.X.shape == (40_000, 20)
    np.testing.assert_array_equal(data.clients, np.repeat(np.arange(100), 400))
    np.testing.assert_array_equal(data.X[:, -1], 1.0)
    assert set(data.y.tolist()) == {-1, 1}
    Z = data.X[:, :-1]
    moments = Z.T @ Z / 40_000 - np.eye(19)
    assert np.abs(Z.mean(axis=0)).max() < 5 / np.sqrt(40_000)
    assert np.abs(np.diag(moments)).max() < 5 * np.sqrt(2 / 40_000)
    assert np.abs(moments - np.diag(np.diag(moments))).max() < 5 / np.sqrt(40_000)
    assert abs(np.mean(Z**4) - 3) < 5 * np.sqrt(96 / Z.size)


def test_weak_labels_are_fair_coins():
    """Neither the clients nor the features tell anything: 5 standard errors of means of signs."""
    X, y = by_client("synthetic-fedpd-weak")
    assert abs(y.mean()) < 5 / np.sqrt(y.size)
    assert np.abs(y.mean(axis=1)).max() < 5 / np.sqrt(400)
    correlations = np.einsum("nmd,nm->nd", X, y) / 400
    assert np.abs(correlations[:, :-1]).max() < 5 / np.sqrt(400)
    assert np.var(correlations) == pytest.approx(1 / 400, rel=5 * np.sqrt(2 / correlations.size))


def models_behind(X, y):
    """Estimate the direction of each client's model: E[y x] is proportional to it, as Stein's lemma says."""
    return np.einsum("nmd,nm->nd", X, y) / X.shape[1]


def test_strong_labels_follow_a_uniform_model_of_each_client():
    """The models are drawn again from the stream; labels disagree with the signs as often as normal noise makes."""
    X, y = by_client(STRONG, clients=200, rows=500, d=6, seed=2)
    rng = np.random.default_rng(np.random.SeedSequence(2, spawn_key=(4,)))
    rng.standard_normal((5, 100_000))  # the features come first in the stream
    models = rng.uniform(-10, 10, (200, 6))
    scores = np.einsum("nmd,nd->nm", X, models)
    wrong = np.sign(scores) != y
    expected = ndtr(-np.abs(scores))
    deviation = np.sqrt((expected * (1 - expected)).sum())
    assert abs(wrong.sum() - expected.sum()) < 5 * deviation
    assert expected.sum() > 30 * deviation  # so that absent noise, or noise of twice the size, would be seen
    assert np.abs(models).max() <= 10
    directions = models_behind(X, y)[:, :-1]
    cosines = np.einsum("nd,nd->n", directions, models[:, :-1]) / (
        np.linalg.norm(directions, axis=1) * np.linalg.norm(models[:, :-1], axis=1)
    )
    assert cosines.mean() > 0.9


def matlab(scores, thresholds):
    """Assign labels in the sequence of the public code, overwriting as it does."""
    labels = scores.copy()
    labels[(labels > 0) & (labels > thresholds)] = 1
    labels[(labels > 0) & (labels < thresholds)] = 2
    labels[(labels < 0) & (-labels > thresholds)] = 2
    labels[(labels < 0) & (-labels < thresholds)] = 1
    labels[labels == 2] = -1
    return labels


def literal(rng, clients, rows, d):
    """Draw the data in the order of the public code."""
    X = np.ones((clients * rows, d))
    X[:, :-1] = rng.standard_normal((d - 1, clients * rows)).T
    scores = np.empty(clients * rows)
    for j in range(clients):
        model = rng.random(d) * 40 + rng.integers(-10, 11, d)
        scores[j * rows : (j + 1) * rows] = X[j * rows : (j + 1) * rows] @ model
    labels = matlab(scores, rng.standard_normal(scores.size) * scores.max())
    return X.reshape(clients, rows, d), labels.reshape(clients, rows)


@pytest.mark.parametrize("d", [2, 20])
def test_recipe_of_the_code_is_the_literal_one(d):
    rngs = (np.random.default_rng(7) for _ in range(2))
    for ours, theirs in zip(
        generators.draw(generators._code, next(rngs), 30, 200, d), literal(next(rngs), 30, 200, d), strict=True
    ):
        np.testing.assert_array_equal(ours, theirs)


def test_small_scores_and_thresholds_near_one():
    """The rule in closed form equals the assignments in sequence where they matter."""
    scores, thresholds = (a.ravel() for a in np.meshgrid([-2, -0.5, 0.3, 0.9, 1.5, 7], [-3, -0.4, 0.1, 0.95, 1.2, 5]))
    np.testing.assert_array_equal(generators._compare(scores, thresholds), matlab(scores, thresholds))
