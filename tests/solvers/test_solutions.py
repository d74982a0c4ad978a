"""What every local solver returns: minimisers, gaps, dual points, counts, and nothing changed on the way."""

from __future__ import annotations

import dataclasses
import itertools
import pickle
from functools import cache
from typing import Any

import numpy as np
import pytest
from solver_instances import (
    OBJECTIVES,
    PAIRS,
    SOLVERS,
    arrays,
    by_client,
    first,
    in_turn,
    linear,
    local_problem,
    move_problem,
    starts,
)

from dualopt.arrays.tree import leaves
from dualopt.arrays.xp import device, to_numpy
from dualopt.lab.contracts.solver_problems import dot, reference
from dualopt.lab.contracts.test_solvers import *  # noqa: F403
from dualopt.losses import Hinge, Logistic
from dualopt.objectives import LocalProblem, ObjectiveWrapper
from dualopt.objectives.local_problem import Evaluation
from dualopt.runs.certificates import DualPoint, dual_point
from dualopt.solvers import LBFGS, DualCoordinate, Exact, Gradient
from dualopt.solvers._kinks import Kinked
from dualopt.solvers.lbfgs import evaluate_start
from dualopt.solvers.stopping import Gap, GradientNorm, Steps
from tests.conftest import BACKENDS, rounds_as_numpy

every_pair = pytest.mark.parametrize(("name", "objective"), PAIRS)
ITERATIVE = [pair for pair in PAIRS if pair[0] != "exact"]
TERMS = ["plain", "linear", "weight", "all"]
every_iterative_pair = pytest.mark.parametrize(("name", "objective"), ITERATIVE)


def solve(name, problem, stop, start=None, solver_state=None, n=0):
    solver = SOLVERS[name] if isinstance(name, str) else name
    solver_state = solver.initial_state(problem.objective) if solver_state is None else solver_state
    start = starts(problem) if start is None else start
    return solver(problem, start, stop, solver_state, first(problem.n_clients, n))


def spread(numbers, like):
    return np.asarray(numbers).reshape(-1, *(1,) * (like.ndim - 1))


@cache
def lowest_values(objective, terms):
    """Return the minima of the local problems, down to 1e-13."""
    problem = local_problem(OBJECTIVES[objective](), terms)
    accurate = "newton" if ("newton", objective) in PAIRS else "dual_coordinate"
    return problem.value(solve(accurate, problem, Gap(schedule=lambda round: 1e-13)).theta)


@pytest.mark.parametrize(("name", "objective", "terms"), in_turn(ITERATIVE, TERMS))
def test_gap_is_an_upper_bound_on_the_way(name, objective, terms):
    problem = local_problem(OBJECTIVES[objective](), terms)
    lowest = lowest_values(objective, terms)
    for steps in (1, 3):
        solution = solve(name, problem, Steps(steps=steps))
        true = problem.value(solution.theta) - lowest
        assert np.all(solution.gap >= true - 1e-12)


@pytest.mark.parametrize(("name", "objective", "terms"), in_turn(PAIRS, TERMS))
def test_dual_point_and_conjugate(name, objective, terms):
    problem = local_problem(OBJECTIVES[objective](), terms)
    f = problem.objective
    solution = solve(name, problem, Steps(steps=2))
    point = dual_point(f, solution)
    assert point is not None
    xi, conjugate, error = point
    rng = np.random.default_rng(8)
    for scale in (0.1, 1.0, 10.0):
        t = solution.theta + scale * rng.normal(size=xi.shape)
        g = f.value(t) - 0.5 * f.mu * dot(t, t)
        assert np.all(conjugate >= dot(xi, t) - g - 1e-12 * (1 + scale**2))
    # primal minus dual value of the local problem is the gap, once the room for rounding is taken off
    evaluation = solution.evaluation
    rounding = f.rounding(solution.theta, evaluation.f, evaluation.grad_f, solution.excess)
    conjugate = conjugate - rounding.value - error * np.sqrt(dot(solution.theta, solution.theta))
    conjugate = conjugate - (0.0 if solution.excess is None else solution.excess - solution.gap)
    linear_term = problem.linear_term()
    center = 0.0 if problem.center is None else np.broadcast_to(problem.center, xi.shape)
    constant = 0.5 * problem.weight * dot(center, center) if problem.center is not None else 0.0
    total = xi + linear_term
    dual_value = constant - conjugate - dot(total, total) / (2 * problem.mu)
    value = problem.value(solution.theta)
    size = np.abs(value) + np.abs(conjugate) + dot(total, total) / problem.mu + np.abs(constant)
    assert np.all(np.abs(value - dual_value - solution.gap) <= 1e-13 * size)


