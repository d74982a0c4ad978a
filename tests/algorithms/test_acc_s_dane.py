"""Acc-S-DANE: the box with three vectors, of which two suffice, its numbers, and what the weight has to do with it."""

from __future__ import annotations

import math
from itertools import islice

import numpy as np
import pytest

from dualopt.algorithms import AccSDANE
from dualopt.algorithms.acc_s_dane import growth, limit_factor
from dualopt.engine import iterate
from dualopt.objectives import Quadratic
from dualopt.solvers import Exact
from tests.problems import hinge, lopsided, quadratic

START = np.array([1.0, -2.0, 0.5, 3.0])


def models(method: AccSDANE, f, iterations: int, start=START):
    return [s.server.theta for s in islice(iterate(method, f, theta0=start), 1, 2 * iterations, 2)]


def as_published(f: Quadratic, lam: float, mu: float, iterations: int, start=START):
    """The authors' recursion, with a, A and B, and with the gradients at the local solutions sent as well."""
    A, B, x, v, found = 0.0, 1.0, start, start, []
    eye = np.eye(f.shape[0])
    for _ in range(iterations):
        a = (B + math.sqrt(B * B + 4.0 * lam * A * B)) / (2.0 * lam)  # lam a^2 = (A + a) B
        y = (A * x + a * v) / (A + a)
        g = np.einsum("jab,b->ja", f.A, y) - f.b
        right = lam * y - (g.mean(axis=0) - g) + f.b
        local = np.linalg.solve(f.A + lam * eye, right[..., None])[..., 0]
        gradients = np.einsum("jab,jb->ja", f.A, local) - f.b
        x = local.mean(axis=0)
        v = (B * v + a * (mu * x - gradients.mean(axis=0))) / (B + mu * a)
        A, B = A + a, B + mu * a
        found.append(x)
    return found


@pytest.mark.parametrize("mu", [0.0, 0.5])
def test_two_vectors_make_the_models_of_three(mu: float) -> None:
    f = quadratic(n=3, L=8.0)
    ours = models(AccSDANE(weight=2.0, mu=mu, solver=Exact()), f, 12)
    np.testing.assert_allclose(ours, as_published(f, 2.0, mu, 12), rtol=1e-10, atol=1e-12)


def test_another_mu_makes_other_models() -> None:
    f = quadratic(n=3, L=8.0)
    ours = models(AccSDANE(weight=2.0, mu=0.5, solver=Exact()), f, 4)
    assert np.linalg.norm(ours[-1] - as_published(f, 2.0, 0.4, 4)[-1]) > 1e-4


def test_one_vector_each_way_in_every_round() -> None:
    f = lopsided()
    for s in islice(iterate(AccSDANE(), f, theta0=START[: f.shape[0]]), 6):
        assert s.floats_up == f.n_clients * f.shape[0]


def test_identical_clients_without_a_weight_are_solved_at_once() -> None:
    one = quadratic(n=1)
    f = Quadratic(A=np.repeat(one.A, 3, 0), b=np.repeat(one.b, 3, 0))
    np.testing.assert_allclose(models(AccSDANE(weight=0.0), f, 1)[0], f.minimiser(), rtol=1e-10)


def test_the_numbers() -> None:
    """lam a^2 = (A + a) B in the normalised form: w alpha^2 = b (1 - alpha), and b+ = b (1 - alpha) + mu alpha."""
    for b, w, mu in ((3.0, 2.0, 0.5), (0.1, 7.0, 0.0), (1e-6, 1.0, 1e-6)):
        alpha, after = growth(b, w, mu)
        assert w * alpha**2 == pytest.approx(b * (1.0 - alpha), rel=1e-12)
        assert after == pytest.approx(b * (1.0 - alpha) + mu * alpha, rel=1e-12)
    alpha = 1.0 - limit_factor(6.0, 0.5)
    assert 6.0 * alpha**2 + 0.5 * alpha == pytest.approx(0.5, rel=1e-14)


def test_a_weight_far_below_the_differences_diverges() -> None:
    f = Quadratic(A=np.stack([np.diag([1.0, 100.0]), np.diag([100.0, 1.0])]), b=np.array([[1.0, 2.0], [3.0, 4.0]]))
    start = np.array([1.0, 5.0])

    def distance(weight: float) -> float:
        return float(np.linalg.norm(models(AccSDANE(weight=weight), f, 30, start)[-1] - f.minimiser()))

    assert distance(49.5) < 1e-3 < 1e3 < distance(0.1)


def test_what_is_refused() -> None:
    f = quadratic()
    with pytest.raises(ValueError, match=r"^mu must not exceed that of any client"):
        AccSDANE(mu=2.0).suggested(f).check(f)
    with pytest.raises(ValueError, match=r"^weight must be positive where mu is zero"):
        AccSDANE(mu=0.0, weight=0.0).suggested(f).check(f)
    with pytest.raises(ValueError, match=r"^objective must be smooth for DANE"):
        AccSDANE().suggested(hinge())
