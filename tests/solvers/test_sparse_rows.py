"""Local solvers on sparse rows: the same steps as on dense rows, and L-BFGS in the space of the rows."""

from __future__ import annotations

import pickle
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from solver_instances import SAMPLED, SOLVERS, applies, labels, linear, local_problem

from dualopt.arrays.streams import first_round
from dualopt.losses import AbsoluteDeviation, Hinge, Logistic, Multinomial, SmoothedHinge, Squared
from dualopt.objectives import LocalProblem, Quadratic, linear_model
from dualopt.objectives.local_problem import Evaluation, client_dot
from dualopt.solvers import DualCoordinate, RowLBFGS
from dualopt.solvers.stopping import Gap, GradientNorm, GradientReduction, Steps

sparse = pytest.importorskip("scipy.sparse")

LOSSES = {
    "squared": Squared(),
    "logistic": Logistic(),
    "multinomial": Multinomial(classes=3),
    "smoothed_hinge": SmoothedHinge(gamma=0.5),
}
EPS = 2.0**-52
TERMS = ["plain", "linear", "weight", "everything"]


def both(loss, mu=0.2):
    """Return sparse and dense models of clients of 9, 4, 9, 2 and 6 rows; a third of the features is zero."""
    like = linear(loss, mu=mu)
    rows = list(like.client_rows())
    X = np.concatenate([X[:, :-1] for X, _, _ in rows])
    X = np.concatenate([np.sin(X), np.sin(2 * X), np.cos(X)], axis=1)  # well conditioned: steps of Newton compare
    X[np.random.default_rng(0).random(X.shape) < 0.3] = 0.0
    y = np.concatenate([y for _, y, _ in rows])
    cuts = np.cumsum([0, *like.sizes])
    clients = [list(range(a, b)) for a, b in pairwise(cuts)]
    options = {"loss": loss, "mu": mu, "clients": clients}
    return linear_model(sparse.csr_array(X), y, storage="sparse", **options), linear_model(X, y, **options)


def start_of(problem):
    return np.zeros((problem.n_clients, *problem.objective.shape))


@pytest.mark.parametrize("name", sorted(set(SOLVERS) - {"row_lbfgs"}) + sorted(SAMPLED))
@pytest.mark.parametrize("loss", LOSSES)
def test_two_steps_are_those_of_dense_rows(name, loss):
    """After two steps sums in another order differ by a few thousand units of rounding at most."""
    a, b = both(LOSSES[loss])
    if not applies(name, b):
        pytest.skip("not made for this objective")
    solver = (SOLVERS | SAMPLED)[name]
    x, y = (
        solver(problem, start_of(problem), Steps(steps=2))
        for problem in (local_problem(a, "everything"), local_problem(b, "everything"))
    )
    np.testing.assert_allclose(x.theta, y.theta, rtol=0, atol=1e4 * 2.3e-16 * (1 + np.abs(y.theta).max()))
    assert x.gradients == y.gradients


@pytest.mark.parametrize("loss", [Hinge(), Logistic()], ids=["hinge", "logistic"])
def test_dual_coordinate_ascent_to_the_end(loss):
    a, b = both(loss)
    stop = Gap(schedule=lambda round: 1e-10)
    x, y = (DualCoordinate()(LocalProblem(objective=f), start_of(LocalProblem(objective=f)), stop) for f in (a, b))
    assert set(x.status) == {"converged"}
    # both are within sqrt(2 gap / mu) of the solution
    assert np.sqrt(client_dot(x.theta - y.theta, x.theta - y.theta)).max() <= 2 * np.sqrt(2e-10 / 0.2)


def test_dual_coordinate_ascent_needs_strong_convexity_of_every_client():
    for model in both(Hinge(), mu=0.0):
        problem = LocalProblem(objective=model, weight=np.array([1.0, 2.0, 0.0, 1.0, 1.0]), center=model.zeros())
        with pytest.raises(ValueError, match=r"^solver 'dual-coordinate' needs mu > 0\.$"):
            DualCoordinate()(problem, start_of(problem), Steps(steps=1))


DUAL = [Hinge(), Logistic(), AbsoluteDeviation(), Squared()]


