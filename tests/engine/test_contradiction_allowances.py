"""How far statements may be from those of one function is what the docstrings derive, term by term, on both sides.

The units of rounding are coarse, as in the tests of certificates, so that every term of an allowance shows in the first
digits; the bounds are written out again at a point ``z``, for one client. That they suffice is shown in 60 digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy.optimize import brentq

from dualopt.engine import _contradictions
from dualopt.engine import _protocol as protocol
from dualopt.engine._contradictions import Contradictions, Statement
from tests.runs.test_certificate_allowances import TINY, gamma

MU, L = np.array([0.5, -0.75, 2.0, -1.0, -math.inf]), np.array([1.5, 4.0, math.inf, math.inf, 3.0])
KNOWN = range(4)  # clients of whom something can be said
BESIDE = 1e-7  # how near to a border, of the size of the numbers


@pytest.fixture
def coarse(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_contradictions, "gamma", lambda n, like: gamma(n))
    monkeypatch.setattr(_contradictions, "tiny", lambda like: TINY)


@dataclass(frozen=True)
class Said:
    """What one client says at a point."""

    at: Any
    value: Any
    slope: Any
    value_error: Any
    slope_error: Any


def norm(x: Any) -> Any:
    return (x @ x) ** 0.5


def room(lower: Said, upper: Said, mu: Any, L: Any, z: Any, n: Any = 0, tiny: Any = 0) -> Any:
    """How far the lower bound is below the upper one at ``z``, with ``n`` roundings of either side."""
    x, y = z - lower.at, z - upper.at
    low = lower.value - lower.value_error + lower.slope @ x + mu / 2 * norm(x) ** 2 - lower.slope_error * norm(x)
    high, far = upper.value + upper.value_error, norm(lower.at - upper.at) + norm(y)
    sizes = abs(lower.value) + lower.value_error + norm(lower.slope) * far + abs(mu) * far**2 + lower.slope_error * far
    sizes += abs(upper.value) + upper.value_error
    if y.any():
        error = upper.slope_error + 2 * ((L - mu) * upper.value_error) ** 0.5
        high += upper.slope @ y + L / 2 * norm(y) ** 2 + error * norm(y)
        sizes += norm(upper.slope) * norm(y) + L * norm(y) ** 2 + error * norm(y)
    return high - low + n * sizes + tiny * (2 + far)


def least(lower: Said, upper: Said, j: int) -> float:
    """The least room, at the point of the upper bound or where the two have one slope."""
    d, above = len(upper.at), (1 + 1e-3) * L[j]
    points = [upper.at]
    if above < math.inf:
        points.append((lower.slope - upper.slope - MU[j] * lower.at + above * upper.at) / (above - MU[j]))
    return min(room(lower, upper, MU[j], above, z, gamma(d + 16), (d + 16) * TINY) for z in points)


def quadratics(seed: int, d: int) -> tuple[np.random.Generator, Callable[..., list[Said]]]:
    """Clients whose curvatures are lopsided and within their constants, and what they say at a point, with errors."""
    rng = np.random.default_rng(seed)
    curvatures = np.array([rng.uniform(max(mu, -2.0), min(upper, 5.0), d) for mu, upper in zip(MU, L, strict=True)])
    b = rng.normal(size=(len(MU), d))

    def at(x: Any) -> list[Said]:
        errors = 10.0 ** rng.uniform(-3, 0, (len(MU), 2))
        values = curvatures @ x**2 / 2 + b @ x + 3.0
        return [Said(x, *own) for own in zip(values, curvatures * x + b, *errors.T, strict=True)]

    return rng, at


def told(said: Sequence[Said], duals: Sequence[Said] = ()) -> protocol.Evaluated:
    """The answer of a host."""
    names = ("value", "slope", "value_error", "slope_error")
    rows = [np.array([getattr(own, name) for own in said]) for name in names]
    of_dual: list[Any] = [np.array([getattr(own, name) for own in duals]) for name in names] if duals else [None] * 4
    dual = of_dual[1], -of_dual[0] if duals else None, of_dual[3]
    return protocol.Evaluated(*rows, *dual)  # pyright: ignore[reportCallIssue]


def border(said: Said, room: Callable[[Said], float]) -> float:
    """At which value of a statement there is no room any more."""
    return float(brentq(lambda value: room(replace(said, value=value)), -1e3, 1e3, xtol=1e-12))  # pyright: ignore


@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.parametrize("seed", range(6))
def test_a_value_is_held_to_both_bounds(coarse: None, seed: int, d: int) -> None:
    rng, at = quadratics(seed, d)
    x, y = rng.normal(size=(2, d)) * 10.0 ** rng.uniform(-1, 1, 2)[:, None]
    old, new = at(x), at(y)

    def found(j: int, value: float) -> Any:
        seen = Contradictions(MU, L)
        assert seen.by(3, x, told(old)) is None
        return seen.by(5, y, told([replace(own, value=value) if own is new[j] else own for own in new]))

    for j in KNOWN:
        of = "its values and gradients after rounds 3 and 5 are not those of one function with its mu and L"
        low = border(new[j], lambda own, j=j: least(old[j], own, j))
        high = border(new[j], lambda own, j=j: least(own, old[j], j))
        near = BESIDE * (1 + abs(low) + abs(high))
        assert low < new[j].value < high
        assert found(j, low - near) == found(j, high + near) == (j, of)
        assert found(j, low + near) is found(j, high - near) is None
    assert found(4, 1e9) is None
    assert found(4, -1e9) is None


@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.parametrize("seed", range(6))
def test_a_conjugate_is_held_to_values_of_before_and_of_its_round(coarse: None, seed: int, d: int) -> None:
    """A point with the gradient of ``g_j`` somewhere, as all dual points have."""
    rng, at = quadratics(seed, d)
    x, y, z = rng.normal(size=(3, d)) * 10.0 ** rng.uniform(-1, 1, 3)[:, None]
    old, new, local = at(x), at(y), at(z)
    duals = []
    for j, own in enumerate(local):
        mu = max(MU[j], -9.0)
        value, slope = own.value - own.slope @ z + mu / 2 * z @ z, own.slope - mu * z
        duals.append(Said(0 * z, value, slope, 0.0, own.slope_error))

    def found(j: int, value: float) -> Any:
        seen = Contradictions(MU, L)
        assert seen.by(3, x, told(old)) is None
        return seen.by(5, y, told(new, [replace(own, value=value) if own is duals[j] else own for own in duals]))

    for j in KNOWN:
        borders = [border(duals[j], lambda own, j=j, upper=upper: least(own, upper[j], j)) for upper in (new, old)]
        highest, n = min(borders), 5 if borders[0] < borders[1] else 3
        near = BESIDE * (1 + abs(highest))
        assert duals[j].value < highest
        assert found(j, highest - near) is None
        said = f"its conjugate after round 5 is less than its value after round {n} allows"
        assert found(j, highest + near) == (j, said)


def test_errors_of_a_function_that_is_not_convex_are_granted_too() -> None:
    """Of half a square that is taken for one with ``mu = -1``: the steepest slope at 0 that its errors allow."""
    v, x = 2.0**-5, np.linspace(-4.0, 4.0, 1001)
    seen = {}
    for factor, right in ((1.0, True), (1.01, False)):
        slope = factor * 2 * math.sqrt(2 * v)
        assert ((x**2 / 2 >= -2 * v + slope * x - x**2 / 2 - 1e-15).all()) == right
        for far in (0.05, 0.5, 2.0):
            found = Contradictions(-np.ones(1), np.ones(1))
            true = Said(-far, far**2 / 2, np.array([-far]), 0.0, 0.0)
            assert found.by(0, np.array([-far]), told([true])) is None
            answer = told([replace(true, value=-v, slope=np.array([slope]), value_error=v)])
            seen[factor, far] = found.by(1, np.zeros(1), answer)
    assert {key for key, of in seen.items() if of is not None} == {(1.01, 0.05), (1.01, 0.5)}


@pytest.mark.parametrize("change", [0.0, 2.0**-40, -(2.0**-40)])
def test_what_is_equal_does_not_contradict(change: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a square of constants 0 and 1, where no number is rounded."""
    for name in ("gamma", "tiny"):
        monkeypatch.setattr(_contradictions, name, lambda *_: 0.0)
    monkeypatch.setattr(_contradictions, "SMOOTHER", 0.0)
    for at in (0.0, 1.0):  # with slopes that are parallel there, or at one point
        seen = Contradictions(np.zeros(1), np.ones(1))
        first, last = (Said(x, x**2 / 2, np.array([x]), 0.0, 0.0) for x in (at, 1.0))
        assert seen.by(0, np.array([at]), told([first])) is None
        found = seen.by(1, np.ones(1), told([replace(last, value=last.value + change)]))
        assert (found is None) == (change == 0.0)


