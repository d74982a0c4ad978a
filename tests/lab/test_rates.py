"""Envelopes and rates: assertions accept the right ones and reject wrong ones, on sequences and on methods."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dualopt.lab.random_problems import random_quadratic
from dualopt.lab.rates import (
    assert_envelope,
    assert_linear_rate,
    assert_sublinear_rate,
    estimate_factor,
    estimate_order,
    student_quantile,
)
from dualopt.methods import DualFL
from dualopt.runs.recording import run
from dualopt.runs.trace import Trace
from dualopt.solvers import Exact

QUADRATIC: dict[str, Any] = {"seed": 0, "n_clients": 3, "dimension": 4, "mu": 1.0, "L": 20.0, "heterogeneity": 1.0}


# Envelopes


def test_envelope_names_the_first_and_the_worst() -> None:
    with pytest.raises(AssertionError) as error:
        assert_envelope([1.0, 0.25, 0.3, 0.5, 0.01], [1.0, 0.25, 0.2, 0.1, 0.1])
    assert str(error.value) == ("at n = 2 the error 0.3 exceeds the bound 0.2, ratio 1.5; worst at n = 3, ratio 5.")


def test_envelope_takes_the_bound_to_the_letter() -> None:
    assert_envelope([1.0, 0.5], [1.0, 0.5])
    with pytest.raises(AssertionError, match="at n = 1"):
        assert_envelope([1.0, math.nextafter(0.5, 1.0)], [1.0, 0.5])


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_envelope_takes_no_error_that_is_not_finite(bad: float) -> None:
    with pytest.raises(AssertionError, match="at n = 1"):
        assert_envelope([1.0, bad], lambda n: math.inf)
    with pytest.raises(AssertionError, match="at n = 0"):
        assert_envelope([bad, 1.0], lambda n: 2.0)


def test_envelope_leaves_out_rounding_relative_to_the_start() -> None:
    errors, bound = [1e-3, 0.9e-15], [1.0, 1e-20]
    assert_envelope(errors, bound)
    for rounding in (0.0, 1e-13):
        with pytest.raises(AssertionError, match="at n = 1"):
            assert_envelope(errors, bound, rounding=rounding)
    with pytest.raises(AssertionError, match="ratio inf"):
        assert_envelope([0.0, 1e-300], [0.0, 0.0])


def test_envelope_of_a_trace() -> None:
    columns = {"error": [1.0, 0.5, 0.25], "distance": [math.nan, 2.0, 1.0]}
    trace = Trace(columns=columns, status="max_rounds", theta=None)
    assert_envelope(trace, lambda n: 0.5**n)
    assert_envelope(trace, lambda n: 2.0 / n, column="distance")  # not called at the start, that was not measured
    assert_envelope(trace, [math.inf, 2.0, 1.0], column="distance")
    with pytest.raises(AssertionError, match="at n = 2"):
        assert_envelope(trace, lambda n: 1.8 / n**2 + 0.4 * (n == 1), column="distance")
    unknown = Trace(columns={"error": [math.nan]}, status="max_rounds", theta=None)  # no round was done
    with pytest.raises(AssertionError, match="at n = 0 the error nan"):
        assert_envelope(unknown, lambda n: 1.0)
    with pytest.raises(ValueError, match=r"column must be one of error, distance; not 'energy'\."):
        assert_envelope(trace, lambda n: 1.0, column="energy")


@pytest.mark.parametrize(
    ("errors", "bound", "options", "said"),
    [
        ([1.0, 0.5], [1.0], {}, r"bound must have 2 entries, like the errors, not 1\.$"),
        ([1.0, 0.5], 1.0, {}, "bound must have 2 entries"),
        ([1.0, 0.5], [1.0, math.nan], {}, "bound must be a number for every n"),
        ([], [], {}, "errors must be one number for each round"),
        ([[1.0]], [1.0], {}, "errors must be one number for each round"),
        ([1.0], [1.0], {"rounding": 1.0}, r"rounding must lie in \[0, 1\), not 1.0"),
    ],
)
def test_envelope_refuses(errors: Any, bound: Any, options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        assert_envelope(errors, bound, **options)


# Rates


def noise(rng: np.random.Generator, length: int, *, correlation: float, deviation: float = 0.3) -> np.ndarray:
    """A stationary autoregression."""
    z = rng.standard_normal(length)
    for i in range(1, length):
        z[i] = correlation * z[i - 1] + math.sqrt(1 - correlation**2) * z[i]
    return deviation * z


def geometric(factor: float, length: int = 201) -> np.ndarray:
    return factor ** np.arange(length)


def power(order: float, length: int = 201, shift: float = 1.0) -> np.ndarray:
    return (np.arange(length) + shift) ** -order


RATES = [
    pytest.param(assert_linear_rate, geometric, 0.9, 0.95, id="factor"),
    pytest.param(assert_sublinear_rate, power, 2.0, 1.0, id="order"),
]


@pytest.mark.parametrize("correlation", [0.0, 0.5])
@pytest.mark.parametrize(("assertion", "make", "right", "wrong"), RATES)
def test_right_rates_pass_and_wrong_ones_fail(assertion, make, right, wrong, correlation) -> None:
    rng = np.random.default_rng(1)
    for _ in range(10):
        factors = np.exp(noise(rng, 401, correlation=correlation, deviation=0.2))
        assertion(make(right, 401) * factors, right, rounding=0.0)
        with pytest.raises(AssertionError, match="than"):
            assertion(make(wrong, 401) * factors, right, rounding=0.0)


@pytest.mark.parametrize("correlation", [0.0, 0.5])
@pytest.mark.parametrize(
    ("estimate", "make", "truth", "useful"),
    [
        pytest.param(estimate_factor, geometric, 0.9, 0.03, id="factor"),
        pytest.param(estimate_order, power, 2.0, 2.0, id="order"),
    ],
)
def test_intervals_cover_the_truth(estimate, make, truth, useful, correlation) -> None:
    """As often as they say, and without being so wide that they say nothing."""
    rng, covered, widths = np.random.default_rng(2), 0, []
    for _ in range(300):
        q = estimate(make(truth) * np.exp(noise(rng, 201, correlation=correlation)), rounding=0.0)
        covered += q.low <= truth <= q.high
        widths.append(q.high - q.low)
    assert covered >= 0.95 * 300
    assert np.median(widths) < useful


def test_the_interval_is_that_of_batch_means() -> None:
    """Against least squares written out, with Student's t from SciPy."""
    n = np.arange(101.0)
    errors = geometric(0.9, 101) * (1 + 0.3 * np.cos(n))
    batches = np.array_split(np.arange(10, 101), 10)
    y = np.array([np.log(errors[batch]).mean() for batch in batches])
    X = np.array([[1.0, n[batch].mean(), np.log(n[batch]).mean()] for batch in batches])
    fit, (squares,), *_ = np.linalg.lstsq(X, y)
    plain = np.linalg.lstsq(X[:, :2], y)[0]
    error = math.sqrt(squares / 7 * np.linalg.inv(X.T @ X)[1, 1])
    for confidence in (0.5, 0.95):
        half = stats.t.ppf((1 + confidence) / 2, 7) * error + abs(fit[1] - plain[1])
        expected = np.exp([fit[1], fit[1] - half, fit[1] + half])
        assert estimate_factor(errors, confidence=confidence)[:3] == pytest.approx(expected, rel=1e-7)


