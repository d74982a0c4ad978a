"""Problems, paths and rounds as matrices: they agree with what was found in other ways; rounding violates nothing."""

from __future__ import annotations

import numpy as np
import pytest

from dualopt.engine.rounds import State, advance
from dualopt.lab.chance import branches, events_of
from dualopt.lab.claims import check
from dualopt.methods import AFedPD, FedADMM, FedPD, Scaffold
from dualopt.methods.participation import Bernoulli, CommunicateWithProbability, Full, Schedule, UniformSubset
from dualopt.objectives import Quadratic
from dualopt.runs.reference import cvxpy
from dualopt.solvers import Exact, Gradient
from dualopt.solvers.stopping import Steps
from theory._cases import Case, everybody
from theory._problems import (
    absolute_deviation,
    breast_cancer,
    digits,
    flat_quadratic,
    hard_quadratic,
    hinge,
    hinge_without_ridge,
    logistic,
    quadratic,
    regularised,
    solved,
)
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
from theory.counterexamples._recursion import on_quadratics, scalars
from theory.counterexamples.primal_dual import fedadmm_two_clients
from theory.dualfl import local_steps as subgradients
from theory.dualfl._runs import exact, inexact, local_energies
from theory.dualfl._runs import path as dual_path
from theory.dualfl.inexact_solutions import gap_3_6


def case(algorithm=None, **more) -> Case:
    method = AFedPD(rho=60.0, solver=Exact()) if algorithm is None else algorithm
    return quadratic().case(method.suggested(quadratic().objective), 3, **more)


@pytest.mark.parametrize(
    ("participation", "count"),
    [
        (Full(), 1),
        (UniformSubset(size=2), 3),
        (Bernoulli(probability=0.25), 8),
        (CommunicateWithProbability(probability=0.25), 2),
    ],
)
def test_probabilities_of_outcomes_sum_to_one(participation, count: int) -> None:
    outcomes = events_of(participation, 3, n=4, seed=5)
    assert len(outcomes) == count
    assert sum(outcome.probability for outcome in outcomes) == pytest.approx(1.0, rel=1e-15)
    assert all((outcome.round.n, outcome.round.seed) == (4, 5) for outcome in outcomes)


def test_other_participation_is_refused() -> None:
    with pytest.raises(TypeError, match="the events of Schedule are not listed"):
        events_of(Schedule(clients=((0,),)), 3)


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
        return np.concatenate([state.server.theta[None], state.clients.dual + state.server.dual]).ravel()

    def filled(z: np.ndarray, like: State) -> State:
        theta, duals = np.split(z.reshape(4, -1), [1])
        mean = np.mean(duals, axis=0)
        server, message = (part._replace(theta=theta[0], dual=mean) for part in (like.server, like.message))
        return State(server, message, like.clients._replace(dual=duals - mean))

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


# Problems with known solutions: the solutions are right, by another route.


INSTANCES = [
    quadratic(),
    hard_quadratic(),
    flat_quadratic(),
    logistic(),
    logistic(mu=0.0),
    hinge(),
    hinge_without_ridge(),
    absolute_deviation(),
    breast_cancer(),
    digits(),
]


@pytest.mark.parametrize("instance", INSTANCES, ids=lambda i: f"{i.name} {i.mu:g}")
def test_subgradients_prove_that_the_solution_is_one(instance: Case) -> None:
    """They sum to zero, and each lies below its function: then theta minimises E, whatever solver found it."""
    f, theta, s = instance.objective, instance.theta, instance.subgradients
    assert np.abs(s.sum(axis=0)).max() <= 1e-8 * np.abs(s).max()
    rng = np.random.default_rng(0)
    for scale in (1e-3, -1e-3, 1.0, -1.0, 10.0):
        step = scale * rng.standard_normal(f.zeros().shape)
        rise = f.value(theta + step) - f.value(theta)
        least = (s * step).reshape(f.n_clients, -1).sum(axis=1) + 0.5 * f.mu * (step**2).sum()
        assert np.all(rise >= least - 1e-9 * (1.0 + np.abs(rise)))


