"""What `dualopt.arrays.xp` says about the arrays of each library, and how it moves them to the host."""

from __future__ import annotations

import numpy as np
import pytest

from dualopt.arrays import xp as module
from dualopt.arrays.xp import array_namespace, asarray_like, is_host, to_numpy
from tests.conftest import BACKENDS

# dpnp runs every function as a kernel in a queue, on a CPU too; what holds for GPUs holds for it.
NOT_HOST = {"strict-device1", "cupy", "dpnp"}


class Recorded(np.ndarray):
    """Arrays of a library that says, by DLPack's number of the kind of device (2 is CUDA), where they are."""

    asked = 0
    kind = 2

    def __dlpack_device__(self):
        type(self).asked += 1
        return self.kind, 0


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> type[Recorded]:
    monkeypatch.setattr(module, "_hosts", {})
    monkeypatch.setattr(Recorded, "asked", 0)
    return Recorded


@pytest.mark.parametrize("library", BACKENDS)
def test_where_arrays_are(library: str) -> None:
    assert is_host(BACKENDS[library](np.ones(3))) is (library not in NOT_HOST)


@pytest.mark.parametrize(("kind", "host"), [(1, True), (2, False), (14, False)])
def test_dlpack_decides_and_is_asked_once(library, monkeypatch: pytest.MonkeyPatch, kind: int, host: bool) -> None:
    monkeypatch.setattr(library, "kind", kind)
    for _ in range(3):
        assert is_host(np.ones(3).view(library)) is host
    assert library.asked == 1


def test_each_device_has_its_own_answer() -> None:
    """A library has arrays on the host and on a device: the answer for one must not be given for the other."""
    strict = BACKENDS["strict"], BACKENDS["strict-device1"]
    for _ in range(2):
        assert [is_host(make(np.ones(1))) for make in strict] == [True, False]


def test_a_device_without_dlpack_is_not_the_host() -> None:
    """PyTorch has devices, such as "meta", that DLPack does not know; their names say that they are no CPU."""
    torch = pytest.importorskip("torch")
    assert not is_host(torch.ones(2, device="meta"))


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.bool_])
def test_there_and_back(backend, dtype) -> None:
    values = np.array([[0, 1, 2], [3, 4, 5]]).astype(dtype)
    there = backend(values)
    back = to_numpy(there)
    assert type(back) is np.ndarray
    assert back.dtype == dtype
    np.testing.assert_array_equal(back, values)
    again = asarray_like(values, there)
    assert type(again) is type(there)
    assert again.dtype == there.dtype
    assert module.device(again) == module.device(there)
    np.testing.assert_array_equal(to_numpy(again), values)


def test_results_of_functions_come_back(backend) -> None:
    """Views and transposed arrays, too."""
    x = backend(np.arange(6.0).reshape(2, 3))
    turned = array_namespace(x).matrix_transpose(x)
    np.testing.assert_array_equal(to_numpy(turned[1:, ...]), [[1.0, 4.0], [2.0, 5.0]])