def test_student_quantile() -> None:
    for probability in (0.5, 0.75, 0.975, 0.9995):
        assert student_quantile(probability, 7) == pytest.approx(stats.t.ppf(probability, 7), rel=1e-5, abs=1e-12)


@given(factor=st.floats(0.5, 0.9), prefactor=st.integers(0, 2), scale=st.floats(1e-30, 1e30))
def test_polynomial_prefactors_do_not_bias_the_factor(factor: float, prefactor: int, scale: float) -> None:
    """A double root of a momentum method gives n q^n, its square n^2 q^(2n)."""
    n = np.arange(1.0, 102.0)
    errors = np.concatenate([[scale], scale * n**prefactor * factor**n])
    q = estimate_factor(errors, rounding=0.0)
    assert q.value == pytest.approx(factor, rel=1e-10)
    assert q.low <= factor <= q.high
    assert_linear_rate(errors, factor, rounding=0.0, confidence=0.51)


@given(order=st.floats(0.5, 4.0), shift=st.floats(0.5, 6.0), length=st.integers(30, 400))
def test_a_shifted_index_does_not_bias_the_order(order: float, shift: float, length: int) -> None:
    errors = power(order, length, shift)
    p = estimate_order(errors)
    assert p.low <= order <= p.high
    assert_sublinear_rate(errors, order)


