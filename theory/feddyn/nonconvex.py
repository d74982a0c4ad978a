"""Smooth clients that need not be convex: Theorem 4 of the FedDyn paper, with its lemmas."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dualopt.lab.claims import Inequality, claim
from theory._cases import Case
from theory._claims import UP_TO_ROUNDING, ExpectedVerdict, Form
from theory._problems import indefinite, penalised_logistic
from theory.feddyn._runs import (
    Point,
    curvatures,
    expectations,
    expected,
    feddyn_case,
    nonconvex_cases,
    opposed,
    path,
)


def C(case: Case, point: Point) -> float:
    r"""Return :math:`C_t = \frac1N\sum_k |\theta_k^t - \gamma^t|^2`."""
    return float(np.sum((point.points - point.gamma) ** 2)) / case.objective.n_clients


def smooth(case: Case) -> list[str]:
    """Return what fails: clients are smooth, and every memory is the gradient at a point."""
    known = [] if np.isfinite(case.points).all() else ["memories that are gradients"]
    return known + ([] if np.isfinite(case.L) else ["smooth clients"])


def nonconvex_regime(case: Case) -> list[str]:
    """Return what fails of the assumptions of Theorem 4."""
    enough = case.alpha * UP_TO_ROUNDING >= 20.0 * case.L / case.fraction
    return smooth(case) + ([] if enough else ["alpha >= 20 L N/P"])


def lemma_11_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Alpha in the range of the theorem and below it."""
    yield from expected(nonconvex_cases(quick), nonconvex_cases(quick, 3.0))


@claim(
    name="feddyn_lemma_11",
    source="Acar et al., Lemma 11",
    statement=r"$(1 - 4L^2/\alpha^2)\,\varepsilon_t \le \frac{8L^2}{\alpha^2}C_{t-1}"
    r" + \frac{4}{\alpha^2}|\nabla E(\gamma^{t-1})|^2$, $C_t = \frac1N\sum_k|\theta_k^t - \gamma^t|^2$. Sharper:"
    r" $(\alpha - L)_+^2\varepsilon_t \le L^2C_{t-1} + |\nabla E(\gamma^{t-1})|^2$.",
    assumptions=smooth,
    cases=lemma_11_cases,
)
def lemma_11(case: Case) -> Iterator[Inequality]:
    r"""Lemma 11: how far the clients' solutions are from the last mean, without convexity.

    By (7), :math:`\alpha(\tilde\theta_k - \gamma) = [\nabla f_k(\gamma) - \nabla f_k(\tilde\theta_k)] + [d_k - \bar d]
    - \nabla E(\gamma)` with :math:`d_k = \nabla f_k(\theta_k) - \nabla f_k(\gamma)`. The paper squares a sum of four
    terms. But the second bracket has mean zero and the third term is the same for all clients, so that their squares
    add up, to at most :math:`L^2C + |\nabla E(\gamma)|^2`; the first one takes L from alpha.

    Compare both sides as printed; for alpha <= 2 L the left one is not positive and nothing is said. Then the sharper
    form.
    """
    L, alpha = case.L, case.alpha
    for step in path(case):
        apart, slope = C(case, step.before), case.squared_gradient(step.before.gamma)
        bound = (8.0 * L**2 * apart + 4.0 * slope) / alpha**2
        yield Inequality(step.n, (1.0 - 4.0 * L**2 / alpha**2) * step.epsilon, bound)
        yield Inequality(step.n, max(alpha - L, 0.0) ** 2 * step.epsilon, L**2 * apart + slope, "sharper")


