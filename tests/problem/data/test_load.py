"""Loading by name or file: what is found where, what is refused, and the embedded data sets."""

import re

import numpy as np
import pytest

import dualopt.problem.data
from dualopt.problem.data import Dataset, available, class_count, embedded, load


@pytest.fixture(autouse=True)
def no_environment(monkeypatch):
    """Keep a folder that the user may have set out of these tests."""
    monkeypatch.delenv("DUALOPT_DATA_HOME", raising=False)


def save(path, value):
    """Write an archive whose one feature tells which file was read."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as stream:
        np.savez(stream, X=np.full((2, 1), float(value)), y=[0, 1])


def test_available_names_everything_once():
    names = list(available())
    assert names == sorted(names)
    assert set(names) == {
        "breast_cancer",
        "cifar10",
        "cifar100",
        "digits",
        "emnist",
        "emnist-l",
        "fashion-mnist",
        "femnist",
        "mnist",
        "shakespeare",
        "synthetic-feddyn",
        "synthetic-fedpd-strong",
        "synthetic-fedpd-weak",
        "synthetic-logistic",
        "synthetic-multinomial",
        "synthetic-regression",
    }
    assert all(line and "\n" not in line for line in available().values())


def test_new_file_adds_a_data_set(tmp_path, monkeypatch):
    (tmp_path / "extra.py").write_text(
        "import numpy as np\n"
        "from dualopt.problem.data._dataset import RawData\n"
        "NAMES = {'extra': 'one more'}\n"
        "def load(name, *, seed, shift=0):\n"
        "    return RawData(X=np.full((2, 1), 2 * seed + shift), y=np.arange(2), scale=2, description=name)\n"
    )
    monkeypatch.setattr(dualopt.problem.data, "__path__", [*dualopt.problem.data.__path__, str(tmp_path)])
    monkeypatch.delitem(__import__("sys").modules, "dualopt.problem.data.extra", raising=False)
    assert available()["extra"] == "one more"
    data = load("extra", seed=3, shift=4)
    np.testing.assert_array_equal(data.X, [[5.0], [5.0]])
    assert data.description == data.name == "extra"


LAWS = [
    *(("synthetic-" + kind, {}) for kind in ("regression", "logistic", "multinomial", "fedpd-weak")),
    *(("synthetic-fedpd-strong", {"recipe": recipe}) for recipe in ("paper", "code")),
    *(("synthetic-feddyn", {"setting": setting}) for setting in ("homogeneous", "models", "features", "sizes")),
]


@pytest.mark.parametrize(("name", "options"), LAWS)
def test_the_seed_decides_and_the_precision_does_not(name, options):
    one, same, other = (load(name, seed=seed, **options) for seed in (3, 3, 4))
    single = load(name, seed=3, dtype="float32", **options)
    for field in ("X", "y", "clients"):
        np.testing.assert_array_equal(getattr(one, field), getattr(same, field))
    np.testing.assert_array_equal(single.X, one.X.astype(np.float32))
    np.testing.assert_allclose(single.y, one.y, rtol=1e-6)
    assert not np.array_equal(one.y, other.y)


def test_digits():
    """The pixels 0..16 come back in [0, 1]."""
    pytest.importorskip("sklearn")
    data = load("digits")
    assert data.X.shape == (1797, 64)
    assert (data.X.min(), data.X.max()) == (0.0, 1.0)
    assert class_count(data.y) == 10
    np.testing.assert_array_equal(load("digits", scale="none").X, 16 * data.X)
    assert load("digits", dtype="float32").X.dtype == np.float32


def test_breast_cancer_is_standardised():
    """Standardised by default, raw on request."""
    pytest.importorskip("sklearn")
    data = load("breast_cancer")
    assert data.X.shape == (569, 30)
    np.testing.assert_allclose(data.X.mean(axis=0), 0, atol=1e-13)
    np.testing.assert_allclose(data.X.std(axis=0), 1, rtol=1e-13)
    assert np.bincount(data.y).tolist() == [212, 357]
    assert load("breast_cancer", scale="none").X.max() > 4000


@pytest.mark.parametrize("name", ["breast_cancer", "digits"])
def test_files_of_scikit_learn_are_read_as_it_reads_them(name, monkeypatch):
    """Without importing it; where a file is elsewhere it is asked."""
    datasets = pytest.importorskip("sklearn.datasets")
    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    for _ in range(2):
        data = load(name, scale="none")
        assert (data.X.dtype, data.y.dtype) == (X.dtype, y.dtype)
        assert (data.X.tobytes(), data.y.tobytes()) == (X.tobytes(), y.tobytes())
        monkeypatch.setattr(embedded, "find_spec", lambda module: None)


@pytest.mark.parametrize("place", ["a1", "a1.npz", "libsvm/a1.npz", "a1/a1.npz"])
def test_bare_name_is_found_in_the_folder(tmp_path, place):
    if place == "a1":  # without a suffix it is a LIBSVM file
        pytest.importorskip("sklearn")
        (tmp_path / place).write_text("0 1:4\n1 1:4\n")
    else:
        save(tmp_path / place, 4)
    np.testing.assert_array_equal(load("a1", data_home=tmp_path).X, [[4], [4]])
    np.testing.assert_array_equal(load("a1", data_home=str(tmp_path)).X, [[4], [4]])


@pytest.mark.parametrize("suffix", ["bz2", "gz", "svm", "libsvm", "txt"])
def test_bare_name_of_a_libsvm_file(tmp_path, suffix):
    pytest.importorskip("sklearn")
    import bz2
    import gzip

    encode = {"gz": gzip.compress, "bz2": bz2.compress}.get(suffix, bytes)
    (tmp_path / "libsvm").mkdir()
    (tmp_path / "libsvm" / f"a1.{suffix}").write_bytes(encode(b"0 1:4\n1 1:4\n"))
    np.testing.assert_array_equal(load("a1", data_home=tmp_path).X, [[4], [4]])


def test_file_name_with_suffix_is_found_in_the_folder(tmp_path):
    save(tmp_path / "b.npz", 4)
    assert load("b.npz", data_home=tmp_path).X[0, 0] == 4


def test_existing_path_comes_before_the_folder(tmp_path, monkeypatch):
    save(tmp_path / "here" / "b.npz", 1)
    save(tmp_path / "home" / "b.npz", 2)
    monkeypatch.chdir(tmp_path / "here")
    assert load("b.npz", data_home=tmp_path / "home").X[0, 0] == 1
    monkeypatch.chdir(tmp_path)
    assert load("b.npz", data_home=tmp_path / "home").X[0, 0] == 2


def test_known_name_comes_before_a_file(tmp_path, monkeypatch):
    save(tmp_path / "synthetic-regression", 1)
    monkeypatch.chdir(tmp_path)
    assert load("synthetic-regression", m=3, d=2).X.shape == (3, 2)


def test_environment_names_the_folder_and_the_argument_overrides_it(tmp_path, monkeypatch):
    save(tmp_path / "one" / "b.npz", 1)
    save(tmp_path / "two" / "b.npz", 2)
    monkeypatch.setenv("DUALOPT_DATA_HOME", str(tmp_path / "one"))
    assert load("b").X[0, 0] == 1
    assert load("b", data_home=tmp_path / "two").X[0, 0] == 2
    monkeypatch.setenv("DUALOPT_DATA_HOME", "")
    with pytest.raises(ValueError, match="since none was passed"):
        load("b")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("mnits", r"^data 'mnits' is neither one of breast_cancer, .*none was passed; did you mean 'mnist'\?$"),
        ("zzz", r"^data 'zzz' is neither one of .*digits.*none was passed\.$"),
        ("gone.npz", r"^data 'gone\.npz' is not a file"),
        ("folder/gone", r"^data 'folder/gone' is not a file"),
        ("", r"^data '' is neither one of"),
    ],
)
def test_unknown_name(name, message):
    with pytest.raises(ValueError, match=message):
        load(name)


def test_unknown_name_says_where_it_looked(tmp_path):
    with pytest.raises(ValueError, match=f"nor a file in data_home {re.escape(repr(str(tmp_path)))}"):
        load("zzz", data_home=tmp_path)


def test_data_home_that_is_not_a_folder(tmp_path):
    with pytest.raises(ValueError, match=r"^data_home .*gone' is not a folder"):
        load("synthetic-regression", data_home=tmp_path / "gone")


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("synthetic-regression", {"rows": 3}, "option 'rows' is not known for .*, which takes m, d"),
        ("digits", {"split": "test"}, "option 'split' is not known for data 'digits', which takes none"),
        ("synthetic-regression", {"dtype": "int8"}, 'dtype must be "float64" or "float32", got .int8.'),
        ("synthetic-regression", {"scale": "unitrows"}, r"scale must be .* did you mean 'unit-rows'\?$"),
        ("synthetic-regression", {"scale": 0}, "scale must be .*, got 0"),
        ("synthetic-regression", {"seed": -1}, "seed must be at least 0, got -1"),
        ("synthetic-regression", {"m": 0}, "m must be at least 1, got 0"),
        ("synthetic-regression", {"d": 2.5}, "d must be an integer, got 2.5"),
        ("synthetic-regression", {"noise": -1.0}, "noise must be nonnegative and finite, got -1.0"),
        ("synthetic-regression", {"decay": np.inf}, "decay must be nonnegative and finite, got inf"),
        ("synthetic-logistic", {"classes": 3}, "classes = 3 is an option of synthetic-multinomial only"),
        ("synthetic-multinomial", {"classes": 1}, "classes must be at least 2, got 1"),
        (
            "synthetic-feddyn",
            {"setting": "type1"},
            "setting must be one of homogeneous, models, features, sizes, got 'type1'",
        ),
        ("synthetic-feddyn", {"spread": "sd"}, "spread must be one of code, paper, got 'sd'"),
        ("synthetic-feddyn", {"gamma1": -1.0}, "gamma1 must be nonnegative and finite, got -1.0"),
        ("synthetic-feddyn", {"gamma2": np.inf}, "gamma2 must be nonnegative and finite, got inf"),
        ("synthetic-feddyn", {"gamma3": -0.1, "spread": "paper"}, "gamma3 must be nonnegative and finite, got -0.1"),
        ("synthetic-feddyn", {"clients": 0}, "clients must be at least 1, got 0"),
        ("synthetic-feddyn", {"rows": 0}, "rows must be at least 1, got 0"),
        ("synthetic-feddyn", {"d": 0}, "d must be at least 1, got 0"),
        ("synthetic-feddyn", {"classes": 1}, "classes must be at least 2, got 1"),
        ("synthetic-feddyn", {"rows": 1, "gamma3": 2.0}, "rows = 1 is too small: client [0-9]+ is left without rows"),
        ("synthetic-fedpd-strong", {"recipe": "matlab"}, "recipe must be one of paper, code, got 'matlab'"),
        ("synthetic-fedpd-weak", {"recipe": "code"}, "recipe = 'code' is an option of synthetic-fedpd-strong only"),
        ("synthetic-fedpd-strong", {"clients": 0}, "clients must be at least 1, got 0"),
        ("synthetic-fedpd-strong", {"rows": 2.5}, "rows must be an integer, got 2.5"),
        ("synthetic-fedpd-strong", {"d": 1}, "d must be at least 2, got 1"),
    ],
)
def test_wrong_options(name, options, message):
    with pytest.raises(ValueError, match=r"^" + message):
        load(name, **options)


def test_scale_that_overflows_is_refused():
    with np.errstate(over="ignore"), pytest.raises(ValueError, match=r"^X must be finite"):
        load("synthetic-regression", scale=1e-320)


def test_dataset_refuses_integers():
    with pytest.raises(ValueError, match=r"^X must be of type float64 or float32, but it is int64"):
        Dataset(X=np.eye(2, dtype=np.int64), y=np.arange(2), name="n", description="d")


@pytest.mark.parametrize("clients", [np.zeros(3, int), np.zeros((2, 1), int), np.zeros(2), np.zeros(2, bool)])
def test_dataset_refuses_clients_that_are_not_one_integer_per_row(clients):
    with pytest.raises(ValueError, match=r"^clients must hold one integer for each of the 2 rows of X, but it is .*"):
        Dataset(X=np.eye(2), y=np.arange(2), name="n", description="d", clients=clients)