@pytest.mark.parametrize("d", [1, 20])
@pytest.mark.parametrize("size", [-159, -70, 0, 70, 149])
def test_rounding_here_accuses_nobody(size: int, d: int) -> None:
    """What is computed is no more than it is, at every point, whatever the sizes; some products underflow."""
    rng, exact, n = np.random.default_rng(d), np.vectorize(mpmath.mpf, otypes=[object]), 40

    def numbers(*shape: int, power: int = 1) -> np.ndarray:
        return rng.normal(size=shape) * 10.0 ** (power * size + rng.uniform(-3, 3, shape))

    def statement() -> Statement:
        errors = np.abs(numbers(n, power=2)), np.abs(numbers(n))
        return Statement(0, numbers(1, d), numbers(n, power=2), numbers(n, d), *errors)

    mu, lower, upper = numbers(n, power=0), statement(), statement()
    seen = Contradictions(mu, np.maximum(mu, 0.0) + np.abs(numbers(n, power=0)))
    for shift in (None, numbers(n, d)):
        with np.errstate(all="ignore"):
            found = seen._excess(lower, upper, upper.at - lower.at, shift)
        with mpmath.workdps(60):
            for j in range(n):
                one, two = (Said(exact(s.at[0]), *(exact(x[j]) for x in s[2:])) for s in (lower, upper))
                z = two.at if shift is None else two.at + exact(shift[j])
                assert found[j] <= -room(one, two, exact(mu[j]), exact(seen._L[j]), z)
