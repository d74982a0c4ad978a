"""When products are compiled, and that nothing but the last digits depends on it."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from functools import cache
from itertools import pairwise
from types import SimpleNamespace

import array_api_strict
import numpy as np
import pytest

from dualopt.app.cli import main
from dualopt.losses import Logistic, Multinomial
from dualopt.objectives import _compiled, _kernels, linear_model, mlp
from dualopt.objectives._compiled import CompiledBlock, CompiledGroup, Group, dense_group, numba_version
from dualopt.objectives._index import Index
from dualopt.runs.trace import versions

needs_numba = pytest.mark.skipif(
    not _kernels.fits(10, 100, 8), reason="needs Numba, and a processor for which its products were measured"
)
CLASSES = 5
SIZES = (30, 7, 1, 7, 600, 30)  # of two clients each the same, one of more than a block


@pytest.fixture(autouse=True)
def automatic(monkeypatch):
    """Whatever the caller's environment says."""
    monkeypatch.delenv("DUALOPT_FAST", raising=False)


@pytest.fixture
def always(monkeypatch):
    monkeypatch.setenv("DUALOPT_FAST", "1")


def data(dtype=np.float64, columns=40):
    rng = np.random.default_rng(0)
    m = sum(SIZES)
    parts = np.split(rng.permutation(m), np.cumsum(SIZES)[:-1])
    return rng.normal(size=(m, columns)).astype(dtype), rng.integers(0, CLASSES, m), [part.tolist() for part in parts]


def model(dtype=np.float64, **options):
    X, y, parts = data(dtype)
    return linear_model(X, y, loss=Multinomial(classes=CLASSES), mu=0.1, clients=parts, **options)


def point(f, seed=1):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(f.n_clients, *f.shape)).astype(f.rows.like.dtype)


def exactly(f):
    """Return the same function of the same numbers in extended precision."""
    rows = list(f.client_rows())
    X, y, w = (np.concatenate(column) for column in zip(*rows, strict=True))
    ends = np.cumsum([0, *f.sizes])
    parts = [list(range(a, b)) for a, b in pairwise(ends.tolist())]
    X, w = X.astype(np.longdouble), w.astype(np.longdouble)
    return linear_model(X, y, loss=f.loss, mu=f.ridge, clients=parts, intercept=False, weights=w)


def broken(f, theta, value, gradient):
    """Tell which of the promises of `Rounding` do not hold, at ``theta`` and for the points ``x`` around it."""
    exact, bound = exactly(f), f.rounding(theta, value, gradient)
    at = theta.astype(np.longdouble)
    wrong = {"value"} if (np.abs(exact.value(at) - value) > bound.value).any() else set()
    worst = gradient - exact.gradient(at)  # along the error of the gradient the lower bound is too high
    for size in (1e-6, 1e-3, 1.0):
        for step in (worst, np.random.default_rng(3).normal(size=theta.shape)):
            step = step / np.sqrt((step**2).sum(axis=(1, 2), keepdims=True)) * size
            lower = value + (gradient * step).sum(axis=(1, 2)) + 0.5 * f.ridge * size**2
            if (exact.value(at + step) < lower - bound.value - bound.gradient * size).any():
                wrong.add("gradient")
    return wrong


@needs_numba
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_certificates_may_rest_on_the_rounding(always, dtype):
    f = model(dtype)
    assert f.rows.is_compiled
    theta = point(f)
    value, gradient = f.value_and_gradient(theta)
    assert broken(f, theta, value, gradient) == set()
    assert broken(f, theta, value * dtype(1.001), gradient) == {"value", "gradient"}
    gradient[:, :, -1] = 0.0  # the last column of a tile, forgotten
    assert broken(f, theta, value, gradient) == {"gradient"}


@needs_numba
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 1e-4), (np.float64, 1e-13)])
def test_results_are_those_of_blas(monkeypatch, dtype, tolerance):
    """To about a thousand units of rounding: sums have up to 600 terms."""
    blas = model(dtype)
    assert not blas.rows.is_compiled
    monkeypatch.setenv("DUALOPT_FAST", "1")
    f = model(dtype)
    theta, v = point(f), point(f, 2)
    sample = f.draw([np.random.default_rng(j) for j in range(len(SIZES))], 9)
    assert not np.array_equal(f.gradient(theta), blas.gradient(theta))  # another program computes them
    for compute in (
        lambda g: g.value(theta),
        lambda g: g.gradient(theta),
        lambda g: g.sample_gradient(theta, sample),
        lambda g: g.hessian_product(theta, v),
    ):
        own, other = compute(f), compute(blas)
        assert own.dtype == dtype
        assert np.abs(own - other).max() <= tolerance * np.abs(other).max()


