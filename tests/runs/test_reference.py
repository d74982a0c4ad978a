"""Reference solutions agree with each other and refuse to answer when they are not good enough."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.linear_model import ElasticNet

import dualopt.losses
import dualopt.runs.reference
from dualopt import L1, Composite
from dualopt.losses import Huber, Squared
from dualopt.losses._offset import label_and_offset
from dualopt.objectives import linear_model
from dualopt.runs.certificates import Certificate
from dualopt.runs.reference import NotOptimalError, checked, cvxpy, minimiser, newton, solve
from dualopt.spec.discover import discover
from tests.engine.thread_communicator import on_each
from tests.problems import hinge, logistic, quadratic

LOSSES = {name: loss(**loss.example) for name, loss in discover(dualopt.losses).items()}
SMOOTH = [name for name, loss in LOSSES.items() if np.isfinite(loss.curvature) or hasattr(loss, "differentiable")]
ROUGH = [name for name in LOSSES if name not in SMOOTH]


def problem(name: str, dtype: str = "float64"):
    rng = np.random.default_rng(1)
    loss = LOSSES[name]
    X = rng.standard_normal((90, 4))
    score = X @ np.array([1.0, -0.5, 0.2, 0.0]) + 0.5 * rng.standard_normal(90)
    if loss.labels == "class":
        y = np.digitize(score, [-1.0, 0.0, 1.0])
    else:
        y = np.sign(score) if loss.labels == "binary" else np.exp(score) if hasattr(loss, "label_domain") else score
    clients = [range(20), range(20, 50), range(50, 90)]
    return linear_model(X.astype(dtype), y, loss=loss, mu=0.02, clients=clients, client_weights="rows")


@pytest.mark.parametrize("name", SMOOTH)
def test_newton_and_cvxpy_agree(name: str) -> None:
    f = problem(name)
    a, b = newton(f), cvxpy(f)
    assert a.gap <= 1e-11 * a.energy
    assert abs(a.energy - b.energy) <= a.gap + b.gap
    np.testing.assert_allclose(a.theta, b.theta, atol=1e-5)
    assert solve(f).solver == "newton"


@pytest.mark.parametrize("name", ["huber", "smoothed-hinge", "squared-hinge"])
@pytest.mark.parametrize("intercept", ["free", "none"])
def test_newton_and_cvxpy_agree_where_no_row_curves_the_loss_at_the_start(name: str, intercept: str) -> None:
    rng = np.random.default_rng(2)
    X, y = rng.standard_normal((60, 3)), rng.standard_normal(60) + 0.5
    y = y if name == "huber" else np.where(y > 0, 1.0, -1.0)
    mu = 0.02 if intercept == "free" else 0.0
    loss = Huber(delta=1e-2) if name == "huber" else LOSSES[name]
    f = linear_model(X, y, loss=loss, mu=mu, clients=[range(20), range(20, 60)], intercept=intercept)
    a, b = newton(f), cvxpy(f, tol=1e-6)
    assert a.energy == pytest.approx(b.energy, rel=1e-9)


@pytest.mark.parametrize("name", SMOOTH)
def test_solutions_of_data_in_single_precision_are_as_accurate_as_those_of_others(name: str) -> None:
    found = newton(problem(name, "float32"))
    assert found.gap <= 1e-11 * found.energy
    assert found.theta.dtype == np.float64


@pytest.mark.parametrize("name", ROUGH)
def test_nonsmooth_solutions_of_data_in_single_precision_are_those_of_the_data_as_stored(name: str) -> None:
    """Features, labels and weights of rows are rounded to 2^-24: an energy of at most 3 moves by less than 1e-6."""
    found, exact = solve(problem(name, "float32")), solve(problem(name))
    assert found.gap <= 2.0**-20 * found.energy
    assert abs(found.energy - exact.energy) <= 1e-6
    assert found.theta.dtype == np.float64


@pytest.mark.parametrize("name", ROUGH)
def test_cvxpy_certifies_nonsmooth_solutions(name: str) -> None:
    f = problem(name)
    found = solve(f, tol=1e-15)  # which is taken for 1e-7
    assert (found.solver, found.gap <= 1e-7 * found.energy) == ("cvxpy", True)
    with pytest.raises(ValueError, match="smooth"):
        newton(f)
    rng = np.random.default_rng(0)  # no nearby point is better than the certificate allows
    for scale in (1e-4, 1e-2, 1.0):
        for _ in range(50):
            assert f.value(found.theta + scale * rng.standard_normal(f.shape)).mean() >= found.energy - found.gap


def test_kinks_of_a_regulariser() -> None:
    """The elastic net of the rows of all clients together, by scikit-learn."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((60, 5))
    y = X @ np.array([2.0, 0.0, -1.0, 0.0, 0.5]) + 0.1 * rng.standard_normal(60)
    f = linear_model(X, y, loss=Squared(), mu=0.01, clients=3, intercept=False)
    found = cvxpy(Composite(objective=f, regulariser=L1(weight=0.2)))
    other = ElasticNet(alpha=0.21, l1_ratio=0.2 / 0.21, fit_intercept=False, tol=1e-14, max_iter=10**5)
    exact = np.asarray(other.fit(X, y).coef_)
    assert (exact == 0.0).tolist() == [False, True, False, True, False]
    np.testing.assert_array_equal(found.theta == 0.0, exact == 0.0)
    np.testing.assert_allclose(found.theta, exact, atol=1e-6)


