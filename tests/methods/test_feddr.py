"""FedDR on composite problems: independent solutions, their zeros, certificates, and which regulariser it has."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import islice

import numpy as np
import pytest

from dualopt.engine.rounds import State, advance, iterate
from dualopt.methods import FedDR
from dualopt.methods.participation import Bernoulli, Full, Participation, UniformSubset, first_round
from dualopt.objectives import Composite
from dualopt.regularisers import L1, L2, Zero
from dualopt.runs.recording import run
from dualopt.runs.reference import cvxpy, newton
from dualopt.solvers import LBFGS, Exact
from dualopt.solvers.stopping import GradientNorm
from tests.problems import logistic, quadratic

PROBLEMS = {"quadratic": quadratic(n=4, d=6, mu=0.5, L=20.0, seed=1), "logistic": logistic(d=6)}
REGULARISERS = ("L1", "L2")
WEIGHTS = {"quadratic": 0.2, "logistic": 0.05}  # some entries of the sparse minimisers are zero, and some are not
CASES = [(f, g) for f in PROBLEMS for g in REGULARISERS]
CHANCE: list[Participation] = [Full(), UniformSubset(size=2)]
every_case = pytest.mark.parametrize(("problem", "regulariser"), CASES)
every_chance = pytest.mark.parametrize("participation", CHANCE, ids=lambda p: type(p).__name__)
ACCURATE = {"quadratic": {"solver": Exact()}, "logistic": {"solver": LBFGS(), "stop": GradientNorm(tol=1e-13)}}


def composite(problem: str, regulariser: str) -> Composite:
    g = L1(weight=WEIGHTS[problem]) if regulariser == "L1" else L2(weight=0.3)
    return Composite(objective=PROBLEMS[problem], regulariser=g)


@cache
def reference(problem: str, regulariser: str):
    return cvxpy(composite(problem, regulariser))


@cache
def optimum(problem: str, regulariser: str) -> np.ndarray:
    """The minimiser to rounding: Newton's method on the entries that are not zero in the independent solution."""
    F, theta = composite(problem, regulariser), reference(problem, regulariser).theta
    g, on = F.regulariser, theta != 0
    for _ in range(4):
        columns = [
            F.hessian_operator(theta)(np.broadcast_to(e, (4, *F.shape))).mean(axis=0) for e in np.eye(theta.size)
        ]
        hessian = np.stack(columns)[np.ix_(on, on)] + g.mu * np.eye(on.sum())
        s = g.minimal_subgradient(theta, F.gradient(theta).mean(axis=0))
        theta = theta.copy()
        theta[on] -= np.linalg.solve(hessian, s[on])
    assert np.linalg.norm(g.minimal_subgradient(theta, F.gradient(theta).mean(axis=0))) < 1e-14
    return theta


def last(algorithm, objective, rounds: int, **options):
    return next(islice(iterate(algorithm, objective, **options), rounds - 1, None))


# Composite problems


def reaches_the_solution(algorithm: FedDR, problem: str, regulariser: str, participation: Participation) -> None:
    F, independent = composite(problem, regulariser), reference(problem, regulariser)
    trace = run(algorithm, F, rounds=300, participation=participation, certify_every=1, tol=1e-13)
    np.testing.assert_allclose(trace.theta, independent.theta, atol=2e-6)
    np.testing.assert_allclose(trace.theta, optimum(problem, regulariser), atol=1e-5 if "log" in problem else 1e-6)
    assert abs(trace["energy"][-1] - independent.energy) <= independent.gap + 1e-12
    assert np.array_equal(trace.theta == 0, independent.theta == 0)
    best = float(F.value(optimum(problem, regulariser)).mean()) + F.regulariser.value(optimum(problem, regulariser))
    assert np.all(trace["certificate"] >= trace["energy"] - best)
    assert trace.status == "converged"


@every_chance
@every_case
def test_reaches_the_solution_of_cvxpy(problem: str, regulariser: str, participation: Participation) -> None:
    """The same minimiser, the same zeros, and a certificate that is a bound in every round."""
    reaches_the_solution(FedDR(), problem, regulariser, participation)
    if regulariser == "L1":
        assert 0 < np.sum(reference(problem, regulariser).theta == 0) < reference(problem, regulariser).theta.size - 1


@pytest.mark.parametrize("participation", [*CHANCE, Bernoulli(probability=0.4)], ids=lambda p: type(p).__name__)
@every_case
def test_stays_at_the_solution(problem: str, regulariser: str, participation: Participation) -> None:
    F, theta = composite(problem, regulariser), optimum(problem, regulariser)
    algorithm = FedDR(**ACCURATE[problem]).suggested(F)
    state = State(*algorithm.fixed_point(F, theta))
    for round in islice(participation.rounds(4, seed=0), 6):
        state, _, _ = advance(algorithm, F, state, round)
        np.testing.assert_allclose(state.server.theta, theta, atol=1e-12)
        assert np.array_equal(state.server.theta == 0, theta == 0)
    plain = replace(algorithm, regulariser=Zero())
    moved, _, _ = advance(plain, F, State(*plain.fixed_point(F, theta)), first_round(4))
    assert np.linalg.norm(moved.server.theta - theta) > 1e-3  # it is no fixed point of ``E`` alone


def test_squared_norm_and_ridge_have_one_fixed_point() -> None:
    """``L2(w)`` on the server is ``w`` more ridge for each client: other iterates, the same limit."""
    F, ridge = Composite(objective=logistic(mu=0.1), regulariser=L2(weight=0.2)), logistic(mu=0.3)
    algorithm = FedDR(eta=2.0, relaxation=1.0, **ACCURATE["logistic"])
    server, client = (list(islice(iterate(algorithm, f), 70)) for f in (F, ridge))
    assert np.linalg.norm(server[2].server.theta - client[2].server.theta) > 1e-3
    a, b = server[-1].server.theta, client[-1].server.theta
    np.testing.assert_allclose(a, b, atol=1e-12)
    np.testing.assert_allclose(a, newton(ridge).theta, atol=1e-6)
    algorithm = algorithm.suggested(F)
    after, _, _ = advance(algorithm, F, State(*algorithm.fixed_point(F, b)), server[0].round)
    np.testing.assert_allclose(after.server.theta, b, atol=1e-12)


def test_suggested_copies_the_regulariser() -> None:
    F = composite("quadratic", "L1")
    assert FedDR().suggested(F).regulariser == F.regulariser
    assert FedDR().suggested(F.objective).regulariser == Zero()
    trace = run(FedDR(), F, rounds=1)
    assert trace.parameters["hyperparameters"]["feddr"]["regulariser"] == {"l1": {"weight": 0.2}}


def test_another_regulariser_than_the_objectives_is_refused() -> None:
    f = logistic()
    with pytest.raises(ValueError, match="regulariser must be that of the objective"):
        run(FedDR(regulariser=L1(weight=0.1)), f, rounds=1)
