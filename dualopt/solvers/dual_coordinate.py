"""Dual coordinate ascent: the local solver for nonsmooth losses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from dualopt.arrays._checks import Typed
from dualopt.arrays.streams import Round, first_round
from dualopt.arrays.xp import Array, array_namespace, asarray_like, csr_matrix, device, is_sparse, to_numpy
from dualopt.objectives.local_problem import LocalProblem
from dualopt.solvers._dual_rows import (
    DualRows,
    at_dual,
    curvatures,
    dual_solution,
    feasible,
    measured,
    model_of,
    pad,
    padded,
    require_dual,
    zero_duals,
)
from dualopt.solvers._loop import LocalSolution, drive
from dualopt.solvers.stopping import Stop

__all__ = ["DualCoordinate"]


class State(NamedTuple):
    """Iterates of all clients."""

    client: Array  # (N,)  position in the call, which names the random stream
    at: DualRows
    theta: Array  # (N, p)  the primal point that belongs to the dual variables
    gradients: Array
    stalled: Array


@dataclass(frozen=True, kw_only=True)
class DualCoordinate(Typed):
    r"""Stochastic dual coordinate ascent (Shalev-Shwartz and Zhang 2013), for any scalar loss of a linear model.

    With :math:`\bar\mu = \mu + \text{weight}` and a dual variable :math:`u_i` for each row, the primal point is
    :math:`\theta(u) = -(\text{linear term} + X^\top W u)/\bar\mu`. One row at a time, in a random order of its client,
    the dual is maximised exactly. With :math:`q = w_i |x_i|^2/\bar\mu` and
    :math:`v = \langle x_i, \theta\rangle + q u_i` that is, by Moreau's identity, a proximal step of the loss itself:

    .. math:: u_i \leftarrow (v - \operatorname{prox}_{q\phi}(v))/q.

    The gap is the sum of the Fenchel-Young gaps :math:`w_i(\phi(z_i) + \phi^*(u_i) - u_i z_i) \ge 0`, free of
    cancellation. The returned point is already dual-corrected: the ``gradient`` of its evaluation, made from the dual
    variables, is zero, and ``grad_f`` a subgradient up to the gap. An epoch counts as two gradients: one for the steps,
    one for the gap. Dual variables are kept between rounds.

    Clients are worked on together, one row of each at a time.

    Parameters
    ----------
    max_iter : int, default 1000
        Largest number of epochs in one call.

    Raises
    ------
    ValueError
        If the objective is not a linear model with a scalar loss, of bounded slopes or second derivatives, and
        ``mu + weight > 0``.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt.losses import Hinge
    >>> from dualopt.objectives import LocalProblem, linear_model
    >>> from dualopt.solvers.stopping import Gap
    >>> f = linear_model(np.array([[1.0], [-1.0]]), np.array([1.0, -1.0]), loss=Hinge(), mu=0.5, intercept=False)
    >>> stop = Gap(schedule=lambda round: 1e-12)
    >>> sol = DualCoordinate()(LocalProblem(objective=f), np.zeros((1, 1)), stop)
    >>> sol.theta.round(6).tolist(), sol.status
    ([[1.0]], ('converged',))
    """

    max_iter: int = 1000

    def initial_state(self, objective: Any) -> Any:
        """Return zero dual variables, shape ``(N, largest m_j)``."""
        return (zero_duals("dual-coordinate", objective),)

    def __call__(
        self, problem: LocalProblem, start: Array, stop: Stop, solver_state: Any = (), round: Round | None = None
    ) -> LocalSolution:
        """Run epochs from the dual variables of earlier calls; the primal ``start`` is not needed."""
        require_dual("dual-coordinate", problem)
        xp = array_namespace(start)
        # From one all-feasible point: u = 0 is in the domain of hinge-type conjugates, but not of every loss.
        (u,) = solver_state or self.initial_state(problem.objective)
        rngs = (round or first_round(problem.n_clients)).rngs()
        clients = asarray_like(range(problem.n_clients), start, dtype=xp.int64)
        first, zero = at_dual(problem, feasible(problem, u)), xp.zeros_like(problem.mu)
        state = State(clients, first, first.theta, zero, xp.zeros_like(zero, dtype=xp.bool))

        def epoch(problem: LocalProblem, s: State) -> State:
            sizes = model_of(problem).sizes
            orders = [rngs[int(c)].permutation(m) for c, m in zip(to_numpy(s.client), sizes, strict=True)]
            moved = at_dual(problem, _sweep(problem, s.at, orders))
            return s._replace(at=moved, theta=moved.theta, gradients=s.gradients + 2.0)

        state, status = drive(epoch, problem, state, stop, round, max_iter=self.max_iter, measure=measured)
        return dual_solution(problem, state.at, gradients=state.gradients, status=status, solver_state=(state.at.u,))


def _sweep(problem: LocalProblem, s: DualRows, orders: list[Any]) -> Array:
    """Maximise over one row of every client after the other, each client in its own order."""
    xp = array_namespace(s.u)
    loss = model_of(problem).loss
    columns = s.u.shape[1]
    features, labels, weights, duals, inverse = [], [], [], [], []
    for j, (X, y, w, extra) in enumerate(padded(problem, columns)):
        order = asarray_like(orders[j], w, dtype=xp.int64)
        features.append(X[order] if is_sparse(X) else pad(xp.take(X, order, axis=0), extra))
        labels.append(pad(xp.take(y, order, axis=0), extra))
        weight = xp.take(w, order, axis=0)
        weights.append(xp.concat([weight, xp.zeros((extra,), dtype=w.dtype, device=device(w))]) if extra else weight)
        whole = xp.concat([order, asarray_like(range(X.shape[0], columns), order)]) if extra else order
        duals.append(xp.take(s.u[j, :], whole, axis=0))
        inverse.append(xp.argsort(whole))
    theta = s.theta
    if problem.objective.free_intercept:  # in units in which all columns are held alike
        units = xp.sqrt(curvatures(problem) / problem.mu[:, None])
        features, theta = [_divided(X, units[j, :]) for j, X in enumerate(features)], units * theta
    rows = _SparseRows(features, columns) if is_sparse(features[0]) else _DenseRows(xp.stack(features, axis=1))
    y, w, u = (xp.matrix_transpose(xp.stack(part)) for part in (labels, weights, duals))
    q = w * rows.squares / problem.mu
    # A larger q is only a shorter step, and keeps the division safe for rows that are nearly zero.
    q = xp.maximum(q, 1e-3 * xp.max(q, axis=0))
    length = w / problem.mu
    theta, new = rows.begin(theta), []
    for i in range(columns):
        q_i, old = q[i, :], u[i, :]
        v = rows.product(i, theta) + q_i * old
        updated = (v - loss.prox(v, y[i, :], q_i)) / q_i
        theta = rows.subtract(i, theta, length[i, :] * (updated - old))
        new.append(updated)
    by_client = xp.matrix_transpose(xp.stack(new))
    u_next = xp.stack([xp.take(by_client[j, :], inverse[j], axis=0) for j in range(len(inverse))])
    return feasible(problem, u_next)


def _divided(X: Any, units: Array) -> Any:
    """Return rows with each column divided by a number."""
    if is_sparse(X):
        return csr_matrix(X.data / units[X.indices], X.indices, X.indptr, X.shape)
    return X / units


class _DenseRows:
    """One row of every client at a time; ``X`` has shape ``(m, N, p)``, so that a step reads one contiguous slice."""

    def __init__(self, X: Array) -> None:
        self.X, self.squares = X, array_namespace(X).sum(X * X, axis=-1)

    def begin(self, theta: Array) -> Array:
        """Return the models in the form of the steps."""
        return theta

    def product(self, i: int, theta: Array) -> Array:
        """Return ``<x_ji, theta_j>``, shape ``(N,)``."""
        return array_namespace(theta).vecdot(self.X[i, ...], theta)

    def subtract(self, i: int, theta: Array, factors: Array) -> Array:
        """Return ``theta_j - factor_j x_ji``."""
        return theta - factors[:, None] * self.X[i, ...]


class _SparseRows:
    """One row of every client at a time, as the places of its features in the models and its entries.

    Rows with fewer features than the longest are padded with the place of a number that does not count.
    """

    def __init__(self, matrices: list[Any], columns: int) -> None:
        xp, n = array_namespace(matrices[0].data), len(matrices)
        p = matrices[0].shape[1]
        width = max(1, *(int(xp.max(X.indptr[1:] - X.indptr[:-1])) for X in matrices))
        like = matrices[0].data
        self.X = xp.zeros((columns, n, width), dtype=like.dtype, device=device(like))
        self.places = xp.full((columns, n, width), n * p, dtype=xp.int64, device=device(like))
        for j, X in enumerate(matrices):
            entries = xp.arange(X.data.shape[0], dtype=X.indptr.dtype, device=device(like))
            rows = xp.searchsorted(X.indptr[1:], entries, side="right")
            within = entries - X.indptr[rows]
            self.X[rows, j, within] = X.data
            self.places[rows, j, within] = X.indices + j * p
        self.squares = xp.sum(self.X * self.X, axis=-1)

    def begin(self, theta: Array) -> Array:
        """Return a copy of all models, one after the other, which the steps change, and the number for the padding."""
        xp = array_namespace(theta)
        return xp.concat([xp.reshape(theta, (-1,)), xp.zeros((1,), dtype=theta.dtype, device=device(theta))])

    def product(self, i: int, theta: Array) -> Array:
        """Return ``<x_ji, theta_j>``, shape ``(N,)``."""
        return array_namespace(theta).vecdot(self.X[i, ...], theta[self.places[i, ...]])

    def subtract(self, i: int, theta: Array, factors: Array) -> Array:
        """Return ``theta_j - factor_j x_ji``, in place: only the features of these rows change."""
        theta[self.places[i, ...]] -= factors[:, None] * self.X[i, ...]
        return theta
