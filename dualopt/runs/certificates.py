"""Upper bounds of ``E(theta) - E*``, a regulariser included, that need no reference solution."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Self, TypeGuard

from dualopt.arrays.client_states import ClientStates
from dualopt.arrays.tree import is_everybody
from dualopt.arrays.xp import Array, array_namespace, asarray_like, epsilon, reshape, silent, summed, to_numpy
from dualopt.objectives import Objective
from dualopt.objectives._rounding import client_norm, gamma, tiny
from dualopt.objectives._weights import total
from dualopt.objectives.composite import without_regulariser
from dualopt.objectives.local_problem import Evaluation, client_dot, per_client
from dualopt.objectives.scales import own_clients
from dualopt.runs.cuts import Sums, cut_of_duals, cut_of_gradient, error_of_means, is_bounded, least, lower_bound, norm
from dualopt.solvers import LocalSolution

__all__ = [
    "Certificate",
    "DualPoint",
    "LatestSolutions",
    "Sums",
    "certificate",
    "certificate_from",
    "certificate_sums",
    "dual_point",
    "sums_of_rows",
]


class Certificate(NamedTuple):
    """A certified bound with the energy to which it belongs."""

    energy: float  # E(theta) + g(theta)
    gap: float  # the energy exceeds its minimum by at most this
    kind: str  # "dual" (the clients' own points) or "gradient"
    gradient_norm: float  # of the minimal subgradient, of least norm in grad E + dg: what tells where E is not convex
    rounding: float = 0.0  # how much of the gap is room for rounding

    @property
    def relative(self) -> float:
        """An upper bound of ``(E(theta) - E*) / E*``; infinite while no positive lower bound of ``E*`` is known.

        Where ``E* <= 0`` it stays infinite: the relative error is undefined, and ``gap`` is what there is.
        """
        lower = self.energy - self.gap
        return self.gap / lower if lower > 0 else math.inf


class DualPoint(NamedTuple):
    r"""Points ``xi_j`` of the domains of ``g_j*``, with upper bounds of ``g_j*(xi_j)``.

    More precisely :math:`g_j(x) \ge \langle\xi_j, x\rangle - \text{conjugate}_j - \text{error}_j |x|` for all ``x``.
    """

    dual: Array  # (N, *shape)
    conjugate: Array  # (N,)
    error: Array | None = None  # (N,)  how far rounding may have moved xi_j; None: it is exact


def dual_point(objective: Objective, solution: LocalSolution) -> DualPoint | None:
    r"""Return the dual points of local solutions of the clients of ``objective``; None where nothing was evaluated.

    With :math:`g_j = f_j - \frac{\mu_j}2|\cdot|^2` (without a free intercept in the norm, here and below) the point is
    :math:`\xi_j = \nabla f_j(\theta_j) - \mu_j\theta_j` and :math:`g_j^*(\xi_j) = \langle\nabla f_j(\theta_j),
    \theta_j\rangle - f_j(\theta_j) - \frac{\mu_j}2|\theta_j|^2`, plus the excess of a subgradient that is not exact.
    Here :math:`\mu_j` is the proven one, ``mu - mu_rounding``. With the errors ``v_j`` of the value and ``s_j`` of the
    gradient (``Objective.rounding``) the conjugate gains :math:`v_j + s_j |\theta_j|` and :math:`\gamma_{n+8}` times
    the sizes of its ``n`` products, and ``error`` is

    :math:`s_j` with the rounding of the subtraction. In single precision values and gradients are computed anew, in
    double precision, but for those of a dual solver. Where no :math:`\mu_j` makes :math:`g_j` convex the conjugate is
    infinite.
    """
    if solution.evaluation is None:
        return None
    objective = own_clients(objective)
    theta, f, grad_f = solution.theta, solution.evaluation.f, solution.evaluation.grad_f
    xp = array_namespace(theta)
    with silent():
        if theta.dtype != xp.float64 and solution.excess is None:
            theta = xp.astype(theta, xp.float64)
            f, grad_f = objective.value_and_gradient(theta)
        proven, known = objective.proven_mu, objective.mu > -math.inf
        mu = xp.where(known, proven, xp.zeros_like(f))
        rounding = objective.rounding(theta, f, grad_f, solution.excess)
        n, length, slope = math.prod(theta.shape[1:]), client_norm(theta), client_norm(grad_f)
        held = objective.held(theta)
        dual = -per_client(mu, theta) * held
        dual += grad_f  # in place: one array of the size of all local models less
        conjugate = client_dot(grad_f, theta) - f - 0.5 * mu * client_dot(held, held)
        if solution.excess is not None:
            conjugate = conjugate + solution.excess
        terms = slope * length + xp.abs(f) + xp.abs(mu) * length * length
        error = rounding.gradient + gamma(2, theta) * (slope + 2.0 * xp.abs(mu) * length) + n * tiny(theta)
        conjugate = conjugate + rounding.value + error * length + gamma(n + 8, theta) * terms
        conjugate = conjugate + n * tiny(theta) * (1.0 + xp.abs(mu))
        finite = known & xp.isfinite(conjugate) & xp.isfinite(error)
    return DualPoint(dual, xp.where(finite, conjugate, math.inf), error)


class LatestSolutions:
    """The latest local solution of every client, for rounds in which some of them take part.

    Local solutions make a certificate whatever their points are, those of earlier rounds too.

    Parameters
    ----------
    objective : Objective
        All clients.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt import FedDyn, Quadratic, UniformSubset, iterate
    >>> from dualopt.solvers import Exact
    >>> f = Quadratic(A=np.stack([np.eye(1), 2 * np.eye(1)]), b=np.array([[2.0], [1.0]]), c=np.array([2.0, 2.0]))
    >>> latest = LatestSolutions(f)
    >>> for _, s in zip(range(40), iterate(FedDyn(solver=Exact()), f, participation=UniformSubset(size=1))):
    ...     latest.update(s.round.clients, s.solution)
    >>> certificate(f, s.server.theta, latest.solution).gap < 1e-6
    True
    """

    def __init__(self, objective: Objective) -> None:
        self._n_clients = objective.n_clients
        self._useful = objective.mean_mu > 0
        self._whole: LocalSolution | None = None  # of everybody, as it came: its evaluation may not be computed yet
        self._latest: LocalSolution | None = None  # that of the latest update
        self._rows = ClientStates(None, self._n_clients)
        self._exact = True  # whether no solution had an excess

    @property
    def solution(self) -> LocalSolution | None:
        """The latest solutions of all clients; None as long as one has none."""
        if self._whole is not None:
            return self._whole
        if self._latest is None or not self._rows.is_complete:
            return None
        theta, f, grad_f, excess = self._rows.tree
        evaluation = Evaluation(f, grad_f, f, grad_f)
        return self._latest._replace(theta=theta, evaluation=evaluation, excess=None if self._exact else excess)

    def update(self, clients: Sequence[int], solution: LocalSolution | None) -> None:
        """Replace the solutions of some clients; one that evaluated nothing leaves the old ones."""
        if solution is None or solution.evaluation is None or not self._useful:
            return
        if is_everybody(clients, self._n_clients):
            self._whole = solution
            return
        if self._whole is not None:
            self._put(range(self._n_clients), self._whole)
            self._whole = None
        self._put(clients, solution)

    def after(self, clients: Sequence[int], solution: LocalSolution | None) -> Self:
        """Return the same after an update; these stay as they are."""
        new = object.__new__(type(self))
        new.__dict__.update(self.__dict__)
        new.update(clients, solution)
        return new

    @property
    def kept(self) -> Any:
        """All of that as a tree of arrays, from which :meth:`restore` makes it again; None as long as there is none."""
        whole = self._whole
        if whole is not None:
            return (whole.theta, whole.evaluation.f, whole.evaluation.grad_f, whole.excess), None, self._exact
        ids = self._rows.known
        return None if not len(ids) else (self._rows.take(ids), ids, self._exact)

    def restore(self, kept: Any) -> None:
        """Go on from what another one kept."""
        if kept is None:
            return
        (theta, f, grad_f, excess), ids, self._exact = kept
        found = LocalSolution(theta, Evaluation(f, grad_f, f, grad_f), None, None, (), (), (), excess)
        if ids is None:
            self._whole = found
        else:
            self._rows, self._latest = self._rows.put(ids, (theta, f, grad_f, excess)), found

    def _put(self, clients: Sequence[int], solution: LocalSolution) -> None:
        f, excess = solution.evaluation.f, solution.excess
        self._exact = self._exact and excess is None
        excess = array_namespace(f).zeros_like(f) if excess is None else excess
        self._rows = self._rows.put(clients, (solution.theta, f, solution.evaluation.grad_f, excess))
        self._latest = solution


def certificate(objective: Objective, theta: Array, solution: LocalSolution | DualPoint | None = None) -> Certificate:
    r"""Certify the model ``theta``.

    Let :math:`g_j = f_j - \frac{\mu_j}{2}|\cdot|^2`, :math:`m` the mean of the :math:`\mu_j`, and ``h`` the regulariser
    of the objective, zero if it has none; all means have the weights of the clients, :math:`\omega_j = w_j/\sum_iw_i`.
    Because :math:`g_j(x) \ge \langle \xi_j, x\rangle - g_j^*(\xi_j)` for all ``x``, any dual points :math:`\xi_j` with
    the mean :math:`\bar\xi` give the bound

    .. math:: (E + h)(\theta) - \min(E + h) \le (E + h)(\theta) + \sum_j \omega_jg_j^*(\xi_j)
              - \min_x \Bigl( \langle \bar\xi, x\rangle + \frac m2 |x|^2 + h(x) \Bigr),

    whose minimum is attained at :math:`\mathrm{prox}_{h/m}(-\bar\xi/m)`; without a regulariser it is
    :math:`-|\bar\xi|^2/(2m)`. The points of the latest local solutions of all clients give the form "dual".

    If ``h`` is :math:`\mu_h`-strongly convex, every :math:`s \in \nabla E(\theta) + \partial h(\theta)` has

    .. math:: (E + h)(x) \ge (E + h)(\theta) + \langle s, x - \theta\rangle + \frac{m + \mu_h}{2} |x - \theta|^2
              \ge (E + h)(\theta) - \frac{|s|^2}{2 (m + \mu_h)},

    so that the gap is at most :math:`|s|^2 / (2(m + \mu_h))`, best with the ``s`` of least norm: the form "gradient",
    for every method. Where ``h`` has kinks this is small only if ``theta`` sits in them as the minimiser does, which
    the results of proximal maps do.

    With a free intercept both are lower bounds only beside others (:mod:`dualopt.runs.cuts`): the clients are asked for
    values and gradients at two models more, or at one more for each output.

    The smaller of the two is returned. It costs one value and one gradient per client. The form "dual" needs
    :math:`m > 0`, the other one :math:`m + \mu_h > 0`; the bound is infinite when neither holds, or when numbers
    overflow.

    **Rounding.** The bound holds for the numbers as computed: it is at least :math:`(E + h)(\theta) - \min(E + h)`
    in exact arithmetic on the data as stored, and the same with the returned ``energy`` in the first place. With
    :math:`v_j, s_j` the errors of values and gradients (``Objective.rounding``), :math:`\bar v, \bar s` their means
    with those of the means themselves, and :math:`m` that of the proven :math:`\mu_j`, the form "gradient" becomes
    :math:`(|s| + \bar s)^2 / (2(m + \mu_h)) + 2 \bar v`. Points :math:`\xi_j` known to :math:`d_j` take
    :math:`\bar d |x| + \bar d^2/(2m)` off the minimum at its minimiser ``x``, since the function is ``m``-strongly
    convex. All sums are charged :math:`\gamma_n` times the sizes of their terms, those with weights
    :math:`\gamma_{2n}`. A regulariser is taken to be right to
    :math:`\gamma_{n+8}` of its value, and its proximal map and subgradient to a few units in the last place. For data
    in single precision all this is computed in double precision, at several times the price of a gradient in single;
    where E need not be strongly convex there is no bound, and energy and gradient are computed in single precision.

    Parameters
    ----------
    objective : Objective
        All clients; a :class:`dualopt.objectives.Composite` for a problem with a regulariser. Of reweighted clients
        those of the user are certified, whose E is the same, and whose local solutions snapshots hold.
    theta : array, shape ``shape``
        The model.
    solution : LocalSolution or DualPoint, optional
        Local solutions of all clients, at whatever points and of whatever accuracy; those of fewer clients are
        not used (:class:`LatestSolutions` collects them).

    Returns
    -------
    Certificate
        ``energy``, ``gap``, ``kind``, ``gradient_norm`` and ``rounding``.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt.objectives import Quadratic
    >>> f = Quadratic(A=np.ones((1, 1, 1)), b=np.zeros((1, 1)))
    >>> c = certificate(f, np.array([2.0]))  # E = theta^2 / 2
    >>> c.energy, round(c.gap, 12), c.kind
    (2.0, 2.0, 'gradient')
    """
    f = own_clients(objective)
    asked = getattr(without_regulariser(f), "certificate_sums", None)  # of clients elsewhere
    return certificate_from(f, theta, asked or (lambda x: certificate_sums(f, x, solution, f.unequal_weights)))


def certificate_from(objective: Objective, theta: Array, sums_at: Callable[[Array], Sums]) -> Certificate:
    """Certify ``theta`` from what ``sums_at`` returns of the clients, in double precision where there is a bound."""
    with silent():
        return _certificate(own_clients(objective), theta, sums_at)


def _certificate(objective: Objective, theta: Array, sums_at: Callable[[Array], Sums]) -> Certificate:
    xp, n = array_namespace(theta), math.prod(objective.shape)
    regulariser, m = objective.regulariser, objective.mean_mu
    convexity = m + regulariser.mu
    certified = convexity > 0 or is_bounded(objective)
    if certified and theta.dtype != xp.float64:  # else there is no bound that would need it
        theta = xp.astype(theta, xp.float64)
    sums = sums_at(theta)
    gradient = sums.gradient / sums.total
    energy, sizes, value_error, slope_error, slopes, *of_dual = (sums.columns / sums.total).tolist()
    (of_clients, lost), of_model = error_of_means(objective, theta, sums), gamma(n + 8, theta)
    h = regulariser.value(theta)
    energy += h
    # v, twice: E(theta) may be larger than the energy by as much as the lower bound of E* is smaller
    value_error += of_clients * sizes + of_model * abs(h) + n * tiny(theta) * (1.0 + regulariser.mu)
    value_error, slope_error = value_error + lost, slope_error + lost
    subgradient = regulariser.minimal_subgradient(theta, gradient)
    best = Certificate(energy, math.inf, "gradient", norm(subgradient))
    if objective.free_intercept or not convexity > 0:
        return _by_cuts(best, objective, theta, value_error, sums, sums_at) if is_bounded(objective) else best
    convexity -= sys.float_info.epsilon * (abs(m) + regulariser.mu) if regulariser.mu else 0.0
    if convexity > 0:
        slope_error += of_clients * slopes
        slope_error += 4.0 * epsilon(theta) * (0.0 if subgradient is gradient else norm(subgradient - gradient))
        length = best.gradient_norm * (1.0 + of_model) + slope_error
        gap = _rounded_up(length * (length / (2.0 * convexity)) + 2.0 * value_error)
        best = best._replace(gap=gap, rounding=gap - best.gradient_norm * (best.gradient_norm / (2.0 * convexity)))
    if sums.dual is not None and m > 0:
        conjugate, conjugates, duals, error = of_dual
        lowest, room = least(sums.dual / sums.total, of_clients * duals + error + lost, m, regulariser)
        room += value_error + of_clients * conjugates + lost + 4.0 * sys.float_info.epsilon * abs(energy)
        gap = energy + conjugate - lowest
        # false for NaN; a bound that is negative beyond rounding is none
        if -room <= gap and (bound := _rounded_up(max(gap, 0.0) + room)) < best.gap:
            best = best._replace(gap=bound, kind="dual", rounding=bound - max(gap, 0.0))
    return best


def _by_cuts(
    best: Certificate,
    objective: Objective,
    theta: Array,
    value_error: float,
    sums: Sums,
    sums_at: Callable[[Array], Sums],
) -> Certificate:
    """Return the certificate where nothing holds the intercept, or nothing is strongly convex."""
    cuts = [cut_of_gradient(objective, theta, sums)]
    if sums.dual is not None:
        cuts.append(cut_of_duals(objective, theta, sums))
    above = best.energy + value_error
    bounds = lower_bound(objective, theta, above, cuts, lambda x: cut_of_gradient(objective, x, sums_at(x)))
    for kind, bound in zip(("gradient", "dual"), bounds, strict=False):
        if above - bound >= 0.0 and (gap := _rounded_up(above - bound + value_error)) < best.gap:
            best = best._replace(gap=gap, kind=kind, rounding=2.0 * value_error)
    return best


def certificate_sums(
    objective: Objective,
    theta: Array,
    solution: LocalSolution | DualPoint | None = None,
    weights: Sequence[float] | None = None,
) -> Sums:
    """Return what a certificate of ``theta`` takes from the clients of ``objective``.

    Without ``weights`` all are 1, whatever those of the objective are: where one process has a part of the clients, it
    cannot tell whether all are equal.
    """
    values, gradients = objective.value_and_gradient(theta)
    rounding = objective.rounding(theta, values, gradients)
    columns = [rounding.value, rounding.gradient, client_norm(gradients)]
    gradient = total(gradients, weights)
    del gradients  # as large as all local models, and as what a dual point takes
    point = solution if _of_everybody(solution, objective.n_clients) else None
    point = dual_point(objective, point) if isinstance(point, LocalSolution) else point
    return _added(values, columns, gradient, point, weights)


def sums_of_rows(
    values: Array,
    gradients: Array,
    value_error: Array,
    slope_error: Array,
    point: DualPoint | None = None,
    weights: Sequence[float] | None = None,
) -> Sums:
    """Return the same from what the clients say, a row each."""
    columns = [value_error, slope_error, client_norm(gradients)]
    return _added(values, columns, total(gradients, weights), point, weights)


def _added(
    values: Array, columns: list[Array], gradient: Array, point: DualPoint | None, weights: Sequence[float] | None
) -> Sums:
    xp = array_namespace(values)
    columns = [values, xp.abs(values), *columns]
    dual = None
    if point is not None:
        error = xp.zeros_like(values) if point.error is None else point.error
        columns += [point.conjugate, xp.abs(point.conjugate), client_norm(point.dual), error]
        dual = total(point.dual, weights)
    rows = xp.concat([c if c.dtype == xp.float64 else xp.astype(c, xp.float64) for c in columns])
    rows = reshape(rows, (len(columns), -1))
    if weights is not None:
        rows = rows * asarray_like(weights, rows)
    whole = rows.shape[1] if weights is None else sum(weights)
    return Sums(to_numpy(summed(rows, 1)), gradient, dual, whole)


def _of_everybody(solution: Any, n_clients: int) -> TypeGuard[LocalSolution | DualPoint]:
    models = solution.dual if isinstance(solution, DualPoint) else getattr(solution, "theta", None)
    return models is not None and models.shape[0] == n_clients


def _rounded_up(gap: float) -> float:
    """Return the next numbers above a sum of a few positive terms; infinity for NaN."""
    return gap * (1.0 + 4.0 * sys.float_info.epsilon) + sys.float_info.min if gap >= 0 else math.inf
