"""AndersonDANE: its first round, plain DANE, and the inner product in which it mixes."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from dualopt.engine.rounds import iterate
from dualopt.methods import AndersonDANE
from dualopt.methods._anderson import History
from dualopt.methods.anderson_dane import POINT, SOLUTION, Upload
from dualopt.methods.participation import first_round
from dualopt.objectives import Quadratic
from dualopt.solvers import Exact
from tests.problems import hinge, lopsided, magnitudes, one_flat_client, quadratic

START = np.array([1.0, -2.0, 0.5, 3.0])


def seen(method: AndersonDANE, f, rounds: int, start=START):
    return list(islice(iterate(method, f, theta0=start), rounds))


def test_the_first_point_is_the_mean_of_the_local_minimisers() -> None:
    """It is the model once its value is known, below that of the start."""
    f = lopsided()
    own = np.linalg.solve(f.A, f.b[..., None])[..., 0]
    first, second = seen(AndersonDANE(solver=Exact()), f, 2)
    np.testing.assert_allclose(first.message.vector, own.mean(axis=0), rtol=1e-12)
    assert first.server.theta.tolist() == START.tolist()
    assert second.server.theta is second.server.point is first.server.point
    energies = [float(f.mean(f.value(s.server.theta))) for s in (first, second)]
    np.testing.assert_allclose(second.server.values[-2:], energies, rtol=1e-12)


@pytest.mark.parametrize("weight", [0.0, 3.0])
def test_the_iteration_with_its_matrices(weight: float) -> None:
    """Gradient rounds and rounds of solutions in turns; x_j = theta - (H_j + w)^-1 g, plain step eta."""
    f = quadratic(n=3, L=8.0)
    H, inverse = f.A.mean(axis=0), np.linalg.inv(f.A + weight * np.eye(4)).mean(axis=0)
    snapshots = seen(AndersonDANE(solver=Exact(), eta=0.3, weight=weight), f, 4)
    theta = snapshots[0].server.point
    step = -inverse @ (H @ theta - f.b.mean(axis=0))
    np.testing.assert_allclose(snapshots[1].message.vector, H @ theta - f.b.mean(axis=0), rtol=1e-10)
    assert all(np.array_equal(s.server.theta, theta) for s in snapshots[1:3])
    np.testing.assert_allclose(snapshots[2].server.point, theta + 0.3 * step, rtol=1e-10)
    assert np.array_equal(snapshots[3].server.theta, snapshots[2].server.point)
    assert [s.message.asks for s in snapshots] == [POINT, SOLUTION, POINT, SOLUTION]


def test_products_are_those_of_the_inverse_of_the_preconditioner() -> None:
    f = quadratic(n=3, L=8.0)
    inverse = np.linalg.inv(np.linalg.inv(f.A).mean(axis=0))
    last = seen(AndersonDANE(solver=Exact(), memory=3), f, 9)[-1]
    R = np.stack(last.server.residuals)
    np.testing.assert_allclose(last.server.history.gram, R @ inverse @ R.T, rtol=1e-6, atol=1e-12 * np.max(R) ** 2)


def test_a_step_that_is_too_long_is_halved() -> None:
    """Two clients with the curvatures 1 and 100 exchanged: the eigenvalue is 25.5, where 2/0.2 = 10 is admitted."""
    f = Quadratic(A=np.stack([np.diag([1.0, 100.0]), np.diag([100.0, 1.0])]), b=np.array([[1.0, 2.0], [3.0, 4.0]]))
    plain = seen(AndersonDANE(solver=Exact(), memory=1, eta=0.2), f, 60, np.array([1.0, 5.0]))
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
        theta=np.array([5.0]),
        gradient=np.array([-product]),
        points=before,
        residuals=ones,
        gradients=(-np.ones(1),) * 4,
        history=History(np.ones((4, 4)), known, age, least, 1),
        started=True,
    )
    return method.server(server, np.array([6.0]), first_round(1))[0]


def test_after_a_point_with_a_large_residual_comes_the_plain_step_from_the_best_one() -> None:
    """Its product is more than 2^2 times the least."""
    kept, refused = judged(age=1, product=4.0), judged(age=1, product=4.5)
    assert kept.history.age == 2
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


@pytest.mark.parametrize("product", [0.0, -1e-33])
def test_residuals_that_are_rounding_are_forgotten(product: float) -> None:
    """Their products may make a square that is negative, and a matrix that is singular."""
    server = judged(age=1, product=product)
    assert (server.history.known, server.history.age, server.point.tolist()) == (0, 0, [5.25])


def test_runs_go_on_after_their_last_digit() -> None:
    """One of these had a singular matrix."""
    rng = np.random.default_rng(0)
    for _ in range(25):
        A = 1.0 + 4.0 * rng.integers(0, 2, (3, 2))
        f = Quadratic(A=np.stack([np.diag(a) for a in A]), b=3.0 * rng.standard_normal((3, 2)))
        last = seen(AndersonDANE(solver=Exact(), eta=0.3, memory=5), f, 40, np.zeros(2))[-1]
        np.testing.assert_allclose(last.server.theta, f.minimiser(), rtol=1e-12, atol=1e-12)


def test_before_the_first_value_there_are_five_that_admit_nothing() -> None:
    server, _, _ = AndersonDANE().init(np.zeros(1), np.zeros((1, 1)))
    assert server.values == (-np.inf,) * 5


def test_residuals_are_compared_with_the_least_since_the_plain_step() -> None:
    """The product with the residual before is (1 + 3)/2, which is less."""
    assert [judged(age=0, product=3.0, least=least).eta for least in (2.5, 3.5)] == [0.125, 0.25]


def valued(value: float, *, age: int = 1, slope: float = -1.0, values=(8.0, 1.0, 2.0, 4.0, 3.0)):
    """The server at the point 5 with the residual 1, after the value at the point 6; slopes are gradients there."""
    server = judged(age=0, product=1.0)
    history = server.history._replace(age=age, least=0.5, best=2)
    server = server._replace(theta=np.array([5.0]), point=np.array([6.0]), gradient=np.array([slope]))
    server = server._replace(values=values, history=history, eta=0.25)
    upload = Upload(np.asarray(value), np.array([7.0]))
    return AndersonDANE(solver=Exact(), memory=3).server(server, upload, first_round(1))


@pytest.mark.parametrize(
    ("value", "slope", "accepted"),
    [
        (8.0, 0.0, True),  # the largest of five, and not the newest
        (8.0 * (1.0 + 2e-15), 0.0, True),  # 10 units in the last place above
        (8.0 * (1.0 + 3e-15), 0.0, False),
        (8.0 - 1.1e-4, -1.0, True),  # a fall by 1e-4 times the slope
        (8.0 - 0.9e-4, -1.0, False),
        (8.0, 1.0, True),  # a slope that goes uphill admits nothing more
        (8.0 + 0.9e-4, 1.0, False),
        (np.inf, -1.0, False),
        (np.nan, -1.0, False),
    ],
)
def test_a_point_is_accepted_by_the_last_five_values(value: float, slope: float, accepted: bool) -> None:
    server, message = valued(value, slope=slope)
    assert server.theta.tolist() == ([6.0] if accepted else [5.0])
    assert (message.asks == SOLUTION) == server.solving == accepted
    assert server.values == ((1.0, 2.0, 4.0, 3.0, value) if accepted else (8.0, 1.0, 2.0, 4.0, 3.0))
    assert server.gradient.tolist() == ([7.0] if accepted else [slope])


@pytest.mark.parametrize(("age", "eta"), [(1, 0.25), (0, 0.0625)])
def test_after_a_refused_point_comes_the_plain_step_from_the_model(age: int, eta: float) -> None:
    """With a quarter of eta where the refused one was plain."""
    server, message = valued(9.0, age=age)
    assert (server.eta, server.point.tolist(), message.vector.tolist()) == (eta, [5.0 + eta], [5.0 + eta])
    assert (server.history.age, server.history.best, server.history.least) == (0, 0, 1.0)


def test_the_mean_of_the_local_minimisers_may_be_worse_than_the_start() -> None:
    """From the minimiser of E, to which the clients return; eta is that of the method then."""
    f = Quadratic(A=np.array([[[1.0]], [[9.0]]]), b=np.array([[5.0], [5.0]]))
    first, second, third, fourth = seen(AndersonDANE(solver=Exact()), f, 4, f.minimiser())
    assert first.message.vector.tolist() == [(5.0 + 5.0 / 9.0) / 2.0]
    assert [s.server.theta.tolist() for s in (first, second, third, fourth)] == [[1.0]] * 4
    assert [s.message.asks for s in (first, second, third)] == [POINT, POINT, SOLUTION]
    assert fourth.server.eta == 1.0


def test_nothing_explodes_on_columns_of_other_magnitudes() -> None:
    """Where residuals alone were judged, E rose to 1e8 times that of the start."""
    f = magnitudes(seed=2)
    energies = [float(f.mean(f.value(s.server.theta))) for s in seen(AndersonDANE(), f, 40, f.initial())]
    assert max(energies) <= float(f.mean(f.value(f.initial()))) * (1.0 + 1e-12)
    assert energies[-1] < 0.9 * energies[0]


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
