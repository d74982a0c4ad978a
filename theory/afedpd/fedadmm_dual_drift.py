r"""Dual drift: where FedADMM goes when its server step is not the fraction of active clients.

Let :math:`a_j = \theta_j + \lambda_j/\rho`; the active clients upload the changes of their :math:`a_j`. A round adds
:math:`\frac{\eta_s}P` times the sum of the changes to the model and :math:`\frac1N` times it to :math:`\bar a`, so
:math:`\theta - \theta^0 = \eta_s\frac NP(\bar a - \bar a^0)` along every run. With zero duals and
:math:`\theta_j = \theta^0` at the start, :math:`\bar a^0 = \theta^0`. At a fixed point :math:`\theta_j = \theta` and
:math:`\lambda_j = -\nabla f_j(\theta)`, so :math:`\bar a = \theta - \nabla E(\theta)/\rho`, and the relation becomes
:math:`\nabla E(\theta) = \rho(1 - \frac P{N\eta_s})(\theta - \theta^0)`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from dualopt.algorithms import FedADMM
from dualopt.claims import Inequality, claim
from dualopt.engine import State, advance, initial_state, iterate
from dualopt.objectives import Quadratic
from dualopt.participation import UniformSubset
from dualopt.solvers import Exact
from dualopt.xp import Array
from theory._chance import subsets
from theory._claims import ExpectedVerdict, deviation
from theory._problems import quadratic


@dataclass(frozen=True, kw_only=True, eq=False)
class Drift:
    """FedADMM with ``active`` of N clients; ``arrives`` says whether the run comes to rest within the rounds."""

    name: str
    algorithm: Any
    objective: Quadratic
    theta0: Array
    active: int
    rounds: int
    arrives: bool

    @property
    def gain(self) -> float:
        r"""Return :math:`\eta_s N/P`: 1 when no server step is given."""
        step = self.algorithm.server_step
        return 1.0 if step is None else step * self.objective.n_clients / self.active


def fedadmm_dual_drift_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Wrong limits of small rho, a run that diverges, and the right limit."""
    for rho, rounds in ((1.0, 1200), (2.0, 700), (3.0, 700)):
        yield ExpectedVerdict(drift(rho, 1.0, rounds, arrives=True))
    yield ExpectedVerdict(drift(20.0, 1.0, 60, arrives=False))
    yield ExpectedVerdict(drift(5.0, None, 400, arrives=True))
    yield ExpectedVerdict(drift(5.0, 1.0, 200, arrives=True, active=10))


@claim(
    source="Sun, Shen and Tao, Section 3.2 (dual drift), with its limit",
    statement=r"FedADMM from zero duals: $\theta - \theta^0 = \eta_s\frac NP\bigl(\frac1N\sum_j(\theta_j +"
    r" \lambda_j/\rho) - \theta^0\bigr)$ in every round, so that a fixed point solves $\nabla E(\theta) ="
    r" c(\theta - \theta^0)$, $c = \rho(1 - \frac P{N\eta_s})$: the minimiser for every start only if"
    r" $\eta_s = P/N$.",
    rounding=0.0,
    cases=fedadmm_dual_drift_cases,
)
def fedadmm_dual_drift(case: Drift) -> Iterator[Inequality]:
    """Compare the relation along the run, the end of the run, and what all rounds do to the fixed point."""
    f, rho = case.objective, case.algorithm.rho
    run = iterate(case.algorithm, f, theta0=case.theta0, participation=UniformSubset(size=case.active))
    for n, s in enumerate(islice(run, case.rounds), start=1):
        augmented = np.mean(s.clients.theta + s.clients.dual / rho, axis=0)
        moved = s.server.theta - case.theta0
        yield Inequality(n, deviation(moved, case.gain * (augmented - case.theta0)), 1e-10, "theta - theta^0")
        theta = s.server.theta
    limit = fixed_model(case)
    if case.arrives:
        yield Inequality(case.rounds, deviation(theta, limit), 1e-9, "limit")
    state = fixed_state(case, limit)
    for outcome in subsets(f.n_clients, case.active):
        after, _, _ = advance(case.algorithm, f, state, outcome.round)
        yield Inequality(0, deviation(after.server.theta, limit), 1e-12, "a round from the fixed point")


def fixed_model(case: Drift) -> Array:
    r"""Solve :math:`\nabla E(\theta) = c(\theta - \theta^0)`."""
    c = case.algorithm.rho * (1.0 - 1.0 / case.gain)
    A, b = np.mean(case.objective.A, axis=0), np.mean(case.objective.b, axis=0)
    return np.linalg.solve(A - c * np.eye(len(b)), b - c * case.theta0)


def fixed_state(case: Drift, theta: Array) -> State:
    """Return the state in which every client is at ``theta`` with the dual that belongs to it."""
    server, _, clients, _ = initial_state(case.algorithm, case.objective, theta)
    return State(server, theta, clients._replace(dual=-case.objective.gradient(theta)))


def drift(rho: float, server_step: float | None, rounds: int, *, arrives: bool, active: int = 3) -> Drift:
    """Return a case on ten quadratics of condition 10."""
    f = quadratic(10, L=10.0).objective
    step = "P/N" if server_step is None else f"{server_step:g}"
    return Drift(
        name=f"{active} of 10 active, rho = {rho:g}, server step {step}",
        algorithm=FedADMM(rho=rho, server_step=server_step, solver=Exact()),
        objective=f,
        theta0=np.full(4, 3.0),
        active=active,
        rounds=rounds,
        arrives=arrives,
    )