@pytest.mark.parametrize("length", [31, 101, 401])
@pytest.mark.parametrize("share", [1e-1, 1e-3, 1e-4])
def test_sums_of_geometric_sequences_pass_with_the_slowest_factor(share: float, length: int) -> None:
    """Wherever the slow one takes over: the correction alone would not find a fall in some of these."""
    errors = geometric(0.5, length) + share * geometric(0.95, length)
    assert_linear_rate(errors, 0.95)
    with pytest.raises(AssertionError, match="more than"):
        assert_linear_rate(errors, 0.55)


def test_exact_sequences_are_held_to_their_rates() -> None:
    assert_linear_rate(geometric(0.9), 0.9)
    with pytest.raises(AssertionError, match="more than"):
        assert_linear_rate(geometric(0.9001), 0.9)
    errors = np.concatenate([[1.0], np.arange(1.0, 200.0) ** -2.0])
    assert_sublinear_rate(errors, 2.0)
    with pytest.raises(AssertionError, match="less than"):
        assert_sublinear_rate(errors, 2.001)
    assert_sublinear_rate(geometric(0.8), 2.0)  # faster than any power


def test_rounding_ends_the_data() -> None:
    errors = np.maximum(geometric(0.5), 1e-16)
    assert estimate_factor(errors).value == pytest.approx(0.5, rel=1e-10)
    assert estimate_factor(errors, rounding=0.0).value > 0.9
    assert estimate_factor(np.where(errors > 1e-13, errors, 0.0), rounding=0.0).value == pytest.approx(0.5)
    assert estimate_factor(1e-20 * errors).value == pytest.approx(0.5, rel=1e-10)


def test_errors_that_are_over_soon_pass_if_the_claim_takes_as_long() -> None:
    errors = np.concatenate([[1.0, 0.5, 1e-3], np.full(50, 1e-14)])  # down to rounding in 3 rounds
    for claim in (0.9, 1.01e-4):
        assert_linear_rate(errors, claim)
    for order in (2.0, 25.0):
        assert_sublinear_rate(errors, order)
    back = np.where(np.arange(53) == 20, 0.1, errors)
    infinite, missing = (np.where(np.arange(53) == 1, bad, errors) for bad in (-math.inf, math.nan))
    negative = np.where(np.arange(53) > 2, -0.5, errors)  # below a reference that is not the minimum
    refused = [
        lambda: assert_linear_rate(errors, 0.99e-4),
        lambda: assert_sublinear_rate(errors, 26.0),
        lambda: assert_linear_rate(back, 0.9),
        lambda: assert_linear_rate(infinite, 0.9),
        lambda: assert_linear_rate(missing, 0.9),
        lambda: assert_linear_rate(negative, 0.9),
        lambda: assert_linear_rate(errors[:3], 0.9),
        lambda: assert_linear_rate([1.0, 1e-14, 0.5], 0.9),
        lambda: assert_linear_rate(np.zeros(53), 0.9),
        lambda: estimate_factor(errors),
    ]
    for call in refused:
        with pytest.raises(ValueError, match=r"errors must have at least 10|errors must be finite"):
            call()
    late = np.where(np.arange(53) < 12, geometric(0.99, 53), 1e-14)  # enough rounds for an estimate
    with pytest.raises(AssertionError, match="more than"):
        assert_linear_rate(late, 0.9)


