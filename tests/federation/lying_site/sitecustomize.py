"""Put before everything else in the PYTHONPATH of one site: a site that states too small a conjugate from round 5 on.

Without it, the certificate would be too small: it takes conjugates as they come.
"""

from __future__ import annotations

from typing import Any

from tests.federation.patched import when_imported

WHEN = 5


def lying(module: Any) -> None:
    """Change the host."""
    honest = module.Host._evaluate

    def evaluate(self: Any, request: Any) -> Any:
        found: Any = honest(self, request)
        lies = request.n >= WHEN and found.conjugate is not None
        return found._replace(conjugate=found.conjugate - 1.0) if lies else found  # pyright: ignore[reportOptionalOperand]

    module.Host._evaluate = evaluate


when_imported("dualopt.engine._host", lying)
