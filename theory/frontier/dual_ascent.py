r"""Dual ascent, DualFL without momentum: what momentum is measured against.

On :math:`\sum_j\zeta_j = 0` the dual function :math:`D(\zeta) = \sum_j f_j^*(\nu\zeta_j)` has the gradient
:math:`G_j = \nu(\theta_j - \theta)`; for :math:`\nu \le \mu` it is convex and :math:`\nu`-smooth, and
:math:`\nu^2/L`-strongly convex if the clients are smooth (``theory/optimized_dualfl/_runs.py``). The method repeats
:math:`\zeta^+ = \zeta - G/\nu`.

**Smooth clients.** A gradient step of length 1/(smoothness constant) contracts the distance to the minimiser by
:math:`1 - \nu/L`. The local solutions are :math:`\theta_j = \nabla f_j^*(\nu\zeta_j)` and
:math:`\theta^* = \nabla f_j^*(\nu\zeta_j^*)`; :math:`\nabla f_j^*` is :math:`1/\mu`-Lipschitz, hence
:math:`|\theta_j - \theta^*| \le |\zeta_j - \zeta_j^*|`, and the squared distance of a mean is at most the mean of the
squared distances.

**Any loss.** :math:`D(\zeta^{n-1}) - D^* \le \frac{\nu|\zeta^*|^2}{4(n-1)+2}` after n - 1 steps (Drori and Teboulle
2014, recalled), and :math:`D(\zeta^{n-1}) - D^* \ge \frac{\nu N}2|\theta^n - \theta^*|^2`, (2) of
``theory/optimized_dualfl/rate.py`` without its other squares.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dualopt.lab.claims import Inequality, claim
from dualopt.methods import DualAscent
from dualopt.objectives.local_problem import client_dot
from theory._cases import Case
from theory._claims import ExpectedVerdict
from theory._problems import absolute_deviation, hard_quadratic, hinge, logistic, lopsided, quadratic
from theory.dualfl._runs import exact, strongly_convex
from theory.dualfl.exact_solutions import flat_and_steep

__all__ = ["dual_ascent_any_loss", "dual_ascent_linear"]


def ascent(instance: Case, *, nu: float | None = None) -> DualAscent:
    """Return dual ascent with local solutions that are exact up to rounding; ``nu = mu`` when not given."""
    solved = exact(instance, nu=nu, rho=0.0)
    return DualAscent(nu=solved.nu, solver=solved.solver, stop=solved.stop)


def distance_at_zero(case: Case) -> float:
    r"""Return :math:`|\zeta^*|^2/N`, the bound of the first round."""
    return float(np.sum((case.subgradients / case.algorithm.nu) ** 2)) / case.n_clients


def smooth_strongly_convex(case: Case) -> list[str]:
    """Return what fails: ``nu`` in (0, mu], and L finite."""
    return strongly_convex(case) + ([] if np.isfinite(case.L) else ["L < inf"])


def dual_ascent_linear_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Quadratics, unequal clients, a logistic loss; nu below mu; nu beyond mu and kinks, which are not admitted."""
    for instance, rounds in ((quadratic(), 60), (lopsided(), 60), (logistic(), 30)):
        yield ExpectedVerdict(instance.case(ascent(instance), rounds))
    yield ExpectedVerdict(flat_and_steep().case(ascent(flat_and_steep()), 30))
    f = hard_quadratic()
    yield ExpectedVerdict(f.case(ascent(f), 40 if quick else 400))
    f = quadratic()
    yield ExpectedVerdict(f.case(ascent(f, nu=0.5 * f.mu), 60, "nu = mu/2"))
    yield ExpectedVerdict(f.case(ascent(f, nu=2.0 * f.mu), 5, "nu = 2 mu"), "outside assumptions")
    yield ExpectedVerdict(hinge().case(ascent(hinge()), 5), "outside assumptions")