@pytest.mark.parametrize(
    ("assertion", "claim", "make"), [(assert_linear_rate, 0.9, geometric), (assert_sublinear_rate, 2.0, power)]
)
@pytest.mark.parametrize("wrong", [{"rounding": 0.0}, {"column": "error"}, {"start": 192}])
def test_assertions_heed_their_options(assertion, claim, make, wrong: dict[str, Any]) -> None:
    """Errors that are right down to a floor at round 200, next to some that are not."""
    good = np.maximum(make(claim, 2001), make(claim)[-1])
    trace = Trace(columns={"error": np.ones(2001), "good": good}, status="max_rounds", theta=None)
    options: dict[str, Any] = {"column": "good", "rounding": 1.01 * good[-1], "start": 10}
    assertion(trace, claim, **options)
    with pytest.raises((AssertionError, ValueError), match=r"do not show convergence|than|at least 10|a decade"):
        assertion(trace, claim, **options | wrong)


@pytest.mark.parametrize("floor", [1e-1, 1e-3])
@pytest.mark.parametrize("share", [0.2, 0.35, 0.5])
def test_methods_that_stop_short_fail(share: float, floor: float) -> None:
    """A biased method falls as fast as it should, down to where it stays."""
    n = np.arange(201)
    stop = share * 200
    for errors in (np.maximum(floor ** (n / stop), floor), floor ** (n / stop) + floor):
        with pytest.raises(AssertionError, match=r"more than|do not show convergence"):
            assert_linear_rate(errors, floor ** (1 / stop))
    with pytest.raises(AssertionError, match=r"less than|do not show convergence"):
        assert_sublinear_rate(np.maximum(power(2.0), stop**-2.0), 2.0)


def test_the_second_half_decides_whether_errors_fall() -> None:
    """A kink is no straight line: these intervals exclude nothing, and the claims are wrong."""
    stops = np.maximum(power(2.0, 301), 150.0**-2)
    p = estimate_order(stops)
    assert p.low < 0 < 1.0 < p.high
    with pytest.raises(AssertionError, match="rounds 166 to 300 do not show convergence"):
        assert_sublinear_rate(stops, 1.0)
    n = np.arange(101)
    stops = np.where(n < 70, 1.0, np.maximum(0.8 ** (n - 70.0), 0.1))
    assert estimate_factor(stops, start=70).low < 0.8
    with pytest.raises(AssertionError, match="rounds 86 to 100 do not show convergence"):
        assert_linear_rate(stops, 0.8, start=70)
    assert_linear_rate(geometric(0.5, 12), 0.5)  # of few rounds, the last 10


def test_start_and_the_default_tenth() -> None:
    n = np.arange(301)
    errors = np.where(n < 30, 1.0, geometric(0.97, 301) / 0.97**30)  # 30 rounds of nothing, a tenth of all
    assert estimate_factor(errors).value == pytest.approx(0.97)
    assert abs(estimate_factor(errors, start=1).value - 0.97) > 1e-3
    late = np.where(n < 100, 1.0, geometric(0.97, 301) / 0.97**100)
    assert estimate_factor(late, start=100).value == pytest.approx(0.97)


@pytest.mark.parametrize(("length", "first"), [(12, 1), (15, 1), (199, 19), (200, 19), (201, 20)])
def test_the_first_round_that_is_used(length: int, first: int) -> None:
    """A tenth of the last round, rounded down, and not the start."""
    errors = geometric(0.9, length) * (1 + 0.3 * np.cos(np.arange(length)))
    assert estimate_factor(errors) == estimate_factor(errors, start=first)
    assert estimate_factor(errors) != estimate_factor(errors, start=first + 1)


