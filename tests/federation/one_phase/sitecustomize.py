"""Put before everything else in PYTHONPATH: a client that keeps what it computed, whether or not it was counted.

This is what a plain stateful client does. ``python -m tests.federation`` shows that it misses the solution.
"""

from __future__ import annotations

from typing import Any

from tests.federation.patched import when_imported


def hasty(module: Any) -> None:
    """Change the host."""
    commit = module.Host._commit

    def keep(self: Any, request: Any) -> Any:
        worked = self._asked is not None and self._asked.n == request.n  # or its request did not arrive
        return commit(self, request._replace(clients=None) if worked else request)

    module.Host._commit = keep


when_imported("dualopt.engine._host", hasty)
