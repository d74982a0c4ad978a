"""Anderson acceleration with a safeguard, as a server sees it: inner products of residuals, and nothing else."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, NamedTuple

from dualopt.arrays._checks import require_kept
from dualopt.arrays.xp import Array, array_namespace, chosen, device, epsilon, is_traced, to_numpy, zeros_like
from dualopt.methods._base import Algorithm

__all__ = [
    "REFUSED",
    "History",
    "Mixing",
    "appended",
    "empty_history",
    "from_newest",
    "mixing_weights",
    "mixture",
    "regularisation",
]

REFUSED = 2.0  # times the least residual since the last plain step: a mixed point beyond is not used


class History(NamedTuple):
    """What is known of the residuals of the last points."""

    gram: Array  # (m + 1, m + 1)  <r^i, r^k>, the newest last
    known: int  # how many of the points may be mixed
    age: int  # mixed points since the last plain step
    least: float  # the least |r|^2 since then
    best: int  # how many points ago that was


@dataclass(frozen=True, kw_only=True)
class Mixing(Algorithm):
    """What methods with Anderson acceleration of memory ``m`` have in common: the choice of the weights.

    A point whose residual is more than twice the least one since the last plain step is refused. Then, and after ``m``
    mixed points, the next step is plain and starts from the point of that least residual.
    """

    memory: Annotated[int, require_kept] = 10

    def _judged(self, history: History, products: Array) -> tuple[History, tuple[float, ...], bool]:
        """Judge the newest point by its products with the last residuals.

        Return the history with it, the weights of the images that make the next point, and whether it was refused.
        """
        rounding, products = epsilon(products), array_namespace(products).astype(products, history.gram.dtype)
        gram, known = appended(history.gram, products), min(history.known + 1, self.memory + 1)
        size, age = float(products[-1]), history.age
        least, best = (size, 0) if age == 0 or size <= history.least else (history.least, history.best + 1)
        refused = not size <= REFUSED**2 * least  # NaN is refused too
        known = 0 if refused or size <= 0 else known  # with the square of a residual that is rounding nothing is mixed
        plain = not known or age == self.memory
        weights = self._plain(best) if plain else self._mixed(gram, known, rounding)
        return History(gram, known, 0 if plain else age + 1, least, best), weights, refused

    def _plain(self, best: int) -> tuple[float, ...]:
        """Return the weights that choose the image of the point so many places ago."""
        return tuple(float(place == self.memory - best) for place in range(self.memory + 1))

    def _mixed(self, gram: Array, known: int, rounding: float) -> tuple[float, ...]:
        """Return the weights that mix the newest points, whose products have this rounding."""
        found = tuple(map(float, mixing_weights(to_numpy(gram)[-known:, -known:], rounding)))
        return (0.0,) * (self.memory + 1 - known) + found if math.isfinite(sum(found)) else self._plain(0)


def empty_history(theta: Array, memory: int) -> History:
    """Return the history before the first point, with arrays like ``theta``."""
    gram = array_namespace(theta).zeros((memory + 1, memory + 1), dtype=theta.dtype, device=device(theta))
    return History(gram, 0, 0, 0.0, 0)


def from_newest(history: History) -> History:
    """Return the history where the next step is plain and starts from the newest point, not from that of ``best``."""
    return history._replace(age=0, least=float(history.gram[-1, -1]), best=0)


def mixture(weights: Sequence[float], parts: Sequence[Array]) -> Array:
    """Return the sum of the parts with their weights; parts of weight zero do not matter, whatever they are.

    Examples
    --------
    >>> import numpy as np
    >>> mixture((0.5, 0.0), (np.ones(2), np.full(2, np.nan))).tolist(), mixture((0.0,), (np.ones(2),)).tolist()
    ([0.5, 0.5], [0.0, 0.0])
    """
    if is_traced(weights[0]):
        none, pairs = zeros_like(parts[0]), zip(weights, parts, strict=True)
        return sum((chosen(weight == 0, none, weight * part) for weight, part in pairs), start=none)
    terms = [part if weight == 1 else weight * part for weight, part in zip(weights, parts, strict=True) if weight]
    return sum(terms[1:], start=terms[0]) if terms else zeros_like(parts[0])


def appended(gram: Array, products: Array) -> Array:
    """Return the Gram matrix without its first row and column, and with the products as its last ones.

    Examples
    --------
    >>> import numpy as np
    >>> appended(np.array([[1.0, 2.0], [2.0, 5.0]]), np.array([3.0, 7.0])).tolist()
    [[5.0, 3.0], [3.0, 7.0]]
    """
    xp = array_namespace(gram)
    kept = xp.concat([gram[1:, 1:], products[:-1, None]], axis=1)
    return xp.concat([kept, products[None, :]], axis=0)


def regularisation(rounding: float) -> float:
    r"""Return :math:`\lambda = \epsilon^{2/3}`, 4e-11 for products in double precision, 2e-5 in single precision.

    Examples
    --------
    >>> f"{regularisation(2.0**-52):.1e}, {regularisation(2.0**-23):.1e}"
    '3.7e-11, 2.4e-05'
    """
    return rounding ** (2.0 / 3.0)


def mixing_weights(gram: Array, rounding: float | None = None) -> Array:
    r"""Return the weights ``a`` with sum 1 that minimise :math:`a^T G a + \lambda \sum_i a_i^2 G_{ii}`.

    They are proportional to :math:`(G + \lambda\,\mathrm{diag}\,G)^{-1} 1`, here with the diagonal scaled to one,
    because residuals fall by orders of magnitude within the memory. ``a = (0, ..., 0, 1)`` is admitted, so that the
    mixed residual is at most :math:`\sqrt{1 + \lambda}` times the newest one. ``rounding`` is that of the products, by
    which :math:`\lambda` is chosen; that of the type of G when not given.

    Examples
    --------
    >>> import numpy as np
    >>> mixing_weights(np.array([[4.0, 0.0], [0.0, 1.0]])).round(6).tolist()
    [0.2, 0.8]
    """
    xp = array_namespace(gram)
    squares = xp.linalg.diagonal(gram)
    scale = xp.sqrt(xp.maximum(squares, xp.zeros_like(squares)))
    scale = xp.maximum(scale, epsilon(gram) * xp.max(scale))
    cosines = gram / (scale[:, None] * scale[None, :])
    identity = xp.eye(gram.shape[0], dtype=gram.dtype, device=device(gram))
    ridge = regularisation(epsilon(gram) if rounding is None else rounding)
    solved = xp.linalg.solve(cosines + ridge * identity, (scale[-1] / scale)[:, None])[:, 0]
    weights = solved / scale
    return weights / xp.sum(weights)
