"""The allowances of certificates for rounding are those that their docstrings derive, term by term.

In double precision an allowance is in the last digits of a bound, where a missing term shows in rare cases only.
Here the units of rounding are numbers like 1/64, and the formulas are written out again: a term that is missing or
changed changes the first digits. That the formulas suffice is checked elsewhere, against arithmetic of 60 digits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import array_api_strict
import numpy as np
import pytest

from dualopt.objectives import Objective, Quadratic, objective, reweighted
from dualopt.objectives._rounding import Rounding
from dualopt.objectives.local_problem import Evaluation, LocalProblem
from dualopt.runs import certificates, cuts
from dualopt.runs.certificates import Certificate, DualPoint, LatestSolutions, certificate, dual_point
from dualopt.solvers import LocalSolution

EPS, TINY, UNIT, LEAST = 1 / 64, 1 / 256, 1 / 32, 1 / 512  # of arrays, and of Python's numbers


def gamma(n: int) -> float:
    return n / 1000


@pytest.fixture
def coarse(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (certificates, objective):
        monkeypatch.setattr(module, "gamma", lambda n, like: gamma(n))
        monkeypatch.setattr(module, "epsilon", lambda like: EPS)
    monkeypatch.setattr(cuts, "gamma", lambda n, like: gamma(n))
    for module in (certificates, cuts):
        monkeypatch.setattr(module, "tiny", lambda like: TINY)
    monkeypatch.setattr(certificates, "sys", SimpleNamespace(float_info=SimpleNamespace(epsilon=UNIT, min=LEAST)))


@pytest.fixture
def exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arithmetic without rounding, for inputs of which all results are floating-point numbers."""
    for name in ("gamma", "tiny", "epsilon"):
        for module in (certificates, objective):
            monkeypatch.setattr(module, name, lambda *_: 0.0)
    for name in ("gamma", "tiny"):
        monkeypatch.setattr(cuts, name, lambda *_: 0.0)
    monkeypatch.setattr(certificates, "sys", SimpleNamespace(float_info=SimpleNamespace(epsilon=0.0, min=0.0)))


