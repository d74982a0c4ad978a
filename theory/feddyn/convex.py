"""Convex clients: Theorems 2 and 3 of the FedDyn paper, with their lemmas."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from dualopt.lab.claims import Inequality, claim
from theory._cases import Case
from theory._claims import ROUNDING, UP_TO_ROUNDING, ExpectedVerdict, Form, deviation
from theory._problems import logistic, quadratic
from theory.feddyn._runs import (
    FedDynRound,
    Point,
    convex_cases,
    curvatures,
    expectations,
    expected,
    far_away,
    feddyn_case,
    flat_along_axes,
    nonconvex_cases,
    opposed,
    path,
    strongly_convex_cases,
)


def C(case: Case, point: Point) -> float:
    r"""Return :math:`C_t = \frac1N\sum_k |\nabla f_k(\theta_k^t) - \nabla f_k(\theta^*)|^2`."""
    return float(np.sum((point.gradients - case.subgradients) ** 2)) / len(case.subgradients)


def lyapunov(case: Case, kappa: float, r: float = 1.0) -> Iterator[tuple[FedDynRound, float]]:
    r"""Yield the rounds with :math:`V_{t-1} - r\,\mathbb E\,V_t` for :math:`V = |\gamma - \theta^*|^2 + \kappa C`."""

    def V(point: Point) -> float:
        return case.distance(point.gamma) + kappa * C(case, point)

    for step in path(case):
        yield step, V(step.before) - r * step.E[V]


def convex(case: Case) -> list[str]:
    """Return what fails: every client is convex and smooth."""
    return [] if case.mu >= 0 and np.isfinite(case.L) else ["convex and smooth clients"]


def convex_regime(case: Case) -> list[str]:
    """Return what fails of the assumptions of Theorem 2."""
    return convex(case) + ([] if case.alpha * UP_TO_ROUNDING >= 25.0 * case.L else ["alpha >= 25 L"])


def strongly_convex_regime(case: Case) -> list[str]:
    """Return what fails of the assumptions of Theorem 3."""
    strong = [] if case.mu > 0 and np.isfinite(case.L) else ["strongly convex and smooth clients"]
    least = max(5.0 / case.fraction * case.mu, 30.0 * case.L)
    return strong + ([] if case.alpha * UP_TO_ROUNDING >= least else ["alpha >= max(5 N mu / P, 30 L)"])


def equation_9_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Convex and nonconvex clients."""
    yield from expected(convex_cases(quick, 3.0), nonconvex_cases(quick))


@claim(
    name="feddyn_equation_9",
    source="Acar et al., equations (2) and (9)",
    statement=r"Memories hold $\nabla f_k(\theta_k^t)$, $h^t = \frac1N\sum_k \nabla f_k(\theta_k^t)$ and"
    r" $\gamma^t = \theta^t + h^t/\alpha$, whoever is active (checked to 1e-10).",
    cases=equation_9_cases,
)
def equation_9(case: Case) -> Iterator[Inequality]:
    """Equation (9) and what it rests on: the memories are gradients, and h is their mean.

    Compare at every place where a round may end.
    """
    for step in path(case):
        for point in step.after:
            server, memory = point.state.server, point.state.clients.gradient
            scale = float(np.max(np.mean(np.abs(point.gradients), axis=0)))
            yield Inequality(step.n, deviation(memory, point.gradients), ROUNDING, "memories and gradients")
            mean = np.mean(point.gradients, axis=0)
            yield Inequality(step.n, deviation(server.h, mean, scale=scale), ROUNDING, "h and the mean gradient")
            implied = server.theta + server.h / case.alpha
            yield Inequality(step.n, deviation(implied, point.gamma), ROUNDING, "theta + h/alpha and gamma")


