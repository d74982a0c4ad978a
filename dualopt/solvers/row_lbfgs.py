"""L-BFGS whose vectors are combinations of the rows: for sparse data of far more columns than rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

from dualopt.arrays._checks import Typed, require_kept
from dualopt.arrays.streams import Round
from dualopt.arrays.xp import Array, array_namespace, broadcast, device, epsilon, is_host, to_numpy
from dualopt.objectives.linear import LinearModel
from dualopt.objectives.local_problem import LocalProblem, client_dot, gap_bound, per_client
from dualopt.objectives.rows import Block, ClientRows
from dualopt.solvers._lazy import LazyEvaluation
from dualopt.solvers._loop import LocalSolution, drive, require_smooth
from dualopt.solvers.stopping import Stop

__all__ = ["RowLBFGS"]

SUFFICIENT_DECREASE = 1e-4
SHRINK = 0.3
MAX_TRIALS = 30
CACHED = 2**16
"""Numbers of a vector, half a megabyte, with which a recursion over pairs stays in the cache of a CPU."""


class Pairs(NamedTuple):
    """Pairs of L-BFGS, the newest last; ``inverse = 0`` takes a pair out."""

    s: tuple[Array, ...]  # (N, 2, k, m)  steps: coefficients, and their products with K
    y: tuple[Array, ...]  # (N, 2, k, m)  gradient changes, likewise
    inverse: Array  # (N, history)  1 / <s, y>


class SolverState(NamedTuple):
    """What is kept between rounds."""

    v: Array  # (N, k, m)  coefficients of the rows, padded with zeros to the largest client
    product: Array  # (N, k, m)  K v
    pairs: Pairs


class State(NamedTuple):
    """Iterates of all clients."""

    v: Array  # (N, k, m)
    z: Array  # (N, k, m)  predictors
    origin: Array  # (N, k, m)  z_0, the predictors for v = 0
    constant: Array  # (N,)
    value: Array  # (N,)  F_j
    gradient: Array  # (N, 2, k, m)  coefficients of grad F_j, and their products with K
    pairs: Pairs
    gradients: Array
    stalled: Array


@dataclass(frozen=True, kw_only=True)
class RowLBFGS(Typed):
    r"""Limited-memory BFGS in the space of the rows, for smooth losses of linear models with sparse rows.

    With :math:`\bar\mu = \mu + \text{weight} > 0` and the linear term ``l`` of the local problem, its solution has the
    form :math:`\theta(v) = -(l + X^\top v)/\bar\mu`, and so does every point here. Then, with :math:`K = X X^\top`,

    .. math:: z = z_0 - K v/\bar\mu, \quad F_j = \textstyle\sum_i w_i \phi(z_i) + \tfrac12\langle v, z_0 - z\rangle
              + \text{const}, \quad \nabla F_j = X^\top r, \quad r = w \phi'(z) - v.

    All vectors of L-BFGS are ``X'`` times coefficients; their inner products are :math:`\langle a, K b\rangle`. Vectors
    are kept with their products with ``K``. Those of a direction, a combination of vectors, are the same combination of
    theirs, so that a step takes one product with ``K``, that of ``r``, as much as a gradient, and a line search none.
    The pairs take ``history`` times four numbers per row and output, instead of two per column and output: 0.2 GB
    instead of 4 GB for 16,000 rows and 62,000 columns held by ten clients, 20 outputs and 20 pairs. The iterates are
    those of plain L-BFGS from the start :math:`\theta(v)` with the ``v`` of the last call, zero at first.

    The ``start`` of the method is not needed, as in dual coordinate ascent. A call counts 2.5 gradients, and one
    for each step; whoever needs the evaluation at the end pays for it.

    Parameters
    ----------
    history : int, default 20
        Number of pairs that are kept.
    max_iter : int, default 1000
        Largest number of steps.

    Raises
    ------
    ValueError
        If the objective is not a linear model with sparse rows, the loss is nonsmooth, ``mu + weight`` is not positive,
        or ``history`` is not between 1 and 1000.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from dualopt.losses import Squared
    >>> from dualopt.objectives import linear_model
    >>> from dualopt.solvers.stopping import GradientNorm
    >>> X = csr_array(np.array([[1.0, 1.0, 2.0]]))
    >>> f = linear_model(X, np.array([3.0]), loss=Squared(), mu=1.0, intercept=False, storage="sparse")
    >>> sol = RowLBFGS()(LocalProblem(objective=f), np.zeros((1, 3)), GradientNorm(tol=1e-10))
    >>> sol.theta.round(8).tolist(), sol.status  # X'3 / (1 + 6)
    ([[0.42857143, 0.42857143, 0.85714286]], ('converged',))
    """

    history: int = 20
    max_iter: int = 1000

    def __post_init__(self) -> None:
        require_kept(history=self.history)

    def initial_state(self, objective: Any) -> SolverState:
        """Return zero coefficients and no pairs."""
        if not isinstance(objective, LinearModel) or not objective.rows.is_sparse:
            raise ValueError("solver 'row-lbfgs' needs a linear model with sparse rows; use solver 'lbfgs'.")
        if objective.free_intercept:
            raise ValueError("solver 'row-lbfgs' needs a ridge on all columns, an intercept among them.")
        xp, mu = array_namespace(objective.mu), objective.mu
        shape = (objective.n_clients, objective.loss.outputs, objective.rows.max_rows)
        v = xp.zeros(shape, dtype=mu.dtype, device=device(mu))
        none = (xp.broadcast_to(v[:, None, :, :], (shape[0], 2, *shape[1:])),) * self.history
        return SolverState(v, v, Pairs(none, none, xp.broadcast_to(0.0 * mu[:, None], (shape[0], self.history))))

    def __call__(
        self, problem: LocalProblem, start: Array, stop: Stop, solver_state: Any = (), round: Round | None = None
    ) -> LocalSolution:
        """Run L-BFGS from the coefficients of earlier calls with their pairs; ``start`` is not needed."""
        memory = solver_state or self.initial_state(problem.objective)
        require_smooth("row-lbfgs", problem, constant=False)
        if not float(array_namespace(problem.mu).min(problem.mu)) > 0:
            raise ValueError("solver 'row-lbfgs' needs mu + weight > 0.")
        linear = problem.linear_term()
        state, status = drive(
            _step,
            problem,
            _begin(problem, memory, linear),
            stop,
            round,
            max_iter=self.max_iter,
            measure=lambda _, s: (s.value, _norm(s.gradient)),
        )
        theta, product = _point(problem, state.v, linear)
        rows, r = _rows(problem), state.gradient[:, 0, ...]
        norm = _norm(state.gradient)
        return LocalSolution(
            theta=theta,
            evaluation=LazyEvaluation(problem.objective, theta, state.value, lambda: _pulled(rows, r, theta)),
            bound=gap_bound(norm * norm, problem.mu),
            length=None,
            solver_state=SolverState(state.v, product, state.pairs),
            gradients=tuple((problem.objective.gradient_cost * to_numpy(state.gradients)).tolist()),
            status=status,
            charged=False,
        )


def _begin(problem: LocalProblem, memory: SolverState, linear: Array) -> State:
    """Return the state at ``theta(v)``."""
    xp, v = array_namespace(memory.v), memory.v
    (away,) = _rows(problem).sum(lambda block, x: (_pad(block.predict(x), v),), _matrices(linear, v))
    origin = -away / per_client(problem.mu, away)
    z = origin - memory.product / per_client(problem.mu, origin)
    constant = -0.5 * client_dot(linear, linear) / problem.mu
    if problem.center is not None:
        center = broadcast(problem.center, linear.shape)
        constant = constant + 0.5 * problem.weight * client_dot(center, center)
    value, r = _evaluate(problem, v, z, origin)
    gradient = xp.stack([r, _kernel(problem, r)], axis=1)
    # l X' and K r here, K v at the end, where X'v is on its way
    counts, never = 2.5 * xp.ones_like(constant), xp.zeros_like(constant, dtype=xp.bool)
    return State(v, z, origin, constant, value + constant, gradient, memory.pairs, counts, never)


def _step(problem: LocalProblem, state: State) -> State:
    """Take one step of L-BFGS with backtracking."""
    xp = array_namespace(state.z)
    direction = _direction(state.pairs, state.gradient)
    slope = _inner(state.gradient, direction)
    t, done = xp.ones_like(slope), slope > 0  # uphill by rounding only
    failed = done
    for _ in range(MAX_TRIALS):
        v, z, value, r = _moved(problem, state, direction, t)
        armijo = value <= state.value + SUFFICIENT_DECREASE * t * slope
        # near the minimum values lose half of the digits; F_j is convex, so that this slope proves the decrease
        slope_there = client_dot(r, direction[:, 1, ...])
        proved = slope_there <= SUFFICIENT_DECREASE * slope
        level = (xp.abs(value - state.value) <= 10.0 * epsilon(value) * xp.abs(state.value)) & (
            slope_there <= (2 * SUFFICIENT_DECREASE - 1) * slope
        )
        done = done | armijo | proved | level
        if bool(xp.all(done)):
            break
        t = xp.where(done, t, SHRINK * t)
    failed = failed | xp.logical_not(done)
    if bool(xp.any(failed)):  # they stay where they are
        t = xp.where(failed, xp.zeros_like(t), t)
        v, z, value, r = _moved(problem, state, direction, t)
    gradient = xp.stack([r, _kernel(problem, r)], axis=1)
    pairs = _with_pair(state.pairs, per_client(t, direction) * direction, gradient - state.gradient)
    return State(v, z, state.origin, state.constant, value, gradient, pairs, state.gradients + 1.0, failed)


def _moved(problem: LocalProblem, state: State, direction: Array, t: Array) -> tuple[Array, Array, Array, Array]:
    """Return coefficients, predictors, values, and the coefficients of gradients, at the point of step ``t``."""
    length = per_client(t, state.z)
    v = state.v - per_client(problem.mu, state.z) * length * direction[:, 0, ...]
    z = state.z + length * direction[:, 1, ...]
    value, r = _evaluate(problem, v, z, state.origin)
    return v, z, value + state.constant, r


def _with_pair(pairs: Pairs, s: Array, y: Array) -> Pairs:
    """Return the pairs with a new one instead of the oldest; it is left out where ``<s, y>`` is not positive."""
    xp, product = array_namespace(s), _inner(s, y)
    good = product > 1e-14 * xp.sqrt(xp.maximum(_inner(s, s) * _inner(y, y), xp.zeros_like(product)))
    inverse = xp.where(good, 1.0 / xp.where(good, product, xp.ones_like(product)), xp.zeros_like(product))
    return Pairs((*pairs.s[1:], s), (*pairs.y[1:], y), xp.concat([pairs.inverse[:, 1:], inverse[:, None]], axis=1))


def _direction(pairs: Pairs, gradient: Array) -> Array:
    """Return ``-H grad``, coefficients and their products with ``K``: both are the same combination of vectors.

    On a CPU a few clients at a time, whose vectors stay in the cache: it takes a third of the time.
    """
    xp, n = array_namespace(gradient), gradient.shape[0]
    used = [i for i, some in enumerate(to_numpy(xp.any(pairs.inverse != 0, axis=0)).tolist()) if some]
    at_once = max(1, CACHED // math.prod(gradient.shape[1:])) if is_host(gradient) else n
    parts = []
    for first in range(0, n, at_once):
        some = slice(first, first + at_once)
        own = [(pairs.s[i][some, ...], pairs.y[i][some, ...], pairs.inverse[some, i]) for i in used]
        parts.append(_two_loops(own, gradient[some, ...]))
    return xp.concat(parts, axis=0) if len(parts) > 1 else parts[0]


def _two_loops(pairs: list[tuple[Array, Array, Array]], gradient: Array) -> Array:
    """Return ``-H grad`` by the recursion of Nocedal, in arrays made here."""
    xp, d, coefficients = array_namespace(gradient), -gradient, []
    for s, y, inverse in reversed(pairs):
        a = inverse * client_dot(s[:, 1, ...], d[:, 0, ...])
        d -= per_client(a, d) * y
        coefficients.append(a)
    if pairs:
        _, y, inverse = pairs[-1]
        product = inverse * _inner(y, y)  # <y, y> / <s, y>, or 0 without a pair
        d /= per_client(xp.where(product > 0, product, xp.ones_like(product)), d)
    for s, y, inverse in pairs:
        b = inverse * client_dot(y[:, 1, ...], d[:, 0, ...])
        d += per_client(coefficients.pop() - b, d) * s
    return d


def _inner(a: Array, b: Array) -> Array:
    """Return ``<a_j, K b_j>``, shape ``(N,)``."""
    return client_dot(a[:, 0, ...], b[:, 1, ...])


def _norm(gradient: Array) -> Array:
    xp, square = array_namespace(gradient), _inner(gradient, gradient)
    return xp.sqrt(xp.maximum(square, xp.zeros_like(square)))  # K is positive semidefinite but for rounding


def _evaluate(problem: LocalProblem, v: Array, z: Array, origin: Array) -> tuple[Array, Array]:
    """Return ``F_j`` without its constant, shape ``(N,)``, and the coefficients ``r`` of its gradient."""

    def one(block: Any, z: Array) -> tuple[Array, Array]:
        value, slopes = _losses(problem, block, z[..., : block.y.shape[1]])
        return value, _pad(slopes, z)

    value, slopes = _rows(problem).sum(one, z)
    return value + 0.5 * client_dot(v, origin - z), slopes - v


def _point(problem: LocalProblem, v: Array, linear: Array) -> tuple[Array, Array]:
    r"""Return ``theta(v)`` and ``K v``; outside the columns of a client it is :math:`\theta = -l/\bar\mu`."""
    away = _matrices(linear, v)

    def one(block: Any, v: Array) -> tuple[Array, Array]:
        mu, pulled = block.points(problem.mu), block.pull_back_own(v[..., : block.y.shape[1]])
        theta = block.points(away) / -per_client(mu, away)
        own = block.own(theta)
        own -= pulled / per_client(array_namespace(v).take(mu, block.owner), pulled)
        block.put(own, theta)
        return theta, _pad(block.predict_own(pulled), v)

    theta, product = _rows(problem).sum(one, v)
    return array_namespace(theta).reshape(theta, linear.shape), product


def _pulled(rows: ClientRows, r: Array, like: Array) -> Array:
    """Return ``X_j' r_j``, in the shape of ``like``."""
    (pulled,) = rows.sum(lambda block, r: (block.pull_back(r[..., : block.y.shape[1]]),), r)
    return array_namespace(r).reshape(pulled, like.shape)


