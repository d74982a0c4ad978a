r"""Theorem 1 of the FedDyn paper, its headline rates, with constants: Theorems 2 to 4 at the alphas that it names.

It hides constants behind "O" and alpha behind "suitably chosen"; below Theorems 2, 3 and 4 the paper says which alpha
gives the statement. With :math:`m = N/P`, :math:`A = |\theta^0 - \theta^*|^2`, :math:`B = \frac1N\sum_k
|\nabla f_k(\theta^*)|^2` and memories that start at zero (else B is their mean squared distance from
:math:`\nabla f_k(\theta^*)`, and :math:`\gamma^0` stands for :math:`\theta^0`):

Convex, :math:`\alpha = 30L\sqrt m`. Theorem 2 has :math:`\frac1T(10\alpha A + \frac{100m}\alpha B)`, where
:math:`10\alpha = 300L\sqrt m` and :math:`\frac{100m}\alpha = \frac{10}{3L}\sqrt m`. An error of :math:`\epsilon`
takes :math:`T = \frac{\sqrt m}\epsilon(300LA + \frac{10}{3L}B)` rounds.

Strongly convex, :math:`\alpha = \beta = \max(5m\mu, 30L)`. Theorem 3 has :math:`r^{-(T-1)}(20\beta A +
\frac{400m}\beta B)`, and :math:`r = 1 + \frac\mu\beta \le \frac{31}{30}` since :math:`\mu \le L`: with
:math:`r^{-T}` the factors are :math:`\frac{62}3` and :math:`\frac{1240}3`. As :math:`\log(1+x) \ge \frac x{1+x}`,
:math:`T = (1 + \frac\beta\mu)\log\frac{\text{bound at } T = 0}\epsilon` rounds are enough.

Nonconvex, :math:`\alpha = 30Lm`. Theorem 4 has :math:`\frac1T(3\alpha(E(\gamma^0) - \inf E) + 30L^3\frac m\alpha
C_0)` with :math:`C_0 = \frac1N\sum_k|\theta_k^0 - \gamma^0|^2`: the factors are :math:`90Lm` and :math:`L^2`. The
expectation over :math:`\bar\gamma_T`, one of the :math:`\gamma^t`, t < T, with equal probability, is the mean over t.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal

import numpy as np

from dualopt.lab.claims import Inequality, claim
from theory._cases import Case, Derived
from theory._claims import UP_TO_ROUNDING, ExpectedVerdict
from theory._problems import indefinite, lopsided
from theory.feddyn._runs import (
    curvatures,
    expectations,
    feddyn_case,
    flat_along_axes,
    opposed,
)
from theory.feddyn.convex import convex
from theory.feddyn.nonconvex import smooth

Kind = Literal["strongly convex", "convex", "nonconvex"]


def named_alpha(case: Case) -> float:
    """Return the alpha with which the paper gets this rate."""
    weights = {"convex": 30.0 * case.L * math.sqrt(case.m), "nonconvex": 30.0 * case.L * case.m}
    return weights.get(case.kind, max(5.0 * case.m * case.mu, 30.0 * case.L))


def bound_at_one(case: Case) -> float:
    """Return the bound without 1/T or ``r^(-T)``."""
    m, L, beta = case.m, case.L, case.alpha
    if case.kind == "nonconvex":
        apart = float(np.sum((case.points - case.gamma) ** 2)) / case.n_clients
        return 90.0 * L * m * (case.value(case.gamma) - case.lowest) + L**2 * apart
    A = case.distance(case.gamma)
    B = float(np.sum((case.memory - case.subgradients) ** 2)) / case.n_clients
    if case.kind == "convex":
        return math.sqrt(m) * (300.0 * L * A + 10.0 / (3.0 * L) * B)
    return 62.0 / 3.0 * beta * A + 1240.0 / 3.0 * m / beta * B


def bound_after(case: Case, T: int) -> float:
    """Return the bound after T rounds."""
    r = 1.0 + case.mu / case.alpha
    return bound_at_one(case) * (r**-T if case.kind == "strongly convex" else 1.0 / T)


def rounds_for(case: Case, accuracy: float) -> int:
    """Return the number of rounds that is enough."""
    ratio = bound_at_one(case) / accuracy
    if case.kind == "strongly convex":
        return max(1, math.ceil((1.0 + case.alpha / case.mu) * math.log(ratio)))
    return math.ceil(ratio)


def at_the_start(case: Case) -> float:
    """Return what is known without a theorem."""
    return case.squared_gradient(case.gamma) if case.kind == "nonconvex" else case.error(case.gamma)


def rate_case(instance: Case, kind: Kind, *, active: int, rounds: int, warm: bool = False) -> Case:
    """Start FedDyn with the alpha that the paper names; the case knows the ``kind`` of the rate, and ``m = N/P``.

    Examples
    --------
    >>> case = rate_case(opposed(), "convex", active=3, rounds=1)
    >>> case.name, case.alpha
    ('three that pull apart, P = 3, alpha = 30 L, convex', 30.0)
    """
    m = instance.n_clients / active
    strong = max(5.0 * m * instance.mu / instance.L, 30.0)
    alpha = {"strongly convex": strong, "convex": 30.0 * math.sqrt(m), "nonconvex": 30.0 * m}[kind]
    case = feddyn_case(instance, alpha=alpha, active=active, rounds=rounds, warm=warm, note=f", {kind}")
    return case.but(kind=kind, m=Derived(lambda case: 1.0 / case.fraction))


def kind_of_clients(case: Case) -> list[str]:
    """Return what fails of the assumptions of the rate."""
    named = named_alpha(case)
    chosen = named / UP_TO_ROUNDING <= case.alpha <= named * UP_TO_ROUNDING
    found = [] if chosen else ["the alpha of the rate"]
    if case.kind == "nonconvex":
        return found + smooth(case)
    return found + convex(case) + ([] if case.kind == "convex" or case.mu > 0 else ["strongly convex clients"])


def theorem_1_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """All three rates on equal and unequal clients with long runs; short runs, and an alpha that is not the named one.

    Among the clients are flat ones, and a concave one.
    """
    rounds = 1500 if quick else 8000
    yield ExpectedVerdict(rate_case(opposed(), "convex", active=1, rounds=rounds))
    yield ExpectedVerdict(rate_case(flat_along_axes(), "convex", active=2, rounds=rounds, warm=True))
    yield ExpectedVerdict(rate_case(curvatures(0.0, 1.0, 2.0), "convex", active=2, rounds=rounds, warm=True))
    yield ExpectedVerdict(rate_case(opposed(), "strongly convex", active=1, rounds=500))
    yield ExpectedVerdict(rate_case(curvatures(0.5, 1.0, 2.0), "strongly convex", active=2, rounds=1000))
    if not quick:
        yield ExpectedVerdict(rate_case(indefinite(), "nonconvex", active=2, rounds=rounds, warm=True))
    yield ExpectedVerdict(rate_case(curvatures(-0.5, 1.0, 2.0), "nonconvex", active=1, rounds=600))
    yield ExpectedVerdict(rate_case(lopsided(), "convex", active=2, rounds=50), "vacuous")
    case = rate_case(opposed(), "convex", active=1, rounds=1)
    other = feddyn_case(opposed(), alpha=25.0, active=1, rounds=1)
    yield ExpectedVerdict(case.but(name=other.name, algorithm=other.algorithm), "outside assumptions")
    concave = curvatures(-0.5, 1.0, 2.0)
    yield ExpectedVerdict(rate_case(concave, "convex", active=1, rounds=1), "outside assumptions")


@claim(
    name="feddyn_theorem_1",
    source="Acar et al., Theorem 1, with the constants of Theorems 2 to 4",
    statement=r"With $m = \frac NP$, $A = |\theta^0 - \theta^*|^2$, $B = \frac1N\sum_k|\nabla f_k(\theta^*)|^2$, zero"
    r" memories. Convex, $\alpha = 30L\sqrt m$: $\mathbb E\,E(\frac1T\sum_{t<T}\gamma^t) - E^* \le \frac{\sqrt m}T"
    r"(300LA + \frac{10}{3L}B)$. Strongly convex, $\alpha = \beta = \max(5m\mu, 30L)$, $r = 1 + \frac\mu\beta$, $R ="
    r" \sum_{t<T}r^t$: $\mathbb E\,E(\frac1R\sum_{t<T}r^t\gamma^t) - E^* \le r^{-T}(\frac{62}3\beta A +"
    r" \frac{1240m}{3\beta}B)$. Nonconvex, $\alpha = 30Lm$: $\frac1T\sum_{t<T}\mathbb E|\nabla E(\gamma^t)|^2 \le"
    r" \frac1T(90Lm(E(\theta^0) - \inf E) + L^2\frac1N\sum_k|\theta_k^0 - \theta^0|^2)$. With S the bound at T = 1,"
    r" or at T = 0 in the second case, $\epsilon$ takes $S/\epsilon$ rounds, or $(1 + \frac\beta\mu)"
    r"\log\frac S\epsilon$.",
    assumptions=kind_of_clients,
    trivial=at_the_start,
    cases=theorem_1_cases,
)
def theorem_1(case: Case) -> Iterator[Inequality]:
    """Theorem 1: the rates for convex, strongly convex and nonconvex clients, with their constants.

    Compare exact expectations for every number of rounds with the bound, and with the accuracies to which the stated
    numbers of rounds belong.
    """
    start = at_the_start(case)
    wanted = {rounds_for(case, share * start): share * start for share in (0.75, 0.5, 0.1)}
    r = 1.0 + case.mu / case.alpha if case.kind == "strongly convex" else 1.0
    slopes = 0.0
    for T, error, slope in expectations(case, r):
        slopes += slope
        measured = slopes / T if case.kind == "nonconvex" else error
        if T in wanted:
            yield Inequality(T, measured, wanted[T], "accuracy after the stated number of rounds")
        yield Inequality(T, measured, bound_after(case, T), "bound")
