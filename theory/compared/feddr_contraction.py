r"""FedDR: the linear rate of Douglas-Rachford splitting, and with it that of FedPD, FedDyn and A-FedPD.

A full round takes the points :math:`y_j` to :math:`(1 - \frac a2) y + \frac a2 R_G R_F y` with the reflections
:math:`R_F` of the clients' proximal maps, which contracts by
:math:`\delta = \max(\frac{1 - \eta\mu}{1 + \eta\mu}, \frac{\eta L - 1}{\eta L + 1})`, and :math:`R_G` of the mean, an
isometry. An inactive client keeps its point, hence the fraction of the others in the expectation.

With :math:`\eta = 1/\sqrt{L\mu}`, :math:`1 - \delta = 2/(\sqrt\kappa + 1)`: communication rounds of order
:math:`\sqrt\kappa`. By ``identity_full_participation`` that is also the rate of FedPD, FedDyn, A-FedPD and FedADMM
with the weight :math:`\sqrt{L\mu}` and all clients, although the DualFL paper does not count them as accelerated.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from dualopt.algorithms import FedDR
from dualopt.algorithms._parameters import reflection_factor
from dualopt.claims import Inequality, claim
from dualopt.engine import State, initial_state
from dualopt.objectives import LocalProblem
from dualopt.xp import Array
from theory._cases import accurately
from theory._claims import ROUNDING, ExpectedVerdict
from theory._problems import Instance, flat_quadratic, hard_quadratic, logistic, quadratic
from theory.compared._cases import Federation, federation
from theory.compared._one_step import Errors, one_step, smooth_and_strongly_convex


def feddr_contraction_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Relaxations, steps and cohorts; convex clients, which have no factor, are excluded."""
    for a in (0.5, 1.0, 2.0):
        yield ExpectedVerdict(relaxed(quadratic(), a=a))
        yield ExpectedVerdict(relaxed(hard_quadratic(), a=a, attained=True))
    for step, active in ((None, 1), (5.0, 2), (200.0, 2)):
        yield ExpectedVerdict(relaxed(hard_quadratic(), step=step, active=active, attained=True))
    yield ExpectedVerdict(relaxed(logistic()))
    yield ExpectedVerdict(relaxed(logistic(), active=2))
    yield ExpectedVerdict(relaxed(flat_quadratic(), step=1.0), "outside assumptions")


@claim(
    source="Giselsson and Boyd 2017, for FedDR (recalled)",
    statement=r"For $\mu$-strongly convex, $L$-smooth clients, exact proximal steps, $\eta > 0$, $a \in (0, 2]$ and"
    r" $P$ of $N$ active clients: $\mathbb E \sum_j |y_j^+ - y_j^*|^2 \le \bigl(1 - \frac PN(1 - q^2)\bigr)"
    r" \sum_j |y_j - y_j^*|^2$, where $q = 1 - \frac a2(1 - \delta)$, $\delta = \max(\frac{1 - \eta\mu}{1 + \eta\mu},"
    r" \frac{\eta L - 1}{\eta L + 1})$, and $y_j^* = \theta^* + \eta\nabla f_j(\theta^*)$. Quadratics"
    r" with equal Hessians attain it.",
    assumptions=smooth_and_strongly_convex,
    rtol=ROUNDING,
    cases=feddr_contraction_cases,
)
def feddr_contraction(case: Federation) -> Iterator[Inequality]:
    """Compare squared distances of the y_j from their limits."""
    delta = reflection_factor(case.objective, case.algorithm.eta)
    assert delta is not None  # smooth and strongly convex
    kept = 1.0 - 0.5 * case.algorithm.relaxation * (1.0 - delta)
    return one_step(case, distances(case), 1.0 - case.fraction * (1.0 - kept**2))


def distances(case: Federation) -> Errors:
    """Return the distances from the limits, theta* + eta grad f_j(theta*)."""
    f, method = case.objective, case.algorithm
    limits = case.theta + method.eta * case.subgradients
    start = initial_state(method, f, case.theta)

    def state(e: Array) -> State:
        y = limits + e.reshape(limits.shape)
        problem = LocalProblem(objective=f, weight=1.0 / method.eta, center=y)
        x = method.solver(problem, start.clients.x, method.stop).theta
        clients = start.clients._replace(y=y, x=x, reflected=2.0 * x - y)
        theta = np.mean(clients.reflected, axis=0)
        return State(start.server._replace(theta=theta, mean=theta), theta, clients)

    return Errors(limits.size, lambda state: np.ravel(state.clients.y - limits), state)


def relaxed(
    f: Instance, *, a: float = 1.0, step: float | None = None, active: int | None = None, attained: bool = False
) -> Federation:
    """Return FedDR with relaxation ``a``, and ``step`` in units of 1/L for ``eta``; the best one if it is not given."""
    eta = 1.0 / math.sqrt(f.L * f.mu) if step is None else step / f.L
    method = FedDR(eta=eta, relaxation=a, **accurately(f.objective))
    note = f"a = {a:g}, eta = {eta * f.L:.3g}/L"
    return federation(f, method, active=active, rounds=15, attained=attained, note=note)