@pytest.mark.parametrize("instance", [hinge(), absolute_deviation(), logistic()], ids=lambda i: i.name)
def test_cvxpy_finds_the_same_energy(instance: Case) -> None:
    energy = instance.objective.value(instance.theta).mean()
    assert abs(cvxpy(instance.objective).energy - energy) <= 1e-7 * energy


def test_a_wrong_solution_would_be_noticed() -> None:
    f = hinge()
    wrong = Case(name="", objective=f.objective, theta=f.theta + 1e-3, subgradients=f.subgradients)
    with pytest.raises(AssertionError):
        test_subgradients_prove_that_the_solution_is_one(wrong)


@pytest.mark.parametrize("instance", [quadratic(), logistic()], ids=lambda i: i.name)
def test_a_ridge_adds_its_energy(instance: Case) -> None:
    theta = instance.theta + 1.0
    added = regularised(instance.objective, 0.3).value(theta) - instance.objective.value(theta)
    np.testing.assert_allclose(added, 0.15 * (theta**2).sum(), rtol=1e-12)


def test_constants_are_those_of_the_name() -> None:
    assert (quadratic(L=200.0).mu, quadratic(L=200.0).L) == pytest.approx((1.0, 200.0))
    assert flat_quadratic().mu == pytest.approx(0.0, abs=1e-12)
    assert isinstance(hard_quadratic().objective, Quadratic)
    case = quadratic().case(None, 3, "note")
    assert isinstance(case, Case)
    assert case.name == "quadratics (N=3, kappa=50), note"


# Claims where only rounding, or the cost of counting, stands between the two sides.


def test_gap_3_6_where_both_energies_are_near_zero() -> None:
    """A constant in f_j moves the primal energy to zero, and the dual energy with it; the gap stays."""
    instance = quadratic()
    method = inexact(instance, Steps(steps=3000), rho=0.0, nu=0.5 * instance.mu, solver=Gradient())
    case = instance.case(method, 10)
    last = [local_energies(case, step.zeta, step.snapshot.clients.theta)[0] for step in dual_path(case)][-1]
    f = instance.objective
    moved = solved("moved", Quadratic(A=f.A, b=f.b, c=f.c - last)).case(method, 10)
    energies = [np.abs(local_energies(moved, s.zeta, s.snapshot.clients.theta)).max() for s in dual_path(moved)]
    assert energies[-1] < 1e-12 < energies[0]
    assert check(gap_3_6, moved).verdict == "holds"


def test_a_count_that_was_not_finished_refutes_no_larger_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = absolute_deviation(mu=0.5)
    case = instance.case(exact(instance, rho=0.0), 3)
    counted = list(subgradients.theorem_3_4(case))
    assert max(q.lhs for q in counted if q.what == "M_n") > 20.0
    monkeypatch.setattr(subgradients, "LIMIT", 20)
    assert check(subgradients.theorem_3_4, case).verdict == "holds"
    honest = subgradients.averaged_subgradient_steps

    def few(*args):  # as if all subgradients were short: the bound lies below the limit
        return honest(*args)._replace(largest=np.full(case.n_clients, 1e-3))

    monkeypatch.setattr(subgradients, "averaged_subgradient_steps", few)
    assert check(subgradients.theorem_3_4, case).verdict == "violated"


def test_a_run_that_is_at_its_limit_from_the_start_stays_there() -> None:
    """With rho = a nothing is uploaded, and after one turn of each client only rounding is left."""
    a, minima = 3.3, (-1.3, 2.9)
    run = on_quadratics(
        "rho = a",
        FedADMM(rho=a, server_step=0.5, solver=Exact()),
        scalars([a, a], minima),
        theta0=0.37,
        participation=Schedule(clients=((0,), (1,))),
    )
    ends = [q for q in fedadmm_two_clients(run) if q.what == "error in the end"]
    assert [0.0 < q.rhs < q.lhs < 1e-14 for q in ends] == [True]  # rounding that does not shrink
    assert check(fedadmm_two_clients, run).witness is None
    off = run.but(limit=run.limit + 1e-6)
    assert check(fedadmm_two_clients, off).verdict == "violated"
