"""Reference solutions that certify themselves, by two independent routes.

``newton`` is damped Newton on ``E`` (smooth objectives of any size), ``cvxpy`` hands the problem to Clarabel, an
interior point solver that shares no code with this package. Both compute an upper bound of their own error and refuse
to answer when it is too large. For an objective with a regulariser, ``E`` means ``E + g`` throughout.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

from dualopt.arrays._extras import optional
from dualopt.arrays.communicator import ALONE, Communicator
from dualopt.arrays.xp import Array, array_namespace, asarray_like, epsilon, is_sparse, to_numpy
from dualopt.losses._offset import label_and_offset
from dualopt.objectives import LinearModel, LocalProblem, Objective, ObjectiveWrapper, Quadratic
from dualopt.objectives._products import predictors, pulled_back, row_norms
from dualopt.objectives._rounding import gamma, tiny
from dualopt.objectives._weights import mean, shares
from dualopt.objectives.composite import without_regulariser
from dualopt.regularisers import L2, Zero
from dualopt.runs.certificates import DualPoint, certificate
from dualopt.solvers import LBFGS, NewtonCG
from dualopt.solvers.stopping import GradientNorm

__all__ = ["NotOptimalError", "Reference", "cvxpy", "newton", "solve"]


class NotOptimalError(RuntimeError):
    """A reference solver missed the accuracy that was asked for."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Reference:
    """A solution with its certified accuracy.

    Attributes
    ----------
    theta : array, shape ``shape``
        The minimiser, in double precision.
    energy : float
        ``E(theta)``.
    gap : float
        Upper bound of ``E(theta) - E*``, room for rounding included; infinite for ``mu = 0`` without L1, where the
        gradient norm is checked instead.
    gradient_norm : float
        ``|grad E(theta)|``, with a regulariser ``|s|`` for the least element of ``grad E + dg`` (of a subgradient when
        the loss is nonsmooth, then without meaning).
    solver : str
        Who found it.
    is_positive : bool
        Whether ``E* > 0`` is certain; for ``mu = 0``, where nothing is, whether the energy is above ``tol`` times that
        of the zero model. If not, errors relative to ``E*`` are undefined.
    """

    theta: Array
    energy: float
    gap: float
    gradient_norm: float
    solver: str
    is_positive: bool = True


def solve(objective: Objective, *, tol: float = 1e-11) -> Reference:
    """Return a reference solution: :func:`newton` for a smooth objective, :func:`cvxpy` for one with kinks.

    The tolerance of the nonsmooth route is at least 1e-7, what an interior point method can be trusted with, and for
    data in single precision eight times their epsilon: strong convexity is known to four, the ridge is a part of ``E``.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt.losses import Logistic
    >>> from dualopt.objectives import linear_model
    >>> f = linear_model(np.array([[1.0], [2.0]]), np.array([-1.0, 1.0]), loss=Logistic(), mu=0.1)
    >>> found = solve(f)
    >>> round(found.energy, 6), found.gap < 1e-11
    (0.595751, True)
    """
    if is_smooth(objective):
        return newton(objective, tol=tol)
    return cvxpy(objective, tol=max(tol, 1e-7, 8.0 * epsilon(objective.zeros())))


def newton(objective: Objective, *, tol: float = 1e-11, max_iter: int = 100) -> Reference:
    r"""Minimise ``E`` by damped Newton with conjugate gradients, to a certified relative error of ``tol``.

    Where the objective offers no products with Hessians, by L-BFGS.

    Parameters
    ----------
    objective : Objective
        Smooth; of the regularisers, ``L2``.
    tol : float, default 1e-11
        The bound :math:`|\nabla E|^2/(2\mu) \le \text{tol}\,|E|` that the answer must meet, room for rounding
        aside. For ``mu = 0`` the gradient must fall below ``tol`` times its norm at zero.
    max_iter : int, default 100
        Largest number of Newton steps, a hundredth of that of L-BFGS.

    Raises
    ------
    ValueError
        If the loss or the regulariser is not smooth.
    NotOptimalError
        If the bound is not met.
    """
    if not _is_smooth_regulariser(objective):
        raise ValueError("newton needs a smooth regulariser, such as L2; use cvxpy for one with kinks.")
    return checked(objective, *minimiser(objective, tol=tol, max_iter=max_iter), tol=tol)


