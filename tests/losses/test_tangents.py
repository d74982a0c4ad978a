"""Losses with a logarithmic link where their exponential function is continued by its tangent."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dualopt.losses import Gamma, Poisson


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("loss", [Poisson(), Gamma()], ids=repr)
def test_second_derivatives_stay_those_at_the_end_of_the_exponential_function(loss, dtype) -> None:
    """They are the slope but for the label, as before it: the quotients of two slopes do not rise any more."""
    end = 0.4 * math.log(float(np.finfo(dtype).max))
    z = np.asarray([0.5, 0.9, 1.5, 20.0], dtype=dtype) * end
    z, y = (-z if isinstance(loss, Gamma) else z), np.ones(4, dtype=dtype)
    growth = loss.hessian_product(z, y, np.ones_like(z))
    assert growth[0] < growth[1] < growth[2] == growth[3]
    np.testing.assert_allclose(growth, np.abs(loss.gradient(z, y)), rtol=1e-4)
    np.testing.assert_allclose(np.log(growth[2]), end, rtol=1e-4)
