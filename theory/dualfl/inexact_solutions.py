r"""DualFL with inexact local solutions: Theorems 3.2 and 3.3 for the errors that were made.

The paper measures a local solution by its gap (3.6) and admits the gaps (3.7) and (3.8). There are two errata: with
:math:`\nu = \mu` the gap is infinite at almost every inexact point (D2), and the tolerances are absolute (D5). The
theorems hold at the dual-corrected points :math:`\theta_j - r_j/\nu`, where :math:`r_j` is the residual of the local
problem and the dual error is at most :math:`|r_j|^2/(2\nu)`. They follow from Propositions 6.2 and 6.3 on Algorithm 2
with errors, here with every constant: see :func:`envelope`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import NamedTuple

import numpy as np
from scipy.optimize import linprog

from dualopt.arrays.xp import Array
from dualopt.lab.claims import Inequality, claim
from dualopt.methods import CorrectedDualFL
from dualopt.methods.dualfl import momentum
from dualopt.objectives import Quadratic
from dualopt.objectives.local_problem import client_dot
from dualopt.solvers import DualCoordinate, Gradient
from dualopt.solvers.stopping import Gap, LinearSchedule, Steps, SublinearSchedule
from theory._cases import Case
from theory._claims import ROUNDING, ExpectedVerdict, Form, deviation
from theory._problems import (
    absolute_deviation,
    breast_cancer,
    digits,
    hard_quadratic,
    hinge,
    logistic,
    lopsided,
    quadratic,
)
from theory.dualfl._fista import Fista
from theory.dualfl._runs import (
    dual_optimum,
    inexact,
    initial_bound,
    linear_regime,
    local_energies,
    path,
    strongly_convex,
    sublinear_regime,
    weighted_distance,
)

# The gap of a local solution (Section 3.1).


def gap_3_6_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Yield a few gradient steps, on quadratics and data; nu = mu, where the upper bound is infinite."""
    instances = [quadratic(), lopsided(), logistic()]
    for instance in instances if quick else [*instances, breast_cancer()]:
        for multiple in (0.5, 0.9):
            few = inexact(instance, Steps(steps=5), rho=0.0, nu=multiple * instance.mu, solver=Gradient())
            yield ExpectedVerdict(instance.case(few, 10, f"nu = {multiple} mu"))
    f = logistic()
    yield ExpectedVerdict(f.case(inexact(f, Steps(steps=5), rho=0.0), 5, "nu = mu"), "outside assumptions")


@claim(
    source="Park and Xu, equation (3.6)",
    statement=r"For nu in (0, mu), at any $\theta_j$ with residual $r_j = \nabla E^{n,j}(\theta_j)$,"
    r" $\frac{|r_j|^2}{2(L-\nu)} \le \Gamma^{n,j}(\theta_j) \le \frac{|r_j|^2}{2(\mu-\nu)}$ (checked to 1e-10 of the"
    r" terms).",
    assumptions=lambda case: strongly_convex(case) or ([] if case.algorithm.nu < case.mu else ["nu < mu"]),
    cases=gap_3_6_cases,
)
def gap_3_6(case: Case) -> Iterator[Inequality]:
    """Equation (3.6): the local gap is a certificate when nu is below mu.

    Compare every client's gap at its inexact point with both bounds.
    """
    nu, f = case.algorithm.nu, case.objective
    for step in path(case):
        theta = step.snapshot.clients.theta
        primal, dual = local_energies(case, step.zeta, theta)
        terms = np.abs(f.value(theta)) + nu * (client_dot(step.zeta, step.zeta) + client_dot(theta, theta))
        unknown = ROUNDING * (np.abs(primal) + np.abs(dual) + terms)  # energies may be near zero, their terms are not
        residual = f.gradient(theta) - nu * step.zeta
        squared = client_dot(residual, residual)
        lower, upper = squared / (2.0 * (f.L - nu)), squared / (2.0 * (f.mu - nu))
        for gap, least, most, allowance in zip(primal + dual, lower, upper, unknown, strict=True):
            yield Inequality(step.n, float(gap), float(most + allowance), "Gamma")
            yield Inequality(step.n, float(least), float(gap + allowance), "|r|^2/(2(L - nu))")


