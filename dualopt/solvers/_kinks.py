"""Local problems of losses with one kink at the label, and their solutions where it is known which rows are at it."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from dualopt.arrays.xp import Array, array_namespace, device, epsilon
from dualopt.objectives.local_problem import LocalProblem
from dualopt.solvers._dual_rows import curvatures, model_of

__all__ = ["Kinked", "by_part", "matrix", "on_face"]


class Kinked(NamedTuple):
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

    def gaps(self, u: Array) -> tuple[Array, ...]:
        """Return residuals, padded dual variables, their primal points, sums of losses, gaps and ``X'Wu``."""
        xp, pull = array_namespace(u), self.back(self.w * u)
        theta = -(self.linear + pull) / self.held
        residual = self.residual(theta)
        up, down = xp.maximum(residual, 0.0), xp.maximum(-residual, 0.0)
        f = xp.vecdot(self.w, self.high * up - self.low * down)
        gap = xp.vecdot(self.w, (self.high - u) * up + (u - self.low) * down)
        return residual, self.pad(u), theta, f, gap, pull

    @property
    def stiffness(self) -> Array:
        """Return ``mu/|x|^2`` of the longest row, at most what its residual changes by, in units of ``w u``."""
        squares = self.longest**2
        return self.mu / array_namespace(squares).where(squares > 0, squares, self.mu)

    def prolonged(self, u: Array, residual: Array) -> Array:
        """Return where dual variables would go without bounds, each alone, for these residuals."""
        xp = array_namespace(u)
        w = xp.where(self.w > 0, self.w, xp.full_like(self.w, math.inf))
        return u + self.stiffness[:, None] * residual / w

    def inside(self, v: Array) -> tuple[Array, Array]:
        """Return which rows are at the kink, and whether they are no more than columns."""
        xp = array_namespace(v)
        kinks = (self.low < v) & (v < self.high) & (self.w > 0)
        return kinks, xp.sum(xp.astype(kinks, v.dtype), axis=-1) <= self.part.block.X.shape[-1]


def by_part(problem: LocalProblem, like: Array, function: Any) -> tuple[Array, ...]:
    """Call a function of clients of equal size for all, and put the results together."""
    model, linear, held = model_of(problem), problem.linear_term(), curvatures(problem)
    rows, loss, longest = model.rows, model.loss, model.longest_rows

    def results() -> Any:
        for _, part in rows.parts:
            clients, _, y, w = part.block
            low, high = loss.gradient(y - 1.0, y), loss.gradient(y + 1.0, y)
            own = (clients.take(x) for x in (problem.mu, held, linear, longest))
            yield clients, function(Kinked(part, like.shape[1], y, w, low, high, *own))

    return rows.assemble(results())


def on_face(c: Kinked, v: Array) -> tuple[Array, ...]:
    """Return where to look for the next face, and what is found on this one; the gap is infinite with too many rows."""
    xp = array_namespace(v)
    kinks, few = c.inside(v)
    u = xp.clip(v, c.low, c.high)
    residual, slack = c.residual(c.point(u)), epsilon(v) ** 0.5
    weights = xp.where(kinks, c.stiffness[:, None] / slack, xp.zeros_like(v))
    shift = xp.linalg.solve(matrix(c, weights), c.back(weights * residual)[..., None])[..., 0]
    residual = residual - c.forward(shift)
    v = c.prolonged(u, xp.where(kinks, residual / slack, residual))
    _, u, theta, f, gap, pull = c.gaps(xp.where(kinks, xp.clip(v, c.low, c.high), u))
    return c.pad(v), u, theta, f, xp.where(few, gap, xp.full_like(gap, math.inf)), pull


def matrix(c: Kinked, weights: Array) -> Array:
    """Return ``X' diag(weights) X`` and the curvatures of the columns."""
    xp, X = array_namespace(weights), c.part.block.X
    gram = xp.matmul(xp.matrix_transpose(X), X * weights[..., None])
    return gram + c.held[:, None, :] * xp.eye(X.shape[-1], dtype=X.dtype, device=device(X))
