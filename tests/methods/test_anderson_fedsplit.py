"""AndersonFedSplit against a loop over stacked points, and its parts one by one."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np
import pytest

from dualopt.engine.rounds import iterate
from dualopt.methods import AndersonFedSplit, FedSplit
from dualopt.methods._anderson import REFUSED, History, appended, mixing_weights, mixture, regularisation
from dualopt.objectives import Quadratic
from dualopt.solvers import LBFGS, Exact
from tests.problems import logistic, lopsided, quadratic

ROUNDS = 14


def literal(f: Quadratic, start: np.ndarray, step: float, memory: int) -> Iterator[np.ndarray]:
    """The box, all clients in one vector: least squares for the differences of the residuals."""
    N = f.n_clients
    solve = np.linalg.inv(f.A + np.eye(f.shape[0]) / step)
    z = np.tile(start, (N, 1))
    points: list[np.ndarray] = []
    residuals: list[np.ndarray] = []
    since, sizes = 0, []
    while True:
        mean = z.mean(axis=0)
        x = np.einsum("jkl,jl->jk", solve, f.b + (2 * mean - z) / step)
        r = 2 * (x - mean)
        yield x.mean(axis=0)
        points, residuals, sizes = [*points, z][-memory - 1 :], [*residuals, r][-memory - 1 :], [*sizes, np.sum(r**2)]
        if since == memory:
            best = int(np.argmin(sizes[-memory - 1 :]))
            z, since = points[best] + residuals[best], 0
            continue
        since += 1
        R = np.stack([np.ravel(q) for q in residuals], axis=1)
        # |R a|^2 + lambda sum a_i^2 |r_i|^2 with a_last = 1 - the sum of the others
        ridge = regularisation(float(np.finfo(float).eps))
        rows = np.concatenate([R, np.sqrt(ridge) * np.diag(np.linalg.norm(R, axis=0))])
        others = np.linalg.lstsq(rows[:, :-1] - rows[:, -1:], -rows[:, -1], rcond=None)[0]
        weights = [*others, 1.0 - np.sum(others)]
        z = np.sum([a * (p + q) for a, p, q in zip(weights, points, residuals, strict=True)], axis=0)


@pytest.mark.parametrize("memory", [1, 3, 10])
@pytest.mark.parametrize("f", [lopsided(), quadratic(n=3, L=200.0)], ids=["lopsided", "kappa 200"])
def test_is_its_box(f: Quadratic, memory: int) -> None:
    start = np.random.default_rng(0).standard_normal(f.shape)
    method = AndersonFedSplit(memory=memory, solver=Exact()).suggested(f)
    models = [s.server.theta for s in islice(iterate(method, f, theta0=start), ROUNDS)]
    expected = list(islice(literal(f, start, method.step, memory), ROUNDS))
    # The Gram matrix squares the condition of the residuals: weights are known to half of the digits.
    np.testing.assert_allclose(models, expected, rtol=0, atol=1e-6)
    np.testing.assert_allclose(models[:3], expected[:3], rtol=0, atol=1e-11)


def test_ends_where_fedsplit_is_on_its_way() -> None:
    """Six numbers in all: with full memory a method of the kind of GMRES needs eight rounds or fewer."""
    f = quadratic(n=2, d=3, L=1000.0)
    methods = (AndersonFedSplit(solver=Exact()), FedSplit(solver=Exact()))
    away = [np.linalg.norm(next(islice(iterate(m, f), 8, None)).server.theta - f.minimiser()) for m in methods]
    assert away[0] < 1e-7
    assert away[1] > 1e-3  # 0.94 per round


def test_servers_means_are_those_of_the_clients() -> None:
    f = logistic()
    for s in islice(iterate(AndersonFedSplit(solver=LBFGS()), f), 25):
        for mean, images in zip(s.server.images, s.clients.images, strict=True):
            np.testing.assert_allclose(mean, images.mean(axis=0), rtol=0, atol=1e-12)
        products = [[np.sum(a * b) / f.n_clients for b in s.clients.residuals] for a in s.clients.residuals]
        np.testing.assert_allclose(s.server.history.gram, products, rtol=1e-12, atol=1e-300)
        assert sum(s.message.weights) == pytest.approx(1.0, abs=1e-9)


def test_a_point_of_large_residual_is_refused() -> None:
    f = quadratic()
    method = AndersonFedSplit(solver=Exact()).suggested(f)
    *_, before, last = islice(iterate(method, f), 5)
    round = last.round
    upload = method.local(before.clients, before.message, _oracle(f, method, round), round)[1]
    mean = type(upload)(upload.residual.mean(axis=0), upload.products.mean(axis=0))
    for factor, refused in ((0.99, False), (1.01, True)):
        products = np.append(mean.products[:-1], factor * REFUSED**2 * before.server.history.least)
        server, message = method.server(before.server, mean._replace(products=products), round)
        assert (server.history.known == 0) == refused
        assert np.array_equal(server.theta, before.server.theta) == refused
        if refused:  # the image of the best point, one place further back now
            weights = [0.0] * 11
            weights[10 - before.server.history.best - 1] = 1.0
            assert list(message.weights) == weights
    nothing = np.full(11, np.nan)
    assert method.server(before.server, mean._replace(products=nothing), round)[0].history.known == 0


@pytest.mark.parametrize(("size", "least", "best"), [(0.5, 0.5, 0), (1.0, 1.0, 0), (1.5, 1.0, 2), (4.5, 1.0, 2)])
def test_the_best_point_is_the_newest_of_the_least_residual(size: float, least: float, best: int) -> None:
    """Of 1 was the point two places ago, once this one is there."""
    history = History(np.ones((4, 4)), 3, 1, 1.0, 1)
    found, _, refused = AndersonFedSplit(memory=3)._judged(history, np.array([1.0, 1.0, 1.0, size]))
    assert (found.least, found.best, refused) == (least, best, size > 4.0)


def _oracle(f, method, round):
    from dualopt.methods.oracle import Oracle

    return Oracle(f, method.solver, method.stop, (), round)


def test_weights_minimise() -> None:
    rng = np.random.default_rng(1)
    R = rng.standard_normal((20, 5)) * 10.0 ** -np.arange(5)
    G = R.T @ R
    weights = mixing_weights(G)
    assert np.sum(weights) == pytest.approx(1.0, abs=1e-14)
    least = weights @ G @ weights
    for _ in range(50):
        other = weights + 0.1 * rng.standard_normal(5)
        other /= np.sum(other)
        assert other @ G @ other >= least * (1.0 - 1e-9)
    np.testing.assert_allclose(mixing_weights(1e-12 * G), weights, rtol=1e-6)
    ridged = np.linalg.solve(G + 0.01 * np.diag(np.diag(G)), np.ones(5))
    np.testing.assert_allclose(mixing_weights(G, 1e-3), ridged / np.sum(ridged), rtol=1e-10)


def test_weights_of_equal_and_of_zero_residuals() -> None:
    np.testing.assert_allclose(mixing_weights(np.ones((3, 3))), np.full(3, 1.0 / 3.0), rtol=1e-4)
    np.testing.assert_allclose(mixing_weights(np.diag([0.0, 1.0])), [1.0, 0.0], atol=1e-9)
    assert mixing_weights(np.array([[7.0]])).tolist() == [1.0]


def test_products_that_are_no_numbers_choose_the_newest_point() -> None:
    gram = np.ones((4, 4))
    gram[2, 3] = gram[3, 2] = np.nan
    assert AndersonFedSplit(memory=3)._mixed(gram, 2, 1e-15) == (0.0, 0.0, 0.0, 1.0)


def test_what_has_no_weight_does_not_matter() -> None:
    parts = [np.array([np.nan]), np.array([2.0]), np.array([4.0])]
    assert mixture((0.0, 0.5, 0.5), parts).tolist() == [3.0]
    assert mixture((0.0, 1.0, 0.0), parts) is parts[1]


def test_gram_matrices_move_on() -> None:
    gram = appended(appended(np.zeros((2, 2)), np.array([0.0, 4.0])), np.array([2.0, 9.0]))
    assert gram.tolist() == [[4.0, 2.0], [2.0, 9.0]]
