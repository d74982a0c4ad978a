"""Objectives in the coordinates of a metric: the same functions of other variables."""

from __future__ import annotations

import pickle
from types import SimpleNamespace

import numpy as np
import pytest
from model_instances import model, on, points, rows

from dualopt.arrays.xp import to_numpy
from dualopt.losses import Logistic, Multinomial, Squared
from dualopt.objectives import LocalProblem, Quadratic
from dualopt.objectives._rounding import Rounding, gamma
from dualopt.objectives.coordinates import (
    LANCZOS_STEPS,
    InCoordinates,
    Metric,
    _largest_eigenvalues,
    in_coordinates,
    moments_product,
)
from dualopt.runs.reference import newton
from dualopt.solvers import LBFGS, default_solver
from dualopt.solvers.stopping import GradientNorm

LOSSES = {"logistic": Logistic(), "multinomial": Multinomial(classes=3)}
every_loss = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)


def assert_close(actual, expected, *, rtol: float = 1e-10) -> None:
    """Equality up to some thousand roundings of matrices of condition up to 1e3, relative to the largest entry."""
    np.testing.assert_allclose(actual, expected, rtol=0.0, atol=rtol * float(np.max(np.abs(expected))))


def metric(p: int, r: int | None = None, array=np.array) -> Metric:
    r = p if r is None else r
    Q = np.linalg.qr(np.random.default_rng(2).standard_normal((p, p)))[0]
    return Metric(array(Q[:r]), array(np.geomspace(20.0, 2.0, r)), 0.5)


def single(numbers) -> np.ndarray:
    return np.array(numbers, dtype=np.float32)


def dense(M: Metric, exponent: float) -> np.ndarray:
    """A power of the matrix, by its own eigenvalues."""
    U, values, rest = M
    matrix = rest * np.eye(U.shape[1]) + U.T @ np.diag(values - rest) @ U
    found, vectors = np.linalg.eigh(matrix)
    return vectors @ np.diag(found**exponent) @ vectors.T


def largest_hessians(f) -> np.ndarray:
    """The bound ``c X'WX + ridge`` of the Hessians."""
    moments = np.stack([(X * w[:, None]).T @ X for X, _, w in f.client_rows()])
    return f.loss.curvature * moments + f.ridge * np.eye(f.n_features)


@every_loss
@pytest.mark.parametrize("r", [2, None])
def test_values_and_derivatives(loss, r, backend):
    data = rows(loss)
    plain = model(loss, data)
    p = plain.n_features
    M, C = metric(p, r), dense(metric(p, r), -0.5)
    f = InCoordinates(objective=model(loss, on(backend, data)), metric=metric(p, r, backend))
    w, v = points(plain), points(plain, seed=2)
    like = backend(w)
    theta = w @ C
    sample = tuple(np.array([0, m - 1]) for m in plain.sizes)
    results = {
        "value": (f.value(like), plain.value(theta)),
        "gradient": (f.gradient(like), plain.gradient(theta) @ C),
        "value too": (f.value_and_gradient(like)[0], plain.value(theta)),
        "gradient too": (f.value_and_gradient(like)[1], plain.gradient(theta) @ C),
        "hessian": (f.hessian_operator(like)(backend(v)), plain.hessian_operator(theta)(v @ C) @ C),
        "sample": (f.sample_gradient(like, sample), plain.sample_gradient(theta, sample) @ C),
        "one point": (f.value(backend(w[0])), plain.value(theta[0])),
        "there and back": (f.coordinates(f.model(like)), w),
        "L": (f.L, np.linalg.eigvalsh(C @ largest_hessians(plain) @ C)[:, -1]),
        "mu": (f.mu, plain.mu / np.max(M.values)),
    }
    for result, expected in results.values():
        assert_close(to_numpy(result), expected)
    assert (f.n_clients, f.shape, f.offers) == (plain.n_clients, plain.shape, {"hessian", "samples", "preconditioner"})


@every_loss
@pytest.mark.parametrize("weight", [0.0, 0.7, "each"])
@pytest.mark.parametrize("r", [2, None])
def test_the_preconditioner_is_the_inverse_of_a_typical_hessian(loss, weight, r, backend):
    data = rows(loss)
    plain = model(loss, data)
    p = plain.n_features
    C = dense(metric(p, r), -0.5)
    f = InCoordinates(objective=model(loss, on(backend, data)), metric=metric(p, r, backend))
    weights = np.linspace(0.1, 3.0, f.n_clients) if weight == "each" else weight * np.ones(f.n_clients)
    typical = 0.2 * (largest_hessians(plain) - plain.ridge * np.eye(p)) + plain.ridge * np.eye(p)
    H = C @ typical @ C + weights[:, None, None] * np.eye(p)
    v = points(plain)
    expected = np.linalg.solve(H, np.swapaxes(v.reshape(f.n_clients, -1, p), 1, 2))
    product = f.preconditioner(backend(weights) if weight == "each" else weight)(backend(v))
    assert_close(to_numpy(product), np.swapaxes(expected, 1, 2).reshape(v.shape))


