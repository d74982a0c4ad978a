"""Scaffnew: the contraction of its Lyapunov function, with both sides of the coin."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from dualopt.algorithms import Scaffnew
from dualopt.claims import Inequality, claim
from dualopt.engine import State, initial_state
from dualopt.solvers import Gradient
from dualopt.xp import Array
from theory._chance import coin
from theory._claims import ROUNDING, ExpectedVerdict, deviation
from theory._problems import Instance, hard_quadratic, logistic, quadratic
from theory.compared._cases import Federation, federation
from theory.compared._one_step import Errors, one_step, run, smooth_and_strongly_convex


def short_steps(case: Federation) -> list[str]:
    """Return what fails: steps from 2/L on do not contract."""
    fine = case.algorithm.solver.step * case.L < 2.0
    return smooth_and_strongly_convex(case) + ([] if fine else ["step < 2/L"])


def scaffnew_one_step_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Rare and certain communication, short steps and long ones; a step that is too long."""
    for times, p in ((1.0, 0.05), (1.0, 0.2), (1.9, 0.7), (0.3, 1.0)):
        yield ExpectedVerdict(tossed(quadratic(), times, p, attained=True))
    yield ExpectedVerdict(tossed(logistic(), 1.0, 0.3))
    if not quick:
        yield ExpectedVerdict(tossed(hard_quadratic(), 1.0, 0.03, attained=True))
    yield ExpectedVerdict(tossed(quadratic(), 2.1, 0.5), "outside assumptions")


@claim(
    source="Mishchenko et al. 2022 (recalled), with the factor derived anew",
    statement=r"For $\mu$-strongly convex, $L$-smooth clients, steps $s < 2/L$ and $p \in (0, 1]$,"
    r" $\mathbb E\,\Psi^+ = \sum_j |x_j - s\nabla f_j(x_j) - \theta^* + s\nabla f_j(\theta^*)|^2"
    r" + (1 - p^2)\frac{s^2}{p^2}\sum_j |h_j - \nabla f_j(\theta^*)|^2"
    r" \le \max((1 - s\mu)^2, (1 - sL)^2, 1 - p^2)\,\Psi$ with"
    r" $\Psi = \sum_j |x_j - \theta^*|^2 + \frac{s^2}{p^2}\sum_j |h_j - \nabla f_j(\theta^*)|^2$. Quadratics that have"
    r" the curvatures $\mu$ and $L$ attain it. For $s \le 1/L$ it is at most the paper's $1 - \min(s\mu, p^2)$.",
    assumptions=short_steps,
    rtol=ROUNDING,
    cases=scaffnew_one_step_cases,
)
def scaffnew_one_step(case: Federation) -> Iterator[Inequality]:
    """Compare with the factor, and with what the mean is exactly."""
    s, p, errors = case.algorithm.solver.step, case.algorithm.probability, lyapunov(case)
    yield from one_step(case, errors, max((1.0 - s * case.mu) ** 2, (1.0 - s * case.L) ** 2, 1.0 - p * p))
    for n, (state, mean) in enumerate(run(case, errors), start=1):
        theta, control = state.clients.theta, state.clients.control
        moved = theta - case.theta - s * (case.objective.gradient(theta) - case.subgradients)
        error = (1.0 - p * p) * (s / p) ** 2 * np.sum((control - case.subgradients) ** 2)
        yield Inequality(n, deviation(mean, np.sum(moved**2) + error), ROUNDING, "the mean itself")


def lyapunov(case: Federation) -> Errors:
    """Return the errors of the models and, s/p times, of the controls, which have sum zero."""
    f, method = case.objective, case.algorithm
    N, d = f.n_clients, math.prod(f.shape)
    weight = method.solver.step / method.probability
    centred = np.linalg.svd(np.eye(N) - 1.0 / N)[0][:, :-1]  # a basis of what has sum zero
    start = initial_state(method, f, case.theta)

    def of(state: State) -> Array:
        control = weight * (state.clients.control - case.subgradients).reshape(N, d)
        return np.concatenate([np.ravel(state.clients.theta - case.theta), np.ravel(centred.T @ control)])

    def state(e: Array) -> State:
        theta = case.theta + e[: N * d].reshape(N, *f.shape)
        control = case.subgradients + (centred @ e[N * d :].reshape(N - 1, d)).reshape(N, *f.shape) / weight
        return start._replace(clients=start.clients._replace(theta=theta, control=control))

    return Errors((2 * N - 1) * d, of, state)


def tossed(f: Instance, times: float, p: float, attained: bool = False) -> Federation:
    """Return Scaffnew with a step of ``times/L`` and its coin."""
    method = Scaffnew(probability=p, solver=Gradient(step=times / f.L))
    common = {"outcomes": coin(f.objective.n_clients, p), "attained": attained}
    return federation(f, method, rounds=15, note=f"s = {times:g}/L, p = {p:g}", **common)
