"""The theorems of the methods that send the mean gradient around: gradient descent, DANE in two forms, GIANT."""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

from dualopt.arrays._checks import NonNegative, require
from dualopt.arrays.xp import Array, array_namespace, epsilon
from dualopt.methods._anderson import regularisation
from dualopt.methods._estimate import growth
from dualopt.methods._line_search import inner
from dualopt.methods._parameters import Checked, Suggested, smallest, within
from dualopt.methods._theorem import SMOOTH_STRONG, Known, Need, Theorem, at_most, squares
from dualopt.methods.compressors import Rounding
from dualopt.objectives import Objective

__all__ = [
    "CURVATURE",
    "OF_ACC_S_DANE",
    "OF_ADAPTIVE_ACC_S_DANE",
    "OF_ANDERSON_DANE",
    "OF_GIANT",
    "OF_GRADIENT_DESCENT",
    "ProvedConvexity",
    "fewest_digits",
    "largest_step_with_memory",
    "limit_factor",
    "spectrum",
]


def _energy(method: Any, known: Known, theta: Array, state: Any, n: int) -> float:
    """Return E - E* of the model."""
    f = known.objective
    return known.mean(f.value(state.server.theta)) - known.mean(f.value(theta))


# Gradient descent, on E.


def _mean_bounds(known: Known) -> tuple[float, float]:
    return known.mean(known.objective.mu), known.mean(known.objective.L)


def _step_factor(method: Any, known: Known) -> float:
    mu, L = _mean_bounds(known)
    return max(abs(1.0 - method.step * mu), abs(1.0 - method.step * L))


def _away(method: Any, known: Known, theta: Array, state: Any, n: int) -> float:
    off = state.server.theta - theta
    return float(array_namespace(off).sum(off * off)) ** 0.5


# The same with uploads that are compressed differences to a memory (theory/frontier/contractive.py): C contracts by q.


class Memory(NamedTuple):
    """What its theorem knows: E is mu-strongly convex and L-smooth, M^2 the mean of the squares of the L_j."""

    mu: float
    L: float
    M: float
    q: float

    @classmethod
    def of(cls, f: Objective, compressor: Any) -> Memory:
        """Return the constants."""
        mu, L, squares = (float(f.mean(x)) for x in (f.mu, f.L, f.L * f.L))
        return cls(mu, L, math.sqrt(squares), Known.of(f, None, compressor).q)

    @property
    def step(self) -> float:
        """The largest step: the smaller root of (1 - sL)(1 - q)(1 - q - s mu) = (q s M)^2."""
        mu, L, M, q = self
        a, b, c = (1.0 - q) * L * mu - (q * M) ** 2, (1.0 - q) * (mu + (1.0 - q) * L), (1.0 - q) ** 2
        return 2.0 * c / (b + math.sqrt(b * b - 4.0 * a * c)) if c > 0 else 0.0

    def weight(self, s: float) -> float:
        """Return that of the mean of the squared errors."""
        return s / (2.0 * (1.0 - self.q - s * self.mu))


def largest_step_with_memory(f: Objective, compressor: Any) -> float:
    r"""Return the largest step of gradient descent that is proved with this compressor.

    Examples
    --------
    >>> from dualopt import Quadratic
    >>> from dualopt.methods.compressors import Rounding
    >>> import numpy as np
    >>> f = Quadratic(A=np.stack([np.diag([1.0, 4.0])] * 2), b=np.ones((2, 2)))
    >>> [round(largest_step_with_memory(f, Rounding(digits=b)), 3) for b in (2, 4, 8)]
    [0.158, 0.248, 0.25]
    """
    return Memory.of(f, compressor).step


def fewest_digits(method: Any, f: Objective) -> int | None:
    """Return the least b for which rounding to b bits is proved to keep the rate of this step; None if none is."""
    able = (b for b in range(2, 33) if within(method.step, largest_step_with_memory(f, Rounding(digits=b))))
    return next(able, None)


