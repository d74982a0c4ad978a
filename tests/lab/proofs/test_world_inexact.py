"""Local solutions that are as good as the stopping rule demands: PEPit finds the same, and runs are not worse."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from dualopt.engine.rounds import advance, initial_state
from dualopt.lab.proofs import check_proof, prove, worst_case
from dualopt.lab.proofs._formal import demanded
from dualopt.methods import DualFL, FedDyn, FedProx, FedSplit, GradientDescent
from dualopt.methods.participation import UniformSubset, first_round
from dualopt.objectives import Quadratic
from dualopt.solvers import Gradient
from dualopt.solvers.stopping import Gap, GradientNorm, GradientReduction, RelativeEnergy, Steps

ALPHA = 3.0
START = (1.0, 1.0 / (2 * ALPHA**2))


def rule(factor: float, first: float | None = None) -> GradientReduction:
    return GradientReduction(factor=factor, first=factor if first is None else first)


def feddyn_by_pepit(factors: list[float], N: int) -> float:
    """Return the worst case of FedDyn, written a second time in PEPit's words."""
    return by_pepit(lambda n, before: factors[n] ** 2 * before**2, len(factors), N)


def by_pepit(most: Callable[[int, Any], Any], rounds: int, N: int) -> float:
    """Return it with ``most(n, gradient)`` as what the squared gradient at an answer may be, from that at the start."""
    pepit = pytest.importorskip("PEPit")
    functions = pytest.importorskip("PEPit.functions")
    problem = pepit.PEP()
    fs = [problem.declare_function(functions.SmoothStronglyConvexFunction, mu=1.0, L=10.0) for _ in range(N)]
    mean: Any = sum(fs[1:], fs[0]) / N
    star, theta = mean.stationary_point(), problem.set_initial_point()
    gradients = [f.gradient(star) for f in fs]
    size = sum((v**2 for v in gradients), 0 * star**2)
    problem.set_initial_condition((theta - star) ** 2 + START[1] * size <= 1)
    zero = 0 * theta
    memories, h = [zero] * N, zero
    for n in range(rounds):
        moved = zero
        for j, f in enumerate(fs):
            x = pepit.Point()
            residual = f.gradient(x) - memories[j] + ALPHA * (x - theta)
            problem.add_constraint(residual**2 <= most(n, f.gradient(theta) - memories[j]))
            memories[j] = memories[j] - ALPHA * (x - theta)
            moved = moved + (x - theta) / N
        h = h - ALPHA * moved
        theta = theta + moved - h / ALPHA
    problem.set_performance_metric((theta - star) ** 2)
    return problem.solve(wrapper="cvxpy", solver="CLARABEL", verbose=0)


@pytest.mark.parametrize(("factors", "N"), [([0.3], 1), ([0.01, 0.1], 2), ([0.2, 0.05, 0.05], 1)])
def test_worst_cases_are_those_of_pepit(factors: list[float], N: int) -> None:
    method = FedDyn(alpha=ALPHA, stop=rule(factors[-1], factors[0]))
    found = worst_case(method, mu=1, L=10, clients=N, rounds=len(factors), inexact=True, start=START)
    assert found.value == pytest.approx(feddyn_by_pepit(factors, N), rel=1e-5)
    assert found.claimed is None


@pytest.mark.parametrize("who", [None, UniformSubset(size=1)])
def test_what_is_nearly_exact_is_nearly_as_good(who) -> None:
    what = {"mu": 1, "L": 10, "clients": 2, "participation": who, "start": START}
    exact = worst_case(FedDyn(alpha=ALPHA), **what).value
    nearly = worst_case(FedDyn(alpha=ALPHA, stop=rule(1e-3)), inexact=True, **what).value
    assert exact < nearly < 1.02 * exact