@every_pair
def test_dual_corrected_point(name, objective):
    f = OBJECTIVES[objective]()
    nu = f.mu
    zeta = np.random.default_rng(9).normal(size=(f.n_clients, *f.shape))
    problem = LocalProblem(objective=f, linear=-spread(nu, zeta) * zeta)
    solution = solve(name, problem, Steps(steps=2))
    point = dual_point(f, solution)
    assert point is not None
    corrected = solution.theta - solution.evaluation.gradient / spread(nu, zeta)
    expected = spread(nu, zeta) * (zeta - corrected)
    scale = np.max(np.abs(expected)) + np.max(np.abs(solution.evaluation.gradient)) + np.max(np.abs(solution.theta))
    assert np.max(np.abs(point.dual - expected)) <= 1e-13 * scale


class Spy:
    """A rule that writes down the steps at which it was asked."""

    def __init__(self, stop):
        self.stop, self.asked = stop, []

    def finished(self, progress):
        self.asked.append(progress.steps)
        return self.stop.finished(progress)


@pytest.mark.parametrize("k", [1, 2, 5])
@every_iterative_pair
def test_steps_are_counted_exactly(name, objective, k):
    problem = local_problem(OBJECTIVES[objective](), "linear")
    spy = Spy(Steps(steps=k))
    solution = solve(name, problem, spy)
    assert spy.asked == list(range(k + 1))
    for status, gap, value in zip(solution.status, solution.gap, problem.value(solution.theta), strict=True):
        at_rounding = name in {"dual_coordinate", "interior_point"} and gap <= 1e-14 * (1.0 + 2.0 * abs(value))
        assert status == "converged" or (at_rounding and status == "stalled")


@pytest.mark.parametrize(
    ("name", "objective"), [pair for pair in ITERATIVE if pair[1] in {"multinomial", "absolute_deviation"}]
)
def test_max_iter_is_a_status_and_a_number_of_steps(name, objective):
    problem = local_problem(OBJECTIVES[objective](), "linear")
    limited = solve(dataclasses.replace(SOLVERS[name], max_iter=2), problem, GradientNorm(tol=1e-300))
    reached = [j for j, status in enumerate(limited.status) if status == "max_iter"]
    assert len(reached) >= 4  # the dual problem of a small client may be solved in one epoch
    solution = solve(name, problem, Steps(steps=2))
    assert limited.theta[reached].tobytes() == solution.theta[reached].tobytes()


def test_steps_are_carried_out_at_the_minimiser_too():
    problem = local_problem(OBJECTIVES["quadratic"](), "linear")
    start = reference(problem)
    for k in (5, 100):
        assert solve("gradient", problem, Steps(steps=k), start=start).gradients == (float(k),) * 5


@pytest.mark.parametrize("objective", ["quadratic", "multinomial", "huber"])
@pytest.mark.parametrize("name", ["gradient", "nesterov", "lbfgs", "lbfgs_plain", "newton"])
def test_a_tolerance_below_rounding_ends_in_a_stall(name, objective):
    problem = local_problem(OBJECTIVES[objective](), "all")
    solution = solve(name, problem, GradientNorm(tol=1e-300))
    assert set(solution.status) == {"stalled"}
    assert max(solution.gradients) <= 1000  # max_iter is 10000, 1000, or 100 Newton steps
    assert np.all(solution.gap <= 1e-28)  # and the point is as good as it gets


def test_a_stall_of_the_dual_solver():
    problem = local_problem(OBJECTIVES["hinge"](), "all")
    solution = solve("dual_coordinate", problem, GradientNorm(tol=1e-300))
    assert set(solution.status) <= {"stalled", "converged"}
    assert max(solution.gradients) <= 500


def test_divergence_is_a_stall():
    problem = local_problem(OBJECTIVES["quadratic"](), "linear")
    with np.errstate(all="ignore"):
        solution = solve(Gradient(step=1.0), problem, GradientNorm(tol=1e-8))
    assert solution.status[-1] == "stalled"
    assert solution.gradients[-1] < 10_000


