r"""What the FedDyn paper says of SCAFFOLD (Section 2): its linear term, and what has to be sent for it.

The paper reads SCAFFOLD as local problems with the linear term :math:`\nabla f_k(\theta^t) - \frac1N\sum_i\nabla
f_i(\theta_i^t)` in the place of FedDyn's :math:`\nabla f_k(\theta_k^t)`. SCAFFOLD's own is :math:`c_k - c` with the
mean :math:`c_k` of the client's last gradients: of the two, it is the one whose mean over the clients is zero. What can
be checked is that and why the second part must be sent: without it, a client stays where it is.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dualopt.lab.claims import Inequality, claim
from dualopt.methods import FedDyn, Scaffold
from dualopt.objectives import LocalProblem
from theory._cases import Case, accurately
from theory._claims import ROUNDING, ExpectedVerdict, deviation
from theory._problems import lopsided, quadratic


def scaffold_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Clients that are alike and unequal ones."""
    for f in (quadratic(), lopsided()):
        yield ExpectedVerdict(f.case(Scaffold().suggested(f.objective), 10))


@claim(
    name="feddyn_scaffold",
    source="Acar et al., Section 2, FedDyn vs. SCAFFOLD",
    statement=r"$\arg\min_\theta f_k(\theta) - \langle\nabla f_k(\theta^t), \theta\rangle + \frac\alpha2|\theta -"
    r" \theta^t|^2 = \theta^t$. With all clients SCAFFOLD's linear terms $c_k - c$ have the mean zero, and it sends"
    r" twice as many numbers as FedDyn in each direction (checked to 1e-10).",
    cases=scaffold_cases,
)
def scaffold(case: Case) -> Iterator[Inequality]:
    """SCAFFOLD as the FedDyn paper sees it.

    Compare the solution of a local problem without the server's term, the controls and the numbers sent along a run.
    """
    f, feddyn = case.objective, FedDyn(alpha=3.0, **accurately(case.objective))
    other = case.but(algorithm=feddyn).snapshots()
    for n, (s, single) in enumerate(zip(case.snapshots(), other, strict=True), start=1):
        theta = s.server.theta
        problem = LocalProblem(objective=f, linear=-f.gradient(theta), weight=feddyn.alpha, center=theta)
        start = np.zeros((f.n_clients, *f.shape))
        frozen = feddyn.solver(problem, start, feddyn.stop).theta
        yield Inequality(n, deviation(frozen, np.broadcast_to(theta, frozen.shape)), ROUNDING, "frozen clients")
        own, common = s.clients.control, s.server.control
        scale = float(np.max(np.abs(own)))
        yield Inequality(n, deviation(np.mean(own, axis=0), common, scale=scale), ROUNDING, "mean of the controls")
        yield Inequality(n, deviation(float(s.floats_up), 2.0 * single.floats_up), ROUNDING, "numbers up")
        yield Inequality(n, deviation(float(s.floats_down), 2.0 * single.floats_down), ROUNDING, "numbers down")