def _with_memory(method: Any, known: Known) -> str:
    words = "E - E* plus the mean square of what has not arrived falls by a factor of {factor} per round"
    if not isinstance(known.compressor, Rounding):
        return words
    enough = fewest_digits(method, known.objective)
    return f"{words}; {enough} bits are enough for this step, and {known.compressor.digits} are used"


def _not_arrived(method: Any, known: Known, theta: Array, state: Any, n: int) -> float:
    """Return the potential at the model before the round, infinite before the first upload."""
    if not state.memory:
        return math.inf
    f, (memory,), s = known.objective, state.memory, method.step
    before = state.server.theta + s * f.mean(memory)
    value, gradient = f.value_and_gradient(before)
    energy = known.mean(value) - known.mean(f.value(theta))
    return energy + Memory.of(f, known.compressor).weight(s) * squares(gradient - memory, known.weights)


OF_GRADIENT_DESCENT = (
    Theorem(
        source="",
        rate=_with_memory,
        needs=(
            Need("a strongly convex mean", lambda m, k: _mean_bounds(k)[0] > 0),
            Need("a compressor that says how it contracts", lambda m, k: k.q < 1.0),
            at_most("step", "s(q)", lambda m, k: largest_step_with_memory(k.objective, k.compressor)),
        ),
        compressed=True,
        factor=lambda m, k: 1.0 - m.step * _mean_bounds(k)[0],
        potential=_not_arrived,
    ),
    Theorem(
        source="",
        rate="|theta - theta*| falls by a factor of {factor} per round",
        needs=(
            Need("a strongly convex mean", lambda m, k: _mean_bounds(k)[0] > 0),
            Need("a step < 2/L", lambda m, k: m.step * _mean_bounds(k)[1] < 2.0, lambda m, k: 2.0 / _mean_bounds(k)[1]),
        ),
        factor=_step_factor,
        potential=_away,
        power=1,
    ),
)

# DANE with mixtures, and GIANT: the mean of the inverse Hessians as a preconditioner.


def spectrum(mu: float, L: float, weight: float = 0.0) -> tuple[float, float]:
    r"""Return bounds of the eigenvalues of :math:`\frac1N\sum_j (H_j + w)^{-1}\,\frac1N\sum_j H_j`.

    They are :math:`\frac\mu{\mu + w}` and :math:`\frac{(L + \mu + 2w)^2}{4(L + w)(\mu + w)}\frac L{L + w}`.

    Examples
    --------
    >>> spectrum(1.0, 4.0)
    (1.0, 1.5625)
    """
    kantorovich = (L + mu + 2.0 * weight) ** 2 / (4.0 * (L + weight) * (mu + weight))
    return mu / (mu + weight), kantorovich * L / (L + weight)


def _mixed(method: Any, known: Known) -> float:
    least, most = spectrum(known.mu, known.L, method.weight)
    plain = max(abs(1.0 - method.eta * least), abs(1.0 - method.eta * most))
    return math.sqrt(1.0 + regularisation(epsilon(known.objective.mu))) * plain


def _residual(method: Any, known: Known, theta: Array, state: Any, n: int) -> float:
    r"""Return the norm of the newest residual in :math:`K^{-1}`, infinite before the first solution at a point."""
    server = state.server
    points = sum(map(math.isfinite, server.values))  # the start is one of them, and has no gradient yet
    if points < 2 or (points == 2 and server.solving):
        return math.inf
    return math.sqrt(max(0.0, -float(inner(server.residuals[-1], server.gradients[-1]))))


OF_ANDERSON_DANE = (
    Theorem(
        source="",
        rate="the residual falls by a factor of {factor} with every accepted point on quadratics",
        needs=(
            SMOOTH_STRONG,
            Need(
                "eta < 2/k",
                lambda m, k: m.eta * spectrum(k.mu, k.L, m.weight)[1] < 2.0,
                lambda m, k: 2.0 / spectrum(k.mu, k.L, m.weight)[1],
            ),
        ),
        factor=_mixed,
        rounds=2,
        potential=_residual,
        power=1,
    ),
)


