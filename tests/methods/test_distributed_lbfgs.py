"""What the server knows of a point is of the point that the clients had."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from dualopt import DistributedLBFGS, iterate
from tests.engine.problems import problems


@pytest.mark.parametrize("downlink", [None, "rounding=4", "natural"])
def test_values_and_gradients_are_those_of_the_accepted_point(downlink: str | None) -> None:
    """Also where another point arrives than was sent: the step is the one to that."""
    f, points = problems()["smooth"], []
    shares = np.asarray(f.weights) / sum(f.weights)
    for s in islice(iterate(DistributedLBFGS(), f, downlink=downlink), 12):
        server = s.server
        np.testing.assert_allclose(server.value, shares @ f.value(server.theta), rtol=1e-12)
        np.testing.assert_allclose(server.gradient, shares @ f.gradient(server.theta), rtol=1e-9, atol=1e-12)
        points.append(server.theta)
    assert len({point.tobytes() for point in points}) > 8
