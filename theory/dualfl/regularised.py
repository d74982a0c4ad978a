r"""Clients that are not strongly convex: Theorems 4.1 and 4.2 of the DualFL paper (Section 4).

DualFL runs on the clients :math:`f_j^\alpha = f_j + \frac\alpha2|\cdot|^2` of (4.1) with :math:`\nu = \alpha` and tends
to their solution :math:`\theta^\alpha`; the claims bound errors on the :math:`f_j` themselves, the plain problem. The
constants that the paper hides depend on :math:`\alpha`, through the solution :math:`\xi^\alpha` of the dual problem
(6.4) of the :math:`f_j^\alpha`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import islice, takewhile
from typing import Any

import numpy as np

from dualopt.engine.rounds import iterate
from dualopt.lab.claims import Inequality, claim
from dualopt.methods.participation import first_round
from dualopt.solvers import DualCoordinate
from dualopt.solvers.stopping import Gap, LinearSchedule, SublinearSchedule
from theory._cases import Case
from theory._claims import ExpectedVerdict
from theory._problems import (
    flat_quadratic,
    hinge_without_ridge,
    logistic,
    one_flat_client,
    regularised,
    solved,
)
from theory.dualfl._runs import DualFLRound, dual_optimum, exact, inexact, initial_error, path
from theory.dualfl.inexact_solutions import contractions, envelope


def plain_case(instance: Case, alpha: float, rounds: int, *, accelerated: bool) -> Case:
    """Return the case of a plain problem, with DualFL set up for its regularisation.

    ``rho`` is ``alpha/(L + alpha)`` as in Theorem 4.2 or, not accelerated, 0 as in Theorem 4.1.
    """
    ridge = _solved(instance.objective, alpha)
    method = exact(ridge, nu=alpha, rho=alpha / (instance.L + alpha) if accelerated else 0.0)
    return instance.case(method, rounds, f"alpha = {alpha:.3g}")


def with_ridge(case: Case) -> Case:
    r"""Return the case of the regularised problem (4.1): ``theta`` is :math:`\theta^\alpha` there."""
    return _solved(case.objective, case.algorithm.nu).case(case.algorithm, case.rounds)


@lru_cache(maxsize=8)
def _solved(objective: Any, alpha: float) -> Case:
    """Solve the regularised problem once, for its case and for the claims: the hinge loss takes a second."""
    return solved("regularised", regularised(objective, alpha))


# Convergence.


def theorem_4_1_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Yield enough rounds for the ridge; and a ridge too small for its rounds, where the bound says nothing."""
    for instance in (logistic(mu=0.0), hinge_without_ridge()):
        yield ExpectedVerdict(plain_case(instance, 0.03, 100 if quick else 200, accelerated=False))
    if not quick:
        yield ExpectedVerdict(plain_case(logistic(mu=0.0), 0.01, 800, accelerated=False))
    yield ExpectedVerdict(plain_case(logistic(mu=0.0), 0.003, 10, accelerated=False), "vacuous")


@claim(
    source="Park and Xu, Theorem 4.1",
    statement=r"DualFL with rho = 0, nu = alpha on $f_j + \frac\alpha2|\cdot|^2$, E Lipschitz with constant $G$:"
    r" $E(\theta^n) - E^* \le \frac\alpha2(|\theta^*|^2 - |\theta^\alpha|^2)"
    r" + \frac{2G|\xi^\alpha|}{\sqrt N\alpha(n+1)}$, $\xi_j^\alpha \in \partial f_j(\theta^\alpha)$;"
    r" so the error vanishes as $\alpha \to 0$, $\alpha n \to \infty$.",
    assumptions=lambda case: [] if case.algorithm.rho == 0 else ["rho = 0"],
    trivial=initial_error,
    cases=theorem_4_1_cases,
)
def theorem_4_1(case: Case) -> Iterator[Inequality]:
    """Theorem 4.1: without strong convexity a vanishing ridge leads to the minimum.

    Compare the error of the plain energy along the run on the regularised problem.
    """
    ridge, alpha, lowest = with_ridge(case), case.algorithm.nu, case.value(case.theta)
    bias = 0.5 * alpha * float(np.sum(case.theta**2) - np.sum(ridge.theta**2))
    size = float(np.linalg.norm(dual_optimum(ridge)))  # |xi^alpha|
    speed = 2.0 * _lipschitz(case.objective) * size / (np.sqrt(case.n_clients) * alpha)
    for n, s in enumerate(ridge.snapshots(), start=1):
        yield Inequality(n, case.value(s.server.theta) - lowest, bias + speed / (n + 1.0), "E - E*")


