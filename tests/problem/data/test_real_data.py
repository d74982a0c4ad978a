"""The published numbers of real data sets, where the user has them."""

import os

import numpy as np
import pytest

from dualopt.problem.data import load

pytestmark = pytest.mark.skipif(
    not os.environ.get("DUALOPT_DATA_HOME"), reason="DUALOPT_DATA_HOME is not set to a folder of data sets"
)


def load_or_skip(name, **options):
    """Load a data set, or skip the test when the folder does not have it."""
    try:
        return load(name, **options)
    except ValueError as error:
        if "no file for data" in str(error) or "is neither one of" in str(error):
            pytest.skip(str(error))
        raise


def test_mnist():
    data = load_or_skip("mnist", dtype="float32")
    assert data.X.shape == (60000, 784)
    assert data.X.mean(dtype=np.float64) == pytest.approx(0.13066, abs=5e-6)
    assert data.X.std(dtype=np.float64) == pytest.approx(0.30811, abs=5e-6)
    assert np.bincount(data.y).tolist() == [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]


def test_mnist_test_split():
    data = load_or_skip("mnist", split="test")
    assert data.X.shape == (10000, 784)
    assert np.bincount(data.y).tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]


@pytest.mark.parametrize(
    ("name", "n_features", "shape", "counts"),
    [
        ("a9a", None, (32561, 123), {-1: 24720, 1: 7841}),
        ("a9a.t", 123, (16281, 123), {-1: 12435, 1: 3846}),
        ("mushrooms", None, (8124, 112), {1: 3916, 2: 4208}),
        ("phishing", None, (11055, 68), {0: 4898, 1: 6157}),
    ],
)
def test_libsvm(name, n_features, shape, counts):
    pytest.importorskip("sklearn")
    data = load_or_skip(name, n_features=n_features) if n_features else load_or_skip(name)
    assert data.X.shape == shape
    values, numbers = np.unique(data.y, return_counts=True)
    assert dict(zip(values.tolist(), numbers.tolist(), strict=True)) == counts


def test_cifar10():
    data = load_or_skip("cifar10", split="test", dtype="float32")
    assert data.X.shape == (10000, 3072)
    assert np.bincount(data.y).tolist() == [1000] * 10
