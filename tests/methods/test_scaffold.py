"""SCAFFOLD against its box, and what it refuses."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from dualopt.engine.rounds import iterate
from dualopt.losses import Logistic
from dualopt.methods import Scaffold, ScaffoldI
from dualopt.methods.participation import UniformSubset
from dualopt.objectives import linear_model
from dualopt.solvers import SGD, Gradient
from dualopt.solvers.stopping import Steps
from tests.problems import quadratic

KINDS = {1: ScaffoldI, 2: Scaffold}


def box(f, chosen, *, step, K, server_step, option):
    """Algorithm 1 of the paper, written out."""
    x, c, ci = np.zeros(4), np.zeros(4), np.zeros((5, 4))
    for active in chosen:
        dx, dc = np.zeros(4), np.zeros(4)
        for i in active:
            y = x
            for _ in range(K):
                y = y - step * (f.A[i] @ y - f.b[i] - ci[i] + c)
            new = f.A[i] @ x - f.b[i] if option == 1 else ci[i] - c + (x - y) / (K * step)
            dx, dc = dx + (y - x), dc + (new - ci[i])
            ci[i] = new
        x, c = x + server_step * dx / len(active), c + dc / 5
        yield x, c, ci.copy()


@pytest.mark.parametrize("option", [1, 2])
def test_it_is_the_box(option: int) -> None:
    f, chance = quadratic(), UniformSubset(size=2)
    method = KINDS[option](solver=Gradient(step=0.01), stop=Steps(steps=3), server_step=0.7)
    chosen = [r.clients for r in islice(chance.rounds(5, 0), 12)]
    written = box(f, chosen, step=0.01, K=3, server_step=0.7, option=option)
    for s, (x, c, ci) in zip(iterate(method, f, participation=chance), written, strict=False):
        np.testing.assert_allclose(s.server.theta, x, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(s.server.control, c, rtol=1e-11, atol=1e-13)
        np.testing.assert_allclose(s.clients.control, ci, rtol=1e-11, atol=1e-13)


def test_option_one_costs_a_gradient_more() -> None:
    counts = [
        s.solution.gradients
        for option in (1, 2)
        for s in islice(iterate(KINDS[option](), quadratic()), 1)
        if s.solution
    ]
    assert (np.asarray(counts[0]) - np.asarray(counts[1])).tolist() == [1.0] * 5


def test_epochs_of_unequal_clients_are_counted() -> None:
    """With steps so short that y stays at x, the new control is the mean of the batch gradients at x."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 2)), np.sign(rng.standard_normal(30))
    f = linear_model(X, y, loss=Logistic(), mu=0.1, clients=[list(range(8)), list(range(8, 30))], intercept=False)
    solver = SGD(step=1e-9, batch=4, epochs=2)
    method = Scaffold(solver=solver, stop=Steps(steps=1))
    s = next(iterate(method, f))
    assert s.solution is not None
    assert s.solution.length == pytest.approx([4e-9, 12e-9])
    np.testing.assert_allclose(s.clients.control[0], f.gradient(np.zeros(2))[0], rtol=1e-6)