def _steepest(method: Any, known: Known) -> float:
    _, k = spectrum(known.mu, known.L)
    return 1.0 - (1.0 - method.relaxation**2) * 4.0 * k / (k + 1.0) ** 2


def _accepted(method: Any, known: Known, theta: Array, state: Any, n: int) -> float:
    """Return E - E*, infinite before the start has been evaluated."""
    return _energy(method, known, theta, state, n) if math.isfinite(float(state.server.value)) else math.inf


OF_GIANT = (
    Theorem(source="", rate="E falls in every iteration, by a factor", needs=(SMOOTH_STRONG,)),
    Theorem(
        source="",
        rate="E - E* falls by a factor of {factor} per iteration of three rounds on quadratics with exact directions",
        needs=(SMOOTH_STRONG, Need("a step of at least 1", lambda m, k: max(m.steps) >= 1)),
        about=lambda m, k: m.weight == 0,
        factor=_steepest,
        rounds=3,
        potential=_accepted,
    ),
)

# DANE, accelerated.

CURVATURE = at_most("mu", "min mu_j", lambda m, k: k.mu)


def _require_proved(method: Any, f: Objective, name: str) -> None:
    words = f"{name} must not exceed that of any client, {smallest(f.mu):g}"
    require(CURVATURE.holds(method, Known.of(f)), words, getattr(method, name))


ProvedConvexity = Annotated[
    NonNegative, Suggested(lambda method, f, name: max(0.0, smallest(f.mu))), Checked(_require_proved)
]
CONVEX = (Need("convex clients", lambda m, k: k.mu >= 0), CURVATURE)


def limit_factor(weight: float, mu: float) -> float:
    r"""Return :math:`1 - \alpha` in the limit, for ``mu > 0``.

    Examples
    --------
    >>> limit_factor(2.0, 1.0)
    0.5
    """
    return 1.0 - growth(mu, weight, mu)[0]


def _adaptive(method: Any, known: Known) -> str:
    where = "where no Hessian is below their mean by more than delta"
    steps = f"after n accepted iterations of three rounds, w = max({method.first:g}, 2 delta), {where}"
    if method.mu == 0:
        return f"E - E* <= 2 w |theta0 - theta*|^2/(n + 1)^2 {steps}"
    return f"E - E* = O(q^n), q = 1 - 2/(1 + sqrt(1 + 4 w/{method.mu:g})), {steps}"


def _given(method: Any, known: Known) -> str:
    """Return on what the promise of a fixed weight depends; nothing if the weight is enough for all such clients."""
    return (
        ""
        if within(known.L - known.mu, method.weight)
        else "where no Hessian is below their mean by more than the weight, "
    )


def _estimate(method: Any, known: Known, theta: Array, state: Any, n: int) -> float:
    """Return P, infinite before the first solutions."""
    off = state.server.v - theta
    return _energy(method, known, theta, state, n) + 0.5 * state.server.b * float(inner(off, off))


OF_ADAPTIVE_ACC_S_DANE = (Theorem(source="", rate=_adaptive, needs=CONVEX),)
OF_ACC_S_DANE = (
    Theorem(
        source="",
        rate=lambda m, k: (
            f"{_given(m, k)}E - E* <= 2 weight |theta0 - theta*|^2/(n + 1)^2 after n iterations of two rounds"
        ),
        needs=CONVEX,
        about=lambda m, k: m.mu == 0,
    ),
    Theorem(
        source="",
        rate=lambda m, k: f"{_given(m, k)}E - E* = O(q^n), a factor of {{factor}} per two rounds",
        needs=CONVEX,
        about=lambda m, k: m.mu > 0,
        factor=lambda m, k: limit_factor(m.weight, m.mu),
        rounds=2,
        potential=_estimate,
    ),
)