def test_the_minimiser_and_the_gradient_at_zero() -> None:
    f = logistic()
    np.testing.assert_array_equal(minimiser(f)[0], minimiser(f, tol=1e-11)[0])
    assert minimiser(f)[1] == pytest.approx(np.sqrt((f.gradient(f.zeros()).mean(axis=0) ** 2).sum()), rel=1e-12)


def test_without_hessians_a_hundred_steps_of_lbfgs_are_one(monkeypatch: pytest.MonkeyPatch) -> None:
    made, own = [], dualopt.runs.reference.LBFGS
    monkeypatch.setattr(dualopt.runs.reference, "LBFGS", lambda **given: made.append(given) or own(**given))
    f = logistic()
    monkeypatch.setattr(type(f), "offers", frozenset())
    found = newton(f, max_iter=30)
    assert found.gap <= 1e-11 * found.energy
    assert made == [{"max_iter": 3000}]


def test_quadratic() -> None:
    f = quadratic()
    for found in (newton(f), cvxpy(f)):
        np.testing.assert_allclose(found.theta, f.minimiser(), atol=1e-6)


def test_without_ridge_the_gradient_is_checked() -> None:
    f = logistic(mu=0.0)
    found = newton(f)
    assert found.gap == np.inf
    assert found.gradient_norm <= 1e-11
    assert abs(found.energy - cvxpy(f, tol=1e-6).energy) <= 1e-9


@pytest.mark.parametrize("mu", [0.0, 1e-9, 0.1])
@pytest.mark.parametrize("y", [0.0, 1.0])
def test_a_minimum_of_zero(mu: float, y: float) -> None:
    """The tolerance is then one of the energy of the zero model, and ``is_positive`` says what is not certain."""
    X = np.random.default_rng(0).standard_normal((12, 3))
    f = linear_model(X, y * X @ np.ones(3), loss=Squared(), mu=mu, intercept=False)
    found = newton(f)
    assert found.is_positive == (mu > 0 and y > 0)
    assert found.energy == pytest.approx(0.0 if not found.is_positive else 1.5 * mu, abs=mu**1.5)


def test_refuses_to_answer_when_not_optimal() -> None:
    with pytest.raises(NotOptimalError, match="certified only"):
        newton(logistic(), max_iter=1)
    with pytest.raises(NotOptimalError, match="certified only"):
        cvxpy(hinge(), tol=1e-16)


