r"""Instruments for testing methods: random problems for Hypothesis, and assertions on errors and their rates.

Needs the extra ``testing``. Strategies draw sizes and a seed, and pass them to a builder (:func:`random_quadratic`,
:func:`random_linear_model`): a failing example is small, and is printed as a call that can be pasted.

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
from typing import Any, NamedTuple, TypeVar

import numpy as np
from hypothesis import strategies as st

import dualopt.losses
from dualopt.discover import discover
from dualopt.losses import Loss
from dualopt.objectives import LinearModel, Quadratic, linear_model
from dualopt.trace import Trace

__all__ = [
    "Factor",
    "Order",
    "assert_envelope",
    "assert_linear_rate",
    "assert_sublinear_rate",
    "estimate_factor",
    "estimate_order",
    "federated_problems",
    "linear_models",
    "losses",
    "quadratics",
    "random_linear_model",
    "random_quadratic",
]

T = TypeVar("T")
Errors = Trace | Sequence[float] | np.ndarray
Regressor = Callable[[np.ndarray], np.ndarray]

SEEDS = st.integers(0, 2**32 - 1)
SIZES = st.integers(2, 6)
ROWS = st.integers(10, 60)
LEVELS = st.floats(0, 10)
LARGE = st.floats(0, 3).map(lambda power: 10.0**power)  # 1 to 1000, by magnitude
SMALL = st.floats(-3, 0).map(lambda power: 10.0**power)
BATCHES = 10  # more would be shorter than the correlations of real errors, fewer would widen every interval
DECADE = 10


def random_quadratic(
    *, seed: int, n_clients: int, dimension: int, mu: float, L: float, heterogeneity: float
) -> Quadratic:
    r"""Build quadratics with prescribed curvature and heterogeneity, and an optimum of norm 1 and value 1.

    Every :math:`A_j` has random eigenvectors and eigenvalues in ``[mu, L]``, both attained. For a random
    :math:`|\theta^*| = 1` and random :math:`\delta_j` with :math:`\sum_j \delta_j = 0` and
    :math:`\frac1N \sum_j |\delta_j|^2 = \mathrm{heterogeneity}^2`,

    .. math:: f_j(\theta) = 1 + \langle \delta_j, \theta - \theta^* \rangle
              + \tfrac12 (\theta - \theta^*)^\top A_j (\theta - \theta^*),

    so that :math:`\nabla f_j(\theta^*) = \delta_j` and :math:`E^* = 1`. All of this up to rounding.

    Raises
    ------
    ValueError
        If an argument is out of range; ``mu < L`` needs two dimensions, heterogeneity two clients.

    Examples
    --------
    >>> f = random_quadratic(seed=0, n_clients=3, dimension=4, mu=1.0, L=50.0, heterogeneity=2.0)
    >>> theta = f.minimiser()
    >>> round(float(np.sqrt(np.mean(np.sum(f.gradient(theta) ** 2, axis=-1)))), 9)
    2.0
    >>> round(float(np.mean(f.value(theta))), 9)
    1.0
    """
    _require(n_clients >= 1, "n_clients must be at least 1", n_clients)
    _require(0 <= mu < math.inf, "mu must be finite and at least 0", mu)
    _require(max(mu, 1e-300) <= L < math.inf, f"L must be positive, finite and at least mu = {mu}", L)
    least = 1 if mu == L else 2
    _require(dimension >= least, f"dimension must be at least {least} for mu = {mu} and L = {L}", dimension)
    _require(0 <= heterogeneity < math.inf, "heterogeneity must be finite and at least 0", heterogeneity)
    _require(n_clients > 1 or heterogeneity == 0, "heterogeneity must be 0 for a single client", heterogeneity)
    rng = np.random.default_rng(seed)
    vectors = np.linalg.qr(rng.standard_normal((n_clients, dimension, dimension)))[0]
    inner = rng.uniform(mu, L, (n_clients, dimension))
    eigenvalues = np.concatenate([np.full((n_clients, 1), mu), inner[:, 2:], np.full((n_clients, 1), L)], axis=1)
    A = (vectors * eigenvalues[:, None, -dimension:]) @ vectors.mT
    A = 0.5 * (A + A.mT)
    theta = rng.standard_normal(dimension)
    theta = theta / np.linalg.norm(theta)
    delta = rng.standard_normal((n_clients, dimension))
    delta = delta - delta.mean(axis=0)
    if heterogeneity > 0:
        delta = delta * (heterogeneity * math.sqrt(n_clients) / np.linalg.norm(delta))
    else:
        delta = np.zeros_like(delta)
    b = A @ theta - delta
    return Quadratic(A=A, b=b, c=1.0 + 0.5 * (b - delta) @ theta)


def random_linear_model(*, seed: int, loss: Loss, n_clients: int, rows: int, features: int, mu: float) -> LinearModel:
    """Build a linear model with an intercept on rows that clients of random sizes hold.

    Features are Gaussian around a mean of each client's own, labels follow a random linear model with noise, in the
    form that the loss takes. Every client has at least one of the ``rows``; their shares are cut at random.

    Raises
    ------
    ValueError
        If an argument is out of range; there are at least as many rows as clients.

    Examples
    --------
    >>> from dualopt.losses import Hinge
    >>> f = random_linear_model(seed=0, loss=Hinge(), n_clients=3, rows=30, features=2, mu=0.1)
    >>> f.sizes, f.shape
    ((19, 5, 6), (3,))
    """
    _require(n_clients >= 1, "n_clients must be at least 1", n_clients)
    _require(rows >= n_clients, f"rows must be at least n_clients = {n_clients}", rows)
    _require(features >= 1, "features must be at least 1", features)
    rng = np.random.default_rng(seed)
    cuts = np.sort(1 + rng.choice(rows - 1, size=n_clients - 1, replace=False)) if n_clients > 1 else []
    clients = [part.tolist() for part in np.split(np.arange(rows), cuts)]
    owner = np.repeat(np.arange(n_clients), [len(part) for part in clients])
    X = rng.standard_normal((rows, features)) + rng.standard_normal((n_clients, features))[owner]
    scores = X @ rng.standard_normal((features, loss.outputs)) + rng.standard_normal((rows, loss.outputs))
    if loss.labels == "class":
        y = np.argmax(scores, axis=1)
    else:
        y = np.where(scores[:, 0] > 0, 1.0, -1.0) if loss.labels == "binary" else scores[:, 0]
    return linear_model(X, y, loss=loss, mu=mu, clients=clients)


def quadratics(
    *,
    n_clients: int | st.SearchStrategy[int] = SIZES,
    dimension: int | st.SearchStrategy[int] = SIZES,
    mu: float | st.SearchStrategy[float] = 1.0,
    L: float | st.SearchStrategy[float] = LARGE,
    heterogeneity: float | st.SearchStrategy[float] = LEVELS,
) -> st.SearchStrategy[Quadratic]:
    """Draw quadratics from :func:`random_quadratic`; every argument is a number or a strategy.

    The defaults draw condition numbers from 1 to 1000 for ``mu = 1``: give ``L`` along with another ``mu``.

    Examples
    --------
    >>> from hypothesis import find
    >>> f = find(quadratics(n_clients=3, mu=2.0, L=8.0), lambda f: True)
    >>> f.n_clients, f.mu.round(9).tolist(), f.L.round(9).tolist()
    (3, [2.0, 2.0, 2.0], [8.0, 8.0, 8.0])
    """
    given = {"n_clients": n_clients, "dimension": dimension, "mu": mu, "L": L, "heterogeneity": heterogeneity}
    return st.builds(random_quadratic, seed=SEEDS, **{name: _strategy(value) for name, value in given.items()})


def linear_models(
    *,
    loss: Loss | st.SearchStrategy[Loss] | None = None,
    n_clients: int | st.SearchStrategy[int] = SIZES,
    rows: int | st.SearchStrategy[int] = ROWS,
    features: int | st.SearchStrategy[int] = SIZES,
    mu: float | st.SearchStrategy[float] = SMALL,
) -> st.SearchStrategy[LinearModel]:
    """Draw linear models from :func:`random_linear_model`; ``loss`` is any of :func:`losses` when not given.

    Examples
    --------
    >>> from hypothesis import find
    >>> f = find(linear_models(loss=losses(smooth=False), n_clients=2, mu=0.1), lambda f: True)
    >>> f.n_clients, f.mu.tolist(), f.L.tolist()
    (2, [0.1, 0.1], [inf, inf])
    """
    given = {"n_clients": n_clients, "rows": rows, "features": features, "mu": mu}
    strategies = {name: _strategy(value) for name, value in given.items()}
    loss = losses() if loss is None else loss
    return st.builds(random_linear_model, seed=SEEDS, loss=_strategy(loss), **strategies)


def losses(*, smooth: bool | None = None) -> st.SearchStrategy[Loss]:
    """Draw one of the losses of the package: all of them, or those that are smooth, or those that are not.

    Examples
    --------
    >>> from hypothesis import find
    >>> find(losses(smooth=False), lambda loss: loss.labels == "binary")
    Hinge()
    """
    kinds: list[Any] = list(discover(dualopt.losses).values())
    every = [kind(**kind.example) for kind in kinds]
    return st.sampled_from([x for x in every if smooth is None or math.isfinite(x.curvature) == smooth])


def federated_problems(*, smooth: bool | None = None) -> st.SearchStrategy[Quadratic | LinearModel]:
    """Draw quadratics and linear models, all strongly convex: smooth ones, nonsmooth ones, or both.

    Examples
    --------
    >>> from hypothesis import find
    >>> type(find(federated_problems(smooth=False), lambda f: True)).__name__
    'LinearModel'
    """
    models = linear_models(loss=losses(smooth=smooth))
    return models if smooth is False else st.one_of(quadratics(), models)


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
    every: Any = [bound(int(k)) for k in n] if callable(bound) else np.atleast_1d(np.asarray(bound))[n[0] :]
    bounds = np.asarray(every, dtype=float)
    _require(bounds.shape == values.shape, f"bound must have {n[-1] + 1} entries, like the errors", len(every) + n[0])
    _require(not np.isnan(bounds).any(), "bound must be a number for every n", "NaN")
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
    _require(0 < factor < 1, "factor must lie in (0, 1)", factor)
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
    _require(0 < order < math.inf, "order must be positive and finite", order)
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
    _require(n[-1] >= DECADE * n[0], "errors must span a decade of n above rounding", f"n = {n[0]} to {n[-1]}")
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
    _require(0 < confidence < 1, "confidence must lie in (0, 1)", confidence)
    u, logarithms = n / n[-1], np.log(values)
    rows = np.column_stack([np.ones(n.size), *(term(u) for term in terms), logarithms])
    means = np.stack([batch.mean(axis=0) for batch in np.array_split(rows, BATCHES)])
    X, y = means[:, :-1], means[:, -1]
    inverse = np.linalg.pinv(X)
    freedom = BATCHES - X.shape[1]
    error = np.linalg.norm(y - X @ (inverse @ y)) / math.sqrt(freedom) * np.linalg.norm(inverse[1])
    # Errors and logarithms are rounded: without this, a sequence that is exactly 0.9^n could miss 0.9.
    noise = 4 * np.finfo(float).eps * np.max(1 + np.abs(logarithms)) * np.sum(np.abs(inverse[1]))
    return float(inverse[1] @ y), float(_student_quantile((1 + confidence) / 2, freedom) * error + noise)


def _student_quantile(probability: float, freedom: int) -> float:
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
    _require(values.ndim == 1 and values.size > 0, "errors must be one number for each round", f"shape {values.shape}")
    # What is measured on snapshots begins with the first round.
    first = int(isinstance(errors, Trace) and values.size > 1 and math.isnan(values[0]))
    return np.arange(first, values.size), values[first:]


def _usable(errors: Errors, column: str, start: int | None, rounding: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the rounds, from the first one, that a rate is estimated from, and their errors."""
    n, values = _series(errors, column)
    bad = np.flatnonzero(~np.isfinite(values))
    if bad.size:
        raise ValueError(f"errors must be finite, not {values[bad[0]]} at n = {n[bad[0]]}.")
    _require(start is None or start >= 1, "start must be at least 1", start)
    tiny = np.flatnonzero(values <= max(_floor(values, rounding), 0.0))
    end = int(n[tiny[0]]) if tiny.size else int(n[-1]) + 1
    used = (n >= (max((end - 1) // DECADE, 1) if start is None else start)) & (n < end)
    _require(used.sum() >= BATCHES, f"errors must have at least {BATCHES} rounds above rounding", int(used.sum()))
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
    _require(0 <= rounding < 1, "rounding must lie in [0, 1)", rounding)
    return rounding * float(values[0]) if math.isfinite(values[0]) else -math.inf


def _two_sided(confidence: float) -> float:
    """Return the confidence of the two-sided interval whose ends are one-sided bounds of the given confidence."""
    _require(0.5 < confidence < 1, "confidence must lie in (0.5, 1)", confidence)
    return 2 * confidence - 1


def _strategy(value: T | st.SearchStrategy[T]) -> st.SearchStrategy[T]:
    return value if isinstance(value, st.SearchStrategy) else st.just(value)


def _require(condition: Any, sentence: str, value: Any) -> None:
    if not condition:
        raise ValueError(f"{sentence}, not {value}.")
