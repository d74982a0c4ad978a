"""LIBSVM files: what is written is read, and a bad or too large file is refused in one sentence."""

import bz2
import gzip

import numpy as np
import pytest

from dualopt.problem.data import _files, _libsvm, load

pytest.importorskip("sklearn")

TEXT = b"""+1 1:0.5 3:-2  # a comment
-1 2:1e-3

# nothing but a comment
+1
-1 1:7\t3:1
"""
X = [[0.5, 0, -2], [0, 1e-3, 0], [0, 0, 0], [7, 0, 1]]


@pytest.fixture
def path(tmp_path):
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


def test_n_features_appends_columns(path):
    data = load(path, n_features=5)
    np.testing.assert_array_equal(data.X, np.pad(X, ((0, 0), (0, 2))))


@pytest.mark.parametrize(
    ("n_features", "message"),
    [(2, "^n_features = 2 is too small: .* has 3 features"), (0, "^n_features must be at least 1, got 0")],
)
def test_n_features_too_small(path, n_features, message):
    with pytest.raises(ValueError, match=message):
        load(path, n_features=n_features)


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
def test_malformed_line_is_named(path, line):
    with path.open("ab") as stream:
        stream.write(line + b"\n-1 1:1\n")
    with pytest.raises(ValueError, match=r"^path .*small.txt' is malformed in line 7: .*increasing indices"):
        load(path)


@pytest.mark.parametrize(("suffix", "encode"), [("gz", gzip.compress), ("bz2", bz2.compress)])
@pytest.mark.parametrize(
    "damage",
    [
        lambda raw: raw[:-4],
        lambda raw: raw[:8],
        lambda raw: b"garbage" * 9,
        lambda raw: raw[:10] + b"\xff" * 80,
    ],
)
def test_damaged_compression(tmp_path, suffix, encode, damage):
    file = tmp_path / f"small.{suffix}"
    file.write_bytes(damage(encode(TEXT)))
    with pytest.raises(ValueError, match=rf"^path .*small.{suffix}' cannot be read: "):
        load(file)


@pytest.mark.parametrize("text", [b"", b"\n\n# only a comment 1:1\n", b"1\n2\n"])
def test_no_features(path, text):
    path.write_bytes(text)
    with pytest.raises(ValueError, match=r"^path .*small.txt' holds no features"):
        load(path)


@pytest.mark.parametrize("value", [b"nan", b"inf", b"-inf"])
def test_features_that_are_not_finite(path, value):
    path.write_bytes(b"1 1:1\n1 1:" + value)
    with pytest.raises(ValueError, match=r"^X must be finite, but row 1 "):
        load(path)


def test_too_large_is_refused_before_anything_is_parsed(path, monkeypatch):
    """A terabyte would be needed; without the refusal the parser, then the allocation, would run."""

    def parse():
        raise AssertionError("the file was parsed")

    monkeypatch.setattr(_libsvm, "sklearn_datasets", parse)
    path.write_bytes(TEXT + b"+1 100000000000:1\n")
    with pytest.raises(ValueError, match=r"^path .* does not fit: 5 x 100000000000 .* 4e\+12 bytes"):
        load(path, max_bytes=1e12)


@pytest.mark.parametrize(("dtype", "size"), [("float64", 4 * 3 * 8), ("float32", 4 * 3 * 4)])
def test_max_bytes_is_the_size_of_the_dense_matrix(path, dtype, size):
    assert load(path, dtype=dtype, max_bytes=size).X.nbytes == size
    with pytest.raises(ValueError, match=r"does not fit: 4 x 3 .* max_bytes"):
        load(path, dtype=dtype, max_bytes=size - 1)


def test_max_bytes_counts_the_columns_of_n_features(path):
    with pytest.raises(ValueError, match="does not fit: 4 x 1000 "):
        load(path, n_features=1000, max_bytes=4 * 1000 * 8 - 1)


def test_default_limit_is_half_of_the_free_memory(path, monkeypatch):
    monkeypatch.setattr(_libsvm, "_free_memory", lambda: 2 * 96.0)
    assert load(path).X.nbytes == 96
    monkeypatch.setattr(_libsvm, "_free_memory", lambda: 2 * 96.0 - 1)
    with pytest.raises(ValueError, match="does not fit"):
        load(path)


def test_free_memory_is_unlimited_where_the_system_does_not_tell(monkeypatch):
    assert _libsvm._free_memory() > 0

    def unknown(name):
        raise ValueError(name)

    monkeypatch.setattr(_files.os, "sysconf", unknown)
    assert _libsvm._free_memory() == np.inf