def minimiser(
    objective: Objective, *, tol: float = 1e-11, max_iter: int = 100, peers: Communicator = ALONE
) -> tuple[Array, float]:
    """Return what :func:`newton` finds, before it is checked, and the norm of the gradient at zero.

    Parameters
    ----------
    objective, tol, max_iter
        As in :func:`newton`.
    peers : Communicator, optional
        The processes that have the other clients; all call this, take the same steps, and have the same result.
    """
    E = _Mean(objective, peers)
    start = _zeros(objective)[None, ...]
    problem = LocalProblem(objective=E, weight=objective.regulariser.mu, center=start)
    xp = array_namespace(start)
    first = float(xp.sqrt(xp.sum(E.gradient(start) ** 2)))
    mu = float(problem.mu[0])
    energy = abs(float(E.value(start)[0]))
    # a thousandth of what is needed: the last Newton steps are cheap and converge quadratically
    target = max(epsilon(start) * first, 1e-3 * (math.sqrt(mu * tol * energy) if mu > 0 else tol * first))
    newton_cg = "hessian" in E.offers
    solver = NewtonCG(max_iter=max_iter, max_cg=2000) if newton_cg else LBFGS(max_iter=100 * max_iter)
    found = solver(problem, start, GradientNorm(tol=max(target, 1e-300)))
    return found.theta[0, ...], first


def checked(objective: Objective, theta: Array, scale: float, *, tol: float = 1e-11) -> Reference:
    """Return what `minimiser` has found, if it is as accurate as :func:`newton` promises.

    Raises
    ------
    NotOptimalError
        If it is not.
    """
    return _checked(objective, theta, None, tol=tol, scale=scale, solver="newton")


def cvxpy(objective: Objective, *, tol: float = 1e-7) -> Reference:
    r"""Minimise ``E`` with CVXPY and Clarabel, to a certified relative error of ``tol``.

    The certificate does not rely on the status that the solver reports: multipliers of ``z = X theta`` are brought
    into the domain of the conjugates by one proximal step, and the duality gap is computed with our losses. Where the
    loss is smooth, one proximal gradient step brings the point of the solver into the kinks of a regulariser: entries
    that the ``L1`` norm makes zero are exactly zero.

    Raises
    ------
    ValueError
        If the objective is neither a linear model nor a quadratic.
    ModuleNotFoundError
        If CVXPY is missing.
    NotOptimalError
        If the solver fails or the gap is too large.
    """
    cp = optional("cvxpy", "the reference solution")
    theta = cp.Variable(objective.shape)
    f = without_regulariser(objective)
    if isinstance(f, LinearModel):
        energy, links = _linear_energy(cp, f, theta)
    elif isinstance(f, Quadratic):
        energy, links = _quadratic_energy(cp, f, theta), []
    else:
        raise ValueError(f"objective must be a linear model or a quadratic for CVXPY, not {type(f).__name__}.")
    if objective.regulariser != Zero():
        energy = energy + objective.regulariser.cvxpy(theta)
    problem = cp.Problem(cp.Minimize(energy), [link for link, _ in links])
    try:
        problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    except cp.SolverError as error:
        raise NotOptimalError(f"CVXPY found no solution: {error}") from error
    if problem.status not in ("optimal", "optimal_inaccurate"):
        raise NotOptimalError(f"CVXPY ended with status {problem.status}.")
    point = _into_the_kinks(objective, asarray_like(theta.value, _zeros(objective)))
    dual = None
    if isinstance(f, LinearModel):
        dual = _dual_point(f, point, [scale * link.dual_value for link, scale in links])
    first = objective.gradient(objective.zeros())
    scale = float(array_namespace(first).sqrt(array_namespace(first).sum(first**2))) / objective.n_clients
    return _checked(objective, point, dual, tol=tol, scale=scale, solver="cvxpy")


