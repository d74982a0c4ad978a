"""The one-shot average (recalled: Zhang, Duchi, Wainwright 2013; the jackknife of Quenouille 1956)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from dualopt.arrays._checks import Typed, require
from dualopt.arrays.xp import Array, array_namespace, asarray_like, broadcast
from dualopt.methods.participation import preparation_rng
from dualopt.methods.preparation._protocol import Prepared
from dualopt.objectives import LinearModel, LocalProblem, Objective
from dualopt.objectives.composite import without_regulariser
from dualopt.objectives.coordinates import InCoordinates
from dualopt.solvers import LocalSolution, LocalSolver, default_solver
from dualopt.solvers.stopping import GradientReduction, Stop

__all__ = ["OneShotAverage", "half"]


@dataclass(frozen=True, kw_only=True)
class OneShotAverage(Typed):
    r"""Start from the mean of the clients' own minimisers.

    .. math:: \theta^0 = \sum_jw_j\theta_j \Big/ \sum_jw_j, \qquad \theta_j = \arg\min f_j

    One vector up, and ``theta0`` down, where the local solvers start; the mean travels as the first message. It is near
    the minimiser where clients are alike: for quadratics with :math:`(1 - \epsilon)H \preceq H_j \preceq (1 +
    \epsilon)H` its distance :math:`|\theta^0 - \theta^*|_H` is at most :math:`\epsilon` times the mean of the clients'
    (``one_shot_average``). Where clients differ it may be worse than zero. The minimisers are those of the ``f_j``, a
    regulariser is left out.

    With ``m`` rows a client's own minimiser has a bias of the order 1/m, the same for all clients that are alike, which
    their mean keeps. The jackknifed average takes it off: of :math:`2\theta_j - \frac12(\theta_j' + \theta_j'')` with
    the minimisers of two random halves of the client's rows, still one vector.

    Parameters
    ----------
    jackknife : bool, default False
        Whether to correct for the bias; for linear models.
    solver : LocalSolver, optional
        The local solver; by :func:`dualopt.solvers.default_solver`.
    stop : Stop
        When it stops; when the local gradient has fallen to a thousandth if not given.
    seed : int, default 0
        Of the halves.

    Raises
    ------
    ValueError
        From ``prepare`` if clients are not strongly convex, or the jackknife meets another objective than a linear
        model, or a client of less than two rows.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt import Quadratic, FedSplit, run
    >>> f = Quadratic(A=np.stack([np.eye(1), 3 * np.eye(1)]), b=np.array([[1.0], [9.0]]), c=np.ones(2))
    >>> trace = run(FedSplit(), f, prepare=OneShotAverage(), rounds=1)
    >>> trace["floats_up"].tolist(), trace["energy"].round(4).tolist()
    ([2.0, 4.0], [-5.0, -5.116])
    """

    jackknife: bool = False
    solver: LocalSolver | None = None
    stop: Stop = GradientReduction(factor=1e-3, first=1e-3)
    seed: int = 0

    def check(self, objective: Objective) -> None:
        """Refuse clients without a minimiser of their own, or without rows to halve."""
        f = without_regulariser(objective)
        sentence = "start must not be one-shot where a client is not strongly convex: it has no minimiser of its own"
        require(float(array_namespace(f.mu).min(f.mu)) > 0, sentence)
        model = f.objective if isinstance(f, InCoordinates) else f
        sentence = "start must not be jackknife"
        require(not self.jackknife or isinstance(model, LinearModel), f"{sentence}: it halves rows of linear models")
        require(not self.jackknife or min(model.sizes) > 1, f"{sentence} where a client has one row: it halves them")

    def prepare(self, objective: Objective, theta0: Array) -> Prepared:
        """Solve the local problems and average."""
        self.check(objective)
        f = without_regulariser(objective)
        own = self._solved(f, theta0)
        points, gradients = own.theta, list(own.gradients)
        if self.jackknife:
            for side in (0, 1):
                found = self._solved(half(f, side, self.seed), points)
                points = points + 0.5 * (own.theta - found.theta)
                gradients = [a + 0.5 * b for a, b in zip(gradients, found.gradients, strict=True)]
        size, average = f.n_clients * math.prod(f.shape), f.mean(points)
        return Prepared(
            objective=objective,
            theta0=average,
            floats_up=size,
            floats_down=size,
            gradients=tuple(gradients),
            exchanges=1,
        )

    def _solved(self, objective: Objective, start: Array) -> LocalSolution:
        solver = default_solver(objective) if self.solver is None else self.solver
        start = broadcast(start, (objective.n_clients, *objective.shape))
        return solver(LocalProblem(objective=objective), start, self.stop, solver.initial_state(objective))


def half(objective: LinearModel | InCoordinates, side: int, seed: int = 0) -> LinearModel | InCoordinates:
    """Return the linear model of a random half of every client's rows, of the same total weight; the rest weighs zero.

    Features are shared. The two sides have no row in common.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt import linear_model
    >>> from dualopt.losses import Squared
    >>> f = linear_model(np.eye(4), np.ones(4), loss=Squared(), mu=0.0, clients=2)
    >>> weights = [np.stack([w for *_, w in half(f, side).client_rows()]) for side in (0, 1)]
    >>> sorted(weights[0][0].tolist()), (weights[0] + weights[1]).tolist()
    ([0.0, 1.0], [[1.0, 1.0], [1.0, 1.0]])
    """
    if isinstance(objective, InCoordinates):
        return InCoordinates(objective=half(objective.objective, side, seed), metric=objective.metric)
    rows = objective.rows
    groups = []
    for number, group in enumerate(rows.groups):
        host = array_namespace(rows.group)
        mask = host.zeros((group.n_clients, group.n_rows))
        for client in host.nonzero(rows.group == number)[0].tolist():
            order = preparation_rng(seed, client).permutation(group.n_rows)
            cut = group.n_rows // 2
            mask[int(rows.position[client]), order[:cut] if side == 0 else order[cut:]] = 1.0
        groups.append(replace(group, w=_reweighted(group.w, asarray_like(mask, group.w)), cache={}))
    return replace(objective, rows=replace(rows, groups=tuple(groups)))


def _reweighted(w: Array, mask: Array) -> Array:
    """Return the weights of a half, with the sum of all; where the half has none, zeros."""
    xp = array_namespace(w)
    chosen = xp.sum(mask * w, axis=-1, keepdims=True)
    factor = xp.sum(w, axis=-1, keepdims=True) / xp.where(chosen > 0, chosen, xp.ones_like(chosen))
    return mask * w * factor
