"""Sparse LIBSVM files and the scaling of sparse features."""

import numpy as np
import pytest

from dualopt.problem.data import Dataset, load, scale

pytest.importorskip("sklearn")
sparse = pytest.importorskip("scipy.sparse")


def matrix(m=12, d=60, seed=0):
    """Return a matrix with a row and a column of zeros, 5 percent of the rest not zero."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, d)) * (rng.random((m, d)) < 0.05)
    X[3], X[:, 7], X[0, 59] = 0.0, 0.0, -40.0
    return X


def write(path, X, labels):
    rows = [" ".join(f"{i + 1}:{x!r}" for i, x in enumerate(row) if x) for row in X.tolist()]
    lines = [f"{y} {row}" for row, y in zip(rows, labels, strict=True)]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_sparse_file_stays_sparse(tmp_path, dtype):
    X = matrix()
    file = write(tmp_path / "news.svm", X, [*range(1, 13)])
    data = load(file, dtype=dtype)
    assert isinstance(data.X, sparse.csr_array)
    assert data.X.dtype == dtype
    np.testing.assert_array_equal(data.X.toarray(), X.astype(dtype))
    np.testing.assert_array_equal(data.y, range(1, 13))
    assert load(file, n_features=99).X.shape == (12, 99)


def test_storage_is_chosen_or_given(tmp_path):
    few = write(tmp_path / "few.svm", matrix(d=60)[:, 30:], [1] * 12)  # 30 columns
    full = write(tmp_path / "full.svm", np.ones((5, 80)), [1] * 5)
    wide = write(tmp_path / "wide.svm", matrix(), [1] * 12)
    assert isinstance(load(few).X, np.ndarray)
    assert isinstance(load(full).X, np.ndarray)
    assert sparse.issparse(load(wide).X)
    assert sparse.issparse(load(full, storage="sparse").X)
    for dense in (load(wide, storage="dense"), load(wide, max_bytes=12 * 60 * 8)):
        np.testing.assert_array_equal(dense.X, matrix())
    with pytest.raises(ValueError, match=r"^storage must be 'auto', 'sparse' or 'dense', not 'csr'\.$"):
        load(wide, storage="csr")


def test_a_matrix_that_would_not_fit_dense_is_read_sparse(tmp_path):
    file = tmp_path / "wide.svm"
    file.write_text("1 3:1\n2 2000000000:2\n")
    data = load(file)
    assert data.X.shape == (2, 2_000_000_000)
    assert data.X.nnz == 2


def test_the_test_part_has_the_columns_of_the_file(tmp_path):
    write(tmp_path / "a.svm", matrix(), [1] * 12)
    write(tmp_path / "a.t.svm", matrix()[:5, :40], [2] * 5)
    data = load(tmp_path / "a.svm", split="test")
    assert data.X.shape == (5, 60)
    assert data.y.tolist() == [2] * 5
    assert load(tmp_path / "a.svm", split="train").X.shape == (12, 60)
    with pytest.raises(ValueError, match=r'^split must not be "test", because there is no file .*a\.t\.t\.svm'):
        load(tmp_path / "a.t.svm", split="test")


@pytest.mark.parametrize("how", ["none", "max", "unit-rows", 2.5])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", ["csr_array", "coo_array", "csc_matrix"])
def test_scaling_is_that_of_dense_features(how, dtype, kind):
    X = matrix().astype(dtype)
    given = getattr(sparse, kind)(X)
    before = given.copy()
    scaled = scale(given, how)
    assert scaled.format == "csr"
    assert scaled.dtype == dtype
    np.testing.assert_allclose(scaled.toarray(), scale(X, how), rtol=8 * np.finfo(dtype).eps)
    assert (given != before).nnz == 0


def test_an_entry_in_two_parts_is_scaled_by_its_sum():
    twice = sparse.csr_array((np.array([3.0, 3.0, 4.0]), np.array([0, 0, 1]), np.array([0, 3])), shape=(1, 2))
    np.testing.assert_allclose(scale(twice, "max").toarray(), [[1.0, 4 / 6]])
    np.testing.assert_allclose(scale(twice, "unit-rows").toarray(), np.array([[6.0, 4.0]]) / np.sqrt(52))
    assert twice.data.tolist() == [3.0, 3.0, 4.0]


def test_integers_are_scaled_as_numbers():
    np.testing.assert_array_equal(scale(sparse.csr_array(np.array([[0, 2]])), 4).toarray(), [[0, 0.5]])


def test_what_would_fill_in_zeros_is_refused():
    with pytest.raises(ValueError, match=r'^scale must not be "standard" for sparse features, whose zeros'):
        scale(sparse.csr_array(matrix()), "standard")


def test_bad_features_are_refused():
    X = sparse.csr_array(matrix())
    X.data[-1] = np.nan
    row = int(np.flatnonzero(np.diff(X.indptr))[-1])
    with pytest.raises(ValueError, match=rf"^X must be finite, but row {row} "):
        Dataset(X=X, y=np.ones(12), name="n", description="d")
    with pytest.raises(ValueError, match=r"^X must be of type float64 or float32, but it is int64"):
        Dataset(X=sparse.csr_array(np.eye(2, dtype=int)), y=np.ones(2), name="n", description="d")
