"""Files of data: what is written is read, and a bad or too large file is refused in one sentence."""

from __future__ import annotations

import bz2
import gzip
import struct
from typing import Any

import numpy as np
import pytest

from dualopt.problem.data import Dataset, _files, _libsvm, load, scale

# LIBSVM.


pytest.importorskip("sklearn")

TEXT = b"""+1 1:0.5 3:-2  # a comment
-1 2:1e-3

# nothing but a comment
+1
-1 1:7\t3:1
"""
X = [[0.5, 0, -2], [0, 1e-3, 0], [0, 0, 0], [7, 0, 1]]


@pytest.fixture
def small_file(tmp_path):
    """Write the text above to a plain file."""
    file = tmp_path / "small.txt"
    file.write_bytes(TEXT)
    return file


@pytest.mark.parametrize("suffix", ["txt", "svm", "libsvm", "gz", "bz2", "t"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_what_is_written_is_read(tmp_path, suffix, dtype):
    encode = {"gz": gzip.compress, "bz2": bz2.compress}.get(suffix, bytes)
    file = tmp_path / f"small.{suffix}"
    file.write_bytes(encode(TEXT))
    data = load(file, dtype=dtype)
    assert data.X.dtype == dtype
    np.testing.assert_array_equal(data.X, np.asarray(X, dtype))
    np.testing.assert_array_equal(data.y, [1, -1, 1, -1])


@pytest.mark.parametrize("separator", [b" ", b"\t", b"  "])
def test_index_zero_makes_the_file_zero_based(tmp_path, separator):
    """The index 0 anywhere, also after a tab, shifts all columns."""
    file = tmp_path / "zero.txt"
    file.write_bytes(b"1 1:5\n2" + separator + b"0:4 2:6\n")
    np.testing.assert_array_equal(load(file).X, [[0, 5, 0], [4, 0, 6]])


def test_n_features_appends_columns(small_file):
    data = load(small_file, n_features=5)
    np.testing.assert_array_equal(data.X, np.pad(X, ((0, 0), (0, 2))))


@pytest.mark.parametrize(
    ("n_features", "message"),
    [(2, "^n_features = 2 is too small: .* has 3 features"), (0, "^n_features must be at least 1, got 0")],
)
def test_n_features_too_small(small_file, n_features, message):
    with pytest.raises(ValueError, match=message):
        load(small_file, n_features=n_features)


@pytest.mark.parametrize(
    "line",
    [
        b"+1 1:0.5 2",
        b"+1 1:",
        b"+1 1:0.5 2:1:3",
        b"+1 2:1 1:1",
        b"+1 1:1 1:2",
        b"+1 -1:1",
        b"+1 a:1",
        b"+1 1:b",
        b"+1 1:1_0",
        b"1_0 1:1",
        b"one 1:1",
        b"1:1 2:1",
        b":1",
        b"\x00\xff\xfe",
    ],
)
def test_malformed_line_is_named(small_file, line):
    with small_file.open("ab") as stream:
        stream.write(line + b"\n-1 1:1\n")
    with pytest.raises(ValueError, match=r"^path .*small.txt' is malformed in line 7: .*increasing indices"):
        load(small_file)


@pytest.mark.parametrize(("suffix", "encode"), [("gz", gzip.compress), ("bz2", bz2.compress)])
@pytest.mark.parametrize(
    "damage",
    [lambda raw: raw[:-4], lambda raw: raw[:8], lambda raw: b"garbage" * 9, lambda raw: raw[:10] + b"\xff" * 80],
)
def test_damaged_compression(tmp_path, suffix, encode, damage):
    file = tmp_path / f"small.{suffix}"
    file.write_bytes(damage(encode(TEXT)))
    with pytest.raises(ValueError, match=rf"^path .*small.{suffix}' cannot be read: "):
        load(file)


@pytest.mark.parametrize("text", [b"", b"\n\n# only a comment 1:1\n", b"1\n2\n"])
def test_no_features(small_file, text):
    small_file.write_bytes(text)
    with pytest.raises(ValueError, match=r"^path .*small.txt' holds no features"):
        load(small_file)


@pytest.mark.parametrize("value", [b"nan", b"inf", b"-inf"])
def test_features_that_are_not_finite(small_file, value):
    small_file.write_bytes(b"1 1:1\n1 1:" + value)
    with pytest.raises(ValueError, match=r"^X must be finite, but row 1 "):
        load(small_file)


def test_too_large_is_refused_before_anything_is_parsed(small_file, monkeypatch):
    """A terabyte would be needed; without the refusal the parser, then the allocation, would run."""

    def parse(*_):
        raise AssertionError("the file was parsed")

    monkeypatch.setattr(_libsvm, "optional", parse)
    small_file.write_bytes(TEXT + b"+1 100000000000:1\n")
    with pytest.raises(ValueError, match=r"^path .* does not fit: 5 x 100000000000 .* 4e\+12 bytes"):
        load(small_file, max_bytes=1e12)


@pytest.mark.parametrize(("dtype", "size"), [("float64", 4 * 3 * 8), ("float32", 4 * 3 * 4)])
def test_max_bytes_is_the_size_of_the_dense_matrix(small_file, dtype, size):
    assert load(small_file, dtype=dtype, max_bytes=size).X.nbytes == size
    with pytest.raises(ValueError, match=r"does not fit: 4 x 3 .* max_bytes"):
        load(small_file, dtype=dtype, max_bytes=size - 1)


def test_max_bytes_counts_the_columns_of_n_features(small_file):
    with pytest.raises(ValueError, match="does not fit: 4 x 1000 "):
        load(small_file, n_features=1000, max_bytes=4 * 1000 * 8 - 1)


def test_default_limit_is_half_of_the_free_memory(small_file, monkeypatch):
    monkeypatch.setattr(_libsvm, "_free_memory", lambda: 2 * 96.0)
    assert load(small_file).X.nbytes == 96
    monkeypatch.setattr(_libsvm, "_free_memory", lambda: 2 * 96.0 - 1)
    with pytest.raises(ValueError, match="does not fit"):
        load(small_file)


def test_free_memory_is_unlimited_where_the_system_does_not_tell(monkeypatch):
    assert _libsvm._free_memory() > 0

    def unknown(name):
        raise ValueError(name)

    monkeypatch.setattr(_files.os, "sysconf", unknown)
    monkeypatch.setattr(_files.Path, "read_text", lambda path: unknown(path))
    assert _libsvm._free_memory() == np.inf


def test_the_limit_of_a_container_counts_without_what_is_kept_of_files(tmp_path):
    group = tmp_path / "jobs" / "one"
    group.mkdir(parents=True)
    (tmp_path / "cgroup").write_text("0::/jobs/one\n")
    for folder, limit, used, files in ((group, "max", 900, 0), (group.parent, "1000", 900, 300)):
        (folder / "memory.max").write_text(f"{limit}\n")
        (folder / "memory.current").write_text(f"{used}\n")
        (folder / "memory.stat").write_text(f"anon 5\ninactive_file {files}\n")
    assert _files._free_of_container(tmp_path, tmp_path / "cgroup") == 400
    assert _files._free_of_container(tmp_path, tmp_path / "none") == np.inf


# NumPy archives: pixels are scaled, and nothing is unpickled.


@pytest.fixture
def archive(tmp_path):
    """Name an archive."""
    return tmp_path / "archive.npz"


FLOATS, PIXELS = np.array([[300.0, -1.5], [0.0, 2.0]]), np.array([[0, 51], [255, 102]], np.uint8)
SPLITS = {"X_train": np.eye(2), "y_train": [0, 1], "X_test": np.ones((1, 2)), "y_test": [5]}
SHOWN: dict[str, tuple[Any, dict[str, Any], dict[str, Any], Any]] = {  # how, what is written, the options, the features
    "floats": (np.savez, {"X": FLOATS, "y": ["a", "b"]}, {}, FLOATS),
    "compressed": (np.savez_compressed, {"X": FLOATS, "y": ["a", "b"]}, {}, FLOATS),
    **{
        dtype: (np.savez, {"X": np.array([[0, 1], [1, 1]], dtype), "y": [0, 1]}, {"dtype": "float32"}, [[0, 1], [1, 1]])
        for dtype in ("int64", "int8", "uint16", "bool", "float16")
    },
    "pixels are divided by 255": (np.savez, {"X": PIXELS, "y": [0, 1]}, {}, [[0, 0.2], [1, 0.4]]),
    "unless told otherwise": (np.savez, {"X": PIXELS, "y": [0, 1]}, {"scale": "none"}, PIXELS),
    "Fortran order": (np.savez, {"X": np.asfortranarray(FLOATS), "y": [0, 1]}, {}, FLOATS),
    "images, row by row": (
        np.savez,
        {"X": np.arange(12.0).reshape(2, 3, 2), "y": [0, 1]},
        {},
        [range(6), range(6, 12)],
    ),
    "the training part": (np.savez, SPLITS, {}, np.eye(2)),
    "a split": (np.savez, SPLITS, {"split": "train"}, np.eye(2)),
    "the test part": (np.savez, SPLITS, {"split": "test"}, [[1, 1]]),
}


@pytest.mark.parametrize(("save", "arrays", "options", "X"), SHOWN.values(), ids=SHOWN)
def test_archives_are_what_was_written(archive, save, arrays, options, X):
    save(archive, **arrays)
    data = load(str(archive), **options)
    np.testing.assert_array_equal(data.X, np.array(X, options.get("dtype")))
    np.testing.assert_array_equal(data.y, arrays["y_test" if "split" in options and len(X) == 1 else [*arrays][1]])
    assert (data.X.dtype, data.X.flags.c_contiguous) == (options.get("dtype", "float64"), True)


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
def test_wrong_contents(archive, arrays, message):
    np.savez(archive, **arrays)
    with pytest.raises(ValueError, match=message):
        load(archive)


def test_number_too_large_for_float32(archive):
    np.savez(archive, X=np.array([[1.0], [1e300]]), y=[0, 1])
    with pytest.raises(ValueError, match=r"^X must be finite, but row 1 "):
        load(archive, dtype="float32")


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
def test_damaged_file(archive, damage):
    np.savez(archive, X=np.full((3, 3), 0.125), y=[0, 1, 2])
    archive.write_bytes(damage(archive.read_bytes()))
    with pytest.raises(ValueError, match=r"^path .*archive.npz' cannot be read as a NumPy archive: .*[^.]\.$"):
        load(archive)


def test_single_array_is_not_an_archive(archive):
    with archive.open("wb") as stream:
        np.save(stream, np.eye(2))
    with pytest.raises(ValueError, match="cannot be read as a NumPy archive"):
        load(archive)


def test_clients_are_read(archive):
    np.savez(archive, X=np.eye(3), y=[0, 1, 0], clients=[4, 2, 4])
    np.testing.assert_array_equal(load(archive).clients, [4, 2, 4])
    np.savez(
        archive,
        **{"X_train": np.eye(2), "y_train": [0, 1], "clients_train": [1, 0]},
        **{"X_test": np.ones((1, 2)), "y_test": [5], "clients_test": [9]},
    )
    np.testing.assert_array_equal(load(archive).clients, [1, 0])
    np.testing.assert_array_equal(load(archive, split="test").clients, [9])
    np.savez(archive, X=np.eye(2), y=[0, 1], clients_train=[1, 0])
    assert load(archive).clients is None


def test_clients_of_the_wrong_length(archive):
    np.savez(archive, X=np.eye(2), y=[0, 1], clients=[0])
    with pytest.raises(ValueError, match=r"^clients must hold one integer for each of the 2 rows of X"):
        load(archive)


# IDX.


IMAGES, LABELS = "train-images-idx3-ubyte", "train-labels-idx1-ubyte"


def idx(array):
    """Encode an array of bytes in IDX format."""
    return struct.pack(f">4B{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.tobytes()


@pytest.fixture
def pixels():
    """Make six images of 3 x 4 pixels, the bytes 0 and 255 among them."""
    images = np.random.default_rng(0).integers(0, 256, (6, 3, 4)).astype(np.uint8)
    images[0, 0, :2] = 0, 255
    return images


@pytest.fixture
def home(tmp_path, pixels):
    """Write them with labels, the images compressed and the labels plain, in tmp_path/mnist."""
    (tmp_path / "mnist").mkdir()
    (tmp_path / "mnist" / (IMAGES + ".gz")).write_bytes(gzip.compress(idx(pixels)))
    (tmp_path / "mnist" / LABELS).write_bytes(idx(np.arange(6, dtype=np.uint8)))
    return tmp_path


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_pixels_come_back_divided_by_255(home, pixels, dtype):
    """The image is flattened row by row and lies in [0, 1]."""
    data = load("mnist", data_home=home, dtype=dtype)
    assert data.X.dtype == dtype
    np.testing.assert_array_equal(data.X, (pixels.reshape(6, 12) / np.asarray(255, dtype)).astype(dtype))
    np.testing.assert_array_equal(data.y, np.arange(6))


def test_scale_none_keeps_the_bytes(home, pixels):
    np.testing.assert_array_equal(load("mnist", data_home=home, scale="none").X, pixels.reshape(6, 12))


def test_files_may_lie_in_the_folder_itself(home, pixels):
    data = load("mnist", data_home=home / "mnist")
    np.testing.assert_array_equal(data.X, pixels.reshape(6, 12) / 255)


def test_folder_of_the_name_comes_first(home, pixels):
    """Fashion-MNIST uses the same file names, so a file of MNIST beside its folder must not be taken."""
    (home / "fashion-mnist").mkdir()
    (home / "fashion-mnist" / IMAGES).write_bytes(idx(255 - pixels))
    (home / "fashion-mnist" / LABELS).write_bytes(idx(np.arange(6, dtype=np.uint8)))
    (home / IMAGES).write_bytes(idx(pixels))
    (home / LABELS).write_bytes(idx(np.arange(6, dtype=np.uint8)))
    np.testing.assert_array_equal(load("fashion-mnist", data_home=home).X, (255 - pixels).reshape(6, 12) / 255.0)


def test_split_test_reads_the_other_files(home, pixels):
    (home / "mnist" / "t10k-images-idx3-ubyte").write_bytes(idx(pixels[:2]))
    (home / "mnist" / "t10k-labels-idx1-ubyte").write_bytes(idx(np.array([7, 8], np.uint8)))
    data = load("mnist", data_home=home, split="test")
    np.testing.assert_array_equal(data.y, [7, 8])
    np.testing.assert_array_equal(data.X, pixels[:2].reshape(2, 12) / 255)


def test_unknown_split_of_images(home):
    with pytest.raises(ValueError, match=r"^split must be .*'validation'"):
        load("mnist", data_home=home, split="validation")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda raw: raw[:-1], "announces 72 bytes for the shape .6, 3, 4., but 71 follow"),
        (lambda raw: raw + b"\0", "announces 72 bytes .* but 73 follow"),
        (lambda raw: raw[:9], "truncated: its header has 9 of 16 bytes"),
        (lambda raw: raw[:2], "not an IDX file .* begins with the bytes '00 00'"),
        (lambda raw: b"", "not an IDX file"),
        (lambda raw: b"\0\0\x0d\3" + raw[4:], "not an IDX file .* '00 00 0d 03'"),  # floats
        (lambda raw: b"\0\0\x08\1" + raw[4:], "with 3 axes"),  # labels in the place of images
    ],
)
@pytest.mark.parametrize("compressed", [True, False])
def test_damaged_images(home, pixels, damage, message, compressed):
    raw = damage(idx(pixels))
    (home / "mnist" / (IMAGES + ".gz")).unlink()
    path = home / "mnist" / (IMAGES + ".gz" if compressed else IMAGES)
    path.write_bytes(gzip.compress(raw) if compressed else raw)
    with pytest.raises(ValueError, match=rf"^path .*{IMAGES}.*{message}"):
        load("mnist", data_home=home)


@pytest.mark.parametrize("damage", [lambda raw: raw[:-20], lambda raw: raw[:5], lambda raw: b"garbage" * 9])
def test_damaged_compression_of_images(home, damage):
    path = home / "mnist" / (IMAGES + ".gz")
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ValueError, match=rf"^path .*{IMAGES}.gz' cannot be read: "):
        load("mnist", data_home=home)


def test_images_and_labels_differ_in_number(home):
    (home / "mnist" / LABELS).write_bytes(idx(np.arange(5, dtype=np.uint8)))
    with pytest.raises(ValueError, match=r"6 images, but .* 5 labels"):
        load("mnist", data_home=home)


def test_missing_files_are_listed(tmp_path):
    with pytest.raises(ValueError, match=rf"^data_home .* looked for mnist/{IMAGES}.gz, .*, {IMAGES}\.$"):
        load("mnist", data_home=tmp_path)


def test_missing_data_home(monkeypatch):
    monkeypatch.delenv("DUALOPT_DATA_HOME", raising=False)
    with pytest.raises(ValueError, match=r"^data_home is needed for data 'mnist': .*DUALOPT_DATA_HOME"):
        load("mnist")


# Sparse LIBSVM files, and the scaling of sparse features.


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
