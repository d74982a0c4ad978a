"""What the losses do at the ends of their pieces and domains: the docstrings say so."""

from __future__ import annotations

import numpy as np
import pytest

from dualopt.losses import Hinge, Huber
from dualopt.losses._checks import positive_step, project_to_interval


@pytest.mark.parametrize("loss", [Hinge()], ids=repr)
def test_a_margin_of_one_needs_no_step(loss: Hinge) -> None:
    y = np.array([1.0, -1.0])
    assert np.all(loss.gradient(y, y) == 0.0)
    assert np.all(loss.value_and_gradient(y, y)[1] == 0.0)
    assert np.all(loss.gradient(0.5 * y, y) == -y)


@pytest.mark.parametrize("loss", [Huber(delta=0.5)], ids=repr)
def test_curvature_is_taken_from_inside(loss: Huber) -> None:
    z, y, v = np.array([0.5, -0.5, 0.75]), np.zeros(3), np.array([2.0, 3.0, 4.0])
    np.testing.assert_array_equal(loss.hessian_product(z, y, v), [2.0, 3.0, 0.0])


def test_intervals_forgive_eight_units_in_the_last_place() -> None:
    eps = float(np.finfo(np.float64).eps)
    a = np.array([1.0 + 8.0 * eps, 1.0 + 9.0 * eps, -1.0 - 8.0 * eps, -1.0 - 9.0 * eps])
    projected, inside = project_to_interval(a, -1.0, 1.0)
    np.testing.assert_array_equal(projected, [1.0, 1.0, -1.0, -1.0])
    np.testing.assert_array_equal(inside, [True, False, True, False])
    np.testing.assert_array_equal(project_to_interval(a[2:], -1.0, 0.0)[1], [True, False])


def test_steps_get_the_type_of_the_predictor() -> None:
    z = np.ones(2, dtype=np.float32)
    for step in (0.5, np.array([0.5, 0.5]), np.array([0.5, 0.5], dtype=np.float32)):
        assert positive_step(step, z).dtype == np.float32
    own = np.array([0.5, 0.5], dtype=np.float32)
    assert positive_step(own, z) is own
