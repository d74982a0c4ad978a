"""FedSplit: the linear rate of Peaceman-Rachford splitting."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from dualopt.algorithms import FedSplit
from dualopt.claims import Inequality, claim
from dualopt.engine import State, initial_state
from dualopt.xp import Array
from theory._cases import accurately
from theory._claims import ROUNDING, ExpectedVerdict
from theory._problems import Instance, hard_quadratic, logistic, quadratic
from theory.compared._cases import Federation, federation
from theory.compared._one_step import Errors, one_step, smooth_and_strongly_convex


def best_step(case: Federation) -> list[str]:
    """Return what fails: everybody is active, and the step is the best one."""
    right = abs(case.algorithm.step * math.sqrt(case.L * case.mu) - 1.0) <= ROUNDING if case.mu > 0 else True
    everybody = [] if case.fraction == 1 else ["all clients active"]
    return smooth_and_strongly_convex(case) + everybody + ([] if right else ["s = 1/sqrt(L mu)"])


def fedsplit_contraction_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Quadratics of several condition numbers, and a loss of another kind; what the theorem excludes."""
    for f in (quadratic(), quadratic(5, L=4.0), hard_quadratic()):
        yield ExpectedVerdict(split(f, attained=True))
    yield ExpectedVerdict(split(logistic()))
    yield ExpectedVerdict(split(quadratic(), times=2.0), "outside assumptions")
    yield ExpectedVerdict(split(quadratic(), active=2), "outside assumptions")


@claim(
    source="Pathak and Wainwright 2020 (recalled)",
    statement=r"For $\mu$-strongly convex, $L$-smooth clients, all of them active, exact proximal steps and"
    r" $s = 1/\sqrt{L\mu}$: $\sum_j |z_j^+ - z_j^*|^2 \le \bigl(1 - \frac2{\sqrt\kappa + 1}\bigr)^2"
    r" \sum_j |z_j - z_j^*|^2$ always, with $z_j^* = \theta^* - s\nabla f_j(\theta^*)$. Quadratics that have one"
    r" of the curvatures $\mu$ and $L$ attain it.",
    assumptions=best_step,
    rtol=ROUNDING,
    cases=fedsplit_contraction_cases,
)
def fedsplit_contraction(case: Federation) -> Iterator[Inequality]:
    """Compare squared distances of the z_j from their limits."""
    return one_step(case, distances(case), (1.0 - 2.0 / (math.sqrt(case.L / case.mu) + 1.0)) ** 2)


def distances(case: Federation) -> Errors:
    """Return the distances from the limits, theta* - s grad f_j(theta*)."""
    f = case.objective
    limits = case.theta - case.subgradients / math.sqrt(case.L * case.mu)
    start = initial_state(case.algorithm, f, case.theta)

    def state(e: Array) -> State:
        z = limits + e.reshape(limits.shape)
        theta = np.mean(z, axis=0)
        return State(start.server._replace(theta=theta), theta, start.clients._replace(z=z))

    return Errors(limits.size, lambda state: np.ravel(state.clients.z - limits), state)


def split(f: Instance, *, times: float = 1.0, active: int | None = None, attained: bool = False) -> Federation:
    """Return FedSplit with ``times`` the best step."""
    method = FedSplit(step=times / math.sqrt(f.L * f.mu), **accurately(f.objective))
    note = "" if times == 1 else f"{times:g} times the step"
    return federation(f, method, active=active, rounds=15, attained=attained, note=note)