def _lipschitz(f: Any) -> float:
    """Return a Lipschitz constant of E, for losses whose slope is at most 1."""
    return float(np.mean([np.sum(w * np.linalg.norm(X, axis=1)) for X, _, w in f.client_rows()]))


def inexact_case(instance: Case, alpha: float, rounds: int, *, accelerated: bool, scale: float) -> Case:
    """Return the case of a plain problem with inexact local solutions, of accuracies (3.7) or (3.8) times a factor."""
    ridge, rho = _solved(instance.objective, alpha), alpha / (instance.L + alpha) if accelerated else 0.0
    schedule = LinearSchedule(rho=rho, scale=scale) if accelerated else SublinearSchedule(nu=alpha, scale=scale)
    solver = None if math.isfinite(instance.L) else DualCoordinate(max_iter=20_000)
    method = inexact(ridge, Gap(schedule=schedule), nu=alpha, rho=rho, solver=solver)
    return instance.case(method, rounds, f"alpha = {alpha:.3g}, accuracies times {scale:g}")


def distances_from_the_ridge(ridge: Case) -> Iterator[tuple[DualFLRound, float]]:
    r"""Yield the rounds with what :math:`|\theta^n - \theta^\alpha|` is at most, by (6.13) and the errors made."""
    steps, nu = list(path(ridge)), ridge.algorithm.nu
    squared = float(np.sum(dual_optimum(ridge) ** 2))
    bounds = envelope((step.local_error for step in steps), rho=ridge.algorithm.rho, nu=nu, squared=squared)
    for step, bound in zip(steps, bounds, strict=True):
        yield step, math.sqrt(2.0 * bound / (ridge.n_clients * nu))


