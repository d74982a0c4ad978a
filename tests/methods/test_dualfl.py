"""DualFL against its box, its dual reading (Lemma 6.5), its theorems with explicit constants and known values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest

from dualopt.engine.rounds import iterate
from dualopt.lab.claims import Case
from dualopt.methods.corrected_dualfl import CorrectedDualFL
from dualopt.methods.dualfl import DualFL, momentum
from dualopt.objectives import LinearModel, Quadratic
from dualopt.runs.recording import run
from dualopt.runs.reference import cvxpy, newton
from dualopt.solvers import AOGM, LBFGS, SGD, DualCoordinate, Exact, NewtonCG
from dualopt.solvers.stopping import Gap, GradientReduction, RelativeEnergy, Steps, SublinearSchedule
from tests.problems import digits, hinge, logistic, quadratic
from theory.dualfl.exact_solutions import lemma_6_5 as compare_with_fista

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


def lemma_6_5(algorithm: DualFL, *, as_printed: bool = False) -> float:
    """Largest relative difference between the sequences (6.9) and FISTA on the dual problem."""
    f = quadratic()
    theta = f.minimiser()
    gradients = f.gradient(theta)
    case = Case(name="", algorithm=algorithm, objective=f, theta=theta, subgradients=gradients, rounds=25)
    return max(c.lhs for c in compare_with_fista(case, as_printed=as_printed))


def test_lemma_6_5_dualfl_is_fista_on_the_dual() -> None:
    assert lemma_6_5(EXACT) <= 1e-11


def test_lemma_6_5_fails_as_printed() -> None:
    """(6.9b) prints the client's theta_j where the server's theta belongs."""
    assert lemma_6_5(EXACT, as_printed=True) > 1e-2


class EarlyMomentum(DualFL):
    """A wrong variant: beta one index early."""

    def server(self, server, mean, round):
        new, _ = super().server(server, mean, round)
        _, beta = momentum(new.t, RHO)
        return new, super().server(server, mean, round)[1]._replace(beta=beta)


class NoMomentum(DualFL):
    """A wrong variant: beta = 0."""

    def server(self, server, mean, round):
        new, message = super().server(server, mean, round)
        return new, message._replace(beta=0.0)


class WrongSign(DualFL):
    """A wrong variant: a sign in (3.3)."""

    def receive(self, clients, message):
        v = clients.zeta + message.theta - clients.theta
        return clients._replace(zeta=(1 + message.beta) * v + message.beta * clients.v, v=v)


@pytest.mark.parametrize("wrong", [EarlyMomentum, NoMomentum, WrongSign])
def test_lemma_6_5_catches_wrong_variants(wrong: type[DualFL]) -> None:
    assert lemma_6_5(wrong(rho=RHO, nu=NU, solver=Exact())) > 1e-3


def test_control_variates_sum_to_zero() -> None:
    for s in islice(iterate(DualFL(solver=LBFGS(), stop=Steps(steps=2)), logistic()), 30):
        assert np.abs(s.clients.zeta.sum(axis=0)).max() <= 1e-13 * (1 + np.abs(s.clients.zeta).max())


def dual_quantities(f: Quadratic, nu: float) -> tuple[np.ndarray, np.ndarray, float, Callable[[np.ndarray], float]]:
    """Return theta*, xi*, E_d(0) - E_d* and the dual error of xi."""
    theta = f.minimiser()
    shifted = f.A - nu * np.eye(f.shape[0])
    inverse = np.linalg.inv(shifted)
    assert f.c is not None
    c = f.c

    def dual(xi: np.ndarray) -> float:
        right = xi + f.b
        conjugates = 0.5 * np.einsum("jk,jkl,jl->", right, inverse, right) - c.sum()
        return conjugates + (xi.sum(axis=0) ** 2).sum() / (2 * f.n_clients * nu)

    xi_star = shifted @ theta - f.b
    best = -f.n_clients * f.value(theta).mean()
    return theta, xi_star, dual(np.zeros_like(xi_star)) - best, lambda xi: dual(xi) - best


@pytest.mark.parametrize("seed", range(5))
def test_theorem_3_2_with_its_constants(seed: int) -> None:
    """rho = 0: dual error <= 2|xi*|^2/(nu (n+1)^2), |theta - theta*|^2 <= 4|xi*|^2/(N nu^2 (n+1)^2)."""
    nu = 0.9
    f = quadratic(n=3, mu=1.0, L=200.0, seed=seed)
    theta, xi_star, _, dual_error = dual_quantities(f, nu)
    squared = (xi_star**2).sum()
    zeta = np.zeros(f.b.shape)
    for n, s in enumerate(islice(iterate(DualFL(rho=0.0, nu=nu, solver=Exact()), f), 60), start=1):
        xi = nu * (zeta - s.clients.theta)
        assert dual_error(xi) <= 2 * squared / (nu * (n + 1) ** 2)
        assert ((s.server.theta - theta) ** 2).sum() <= 4 * squared / (f.n_clients * nu**2 * (n + 1) ** 2)
        zeta = s.clients.zeta


def worst_ratio_3_3(algorithm: DualFL, f: Quadratic, *, rho: float, nu: float, rounds: int) -> float:
    """Largest measured/bound of Theorem 3.3's dual error, down to rounding."""
    _, xi_star, start, dual_error = dual_quantities(f, nu)
    constant = start + (xi_star**2).sum() / (2 * nu * (1 - rho))
    zeta, worst = np.zeros(f.b.shape), 0.0
    for n, s in enumerate(islice(iterate(algorithm, f), rounds), start=1):
        error = dual_error(nu * (zeta - s.clients.theta))
        if error > 1e-11 * constant:
            worst = max(worst, error / ((1 - np.sqrt(rho)) ** n * constant))
        zeta = s.clients.zeta
    return worst


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("share", [1.0, 0.3])
def test_theorem_3_3_with_its_constants(seed: int, share: float) -> None:
    f = quadratic(n=3, mu=1.0, L=100.0, seed=seed)
    rho = share / 100.0
    assert worst_ratio_3_3(DualFL(rho=rho, nu=1.0 - 1e-9, solver=Exact()), f, rho=rho, nu=1.0 - 1e-9, rounds=150) <= 1.0


