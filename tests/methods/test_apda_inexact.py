"""The reconstruction of APDA-Inexact against its box, and the number of rounds it needs."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

import numpy as np
import pytest

from dualopt.engine.rounds import State, advance, iterate
from dualopt.methods import APDAInexact
from dualopt.methods.participation import first_round
from dualopt.objectives import Quadratic
from dualopt.solvers import Exact
from dualopt.solvers.stopping import Steps
from tests.problems import quadratic


def box(f, *, eta_x: float, eta_y: float, beta_y: float, theta: float, K: int):
    """Primal-dual steps with the projection onto sum y = 0, written out."""
    n, d = f.b.shape
    x, y, previous = np.ones((n, d)), np.zeros((n, d)), np.zeros((n, d))
    step = 1 / (f.L + 1 / eta_x)
    while True:
        ybar, anchor = y + theta * (y - previous), x
        for _ in range(K):
            g = np.einsum("jab,jb->ja", f.A, x) - f.b
            x = x - step[:, None] * (g + ybar + (x - anchor) / eta_x)
        g = np.einsum("jab,jb->ja", f.A, x) - f.b
        moved = y + eta_y * x - eta_y * beta_y * (y + g)
        previous, y = y, moved - moved.mean(axis=0)
        yield x, y, (x - beta_y * g).mean(axis=0)


def test_it_is_the_box() -> None:
    f = quadratic()
    told: dict[str, Any] = {"eta_x": 0.07, "eta_y": 0.4, "beta_y": 0.06, "theta": 0.9}
    method = APDAInexact(stop=Steps(steps=3), **told)
    pairs = zip(iterate(method, f, theta0=np.ones(4)), box(f, K=3, **told), strict=False)
    for s, (x, y, theta) in islice(pairs, 15):
        np.testing.assert_allclose(s.clients.theta, x, rtol=1e-12)
        np.testing.assert_allclose(s.clients.dual, y, rtol=1e-11, atol=1e-13)
        np.testing.assert_allclose(s.server.theta, theta, rtol=1e-12)
        np.testing.assert_allclose(s.clients.dual.sum(axis=0), 0.0, atol=1e-13)
        assert (s.floats_up, s.floats_down) == (20, 20 if s.round.n else 40)


def rate(method: APDAInexact, f) -> float:
    """The factor per round of the error in the long run: the spectral radius of a round."""
    method = method.suggested(f)
    optimum = State(*method.fixed_point(f, f.minimiser()))
    (n, d), round = f.b.shape, first_round(f.n_clients)
    centred = np.linalg.svd(np.eye(n) - 1 / n)[0][:, :-1]
    columns = []
    for e in np.eye((3 * n - 2) * d):
        x, y, old = np.split(e, [n * d, (2 * n - 1) * d])
        y, old = (centred @ part.reshape(n - 1, d) for part in (y, old))
        c = optimum.clients
        moved = c._replace(theta=c.theta + x.reshape(n, d), dual=c.dual + y, previous=c.previous + old)
        after = advance(method, f, optimum._replace(clients=moved), round)[0].clients
        parts = (centred.T @ (after.dual - c.dual), centred.T @ (after.previous - c.previous))
        columns.append(np.concatenate([(after.theta - c.theta).ravel(), *(part.ravel() for part in parts)]))
    return float(np.abs(np.linalg.eigvals(np.asarray(columns))).max())


def instance(kappa: float) -> Quadratic:
    """Clients whose hard directions agree, as the rate of a method for consensus shows on them."""
    rng = np.random.default_rng(0)
    spectra = np.stack([[1.0, kappa**0.5, kappa], [1.0, kappa, kappa], [1.0, 1.0, kappa]])
    return Quadratic(A=np.stack([np.diag(spectrum) for spectrum in spectra]), b=rng.standard_normal((3, 3)))


def order(method: Callable[[float], APDAInexact]) -> float:
    """The exponent of kappa in the number of rounds, between kappa = 100 and 10000."""
    gaps = [1 - rate(method(kappa), instance(kappa)) for kappa in (1e2, 1e4)]
    return float(np.log(gaps[0] / gaps[1]) / np.log(1e2))


def test_the_number_of_rounds_is_of_order_sqrt_kappa() -> None:
    assert order(lambda kappa: APDAInexact(solver=Exact())) == pytest.approx(0.5, abs=0.02)
    assert order(lambda kappa: APDAInexact(stop=Steps(steps=50))) == pytest.approx(0.5, abs=0.05)
    assert order(lambda kappa: APDAInexact(solver=Exact(), eta_x=1 / kappa)) > 0.9  # the step of gradient descent


def test_the_suggestions_balance_the_two_factors() -> None:
    kappa = 400.0
    found = rate(APDAInexact(solver=Exact()), instance(kappa))
    assert found == pytest.approx(1 - 1 / (8 * kappa**0.5), rel=1e-3)
    for other in (0.25, 4.0):
        assert rate(APDAInexact(solver=Exact(), eta_x=other / (4 * kappa**0.5)), instance(kappa)) > found
