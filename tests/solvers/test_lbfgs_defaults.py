"""Pairs and preconditioner of L-BFGS where nobody says which; the end of a search that fails."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from solver_instances import first, linear, local_problem, quadratic, starts
from test_line_search import Curves

from dualopt.arrays.tree import take_clients
from dualopt.engine.rounds import resolve
from dualopt.losses import Hinge, Logistic, Multinomial, Poisson
from dualopt.methods import AFedPD, FedAvg, FedDyn, SampledDualFL
from dualopt.methods.participation import UniformSubset
from dualopt.objectives import LinearModel, LocalProblem, Quadratic, linear_model, reweighted
from dualopt.objectives._sparse import LARGEST_GRAM
from dualopt.solvers import LBFGS, DualCoordinate, Exact, RowLBFGS, default_solver, lbfgs
from dualopt.solvers._default import is_wide
from dualopt.solvers.lbfgs import Pairs, is_tiny, usual_history
from dualopt.solvers.stopping import GradientNorm, Steps


def sized(rows: int, columns: int, classes: int = 1) -> Any:
    """Return a linear model of which the sizes alone are there."""
    model = object.__new__(LinearModel)
    loss = Logistic() if classes == 1 else Multinomial(classes=classes)
    vars(model).update(loss=loss, ridge=0.1, rows=SimpleNamespace(max_rows=rows, n_features=columns))
    return model


@pytest.mark.parametrize(
    ("sparse", "rows", "columns", "ridge", "wide"),
    [
        (True, LARGEST_GRAM + 1, LARGEST_GRAM + 2, 0.1, True),
        (False, LARGEST_GRAM + 1, LARGEST_GRAM + 2, 0.1, False),
        (True, LARGEST_GRAM, LARGEST_GRAM + 2, 0.1, False),
        (True, LARGEST_GRAM + 1, LARGEST_GRAM + 1, 0.1, False),
        (True, LARGEST_GRAM + 1, LARGEST_GRAM + 2, 0.0, False),
    ],
)
def test_vectors_live_in_the_space_of_the_rows_where_they_are_shorter_there(
    sparse: bool, rows: int, columns: int, ridge: float, wide: bool
) -> None:
    known = SimpleNamespace(is_sparse=sparse, max_rows=rows, n_features=columns)
    model: Any = SimpleNamespace(rows=known, ridge=ridge, free_intercept=False)
    assert is_wide(model) is wide
    model.free_intercept = True
    assert not is_wide(model)


def test_the_default_of_wide_sparse_rows_needs_a_smooth_loss_and_not_the_scales_of_the_clients() -> None:
    rows = 2 * LARGEST_GRAM + 2
    X = sparse.random(rows, LARGEST_GRAM + 3, 0.002, "csr", None, np.random.default_rng(0))  # rng has two names
    common = {"y": np.resize([1.0, -1.0, -1.0], rows), "mu": 0.1, "clients": 2, "storage": "sparse"}
    smooth, kinks = (linear_model(X, loss=loss, **common) for loss in (Logistic(), Hinge()))
    found = [default_solver(f) for f in (smooth, reweighted(smooth, [3.0, 1.0]), kinks, quadratic())]
    assert found == [RowLBFGS(), RowLBFGS(), DualCoordinate(), Exact()]


@pytest.mark.parametrize(
    ("sizes", "history"),
    [
        ((10, 2), 10),
        ((50, 11), 20),
        ((71, 31), 40),
        ((20, 21), 10),
        ((225, 65, 10), 10),
        ((4070, 124), 40),
        ((7500, 785, 10), 40),
        # five hundred numbers are few for any client, and two pairs for each number of the model are enough
        *[((1, 9), 10), ((1, 10), 20), ((1, 12), 20), ((1, 13), 10), ((99, 19), 20), ((99, 20), 40)],
        # otherwise the pairs are at most the data where these are tiny, and twice the data where they are not
        *[((46, 22), 20), ((47, 22), 40), ((20, 50), 10), ((21, 50), 20)],
        *[((40, 100), 40), ((39, 100), 20), ((20, 100), 20), ((19, 100), 10), ((40, 50, 2), 20)],
        # 16,000 numbers are read in hardly any time
        *[((100, 204), 40), ((100, 205), 20), ((100, 409), 20), ((100, 410), 10)],
        # and more are few beside eight times as many
        *[((640, 1000), 40), ((639, 1000), 20), ((320, 1000), 20), ((319, 1000), 10)],
    ],
)
def test_usual_history(sizes, history):
    assert usual_history(sized(*sizes)) == history


@pytest.mark.parametrize(
    ("sizes", "fraction", "history"),
    [
        ((50, 11), 0.099, 5),
        ((50, 11), 0.1, 20),
        ((31, 33), 0.01, 5),
        ((32, 32), 0.01, 20),
        ((20, 21, 10), 0.01, 5),
    ],
)
def test_tiny_clients_that_come_seldom_keep_few_pairs(sizes, fraction, history):
    assert usual_history(sized(*sizes), fraction) == history


def test_the_solver_of_a_run_follows_its_participation() -> None:
    f = linear(Logistic(), sizes=(9,) * 30, d=4)
    for method in (FedDyn(), SampledDualFL(), AFedPD()):
        seldom, often = (resolve(method, f, UniformSubset(size=n)).solver for n in (2, 3))
        assert (seldom, often) == (LBFGS(history=5, precondition=False), LBFGS(history=10, precondition=False))
    assert resolve(FedDyn(solver=LBFGS(history=7)), f, UniformSubset(size=2)).solver == LBFGS(history=7)
    assert resolve(FedAvg(), f, UniformSubset(size=2)).solver == FedAvg().suggested(f).solver


@pytest.mark.parametrize(("loss", "rows"), [(Logistic(), 9), (Logistic(), 300), (Poisson(), 9)])
def test_the_first_step_of_tiny_clients_is_the_best_fixed_one(loss: Any, rows: int) -> None:
    """It is 2/(L + mu) of each local problem, tried first; another of the client that has a pair; 1 elsewhere."""
    f = linear(loss, sizes=(rows, rows, rows - 2), d=4)
    weights = np.array([2.0, 0.3, 7.0])
    problem = LocalProblem(objective=f, weight=weights, center=np.ones(f.shape))
    solver, start = LBFGS(precondition=False), 0.01 * starts(problem)
    state = solver.initial_state(f)
    known = solver(problem, start, Steps(steps=1)).solver_state.pairs
    pairs = (np.concatenate([own[:1], none[1:]]) for own, none in zip(known, state.pairs, strict=True))
    found = solver(problem, start, Steps(steps=1), state._replace(pairs=Pairs(*pairs)))
    gradient = problem.gradient(start)
    tiny = rows == 9 and isinstance(loss, Logistic)
    steps = 2.0 / (f.L + f.mu + 2.0 * weights) if tiny else np.ones(3)
    lengths = (found.theta - start) / (-steps[:, None] * gradient)
    np.testing.assert_allclose(lengths[1:], lengths[1:, :1] + np.zeros(f.shape), rtol=1e-9)
    assert np.ptp(lengths[0]) > 1e-3
    at_once = np.array(found.gradients[1:]) == 2.0
    assert at_once.tolist() == {9: [True, True], 300: [True, False]}[rows] or isinstance(loss, Poisson)
    np.testing.assert_allclose(lengths[1:, 0][at_once], 1.0, rtol=1e-12)
    assert (lengths[1:, 0][~at_once] <= 0.5).all()
    plain = LocalProblem(objective=f)
    moved = solver(plain, start, Steps(steps=1)).theta - start + plain.gradient(start)
    assert loss == Poisson() or np.abs(moved).max() < 1e-15  # no proximal term, and the step 1


def test_history_where_there_are_no_rows():
    assert usual_history(quadratic()) == 20
    assert LBFGS().initial_state(quadratic()).pairs.s.shape == (5, 20, 4)
    assert LBFGS(history=3).initial_state(quadratic()).pairs.y.shape == (5, 3, 4)


@pytest.mark.parametrize(("sizes", "tiny"), [((1, 1023), True), ((31, 33), True), ((32, 32), False), ((2, 513), False)])
def test_tiny_data(sizes, tiny):
    assert is_tiny(sized(*sizes)) == tiny


@pytest.mark.parametrize("rows", [8, 300])
def test_the_preconditioner_is_left_out_for_tiny_data_alone(rows):
    f = linear(Logistic(), sizes=(rows, rows), d=4)
    problem = local_problem(f, "all")
    theta = {
        wanted: LBFGS(precondition=wanted)(problem, starts(problem), Steps(steps=2), (), first(2)).theta.tobytes()
        for wanted in (None, True, False)
    }
    assert theta[True] != theta[False]
    assert theta[None] == theta[rows == 300]


def test_a_search_that_fails_is_a_stall():
    """There is a value where it begins, and nowhere else."""
    problem = LocalProblem(objective=Curves((lambda x: 1.0 if x == 0 else np.inf, lambda x: -1.0), mu=-np.inf))
    found = LBFGS()(problem, np.zeros((1, 1)), GradientNorm(tol=0.5))
    assert found.status == ("stalled",)
    assert found.gradients == (31.0,)
    assert found.theta[0, 0] == 0.0


def test_a_step_without_positive_curvature_leaves_no_pair():
    """Of clients that bend down, not at all, and upwards along a step, the last one alone has a pair."""
    f = Quadratic(A=np.array([[[-2.0]], [[0.0]], [[0.5]]]), b=np.array([[3.0], [1.0], [-2.0]]))
    solver = LBFGS(history=2, precondition=False)
    found = solver(LocalProblem(objective=f), np.zeros((3, 1)), Steps(steps=1))
    s, y = -2.0, -1.0  # <s, y> = 2
    none, pairs = np.zeros((2, 2)), found.solver_state.pairs
    np.testing.assert_allclose(pairs.s[..., 0], [*none, [s / 2.0**0.5, 0.0]], rtol=1e-14)
    np.testing.assert_allclose(pairs.y[..., 0], [*none, [y / 2.0**0.5, 0.0]], rtol=1e-14)
    np.testing.assert_allclose(pairs.scale, [0.0, 0.0, 2.0], rtol=1e-14)


@pytest.mark.parametrize("large", [0, 2**15])
def test_pairs_that_are_handed_in_stay_as_they_are(monkeypatch: pytest.MonkeyPatch, large: int) -> None:
    """Two calls from one state agree, and its pairs are those of before, whether clients are kept together or not."""
    monkeypatch.setattr(lbfgs, "LARGE", large)
    f = linear(Logistic(), sizes=(4, 9, 5, 7), d=3)
    problem = local_problem(f, "all")
    solver = LBFGS(history=3)
    given = solver(problem, starts(problem), Steps(steps=2), (), first(4)).solver_state
    copies = [x.tobytes() for x in given.pairs]
    end = GradientNorm(tol=1e-9)
    found = [solver(problem, 0.0 * starts(problem), end, given, first(4)) for _ in range(2)]
    assert len(set(found[0].gradients)) > 1  # some are finished before others
    assert [x.tobytes() for x in given.pairs] == copies
    assert [x.tobytes() for x in found[0].solver_state.pairs] == [x.tobytes() for x in found[1].solver_state.pairs]
    alone = [
        solver(problem.select([j]), 0.0 * starts(problem)[j : j + 1], end, take_clients(given, [j])) for j in range(4)
    ]
    for j, own in enumerate(alone):
        assert own.theta.tobytes() == found[0].theta[j].tobytes()
        for x, y in zip(own.solver_state.pairs, found[0].solver_state.pairs, strict=True):
            assert x.tobytes() == y[j : j + 1].tobytes()
