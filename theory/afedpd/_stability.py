r"""Problems and constants of the stability analysis.

The coefficients of the recursion of :math:`\Psi^t = \Delta^t + (\alpha - 1/\rho)\sigma^t`: with steps of length
:math:`\eta`, :math:`\alpha\rho \ge x_+` makes it close, where :math:`x_+` is the larger root of
:math:`Lx^2 - \rho x - (L + \rho + \frac1{\eta K})`; then :math:`\gamma = 1 + \alpha\rho`. The root grows as
:math:`\eta` falls: with :math:`\eta^t = \eta_0/(t+1)` it must be taken at the last round, so that
:math:`\mu = \gamma\eta_0K` depends on T.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import numpy as np

from dualopt.algorithms import AFedPD
from dualopt.losses import Huber, Logistic
from dualopt.objectives import linear_model
from theory.afedpd._neighbours import Neighbours, Rows

__all__ = ["assumptions", "gamma", "larger_root", "largest_loss", "neighbours", "small_trees"]


@cache
def neighbours(
    loss: Huber | Logistic,
    *,
    size: int,
    local_steps: int,
    rounds: int,
    step: float,
    rho: float,
    decayed: bool,
    seed: int = 4,
) -> Neighbours:
    """Return two clients, of which one is active, whose rows lie in the unit disc.

    Steps are ``step`` over K times the smoothness constant of a row, at most; ``rho`` is in units of that constant.
    """
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((2 * size, 2))
    X = X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1.0)
    y = X @ np.array([2.0, -1.0]) + rng.standard_normal(2 * size)
    y = np.sign(y) if isinstance(loss, Logistic) else y
    X[0], other = (0.6, 0.8), X.copy()
    labels = y.copy()
    other[0], labels[0] = (-0.8, 0.6), -y[0]
    pair = tuple(
        linear_model(rows, own, loss=loss, mu=0.0, clients=2, intercept=False)
        for rows, own in ((X, y), (other, labels))
    )
    steps = "decayed" if decayed else "constant"
    case = Neighbours(
        name=f"{loss}, S = {size}, K = {local_steps}, T = {rounds}, {steps} step",
        algorithm=AFedPD(rho=1.0, solver=Rows(step=1.0, decayed=decayed)),
        objectives=pair,  # pyright: ignore[reportArgumentType]
        differs=(0, 0),
        slope=loss.delta if isinstance(loss, Huber) else 1.0,
        active=1,
        local_steps=local_steps,
        rounds=rounds,
    )
    solver = Rows(step=step / (local_steps * case.L), decayed=decayed)
    return replace(case, algorithm=AFedPD(rho=rho * case.L, solver=solver))


def small_trees(quick: bool) -> list[Neighbours]:
    """Return one and two local steps, constant and decayed, for two losses."""
    found = []
    for loss in (Logistic(), Huber(delta=0.1)):
        sizes = {"size": 3, "local_steps": 1, "rounds": 3 if quick else 4}
        found.append(neighbours(loss, step=0.5, rho=1.2, decayed=False, **sizes))
        sizes = {"size": 2, "local_steps": 2, "rounds": 2 if quick else 3}
        found.append(neighbours(loss, step=0.8, rho=1.0, decayed=True, **sizes))
        found.append(neighbours(loss, step=0.8, rho=1.2, decayed=False, **sizes))
    return found


def larger_root(rho: float, L: float, steps: float) -> float:
    r"""Return :math:`x_+`; ``steps`` is :math:`\eta K`.

    Examples
    --------
    >>> larger_root(1.0, 1.0, 0.25)
    3.0
    """
    return (rho + math.sqrt((rho + 2.0 * L) ** 2 + 4.0 * L / steps)) / (2.0 * L)


def gamma(case: Neighbours) -> float:
    """Return the constant that serves all rounds: the one of the shortest step."""
    shortest = case.algorithm.solver.length(case.rounds - 1)
    return 1.0 + larger_root(case.rho, case.L, shortest * case.local_steps)


def largest_loss(case: Neighbours, models: list[np.ndarray]) -> float:
    """Return H: the largest loss of a row at any of the models."""
    return max(float(np.max(case.losses(theta))) for theta in models)


def assumptions(case: Neighbours) -> list[str]:
    """Return the assumptions that the case fails."""
    needed = {"rho >= L": case.rho >= case.L, "eta rho <= 1": case.algorithm.solver.step * case.rho <= 1.0}
    return [name for name, holds in needed.items() if not holds]