@pytest.mark.parametrize(
    ("name", "objective", "terms", "library"),
    [(*pair, *case) for *pair, case in in_turn(PAIRS, itertools.product(["linear", "all"], BACKENDS))],
)
def test_every_library_gets_the_same_numbers_back(name, objective, terms, library):
    backend = BACKENDS[library]
    problem = local_problem(OBJECTIVES[objective](), terms)
    start = starts(problem)
    expected = solve(name, problem, Steps(steps=3), start=start)
    moved = move_problem(problem, backend)
    solver = SOLVERS[name]
    solver_state = solver.initial_state(moved.objective)
    result = solver(moved, backend(start), Steps(steps=3), solver_state, first(problem.n_clients))
    assert result.status == expected.status
    like = backend(start)
    if rounds_as_numpy(like):
        assert result.gradients == expected.gradients
    for array in leaves(by_client(result)):
        assert type(array) is type(like)
        assert array.dtype == like.dtype
        assert device(array) == device(like)
    points = dual_point(moved.objective, result), dual_point(problem.objective, expected)
    pairs = {"theta": (result.theta, expected.theta), "gap": (result.gap, expected.gap)}
    pairs |= {name: tuple(getattr(x.evaluation, name) for x in (result, expected)) for name in Evaluation._fields}
    pairs |= {name: tuple(getattr(point, name) for point in points) for name in DualPoint._fields}
    # a face is solved by a proximal step of length eps^(-1/2), which leaves its dual variables accurate to eps^(1/2)
    tol = np.finfo(float).eps ** 0.5 if name == "interior_point" else 1e-10
    for what, (a, b) in pairs.items():
        assert np.max(np.abs(to_numpy(a) - b)) <= tol * (1 + np.max(np.abs(b))), what


@pytest.mark.parametrize("name", ["gradient", "aogm", "nesterov", "lbfgs", "newton"])
@pytest.mark.parametrize("objective", ["quadratic", "logistic"])
def test_single_precision_stays_single(name, objective):
    problem = move_problem(local_problem(OBJECTIVES[objective](), "all"), to_single)
    start = to_single(starts(problem))
    solution = solve(name, problem, GradientNorm(tol=1e-3), start=start)
    assert {a.dtype for a in arrays(solution)} == {np.dtype(np.float32)}
    assert set(solution.status) == {"converged"}


def to_single(x):
    return x.astype(np.float32)


class Counting(ObjectiveWrapper):
    """An objective that counts what is asked of it, in the units of ``LocalSolution.gradients``."""

    def __init__(self, objective, count):
        self.objective, self.count = objective, count

    def _add(self, price):
        self.count[0] += price * self.objective.n_clients

    def value(self, theta):
        self._add(0.5)
        return self.objective.value(theta)

    def gradient(self, theta):
        self._add(1.0)
        return self.objective.gradient(theta)

    def value_and_gradient(self, theta):
        self._add(1.0)
        return self.objective.value_and_gradient(theta)

    def hessian_operator(self, theta):
        product = self.objective.hessian_operator(theta)

        def counted(v):
            self._add(1.0)
            return product(v)

        return counted

    def select(self, ids):
        return Counting(self.objective.select(ids), self.count)


OF_THEIR_OWN_PRICE = {"dual_coordinate", "interior_point"}


@pytest.mark.parametrize(("name", "objective"), [pair for pair in PAIRS if pair[0] not in OF_THEIR_OWN_PRICE])
def test_gradients_are_counted(name, objective):
    problem = local_problem(OBJECTIVES[objective](), "all")
    stop = GradientNorm(tol=1e-4)
    for j in range(5):
        alone = problem.select((j,))
        count = [0.0]
        counted = dataclasses.replace(alone, objective=Counting(alone.objective, count))
        solution = solve(name, counted, stop, start=starts(problem)[j : j + 1])
        assert np.isfinite(
            solution.evaluation.value
        ).all()  # that of an exact solution is computed when it is asked for
        assert solution.gradients == (count[0],)
    if name != "newton":  # its finished systems are multiplied along with the others, and not charged
        count = [0.0]
        solution = solve(name, dataclasses.replace(problem, objective=Counting(problem.objective, count)), stop)
        assert np.isfinite(solution.evaluation.value).all()
        assert sum(solution.gradients) == count[0]