def slowest_run(method, rounds: int, *, unit: bool = False) -> float:
    """Return the largest error of runs of a real local solver, over the size of its start; of starts of size one."""
    rng, worst = np.random.default_rng(1), 0.0
    for _ in range(60):
        A = np.stack([np.diag(rng.choice([1.0, 10.0], size=2)) for _ in range(2)])
        f = Quadratic(A=A, b=3.0 * rng.normal(size=(2, 2)))
        theta0, star = rng.normal(size=2), f.minimiser()
        if unit:
            size = np.sum((theta0 - star) ** 2) + START[1] * np.sum(f.gradient(star) ** 2)
            f, theta0, star = Quadratic(A=A, b=f.b / size**0.5), theta0 / size**0.5, star / size**0.5
        state = initial_state(method, f, theta0)
        for n in range(rounds):
            state = advance(method, f, state, replace(first_round(2), n=n))[0]
        size = np.sum((theta0 - star) ** 2) + START[1] * np.sum(f.gradient(star) ** 2)
        worst = max(worst, float(np.sum((state.server.theta - star) ** 2) / size))
    return worst


def test_runs_of_a_solver_are_not_worse() -> None:
    def bound(factor: float) -> float:
        method = FedDyn(alpha=ALPHA, stop=rule(factor))
        return worst_case(method, mu=1, L=10, clients=2, rounds=3, inexact=True, start=START).value

    run = slowest_run(FedDyn(alpha=ALPHA, stop=rule(0.3), solver=Gradient(step=0.02)), rounds=3)
    assert run <= bound(0.3)
    assert run > bound(0.01)  # so that a bound for another rule is seen to fail


def test_rates_of_inexact_rounds() -> None:
    what: dict[str, Any] = {"mu": 1, "L": 10, "clients": 3}
    exact = prove(FedDyn(alpha=ALPHA), memory=False, **what)
    rates = [prove(FedDyn(alpha=ALPHA, stop=rule(c)), memory=False, inexact=True, **what) for c in (1e-3, 0.03, 0.1)]
    factors = [exact.factor, *(rate.factor for rate in rates)]
    assert factors == sorted(factors)
    assert factors[1] < factors[0] + 1e-3
    assert factors[2:] == pytest.approx([0.6030, 0.8137], abs=1e-3)
    assert all(rate.claimed is None and rate.to_json()["inexact"] for rate in rates)
    assert not prove(FedDyn(alpha=ALPHA, stop=rule(0.5)), memory=False, inexact=True, **what).proved


def test_dualfl_has_a_rate_with_a_tenth_and_none_is_found_with_a_fifth() -> None:
    """The numbers of docs/no_tuning.md."""
    what: dict[str, Any] = {"mu": 1, "L": 100, "clients": 4, "tolerance": 1e-3}
    tenth, fifth = (prove(DualFL(stop=rule(c)), inexact=True, **what) for c in (0.1, 0.2))
    assert prove(DualFL(), **what).factor == pytest.approx(0.861, abs=2e-3)
    assert tenth.factor == pytest.approx(0.882, abs=2e-3)
    assert not fifth.proved


def test_rates_of_cohorts_are_about_later_rounds() -> None:
    """The rounds in which two of four are active are counted, and two of two are listed."""
    for N in (2, 4):
        what: dict[str, Any] = {"mu": 1, "L": 10, "clients": N, "participation": UniformSubset(size=2)}
        rates = [
            prove(FedDyn(alpha=ALPHA, stop=rule(0.03, first)), **what, memory=False, inexact=True)
            for first in (0.03, 1e-6)
        ]
        assert rates[0].factor == pytest.approx(rates[1].factor, abs=2e-5)


def test_a_warm_start_needs_the_gradient_of_the_last_round() -> None:
    """FedSplit's clients start from where they ended: V with the gradients there proves more."""
    what: dict[str, Any] = {"mu": 1, "L": 10, "clients": 2, "inexact": True, "tolerance": 1e-4}
    without, with_ = (prove(FedSplit(step=0.3, stop=rule(0.03)), memory=own, **what) for own in (False, True))
    assert with_.factor < without.factor - 0.05
    assert with_.factor > ((1 - 0.3) / (1 + 0.3)) ** 2


@dataclass(frozen=True)
class Unknown:
    """A rule of somebody's."""

    def finished(self, progress):
        return progress.value < 1.0


