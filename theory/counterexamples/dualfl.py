r"""DualFL with parameters beyond its theorems, mostly on two clients of one variable.

On :math:`\frac{a_j}2(x - m_j)^2` the errors of the :math:`\zeta_j`, which have sum zero, are e and -e, and with
:math:`q = \frac\nu2(\frac1{a_1} + \frac1{a_2})` the model's error is :math:`\frac\nu2(\frac1{a_1} - \frac1{a_2})e`, and

.. math:: e_{n+1} = (1 - q)\bigl((1 + \beta_n)e_n - \beta_n e_{n-1}\bigr), \qquad
          \beta_n \to \frac{1 - \sqrt\rho}{1 + \sqrt\rho}.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import repeat
from typing import Any

import numpy as np

from dualopt.arrays.xp import Array
from dualopt.lab.claims import Inequality, claim
from dualopt.methods import CorrectedDualFL, DualFL
from dualopt.methods.dualfl import momentum
from dualopt.objectives import Quadratic
from dualopt.solvers import Exact, Gradient
from dualopt.solvers.stopping import Steps
from theory._cases import Case
from theory._claims import ROUNDING, ExpectedVerdict, deviation
from theory.counterexamples._recursion import follow, on_quadratics, scalars, side


def dual_step(run: Case) -> float:
    """Return q, the step nu in units of the inverse curvature of the dual problem."""
    return run.algorithm.nu * float(np.mean(1.0 / run.curvatures))


def final_momentum(rho: float) -> float:
    """Return the limit of beta."""
    return (1.0 - math.sqrt(rho)) / (1.0 + math.sqrt(rho))


def follow_dual(run: Case, factor: float) -> Iterator[Inequality]:
    """Follow the model by the recursion of every round, whose momentum changes."""
    recursions = _recursions(1.0 - dual_step(run), run.algorithm.rho)
    # all zeta_j start at zero, whatever theta0 is
    return follow(run, recursions, factor, first=1)


def _recursions(g: float, rho: float) -> Iterator[Array]:
    t, _ = momentum(1.0, rho)
    while True:
        t, beta = momentum(t, rho)
        yield np.array([1.0, -(1.0 + beta) * g, beta * g])


def two_clients(
    nu: float, rho: float, curvatures: tuple[float, float], *, converges: bool = True, note: str = ""
) -> Case:
    """Return DualFL with exact local solutions on two clients whose minima are -1 and 1."""
    listed = ", ".join(f"{a:g}" for a in curvatures)
    return on_quadratics(
        f"curvatures {listed}, nu = {nu:.4g}, rho = {rho:.4g}{note}",
        DualFL(nu=nu, rho=rho, solver=Exact()),
        scalars(curvatures, [-1.0, 1.0]),
        converges=converges,
        theta0=0.0,
    )


def dualfl_large_nu_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Yield nu = mu and more, and both sides of the largest nu; equal curvatures, whose model is always right."""
    for nu in (1.0, 1.5):
        yield ExpectedVerdict(with_nu(nu, 0.25, (1.0, 2.0)))
    for rho, curvatures in ((0.25, (1.0, 2.0)), (0.01, (1.0, 1.1)), (0.5, (3.0, 1.0))):
        for multiple in (0.97, 1.03, 1.5) if quick else (0.98, 1.02, 1.5):
            yield ExpectedVerdict(with_nu(multiple * largest_nu(rho, *curvatures), rho, curvatures))
    yield ExpectedVerdict(with_nu(1.0, 0.25, (1.0, 1.0)), "outside assumptions")


