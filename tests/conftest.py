"""Fixtures and Hypothesis profiles shared by all tests.

Profiles: ``ci`` (the default: derandomised, so that a failure is a failure of the code), ``deep`` (many random
examples). Choose one with ``pytest --hypothesis-profile=deep``.
"""

from __future__ import annotations

import importlib.util

import array_api_strict
import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, settings
from threadpoolctl import threadpool_limits

settings.register_profile(
    "ci",
    derandomize=True,
    deadline=None,
    max_examples=40,
    phases=[phase for phase in Phase if phase is not Phase.explain],  # it traces every line of every example
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "deep", deadline=None, max_examples=1000, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("ci")


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    """Linear algebra on one thread: test processes run side by side, and sums keep their order."""
    with threadpool_limits(limits=1):
        yield


def _read_only(values: np.ndarray) -> np.ndarray:
    values = np.array(values)
    values.flags.writeable = False
    return values


def _strict(values: np.ndarray, device: str = "CPU_DEVICE"):
    return array_api_strict.asarray(np.array(values), device=array_api_strict.Device(device))


BACKENDS = {
    "numpy": np.array,
    "read-only": _read_only,
    "strict": _strict,
    "strict-device1": lambda values: _strict(values, "device1"),
}
try:
    import cupy  # pyright: ignore[reportMissingImports]

    if cupy.cuda.runtime.getDeviceCount() > 0:
        BACKENDS["cupy"] = cupy.asarray
except Exception:  # no CuPy or no GPU: the backend is not there
    pass


# Other libraries take seconds to import: they are imported by the first test that asks for them, and those tests are
# there where the library is installed (CONTRIBUTING.md says how).
def _torch(values: np.ndarray):
    import torch  # pyright: ignore[reportMissingImports]

    return torch.asarray(np.array(values))


def _jax(values: np.ndarray):
    import jax  # pyright: ignore[reportMissingImports]

    jax.config.update("jax_enable_x64", True)
    return jax.numpy.asarray(np.array(values))


def _dpnp(values: np.ndarray):
    import dpctl  # pyright: ignore[reportMissingImports]
    import dpnp  # pyright: ignore[reportMissingImports]

    if not dpctl.get_devices(device_type="cpu"):
        pytest.skip("dpnp finds no CPU: OCL_ICD_FILENAMES must name libintelocl.so")
    return dpnp.asarray(np.array(values), device="cpu")


BACKENDS |= {
    name: build
    for name, build in {"torch": _torch, "jax": _jax, "dpnp": _dpnp}.items()
    if importlib.util.find_spec(name) is not None
}


def rounds_as_numpy(x) -> bool:
    """Whether the library of ``x`` computes with NumPy's own functions: results are then equal in every bit.

    Others add and factor in another order. What is chosen by comparing rounded numbers may differ with them: whether a
    line search tries once more at the minimiser, for one.
    """
    return isinstance(x, np.ndarray | array_api_strict.asarray(0.0).__class__)


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest):
    """A function that turns a host array into one of the backend under test."""
    return BACKENDS[request.param]


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave pictures undrawn where a test looks at numbers: their files hold the first bytes of their format."""
    figure = pytest.importorskip("matplotlib.figure").Figure

    def savefig(self, file, *, format: str, **options) -> None:
        file.write({"png": b"\x89PNG", "pdf": b"%PDF"}[format])

    monkeypatch.setattr(figure, "savefig", savefig)