@claim(
    source="DualFL without momentum (Park and Xu, Section 6), derived",
    statement=r"For nu in (0, mu], L finite and exact local solutions, $|\theta^n - \theta^*|^2 \le"
    r" \frac1N|\zeta^{n-1} - \zeta^*|^2 \le \frac1N(1 - \nu/L)^{2(n-1)}|\zeta^*|^2$, $\nu\zeta_j^* = \nabla"
    r" f_j(\theta^*)$.",
    assumptions=smooth_strongly_convex,
    trivial=distance_at_zero,
    rtol=1e-9,
    cases=dual_ascent_linear_cases,
)
def dual_ascent_linear(case: Case) -> Iterator[Inequality]:
    """Dual ascent: the duals approach theirs by 1 - nu/L in every round, and the model is no farther away.

    Compare the squared distance of the model with that of the duals, and both with the bound, which the duals attain
    in the first round. Duals that have converged are known to rounding of their size, like the model.
    """
    nu = case.algorithm.nu
    best, factor = case.subgradients / nu, 1.0 - nu / case.L
    zeta = np.zeros_like(best)
    for n, s in enumerate(case.snapshots(), start=1):
        bound = factor ** (2 * (n - 1)) * distance_at_zero(case)
        duals = float(np.mean(client_dot(zeta - best, zeta - best)))
        theta, rounding = s.server.theta, case.distance_rounding(s.server.theta)
        # The duals are sums of local models: their error is that of the models, and the curvature's of the gradients.
        unknown = rounding_of_duals(case, duals)
        yield Inequality(n, case.distance(theta), duals + unknown, "|theta - theta*|^2 and the duals", rounding)
        yield Inequality(n, duals, bound, "|zeta - zeta*|^2/N", unknown)
        yield Inequality(n, case.distance(theta), bound, "|theta - theta*|^2", rounding)
        zeta = s.clients.zeta


def rounding_of_duals(case: Case, duals: float) -> float:
    r"""Return how far :math:`\frac1N|\zeta - \zeta^*|^2` as computed may lie from the true one.

    The :math:`\nu\zeta_j^*` are gradients at a minimiser known to :math:`8\epsilon\kappa|\theta^*|`, off by L times
    that and by rounding of their own size; a local solution has the same relative error, and it is added up in
    :math:`\zeta_j` as long as a contraction by :math:`1 - \nu/L` does not forget it, :math:`L/\nu` rounds.
    """
    kappa, size = case.L / case.algorithm.nu, float(np.linalg.norm(case.theta))
    largest = float(np.max(np.sqrt(client_dot(case.subgradients, case.subgradients)))) / case.algorithm.nu
    delta = 8.0 * np.finfo(float).eps * kappa * (kappa * size + largest)
    return 2.0 * np.sqrt(duals) * delta + delta**2


def dual_ascent_any_loss_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Quadratics, logistic and hinge losses, absolute values; nu beyond mu."""
    for instance in (quadratic(), lopsided(), logistic(), hinge(), absolute_deviation(), flat_and_steep()):
        yield ExpectedVerdict(instance.case(ascent(instance), 10 if quick else 40))
    f = quadratic()
    yield ExpectedVerdict(f.case(ascent(f, nu=2.0 * f.mu), 5, "nu = 2 mu"), "outside assumptions")


@claim(
    source="Drori and Teboulle 2014 (recalled) on the dual problem of DualFL",
    statement=r"For nu in (0, mu], any loss and exact local solutions, $|\theta^n - \theta^*|^2 \le"
    r" \frac{|\zeta^*|^2}{N(2n - 1)}$.",
    assumptions=strongly_convex,
    trivial=distance_at_zero,
    rtol=1e-9,
    cases=dual_ascent_any_loss_cases,
)
def dual_ascent_any_loss(case: Case) -> Iterator[Inequality]:
    """Dual ascent, any loss: the squared distance of the model is at most that of the first round over 2n - 1."""
    first = distance_at_zero(case)
    for n, s in enumerate(case.snapshots(), start=1):
        rounding = case.distance_rounding(s.server.theta)
        yield Inequality(n, case.distance(s.server.theta), first / (2 * n - 1), "|theta - theta*|^2", rounding)
