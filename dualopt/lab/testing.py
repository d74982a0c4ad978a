"""Random problems for property tests with Hypothesis, with the assertions of :mod:`dualopt.lab.rates` beside them.

Needs the extra ``testing``. Strategies draw sizes and a seed, and pass them to a builder (:func:`random_quadratic`,
:func:`random_linear_model`): a failing example is small, and is printed as a call that can be pasted.
"""

from __future__ import annotations

import math
from typing import Any, TypeVar

import numpy as np

try:
    from hypothesis import strategies as st
except ModuleNotFoundError as error:
    raise ModuleNotFoundError('dualopt.lab.testing needs Hypothesis: pip install "dualopt[testing]".') from error

import dualopt.losses
from dualopt.arrays._checks import require
from dualopt.lab.rates import (
    Factor,
    Order,
    assert_envelope,
    assert_linear_rate,
    assert_sublinear_rate,
    estimate_factor,
    estimate_order,
)
from dualopt.losses import Loss
from dualopt.objectives import LinearModel, Quadratic, linear_model
from dualopt.spec.discover import discover

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

SEEDS = st.integers(0, 2**32 - 1)
SIZES = st.integers(2, 6)
ROWS = st.integers(10, 60)
LEVELS = st.floats(0, 10)
BOTH = st.booleans()
LARGE = st.floats(0, 3).map(lambda power: 10.0**power)  # 1 to 1000, by magnitude
SMALL = st.floats(-3, 0).map(lambda power: 10.0**power)


def random_quadratic(
    *, seed: int, n_clients: int, dimension: int, mu: float, L: float, heterogeneity: float, unequal: bool = False
) -> Quadratic:
    r"""Build quadratics with prescribed curvature and heterogeneity, and an optimum of norm 1 and value 1.

    Every :math:`A_j` has random eigenvectors and eigenvalues in ``[mu, L]``. Both ends are attained, by every client
    or, if ``unequal``, ``mu`` by the first and ``L`` by the last alone: on clients that are alike a method or a bound
    that takes the greatest :math:`\mu_j` for the least, or for the mean, passes. Then the first client may be flat or
    concave, too: for :math:`\mu \le 0` the others are so convex that :math:`\sum_j \mu_j > 0`. For a random
    :math:`|\theta^*| = 1` and random :math:`\delta_j` with :math:`\sum_j \delta_j = 0` and
    :math:`\frac1N \sum_j |\delta_j|^2 = \mathrm{heterogeneity}^2`,

    .. math:: f_j(\theta) = 1 + \langle \delta_j, \theta - \theta^* \rangle
              + \tfrac12 (\theta - \theta^*)^\top A_j (\theta - \theta^*),

    so that :math:`\nabla f_j(\theta^*) = \delta_j` and :math:`E^* = 1`. All of this up to rounding.

    Raises
    ------
    ValueError
        If an argument is out of range; ``mu < L`` needs two dimensions, heterogeneity two clients, and ``mu`` may be
        negative, above ``-L/4``, only for two unequal clients or more.

    Examples
    --------
    >>> f = random_quadratic(seed=0, n_clients=3, dimension=4, mu=1.0, L=50.0, heterogeneity=2.0)
    >>> theta = f.minimiser()
    >>> round(float(np.sqrt(np.mean(np.sum(f.gradient(theta) ** 2, axis=-1)))), 9)
    2.0
    >>> round(float(np.mean(f.value(theta))), 9)
    1.0
    >>> f = random_quadratic(seed=0, n_clients=3, dimension=4, mu=-1.0, L=50.0, heterogeneity=2.0, unequal=True)
    >>> f.mu.round(1).tolist(), f.L.round(1).tolist()
    ([-1.0, 1.5, 1.2], [30.7, 19.4, 50.0])
    """
    require(n_clients >= 1, "n_clients must be at least 1", n_clients)
    if unequal and n_clients > 1:
        require(-L / 4.0 < mu < math.inf, f"mu must be finite and above -L/4 = {-L / 4.0}", mu)
    else:
        require(0 <= mu < math.inf, "mu must be finite and at least 0", mu)
    require(max(mu, 1e-300) <= L < math.inf, f"L must be positive, finite and at least mu = {mu}", L)
    least = 1 if mu == L else 2
    require(dimension >= least, f"dimension must be at least {least} for mu = {mu} and L = {L}", dimension)
    require(0 <= heterogeneity < math.inf, "heterogeneity must be finite and at least 0", heterogeneity)
    require(n_clients > 1 or heterogeneity == 0, "heterogeneity must be 0 for a single client", heterogeneity)
    rng = np.random.default_rng(seed)
    vectors = np.linalg.qr(rng.standard_normal((n_clients, dimension, dimension)))[0]
    lowest, highest = np.full((n_clients, 1), mu), np.full((n_clients, 1), L)
    inner = rng.uniform(mu, L, (n_clients, dimension))
    if unequal and n_clients > 1:
        lowest, highest = _unequal_ends(rng, n_clients, mu, L)
        inner = lowest + (highest - lowest) * rng.uniform(0.0, 1.0, (n_clients, dimension))
    eigenvalues = np.concatenate([lowest, inner[:, 2:], highest], axis=1)
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


