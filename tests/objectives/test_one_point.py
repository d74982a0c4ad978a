"""What is found at one point for all clients of large data is kept until another point comes."""

from __future__ import annotations

from typing import Any

import array_api_strict as strict
import numpy as np
import pytest

from dualopt import DistributedLBFGS, run
from dualopt.arrays.xp import to_numpy
from dualopt.losses import Multinomial
from dualopt.objectives import LinearModel, finite_sum, linear_model


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Count the passes over the rows; small data are large here."""
    monkeypatch.setattr(finite_sum, "LARGE", -(10**6))
    found: list[int] = []
    passed = LinearModel._passed

    def counted(self: LinearModel, theta: Any) -> Any:
        found.append(self.n_clients)
        return passed(self, theta)

    monkeypatch.setattr(LinearModel, "_passed", counted)
    return found


def model() -> LinearModel:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 4)), rng.integers(0, 3, 60)
    return linear_model(X, y, loss=Multinomial(classes=3), mu=0.1, clients=[range(9), range(9, 40), range(40, 60)])


def test_the_same_point_takes_one_pass(passes: list[int]) -> None:
    """Whether it comes as one point or stacked; a changed one takes another, and so does each client's own."""
    f, theta = model(), np.random.default_rng(1).standard_normal((3, 5))
    first = f.value_and_gradient(theta)
    again = f.value_and_gradient(np.broadcast_to(theta, (3, 3, 5)))
    assert passes == [3]
    assert all(x.tobytes() == y.tobytes() for x, y in zip(first, again, strict=True))
    value = first[0].copy()
    theta[0, 0] += 1.0  # of the caller, who may write to it
    assert np.all(f.value_and_gradient(theta)[0] != value)
    assert np.array_equal(first[0], value)
    assert passes == [3, 3]
    own = np.stack([theta, theta, theta])
    own[1] += 1.0
    assert f.value_and_gradient(own)[0][1] != f.value_and_gradient(theta)[0][1]
    assert passes == [3, 3, 3]
    theta[0, 0] = np.nan  # equals no point, not even itself
    f.value_and_gradient(theta)
    f.value_and_gradient(theta)
    assert len(passes) == 5


def test_it_is_of_these_clients(passes: list[int]) -> None:
    f, theta = model(), np.ones((3, 5))
    whole = f.value_and_gradient(theta)[0]
    part = f.select([2, 0]).value_and_gradient(theta)[0]
    assert part.tobytes() == whole[[2, 0]].tobytes()
    assert passes == [3, 2]


def test_a_point_in_another_precision_is_another_one(passes: list[int]) -> None:
    """Certificates of data in single precision are computed in double."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 4)).astype(np.float32), rng.integers(0, 3, 60)
    f = linear_model(X, y, loss=Multinomial(classes=3), mu=0.1, clients=3)
    theta = rng.standard_normal((3, 5)).astype(np.float32)
    for dtype in (np.float32, np.float64, np.float32):
        value, gradient = f.value_and_gradient(theta.astype(dtype))
        assert value.dtype == gradient.dtype == dtype
    assert passes == [3, 3, 3]


def test_arrays_of_other_libraries_take_a_pass_each_time(passes: list[int]) -> None:
    """That a stack is one point is seen by its strides, which arrays of the standard do not have."""
    X, y = strict.asarray([[1.0, 2.0], [3.0, -1.0]]), strict.asarray([1.0, -1.0])
    f = linear_model(X, y, loss="logistic", mu=0.1, clients=2, intercept=False)
    for theta in (strict.zeros((2,)), strict.zeros((2, 2))):
        for _ in range(2):
            np.testing.assert_allclose(to_numpy(f.value_and_gradient(theta)[0]), np.log(2.0), rtol=1e-15)
    assert passes == [2] * 4


def test_small_data_keep_nothing() -> None:
    f = model()
    f.value_and_gradient(np.ones((3, 5)))
    assert f._latest is None


def test_a_certificate_pays_for_the_next_round(passes: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Of L-BFGS at the server, whose next gradient is at the model: half of the passes, and the same numbers."""
    options: dict[str, Any] = {"rounds": 8, "certify_every": 1}
    kept = run(DistributedLBFGS(), model(), **options)
    many = len(passes)
    monkeypatch.setattr(finite_sum, "LARGE", 10**6)
    plain = run(DistributedLBFGS(), model(), **options)
    assert many <= 9
    assert len(passes) - many >= 16
    assert kept.theta.tobytes() == plain.theta.tobytes()
    assert kept["certified_error"].tobytes() == plain["certified_error"].tobytes()
    assert kept["gradients"].tolist() == plain["gradients"].tolist()
