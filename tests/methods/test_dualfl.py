"""DualFL against its box, on nonsmooth losses, with corrected points, and against known values."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from dualopt.engine.rounds import iterate, resolve
from dualopt.methods.corrected_dualfl import CorrectedDualFL
from dualopt.methods.dualfl import DualFL
from dualopt.objectives import LinearModel, Quadratic
from dualopt.runs.recording import run
from dualopt.runs.reference import cvxpy, newton
from dualopt.solvers import LBFGS, DualCoordinate, Exact
from dualopt.solvers.stopping import GradientReduction, Steps
from tests.problems import digits, hinge, logistic, quadratic

RHO, NU = 0.05, 0.9
EXACT = DualFL(rho=RHO, nu=NU, solver=Exact())


def printed_box(f: Quadratic, rho: float, nu: float, rounds: int) -> list[dict[str, np.ndarray]]:
    """Algorithm 1 as printed: indices (n) and (n-1) kept apart, no intermediate quantity."""
    N, d = f.b.shape
    theta, theta_j = [np.zeros(d)], [np.zeros((N, d))]
    zeta = [np.zeros((N, d)), np.zeros((N, d))]  # zeta^(-1), zeta^(0)
    t, history = 1.0, []
    for _ in range(rounds):
        theta_j.append(np.stack([np.linalg.solve(f.A[j], f.b[j] + nu * zeta[-1][j]) for j in range(N)]))
        theta.append(theta_j[-1].sum(axis=0) / N)
        t_next = (1 - rho * t**2 + np.sqrt((1 - rho * t**2) ** 2 + 4 * t**2)) / 2
        beta = (t - 1) / t_next * (1 - t_next * rho) / (1 - rho)
        t = t_next
        zeta.append((1 + beta) * (zeta[-1] + theta[-1] - theta_j[-1]) - beta * (zeta[-2] + theta[-2] - theta_j[-2]))
        history.append({"theta": theta[-1], "theta_j": theta_j[-1], "zeta": zeta[-1], "beta": np.array(beta)})
    return history


def test_is_the_printed_box() -> None:
    f = quadratic()
    for snapshot, box in zip(iterate(EXACT, f), printed_box(f, RHO, NU, 30), strict=False):
        np.testing.assert_allclose(snapshot.server.theta, box["theta"], rtol=0, atol=1e-12)
        np.testing.assert_allclose(snapshot.clients.theta, box["theta_j"], rtol=0, atol=1e-12)
        np.testing.assert_allclose(snapshot.clients.zeta, box["zeta"], rtol=0, atol=1e-12)
        assert abs(snapshot.message.beta - box["beta"]) <= 1e-15


class NoMomentum(DualFL):
    """A wrong variant: beta = 0."""

    def server(self, server, mean, round):
        new, message = super().server(server, mean, round)
        return new, message._replace(beta=0.0)


@pytest.mark.parametrize("name", ["dualfl", "optimized-dualfl"])
@pytest.mark.parametrize("mu", [0.0, -0.5])
def test_nothing_is_suggested_for_a_client_that_is_not_strongly_convex(name: str, mu: float) -> None:
    f = Quadratic(A=np.stack([np.diag([2.0, 7.0]), np.diag([mu, 3.0])]), b=np.ones((2, 2)))
    with pytest.raises(ValueError, match=rf"^nu cannot be suggested because mu is {mu:g}: give mu > 0 \("):
        resolve(name, f)


def test_nonsmooth_reaches_the_independent_solution() -> None:
    f = hinge(n=3, rows=30, mu=0.3)
    reference = cvxpy(f)
    algorithm = DualFL(solver=DualCoordinate(), stop=GradientReduction())
    assert algorithm.suggested(f).rho == 0.0
    trace = run(algorithm, f, rounds=300, tol=1e-5)
    assert trace.status == "converged"
    assert trace["energy"][-1] - reference.energy <= 1.01e-5 * reference.energy
    assert trace["energy"][-1] >= reference.energy - reference.gap


def test_corrected_point_is_dual_feasible_and_plain_point_is_the_warm_start() -> None:
    f = logistic()
    algorithm = CorrectedDualFL(solver=LBFGS(), stop=Steps(steps=1)).suggested(f)
    assert algorithm.nu is not None
    zeta = np.zeros((f.n_clients, *f.shape))
    for s in islice(iterate(algorithm, f), 5):
        gradient_of_g = f.gradient(s.clients.theta) - algorithm.nu * s.clients.theta
        np.testing.assert_allclose(algorithm.nu * (zeta - s.clients.sent), gradient_of_g, atol=1e-13)
        assert np.abs(s.clients.sent - s.clients.theta).max() > 1e-8
        zeta = s.clients.zeta


@pytest.fixture(scope="module")
def sorted_digits() -> LinearModel:
    return digits()


def test_digits_condition_number_and_optimum(sorted_digits: LinearModel) -> None:
    assert sorted_digits.sizes == (225, 225, 225, 225, 225, 224, 224, 224)
    assert sorted_digits.L.max() / 1e-2 == pytest.approx(654.7, abs=0.05)
    assert newton(sorted_digits).energy == pytest.approx(0.741158876968, abs=1e-12)


def test_digits_reproduces_the_known_curve() -> None:
    """1792 rows: relative error 2.77e-4 after 60 rounds with exact local solves."""
    f = digits(rows=1792)
    assert f.L.max() / 1e-2 == pytest.approx(656.7, abs=0.05)
    trace = run(DualFL(stop=GradientReduction(factor=1e-3, first=1e-5)), f, rounds=60, reference=0.7410572076)
    assert trace["error"][-1] == pytest.approx(2.77e-4, rel=0.01)
    wrong = run(NoMomentum(stop=GradientReduction(factor=1e-2)), f, rounds=60, reference=0.7410572076)
    assert wrong["error"][-1] > 1e-2