@pytest.mark.parametrize(
    ("method", "sentence"),
    [
        (GradientDescent(step=0.1), "algorithm must solve local problems, and have no solver given."),
        (FedProx(mu_prox=1.0, solver=Gradient()), "algorithm must solve local problems, and have no solver given."),
        (
            FedProx(mu_prox=1.0, stop=Steps(steps=3)),
            "stop must be the rule 'reduction', 'gradient' or 'gap' for inexact solutions: Steps(steps=3) says how "
            "long a solver works, not how well; give the solver itself.",
        ),
        (
            FedProx(mu_prox=1.0, stop=RelativeEnergy(tol=0.1)),
            "RelativeEnergy(tol=0.1) compares two steps of a solver, and allows any answer after short ones.",
        ),
        (FedProx(mu_prox=1.0, stop=Unknown()), "Unknown() is not known to bound the gradient at an answer."),
    ],
)
def test_what_does_not_apply_is_refused(method, sentence: str) -> None:
    with pytest.raises(ValueError, match=re.escape(sentence)):
        worst_case(method, mu=1, L=10, clients=2, inexact=True)


def test_a_fixed_number_of_steps_is_literal() -> None:
    """Of a local solver that is linear algebra, with the step 1/L_j of the local problem where none is given."""
    short, given = (
        worst_case(FedDyn(alpha=ALPHA, solver=Gradient(step=step), stop=Steps(steps=k)), **LITERAL, rounds=2).value
        for step, k in ((None, 2), (1.0 / 13.0, 2))
    )
    assert short == pytest.approx(given, rel=1e-7)
    assert short == pytest.approx(steps_by_pepit(2, 2), rel=1e-5)
    exact, *literal = (
        worst_case(FedDyn(alpha=ALPHA, **own), **LITERAL, rounds=1).value
        for own in ({}, *({"solver": Gradient(), "stop": Steps(steps=k)} for k in (1, 6)))
    )
    assert exact < literal[1] < literal[0]
    rate = prove(FedDyn(alpha=ALPHA, solver=Gradient(), stop=Steps(steps=2)), mu=1, L=10, clients=2, memory=False)
    assert check_proof(rate.proof()) < rate.factor + 3e-5


LITERAL: dict[str, Any] = {"mu": 1, "L": 10, "clients": 2, "start": START}


def steps_by_pepit(steps: int, rounds: int) -> float:
    """Return the worst case of FedDyn with gradient steps 1/(L + alpha), in PEPit's words."""
    pepit = pytest.importorskip("PEPit")
    functions = pytest.importorskip("PEPit.functions")
    problem = pepit.PEP()
    fs = [problem.declare_function(functions.SmoothStronglyConvexFunction, mu=1.0, L=10.0) for _ in range(2)]
    mean: Any = (fs[0] + fs[1]) / 2
    star, theta = mean.stationary_point(), problem.set_initial_point()
    size = fs[0].gradient(star) ** 2 + fs[1].gradient(star) ** 2
    problem.set_initial_condition((theta - star) ** 2 + START[1] * size <= 1)
    memories, h = [0 * theta] * 2, 0 * theta
    for _ in range(rounds):
        moved = 0 * theta
        for j, f in enumerate(fs):
            x = theta
            for _ in range(steps):
                x = x - (f.gradient(x) - memories[j] + ALPHA * (x - theta)) / (10.0 + ALPHA)
            memories[j] = memories[j] - ALPHA * (x - theta)
            moved = moved + (x - theta) / 2
        h = h - ALPHA * moved
        theta = theta + moved - h / ALPHA
    problem.set_performance_metric((theta - star) ** 2)
    return problem.solve(wrapper="cvxpy", solver="CLARABEL", verbose=0)