@pytest.mark.parametrize("storage", ["sparse", "dense"])
@pytest.mark.parametrize("loss", DUAL, ids=lambda loss: type(loss).__name__)
def test_dual_coordinate_ascent_is_its_recursion(loss, storage):
    """A row at a time, of clients of unequal sizes with rows of unequal weights; two rows are nearly zero."""
    rng, sizes, p = np.random.default_rng(3), (9, 4, 9, 2, 6), 7
    X = 1.5 * rng.normal(size=(30, p)) * (rng.random((30, p)) > 0.3)
    X[[1, 11]] *= 1e-3
    y, weights = labels(loss, X[:, 0], rng), rng.uniform(0.05, 0.4, size=30)
    clients = [list(range(a, b)) for a, b in pairwise(np.cumsum([0, *sizes]))]
    stored = sparse.csr_array(X) if storage == "sparse" else X
    options = {"loss": loss, "mu": 0.2, "clients": clients, "weights": weights, "intercept": False}
    problem: Any = local_problem(linear_model(stored, y, storage=storage, **options), "everything")
    found = DualCoordinate()(problem, start_of(problem), Steps(steps=3))
    (duals,) = found.solver_state
    assert found.excess is not None
    for j, (own, rng) in enumerate(zip(clients, first_round(5).rngs(), strict=True)):
        A, b, mu, linear_term = X[own], y[own], problem.mu[j], problem.linear_term()[j]
        w = weights[own]
        u, theta = np.zeros(len(own)), -linear_term / mu
        q = w * np.sum(A * A, axis=1) / mu
        q = np.maximum(q, 1e-3 * q.max())
        for _ in range(3):
            for i in rng.permutation(len(own)):
                v = A[i] @ theta + q[i] * u[i]
                new = (v - loss.prox(np.array([v]), b[i : i + 1], q[i])[0]) / q[i]
                theta, u[i] = theta - w[i] / mu * (new - u[i]) * A[i], new
        # a product is right to some 1e-15, and a dual variable to that over q, of at least 1e-5 here
        np.testing.assert_allclose(found.theta[j], theta, rtol=0, atol=1e-12)
        np.testing.assert_allclose(duals[j, : len(own)], u, rtol=0, atol=1e-9)
        assert not duals[j, len(own) :].any()
        z, value = A @ theta, loss.value(A @ theta, b)
        conjugate = loss.conjugate(u, b)
        gap = w @ (value + conjugate - u * z)
        np.testing.assert_allclose(found.gap[j], gap, rtol=1e-9, atol=1e-14)
        pull = A.T @ (w * u)
        np.testing.assert_allclose(found.evaluation.grad_f[j], pull + 0.2 * theta, rtol=0, atol=1e-12)
        f = w @ value + 0.1 * theta @ theta
        center = 0.5 * problem.weight[j] * np.sum(problem.center[j] ** 2)
        energy = w @ value + 0.5 * mu * theta @ theta + linear_term @ theta + center
        np.testing.assert_allclose([found.evaluation.f[j], found.evaluation.value[j]], [f, energy], rtol=1e-12)
        # what rounding may have done to the gap: three terms of each row, at a predictor that is rounded itself
        lengths = np.linalg.norm(A, axis=1) * np.linalg.norm(theta)
        terms = 16.0 * (np.abs(value) + np.abs(conjugate) + np.abs(u * z))
        least = EPS * w @ (terms + p * lengths * (np.abs(loss.gradient(z, b)) + np.abs(u)))
        assert least <= found.excess[j] - found.gap[j] <= 3.0 * least


def solved(loss, terms, **options):
    a, b = both(LOSSES[loss])
    problem, same = local_problem(a, terms), local_problem(b, terms)
    stop = GradientNorm(tol=1e-9)
    return RowLBFGS(**options)(problem, start_of(problem), stop), SOLVERS["lbfgs"](same, start_of(same), stop), same


@pytest.mark.parametrize("terms", TERMS)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("history", [1, 20])
def test_row_lbfgs_finds_the_solution_of_lbfgs(loss, terms, history):
    found, other, problem = solved(loss, terms, history=history)
    assert set(found.status) == set(other.status) == {"converged"}
    distance = np.sqrt(client_dot(found.theta - other.theta, found.theta - other.theta))
    assert (distance <= 2.1e-9 / problem.mu).all()  # each is within |grad| / (mu + weight); a tenth for rounding
    gradient = problem.gradient(found.theta)
    np.testing.assert_allclose(found.evaluation.gradient, gradient, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.evaluation.f, problem.objective.value(found.theta), rtol=1e-13)