def test_preconditioners_of_two_weights_do_not_mix():
    f = InCoordinates(objective=model(Logistic()), metric=metric(model(Logistic()).n_features, 2))
    v = points(f.objective)
    first, other = f.preconditioner(0.3)(v), f.preconditioner(2.0)(v)
    fresh = InCoordinates(objective=model(Logistic()), metric=f.metric)
    assert f.preconditioner(0.3)(v).tolist() == first.tolist() == fresh.preconditioner(0.3)(v).tolist()
    assert f.select([1]).preconditioner(2.0)(v[[1]]).tolist() == other[[1]].tolist()


def test_local_solutions_are_those_of_the_model():
    plain = model(Logistic(), mu=0.1)
    f = InCoordinates(objective=plain, metric=metric(plain.n_features, 2))
    assert isinstance(default_solver(f), LBFGS)
    for precondition in (True, False):
        solver = LBFGS(precondition=precondition)
        start = np.zeros((f.n_clients, *f.shape))
        found = solver(LocalProblem(objective=f), start, GradientNorm(tol=1e-11))
        expected = solver(LocalProblem(objective=plain), start, GradientNorm(tol=1e-11))
        assert_close(f.model(found.theta), expected.theta, rtol=1e-9)
        assert (found.gap < 1e-15).all()


def test_survives_pickling_without_what_is_kept():
    f = InCoordinates(objective=model(Logistic()), metric=metric(model(Logistic()).n_features, 2))
    v = points(f.objective)
    expected = f.preconditioner(0.3)(v)
    again = pickle.loads(pickle.dumps(f.select([3, 1])))
    assert again._store is None
    assert again.preconditioner(0.3)(v[[3, 1]]).tolist() == expected[[3, 1]].tolist()


def test_sparse_rows_are_the_same_rows():
    sparse = pytest.importorskip("scipy.sparse")
    data = rows(Logistic())
    plain = model(Logistic(), data)
    thin = model(Logistic(), data._replace(X=sparse.csr_array(data.X)), storage="sparse")
    M = metric(plain.n_features, 2)
    f, g = InCoordinates(objective=plain, metric=M), InCoordinates(objective=thin, metric=M)
    w = points(plain)
    assert thin.rows.is_sparse
    assert_close(g.gradient(w), f.gradient(w))
    assert_close(g.L, f.L)
    assert_close(g.preconditioner(0.3)(w), f.preconditioner(0.3)(w))
    assert_close(moments_product(thin, np.eye(plain.n_features)[None]), moments_product(plain, np.eye(5)[None]))


@every_loss
def test_errors_of_values_and_gradients_are_within_their_bounds(loss):
    """Compare with the same formulas in extended precision, at large points, where the change of coordinates rounds."""
    if np.finfo(np.longdouble).eps > 1e-18:
        pytest.skip("no extended precision here")
    plain = model(loss)
    M = metric(plain.n_features, 2)
    f, w = InCoordinates(objective=plain, metric=M), 30.0 * points(plain)
    U, values, rest = (np.asarray(x, dtype=np.longdouble) for x in M)

    def back(x):
        return rest**-0.5 * x + ((x @ U.T) * (values**-0.5 - rest**-0.5)) @ U

    theta = back(w.astype(np.longdouble))
    value, gradient = f.value_and_gradient(w)
    bounds = f.rounding(w, value, gradient)
    for j, (X, y, weights) in enumerate(plain.client_rows()):
        z = np.asarray(X, dtype=np.longdouble) @ np.atleast_2d(theta[j]).T
        if loss.outputs == 1:
            losses, slopes = np.logaddexp(0, -y * z[:, 0])[:, None], (-y / (1 + np.exp(y * z[:, 0])))[:, None]
        else:
            top = np.max(z, axis=1, keepdims=True)
            share = np.exp(z - top) / np.sum(np.exp(z - top), axis=1, keepdims=True)
            chosen = np.arange(z.shape[1]) == y[:, None]
            losses = (top[:, 0] + np.log(np.sum(np.exp(z - top), axis=1)) - np.sum(z * chosen, axis=1))[:, None]
            slopes = share - chosen
        exact = np.sum(weights * losses[:, 0]) + 0.5 * plain.ridge * np.sum(theta[j] ** 2)
        slope = ((weights[:, None] * slopes).T @ X).reshape(theta[j].shape) + plain.ridge * theta[j]
        assert abs(value[j] - exact) <= bounds.value[j]
        assert np.linalg.norm((gradient[j] - back(slope)).astype(float)) <= bounds.gradient[j]


