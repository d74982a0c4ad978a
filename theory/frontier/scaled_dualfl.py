r"""One duality parameter for each client: DualFL and OptimizedDualFL on clients of unequal curvature.

Let every :math:`f_j` be :math:`\mu_j`-strongly convex, :math:`0 < \nu_j \le \mu_j`, let local solutions be exact, and
let the server average with the weights :math:`\nu_j`: :math:`\theta = \sum_j\nu_j\theta_j / \sum_j\nu_j`.

**The dual problem in another inner product.** With :math:`\xi_j = \nu_j\zeta_j` and :math:`\langle\xi, \eta\rangle_\nu
= \sum_j\frac1{\nu_j}\langle\xi_j, \eta_j\rangle` the function :math:`D(\xi) = \sum_jf_j^*(\xi_j)` on :math:`\sum_j\xi_j
= 0` is 1-smooth, because :math:`f_j^*` is :math:`\frac1{\mu_j}`-smooth and :math:`\frac1{\mu_j} \le \frac1{\nu_j}`, and
:math:`\rho`-strongly convex if :math:`\rho \le \min_j\nu_j/L_j`. The projection of :math:`\xi` onto the subspace is
:math:`\xi_j - \nu_j\sum_i\xi_i / \sum_i\nu_i`, so that the gradient of D there is :math:`\nu_j(\theta_j - \theta)` and
:math:`v_j = \zeta_j + \theta - \theta_j` a gradient step of length 1: the rounds of DualFL and OptimizedDualFL, with
the weighted mean for the mean. Their theorems hold in this inner product. With :math:`\zeta_j^* = \nabla
f_j(\theta^*)/\nu_j` and the :math:`A_n` of OptimizedDualFL

.. math:: |\theta^n - \theta^*|^2 \le \frac2{A_n\sum_j\nu_j}\sum_j\frac{|\nabla f_j(\theta^*)|^2}{\nu_j}
          \quad\text{(OptimizedDualFL)}, \tag{1}

and with :math:`\xi_j^* = \nabla f_j(\theta^*) - \nu_j\theta^*`, for DualFL and :math:`\rho = 0`,

.. math:: |\theta^n - \theta^*|^2 \le \frac4{(n + 1)^2\sum_j\nu_j}\sum_j\frac{|\xi_j^*|^2}{\nu_j}. \tag{2}

*Proof.* (1): the potential of :mod:`theory.optimized_dualfl.rate` uses nothing but the inner product, smoothness 1 and
convexity :math:`\rho`; in its part on the model the squares add up with the weights :math:`\nu_j`, to
:math:`\frac12\sum_j\nu_j|\theta^n - \theta^*|^2` in place of :math:`\frac{\nu N}2|\theta^n - \theta^*|^2`. (2): DualFL
is FISTA on :math:`\sum_jg_j^*(\xi_j) + |\sum_j\xi_j|^2/(2\sum_j\nu_j)` with :math:`g_j = f_j -
\frac{\nu_j}2|\cdot|^2`, whose second term is 1-smooth in the inner product, since :math:`|\sum_j\xi_j|^2 \le
\sum_i\nu_i\sum_j|\xi_j|^2/\nu_j`, and equal to :math:`\frac12\sum_j\nu_j|\theta|^2`. ∎

*What it is worth.* :math:`A_n` grows by :math:`(1 - \sqrt\rho)^{-2}` a round, with :math:`1/\rho = \max_jL_j/\mu_j` for
:math:`\nu_j = \mu_j`, where one parameter for all clients has :math:`\max L_j/\min\mu_j`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

from dualopt.arrays.xp import Array
from dualopt.lab.claims import Inequality, claim
from dualopt.methods import CorrectedDualFL, CorrectedOptimizedDualFL, OptimizedDualFL
from dualopt.objectives import Quadratic
from theory._cases import Case
from theory._claims import UP_TO_ROUNDING, ExpectedVerdict
from theory._problems import WEIGHTS, logistic, lopsided, quadratic, solved, weighed
from theory.dualfl import _runs
from theory.frontier.growing_feddyn import deviations
from theory.optimized_dualfl._runs import growths


@cache
def unequal() -> Case:
    """Return six clients with scales from 1 to 100 and condition number 20 each, in random directions."""
    rng = np.random.default_rng(3)
    matrices = []
    for scale in np.geomspace(1.0, 100.0, 6):
        q, _ = np.linalg.qr(rng.standard_normal((4, 4)))
        matrices.append(scale * (q * np.array([1.0, 3.0, 8.0, 20.0])) @ q.T)
    A = np.stack(matrices)
    b = np.einsum("nij,nj->ni", A, rng.standard_normal((6, 4)))
    return solved("scales 1 to 100 (kappa_j=20)", Quadratic(A=0.5 * (A + A.transpose(0, 2, 1)), b=b))


def scaled_case(f: Case, kind: type[Any], rounds: int, *, rho: float | None = None, times: float = 1.0) -> Case:
    """Return DualFL or OptimizedDualFL with ``nu_j`` of ``times mu_j``; the suggested rho when there is none."""
    f = f.reweighted(f.objective.mu)
    exactly = _runs.exact(f, nu=f.mu, rho=0.0)
    nu = times * f.mu if times != 1 else None
    method = kind(nu=nu, rho=rho, solver=exactly.solver, stop=exactly.stop)
    name = kind.__name__.removeprefix("Corrected")
    note = f"{name}, rho = {'nu_j/L_j' if rho is None else f'{rho:g}'}, nu_j = {times:g} mu_j"
    return f.case(method.suggested(f.objective), rounds, note)


def parameters(case: Case) -> Array:
    """Return the nu_j of the plain clients, shape (N,)."""
    return case.algorithm.nu * case.masses


def admitted(case: Case) -> list[str]:
    """Return what fails: nu_j in (0, mu_j], and rho up to the least nu_j/L_j, or 0 for DualFL."""
    nu, rho = parameters(case), case.algorithm.rho
    below = [] if np.all(nu <= case.plain.mu * UP_TO_ROUNDING) and np.min(nu) > 0 else ["0 < nu_j <= mu_j"]
    largest = float(np.min(nu / case.plain.L)) if isinstance(case.algorithm, OptimizedDualFL) else 0.0
    return below + ([] if rho <= largest * UP_TO_ROUNDING else ["rho <= nu_j/L_j, or rho = 0"])


def scaled_dualfl_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Smooth and nonsmooth clients, both methods; what is excluded."""
    rounds = 60 if quick else 200
    yield ExpectedVerdict(scaled_case(quadratic(), CorrectedOptimizedDualFL, rounds))
    for f in (unequal(), lopsided()):
        yield ExpectedVerdict(scaled_case(f, CorrectedOptimizedDualFL, rounds))
        yield ExpectedVerdict(scaled_case(f, CorrectedOptimizedDualFL, rounds, rho=0.0))
        yield ExpectedVerdict(scaled_case(f, CorrectedDualFL, rounds, rho=0.0))
    yield ExpectedVerdict(scaled_case(unequal(), CorrectedOptimizedDualFL, rounds, times=0.5))
    for kind in (CorrectedOptimizedDualFL, CorrectedDualFL):
        yield ExpectedVerdict(scaled_case(weighed(lopsided(), *WEIGHTS), kind, rounds, rho=0.0))
    yield ExpectedVerdict(scaled_case(weighed(lopsided(), *WEIGHTS), CorrectedOptimizedDualFL, rounds))
    yield ExpectedVerdict(scaled_case(logistic(), CorrectedOptimizedDualFL, 15))
    yield ExpectedVerdict(scaled_case(deviations(), CorrectedOptimizedDualFL, 30, rho=0.0))
    yield ExpectedVerdict(scaled_case(unequal(), CorrectedOptimizedDualFL, 30, times=3.0), "outside assumptions")
    yield ExpectedVerdict(scaled_case(unequal(), CorrectedOptimizedDualFL, 30, rho=0.3), "outside assumptions")