def d2_infinite_gap_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Ten gradient steps on real rows."""
    f = breast_cancer()
    method = inexact(f, Steps(steps=10), rho=f.mu / f.L, solver=Gradient())
    case = f.case(method, 2 if quick else 10, "ten gradient steps")
    yield ExpectedVerdict(Form(case, printed=True), "violated")
    yield ExpectedVerdict(Form(case, printed=False))


@gap_3_6.as_printed(
    source="DualFL (3.6)-(3.8)",
    statement=r"With nu = mu, $g_j^*(\nu(\zeta_j - \theta_j)) < \infty$ at inexact local solutions, so that"
    r" $\Gamma^{n,j}(\theta_j)$ can be evaluated. Printed: at $\theta_j$. Corrected: at the dual-corrected point"
    r" $\theta_j - r_j/\nu$, where the dual error is at most $|r_j|^2/(2\nu)$.",
    cases=d2_infinite_gap_cases,
)
def d2_infinite_gap(form: Form) -> Iterator[Inequality]:
    r"""D2: the gap (3.6), "observable by simple arithmetic operations".

    Compare the distance of every :math:`\nu(\zeta_j - \theta_j)` from the domain of :math:`g_j^*` with zero.
    """
    case = form.case
    for step in path(case):
        clients = step.snapshot.clients
        xi = case.algorithm.nu * (step.zeta - (clients.theta if form.printed else clients.sent))
        for (X, y, w), xi_j in zip(case.objective.client_rows(), xi, strict=True):
            yield Inequality(step.n, distance_to_domain(X, y, w, xi_j), 1e-9, "distance from dom g_j*")


def distance_to_domain(X: Array, y: Array, w: Array, xi: Array) -> float:
    r"""Return the relative distance of ``xi`` from :math:`\{-\sum_i w_i y_i s_i x_i : 0 \le s_i \le 1\}`.

    This is the domain of the conjugate of :math:`\sum_i w_i\log(1 + e^{-y_i\langle x_i,\cdot\rangle})`, or its closure.
    The distance, in the largest entry and relative to that of ``xi``, is the value of a linear program.

    Examples
    --------
    >>> one = np.ones(1)
    >>> [distance_to_domain(np.eye(1), one, one, np.array([xi])) for xi in (-0.5, 1.0)]
    [0.0, 1.0]
    """
    scale = float(np.max(np.abs(xi)))
    columns, side = -(w * y)[:, None].T * X.T / scale, np.ones((len(xi), 1))
    found = linprog(
        np.append(np.zeros(len(y)), 1.0),
        A_ub=np.block([[columns, -side], [-columns, -side]]),
        b_ub=np.concatenate([xi, -xi]) / scale,
        bounds=[(0.0, 1.0)] * len(y) + [(0.0, None)],
    )
    return float(found.fun)


# Inexact FISTA (Section 6.2).


def envelope(errors: Iterable[float], *, rho: float, nu: float, squared: float) -> Iterator[float]:
    r"""Yield the bound of :math:`E_d(\xi^{(n)}) - E_d^*` after every round, for the errors that were made.

    Derivation, for a proximal gradient method with step :math:`\nu` on :math:`E_d = F_d + G_d`, where
    :math:`F_d` is :math:`1/\nu`-smooth and :math:`G_d` is :math:`m`-strongly convex with
    :math:`\nu m = \rho/(1-\rho)`; write :math:`c = 1 + \nu m = 1/(1-\rho)`. If :math:`x` minimises the proximal problem
    at :math:`y` up to :math:`\varepsilon`, then strong convexity of that problem gives for every :math:`z`

    .. math:: E_d(x) - E_d(z) \le \tfrac{1}{2\nu}\bigl(|y-z|^2 - c\,|x-z|^2\bigr) + \varepsilon
              + \tfrac{1}{\nu} |x-z| \sqrt{2\nu c\,\varepsilon}.

    Put :math:`z = (1 - 1/t)\,x^{k} + \xi^*/t`. The momentum (3.4) is made so that the terms telescope: with
    :math:`w^{k+1} = x^{k} - \xi^* + t_k (x^{k+1} - x^{k})` and the dual error :math:`d^k`,

    .. math:: t_k^2 d^{k+1} + \tfrac{c}{2\nu}|w^{k+1}|^2 \le (1 - \rho t_k)
              \bigl( t_{k-1}^2 d^{k} + \tfrac{c}{2\nu}|w^{k}|^2 \bigr) + t_k^2 \varepsilon_{k+1}
              + \tfrac{t_k}{\nu} |w^{k+1}| \sqrt{2\nu c\,\varepsilon_{k+1}},

    and the first round, where :math:`t_0 = 1`, starts from :math:`|\xi^*|^2/(2\nu)`. As
    :math:`(1 - \rho t_k)\,t_{k-1}^2 = t_k^2 - t_k`, the product of the factors over :math:`t_{n-1}^2` is

    .. math:: R_n = \prod_{k=1}^{n-1} (1 - 1/t_k) \le \min\{(1-\sqrt\rho)^{n-1},\; 4/(n+1)^2\},

    because :math:`1 + k/2 \le t_k` for :math:`\rho = 0`, the momentum decreases in :math:`\rho`, and
    :math:`t_k \le 1/\sqrt\rho`. Solving the quadratic inequality for the errors (the lemma of Schmidt, Le Roux and Bach
    2011, whose result this is for :math:`\rho = 0`) gives, for :math:`0 \le \rho \le \nu/L`,

    .. math:: E_d(\xi^{(n)}) - E_d^* \le \frac{R_n}{2\nu}
              \Bigl( a_n + \sqrt{|\xi^*|^2 + 2\nu\, e_n + a_n^2} \Bigr)^2, \qquad
              a_n = \sum_{i \le n} \sqrt{2\nu\varepsilon_i / R_i}, \quad e_n = \sum_{i \le n} \varepsilon_i / R_i.

    Without errors it is :math:`R_n |\xi^*|^2/(2\nu)` (Chambolle and Pock 2016, Theorem B.1); no initial dual value
    enters.

    Parameters
    ----------
    errors : iterable of float
        :math:`\varepsilon_n`, by how much round ``n`` misses the minimum of its proximal problem.
    rho, nu : float
        Parameters of the method.
    squared : float
        :math:`|\xi^*|^2`.

    Examples
    --------
    >>> [round(b, 3) for b in envelope([0.0, 0.0], rho=0.0, nu=0.5, squared=1.0)]
    [1.0, 0.382]
    """
    a = e = 0.0
    for error, R in zip(errors, contractions(rho), strict=False):
        a += math.sqrt(2.0 * nu * error / R)
        e += error / R
        yield R / (2.0 * nu) * (a + math.sqrt(squared + 2.0 * nu * e + a * a)) ** 2


def contractions(rho: float) -> Iterator[float]:
    r"""Yield :math:`R_1 = 1, R_2, \ldots` without end.

    Examples
    --------
    >>> [round(r, 4) for r in islice(contractions(0.0), 3)]
    [1.0, 0.382, 0.2078]
    """
    t, product = 1.0, 1.0
    while True:
        yield product
        t, _ = momentum(t, rho)
        product *= 1.0 - 1.0 / t


@dataclass(frozen=True, kw_only=True)
class Power:
    r"""The errors :math:`\delta_n = \text{scale}/(n+1)^{\text{exponent}}`."""

    scale: float
    exponent: float

    def __call__(self, n: int) -> float:
        """Return ``delta_n``."""
        return self.scale / (n + 1.0) ** self.exponent


def proposition_6_2_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Errors of order n^-4.1 of two sizes, negligible and large; and of order n^-2, which the proposition excludes."""
    for instance, rounds in [(quadratic(), 100), (hard_quadratic(), 200)]:
        for scale in (1e-2, 10.0):
            fista = Fista(rho=0.0, nu=0.9, errors=Power(scale=scale, exponent=4.1))
            yield ExpectedVerdict(instance.case(fista, rounds, f"delta_n = {scale:g} (n+1)^-4.1"))
    slow = Fista(rho=0.0, nu=0.9, errors=Power(scale=0.01, exponent=2.0))
    yield ExpectedVerdict(quadratic().case(slow, 100, "delta_n = 0.01 (n+1)^-2"), "outside assumptions")


