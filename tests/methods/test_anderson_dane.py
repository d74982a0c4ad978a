"""AndersonDANE: its first round, plain DANE, and the inner product in which it mixes."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from dualopt.engine.rounds import iterate
from dualopt.methods import AndersonDANE
from dualopt.methods._anderson import History
from dualopt.methods.participation import first_round
from dualopt.objectives import Quadratic
from dualopt.solvers import Exact
from tests.problems import hinge, lopsided, one_flat_client, quadratic

START = np.array([1.0, -2.0, 0.5, 3.0])


def seen(method: AndersonDANE, f, rounds: int, start=START):
    return list(islice(iterate(method, f, theta0=start), rounds))


def test_the_first_model_is_the_mean_of_the_local_minimisers() -> None:
    f = lopsided()
    own = np.linalg.solve(f.A, f.b[..., None])[..., 0]
    np.testing.assert_allclose(seen(AndersonDANE(solver=Exact()), f, 1)[0].server.theta, own.mean(axis=0), rtol=1e-12)


@pytest.mark.parametrize("weight", [0.0, 3.0])
def test_the_iteration_with_its_matrices(weight: float) -> None:
    """Gradient rounds and rounds of solutions in turns; x_j = theta - (H_j + w)^-1 g, plain step eta."""
    f = quadratic(n=3, L=8.0)
    H, inverse = f.A.mean(axis=0), np.linalg.inv(f.A + weight * np.eye(4)).mean(axis=0)
    snapshots = seen(AndersonDANE(solver=Exact(), eta=0.3, weight=weight), f, 4)
    theta = snapshots[0].server.point
    step = -inverse @ (H @ theta - f.b.mean(axis=0))
    assert np.array_equal(snapshots[1].server.theta, snapshots[0].server.theta)
    np.testing.assert_allclose(snapshots[1].message.vector, H @ theta - f.b.mean(axis=0), rtol=1e-10)
    np.testing.assert_allclose(snapshots[2].server.theta, theta + step, rtol=1e-10)
    np.testing.assert_allclose(snapshots[2].server.point, theta + 0.3 * step, rtol=1e-10)
    assert [s.message.solve for s in snapshots] == [False, True, False, True]


def test_products_are_those_of_the_inverse_of_the_preconditioner() -> None:
    f = quadratic(n=3, L=8.0)
    inverse = np.linalg.inv(np.linalg.inv(f.A).mean(axis=0))
    last = seen(AndersonDANE(solver=Exact(), memory=3), f, 9)[-1]
    R = np.stack(last.server.residuals)
    np.testing.assert_allclose(last.server.history.gram, R @ inverse @ R.T, rtol=1e-6, atol=1e-12 * np.max(R) ** 2)


def test_a_step_that_is_too_long_is_halved() -> None:
    """Two clients with the curvatures 1 and 100 exchanged: the eigenvalue is 25.5, where 2/0.2 = 10 is admitted."""
    f = Quadratic(A=np.stack([np.diag([1.0, 100.0]), np.diag([100.0, 1.0])]), b=np.array([[1.0, 2.0], [3.0, 4.0]]))
    plain = seen(AndersonDANE(solver=Exact(), memory=1), f, 60, np.array([1.0, 5.0]))
    assert 0.01 < plain[-1].server.eta < 2.0 / 25.5
    assert np.linalg.norm(plain[-1].server.theta - f.minimiser()) < 1e-8
    fine = seen(AndersonDANE(solver=Exact(), eta=0.07), f, 9, np.array([1.0, 5.0]))
    assert fine[-1].server.eta == 0.07


def judged(*, age: int, product: float, least: float = 1.0, known: int = 3):
    """The server after a mean solution, and its point, on one coordinate: r = 1 and g = -product at the point 5.

    Three points before, at 2, 3 and 4, had residuals of 1 and gradients of -1; the one at 3 had the least product.
    """
    method = AndersonDANE(solver=Exact(), memory=3, eta=0.25)
    server, _, _ = method.init(np.array([7.0]), np.zeros((1, 1)))
    before = tuple(np.array([x]) for x in (0.0, 2.0, 3.0, 4.0))
    ones = (np.ones(1),) * 4
    server = server._replace(
        point=np.array([5.0]),
        gradient=np.array([-product]),
        points=before,
        residuals=ones,
        gradients=(-np.ones(1),) * 4,
        history=History(np.ones((4, 4)), known, age, least, 1),
        started=True,
    )
    return method.server(server, np.array([6.0]), first_round(1))[0]


def test_the_mean_solution_at_a_refused_point_is_no_model() -> None:
    """Its product is more than 2^2 times the least: the model stays, and the next step starts at the point of that."""
    kept, refused = judged(age=1, product=4.0), judged(age=1, product=4.5)
    assert kept.theta.tolist() == [6.0]
    assert refused.theta.tolist() == [7.0]
    assert refused.point.tolist() == [3.0 + 0.25]
    assert (refused.history.age, refused.history.known) == (0, 0)


@pytest.mark.parametrize(
    ("age", "product", "eta"),
    [(0, 3.0, 0.125), (0, 1.0, 0.25), (0, 0.5, 0.25), (1, 3.0, 0.25), (2, 3.0, 0.25), (1, 4.5, 0.25)],
)
def test_eta_is_halved_by_plain_steps_alone(age: int, product: float, eta: float) -> None:
    """A mixed point whose residual is larger says nothing of eta; a smaller one holds at once."""
    server = judged(age=age, product=product, known=0)
    assert server.eta == eta
    assert server.point.tolist() == [(3.0 if product > 4 else 5.0) + eta]


def test_residuals_are_compared_with_the_least_since_the_plain_step() -> None:
    """The product with the residual before is (1 + 3)/2, which is less."""
    assert [judged(age=0, product=3.0, least=least).eta for least in (2.5, 3.5)] == [0.125, 0.25]


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^weight"):
        AndersonDANE(weight=-1.0)
    with pytest.raises(ValueError, match=r"^eta"):
        AndersonDANE(eta=0.0)
    with pytest.raises(ValueError, match=r"^objective must be smooth for AndersonDANE"):
        AndersonDANE().suggested(hinge())
    with pytest.raises(ValueError, match=r"^weight must be positive where clients are not strongly convex"):
        AndersonDANE().check(one_flat_client())
    AndersonDANE(weight=0.1).check(one_flat_client())