@needs_numba
def test_a_client_does_not_depend_on_the_others(always):
    f = model()
    theta = point(f)
    value, gradient = f.value_and_gradient(theta)
    for ids in ([4], [5, 0], [1, 3], [2, 1, 0, 4]):
        part = f.select(ids)
        sent = pickle.loads(pickle.dumps(part))  # to a process of its own
        for own in (part, sent):
            assert own.rows.is_compiled
            found = own.value_and_gradient(theta[ids])
            np.testing.assert_array_equal(found[0], value[ids])
            np.testing.assert_array_equal(found[1], gradient[ids])


@needs_numba
def test_one_point_for_all_clients(always):
    f = model()
    theta = point(f)[0]
    stacked = np.stack([theta] * f.n_clients)
    for one, many in zip(f.value_and_gradient(theta), f.value_and_gradient(stacked), strict=True):
        np.testing.assert_array_equal(one, many)


@needs_numba
def test_large_data_are_enough(monkeypatch):
    monkeypatch.setattr(_compiled, "LARGE", 40 * sum(SIZES) + sum(SIZES))  # with the intercept
    assert model().rows.is_compiled
    assert not model(intercept=False).rows.is_compiled
    monkeypatch.setenv("DUALOPT_FAST", "0")
    assert not model().rows.is_compiled
    assert versions()["numba"] == _kernels.numba.__version__


@needs_numba
def test_products_that_blas_does_as_fast(always):
    X, y, parts = data()
    strict = array_api_strict.asarray(X)
    assert dense_group(X, columns=40, outputs=10) is CompiledGroup
    assert dense_group(X, columns=40, outputs=1) is Group
    assert dense_group(X.astype(np.float16), columns=40, outputs=10) is Group
    assert dense_group(strict, columns=40, outputs=10) is Group
    labels = np.where(y > 2, 1.0, -1.0)
    assert not linear_model(X, labels, loss=Logistic(), mu=0.1, clients=parts).rows.is_compiled
    assert not mlp(X, y, layers=(200,), clients=parts).rows.is_compiled
    assert mlp(X, y, layers=(8,), clients=parts).rows.is_compiled


@needs_numba
def test_a_network_to_rounding(monkeypatch):
    X, y, parts = data()
    blas = mlp(X, y, layers=(8,), clients=parts)
    monkeypatch.setenv("DUALOPT_FAST", "1")
    compiled = mlp(X, y, layers=(8,), clients=parts)
    theta = blas.initial()
    for own, other in zip(compiled.value_and_gradient(theta), blas.value_and_gradient(theta), strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-12, atol=1e-14)