def _power_regime(case: Case) -> list[str]:
    errors = case.algorithm.errors
    summable = isinstance(errors, Power) and errors.exponent > 4
    return sublinear_regime(case) + ([] if summable else ["delta_n = b_n/(n+1)^2, sum sqrt(b_n) < inf"])


@claim(
    source="Park and Xu, Proposition 6.2; Schmidt, Le Roux and Bach 2011, Proposition 2",
    statement=r"Algorithm 2 with rho = 0, nu in (0, mu], $\delta_n = b_n/(n+1)^2$, $\sum_n\sqrt{b_n} < \infty$:"
    r" $E_d(\xi^n) - E_d^* \le \frac{2}{\nu(n+1)^2}(a_n + \sqrt{|\xi^*|^2 + 2\nu e_n + a_n^2})^2$,"
    r" $a_n = \sum_{i<n} t_i\sqrt{2\nu\delta_i}$, $e_n = \sum_{i<n} t_i^2\delta_i$; both converge.",
    assumptions=_power_regime,
    trivial=initial_bound,
    cases=proposition_6_2_cases,
)
def proposition_6_2(case: Case) -> Iterator[Inequality]:
    """Proposition 6.2: FISTA with errors that fall faster than n^-4 keeps the rate 1/n^2.

    Compare the dual error of Algorithm 2 with the bound for the admitted errors.
    """
    fista = case.algorithm
    squared = float(np.sum(dual_optimum(case) ** 2))
    bounds = envelope(map(fista.errors, range(case.rounds)), rho=fista.rho, nu=fista.nu, squared=squared)
    lowest = -float(np.sum(case.objective.value(case.theta)))
    iterates = islice(fista.sequence(case.objective), case.rounds)
    for n, (iterate, bound) in enumerate(zip(iterates, bounds, strict=True), start=1):
        yield Inequality(n, iterate.dual_value - lowest, bound, "dual error")