def test_theorem_3_3_catches_lost_momentum() -> None:
    """Equal Hessians, different linear terms: the client differences decay by L/(L - nu) only without momentum."""
    rng = np.random.default_rng(0)
    A = np.repeat(np.diag([2.0, 1000.0])[None], 3, axis=0)
    f = Quadratic(A=A, b=rng.standard_normal((3, 2)), c=np.zeros(3))
    right, wrong = (kind(rho=1e-3, nu=1.0, solver=Exact()) for kind in (DualFL, NoMomentum))
    assert worst_ratio_3_3(right, f, rho=1e-3, nu=1.0, rounds=600) <= 1.0
    assert worst_ratio_3_3(wrong, f, rho=1e-3, nu=1.0, rounds=600) > 1.0


@pytest.mark.parametrize(
    ("solver", "stop"),
    [(LBFGS(), GradientReduction()), (NewtonCG(), GradientReduction()), (AOGM(), RelativeEnergy())],
    ids=["lbfgs", "newton", "aogm"],
)
def test_reaches_the_reference_with_every_kind_of_solver(solver, stop) -> None:
    f = logistic()
    reference = cvxpy(f)
    trace = run(DualFL(solver=solver, stop=stop), f, rounds=400, tol=1e-10)
    assert trace.status == "converged"
    assert abs(trace["energy"][-1] - reference.energy) <= 1e-10 * reference.energy + reference.gap


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


def test_inexact_theorem_3_2_for_the_corrected_point() -> None:
    """With realised errors eps_i = sum_j |r_j|^2/(2 nu), Schmidt, Le Roux and Bach's bound holds."""
    nu, n_clients = 0.9, 3
    f = quadratic(n=n_clients, mu=1.0, L=50.0)
    _, xi_star, _, dual_error = dual_quantities(f, nu)
    algorithm = CorrectedDualFL(
        rho=0.0, nu=nu, solver=LBFGS(precondition=False),
        stop=Gap(schedule=SublinearSchedule(nu=nu, scale=10.0)),
    )  # fmt: skip
    zeta, linear, square, inexact = np.zeros(f.b.shape), 0.0, 0.0, 0.0
    for n, s in enumerate(islice(iterate(algorithm, f), 40), start=1):
        assert s.solution is not None
        eps = (s.solution.evaluation.gradient**2).sum() / (2 * nu)
        inexact = max(inexact, eps)
        linear += n * np.sqrt(2 * nu * eps)
        square += 2 * nu * n**2 * eps
        bound = 2 / (nu * (n + 1) ** 2) * (np.sqrt((xi_star**2).sum()) + 2 * linear + np.sqrt(square)) ** 2
        assert dual_error(nu * (zeta - s.clients.sent)) <= bound
        zeta = s.clients.zeta
    assert inexact > 1e-6  # otherwise the test would say nothing about inexact solutions