def y1_parenthesis_of_h_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Two of three clients; with one client both forms are right."""
    case = feddyn_case(opposed(), alpha=3.0, active=2, rounds=10)
    yield ExpectedVerdict(Form(case, printed=True), "violated")
    yield ExpectedVerdict(Form(case, printed=False))


@equation_9.as_printed(
    source="FedDyn, Algorithm 1",
    statement=r"The server's step keeps $h^t = \frac1N\sum_k\nabla f_k(\theta_k^t)$, on which the proofs rest."
    r" Printed, by the letter: $h^t = h^{t-1} - \frac\alpha N(\sum_{k\in P_t}\theta_k^t - \theta^{t-1})$."
    r" Corrected: $h^{t-1} - \frac\alpha N\sum_{k\in P_t}(\theta_k^t - \theta^{t-1})$. They agree for P = 1.",
    cases=y1_parenthesis_of_h_cases,
)
def y1_parenthesis_of_h(form: Form) -> Iterator[Inequality]:
    """Y1: the parenthesis in the server's step of Algorithm 1 of the FedDyn paper.

    Compare one server step with the mean of the gradients, whoever is active.
    """
    case, N = form.case, form.case.objective.n_clients
    for step in path(case):
        theta, h = step.before.state.server
        for outcome, point in zip(case.events(), step.after, strict=True):
            active = list(outcome.round.clients)
            total = np.sum(point.points[active], axis=0)
            subtracted = theta if form.printed else len(active) * theta
            new = h - case.alpha / N * (total - subtracted)
            mean = np.mean(point.gradients, axis=0)
            scale = float(np.max(np.mean(np.abs(point.gradients), axis=0)))
            yield Inequality(step.n, deviation(new, mean, scale=scale), ROUNDING, "h and the mean gradient")


def y3_mean_of_the_gradients_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Two of three clients."""
    case = feddyn_case(opposed(), alpha=3.0, active=2, rounds=10)
    yield ExpectedVerdict(Form(case, printed=True), "violated")
    yield ExpectedVerdict(Form(case, printed=False))


@equation_9.as_printed(
    source="FedDyn, Section 2, key property of Algorithm 1",
    statement=r"The server's state. Printed: $h^t = \sum_k\nabla f_k(\theta_k^t)$. Corrected, as in the proofs:"
    r" $h^t = \frac1N\sum_k\nabla f_k(\theta_k^t)$. What is concluded, $h^t \to 0$, is the same.",
    cases=y3_mean_of_the_gradients_cases,
)
def y3_mean_of_the_gradients(form: Form) -> Iterator[Inequality]:
    """Y3: the server's state in Section 2 of the FedDyn paper.

    Compare it with the sum or the mean of the clients' gradients, whoever is active.
    """
    for step in path(form.case):
        for point in step.after:
            stated = (np.sum if form.printed else np.mean)(point.gradients, axis=0)
            scale = float(np.max(np.mean(np.abs(point.gradients), axis=0)))
            found = deviation(point.state.server.h, stated, scale=scale)
            yield Inequality(step.n, found, ROUNDING, "h and the gradients")


def lemma_2_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Convex and nonconvex clients."""
    yield from expected(convex_cases(quick, 3.0), convex_cases(quick, 0.5), nonconvex_cases(quick))


@claim(
    name="feddyn_lemma_2",
    source="Acar et al., Lemma 2",
    statement=r"$\mathbb E[\gamma^t - \gamma^{t-1}] = -\frac{1}{\alpha N}\sum_k\nabla f_k(\tilde\theta_k^t)$,"
    r" conditionally on the past; no assumption but that local solutions are exact (checked to 1e-10).",
    cases=lemma_2_cases,
)
def lemma_2(case: Case) -> Iterator[Inequality]:
    """Lemma 2: on average the mean of the active clients takes a gradient step, with gradients at the new points.

    Compare the mean over all subsets with the mean over all clients, in units of its terms.
    """
    for step in path(case):
        gradients = case.objective.gradient(step.all_solutions) / case.alpha
        moved = step.E[lambda point: point.gamma] - step.before.gamma
        scale = float(np.max(np.mean(np.abs(gradients), axis=0)))
        yield Inequality(step.n, deviation(moved, -np.mean(gradients, axis=0), scale=scale), ROUNDING)


def lemma_3_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Convex and nonconvex clients."""
    yield from expected(convex_cases(quick, 3.0), convex_cases(quick, 0.5), nonconvex_cases(quick))