@needs_numba
def test_a_run_says_so(monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    records = {}
    for setting in ("0", "1"):
        monkeypatch.setenv("DUALOPT_FAST", setting)
        with pytest.raises(SystemExit) as end:
            main(["run", "--data", "digits", "--rounds", "3", "--out", setting])
        assert end.value.code in (0, None)
        records[setting] = json.loads((tmp_path / setting / "run.json").read_text())
        words = f"products compiled by Numba {_kernels.numba.__version__}"
        assert (words in records[setting]["problem"]["data"]) == (setting == "1")
        assert ("products compiled" in " ".join(capsys.readouterr().out.split())) == (setting == "1")
    assert records["1"]["versions"]["numba"] == _kernels.numba.__version__
    assert records["1"]["final"]["energy"] == pytest.approx(records["0"]["final"]["energy"], rel=1e-9)


def test_settings_are_checked(monkeypatch):
    monkeypatch.setenv("DUALOPT_FAST", "yes")
    with pytest.raises(ValueError, match="DUALOPT_FAST must be auto, 0 or 1, not 'yes'"):
        model()
    monkeypatch.setenv("DUALOPT_FAST", "1")
    monkeypatch.setattr(_kernels, "numba", None)
    monkeypatch.setitem(sys.modules, "numba", SimpleNamespace())  # which is there, and cannot be used
    with pytest.raises(ModuleNotFoundError, match="needs a Numba that fits this NumPy and this processor"):
        model()
    monkeypatch.setitem(sys.modules, "numba", None)
    with pytest.raises(ModuleNotFoundError, match=r'pip install "dualopt\[fast\]"'):
        model()


@pytest.fixture
def stand_in(monkeypatch):
    """Kernels that BLAS stands in for, and what they are asked: whether products fit, and for products."""
    asked = []

    def fits(outputs, columns, size):
        asked.append((outputs, columns, size))
        return outputs > 1

    kernels = SimpleNamespace(
        numba=SimpleNamespace(__version__="1.2"),
        fits=fits,
        predict=lambda X, matrices: asked.append("predict") or matrices @ X.swapaxes(1, 2),
        pull_back=lambda slopes, X: asked.append("pull_back") or slopes @ X,
    )
    monkeypatch.setattr(_compiled, "_kernels", cache(lambda: kernels))
    return asked


def test_which_rows_are_compiled(stand_in, monkeypatch):
    X = np.zeros((6, 4))
    assert dense_group(X, columns=1000, outputs=1, rows=1000) is Group
    assert stand_in == []  # Numba would not be worth its loading
    assert dense_group(X, columns=1000, outputs=3, rows=10**6) is CompiledGroup
    stand_in.clear()
    _compiled._kernels.cache_clear()
    monkeypatch.setattr(_compiled, "LARGE", 30)
    assert dense_group(X, columns=4, outputs=3) is Group  # 24 numbers
    assert (stand_in, numba_version()) == ([], None)
    assert dense_group(X, columns=5, outputs=3) is CompiledGroup
    assert dense_group(X, columns=5, outputs=3, rows=5) is Group
    assert dense_group(X.astype(np.float32), columns=3, outputs=1, rows=10) is Group
    assert stand_in == [(3, 5, 8), (1, 3, 4)]
    assert numba_version() == "1.2"
    assert dense_group(array_api_strict.asarray(X), columns=5, outputs=3) is Group
    monkeypatch.setenv("DUALOPT_FAST", "0")
    assert dense_group(X, columns=5, outputs=3) is Group
    monkeypatch.setenv("DUALOPT_FAST", "1")
    assert dense_group(X, columns=4, outputs=3) is CompiledGroup


def test_products_are_compiled_where_they_fit(stand_in):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2, 7, 4))
    block = CompiledBlock(Index([0, 1]), X, np.zeros((2, 7)), np.ones((2, 7)))
    for dtype, k, compiled in ((np.float64, 3, True), (np.float64, 1, False), (np.float32, 3, False)):
        matrices, slopes = (rng.normal(size=(2, k, n)).astype(dtype) for n in (4, 7))
        stand_in.clear()
        np.testing.assert_allclose(block.predict(matrices), matrices @ X.swapaxes(1, 2), rtol=1e-12)
        np.testing.assert_allclose(block.pull_back(slopes), slopes @ X, rtol=1e-12)
        fits = [] if dtype == np.float32 else [(k, 4, 8)]
        assert stand_in == [*fits, *["predict"][:compiled], *fits, *["pull_back"][:compiled]]


def test_without_numba(monkeypatch):
    monkeypatch.setattr(_kernels, "numba", None)
    monkeypatch.setattr(_kernels, "FEATURES", {})
    monkeypatch.setattr(_compiled, "LARGE", 1)
    f = model()
    assert not f.rows.is_compiled
    assert "numba" not in versions()
    X, y, w = next(f.client_rows())
    sent = CompiledBlock(Index([0]), X[None], y[None], w[None])  # from a machine that has Numba
    M = point(f)[:1]
    np.testing.assert_array_equal(sent.predict(M), M @ X.T)
    np.testing.assert_array_equal(sent.pull_back(sent.predict(M)), M @ X.T @ X)


def test_small_problems_never_import_numba():
    code = """if True:
        import sys, numpy as np
        import dualopt
        from dualopt.losses import Multinomial
        from dualopt.objectives import linear_model
        f = linear_model(np.eye(40), np.arange(40) % 3, loss=Multinomial(classes=3), mu=0.1)
        f.value_and_gradient(f.zeros())
        assert "numba" not in sys.modules and "llvmlite" not in sys.modules
    """
    environment = {name: value for name, value in os.environ.items() if name != "DUALOPT_FAST"}
    assert subprocess.run([sys.executable, "-c", code], env=environment, timeout=120).returncode == 0