@dataclass(frozen=True, kw_only=True)
class Geometric:
    r"""The errors :math:`\delta_n = \text{scale} \cdot \text{ratio}^n`."""

    scale: float
    ratio: float

    def __call__(self, n: int) -> float:
        """Return ``delta_n``."""
        return self.scale * self.ratio**n


def proposition_6_3_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Errors of two sizes just inside the range; and just outside, which the proposition excludes."""
    for instance, rounds in [(quadratic(), 80), (hard_quadratic(), 300)]:
        rho = 0.9 / instance.L
        ratio = (1.0 - rho**0.5) / 1.1
        for scale in (1e-2, 10.0):
            fista = Fista(rho=rho, nu=0.9, errors=Geometric(scale=scale, ratio=ratio))
            yield ExpectedVerdict(instance.case(fista, rounds, f"delta_n = {scale:g} * {ratio:.3f}^n"))
    rho = 0.9 / quadratic().L
    slow = Fista(rho=rho, nu=0.9, errors=Geometric(scale=1e-2, ratio=1.0 - 0.9 * rho**0.5))
    yield ExpectedVerdict(quadratic().case(slow, 80, "a > 1 - sqrt(rho)"), "outside assumptions")


def _geometric_regime(case: Case) -> list[str]:
    rho, errors = case.algorithm.rho, case.algorithm.errors
    fast = isinstance(errors, Geometric) and errors.ratio < 1.0 - rho**0.5
    positive = [] if rho > 0 else ["rho > 0"]
    return linear_regime(case) + positive + ([] if fast else ["delta_n = a^n, a < 1 - sqrt(rho)"])


@claim(
    source="Park and Xu, Proposition 6.3",
    statement=r"Algorithm 2 with rho in (0, nu/L], nu in (0, mu], $\delta_n = \delta_0 a^n$, $a < 1 - \sqrt\rho$:"
    r" $E_d(\xi^n) - E_d^* \le \frac{R_n}{2\nu}(a_n + \sqrt{|\xi^*|^2 + 2\nu e_n + a_n^2})^2$,"
    r" $R_n = \prod_{k<n}(1-1/t_k) \le (1-\sqrt\rho)^{n-1}$, $a_n = \sum_{i \le n}\sqrt{2\nu\delta_{i-1}/R_i}$,"
    r" $e_n = \sum_{i \le n}\delta_{i-1}/R_i$; both converge.",
    assumptions=_geometric_regime,
    trivial=initial_bound,
    cases=proposition_6_3_cases,
)
def proposition_6_3(case: Case) -> Iterable[Inequality]:
    """Proposition 6.3: FISTA with errors that fall faster than (1 - sqrt(rho))^n keeps this rate.

    Compare as in Proposition 6.2: the envelope depends on rho.
    """
    return proposition_6_2(case)


# The theorems (Section 3.2).


def dual_corrected(case: Case) -> list[str]:
    """Return what fails: clients upload points whose dual error is known."""
    return [] if isinstance(case.algorithm, CorrectedDualFL) else ["dual-corrected local solutions"]


def theorem_3_2_inexact_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Schedule (3.7) on quadratics, data and losses without gradients; one gradient step, with an empty bound."""
    instances = [(quadratic(), 40, 10.0), (hard_quadratic(L=300.0), 120, 1.0), (lopsided(), 40, 10.0)]
    instances += [(logistic(), 40, 1e-3)]
    if not quick:
        instances += [(breast_cancer(), 60, 1e-3), (digits(), 40, 1e-3)]
    for instance, rounds, scale in instances:
        stop = Gap(schedule=SublinearSchedule(nu=instance.mu, scale=scale))
        yield ExpectedVerdict(instance.case(inexact(instance, stop, rho=0.0), rounds))
    for instance, scale in ((hinge(), 1e-2), (hinge(), 1.0), (absolute_deviation(), 1e-2)):
        stop = Gap(schedule=SublinearSchedule(nu=instance.mu, scale=scale))
        method = inexact(instance, stop, rho=0.0, solver=DualCoordinate(max_iter=20_000))
        yield ExpectedVerdict(instance.case(method, 15 if quick else 30, f"gaps of (3.7) times {scale:g}"))
    once = inexact(breast_cancer(), Steps(steps=1), rho=0.0, solver=Gradient())
    yield ExpectedVerdict(breast_cancer().case(once, 40, "one gradient step"), "vacuous")


