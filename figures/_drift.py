"""The runs behind the figures of the A-FedPD paper: primal-dual methods while ever fewer clients take part."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from dualopt.engine.rounds import Snapshot
from dualopt.methods import AFedPD, Algorithm, FedADMM, FedAvg, FedDyn, FedSpeed
from dualopt.methods.participation import UniformSubset
from dualopt.objectives import NonconvexPenalty, Objective
from dualopt.problem.build import build_problem
from dualopt.problem.options import ProblemOptions
from dualopt.runs.reference import solve
from dualopt.runs.trace import Trace
from dualopt.solvers.stopping import GradientReduction
from figures._curves import Curve, Problem, stationarity, trace_curves
from figures._local_models import LocalModels
from figures._settings import Settings

__all__ = [
    "CLIENTS",
    "KINDS",
    "RHO",
    "Residuals",
    "convex_problem",
    "drift_traces",
    "methods",
    "name_of",
    "nonconvex_problem",
    "rounds_of",
]

CLIENTS = 100
CONCENTRATION = 0.3
RHO = 0.3  # of all methods
# The nonconvex penalty has the curvature of the ridge at zero; a scale of 10 puts a part of the weights of a solution
# where its curvature is negative.
SCALE = 10.0
KINDS = ("convex", "nonconvex")
# With the usual factor of 0.1 errors are off by up to 26% where few clients are active; this costs a tenth more.
CAREFUL = GradientReduction(factor=0.01)


def methods(settings: Settings) -> dict[str, Algorithm]:
    """Return the methods by their names, and FedADMM as the paper has it, all with the same weight ``RHO``."""
    stop = CAREFUL if settings.stop == GradientReduction() else settings.stop
    return {
        "fedadmm": FedADMM(rho=RHO, server_step=1.0, stop=stop),
        "active-fedadmm": FedSpeed(rho=RHO, stop=stop, radius=0.0),
        "feddyn": FedDyn(alpha=RHO, stop=stop),
        "a-fedpd": AFedPD(rho=RHO, stop=stop),
        "fedavg": FedAvg(),
    }


def name_of(kind: str, percent: int, method: str) -> str:
    """Return the label of a curve.

    Examples
    --------
    >>> name_of("convex", 10, "feddyn")
    'convex, 10%: feddyn'
    """
    return f"{kind}, {percent}%: {method}"


def rounds_of(settings: Settings) -> int:
    """Return the number of rounds: twice that of other figures, as few clients are active; a third of it if quick."""
    return 2 * settings.rounds // (3 if settings.quick else 1)


def drift_traces(settings: Settings, *, percents: Iterable[int], names: Iterable[str]) -> dict[str, Trace]:
    r"""Run methods on both problems with every share of active clients.

    The convex problem is that of the settings, dealt out to 100 clients by a Dirichlet distribution, every client
    counting alike; the nonconvex one has :class:`dualopt.objectives.NonconvexPenalty` in place of the ridge. The column
    ``error`` is :math:`(E - E^*)/|E^*|` for the convex problem and :math:`|\nabla E|^2` for the other, ``primal`` and
    ``dual`` are the :class:`Residuals`.

    Parameters
    ----------
    settings : Settings
        Data, rounds, and where results are stored.
    percents : iterable of int
        Active clients of every 100.
    names : iterable of str
        Names of :func:`methods`.
    """
    chosen = {name: methods(settings)[name] for name in names}
    curves = {
        name_of(kind, percent, name): Curve(
            problem=problem,
            algorithm=algorithm,
            participation=UniformSubset(size=percent * CLIENTS // 100),
            rounds=rounds_of(settings),
        )
        for kind, problem in (("convex", convex_problem(settings)), ("nonconvex", nonconvex_problem(settings)))
        for percent in percents
        for name, algorithm in chosen.items()
    }
    return trace_curves(curves, settings)


class Residuals:
    r"""The residuals of the A-FedPD paper (Appendix A.4.2), to be measured after each round of one run.

    .. math:: p^t = \tfrac1N \textstyle\sum_j |\theta^t - \theta_j^t|, \qquad d^t = \rho\, |\theta^t - \theta^{t-1}|

    with :math:`\theta_j^t` the latest local model of client ``j``, the common start before its first.

    Examples
    --------
    >>> from itertools import islice
    >>> from dualopt.engine.rounds import iterate
    >>> from dualopt.objectives import Quadratic
    >>> from dualopt.solvers import Exact
    >>> f = Quadratic(A=np.ones((2, 1, 1)), b=np.array([[1.0], [3.0]]))
    >>> residuals = Residuals(f, rho=1.0)
    >>> for snapshot in islice(iterate(AFedPD(rho=1.0, solver=Exact()), f), 1):
    ...     print(snapshot.server.theta.tolist(), residuals.primal(snapshot), residuals.dual(snapshot))
    [2.0] 1.0 2.0
    """

    def __init__(self, objective: Objective, *, rho: float) -> None:
        self._rho = rho
        self._theta = np.asarray(objective.zeros())
        self._latest = LocalModels(objective)

    def primal(self, snapshot: Snapshot) -> float:
        """Return ``p^t``."""
        apart = self._latest.after(snapshot) - snapshot.server.theta
        return float(np.mean(np.linalg.norm(apart.reshape(len(apart), -1), axis=1)))

    def dual(self, snapshot: Snapshot) -> float:
        """Return ``d^t``."""
        moved = float(np.linalg.norm(snapshot.server.theta - self._theta))
        self._theta = snapshot.server.theta
        return self._rho * moved


def convex_problem(settings: Settings) -> Problem:
    """Return the problem with the ridge; a stored ``E*`` belongs to it."""
    description = _described(settings, "convex")

    def options(objective: Any) -> dict[str, Any]:
        stored = description | {"result": "reference energy"}
        energy = settings.stored_number("the reference energy", stored, lambda: float(solve(objective).energy))
        return {"reference": energy, "measure": _residuals(objective)}

    return Problem(description=description, build=lambda: build_problem(_options(settings)).objective, options=options)


def nonconvex_problem(settings: Settings) -> Problem:
    """Return the problem with the nonconvex penalty."""

    def build() -> NonconvexPenalty:
        ridge = _options(settings)
        flat = build_problem(replace(ridge, mu=0.0)).objective
        return NonconvexPenalty(objective=flat, lam=0.5 * ridge.mu / SCALE, alpha=SCALE)

    def options(objective: Any) -> dict[str, Any]:
        return {"measure": {"error": lambda s: stationarity(objective, s.server.theta), **_residuals(objective)}}

    return Problem(description=_described(settings, "nonconvex"), build=build, options=options)


def _residuals(objective: Any) -> dict[str, Any]:
    residuals = Residuals(objective, rho=RHO)
    return {"primal": residuals.primal, "dual": residuals.dual}


def _options(settings: Settings) -> ProblemOptions:
    return replace(settings.options(CLIENTS), partition="dirichlet", alpha=CONCENTRATION, client_weights="equal")


def _described(settings: Settings, kind: str) -> dict[str, Any]:
    """Return everything that defines a problem."""
    own = {"partition": "dirichlet", "alpha": CONCENTRATION, "client_weights": "equal", "kind": kind, "scale": SCALE}
    return settings.described(CLIENTS) | own
