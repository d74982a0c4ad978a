"""Places of clients in this process, by name."""

from __future__ import annotations

from dualopt.engine._inline import Blocks, Clustered
from dualopt.engine.secure_sums import SecureBlocks

__all__ = ["ENGINES", "Clustered"]

ENGINES = {"blocks": Blocks, "secure-blocks": SecureBlocks}