def lemma_12_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Alpha in the range of the theorem and below it, and all of three clients whose solutions lie far apart."""
    yield from expected(nonconvex_cases(quick), nonconvex_cases(quick, 3.0))
    yield ExpectedVerdict(feddyn_case(opposed(), alpha=3.0, active=3, rounds=15))


@claim(
    name="feddyn_lemma_12",
    source="Acar et al., Lemma 12",
    statement=r"$\mathbb E\,C_t \le 2\frac{N-P}{2N-P}C_{t-1} + 2\frac{P}{2N-P}\varepsilon_t"
    r" + 2\frac NP\,\mathbb E|\gamma^t - \gamma^{t-1}|^2$, for every alpha.",
    assumptions=smooth,
    cases=lemma_12_cases,
)
def lemma_12(case: Case) -> Iterator[Inequality]:
    """Lemma 12: how far the points of the memories are from the mean after a round.

    Compare the exact conditional expectations of both sides.
    """
    m = 1.0 / case.fraction
    for step in path(case):
        gamma = step.before.gamma
        moved = step.E[lambda point, gamma=gamma: float(np.sum((point.gamma - gamma) ** 2))]
        kept = (m - 1.0) * C(case, step.before) + step.epsilon
        bound = 2.0 / (2.0 * m - 1.0) * kept + 2.0 * m * moved
        yield Inequality(step.n, step.E[lambda point: C(case, point)], bound)


def lemma_10_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Yield the smallest alpha of the theorem, a start where only C_t counts, and an alpha too small."""
    yield from expected(nonconvex_cases(quick))
    yield ExpectedVerdict(feddyn_case(indefinite(), alpha=60.0, active=1, rounds=15, solved=True))
    yield from expected(nonconvex_cases(True, 15.0)[:1], verdict="outside assumptions")


@claim(
    name="feddyn_lemma_10",
    source="Acar et al., Lemma 10",
    statement=r"For smooth clients and $\alpha \ge 20L\frac NP$, $\mathbb E\,E(\gamma^t) + \kappa\,\mathbb E\,C_t \le"
    r" E(\gamma^{t-1}) + \kappa C_{t-1} - \kappa_0|\nabla E(\gamma^{t-1})|^2$,"
    r" $C_t = \frac1N\sum_k|\theta_k^t - \gamma^t|^2$, $\kappa = 4L^3P\frac{\alpha+L}{\alpha}\frac{2N-P}{z}$,"
    r" $z = \alpha^2P^2 - 32L^2N^2 + 16L^2PN - 20L^2P^2$,"
    r" $2\alpha z\kappa_0 = \alpha^2P^2 - 4\alpha LP^2 - 32L^2N^2 + 16L^2PN - 24L^2P^2$;"
    r" the $-16L^2PN$ that is printed gives a smaller $\kappa_0$ than the proof does.",
    assumptions=nonconvex_regime,
    cases=lemma_10_cases,
)
def lemma_10(case: Case) -> Iterator[Inequality]:
    r"""Lemma 10: a Lyapunov function for smooth clients that need not be convex.

    Compare :math:`\kappa_0|\nabla E|^2` with the exact expectation of what the Lyapunov function loses.
    """
    kappa, kappa_0 = constants_of_lemma_10(case)

    def lyapunov(point: Point) -> float:
        return case.value(point.gamma) + kappa * C(case, point)

    for step in path(case):
        lost = lyapunov(step.before) - step.E[lyapunov]
        yield Inequality(step.n, kappa_0 * case.squared_gradient(step.before.gamma), lost)


def constants_of_lemma_10(case: Case, *, as_printed: bool = False) -> tuple[float, float]:
    r"""Return :math:`\kappa` and :math:`\kappa_0`, with numerators and denominators divided by :math:`P^2`."""
    L, a, m = case.L, case.alpha, 1.0 / case.fraction
    sign = -1.0 if as_printed else 1.0
    z = a**2 - 32.0 * L**2 * m**2 + 16.0 * L**2 * m - 20.0 * L**2
    top = a**2 - 4.0 * a * L - 32.0 * L**2 * m**2 + sign * 16.0 * L**2 * m - 24.0 * L**2
    return 4.0 * L**3 * (a + L) / a * (2.0 * m - 1.0) / z, top / (2.0 * a * z)