@claim(
    source="Park and Xu, Theorem 3.3: what nu > mu does",
    statement=r"DualFL with exact local solutions and $0 < \rho < 1$ on $\frac{a_1}2(x - m_1)^2$ and $\frac{a_2}2(x -"
    r" m_2)^2$, $a_1 \ne a_2$, converges if and only if $\nu < \frac4{3 - \sqrt\rho}\cdot\frac2{1/a_1 + 1/a_2}$, which"
    r" is more than $\frac43\mu$.",
    assumptions=lambda run: [] if run.algorithm.rho > 0 and np.ptp(run.curvatures) > 0 else ["rho > 0, a_1 != a_2"],
    cases=dualfl_large_nu_cases,
)
def dualfl_large_nu(run: Case) -> Iterator[Inequality]:
    r"""DualFL with nu above mu: the theory ends there, the method somewhat later.

    If some :math:`g_j` is not convex, its conjugate is infinite everywhere, and there is no dual problem. The rounds
    are defined all the same, for the local problems stay strongly convex. On two clients of one variable the errors'
    recursion has the roots of :math:`x^2 - (1 + \beta)(1 - q)x + \beta(1 - q)` in the end, with q as above. For
    :math:`q \le 1` they lie within the unit circle whatever beta is. Beyond, the least one passes -1 where :math:`1 +
    (1 - q)(1 + 2\beta) = 0`, that is

    .. math:: \nu = \frac{4}{3 - \sqrt\rho} \cdot \frac{2}{1/a_1 + 1/a_2}.

    The second factor, the harmonic mean of the curvatures, lies between mu and 2 mu. So nu = mu is not where DualFL
    begins to diverge; for small rho and clients of nearly the same curvature that is at 4/3 mu.

    Follow the model by the roots in the end.
    """
    beta, g = final_momentum(run.algorithm.rho), 1.0 - dual_step(run)
    roots = np.roots([1.0, -(1.0 + beta) * g, beta * g])
    return follow_dual(run, float(np.max(np.abs(roots))))


def largest_nu(rho: float, a1: float, a2: float) -> float:
    """Return the nu up to which the method converges."""
    return 4.0 / (3.0 - math.sqrt(rho)) * 2.0 / (1.0 / a1 + 1.0 / a2)


def with_nu(nu: float, rho: float, curvatures: tuple[float, float]) -> Case:
    """Return DualFL on two clients."""
    return two_clients(nu, rho, curvatures, converges=nu < largest_nu(rho, *curvatures))


