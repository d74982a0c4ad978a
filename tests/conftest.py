"""Fixtures and Hypothesis profiles shared by all tests.

Profiles: ``ci`` (the default: derandomised, so that a failure is a failure of the code), ``deep`` (many random
examples). Choose one with ``pytest --hypothesis-profile=deep``.
"""

from __future__ import annotations

import os
import signal

import array_api_strict
import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, settings
from threadpoolctl import threadpool_limits

signal.signal(signal.SIGINT, signal.default_int_handler)  # shells have what they start in the background ignore it
pytest.register_assert_rewrite("dualopt.lab.contracts")  # the tests of a contract stand in modules that are imported

from dualopt.lab.contracts.backends import BACKENDS  # noqa: E402

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
def usual_width():
    """Tables of a width of their own: processes that run tests side by side are told the width of a terminal."""
    os.environ.pop("COLUMNS", None)


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    """Linear algebra on one thread: test processes run side by side, and sums keep their order."""
    with threadpool_limits(limits=1):
        yield


def rounds_as_numpy(x) -> bool:
    """Whether the library of ``x`` computes with NumPy's own functions: those are then equal in every bit.

    Others add and factor in another order. What is chosen by comparing rounded numbers may differ with them: whether a
    line search tries once more at the minimiser, for one. L-BFGS writes in place with arrays of NumPy alone, and its
    directions differ by rounding from those of every other library.
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
