"""Sparse rows give what dense rows give, to rounding, for every loss and whatever a CSR matrix holds."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys

import numpy as np
import pytest
from model_instances import EPS, LOSSES
from sparse_instances import Pair, holes, messy, pair, points, rounding, sparse

from dualopt.arrays.xp import to_numpy
from dualopt.losses import Hinge, Logistic, Multinomial, Squared
from dualopt.objectives import ClientRows, LocalProblem, _sparse, linear_model, mlp
from dualopt.objectives._products import row_norms

every_loss = pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)


def dense(x):
    """Return a host array of a matrix of either kind."""
    return x.toarray() if sparse.issparse(x) else to_numpy(x)


def assert_equal(both: Pair, theta: np.ndarray, what) -> None:
    """Compare what a function of the model returns."""
    a, b = what(both.sparse), what(both.dense)
    np.testing.assert_allclose(a, b, rtol=0, atol=rounding(both.dense, theta))


@every_loss
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("intercept", [True, False])
def test_values_and_derivatives(loss, dtype, intercept):
    both = pair(loss, dtype=dtype, intercept=intercept)
    theta, v = points(both.dense), points(both.dense, seed=2)
    assert both.sparse.rows.is_sparse
    assert not both.dense.rows.is_sparse
    assert both.sparse.shape == both.dense.shape
    assert both.sparse.gradient(theta).dtype == dtype
    assert_equal(both, theta, lambda f: f.value(theta))
    assert_equal(both, theta, lambda f: f.gradient(theta))
    assert_equal(both, theta, lambda f: f.value_and_gradient(theta[0])[1])
    larger = np.maximum(np.abs(theta), np.abs(v))
    assert_equal(both, larger, lambda f: f.hessian_product(theta, v))


@every_loss
def test_samples(loss):
    """Rows drawn twice, samples of unequal lengths, samples of every row."""
    both = pair(loss)
    theta = 4.0 * points(both.dense)  # the weights of a sample are up to four times those of the rows
    rng = np.random.default_rng(3)
    draws = [np.array([0, 0]), np.array([6, 1, 6]), np.array([2]), np.array([0, 0, 0]), np.arange(12)]
    for sample in (
        (*draws, rng.integers(0, 7, 2), np.array([1])),
        both.dense.draw([rng] * 7, None),
        both.dense.draw([rng] * 7, 4),
    ):
        assert_equal(both, theta, lambda f, s=sample: f.sample_gradient(theta, s) / 4)


@every_loss
def test_constants_and_inverses(loss):
    both = pair(loss)
    v = points(both.dense)
    if np.isfinite(loss.curvature):
        np.testing.assert_allclose(both.sparse.L, both.dense.L, rtol=1e-13)  # 13 rows or 7 columns: 30 eps
    np.testing.assert_array_equal(both.sparse.mu, both.dense.mu)
    # the inverse has a condition number below 1 + 5 L / 0.3 < 1000: 1000 times 40 additions times eps
    for weight in (0.2, np.linspace(0.2, 1, 7)):
        a, b = both.sparse.preconditioner(weight)(v), both.dense.preconditioner(weight)(v)
        np.testing.assert_allclose(a, b, rtol=0, atol=4e4 * 2.3e-16 * np.abs(b).max())


def test_normal_equations():
    both = pair(Squared())
    linear = points(both.dense)
    a, b = (f.exact_minimiser(LocalProblem(objective=f, linear=linear, weight=0.3, center=f.zeros())) for f in both)
    np.testing.assert_allclose(a, b, rtol=0, atol=4e4 * 2.3e-16 * np.abs(b).max())


@every_loss
def test_weights(loss):
    both = pair(loss, weights=np.random.default_rng(0).random(36))
    theta = points(both.dense)
    assert_equal(both, theta, lambda f: f.gradient(theta) / 36)


@every_loss
@pytest.mark.parametrize("ids", [[3], [4, 0, 2], [6, 5, 4, 3, 2, 1, 0], list(range(7))])
def test_selected_clients_and_copies(loss, ids):
    both = pair(loss)
    theta = points(both.dense)[ids]
    part = Pair(*(f.select(ids) for f in both))
    assert_equal(part, theta, lambda f: f.value_and_gradient(theta)[1])
    np.testing.assert_array_equal(part.sparse.gradient(theta), both.sparse.gradient(points(both.dense))[ids])
    copy = pickle.loads(pickle.dumps(part.sparse))
    np.testing.assert_array_equal(copy.gradient(theta), part.sparse.gradient(theta))
    assert len(pickle.dumps(both.sparse.select([3]))) < len(pickle.dumps(both.sparse))


def test_client_rows_are_those_of_the_matrix():
    both = pair(Logistic())
    for (X, y, w), (X0, y0, w0) in zip(both.sparse.client_rows(), both.dense.client_rows(), strict=True):
        np.testing.assert_array_equal(X.toarray(), X0)
        np.testing.assert_array_equal(y, y0)
        np.testing.assert_array_equal(w, w0)


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "lil", "dok", "bsr"])
@pytest.mark.parametrize("family", ["array", "matrix"])
def test_every_format_is_converted(kind, family):
    X = holes(12, 5)
    y = np.ones(12)
    given = getattr(sparse, f"{kind}_{family}")(X)
    f = linear_model(given, y, loss=Logistic(), mu=0.1, clients=3, storage="sparse")
    assert f.rows.is_sparse
    np.testing.assert_array_equal(np.concatenate([X.toarray()[:, :-1] for X, _, _ in f.client_rows()]), X)


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_the_matrix_that_is_passed_is_not_changed(index):
    X = messy(holes(12, 5), index=index)
    before = [part.copy() for part in (X.data, X.indices, X.indptr)]
    f = linear_model(X, np.ones(12), loss=Logistic(), mu=0.1, clients=3, storage="sparse")
    X.data[:] *= 7  # and the model does not see later changes
    assert not np.array_equal(X.data, before[0])
    np.testing.assert_array_equal(X.indices, before[1])
    np.testing.assert_array_equal(X.indptr, before[2])
    again = np.concatenate([rows.toarray()[:, :-1] for rows, _, _ in f.client_rows()])
    np.testing.assert_array_equal(again, holes(12, 5))


def test_flags_of_the_matrix_are_not_trusted():
    X = messy(holes(12, 5))
    X.has_canonical_format = True  # which it is not: entries occur twice
    f = linear_model(X, np.ones(12), loss=Logistic(), mu=0.1, storage="sparse", intercept=False)
    ((rows, _, _),) = f.client_rows()
    np.testing.assert_array_equal(rows.toarray(), holes(12, 5))


def test_large_clients_use_lanczos_and_the_diagonal(monkeypatch):
    """Above the limit the largest eigenvalue is the same, and the preconditioner the inverse of the diagonal."""
    monkeypatch.setattr(_sparse, "LARGEST_GRAM", 0)
    for weights in (None, np.random.default_rng(0).random(36)):
        both = pair(Logistic(), weights=weights)
        np.testing.assert_allclose(both.sparse.L, both.dense.L, rtol=1e-13)
        v = points(both.dense)
        applied = both.sparse.preconditioner(0.5)(v)
        for j, (X, _, w) in enumerate(both.dense.client_rows()):
            diagonal = 0.2 * 0.25 * (w @ X**2) + 0.6
            np.testing.assert_allclose(applied[j], v[j] / diagonal, rtol=1e-13)


@pytest.mark.parametrize(("d", "mu"), [(6, 0.1), (20, 0.1), (6, 0.0)], ids=["tall", "wide", "raised"])
def test_curvatures_of_outputs_are_those_of_dense_rows(d, mu, monkeypatch):
    both = pair(Multinomial(classes=4), d=d, mu=mu)
    theta, v = points(both.dense, seed=3), points(both.dense)
    weight = np.array([0.1, 0.9, 3.0, 0.2, 0.4, 0.7, 2.0]) * (mu > 0)
    given = bends, outputs = both.dense.curvatures(theta)
    np.testing.assert_allclose(both.sparse.curvatures(theta)[0], bends, rtol=1e-12)
    applied, expected = (f.preconditioner(weight, given)(v) for f in both)
    np.testing.assert_allclose(applied, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())
    monkeypatch.setattr(_sparse, "LARGEST_GRAM", 0)
    applied = both.sparse.preconditioner(weight, given)(v)
    for j, (X, _, w) in enumerate(both.dense.client_rows()):
        ridges = mu + weight[j] if mu else 1e-6 * bends[j][:, None] * np.linalg.eigvalsh((X.T * w) @ X)[-1]
        inside = outputs[j].T @ v[j] / (bends[j][:, None] * (w @ X**2) + ridges)
        np.testing.assert_allclose(applied[j], outputs[j] @ inside, rtol=1e-9)


def test_lanczos_on_many_rows():
    """A wide matrix of clustered eigenvalues, its first three equal."""
    X = holes(90, 400)
    X[:3] = 0.0
    X[0, 0] = X[1, 1] = X[2, 2] = 5.0
    X = sparse.csr_array(X)
    largest = np.linalg.eigvalsh((X @ X.T).toarray())[-1]
    found = float(_sparse._largest_eigenvalue(X, X.data))
    np.testing.assert_allclose(found, largest, rtol=1e-13)


@pytest.mark.parametrize("n", [20, 40, 60])
def test_lanczos_through_almost_equal_largest_eigenvalues(n):
    """The last of five that differ by millionths: by then vectors that were orthogonalised once are parallel."""
    eigenvalues = np.concatenate([1.0 + 2.0**-20 * np.arange(5), np.arange(n - 5) / n])
    A = sparse.csr_array((np.sqrt(eigenvalues), (np.arange(n), np.arange(n))), shape=(n, n + 5))
    found = float(_sparse._largest_eigenvalue(A, A.data))
    assert found == pytest.approx(1.0 + 2.0**-18, rel=64 * EPS)


@pytest.mark.parametrize("coarse", [2.0**-6, 2.0**-10, 2.0**-14])
def test_lanczos_ends_above_the_largest_eigenvalue(coarse, monkeypatch):
    """With coarse units of rounding: Ritz values are below, and the residual is at most four units."""
    monkeypatch.setattr(_sparse, "epsilon", lambda like: coarse)
    for n in (30, 60):
        A = sparse.csr_array((np.arange(1.0, n + 1.0), (np.arange(n), np.arange(n))), shape=(n, n + 1))
        found = float(_sparse._largest_eigenvalue(A, A.data))
        assert n**2 < found <= (1.0 + 4.0 * coarse) * n**2


def test_clients_without_any_feature():
    y = np.array([1.0, -1.0, 1.0])
    f = linear_model(sparse.csr_array((3, 2)), y, loss=Logistic(), mu=0.5, clients=3, intercept=False, storage="sparse")
    theta = np.ones((3, 2))
    np.testing.assert_allclose(f.value(theta), np.log(2) + 0.5)
    np.testing.assert_array_equal(f.gradient(theta), 0.5 * theta)
    np.testing.assert_array_equal(f.L, f.mu)
    assert np.isfinite(f.preconditioner(0.0)(theta)).all()


@pytest.mark.parametrize(("density", "columns", "is_sparse"), [(0.05, 100, True), (0.5, 100, False), (0.05, 20, False)])
def test_storage(density, columns, is_sparse):
    X = sparse.random_array((80, columns), density=density, random_state=np.random.default_rng(0))
    options = {"loss": Logistic(), "mu": 0.1, "clients": 4}
    assert linear_model(X, np.ones(80), **options).rows.is_sparse == is_sparse
    assert linear_model(X, np.ones(80), storage="sparse", **options).rows.is_sparse
    assert not linear_model(X, np.ones(80), storage="dense", **options).rows.is_sparse
    with pytest.raises(ValueError, match=r"^storage must be 'auto', 'sparse' or 'dense', not 'csr'\.$"):
        linear_model(X, np.ones(80), storage="csr", **options)


def test_dense_features_stored_without_their_zeros():
    X = holes(12, 5)
    f = linear_model(X, np.ones(12), loss=Logistic(), mu=0.1, clients=3, storage="sparse")
    assert f.rows.is_sparse
    np.testing.assert_array_equal(np.concatenate([rows.toarray()[:, :-1] for rows, _, _ in f.client_rows()]), X)
    with pytest.raises(ValueError, match=r"^X must be a matrix with at least one row and one column, not of"):
        linear_model(X[:, 0], np.ones(12), loss=Logistic(), mu=0.1, storage="sparse")


@pytest.mark.parametrize("storage", ["auto", "dense", "sparse"])
@pytest.mark.parametrize("shape", [(6,), (6, 4, 1), (0, 4), (6, 0)])
def test_rows_are_made_of_a_matrix_alone(shape, storage):
    given = [np.ones(shape)] if len(shape) > 2 else [np.ones(shape), sparse.coo_array(np.ones(shape))]
    sentence = f"X must be a matrix with at least one row and one column, not of shape {shape}."
    for X in given:
        with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
            ClientRows.build(X, np.ones(shape[0]), loss=Logistic(), clients=1, storage=storage)


def _with(value):
    X = sparse.csr_array(holes(6, 4))
    X.data[0] = value
    return X


def _out_of_range():
    X = sparse.csr_array(holes(6, 4))
    X.indices[0] = 9
    return X


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (sparse.csr_array(np.ones((6, 4), complex)), "^X must hold floating-point numbers, not complex128"),
        (_with(np.nan), "^X must not contain NaN or infinite features"),
        (_with(-np.inf), "^X must not contain NaN or infinite features"),
        (sparse.csr_array((0, 4)), "^X must be a matrix with at least one row and one column"),
        (sparse.coo_array(np.ones(6)), "^X must be a matrix with at least one row and one column"),
        (_out_of_range(), "^X is not a valid sparse matrix"),
        (sparse.csr_array(holes(5, 4)), "^y must have one label for each of the 5 rows"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(X, message):
    with pytest.raises(ValueError, match=message):
        linear_model(X, np.ones(6), loss=Logistic(), mu=0.1)


def test_labels_and_weights_have_the_type_of_the_features():
    X, weights = sparse.csr_array(holes(6, 4).astype(np.float32)), np.linspace(0.1, 1.0, 6)
    f = linear_model(X, np.ones(6), loss=Logistic(), mu=0.1, weights=weights)
    ((_, y, w),) = f.client_rows()
    assert (y.dtype, w.dtype, f.zeros().dtype) == (np.float32, np.float32, np.float32)
    np.testing.assert_array_equal(w, weights.astype(np.float32))
    with pytest.raises(ValueError, match=r"^y must hold finite numbers of the type float32"):
        linear_model(X, np.full(6, 1e300), loss=Squared(), mu=0.1)
    with pytest.raises(ValueError, match=r"^weights must be 6 finite nonnegative numbers, one for each row of X"):
        linear_model(X, np.ones(6, np.float32), loss=Hinge(), mu=0.1, weights=np.ones(5))


def test_networks_refuse_sparse_rows():
    with pytest.raises(ValueError, match=r"^X must be dense for a network"):
        mlp(sparse.csr_array(holes(6, 4)), np.zeros(6, int), layers=(3,))


def test_dense_rows_do_not_import_scipy():
    code = (
        "import sys, numpy as np; from dualopt.losses import Multinomial; from dualopt.objectives import linear_model\n"
        "f = linear_model(np.eye(3), np.arange(3), loss=Multinomial(classes=3), mu=0.1)\n"
        "f.gradient(f.zeros()); f.L; assert not [name for name in sys.modules if name.split('.')[0] == 'scipy']"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_multinomial_of_many_columns_costs_its_features():
    """Products are made in the columns of a client, whatever else there is."""
    X = sparse.csr_array((np.ones(4), ([0, 1, 2, 3], [0, 999_999, 5, 5])), shape=(4, 1_000_000))
    f = linear_model(X, np.array([0, 1, 0, 1]), loss=Multinomial(classes=2), mu=0.1, clients=2)
    (block,) = f.rows.blocks
    assert block.X.shape == (4, 5)  # two features and one, and the intercept of both


@every_loss
@pytest.mark.parametrize("most", [1, 6, 9])
def test_blocks_of_few_columns_give_the_same_bits(loss, most, monkeypatch):
    """Groups are cut between clients only; a client alone in its block may have more columns than the limit."""
    whole = pair(loss).sparse
    assert [len(block.clients) for block in whole.rows.blocks] == [3, 2, 1, 1]
    monkeypatch.setattr(_sparse, "PART_COLUMNS", most)
    parts = pair(loss).sparse
    assert sorted(j for block in parts.rows.blocks for j in block.clients) == list(range(7))
    assert all(len(block.clients) == 1 or block.X.shape[1] <= most for block in parts.rows.blocks)
    # three clients of three columns each, then two with 10 or 11 columns between them
    cuts = {1: [1, 1, 1, 1, 1], 6: [2, 1, 1, 1], 9: [3, 1, 1]}[most]
    assert [len(block.clients) for block in parts.rows.blocks] == [*cuts, 1, 1]
    theta = points(whole)
    for what in ("value", "gradient"):
        np.testing.assert_array_equal(getattr(parts, what)(theta), getattr(whole, what)(theta))


@every_loss
def test_rounding_is_bounded_as_for_dense_rows(loss):
    """Certificates rest on these bounds."""
    both = pair(loss)
    theta = points(both.dense)
    value, gradient = both.dense.value_and_gradient(theta)
    for one, other in zip(
        both.sparse.rounding(theta, value, gradient), both.dense.rounding(theta, value, gradient), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-12)


@pytest.mark.parametrize("scale", [1.0, 1e-100, 1e170])
def test_norms_of_rows_are_not_lost_beside_larger_ones(scale):
    """The squares of the second row underflow beside those of the first; its norm must not count as zero."""
    X = scale * np.array([[3.0, 0.0, 4.0], [3e-170, 4e-170, 0.0], [0.0, 0.0, 0.0]])
    exact = scale * np.array([5.0, 5e-170, 0.0])
    found = row_norms(sparse.csr_array(X))
    assert np.all(found >= exact * (1 - 4 * EPS))
    assert found[0] == pytest.approx(exact[0], rel=1e-12)


@pytest.mark.parametrize("scale", [1.0, 1e-200, 1e200, -1e200])
def test_norms_of_rows_are_those_of_dense_ones(scale: float) -> None:
    """Negative entries count as others, and zeros that are stored as those that are not."""
    X = scale * np.array([[-3.0, -4.0, 0.0, 0.0, 0.0], [0.0, -1.0, -2.0, -2.0, 0.0]])
    stored = sparse.csr_array(X)
    np.testing.assert_allclose(row_norms(stored), abs(scale) * np.array([5.0, 3.0]), rtol=1e-12)
    np.testing.assert_allclose(row_norms(X), abs(scale) * np.array([5.0, 3.0]), rtol=1e-12)
    stored.data[:] = 0.0
    assert row_norms(stored).tolist() == pytest.approx([0.0, 0.0], abs=1e-150)
    assert row_norms(sparse.csr_array((2, 5))).tolist() == pytest.approx([0.0, 0.0], abs=1e-150)