def test_dual_coordinate_charges_two_gradients_an_epoch():
    problem = local_problem(OBJECTIVES["hinge"](), "linear")
    assert solve("dual_coordinate", problem, Steps(steps=7)).gradients == (14.0,) * 5


def test_interior_point_charges_its_products_and_its_matrix(monkeypatch):
    problem = local_problem(OBJECTIVES["hinge"](), "linear")
    first = solve("interior_point", problem, Steps(steps=7))
    steps = [(x - 1.0) / (3.0 + 4 / 2) for x in first.gradients]  # those in the interior that try a face are two
    assert all(x == int(x) and 7 <= x <= 14 for x in steps)
    assert max(steps) > 7
    monkeypatch.setattr(Kinked, "inside", lambda c, v: (v < 0, np.zeros(len(v), dtype=bool)))  # no faces
    assert solve("interior_point", problem, Steps(steps=7)).gradients == (1.0 + 7 * (3.0 + 4 / 2),) * 5


# The solver state.


def test_lbfgs_is_cheaper_from_its_state():
    f = linear(Logistic(), sizes=(80, 60, 90), d=12, mu=1e-3)
    solver = LBFGS(precondition=False)
    rng = np.random.default_rng(0)
    slope = 0.05 * rng.normal(size=(3, *f.shape))
    stop = GradientNorm(tol=1e-7)
    one = LocalProblem(objective=f, linear=slope)
    solution = solve(solver, one, stop)
    later = LocalProblem(objective=f, linear=slope + 1e-4 * rng.normal(size=slope.shape))
    warm = solve(solver, later, stop, start=solution.theta, solver_state=solution.solver_state, n=1)
    cold = solve(solver, later, stop, start=solution.theta, n=1)
    scratch = solve(solver, later, stop)
    assert set(warm.status + cold.status) == {"converged"}
    for a, b, c in zip(warm.gradients, cold.gradients, scratch.gradients, strict=True):
        assert a < b < c


def test_lbfgs_pays_nothing_where_it_ended():
    problem = local_problem(OBJECTIVES["logistic"](), "linear")
    stop = GradientNorm(tol=1e-6)
    solution = solve("lbfgs", problem, stop)
    again = solve("lbfgs", problem, stop, start=solution.theta, solver_state=solution.solver_state, n=1)
    assert again.gradients == (0.0,) * 5
    assert again.theta.tobytes() == solution.theta.tobytes()
    other = solution.theta.copy()
    other[2] += 1.0
    moved = solve("lbfgs", problem, Steps(steps=1), start=other, solver_state=solution.solver_state, n=1)
    free = solve("lbfgs", problem, Steps(steps=1), start=solution.theta, solver_state=solution.solver_state, n=1)
    assert moved.gradients[2] >= 2.0
    assert [g for j, g in enumerate(moved.gradients) if j != 2] == [g for j, g in enumerate(free.gradients) if j != 2]


@pytest.mark.parametrize("objective", ["quadratic", "logistic", "multinomial"])
def test_a_known_start_is_the_evaluation_without_its_price(objective):
    problem = local_problem(OBJECTIVES[objective](), "all")
    theta = starts(problem)
    f, grad_f = problem.objective.value_and_gradient(theta)
    known = LBFGS().initial_state(problem.objective)._replace(theta=theta, f=f, grad_f=grad_f)
    found, cost = evaluate_start(problem, theta, known)
    assert cost.tolist() == [0.0] * 5
    for a, b in zip(found, problem.evaluate(theta), strict=True):
        assert a.tobytes() == b.tobytes()
    partly = theta.copy()
    partly[[0, 3], 1] += 1.0  # one number, or row, is enough
    found, cost = evaluate_start(problem, partly, known)
    assert cost.tolist() == [1.0, 0.0, 0.0, 1.0, 0.0]
    for a, b in zip(found, problem.evaluate(partly), strict=True):
        assert a.tobytes() == b.tobytes()


@pytest.mark.parametrize("objective", ["hinge", "absolute_deviation", "logistic"])
def test_dual_coordinate_goes_on_from_its_state(objective):
    problem = local_problem(OBJECTIVES[objective](), "linear")
    stop = Gap(schedule=lambda round: 1e-9)
    solution = solve("dual_coordinate", problem, stop)
    again = solve("dual_coordinate", problem, stop, start=solution.theta, solver_state=solution.solver_state, n=1)
    assert again.gradients == (0.0,) * 5
    assert again.theta.tobytes() == solution.theta.tobytes()


