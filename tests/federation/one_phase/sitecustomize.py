"""Put before everything else in PYTHONPATH: a client that keeps what it computed, whether or not it was counted.

This is what a plain stateful client does. ``python -m tests.federation`` shows that it misses the solution.
"""

from __future__ import annotations

from typing import Any

from tests.federation.patched import when_imported


def hasty(module: Any) -> None:
    """Change the host."""
    settle = module.Host._commit
    module.Host._commit = lambda self, request: settle(self, request._replace(clients=None))


when_imported("dualopt.engine._host", hasty)