@claim(
    source="Park and Xu, Theorem 3.2 with (3.7); Schmidt, Le Roux and Bach 2011",
    statement=r"For rho = 0, nu in (0, mu] and dual-corrected local solutions with residuals $r_j$,"
    r" $\varepsilon_i = \sum_j |r_j|^2/(2\nu)$ in round $i$, or the sum of the gaps (3.6) of a dual solver for losses"
    r" that are not smooth: $E_d(\xi^n) - E_d^* \le \frac{R_n}{2\nu}"
    r" (a_n + \sqrt{|\xi^*|^2 + 2\nu e_n + a_n^2})^2$ with $R_n = t_{n-1}^{-2} \le 4/(n+1)^2$,"
    r" $a_n = \sum_{i \le n} \sqrt{2\nu\varepsilon_i/R_i}$, $e_n = \sum_{i \le n} \varepsilon_i/R_i$.",
    assumptions=lambda case: sublinear_regime(case) + dual_corrected(case),
    trivial=initial_bound,
    cases=theorem_3_2_inexact_cases,
)
def theorem_3_2_inexact(case: Case) -> Iterator[Inequality]:
    """Theorem 3.2 with inexact local solutions.

    Compare the dual error, and the squared distance in its units, with the bound for the errors that were made.
    """
    steps = list(path(case))
    rho, nu = case.algorithm.rho, case.algorithm.nu
    squared = float(np.sum(dual_optimum(case) ** 2))
    bounds = envelope((step.local_error for step in steps), rho=rho, nu=nu, squared=squared)
    for step, bound in zip(steps, bounds, strict=True):
        yield Inequality(step.n, step.dual_error, bound, "dual error")
        yield Inequality(step.n, weighted_distance(case, step.theta), bound, "N nu/2 |theta - theta*|^2")


FACTOR = 1024.0  # of D5; a power of two, so that multiplication by it does not round


class Pair(NamedTuple):
    """The same run on ``f`` and on ``FACTOR f``."""

    name: str
    plain: Case
    scaled: Case