# A solver that does not fit an objective says so in one sentence.

MISFITS = {
    **{
        f"{name} on hinge": (name, "hinge", rf"solver '{name}' needs a smooth loss; .*dual-coordinate")
        for name in ("gradient", "nesterov", "aogm", "lbfgs", "newton")
    },
    "exact on logistic": ("exact", "logistic", "solver 'exact' needs quadratic local problems"),
    "dual_coordinate on multinomial": (
        "dual_coordinate",
        "multinomial",
        "solver 'dual-coordinate' needs .* scalar loss",
    ),
    "dual_coordinate on quadratic": ("dual_coordinate", "quadratic", "solver 'dual-coordinate' needs a linear model"),
}


@pytest.mark.parametrize(("name", "objective", "message"), MISFITS.values(), ids=MISFITS)
def test_misfits_are_refused(name, objective, message):
    problem = local_problem(OBJECTIVES[objective](), "linear")
    with pytest.raises(ValueError, match="^" + message) as info:
        solve(name, problem, Steps(steps=1))
    assert str(info.value).endswith(".")


def test_more_misfits():
    flat = linear(Hinge(), mu=0.0)
    with pytest.raises(ValueError, match=r"^solver 'dual-coordinate' needs mu > 0\.$"):
        solve("dual_coordinate", LocalProblem(objective=flat), Steps(steps=1))
    hinge = LocalProblem(objective=linear(Hinge()))
    stepped = solve(Gradient(step=0.01), hinge, Steps(steps=2))  # subgradient steps, asked for by name
    assert stepped.gradients == (2.0,) * 5
    for make, message in [
        (lambda: Gradient(step=0.0), "step must be positive, not 0.0"),
        (lambda: Exact().initial_state(flat), "solver 'exact' needs quadratic local problems"),
        (lambda: LBFGS(history=0), "history must be at least 1, not 0"),
        (lambda: LBFGS(history=1001), "history must be at most 1000, not 1001"),
        (lambda: dataclasses.replace(SOLVERS["aogm"], increase=1.0), "increase must be greater than 1, not 1.0"),
        (lambda: dataclasses.replace(SOLVERS["aogm"], decrease=0.9), "decrease must be greater than 1, not 0.9"),
    ]:
        with pytest.raises(ValueError, match=f"^{message}"):
            make()
    assert DualCoordinate().initial_state(linear(Hinge()))[0].shape == (5, 9)
    assert Exact().initial_state(OBJECTIVES["squared"]()) == ()


@pytest.mark.parametrize("name", ["gradient", "nesterov", "aogm", "lbfgs", "lbfgs_plain", "newton"])
def test_without_strong_convexity_the_gap_is_infinite_and_the_descent_goes_on(name):
    problem = LocalProblem(objective=linear(Logistic(), mu=0.0))
    start = starts(problem)
    solution = solve(name, problem, Steps(steps=3), start=start)
    assert np.all(np.isinf(solution.gap))
    assert np.all(problem.value(solution.theta) < problem.value(start))


def test_an_exact_solution_is_evaluated_when_somebody_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once, however many parts are asked for; what is sent elsewhere is the evaluation itself."""
    problem = local_problem(OBJECTIVES["quadratic"](), "all")
    calls: list[int] = []
    value_and_gradient = type(problem.objective).value_and_gradient

    def counted(self: Any, theta: Any) -> Any:
        calls.append(1)
        return value_and_gradient(self, theta)

    monkeypatch.setattr(type(problem.objective), "value_and_gradient", counted)
    found = Exact()(problem, starts(problem), Steps(steps=1))
    assert (calls, set(found.gradients)) == ([], {1.0})
    parts = [getattr(found.evaluation, name).tobytes() for name in Evaluation._fields]
    assert len(calls) == 1
    assert parts == [x.tobytes() for x in problem.evaluate(found.theta)]
    sent = pickle.loads(pickle.dumps(found.evaluation))
    assert type(sent) is Evaluation
    assert [x.tobytes() for x in sent] == parts
    with pytest.raises(AttributeError, match="hessian"):
        _ = found.evaluation.hessian
