"""What dual coordinate ascent allows for rounding."""

from __future__ import annotations

import numpy as np
import pytest

from dualopt.losses import AbsoluteDeviation, Hinge
from dualopt.objectives import LocalProblem, linear_model
from dualopt.solvers import DualCoordinate
from dualopt.solvers.stopping import Steps


@pytest.mark.parametrize("loss", [Hinge(), AbsoluteDeviation()], ids=lambda loss: type(loss).__name__)
def test_large_predictors_of_either_sign_are_allowed_for(loss):
    """The value, the conjugate and the product of a row are right to 16 units of rounding, whatever their signs."""
    X, y, w = np.array([[1.0], [2.0]]), np.array([1.0, 1.0]), np.array([0.5, 0.25])
    f = linear_model(X, y, loss=loss, mu=1.0, weights=w, intercept=False)
    for push in (60.0, -60.0):
        found = DualCoordinate()(LocalProblem(objective=f, linear=np.array([[push]])), np.zeros((1, 1)), Steps(steps=2))
        assert found.excess is not None
        z, u = X @ found.theta[0], found.solver_state[0][0]
        assert np.all(push * z < -3000.0)
        terms = np.abs(loss.value(z, y)) + np.abs(loss.conjugate(u, y)) + np.abs(u * z)
        assert found.excess[0] - found.gap[0] >= 16.0 * 2.0**-52 * w @ terms
