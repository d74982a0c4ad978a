r"""Rates of convergence: envelopes that errors must keep to, estimates of factors and orders, and assertions on them.

How rates are estimated
-----------------------
A rate is the slope of a straight line: of :math:`\log e_n` over :math:`n` for a factor per round, over :math:`\log n`
for an order. Errors at most ``rounding`` times the first one are rounding (so give the start first), and the data end
before the first of these; of what is left, the rounds from a tenth of the last one on are used (from ``start`` on, if
given). They are cut into 10 batches of equal length, and the batch means of :math:`\log e_n` are fitted by least
squares with a constant, the slope, and the next term of the usual expansions, as a correction (Student's t, 7 degrees
of freedom):

.. math::
    \log e_n \approx c + n \log q + k \log n, \qquad \log e_n \approx c - p \log n + s / n,

exact for :math:`e_n = C n^k q^n`; the second follows :math:`e_n = C (n + a)^{-p}` up to :math:`O(n^{-2})`. The
half-width of the interval is the t quantile times the standard error, plus the change of the slope when the correction
is left out: an interval never claims to know more than the choice between the two fits does.

What ``confidence`` means: if the logarithms follow such a law up to stationary noise whose correlations are short
against a batch, the interval covers the true rate at least about that often; usually more often, because of what is
added. Errors of a deterministic method have no probability: there it is a rule that judges ripples as if they were such
noise. Nothing is proved about rounds that were not run. A ripple slower than a batch is taken for a trend, a correction
that dies more slowly than ``1/n`` biases the order, and means of logarithms tell of typical errors: a method that is
slow in every third round only is a case for :func:`assert_envelope`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from dualopt.arrays._checks import require
from dualopt.runs.trace import Trace

__all__ = [
    "Factor",
    "Order",
    "assert_envelope",
    "assert_linear_rate",
    "assert_sublinear_rate",
    "estimate_factor",
    "estimate_order",
]

Errors = Trace | Sequence[float] | np.ndarray
Regressor = Callable[[np.ndarray], np.ndarray]

BATCHES = 10  # more would be shorter than the correlations of real errors, fewer would widen every interval
DECADE = 10


class Factor(NamedTuple):
    """An estimated factor per round, with a two-sided interval."""

    value: float
    low: float
    high: float
    confidence: float


class Order(NamedTuple):
    """An estimated order ``p`` of an error like ``n^-p``, with a two-sided interval."""

    value: float
    low: float
    high: float
    confidence: float


def assert_envelope(
    errors: Errors, bound: Callable[[int], float] | Sequence[float], *, column: str = "error", rounding: float = 1e-12
) -> None:
    r"""Assert :math:`e_n \le \mathrm{bound}(n)` for all ``n = 0, 1, ...``.

    Parameters
    ----------
    errors : Trace or sequence of float
        Errors by round, the start first. Of a Trace, row 0 is left out where it is NaN (not measured at the start).
    bound : callable or sequence of float
        An explicit bound, not fitted to the data.
    column : str, default "error"
        Which column of a Trace.
    rounding : float, default 1e-12
        Errors at most this share of the first one are rounding and not compared.
        NaN and infinity exceed every bound.

    Raises
    ------
    AssertionError
        If an error exceeds its bound, naming the first and the worst.
    ValueError
        If an argument does not fit.

    Examples
    --------
    >>> assert_envelope([1.0, 0.4, 0.2], lambda n: 0.5**n)
    >>> assert_envelope([1.0, 0.6, 0.5], lambda n: 0.5**n)
    Traceback (most recent call last):
    AssertionError: at n = 1 the error 0.6 exceeds the bound 0.5, ratio 1.2; worst at n = 2, ratio 2.
    """
    n, values = _series(errors, column)
    every = [bound(int(k)) for k in n] if callable(bound) else np.atleast_1d(np.asarray(bound))[n[0] :]
    bounds = np.asarray(every, dtype=float)
    require(bounds.shape == values.shape, f"bound must have {n[-1] + 1} entries, like the errors", len(every) + n[0])
    require(not np.isnan(bounds).any(), "bound must be a number for every n", "NaN")
    within = np.isfinite(values) & ((values <= bounds) | (values <= _floor(values, rounding)))
    beyond = np.flatnonzero(~within)
    if beyond.size:
        positive = np.isfinite(values[beyond]) & (bounds[beyond] > 0)
        ratios = np.divide(values[beyond], bounds[beyond], out=np.full(beyond.size, math.inf), where=positive)
        first, worst = beyond[0], np.argmax(ratios)
        raise AssertionError(
            f"at n = {n[first]} the error {values[first]:.6g} exceeds the bound {bounds[first]:.6g}, "
            f"ratio {ratios[0]:.6g}; worst at n = {n[beyond[worst]]}, ratio {ratios[worst]:.6g}."
        )


def estimate_factor(
    errors: Errors,
    *,
    confidence: float = 0.95,
    start: int | None = None,
    column: str = "error",
    rounding: float = 1e-12,
) -> Factor:
    """Estimate the factor ``q`` of errors like ``n^k q^n``, as the head of this module describes.

    Raises
    ------
    ValueError
        If fewer than 10 rounds can be used, or an argument is out of range.

    Examples
    --------
    >>> q = estimate_factor([0.9**n * (1 + 0.1 * (-1) ** n) for n in range(100)])
    >>> round(q.value, 3), q.low < 0.9 < q.high, q.high - q.low < 0.01
    (0.9, True, True)
    """
    return _factor(*_usable(errors, column, start, rounding), confidence)


def estimate_order(
    errors: Errors,
    *,
    confidence: float = 0.95,
    start: int | None = None,
    column: str = "error",
    rounding: float = 1e-12,
) -> Order:
    """Estimate the order ``p`` of errors like ``n^-p``, as the head of this module describes.

    Raises
    ------
    ValueError
        If the rounds that can be used are fewer than 10 or span less than a decade, or an argument is out of range.

    Examples
    --------
    >>> p = estimate_order([1 / (n + 1) ** 2 for n in range(200)])
    >>> round(p.value, 2), p.low < 2 < p.high, p.high - p.low < 0.1
    (2.0, True, True)
    """
    return _order(*_usable(errors, column, start, rounding), confidence)


def assert_linear_rate(
    errors: Errors,
    factor: float,
    *,
    confidence: float = 0.95,
    start: int | None = None,
    column: str = "error",
    rounding: float = 1e-12,
) -> None:
    """Assert that errors fall at least by ``factor`` per round, asymptotically.

    It fails when the one-sided lower confidence bound of :func:`estimate_factor` exceeds ``factor``: the errors
    contradict the claim. It also fails when the second half of the rounds used does not fall with that confidence,
    fitted without the correction: the errors do not even show convergence. Errors that are down to rounding before 10
    rounds are over, and stay there, pass without an estimate if the claim takes as long. To pass is not a proof: what
    a theorem says of every ``n`` is for :func:`assert_envelope`.

    Raises
    ------
    AssertionError
        In these two cases.
    ValueError
        If fewer than 10 rounds can be used, or an argument is out of range.

    Examples
    --------
    >>> assert_linear_rate([n * 0.9**n for n in range(1, 100)], 0.9)
    >>> assert_linear_rate([0.95**n for n in range(100)], 0.9)
    Traceback (most recent call last):
    AssertionError: errors fall by a factor of 0.95 per round, at least 0.95 with confidence 0.95: more than 0.9.
    """
    require(0 < factor < 1, "factor must lie in (0, 1)", factor)
    if _over_soon(errors, column, rounding, lambda n: factor**n):
        return
    n, values = _usable(errors, column, start, rounding)
    q = _factor(n, values, _two_sided(confidence))
    if q.low > factor:
        raise AssertionError(
            f"errors fall by a factor of {q.value:.6g} per round, at least {q.low:.6g} with confidence {confidence:g}: "
            f"more than {factor:g}."
        )
    _assert_falling(n, values, np.positive, confidence)


def assert_sublinear_rate(
    errors: Errors,
    order: float,
    *,
    confidence: float = 0.95,
    start: int | None = None,
    column: str = "error",
    rounding: float = 1e-12,
) -> None:
    """Assert that errors fall at least like ``n^-order``.

    It fails when the one-sided upper confidence bound of :func:`estimate_order` is below ``order``: the errors
    contradict the claim. It also fails when the second half of the rounds used does not fall. This, early rounding,
    and what it means to pass, are as for :func:`assert_linear_rate`.

    Raises
    ------
    AssertionError
        In these two cases.
    ValueError
        If the rounds that can be used are fewer than 10 or span less than a decade, or an argument is out of range.

    Examples
    --------
    >>> assert_sublinear_rate([1 / (n + 1) ** 2 for n in range(200)], 2)
    >>> assert_sublinear_rate([1.0] + [1 / n for n in range(1, 200)], 2)
    Traceback (most recent call last):
    AssertionError: errors fall like n^-p with p = 1, at most 1 with confidence 0.95: less than 2.
    """
    require(0 < order < math.inf, "order must be positive and finite", order)
    if _over_soon(errors, column, rounding, lambda n: float(n) ** -order):
        return
    n, values = _usable(errors, column, start, rounding)
    p = _order(n, values, _two_sided(confidence))
    if p.high < order:
        raise AssertionError(
            f"errors fall like n^-p with p = {p.value:.6g}, at most {p.high:.6g} with confidence {confidence:g}: "
            f"less than {order:g}."
        )
    _assert_falling(n, values, np.log, confidence)


def _factor(n: np.ndarray, values: np.ndarray, confidence: float) -> Factor:
    slope, half = _corrected(n, values, np.positive, np.log, confidence)
    # No factor near the largest double means anything, and math.exp would overflow above 709.
    value, low, high = (math.exp(min(s / n[-1], 700.0)) for s in (slope, slope - half, slope + half))
    return Factor(value, low, high, confidence)


def _order(n: np.ndarray, values: np.ndarray, confidence: float) -> Order:
    sentence = f"errors must span a decade of n above rounding, not n = {n[0]} to {n[-1]}"
    require(n[-1] >= DECADE * n[0], sentence)
    slope, half = _corrected(n, values, np.log, np.reciprocal, confidence)
    return Order(-slope, -slope - half, -slope + half, confidence)


def _assert_falling(n: np.ndarray, values: np.ndarray, regressor: Regressor, confidence: float) -> None:
    """Assert that the second half falls: a method that has stopped short has a wide interval, and no rate."""
    half = max(n.size // 2, BATCHES)
    slope, width = _fit(n[-half:], values[-half:], [regressor], _two_sided(confidence))
    if not slope + width < 0:
        raise AssertionError(f"rounds {n[-half]} to {n[-1]} do not show convergence with confidence {confidence:g}.")


def _corrected(
    n: np.ndarray, values: np.ndarray, regressor: Regressor, correction: Regressor, confidence: float
) -> tuple[float, float]:
    """Return the slope with the correction, and a half-width that reaches the slope without it."""
    slope, half = _fit(n, values, [regressor, correction], confidence)
    plain, _ = _fit(n, values, [regressor], confidence)
    return slope, half + abs(slope - plain)


def _fit(n: np.ndarray, values: np.ndarray, terms: list[Regressor], confidence: float) -> tuple[float, float]:
    """Fit the logarithms by functions of ``n / n[-1]``, so that the fit is well conditioned.

    Returns the slope over the first function and the half-width of its interval.
    """
    require(0 < confidence < 1, "confidence must lie in (0, 1)", confidence)
    u, logarithms = n / n[-1], np.log(values)
    rows = np.column_stack([np.ones(n.size), *(term(u) for term in terms), logarithms])
    means = np.stack([batch.mean(axis=0) for batch in np.array_split(rows, BATCHES)])
    X, y = means[:, :-1], means[:, -1]
    inverse = np.linalg.pinv(X)
    freedom = BATCHES - X.shape[1]
    error = np.linalg.norm(y - X @ (inverse @ y)) / math.sqrt(freedom) * np.linalg.norm(inverse[1])
    # Errors and logarithms are rounded: without this, a sequence that is exactly 0.9^n could miss 0.9.
    noise = 4 * np.finfo(float).eps * np.max(1 + np.abs(logarithms)) * np.sum(np.abs(inverse[1]))
    return float(inverse[1] @ y), float(student_quantile((1 + confidence) / 2, freedom) * error + noise)


def student_quantile(probability: float, freedom: int) -> float:
    """Invert Student's distribution above 1/2: for T = sqrt(freedom) tan(x), x has density ~ cos(x)^(freedom - 1)."""
    x = np.linspace(0.0, math.pi / 2, 10_001)
    density = np.cos(x) ** (freedom - 1)
    area = np.concatenate([[0.0], np.cumsum(density[1:] + density[:-1])])
    return math.sqrt(freedom) * math.tan(float(np.interp(2 * probability - 1, area / area[-1], x)))