def theorem_4_1_inexact_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Yield smooth and nonsmooth clients, with negligible errors and with some that count; and with too large ones."""
    rounds = 80 if quick else 200
    for instance, scale in ((logistic(mu=0.0), 1e-7), (logistic(mu=0.0), 1e-6), (hinge_without_ridge(), 1e-5)):
        yield ExpectedVerdict(inexact_case(instance, 0.03, rounds, accelerated=False, scale=scale))
    yield ExpectedVerdict(inexact_case(logistic(mu=0.0), 0.03, 20, accelerated=False, scale=1e-3), "vacuous")


@claim(
    source="Park and Xu, Theorem 4.1 with (3.7)",
    statement=r"DualFL with rho = 0, nu = alpha on $f_j + \frac\alpha2|\cdot|^2$, dual-corrected local solutions with"
    r" errors $\varepsilon_i$ as in theorem_3_2_inexact, whose bound of the dual error is $B_n$, E Lipschitz with"
    r" constant $G$: $E(\theta^n) - E^* \le \frac\alpha2(|\theta^*|^2 - |\theta^\alpha|^2) + G\sqrt{2B_n/(N\alpha)}$.",
    assumptions=lambda case: [] if case.algorithm.rho == 0 else ["rho = 0"],
    trivial=initial_error,
    cases=theorem_4_1_inexact_cases,
)
def theorem_4_1_inexact(case: Case) -> Iterator[Inequality]:
    """Theorem 4.1 with inexact local solutions.

    Compare the error of the plain energy with the bound for the errors that were made.
    """
    ridge, lowest, G = with_ridge(case), case.value(case.theta), _lipschitz(case.objective)
    bias = 0.5 * case.algorithm.nu * float(np.sum(case.theta**2) - np.sum(ridge.theta**2))
    for step, away in distances_from_the_ridge(ridge):
        yield Inequality(step.n, case.value(step.theta) - lowest, bias + G * away, "E - E*")


# Rounds until the gradient is small.


def accelerated_regime(case: Case) -> list[str]:
    """Return what fails: ``rho`` is that of Theorem 4.2."""
    alpha, rho = case.algorithm.nu, case.algorithm.rho
    return [] if abs(rho * (case.L + alpha) / alpha - 1.0) <= 1e-9 else ["rho = alpha/(L + alpha)"]


ENOUGH = 2000  # rounds, after which the errors of (3.8) add nothing: the terms of their sums are multiplied by 0.95


def constant_of_4_5(case: Case, ridge: Case) -> float:
    r"""Return the constant in front of :math:`(1-\sqrt\rho)^{n/2}` in (4.5); it depends on alpha.

    With local solutions of the accuracies (3.8) the limit of :math:`a_n + \sqrt{|\xi^\alpha|^2 + 2\nu e_n + a_n^2}`
    takes the place of :math:`|\xi^\alpha|`, see :func:`theory.dualfl.inexact_solutions.envelope`.
    """
    nu, rho, N = case.algorithm.nu, case.algorithm.rho, case.n_clients
    squared = float(np.sum(dual_optimum(ridge) ** 2))
    schedule = getattr(case.algorithm.stop, "schedule", None)
    admitted = [N * schedule(replace(first_round(N), n=n)) for n in range(ENOUGH)] if schedule else [0.0]
    known = takewhile(lambda R: R > 1e-200, contractions(rho))
    *_, (R, bound) = zip(known, envelope(admitted, rho=rho, nu=nu, squared=squared), strict=False)
    size = math.sqrt(2.0 * nu * bound / R)
    return case.L * size / (nu * math.sqrt(N * (1.0 - math.sqrt(rho))))


def theorem_4_2_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Singular quadratics and logistic regression without a ridge, down to the accuracy of local solutions."""
    for alpha, rounds in ((0.1, 150), (0.01, 1000)):
        yield ExpectedVerdict(plain_case(flat_quadratic(), alpha, rounds, accelerated=True))
    yield ExpectedVerdict(plain_case(one_flat_client(), 0.1, 100, accelerated=True))
    for alpha, rounds in [(0.1, 80)] if quick else [(0.1, 80), (0.01, 300)]:
        yield ExpectedVerdict(plain_case(logistic(mu=0.0), alpha, rounds, accelerated=True))


@claim(
    source="Park and Xu, Theorem 4.2, (4.5)",
    statement=r"DualFL with $\rho = \alpha/(L+\alpha)$, $\nu = \alpha$ on $f_j + \frac\alpha2|\cdot|^2$:"
    r" $|\nabla E(\theta^n) + \alpha\theta^\alpha| \le C (1-\sqrt\rho)^{n/2}$,"
    r" hence $|\nabla E(\theta^n)| \le C (1-\sqrt\rho)^{n/2} + \alpha|\theta^\alpha|$,"
    r" $C = \frac{L|\xi^\alpha|}{\alpha\sqrt{N(1-\sqrt\rho)}}$, $\xi_j^\alpha = \nabla f_j(\theta^\alpha)$.",
    assumptions=accelerated_regime,
    trivial=lambda case: math.sqrt(case.squared_gradient(case.objective.zeros())),
    cases=theorem_4_2_cases,
)
def theorem_4_2(case: Case) -> Iterator[Inequality]:
    """Theorem 4.2, estimate (4.5): the gradient of the plain energy.

    Compare it with its limit (4.7), which gives (4.5) by the triangle inequality.
    """
    ridge, f, alpha = with_ridge(case), case.objective, case.algorithm.nu
    C, rate = constant_of_4_5(case, ridge), np.sqrt(1.0 - np.sqrt(case.algorithm.rho))
    for n, s in enumerate(ridge.snapshots(), start=1):
        difference = np.mean(f.gradient(s.server.theta), axis=0) + alpha * ridge.theta
        yield Inequality(n, float(np.linalg.norm(difference)), float(C * rate**n), "|grad E + alpha theta^alpha|")


