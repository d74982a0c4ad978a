r"""Communication rounds to an accuracy against the condition number, and the exponent of their growth.

Rounds are counted on quadratic clients, where a round with everybody active is an affine map of the state,
:math:`z^+ = Mz + m`, as long as its coefficients stay the same. The powers of its matrix are the run, up to rounding,
and a million rounds take a second. Methods whose coefficients change, or that are not affine, are run round by round.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, islice, repeat
from typing import Any, NamedTuple, cast

import numpy as np

from dualopt.arrays.tree import leaves
from dualopt.arrays.xp import Array
from dualopt.engine.rounds import iterate
from dualopt.lab.rates import Order, estimate_order
from dualopt.methods import Scaffnew
from dualopt.methods.participation import Round
from dualopt.objectives import LocalProblem, Quadratic
from dualopt.objectives.local_problem import per_client
from dualopt.runs._recorder import communicated
from dualopt.solvers import Gradient, LocalSolution
from dualopt.solvers._loop import solution
from dualopt.solvers.stopping import Steps, Stop
from theory._cases import Case, everybody
from theory._problems import solved
from theory._rounds import all_solutions, flatten, round_matrix

__all__ = [
    "ACCURACY",
    "PLANES",
    "AtOnce",
    "Count",
    "Counter",
    "exponent",
    "in_matrices",
    "kappas",
    "limit_error",
    "local_gradients",
    "one_by_one",
    "planes",
    "with_coins",
]

ACCURACY = 1e-8  # of |theta - theta*|^2 in units of |theta0 - theta*|^2
LIMIT = 10**6  # communication rounds
EXPLODED = 1e20
CLIENTS, PLANES, WITHIN = 3, 6, 2.0
BLOCK = 8  # rounds that are done at once


class Count(NamedTuple):
    """What an accuracy costs."""

    communications: float  # infinite when it was not reached
    gradients: float  # local gradients of a client per communication round
    error: float  # |theta - theta*|^2 / |theta0 - theta*|^2 at the end


Counter = Callable[[Any, Case], Count]  # a method on a problem


def kappas(count: int, *, least: float = 10.0) -> list[float]:
    """Return condition numbers ``least n^2`` for ``n`` from 1 to ``count``: :func:`exponent` wants them so.

    Examples
    --------
    >>> kappas(3)
    [10.0, 40.0, 90.0]
    """
    return [least * n * n for n in range(1, count + 1)]


def exponent(counts: Sequence[float] | Array) -> Order:
    r"""Estimate ``p`` of counts like :math:`\kappa^p` at the condition numbers of :func:`kappas`, with its interval.

    In ``n`` the counts grow like :math:`n^{2p}`, and :func:`dualopt.lab.rates.estimate_order` sees their inverses. Its
    correction by ``1/n`` follows :math:`(\sqrt\kappa + a)^{2p}`. It has no term for logarithms: to :math:`10^4`,
    :math:`\sqrt\kappa\log(4\kappa)` has the exponent 0.59.

    Examples
    --------
    >>> p = exponent([7.0 * math.sqrt(kappa) - 5.0 for kappa in kappas(32)])
    >>> round(p.value, 2), p.low < 0.5 < p.high
    (0.5, True)
    """
    order = estimate_order([1.0, *(1.0 / count for count in counts)], start=1)  # the first entry is not looked at
    return Order(order.value / 2.0, order.low / 2.0, order.high / 2.0, order.confidence)


@cache
def planes(kappa: float, seed: int = 0, *, count: int = PLANES) -> Case:
    r"""Clients that differ while their condition number is that of E, up to a factor.

    In each of ``count`` planes all clients have the curvatures :math:`\lambda` and :math:`2\lambda`, along axes that
    every client turns by an angle of its own, with :math:`\lambda` log-spaced from 1 to :math:`\kappa/2`; the clients'
    minimisers are standard normal. So every client has the extreme curvatures 1 and :math:`\kappa`, the Hessian of E
    lies between :math:`\lambda` and :math:`2\lambda` in each plane, and no mode is fast for all parts of a method.
    Hessians turned freely, in contrast, have a mean that is far better conditioned than they are, on which gradient
    descent hardly notices :math:`\kappa`. A rotation of the whole space would change nothing: the methods commute with
    it.

    Raises
    ------
    ValueError
        If ``kappa`` is less than 2.

    Examples
    --------
    >>> f = planes(100.0)
    >>> f.objective.L.round(9).tolist(), float(np.linalg.cond(np.mean(f.objective.A, axis=0))) > 50.0
    ([100.0, 100.0, 100.0], True)
    """
    if not kappa >= WITHIN:
        raise ValueError(f"kappa must be at least {WITHIN:g}, not {kappa}.")
    rng = np.random.default_rng(seed)
    angles = rng.uniform(0.0, math.pi, (CLIENTS, count))
    minimisers = rng.standard_normal((CLIENTS, 2 * count))
    u = np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    blocks = np.eye(2) + (WITHIN - 1.0) * u[..., :, None] * u[..., None, :]
    A = np.zeros((CLIENTS, 2 * count, 2 * count))
    for i, least in enumerate(np.geomspace(1.0, kappa / WITHIN, count)):
        plane = slice(2 * i, 2 * i + 2)
        A[:, plane, plane] = least * blocks[:, i]
    return solved(f"planes (kappa={kappa:g})", Quadratic(A=A, b=(A @ minimisers[..., None])[..., 0]))


def one_by_one(algorithm: Any, instance: Case, *, limit: int = LIMIT) -> Count:
    """Count by running the method, which must communicate in every round."""
    error, gradients, n = 1.0, 0.0, 0
    for n, s in enumerate(islice(iterate(algorithm, instance.objective), limit), start=1):
        assert s.solution is not None
        assert communicated(s)
        gradients += float(np.mean(s.solution.gradients))
        error = _error(s.server.theta, instance.theta)
        if error <= ACCURACY:
            return Count(n, gradients / n, error)
        if not error < EXPLODED:
            break
    return Count(math.inf, gradients / n, error)


def in_matrices(algorithm: Any, instance: Case, *, limit: int = LIMIT) -> Count:
    """Count by powers of the matrix of a round, which must be the same in all rounds."""
    case = _case(algorithm, instance)
    powers = list(accumulate(repeat(_matrix(case), BLOCK), np.matmul))
    models = np.stack([power[: instance.theta.size] for power in powers])
    z, gradients, error = _start(case), _gradients(case), 1.0
    for n in range(0, limit, BLOCK):
        errors = np.sum((models @ z - instance.theta) ** 2, axis=-1) / np.sum(instance.theta**2)
        hits = np.flatnonzero(errors <= ACCURACY)
        if hits.size:
            return Count(n + 1 + int(hits[0]), gradients, float(errors[hits[0]]))
        z, error = powers[-1] @ z, float(errors[-1])
        if not error < EXPLODED:
            break
    return Count(math.inf, gradients, error)


def with_coins(algorithm: Scaffnew, instance: Case, *, seeds: int = 4, limit: int = LIMIT) -> Count:
    """Count for a method that tosses a coin whether to communicate: means over several seeds.

    The rounds from one communication to the next are a power of the matrix of a round without, and one with.
    """
    case = _case(algorithm, instance)
    together, alone = _matrix(case), _matrix(case, communicate=False)
    found = [_tossed(case, together, alone, np.random.default_rng(seed), limit) for seed in range(seeds)]
    return Count(*np.mean(found, axis=0).tolist())


def _tossed(case: Case, together: Array, alone: Array, rng: np.random.Generator, limit: int) -> Count:
    squares, z, gradients, error, local = [alone], _start(case), _gradients(case), 1.0, 0
    for n in range(1, limit + 1):
        gap = int(rng.geometric(case.algorithm.probability))
        local += gap
        for bit in range((gap - 1).bit_length()):
            if bit == len(squares):
                squares.append(squares[-1] @ squares[-1])
            if (gap - 1) >> bit & 1:
                z = squares[bit] @ z
        z = together @ z
        error = _error(z[: case.theta.size], case.theta)
        if error <= ACCURACY:
            return Count(n, gradients * local / n, error)
        if not error < EXPLODED:
            break
    return Count(math.inf, gradients / case.algorithm.probability, error)


def limit_error(algorithm: Any, instance: Case) -> float:
    r"""Return the relative error of the fixed point of a method with one matrix, :math:`z = (I - M)^{-1} m`."""
    M = _matrix(_case(algorithm, instance))
    z = np.linalg.solve(np.eye(len(M) - 1) - M[:-1, :-1], M[:-1, -1])
    return _error(z[: instance.theta.size], instance.theta)


def local_gradients(algorithm: Any, instance: Case, *, rounds: int = 3) -> float:
    """Return the local gradients of a client per round, mean over the first rounds."""
    found = (s.solution for s in islice(iterate(algorithm, instance.objective), rounds))
    return float(np.mean([s.gradients for s in found if s is not None]))


def _error(theta: Array, solution: Array) -> float:
    """Return the squared distance from the solution, in units of that of the start, which is zero."""
    return float(np.sum((theta - solution) ** 2) / np.sum(solution**2))


def _case(algorithm: Any, instance: Case) -> Case:
    return instance.case(algorithm.suggested(instance.objective), 1)


def _start(case: Case) -> Array:
    """Return the first state as a vector: the model first, a one at the end."""
    state = case.first()
    assert leaves(state)[0] is state.server.theta
    return np.append(flatten(state), 1.0)


def _matrix(case: Case, *, communicate: bool = True) -> Array:
    """Return the matrix of a round with everybody."""
    round = everybody(case.n_clients, communicate=communicate)
    return round_matrix(case.algorithm, case.objective, round, case.first())


def _gradients(case: Case) -> float:
    """Return the local gradients of a client in the first round."""
    return float(np.mean(all_solutions(case.algorithm, case.objective, case.first()).gradients))


@dataclass(frozen=True, kw_only=True)
class AtOnce(Gradient):
    """``Gradient`` with ``Steps(K)`` on quadratics, where K steps are one power of a matrix."""

    def __call__(
        self, problem: LocalProblem, start: Array, stop: Stop, solver_state: Any = (), round: Round | None = None
    ) -> LocalSolution:
        """Return what the steps arrive at."""
        assert isinstance(stop, Steps)
        steps, f, identity = stop.steps, cast(Quadratic, problem.objective), np.eye(start.shape[-1])
        best, curvature = f.exact_minimiser(problem), f.A + per_client(problem.weight, f.A) * identity
        length = 1.0 / problem.L if self.step is None else np.full(problem.n_clients, self.step)
        kept = np.linalg.matrix_power(identity - per_client(length, curvature) * curvature, steps)
        theta = best + (kept @ (start - best)[..., None])[..., 0]
        return solution(
            problem,
            theta,
            problem.evaluate(theta),
            length=steps * length,
            gradients=np.full(problem.n_clients, float(steps)),
            charged=False,
            status=("converged",) * problem.n_clients,
        )
