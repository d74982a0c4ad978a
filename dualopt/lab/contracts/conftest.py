"""Which files of tests there is something to test for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dualopt.lab.contracts.options import KINDS


def pytest_ignore_collect(collection_path: Path, config: Any) -> bool | None:
    """Leave out the tests of a kind of which no class is named; this package's own suite imports them elsewhere."""
    for kind, name in KINDS.items():
        if collection_path.name == f"test_{name}.py" and not config.getoption(kind, default=None):
            return True
    return None