def dualfl_large_rho_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Yield rho below q, at q, a little and far above, and both sides of where the promise fails."""
    q = 0.05
    for rho in (0.01, q, 1.2 * q, 0.5, 0.99):
        yield ExpectedVerdict(with_rho(rho, q))
    for rho in (0.02, 0.3):
        for multiple in (0.98, 1.02):
            yield ExpectedVerdict(with_rho(rho, multiple * least_step(rho)))


@claim(
    source="Park and Xu, Theorem 3.3: what rho > nu/L does",
    statement=r"DualFL with exact local solutions and $\nu \le \mu$ on two clients of one variable, $q = \frac\nu2"
    r" (\frac1{a_1} + \frac1{a_2}) \ge \frac\nu L$: it converges for every $\rho \in (0, 1)$, by the factor"
    r" $\sqrt{(1 - q)\frac{1 - \sqrt\rho}{1 + \sqrt\rho}}$ per round in the end for $\rho \le q$ and by $\frac{1 - q +"
    r" \sqrt{(1 - q)(\rho - q)}}{1 + \sqrt\rho}$ for $\rho > q$, which tends to $1 - q$ for $\rho \to 1$. The square is"
    r" at most $1 - \sqrt\rho$, as in the theorem, if and only if $q \ge \frac{(1 - y)^2(2 + y)}{2 - y}$,"
    r" $y = \sqrt{1 - \sqrt\rho}$.",
    assumptions=lambda run: [] if 0 < dual_step(run) <= 1 and run.algorithm.rho > 0 else ["nu <= mu, rho > 0"],
    cases=dualfl_large_rho_cases,
)
def dualfl_large_rho(run: Case) -> Iterator[Inequality]:
    r"""DualFL with rho above nu/L: it converges still, but slower than Theorem 3.3 would promise.

    On two clients of one variable the characteristic roots in the end are those of :math:`x^2 - (1 +
    \beta)(1 - q)x + \beta(1 - q)`, with :math:`\beta = \frac{1-\sqrt\rho}{1+\sqrt\rho}`. They are complex for
    :math:`\rho < q`, of modulus :math:`\sqrt{\beta(1-q)}`, and real beyond:

    .. math:: x_{\max} = \frac{1 - q + \sqrt{(1-q)(\rho-q)}}{1 + \sqrt\rho},

    which is least at :math:`\rho = q`, where it is :math:`1 - \sqrt q`, and grows to 1 - q, the factor without
    momentum, as :math:`\rho \to 1`. It never reaches 1: here rho alone makes DualFL slow and not divergent. What breaks
    is the rate. Theorem 3.3 promises :math:`|\theta^n - \theta^*|^2 = O((1-\sqrt\rho)^n)`, and with :math:`y =
    \sqrt{1-\sqrt\rho}` the equation :math:`x_{\max} = y` is linear in q after squaring:

    .. math:: x_{\max}^2 \le 1 - \sqrt\rho \iff q \ge \frac{(1-y)^2(2+y)}{2-y} = \tfrac34\rho + O(\rho^{3/2}).

    So rho may exceed q, which is at least nu/L, by a third before the promise fails.

    Compare the factor with the roots of the recursion and with the promised one, and follow the model.
    """
    rho, q = run.algorithm.rho, dual_step(run)
    beta, rate = final_momentum(rho), factor(rho, q)
    roots = np.roots([1.0, -(1.0 + beta) * (1.0 - q), beta * (1.0 - q)])
    # a double root, at rho = q, is known to half of the digits
    yield Inequality(0, deviation(rate, float(np.max(np.abs(roots)))), math.sqrt(ROUNDING), "factor")
    yield side(rate**2, 1.0 - math.sqrt(rho), below=q >= least_step(rho), what="squared factor")
    yield from follow_dual(run, rate)


def factor(rho: float, q: float) -> float:
    """Return the larger modulus of the roots."""
    if rho <= q:
        return math.sqrt((1.0 - q) * final_momentum(rho))
    return (1.0 - q + math.sqrt((1.0 - q) * (rho - q))) / (1.0 + math.sqrt(rho))


def least_step(rho: float) -> float:
    """Return the q from which on the promised rate holds."""
    y = math.sqrt(1.0 - math.sqrt(rho))
    return (1.0 - y) ** 2 * (2.0 + y) / (2.0 - y)


CURVATURES = (1.0, 3.0)


def with_rho(rho: float, q: float) -> Case:
    """Return DualFL on the two clients, with the nu that makes the step q."""
    nu, promised = q / float(np.mean(1.0 / np.array(CURVATURES))), math.sqrt(1.0 - math.sqrt(rho))
    note = f", promised factor {promised:.3f}, true one {factor(rho, q):.3f}"
    return two_clients(nu, rho, CURVATURES, note=note)


class FromCorrected(CorrectedDualFL):
    """Local solvers start from the points that were uploaded."""

    def local(self, c: Any, message: Any, oracle: Any, round: Any) -> Any:
        """Solve (3.1) and forget the plain points."""
        c, sent = super().local(c, message, oracle, round)
        return c._replace(theta=sent), sent


def dualfl_corrected_start_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Yield both sides of the largest kappa, corrected points and plain ones; 20 steps of 1/L."""
    for K in (1, 5):
        for multiple in (0.97, 1.03):
            yield ExpectedVerdict(local_steps(FromCorrected, multiple * largest_kappa(K), K, half=True))
    for kappa in (71.0, 77.0, 100.0):
        yield ExpectedVerdict(local_steps(FromCorrected, kappa, 20, half=False))
    for kind in (CorrectedDualFL, FromCorrected):
        yield ExpectedVerdict(local_steps(kind, 100.0, 5, half=True))
    yield ExpectedVerdict(local_steps(CorrectedDualFL, 100.0, 20, half=False))


