"""Random problems for property tests with Hypothesis, with the assertions of :mod:`dualopt.lab.rates` beside them.

Needs the extra ``testing``. Strategies draw sizes and a seed, and pass them to a builder (of
:mod:`dualopt.lab.random_problems`): a failing example is small, and is printed as a call that can be pasted.
"""

from __future__ import annotations

import math
from typing import Any, TypeVar

try:
    from hypothesis import strategies as st
except ModuleNotFoundError as error:
    raise ModuleNotFoundError('dualopt.lab.testing needs Hypothesis: pip install "dualopt[testing]".') from error

import dualopt.losses
from dualopt.lab.random_problems import random_linear_model, random_quadratic
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
from dualopt.objectives import LinearModel, Quadratic
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