def test_a_wrong_answer_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A solver that reports "optimal" for a wrong point does not get past the certificate."""
    monkeypatch.setattr(dualopt.runs.reference, "asarray_like", lambda values, like: np.asarray(values) + 1e-3)
    with pytest.raises(NotOptimalError, match="certified only"):
        cvxpy(logistic())


def test_other_objectives_are_refused() -> None:
    class Strange:
        shape = (2,)

    with pytest.raises(ValueError, match="linear model or a quadratic"):
        cvxpy(Strange())  # pyright: ignore[reportArgumentType]


INFINITE = math.inf


@pytest.mark.parametrize(
    ("bound", "zero", "accepted"),
    [  # energy, gap, norm of the gradient, rounding; energy of the zero model; is_positive, or what is said
        ((2.0, 0.19, 1.0, 0.0), 9.0, True),
        ((2.0, 0.21, 1.0, 0.0), 9.0, "certified only to a gap of 2.10e-01 where tol = 0.1 allows 2.00e-01"),
        ((2.0, 0.41, 1.0, 0.22), 9.0, True),
        ((-2.0, 0.19, 1.0, 0.0), 9.0, True),  # whose error is relative to its size
        ((-2.0, 0.21, 1.0, 0.0), 9.0, "allows 2.00e-01"),
        ((0.5, 0.5, 1.0, 0.0), 9.0, False),  # E* may be 0: what counts is the energy of the zero model
        ((0.5, 0.6, 1.0, 0.0), 3.0, "allows 5.00e-01"),
        ((0.5, 0.6, 1.0, 0.0), 4.0, False),  # 2 more of the regulariser
        ((0.5, 0.6, 0.0, 0.0), 3.0, False),  # a gradient of exactly zero needs no other proof
        ((2.0, INFINITE, 0.3, 0.0), 9.0, True),
        ((2.0, INFINITE, 0.31, 0.0), 9.0, "a gradient of norm 3.10e-01, above tol = 0.1 times 3.00e"),
        ((0.9, INFINITE, 0.3, 0.0), 7.0, False),
        ((0.9, INFINITE, 0.3, 0.0), 6.9, True),
        ((-0.1, INFINITE, 0.3, 0.0), 6.9, True),
    ],
)
def test_what_is_optimal_to_a_tenth(bound, zero, accepted, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rules by numbers: a tenth of the energy, or of that of the zero model, or of the scale of gradients."""
    energy, gap, norm, rounding = bound
    stated = Certificate(energy=energy, gap=gap, kind="dual", gradient_norm=norm, rounding=rounding)
    monkeypatch.setattr(dualopt.runs.reference, "certificate", lambda *_: stated)
    f = SimpleNamespace(
        zeros=lambda: np.zeros(2),
        value=lambda theta: np.array([0.0, 2.0 * zero]),
        mean=np.mean,
        regulariser=SimpleNamespace(value=lambda theta: 2.0),
    )
    if isinstance(accepted, str):
        with pytest.raises(NotOptimalError, match=accepted):
            checked(f, np.ones(2), 3.0000001, tol=0.1)  # pyright: ignore[reportArgumentType]
        return
    found = checked(f, np.ones(2), 3.0000001, tol=0.1)  # pyright: ignore[reportArgumentType]
    assert (found.energy, found.gap, found.gradient_norm, found.is_positive) == (energy, gap, norm, accepted)