def _series(errors: Errors, column: str) -> tuple[np.ndarray, np.ndarray]:
    """Return rounds and errors."""
    if isinstance(errors, Trace) and column not in errors.columns:
        raise ValueError(f"column must be one of {', '.join(errors.columns)}; not {column!r}.")
    values = np.asarray(errors[column] if isinstance(errors, Trace) else errors, dtype=float)
    require(values.ndim == 1 and values.size > 0, "errors must be one number for each round", f"shape {values.shape}")
    # What is measured on snapshots begins with the first round.
    first = int(isinstance(errors, Trace) and values.size > 1 and math.isnan(values[0]))
    return np.arange(first, values.size), values[first:]


def _usable(errors: Errors, column: str, start: int | None, rounding: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the rounds, from the first one, that a rate is estimated from, and their errors."""
    n, values = _series(errors, column)
    bad = np.flatnonzero(~np.isfinite(values))
    if bad.size:
        raise ValueError(f"errors must be finite, not {values[bad[0]]} at n = {n[bad[0]]}.")
    require(start is None or start >= 1, "start must be at least 1", start)
    tiny = np.flatnonzero(values <= max(_floor(values, rounding), 0.0))
    end = int(n[tiny[0]]) if tiny.size else int(n[-1]) + 1
    used = (n >= (max((end - 1) // DECADE, 1) if start is None else start)) & (n < end)
    require(used.sum() >= BATCHES, f"errors must have at least {BATCHES} rounds above rounding", int(used.sum()))
    return n[used], values[used]


def _over_soon(errors: Errors, column: str, rounding: float, claim: Callable[[int], float]) -> bool:
    """Whether errors are down to rounding for good before a rate can be estimated, and no later than claimed."""
    n, values = _series(errors, column)
    above = np.flatnonzero(np.abs(values) > _floor(values, rounding))
    if not np.isfinite(values).all() or above.size == 0 or n[above[-1]] >= BATCHES:
        return False
    rounds = int(above[-1]) + 1
    return rounds < values.size and rounding <= claim(rounds)


def _floor(values: np.ndarray, rounding: float) -> float:
    """Return the level of rounding; none is known when the first error is not finite."""
    require(0 <= rounding < 1, "rounding must lie in [0, 1)", rounding)
    return rounding * float(values[0]) if math.isfinite(values[0]) else -math.inf


def _two_sided(confidence: float) -> float:
    """Return the confidence of the two-sided interval whose ends are one-sided bounds of the given confidence."""
    require(0.5 < confidence < 1, "confidence must lie in (0.5, 1)", confidence)
    return 2 * confidence - 1
