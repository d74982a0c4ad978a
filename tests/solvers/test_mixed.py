"""Mixed precision: local work in single precision, and nothing that leaves a client rests on it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import islice, pairwise
from typing import Any

import array_api_strict
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from dualopt import (
    L1,
    AndersonFedSplit,
    Composite,
    DualFL,
    FedAvg,
    FedDR,
    FedDyn,
    NonconvexPenalty,
    UniformSubset,
    linear_model,
    run,
)
from dualopt.engine import Blocks
from dualopt.engine.checkpoint import Checkpoint
from dualopt.engine.rounds import iterate
from dualopt.lab.contracts.solver_problems import move_problem
from dualopt.objectives.local_problem import Evaluation, LocalProblem
from dualopt.objectives.remainder import Remainder, remainder
from dualopt.problem.build import build_problem
from dualopt.problem.options import ProblemOptions
from dualopt.runs import reference
from dualopt.runs.certificates import certificate, dual_point
from dualopt.solvers import LBFGS, Gradient, NewtonCG, _mixed
from dualopt.solvers._mixed import first_state, solved
from dualopt.solvers.stopping import GradientNorm, GradientReduction, RelativeEnergy, Steps

SIZES = (3, 41, 17, 17, 90)
LOSSES = ("logistic", "multinomial", "huber", "squared-hinge")


@cache
def lopsided(loss: str = "logistic", *, storage: str = "dense", seed: int = 0, mu: float = 0.03, precision="mixed"):
    """Five clients of 3 to 90 rows, columns with units of 0.1 to 10, weights of 1 to 5."""
    rng = np.random.default_rng(seed)
    m = sum(SIZES)
    X = rng.normal(size=(m, 6)) * [1.0, 3.0, 0.1, 1.0, 1.0, 10.0] * (rng.random((m, 6)) < 0.6)
    ends = np.cumsum((0, *SIZES))
    labels = {
        "multinomial": rng.integers(0, 3, m),
        "huber": X @ rng.normal(size=6) + rng.normal(size=m),
    }
    y = labels.get(loss, np.sign(rng.normal(size=m) + X[:, 0]))
    parts = [list(range(a, b)) for a, b in pairwise(ends)]
    X = csr_array(X) if storage == "sparse" else X
    return linear_model(
        X, y, loss=loss, mu=mu, clients=parts, storage=storage, precision=precision, client_weights=[1, 2, 3, 1, 5]
    )


def point(f, size: float, seed: int = 1):
    return size * np.random.default_rng(seed).normal(size=(f.n_clients, *f.shape))


@pytest.mark.parametrize("storage", ["dense", "sparse"])
@pytest.mark.parametrize("loss", LOSSES)
def test_remainders_are_right_relative_to_themselves(loss: str, storage: str) -> None:
    """However short displacements are; differences in double precision are as right as they can be."""
    f = lopsided(loss, storage=storage)
    theta, length = point(f, 0.3), 1e-4
    d = point(f, length, 2).astype(np.float32)
    D, there = remainder(f, theta), theta + d.astype(float)
    value, gradient = D.value_and_gradient(d)
    assert value.dtype == gradient.dtype == np.float32
    f0, g0 = f.value_and_gradient(theta)
    change = f.gradient(there) - g0
    errors = np.linalg.norm((gradient - change).reshape(5, -1), axis=1) / np.linalg.norm(change.reshape(5, -1), axis=1)
    assert errors.max() < 2e-5  # of float32, where those of grad f itself would be above 1e-4 at this length
    exact = f.value(there) - f0 - np.sum((g0 * d).reshape(5, -1), axis=1)
    np.testing.assert_allclose(value, exact, rtol=1e-4, atol=1e-14)
    np.testing.assert_allclose(D.gradient(d), gradient)
    np.testing.assert_allclose(D.value(d), value)
    v = point(f, 1.0, 3)
    np.testing.assert_allclose(
        D.hessian_operator(d)(v.astype(np.float32)), f.hessian_operator(there)(v), rtol=1e-3, atol=1e-3
    )
    ids = [3, 0, 4]
    np.testing.assert_array_equal(D.select(ids).gradient(d[ids]), gradient[ids])
    np.testing.assert_array_equal(remainder(f.select(ids), theta[ids]).gradient(d[ids]), gradient[ids])


def test_predictors_are_kept() -> None:
    """Those of a pass in double precision are those of the rows, and remainders with them the same to rounding."""
    f = lopsided("multinomial")
    D, d = remainder(f, point(f, 0.3)), point(f, 0.1, 2).astype(np.float32)
    value, gradient, z = D.with_predictors(d)
    there = D.theta + d.astype(float)
    np.testing.assert_allclose(value, f.value(there), rtol=1e-14)
    np.testing.assert_allclose(gradient, f.gradient(there), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(z, remainder(f, there).predictors(), rtol=1e-5, atol=1e-4)
    assert z.shape == (5, 3, 90)
    assert z[0, :, :3].all()
    assert not z[0, :, 3:].any()
    step = point(f, 1e-3, 4).astype(np.float32)
    np.testing.assert_allclose(
        remainder(f, there, z).gradient(step), remainder(f, there).gradient(step), rtol=1e-4, atol=1e-6
    )
    ids, kept = [3, 0, 4], remainder(f, there, z)
    np.testing.assert_array_equal(kept.select(ids).gradient(step[ids]), kept.gradient(step)[ids])


def test_remainders_of_some_clients_are_theirs_in_all() -> None:
    """Points, weights, predictors and what is known of the rows, and curvatures at displaced points."""
    f = lopsided("multinomial")
    theta, d, ids = point(f, 0.3), point(f, 0.2, 2).astype(np.float32), [3, 0, 4]
    D = remainder(f, theta)
    assert D._at.arrays
    part = D.select(ids)
    np.testing.assert_array_equal(part.theta, theta[ids])
    assert part.weights == (1.0, 1.0, 5.0)
    assert part.whole.weights == part.weights
    assert part._at.arrays is D._at.arrays  # nothing is computed again
    for chosen, points in ((D, d), (part, d[ids])):
        there = chosen.theta + points.astype(float)
        for found, expected in zip(chosen.curvatures(points), chosen.whole.curvatures(there), strict=True):
            assert found.dtype == np.float32
            np.testing.assert_array_equal(found, expected.astype(np.float32))
        for found, expected in zip(chosen.curvatures(), chosen.whole.curvatures(), strict=True):
            np.testing.assert_array_equal(found, expected.astype(np.float32))


@pytest.mark.parametrize(("rows", "kept"), [(128, 128), (129, 0)])
def test_predictors_are_kept_for_64_rows_a_column(rows: int, kept: int) -> None:
    f = linear_model(np.ones((rows, 1)), np.ones(rows), loss="logistic", mu=1.0, precision="mixed")
    D = remainder(f, np.zeros((1, 2)))
    assert D.predictors().shape == D.no_predictors().shape == (1, 1, kept)
    assert D.with_predictors(np.zeros((1, 2), dtype=np.float32))[2].shape == (1, 1, kept)


def gradients(problem: LocalProblem, theta) -> np.ndarray:
    return np.linalg.norm(problem.gradient(theta).reshape(len(theta), -1), axis=1)


@pytest.mark.parametrize(
    "solver", [LBFGS(), LBFGS(precondition=False, history=3), NewtonCG(), Gradient(max_iter=20_000)]
)
@pytest.mark.parametrize("loss", LOSSES)
def test_rules_hold_in_double_precision(loss: str, solver) -> None:
    """What the rule asks for holds for gradients of rows in double precision, over calls with other linear terms."""
    f, rng = lopsided(loss), np.random.default_rng(5)
    theta, state = point(f, 1.0), first_state(solver, f)
    linear = 0.0 * theta
    for n in range(4):
        linear = linear + 10.0 ** (-2 * n) * rng.normal(size=theta.shape) * 0.1
        problem = LocalProblem(objective=f, linear=linear, weight=0.5, center=np.zeros(f.shape))
        before = gradients(problem, theta)
        found = solved(solver, problem, theta, GradientReduction(factor=0.01, first=0.01), state, None)
        assert found.status == ("converged",) * 5
        assert found.theta.dtype == found.evaluation.grad_f.dtype == np.float64
        after = gradients(problem, found.theta)
        assert (after <= 0.0101 * before).all()  # what is told of the start is right to single precision
        np.testing.assert_array_equal(found.evaluation.grad_f, f.gradient(found.theta))
        np.testing.assert_array_equal(found.evaluation.f, f.value(found.theta))
        np.testing.assert_allclose(found.gap, after**2 / (2 * 0.53), rtol=1e-6)
        theta, state = found.theta, found.solver_state
    tight = solved(solver, problem, theta, GradientNorm(tol=1e-11), state, None)
    assert gradients(problem, tight.theta).max() <= 1e-11  # a hundred times below what float32 knows at such points


def test_steps_and_energies() -> None:
    """A fixed number of steps is taken, and a rule of energies is asked in double precision."""
    f = lopsided()
    problem, start = LocalProblem(objective=f), point(f, 1.0)
    steps = solved(Gradient(), problem, start, Steps(steps=7), (), None)
    double = Gradient()(problem, start, Steps(steps=7))
    np.testing.assert_allclose(steps.theta, double.theta, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(steps.length, double.length, rtol=1e-6)
    found = solved(LBFGS(), problem, start, RelativeEnergy(tol=1e-13), (), None)
    assert gradients(problem, found.theta).max() < 1e-5


def test_double_precision_takes_over() -> None:
    """Where rounding in single precision is larger than the gradient asked for, or nothing is a number."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5)) @ np.diag([1e3, 1.0, 1.0, 1e-2, 1e3])
    X[:, 4] = X[:, 0] * (1.0 + 1e-6 * rng.normal(size=60))  # nearly the same column
    f = linear_model(X, np.sign(X[:, 1]), loss="logistic", mu=1e-6, clients=2, precision="mixed")
    problem, start = LocalProblem(objective=f), np.zeros((2, *f.shape))
    found = solved(LBFGS(), problem, start, GradientNorm(tol=1e-8), (), None)
    assert gradients(problem, found.theta).max() <= 1e-8

    class Lost(LBFGS):
        def __call__(self, problem: LocalProblem, *arguments: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
            found = super().__call__(problem, *arguments)
            single = isinstance(problem.objective, Remainder)
            return found._replace(theta=found.theta * np.float32(np.nan)) if single else found

    with np.errstate(invalid="ignore"):
        lost: Any = Lost()
        found = solved(lost, problem, start, GradientNorm(tol=1e-6), (), None)
    assert gradients(problem, found.theta).max() <= 1e-6


@pytest.mark.parametrize("method", [AndersonFedSplit(), DualFL(), FedDyn()])
def test_the_same_rounds(method) -> None:
    """To certified 1e-4 and 1e-10 the rounds are at most those of double precision and a few more."""
    for tol in (1e-4, 1e-10):
        counts = [len(run(method, lopsided("logistic", precision=p), rounds=600, tol=tol)) for p in ("double", "mixed")]
        assert counts[0] < 600
        assert counts[1] <= counts[0] + 2 + counts[0] // 20


@cache
def least(seed: int, loss: str, mu: float) -> float:
    """The minimum of E, in double precision, from below."""
    f = lopsided(loss, seed=seed, mu=mu, precision="double")
    found = certificate(f, reference.newton(f).theta)
    return found.energy - found.gap


PROBLEMS = ((0, "logistic", 0.03), (1, "multinomial", 1e-3), (2, "squared-hinge", 0.3))


def test_certificates_hold() -> None:
    """No gap is below the true error, whatever single precision did, in early and in late rounds."""
    for seed, loss, mu in PROBLEMS:
        f, minimum = lopsided(loss, seed=seed, mu=mu), least(seed, loss, mu)
        for s in certified_rounds(f):
            c = certificate(f, s.server.theta, s.solution)
            assert c.energy - minimum - c.gap <= 1e-14


@pytest.mark.parametrize(("seed", "loss", "mu"), PROBLEMS)
def test_dual_points_hold(monkeypatch, seed: int, loss: str, mu: float) -> None:
    """Their conjugates are no less than what the local solutions show; from rows in single precision some would be."""
    f = lopsided(loss, seed=seed, mu=mu)
    assert max(understated(f, s.solution) for s in certified_rounds(f)) <= 0.0

    def in_single(self) -> Evaluation:
        f = self._problem.objective
        f = replace(f, rows=f.rows.in_single)
        value, gradient = f.value_and_gradient(self._theta.astype(np.float32))
        return self._problem.extend(self._theta, value.astype(float), gradient.astype(float))

    monkeypatch.setattr(_mixed._EvaluationAtCenters, "_found", property(in_single))
    assert max(understated(f, s.solution) for s in certified_rounds(f)) > 1e-9


def certified_rounds(f) -> Iterator[Any]:
    """Every third of 24 rounds of two methods."""
    for method in (AndersonFedSplit(), DualFL()):
        yield from islice(iterate(method, f), 2, 24, 3)


def understated(f, solution) -> float:
    r"""Return by how much a conjugate is below :math:`\langle\xi_j, \theta_j\rangle - g_j(\theta_j)`."""
    point, theta = dual_point(f, solution), solution.theta
    assert point is not None
    assert point.error is not None
    value, gradient = f.value_and_gradient(theta)
    product, square = ((theta * x).sum(axis=tuple(range(1, theta.ndim))) for x in (point.dual, theta))
    allowed = point.conjugate + point.error * square**0.5 + 2.0 * f.rounding(theta, value, gradient).value
    return float((product - value + 0.5 * f.mu * square - allowed).max())


def test_single_precision_alone_would_stall(monkeypatch) -> None:
    """The bounds of rounding matter: without them the first center is kept, and gradients end far above the rule."""
    problem, start = LocalProblem(objective=lopsided()), point(lopsided(), 30.0)
    state, tol = (), 1e-9
    good = solved(LBFGS(), problem, start, GradientNorm(tol=tol), state, None)
    assert gradients(problem, good.theta).max() <= tol
    monkeypatch.setattr(_mixed, "_is_right", lambda stop, problem, round, here, *rest: here.norm == here.norm)
    bad = solved(LBFGS(), problem, start, GradientNorm(tol=tol), state, None)
    assert gradients(problem, bad.theta).max() > 30 * tol


@given(
    seed=st.integers(0, 10**6),
    scale=st.floats(-3.0, 3.0),
    mu=st.floats(-4.0, 1.0),
    loss=st.sampled_from(LOSSES),
    weight=st.sampled_from([0.0, 1e-2, 10.0]),
)
@settings(max_examples=25, deadline=None)
def test_any_local_problem(seed: int, scale: float, mu: float, loss: str, weight: float) -> None:
    """Gradients of a few rows of any units fall as the rule asks, or as far as double precision can tell."""
    rng = np.random.default_rng(seed)
    X = 10.0**scale * rng.normal(size=(12, 4)) * 10.0 ** rng.uniform(-1, 1, 4)
    y = {"multinomial": rng.integers(0, 3, 12), "huber": rng.normal(size=12)}.get(loss, np.sign(rng.normal(size=12)))
    y = np.r_[0, 1, 2, y[3:]].astype(y.dtype) if loss == "multinomial" else y
    f = linear_model(X, y, loss=loss, mu=10.0**mu, clients=[[0], [1, 2, 3], list(range(4, 12))], precision="mixed")
    start = rng.normal(size=(3, *f.shape))
    center = None if weight == 0.0 else rng.normal(size=f.shape)
    problem = LocalProblem(objective=f, linear=0.1 * rng.normal(size=start.shape), weight=weight, center=center)
    before = gradients(problem, start)
    found = solved(LBFGS(), problem, start, GradientReduction(factor=1e-3), (), None)
    for j, word in enumerate(found.status):
        reached = gradients(problem, found.theta)[j]
        assert reached <= 1.001e-3 * before[j] if word == "converged" else reached <= before[j]


def test_where_clients_are_does_not_matter(tmp_path) -> None:
    """Hosts elsewhere, cohorts and checkpoints give the same to the last bit."""
    f, few = lopsided("multinomial"), UniformSubset(size=2)
    here, there = (run(FedDyn(), f, rounds=12, participation=few, engine=e) for e in (None, Blocks(number=3)))
    np.testing.assert_array_equal(here.theta, there.theta)
    np.testing.assert_array_equal(here["certificate"], there["certificate"])
    whole = run(AndersonFedSplit(), f, rounds=12)
    kept = Checkpoint(tmp_path / "run", seconds=0)
    run(AndersonFedSplit(), f, rounds=12, checkpoint=kept, callback=lambda _, row: row["round"] == 5)
    again = run(AndersonFedSplit(), f, rounds=12, checkpoint=Checkpoint(tmp_path / "run", resume=True))
    np.testing.assert_array_equal(again.theta, whole.theta)
    with pytest.raises(ValueError, match="precision"):
        run(
            AndersonFedSplit(),
            replace(f, precision="double"),
            rounds=12,
            checkpoint=Checkpoint(tmp_path / "run", resume=True),
        )


def test_gradients_are_counted() -> None:
    """Three gradients a round are three gradients a round: those in double precision are few."""
    f = lopsided()
    double = run(FedDyn(), replace(f, precision="double"), rounds=30)
    mixed = run(FedDyn(), f, rounds=30)
    assert mixed["gradients"][-1] <= 1.15 * double["gradients"][-1]
    assert (
        run(FedAvg(), f, rounds=4)["gradients"][-1]
        >= run(FedAvg(), replace(f, precision="double"), rounds=4)["gradients"][-1]
    )


def test_a_run_with_a_regulariser_goes_on(tmp_path) -> None:
    """A regulariser is the server's: the states of solvers are those without it."""
    f = Composite(objective=lopsided(), regulariser=L1(weight=0.01))
    whole = run(FedDR(), f, rounds=8)
    kept = Checkpoint(tmp_path / "run", seconds=0)
    run(FedDR(), f, rounds=8, checkpoint=kept, callback=lambda _, row: row["round"] == 3)
    again = run(FedDR(), f, rounds=8, checkpoint=Checkpoint(tmp_path / "run", resume=True))
    np.testing.assert_array_equal(again.theta, whole.theta)


def test_clients_of_many_rows_and_few_columns() -> None:
    """Their predictors are not kept from call to call, and rounds are those of double precision."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 3)) * [1.0, 5.0, 0.2]
    y, parts = np.sign(X[:, 0] + rng.normal(size=900)), [list(range(300)), list(range(300, 900))]
    mixed, double = (
        run(DualFL(), linear_model(X, y, loss="logistic", mu=0.1, clients=parts, precision=p), rounds=99, tol=1e-10)
        for p in ("mixed", "double")
    )
    assert 600 > 64 * 4  # columns, and the intercept
    assert mixed.status == double.status == "converged"
    assert len(mixed) <= len(double) + 2
    np.testing.assert_allclose(mixed.theta, double.theta, rtol=1e-4, atol=1e-5)


def test_another_library() -> None:
    """Arrays of another library that follows the standard give the same to rounding."""
    f = lopsided("multinomial")
    g = move_problem(LocalProblem(objective=f), array_api_strict.asarray).objective
    found, other = (run(FedDyn(), h, rounds=6, certify_every=1) for h in (f, g))
    np.testing.assert_allclose(np.asarray(other.theta), found.theta, rtol=1e-4, atol=1e-5)


def test_what_does_not_go_together() -> None:
    """Refused in one sentence; where an objective has no remainder, or a solver needs samples, all is as without."""
    X, y = np.ones((4, 2)), np.array([1.0, -1.0, 1.0, -1.0])
    with pytest.raises(ValueError, match=r"precision must be one of double, mixed, not half"):
        linear_model(X, y, loss="logistic", mu=1.0, precision="half")
    with pytest.raises(ValueError, match="precision must be double for features in single precision"):
        linear_model(X.astype(np.float32), y, loss="logistic", mu=1.0, precision="mixed")
    with pytest.raises(ValueError, match=r"precision must be double where X has entries above .* scale X"):
        linear_model(1e30 * X, y, loss="logistic", mu=1.0, precision="mixed")
    refused: list[dict[str, Any]] = [{"model": "mlp=5"}, {"penalty": 0.1}]
    for more in refused:
        with pytest.raises(ValueError, match="precision must be double for networks and with a penalty"):
            build_problem(ProblemOptions(data="digits", rows=100, clients=2, precision="mixed", **more))
    with pytest.raises(ValueError, match="precision must be one of double, mixed; not 'single'"):
        build_problem("problem: digits, rows=100, precision=single")
    assert "remainder" in build_problem("problem: digits, rows=100, clients=2, precision=mixed").objective.offers
    f = lopsided()
    assert "remainder" not in NonconvexPenalty(objective=f, lam=0.1).offers | replace(f, precision="double").offers
    sampled, same = (
        run("fedavg: solver=(sgd: step=0.01, batch=2)", g, rounds=3) for g in (f, replace(f, precision="double"))
    )
    np.testing.assert_array_equal(sampled.theta, same.theta)
