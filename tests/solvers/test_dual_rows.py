"""What dual solvers of linear models say of points and gaps, in cases whose numbers are known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np

from dualopt.objectives import LocalProblem, linear_model
from dualopt.objectives._rounding import gamma
from dualopt.solvers._dual_rows import DualRows, at_dual, dual_solution, measured

G2, G4, G32, G48 = (gamma(n, np.zeros(1)) for n in (2, 4, 32, 48))


def found_at(loss: str, X: Any, y: Any, w: Any, u: Any, theta: Any, offset: Sequence[float] | None = None) -> Any:
    """Return what is said of dual variables of two clients, the second of which has the last row.

    The ridge is 1, and the linear terms are what brings the primal points to ``theta``.
    """
    X, y, w, u, theta = (np.asarray(x, dtype=float) for x in (X, y, w, u, theta))
    clients = [list(range(len(y) - 1)), [len(y) - 1]]
    f = linear_model(X, y, loss=loss, mu=1.0, weights=w, offset=offset, clients=clients, intercept=False)
    pull = np.stack([X[own].T @ (w * u)[own] for own in clients])
    padded = np.zeros((2, len(y) - 1))
    padded[0], padded[1, 0] = u[:-1], u[-1]
    problem = LocalProblem(objective=f, linear=-pull - theta)
    at = at_dual(problem, padded)
    return dual_solution(problem, at, gradients=np.zeros(2), status=("converged", "stalled"), solver_state=None)


def test_what_rounding_may_take_from_the_gap_of_a_hinge_with_offsets() -> None:
    """The slope where the hinge falls, and any dual variable at its kink, have no gap: what is left is the room.

    A row has three terms: its loss, and the dual variable times the sizes of the predictor, of itself, and of the label
    with its offset, here 17/8, 5/4 and 65/16. The error of the predictor counts with both slopes.
    """
    X, y, offset = [[3, 4], [0, 2], [4, 0]], [-1, 1, 1], [-15 / 8, 3 / 4, 63 / 16]
    w, u = [1 / 2, 1 / 4, 2], [1, -1 / 4, -1]
    found = found_at("hinge", X, y, w, u, [[63 / 128, 1 / 8], [-3 / 4, -1]], offset)
    assert found.gap.tolist() == [0.0, 0.0]
    # the predictors are 253/128, 1/4 and -3, the losses 141/128, 0 and 1/16, the lengths of the points 65/128 and 5/4
    first = G32 * (141 + 253 + 272 + 128) / 128 + 2 * (G4 * 5 * 65 / 128 + G2 * 15 / 8)
    second = G32 * 1 / 4 * (1 / 4 + 5 / 4 + 1 / 4) + 1 / 4 * (G4 * 2 * 65 / 128 + G2 * 3 / 4)
    third = G32 * (1 + 48 + 65 + 16) / 16 + 2 * (G4 * 4 * 5 / 4 + G2 * 63 / 16)
    np.testing.assert_allclose(found.excess, [first / 2 + second / 4, 2 * third], rtol=1e-14)


def test_what_rounding_may_take_from_the_gap_of_a_logistic_loss() -> None:
    """Its conjugate has terms of size one; its curvature, a quarter, counts where points and rows are long."""
    X, long = [[0, 3], [0, -1], [0, 2**30]], 2**30
    found = found_at("logistic", X, [1, -1, 1], [1 / 2, 1 / 4, 2], [-1 / 2, 1 / 2, -1 / 2], [[2, 0], [long, 0]])
    assert found.gap.tolist() == [0.0, 0.0]
    terms = math.log(2.0) + 1 / 2 * (0 + 1 + 1 / 2) + 1
    small = [G32 * terms + (1 / 2 + 1 / 2) * G4 * size * 2 for size in (3, 1)]
    shift = G4 * 2.0**60
    large = G32 * terms + (1 / 2 + 1 / 2) * shift + shift**2 / 4
    np.testing.assert_allclose(found.excess, [small[0] / 2 + small[1] / 4, 2 * large], rtol=1e-14)


def test_the_sum_of_the_gaps_of_rows_is_rounded_too() -> None:
    """48 rows and one, padded to 48, whose hinge is 1 at the zero model, and whose dual variables are zero."""
    y = np.where(np.arange(49) % 3 > 0, 1.0, -1.0)
    found = found_at("hinge", np.ones((49, 1)), y, [1 / 64] * 48 + [4], np.zeros(49), np.zeros((2, 1)))
    assert found.gap.tolist() == [3 / 4, 4.0]
    room = (found.excess - found.gap) / found.gap
    np.testing.assert_allclose(room, G32 + G48, rtol=0, atol=2.0**-52)


def test_exact_gaps_are_at_most_what_is_said() -> None:
    """Offsets of millions that the predictors cancel: computed gaps are too small somewhere, their bounds nowhere."""
    rng = np.random.default_rng(4)
    too_small = 0
    for _ in range(20):
        X, y, w = rng.normal(size=(8, 3)), np.where(rng.random(8) < 0.5, 1.0, -1.0), rng.uniform(0.1, 3.0, size=8)
        theta = 2.0 ** rng.integers(0, 24, size=(2, 1)) * rng.normal(size=(2, 3))
        offset = rng.normal(size=8) - np.sum(X * theta[[0] * 7 + [1]], axis=1)
        u = -y * rng.choice([0.0, 0.5, 1.0], size=8)
        found = found_at("hinge", X, y, w, u, theta, offset.tolist())
        for j, own in enumerate((range(7), [7])):
            exact = Fraction(0)
            for i in own:
                z = sum(Fraction(a) * Fraction(b) for a, b in zip(X[i], found.theta[j], strict=True))
                sign, slope, z = Fraction(y[i]), Fraction(u[i]), z + Fraction(offset[i])
                exact += Fraction(w[i]) * (max(Fraction(0), 1 - sign * z) + slope * sign - slope * z)
            too_small += exact > found.gap[j]
            assert 0 <= exact <= found.excess[j]
    assert too_small >= 10


def test_what_loops_are_told_of_values_gradients_and_their_terms() -> None:
    """A gradient of norm 2 has the gap 1/2 where mu is 4; a value below that of the loss has larger terms than it."""
    f = linear_model(np.ones((3, 1)), [1, -1, 1], loss="hinge", mu=0.5, clients=[[0, 1], [2]], intercept=False)
    problem = LocalProblem(objective=f, weight=np.array([3.5, 0.0]), center=np.zeros((2, 1)))
    nothing = np.zeros((2, 1))
    at = DualRows(nothing, nothing, np.array([3.0, -2.0]), np.array([-1.0, 5.0]), np.array([0.5, 9.0]), nothing)
    values, gradients, terms = measured(problem, SimpleNamespace(at=at))
    assert (values.tolist(), gradients.tolist(), terms.tolist()) == ([-1.0, 5.0], [2.0, 3.0], [7.0, 9.0])