@dataclass(frozen=True)
class Tilted:
    """``h(x) = <slope, x> + mu/2 |x|^2``: also below zero."""

    slope: np.ndarray
    mu: float = 0.0

    def value(self, theta: np.ndarray) -> float:
        return float(self.slope @ theta + 0.5 * self.mu * theta @ theta)

    def prox(self, theta: np.ndarray, step: float) -> np.ndarray:
        return (theta - step * self.slope) / (1.0 + step * self.mu)

    def minimal_subgradient(self, theta: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        return gradient + self.slope + self.mu * theta


NONE = Tilted(np.zeros(2))


@dataclass
class Stated:
    """An objective whose values, gradients and their errors are given numbers."""

    values: np.ndarray
    gradients: np.ndarray
    errors: Rounding
    mu: np.ndarray
    mu_rounding: np.ndarray
    regulariser: Any = NONE
    shape: tuple[int, ...] = (2,)
    asked: list[Any] = field(default_factory=list)  # the points of values and gradients
    excesses: list[Any] = field(default_factory=list)  # those of errors

    free_intercept = nonnegative = False
    partial_mu = property(lambda self: self.mu)
    held = Objective.held
    proven_mu = property(Objective.proven_mu.func)
    mean_mu = property(Objective.mean_mu.func)
    weights = shares = unequal_weights = None
    mean = Objective.mean

    @property
    def n_clients(self) -> int:
        return len(self.values)

    def value_and_gradient(self, theta: Any) -> tuple[Any, Any]:
        self.asked.append(theta)
        return self.values, self.gradients

    def rounding(self, theta: Any, value: Any, gradient: Any, excess: Any = None) -> Rounding:
        rows = (self.n_clients,)
        assert theta.shape in (self.shape, rows + self.shape)
        assert (value.shape, gradient.shape) == (rows, rows + self.shape)
        self.excesses.append(excess)
        return self.errors


def stated(n: int = 3, regulariser: Any = NONE, mu: tuple[float, ...] = (0.5, 1.0, 2.0)) -> Any:
    return Stated(
        np.array([30.0, -10.0, 20.0])[:n],
        np.array([[1.0, 2.0], [-3.0, 0.5], [0.25, 4.0]])[:n],
        Rounding(np.array([0.1, 0.2, 0.4])[:n], np.array([0.3, 0.5, 0.1])[:n]),
        np.array(mu)[:n],
        np.array([0.1, 0.05, 0.2])[:n],
        regulariser,
    )


def norm(x: Any) -> float:
    return math.sqrt(sum(float(t) ** 2 for t in np.ravel(x)))


def mean(numbers: Any) -> float:
    numbers = [float(t) for t in numbers]
    return sum(numbers) / len(numbers)


def proven(f: Stated) -> list[float]:
    return [float(m - r - EPS * abs(m - r)) for m, r in zip(f.mu, f.mu_rounding, strict=True)]


def mean_mu(f: Stated) -> float:
    mu = proven(f)
    return mean(mu) - (gamma(f.n_clients) * mean(map(abs, mu)) if f.n_clients > 1 else 0.0)


def rounded_up(gap: float) -> float:
    return gap * (1 + 4 * UNIT) + LEAST


def value_error(f: Stated, h: float) -> float:
    of_means = gamma(f.n_clients + 2) * mean(map(abs, f.values))
    return mean(f.errors.value) + of_means + gamma(2 + 8) * abs(h) + 2 * TINY * (1 + f.regulariser.mu)


THETA = np.array([1.0, -2.0])


class Absent(Tilted):
    """No regulariser: the gradient is the subgradient, and no subtraction is charged."""

    def minimal_subgradient(self, theta: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        return gradient


REGULARISERS = {
    "none": NONE,
    "absent": Absent(np.zeros(2)),
    "linear, negative": Tilted(np.array([3.0, 15.0])),  # so much so that the energy of three clients is too
    "quadratic": Tilted(np.array([-0.5, -0.25]), mu=1.5),
}


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("h", REGULARISERS.values(), ids=REGULARISERS)
@pytest.mark.parametrize("mu", [(0.5, 1.0, 2.0), (0.75, 0.5, -1.5)], ids=["convex", "concave client"])
def test_the_gradient_form(coarse: None, n: int, h: Tilted, mu: tuple[float, ...]) -> None:
    f = stated(n, h, mu)
    bound = certificate(f, THETA)
    value = h.value(THETA)
    gradient = f.gradients.mean(axis=0)
    subgradient = gradient + h.slope + h.mu * THETA
    assert bound.energy == pytest.approx(mean(f.values) + value, rel=1e-14)
    assert bound.gradient_norm == pytest.approx(norm(subgradient), rel=1e-14)
    assert bound.kind == "gradient"
    m = mean_mu(f)
    total = m + h.mu - (UNIT * (abs(m) + h.mu) if h.mu else 0.0)
    if total <= 0:
        assert bound[1:] == (math.inf, "gradient", bound.gradient_norm, 0.0)
        return
    slope_error = mean(f.errors.gradient) + gamma(n + 2) * mean(map(norm, f.gradients))
    slope_error += 4 * EPS * norm(subgradient - gradient)
    slope = norm(subgradient) * (1 + gamma(2 + 8)) + slope_error
    gap = rounded_up(slope**2 / (2 * total) + 2 * value_error(f, value))
    assert bound.gap == pytest.approx(gap, rel=1e-13)
    assert bound.rounding == pytest.approx(gap - norm(subgradient) ** 2 / (2 * total), rel=1e-13)


@dataclass
class Weighted(Stated):
    """The same, and clients that count 1, 2 and 5 times."""

    weights = unequal_weights = (1.0, 2.0, 5.0)
    shares = (0.125, 0.25, 0.625)


@pytest.mark.parametrize("h", REGULARISERS.values(), ids=REGULARISERS)
def test_with_weights_products_are_charged_too(coarse: None, h: Tilted) -> None:
    plain = stated(regulariser=h)
    f: Any = Weighted(plain.values, plain.gradients, plain.errors, plain.mu, plain.mu_rounding, h)
    share = gamma(2 * 3 + 4)  # of N sums and N products
    lost = 3 * 2 * TINY / 8  # by products that underflow

    def weighed(numbers: Any) -> Any:
        return sum(s * np.asarray(x) for s, x in zip(f.shares, numbers, strict=True))

    m = weighed(proven(f)) - share * weighed(map(abs, proven(f)))
    value, gradient = h.value(THETA), weighed(f.gradients)
    subgradient = gradient + h.slope + h.mu * THETA
    of_value = weighed(f.errors.value) + share * weighed(map(abs, f.values)) + lost
    of_value += gamma(2 + 8) * abs(value) + 2 * TINY * (1 + h.mu)
    slope = norm(subgradient) * (1 + gamma(2 + 8)) + 4 * EPS * norm(subgradient - gradient)
    slope += weighed(f.errors.gradient) + share * weighed(map(norm, f.gradients)) + lost
    total = m + h.mu - (UNIT * (abs(m) + h.mu) if h.mu else 0.0)
    bound = certificate(f, THETA)
    assert bound.energy == pytest.approx(weighed(f.values) + value, rel=1e-14)
    assert bound.gap == pytest.approx(rounded_up(slope**2 / (2 * total) + 2 * of_value), rel=1e-13)

    f.gradients = f.gradients + 500.0  # the gradient form is far larger
    dual, conjugates = np.array([[-1.0, -2.5], [0.5, -1.0], [-2.0, 0.5]]), np.array([40.0, 5.0, -2.0])
    error = np.array([0.25, 0.5, 1.0])
    center = -weighed(dual) / m
    x = (center - h.slope / m) / (1 + h.mu / m)
    inside, outside, of_x = m / 2 * norm(center) ** 2, m / 2 * norm(x - center) ** 2, h.value(x)
    room = gamma(2 + 16) * (inside + outside + abs(of_x)) + 2 * TINY * (1 + m + h.mu)
    distance = share * weighed(map(norm, dual)) + weighed(error) + lost
    room += distance * norm(x) + distance**2 / (2 * m)
    room += of_value + share * weighed(map(abs, conjugates)) + lost + 4 * UNIT * abs(bound.energy)
    gap = bound.energy + weighed(conjugates) - (outside + of_x - inside)
    assert gap > 0
    bound = certificate(f, THETA, DualPoint(dual, conjugates, error))
    assert (bound.kind, bound.gap) == ("dual", pytest.approx(rounded_up(gap + room), rel=1e-13))


class NearlyFlat(Stated):
    """Together with the regulariser below, strong convexity that rounding may have made."""

    mean_mu = -31 / 64


def test_a_sum_of_strong_convexity_that_is_not_positive_certifies_nothing(exact: None) -> None:
    f = stated(1, mu=(0.1,))  # all of it is rounding
    assert certificate(f, THETA).gap == math.inf
    f = stated(1, Tilted(np.zeros(2), mu=0.25), mu=(0.1,))
    assert certificate(f, THETA).gap < math.inf


@pytest.mark.parametrize(("mu", "certified"), [(33 / 64, False), (34 / 64, True)])
def test_strong_convexity_that_is_all_rounding_is_none(coarse: None, mu: float, certified: bool) -> None:
    given = stated(1)
    h = Tilted(np.zeros(2), mu=mu)  # (33 - 31)/64 is UNIT (33 + 31)/64
    f: Any = NearlyFlat(given.values, given.gradients, given.errors, given.mu, given.mu_rounding, h)
    assert (certificate(f, THETA).gap < math.inf) == certified


@pytest.mark.parametrize("mu", [0.0, 0.5], ids=["flat", "strongly convex"])
def test_the_form_of_cuts(coarse: None, monkeypatch: pytest.MonkeyPatch, mu: float) -> None:
    """Bounds from elsewhere: of E* from the gradient and from dual points, for an E that may be v larger."""
    f, h = stated(mu=(mu,) * 3), NONE
    f.free_intercept = mu > 0
    f.mu_rounding = np.zeros(3)
    bounds, given = [math.inf], list[Any]()

    def lower_bound(objective: Any, theta: Any, above: float, cuts: Any, ask: Any) -> list[float]:
        given.append((objective, theta, above, len(cuts), ask(2 * THETA).constant))
        return bounds

    monkeypatch.setattr(certificates, "is_bounded", lambda objective: True)
    monkeypatch.setattr(certificates, "lower_bound", lower_bound)
    energy, v = mean(f.values), value_error(f, h.value(THETA))
    point = DualPoint(f.gradients, np.zeros(3), None)

    def judged(*below: float) -> Certificate:
        bounds[:] = [energy - b for b in below]
        return certificate(f, THETA, point if len(below) > 1 else None)

    bound = judged(3.0)
    assert (bound.kind, bound.energy) == ("gradient", pytest.approx(energy, rel=1e-14))
    assert bound.gap == pytest.approx(rounded_up(3.0 + 2 * v), rel=1e-13)
    assert bound.rounding == pytest.approx(2 * v, rel=1e-13)
    objective, theta, above, n, other = given[-1]
    assert (objective, n, f.asked[-1].tolist()) == (f, 1, (2 * THETA).tolist())
    assert (theta is THETA, above) == (True, pytest.approx(energy + v, rel=1e-14))
    assert other == cuts.cut_of_gradient(f, 2 * THETA, certificates.certificate_sums(f, 2 * THETA)).constant
    assert judged(3.0, 2.0)[1:3] == (pytest.approx(rounded_up(2.0 + 2 * v), rel=1e-13), "dual")
    assert given[-1][3] == 2
    assert judged(3.0, 3.0).kind == judged(2.0, 3.0).kind == "gradient"
    assert judged(-v, 3.0).gap == pytest.approx(rounded_up(v), rel=1e-13)
    assert judged(-1.1 * v, 3.0).kind == "dual"  # the first is above what is sure to be above
    nothing = judged(math.inf, math.inf)
    assert nothing == (nothing.energy, math.inf, "gradient", nothing.gradient_norm, 0.0)
    monkeypatch.setattr(certificates, "is_bounded", lambda objective: False)
    assert judged(3.0).gap == math.inf


@pytest.mark.parametrize("mu", [-0.5, 0.0], ids=["concave", "flat"])
def test_dual_points_say_nothing_where_only_the_regulariser_is_convex(exact: None, mu: float) -> None:
    f = stated(regulariser=REGULARISERS["quadratic"], mu=(mu,) * 3)
    f.mu_rounding = np.zeros(3)
    alone = certificate(f, THETA)
    assert alone.gap < math.inf
    for conjugate in np.arange(-100.0, 100.0, 0.5):
        point = DualPoint(f.gradients, np.full(3, conjugate), np.full(3, 0.25))
        assert certificate(f, THETA, point) == alone


def test_dual_points_are_those_of_the_user_s_clients() -> None:
    f = Quadratic(A=np.stack([np.eye(2), 3 * np.eye(2)]), b=np.array([[1.0, 2.0], [-1.0, 0.5]]))
    evaluation = LocalProblem(objective=f).evaluate(POINTS[:2])
    solution = LocalSolution(POINTS[:2], evaluation, evaluation.value, 0.0, (), (1.0,) * 2, ("converged",) * 2)
    own, scaled = dual_point(f, solution), dual_point(reweighted(f, [1.0, 4.0]), solution)
    assert own is not None
    assert scaled is not None
    assert (scaled.dual.tolist(), scaled.conjugate.tolist()) == (own.dual.tolist(), own.conjugate.tolist())


def test_nothing_is_cast_where_nothing_is_certified(coarse: None, monkeypatch: pytest.MonkeyPatch) -> None:
    ridge = Tilted(np.zeros(2), mu=0.5)
    for mu, h, dtype in ((0.0, NONE, np.float32), (0.25, NONE, np.float64), (0.0, ridge, np.float64)):
        f = stated(regulariser=h, mu=(mu,) * 3)
        f.mu_rounding = np.zeros(3)
        certificate(f, THETA.astype(np.float32))
        assert f.asked[-1].dtype == dtype
    monkeypatch.setattr(certificates, "is_bounded", lambda objective: True)
    monkeypatch.setattr(certificates, "lower_bound", lambda *given: [0.0])
    f = stated(mu=(0.0,) * 3)
    f.mu_rounding = np.zeros(3)
    certificate(f, THETA.astype(np.float32))
    assert f.asked[-1].dtype == np.float64


def test_clients_elsewhere_are_asked(coarse: None) -> None:
    f = stated()
    sums, asked = certificates.certificate_sums(stated(), THETA), list[Any]()
    f.certificate_sums = lambda theta: (asked.append(theta), sums)[1]
    assert certificate(f, THETA, found(f)) == certificate(stated(), THETA)
    assert (len(asked), f.asked) == (1, [])


POINTS = np.array([[2.0, 1.0], [-1.0, 3.0], [0.5, -0.5]])


def found(f: Stated, excess: Any = None, dtype: Any = np.float64) -> LocalSolution:
    values, gradients, n = f.values.astype(dtype), f.gradients.astype(dtype), f.n_clients
    evaluation = Evaluation(values, gradients, values, gradients)
    return LocalSolution(POINTS.astype(dtype)[:n], evaluation, values, 0.0, (), (1.0,) * n, ("converged",) * n, excess)


@pytest.mark.parametrize("excess", [None, np.array([0.5, 0.25, 2.0])], ids=["gradients", "subgradients"])
@pytest.mark.parametrize(
    "mu", [(0.5, 1.0, 2.0), (0.75, -1.5, -math.inf), (0.5,)], ids=["convex", "not convex", "one client"]
)
def test_dual_points(coarse: None, excess: Any, mu: tuple[float, ...]) -> None:
    f, excess = stated(len(mu), mu=mu), None if excess is None else excess[: len(mu)]
    f.mu_rounding = np.where(f.mu > -math.inf, f.mu_rounding, 0.0)
    point = dual_point(f, found(f, excess))
    assert f.excesses[-1] is excess
    assert not f.asked
    assert point is not None
    assert point.error is not None
    for j, strong in enumerate(proven(f)):
        known = mu[j] > -math.inf
        strong = strong if known else 0.0
        x, g, value = POINTS[j], f.gradients[j], float(f.values[j])
        np.testing.assert_allclose(point.dual[j], g - strong * x, rtol=1e-14)
        error = float(f.errors.gradient[j]) + gamma(2) * (norm(g) + 2 * abs(strong) * norm(x)) + 2 * TINY
        assert point.error[j] == pytest.approx(error, rel=1e-14)
        conjugate = float(g @ x) - value - strong / 2 * norm(x) ** 2 + (0.0 if excess is None else float(excess[j]))
        conjugate += float(f.errors.value[j]) + error * norm(x) + 2 * TINY * (1 + abs(strong))
        conjugate += gamma(2 + 8) * (norm(g) * norm(x) + abs(value) + abs(strong) * norm(x) ** 2)
        assert point.conjugate[j] == (pytest.approx(conjugate, rel=1e-13) if known else math.inf)


@pytest.mark.parametrize("what", ["values", "gradient errors"])
def test_a_conjugate_that_is_no_number_is_infinite(coarse: None, what: str) -> None:
    f = stated()
    if what == "values":
        f.values = np.array([math.nan, -math.inf, 1.0])
    else:
        f.errors = f.errors._replace(gradient=np.array([math.nan, math.inf, 0.0]))
    point = dual_point(f, found(f))
    assert point is not None
    assert np.isinf(point.conjugate).tolist() == [True, True, False]
    assert point.conjugate[0] > 0


def test_single_precision_is_evaluated_anew_where_it_can_be(coarse: None) -> None:
    f = stated()
    for excess, dtype in ((None, np.float64), (np.ones(3, np.float32), np.float32)):
        f.asked.clear()
        point = dual_point(f, found(f, excess, np.float32))
        assert point is not None
        assert point.dual.dtype == dtype or excess is not None
        assert [x.dtype for x in f.asked] == ([np.float64] if excess is None else [])
    assert certificate(f, THETA.astype(np.float32)).gap == certificate(f, THETA).gap
    assert [x.dtype for x in f.asked] == [np.float64, np.float64]
    f.asked.clear()
    f.mu[1] = -math.inf  # no bound can exist, and an objective may know no other precision
    assert certificate(f, THETA.astype(np.float32)).gap == math.inf
    assert [x.dtype for x in f.asked] == [np.float32]


@pytest.mark.parametrize("h", REGULARISERS.values(), ids=REGULARISERS)
@pytest.mark.parametrize("error", [None, np.array([0.25, 0.5, 1.0])], ids=["exact", "rounded"])
def test_the_dual_form(coarse: None, h: Tilted, error: Any) -> None:
    f = stated(regulariser=h)
    f.gradients = f.gradients + 50.0  # the gradient form is far larger
    dual = np.array([[-1.0, -2.5], [0.5, -1.0], [-2.0, 0.5]])
    conjugates = np.array([40.0, 5.0, -2.0])
    m, value, xi = mean_mu(f), h.value(THETA), dual.mean(axis=0)
    center = -xi / m
    x = (center - h.slope / m) / (1 + h.mu / m)
    inside, outside, of_x = m / 2 * norm(center) ** 2, m / 2 * norm(x - center) ** 2, h.value(x)
    room = gamma(2 + 16) * (inside + outside + abs(of_x)) + 2 * TINY * (1 + m + h.mu)
    distance = gamma(3 + 2) * mean(map(norm, dual)) + (0.0 if error is None else mean(error))
    room += distance * norm(x) + distance**2 / (2 * m)
    energy = mean(f.values) + value
    room += value_error(f, value) + gamma(3 + 2) * mean(map(abs, conjugates)) + 4 * UNIT * abs(energy)
    gap = energy + mean(conjugates) - (outside + of_x - inside)
    assert gap > 0
    bound = certificate(f, THETA, DualPoint(dual, conjugates, error))
    assert (bound.kind, bound.energy) == ("dual", pytest.approx(energy, rel=1e-14))
    assert bound.gap == pytest.approx(rounded_up(gap + room), rel=1e-13)
    assert bound.rounding == pytest.approx(rounded_up(gap + room) - gap, rel=1e-13)
    # a gap below zero is rounding, as far as that goes
    of_two = DualPoint(dual[:2], conjugates[:2] - 1e3, None if error is None else error[:2])
    assert certificate(f, THETA, of_two) == certificate(f, THETA)  # which says nothing of the third
    less = DualPoint(dual, conjugates - gap - 1.0, error)
    bound = certificate(f, THETA, less)
    room += gamma(3 + 2) * (mean(map(abs, less.conjugate)) - mean(map(abs, conjugates)))
    assert room > 1.0
    assert (bound.kind, bound.gap) == ("dual", pytest.approx(rounded_up(room), rel=1e-13))
    assert bound.rounding == bound.gap


def test_the_smaller_form_wins(exact: None) -> None:
    """E = 9, |grad E| = 4, m = 1 and the errors 1/2 of values, 0 of slopes: the gradient form is 8 + 1."""
    half = Rounding(np.array([0.5]), np.array([0.0]))
    f: Any = Stated(np.array([9.0]), np.array([[4.0, 0.0]]), half, np.array([1.0]), np.array([0.0]))
    zero = np.zeros((1, 2))  # the dual form: 9 + conjugate - 0, and 1/2

    def judged(conjugate: float, dual: np.ndarray = zero) -> tuple[str, float]:
        bound = certificate(f, THETA, DualPoint(dual, np.array([conjugate])))
        return bound.kind, bound.gap

    assert judged(0.0) == ("gradient", 9.0)
    assert judged(-0.5) == ("gradient", 9.0)  # both are
    assert judged(-1.0) == ("dual", 8.5)
    assert judged(-9.5) == ("dual", 0.5)  # a gap of -1/2 may be rounding
    assert judged(-9.75) == ("gradient", 9.0)  # one below may not
    assert judged(math.nan) == judged(math.inf) == ("gradient", 9.0)
    assert judged(-5.0, np.array([[2.0, 0.0]])) == ("dual", 6.5)  # 9 - 5 + 2^2/2
    f.mu[0] = 0.0
    assert judged(-1.0) == ("gradient", math.inf)


def test_without_rounding_the_minimiser_is_certified_exactly(exact: None) -> None:
    none = Rounding(np.zeros(1), np.zeros(1))
    f: Any = Stated(np.array([9.0]), np.zeros((1, 2)), none, np.array([1.0]), np.array([0.0]))
    assert certificate(f, THETA).gap == 0.0


def test_a_relative_error_without_a_positive_lower_bound_is_infinite() -> None:
    assert Certificate(3.0, 1.0, "dual", 1.0).relative == 0.5
    assert Certificate(1.0, 1.0, "dual", 1.0).relative == math.inf


def test_local_solutions_are_used_by_their_dual_points(coarse: None) -> None:
    f = stated(mu=(0.5, 0.75, 1.0))
    local = found(f, excess=np.full(3, 10.0))
    f.gradients = f.gradients + 500.0
    point = dual_point(f, local)
    assert certificate(f, THETA, local) == certificate(f, THETA, point)
    assert certificate(f, THETA, point).kind == "dual"


def test_solutions_of_some_clients_are_not_taken_for_those_of_all(coarse: None) -> None:
    f = stated()
    some = found(f)
    rows = Evaluation(*(x[:2] for x in some.evaluation))
    two = some._replace(theta=some.theta[:2], evaluation=rows)
    assert certificate(f, THETA, two) == certificate(f, THETA)
    assert certificate(f, THETA, some._replace(evaluation=None)) == certificate(f, THETA)


# ---- the latest solutions ----


@pytest.mark.parametrize(("mu", "useful"), [(-2.0, False), (0.0, False), (0.5, True)])
def test_clients_of_no_mean_convexity_are_not_collected(exact: None, mu: float, useful: bool) -> None:
    f = stated(mu=(mu,) * 3)
    f.mu_rounding = np.zeros(3)
    last = LatestSolutions(f)
    last.update([0, 1, 2], found(f))
    assert (last.solution is not None) == useful


def test_rounds_are_copied_and_the_round_of_everybody_is_not() -> None:
    f = stated()
    last, all_of_them = LatestSolutions(f), found(f)
    last.update([0, 1, 2], all_of_them)
    assert last.solution is not None
    assert last.solution.theta is all_of_them.theta
    one = all_of_them._replace(
        theta=7.0 + POINTS[:1], evaluation=Evaluation(*(x[:1] + 7.0 for x in all_of_them.evaluation))
    )
    last.update([1], one)
    assert last.solution is not None
    assert last.solution.theta.tolist() == [POINTS[0].tolist(), (7.0 + POINTS[0]).tolist(), POINTS[2].tolist()]
    assert last.solution.evaluation.f.tolist() == [30.0, 37.0, 20.0]
    assert last.solution.evaluation.value is last.solution.evaluation.f  # no term is added
    assert last.solution.excess is None
    assert all_of_them.theta.tolist() == POINTS.tolist()  # it was the caller's
    earlier, copy = last.solution.theta, last.solution.theta.copy()
    last.update([2], one)
    assert earlier.tolist() == copy.tolist()  # what was handed out is never written to
    assert last.solution.theta[2].tolist() == (7.0 + POINTS[0]).tolist()
    last.update([0, 1, 2], all_of_them)
    last.update([0], one)
    assert all_of_them.theta.tolist() == POINTS.tolist()
    last.update([0], one._replace(evaluation=None))
    last.update([0], None)
    assert last.solution.theta[1].tolist() == POINTS[1].tolist()


def test_evaluations_of_everybody_are_asked_for_last() -> None:
    """A solver may leave them to whoever needs them; those that the next round of everybody replaces, nobody does."""
    f = stated()
    last, whole = LatestSolutions(f), found(f)
    asked = []

    class Lazy:
        def __getattr__(self, name: str) -> np.ndarray:
            asked.append(name)
            return getattr(whole.evaluation, name)

    last.update([0, 1, 2], whole._replace(evaluation=Lazy()))
    last.update([0, 1, 2], whole._replace(evaluation=Lazy()))
    assert last.solution is not None
    assert not asked
    last.update([1], whole._replace(theta=POINTS[:1], evaluation=Evaluation(*(x[:1] for x in whole.evaluation))))
    assert set(asked) == {"f", "grad_f"}
    assert last.solution.theta.tolist() == [POINTS[0].tolist(), POINTS[0].tolist(), POINTS[2].tolist()]


def test_two_clients_in_any_order() -> None:
    f = stated()
    last, whole = LatestSolutions(f), found(f)
    two = whole._replace(theta=POINTS[:2], evaluation=Evaluation(*(x[:2] for x in whole.evaluation)))
    last.update([2, 0], two)
    assert last.solution is None
    last.update([1, 0], two)
    assert last.solution is not None
    assert last.solution.theta.tolist() == [POINTS[1].tolist(), POINTS[0].tolist(), POINTS[0].tolist()]


@pytest.mark.parametrize("excess", [None, np.array([0.5, 0.25, 2.0])], ids=["gradients", "subgradients"])
def test_what_is_kept_is_restored(excess: Any) -> None:
    f, whole = stated(), found(stated(), excess)
    two = whole._replace(
        theta=POINTS[1:],
        evaluation=Evaluation(*(x[1:] for x in whole.evaluation)),
        excess=None if excess is None else excess[1:],
    )
    assert LatestSolutions(f).kept is None
    for updates in ([([0, 1, 2], whole)], [([2, 0], two)], [([0, 1, 2], whole), ([2, 0], two)]):
        before, after = LatestSolutions(f), LatestSolutions(f)
        for clients, solution in updates:
            before.update(clients, solution)
        after.restore(None)
        after.restore(before.kept)
        for more in (False, True):
            if more:
                before.update([1], last_of(whole))
                after.update([1], last_of(whole))
            old, new = before.solution, after.solution
            assert (old is None) == (new is None) == (len(updates) == 1 and updates[0][0] == [2, 0] and not more)
            if old is not None and new is not None:
                assert new.theta.tolist() == old.theta.tolist()
                assert [x.tolist() for x in new.evaluation] == [x.tolist() for x in old.evaluation]
                assert (new.excess is None) == (old.excess is None) == (excess is None)
                np.testing.assert_array_equal(new.excess, old.excess)


def last_of(whole: LocalSolution) -> LocalSolution:
    """The last client's solution, for another one."""
    excess = None if whole.excess is None else 3.0 * whole.excess[2:]
    return whole._replace(theta=POINTS[2:], evaluation=Evaluation(*(x[2:] for x in whole.evaluation)), excess=excess)


def test_an_excess_is_kept_with_its_client() -> None:
    f = stated()
    last, whole = LatestSolutions(f), found(f)
    one = whole._replace(theta=POINTS[:1], evaluation=Evaluation(*(x[:1] for x in whole.evaluation)))
    last.update([0, 1, 2], whole)
    last.update([1], one._replace(excess=np.array([0.5])))
    assert last.solution is not None
    assert last.solution.excess is not None
    assert last.solution.excess.tolist() == [0.0, 0.5, 0.0]
    last.update([2], one._replace(excess=np.array([0.25])))
    assert last.solution.excess.tolist() == [0.0, 0.5, 0.25]
    last.update([1], one)
    assert last.solution.excess.tolist() == [0.0, 0.0, 0.25]


def test_copies_are_of_the_type_and_library_of_the_solution() -> None:
    f, whole = stated(), found(stated(), dtype=np.float32)
    asarray = array_api_strict.asarray
    rows = [asarray(x[:1]) for x in (whole.theta, whole.evaluation.f, whole.evaluation.grad_f)]
    last = LatestSolutions(f)
    for client in range(3):
        last.update([client], whole._replace(theta=rows[0], evaluation=Evaluation(*rows[1:], *rows[1:])))
    assert last.solution is not None
    assert last.solution.theta.dtype == array_api_strict.float32
    assert last.solution.theta.shape == (3, 2)