@claim(
    source="Park and Xu, Theorem 3.2 with inexact local solutions: where they must not start",
    statement=r"DualFL with $\nu = \mu$ and $K$ gradient steps per round on equal quadratics, uploading dual-corrected"
    r" points. Local solvers that start from them: with steps of $\frac1{2L}$ and the curvatures $\mu, L$ the method"
    r" converges if and only if $\kappa < 1 + 2^K$; with steps of $\frac1L$ and the curvatures $\mu$, $\frac{L +"
    r" K\mu}{K + 1}$, $L$ if and only if $\frac{\kappa - 1}{K + 1}\bigl(\frac{K(\kappa - 1)}{(K +"
    r" 1)\kappa}\bigr)^K < 1$. Local solvers that start from the plain points: it converges always.",
    cases=dualfl_corrected_start_cases,
)
def dualfl_corrected_start(run: Case) -> Iterator[Inequality]:
    r"""DualFL whose local solvers start from the corrected points: any fixed number of steps is too few for some kappa.

    The theorems for inexact local solutions want the dual-corrected point :math:`\theta_j - r_j/\nu` to be uploaded,
    with :math:`r_j` the local gradient at :math:`\theta_j`. It is tempting to go on from that point in the next round.
    On equal clients :math:`\frac12\sum_i a_ix_i^2` all :math:`\zeta_j` stay zero, and K gradient steps of length s
    multiply :math:`x_i` by :math:`(1 - sa_i)^K`. The correction is a gradient step of length :math:`1/\nu`, which
    multiplies it by :math:`1 - a_i/\nu`. So with :math:`\nu = \mu` a round multiplies the uploaded :math:`x_i`

    .. math:: \text{by } (1 - sa_i)^K(1 - a_i/\mu) \text{ from corrected points}, \qquad
              \text{by } (1 - sa_i)^K \text{ from plain ones}.

    For steps of 1/(2L) and the curvatures mu and L the first is at most :math:`2^{-K}(\kappa - 1)`: K steps suffice for
    :math:`\kappa < 1 + 2^K`. For steps of 1/L the curvature L is solved at once; the worst is
    :math:`\frac{L + K\mu}{K + 1}`, with :math:`\frac{\kappa - 1}{K + 1}(\frac{K(\kappa - 1)}{(K + 1)\kappa})^K`, about
    :math:`\frac\kappa{e(K+1)}`.

    Follow the coordinate of the worst curvature, which is the first one; mu is 1.
    """
    method = run.algorithm
    a = float(run.curvatures[0])
    rate = (1.0 - method.solver.step * a) ** method.stop.steps * (1.0 - a if isinstance(method, FromCorrected) else 1.0)
    # the start was not corrected
    return follow(run, repeat(np.array([1.0, -rate])), abs(rate), first=1)


def largest_kappa(K: int) -> float:
    """Return the kappa up to which K steps of 1/(2L) suffice."""
    return 1.0 + 2.0**K


def worst_curvature(kappa: float, K: int) -> float:
    """Return the curvature, in units of mu, that steps of 1/L and the correction make the most of."""
    return (kappa + K) / (K + 1)


def worst_factor(kappa: float, K: int) -> float:
    """Return the factor of this curvature."""
    return (kappa - 1.0) / (K + 1) * (K * (kappa - 1.0) / ((K + 1) * kappa)) ** K


def local_steps(kind: type[CorrectedDualFL], kappa: float, K: int, *, half: bool) -> Case:
    """Return DualFL on two equal clients with mu = 1, whose first coordinate has the worst curvature."""
    spectrum = [kappa, 1.0] if half else [worst_curvature(kappa, K), 1.0, kappa]
    step = (0.5 if half else 1.0) / kappa
    few = kappa > largest_kappa(K) if half else worst_factor(kappa, K) > 1.0
    start = "corrected" if kind is FromCorrected else "plain"
    return on_quadratics(
        f"from {start} points, kappa = {kappa:.4g}, K = {K}, s = 1/{'(2L)' if half else 'L'}",
        kind(nu=1.0, rho=0.0, solver=Gradient(step=step), stop=Steps(steps=K)),
        Quadratic(A=np.stack([np.diag(spectrum)] * 2), b=np.zeros((2, len(spectrum)))),
        converges=kind is not FromCorrected or not few,
    )
