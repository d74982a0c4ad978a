"""Data that the benchmarks share."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from dualopt.problem.data import load

from .race import markdown

CLASSES = 10


def pytest_addoption(parser: pytest.Parser) -> None:
    """Take a file for all tables; known where the benchmarks are named on the command line."""
    parser.addoption("--tables", metavar="FILE", help="Write all tables of the benchmarks as Markdown.")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the tables."""
    file = session.config.getoption("--tables", None)
    if file:
        Path(file).write_text(markdown())


@pytest.fixture(scope="session")
def images() -> tuple[np.ndarray, np.ndarray, str]:
    """Pixels in [0, 1] of shape (60000, 784), labels 0 to 9, and where they come from.

    Without MNIST they are random numbers of the same shape: the time of a gradient does not depend on them.
    """
    try:
        data = load("mnist")
    except ValueError:  # DUALOPT_DATA_HOME is not set, or holds no MNIST
        rng = np.random.default_rng(0)
        X = rng.integers(0, 256, size=(60000, 784), dtype=np.uint8) / 255.0
        return X, rng.integers(0, CLASSES, size=60000), "random pixels"
    return data.X, data.y.astype(np.int64), "MNIST"


@pytest.fixture(autouse=True)
def _one_thread():
    """Keep all contestants on one thread of linear algebra."""
    with threadpool_limits(limits=1):
        yield
