"""Scaffnew against its box and its one-step inequality, with both sides of the coin."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from dualopt.engine.rounds import State, iterate
from dualopt.lab.chance import coin, worst_growth
from dualopt.methods import Scaffnew
from dualopt.methods.participation import CommunicateWithProbability
from dualopt.methods.scaffnew import Client, Server
from dualopt.objectives import Quadratic
from dualopt.solvers import SGD, Gradient
from tests.problems import logistic, quadratic


def box(f, coins, *, step: float, p: float):
    """Algorithm 2 of the paper, written out."""
    n, d = f.b.shape
    x, h = np.ones((n, d)), np.zeros((n, d))
    for communicates in coins:
        xhat = np.stack([x[j] - step * (f.A[j] @ x[j] - f.b[j] - h[j]) for j in range(n)])
        x = np.stack([xhat.mean(axis=0)] * n) if communicates else xhat
        h = h + p / step * (x - xhat)
        yield x, h


def test_it_is_the_box() -> None:
    f, chance = quadratic(), CommunicateWithProbability(probability=0.4)
    method = Scaffnew(probability=0.4, solver=Gradient(step=0.04))
    coins = [round.communicate for round in islice(chance.rounds(5, 0), 30)]
    assert 5 < sum(coins) < 25
    model = np.ones(4)
    found = iterate(method, f, theta0=model, participation=chance)
    for s, communicates, (x, h) in zip(found, coins, box(f, coins, step=0.04, p=0.4), strict=False):
        model = x[0] if communicates else model
        np.testing.assert_allclose(s.server.theta, model, rtol=1e-12)
        np.testing.assert_allclose(s.clients.theta, x, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(s.clients.control, h, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(s.clients.control.sum(axis=0), np.zeros(4), atol=1e-12)
        assert (s.floats_up, s.floats_down > 0) == ((20, True) if communicates else (0, s.round.n == 0))


def growth(f, *, step: float, p: float, chance: float) -> float:
    """The worst growth of Psi when the method believes in p and the coin has another chance."""
    method = Scaffnew(probability=p, solver=Gradient(step=step))
    (n, d), model = f.b.shape, f.minimiser()
    control = f.gradient(model)
    centred = np.linalg.svd(np.eye(n) - 1 / n)[0][:, :-1]  # controls have sum zero: a basis of such rows

    def state(e):
        x, h = e[: n * d].reshape(n, d), centred @ e[n * d :].reshape(n - 1, d)
        return State(Server(model), model, Client(model + x, control + p / step * h))

    def errors(s):
        x, h = s.clients.theta - model, step / p * (s.clients.control - control)
        return np.concatenate([x.ravel(), (centred.T @ h).ravel()])

    return worst_growth(method, f, coin(n, chance), state, errors, (2 * n - 1) * d)


def test_sampled_steps_keep_the_sum_of_the_controls() -> None:
    f = logistic()
    method = Scaffnew(probability=0.5, solver=SGD(step=0.05, batch=5))
    chance = CommunicateWithProbability(probability=0.5)
    s = list(islice(iterate(method, f, participation=chance), 20))[-1]
    assert np.abs(s.clients.control).max() > 1e-3
    np.testing.assert_allclose(s.clients.control.sum(axis=0), 0.0, atol=1e-13)


def test_the_step_is_common_where_smoothness_differs() -> None:
    f = Quadratic(A=np.stack([np.eye(2), 4 * np.eye(2)]), b=np.ones((2, 2)))
    for method in (Scaffnew(), Scaffnew(solver=Gradient())):
        assert method.suggested(f).solver == Gradient(step=0.4)
    assert Scaffnew(solver=Gradient(step=0.1)).suggested(f).solver == Gradient(step=0.1)


def test_clients_that_are_not_strongly_convex_have_the_step_of_the_paper() -> None:
    flat = Quadratic(A=np.stack([np.diag([0.0, 2.0]), np.diag([1.0, 4.0])]), b=np.zeros((2, 2)))
    assert Scaffnew(probability=0.5).suggested(flat).solver == Gradient(step=0.25)
    with pytest.raises(ValueError, match=r"^probability must be given: it is suggested for strongly convex clients"):
        Scaffnew().suggested(flat)