@claim(
    name="feddyn_lemma_3",
    source="Acar et al., Lemma 3",
    statement=r"$\mathbb E|\gamma^t - \gamma^{t-1}|^2 \le \varepsilon_t"
    r" = \frac1N\sum_k |\tilde\theta_k^t - \gamma^{t-1}|^2$, with equality for P = 1.",
    rtol=1e-10,
    cases=lemma_3_cases,
)
def lemma_3(case: Case) -> Iterator[Inequality]:
    """Lemma 3: the mean moves no further than the clients do.

    Compare the expected squared step with epsilon.
    """
    for step in path(case):
        gamma = step.before.gamma
        moved = step.E[lambda point, gamma=gamma: float(np.sum((point.gamma - gamma) ** 2))]
        yield Inequality(step.n, moved, step.epsilon)


def lemma_7_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Convex clients, and nonconvex ones where a stationary point of E is known."""
    indefinite = tuple(case for case in nonconvex_cases(quick) if not lemma_7.assumptions(case))
    yield from expected(convex_cases(quick, 25.0), convex_cases(quick, 0.5), indefinite)


@claim(
    name="feddyn_lemma_7",
    source="Acar et al., Lemma 7",
    statement=r"$|h^t|^2 \le C_t$ for $\theta^*$ with $\nabla E(\theta^*) = 0$; printed $\mathbb E|h^t|^2 \le C$.",
    assumptions=lambda case: [] if np.max(np.abs(np.mean(case.subgradients, axis=0))) < 1e-9 else ["grad E = 0"],
    cases=lemma_7_cases,
)
def lemma_7(case: Case) -> Iterator[Inequality]:
    """Lemma 7: the server's h is no larger than the distance of the memories from the gradients at the optimum.

    Compare wherever a round may end: the statement holds without the expectation.
    """
    for step in path(case):
        for point in step.after:
            yield Inequality(step.n, float(np.sum(point.state.server.h**2)), C(case, point))


def lemma_4_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Alpha in the range of the theorems and below it."""
    yield from expected(convex_cases(quick, 25.0), convex_cases(quick, 3.0))
    yield ExpectedVerdict(feddyn_case(opposed(), alpha=25.0, active=1, rounds=15, solved=True))


@claim(
    name="feddyn_lemma_4",
    source="Acar et al., Lemma 4",
    statement=r"$(1 - 4L^2/\alpha^2)\,\varepsilon_t \le \frac{8}{\alpha^2}C_{t-1}"
    r" + \frac{8L}{\alpha^2}(E(\gamma^{t-1}) - E^*)$,"
    r" $C_t = \frac1N\sum_k|\nabla f_k(\theta_k^t) - \nabla f_k(\theta^*)|^2$. Sharper: $\alpha^2\varepsilon_t \le"
    r" (\sqrt{C_{t-1}} + \sqrt{2L(E(\gamma^{t-1}) - E^*)})^2$.",
    assumptions=convex,
    cases=lemma_4_cases,
)
def lemma_4(case: Case) -> Iterator[Inequality]:
    r"""Lemma 4: how far the clients' solutions are from the last mean, for convex clients.

    By (7), :math:`\alpha d_k + \nabla f_k(\gamma + d_k) - \nabla f_k(\gamma) = (a_k - \bar a) - b_k` for :math:`d_k =
    \tilde\theta_k - \gamma`, the errors :math:`a_k` of the memories, whose mean is h, and :math:`b_k = \nabla
    f_k(\gamma) - \nabla f_k(\theta^*)`. The paper squares a sum of four terms. But the difference of gradients has a
    nonnegative product with :math:`d_k`, so that :math:`\alpha|d_k| \le |a_k - \bar a - b_k|`; the variance of the
    :math:`a_k` is at most C, and the mean of :math:`|b_k|^2` at most :math:`2L(E(\gamma) - E^*)`.

    Compare both sides as printed; for alpha <= 2 L the left one is not positive and nothing is said. Then the sharper
    form, for which a start at the solution is enough to attain it.
    """
    L, alpha = case.L, case.alpha
    for step in path(case):
        errors, above = C(case, step.before), max(case.error(step.before.gamma), 0.0)
        bound = 8.0 / alpha**2 * (errors + L * above)
        yield Inequality(step.n, (1.0 - 4.0 * L**2 / alpha**2) * step.epsilon, bound)
        sharper = (math.sqrt(errors) + math.sqrt(2.0 * L * above)) ** 2
        yield Inequality(step.n, alpha**2 * step.epsilon, sharper, "sharper")