@pytest.mark.parametrize("tol", [0.03, 0.3])
def test_accuracies_in_units_of_the_problem_are_those_of_pepit(tol: float) -> None:
    """The gradient of the local problem is at most ``tol``; for starts of size one."""
    method = FedDyn(alpha=ALPHA, stop=GradientNorm(tol=tol))
    found = worst_case(method, mu=1, L=10, clients=2, rounds=2, inexact=True, start=START)
    assert found.value == pytest.approx(by_pepit(lambda n, before: tol**2, 2, 2), rel=1e-5)
    assert found.example == pytest.approx(found.value, rel=1e-4)
    exact = worst_case(FedDyn(alpha=ALPHA), mu=1, L=10, clients=2, rounds=2, start=START).value
    assert found.value > exact * (1 + tol / 10)
    tiny = FedDyn(alpha=ALPHA, stop=GradientNorm(tol=1e-7))
    assert worst_case(tiny, mu=1, L=10, clients=2, rounds=2, inexact=True, start=START).value == pytest.approx(
        exact, rel=1e-5
    )


def test_gaps_that_fall_are_gradients_that_fall() -> None:
    """|grad F_j|^2/(2(mu_j + alpha)) is at most what the schedule has for the round, for each client by itself."""
    mu, L = (1.0, 2.0), (10.0, 7.0)
    method = FedDyn(alpha=ALPHA, stop=Gap(schedule=lambda round: 0.02 / (1 + round.n) ** 2))
    found = worst_case(method, mu=mu, L=L, rounds=2, inexact=True, start=START)
    bounds = [2.0 * (m + ALPHA) * 0.02 for m in mu]
    assert demanded(method.stop, first_round(2), [m + ALPHA for m in mu]) == (0.0, pytest.approx(bounds))
    parts = [
        worst_case(
            FedDyn(alpha=ALPHA, stop=GradientNorm(tol=tol)), mu=mu, L=L, rounds=2, inexact=True, start=START
        ).value
        for tol in (math.sqrt(bounds[0] / 4), math.sqrt(bounds[1]))  # all of them tighter, and all of them looser
    ]
    assert parts[0] < found.value < parts[1]
    with pytest.raises(ValueError, match="'gap' where local problems are not strongly convex"):
        worst_case("dualfl: stop=gap, nu=1, rho=0", mu=(0, 1), L=10, rounds=1, inexact=True)


def test_runs_with_an_absolute_accuracy_are_not_worse() -> None:
    def bound(tol: float) -> float:
        method = FedDyn(alpha=ALPHA, stop=GradientNorm(tol=tol))
        return worst_case(method, mu=1, L=10, clients=2, rounds=3, inexact=True, start=START).value

    run = slowest_run(FedDyn(alpha=ALPHA, stop=GradientNorm(tol=0.5), solver=Gradient(step=0.02)), rounds=3, unit=True)
    assert run <= bound(0.5)
    assert run > bound(0.05)


def test_errors_that_remain_have_no_factor() -> None:
    with pytest.raises(ValueError, match="stop must be the rule 'reduction', relative to where solvers start, for a f"):
        prove(FedDyn(alpha=ALPHA, stop=GradientNorm(tol=0.1)), mu=1, L=10, clients=2, inexact=True)


def test_a_proof_of_inexact_rounds_in_rational_numbers() -> None:
    rate = prove(FedDyn(alpha=ALPHA, stop=rule(0.03)), mu=1, L=10, clients=2, memory=False, inexact=True)
    proof = rate.proof()
    assert rate.factor < check_proof(proof) < rate.factor + 3e-5
    assert {part for own in proof["bounds"] for *_, part in own} == {"9/10000"}
    exact = {**proof["statement"]}
    del exact["inexact"]
    with pytest.raises(ValueError, match="the code of the method gives another"):
        check_proof({**proof, "statement": exact})
    tighter = [[[v, u, "1/10000"] for v, u, _ in own] for own in proof["bounds"]]
    with pytest.raises(ValueError, match="the code of the method gives another 'bounds' than the proof has"):
        check_proof({**proof, "bounds": tighter})


def test_clients_that_are_not_smooth_may_start_anywhere() -> None:
    """A gradient at the start that nothing bounds admits any answer."""
    found = worst_case(FedProx(mu_prox=1.0), mu=1, L=math.inf, clients=1, inexact=True)
    assert found.value == math.inf