def _checked(
    objective: Objective, theta: Array, dual: DualPoint | None, *, tol: float, scale: float, solver: str
) -> Reference:
    """Refuse a solution that does not meet its optimality condition, which is asked for up to rounding.

    Where E* may be 0, and the relative error is undefined, the gap may be ``tol`` times the energy of the zero model.
    """
    bound = certificate(objective, theta, dual)
    norm, zero = bound.gradient_norm, objective.zeros()
    values = objective.value(zero)
    allowed, start = tol * abs(bound.energy), float(objective.mean(values))
    start = tol * abs(start + objective.regulariser.value(zero))
    doubtful = 0 <= bound.energy <= bound.gap if math.isfinite(bound.gap) else 0 <= bound.energy <= start
    if doubtful:
        allowed = max(allowed, start)
    if math.isfinite(bound.gap) and norm > 0 and not bound.gap - bound.rounding <= allowed:
        raise NotOptimalError(
            f"{solver} is certified only to a gap of {bound.gap:.2e} where tol = {tol:g} allows {allowed:.2e}."
        )
    if not math.isfinite(bound.gap) and not norm <= tol * scale:
        raise NotOptimalError(
            f"{solver} stopped at a gradient of norm {norm:.2e}, above tol = {tol:g} times {scale:.2e}."
        )
    return Reference(
        theta=theta,
        energy=bound.energy,
        gap=bound.gap,
        gradient_norm=norm,
        solver=solver,
        is_positive=not doubtful,
    )


def _zeros(objective: Objective) -> Array:
    """Return the zero model in double precision, in which that of data in single precision is computed, too."""
    zero = objective.zeros()
    return array_namespace(zero).astype(zero, array_namespace(zero).float64, copy=False)


def is_smooth(objective: Objective) -> bool:
    """Tell whether `newton` applies."""
    finite = math.isfinite(float(array_namespace(objective.L).max(objective.L)))
    return (finite or "hessian" in objective.offers) and _is_smooth_regulariser(objective)


def _is_smooth_regulariser(objective: Objective) -> bool:
    return isinstance(objective.regulariser, L2 | Zero)


def _into_the_kinks(objective: Objective, theta: Array) -> Array:
    """Take one proximal gradient step for a regulariser with kinks; its length is 0 for nonsmooth losses."""
    if _is_smooth_regulariser(objective):
        return theta
    step = 1.0 / float(objective.mean(objective.L))
    return objective.regulariser.prox(theta - step * objective.mean(objective.gradient(theta)), step)


def _linear_energy(cp: Any, objective: LinearModel, theta: Any) -> tuple[Any, list[tuple[Any, Any]]]:
    """Return E and, for each client, its constraint ``z = theta X'`` with the factor that turns multipliers into u."""
    held = theta[..., : objective.shape[-1] - int(objective.free_intercept)]
    energy = 0.5 * objective.ridge * cp.sum_squares(held)
    links, shares = [], objective.shares or (1.0 / objective.n_clients,) * objective.n_clients
    for (X, y, w), share in zip(objective.client_rows(), shares, strict=True):
        X, y, w = X if is_sparse(X) else to_numpy(X), to_numpy(y), to_numpy(w)
        predictor = X @ theta if objective.loss.outputs == 1 else theta @ X.T
        z = cp.Variable(predictor.shape)
        energy = energy + share * cp.sum(cp.multiply(w, objective.loss.cvxpy(z, y)))
        positive = w > 0  # a row of weight zero has no say, and no multiplier
        links.append((z == predictor, -1.0 * positive / (share * w + (1.0 - positive))))
    return energy, links


def _quadratic_energy(cp: Any, objective: Quadratic, theta: Any) -> Any:
    A, b = to_numpy(objective.mean(objective.A)), to_numpy(objective.mean(objective.b))
    constant = 0.0 if objective.c is None else float(objective.mean(objective.c))
    return 0.5 * cp.quad_form(theta, cp.psd_wrap(0.5 * (A + A.T))) - b @ theta + constant


