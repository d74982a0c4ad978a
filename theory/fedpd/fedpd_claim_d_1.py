"""Claim D.1 of the first version: with bounded gradients FedAvg converges for every vanishing step."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dualopt.claims import Inequality, claim
from theory._claims import ExpectedVerdict
from theory.fedpd._instances import logistic
from theory.fedpd._local_steps import LocalSteps, Vanishing, bounded_gradient, squares


def claim_d_1_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Yield steps that vanish slowly; faster; and a constant one, whose bound does not vanish."""
    f = logistic(mu=0.0)
    G, L = bounded_gradient(f), float(np.max(f.L))
    rounds = 150 if quick else 1500
    for multiple, power, steps in ((0.3, 0.5, 3), (0.5, 1 / 3, 2)):
        schedule = Vanishing(multiple / L, power)
        name = f"logistic, Q = {steps}, eta = {multiple:g}/(L (r+1)^{power:.2g})"
        yield ExpectedVerdict(LocalSteps(name=name, objective=f, schedule=schedule, steps=steps, rounds=rounds, G=G))
    constant = Vanishing(1.0 / L)
    constant_case = LocalSteps(
        name="logistic, Q = 8, eta = 1/L", objective=f, schedule=constant, steps=8, rounds=30, G=G
    )
    yield ExpectedVerdict(constant_case, "vacuous")


@claim(
    name="fedpd_claim_d_1",
    source="Zhang et al., first version, Claim D.1",
    statement=r"FedAvg with Q steps of length $\eta_r \le 1/L$ in round r and $\frac1N\sum_j|\nabla f_j|^2 \le G^2$:"
    r" $\frac{\sum_r\eta_r\sum_{q<Q}|\nabla E(\bar x^{r,q})|^2}{Q\sum_r\eta_r} \le \frac{2(E(x^0) - \inf E) +"
    r" L^2G^2\frac{(Q-1)Q(2Q-1)}{6}\sum_r\eta_r^3}{Q\sum_r\eta_r}$, which vanishes if $\eta_r \to 0$ and $\sum\eta_r ="
    r" \infty$.",
    assumptions=lambda case: [] if case.schedule(0) <= 1.0 / case.L else ["eta <= 1/L"],
    trivial=lambda case: float(np.sum(np.mean(case.objective.gradient(case.objective.zeros()), axis=0) ** 2)),
    cases=claim_d_1_cases,
)
def claim_d_1(case: LocalSteps) -> Iterator[Inequality]:
    """Compare the mean squared gradient, weighted by the steps, with Lemma 5 summed over the rounds."""
    f, Q = case.objective, case.steps
    excess = float(np.mean(f.value(f.zeros()))) - case.lowest
    total = weight = cubes = 0.0
    for n, step, means in case.run():
        total += step * sum(float(np.sum(np.mean(f.gradient(x), axis=0) ** 2)) for x in means[:-1])
        weight += step
        cubes += step**3
        bound = (2.0 * excess + case.L**2 * case.G**2 * squares(Q) * cubes) / (Q * weight)
        yield Inequality(n, total / (Q * weight), bound, "weighted mean of |grad E|^2")
