r"""The theorems of FedSplit, FedDR, AndersonFedSplit and FedADMM: reflections that contract (Giselsson and Boyd 2017).

With :math:`\delta = \max\bigl(\frac{1 - s\mu}{1 + s\mu}, \frac{sL - 1}{sL + 1}\bigr)` for the step s a round in which
all take part contracts the clients' points by :math:`k = 1 - \frac a2(1 - \delta)`, ``a`` = 2 for FedSplit. A client
that is idle keeps its point, and a compressor with :math:`\omega` takes the part :math:`1/(1 + \omega)` of the step, so
that (Theorems B and D, ``theory/frontier``)

.. math:: \mathbb E\sum_j\frac{w_j}{p_j}|z_j^+ - z_j^*|^2
          \le \Bigl(1 - \frac{\min_jp_j}{1 + \omega}(1 - k^2)\Bigr)\sum_j\frac{w_j}{p_j}|z_j - z_j^*|^2

under every law by which the cohorts are drawn: nothing but the :math:`p_j`, the probabilities of the clients, is used
of it. The :math:`w_j` are the weights of the clients.

FedPD, A-FedPD and FedDyn with all clients, and FedADMM with any, are FedDR with a = 1 (``theory/frontier``,
``averaged_reflections``): at :math:`s = 1/\sqrt{L\mu}`, :math:`k = \sqrt\kappa/(\sqrt\kappa + 1)`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from dualopt.arrays.xp import Array, epsilon
from dualopt.methods._anderson import regularisation
from dualopt.methods._parameters import reflection_factor
from dualopt.methods._theorem import ALL, ANY_LAW, SMOOTH_STRONG, Known, Need, Theorem, rounded_up, squares

__all__ = ["OF_ANDERSON", "OF_FEDADMM", "OF_FEDDR", "OF_FEDSPLIT", "everybody_averages"]

SOLVED = 1e-16  # of the squares: a point that is proximal up to rounding and local solvers
SEEN = Need("clients that are all active at times", lambda m, k: k.p > 0)


def _delta(method: Any, known: Known, step: float) -> float:
    delta = reflection_factor(known.objective, step)
    assert delta is not None  # smooth and strongly convex
    return delta


def _factor(method: Any, known: Known, step: float, relaxation: float) -> float:
    k = 1.0 - 0.5 * relaxation * (1.0 - _delta(method, known, step))
    return 1.0 - known.p * known.kept * (1.0 - k * k)


def _distances(known: Known, theta: Array, points: Array, step: float) -> float:
    r"""Return the sum of :math:`w_j|z_j - z_j^*|^2/p_j` with :math:`z_j^* = \theta^* + s\nabla f_j(\theta^*)`."""
    limits = theta + step * known.objective.gradient(theta)
    return squares(points - limits, [w / p for w, p in zip(known.weights, known.law.inclusion, strict=True)])


def _least_contraction(method: Any, known: Known) -> float:
    delta = _delta(method, known, method.step)
    return (1.0 - delta) / (1.0 + delta)


def _rounded_factor(method: Any, known: Known) -> float:
    delta = _delta(method, known, method.step)
    return 1.0 - known.p * (1.0 - (delta + known.q * (1.0 + delta)) ** 2)


_OF_FEDSPLIT: dict[str, Any] = {
    "rate": "E of the squared distances falls by a factor of {factor} per round",
    "laws": ANY_LAW,
    "factor": lambda m, k: _factor(m, k, m.step, 2.0),
    "potential": lambda m, k, theta, s, n: _distances(k, theta, s.clients.z, -m.step),
}
OF_FEDSPLIT = (
    Theorem(
        source="Theorem B",
        needs=(SMOOTH_STRONG, SEEN),
        best=lambda k: {"step": 1.0 / math.sqrt(k.L * k.mu)},
        **_OF_FEDSPLIT,
    ),
    Theorem(
        source="Theorem D",
        needs=(
            SMOOTH_STRONG,
            SEEN,
            Need("an unbiased compressor", lambda m, k: k.compressor is not None and k.compressor.unbiased),
        ),
        compressed=True,
        **_OF_FEDSPLIT,
    ),
    Theorem(
        source="",
        needs=(
            SMOOTH_STRONG,
            SEEN,
            Need(
                "|C(v) - v| <= q |v|, q < (1 - delta)/(1 + delta)",
                lambda m, k: k.q < _least_contraction(m, k),
                lambda m, k: _least_contraction(m, k),
            ),
        ),
        about=lambda m, k: k.compressor is not None and not k.compressor.unbiased,
        compressed=True,
        **{**_OF_FEDSPLIT, "factor": _rounded_factor},
    ),
)


def _reached(known: Known, theta: Array, models: Array, points: Array, step: float) -> float:
    """Return the distance where every model is the proximal point of its point: once all clients have been active."""
    shift = step * known.objective.gradient(models)
    if squares(models + shift - points) > SOLVED * (squares(points) + squares(shift)):
        return math.inf
    return _distances(known, theta, points, step)


AFTER_ALL = "once all have been active, E of the squared distances falls by a factor of {factor} per round"
OF_FEDDR = (
    Theorem(
        source="Theorem B",
        rate=AFTER_ALL,
        needs=(SMOOTH_STRONG, SEEN),
        laws=ANY_LAW,
        factor=lambda m, k: _factor(m, k, m.eta, m.relaxation),
        potential=lambda m, k, theta, s, n: _reached(k, theta, s.clients.x, s.clients.y, m.eta),
        best=lambda k: {"eta": 1.0 / math.sqrt(k.L * k.mu), "relaxation": 2.0},
    ),
)

# Douglas-Rachford splitting, a = 1.

OF_FEDADMM = (
    Theorem(
        source="Theorem B",
        rate=AFTER_ALL,
        needs=(SMOOTH_STRONG, SEEN, Need("server_step = P/N, as by default", lambda m, k: m.server_step is None)),
        laws=ANY_LAW,
        factor=lambda m, k: _factor(m, k, 1.0 / m.rho, 1.0),
        potential=lambda m, k, theta, s, n: _reached(
            k, theta, s.clients.theta, s.clients.theta - s.clients.dual / m.rho, 1.0 / m.rho
        ),
    ),
)


def everybody_averages(step: Callable[[Any], float], points: Callable[[Any, Any], Array]) -> Theorem:
    r"""Return Theorem B for a method that averages reflections, of all clients.

    ``step(method)`` is s, and ``points(method, state)`` are the :math:`y_j` whose proximal points a round takes.
    """
    return Theorem(
        source="Theorem B",
        rate="the sum of the squared distances falls by a factor of {factor} per round",
        needs=(SMOOTH_STRONG,),
        laws=ALL,
        factor=lambda m, k: _factor(m, k, step(m), 1.0),
        potential=lambda m, k, theta, s, n: _distances(k, theta, points(m, s), step(m)),
    )


def _mixed(method: Any, known: Known) -> float:
    r"""Return :math:`\sqrt{1 + \lambda}\,\delta`, with the regularisation of the weights of a mixture."""
    return math.sqrt(1.0 + regularisation(epsilon(known.objective.mu))) * _delta(method, known, method.step)


def _residual(method: Any, known: Known, theta: Array, state: Any, n: int) -> float:
    """Return the norm with the weights of the clients, with which the server adds the products up."""
    return math.sqrt(squares(state.clients.residuals[-1], known.weights)) if n > 0 else math.inf


OF_ANDERSON = (
    Theorem(
        source="",
        rate="the residual falls by a factor of {factor} per round on quadratics",
        needs=(SMOOTH_STRONG,),
        factor=_mixed,
        potential=_residual,
        power=1,
        best=lambda k: {"step": 1.0 / math.sqrt(k.L * k.mu)},
    ),
    Theorem(
        source="",
        rate=lambda m, k: (
            f"by {rounded_up(_delta(m, k, m.step))} between plain steps, one in {m.memory + 1} rounds, for any loss"
        ),
        needs=(SMOOTH_STRONG,),
    ),
)
