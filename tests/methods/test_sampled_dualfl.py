"""SampledDualFL against coordinate descent on the dual problem, written out, and what its cohorts may be."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from dualopt.engine.rounds import iterate, resolve
from dualopt.methods import SampledDualFL
from dualopt.methods.participation import Bernoulli, Full, Participation, UniformSubset
from dualopt.methods.sampled_dualfl import next_step
from dualopt.objectives import linear_model
from dualopt.runs.recording import run
from dualopt.runs.reference import solve
from dualopt.solvers import Exact
from dualopt.solvers.stopping import GradientReduction
from tests.problems import quadratic


def approx(f, chosen, *, nu: float, rho: float, p: float):
    """Accelerated, parallel and proximal coordinate descent on E_d with all its points: x, y, z of every client."""
    N, d = f.b.shape
    x, z, t = np.zeros((N, d)), np.zeros((N, d)), p
    while True:
        y = (1 - t) * x + t * z
        slope, new = y.sum(axis=0) / (N * nu), z.copy()
        for j in next(chosen):
            # minimise <slope, s> + g_j^*(s) + t/(2 nu) |s - z_j|^2, with g_j^* = (A_j - nu)^(-1)/2 of s + b_j
            inverse = np.linalg.inv(f.A[j] - nu * np.eye(d))
            new[j] = np.linalg.solve(inverse + t / nu * np.eye(d), t / nu * z[j] - slope - inverse @ f.b[j])
        x = y + t / p * (new - z)
        z = new
        yield -x.sum(axis=0) / (N * nu), z
        t = next_step(t, rho, p)


@pytest.mark.parametrize("rho", [0.0, 0.02])
@pytest.mark.parametrize("chance", [Full(), UniformSubset(size=2), UniformSubset(size=1)], ids=str)
def test_it_is_coordinate_descent_on_the_dual(chance: Participation, rho: float) -> None:
    f, p = quadratic(), chance.law(5).fraction
    method = SampledDualFL(rho=rho, nu=0.7, solver=Exact())
    written = approx(f, (r.clients for r in chance.rounds(5, 0)), nu=0.7, rho=rho, p=p)
    for s, (theta, z) in islice(zip(iterate(method, f, participation=chance), written, strict=False), 20):
        np.testing.assert_allclose(s.server.theta, theta, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(s.clients.z, z, rtol=1e-9, atol=1e-10)
        np.testing.assert_allclose(s.server.v, -s.clients.z.mean(axis=0) / 0.7, rtol=1e-9, atol=1e-11)


def test_a_model_is_the_mean_of_the_active_ones() -> None:
    f = quadratic()
    for s in islice(iterate(SampledDualFL(solver=Exact()), f, participation=UniformSubset(size=2)), 9):
        assert s.local_models is not None
        np.testing.assert_allclose(s.server.theta, s.local_models.mean(axis=0), rtol=1e-12)
        assert (s.floats_up, s.floats_down) == (8, 10)  # two clients: a vector, and a vector and t


def test_cohorts_of_random_size_keep_the_dual_point() -> None:
    """v and theta are sums over the clients, with the expected fraction: a larger cohort moves the model further."""
    f, chance = quadratic(), Bernoulli(probability=0.4)
    method = SampledDualFL(rho=0.02, nu=0.7, solver=Exact())
    written = approx(f, (r.clients for r in chance.rounds(5, 0) if r.clients), nu=0.7, rho=0.02, p=0.4)
    runs = (s for s in iterate(method, f, participation=chance) if s.round.clients)
    sizes = set()
    for s, (theta, _) in islice(zip(runs, written, strict=False), 20):
        sizes.add(s.round.n_active)
        np.testing.assert_allclose(s.server.theta, theta, rtol=1e-9, atol=1e-11)
    assert len(sizes) >= 3


@pytest.mark.parametrize(("size", "factor"), [(20, 0.1), (4, 0.1), (3, 0.25 * 0.15**0.5), (1, 0.25 * 0.05**0.5)])
def test_small_cohorts_stop_later(size: int, factor: float) -> None:
    method = resolve(SampledDualFL(), quadratic(n=20), UniformSubset(size=size))
    assert method.stop == GradientReduction(factor=factor)
    given = SampledDualFL(stop=GradientReduction())
    assert resolve(given, quadratic(n=20), UniformSubset(size=size)).stop == given.stop


def test_small_cohorts_end_where_exact_local_solutions_do() -> None:
    """One client in a hundred, columns of unequal scale: with gradients reduced to a tenth they do not."""
    rng = np.random.default_rng(0)
    own, X = np.repeat(np.arange(300), 20), rng.normal(size=(6000, 10)) * np.logspace(0, -2, 10)
    y = np.sum(X * (1.0 + rng.normal(size=(300, 10)))[own], axis=1) + rng.normal(size=6000) > 0
    f = linear_model(X, y.astype(int), clients=own, loss="logistic", mu=0.01)
    reference, cohorts = solve(f).energy, UniformSubset(size=3)

    def error(method: SampledDualFL) -> float:
        trace = run(method, f, rounds=400, participation=cohorts, measure_every=400)
        return trace["energy"][-1] - reference

    exact = error(SampledDualFL(stop=GradientReduction(factor=1e-4)))
    assert error(SampledDualFL()) == pytest.approx(exact, rel=0.25)
    assert error(SampledDualFL(stop=GradientReduction())) > 5.0 * exact
