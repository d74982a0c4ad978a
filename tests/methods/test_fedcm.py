"""FedCM against its box, its special cases, and what it refuses."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from dualopt.engine.rounds import iterate
from dualopt.losses import Logistic
from dualopt.methods import FedAvg, FedCM
from dualopt.methods.participation import UniformSubset
from dualopt.objectives import linear_model
from dualopt.solvers import SGD, Gradient
from dualopt.solvers.stopping import Steps
from tests.problems import quadratic


def box(f, chosen, *, step: float, K: int, alpha: float, server_step: float):
    """Client-level momentum, written out."""
    x, delta = np.zeros(4), np.zeros(4)
    for active in chosen:
        total = np.zeros(4)
        for i in active:
            y = x
            for _ in range(K):
                y = y - step * (alpha * (f.A[i] @ y - f.b[i]) + (1 - alpha) * delta)
            total = total + (y - x)
        delta = -total / (len(active) * K * step)
        x = x - server_step * delta
        yield x, delta


@pytest.mark.parametrize("server_step", [None, 0.04])
def test_it_is_the_box(server_step: float | None) -> None:
    f, chance = quadratic(), UniformSubset(size=2)
    method = FedCM(alpha=0.3, solver=Gradient(step=0.02), stop=Steps(steps=3), server_step=server_step)
    chosen = [r.clients for r in islice(chance.rounds(5, 0), 12)]
    written = box(f, chosen, step=0.02, K=3, alpha=0.3, server_step=server_step or 0.06)
    for s, (x, delta) in zip(iterate(method, f, participation=chance), written, strict=False):
        np.testing.assert_allclose(s.server.theta, x, rtol=1e-12)
        np.testing.assert_allclose(s.server.momentum, delta, rtol=1e-11)
        assert (s.floats_up, s.floats_down) == (8, 16)


def test_without_momentum_it_is_federated_averaging() -> None:
    f, told = quadratic(), {"solver": Gradient(step=0.02), "stop": Steps(steps=3)}
    pairs = zip(iterate(FedCM(alpha=1.0, **told), f), iterate(FedAvg(**told), f), strict=False)
    for a, b in islice(pairs, 10):
        np.testing.assert_allclose(a.server.theta, b.server.theta, rtol=1e-11)


def test_the_suggested_steps_settle_and_the_momentum_vanishes_elsewhere() -> None:
    f = quadratic()
    last = next(islice(iterate(FedCM(), f), 499, None)).server
    np.testing.assert_allclose(last.momentum, 0.0, atol=1e-12)
    bias = np.linalg.norm(last.theta - f.minimiser())
    assert bias > 1e-2
    one = next(islice(iterate(FedCM(stop=Steps(steps=1)), f), 499, None)).server
    np.testing.assert_allclose(one.theta, f.minimiser(), atol=1e-12)  # with one step there is no bias


def test_epochs_of_unequal_clients_are_counted() -> None:
    """With steps so short that y stays at x, the direction is the mean of the clients' gradients at x."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((32, 2)), np.sign(rng.standard_normal(32))
    f = linear_model(X, y, loss=Logistic(), mu=0.1, clients=[list(range(8)), list(range(8, 32))], intercept=False)
    method = FedCM(alpha=1.0, solver=SGD(step=1e-9, batch=4, epochs=2), server_step=0.1)
    s = next(iterate(method, f))
    np.testing.assert_allclose(s.server.momentum, f.gradient(np.zeros(2)).mean(axis=0), rtol=1e-6)
