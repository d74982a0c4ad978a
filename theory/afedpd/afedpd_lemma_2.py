r"""Lemma 2: how far the local solutions are from the last mean.

With the residuals :math:`r_j^+ = \nabla f_j(\theta_j^{t+1}) + \lambda_j^t + \rho(\theta_j^{t+1} - \theta^t)` and
:math:`e_j = \nabla f_j(\theta_j^t) + \lambda_j^t`, and with :math:`\theta^t = \bar\theta^t + \bar\lambda^t/\rho`,

.. math::
    \rho(\theta_j^{t+1} - \bar\theta^t)
    = [\nabla f_j(\bar\theta^t) - \nabla f_j(\theta_j^{t+1})]
    + [d_j - \bar d] - \nabla E(\bar\theta^t) + [r_j^+ - e_j + \bar e],
    \quad d_j = \nabla f_j(\theta_j^t) - \nabla f_j(\bar\theta^t).

The square of a sum of four terms, the variance of the :math:`d_j` below their mean square, and smoothness give the
claim. Two things differ from the print. The square of the third term has the factor :math:`4/\rho^2`, not
:math:`4L^2/\rho^2`. And :math:`e_j` is the residual of the last round only for clients that were active in it: the
virtual update of an idle client stands for :math:`\theta_j^t = \bar\theta^t`, where its residual is whatever it is. The
print has :math:`\epsilon` for all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from dualopt.claims import Inequality, claim
from dualopt.solvers import Gradient
from dualopt.stopping import Steps
from dualopt.xp import Array
from theory._claims import ExpectedVerdict
from theory._problems import indefinite, logistic, quadratic
from theory.afedpd._cases import Federation, federation
from theory.afedpd._path import Step, mean_square, path


def lemma_2_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Quadratics, convex and not, a logistic loss, and rough local solutions."""
    rounds = 10 if quick else 40
    for active in (1, 2, 3):
        yield ExpectedVerdict(federation(quadratic(), rho=110.0, active=active, rounds=rounds))
    f = indefinite()
    for active in (2, 3):
        yield ExpectedVerdict(federation(f, rho=3.0 * f.L, active=active, rounds=rounds))
    yield ExpectedVerdict(federation(logistic(), rho=2.0, active=2, rounds=rounds))
    rough = federation(f, rho=3.0 * f.L, active=2, rounds=rounds, note="two gradient steps")
    yield ExpectedVerdict(replace(rough, algorithm=replace(rough.algorithm, solver=Gradient(), stop=Steps(steps=2))))
    yield ExpectedVerdict(federation(f, rho=1.5 * f.L, active=3, rounds=rounds), "outside assumptions")


@claim(
    name="afedpd_lemma_2",
    source="Sun, Shen and Tao, Lemma 2 (corrected)",
    statement=r"$(1 - 4L^2/\rho^2)R_t \le \frac{4L^2}{\rho^2}J_t + \frac{4}{\rho^2}|\nabla E(\bar\theta^t)|^2"
    r" + \frac{4}{\rho^2}\frac1N\sum_j|r_j^+ - e_j + \bar e|^2$ with $J_t = \frac1N\sum_j|\theta_j^t -"
    r" \bar\theta^t|^2$, the residuals $r_j^+$ of the local solutions and $e_j = \nabla f_j(\theta_j^t) + \lambda_j^t$"
    r" (0 for exact solutions of clients that were active; an idle client has $\theta_j^t = \bar\theta^t$).",
    assumptions=lambda case: [] if case.rho > 2.0 * case.L else ["rho > 2 L"],
    rounding=1e-20,
    cases=lemma_2_cases,
)
def lemma_2(case: Federation) -> Iterator[Inequality]:
    """Compare at every state of a path; nothing is random."""
    for s in path(case):
        gradient = float(np.sum(np.mean(case.objective.gradient(s.before.bar), axis=0) ** 2))
        errors = mean_square(s.residual - centred(residuals(case, s)))
        yield Inequality(s.n, (1.0 - q(case)) * s.spread, q(case) * drift(s) + 4.0 * (gradient + errors) / case.rho**2)


def q(case: Federation) -> float:
    r"""Return :math:`4L^2/\rho^2`."""
    return 4.0 * (case.L / case.rho) ** 2


def drift(s: Step) -> float:
    r"""Return :math:`J_t = \frac1N\sum_j |\theta_j^t - \bar\theta^t|^2`."""
    return mean_square(s.before.points - s.before.bar)


def residuals(case: Federation, s: Step) -> Array:
    """Return the ``e_j``."""
    return case.objective.gradient(s.before.points) + s.before.duals


def centred(x: Array) -> Array:
    """Return the deviations from the mean."""
    return x - np.mean(x, axis=0)