def _unequal_ends(rng: np.random.Generator, n_clients: int, mu: float, L: float) -> tuple[np.ndarray, np.ndarray]:
    """Draw least and greatest eigenvalues, each (N, 1): ``mu`` of the first client and ``L`` of the last alone."""
    # the others are convex enough for a positive sum: each has at least twice what is missing, shared among them
    floor = max(mu, 1e-4 * L, -2.0 * mu / (n_clients - 1))
    lowest = floor * (L / floor) ** rng.uniform(0.0, 0.5, (n_clients, 1))
    lowest[0] = mu
    highest = lowest + (L - lowest) * rng.uniform(0.1, 1.0, (n_clients, 1))
    highest[-1] = L
    return lowest, highest


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
    require(n_clients >= 1, "n_clients must be at least 1", n_clients)
    require(rows >= n_clients, f"rows must be at least n_clients = {n_clients}", rows)
    require(features >= 1, "features must be at least 1", features)
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
        y = np.abs(y) if hasattr(loss, "label_domain") else y
    return linear_model(X, y, loss=loss, mu=mu, clients=clients)


def quadratics(
    *,
    n_clients: int | st.SearchStrategy[int] = SIZES,
    dimension: int | st.SearchStrategy[int] = SIZES,
    mu: float | st.SearchStrategy[float] = 1.0,
    L: float | st.SearchStrategy[float] = LARGE,
    heterogeneity: float | st.SearchStrategy[float] = LEVELS,
    unequal: bool | st.SearchStrategy[bool] = BOTH,
) -> st.SearchStrategy[Quadratic]:
    """Draw quadratics from :func:`random_quadratic`; every argument is a number or a strategy.

    The defaults draw condition numbers from 1 to 1000 for ``mu = 1``: give ``L`` along with another ``mu``. Clients are
    alike in half of the draws, unequal in the others; a negative ``mu`` needs ``unequal=True``.

    Examples
    --------
    >>> from hypothesis import find
    >>> f = find(quadratics(n_clients=3, mu=2.0, L=8.0), lambda f: True)
    >>> f.n_clients, f.mu.round(9).tolist(), f.L.round(9).tolist()
    (3, [2.0, 2.0, 2.0], [8.0, 8.0, 8.0])
    >>> concave = quadratics(n_clients=3, mu=-1.0, L=8.0, unequal=True)
    >>> f = find(concave, lambda f: True)
    >>> round(float(f.mu.min()), 6), bool(f.mu.sum() > 0), round(float(f.L.max()), 6)
    (-1.0, True, 8.0)
    """
    given = {"n_clients": n_clients, "dimension": dimension, "mu": mu, "L": L, "heterogeneity": heterogeneity}
    strategies = {name: _strategy(value) for name, value in given.items()}
    return st.builds(random_quadratic, seed=SEEDS, unequal=_strategy(unequal), **strategies)


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


def _strategy(value: T | st.SearchStrategy[T]) -> st.SearchStrategy[T]:
    return value if isinstance(value, st.SearchStrategy) else st.just(value)
