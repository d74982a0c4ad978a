"""The array libraries that are installed, each as a function that makes one of its arrays from one of NumPy's."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

__all__ = ["BACKENDS", "each_backend"]


def _read_only(values: np.ndarray) -> np.ndarray:
    values = np.array(values)
    values.flags.writeable = False
    return values


def _strict(values: np.ndarray, device: str = "CPU_DEVICE") -> Any:
    import array_api_strict

    return array_api_strict.asarray(np.array(values), device=array_api_strict.Device(device))


BACKENDS: dict[str, Callable[[np.ndarray], Any]] = {
    "numpy": np.array,
    "read-only": _read_only,
}
if importlib.util.find_spec("array_api_strict") is not None:
    BACKENDS |= {"strict": _strict, "strict-device1": lambda values: _strict(values, "device1")}
try:
    import cupy  # pyright: ignore[reportMissingImports]

    if cupy.cuda.runtime.getDeviceCount() > 0:
        BACKENDS["cupy"] = cupy.asarray
except Exception:  # no CuPy or no GPU: the backend is not there
    pass


# Other libraries take seconds to import: they are imported by the first test that asks for them, and those tests are
# there where the library is installed (CONTRIBUTING.md says how).
def _torch(values: np.ndarray) -> Any:
    import torch  # pyright: ignore[reportMissingImports]

    return torch.asarray(np.array(values))


def _jax(values: np.ndarray) -> Any:
    import jax  # pyright: ignore[reportMissingImports]

    jax.config.update("jax_enable_x64", True)
    return jax.numpy.asarray(np.array(values))


def _dpnp(values: np.ndarray) -> Any:
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

OF_NUMPY = ("numpy", "read-only")
each_backend = pytest.mark.parametrize(
    "backend",
    [
        pytest.param(build, id=name, marks=() if name in OF_NUMPY else pytest.mark.array_api)
        for name, build in BACKENDS.items()
    ],
)
"""Gives a test the libraries as ``backend``: NumPy, and those of the tier "array API" (``report.py``)."""
