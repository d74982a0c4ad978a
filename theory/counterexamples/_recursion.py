r"""Runs of one variable whose errors obey a linear recursion that is known in closed form.

With the characteristic roots :math:`x_1, \dots, x_m` of a recursion, errors grow or shrink by the factor
:math:`\max|x_i|` per round in the end. A run is compared with the recursion in every round, and then with what the
factor means: it must have come a hundred times nearer to its limit, or have gone a hundred times as far from it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from dualopt.claims import Inequality
from dualopt.engine import Snapshot, iterate
from dualopt.objectives import Quadratic
from dualopt.participation import Full
from dualopt.xp import Array
from theory._claims import ROUNDING, deviation

__all__ = ["Run", "follow", "scalars", "side"]

FAR = 100.0


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """A method on quadratics, from the model ``(theta0, theta0, ...)``, of which one number per round is looked at.

    Attributes
    ----------
    label : str
        What tells it from other runs.
    algorithm : Algorithm
        The method, or a mutation of it.
    objective : Quadratic
        The clients.
    converges : bool
        What is claimed of it.
    limit : float, optional
        Where it ends, or what it leaves behind; the solution when not given.
    theta0 : float
        Every coordinate of the first model.
    participation : Participation
        Who takes part.
    read : callable
        Maps a round to the number: the first coordinate of the server's model when not given.
    """

    label: str
    algorithm: Any
    objective: Quadratic
    converges: bool = True
    limit: float | None = None
    theta0: float = 1.0
    participation: Any = field(default_factory=Full)
    read: Callable[[Snapshot], float] = lambda s: float(s.server.theta[0])

    @property
    def name(self) -> str:
        """For tables."""
        if not self.converges:
            return f"{self.label}: diverges"
        if self.limit is None or abs(self.limit - self.solution) < ROUNDING:
            return f"{self.label}: converges"
        return f"{self.label}: ends at {self.limit:.4g}, the solution is {self.solution:.4g}"

    @property
    def curvatures(self) -> Array:
        """Curvatures of the clients along the first coordinate, shape (N,)."""
        return self.objective.A[:, 0, 0]

    @property
    def solution(self) -> float:
        """First coordinate of the minimiser of ``E``."""
        return float(self.objective.minimiser()[0])

    def numbers(self, rounds: int) -> Array:
        """Return the number at the start and after each round."""
        theta0 = np.full(self.objective.shape, self.theta0)
        run = iterate(self.algorithm, self.objective, theta0=theta0, participation=self.participation)
        return np.array([self.theta0, *(self.read(s) for s in islice(run, rounds))])


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


def side(measured: float, threshold: float, *, below: bool, what: str) -> Inequality:
    """Compare a number with a threshold, from the side on which it is claimed to be.

    Examples
    --------
    >>> side(0.9, 1.0, below=True, what="factor").rhs, side(1.1, 1.0, below=False, what="factor").rhs
    (1.0, 1.1)
    """
    low, high = (measured, threshold) if below else (threshold, measured)
    return Inequality(0, low, high, what if below else f"{threshold:.4g} and the {what}")


def follow(run: Run, recursions: Iterable[Array], factor: float, *, first: int = 0) -> Iterator[Inequality]:
    r"""Compare the factor with 1, every round with the recursion, and the end of the run with what follows.

    Parameters
    ----------
    run : Run
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
    limit = run.solution if run.limit is None else run.limit
    rounds = 10 + math.ceil(2.0 * math.log(FAR) / abs(math.log(factor)) if 0 < factor != 1 else 0)
    errors = run.numbers(rounds)[first:] - limit
    recursions = iter(recursions)
    leading = next(recursions)
    order = len(leading) - 1
    windows = sliding_window_view(errors, order + 1)[:, ::-1]
    size = abs(limit)  # of the largest number so far, whose rounding stays
    for n, (c, e) in enumerate(zip(chain([leading], recursions), windows, strict=False), start=first):
        size = max(size, float(np.max(np.abs(e))))
        yield Inequality(n, deviation(c @ e, 0.0, scale=size), ROUNDING, "recursion")
    start, end = (float(np.max(np.abs(some))) for some in (errors[:order], errors[-order:]))
    if run.converges:
        yield Inequality(rounds, end, start / FAR, "error in the end")
    else:
        yield Inequality(rounds, FAR * start, end, f"{FAR:g} times the first error and the last")
