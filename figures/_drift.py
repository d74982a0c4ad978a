"""The runs behind the figures of the A-FedPD paper: primal-dual methods while ever fewer clients take part."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from dualopt import federation
from dualopt._cli_output import progress_bar
from dualopt._cli_problem import build_problem
from dualopt.algorithms import AFedPD, Algorithm, FedADMM, FedAvg, FedDyn, FedSpeed
from dualopt.objectives import NonconvexPenalty, Objective
from dualopt.participation import UniformSubset
from dualopt.reference import solve
from dualopt.stopping import GradientReduction
from dualopt.trace import Trace
from figures._fedpd import stationarity
from figures._latest import LatestModels
from figures._settings import Settings
from figures._store import stored_number, stored_trace

__all__ = ["CLIENTS", "KINDS", "RHO", "Residuals", "drift_traces", "methods", "name_of", "rounds_of", "stationarity"]

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
    """Return the methods under the names that their styles belong to, all with the same weight ``RHO``."""
    stop = CAREFUL if settings.stop == GradientReduction() else settings.stop
    return {
        "fedadmm": FedADMM(rho=RHO, server_step=1.0, stop=stop),
        "fedpd:active": FedSpeed(rho=RHO, stop=stop, radius=0.0),
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
    """Return the number of rounds: twice that of other figures, as most clients sleep; a third of it in quick mode."""
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
    runs = _Runs(settings)
    return {
        name_of(kind, percent, name): runs.trace(kind, percent, name, algorithm)
        for kind in KINDS
        for percent in percents
        for name, algorithm in chosen.items()
    }


class Residuals:
    r"""The residuals of the A-FedPD paper (Appendix A.4.2), to be measured after each round of one run.

    .. math:: p^t = \tfrac1N \textstyle\sum_j |\theta^t - \theta_j^t|, \qquad d^t = \rho\, |\theta^t - \theta^{t-1}|

    with :math:`\theta_j^t` the latest local model of client ``j``, the common start before its first.

    Examples
    --------
    >>> from itertools import islice
    >>> from dualopt.objectives import Quadratic
    >>> from dualopt.solvers import Exact
    >>> f = Quadratic(A=np.ones((2, 1, 1)), b=np.array([[1.0], [3.0]]))
    >>> residuals = Residuals(f, rho=1.0)
    >>> for snapshot in islice(federation.iterate(AFedPD(rho=1.0, solver=Exact()), f), 1):
    ...     print(snapshot.server.theta.tolist(), residuals.primal(snapshot), residuals.dual(snapshot))
    [2.0] 1.0 2.0
    """

    def __init__(self, objective: Objective, *, rho: float) -> None:
        self._rho = rho
        self._theta = np.asarray(objective.zeros())
        self._latest = LatestModels(objective)

    def primal(self, snapshot: federation.Snapshot) -> float:
        """Return ``p^t``."""
        apart = self._latest.after(snapshot) - snapshot.server.theta
        return float(np.mean(np.linalg.norm(apart.reshape(len(apart), -1), axis=1)))

    def dual(self, snapshot: federation.Snapshot) -> float:
        """Return ``d^t``."""
        moved = float(np.linalg.norm(snapshot.server.theta - self._theta))
        self._theta = snapshot.server.theta
        return self._rho * moved


@dataclass(frozen=True)
class _Runs:
    settings: Settings

    def __post_init__(self) -> None:
        object.__setattr__(self, "problem", lru_cache(maxsize=2)(self.problem))

    def problem(self, kind: str) -> Any:
        """Return the objective."""
        options = replace(self.settings.options(CLIENTS), partition="dirichlet", alpha=CONCENTRATION, weights="clients")
        if kind == "convex":
            return build_problem(options).objective
        flat = build_problem(replace(options, mu=0.0)).objective
        return NonconvexPenalty(objective=flat, lam=0.5 * options.mu / SCALE, alpha=SCALE)

    def described(self, kind: str) -> dict[str, Any]:
        """Return everything that defines the problem."""
        own = {"partition": "dirichlet", "alpha": CONCENTRATION, "weights": "clients", "kind": kind, "scale": SCALE}
        return self.settings.described(CLIENTS) | own

    def energy(self) -> float:
        """Return ``E*`` of the convex problem."""
        compute = None if self.settings.stored_only else lambda: float(solve(self.problem("convex")).energy)
        description = self.described("convex") | {"result": "reference energy"}
        return stored_number(self.settings.cache, "the reference energy", description, compute)

    def trace(self, kind: str, percent: int, name: str, algorithm: Algorithm) -> Trace:
        """Return the stored trace of a run, or run it."""
        settings, rounds, label = self.settings, rounds_of(self.settings), name_of(kind, percent, name)
        participation = UniformSubset(size=percent * CLIENTS // 100)

        def compute(key: Mapping[str, Any]) -> Trace:
            objective = self.problem(kind)
            residuals = Residuals(objective, rho=RHO)
            with progress_bar(settings.console, label, rounds) as advance:
                trace = federation.run(
                    algorithm,
                    objective,
                    rounds=rounds,
                    participation=participation,
                    reference=self.energy() if kind == "convex" else None,
                    measure={
                        **({} if kind == "convex" else {"error": lambda s: stationarity(objective, s.server.theta)}),
                        "primal": residuals.primal,
                        "dual": residuals.dual,
                    },
                    callback=advance,
                    parameters={"key": key},
                )
            start = trace["error"].copy()
            if math.isnan(start[0]):  # measured columns begin after the first round
                start[0] = stationarity(objective, objective.zeros())
            return replace(trace, columns={**trace.columns, "error": start})

        description = self.described(kind) | {
            "participation": participation.size,
            "algorithm": federation.describe(algorithm),
            "rounds": rounds,
        }
        what = f"the curve {label!r}"
        return stored_trace(settings.cache, what, description, None if settings.stored_only else compute)
