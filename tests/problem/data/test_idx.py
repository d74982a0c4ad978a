"""IDX files: what is written is read, and every kind of damage is named."""

import gzip
import struct

import numpy as np
import pytest

from dualopt.problem.data import load

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


def test_unknown_split(home):
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
def test_damaged_file(home, pixels, damage, message, compressed):
    raw = damage(idx(pixels))
    (home / "mnist" / (IMAGES + ".gz")).unlink()
    path = home / "mnist" / (IMAGES + ".gz" if compressed else IMAGES)
    path.write_bytes(gzip.compress(raw) if compressed else raw)
    with pytest.raises(ValueError, match=rf"^path .*{IMAGES}.*{message}"):
        load("mnist", data_home=home)


@pytest.mark.parametrize("damage", [lambda raw: raw[:-20], lambda raw: raw[:5], lambda raw: b"garbage" * 9])
def test_damaged_compression(home, damage):
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
