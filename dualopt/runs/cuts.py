r"""Lower bounds of ``E`` made from evaluations, and certificates where an intercept is free.

With models :math:`x = (w, b)` and ``m`` a strong convexity constant of ``E`` in ``w``, every evaluation of the clients
gives a function below ``E``, a *cut*,

.. math:: E(x) \ge c + \langle \xi, x\rangle + \tfrac m2 |w|^2 - e |x| \quad \text{for all } x,

where ``e`` is what rounding may do. Convex combinations of cuts are cuts. Where nothing holds ``b`` (``E`` need not
even have a minimiser), a single one bounds ``E`` from below only if its slope in ``b`` is zero, and no computed slope
is known to be. So several are combined:

1. The clients are asked for the gradients at models that differ in ``b`` alone, by small steps in directions that
   positively span the space of intercepts. If the slopes :math:`\beta_k` in ``b`` of these cuts have zero inside their
   convex hull, at a distance of :math:`\rho` from its boundary, then :math:`\max_k \langle\beta_k, d\rangle \ge
   \rho|d|`, so that every ``x`` with :math:`E(x) \le E(\theta)` has an intercept at most

   .. math:: R = \frac{E(\theta) - \min_k a_k}{\rho - \max_k e_k}

   away from that of :math:`\theta`, with :math:`a_k` the least of cut ``k`` over ``w`` there.
2. The cut of :math:`\theta`, or of the local solutions, is combined with these, with as much weight as a slope of zero
   in ``b`` allows. What rounding leaves of that slope counts :math:`R` times.

Where ``m = 0``, and ``h`` grows in all directions, cuts are made smaller first: if :math:`E \ge 0`, a cut times any
:math:`s \in [0, 1]` is a cut, and with ``s`` small enough its sum with ``h`` is bounded from below (for the L1 norm the
scaling of dual points that is usual for the lasso).

Where :math:`E(w, b) = E(w, b + t\mathbf 1)` for all numbers ``t``, directions are those that sum to zero: every model
has the same energy as one whose intercepts have the sum of those of :math:`\theta`.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from dualopt.arrays.xp import Array, array_namespace, asarray_like, to_numpy
from dualopt.objectives import Objective
from dualopt.objectives._rounding import client_norm, gamma, tiny
from dualopt.regularisers import Regulariser

__all__ = [
    "Cut",
    "Sums",
    "cut_of_duals",
    "cut_of_gradient",
    "error_of_means",
    "is_bounded",
    "least",
    "lower_bound",
    "norm",
]

STEP = 16.0  # of the intercepts, in units of the slope: enough where the mean curvature in b is above 1/16
LARGER = 64.0  # times which the next step is, where zero is not in the hull
STEPS = 9
CLEAR = 100.0  # the least step, in units of the error of a slope
ROOM = 0.5  # of the distance to the boundary of the hull, for the rounding of singular values


class Sums(NamedTuple):
    """All that a certificate takes from the clients: sums over them, with their weights."""

    columns: Any  # (5,) in host memory: f_j, |f_j|, its error, that of the gradient, |grad f_j|; (9,) with those below
    gradient: Array  # shape; of grad f_j
    dual: Array | None  # shape; of xi_j: then also g_j*, |g_j*|, |xi_j| and its error
    total: float  # the sum of the weights


class Cut(NamedTuple):
    """A function below ``E``: ``constant + <slope, x> + m/2 |w|^2 - error |x|``."""

    constant: float
    slope: Array  # shape
    error: float


def cut_of_gradient(objective: Objective, at: Array, sums: Sums) -> Cut:
    """Return the cut of values and gradients at the model ``at``."""
    n, m = math.prod(objective.shape), max(objective.mean_mu, 0.0)
    gradient, held = sums.gradient / sums.total, objective.held(at)
    energy, sizes, value_error, slope_error, slopes, *_ = (sums.columns / sums.total).tolist()
    of_clients, lost = error_of_means(objective, at, sums)
    length, size, inside = norm(at), norm(gradient), norm(held)
    value_error += of_clients * sizes + lost
    slope_error += of_clients * slopes + lost
    product = float(array_namespace(at).sum(gradient * at))
    terms = abs(energy) + size * length + m * inside * inside
    constant = energy - product + 0.5 * m * inside * inside
    constant -= value_error + slope_error * length + gamma(n + 8, at) * terms + n * tiny(at) * (1.0 + m)
    error = slope_error + gamma(4, at) * (size + m * inside) + n * tiny(at)
    return Cut(constant, gradient - m * held, error)


def cut_of_duals(objective: Objective, at: Array, sums: Sums) -> Cut:
    """Return the cut of dual points: the mean of those of the clients; ``at`` says of what type arrays are."""
    assert sums.dual is not None
    of_clients, lost = error_of_means(objective, at, sums)
    conjugate, conjugates, duals, error = (sums.columns[5:] / sums.total).tolist()
    return Cut(-conjugate - of_clients * conjugates - lost, sums.dual / sums.total, of_clients * duals + error + lost)


def error_of_means(objective: Objective, like: Array, sums: Sums) -> tuple[float, float]:
    """Return the relative error of means over the clients, and what products with weights lose that underflow."""
    N, n = objective.n_clients, math.prod(objective.shape)
    if objective.unequal_weights is None:
        return gamma(N + 2, like), 0.0
    return gamma(2 * N + 4, like), N * n * tiny(like) / sums.total


def lower_bound(
    objective: Objective, at: Array, energy: float, cuts: Sequence[Cut], gradient_at: Callable[[Array], Cut]
) -> list[float]:
    """Return, for each cut, a lower bound of ``E + h`` that it gives beside others, over all models.

    Parameters
    ----------
    objective : Objective
        All clients, and the regulariser ``h``; with a free intercept other models are asked for.
    at : array, shape ``shape``
        The model.
    energy : float
        An upper bound of ``(E + h)(at)``.
    cuts : sequence of Cut
        The first is that of the gradient at the model.
    gradient_at : callable
        Asks the clients for the cut of another model.

    Returns
    -------
    list of float
        Minus infinity where no bound was found.
    """
    cuts = [_bounded(objective, cut) for cut in cuts]
    if not objective.free_intercept:
        return [_least_near(objective, at, cut, 0.0) for cut in cuts]
    slope = _slope(cuts[0])
    size = max(_length(slope), CLEAR * cuts[0].error)
    directions, step = _directions(objective), STEP * size
    for _ in range(STEPS):
        spanning = [_bounded(objective, gradient_at(_moved(at, step, v))) for v in directions]
        if (found := _Hull.of(objective, at, energy, spanning)) is not None:
            return [found.bound(cut) for cut in cuts]
        step *= LARGER
    return [-math.inf] * len(cuts)


class _Hull(NamedTuple):
    """Cuts whose slopes in ``b`` have zero inside their convex hull."""

    objective: Objective
    at: Array
    cuts: Sequence[Cut]
    slopes: Array  # (K, q), in host memory
    center: Array  # (K,): the weights for which the slope is zero
    reach: float  # intercepts of models that are as good differ by at most this

    @classmethod
    def of(cls, objective: Objective, at: Array, energy: float, cuts: Sequence[Cut]) -> _Hull | None:
        """Return the hull; None where zero is not clearly inside."""
        host = array_namespace(_slope(cuts[0]))
        slopes = host.stack([_slope(cut) for cut in cuts])
        if not host.all(host.isfinite(slopes)):
            return None
        center = _coordinates(slopes, 0.0 * slopes[0, :])
        center = center / host.sum(center)
        least_singular = float(host.linalg.svdvals(slopes)[len(cuts) - 2])
        inside = ROOM * float(host.min(center)) * least_singular / math.sqrt(len(cuts))
        inside -= _length(center @ slopes) + max(cut.error for cut in cuts)
        if not inside > 0:
            return None
        least_value = min(_least_near(objective, at, cut, 0.0) for cut in cuts)
        return cls(objective, at, cuts, slopes, center, 2.0 * max(energy - least_value, 0.0) / inside)

    def bound(self, cut: Cut) -> float:
        """Return the lower bound from a cut with as much weight as the others can balance."""
        own, host = _slope(cut), array_namespace(self.slopes)
        if not host.all(host.isfinite(own)):
            return -math.inf
        center, coordinates = self.center.tolist(), _coordinates(self.slopes, own).tolist()
        most = min([1.0, *(a / b for a, b in zip(center, coordinates, strict=True) if b > 0)])
        weights = [most, *(max(a - most * b, 0.0) for a, b in zip(center, coordinates, strict=True))]
        whole = sum(weights)
        combined = _combined([cut, *self.cuts], [weight / whole for weight in weights])
        return _least_near(self.objective, self.at, combined, self.reach)


def _coordinates(slopes: Array, point: Array) -> Array:
    """Return the numbers that sum to 1 with which the rows of ``slopes``, shape ``(K, q)``, make a point."""
    host = array_namespace(slopes)
    matrix = host.concat([slopes, host.ones_like(slopes[:, :1])], axis=1)
    return host.concat([point, host.ones_like(point[:1])]) @ host.linalg.pinv(matrix)


def is_bounded(objective: Objective) -> bool:
    """Tell whether cuts with ``h``, times a positive number, have a least value over ``w``."""
    if objective.mean_mu > 0 or not (objective.nonnegative and hasattr(objective.regulariser, "share")):
        return objective.mean_mu > 0
    return float(array_namespace(objective.proven_mu).min(objective.proven_mu)) >= 0


def _bounded(objective: Objective, cut: Cut) -> Cut:
    """Return a cut, times a number where nothing is strongly convex, that has a least value with ``h``."""
    if objective.mean_mu > 0:
        return cut
    share = objective.regulariser.share(cut.slope, cut.error)  # pyright: ignore[reportAttributeAccessIssue]
    constant = share * cut.constant - 2.0 * sys.float_info.epsilon * abs(cut.constant)
    lost = math.prod(cut.slope.shape) * tiny(cut.slope) + 2.0 * sys.float_info.epsilon * share * norm(cut.slope)
    return Cut(constant, share * cut.slope, share * cut.error + lost)


def _combined(cuts: Sequence[Cut], weights: Sequence[float]) -> Cut:
    """Return the convex combination of cuts; weights sum to 1 up to rounding."""
    n = len(cuts)
    slope: Any = sum(w * cut.slope for w, cut in zip(weights, cuts, strict=True))
    sizes = sum(w * norm(cut.slope) for w, cut in zip(weights, cuts, strict=True))
    constants = sum(w * abs(cut.constant) for w, cut in zip(weights, cuts, strict=True))
    unit = 2.0 * (n + 4) * sys.float_info.epsilon
    constant = sum(w * cut.constant for w, cut in zip(weights, cuts, strict=True)) - unit * constants
    error = sum(w * cut.error for w, cut in zip(weights, cuts, strict=True)) * (1.0 + unit) + unit * sizes
    return Cut(constant, slope, error)


def _least_near(objective: Objective, at: Array, cut: Cut, reach: float) -> float:
    """Return a lower bound of a cut, with ``h``, over the models whose intercepts are that close to those of ``at``."""
    value, room = 0.0, 0.0
    if objective.mean_mu > 0:
        value, room = least(objective.held(cut.slope), cut.error, objective.mean_mu, objective.regulariser)
    if objective.free_intercept:
        intercepts, slopes = _last(at), _slope(cut)
        size, unit = _length(intercepts), 4.0 * (slopes.shape[0] + 4) * sys.float_info.epsilon
        value += float(slopes @ intercepts)
        room += (unit * _length(slopes) + cut.error) * size
        room += (_length(slopes) * (1.0 + unit) + cut.error) * (1.0 + unit) * reach
    return cut.constant + value - room - 8.0 * sys.float_info.epsilon * (abs(cut.constant) + abs(value) + room)


def _slope(cut: Cut) -> Array:
    """Return the slopes of a cut in the intercepts, shape ``(q,)``, in host memory."""
    return _last(cut.slope)


def _last(x: Array) -> Array:
    """Return the entries at the intercepts, shape ``(q,)``, in host memory and double precision."""
    last = to_numpy(x[..., -1])
    host = array_namespace(last)
    return host.reshape(host.astype(last, host.float64), (-1,))


def _length(x: Array) -> float:
    return float(client_norm(x[None, :])[0])


def _directions(objective: Objective) -> list[list[float]]:
    """Return directions of intercepts that positively span them, ``q`` numbers each."""
    q = math.prod(objective.shape[:-1])
    lost, last = (1.0 / q, []) if objective.shift_invariant else (0.0, [[-1.0 / q] * q])
    return [[float(i == k) - lost for i in range(q)] for k in range(q)] + last


def _moved(at: Array, step: float, direction: Sequence[float]) -> Array:
    """Return the model with a step of its intercepts."""
    xp = array_namespace(at)
    last = xp.reshape(asarray_like([step * v for v in direction], at), at.shape[:-1])
    return xp.concat([at[..., :-1], (at[..., -1] + last)[..., None]], axis=-1)


def least(xi: Array, error: float, m: float, regulariser: Regulariser) -> tuple[float, float]:
    """Return the minimum of ``<xi, x> + m/2 |x|^2 + h(x)``, and how much less it may be, for ``xi`` up to ``error``."""
    center = -xi / m
    x = regulariser.prox(center, 1.0 / m)
    size, h = norm(center), regulariser.value(x)
    distance, length = (0.0, size) if x is center else (norm(x - center), norm(x))
    inside, outside = 0.5 * m * size * size, 0.5 * m * distance * distance
    n = math.prod(xi.shape)
    room = gamma(n + 16, xi) * (inside + outside + abs(h)) + n * tiny(xi) * (1.0 + m + regulariser.mu)
    return outside + h - inside, room + error * length + error * (error / (2.0 * m))


def norm(x: Array) -> float:
    """Return ``|x|`` of a model."""
    return float(client_norm(x[None, ...])[0])
