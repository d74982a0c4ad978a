r"""The theorems of FedSplit, FedDR and AndersonFedSplit: reflections that contract (Giselsson and Boyd 2017).

With :math:`\delta_j = \max\bigl(\frac{1 - s_j\mu}{1 + s_j\mu}, \frac{s_jL - 1}{s_jL + 1}\bigr)` for the steps and
constants of the clients and :math:`\delta` the largest, a round in which all take part contracts the clients' points by
:math:`k = 1 - \frac a2(1 - \delta)`, ``a`` = 2 for FedSplit. A client that is idle keeps its point, and a compressor
with :math:`\omega` takes the part :math:`1/(1 + \omega)` of the step, so that (Theorems B and D, ``theory/frontier``)

.. math:: \mathbb E\sum_j\frac1{p_js_j}|z_j^+ - z_j^*|^2
          \le \Bigl(1 - \frac{\min_jp_j}{1 + \omega}(1 - k^2)\Bigr)\sum_j\frac1{p_js_j}|z_j - z_j^*|^2

under every law by which the cohorts are drawn: nothing but the :math:`p_j`, the probabilities of the clients, is used
of it.
"""

from __future__ import annotations

import math
from typing import Any

from dualopt.arrays.xp import Array, asarray_like
from dualopt.methods._anderson import regularisation
from dualopt.methods._parameters import reflection_factor
from dualopt.methods._theorem import ANY_LAW, SMOOTH_STRONG, Known, Need, Theorem, rounded_up, squares
from dualopt.methods.compressors import Identity
from dualopt.methods.participation import EVERYBODY
from dualopt.objectives.local_problem import per_client

__all__ = ["OF_ANDERSON", "OF_FEDDR", "OF_FEDSPLIT"]

SOLVED = 1e-16  # of the squares: a point that is proximal up to rounding and local solvers
SEEN = Need("clients that are all active at times", lambda m, k: k.p > 0)


def _steps(step: float, method: Any, known: Known) -> list[float]:
    return [step * scale for scale in method.scales or (1.0,) * known.N]


def _factor(known: Known, steps: list[float], relaxation: float, kept: float = 1.0) -> float:
    delta = reflection_factor(known.objective, steps)
    assert delta is not None  # smooth and strongly convex
    return 1.0 - known.p * kept * (1.0 - (1.0 - 0.5 * relaxation * (1.0 - delta)) ** 2)


def _distances(known: Known, theta: Array, points: Array, steps: list[float], sign: float) -> float:
    r"""Return the sum of :math:`|z_j - z_j^*|^2/(p_js_j)` with :math:`z_j^* = \theta^* \pm s_j\nabla f_j(\theta^*)`."""
    shift = per_client(asarray_like(steps, points), points) * known.objective.gradient(theta)
    parts = zip(known.weights, known.law.inclusion, steps, strict=True)
    return squares(points - theta - sign * shift, [w / (p * s) for w, p, s in parts])


def _kept(method: Any, known: Known) -> float:
    return 1.0 / (1.0 + method.compressor.omega(known.objective.shape, known.N))


_OF_FEDSPLIT: dict[str, Any] = {
    "rate": "E of the squared distances falls by a factor of {factor} per round",
    "laws": ANY_LAW,
    "factor": lambda m, k: _factor(k, _steps(m.step, m, k), 2.0, _kept(m, k)),
    "potential": lambda m, k, theta, s, n: _distances(k, theta, s.clients.z, _steps(m.step, m, k), -1.0),
}
EVERY_POINT = Need("the mean of all z_j", lambda m, k: m.average == "all" or k.law.name == EVERYBODY)
OF_FEDSPLIT = (
    Theorem(
        source="Theorem B",
        needs=(SMOOTH_STRONG, SEEN, EVERY_POINT),
        about=lambda m: m.compressor == Identity(),
        best=lambda k: {"step": 1.0 / math.sqrt(k.L * k.mu)},
        **_OF_FEDSPLIT,
    ),
    Theorem(
        source="Theorem D",
        needs=(SMOOTH_STRONG, SEEN, Need("an unbiased compressor", lambda m, k: m.compressor.unbiased)),
        about=lambda m: m.compressor != Identity(),
        **_OF_FEDSPLIT,
    ),
)


def _reached(method: Any, known: Known, theta: Array, state: Any, n: int) -> float:
    """Return the distance where every x_j is the proximal point of its y_j: once all clients have been active."""
    c, steps = state.clients, _steps(method.eta, method, known)
    shift = per_client(asarray_like(steps, c.y), c.y) * known.objective.gradient(c.x)
    if squares(c.x + shift - c.y) > SOLVED * (squares(c.y) + squares(shift)):
        return math.inf
    return _distances(known, theta, c.y, steps, 1.0)


OF_FEDDR = (
    Theorem(
        source="Theorem B",
        rate="once all have been active, E of the squared distances falls by a factor of {factor} per round",
        needs=(SMOOTH_STRONG, SEEN),
        laws=ANY_LAW,
        factor=lambda m, k: _factor(k, _steps(m.eta, m, k), m.relaxation),
        potential=_reached,
        best=lambda k: {"eta": 1.0 / math.sqrt(k.L * k.mu)},
    ),
)


def _reflection(method: Any, known: Known) -> float:
    delta = reflection_factor(known.objective, method.step)
    assert delta is not None  # smooth and strongly convex
    return delta


def _mixed(method: Any, known: Known) -> float:
    r"""Return :math:`\sqrt{1 + \lambda}\,\delta`, with the regularisation of the weights of a mixture."""
    return math.sqrt(1.0 + regularisation(known.objective.mu)) * _reflection(method, known)


def _residual(method: Any, known: Known, theta: Array, state: Any, n: int) -> float:
    return math.sqrt(squares(state.clients.residuals[-1])) if n > 0 else math.inf


OF_ANDERSON = (
    Theorem(
        source="",
        rate="the residual falls by a factor of {factor} per round on quadratics",
        needs=(SMOOTH_STRONG,),
        factor=_mixed,
        potential=_residual,
        best=lambda k: {"step": 1.0 / math.sqrt(k.L * k.mu)},
    ),
    Theorem(
        source="",
        rate=lambda m, k: (
            f"by {rounded_up(_reflection(m, k))} between plain steps, one in {m.memory + 1} rounds, whatever the loss"
        ),
        needs=(SMOOTH_STRONG,),
    ),
)
