"""Any convex regulariser at the server: worst cases beside PEPit's, rates beside Theorem B, runs below both."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import pytest

from dualopt.engine.rounds import advance, initial_state
from dualopt.lab.proofs import prove, worst_case
from dualopt.lab.proofs._quadratics import mean_square_factor
from dualopt.lab.proofs._setting import Setting
from dualopt.methods import FedDR
from dualopt.methods.participation import Bernoulli, UniformSubset, first_round
from dualopt.objectives import Quadratic
from dualopt.regularisers import L1, L2
from dualopt.solvers import Exact

ETA = 0.3


def by_pepit(N: int, rounds: int, relaxation: float, mu_g: float, measure: str = "distance") -> float:
    """Return the worst case of FedDR, written a second time in PEPit's words."""
    pepit = pytest.importorskip("PEPit")
    functions = pytest.importorskip("PEPit.functions")
    prox = pytest.importorskip("PEPit.primitive_steps").proximal_step
    problem = pepit.PEP()
    fs = [problem.declare_function(functions.SmoothStronglyConvexFunction, mu=1.0, L=10.0) for _ in range(N)]
    g = problem.declare_function(functions.StronglyConvexFunction, mu=mu_g)
    star = (sum(fs[1:], fs[0]) / N + g).stationary_point()
    theta0 = problem.set_initial_point()
    gradients = [f.gradient(star) for f in fs]
    problem.set_initial_condition((theta0 - star) ** 2 + ETA**2 * sum((v**2 for v in gradients), 0 * star**2) / N <= 1)
    theta, x, y, reflected = theta0, [theta0] * N, [theta0] * N, [theta0] * N
    for _ in range(rounds):
        for j, f in enumerate(fs):
            y[j] = y[j] + relaxation * (theta - x[j])
            x[j], _, _ = prox(y[j], f, ETA)
            reflected[j] = 2 * x[j] - y[j]
        theta, _, _ = prox(sum(reflected[1:], reflected[0]) / N, g, ETA)
    energy = sum(fs[1:], fs[0]) / N + g
    problem.set_performance_metric((theta - star) ** 2 if measure == "distance" else energy(theta) - energy(star))
    return problem.solve(wrapper="cvxpy", solver="CLARABEL", verbose=0)


@pytest.mark.parametrize(
    ("N", "rounds", "relaxation", "mu_g"), [(1, 1, 1.0, 0.0), (1, 3, 1.5, 0.0), (2, 2, 2.0, 0.0), (2, 2, 1.0, 0.5)]
)
def test_worst_cases_are_those_of_pepit(N: int, rounds: int, relaxation: float, mu_g: float) -> None:
    found = worst_case(
        FedDR(eta=ETA, relaxation=relaxation),
        mu=1,
        L=10,
        clients=N,
        rounds=rounds,
        regulariser=mu_g,
        start=(1.0, ETA**2 / N),
    )
    assert found.value == pytest.approx(by_pepit(N, rounds, relaxation, mu_g), rel=1e-5)


@pytest.mark.parametrize(
    ("relaxation", "who", "N"),
    [(1.0, None, 3), (2.0, None, 3), (2.0, None, 20), (2.0, None, 30), (2.0, UniformSubset(size=1), 2)],
)
def test_feddr_attains_theorem_b_with_any_regulariser(relaxation: float, who, N: int) -> None:
    method = FedDR(eta=ETA, relaxation=relaxation)
    found = prove(method, mu=1, L=10, clients=N, participation=who, regulariser=0.0, memory=False)
    assert found.claimed is not None
    assert found.factor == pytest.approx(found.claimed, abs=3e-5)
    assert N > 20 or found.lower_bound == pytest.approx(found.claimed, abs=3e-5)
    assert found.to_json()["regulariser"] == 0.0


def test_a_regulariser_that_is_asked_about_cohorts_keeps_clients_apart() -> None:
    """In classes the factor would be below what happens."""
    what = {"mu": 1, "L": 10, "clients": 2, "participation": UniformSubset(size=1), "regulariser": 0.0}
    found = prove(FedDR(eta=ETA, relaxation=1.0), memory=False, **what)
    assert found.claimed is not None
    assert found.lower_bound is not None
    assert found.lower_bound + 1e-3 < found.factor < found.claimed - 1e-3


def test_what_the_solver_calls_inaccurate_is_no_proof() -> None:
    """It finds V for smaller factors, with errors of a thousandth of the least eigenvalue of V."""
    what = {"mu": 1, "L": 10, "clients": 2, "participation": UniformSubset(size=1), "regulariser": 0.0}
    found = prove(FedDR(eta=ETA, relaxation=1.0), memory=True, **what)
    assert found.lower_bound is not None
    assert found.factor == pytest.approx(found.lower_bound, abs=2e-5)


