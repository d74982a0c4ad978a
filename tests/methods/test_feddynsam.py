"""FedDynSAM against the update of FedSpeed's authors, and against FedDyn and FedSpeed where they are one."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from dualopt.engine.rounds import iterate
from dualopt.methods import FedDyn, FedDynSAM, FedSpeed
from dualopt.methods.participation import UniformSubset
from dualopt.solvers import Gradient
from dualopt.solvers.stopping import Steps
from tests.problems import quadratic

ALPHA, STEP, STEPS, START = 3.0, 0.02, 4, np.array([1.0, -2.0, 3.0, 0.5])
PLAIN = {"solver": Gradient(step=STEP), "stop": Steps(steps=STEPS)}


def test_it_is_the_published_code() -> None:
    """There ``h_i`` gathers how far client i went from what it was sent; the server adds the mean of all of them."""
    f, chance, radius, epsilon = quadratic(), UniformSubset(size=2), 0.2, 0.05
    w, h = START, np.zeros((5, 4))
    method = FedDynSAM(alpha=ALPHA, radius=radius, epsilon=epsilon, **PLAIN)
    for s in islice(iterate(method, f, theta0=START, participation=chance), 12):
        ends = []
        for i in s.round.clients:
            x = w
            for _ in range(STEPS):
                g = f.A[i] @ x - f.b[i]
                uphill = x + radius * g / (np.sqrt(g @ g) + epsilon)
                x = x - STEP * (f.A[i] @ uphill - f.b[i] + ALPHA * (x + h[i] - w))
            h[i] += x - w
            ends.append(x)
        w = np.mean(ends, axis=0) + np.mean(h, axis=0)
        np.testing.assert_allclose(s.server.theta, w, rtol=1e-11, atol=1e-12)
        assert (s.floats_up, s.floats_down) == (8, 8)


@pytest.mark.parametrize("size", [2, 5])
def test_with_all_clients_it_is_fedspeed_and_otherwise_not(size: int) -> None:
    f, chance = quadratic(), UniformSubset(size=size)
    own, box = (
        np.stack([s.server.theta for s in islice(iterate(m, f, theta0=START, participation=chance), 8)])
        for m in (FedDynSAM(alpha=ALPHA, **PLAIN), FedSpeed(rho=ALPHA, **PLAIN))
    )
    if size == 5:
        np.testing.assert_allclose(own, box, rtol=1e-11, atol=1e-12)
    else:
        assert np.max(np.abs(own - box)) > 0.1


def test_a_tiny_radius_is_nearly_feddyn_and_the_bias_is_that_of_the_radius() -> None:
    f = quadratic()
    far = [
        max(
            float(np.linalg.norm(a.server.theta - b.server.theta))
            for a, b in islice(
                zip(
                    iterate(FedDynSAM(alpha=ALPHA, radius=radius, **PLAIN), f, theta0=START),
                    iterate(FedDyn(alpha=ALPHA, **PLAIN), f, theta0=START),
                    strict=False,
                ),
                8,
            )
        )
        for radius in (1e-3, 1e-6)
    ]
    assert far[0] == pytest.approx(1e3 * far[1], rel=0.01)
    assert far[1] > 0
