"""The CVXPY expressions of the losses: references are computed from them, so they must be the losses."""

from __future__ import annotations

import numpy as np
import pytest

import dualopt.losses
from dualopt.losses import Huber, Loss, Multinomial, SmoothedHinge
from dualopt.spec.discover import discover

LOSSES: list[Loss] = [kind(**kind.example) for kind in discover(dualopt.losses).values()]
LOSSES += [Huber(delta=0.3), SmoothedHinge(gamma=0.25), Multinomial(classes=3)]


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_expressions_have_the_values_of_the_losses(loss: Loss) -> None:
    cp = pytest.importorskip("cvxpy")
    rng = np.random.default_rng(0)
    m = 40
    z = 3.0 * rng.standard_normal(m if loss.outputs == 1 else (loss.outputs, m))
    y = {
        "real": rng.standard_normal(m),
        "binary": np.sign(rng.standard_normal(m)),
        "class": rng.integers(0, loss.outputs, m),
    }[loss.labels]
    np.testing.assert_allclose(loss.cvxpy(cp.Constant(z), y).value, loss.value(z, y), rtol=1e-13, atol=1e-14)
