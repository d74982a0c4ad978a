"""What dual solvers of linear models share: points that belong to dual variables of the rows, and their gaps."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

from dualopt.arrays.xp import Array, array_namespace, device, to_numpy
from dualopt.losses._offset import label_and_offset
from dualopt.objectives._products import predictors, pulled_back, row_norms
from dualopt.objectives._rounding import client_norm, gamma
from dualopt.objectives.linear import LinearModel
from dualopt.objectives.local_problem import Evaluation, LocalProblem
from dualopt.solvers._loop import LocalSolution

__all__ = [
    "DualRows",
    "at_dual",
    "curvatures",
    "dual_solution",
    "feasible",
    "measured",
    "model_of",
    "pad",
    "padded",
    "require_dual",
    "zero_duals",
]


class DualRows(NamedTuple):
    """Dual variables of the rows, padded to the largest client with rows of weight zero, and what belongs to them."""

    u: Array  # (N, m)
    theta: Array  # (N, p)  the primal point
    f: Array  # (N,)  f_j(theta_j)
    value: Array  # (N,)  F_j(theta_j)
    gap: Array  # (N,)  primal minus dual value
    pull: Array  # (N, p)  X'Wu, a subgradient of f_j - mu/2 |.|^2 up to the gap


def model_of(problem: LocalProblem) -> LinearModel:
    """Return the linear model of a problem; ``initial_state`` of a solver has refused anything else."""
    assert isinstance(problem.objective, LinearModel)
    return problem.objective


def zero_duals(name: str, objective: Any) -> Array:
    """Return zero dual variables, ``(N, largest m_j)``; refuse what is no linear model with a suitable scalar loss."""
    if not isinstance(objective, LinearModel) or objective.loss.outputs != 1:
        raise ValueError(f"solver {name!r} needs a linear model with a scalar loss, such as hinge.")
    if math.isinf(objective.loss.lipschitz) and math.isinf(objective.loss.curvature):
        raise ValueError(
            f"solver {name!r} needs a loss whose slopes or second derivatives are bounded, "
            f"which those of {objective.loss} are not; use solver 'lbfgs' or 'newton'."
        )
    zero = objective.zeros()
    shape = (objective.n_clients, objective.rows.max_rows)
    return array_namespace(zero).zeros(shape, dtype=zero.dtype, device=device(zero))


def require_dual(name: str, problem: LocalProblem) -> None:
    """Refuse a local problem that is not strongly convex: dual variables would have no primal point."""
    if float(array_namespace(problem.mu).min(problem.mu)) > 0:
        return
    if problem.objective.free_intercept:
        raise ValueError(f"solver {name!r} needs a proximal term, such as that of FedDR, where an intercept is free.")
    raise ValueError(f"solver {name!r} needs mu > 0.")


def curvatures(problem: LocalProblem) -> Array:
    """Return the second derivatives of all but the losses, by column ``(N, p)``, or ``(N, 1)`` where they are equal.

    They are ``mu + weight``, of a free intercept the weight alone.
    """
    least, objective = problem.mu[:, None], model_of(problem)
    if not objective.free_intercept:
        return least
    xp, p = array_namespace(least), objective.n_features
    others = (objective.partial_mu + problem.weight)[:, None]
    return xp.concat([xp.broadcast_to(others, (others.shape[0], p - 1)), least], axis=1)


def padded(problem: LocalProblem, columns: int) -> Iterator[tuple[Array, Array, Array, int]]:
    """Yield X, y, w and the number of padding rows of each client."""
    for X, y, w in model_of(problem).client_rows():
        yield X, y, w, columns - X.shape[0]


def pad(x: Array, rows: int) -> Array:
    """Append rows of ones."""
    if rows == 0:
        return x
    xp = array_namespace(x)
    return xp.concat([x, xp.ones((rows, *x.shape[1:]), dtype=x.dtype, device=device(x))], axis=0)


def feasible(problem: LocalProblem, u: Array) -> Array:
    """Bring dual variables into the domain of the conjugate, leaving feasible ones alone; padding stays zero."""
    xp = array_namespace(u)
    loss = model_of(problem).loss
    rows = []
    for j, (X, y, _, extra) in enumerate(padded(problem, u.shape[1])):
        own = u[j, : X.shape[0]]
        inside = xp.isfinite(loss.conjugate(own, y))
        own = xp.where(inside, own, loss.gradient(xp.zeros_like(own), y))
        rows.append(xp.concat([own, xp.zeros((extra,), dtype=u.dtype, device=device(u))]) if extra else own)
    return xp.stack(rows)


def at_dual(problem: LocalProblem, u: Array) -> DualRows:
    r"""Compute everything that belongs to dual variables of the domain.

    The primal point is :math:`\theta(u) = -(\text{linear term} + X^\top W u)/\bar\mu`, with the `curvatures` of the
    columns, and the gap the sum of the Fenchel-Young gaps :math:`w_i(\phi(z_i) + \phi^*(u_i) - u_i z_i) \ge 0`, free of
    cancellation.
    """
    xp = array_namespace(u)
    loss = model_of(problem).loss
    rows = enumerate(model_of(problem).client_rows())
    pull = xp.stack([pulled_back(w * u[j, : X.shape[0]], X) for j, (X, _, w) in rows])
    theta = -(problem.linear_term() + pull) / curvatures(problem)
    gaps = []
    for j, (X, y, w, _) in enumerate(padded(problem, u.shape[1])):
        own = u[j, : X.shape[0]]
        z = predictors(X, theta[j, :])
        conjugate = loss.conjugate(own, y)
        gaps.append(xp.sum(w * xp.maximum(loss.value(z, y) + conjugate - own * z, xp.zeros_like(z))))
    f = problem.objective.value(theta)
    value = problem.extend(theta, f, pull).value
    return DualRows(u, theta, f, value, xp.stack(gaps), pull)


def measured(problem: LocalProblem, state: Any) -> tuple[Array, Array, Array]:
    """Return values, norms of gradients that would have the same gaps, and the sizes of the terms of values."""
    xp, s = array_namespace(problem.mu), state.at
    return s.value, xp.sqrt(2.0 * problem.mu * s.gap), xp.abs(s.f) + xp.abs(s.value - s.f)


def dual_solution(
    problem: LocalProblem, found: DualRows, *, gradients: Array, status: tuple[str, ...], solver_state: Any
) -> LocalSolution:
    """Complete a solution; its ``grad_f`` is a subgradient up to the gap, and its gradient, from the duals, is zero."""
    xp = array_namespace(found.u)
    model = model_of(problem)
    grad_f = found.pull + model.ridge * model.held(found.theta)
    return LocalSolution(
        theta=found.theta,
        evaluation=Evaluation(found.f, grad_f, found.value, xp.zeros_like(found.theta)),
        bound=found.gap,
        length=None,
        solver_state=solver_state,
        gradients=tuple(float(x) for x in to_numpy(gradients)),
        status=status,
        excess=found.gap + _rounding(problem, found),
    )


def _rounding(problem: LocalProblem, s: DualRows) -> Array:
    r"""Bound what rounding may have taken from the gaps, shape ``(N,)``.

    Row ``i`` has three terms, right to ``16 eps`` of what they are made of, at a predictor that is right to
    :math:`\gamma_p |x_i| |\theta|`; that changes :math:`\phi(z) - u z` by at most the sum of both slopes times it.
    The sum over the rows has positive terms.
    """
    xp, loss, length = array_namespace(s.u), model_of(problem).loss, client_norm(s.theta)
    entropic = loss.labels == "binary" and math.isfinite(loss.curvature)  # then conjugates have terms of size 1
    bounds = []
    for j, (X, y, w, _) in enumerate(padded(problem, s.u.shape[1])):
        u, z = s.u[j, : X.shape[0]], predictors(X, s.theta[j, :])
        value, slope = loss.value_and_gradient(z, y)
        offset = xp.abs(label_and_offset(y)[1] + 0.0 * z)
        shift = gamma(X.shape[1] + 2, u) * row_norms(X) * length[j] + gamma(2, u) * offset
        size = xp.abs(u)
        terms = xp.abs(value) + size * (xp.abs(z) + xp.abs(y) + size) + float(entropic)
        room = gamma(32, u) * terms + (xp.abs(slope) + size) * shift
        if math.isfinite(loss.curvature):
            room = room + loss.curvature * shift * shift
        bounds.append(xp.sum(w * room))
    return xp.stack(bounds) + gamma(s.u.shape[1], s.u) * s.gap
