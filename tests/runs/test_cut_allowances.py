"""What cuts are charged for rounding, term by term, in units of rounding like 1/64, as for certificates."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dualopt.regularisers import L1, Zero
from dualopt.runs import cuts
from dualopt.runs.cuts import Cut, Sums
from tests.runs.test_certificate_allowances import TINY, UNIT, gamma, norm

AT, XI = np.array([3.0, -4.0]), np.array([5.0, 12.0])


@pytest.fixture(autouse=True)
def coarse(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuts, "gamma", lambda n, like: gamma(n))
    monkeypatch.setattr(cuts, "tiny", lambda like: TINY)
    monkeypatch.setattr(cuts, "sys", SimpleNamespace(float_info=SimpleNamespace(epsilon=UNIT)))


def stated(**options: Any) -> Any:
    given: dict[str, Any] = {
        "shape": (2,),
        "n_clients": 3,
        "mean_mu": 0.75,
        "unequal_weights": (1.0, 2.0, 5.0),
        "free_intercept": True,
        "shift_invariant": False,
        "regulariser": Zero(),
    }
    f = SimpleNamespace(**given | options)
    f.held = lambda x: np.concatenate([x[..., :-1], 0.0 * x[..., -1:]], axis=-1)
    return f


@pytest.mark.parametrize("weights", [None, (1.0, 2.0, 5.0)], ids=["equal", "weights"])
def test_means(weights: Any) -> None:
    f = stated(unequal_weights=weights, shape=(2, 5))
    share, lost = (gamma(5), 0.0) if weights is None else (gamma(10), 3 * 10 * TINY / 8)
    sums = Sums(None, AT, None, 8.0)
    assert cuts.error_of_means(f, AT, sums) == (pytest.approx(share), pytest.approx(lost))


@pytest.mark.parametrize("weights", [None, (1.0, 2.0, 5.0)], ids=["equal", "weights"])
@pytest.mark.parametrize("m", [0.75, 0.0, -2.0])
@pytest.mark.parametrize("value", [10.0, -10.0])
def test_evaluations(weights: Any, m: float, value: float) -> None:
    f = stated(unequal_weights=weights, mean_mu=m)
    size, value_error, slope_error, slopes = 11.0, 0.1, 0.2, 6.0
    of_duals = conjugate, conjugates, duals, error = -7.0, 9.0, 14.0, 0.3
    columns = np.array([value, size, value_error, slope_error, slopes, *of_duals])
    gradient = np.array([6.0, 8.0])
    sums = Sums(8.0 * columns, 8.0 * gradient, 8.0 * XI, 8.0)
    share, lost = (gamma(5), 0.0) if weights is None else (gamma(10), 3 * 2 * TINY / 8)
    m, inside = max(m, 0.0), 3.0
    value_error += share * size + lost
    slope_error += share * slopes + lost
    constant = value - (6.0 * 3.0 - 8.0 * 4.0) + m / 2 * inside**2
    constant -= value_error + slope_error * 5.0 + 2 * TINY * (1 + m)
    constant -= gamma(2 + 8) * (abs(value) + 10.0 * 5.0 + m * inside**2)
    cut = cuts.cut_of_gradient(f, AT, sums)
    assert cut.constant == pytest.approx(constant, rel=1e-13)
    np.testing.assert_allclose(cut.slope, [6.0 - m * 3.0, 8.0], rtol=1e-14)
    assert cut.error == pytest.approx(slope_error + gamma(4) * (10.0 + m * inside) + 2 * TINY, rel=1e-13)

    cut = cuts.cut_of_duals(f, AT, sums)
    assert cut.constant == pytest.approx(-conjugate - share * conjugates - lost, rel=1e-13)
    assert cut.slope.tolist() == XI.tolist()
    assert cut.error == pytest.approx(share * duals + error + lost, rel=1e-13)


@pytest.mark.parametrize("constant", [2.0, -2.0])
def test_cuts_that_are_made_smaller(constant: float) -> None:
    cut = Cut(constant, XI, 0.5)
    assert cuts._bounded(stated(), cut) is cut
    found = cuts._bounded(stated(mean_mu=0.0, regulariser=SimpleNamespace(share=lambda slope, error: 0.25)), cut)
    assert found.constant == pytest.approx(0.25 * constant - 2 * UNIT * 2.0, rel=1e-14)
    assert found.slope.tolist() == (0.25 * XI).tolist()
    assert found.error == pytest.approx(0.25 * 0.5 + 2 * TINY + 2 * UNIT * 0.25 * 13.0, rel=1e-14)


def test_a_regulariser_is_asked_with_the_slope_and_its_error() -> None:
    asked: list[Any] = []
    h = SimpleNamespace(share=lambda *given: asked.append(given) or 0.5)
    cuts._bounded(stated(mean_mu=-1.0, regulariser=h), Cut(1.0, XI, 0.75))
    ((slope, error),) = asked
    assert (slope is XI, error) == (True, 0.75)


def test_combinations() -> None:
    given = [Cut(2.0, XI, 0.5), Cut(-4.0, AT, 0.25), Cut(1.0, np.zeros(2), 0.0)]
    found = cuts._combined(given, [0.5, 0.25, 0.25])
    unit = 2 * (3 + 4) * UNIT
    assert found.constant == pytest.approx(1.0 - 1.0 + 0.25 - unit * (1.0 + 1.0 + 0.25), rel=1e-14)
    np.testing.assert_allclose(found.slope, 0.5 * XI + 0.25 * AT, rtol=1e-14)
    assert found.error == pytest.approx((0.25 + 0.0625) * (1 + unit) + unit * (6.5 + 1.25), rel=1e-14)


@pytest.mark.parametrize("m", [0.75, 0.0])
@pytest.mark.parametrize("free", [True, False])
@pytest.mark.parametrize("constant", [2.0, -2.0])
def test_the_least_of_a_cut(m: float, free: bool, constant: float) -> None:
    """Of two outputs with two weights and an intercept each, whose entries are last."""
    at = np.array([[1.0, 2.0, 3.0], [0.5, -1.0, -4.0]])
    slope = np.array([[2.0, -1.0, 0.25], [0.0, 2.0, 0.5]])
    f, cut, reach = stated(mean_mu=m, free_intercept=free, shape=(2, 3)), Cut(constant, slope, 0.125), 7.0
    if not free:
        f.held = lambda x: x
    held = f.held(slope)
    value = room = 0.0
    if m > 0:
        inside = norm(held) ** 2 / (2 * m)
        value = -inside
        room = gamma(6 + 16) * inside + 6 * TINY * (1 + m) + 0.125 * norm(held) / m + 0.125**2 / (2 * m)
    if free:
        unit, length = 4 * (2 + 4) * UNIT, norm([0.25, 0.5])
        value += 0.25 * 3.0 - 0.5 * 4.0
        room += (unit * length + 0.125) * 5.0 + (length * (1 + unit) + 0.125) * (1 + unit) * reach
    expected = constant + value - room - 8 * UNIT * (abs(constant) + abs(value) + room)
    assert cuts._least_near(f, at, cut, reach) == pytest.approx(expected, rel=1e-13)


# ---- hulls ----

SLOPES = np.array([[1.0, 0.0], [0.0, 2.0], [-3.0, -1.0]])  # zero is (6 a + b + 2 c)/9 of them
CENTER = np.array([6.0, 1.0, 2.0]) / 9.0
ERRORS = (1e-3, 4e-3, 2e-3)
OUTPUTS = np.array([[1.0, 3.0], [0.5, -4.0]])  # two outputs with one weight and an intercept each


def spanning(constants: tuple[float, ...] = (0.5, -1.5, 1.0), slopes: np.ndarray = SLOPES) -> list[Cut]:
    weights = np.array([[0.3, -0.2], [0.1, 0.4], [-0.5, 0.0]])
    return [Cut(c, np.stack([w, b], axis=-1), e) for c, w, b, e in zip(constants, weights, slopes, ERRORS, strict=True)]


def least(f: Any, cut: Cut, reach: float) -> float:
    return cuts._least_near(f, OUTPUTS, cut, reach)


def hull(energy: float, given: list[Cut]) -> Any:
    return cuts._Hull.of(stated(shape=(2, 2)), OUTPUTS, energy, given)


def test_a_hull() -> None:
    f, given = stated(shape=(2, 2)), spanning()
    found = hull(9.0, given)
    np.testing.assert_allclose(found.center, CENTER, rtol=1e-12)
    np.testing.assert_allclose(found.slopes, SLOPES, rtol=0)
    assert (found.at is OUTPUTS, found.cuts is given) == (True, True)
    singular = math.sqrt(np.linalg.eigvalsh(SLOPES.T @ SLOPES)[0])
    inside = 0.5 * (1 / 9) * singular / math.sqrt(3) - max(ERRORS)
    lowest = min(least(f, cut, 0.0) for cut in given)
    assert found.reach == pytest.approx(2 * (9.0 - lowest) / inside, rel=1e-10)
    assert hull(lowest - 1.0, given).reach == 0.0


def test_what_is_left_at_the_center_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    rough = np.array([6.0, 1.0, 2.005])
    monkeypatch.setattr(cuts, "_coordinates", lambda slopes, point: 2.0 * rough)
    found = hull(9.0, spanning())
    center = rough / rough.sum()
    np.testing.assert_allclose(found.center, center, rtol=1e-14)
    singular = math.sqrt(np.linalg.eigvalsh(SLOPES.T @ SLOPES)[0])
    inside = 0.5 * center.min() * singular / math.sqrt(3) - norm(center @ SLOPES) - max(ERRORS)
    lowest = min(least(stated(shape=(2, 2)), cut, 0.0) for cut in spanning())
    assert found.reach == pytest.approx(2 * (9.0 - lowest) / inside, rel=1e-10)


@pytest.mark.parametrize(
    "slopes",
    [SLOPES + np.array([0.0, 1.5]), SLOPES + np.array([0.0, math.inf]), 1e-2 * SLOPES],
    ids=["outside", "no number", "nearer than the errors"],
)
def test_no_hull(slopes: np.ndarray) -> None:
    assert hull(9.0, spanning(slopes=slopes)) is None


@pytest.mark.parametrize("own", [(0.5, 0.5), (-2.0, 1.0), (0.25, -3.0)], ids=str)
def test_as_much_weight_as_the_others_can_balance(own: tuple[float, float]) -> None:
    f, given = stated(shape=(2, 2)), spanning()
    cut = Cut(4.0, np.stack([np.array([0.7, -0.1]), np.array(own)], axis=-1), 5e-3)
    found = hull(9.0, given)
    coordinates = np.linalg.solve(np.column_stack([SLOPES, np.ones(3)]).T, [*own, 1.0])
    most = min([1.0, *(c / x for c, x in zip(CENTER, coordinates, strict=True) if x > 0)])
    weights = np.array([most, *(CENTER - most * coordinates)])
    assert np.all(weights > -1e-12)
    weights = np.maximum(weights, 0.0) / np.maximum(weights, 0.0).sum()
    slopes = np.stack([c.slope for c in (cut, *given)])
    combined = np.tensordot(weights, slopes, axes=1)
    np.testing.assert_allclose(combined[:, -1], 0.0, atol=1e-12)
    expected = least(f, cuts._combined([cut, *given], weights.tolist()), found.reach)
    assert found.bound(cut) == pytest.approx(expected, rel=1e-10)
    cut.slope[0, -1] = math.inf
    assert found.bound(cut) == -math.inf


def test_others_may_not_be_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    found, given = hull(9.0, spanning()), spanning()
    monkeypatch.setattr(cuts, "_coordinates", lambda slopes, point: np.array([1.0, 0.0, 0.0]))
    most = CENTER[0]
    weights = [most, 0.0, *CENTER[1:]]
    whole = sum(weights)
    combined = cuts._combined([given[0], *given], [w / whole for w in weights])
    assert found.bound(given[0]) == pytest.approx(least(stated(shape=(2, 2)), combined, found.reach), rel=1e-12)


def test_no_room_is_not_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuts, "ROOM", 0.0)
    monkeypatch.setattr(cuts, "_coordinates", lambda slopes, point: np.array([1.0, 1.0]))
    at = np.array([1.0, 2.0])
    given = [Cut(0.0, np.array([0.5, b]), 0.0) for b in (1.0, -1.0)]
    assert cuts._Hull.of(stated(), at, 9.0, given) is None


def test_directions_span_all_intercepts_or_those_of_sum_zero() -> None:
    assert cuts._directions(stated()) == [[1.0], [-1.0]]
    assert cuts._directions(stated(shape=(2, 3))) == [[1.0, 0.0], [0.0, 1.0], [-0.5, -0.5]]
    assert cuts._directions(stated(shape=(2, 3), shift_invariant=True)) == [[0.5, -0.5], [-0.5, 0.5]]


@pytest.mark.parametrize(("slope", "error", "size"), [(2.0, 0.01, 2.0), (-0.5, 0.25, 25.0)])
def test_steps_grow_until_they_are_given_up(slope: float, error: float, size: float) -> None:
    """The slope in the intercept never changes its sign; a step is 16 slopes at first, or 16 hundreds of its error."""
    asked: list[float] = []

    def gradient_at(x: np.ndarray) -> Cut:
        assert x[0] == AT[0]
        asked.append(x[1] - AT[1])
        return Cut(0.0, np.array([0.0, slope]), 0.0)

    given = [Cut(0.0, np.array([3.0, slope]), error), Cut(1.0, XI, 0.5)]
    assert cuts.lower_bound(stated(), AT, 1.0, given, gradient_at) == [-math.inf, -math.inf]
    steps = [16.0 * size * 64.0**k for k in range(9)]
    np.testing.assert_allclose(asked, [sign * step for step in steps for sign in (1, -1)], rtol=1e-12)


@pytest.mark.parametrize("m", [0.75, 0.0])
def test_without_a_free_intercept_nobody_is_asked(m: float) -> None:
    smaller = SimpleNamespace(share=lambda slope, error: 0.25)
    f = stated(free_intercept=False, mean_mu=m, regulariser=Zero() if m else smaller)
    given = [Cut(2.0, AT, 0.25), Cut(1.0, XI, 0.5)]
    f.held = lambda x: x

    def gradient_at(x: np.ndarray) -> Cut:
        raise AssertionError

    found = cuts.lower_bound(f, AT, 1.0, given, gradient_at)
    assert found == [cuts._least_near(f, AT, cuts._bounded(f, cut), 0.0) for cut in given]


# ---- what is bounded ----


def test_what_is_bounded() -> None:
    given = {"mean_mu": 0.0, "nonnegative": True, "regulariser": L1(weight=1.0), "proven_mu": np.array([0.0, 0.5])}
    assert cuts.is_bounded(stated(**given))
    for other in ({"nonnegative": False}, {"regulariser": Zero()}, {"proven_mu": np.array([-1e-9, 0.5])}):
        assert not cuts.is_bounded(stated(**given | other))
        assert cuts.is_bounded(stated(**given | other | {"mean_mu": 0.5}))


@pytest.mark.parametrize("scale", [0.0, 5e-324, 1e-300, 1e-170, 1.0, 1e170, 1e300])
def test_the_norm_of_a_model_at_all_scales(backend, scale: float) -> None:
    x = np.array([[3.0, 4.0], [0.0, 12.0]])
    assert cuts.norm(backend(scale * x)) == pytest.approx(13.0 * scale, rel=1e-15, abs=0)


def test_the_norm_of_a_model_that_is_not_finite() -> None:
    assert cuts.norm(np.array([1.0, -math.inf])) == math.inf
    assert math.isnan(cuts.norm(np.array([1.0, math.nan])))