@pytest.mark.parametrize(
    ("options", "name"),
    [({"rho": 1.0}, "rho"), ({"rho": -0.1}, "rho"), ({"nu": 0.0}, "nu"), ({"nu": float("nan")}, "nu")],
)
def test_refuses_parameters_out_of_range(options: dict, name: str) -> None:
    with pytest.raises(ValueError, match=name):
        DualFL(**options)


def test_refuses_nu_above_mu_unless_told_otherwise() -> None:
    f = quadratic(mu=1.0, L=20.0)
    algorithm = DualFL(nu=1.2, rho=0.0, solver=Exact())
    with pytest.raises(ValueError, match=r"nu = 1\.2 must not exceed mu = 1"):
        run(algorithm, f, rounds=3)
    assert len(run(algorithm, f, rounds=3, check_assumptions=False)) == 4


def test_needs_mu_to_suggest_nu() -> None:
    f = logistic(mu=0.0)
    with pytest.raises(ValueError, match="mu is 0"):
        run(DualFL(), f, rounds=1)


@pytest.fixture(scope="module")
def sorted_digits() -> LinearModel:
    return digits()


def test_digits_condition_number_and_optimum(sorted_digits: LinearModel) -> None:
    assert sorted_digits.sizes == (225, 225, 225, 225, 225, 224, 224, 224)
    assert sorted_digits.L.max() / 1e-2 == pytest.approx(654.7, abs=0.05)
    assert newton(sorted_digits).energy == pytest.approx(0.741158876968, abs=1e-12)


def test_newton_and_cvxpy_agree_on_digits() -> None:
    f = digits(rows=240)
    a, b = newton(f), cvxpy(f)
    assert abs(a.energy - b.energy) <= 1e-8
    np.testing.assert_allclose(a.theta, b.theta, atol=1e-5)


def test_digits_reproduces_the_known_curve() -> None:
    """1792 rows: relative error 2.77e-4 after 60 rounds with exact local solves."""
    f = digits(rows=1792)
    assert f.L.max() / 1e-2 == pytest.approx(656.7, abs=0.05)
    trace = run(DualFL(stop=GradientReduction(factor=1e-3, first=1e-5)), f, rounds=60, reference=0.7410572076)
    assert trace["error"][-1] == pytest.approx(2.77e-4, rel=0.01)
    wrong = run(NoMomentum(stop=GradientReduction(factor=1e-2)), f, rounds=60, reference=0.7410572076)
    assert wrong["error"][-1] > 1e-2


def test_digits_converges_and_certifies(sorted_digits: LinearModel) -> None:
    optimum = newton(sorted_digits).energy
    trace = run(DualFL(), sorted_digits, rounds=600, tol=1e-10, reference=optimum)
    assert trace.status == "converged"
    assert trace["error"][-1] <= 1e-10
    true = trace["energy"] - optimum
    assert np.all(trace["certificate"] >= true)
    assert trace["certificate"][-1] <= 10 * true[-1]


def test_default_parameters_are_the_optimal_ones_of_theorem_3_3() -> None:
    f = quadratic(mu=2.0, L=50.0)
    algorithm = DualFL().suggested(f)
    assert algorithm.nu == pytest.approx(2.0)
    assert algorithm.rho == pytest.approx(0.04)
    assert replace(algorithm, rho=0.5).suggested(f).rho == 0.5


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "Theorem 3.3"),
        ({"rho": 0.0}, "Theorem 3.2"),
        ({"rho": 0.04}, "Theorem 3.3"),
        ({"rho": 0.041}, "none: Theorem 3.3 needs rho <= nu/L = 0.04"),
        ({"rho": 0.0, "nu": 2.1}, "none: Theorem 3.2 needs nu <= mu"),
    ],
)
def test_says_which_theorem_applies(options: dict, said: str) -> None:
    assert DualFL(**options).guarantee(quadratic(mu=2.0, L=50.0)).startswith(said)


def test_corrected_points_need_gradients() -> None:
    with pytest.raises(ValueError, match="solver must compute local gradients, which SGD does not"):
        CorrectedDualFL(solver=SGD(step=0.1))
