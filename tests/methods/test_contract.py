"""What every algorithm must satisfy; a new file in ``dualopt/methods`` is tested without editing a list.

The contract itself is in ``dualopt/lab/contracts/test_algorithms.py``, where it serves methods in files of users' own,
too.
"""

from __future__ import annotations

import sys

import numpy as np

from dualopt.lab.contracts.test_algorithms import *  # noqa: F403
from dualopt.lab.contracts.test_algorithms import rows_are_contiguous
from dualopt.methods import DualFL


def test_clients_side_by_side_are_seen(monkeypatch):
    monkeypatch.setattr(sys.modules["dualopt.methods.dualfl"], "zeros_like", np.zeros_like)
    assert not rows_are_contiguous(DualFL)
