"""SampledDualFL against coordinate descent on the dual problem, written out, and what its cohorts may be."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import pytest

from dualopt.engine.rounds import advance, initial_state, iterate, resolve
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


class Ended(NamedTuple):
    """States of clients that remember where they ended."""

    z: Any
    theta: Any


@dataclass(frozen=True, kw_only=True)
class FromOwnModels(SampledDualFL):
    """The method whose local solvers go on from where they ended."""

    def init(self, theta0, copies) -> tuple[Any, Any, Any]:
        server, message, c = super().init(theta0, copies)
        return server, message, Ended(c.z, copies)

    def local(self, c: Any, message, oracle, round) -> tuple[Any, Any]:
        w, t = message
        theta = oracle.solve(start=c.theta, linear=-(c.z + self.nu * w), weight=self.nu * (1 / t - 1), center=w).theta
        return Ended(c.z + self.nu / t * (w - theta), theta), theta


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


def scaled_columns():
    """Three hundred small clients, whose columns have scales from 1 to 1/100."""
    rng = np.random.default_rng(0)
    own, X = np.repeat(np.arange(300), 20), rng.normal(size=(6000, 10)) * np.logspace(0, -2, 10)
    y = np.sum(X * (1.0 + rng.normal(size=(300, 10)))[own], axis=1) + rng.normal(size=6000) > 0
    return linear_model(X, y.astype(int), clients=own, loss="logistic", mu=0.01)


def test_errors_of_dual_variables_are_a_part_of_their_steps() -> None:
    """At most the reduction of the local gradient times 1 + t(L/nu - 1), whatever the client has seen before."""
    f, cohorts = scaled_columns(), UniformSubset(size=3)
    method: Any = resolve(SampledDualFL(stop=GradientReduction(factor=0.1, first=0.1)), f, cohorts)
    exact, largest = replace(method, stop=GradientReduction(factor=1e-9, first=1e-9)), float(f.L.max())
    state, parts = initial_state(method, f), []
    for round in islice(cohorts.rounds(300, 0), 150):
        t, z = state.message.t, state.clients.z[list(round.clients)]
        bound = 0.1 * (1.0 + t * (largest / method.nu - 1.0))
        wanted = advance(exact, f, state, round)[0].clients.z[list(round.clients)]
        state = advance(method, f, state, round)[0]
        error = np.linalg.norm(state.clients.z[list(round.clients)] - wanted, axis=1)
        parts += (error / (bound * np.linalg.norm(wanted - z, axis=1))).tolist()
    assert 0.03 < max(parts) <= 1.0 + 1e-6


def test_small_cohorts_end_where_exact_local_solutions_do() -> None:
    """One client in a hundred, columns of unequal scale: started from their own models they do not."""
    f, cohorts = scaled_columns(), UniformSubset(size=3)
    reference = solve(f).energy

    def error(method: SampledDualFL) -> float:
        trace = run(method, f, rounds=400, participation=cohorts, measure_every=400)
        return trace["energy"][-1] - reference

    exact = error(SampledDualFL(stop=GradientReduction(factor=1e-4)))
    assert error(SampledDualFL()) == pytest.approx(exact, rel=0.25)
    assert error(FromOwnModels()) > 5.0 * exact