def test_a_method_that_does_not_converge_fails() -> None:
    ripple = 1 + 0.9 * np.cos(0.11 * np.arange(201))
    with pytest.raises(AssertionError, match="do not show convergence"):
        assert_linear_rate(ripple, 0.9999)
    with pytest.raises(AssertionError, match="do not show convergence"):
        assert_sublinear_rate(ripple, 0.01)
    with pytest.raises(AssertionError, match="more than"):
        assert_linear_rate(geometric(1.05), 0.99)
    with pytest.raises(AssertionError, match="less than"):
        assert_sublinear_rate(geometric(1.05), 1.0)


def test_wild_errors_give_a_wide_interval_and_no_overflow() -> None:
    errors = 10.0 ** np.random.default_rng(0).uniform(-250, 250, 1001)
    errors[0] = 1e250
    q = estimate_factor(errors, start=990, rounding=0.0)
    assert q.low < 1e-3
    assert 1e3 < q.high < math.inf


def test_the_bound_is_one_sided() -> None:
    """Its confidence is that of a two-sided interval with twice the risk."""
    errors = geometric(0.9) * np.exp(noise(np.random.default_rng(3), 201, correlation=0.0))
    low = estimate_factor(errors, confidence=0.9).low
    assert estimate_factor(errors, confidence=0.95).low < low
    assert_linear_rate(errors, low + 1e-9)
    with pytest.raises(AssertionError, match="more than"):
        assert_linear_rate(errors, low - 1e-9)
    errors = power(2.0) * np.exp(noise(np.random.default_rng(3), 201, correlation=0.0, deviation=0.1))
    high = estimate_order(errors, confidence=0.9).high
    assert_sublinear_rate(errors, high - 1e-9)
    with pytest.raises(AssertionError, match="less than"):
        assert_sublinear_rate(errors, high + 1e-9)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: estimate_factor(geometric(0.9, 10)), "errors must have at least 10 rounds above rounding, not 9."),
        (lambda: estimate_factor(geometric(0.005)), "errors must have at least 10 rounds above rounding, not 5."),
        (lambda: estimate_factor([0.0] * 50), "errors must have at least 10 rounds above rounding, not 0."),
        (lambda: estimate_factor([1.0, 0.5, math.nan]), "errors must be finite, not nan at n = 2."),
        (
            lambda: estimate_order(power(1.0), start=30),
            "errors must span a decade of n above rounding, not n = 30 to 200.",
        ),
        (lambda: estimate_factor(geometric(0.9), start=0), "start must be at least 1, not 0."),
        (lambda: estimate_factor(geometric(0.9), confidence=1.0), "confidence must lie in (0, 1), not 1.0."),
        (lambda: estimate_factor(geometric(0.9), rounding=-1.0), "rounding must lie in [0, 1), not -1.0."),
        (lambda: assert_linear_rate(geometric(0.9), 1.0), "factor must lie in (0, 1), not 1.0."),
        (lambda: assert_sublinear_rate(power(1.0), 0.0), "order must be positive and finite, not 0.0."),
        (lambda: assert_sublinear_rate(power(1.0), math.inf), "order must be positive and finite, not inf."),
        (lambda: assert_linear_rate(geometric(0.9), 0.9, confidence=0.5), "confidence must lie in (0.5, 1), not 0.5."),
    ],
)
def test_rates_refuse(call: Callable[[], Any], said: str) -> None:
    with pytest.raises(ValueError) as error:  # noqa: PT011
        call()
    assert str(error.value) == said


# Methods


def test_a_run_is_asserted_on_by_its_trace() -> None:
    given: dict[str, Any] = QUADRATIC | {"L": 100.0, "heterogeneity": 3.0}
    f = random_quadratic(**given)
    trace = run(DualFL(solver=Exact()), f, rounds=150, reference=1.0)
    assert_linear_rate(trace, 1 - 0.1)
    assert estimate_factor(trace) == estimate_factor(trace["error"])
    with pytest.raises(AssertionError, match=r"more than 0\.3"):
        assert_linear_rate(trace, 0.3)