@claim(
    source="DualFL and OptimizedDualFL, one parameter for each client",
    statement=r"For $\nu_j \in (0, \mu_j]$, weights $\nu_j$ in the average and exact local solutions:"
    r" $|\theta^n - \theta^*|^2 \le \frac2{A_n\sum_j\nu_j}\sum_j\frac1{\nu_j}|\nabla f_j(\theta^*)|^2$ for"
    r" OptimizedDualFL with $\rho \le \min_j\nu_j/L_j$, $|\theta^n - \theta^*|^2 \le \frac4{(n + 1)^2\sum_j\nu_j}"
    r"\sum_j\frac1{\nu_j}|\nabla f_j(\theta^*) - \nu_j\theta^*|^2$ for DualFL with $\rho = 0$, any loss.",
    assumptions=admitted,
    rtol=1e-9,
    trivial=lambda case: case.distance(case.objective.zeros()),
    cases=scaled_dualfl_cases,
)
def scaled_dualfl(case: Case) -> Iterator[Inequality]:
    """DualFL and OptimizedDualFL with one parameter for each client: the distance from the solution.

    Compare with the bounds (1) and (2), in every round.
    """
    nu = parameters(case)
    weights = np.reshape(1.0 / nu, (-1, *(1,) * case.theta.ndim))
    optimized = isinstance(case.algorithm, OptimizedDualFL)
    slopes = case.plain_subgradients if optimized else case.plain_subgradients - case.theta / weights
    squares = float(np.sum(weights * slopes**2)) / float(np.sum(nu))
    for n, (A, s) in enumerate(zip(growths(case.algorithm.rho), case.snapshots(), strict=False), start=1):
        bound = 2.0 * squares / A if optimized else 4.0 * squares / (n + 1.0) ** 2
        theta = s.server.theta
        yield Inequality(n, case.distance(theta), bound, "squared distance", case.distance_rounding(theta))
