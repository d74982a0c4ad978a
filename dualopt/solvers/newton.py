"""Newton's method with conjugate gradients: no Hessian is ever formed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from dualopt.arrays._checks import Typed
from dualopt.arrays.streams import Round
from dualopt.arrays.xp import Array, array_namespace, asarray_like, epsilon, host_zeros, is_traced, repeat, to_numpy
from dualopt.objectives.local_problem import Evaluation, LocalProblem, client_dot, per_client
from dualopt.solvers._line_search import backtrack
from dualopt.solvers._loop import LocalSolution, drive, norm, require_smooth, solution
from dualopt.solvers.stopping import Stop

__all__ = ["NewtonCG", "conjugate_gradients", "is_curved"]


class State(NamedTuple):
    """Iterates of all clients."""

    theta: Array
    evaluation: Evaluation
    value: Array  # F_j; from here on in host memory after the first step
    norm: Array  # |grad F_j|
    gradients: Array
    stalled: Array


@dataclass(frozen=True, kw_only=True)
class NewtonCG(Typed):
    r"""Damped Newton method with conjugate gradients.

    The systems :math:`\nabla^2 F_j(\theta_j) d = -\nabla F_j(\theta_j)` are preconditioned by the objective when it
    offers a ``preconditioner`` and solved to the relative
    residual :math:`\min(0.1, |\nabla F_j|^{1/2})` (Eisenstat and Walker 1996: superlinear convergence). Hessians act as
    operators only, so the memory is a few vectors for any number of parameters. A product with a Hessian
    counts as one gradient.

    Parameters
    ----------
    max_cg : int, default 200
        Largest number of conjugate gradient steps in one Newton step.
    max_iter : int, default 100
        Largest number of Newton steps.

    Raises
    ------
    ValueError
        If the loss is nonsmooth, or the objective offers no Hessian products.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt.objectives import LocalProblem, Quadratic
    >>> from dualopt.solvers.stopping import GradientNorm
    >>> f = Quadratic(A=np.array([[[2.0, 0.0], [0.0, 0.1]]]), b=np.array([[2.0, 1.0]]))
    >>> sol = NewtonCG()(LocalProblem(objective=f), np.zeros((1, 2)), GradientNorm(tol=1e-10))
    >>> np.round(sol.theta, 8).tolist(), sol.status
    ([[1.0, 10.0]], ('converged',))
    """

    single: ClassVar[bool] = True

    max_cg: int = 200
    max_iter: int = 100

    def initial_state(self, objective: Any) -> Any:
        """Return ``()``: Newton's method keeps nothing."""
        return ()

    def __call__(
        self, problem: LocalProblem, start: Array, stop: Stop, solver_state: Any = (), round: Round | None = None
    ) -> LocalSolution:
        """Run Newton's method from ``start``."""
        require_smooth("newton", problem, constant=False)
        if "hessian" not in problem.objective.offers:
            raise ValueError("solver 'newton' needs an objective with hessian_operator.")
        evaluation = problem.evaluate(start)
        one = host_zeros(problem.n_clients) + 1.0
        state = State(start, evaluation, evaluation.value, norm(evaluation.gradient), one, one < 0)
        state, status = drive(
            self._step, problem, state, stop, round, max_iter=self.max_iter, measure=lambda _, s: (s.value, s.norm)
        )
        return solution(problem, state.theta, state.evaluation, gradients=state.gradients, status=status)

    def _step(self, problem: LocalProblem, s: State) -> State:
        gradient, length = s.evaluation.gradient, to_numpy(s.norm)
        forcing = array_namespace(length).minimum(0.1, length**0.5)
        direction, products = conjugate_gradients(
            problem.hessian_operator(s.theta),
            -gradient,
            tol=asarray_like(forcing * length, gradient),
            max_iter=self.max_cg,
            precondition=problem.preconditioner if "preconditioner" in problem.objective.offers else None,
        )
        found = backtrack(problem, s.theta, s.evaluation, direction, s.stalled)
        counts = s.gradients + found.trials + to_numpy(products)
        return State(found.theta, found.evaluation, found.value, found.norm, counts, found.failed)


