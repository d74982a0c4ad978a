r"""Dual drift: where FedADMM goes when its server step is not the fraction of active clients (Section 3.2).

Let :math:`a_j = \theta_j + \lambda_j/\rho`; the active clients upload the changes of their :math:`a_j`. A round adds
:math:`\frac{\eta_s}P` times the sum of the changes to the model and :math:`\frac1N` times it to :math:`\bar a`, so
:math:`\theta - \theta^0 = \eta_s\frac NP(\bar a - \bar a^0)` along every run. With zero duals and
:math:`\theta_j = \theta^0` at the start, :math:`\bar a^0 = \theta^0`. At a fixed point :math:`\theta_j = \theta` and
:math:`\lambda_j = -\nabla f_j(\theta)`, so :math:`\bar a = \theta - \nabla E(\theta)/\rho`, and the relation becomes
:math:`\nabla E(\theta) = \rho(1 - \frac P{N\eta_s})(\theta - \theta^0)`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dualopt.arrays.xp import Array
from dualopt.engine.rounds import State, advance, initial_state
from dualopt.lab.claims import Inequality, claim
from dualopt.methods import FedADMM
from dualopt.methods.participation import UniformSubset
from theory._cases import Case, Derived, accurately
from theory._claims import ExpectedVerdict, deviation
from theory._problems import quadratic


def drift_case(
    instance: Case,
    *,
    rho: float,
    server_step: float | None,
    active: int,
    rounds: int,
    arrives: bool,
    theta0: Array | None = None,
) -> Case:
    r"""Start FedADMM on quadratic clients, with exact local solutions.

    Parameters
    ----------
    instance : Case
        The clients.
    rho : float
        Weight of the proximal term.
    server_step : float or None
        :math:`\eta_s`; None for P/N.
    active : int
        Number P of active clients.
    rounds : int
        How many rounds to look at.
    arrives : bool
        Whether the run comes to rest within the rounds.
    theta0 : array, shape ``shape``, optional
        The first model; 3 in every entry when not given.

    Examples
    --------
    >>> drift_case(quadratic(), rho=5.0, server_step=1.0, active=1, rounds=1, arrives=False).gain
    3.0
    """
    f = instance.objective
    step = "P/N" if server_step is None else f"{server_step:g}"
    return Case(
        name=f"{active} of {f.n_clients} active, rho = {rho:g}, server step {step}",
        algorithm=FedADMM(rho=rho, server_step=server_step, **accurately(f)),
        objective=f,
        theta=instance.theta,
        subgradients=instance.subgradients,
        theta0=np.full(f.shape, 3.0) if theta0 is None else theta0,
        participation=UniformSubset(size=active),
        rounds=rounds,
        known={"arrives": arrives, "gain": Derived(gain)},
    )


def gain(case: Case) -> float:
    r"""Return :math:`\eta_s N/P`: 1 when no server step is given."""
    step = case.algorithm.server_step
    return 1.0 if step is None else step / case.fraction


def fedadmm_dual_drift_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Wrong limits of small rho, a run that diverges, and the right limit of P/N and of all clients."""
    f = quadratic(10, L=10.0)
    for rho, rounds in ((1.0, 1200), (2.0, 700), (3.0, 700)):
        yield ExpectedVerdict(drift_case(f, rho=rho, server_step=1.0, active=3, rounds=rounds, arrives=True))
    yield ExpectedVerdict(drift_case(f, rho=20.0, server_step=1.0, active=3, rounds=60, arrives=False))
    yield ExpectedVerdict(drift_case(f, rho=5.0, server_step=None, active=3, rounds=400, arrives=True))
    yield ExpectedVerdict(drift_case(f, rho=5.0, server_step=1.0, active=10, rounds=200, arrives=True))


@claim(
    source="Sun, Shen and Tao, Section 3.2 (dual drift), with its limit",
    statement=r"FedADMM from zero duals: $\theta - \theta^0 = \eta_s\frac NP\bigl(\frac1N\sum_j(\theta_j +"
    r" \lambda_j/\rho) - \theta^0\bigr)$ in every round, so that a fixed point solves $\nabla E(\theta) ="
    r" c(\theta - \theta^0)$, $c = \rho(1 - \frac P{N\eta_s})$: the minimiser for every start only if"
    r" $\eta_s = P/N$.",
    cases=fedadmm_dual_drift_cases,
)
def fedadmm_dual_drift(case: Case) -> Iterator[Inequality]:
    """Dual drift: the model moves by a multiple of what the augmented models do, and ends where that leads.

    Compare the relation along the run, the end of the run, and what all rounds do to the fixed point.
    """
    theta = case.theta0
    for n, shot in enumerate(case.snapshots(), start=1):
        theta, clients = shot.server.theta, shot.clients
        augmented = np.mean(clients.theta + clients.dual / case.algorithm.rho, axis=0)
        moved = case.gain * (augmented - case.theta0)
        yield Inequality(n, deviation(theta - case.theta0, moved), 1e-10, "theta - theta^0")
    limit = fixed_model(case)
    if case.arrives:
        yield Inequality(case.rounds, deviation(theta, limit), 1e-9, "limit")
    state = fixed_state(case, limit)
    for outcome in case.events():
        after, _, _ = advance(case.algorithm, case.objective, state, outcome.round)
        yield Inequality(0, deviation(after.server.theta, limit), 1e-12, "a round from the fixed point")


def fixed_model(case: Case) -> Array:
    r"""Solve :math:`\nabla E(\theta) = c(\theta - \theta^0)`."""
    c = case.algorithm.rho * (1.0 - 1.0 / case.gain)
    A, b = np.mean(case.objective.A, axis=0), np.mean(case.objective.b, axis=0)
    return np.linalg.solve(A - c * np.eye(len(b)), b - c * case.theta0)


def fixed_state(case: Case, theta: Array) -> State:
    """Return the state in which every client is at ``theta`` with the dual that belongs to it."""
    start = initial_state(case.algorithm, case.objective, theta)
    return start._replace(clients=start.clients._replace(dual=-case.objective.gradient(theta)))
