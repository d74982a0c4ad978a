"""Theorem 1: without skipping the mean squared gradient falls like 1/T, with every constant."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dualopt.claims import Inequality, claim
from theory._claims import ExpectedVerdict
from theory.fedpd._assumptions import admitted
from theory.fedpd._constants import accuracy_factor, decrease_factor, printed, start_factor
from theory.fedpd._instances import equal_hessians, heterogeneous, nonconvex, penalised, run_on
from theory.fedpd._run import Run


def theorem_1_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Enough rounds for the bound to say something; too few; and a step that is too long."""
    rounds = 300 if quick else 3000
    yield ExpectedVerdict(run_on("nonconvex quadratics", nonconvex(), rounds=2 * rounds))
    yield ExpectedVerdict(run_on("quadratics", heterogeneous(), rounds=rounds))
    yield ExpectedVerdict(run_on("equal Hessians", equal_hessians(), rounds=rounds))
    yield ExpectedVerdict(run_on("quadratics", heterogeneous(), a=0.25, rounds=2 * rounds, tol=1e-3))
    yield ExpectedVerdict(run_on("penalised logistic", penalised(), rounds=500))
    yield ExpectedVerdict(run_on("quadratics, too few rounds", heterogeneous(), rounds=30), "vacuous")
    yield ExpectedVerdict(run_on("quadratics", heterogeneous(), a=0.5), "outside assumptions")


@claim(
    name="fedpd_theorem_1",
    source="Zhang et al., Theorem 1, with the constants derived again",
    statement=r"With $a = L\eta$, $0 < a < (\sqrt5-1)/4$, p = 0, duals that start at zero, $H_0 ="
    r" \frac1N\sum_j(|\nabla f_j(x^0)| + \sqrt{\varepsilon_1})^2$, $C = \frac{8((1+a)^2+2a^4)}{\eta(1-2a-4a^2)}$, $s ="
    r" \frac{1-2a^2}{(1-a)^2}$: $\frac1T\sum_{r<T}|\nabla E(x_0^r)|^2 \le \frac1T(C(E(x^0)-E^*) + s(C\eta+4a^2)H_0) +"
    r" (\frac{C}{2L}(1+\frac1T) + 8C\eta + 4 + 32a^2)\varepsilon_1$.",
    assumptions=admitted,
    trivial=lambda run: squared_gradient(run, run.theta0),
    rounding=0.0,
    cases=theorem_1_cases,
)
def theorem_1(run: Run) -> Iterator[Inequality]:
    """Compare the means over the first T rounds, T = 1, 2, ..."""
    L, eta = run.L, run.eta
    for T, mean, accuracy in mean_gradients(run):
        constant = decrease_factor(L=L, eta=eta) * excess(run) + start_factor(L=L, eta=eta) * pull(run, accuracy)
        bound = constant / T + accuracy_factor(L=L, eta=eta, rounds=T) * accuracy
        yield Inequality(T, mean, bound, "mean of |grad E|^2")


def compare_printed(run: Run, *, repaired: bool) -> Iterator[Inequality]:
    """Compare with the constants C2 and C4 of the appendix."""
    C2, C4 = printed(L=run.L, eta=run.eta, repaired=repaired)
    for T, mean, accuracy in mean_gradients(run):
        yield Inequality(T, mean, C2 * excess(run) / T + C4 * accuracy, "mean of |grad E|^2")


def mean_gradients(run: Run) -> Iterator[tuple[int, float, float]]:
    """Yield T, the mean of ``|grad E(x_0^r)|^2`` over r < T, and the accuracy of the local solutions so far."""
    total = 0.0
    for T, step in enumerate(run.steps(), start=1):
        total += squared_gradient(run, np.mean(step.before.clients.x0, axis=0))
        yield T, total / T, step.accuracy


def squared_gradient(run: Run, theta: np.ndarray) -> float:
    """Return ``|grad E(theta)|^2``."""
    return float(np.sum(np.mean(run.objective.gradient(theta), axis=0) ** 2))


def excess(run: Run) -> float:
    """Return ``D_0 = E(x^0) - inf E``, or an upper bound of it."""
    return float(np.mean(run.objective.value(run.theta0))) - run.lowest


def pull(run: Run, accuracy: float) -> float:
    """Return ``H_0``, how hard the clients pull at the start."""
    norms = np.linalg.norm(run.objective.gradient(run.theta0).reshape(run.objective.n_clients, -1), axis=1)
    return float(np.mean((norms + np.sqrt(accuracy)) ** 2))
