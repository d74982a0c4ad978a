"""5GCS against its box and its one-step inequality, with the exact expectation over cohorts."""

from __future__ import annotations

from itertools import islice

import numpy as np

from dualopt.engine.rounds import iterate
from dualopt.methods import FiveGCS
from dualopt.methods.participation import UniformSubset
from dualopt.solvers import Gradient, Nesterov
from dualopt.solvers.stopping import Steps
from tests.problems import quadratic


def box(f, chosen, *, gamma: float, tau: float, mu: float, L: float, K: int):
    """The method with gradient steps, in terms of F_m and with v summed anew, written out."""
    M, d = f.b.shape
    x, u = np.ones(d), np.zeros((M, d))
    for cohort in chosen:
        v = u.sum(axis=0)
        xhat = (x - gamma * v) / (1 + gamma * mu)
        for m in cohort:
            y = xhat
            for _ in range(K):
                g = (f.A[m] @ y - f.b[m] - mu * y) / M + tau * (y - (xhat + u[m] / tau))
                y = y - g / ((L - mu) / M + tau)
            u[m] = (f.A[m] @ y - f.b[m] - mu * y) / M
        x = xhat - gamma * M / len(cohort) * (u.sum(axis=0) - v)
        yield x, u.copy()


def test_it_is_the_box() -> None:
    f, chance = quadratic(mu=1.0, L=20.0), UniformSubset(size=2)
    method = FiveGCS(gamma=0.06, tau=1.1, mu=0.8, solver=Gradient(), stop=Steps(steps=4))
    chosen = [r.clients for r in islice(chance.rounds(5, 0), 15)]
    written = box(f, chosen, gamma=0.06, tau=1.1, mu=0.8, L=20.0, K=4)
    for s, (x, u) in zip(iterate(method, f, theta0=np.ones(4), participation=chance), written, strict=False):
        np.testing.assert_allclose(s.server.theta, x, rtol=1e-12)
        np.testing.assert_allclose(s.clients.dual, u, rtol=1e-11, atol=1e-13)
        np.testing.assert_allclose(s.server.dual, s.clients.dual.sum(axis=0), atol=1e-13)
        assert (s.floats_up, s.floats_down) == (8, 8)


def test_the_gradient_at_the_end_is_the_new_dual_and_counts() -> None:
    counts = [
        s.solution.gradients
        for solver in (Gradient(), Nesterov())  # the latter counts the gradient where it ends by itself
        for s in islice(iterate(FiveGCS(solver=solver, stop=Steps(steps=3)), quadratic()), 1)
        if s.solution
    ]
    assert counts == [(4.0,) * len(counts[0])] * 2