def theorem_4_2_inexact_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Singular quadratics, one flat client and logistic losses, with errors of two sizes."""
    for scale in (1e-6, 1e-2):
        yield ExpectedVerdict(inexact_case(flat_quadratic(), 0.1, 150, accelerated=True, scale=scale))
        yield ExpectedVerdict(inexact_case(one_flat_client(), 0.1, 100, accelerated=True, scale=scale))
    yield ExpectedVerdict(inexact_case(logistic(mu=0.0), 0.1, 80, accelerated=True, scale=1e-3))


@claim(
    source="Park and Xu, Theorem 4.2, (4.5) with (3.8)",
    statement=r"DualFL with $\rho = \alpha/(L+\alpha)$, $\nu = \alpha$ on $f_j + \frac\alpha2|\cdot|^2$, dual-corrected"
    r" local solutions with errors $\varepsilon_i$ as in theorem_3_3_inexact, whose bound of the dual error is $B_n$:"
    r" $|\nabla E(\theta^n) + \alpha\theta^\alpha| \le L\sqrt{2B_n/(N\alpha)}$.",
    assumptions=accelerated_regime,
    trivial=lambda case: math.sqrt(case.squared_gradient(case.objective.zeros())),
    cases=theorem_4_2_inexact_cases,
)
def theorem_4_2_inexact(case: Case) -> Iterator[Inequality]:
    """Theorem 4.2, estimate (4.5), with inexact local solutions.

    Compare the gradient of the plain energy with its limit (4.7), up to what local solutions leave of it.
    """
    ridge, f, alpha = with_ridge(case), case.objective, case.algorithm.nu
    for step, away in distances_from_the_ridge(ridge):
        difference = np.mean(f.gradient(step.theta), axis=0) + alpha * ridge.theta
        yield Inequality(step.n, float(np.linalg.norm(difference)), case.L * away, "|grad E + alpha theta^alpha|")


def theorem_4_2_rounds_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Accuracies over two orders of magnitude, with exact local solutions and with those of (3.8)."""
    for instance in (flat_quadratic(), logistic(mu=0.0)):
        for alpha in (0.1, 0.01) if quick else (0.1, 0.01, 0.001):
            yield ExpectedVerdict(plain_case(instance, alpha, 1, accelerated=True))
        for alpha in (0.1, 0.01):
            yield ExpectedVerdict(inexact_case(instance, alpha, 1, accelerated=True, scale=1.0))


@claim(
    source="Park and Xu, Theorem 4.2, (4.6) with (3.8)",
    statement=r"With $\alpha = \epsilon/(2R_0)$, $R_0 = |\theta^*|$, $|\nabla E(\theta^n)| \le \epsilon$ is reached"
    r" within $M \le 1 + \bigl(1 + 2\sqrt{1 + 2LR_0/\epsilon}\bigr)\bigl(\log\frac1\epsilon + \log 2C\bigr)_+$ rounds,"
    r" $C$ from (4.5), which depends on epsilon through alpha; of dual-corrected local solutions with the accuracies"
    r" (3.8), the limit of the last factor of theorem_3_3_inexact for these takes the place of $|\xi^\alpha|$ in C.",
    assumptions=accelerated_regime,
    cases=theorem_4_2_rounds_cases,
)
def theorem_4_2_rounds(case: Case) -> Iterator[Inequality]:
    """Theorem 4.2, estimate (4.6): rounds until the gradient of the plain energy is small.

    Count the rounds to the accuracy that belongs to alpha.
    """
    ridge = with_ridge(case)
    radius = float(np.linalg.norm(case.theta))  # |theta^alpha| <= |theta*| for every alpha
    epsilon = 2.0 * radius * case.algorithm.nu
    condition = math.sqrt(1.0 + 2.0 * case.L * radius / epsilon)
    # a logarithm below zero belongs to an accuracy that the start has already
    logarithm = max(math.log(1.0 / epsilon) + math.log(2.0 * constant_of_4_5(case, ridge)), 0.0)
    bound = 1.0 + (1.0 + 2.0 * condition) * logarithm
    rounds = islice(iterate(case.algorithm, ridge.objective), math.ceil(bound))
    reached = (n for n, s in enumerate(rounds, start=1) if case.squared_gradient(s.server.theta) <= epsilon**2)
    yield Inequality(math.ceil(bound), float(next(reached, math.inf)), bound, f"rounds to |grad E| <= {epsilon:.3g}")
