"""An interior-point method: the local solver for losses with one kink and few columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from dualopt.arrays._checks import Typed
from dualopt.arrays.streams import Round
from dualopt.arrays.tree import take_clients
from dualopt.arrays.xp import Array, array_namespace, epsilon, host_places, to_numpy
from dualopt.objectives.local_problem import LocalProblem, per_client
from dualopt.solvers._dual_rows import (
    DualRows,
    at_dual,
    dual_solution,
    feasible,
    measured,
    model_of,
    require_dual,
    zero_duals,
)
from dualopt.solvers._kinks import Kinked, by_part, matrix, on_face
from dualopt.solvers._loop import LocalSolution, assemble, drive
from dualopt.solvers.stopping import Stop

__all__ = ["InteriorPoint", "suits"]

BOUNDARY = 0.995
"""Part of the way to the boundary of the domain that a step may go."""

MARGIN = 1e-4
"""Part of the width of the domain by which dual variables of an earlier call are moved inside."""

PATIENCE = 3
"""Steps on faces that may fail to halve the gap in one call."""

LARGEST = 256
"""Columns up to which this is the default: a step forms and inverts a matrix of this size for each client."""


class State(NamedTuple):
    """Iterates of all clients; padding rows have weight zero."""

    at: DualRows  # what is returned: the dual variables of the least gap so far
    failures: Array  # (N,)  steps on faces that did not halve the gap; from PATIENCE on steps are in the interior
    u: Array  # (N, m)  strictly inside the domain; before a step on a face anywhere: what is outside is at a bound
    above: Array  # (N, m)  s+ and s-, with z - y = s+ - s-; unused before a step on a face
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
    ten to twenty steps suffice from the start.

    **Faces.** Inside, the gap comes from dual variables that are off by the barrier, and :math:`\theta(u)` is off by
    :math:`\sqrt{2\,\text{gap}/\bar\mu}`, all that the gap admits: a method with momentum adds such errors up. So
    solutions are sought on faces of the domain, where nothing but residuals of few rows is left of the gap. The face of
    numbers :math:`v_i` has the rows :math:`a_i < v_i < b_i` at the kink, and the others at the nearest bound. If the
    former, ``K``, are at most as many as columns, a step solves :math:`x_i\theta(u) = y_i` for their :math:`u_i` (by
    a proximal step of length :math:`\epsilon^{-1/2}\bar\mu/\max|x_i|^2`, which is defined where ``K`` has
    dependent rows), projects them on the domain, and has for the next face :math:`v_i = u_i` of before the projection,
    for rows out of ``K`` the :math:`u_i + (x_i\theta - y_i)\bar\mu/(w_i\max|x_i|^2)` of the solution: a primal-dual
    active set method (Hintermüller, Ito and Kunisch 2003). A call begins with the face of the last one, and goes
    into the interior when three steps have not halved the gap. There every step tries the face that it
    suggests, by the same formula. The point of the least gap is returned.

    Gaps are sums of Fenchel-Young gaps, and the returned point is dual-corrected, as those of ``DualCoordinate`` are.
    Dual variables are kept between rounds, and in the interior moved a little inside.

    A step counts as ``3 + p/2`` gradients, its products with the rows, and the matrix; one in the interior that tries a
    face counts twice.

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
            _step, problem, _start(problem, feasible(problem, u)), stop, round, max_iter=self.max_iter, measure=measured
        )
        return dual_solution(problem, state.at, gradients=state.gradients, status=status, solver_state=(state.at.u,))


def suits(objective: Any) -> bool:
    """Tell whether this solver is the default for a linear model with kinks."""
    rows = getattr(objective, "rows", None)
    return objective.kink_at_label and rows is not None and not rows.is_sparse and rows.n_features <= LARGEST


def _start(problem: LocalProblem, u: Array) -> State:
    """Return the state at dual variables: on their face, on one that they suggest, or in the interior."""
    xp, at = array_namespace(u), at_dual(problem, u)
    zero = xp.zeros_like(problem.mu)

    def one(c: Kinked) -> tuple[Array, ...]:
        rows = c.rows(u)
        v = xp.where(c.inside(rows)[1][:, None], rows, c.prolonged(rows, c.residual(c.point(rows))))
        return xp.astype(c.inside(v)[1], u.dtype), c.pad(v)

    few, v = by_part(problem, u, one)
    off = xp.zeros_like(zero, dtype=xp.bool)
    state = State(at, xp.where(few > 0, zero, zero + PATIENCE), v, u, u, zero + 1.0, off)
    return state if bool(xp.all(few > 0)) else _begun(problem, state, few <= 0)


def _begun(problem: LocalProblem, s: State, chosen: Array) -> State:
    """Begin in the interior at the best dual variables moved inside, with slacks of the size of the mean product."""
    xp = array_namespace(s.u)

    def one(c: Kinked) -> tuple[Array, ...]:
        width, u = c.high - c.low, c.rows(s.at.u)
        inside = xp.clip(u, c.low + MARGIN * width, c.high - MARGIN * width)
        residual = c.residual(c.point(inside))
        above, below = xp.maximum(residual, 0.0), xp.maximum(-residual, 0.0)
        products = xp.vecdot(c.w, above * (c.high - inside) + below * (inside - c.low))
        more = xp.maximum(products / xp.vecdot(c.w, 0.5 * width), epsilon(u) * (1.0 + xp.max(xp.abs(c.y), axis=-1)))
        return c.pad(inside), c.pad(above + more[:, None]), c.pad(below + more[:, None])

    begun = by_part(problem, s.u, one)
    u, above, below = (
        xp.where(chosen[:, None], new, old) for new, old in zip(begun, (s.u, s.above, s.below), strict=True)
    )
    return s._replace(failures=xp.where(chosen, PATIENCE + 0.0 * s.failures, s.failures), u=u, above=above, below=below)


def _step(problem: LocalProblem, s: State) -> State:
    """Take one step of every client, on its face or in the interior."""
    faces = to_numpy(s.failures) < PATIENCE
    if faces.all():
        return _face_step(problem, s)
    if not faces.any():
        return _interior_step(problem, s)
    groups = [(_face_step, host_places(faces)), (_interior_step, host_places(~faces))]
    return assemble([(places, step(problem.select(places), take_clients(s, places))) for step, places in groups])


def _face_step(problem: LocalProblem, s: State) -> State:
    """Solve on the face of every client; begin in the interior where that does not halve the gap."""
    xp = array_namespace(s.u)
    v, *found = by_part(problem, s.u, lambda c: on_face(c, c.rows(s.u)))
    new = _complete(problem, *found)
    at = _better(new, s.at)
    failures = s.failures + xp.astype(~(new.gap <= 0.5 * s.at.gap), new.gap.dtype)  # with NaN a failure
    failures = xp.where(xp.isfinite(new.gap), failures, PATIENCE + 0.0 * failures)
    state = s._replace(at=at, failures=failures, u=v, gradients=s.gradients + _price(new))
    leave = failures >= PATIENCE
    return _begun(problem, state, leave) if bool(xp.any(leave)) else state


def _interior_step(problem: LocalProblem, s: State) -> State:
    """Take one step in the interior of every client, and try the face that it suggests."""
    xp = array_namespace(s.u)
    failed, u, above, below, few, v, *found = by_part(
        problem, s.u, lambda c: _moved(c, *map(c.rows, (s.u, s.above, s.below)))
    )
    new = _complete(problem, *found)
    at, price = _better(new, s.at), _price(new)
    gradients = s.gradients + price
    if bool(xp.any(few > 0)):
        _, *found = by_part(problem, v, lambda c: on_face(c, c.rows(v)))
        at, gradients = _better(_complete(problem, *found), at), gradients + few * price
    return State(at, s.failures, u, above, below, gradients, failed > 0)


def _price(new: DualRows) -> float:
    """Return what a step costs in gradients: its products with the rows, and the matrix."""
    return 3.0 + 0.5 * new.theta.shape[1]


def _complete(problem: LocalProblem, u: Array, theta: Array, f: Array, gap: Array, pull: Array) -> DualRows:
    """Return dual variables with what belongs to them; ``f`` comes without the ridge."""
    model = model_of(problem)
    f = f + 0.5 * model.ridge * array_namespace(u).vecdot(theta, model.held(theta))
    return DualRows(u, theta, f, problem.extend(theta, f, pull).value, gap, pull)


def _better(new: DualRows, old: DualRows) -> DualRows:
    """Return the variables of the smaller gap."""
    xp, better = array_namespace(new.gap), new.gap < old.gap  # False for NaN
    if bool(xp.all(better)):
        return new
    return DualRows(*(xp.where(per_client(better, a), a, b) for a, b in zip(new, old, strict=True)))


def _moved(c: Kinked, u: Array, above: Array, below: Array) -> tuple[Array, ...]:
    """Return whether nothing was gained, the variables after a step, the face that they suggest, and their gaps."""
    xp = array_namespace(u)
    least = 0.25 * epsilon(u) * (c.high - c.low)  # below that a distance from the boundary is rounding
    a, b = xp.maximum(c.high - u, least), xp.maximum(u - c.low, least)
    # a smaller D would make entries of the matrix in which mu is rounding
    D = xp.maximum(above / a + below / b, 64.0 * epsilon(u) * c.w * (c.longest**2 / c.mu)[:, None])
    held = matrix(c, c.w / D)
    weight = 2.0 * xp.sum(c.w, axis=-1)
    mean = xp.vecdot(c.w, above * a + below * b) / weight

    def direction(target: Array, more_above: Any, more_below: Any) -> tuple[Array, Array, Array]:
        up = (target[:, None] - more_above) / a - above
        down = (target[:, None] + more_below) / b - below
        # not by an inverse: rows at the kink have entries that grow without bound, and the error would be theirs
        shift = xp.linalg.solve(held, c.back(c.w * (up - down) / D)[..., None])[..., 0]
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
    smaller = xp.minimum(above + t * d_above, below + t * d_below)
    smaller = xp.maximum(smaller, 1e-3 * xp.minimum(above, below))
    residual, *found = c.gaps(u)
    moved = (c.pad(x) for x in (u, smaller + xp.maximum(residual, 0.0), smaller + xp.maximum(-residual, 0.0)))
    v = c.prolonged(u, residual)
    few = xp.astype(c.inside(v)[1], u.dtype)
    return xp.astype(~good, u.dtype), *moved, few, c.pad(v), *found
