"""5GCS: the contraction of its Lyapunov function, with the exact expectation over the cohorts."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from dualopt.algorithms import FiveGCS
from dualopt.claims import Inequality, claim
from dualopt.engine import State, initial_state
from dualopt.xp import Array
from theory._cases import accurately
from theory._claims import ROUNDING, UP_TO_ROUNDING, ExpectedVerdict
from theory._problems import Instance, hard_quadratic, logistic, quadratic
from theory.compared._cases import Federation, federation
from theory.compared._one_step import Errors, one_step, smooth_and_strongly_convex


def admitted(case: Federation) -> list[str]:
    """Return what fails of the parameters."""
    method, N = case.algorithm, case.objective.n_clients
    curvature = [] if 0 < method.mu <= case.mu * UP_TO_ROUNDING and method.mu < case.L else ["0 < mu < L"]
    small = method.gamma * method.tau * N <= UP_TO_ROUNDING
    return smooth_and_strongly_convex(case) + curvature + ([] if small else ["gamma tau N <= 1"])


def fivegcs_one_step_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Cohorts of all sizes with the suggested parameters, others, and a product of the steps beyond one."""
    for active in (1, 2, 3):
        yield ExpectedVerdict(sampled(quadratic(), active))
    yield ExpectedVerdict(sampled(hard_quadratic(L=20.0), 1, gamma=1.0, product=1.0, attained=True))
    yield ExpectedVerdict(sampled(quadratic(L=5.0), 2, gamma=0.1, product=1.0))
    yield ExpectedVerdict(sampled(logistic(), 2))
    yield ExpectedVerdict(sampled(quadratic(L=20.0), 1, gamma=0.2, product=5.0), "outside assumptions")


@claim(
    source="Grudzien, Malinovsky and Richtarik 2023 (recalled)",
    statement=r"For $\mu$-strongly convex, $L$-smooth clients, a uniform cohort of $C$ of them, exact proximal maps and"
    r" $\gamma\tau N \le 1$: $\mathbb E\,\Psi^+ \le \max\bigl(\frac1{1 + \gamma\mu}, 1 - \frac CN\frac\tau{L_F + \tau}"
    r"\bigr)\Psi$ with $L_F = (L - \mu)/N$, $\Psi = \frac1\gamma|x - x^*|^2 + \frac NC(\frac1\tau + \frac1{L_F})"
    r"\sum_m|u_m - u_m^*|^2$, $u_m^* = (\nabla f_m(x^*) - \mu x^*)/N$. Equal"
    r" Hessians and $C = 1$ attain the second number.",
    assumptions=admitted,
    rtol=ROUNDING,
    cases=fivegcs_one_step_cases,
)
def fivegcs_one_step(case: Federation) -> Iterator[Inequality]:
    """Compare with the larger of the primal and the dual factor."""
    method, (L_F, _) = case.algorithm, constants(case)
    primal = 1.0 / (1.0 + method.gamma * method.mu)
    dual = 1.0 - case.fraction * method.tau / (L_F + method.tau)
    return one_step(case, lyapunov(case), max(primal, dual))


def constants(case: Federation) -> tuple[float, float]:
    """Return the smoothness of the F_m and the weight of the squared errors of the duals."""
    L_F = (case.L - case.algorithm.mu) / case.objective.n_clients
    return L_F, (1.0 / case.algorithm.tau + 1.0 / L_F) / case.fraction


def lyapunov(case: Federation) -> Errors:
    """Return the weighted errors of the model and of the duals."""
    f, method = case.objective, case.algorithm
    d, gamma, mu = math.prod(f.shape), method.gamma, method.mu
    limits = (case.subgradients - mu * case.theta) / f.n_clients
    primal, dual = 1.0 / math.sqrt(gamma), math.sqrt(constants(case)[1])
    start = initial_state(method, f, case.theta)

    def of(state: State) -> Array:
        x, u = state.server.theta - case.theta, state.clients.dual - limits
        return np.concatenate([primal * np.ravel(x), dual * np.ravel(u)])

    def state(e: Array) -> State:
        x, u = case.theta + e[:d].reshape(f.shape) / primal, limits + e[d:].reshape(limits.shape) / dual
        v = np.sum(u, axis=0)
        xhat = (x - gamma * v) / (1.0 + gamma * mu)
        return State(start.server._replace(theta=x, dual=v, xhat=xhat), xhat, start.clients._replace(dual=u))

    return Errors(d + limits.size, of, state)


def sampled(
    f: Instance, active: int, *, gamma: float | None = None, product: float = 0.5, attained: bool = False
) -> Federation:
    """Return 5GCS with the given product of gamma, tau and N; with the suggested gamma when there is none."""
    N, exactly = f.objective.n_clients, accurately(f.objective)
    method = FiveGCS(fraction=active / N, **exactly)
    gamma = method.suggested(f.objective).gamma if gamma is None else gamma
    method = FiveGCS(gamma=gamma, tau=product / (gamma * N), fraction=active / N, **exactly)
    note = f"gamma = {gamma:.3g}, gamma tau N = {product:g}"
    return federation(f, method, active=active, rounds=15, attained=attained, note=note)