def _losses(problem: LocalProblem, block: Block, z: Array) -> tuple[Array, Array]:
    """Return the losses of predictors ``(c, k, b)``, ``(c,)``, and their derivatives."""
    loss = _model(problem).loss
    value, slope = loss.value_and_gradient(z[:, 0, :] if loss.outputs == 1 else z, block.y)
    slopes = (slope * block.w)[:, None, :] if loss.outputs == 1 else slope * block.w[:, None, :]
    return array_namespace(z).sum(block.w * value, axis=-1), slopes


def _kernel(problem: LocalProblem, v: Array) -> Array:
    """Return ``X_j X_j' v_j``, padded like ``v``."""

    def one(block: Any, v: Array) -> tuple[Array]:
        return (_pad(block.kernel(v[..., : block.y.shape[1]]), v),)

    return _rows(problem).sum(one, v)[0]


def _matrices(x: Array, v: Array) -> Array:
    """Return models ``(N, *shape)`` as ``(N, k, p)``."""
    return array_namespace(x).reshape(x, (*v.shape[:2], -1))


def _pad(x: Array, like: Array) -> Array:
    """Append zeros to the rows of ``x`` until they are as many as those of ``like``."""
    missing = like.shape[-1] - x.shape[-1]
    if missing == 0:
        return x
    xp = array_namespace(x)
    return xp.concat([x, xp.zeros((*x.shape[:-1], missing), dtype=x.dtype, device=device(x))], axis=-1)


def _model(problem: LocalProblem) -> LinearModel:
    assert isinstance(problem.objective, LinearModel)  # initial_state() has refused anything else
    return problem.objective


def _rows(problem: LocalProblem) -> ClientRows:
    return _model(problem).rows
