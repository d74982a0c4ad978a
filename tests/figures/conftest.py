"""What the tests of figures share."""

from __future__ import annotations

import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(autouse=True)
def _one_thread():
    """Clients of few rows gain nothing from threads, and lose much when other tests need the cores."""
    with threadpool_limits(limits=1):
        yield
