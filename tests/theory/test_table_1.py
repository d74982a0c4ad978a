"""Rounds against the condition number: the problems, the two ways to count, the exponents, and wrong variants."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualopt.engine.rounds import iterate
from dualopt.lab.claims import check
from dualopt.methods import (
    AFedPD,
    APDAInexact,
    ConsensusFedSplit,
    DualAscent,
    DualFL,
    FedADMM,
    FedAvg,
    FedDR,
    FedDyn,
    FedPD,
    FedSpeed,
    FedSplit,
    Scaffnew,
    ScaffoldI,
)
from dualopt.methods.participation import GIVEN, Law, Round
from dualopt.objectives import LocalProblem
from dualopt.solvers import Gradient
from dualopt.solvers.stopping import Steps
from theory import limits
from theory._cases import Case, everybody
from theory._problems import hard_quadratic
from theory._rounds import mean_square_radius, round_matrix
from theory.baselines._communications import (
    ACCURACY,
    AtOnce,
    Count,
    Counter,
    exponent,
    in_matrices,
    kappas,
    limit_error,
    one_by_one,
    planes,
    with_coins,
)
from theory.baselines.table_1 import ACCELERATED, GRADIENT, Growth, dualfl_table_1, paper_5gcs, paper_scaffnew

Build = Callable[[Case], Any]


def test_the_problems_are_as_hard_as_they_say() -> None:
    for kappa in (10.0, 1e4):
        f = planes(kappa).objective
        np.testing.assert_allclose(f.mu, 1.0, rtol=1e-9)
        np.testing.assert_allclose(f.L, kappa, rtol=1e-9)
        assert np.linalg.cond(np.mean(f.A, axis=0)) > kappa / 4.0
        apart = np.linalg.norm(f.A[0] - f.A[1]) / np.linalg.norm(f.A[0])
        assert apart > 0.1
        assert f.L[0] == np.max(np.linalg.eigvalsh(f.A[0]))
    assert not np.allclose(planes(10.0, 0).objective.A, planes(10.0, 1).objective.A)
    with pytest.raises(ValueError, match="kappa must be at least 2"):
        planes(1.0)


CONSTANT: dict[str, Build] = {
    "FedAvg, K = 1": lambda f: FedAvg(stop=Steps(steps=1)),
    "FedPD": lambda f: FedPD(),
    "FedSplit": lambda f: ConsensusFedSplit(),
    "5GCS": lambda f: paper_5gcs(f, solver=Gradient()),
    "APDA-Inexact": lambda f: APDAInexact(),
    "SCAFFOLD": lambda f: ScaffoldI(stop=Steps(steps=3)),
    "DualFL without momentum": lambda f: DualAscent(),
}


@pytest.mark.parametrize("name", CONSTANT)
def test_matrices_count_what_a_run_counts(name: str) -> None:
    f = planes(4.0, 3)
    run, powers = (count(CONSTANT[name](f), f) for count in (one_by_one, in_matrices))
    assert (powers.communications, powers.gradients) == (run.communications, run.gradients)
    assert powers.error == pytest.approx(run.error, rel=1e-6)
    assert run.error <= ACCURACY < one_by_one(CONSTANT[name](f), f, limit=int(run.communications) - 1).error


@dataclass
class Coins:
    """Everybody takes part, and these coins say when to communicate."""

    coins: Sequence[bool]

    def needs(self, n_clients: int | None = None) -> frozenset[str]:
        return frozenset({"skip"})

    def law(self, n_clients: int) -> Law:
        return Law(name=GIVEN, n_clients=n_clients)

    def rounds(self, n_clients: int, seed: int) -> Iterator[Round]:
        for n, coin in enumerate(self.coins):
            yield Round(n=n, n_clients=n_clients, clients=tuple(range(n_clients)), communicate=coin, seed=seed)


def test_coins_are_those_of_a_run() -> None:
    f, p, seeds = planes(40.0), 40.0**-0.5, 2
    found = []
    for seed in range(seeds):
        rng, coins = np.random.default_rng(seed), []
        while len(coins) < 2000:
            coins += [False] * (int(rng.geometric(p)) - 1) + [True]
        shots = iterate(paper_scaffnew(f), f.objective, participation=Coins(coins))
        unit = float(np.sum(f.theta**2))
        for n, s in enumerate(shots, start=1):
            if np.sum((s.server.theta - f.theta) ** 2) <= ACCURACY * unit:
                found.append((sum(coins[:n]), n / sum(coins[:n])))
                break
    counted = with_coins(paper_scaffnew(f), f, seeds=seeds)
    assert (counted.communications, counted.gradients) == pytest.approx(tuple(np.mean(found, axis=0)), rel=1e-12)


@pytest.mark.parametrize(("step", "weight"), [(None, 0.0), (None, 3.0), (0.01, 0.5)])
def test_steps_at_once_are_gradient_steps(step: float | None, weight: float) -> None:
    f = planes(30.0).objective
    rng = np.random.default_rng(0)
    linear, center, start = rng.standard_normal((3, *f.b.shape))
    problem = LocalProblem(objective=f, linear=linear, weight=weight, center=center)
    slow, fast = (kind(step=step)(problem, start, Steps(steps=7)) for kind in (Gradient, AtOnce))
    np.testing.assert_allclose(fast.theta, slow.theta, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(fast.evaluation.gradient, slow.evaluation.gradient, rtol=1e-9, atol=1e-9)
    assert list(fast.gradients) == list(slow.gradients)


def test_randprox_is_scaffnew() -> None:
    """Its box (Condat and Richtarik 2023, recalled), with a Bernoulli operator of variance omega, on consensus."""
    f, omega = planes(10.0), 1.5
    p, step = 1.0 / (1.0 + omega), 1.0 / f.L
    tau = 1.0 / (step * (1.0 + omega))
    coins = (np.random.default_rng(0).random(60) < p).tolist()
    x, u = np.zeros_like(f.objective.b), np.zeros_like(f.objective.b)
    method = Scaffnew(probability=p, solver=Gradient(step=step))
    for coin, s in zip(coins, iterate(method, f.objective, participation=Coins(coins)), strict=True):
        xhat = x - step * f.objective.gradient(x) - step * u
        drift = tau * (xhat - np.mean(xhat, axis=0))  # prox of tau h* at u + tau xhat, less u: h is consensus
        change = (1.0 + omega) * drift * coin  # the operator
        u_next = u + change / (1.0 + omega)
        x, u = xhat - step * (1.0 + omega) * (u_next - u), u_next
        np.testing.assert_allclose(s.clients.theta, x, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("p", [0.5, 1.0])
@pytest.mark.parametrize("offset", [-1.0, 0.0, 2.0])
def test_exponents_are_those_of_the_square_root_with_an_offset(p: float, offset: float) -> None:
    found = exponent([3.0 * (math.sqrt(kappa) + offset) ** (2.0 * p) for kappa in kappas(32)])
    assert found.low < p < found.high
    assert found.value == pytest.approx(p, abs=0.03)


def test_a_logarithm_is_taken_for_a_larger_exponent() -> None:
    found = exponent([math.sqrt(kappa) * math.log(4.0 * kappa) for kappa in kappas(32)])
    assert round(found.value, 2) == 0.59
    assert found.low > 0.5


def test_rounds_that_do_not_end_violate() -> None:
    case = Growth(name="", build=lambda f: FedAvg(), count=in_matrices, claimed=0.5, kappas=[10.0], seed=0)
    short = replace(case, count=lambda algorithm, f: in_matrices(algorithm, f, limit=100))
    verdict = check(dualfl_table_1, short)
    assert verdict.verdict == "violated"
    assert verdict.witness is not None
    assert verdict.witness.lhs == math.inf


def test_biases_are_the_closed_form() -> None:
    f, K = planes(40.0), 10
    method = FedAvg(solver=AtOnce(step=1.0 / f.L), stop=Steps(steps=K))
    end = limits.fedavg_limit(f.objective, step=1.0 / f.L, K=K)
    expected = float(np.sum((end - f.theta) ** 2) / np.sum(f.theta**2))
    assert limit_error(method, f) == pytest.approx(expected, rel=1e-9)
    assert in_matrices(method, f, limit=1000).error == pytest.approx(expected, rel=1e-6)
    assert expected > 1e-3


def test_the_family_of_fedpd_needs_the_same_rounds() -> None:
    f = planes(90.0)
    family = (FedPD(), FedDyn(), AFedPD(), FedADMM(), FedDR(relaxation=1.0), FedSpeed(radius=0.0))
    assert {in_matrices(method, f).communications for method in family} == {73}
    assert (
        in_matrices(ConsensusFedSplit(), f).communications == in_matrices(FedDR(relaxation=2.0), f).communications == 35
    )


@pytest.mark.parametrize("kappa", [10.0, 1000.0])
def test_the_contraction_of_fedpd_is_attained(kappa: float) -> None:
    for f in (planes(kappa, 5), hard_quadratic(L=kappa)):
        case = f.case(FedPD().suggested(f.objective), 1)
        M = round_matrix(case.algorithm, f.objective, everybody(f.objective.n_clients), case.first())
        assert mean_square_radius([M]) ** 0.5 == pytest.approx(1.0 / (1.0 + kappa**-0.5), rel=1e-6)


@settings(max_examples=10)
@given(kappa=st.floats(2.0, 3000.0), seed=st.integers(0, 2**32 - 1))
def test_fedpd_keeps_to_the_contraction_of_douglas_and_rachford(kappa: float, seed: int) -> None:
    f = planes(kappa, seed)
    far = np.sum((f.theta + f.subgradients / math.sqrt(kappa)) ** 2)  # |y - y*|^2 at the start
    ratio = far / (len(f.subgradients) * ACCURACY * np.sum(f.theta**2))
    bound = 1 + math.ceil(0.5 * math.log(ratio) / math.log1p(kappa**-0.5))
    assert in_matrices(FedPD(), f).communications <= bound


class HalfMomentum(DualFL):
    def server(self, server, mean, round):
        state, message = super().server(server, mean, round)
        return state, message._replace(beta=0.5 * message.beta)


def one_coin(algorithm: Any, f: Case) -> Count:
    return with_coins(algorithm, f, seeds=1)


WRONG: dict[str, tuple[Build, Counter]] = {
    "DualFL: half the momentum": (lambda f: HalfMomentum(), one_by_one),
    "Scaffnew: communication with probability 1/3": (lambda f: paper_scaffnew(f, 1.0 / 3.0), one_coin),
    "5GCS: gamma = 1/L": (lambda f: replace(paper_5gcs(f, solver=AtOnce()), gamma=1.0 / f.L), in_matrices),
    "APDA-Inexact: eta_x = 1/L": (lambda f: APDAInexact(eta_x=1.0 / f.L, solver=AtOnce()), in_matrices),
    "FedSplit: step 1/L": (lambda f: FedSplit(step=1.0 / f.L), in_matrices),
    "FedSplit: step 1/mu": (lambda f: FedSplit(step=1.0 / f.mu), in_matrices),
    "FedPD: eta = 1/mu": (lambda f: FedPD(eta=1.0 / f.mu), in_matrices),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_variants_are_caught(name: str) -> None:
    build, count = WRONG[name]
    case = Growth(name=name, build=build, count=count, claimed=0.5, kappas=kappas(10), seed=0)
    verdict = check(dualfl_table_1, case)
    assert verdict.verdict == "violated"
    assert verdict.worst_ratio > 1.5


def test_an_accelerated_method_is_not_taken_for_a_gradient_method() -> None:
    build, count = ACCELERATED["FedSplit"]
    verdict = check(dualfl_table_1, Growth(name="", build=build, count=count, claimed=1.0, kappas=kappas(10), seed=0))
    assert verdict.verdict == "violated"
    assert set(ACCELERATED).isdisjoint(GRADIENT)