@pytest.mark.parametrize("terms", TERMS)
def test_row_lbfgs_stops_by_the_energy_and_the_gradient_of_the_problem(terms):
    """What the stopping rule sees in the space of the rows is F_j and the norm of its gradient."""
    a, b = both(Logistic())
    problem, same = local_problem(a, terms), local_problem(b, terms)
    seen = []

    class Watch:
        def finished(self, progress):
            seen.append((progress.value, progress.gradient_norm))
            return np.full(progress.value.shape, len(seen) == 4)

    found = RowLBFGS()(problem, start_of(problem), Watch())
    value, norm = seen[-1]
    np.testing.assert_allclose(value, same.value(found.theta), rtol=1e-12)
    gradient = same.gradient(found.theta)
    # gradients are sums of 20 numbers below 10: known to 20 * 10 * 2 eps
    np.testing.assert_allclose(norm, np.sqrt(client_dot(gradient, gradient)), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(found.gap, client_dot(gradient, gradient) / (2.0 * same.mu), rtol=1e-10)


class Scripted(Squared):
    """A loss whose values and slopes stand in tables; it writes down where it is asked."""

    values: Any
    slopes: Any
    asked: Any

    def __init__(self, values, slopes):
        vars(self).update(values=values, slopes=slopes, asked=[])

    def value_and_gradient(self, z, y):
        x = round(float(z[0, 0]) / 8.0, 17)
        self.asked.append(x)
        return np.full(z.shape, 16.0 * self.values(x)), np.full(z.shape, 2.0 * self.slopes(x))


def search(values, slopes):
    """Take a step from 0 in one dimension, and return the points x that were tried: predictors are 8 x = 2 theta.

    With values 16 F(x) and F'(0) = -1, the first trial, 4 = <x_i, x_i> times the slope 2 away, is at 1.
    """
    loss = Scripted(values, slopes)
    options = {"loss": loss, "mu": 2.0**-80, "intercept": False, "storage": "sparse"}  # F is the loss, to rounding
    problem = LocalProblem(objective=linear_model(sparse.csr_array([[2.0]]), np.zeros(1), **options))
    found = RowLBFGS()(problem, start_of(problem), Steps(steps=1))
    np.testing.assert_allclose(found.theta[0, 0], 4.0 * loss.asked[-1], rtol=1e-12)
    return loss.asked[1:]


@pytest.mark.parametrize(
    ("value", "slope", "accepted"),
    [
        (1.0 - 1.00001e-4, 5.0, True),  # Armijo's rule does not ask for the slope
        (1.0 - 0.99999e-4, 5.0, False),
        (1.0 + 9 * EPS, 0.9997, True),  # values differ by rounding only, and the slope is smaller
        (1.0 - 9 * EPS, 0.9997, True),
        (1.0 + 9 * EPS, 0.99981, False),
        (1.0 + 11 * EPS, 0.9997, False),
        (1.0 + 11 * EPS, 0.5, False),
        (1.5, -1.1e-4, True),  # convexity proves what the values do not show
        (1.5, -0.9e-4, False),
    ],
)
def test_what_the_search_of_row_lbfgs_accepts(value, slope, accepted):
    tried = search(lambda x: {0.0: 1.0, 1.0: value}.get(x, -9.0), lambda x: {0.0: -1.0, 1.0: slope}.get(x, 0.5))
    np.testing.assert_allclose(tried, [1.0] if accepted else [1.0, 0.3], rtol=1e-12)


@pytest.mark.parametrize(("decrease", "trials"), [(1.0e-5, 2), (0.8e-5, 3)])
def test_a_shorter_step_must_decrease_less(decrease, trials):
    """At t = 0.09, by a ten-thousandth of it."""
    values = {0.0: 1.0, 1.0: 1.5, 0.3: 1.5, 0.09: 1.0 - decrease}
    tried = search(lambda x: values.get(x, -9.0), lambda x: -1.0 if x == 0 else 5.0)
    np.testing.assert_allclose(tried, [1.0, 0.3, 0.09, 0.027][: trials + 1], rtol=1e-12)


def test_a_search_of_row_lbfgs_that_fails_stays_where_it_is():
    tried = search(lambda x: 1.0 if x == 0 else 1.5, lambda x: -1.0 if x == 0 else 5.0)
    np.testing.assert_allclose(tried, [*0.3 ** np.arange(30.0), 0.0], rtol=1e-9, atol=1e-17)


def long_solve():
    """Return the norms of the gradients after some hundred steps, and the largest that the rule allows."""
    X = sparse.random_array((120, 300), density=0.1, random_state=np.random.default_rng(0), format="csr")
    X = (X @ sparse.diags_array(np.logspace(0, -3, 300))).tocsr()
    y = np.random.default_rng(1).normal(size=120)
    f = linear_model(X, y, loss=Squared(), mu=1e-6, clients=2, intercept=False, storage="sparse")
    problem = LocalProblem(objective=f)
    first = problem.gradient(start_of(problem))
    found = RowLBFGS()(problem, start_of(problem), GradientReduction(factor=1e-9, first=1e-9))
    gradient = problem.gradient(found.theta)
    assert min(found.gradients) > 60
    return np.sqrt(client_dot(gradient, gradient)), 1e-9 * np.sqrt(client_dot(first, first))


def test_many_steps_keep_vectors_and_their_products_together():
    """Products with K are combined, not computed: after many steps the gradient is what the rule has seen."""
    norm, allowed = long_solve()
    assert (norm <= 1.1 * allowed).all()  # a tenth for rounding: a gradient of norm 1 is known to 1e-13 or better


def test_the_evaluation_is_computed_when_asked_for(monkeypatch):
    """Nobody pays for the gradients at the end who does not need them; a copy holds them."""
    a, _ = both(Logistic())
    problem, calls, evaluate = local_problem(a, "everything"), [], type(a).value_and_gradient
    monkeypatch.setattr(type(a), "value_and_gradient", lambda f, theta: calls.append(1) or evaluate(f, theta))
    found = RowLBFGS()(problem, start_of(problem), GradientNorm(tol=1e-9))
    assert not calls
    assert not found.charged
    expected = problem.evaluate(found.theta)
    calls.clear()
    for evaluation in (found.evaluation, pickle.loads(pickle.dumps(found.evaluation))):
        np.testing.assert_array_equal(evaluation.f, expected.f)
        np.testing.assert_array_equal(evaluation.grad_f, expected.grad_f)
        # X'r and the sum of three terms below 10 differ by rounding
        np.testing.assert_allclose(evaluation.gradient, expected.gradient, rtol=0, atol=1e-13)
        np.testing.assert_allclose(evaluation.value, expected.value, rtol=1e-13)
    assert len(calls) == 1
    assert isinstance(pickle.loads(pickle.dumps(found.evaluation)), Evaluation)


def test_row_lbfgs_goes_on_where_it_was():
    a, _ = both(Logistic())
    problem = local_problem(a, "everything")
    first = RowLBFGS()(problem, start_of(problem), GradientNorm(tol=1e-9))
    again = RowLBFGS()(problem, start_of(problem), GradientNorm(tol=1e-8), first.solver_state)
    assert set(again.gradients) == {2.5}  # no step
    np.testing.assert_allclose(again.theta, first.theta, rtol=0, atol=1e-10)


@pytest.mark.parametrize("ids", [[3], [4, 0], [2, 1, 3]])
def test_a_client_does_not_see_the_others(ids):
    a, _ = both(Multinomial(classes=3))
    problem = local_problem(a, "everything")
    whole = RowLBFGS()(problem, start_of(problem), GradientNorm(tol=1e-6))
    part = RowLBFGS()(problem.select(ids), start_of(problem)[ids], GradientNorm(tol=1e-6))
    np.testing.assert_array_equal(part.theta, whole.theta[ids])


def test_row_lbfgs_refuses_what_it_cannot_solve():
    a, b = both(Logistic())
    for objective in (b, Quadratic(A=np.ones((1, 1, 1)), b=np.zeros((1, 1)))):
        with pytest.raises(ValueError, match=r"^solver 'row-lbfgs' needs a linear model with sparse rows"):
            RowLBFGS().initial_state(objective)
    for model, message in (
        (both(Logistic(), mu=0.0)[0], r"^solver 'row-lbfgs' needs mu \+ weight > 0"),
        (both(Hinge())[0], r"^solver 'row-lbfgs' needs a smooth loss"),
    ):
        problem = LocalProblem(objective=model, weight=np.array([1.0, 2.0, 0.0, 1.0, 1.0]), center=model.zeros())
        with pytest.raises(ValueError, match=message):
            RowLBFGS()(problem, start_of(problem), Steps(steps=1))
    with pytest.raises(ValueError, match=r"^history must be at least 1"):
        RowLBFGS(history=0)
    assert a.rows.is_sparse
