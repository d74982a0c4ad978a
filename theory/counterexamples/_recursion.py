r"""Runs of one variable whose errors obey a linear recursion that is known in closed form.

With the characteristic roots :math:`x_1, \dots, x_m` of a recursion, errors grow or shrink by the factor
:math:`\max|x_i|` per round in the end. A run is compared with the recursion in every round, and then with what the
factor means: it must have come a hundred times nearer to its limit, or have gone a hundred times as far from it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from dualopt.arrays.xp import Array
from dualopt.engine.rounds import Snapshot
from dualopt.lab.claims import Inequality
from dualopt.objectives import Quadratic
from theory._cases import Case, Derived
from theory._claims import ROUNDING, deviation

__all__ = ["follow", "numbers", "on_quadratics", "scalars", "side"]

FAR = 100.0


def numbers(run: Case) -> Array:
    """Return the number that a run is about, at the start and after each round."""
    assert run.theta0 is not None
    return np.array([run.theta0[0], *(run.read(s) for s in run.snapshots())])


def _model(s: Snapshot) -> float:
    return float(s.server.theta[0])


def on_quadratics(
    label: str,
    algorithm: Any,
    objective: Quadratic,
    *,
    converges: bool = True,
    limit: float | None = None,
    theta0: float = 1.0,
    read: Callable[[Snapshot], float] = _model,
    **more: Any,
) -> Case:
    """Return a run from ``(theta0, theta0, ...)``, named by its label and its end; by default that is the solution.

    It knows whether it ``converges``, its ``limit``, where it ends or what it leaves behind, what to ``read`` of a
    round (the first coordinate of the model), and of that coordinate the clients' ``curvatures`` and the ``solution``.
    The claim says how many rounds it takes.

    Examples
    --------
    >>> from dualopt.methods import FedAvg
    >>> on_quadratics("FedAvg", FedAvg(), scalars([1.0, 3.0], [0.0, 1.0]), limit=0.5).name
    'FedAvg: ends at 0.5, the solution is 0.75'
    """
    limit = float(objective.minimiser()[0]) if limit is None else limit
    end = "diverges"
    if converges:
        solution = float(objective.minimiser()[0])
        right = abs(limit - solution) < ROUNDING
        end = "converges" if right else f"ends at {limit:.4g}, the solution is {solution:.4g}"
    known = {
        "converges": converges,
        "limit": limit,
        "read": read,
        "curvatures": Derived(lambda run: run.objective.A[:, 0, 0]),
        "solution": Derived(lambda run: float(run.objective.minimiser()[0])),
    }
    return Case(
        name=f"{label}: {end}",
        algorithm=algorithm,
        objective=objective,
        theta0=np.full(objective.shape, theta0),
        known=known,
        **more,
    )


def scalars(curvatures: Sequence[float], minima: Sequence[float] | None = None) -> Quadratic:
    r"""Return the clients :math:`\frac{a_j}{2}(x - m_j)^2`, up to constants; all :math:`m_j = 0` when not given.

    Examples
    --------
    >>> scalars([1.0, 3.0], [0.0, 1.0]).minimiser().tolist()
    [0.75]
    """
    a = np.array(curvatures, dtype=float)
    m = np.zeros_like(a) if minima is None else np.array(minima, dtype=float)
    return Quadratic(A=a[:, None, None], b=(a * m)[:, None])


def side(number: float, threshold: float, *, below: bool, what: str) -> Inequality:
    """Return that a number is below a threshold, or that it is above.

    Examples
    --------
    >>> side(0.9, 1.0, below=True, what="factor").rhs, side(1.1, 1.0, below=False, what="factor").rhs
    (1.0, 1.1)
    """
    low, high = (number, threshold) if below else (threshold, number)
    return Inequality(0, low, high, what)


def follow(run: Case, recursions: Iterable[Array], factor: float, *, first: int = 0) -> Iterator[Inequality]:
    r"""Compare the factor with 1, every round with the recursion, and the end of the run with what follows.

    Parameters
    ----------
    run : Case
        What is followed.
    recursions : iterable of array, shape (m + 1,)
        For n = ``first``, ``first`` + 1, ... the coefficients that make :math:`c_0 e_{n+m} + \dots + c_m e_n = 0`, with
        :math:`e_n` the distance from the limit.
    factor : float
        The largest modulus of the characteristic roots, in the end.
    first : int
        The first model whose error obeys the recursion.
    """
    yield side(factor, 1.0, below=run.converges, what="factor of a round")
    rounds = 10 + math.ceil(2.0 * math.log(FAR) / abs(math.log(factor)) if 0 < factor != 1 else 0)
    errors = numbers(run.but(rounds=rounds))[first:] - run.limit
    recursions = iter(recursions)
    leading = next(recursions)
    order = len(leading) - 1
    windows = sliding_window_view(errors, order + 1)[:, ::-1]
    size = abs(run.limit)  # of the largest number so far, whose rounding stays
    for n, (c, e) in enumerate(zip(chain([leading], recursions), windows, strict=False), start=first):
        size = max(size, float(np.max(np.abs(e))))
        yield Inequality(n, deviation(c[0] * e[0], -c[1:] @ e[1:], scale=size), ROUNDING, "recursion")
    start, end = (float(np.max(np.abs(some))) for some in (errors[:order], errors[-order:]))
    if run.converges:
        yield Inequality(rounds, end, start / FAR, "error in the end", rounding=ROUNDING * size)
    else:
        yield Inequality(rounds, FAR * start, end, f"error in the end, at least {FAR:g} times the first")