def conjugate_gradients(
    product: Callable[[Array], Array],
    b: Array,
    *,
    tol: Array,
    max_iter: int,
    precondition: Callable[[Array], Array] | None = None,
) -> tuple[Array, Array]:
    """Solve ``H_j x_j = b_j`` for every client until ``|b_j - H_j x_j| <= tol_j``.

    A client that has finished keeps its solution while the others go on. One also has finished before a direction that
    is not curved (:func:`is_curved`).

    Returns
    -------
    x : array, shape (N, *shape)
        The solutions, from the start at zero, and ``b``, preconditioned, where the first direction is not positive:
        always descent directions for ``b = -gradient``.
    products : array, shape (N,)
        Hessian products that each client needed.
    """
    xp = array_namespace(b)
    precondition = precondition or (lambda v: v)
    x, residual = xp.zeros_like(b), b
    z = precondition(residual)
    p, rz = z, client_dot(residual, z)
    one, zero = xp.ones_like(rz), xp.zeros_like(rz)
    start, begun = z, client_dot(residual, residual) > tol * tol

    def step(now: tuple[Array, ...]) -> tuple[Array, ...]:
        x, residual, p, rz, products, fallen, running = now
        Hp = product(p)
        products = products + xp.astype(running, products.dtype)
        curvature = client_dot(p, Hp)
        positive = running & is_curved(curvature, rz, fallen)
        alpha = xp.where(positive, rz / xp.where(positive, curvature, one), zero)
        fallen = fallen + alpha * rz
        x = x + per_client(alpha, p) * p
        residual = residual - per_client(alpha, p) * Hp
        running = positive & (client_dot(residual, residual) > tol * tol)
        z = precondition(residual)
        last, rz = rz, client_dot(residual, z)
        beta = xp.where(running, rz / xp.where(running, last, one), zero)
        return x, residual, z + per_client(beta, p) * p, rz, products, fallen, running

    now = x, residual, p, rz, zero, zero, begun
    if is_traced(x):
        _, now = repeat(lambda s: xp.any(s[1][-1]) & (s[0] < max_iter), lambda s: (s[0] + 1, step(s[1])), (0, now))
    else:
        for _ in range(max_iter):
            if not any(to_numpy(now[-1])):
                break
            now = step(now)
    x, *_, products, fallen, _ = now
    return xp.where(per_client(begun & (fallen == 0), x), start, x), products


def is_curved(curvature: Array, size: Array, fallen: Array) -> Array:
    r"""Tell whether conjugate gradients may take their next step: whether its direction is neither flat nor next to it.

    Along ``p``, with the residual ``r`` preconditioned by ``M``, a step lowers :math:`\frac12\langle x, Hx\rangle -
    \langle b, x\rangle` by :math:`\frac12\langle r, Mr\rangle^2/\langle p, Hp\rangle`. That may be
    :math:`\epsilon^{-1/2}` times of what all steps before have lowered it by, and anything in the first step: where
    ``b`` is not in the range of ``H`` there is no solution, and steps grow without bound.

    Parameters
    ----------
    curvature, size : array
        :math:`\langle p, Hp\rangle` and :math:`\langle r, Mr\rangle`.
    fallen : array
        Twice what was lowered so far, which is :math:`\langle b, x\rangle`.

    Examples
    --------
    >>> import numpy as np
    >>> is_curved(np.array([1.0, 1e-9, 1e-9, 0.0]), np.ones(4), np.array([1.0, 1.0, 0.0, 0.0])).tolist()
    [True, False, True, False]
    """
    return (curvature > 0) & ((fallen == 0) | (epsilon(curvature) ** 0.5 * size * size <= fallen * curvature))
