"""Paths and rounds as matrices: they agree with what was found in other ways."""

from __future__ import annotations

import numpy as np
import pytest

from dualopt.engine.rounds import State, advance
from dualopt.lab.chance import branches, events_of
from dualopt.methods import AFedPD, FedPD, Scaffold
from dualopt.methods.participation import Bernoulli, CommunicateWithProbability, Full, UniformSubset
from dualopt.objectives import Quadratic
from dualopt.solvers import Exact, Gradient
from dualopt.solvers.stopping import Steps
from theory._cases import Case, everybody
from theory._problems import quadratic
from theory._rounds import (
    affine,
    all_solutions,
    flatten,
    histories,
    mean_square_radius,
    path,
    round_matrix,
    unflatten,
)


def case(algorithm=None, **more) -> Case:
    method = AFedPD(rho=60.0, solver=Exact()) if algorithm is None else algorithm
    return quadratic().case(method.suggested(quadratic().objective), 3, **more)


@pytest.mark.parametrize(
    ("participation", "count"),
    [(Full(), 1), (UniformSubset(size=2), 3), (CommunicateWithProbability(probability=0.25), 2)],
)
def test_probabilities_of_outcomes_sum_to_one(participation, count: int) -> None:
    outcomes = events_of(participation, 3, n=4, seed=5)
    assert len(outcomes) == count
    assert sum(outcome.probability for outcome in outcomes) == pytest.approx(1.0, rel=1e-15)
    assert all((outcome.round.n, outcome.round.seed) == (4, 5) for outcome in outcomes)


def test_other_participation_is_refused() -> None:
    with pytest.raises(TypeError, match="the events of Bernoulli are not listed"):
        events_of(Bernoulli(probability=0.5), 3)


def test_a_path_is_the_run_and_knows_what_else_may_happen() -> None:
    made = case(participation=UniformSubset(size=2), theta0=np.ones(4), seed=3)
    steps = list(path(made))
    models = [step.taken.state.server.theta for step in steps]
    np.testing.assert_array_equal(models, [shot.server.theta for shot in made.snapshots()])
    assert [step.taken.round for step in steps] == made.schedule()
    for step in steps:
        mean = step.E[lambda branch: branch.state.server.theta]
        outcomes = made.events(step.n)
        after = branches(made.algorithm, made.objective, step.before, outcomes)
        found = sum(branch.probability * branch.state.server.theta for branch in after)
        np.testing.assert_allclose(mean, found, rtol=1e-14)


def test_a_path_begins_at_the_state_of_the_case() -> None:
    made = case()
    later = list(path(made))[1].before
    np.testing.assert_array_equal(flatten(made.but(state=later).first()), flatten(later))
    assert made.fraction == 1.0


def test_histories_have_all_the_probability() -> None:
    made = case(FedPD(eta=0.001, solver=Exact()), participation=CommunicateWithProbability(probability=0.25))
    levels = list(histories(made))
    assert [len(E.found) for E in levels] == [2, 4, 8]
    assert [E[lambda branch: 1.0] for E in levels] == pytest.approx([1.0, 1.0, 1.0])


def test_all_solutions_are_those_of_a_round_with_everybody() -> None:
    made = case(participation=UniformSubset(size=1))
    found = all_solutions(made.algorithm, made.objective, made.first())
    assert found.theta.shape == (3, 4)


@pytest.mark.parametrize(
    "algorithm",
    [AFedPD(rho=60.0, solver=Exact()), Scaffold(solver=Gradient(step=1e-3), stop=Steps(steps=3))],
    ids=["A-FedPD", "SCAFFOLD"],
)
@pytest.mark.parametrize("clients", [(0, 1, 2), (1,), (0, 2)])
def test_the_matrix_of_a_round_does_the_round(algorithm, clients: tuple[int, ...]) -> None:
    made = case(algorithm, participation=UniformSubset(size=len(clients)))
    round = next(outcome.round for outcome in made.events() if outcome.round.clients == clients)
    like = made.first()
    M = round_matrix(made.algorithm, made.objective, round, like)
    z = np.random.default_rng(0).standard_normal(len(M) - 1)
    after = flatten(advance(made.algorithm, made.objective, unflatten(z, like), round)[0])
    np.testing.assert_allclose(M @ np.append(z, 1.0), np.append(after, 1.0), rtol=1e-10, atol=1e-10)


def test_entries_that_follow_from_others_may_be_left_out() -> None:
    made = case()
    f, method = made.objective, made.algorithm

    def flat(state: State) -> np.ndarray:
        return np.concatenate([state.server.theta[None], state.clients.dual]).ravel()

    def filled(z: np.ndarray, like: State) -> State:
        theta, duals = np.split(z.reshape(4, -1), [1])
        server = like.server._replace(theta=theta[0], dual=np.mean(duals, axis=0))
        return State(server, like.message._replace(theta=theta[0]), like.clients._replace(dual=duals))

    M = round_matrix(method, f, everybody(3), made.first(), flat=flat, filled=filled)
    solution = np.append(np.concatenate([made.theta[None], -made.subgradients]).ravel(), 1.0)
    np.testing.assert_allclose(M @ solution, solution, rtol=1e-10, atol=1e-10)
    assert mean_square_radius([M]) < 1.0


def test_an_affine_map_is_found_from_a_basis() -> None:
    A, c = np.arange(6.0).reshape(2, 3), np.array([7.0, 8.0])
    np.testing.assert_array_equal(affine(lambda z: A @ z + c, 3), np.column_stack([A, c]))


def test_constants_of_a_case() -> None:
    made = case(lowest=-1.0)
    assert isinstance(made.objective, Quadratic)
    assert (made.mu, made.L) == pytest.approx((1.0, 50.0))
    assert made.distance(made.theta + 1.0) == pytest.approx(4.0)
    assert made.error(made.theta) == pytest.approx(made.value(made.theta) + 1.0)
    assert made.squared_gradient(made.theta) < 1e-20