def lemma_5_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Small alpha and that of the theorems."""
    yield from expected(convex_cases(quick, 0.5), convex_cases(quick, 25.0))


@claim(
    name="feddyn_lemma_5",
    source="Acar et al., Lemma 5",
    statement=r"$\mathbb E\,C_t \le (1 - \frac PN) C_{t-1} + 2L^2\frac PN\varepsilon_t"
    r" + 4L\frac PN (E(\gamma^{t-1}) - E^*)$, for every alpha.",
    assumptions=convex,
    cases=lemma_5_cases,
)
def lemma_5(case: Case) -> Iterator[Inequality]:
    """Lemma 5: how far the memories are from the gradients at the optimum after a round.

    Compare the exact conditional expectation.
    """
    L, fraction = case.L, case.fraction
    for step in path(case):
        active = 2.0 * L**2 * step.epsilon + 4.0 * L * case.error(step.before.gamma)
        bound = (1.0 - fraction) * C(case, step.before) + fraction * active
        yield Inequality(step.n, step.E[lambda point: C(case, point)], bound)


def lemma_1_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Yield the smallest alpha and larger ones, a start where only C_t counts, and an alpha too small.

    With large alpha and clients that are linear on the way, the lemma is nearly attained.
    """
    yield from expected(convex_cases(quick, 25.0), convex_cases(quick, 60.0))
    yield ExpectedVerdict(feddyn_case(far_away(), alpha=1000.0, active=1, rounds=5))
    yield ExpectedVerdict(feddyn_case(opposed(), alpha=25.0, active=1, rounds=15, solved=True))
    yield from expected(convex_cases(True, 20.0)[:1], verdict="outside assumptions")


@claim(
    name="feddyn_lemma_1",
    source="Acar et al., Lemma 1",
    statement=r"For convex clients and $\alpha \ge 25L$, $\mathbb E|\gamma^t - \theta^*|^2 + \kappa\,\mathbb E\,C_t \le"
    r" |\gamma^{t-1} - \theta^*|^2 + \kappa C_{t-1} - \kappa_0 (E(\gamma^{t-1}) - E^*)$,"
    r" $\kappa = \frac{8N}{P\alpha}\frac{L+\alpha}{\alpha^2-20L^2}$,"
    r" $\kappa_0 = \frac2\alpha\frac{\alpha^2-20\alpha L-40L^2}{\alpha^2-20L^2}$.",
    assumptions=convex_regime,
    cases=lemma_1_cases,
)
def lemma_1(case: Case) -> Iterator[Inequality]:
    r"""Lemma 1: a Lyapunov function for convex clients.

    Compare :math:`\kappa_0 (E - E^*)` with the exact expectation of what the Lyapunov function loses.
    """
    kappa, kappa_0 = constants_of_lemma_1(case)
    for step, lost in lyapunov(case, kappa):
        yield Inequality(step.n, kappa_0 * case.error(step.before.gamma), lost)


def constants_of_lemma_1(case: Case) -> tuple[float, float]:
    r"""Return :math:`\kappa` and :math:`\kappa_0`."""
    L, alpha = case.L, case.alpha
    z = alpha**2 - 20.0 * L**2
    kappa = 8.0 / case.fraction / alpha * (L + alpha) / z
    return kappa, 2.0 / alpha * (alpha**2 - 20.0 * alpha * L - 40.0 * L**2) / z


