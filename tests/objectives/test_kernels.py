"""Compiled products: right to rounding, and the same bits whatever lies beside them."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from dualopt.objectives import _kernels
from dualopt.objectives._rounding import gamma

if _kernels.numba is None:
    pytest.skip("needs Numba", allow_module_level=True)

# Clients, rows, columns, outputs: below, at and above the sides of tiles, of registers of 32 and of 64 bytes.
SHAPES = [
    (1, 1, 32, 2),
    (1, 512, 785, 10),
    (3, 5, 33, 3),
    (2, 12, 64, 12),
    (4, 7, 40, 13),
    (1, 25, 47, 20),
    (2, 3, 32, 40),
]
TYPES = [np.float32, np.float64]


def numbers(shape, dtype, seed):
    """Normal numbers of sizes from 0.1 to 10."""
    rng = np.random.default_rng(seed)
    return (rng.normal(size=shape) * 10.0 ** rng.uniform(-1.0, 1.0, size=shape)).astype(dtype)


def example(shape, dtype):
    c, b, p, k = shape
    return numbers((c, b, p), dtype, 0), numbers((c, k, p), dtype, 1), numbers((c, k, b), dtype, 2)


def excess(computed, A, B):
    """Return the largest error of a product ``A B``, as a multiple of the bound ``gamma_n |A| |B|``."""
    exact = A.astype(np.longdouble) @ B.astype(np.longdouble)
    bound = gamma(A.shape[-1], computed) * (np.abs(A).astype(np.longdouble) @ np.abs(B).astype(np.longdouble))
    return float((np.abs(computed - exact) / bound).max())


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", TYPES)
def test_products_are_right_to_rounding(shape, dtype):
    X, matrices, slopes = example(shape, dtype)
    Xt = np.swapaxes(X, -1, -2)
    z, g = _kernels.predict(X, matrices), _kernels.pull_back(slopes, X)
    assert z.dtype == g.dtype == dtype
    assert excess(z, matrices, Xt) <= 1.0
    assert excess(g, slopes, X) <= 1.0
    assert excess(matrices[..., :-1] @ Xt[:, :-1, :], matrices, Xt) > 1.0  # a column forgotten is seen
    assert excess(z * dtype(1.0 + 1e-3), matrices, Xt) > 1.0


@pytest.mark.parametrize("dtype", TYPES)
def test_nothing_depends_on_what_lies_beside(dtype):
    X, matrices, slopes = example((4, 29, 50, 14), dtype)
    z, g = _kernels.predict(X, matrices), _kernels.pull_back(slopes, X)
    for j in range(4):
        one = slice(j, j + 1)
        np.testing.assert_array_equal(_kernels.predict(X[one], matrices[one]), z[one])
        np.testing.assert_array_equal(_kernels.pull_back(slopes[one], X[one]), g[one])
    np.testing.assert_array_equal(_kernels.predict(X[:, 3:8], matrices), z[:, :, 3:8])
    np.testing.assert_array_equal(_kernels.predict(X, matrices[:, 5:7]), z[:, 5:7])
    np.testing.assert_array_equal(_kernels.pull_back(slopes[:, 5:7], X), g[:, 5:7])
    np.testing.assert_array_equal(_kernels.pull_back(slopes, X[:, :, 9:45]), g[:, :, 9:45])


@pytest.mark.parametrize("dtype", TYPES)
def test_any_layout_and_read_only_arrays(dtype):
    X, matrices, slopes = example((3, 20, 37, 4), dtype)
    z, g = _kernels.predict(X, matrices), _kernels.pull_back(slopes, X)
    for x in (X, matrices, slopes):
        x.flags.writeable = False
    turned = [np.asfortranarray(x) for x in (matrices, slopes)]
    np.testing.assert_array_equal(_kernels.predict(X, turned[0]), z)
    np.testing.assert_array_equal(_kernels.pull_back(turned[1], X), g)
    np.testing.assert_array_equal(
        _kernels.predict(X, matrices[:1]), _kernels.predict(X, np.repeat(matrices[:1], 3, axis=0))
    )
    with pytest.raises(ValueError, match="side by side"):
        _kernels.pull_back(slopes, np.asfortranarray(X))
    with pytest.raises(ValueError, match="fill a tile"):
        _kernels.pull_back(slopes, X[:, :, :3])


def test_infinite_entries_stay_in_their_row_and_output():
    X, matrices, slopes = example((1, 20, 37, 4), np.float64)
    matrices[0, 1, 36], slopes[0, 2, 5] = np.inf, np.nan
    z, g = _kernels.predict(X, matrices), _kernels.pull_back(slopes, X)
    assert np.isinf(z[0, 1]).all()
    assert np.isfinite(np.delete(z, 1, axis=1)).all()
    assert np.isnan(g[0, 2]).all()
    assert np.isfinite(np.delete(g, 2, axis=1)).all()


def test_shapes_that_fit():
    assert _kernels.fits(10, 785, 8) == bool(_kernels.FEATURES.get("avx2"))
    assert not _kernels.fits(1, 785, 8)  # BLAS is as fast
    assert not _kernels.fits(200, 785, 8)
    assert not _kernels.fits(10, 15, 4)


def test_without_a_folder_to_write_to(monkeypatch):
    numba, asked = _kernels.numba, []

    class Numba:
        types, from_dtype = numba.types, staticmethod(numba.from_dtype)

        @staticmethod
        def njit(signature, *, cache=False, **options):
            asked.append(cache)
            if cache:
                raise RuntimeError("cannot cache function: no locator available")
            return numba.njit(signature, **options)

    monkeypatch.setattr(_kernels, "numba", Numba)
    predict, _ = _kernels._compiled.__wrapped__(np.dtype(np.float32))
    X, matrices, _ = example((1, 3, 40, 2), np.float32)
    z, model, sums = (np.zeros(shape, np.float32) for shape in [(1, 2, 3), (40, 16), (_kernels.HEIGHT, 16)])
    predict(X, matrices, z, model, sums)
    assert asked == [True, False, True, False]
    np.testing.assert_array_equal(z, _kernels.predict(X, matrices))


def test_registers_of_32_bytes(tmp_path):
    """Processors with AVX2 alone have other tiles; the same bits come out, as every sum has one order."""
    code = """if True:
        import llvmlite.binding, numpy as np
        features = llvmlite.binding.get_host_cpu_features()
        features.update({name: False for name in features if name.startswith("avx512")})
        llvmlite.binding.get_host_cpu_features = lambda: features  # Numba asks it, too
        from dualopt.objectives import _kernels
        assert (_kernels.REGISTER, _kernels.HEIGHT) == (32, 6)
        from tests.objectives.test_kernels import SHAPES, example
        for i, shape in enumerate(SHAPES):
            X, matrices, slopes = example(shape, np.float64)
            np.savez(f"{i}.npz", z=_kernels.predict(X, matrices), g=_kernels.pull_back(slopes, X))
    """
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": root}
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, check=True, timeout=120)
    for i, shape in enumerate(SHAPES):
        X, matrices, slopes = example(shape, np.float64)
        found = np.load(tmp_path / f"{i}.npz")
        np.testing.assert_array_equal(found["z"], _kernels.predict(X, matrices))
        np.testing.assert_array_equal(found["g"], _kernels.pull_back(slopes, X))