@pytest.mark.parametrize("who", [None, UniformSubset(size=2), Bernoulli(probability=0.3)])
def test_clients_beside_a_regulariser_that_can_be_exchanged_are_as_slow_as_all_of_them(who) -> None:
    for clients, gamma in product([(1.0, 10.0, 10.0, 1.0), (10.0,) * 4, (1.0, 10.0, 10.0, 10.0)], (1e-5, 3.0, 1e5)):
        alike, apart = (
            Setting.of(FedDR(eta=ETA, relaxation=2.0), 1.0, 10.0, 4, who, regulariser=0.0, literal=literal)
            for literal in (False, True)
        )
        assert len(alike.equals) == 1
        found = mean_square_factor(alike, (*clients, gamma))
        assert found == pytest.approx(mean_square_factor(apart, (*clients, gamma)), abs=1e-10)


def test_values_have_the_regulariser_in_them() -> None:
    what = {"mu": 1, "L": 10, "clients": 2, "rounds": 2, "start": (1.0, ETA**2 / 2), "measure": "value"}
    found = worst_case(FedDR(eta=ETA, relaxation=1.0), regulariser=0.0, **what)
    assert found.value == pytest.approx(by_pepit(2, 2, 1.0, 0.0, "value"), rel=1e-5)
    assert found.value > 1.1 * worst_case(FedDR(eta=ETA, relaxation=1.0), **what).value


@dataclass(frozen=True, kw_only=True)
class TwiceTheStep(FedDR):
    """The proximal map of the regulariser has twice the step."""

    theorems = FedDR.theorems

    def server(self, server, mean, round):
        state, _ = super().server(server, mean, round)
        theta = self.regulariser.prox(state.mean, 2.0 * self.eta)
        return state._replace(theta=theta), theta


def test_an_error_at_the_regulariser_is_found() -> None:
    right, wrong = (kind(eta=ETA, relaxation=1.0) for kind in (FedDR, TwiceTheStep))
    with pytest.raises(ValueError, match="algorithm must keep its fixed point"):
        prove(wrong, mu=1, L=10, clients=2, memory=False, regulariser=0.0)
    assert prove(wrong, mu=1, L=10, clients=2, memory=False).proved  # nobody sees it without one
    what = {"mu": 1, "L": 10, "clients": 2, "rounds": 4, "regulariser": 0.0, "start": (1.0, 0.045)}
    assert worst_case(wrong, **what).value > 10.0 * worst_case(right, **what).value


def test_runs_with_regularisers_are_not_worse() -> None:
    rounds, rng = 2, np.random.default_rng(0)
    what = {"mu": 1, "L": 10, "clients": 2, "rounds": rounds, "regulariser": 0.0, "start": (1.0, 0.045)}
    bound = worst_case(FedDR(eta=ETA, relaxation=1.0), **what).value
    shares = []
    for g, *h in product([L1(weight=0.7), L2(weight=3.0), L1(weight=30.0)], (1.0, 10.0), (1.0, 10.0)):
        method = FedDR(eta=ETA, relaxation=1.0, solver=Exact(), regulariser=g)
        for b in rng.normal(size=(20, 2)) * 3.0:
            f = Quadratic(A=np.array(h)[:, None, None], b=b[:, None])
            star = g.prox(f.mean(f.b) / np.mean(h), 1.0 / float(np.mean(h)))  # of h/2 x^2 - b x + g
            for theta0 in rng.normal(size=(5, 1)):
                state = initial_state(method, f, theta0)
                for n in range(rounds):
                    state = advance(method, f, state, replace(first_round(2), n=n))[0]
                size = np.sum((theta0 - star) ** 2) + 0.045 * np.sum(f.gradient(star) ** 2)
                shares.append(float(np.sum((state.server.theta - star) ** 2) / size))
    assert 0.1 * bound < max(shares) <= bound


@pytest.mark.parametrize(
    ("method", "g", "sentence"),
    [
        ("feddyn", 0.0, "algorithm FedDyn does not support an objective with a regulariser."),
        ("feddr", -1.0, "regulariser must be a finite number of at least 0: its convexity, not -1."),
        ("feddr", math.inf, "regulariser must be a finite number of at least 0: its convexity, not inf."),
        (FedDR(regulariser=L2(weight=1.0)), 0.0, "algorithm must be given without a regulariser"),
        (FedDR(regulariser=L1(weight=1.0)), None, "algorithm must be linear algebra on models and answers of clients"),
    ],
)
def test_what_does_not_apply_is_refused(method, g, sentence: str) -> None:
    with pytest.raises(ValueError, match=re.escape(sentence)):
        worst_case(method, mu=1, L=10, clients=2, regulariser=g)


def test_a_proof_in_rational_numbers_is_refused() -> None:
    found = prove(FedDR(eta=ETA, relaxation=1.0), mu=1, L=10, clients=2, regulariser=0.0, memory=False)
    with pytest.raises(ValueError, match="proof must be without a regulariser"):
        found.proof()
