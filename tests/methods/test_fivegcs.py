"""5GCS against its box and its one-step inequality, with the exact expectation over cohorts."""

from __future__ import annotations

from itertools import islice

import numpy as np

from dualopt.engine.rounds import iterate
from dualopt.methods import FiveGCS
from dualopt.methods.participation import UniformSubset
from dualopt.runs.recording import run
from dualopt.solvers import Exact, Gradient
from dualopt.solvers.stopping import GradientReduction, Steps
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
            u[m] = u[m] + tau * (xhat - y)
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


def test_exact_local_solutions_have_the_duals_of_the_paper() -> None:
    """There the new dual is the gradient of F_m at y_m."""
    f, chance = quadratic(mu=1.0, L=20.0), UniformSubset(size=2)
    method = FiveGCS(gamma=0.06, tau=1.1, mu=0.8, solver=Exact())
    for s in islice(iterate(method, f, theta0=np.ones(4), participation=chance), 15):
        active = list(s.round.clients)
        assert s.solution is not None
        y = s.solution.theta
        slopes = (np.einsum("mij,mj->mi", f.A[active], y) - f.b[active] - 0.8 * y) / 5
        np.testing.assert_allclose(s.clients.dual[active], slopes, rtol=1e-10, atol=1e-12)


def test_loose_local_solutions_do_not_run_away() -> None:
    """Gradients of F_m in their place do: from 850 to 1e51 in 60 rounds here."""
    f = quadratic(mu=1.0, L=1000.0)
    least = f.mean(f.value(f.minimiser()))
    errors = []
    for method in (FiveGCS(solver=Exact()), FiveGCS(solver=Gradient(), stop=GradientReduction(factor=0.1))):
        trace = run(method, f, rounds=60, theta0=np.ones(4))
        errors.append(np.array(trace["energy"]) - least)
    exact, loose = errors
    assert exact[60] < 1e-9 * exact[0]
    assert loose[60] < 10.0 * exact[60]
    assert loose.max() == loose[0]