def y2_gain_of_lemma_10_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Yield the smallest alpha, where it shows most."""
    case = feddyn_case(indefinite(), alpha=30.0, active=2, rounds=0)
    yield ExpectedVerdict(Form(case, printed=True), "violated")
    yield ExpectedVerdict(Form(case, printed=False))


@lemma_10.as_printed(
    source="FedDyn, Lemma 10",
    statement=r"The sum of (14), Lemma 3, Lemma 12 and Lemma 11 with the scales of the proof has the $\kappa_0$ of the"
    r" statement. Printed: $2\alpha z\kappa_0 = \alpha^2P^2 - 4\alpha LP^2 - 32L^2N^2 - 16L^2PN - 24L^2P^2$."
    r" Corrected: $+16L^2PN$. What is printed is smaller, so that the lemma stays true.",
    cases=y2_gain_of_lemma_10_cases,
)
def y2_gain_of_lemma_10(form: Form) -> Iterator[Inequality]:
    r"""Y2: a sign in Lemma 10 of the FedDyn paper.

    Compare :math:`\kappa_0` with what (14) and the scaled Lemma 11 leave of the squared gradient.
    """
    L, a, m = form.case.L, form.case.alpha, 1.0 / form.case.fraction
    z = a**2 - 32.0 * L**2 * m**2 + 16.0 * L**2 * m - 20.0 * L**2
    left = 1.0 / (2.0 * a) - 0.5 * L * a * (L + a) / z * 4.0 / a**2
    stated = constants_of_lemma_10(form.case, as_printed=form.printed)[1]
    yield Inequality(0, abs(stated - left) / left, 1e-12, "relative error of kappa_0")


def theorem_4_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Long runs by moments or with all clients; all histories of few rounds, where the bound is still empty."""
    yield ExpectedVerdict(feddyn_case(indefinite(), alpha=60.0, active=1, rounds=3000))
    yield ExpectedVerdict(
        feddyn_case(indefinite(), alpha=45.0, active=2, rounds=3000, warm=True, note=", as in Theorem 1")
    )
    yield ExpectedVerdict(feddyn_case(curvatures(-0.5, 1.0, 2.0), alpha=60.0, active=1, rounds=500))
    rounds = 200 if quick else 400
    yield ExpectedVerdict(feddyn_case(penalised_logistic(), alpha=20.0, active=4, rounds=rounds, warm=True))
    yield ExpectedVerdict(feddyn_case(penalised_logistic(), alpha=80.0, active=1, rounds=4, warm=True), "vacuous")
    yield ExpectedVerdict(feddyn_case(penalised_logistic(), alpha=80.0, active=1, rounds=4), "outside assumptions")


@claim(
    name="feddyn_theorem_4",
    source="Acar et al., Theorem 4",
    statement=r"For smooth clients and $\alpha \ge 20L\frac NP$, $\frac1T\sum_{t<T}\mathbb E|\nabla E(\gamma^t)|^2"
    r" \le \frac1T\bigl(3\alpha(E(\gamma^0) - \inf E) + 30L^3\frac{N}{P\alpha}C_0\bigr)$ with"
    r" $C_0 = \frac1N\sum_k|\theta_k^0 - \gamma^0|^2$, where the memories start as the gradients at $\theta_k^0$."
    r" The proof gives $\frac{1}{T\kappa_0}(E(\gamma^0) - \inf E + \kappa C_0)$ with the constants of Lemma 10,"
    r" which is less.",
    assumptions=nonconvex_regime,
    trivial=lambda case: case.squared_gradient(case.gamma),
    cases=theorem_4_cases,
)
def theorem_4(case: Case) -> Iterator[Inequality]:
    """Theorem 4: the mean squared gradient of smooth clients converges like 1/T.

    Compare the exact expectation for every number of rounds with both forms of the bound.
    """
    alpha, (kappa, kappa_0) = case.alpha, constants_of_lemma_10(case)
    above = case.value(case.gamma) - case.lowest
    apart = float(np.sum((case.points - case.gamma) ** 2)) / len(case.points)
    printed = 3.0 * alpha * above + 30.0 * case.L**3 / case.fraction / alpha * apart
    proved = (above + kappa * apart) / kappa_0
    slopes = 0.0
    for T, _, measured in expectations(case):
        slopes += measured
        yield Inequality(T, slopes / T, proved / T, "proved")
        yield Inequality(T, slopes / T, printed / T, "printed")
