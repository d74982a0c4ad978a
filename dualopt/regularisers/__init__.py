"""Convex regularisers ``g`` of the composite problem ``min E + g``, which the server handles by their proximal map.

It imports ``arrays``. A regulariser is one new file.
"""

from dualopt.regularisers._protocol import Regulariser
from dualopt.regularisers._without_intercept import WithoutIntercept
from dualopt.regularisers._zero import Zero
from dualopt.regularisers.l1 import L1
from dualopt.regularisers.l2 import L2

__all__ = ["L1", "L2", "Regulariser", "WithoutIntercept", "Zero"]

UNLISTED = {"zero": Zero}  # which nobody needs to ask for
