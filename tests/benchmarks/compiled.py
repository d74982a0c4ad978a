"""The multinomial gradient in C, compiled for this machine where it has a compiler."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

SOURCE = Path(__file__).with_name("softmax.c")
OPTIONS = ("-O3", "-march=native", "-ffast-math", "-shared", "-fPIC")
TYPES = {"float64": ("double", "exp", ctypes.c_double), "float32": ("float", "expf", ctypes.c_float)}


def gradient_in_c(folder: Path, dtype: Any) -> Callable[..., tuple[float, np.ndarray]] | None:
    """Return ``(X, y, theta) -> value, gradient`` of the mean loss; None without a compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    real, exponential, number = TYPES[np.dtype(dtype).name]
    library = folder / f"softmax_{real}.so"
    names = (f"-DREAL={real}", f"-DEXP={exponential}", "-DNAME=softmax")
    subprocess.run([compiler, *OPTIONS, *names, "-o", str(library), str(SOURCE), "-lm"], check=True)
    function = ctypes.CDLL(str(library)).softmax

    def gradient(X: np.ndarray, y: np.ndarray, theta: np.ndarray) -> tuple[float, np.ndarray]:
        value, found = number(), np.empty_like(theta)
        sizes = (ctypes.c_long(n) for n in (*X.shape, theta.shape[0]))
        function(*sizes, *(ctypes.c_void_p(a.ctypes.data) for a in (X, y, theta)), ctypes.byref(value),
                 ctypes.c_void_p(found.ctypes.data))  # fmt: skip
        return value.value, found

    return gradient
