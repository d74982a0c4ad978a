"""A-FedPD in small cohorts: how fast duals come together, and where their weight balances it."""

from __future__ import annotations

from itertools import combinations, islice

import numpy as np
import pytest

from dualopt.engine.rounds import advance, as_compressor, initial_state, iterate
from dualopt.methods import AFedPD
from dualopt.methods.participation import Round, UniformSubset
from dualopt.objectives import Quadratic
from dualopt.solvers import Exact


@pytest.mark.parametrize(("size", "rho", "h"), [(2, 0.7, 3.0), (3, 5.0, 0.4), (5, 1.0, 2.0), (1, 1.0, 2.0)])
def test_the_spread_of_the_duals_falls_by_what_is_said(size: int, rho: float, h: float) -> None:
    """In the mean over all cohorts, from states that no symmetry helps; with one client it never falls."""
    n, rng = 5, np.random.default_rng(size)
    f = Quadratic(A=np.tile(h * np.eye(2), (n, 1, 1)), b=rng.normal(size=(n, 2)))
    method = AFedPD(rho=rho, solver=Exact()).suggested(f)
    state = initial_state(method, f, rng.normal(size=2))
    dual, wanted = rng.normal(size=(n, 2)), -f.gradient(f.minimiser())
    mean, around = dual.mean(axis=0), dual - dual.mean(axis=0)
    message, server = state.message._replace(dual=mean), state.server._replace(dual=mean)
    state = state._replace(server=server, message=message, clients=state.clients._replace(dual=around))
    before, factor = np.sum((around - wanted) ** 2), h / (h + rho)
    spreads, models = [], []
    for clients in combinations(range(n), size):
        after, _, _ = advance(method, f, state, Round(n=1, n_clients=n, clients=clients, communicate=True, seed=0))
        np.testing.assert_allclose(after.clients.dual.sum(axis=0), 0.0, atol=1e-12)
        spreads.append(np.sum((after.clients.dual - wanted) ** 2))
        models.append(after.server.theta - after.server.dual / rho)
    told = 1.0 - (size - 1) / (n - 1) * (1.0 - factor**2)
    assert np.mean(spreads) == pytest.approx(told * before, rel=1e-12)
    start = state.server.theta - mean / rho  # the mean of the active models of the round before
    expected = f.minimiser() + rho / (h + rho) * (start - f.minimiser())
    np.testing.assert_allclose(np.mean(models, axis=0), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("compressor", ["rounding=3", "cohorts=2"])
def test_duals_are_of_the_models_that_arrive(compressor: str) -> None:
    """Compressed or not: what clients keep has the mean zero, so that the server knows the mean of the duals."""
    rng = np.random.default_rng(3)
    f = Quadratic(A=np.tile(np.diag([1.0, 3.0, 0.5]), (4, 1, 1)), b=rng.normal(size=(4, 3)))
    run = iterate(
        AFedPD(solver=Exact()), f, participation=UniformSubset(size=3), compressor=as_compressor(compressor, f)
    )
    for s in islice(run, 8):
        np.testing.assert_allclose(s.clients.dual.sum(axis=0), 0.0, atol=1e-13)
        assert s.solution is not None
        assert np.max(np.abs(s.server.dual)) > 1e-3


def test_the_two_rates_are_alike_where_it_is_said() -> None:
    mu, L, part = 1e-2, 1.0, 0.1
    rho = np.sqrt(L * mu / part)
    spread, models = part * (1.0 - (L / (L + rho)) ** 2), 1.0 - (rho / (mu + rho)) ** 2
    assert spread == pytest.approx(models, rel=0.4)
    assert part * (1.0 - (L / (L + np.sqrt(L * mu))) ** 2) < 0.15 * (
        1.0 - (np.sqrt(L * mu) / (mu + np.sqrt(L * mu))) ** 2
    )