def _dual_point(objective: LinearModel, theta: Array, duals: Sequence[Any]) -> DualPoint:
    """Build feasible ``xi_j = sum_i w_i u_i x_i`` from approximate multipliers ``u``.

    ``z/s + u - prox(z + s u)/s`` lies in the domain of the conjugate, by Moreau's identity, and equals ``u`` at the
    solution.
    """
    xp, loss = array_namespace(theta), objective.loss
    k, bounded = loss.outputs, math.isfinite(loss.lipschitz)
    points, conjugates, errors = [], [], []
    for (X, y, w), u in zip(objective.client_rows(), duals, strict=True):
        z = predictors(X, theta)
        v = z + asarray_like(u, theta)
        u = v - loss.prox(v, y, 1.0)
        conjugate = loss.conjugate(u, y)
        points.append(pulled_back(w * u, X))
        # rounding: conjugates are sums of products with u, y and 1, points are sums over the rows, and what is outside
        # the domain by 8 eps (4 k eps for class labels) counts as its nearest point
        size = xp.sqrt(xp.sum(u * u, axis=0)) if k > 1 else xp.abs(u)
        y, offset = label_and_offset(y)
        labels = 1.0 if loss.labels == "class" else xp.abs(y)
        if hasattr(loss, "label_domain"):  # conjugates have products with their logarithms
            labels = labels + xp.abs(xp.log(xp.maximum(y, tiny(y))))
        labels = labels + 2.0 * xp.abs(offset + xp.zeros_like(size))  # u o is in the conjugate, too
        terms = xp.abs(conjugate) + size * (labels + size) + (0.0 if loss.labels == "real" else 1.0)
        conjugates.append(xp.sum(w * (conjugate + gamma(X.shape[0] + 16 * k + 16, u) * terms)))
        outside = 8.0 * k * epsilon(u) * loss.lipschitz if bounded else 0.0
        errors.append(xp.sum(w * (gamma(X.shape[0] + 4, u) * size + outside) * row_norms(X)))
    return DualPoint(xp.stack(points), xp.stack(conjugates), xp.stack(errors))


@dataclass(frozen=True, eq=False)
class _Mean(ObjectiveWrapper):
    """``E`` as an objective of one client, so that local solvers can minimise it."""

    objective: Objective
    peers: Communicator

    @property
    def n_clients(self) -> int:
        return 1

    @property
    def weights(self) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        return None

    @cached_property
    def _shares(self) -> tuple[float, ...] | None:
        """The parts of the clients of all processes, which process 0 knows."""
        f = self.objective
        own = asarray_like(f.weights or (1.0,) * f.n_clients, f.mu)
        parts = [own] if self.peers.size == 1 else self.peers.collected(own)
        return None if parts is None else shares([w for part in parts for w in to_numpy(part).tolist()])

    @property
    def offers(self) -> frozenset[str]:
        return (self.objective.offers & {"hessian"}) | {"preconditioner"}

    @cached_property
    def mu(self) -> Array:
        return self._mean(self.objective.mu)[None]

    @cached_property
    def L(self) -> Array:
        return self._mean(self.objective.L)[None]

    def value(self, theta: Array) -> Array:
        return self.value_and_gradient(theta)[0]

    def gradient(self, theta: Array) -> Array:
        return self.value_and_gradient(theta)[1]

    def value_and_gradient(self, theta: Array) -> tuple[Array, Array]:
        values, gradients = self.objective.value_and_gradient(self._one(theta))
        return self._mean(values)[None], self._mean(gradients)[None, ...]

    def hessian_operator(self, theta: Array) -> Callable[[Array], Array]:
        product = self.objective.hessian_operator(self._one(theta))  # pyright: ignore[reportAttributeAccessIssue]
        return self._averaged(product)

    def preconditioner(self, weight: float | Array = 0.0) -> Callable[[Array], Array]:
        if "preconditioner" not in self.objective.offers:
            return lambda v: v
        return self._averaged(self.objective.preconditioner(weight))  # pyright: ignore[reportAttributeAccessIssue]

    def select(self, ids: Sequence[int]) -> Self:
        return self

    def _one(self, theta: Array) -> Array:
        return array_namespace(theta).reshape(theta, self.shape)

    def _averaged(self, operator: Callable[[Array], Array]) -> Callable[[Array], Array]:
        def apply(v: Array) -> Array:
            xp = array_namespace(v)
            stacked = xp.broadcast_to(v, (self.objective.n_clients, *self.shape))
            return self._mean(operator(stacked))[None, ...]

        return apply

    def _mean(self, rows: Array) -> Array:
        """Return the mean over the clients, those of the other processes included, in their order."""
        xp, own = array_namespace(rows), self._shares
        if self.peers.size == 1:
            return mean(rows, own)
        parts = self.peers.collected(rows)
        return self.peers.shared(xp.zeros_like(rows[0, ...]) if parts is None else mean(xp.concat(parts), own))
