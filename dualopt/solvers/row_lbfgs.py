"""L-BFGS whose vectors are combinations of the rows: for sparse data of far more columns than rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from dualopt.objectives.linear import LinearModel
from dualopt.objectives.local_problem import LocalProblem, client_dot, per_client
from dualopt.objectives.rows import Block, ClientRows
from dualopt.participation import Round
from dualopt.solvers._loop import LocalSolution, drive, require_smooth, solution
from dualopt.stopping import Stop
from dualopt.xp import Array, array_namespace, broadcast, device, epsilon

__all__ = ["RowLBFGS"]

SUFFICIENT_DECREASE = 1e-4
SHRINK = 0.3
MAX_TRIALS = 30


class SolverState(NamedTuple):
    """What is kept between rounds; the newest pair last, ``inverse = 0`` takes a pair out."""

    v: Array  # (N, k, m)  coefficients of the rows, padded with zeros to the largest client
    s: tuple[Array, ...]  # (N, 2, k, m)  steps: coefficients, and their products with K
    y: tuple[Array, ...]  # (N, 2, k, m)  gradient changes, likewise
    inverse: tuple[Array, ...]  # (N,)  1 / <s, y>


class State(NamedTuple):
    """Iterates of all clients."""

    memory: SolverState
    origin: Array  # (N, k, m)  z_0, the predictors for v = 0
    constant: Array  # (N,)
    z: Array  # (N, k, m)  predictors
    value: Array  # (N,)  F_j
    gradient: Array  # (N, 2, k, m)  coefficients of grad F_j, and their products with K
    gradients: Array
    stalled: Array


@dataclass(frozen=True, kw_only=True)
class RowLBFGS:
    r"""Limited-memory BFGS in the space of the rows, for smooth losses of linear models with sparse rows.

    With :math:`\bar\mu = \mu + \text{weight} > 0` and the linear term ``l`` of the local problem, its solution has the
    form :math:`\theta(v) = -(l + X^\top v)/\bar\mu`, and so does every point here. Then, with :math:`K = X X^\top`,

    .. math:: z = z_0 - K v/\bar\mu, \quad F_j = \textstyle\sum_i w_i \phi(z_i) + \tfrac12\langle v, z_0 - z\rangle
              + \text{const}, \quad \nabla F_j = X^\top r, \quad r = w \phi'(z) - v.

    All vectors of L-BFGS are ``X'`` times coefficients; their inner products are :math:`\langle a, K b\rangle`. A step
    takes two products with ``K``, as much as two gradients, and a line search none. The pairs take
    ``history`` times four numbers per row and output, instead of two per column and output: 0.2 GB instead of 4 GB for
    16,000 rows and 62,000 columns held by ten clients, 20 outputs and 20 pairs. The iterates are those of plain L-BFGS
    from the start :math:`\theta(v)` with the ``v`` of the last call, zero at first.

    The ``start`` of the method is not needed, as in dual coordinate ascent. A call counts 4 gradients, and two
    for each step.

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
        or ``history`` is less than 1.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from dualopt.losses import Squared
    >>> from dualopt.objectives import linear_model
    >>> from dualopt.stopping import GradientNorm
    >>> X = csr_array(np.array([[1.0, 1.0, 2.0]]))
    >>> f = linear_model(X, np.array([3.0]), loss=Squared(), mu=1.0, intercept=False, storage="sparse")
    >>> sol = RowLBFGS()(LocalProblem(objective=f), np.zeros((1, 3)), GradientNorm(tol=1e-10))
    >>> sol.theta.round(8).tolist(), sol.status  # X'3 / (1 + 6)
    ([[0.42857143, 0.42857143, 0.85714286]], ('converged',))
    """

    history: int = 20
    max_iter: int = 1000

    def __post_init__(self) -> None:
        if self.history < 1:
            raise ValueError(f"history must be at least 1, not {self.history}.")

    def initial_state(self, objective: Any) -> SolverState:
        """Return zero coefficients and no pairs."""
        if not isinstance(objective, LinearModel) or not objective.rows.is_sparse:
            raise ValueError("solver 'row-lbfgs' needs a linear model with sparse rows; use solver 'lbfgs'.")
        xp, zero = array_namespace(objective.mu), objective.zeros()
        shape = (objective.n_clients, objective.loss.outputs, objective.rows.max_rows)
        v = xp.zeros(shape, dtype=zero.dtype, device=device(zero))
        empty = xp.broadcast_to(v[:, None, :, :], (shape[0], 2, *shape[1:]))
        none = (xp.zeros_like(objective.mu),) * self.history
        return SolverState(v, (empty,) * self.history, (empty,) * self.history, none)

    def __call__(
        self, problem: LocalProblem, start: Array, stop: Stop, solver_state: Any = (), round: Round | None = None
    ) -> LocalSolution:
        """Run L-BFGS from the coefficients of earlier calls with their pairs; ``start`` is not needed."""
        memory = solver_state or self.initial_state(problem.objective)
        require_smooth("row-lbfgs", problem, constant=False)
        xp = array_namespace(problem.mu)
        if not float(xp.min(problem.mu)) > 0:
            raise ValueError("solver 'row-lbfgs' needs mu + weight > 0.")
        linear = problem.linear_term()
        state = _begin(problem, memory, linear)
        state, status = drive(
            _step,
            problem,
            state,
            stop,
            round,
            max_iter=self.max_iter,
            measure=lambda _, s: (s.value, _norm(s.gradient)),
        )
        theta = xp.reshape(_pulled(problem, state.memory.v), start.shape)
        theta += linear
        theta /= -per_client(problem.mu, theta)
        return solution(
            problem,
            theta,
            problem.evaluate(theta),
            solver_state=state.memory,
            gradients=state.gradients,
            status=status,
        )


def _begin(problem: LocalProblem, memory: SolverState, linear: Array) -> State:
    """Return the state at ``theta(v)``."""
    xp = array_namespace(memory.v)
    points = xp.reshape(linear, (*memory.v.shape[:2], -1))
    (away,) = _rows(problem).sum(lambda block, x: (_pad(block.predict(x), memory.v),), points)
    origin = -away / per_client(problem.mu, away)
    z = origin - _kernel(problem, memory.v) / per_client(problem.mu, origin)
    constant = -0.5 * client_dot(linear, linear) / problem.mu
    if problem.center is not None:
        center = broadcast(problem.center, linear.shape)
        constant = constant + 0.5 * problem.weight * client_dot(center, center)
    never = xp.zeros_like(constant, dtype=xp.bool)
    value, r = _evaluate(problem, memory.v, z, origin)
    gradient = xp.stack([r, _kernel(problem, r)], axis=1)
    # l X' and K v once each, K r, X'v and the evaluation at the end: two halves and three
    return State(memory, origin, constant, z, value + constant, gradient, 4.0 * xp.ones_like(constant), never)


def _step(problem: LocalProblem, state: State) -> State:
    """Take one step of L-BFGS with backtracking."""
    xp, memory = array_namespace(state.z), state.memory
    direction = -_inverse_hessian(memory, state.gradient[:, 0, ...])
    direction = xp.stack([direction, _kernel(problem, direction)], axis=1)
    slope = _inner(state.gradient, direction)
    t, done = xp.ones_like(slope), slope > 0  # uphill by rounding only
    failed = done
    for _ in range(MAX_TRIALS):
        v, z = _moved(problem, state, direction, t)
        value, r = _evaluate(problem, v, z, state.origin)
        value = value + state.constant
        armijo = value <= state.value + SUFFICIENT_DECREASE * t * slope
        # near the minimum values lose half of the digits; F_j is convex, so that this slope proves the decrease
        proved = client_dot(r, direction[:, 1, ...]) <= SUFFICIENT_DECREASE * slope
        level = (xp.abs(value - state.value) <= 10.0 * epsilon(value) * xp.abs(state.value)) & (
            client_dot(r, direction[:, 1, ...]) <= (2 * SUFFICIENT_DECREASE - 1) * slope
        )
        done = done | armijo | proved | level
        if bool(xp.all(done)):
            break
        t = xp.where(done, t, SHRINK * t)
    failed = failed | xp.logical_not(done)
    t = xp.where(failed, xp.zeros_like(t), t)
    v, z = _moved(problem, state, direction, t)
    value, r = _evaluate(problem, v, z, state.origin)
    gradient = xp.stack([r, _kernel(problem, r)], axis=1)
    s, y = per_client(t, direction) * direction, gradient - state.gradient
    product = _inner(s, y)
    good = product > 1e-14 * xp.sqrt(xp.maximum(_inner(s, s) * _inner(y, y), xp.zeros_like(product)))
    inverse = xp.where(good, 1.0 / xp.where(good, product, xp.ones_like(product)), xp.zeros_like(product))
    memory = SolverState(v, (*memory.s[1:], s), (*memory.y[1:], y), (*memory.inverse[1:], inverse))
    return State(
        memory, state.origin, state.constant, z, value + state.constant, gradient, state.gradients + 2.0, failed
    )


def _moved(problem: LocalProblem, state: State, direction: Array, t: Array) -> tuple[Array, Array]:
    """Return the coefficients and the predictors at the point of step ``t``."""
    length = per_client(t, state.z)
    v = state.memory.v - per_client(problem.mu, state.z) * length * direction[:, 0, ...]
    return v, state.z + length * direction[:, 1, ...]


def _inverse_hessian(memory: SolverState, r: Array) -> Array:
    """Return the coefficients of ``H grad`` by the two-loop recursion."""
    xp = array_namespace(r)
    coefficients = []
    pairs = list(zip(memory.s, memory.y, memory.inverse, strict=True))
    for s, y, inverse in reversed(pairs):
        a = inverse * client_dot(s[:, 1, ...], r)
        r = r - per_client(a, r) * y[:, 0, ...]
        coefficients.append(a)
    _, y, inverse = pairs[-1]
    product = inverse * _inner(y, y)  # <y, y> / <s, y>, or 0 without a pair
    r = r / per_client(xp.where(product > 0, product, xp.ones_like(product)), r)
    for s, y, inverse in pairs:
        b = inverse * client_dot(y[:, 1, ...], r)
        r = r + per_client(coefficients.pop() - b, r) * s[:, 0, ...]
    return r


def _inner(a: Array, b: Array) -> Array:
    """Return ``<a_j, K b_j>``, shape ``(N,)``."""
    return client_dot(a[:, 0, ...], b[:, 1, ...])


def _norm(gradient: Array) -> Array:
    xp, square = array_namespace(gradient), _inner(gradient, gradient)
    return xp.sqrt(xp.maximum(square, xp.zeros_like(square)))  # K is positive semidefinite but for rounding


def _evaluate(problem: LocalProblem, v: Array, z: Array, origin: Array) -> tuple[Array, Array]:
    """Return ``F_j`` without its constant, shape ``(N,)``, and the coefficients ``r`` of its gradient."""
    model = _model(problem)

    def one(block: Block, z: Array) -> tuple[Array, Array]:
        m = block.y.shape[1]
        own = z[:, 0, :m] if model.loss.outputs == 1 else z[..., :m]
        value, slope = model.loss.value_and_gradient(own, block.y)
        slope = (slope * block.w)[:, None, :] if model.loss.outputs == 1 else slope * block.w[:, None, :]
        return array_namespace(z).sum(block.w * value, axis=-1), _pad(slope, z)

    value, slopes = _rows(problem).sum(one, z)
    return value + 0.5 * client_dot(v, origin - z), slopes - v


def _kernel(problem: LocalProblem, v: Array) -> Array:
    """Return ``X_j X_j' v_j``, padded like ``v``."""

    def one(block: Any, v: Array) -> tuple[Array]:
        return (_pad(block.kernel(v[..., : block.y.shape[1]]), v),)

    return _rows(problem).sum(one, v)[0]


def _pulled(problem: LocalProblem, v: Array) -> Array:
    """Return ``X_j' v_j``, shape ``(N, k, p)``."""
    return _rows(problem).sum(lambda block, v: (block.pull_back(v[..., : block.y.shape[1]]),), v)[0]


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