def test_processes_find_what_one_does_which_is_checked_as_it_is_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients of unequal weights in three processes; each has the same bits."""
    kept = dualopt.runs.reference._Mean
    for name in ("_shares", "mu", "L"):  # Python 3.11 lets one thread at a time compute what is cached
        monkeypatch.setattr(kept, name, property(vars(kept)[name].func))
    X, y = np.random.default_rng(3).standard_normal((60, 4)), np.repeat([1.0, -1.0], 30)
    groups, weights = [range(5), range(5, 40), range(40, 60), range(0, 60, 7)], [5.0, 1.0, 2.0, 0.5]

    def model(clients: slice, **options):
        return linear_model(
            X, y, loss="logistic", mu=0.02, clients=groups[clients], client_weights=weights[clients], **options
        )

    parts = [slice(0, 1), slice(1, 3), slice(3, 4)]
    alone = minimiser(model(slice(None)))
    for theta, scale in on_each(3, lambda peers: minimiser(model(parts[peers.rank], peers=peers), peers=peers)):
        np.testing.assert_array_equal(theta, alone[0])
        assert scale == alone[1]
    found = checked(model(slice(None)), *alone)
    assert 0 < found.gap <= 1e-11 * found.energy
    with pytest.raises(NotOptimalError, match=r"tol = 1e-11 allows"):
        checked(model(slice(None)), alone[0] + 1e-5, alone[1])


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("offsets", [False, True])
def test_multipliers_are_allowed_for_their_rounding(name: str, offsets: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Written out, with units of rounding like 1/64: conjugates are sums over the rows of products with u, with the
    labels and offsets, with logarithms of labels, and with 1; points are sums over the rows, a little outside."""
    rng, m, d, loss = np.random.default_rng(5), [3, 8], 2, LOSSES[name]
    X = rng.standard_normal((sum(m), d))
    y = rng.exponential(size=sum(m)) + 0.2 if hasattr(loss, "label_domain") else rng.standard_normal(sum(m))
    y = np.sign(y) if loss.labels == "binary" else np.arange(sum(m)) % 3 if loss.labels == "class" else y
    if name == "poisson":
        y[4] = 0.0  # whose logarithm is taken for that of the least number
    if offsets and loss.outputs > 1:
        pytest.skip("offsets are for losses of one output")
    offset = rng.standard_normal(sum(m)) if offsets else None
    clients, weights = [range(3), range(3, 11)], rng.uniform(0.1, 2.0, sum(m))
    f = linear_model(X, y, loss=loss, mu=0.1, clients=clients, sample_weight=weights, offset=offset, intercept=False)
    theta = rng.standard_normal(f.shape)
    k = f.loss.outputs
    duals = [rng.standard_normal((k, n) if k > 1 else n) for n in m]

    def point():
        return dualopt.runs.reference._dual_point(f, theta, duals)

    monkeypatch.setattr(dualopt.runs.reference, "tiny", lambda like: 1 / 256)
    for attribute in ("gamma", "epsilon"):
        monkeypatch.setattr(dualopt.runs.reference, attribute, lambda *_: 0.0)
    exact = point()
    monkeypatch.setattr(dualopt.runs.reference, "gamma", lambda n, like: n / 1000)
    monkeypatch.setattr(dualopt.runs.reference, "epsilon", lambda like: 1 / 64)
    found = point()
    np.testing.assert_array_equal(found.dual, exact.dual)
    for j, ((X_j, y_j, w), dual) in enumerate(zip(f.client_rows(), duals, strict=True)):
        z = theta @ X_j.T if k > 1 else X_j @ theta
        u = z + dual - f.loss.prox(z + dual, y_j, 1.0)
        conjugate, (label, o) = f.loss.conjugate(u, y_j), label_and_offset(y_j)
        np.testing.assert_allclose(exact.dual[j], (w * u) @ X_j, rtol=1e-12)
        assert exact.conjugate[j] == pytest.approx(np.sum(w * conjugate), rel=1e-12)
        length = np.linalg.norm(np.atleast_2d(u), axis=0)
        size = np.ones(m[j]) if loss.labels == "class" else np.abs(label)
        if hasattr(loss, "label_domain"):
            size = size + np.abs(np.log(np.where(label > 0, label, 1 / 256)))
        size = size + 2.0 * np.abs(o)
        constant = 1.0 if loss.labels in ("binary", "class") else 0.0
        terms = np.abs(conjugate) + length * size + length**2 + constant
        room = (m[j] + 16 * k + 16) / 1000 * np.sum(w * terms)
        assert found.conjugate[j] - exact.conjugate[j] == pytest.approx(room, rel=1e-9)
        outside = k * f.loss.lipschitz / 8 if math.isfinite(f.loss.lipschitz) else 0.0
        error = np.sum(w * ((m[j] + 4) / 1000 * length + outside) * np.linalg.norm(X_j, axis=1))
        assert found.error is not None
        assert found.error[j] == pytest.approx(error, rel=1e-9)