def test_bounds_of_errors_are_not_far_too_large():
    plain = model(Logistic())
    f, w = InCoordinates(objective=plain, metric=metric(plain.n_features, 2)), points(plain)
    value, gradient = f.value_and_gradient(w)
    assert (f.rounding(w, value, gradient).value < 1e-10 * np.abs(value)).all()


def test_bounds_of_errors_are_the_sums_of_their_terms():
    """In single precision, at points so large that each term is seen, and at zero, where only underflow is left."""
    p, r = 4, 2
    M = metric(p, r, single)
    c, b = (float(x) for x in (np.max(1.0 / np.sqrt([*M.values, M.rest])), np.sqrt(np.max(M.values))))
    plain = SimpleNamespace(mu=single([-0.5, 2.0]), mu_rounding=single([3e-5, 4e-5]), shape=(p,), free_intercept=False)
    own = Rounding(single([0.3, 0.0]), single([0.7, 0.0]))
    asked = []
    plain.rounding = lambda *given: asked.append(given) or own
    f = InCoordinates(objective=plain, metric=M)
    w, value = np.zeros((2, p), dtype=np.float32), np.zeros(2, dtype=np.float32)
    w[0], slope = 2e4, np.zeros((2, p), dtype=np.float32)
    slope[0] = 0.25, -0.5, 1.0, 0.125
    found = f.rounding(w, value, slope)
    np.testing.assert_array_equal(asked[0][2], np.float32(b) * slope)
    unit = gamma(8 * (r + p) + 16, w) * (1.0 + np.sqrt(r * p))
    delta, steep = unit * c * np.linalg.norm(w[0].astype(float)), b * (1.0 + unit) * np.linalg.norm(slope[0])
    room = p * float(np.finfo(np.float32).tiny) * (1.0 + c) * (1.0 + b)
    np.testing.assert_allclose(found.value, [0.3 + (steep + 0.7) * delta + 0.5 * 0.5 * delta**2, room], rtol=1e-5)
    np.testing.assert_allclose(found.gradient, [c * (0.7 + unit * steep + 0.5 * delta), room], rtol=1e-6)
    largest, unit = float(np.max(M.values)), gamma(8 * r * p + 8, w)
    np.testing.assert_allclose(f.mu_rounding, (plain.mu_rounding + unit * single([0.5, 2.0])) / largest, rtol=1e-6)


def test_largest_eigenvalues_of_large_matrices():
    """With a second eigenvalue of half the size, Lanczos' method has the first to rounding after its 40 steps."""
    Q = np.linalg.qr(np.random.default_rng(0).standard_normal((3 * LANCZOS_STEPS,) * 2))[0]
    values = np.linspace(0.0, 0.5, 3 * LANCZOS_STEPS) * np.ones((2, 1))
    values[:, -1] = 1.0, 3.0
    A = Q @ (values[:, :, None] * Q.T)
    found = _largest_eigenvalues(lambda v: v @ A, 2, 3 * LANCZOS_STEPS, A)
    np.testing.assert_allclose(found, [1.0, 3.0], rtol=1e-12)


def test_quadratics_stay_quadratics(backend):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((3, 4, 4))
    A = A @ np.swapaxes(A, 1, 2) + np.eye(4)
    plain = Quadratic(A=A, b=rng.standard_normal((3, 4)), c=np.array([1.0, 2.0, 3.0]))
    f = in_coordinates(Quadratic(A=backend(plain.A), b=backend(plain.b), c=backend(plain.c)), metric(4, 2, backend))
    assert isinstance(f, Quadratic)
    C, w = dense(metric(4, 2), -0.5), rng.standard_normal((3, 4))
    assert_close(to_numpy(f.value(backend(w))), plain.value(w @ C))
    assert_close(to_numpy(f.gradient(backend(w))), plain.gradient(w @ C) @ C)
    assert_close(to_numpy(f.minimiser()) @ C, plain.minimiser())


def test_a_weight_is_suggested_from_the_largest_constant():
    plain = model(Squared())
    f = InCoordinates(objective=plain, metric=metric(plain.n_features))
    assert f.usual_weight == pytest.approx(0.12 * np.sqrt(np.max(f.L)))
    assert plain.usual_weight is None


def test_the_minimum_is_the_same():
    plain = model(Logistic(), mu=0.1)
    f = InCoordinates(objective=plain, metric=metric(plain.n_features, 2))
    assert newton(f, tol=1e-10).energy == pytest.approx(newton(plain, tol=1e-10).energy, rel=1e-10)
