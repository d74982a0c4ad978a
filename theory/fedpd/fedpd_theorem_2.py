"""Theorem 2: Oracle II makes the mean squared gradient fall like 1/T; the constant is not given."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from dualopt.algorithms import FedPD
from dualopt.claims import Inequality, claim
from dualopt.losses import Logistic
from dualopt.objectives import linear_model
from dualopt.rates import estimate_order
from dualopt.solvers import Sarah
from dualopt.stopping import Steps
from theory._claims import ExpectedVerdict
from theory.fedpd._instances import penalised
from theory.fedpd._run import Run
from theory.fedpd.fedpd_theorem_1 import mean_gradients

ORDER = 1.0


def assumptions(run: Run) -> list[str]:
    """Check the ranges of both steps."""
    solver, steps = run.algorithm.solver, run.algorithm.stop.steps
    batch = solver.batch or min(run.objective.sizes)
    known = {"L": run.L, "batch": batch}
    eta = [] if run.eta < step_limit(steps=steps, refresh=solver.refresh, **known) else ["eta < 1/(3(Q+sqrt(QI/B))L)"]
    return eta + ([] if solver.gamma > length_limit(eta=run.eta, **known) else ["gamma > 5 eta/(B sqrt(L))"])


def theorem_2_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Separable rows, whose gradients are squares of 1/n; and the paper's own nonconvex problem."""
    X = np.array([[1.0, 0.2], [0.8, -0.1], [1.5, 0.3], [0.6, 0.0]])
    slow = linear_model(X, np.ones(4), loss=Logistic(), mu=0.0, clients=2, intercept=False)
    rounds = 500 if quick else 5000
    for name, f, start in (("separable logistic", slow, 0.0), ("penalised logistic", penalised(), 2.0)):
        for steps in (1, 4):
            yield ExpectedVerdict(oracle_2(name, f, start * np.ones(f.shape), steps=steps, rounds=rounds))
    long = FedPD(eta=1.0, solver=Sarah(gamma=9.0), stop=Steps(steps=1))
    run = oracle_2("separable logistic, eta = 1", slow, np.zeros(2), steps=1, rounds=20)
    yield ExpectedVerdict(run.but(algorithm=long), "outside assumptions")


@claim(
    name="fedpd_theorem_2",
    source="Zhang et al., Theorem 2, (10)",
    statement=r"Oracle II with $p = 0$, $0 < \eta < \frac{1}{3(Q+\sqrt{QI/B})L}$ and $\gamma > \frac{5\eta}{B\sqrt L}$:"
    r" $\frac1T\sum_{r<T}\mathbb E|\nabla E(x_0^r)|^2 \le \frac{C_9}{T}(E(x^0)-E^*)$ with a constant that is not given;"
    r" checked is the order, with all rows in every sample.",
    assumptions=assumptions,
    constant="hidden",
    cases=theorem_2_cases,
)
def theorem_2(run: Run) -> Iterator[Inequality]:
    """Compare the order with the largest that the run allows; the mean can never fall faster than 1/T."""
    means = [mean for _, mean, _ in mean_gradients(run)]
    falls = np.all(np.isfinite(means))
    order = estimate_order([means[0], *means]).high if falls else -math.inf
    yield Inequality(run.rounds, ORDER, order, "order")


def step_limit(*, L: float, steps: int, refresh: int, batch: float) -> float:
    """Return the limit of ``eta``.

    Examples
    --------
    >>> round(step_limit(L=1.0, steps=2, refresh=8, batch=4), 6)
    0.083333
    """
    return 1.0 / (3.0 * (steps + math.sqrt(steps * refresh / batch)) * L)


def length_limit(*, L: float, eta: float, batch: float) -> float:
    """Return what ``gamma`` must exceed, as printed.

    Examples
    --------
    >>> length_limit(L=4.0, eta=0.1, batch=1)
    0.25
    """
    return 5.0 * eta / (batch * math.sqrt(L))


def oracle_2(name: str, objective: Any, theta0: np.ndarray, *, steps: int, rounds: int, refresh: int = 8) -> Run:
    """Return FedPD with Oracle II and every row in every sample, so that nothing is random."""
    known = {"L": float(np.max(objective.L)), "batch": min(objective.sizes)}
    eta = 0.9 * step_limit(steps=steps, refresh=refresh, **known)
    solver = Sarah(gamma=1.1 * length_limit(eta=eta, **known), batch=None, refresh=refresh)
    return Run(
        name=f"{name}, Q = {steps}",
        algorithm=FedPD(eta=eta, solver=solver, stop=Steps(steps=steps)),
        objective=objective,
        lowest=0.0,
        theta0=theta0,
        rounds=rounds,
    )
