"""FedDualAvg against its box, its special cases, and what it refuses."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from dualopt.engine.rounds import iterate
from dualopt.methods import FedAvg, FedDR, FedDualAvg
from dualopt.methods.participation import Bernoulli, UniformSubset
from dualopt.objectives import Composite
from dualopt.regularisers import L1
from dualopt.runs.certificates import dual_point
from dualopt.runs.recording import run
from dualopt.solvers import Gradient
from dualopt.solvers.stopping import Steps
from tests.problems import logistic, quadratic


def shrink(z, length: float):
    return np.sign(z) * np.maximum(np.abs(z) - length, 0.0)


def box(f, chosen, *, weight: float, step: float, K: int, server_step: float):
    """Dual averaging with the 1-norm, written out; rounds without clients do not count."""
    z, r = 0.5 * np.ones(4), 0
    for active in chosen:
        if active:
            ends = []
            for i in active:
                zi = z
                for k in range(K):
                    w = shrink(zi, weight * (server_step * step * r * K + step * k))
                    zi = zi - step * (f.A[i] @ w - f.b[i])
                ends.append(zi)
            z = z + server_step * (sum(ends) / len(ends) - z)
            r += 1
        yield z, shrink(z, weight * server_step * step * r * K)


@pytest.mark.parametrize("chance", [UniformSubset(size=2), Bernoulli(probability=0.3)])
def test_it_is_the_box(chance) -> None:
    f = quadratic()
    F = Composite(objective=f, regulariser=L1(weight=0.2))
    method = FedDualAvg(solver=Gradient(step=0.02), stop=Steps(steps=3), server_step=0.7)
    chosen = [r.clients for r in islice(chance.rounds(5, 3), 20)]
    assert () in chosen or isinstance(chance, UniformSubset)
    written = box(f, chosen, weight=0.2, step=0.02, K=3, server_step=0.7)
    found = iterate(method, F, theta0=0.5 * np.ones(4), participation=chance, seed=3)
    zeros = 0
    for s, (z, w) in zip(found, written, strict=False):
        np.testing.assert_allclose(s.server.dual, z, rtol=1e-12)
        np.testing.assert_allclose(s.server.theta, w, rtol=1e-12, atol=1e-14)
        zeros += np.count_nonzero(s.server.theta == 0)
        assert s.floats_up == 4 * s.round.n_active
    assert 0 < zeros < 80


def test_without_a_regulariser_it_is_federated_averaging() -> None:
    f, told = quadratic(), {"solver": Gradient(step=0.02), "stop": Steps(steps=3)}
    chance = UniformSubset(size=3)
    pairs = zip(
        iterate(FedDualAvg(**told), f, participation=chance),
        iterate(FedAvg(**told), f, participation=chance),
        strict=False,
    )
    for a, b in islice(pairs, 10):
        np.testing.assert_allclose(a.server.theta, b.server.theta, rtol=1e-12)


def test_with_one_step_it_reaches_the_minimiser_and_with_more_it_does_not() -> None:
    F = Composite(objective=quadratic(), regulariser=L1(weight=0.2))
    optimum = run(FedDR(), F, rounds=200).theta
    assert 0 < np.count_nonzero(optimum) < 4
    distances = []
    for K in (1, 5):
        theta = next(islice(iterate(FedDualAvg(stop=Steps(steps=K)), F), 699, None)).server.theta
        distances.append(np.linalg.norm(theta - optimum))
    assert distances[0] < 1e-10
    assert distances[1] > 1e-3


def test_gradients_are_counted_as_computed() -> None:
    s = next(iterate(FedDualAvg(stop=Steps(steps=3)), logistic()))
    assert s.solution is not None
    assert s.solution.gradients == (3.0,) * 4
    point = dual_point(logistic(), s.solution)
    assert point is not None
    assert np.isfinite(point.conjugate).all()


def test_another_regulariser_than_the_objectives_is_refused() -> None:
    with pytest.raises(ValueError, match="regulariser must be that of the objective"):
        run(FedDualAvg(regulariser=L1(weight=0.3)), quadratic(), rounds=1)