def theorem_2_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Long runs by moments or with all clients; all histories of few rounds, where the bound is still empty.

    Clients that are linear on the way come near what is proved, before the printed bound says anything.
    """
    yield ExpectedVerdict(feddyn_case(flat_along_axes(), alpha=25.0, active=1, rounds=1500))
    yield ExpectedVerdict(feddyn_case(opposed(), alpha=30.0 * 3**0.5, active=1, rounds=1500, note=", as in Theorem 1"))
    yield ExpectedVerdict(feddyn_case(quadratic(4, L=4.0), alpha=25.0, active=2, rounds=1500, warm=True))
    yield ExpectedVerdict(feddyn_case(curvatures(0.0, 1.0, 2.0), alpha=25.0, active=2, rounds=1500, warm=True))
    yield ExpectedVerdict(feddyn_case(logistic(), alpha=25.0, active=1, rounds=4), "vacuous")
    yield ExpectedVerdict(feddyn_case(far_away(), alpha=100.0, active=2, rounds=330), "vacuous")
    if not quick:
        yield ExpectedVerdict(feddyn_case(logistic(mu=0.5), alpha=25.0, active=4, rounds=1500, note=", mu = 0.5"))
    yield ExpectedVerdict(feddyn_case(opposed(), alpha=24.0, active=1, rounds=1), "outside assumptions")


@claim(
    name="feddyn_theorem_2",
    source="Acar et al., Theorem 2",
    statement=r"For convex clients and $\alpha \ge 25L$, $\mathbb E\,E(\frac1T\sum_{t<T}\gamma^t) - E^* \le"
    r" \frac1T\bigl(10\alpha|\gamma^0 - \theta^*|^2 + \frac{100N}{P\alpha}C_0\bigr)$; with zero memories"
    r" $\gamma^0 = \theta^0$ and $C_0 = \frac1N\sum_k|\nabla f_k(\theta^*)|^2$. The proof gives"
    r" $\frac{1}{T\kappa_0}(|\gamma^0 - \theta^*|^2 + \kappa C_0)$ with the constants of Lemma 1, which is less.",
    assumptions=convex_regime,
    trivial=lambda case: case.error(case.gamma),
    cases=theorem_2_cases,
)
def theorem_2(case: Case) -> Iterator[Inequality]:
    """Theorem 2: the mean of the models of convex clients converges like 1/T.

    Compare the exact expectation for every number of rounds with both forms of the bound.
    """
    alpha, (kappa, kappa_0) = case.alpha, constants_of_lemma_1(case)
    away = case.distance(case.gamma)
    memory_error = float(np.sum((case.memory - case.subgradients) ** 2)) / len(case.memory)
    printed = 10.0 * alpha * away + 100.0 / case.fraction / alpha * memory_error
    proved = (away + kappa * memory_error) / kappa_0
    for T, measured, _ in expectations(case):
        yield Inequality(T, measured, proved / T, "proved")
        yield Inequality(T, measured, printed / T, "printed")


def lemma_9_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Convex and nonconvex clients."""
    yield from expected(convex_cases(quick, 3.0), convex_cases(quick, 0.5), nonconvex_cases(quick))


@claim(
    name="feddyn_lemma_9",
    source="Acar et al., Lemma 9",
    statement=r"$\mathbb E|\gamma^t - \theta^*|^2 \le \frac1N\sum_k|\tilde\theta_k^t - \theta^*|^2$,"
    r" with equality for P = 1.",
    rtol=1e-10,
    cases=lemma_9_cases,
)
def lemma_9(case: Case) -> Iterator[Inequality]:
    """Lemma 9: the mean of the active clients is no further from the optimum than the clients are.

    Compare expected squared distances.
    """
    for step in path(case):
        solutions = float(np.sum((step.all_solutions - case.theta) ** 2)) / len(step.all_solutions)
        yield Inequality(step.n, step.E[lambda point: case.distance(point.gamma)], solutions)


