"""NumPy archives: what is written is read, pixels are scaled, and nothing is unpickled."""

import numpy as np
import pytest

from dualopt.problem.data import load


@pytest.fixture
def path(tmp_path):
    """Name an archive."""
    return tmp_path / "archive.npz"


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_floats_are_kept(path, save):
    X, y = np.array([[300.0, -1.5], [0.0, 2.0]]), np.array(["a", "b"])
    save(path, X=X, y=y)
    data = load(str(path))
    np.testing.assert_array_equal(data.X, X)
    np.testing.assert_array_equal(data.y, y)
    assert data.X.dtype == np.float64


@pytest.mark.parametrize("dtype", ["int64", "int8", "uint16", "bool", "float16"])
def test_other_types_are_converted(path, dtype):
    X = np.array([[0, 1], [1, 1]], dtype)
    np.savez(path, X=X, y=[0, 1])
    data = load(path, dtype="float32")
    np.testing.assert_array_equal(data.X, X.astype(np.float32))
    assert data.X.dtype == np.float32


def test_pixels_are_divided_by_255_unless_told_otherwise(path):
    X = np.array([[0, 51], [255, 102]], np.uint8)
    np.savez(path, X=X, y=[0, 1])
    np.testing.assert_array_equal(load(path).X, [[0, 0.2], [1, 0.4]])
    np.testing.assert_array_equal(load(path, scale="none").X, X)


def test_fortran_order_becomes_row_major(path):
    X = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    np.savez(path, X=X, y=[0, 1])
    data = load(path)
    assert data.X.flags.c_contiguous
    np.testing.assert_array_equal(data.X, X)


def test_images_are_flattened_row_by_row(path):
    """The first axis counts samples."""
    X = np.arange(12.0).reshape(2, 3, 2)
    np.savez(path, X=X, y=[0, 1])
    np.testing.assert_array_equal(load(path).X, np.arange(12.0).reshape(2, 6))


def test_splits(path):
    np.savez(path, X_train=np.eye(2), y_train=[0, 1], X_test=np.ones((1, 2)), y_test=[5])
    np.testing.assert_array_equal(load(path).X, np.eye(2))
    np.testing.assert_array_equal(load(path, split="train").X, np.eye(2))
    data = load(path, split="test")
    np.testing.assert_array_equal(data.X, [[1, 1]])
    np.testing.assert_array_equal(data.y, [5])


@pytest.mark.parametrize("folder", [".", "cifar10"])
def test_cifar10(tmp_path, folder):
    (tmp_path / folder).mkdir(exist_ok=True)
    X = np.full((2, 3, 2, 2), 255, np.uint8)
    np.savez(tmp_path / folder / "cifar10.npz", X_train=X, y_train=[0, 1], X_test=X[:1] // 255, y_test=[1])
    np.testing.assert_array_equal(load("cifar10", data_home=tmp_path).X, np.ones((2, 12)))
    np.testing.assert_array_equal(load("cifar10", data_home=tmp_path, split="test").X, np.full((1, 12), 1 / 255))


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"X": np.eye(2)}, r"needs the arrays X and y and has \['X'\]"),
        ({"A": np.eye(2)}, r"needs the arrays X_train and y_train and has \['A'\]"),
        ({"X": np.eye(2), "y": np.array([{}, None], dtype=object)}, "^path .* Object arrays"),
        ({"X": np.eye(2), "y": [1, 2, 3]}, "^y must hold one label for each of the 2 rows .*(3,)"),
        ({"X": np.eye(2), "y": [[1], [2]]}, "^y must hold one label for each of the 2 rows .*(2, 1)"),
        ({"X": np.ones(2), "y": [1, 2]}, "^X must be a matrix .*(2,)"),
        ({"X": np.ones((0, 2)), "y": []}, "^X must be a matrix .*(0, 2)"),
        ({"X": np.array([["a"]]), "y": [1]}, "^X must hold real numbers, but its type is <U1"),
        ({"X": np.array([[1j]]), "y": [1]}, "^X must hold real numbers, but its type is complex128"),
        ({"X": np.array([[0, 1], [0, np.nan]]), "y": [1, 2]}, "^X must be finite, but row 1 "),
        ({"X": np.array([[0, -np.inf], [0, 0]]), "y": [1, 2]}, "^X must be finite, but row 0 "),
        ({"X": np.array([[0, np.inf], [0, 0]]), "y": [1, 2]}, "^X must be finite, but row 0 "),
    ],
)
def test_wrong_contents(path, arrays, message):
    np.savez(path, **arrays)
    with pytest.raises(ValueError, match=message):
        load(path)


def test_number_too_large_for_float32(path):
    np.savez(path, X=np.array([[1.0], [1e300]]), y=[0, 1])
    with pytest.raises(ValueError, match=r"^X must be finite, but row 1 "):
        load(path, dtype="float32")


@pytest.mark.parametrize(
    "damage",
    [
        lambda raw: raw[:-10],
        lambda raw: raw[:100],
        lambda raw: b"",
        lambda raw: b"garbage" * 50,
        lambda raw: raw.replace(np.float64(0.125).tobytes(), np.float64(0.25).tobytes()),
    ],
)
def test_damaged_file(path, damage):
    np.savez(path, X=np.full((3, 3), 0.125), y=[0, 1, 2])
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ValueError, match=r"^path .*archive.npz' cannot be read as a NumPy archive: .*[^.]\.$"):
        load(path)


def test_single_array_is_not_an_archive(path):
    with path.open("wb") as stream:
        np.save(stream, np.eye(2))
    with pytest.raises(ValueError, match="cannot be read as a NumPy archive"):
        load(path)


def test_clients_are_read(path):
    np.savez(path, X=np.eye(3), y=[0, 1, 0], clients=[4, 2, 4])
    np.testing.assert_array_equal(load(path).clients, [4, 2, 4])
    np.savez(
        path,
        **{"X_train": np.eye(2), "y_train": [0, 1], "clients_train": [1, 0]},
        **{"X_test": np.ones((1, 2)), "y_test": [5], "clients_test": [9]},
    )
    np.testing.assert_array_equal(load(path).clients, [1, 0])
    np.testing.assert_array_equal(load(path, split="test").clients, [9])
    np.savez(path, X=np.eye(2), y=[0, 1], clients_train=[1, 0])
    assert load(path).clients is None


def test_clients_of_the_wrong_length(path):
    np.savez(path, X=np.eye(2), y=[0, 1], clients=[0])
    with pytest.raises(ValueError, match=r"^clients must hold one integer for each of the 2 rows of X"):
        load(path)
