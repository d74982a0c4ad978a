"""Dual coordinate ascent: the local solver for nonsmooth losses."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from dualopt.arrays._checks import Typed
from dualopt.arrays.streams import Round, first_round
from dualopt.arrays.xp import Array, array_namespace, asarray_like, device, is_sparse, to_numpy
from dualopt.objectives._rounding import client_norm, gamma
from dualopt.objectives.linear import LinearModel
from dualopt.objectives.local_problem import Evaluation, LocalProblem, per_client
from dualopt.objectives.rows import predictors, pulled_back, row_norms
from dualopt.solvers._loop import LocalSolution, drive
from dualopt.solvers.stopping import Stop

__all__ = ["DualCoordinate"]


class State(NamedTuple):
    """Iterates of all clients; rows are padded to the largest client with rows of weight zero."""

    client: Array  # (N,)  position in the call, which names the random stream
    u: Array  # (N, m)  dual variables of the rows
    theta: Array  # (N, p)  the primal point that belongs to u
    f: Array  # (N,)  f_j(theta_j)
    value: Array  # (N,)  F_j(theta_j)
    gap: Array  # (N,)  primal minus dual value
    pull: Array  # (N, p)  X'Wu, a subgradient of f_j - mu/2 |.|^2 up to the gap
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
        If the objective is not a linear model with a scalar loss and ``mu + weight > 0``.

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
        if not isinstance(objective, LinearModel) or objective.loss.outputs != 1:
            raise ValueError("solver 'dual-coordinate' needs a linear model with a scalar loss, such as hinge.")
        if objective.free_intercept:
            raise ValueError("solver 'dual-coordinate' needs a ridge on all columns, an intercept among them.")
        zero = objective.zeros()
        shape = (objective.n_clients, objective.rows.max_rows)
        return (array_namespace(zero).zeros(shape, dtype=zero.dtype, device=device(zero)),)

    def __call__(
        self, problem: LocalProblem, start: Array, stop: Stop, solver_state: Any = (), round: Round | None = None
    ) -> LocalSolution:
        """Run epochs from the dual variables of earlier calls; the primal ``start`` is not needed."""
        if not float(array_namespace(problem.mu).min(problem.mu)) > 0:
            raise ValueError("solver 'dual-coordinate' needs mu > 0.")
        xp = array_namespace(start)
        # From one all-feasible point: u = 0 is in the domain of hinge-type conjugates, but not of every loss.
        (u,) = solver_state or self.initial_state(problem.objective)
        u = _project(problem, u)
        zero = xp.zeros_like(problem.mu)
        rngs = (round or first_round(problem.n_clients)).rngs()
        clients = asarray_like(range(problem.n_clients), start, dtype=xp.int64)
        state = State(clients, u, start, zero, zero, zero, start, zero, xp.zeros_like(zero, dtype=xp.bool))
        state = _evaluate(problem, state)

        def epoch(problem: LocalProblem, s: State) -> State:
            orders = [
                rngs[int(c)].permutation(m) for c, m in zip(to_numpy(s.client), _model(problem).sizes, strict=True)
            ]
            moved = _evaluate(problem, _sweep(problem, s, orders))
            return moved._replace(gradients=s.gradients + 2.0)

        state, status = drive(
            epoch,
            problem,
            state,
            stop,
            round,
            max_iter=self.max_iter,
            measure=lambda p, s: (s.value, xp.sqrt(2.0 * p.mu * s.gap), xp.abs(s.f) + xp.abs(s.value - s.f)),
        )
        grad_f = state.pull + per_client(problem.objective.mu, state.pull) * state.theta
        return LocalSolution(
            theta=state.theta,
            evaluation=Evaluation(state.f, grad_f, state.value, xp.zeros_like(state.theta)),
            bound=state.gap,
            length=None,
            solver_state=(state.u,),
            gradients=tuple(float(x) for x in to_numpy(state.gradients)),
            status=status,
            excess=state.gap + _rounding(problem, state),
        )


def _model(problem: LocalProblem) -> LinearModel:
    assert isinstance(problem.objective, LinearModel)  # initial_state() has refused anything else
    return problem.objective


def _padded(problem: LocalProblem, columns: int) -> Iterator[tuple[Array, Array, Array, int]]:
    """Yield X, y, w and the number of padding rows of each client."""
    for X, y, w in _model(problem).client_rows():
        yield X, y, w, columns - X.shape[0]


def _pad(x: Array, rows: int) -> Array:
    if rows == 0:
        return x
    xp = array_namespace(x)
    return xp.concat([x, xp.ones((rows, *x.shape[1:]), dtype=x.dtype, device=device(x))], axis=0)


def _project(problem: LocalProblem, u: Array) -> Array:
    """Bring dual variables into the domain of the conjugate, leaving feasible ones alone; padding stays zero."""
    xp = array_namespace(u)
    loss = _model(problem).loss
    rows = []
    for j, (X, y, _, extra) in enumerate(_padded(problem, u.shape[1])):
        own = u[j, : X.shape[0]]
        feasible = xp.isfinite(loss.conjugate(own, y))
        own = xp.where(feasible, own, loss.gradient(xp.zeros_like(own), y))
        rows.append(xp.concat([own, xp.zeros((extra,), dtype=u.dtype, device=device(u))]) if extra else own)
    return xp.stack(rows)


def _evaluate(problem: LocalProblem, s: State) -> State:
    """Compute everything that belongs to the dual variables."""
    xp = array_namespace(s.u)
    loss = _model(problem).loss
    rows = enumerate(_model(problem).client_rows())
    pull = xp.stack([pulled_back(w * s.u[j, : X.shape[0]], X) for j, (X, _, w) in rows])
    theta = -(problem.linear_term() + pull) / per_client(problem.mu, pull)
    gaps = []
    for j, (X, y, w, _) in enumerate(_padded(problem, s.u.shape[1])):
        u = s.u[j, : X.shape[0]]
        z = predictors(X, theta[j, :])
        conjugate = loss.conjugate(u, y)
        gaps.append(xp.sum(w * xp.maximum(loss.value(z, y) + conjugate - u * z, xp.zeros_like(z))))
    f = problem.objective.value(theta)
    value = problem.extend(theta, f, pull).value
    return s._replace(theta=theta, f=f, value=value, gap=xp.stack(gaps), pull=pull)


def _rounding(problem: LocalProblem, s: State) -> Array:
    r"""Bound what rounding may have taken from the gaps, shape ``(N,)``.

    Row ``i`` has three terms, right to ``16 eps`` of what they are made of, at a predictor that is right to
    :math:`\gamma_p |x_i| |\theta|`; that changes :math:`\phi(z) - u z` by at most the sum of both slopes times it.
    The sum over the rows has positive terms.
    """
    xp, loss, length = array_namespace(s.u), _model(problem).loss, client_norm(s.theta)
    entropic = loss.labels == "binary" and math.isfinite(loss.curvature)  # then conjugates have terms of size 1
    bounds = []
    for j, (X, y, w, _) in enumerate(_padded(problem, s.u.shape[1])):
        u, z = s.u[j, : X.shape[0]], predictors(X, s.theta[j, :])
        value, slope = loss.value_and_gradient(z, y)
        shift = gamma(X.shape[1] + 2, u) * row_norms(X) * length[j]
        size = xp.abs(u)
        terms = xp.abs(value) + size * (xp.abs(z) + xp.abs(y) + size) + float(entropic)
        room = gamma(32, u) * terms + (xp.abs(slope) + size) * shift
        if math.isfinite(loss.curvature):
            room = room + loss.curvature * shift * shift
        bounds.append(xp.sum(w * room))
    return xp.stack(bounds) + gamma(s.u.shape[1], s.u) * s.gap


def _sweep(problem: LocalProblem, s: State, orders: list[Any]) -> State:
    """Maximise over one row of every client after the other, each client in its own order."""
    xp = array_namespace(s.u)
    loss = _model(problem).loss
    columns = s.u.shape[1]
    features, labels, weights, duals, inverse = [], [], [], [], []
    for j, (X, y, w, extra) in enumerate(_padded(problem, columns)):
        order = asarray_like(orders[j], w, dtype=xp.int64)
        features.append(X[order] if is_sparse(X) else _pad(xp.take(X, order, axis=0), extra))
        labels.append(_pad(xp.take(y, order, axis=0), extra))
        weight = xp.take(w, order, axis=0)
        weights.append(xp.concat([weight, xp.zeros((extra,), dtype=w.dtype, device=device(w))]) if extra else weight)
        whole = xp.concat([order, asarray_like(range(X.shape[0], columns), order)]) if extra else order
        duals.append(xp.take(s.u[j, :], whole, axis=0))
        inverse.append(xp.argsort(whole))
    rows = _SparseRows(features, columns) if is_sparse(features[0]) else _DenseRows(xp.stack(features, axis=1))
    y, w, u = (xp.matrix_transpose(xp.stack(part)) for part in (labels, weights, duals))
    q = w * rows.squares / problem.mu
    # A larger q is only a shorter step, and keeps the division safe for rows that are nearly zero.
    q = xp.maximum(q, 1e-3 * xp.max(q, axis=0))
    length = w / problem.mu
    theta, new = rows.begin(s.theta), []
    for i in range(columns):
        q_i, old = q[i, :], u[i, :]
        v = rows.product(i, theta) + q_i * old
        updated = (v - loss.prox(v, y[i, :], q_i)) / q_i
        theta = rows.subtract(i, theta, length[i, :] * (updated - old))
        new.append(updated)
    by_client = xp.matrix_transpose(xp.stack(new))
    u_next = xp.stack([xp.take(by_client[j, :], inverse[j], axis=0) for j in range(len(inverse))])
    return s._replace(u=_project(problem, u_next))


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