def lemma_8_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Yield the smallest alpha of the theorem, a start where only C_t counts, and an alpha too small."""
    yield from expected(strongly_convex_cases(quick))
    yield ExpectedVerdict(feddyn_case(opposed(), alpha=30.0, active=1, rounds=15, solved=True))
    yield from expected(convex_cases(True, 25.0)[:1], verdict="outside assumptions")


@claim(
    name="feddyn_lemma_8",
    source="Acar et al., Lemma 8",
    statement=r"For strongly convex clients and $\alpha \ge \max(5\mu\frac NP, 30L)$, with $r = 1 + \mu/\alpha$,"
    r" $r\,(\mathbb E|\gamma^t - \theta^*|^2 + \kappa\,\mathbb E\,C_t) \le |\gamma^{t-1} - \theta^*|^2 + \kappa C_{t-1}"
    r" - \kappa_0 (E(\gamma^{t-1}) - E^*)$, $\kappa = 8N(L+\alpha)/z$,"
    r" $z = \alpha^3P + \alpha^2P\mu - \alpha^2N\mu - 20\alpha L^2P + 4L^2N\mu - 20L^2P\mu$,"
    r" $\alpha z\kappa_0 = 2\alpha^3P + 2\alpha^2P\mu - 2\alpha^2N\mu - 40\alpha^2LP - 80\alpha L^2P - 40\alpha LP\mu"
    r" + 8\alpha LN\mu + 16L^2N\mu - 80L^2P\mu$.",
    assumptions=strongly_convex_regime,
    cases=lemma_8_cases,
)
def lemma_8(case: Case) -> Iterator[Inequality]:
    r"""Lemma 8: the Lyapunov function of strongly convex clients shrinks by a factor.

    Compare :math:`\kappa_0 (E - E^*)` with what the Lyapunov function loses beyond its factor.
    """
    kappa, kappa_0 = constants_of_lemma_8(case)
    for step, lost in lyapunov(case, kappa, 1.0 + case.mu / case.alpha):
        yield Inequality(step.n, kappa_0 * case.error(step.before.gamma), lost)


def constants_of_lemma_8(case: Case) -> tuple[float, float]:
    r"""Return :math:`\kappa` and :math:`\kappa_0`, with numerator and denominator divided by P."""
    L, mu, a, m = case.L, case.mu, case.alpha, 1.0 / case.fraction
    z = a**3 + a**2 * mu - a**2 * m * mu - 20 * a * L**2 + 4 * L**2 * m * mu - 20 * L**2 * mu
    top = 2 * a**3 + 2 * a**2 * mu - 2 * a**2 * m * mu - 40 * a**2 * L - 80 * a * L**2
    top += -40 * a * L * mu + 8 * a * L * m * mu + 16 * L**2 * m * mu - 80 * L**2 * mu
    return 8.0 * m * (L + a) / z, top / (a * z)


def theorem_3_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Long runs by moments or with all clients; all histories of few rounds, where the bound is still empty."""
    yield ExpectedVerdict(feddyn_case(opposed(), alpha=30.0, active=1, rounds=500))
    yield ExpectedVerdict(feddyn_case(quadratic(4, L=4.0), alpha=30.0, active=2, rounds=1500, warm=True))
    yield ExpectedVerdict(feddyn_case(curvatures(0.5, 1.0, 2.0), alpha=30.0, active=2, rounds=1500))
    yield ExpectedVerdict(feddyn_case(logistic(), alpha=30.0, active=1, rounds=4), "vacuous")
    if not quick:
        yield ExpectedVerdict(feddyn_case(logistic(mu=0.5), alpha=30.0, active=4, rounds=1000, note=", mu = 0.5"))
    yield ExpectedVerdict(feddyn_case(opposed(), alpha=14.0, active=1, rounds=1), "outside assumptions")


@claim(
    name="feddyn_theorem_3",
    source="Acar et al., Theorem 3",
    statement=r"For strongly convex clients and $\alpha \ge \max(5\mu\frac NP, 30L)$, with $r = 1 + \mu/\alpha$ and"
    r" $R = \sum_{t<T} r^t$, $\mathbb E\,E(\frac1R\sum_{t<T}r^t\gamma^t) - E^* \le"
    r" r^{-(T-1)}\bigl(20\alpha|\gamma^0 - \theta^*|^2 + \frac{400N}{P\alpha}C_0\bigr)$; with zero memories"
    r" $\gamma^0 = \theta^0$ and $C_0 = \frac1N\sum_k|\nabla f_k(\theta^*)|^2$. The proof gives"
    r" $\frac{1}{R\kappa_0}(|\gamma^0 - \theta^*|^2 + \kappa C_0)$ with the constants of Lemma 8, which is less.",
    assumptions=strongly_convex_regime,
    trivial=lambda case: case.error(case.gamma),
    cases=theorem_3_cases,
)
def theorem_3(case: Case) -> Iterator[Inequality]:
    """Theorem 3: a weighted mean of the models of strongly convex clients converges linearly.

    Compare the exact expectation for every number of rounds with both forms of the bound.
    """
    alpha, (kappa, kappa_0) = case.alpha, constants_of_lemma_8(case)
    away = case.distance(case.gamma)
    memory_error = float(np.sum((case.memory - case.subgradients) ** 2)) / len(case.memory)
    printed = 20.0 * alpha * away + 400.0 / case.fraction / alpha * memory_error
    proved = (away + kappa * memory_error) / kappa_0
    r, R = 1.0 + case.mu / alpha, 0.0
    for T, measured, _ in expectations(case, r):
        R += r ** (T - 1)
        yield Inequality(T, measured, proved / R, "proved")
        yield Inequality(T, measured, printed / r ** (T - 1), "printed")
