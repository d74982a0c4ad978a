"""FedDyn's synthetic data: moments of sizes, means, features and models, and what each setting switches on."""

import numpy as np
import pytest

from dualopt.problem.data import load, natural

NAME = "synthetic-feddyn"
SETTINGS = ["homogeneous", "models", "features", "sizes"]


def parts(**options):
    """Load features and labels client by client."""
    data = load(NAME, **options)
    return [(data.X[rows], data.y[rows]) for rows in natural(data.clients)]


def sizes_of(**options):
    """Load the number of rows of each client."""
    return np.array([len(y) for _, y in parts(**options)])


def separable(X, y, classes=5):
    """Tell whether one linear model makes no mistake, by the perceptron of Kesler."""
    X, W = np.column_stack([X, np.ones(len(X))]), np.zeros((X.shape[1] + 1, classes))
    for _ in range(500):
        scores = X @ W
        scores[np.arange(len(y)), y] -= 1e-9
        guess = np.argmax(scores, axis=1)
        wrong = np.flatnonzero(guess != y)
        if wrong.size == 0:
            return True
        for i in wrong:
            W[:, y[i]] += X[i]
            W[:, guess[i]] -= X[i]
    return False


@pytest.mark.parametrize("setting", SETTINGS)
def test_shapes_and_owners(setting):
    """20 clients, 30 features, classes 0..4; only "sizes" has unequal sizes."""
    data = load(NAME, setting=setting)
    sizes = sizes_of(setting=setting)
    assert data.X.shape == (sizes.sum(), 30)
    assert sizes.size == 20
    np.testing.assert_array_equal(data.clients, np.repeat(np.arange(20), sizes))
    assert set(data.y.tolist()) <= set(range(5))
    assert (set(sizes.tolist()) == {200}) == (setting != "sizes")


def test_covariance_within_a_client():
    """The variances are the documented powers about a mean of 0: 5 standard errors."""
    X = load(NAME, clients=1, rows=40_000, d=4).X
    law = np.arange(1.0, 5) ** -1.2
    assert (np.abs(X.mean(axis=0)) < 5 * np.sqrt(law / 40_000)).all()
    covariance = np.cov(X.T)
    np.testing.assert_allclose(np.diag(covariance), law, rtol=5 * np.sqrt(2 / 40_000))
    assert np.abs(covariance - np.diag(np.diag(covariance))).max() < 5 / np.sqrt(40_000)


@pytest.mark.parametrize(
    ("options", "deviation"),
    [({}, 1.0), ({"gamma2": 0.0}, 0.0), ({"gamma2": 9.0}, 9.0), ({"gamma2": 9.0, "spread": "paper"}, 3.0)],
)
def test_means_of_features(options, deviation):
    """Within a client the means spread by 1 about beta_j, whose deviation over clients is gamma2 or its root."""
    clients, d = 400, 10
    data = parts(setting="features", clients=clients, rows=50, d=d, **options)
    means = np.stack([X.mean(axis=0) for X, _ in data])
    noise = np.mean(np.arange(1, d + 1) ** -1.2) / 50  # of a mean of 50 rows
    within = means.var(axis=1, ddof=1).mean()
    assert within == pytest.approx(1 + noise, rel=5 * np.sqrt(2 / (clients * (d - 1))))
    law = deviation**2 + (1 + noise) / d
    assert means.mean(axis=1).var() == pytest.approx(law, rel=5 * np.sqrt(2 / clients))
    for X, _ in data[:3]:
        np.testing.assert_allclose(X.var(axis=0), np.arange(1, d + 1) ** -1.2, rtol=5 * np.sqrt(2 / 50))


@pytest.mark.parametrize(
    ("options", "sigma"), [({}, 1.0), ({"gamma3": 0.25}, 0.25), ({"gamma3": 0.25, "spread": "paper"}, 0.5)]
)
def test_sizes_are_lognormal_with_the_median(options, sigma):
    """The logarithms have mean ln(rows) and deviation gamma3 or its root: 5 standard errors, and 1/rows of rounding."""
    n = 1000
    logarithms = np.log(sizes_of(setting="sizes", clients=n, rows=500, d=1, **options))
    assert abs(logarithms.mean() - np.log(500)) < 5 * sigma / np.sqrt(n) + 0.01
    assert logarithms.std() == pytest.approx(sigma, rel=5 / np.sqrt(2 * n) + 0.01)
    assert set(sizes_of(setting="sizes", gamma3=0.0)) == {200}  # not 199, by rounding


@pytest.mark.parametrize(("setting", "one_model"), [("homogeneous", True), ("models", False), ("features", True)])
def test_who_shares_a_model(setting, one_model):
    data = parts(setting=setting, clients=4, rows=60, d=3, seed=1)
    assert all(separable(X, y) for X, y in data)
    X, y = (np.concatenate(both) for both in zip(*data, strict=True))
    assert separable(X, y) == one_model


def test_models_are_standard_normal():
    """The model is drawn again from the stream; labels are the best class, with its bias."""
    data = load(NAME, clients=3, rows=50, d=4, classes=3, seed=5)
    rng = np.random.default_rng(np.random.SeedSequence(5, spawn_key=(4,)))
    rng.lognormal(size=3)  # the sizes come first in the stream
    W = rng.standard_normal((5, 3))
    np.testing.assert_array_equal(data.y, np.argmax(data.X @ W[:-1] + W[-1], axis=1))
    assert (data.y != np.argmax(data.X @ W[:-1], axis=1)).any()  # the bias matters


def test_models_of_clients_are_shifted_by_their_mean():
    """The same for a model each, which gamma1 shifts for all classes alike, so that no label changes."""
    options = {"setting": "models", "clients": 3, "rows": 50, "d": 4, "classes": 3, "seed": 5}
    data = load(NAME, gamma1=2.0, **options)
    rng = np.random.default_rng(np.random.SeedSequence(5, spawn_key=(4,)))
    rng.lognormal(size=3)
    W = 2 * rng.standard_normal((3, 1, 1)) + rng.standard_normal((3, 5, 3))
    labels = [
        np.argmax(data.X[rows] @ w[:-1] + w[-1], axis=1) for rows, w in zip(natural(data.clients), W, strict=True)
    ]
    np.testing.assert_array_equal(data.y, np.concatenate(labels))
    np.testing.assert_array_equal(data.y, load(NAME, gamma1=0.0, **options).y)


def test_gammas_switch_on_their_heterogeneity():
    """A number, even 0, beside a preset: homogeneous with gamma2 = 1 is the setting "features"."""
    by_hand = [load(NAME, gamma1=1.0), load(NAME, gamma2=1.0), load(NAME, gamma3=1.0)]
    for one, setting in zip(by_hand, ("models", "features", "sizes"), strict=True):
        other = load(NAME, setting=setting)
        np.testing.assert_array_equal(one.X, other.X)
        np.testing.assert_array_equal(one.y, other.y)
    assert not np.array_equal(load(NAME, gamma1=0.0).y, load(NAME).y)