def d5_absolute_tolerances_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Either schedule, on quadratics and 1024 times them."""
    f, big = quadratic(), _times(quadratic(), FACTOR)
    rho = f.mu / f.L
    for name, power in (("(3.7)", 2), ("(3.8)", 1)):
        for printed in (True, False):
            scales = (1.0, 1.0 if printed else FACTOR**power)
            runs = []
            for instance, scale in zip((f, big), scales, strict=True):
                sublinear = SublinearSchedule(nu=instance.mu, scale=scale)
                schedule = sublinear if name == "(3.7)" else LinearSchedule(rho=rho, scale=scale)
                method = inexact(instance, Gap(schedule=schedule), rho=rho, solver=Gradient())
                runs.append(instance.case(method, 20))
            yield ExpectedVerdict(Form(Pair(name, *runs), printed), "violated" if printed else "holds")


def _times(instance: Case, factor: float) -> Case:
    f = instance.objective
    objective = Quadratic(A=factor * f.A, b=factor * f.b, c=factor * f.c)
    return replace(instance, objective=objective, subgradients=factor * instance.subgradients)


@theorem_3_2_inexact.as_printed(
    source="DualFL (3.7), (3.8)",
    statement=r"DualFL on $cf_j$ with $c\mu$, $c\nu$ makes the same models as on $f_j$. Printed: with"
    r" $\Gamma \le \frac{1}{N\nu(n+1)^{4+\gamma}}$ or $\Gamma \le \frac1N(\frac{1-\sqrt\rho}{1+\gamma})^n$."
    r" Corrected: with a factor that scales like $c^2$ in the first, like $c$ in the second.",
    cases=d5_absolute_tolerances_cases,
)
def d5_absolute_tolerances(form: Form) -> Iterator[Inequality]:
    """D5: the tolerances (3.7) and (3.8) are absolute.

    Compare the models of both runs.
    """
    pair = form.case
    for n, (a, b) in enumerate(zip(pair.plain.snapshots(), pair.scaled.snapshots(), strict=True), start=1):
        yield Inequality(n, deviation(a.server.theta, b.server.theta), ROUNDING, "difference of the models")


def theorem_3_3_inexact_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Schedule (3.8) on quadratics and data; 20 gradient steps per round; one, when the bound says nothing."""
    instances = [(quadratic(), 80, 1.0), (hard_quadratic(), 150 if quick else 300, 1.0), (lopsided(), 80, 1.0)]
    instances += [(logistic(), 60, 1e-3)]
    if not quick:
        instances += [(breast_cancer(), 80, 1e-3), (digits(), 60, 1e-3)]
    for instance, rounds, scale in instances:
        rho = instance.mu / instance.L
        stop = Gap(schedule=LinearSchedule(rho=rho, scale=scale))
        yield ExpectedVerdict(instance.case(inexact(instance, stop, rho=rho), rounds))
    f = quadratic(5, L=100.0, seed=1)
    twenty = inexact(f, Steps(steps=20), rho=f.mu / f.L, solver=Gradient())
    yield ExpectedVerdict(f.case(twenty, 80, "20 gradient steps"))
    f = breast_cancer()
    once = inexact(f, Steps(steps=1), rho=f.mu / f.L, solver=Gradient())
    yield ExpectedVerdict(f.case(once, 60, "one gradient step"), "vacuous")


@claim(
    source="Park and Xu, Theorem 3.3 with (3.8)",
    statement=r"For rho in [0, nu/L], nu in (0, mu] and dual-corrected local solutions with residuals $r_j$,"
    r" $\varepsilon_i = \sum_j |r_j|^2/(2\nu)$ in round $i$: $E_d(\xi^n) - E_d^* \le \frac{R_n}{2\nu}"
    r" (a_n + \sqrt{|\xi^*|^2 + 2\nu e_n + a_n^2})^2$ with $R_n = \prod_{k<n} (1-1/t_k) \le (1-\sqrt\rho)^{n-1}$,"
    r" $a_n = \sum_{i \le n} \sqrt{2\nu\varepsilon_i/R_i}$, $e_n = \sum_{i \le n} \varepsilon_i/R_i$.",
    assumptions=lambda case: linear_regime(case) + dual_corrected(case),
    trivial=initial_bound,
    cases=theorem_3_3_inexact_cases,
)
def theorem_3_3_inexact(case: Case) -> Iterable[Inequality]:
    """Theorem 3.3 with inexact local solutions.

    Compare as in Theorem 3.2: the envelope depends on rho.
    """
    return theorem_3_2_inexact(case)
