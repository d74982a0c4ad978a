"""Put before everything else in the PYTHONPATH of one site: a site that lies, in what ``DUALOPT_LIE`` says.

``convexity``: it claims more of it than the project gives. ``conjugate``: from round 5 on it states too small ones; the
certificate, which takes conjugates as they come, would be too small. ``infinity``: so it uploads in round 5.
"""

from __future__ import annotations

import os
from typing import Any

from dualopt.arrays.tree import tree_map
from tests.federation.patched import when_imported

WHEN = 5


def convexity(info: Any, request: Any) -> Any:
    return info._replace(mu=info.mu + 1e6, L=info.L + 1e6)


def conjugate(found: Any, request: Any) -> Any:
    if request.n < WHEN or found.conjugate is None:
        return found
    return found._replace(conjugate=found.conjugate - 1.0)


def infinity(found: Any, request: Any) -> Any:
    lies = request.n == WHEN and found.upload is not None
    return found._replace(upload=tree_map(lambda x: x + float("inf"), found.upload)) if lies else found


LIES = {"_describe": convexity, "_evaluate": conjugate, "_uploaded": infinity}


def lying(module: Any) -> None:
    """Change the host."""
    ((name, lie),) = ((name, lie) for name, lie in LIES.items() if lie.__name__ == os.environ["DUALOPT_LIE"])
    honest = getattr(module.Host, name)
    setattr(module.Host, name, lambda self, request: lie(honest(self, request), request))


when_imported("dualopt.engine._host", lying)
