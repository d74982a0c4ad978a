"""An interior-point method: the local solver for losses with one kink and few columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from dualopt.arrays._checks import Typed
from dualopt.arrays.streams import Round
from dualopt.arrays.xp import Array, array_namespace, device, epsilon
from dualopt.objectives.local_problem import LocalProblem, per_client
from dualopt.solvers._dual_rows import (
    DualRows,
    at_dual,
    curvatures,
    dual_solution,
    feasible,
    measured,
    model_of,
    require_dual,
    zero_duals,
)
from dualopt.solvers._loop import LocalSolution, drive
from dualopt.solvers.stopping import Stop

__all__ = ["InteriorPoint", "suits"]

BOUNDARY = 0.995
"""Part of the way to the boundary of the domain that a step may go."""

MARGIN = 1e-4
"""Part of the width of the domain by which dual variables of an earlier call are moved inside."""

LARGEST = 256
"""Columns up to which this is the default: a step forms and inverts a matrix of this size for each client."""


class State(NamedTuple):
    """Iterates of all clients; padding rows have weight zero."""

    at: DualRows  # what is returned: the dual variables of the least gap so far
    theta: Array  # (N, p)  their primal point
    u: Array  # (N, m)  strictly inside the domain
    above: Array  # (N, m)  s+ and s-, with z - y = s+ - s-
    below: Array  # (N, m)
    gradients: Array
    stalled: Array


@dataclass(frozen=True, kw_only=True)
class InteriorPoint(Typed):
    r"""Mehrotra's predictor-corrector method for losses with one kink at the label: quantile, absolute and hinge.

    Such a loss is :math:`\phi(z) = \max_{a \le u \le b} u (z - y)`. With :math:`\bar\mu = \mu + \text{weight}`, in the
    column of a free intercept the weight alone, the dual of the local problem is a quadratic problem with bounds, and
    with :math:`\theta(u) = -(\text{linear term} + X^\top W u)/\bar\mu` its solution has

    .. math:: x_i\theta(u) - y_i = s_i^+ - s_i^-, \qquad s_i^+ (b_i - u_i) = s_i^- (u_i - a_i) = 0,
              \qquad s_i^+, s_i^- \ge 0.

    Products are led to zero through positive numbers by Newton's method; the first line is linear in ``u`` and holds at
    every step. With :math:`D_i = s_i^+/(b_i - u_i) + s_i^-/(u_i - a_i)` a step uses the inverse of
    :math:`\bar\mu I + X^\top W D^{-1} X`, one matrix of the size of the model for each client, twice: for the
    predictor, and for the corrector, whose target is the mean product times the cube of the part of it that the
    predictor would leave (Mehrotra 1992, "On the implementation of a primal-dual interior point method"). In practice
    ten to twenty steps suffice from the start. Gaps are sums of Fenchel-Young gaps, and the returned point is
    dual-corrected, as those of ``DualCoordinate`` are. Dual variables are kept between rounds, and moved a little
    inside.

    A step counts as ``3 + p/2`` gradients: its products with the rows, and the matrix.

    Parameters
    ----------
    max_iter : int, default 100
        Largest number of steps in one call.

    Raises
    ------
    ValueError
        If the objective is not a linear model with dense rows and a loss with one kink at the label
        (``kink_at_label``), or ``mu + weight`` is not positive.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt.losses import Quantile
    >>> from dualopt.objectives import LocalProblem, linear_model
    >>> from dualopt.solvers.stopping import Gap
    >>> X, y = np.ones((5, 1)), np.array([1.0, 2.0, 3.0, 4.0, 50.0])
    >>> f = linear_model(X, y, loss=Quantile(level=0.7), mu=1e-3, intercept=False)
    >>> sol = InteriorPoint()(LocalProblem(objective=f), np.zeros((1, 1)), Gap(schedule=lambda round: 1e-12))
    >>> sol.theta.round(6).tolist(), sol.status
    ([[4.0]], ('converged',))
    """

    max_iter: int = 100

    def initial_state(self, objective: Any) -> Any:
        """Return zero dual variables, shape ``(N, largest m_j)``."""
        zero = zero_duals("interior-point", objective)
        if not getattr(objective.loss, "kink_at_label", False):
            raise ValueError(
                f"solver 'interior-point' needs a loss with one kink at the label, such as quantile, not "
                f"{objective.loss}; use solver 'lbfgs' for a smooth loss, 'dual-coordinate' for another one with kinks."
            )
        if objective.rows.is_sparse:
            raise ValueError("solver 'interior-point' needs dense rows; use solver 'dual-coordinate'.")
        return (zero,)

    def __call__(
        self, problem: LocalProblem, start: Array, stop: Stop, solver_state: Any = (), round: Round | None = None
    ) -> LocalSolution:
        """Run the method from the dual variables of earlier calls; the primal ``start`` is not needed."""
        (u,) = solver_state or self.initial_state(problem.objective)
        require_dual("interior-point", problem)
        state, status = drive(
            _step, problem, _begin(problem, feasible(problem, u)), stop, round, max_iter=self.max_iter, measure=measured
        )
        return dual_solution(problem, state.at, gradients=state.gradients, status=status, solver_state=(state.at.u,))


def suits(objective: Any) -> bool:
    """Tell whether this solver is the default for a linear model with kinks."""
    rows = getattr(objective, "rows", None)
    return objective.kink_at_label and rows is not None and not rows.is_sparse and rows.n_features <= LARGEST


def _begin(problem: LocalProblem, u: Array) -> State:
    """Return the state at dual variables moved inside, with slacks of the size of the mean product."""
    xp, at = array_namespace(u), at_dual(problem, u)
    zero = xp.zeros_like(problem.mu)

    def one(c: _Client) -> tuple[Array, ...]:
        width = c.high - c.low
        inside = xp.clip(c.rows(u), c.low + MARGIN * width, c.high - MARGIN * width)
        residual = c.residual(c.point(inside))
        above, below = xp.maximum(residual, 0.0), xp.maximum(-residual, 0.0)
        products = xp.vecdot(c.w, above * (c.high - inside) + below * (inside - c.low))
        more = xp.maximum(products / xp.vecdot(c.w, 0.5 * width), epsilon(u) * (1.0 + xp.max(xp.abs(c.y), axis=-1)))
        return c.pad(inside), c.pad(above + more[:, None]), c.pad(below + more[:, None])

    inside, above, below = _by_part(problem, u, one)
    return State(at, at.theta, inside, above, below, zero + 1.0, xp.zeros_like(zero, dtype=xp.bool))


def _step(problem: LocalProblem, s: State) -> State:
    """Take one step of every client."""
    xp = array_namespace(s.u)
    failed, *inner = _by_part(problem, s.u, lambda c: _moved(c, *map(c.rows, (s.u, s.above, s.below))))
    u, above, below, theta, f, gap, pull = inner
    model = model_of(problem)
    f = f + 0.5 * model.ridge * xp.vecdot(theta, model.held(theta))
    new = DualRows(u, theta, f, problem.extend(theta, f, pull).value, gap, pull)
    better = gap < s.at.gap  # False for NaN
    at = new if bool(xp.all(better)) else _chosen(better, new, s.at)
    gradients = s.gradients + (3.0 + 0.5 * theta.shape[1])
    return State(at, at.theta, u, above, below, gradients, failed > 0)


def _chosen(better: Array, new: DualRows, old: DualRows) -> DualRows:
    """Return the new variables of some clients, the old ones of the others."""
    xp = array_namespace(better)
    return DualRows(*(xp.where(per_client(better, a), a, b) for a, b in zip(new, old, strict=True)))


class _Client(NamedTuple):
    """Clients of equal size of a local problem, with the slopes of their losses on both sides of the kink."""

    part: Any
    width: int
    y: Array
    w: Array
    low: Array
    high: Array
    mu: Array  # (c,)  the least curvature of all but the losses
    held: Array  # (c, p) or (c, 1)  those of the columns
    linear: Array
    longest: Array  # (c,)  a bound of the lengths of the rows

    def rows(self, x: Array) -> Array:
        """Return the entries of these clients without padding."""
        return self.part.block.clients.take(x)[:, : self.y.shape[1]]

    def pad(self, x: Array) -> Array:
        """Append zeros up to the rows of the largest client."""
        xp, missing = array_namespace(x), self.width - x.shape[1]
        if not missing:
            return x
        return xp.concat([x, xp.zeros((x.shape[0], missing), dtype=x.dtype, device=device(x))], axis=1)

    def forward(self, theta: Array) -> Array:
        """Return ``x_ji theta_j``, ``(c, m)``."""
        return self.part.block.predict(theta[:, None, :])[:, 0, :]

    def back(self, v: Array) -> Array:
        """Return ``sum_i v_ji x_ji``, ``(c, p)``."""
        return self.part.block.pull_back(v[:, None, :])[:, 0, :]

    def point(self, u: Array) -> Array:
        """Return ``theta(u)``."""
        return -(self.linear + self.back(self.w * u)) / self.held

    def residual(self, theta: Array) -> Array:
        """Return ``z - y``."""
        return self.forward(theta) - self.y


def _by_part(problem: LocalProblem, like: Array, function: Any) -> tuple[Array, ...]:
    """Call a function of clients of equal size for all, and put the results together."""
    model, linear, held = model_of(problem), problem.linear_term(), curvatures(problem)
    rows, loss, longest = model.rows, model.loss, model.longest_rows

    def results() -> Any:
        for _, part in rows.parts:
            clients, _, y, w = part.block
            low, high = loss.gradient(y - 1.0, y), loss.gradient(y + 1.0, y)
            own = (clients.take(x) for x in (problem.mu, held, linear, longest))
            yield clients, function(_Client(part, like.shape[1], y, w, low, high, *own))

    return rows.assemble(results())


def _moved(c: _Client, u: Array, above: Array, below: Array) -> tuple[Array, ...]:
    """Return whether nothing was gained, the variables after a step, and what belongs to them."""
    xp = array_namespace(u)
    least = 0.25 * epsilon(u) * (c.high - c.low)  # below that a distance from the boundary is rounding
    a, b = xp.maximum(c.high - u, least), xp.maximum(u - c.low, least)
    X = c.part.block.X
    # a smaller D would make entries of the matrix in which mu is rounding
    D = xp.maximum(above / a + below / b, 64.0 * epsilon(u) * c.w * (c.longest**2 / c.mu)[:, None])
    gram = xp.matmul(xp.matrix_transpose(X), X * (c.w / D)[..., None])
    matrix = gram + c.held[:, None, :] * xp.eye(X.shape[-1], dtype=u.dtype, device=device(u))
    weight = 2.0 * xp.sum(c.w, axis=-1)
    mean = xp.vecdot(c.w, above * a + below * b) / weight

    def direction(target: Array, more_above: Any, more_below: Any) -> tuple[Array, Array, Array]:
        up = (target[:, None] - more_above) / a - above
        down = (target[:, None] + more_below) / b - below
        # not by an inverse: rows at the kink have entries that grow without bound, and the error would be theirs
        shift = xp.linalg.solve(matrix, c.back(c.w * (up - down) / D)[..., None])[..., 0]
        du = (c.forward(shift) - (up - down)) / D
        return du, up + above / a * du, down - below / b * du

    def length(du: Array, d_above: Array, d_below: Array) -> Array:
        falls = (du / a, -du / b, -d_above / above, -d_below / below)
        fastest = xp.max(xp.concat(falls, axis=-1), axis=-1)
        return xp.minimum(1.0 / xp.maximum(fastest, 1e-3), xp.ones_like(fastest))

    du, d_above, d_below = direction(0.0 * mean, 0.0, 0.0)
    t = length(du, d_above, d_below)[:, None]
    left = xp.vecdot(c.w, (above + t * d_above) * (a - t * du) + (below + t * d_below) * (b + t * du)) / weight
    target = mean * (left / mean) ** 3
    du, d_above, d_below = direction(target, -du * d_above, -du * d_below)
    t = xp.minimum(BOUNDARY * length(du, d_above, d_below), xp.ones_like(mean))
    good = xp.isfinite(xp.sum(du, axis=-1)) & (t > 1e-9)
    t = t[:, None]
    if not bool(xp.all(good)):  # they stay where they are
        t = xp.where(good[:, None], t, 0.0)
        du, d_above, d_below = (xp.where(good[:, None], d, 0.0) for d in (du, d_above, d_below))
    u = xp.clip(u + t * du, c.low + least, c.high - least)
    pull = c.back(c.w * u)
    theta = -(c.linear + pull) / c.held
    residual, smaller = c.residual(theta), xp.minimum(above + t * d_above, below + t * d_below)
    smaller = xp.maximum(smaller, 1e-3 * xp.minimum(above, below))
    up, down = xp.maximum(residual, 0.0), xp.maximum(-residual, 0.0)
    f, gap = (xp.vecdot(c.w, x) for x in (c.high * up - c.low * down, (c.high - u) * up + (u - c.low) * down))
    failed = xp.astype(~good, u.dtype)
    return failed, c.pad(u), c.pad(smaller + up), c.pad(smaller + down), theta, f, gap, pull
