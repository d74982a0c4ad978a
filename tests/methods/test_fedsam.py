"""FedSAM against its box, and what it refuses."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from dualopt.engine.rounds import iterate
from dualopt.methods import FedAvg, FedSAM, FedSpeed
from dualopt.methods.participation import UniformSubset
from dualopt.solvers import Gradient
from dualopt.solvers.stopping import Steps
from tests.problems import quadratic


def box(f, chosen, *, step: float, K: int, radius: float, epsilon: float):
    """Local steps of sharpness-aware minimisation and the average of the active clients, written out."""
    x = np.zeros(4)
    for active in chosen:
        ends = []
        for i in active:
            y = x
            for _ in range(K):
                g = f.A[i] @ y - f.b[i]
                uphill = y + radius * g / (np.sqrt(g @ g) + epsilon)
                y = y - step * (f.A[i] @ uphill - f.b[i])
            ends.append(y)
        x = sum(ends) / len(ends)
        yield x


def test_it_is_the_box() -> None:
    f, chance = quadratic(), UniformSubset(size=2)
    method = FedSAM(solver=Gradient(step=0.02), stop=Steps(steps=3), radius=0.2, epsilon=0.05)
    chosen = [r.clients for r in islice(chance.rounds(5, 0), 12)]
    written = box(f, chosen, step=0.02, K=3, radius=0.2, epsilon=0.05)
    for s, x in zip(iterate(method, f, participation=chance), written, strict=False):
        np.testing.assert_allclose(s.server.theta, x, rtol=1e-12)
        assert (s.floats_up, s.floats_down) == (8, 8)


def test_one_step_is_biased_by_the_radius_alone() -> None:
    f, told = quadratic(), {"solver": Gradient(step=0.02), "stop": Steps(steps=1)}
    start = f.minimiser()
    np.testing.assert_allclose(next(iterate(FedAvg(**told), f, theta0=start)).server.theta, start, atol=1e-14)
    moved = next(iterate(FedSAM(radius=0.1, **told), f, theta0=start)).server.theta - start
    g = f.gradient(start)
    uphill = g / (np.linalg.norm(g, axis=1, keepdims=True) + 1e-2)
    np.testing.assert_allclose(moved, -0.02 * 0.1 * np.einsum("jab,jb->a", f.A, uphill) / 5, rtol=1e-10)


@pytest.mark.parametrize(("radius", "sharp"), [(0.0, False), (0.1, True), (1.0, True)])
def test_gradients_are_sharpness_aware_unless_the_radius_is_zero(radius: float, sharp: bool) -> None:
    f = quadratic()
    found = FedSpeed(radius=radius).local_objective(f)
    assert (found is f) != sharp
    assert (FedSpeed().radius, FedSAM().radius) == (0.1, 0.05)
