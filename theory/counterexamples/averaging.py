r"""FedAvg and FedProx on two clients of one variable: divergence, and limits that are not the solution.

Local work brings a client a fraction :math:`w_j` of the way to its own minimum :math:`m_j`. If it ends at
:math:`\theta_j = \theta - w_j(\theta - m_j)`, the average is :math:`\theta^+ = \theta - \frac12\sum_j w_j(\theta -
m_j)`, whose fixed point is :math:`\theta_\infty = \frac{w_1m_1 + w_2m_2}{w_1 + w_2}`. The solution is
:math:`\theta^* = \frac{a_1m_1 + a_2m_2}{a_1 + a_2}`, the same point if the weights are proportional to the curvatures.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import repeat
from typing import Any

import numpy as np

from dualopt.arrays.xp import Array
from dualopt.lab.claims import Inequality, claim
from dualopt.methods import FedAvg, FedProx
from dualopt.solvers import Exact, Gradient
from dualopt.solvers.stopping import Steps
from theory._cases import Case
from theory._claims import ROUNDING, ExpectedVerdict, deviation
from theory.counterexamples._recursion import follow, on_quadratics, scalars
from theory.fedpd.fedavg import LocalSteps, Vanishing


def fedavg_constant_step_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Yield the paper's clients with short steps and long ones, and a convex E on both sides of the longest step."""
    for s, Q in ((0.1, 2), (0.05, 6), (1.0, 3)):
        yield ExpectedVerdict(constant_step(0.0, 2.0, s, Q))
    for multiple in (0.5, 0.97, 1.03) if quick else (0.5, 0.98, 1.02):
        yield ExpectedVerdict(constant_step(1.0, 3.0, multiple * longest_step(1.0, 3.0)))
    yield ExpectedVerdict(constant_step(1.0, 30.0, 0.01))


@claim(
    source="FedPD Claim II.2 and Appendix A",
    statement=r"FedAvg with $Q \ge 2$ gradient steps of length $s$ on $\frac{a\pm b}2x^2$: a round multiplies the model"
    r" by $\frac12(1 - s(a+b))^Q + \frac12(1 - s(a-b))^Q$. For $a = 0$ it diverges for every $s > 0$; for $Q = 2$ it"
    r" converges if and only if $s < 2a/(a^2 + b^2)$, which tends to 0 for $b \to \infty$ while E stays"
    r" $\frac a2x^2$.",
    assumptions=lambda run: [] if run.algorithm.stop.steps == 2 or np.sum(run.curvatures) == 0 else ["Q = 2 or a = 0"],
    cases=fedavg_constant_step_cases,
)
def fedavg_constant_step(run: Case) -> Iterator[Inequality]:
    r"""FedAvg with a constant step: for every step there are clients on which it diverges.

    On :math:`\frac{a+b}2x^2` and :math:`\frac{a-b}2x^2` a round of Q steps multiplies the model by the mean of the
    clients' factors, :math:`\frac12(1 - s(a+b))^Q + \frac12(1 - s(a-b))^Q`. For :math:`Q = 2` that is :math:`(1 - sa)^2
    + (sb)^2`, above 1 for :math:`s > 2a/(a^2+b^2)`, although :math:`E = \frac a2x^2` is as harmless for every b. For
    :math:`a = 0` it is :math:`\sum_{k\text{ even}} \binom Qk (sb)^k > 1` for every :math:`Q \ge 2` and :math:`s > 0`:
    the instance of the paper has a = 0, b = 2, and E is zero there. With a > 0 the same divergence happens to a
    strongly convex E.

    Follow the model by its factor.
    """
    s, Q = run.algorithm.solver.step, run.algorithm.stop.steps
    a = float(np.mean(run.curvatures))
    b = float(run.curvatures[0]) - a
    rate = factor(s, Q, a, b)
    return follow(run, repeat(np.array([1.0, -rate])), rate)


def factor(s: float, Q: int, a: float, b: float) -> float:
    """Return what a round multiplies the model by."""
    return 0.5 * (1.0 - s * (a + b)) ** Q + 0.5 * (1.0 - s * (a - b)) ** Q


def longest_step(a: float, b: float) -> float:
    """Return the step up to which two steps contract; zero, for any number of steps, if a is zero."""
    return 2.0 * a / (a * a + b * b)


def constant_step(a: float, b: float, s: float, Q: int = 2) -> Case:
    """Return FedAvg with Q steps on the two clients."""
    return on_quadratics(
        f"a = {a:g}, b = {b:g}, s = {s:.4g}, Q = {Q}",
        FedAvg(solver=Gradient(step=s), stop=Steps(steps=Q)),
        scalars([a + b, a - b]),
        converges=s < longest_step(a, b),
        limit=0.0,  # for a = 0 every model is a solution
    )


def fedavg_vanishing_step_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Yield steps on both sides of 1/sqrt(r) and on it; more local steps; and a single one: nothing moves."""
    rounds = 100 if quick else 500
    for first, power in ((0.5, 0.5), (0.5, 1.0), (0.3, 0.3), (0.2, 0.6)):
        yield ExpectedVerdict(vanishing_step(first, power, 2, rounds))
    for first, Q in ((0.05, 5), (0.5, 1)):
        yield ExpectedVerdict(vanishing_step(first, 0.5, Q, rounds // 5))


@claim(
    source="Zhang et al., first version, Claim D.2",
    statement=r"FedAvg with $Q$ gradient steps of length $s_r$ in round r on $x^2$ and $-x^2$: $1 + S_n \le x_n/x_0 \le"
    r" e^{S_n}$, $S_n = 2Q(Q-1)\sum_{r<n}s_r^2$, so that the model stays bounded if and only if $\sum s_r^2 < \infty$."
    r" For $Q = 2$: $x_n = (n+1)x_0$ with $s_r = 1/(2\sqrt{r+1})$, and $x_n \to \frac{\sinh 2\pi s_0}{2\pi s_0}x_0$"
    r" with $s_r = s_0/(r+1)$.",
    assumptions=lambda case: [] if abs(case.objective.A.sum()) == 0 else ["E = 0"],
    rtol=ROUNDING,
    cases=fedavg_vanishing_step_cases,
)
def fedavg_vanishing_step(case: LocalSteps) -> Iterator[Inequality]:
    r"""FedAvg with vanishing steps: convergence exactly if their squares have a finite sum.

    The proof of Claim D.2 lets the steps vanish, finds an eigenvalue above 1 in every round and concludes that the
    model diverges. Factors above 1 are not enough for that; their product must be infinite. On :math:`f_1 = x^2, f_2 =
    -x^2`, with :math:`\frac12(1+2s)^Q + \frac12(1-2s)^Q = \sum_k \binom Q{2k}(2s)^{2k}` and :math:`\binom Q{2k} \le
    \binom Q2^k/k!`,

    .. math:: 1 + S_n \le \frac{x_n}{x_0} \le \exp S_n, \qquad S_n = 2Q(Q-1) \sum_{r<n} s_r^2,

    so that :math:`s_r \propto r^{-1/2}` diverges and :math:`s_r \propto 1/r` does not. Here E is zero, and every model
    is a minimiser: to converge means that the model comes to rest, and to diverge that it does not stay bounded.
    Without local steps (Q = 1) it would not move at all. For two steps and :math:`s_r = s_0(r+1)^{-p}` the products are
    known:

    .. math:: \prod_{r=1}^{n} \Bigl(1 + \frac{(2s_0)^2}{r}\Bigr) = \frac{\Gamma(n + 1 + 4s_0^2)}
              {\Gamma(n+1)\,\Gamma(1 + 4s_0^2)}, \qquad
              \prod_{r=1}^\infty \Bigl(1 + \frac{(2s_0)^2}{r^2}\Bigr) = \frac{\sinh 2\pi s_0}{2\pi s_0};

    the first is n + 1 for :math:`s_0 = 1/2`, and a finite product of the second kind misses at most the factor
    :math:`\exp((2s_0)^2/n)`.

    Compare how far the model has gone with both bounds, and with the products that are known.
    """
    Q, S = case.steps, 0.0
    for n, step, means in case.run():
        S += excess(step, Q)
        gone = float(means[-1][0])
        yield Inequality(n, 1.0 + S, gone, "model from below")
        yield Inequality(n, gone, math.exp(S), "model")
        if Q == 2 and case.schedule.power in (0.5, 1.0):
            least, most = product(case.schedule, n + 1)
            yield Inequality(n, least, gone, "model and the known product from below")
            yield Inequality(n, gone, most, "model and the known product")


def excess(s: float, Q: int) -> float:
    """Return by how much the factor of Q steps of length s exceeds 1, to second order in s: never by less."""
    return 2.0 * Q * (Q - 1) * s**2


def product(steps: Any, n: int) -> tuple[float, float]:
    """Return between what numbers the product of n factors of two steps lies, for the powers 1/2 and 1."""
    square = (2.0 * steps.first) ** 2
    if steps.power == 0.5:
        exact = math.exp(math.lgamma(n + 1 + square) - math.lgamma(n + 1) - math.lgamma(1.0 + square))
        return exact, exact
    infinite = math.sinh(2.0 * math.pi * steps.first) / (2.0 * math.pi * steps.first)
    return infinite * math.exp(-square / n), infinite


def vanishing_step(first: float, power: float, Q: int, rounds: int) -> LocalSteps:
    """Return FedAvg with Q steps of length ``first/(r+1)^power`` on the two clients, from 1."""
    return LocalSteps(
        name=f"s = {first:.3g}/(r+1)^{power:g}, Q = {Q}: {'stays bounded' if power > 0.5 or Q == 1 else 'diverges'}",
        objective=scalars([2.0, -2.0]),
        schedule=Vanishing(first, power),
        steps=Q,
        rounds=rounds,
        G=math.inf,
        start=np.ones(1),
    )


def follow_weighted(run: Case, weights: Array, bias: float | None = None) -> Iterator[Inequality]:
    """Follow the model to the mean of the minima with these weights, at ``bias``, if given, from the solution."""
    if bias is not None:
        measured = weighted(weights, minima(run)) - run.solution
        yield Inequality(0, deviation(measured, bias, scale=1.0), ROUNDING, "bias")
    factor = 1.0 - float(np.mean(weights))
    yield from follow(run, repeat(np.array([1.0, -factor])), abs(factor))


def weighted(weights: Array, values: Array) -> float:
    """Return the mean with these weights.

    Examples
    --------
    >>> weighted(np.array([1.0, 3.0]), np.array([0.0, 1.0]))
    0.75
    """
    return float(weights @ values / np.sum(weights))


def minima(run: Case) -> Array:
    """Return the minimum of each client."""
    return run.objective.b[:, 0] / run.curvatures


def fedavg_biased_point_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """One step, two, and more; equal curvatures; steps that are too long."""
    for s, K in ((0.3, 1), (0.3, 2), (0.03, 2), (0.3, 5), (0.3, 120), (0.5, 2)):
        yield ExpectedVerdict(local_steps(s, K))
    yield ExpectedVerdict(local_steps(0.3, 2, (2.0, 2.0)))
    yield ExpectedVerdict(local_steps(0.7, 2), "outside assumptions")


@claim(
    source="FedAvg (McMahan et al. 2017), derived",
    statement=r"FedAvg with $K$ gradient steps of length $s < 2/L$ on $\frac{a_1}2(x - m_1)^2$ and"
    r" $\frac{a_2}2(x - m_2)^2$ converges to $\theta_\infty = \frac{w_1m_1 + w_2m_2}{w_1 + w_2}$, $w_j = 1 -"
    r" (1 - sa_j)^K$, by the factor $1 - \frac{w_1 + w_2}2$ per round. $\frac{\theta_\infty - \theta^*}{m_2 - m_1}$ is"
    r" 0 for $K = 1$, $\frac{s\,a_1a_2(a_1 - a_2)}{(a_1 + a_2)(2(a_1 + a_2) - s(a_1^2 + a_2^2))}$ for $K = 2$, and"
    r" tends to $\frac{a_1 - a_2}{2(a_1 + a_2)}$ for $K \to \infty$: zero for equal curvatures only.",
    assumptions=lambda run: [] if remaining(run.curvatures, run.algorithm.solver.step) < 1 else ["s < 2/L"],
    cases=fedavg_biased_point_cases,
)
def fedavg_biased_point(run: Case) -> Iterator[Inequality]:
    r"""FedAvg with more than one local step ends at a wrong point: two clients of one variable.

    K steps of length s bring a client a fraction :math:`w_j = 1 - (1 - sa_j)^K` of the way to its minimum. With K = 1
    that is :math:`sa_j`, and the limit is the solution. With K = 2, :math:`w_j = sa_j(2 - sa_j)`, it is not, and
    shorter steps make the bias smaller, of the order of s. For :math:`K \to \infty` every weight becomes 1, and
    curvatures do not count any more: the limit is the plain mean of the minima.

    Follow the model to the point with the bias of K steps.
    """
    s, K = run.algorithm.solver.step, run.algorithm.stop.steps
    return follow_weighted(run, weights_of_fedavg(run.curvatures, s, K), bias_of_fedavg(run, s, K))


def weights_of_fedavg(a: Array, s: float, K: int) -> Array:
    """Return the fraction of the way to its minimum that each client goes."""
    return 1.0 - (1.0 - s * a) ** K


def bias_of_fedavg(run: Case, s: float, K: int) -> float | None:
    """Return the bias where it is simple: of one step, of two, and of so many that only rounding is left."""
    (a1, a2), (m1, m2) = run.curvatures, minima(run)
    if K == 1:
        return 0.0
    if K == 2:
        return (m2 - m1) * s * a1 * a2 * (a1 - a2) / ((a1 + a2) * (2.0 * (a1 + a2) - s * (a1**2 + a2**2)))
    return (m2 - m1) * 0.5 * (a1 - a2) / (a1 + a2) if remaining(run.curvatures, s) ** K < 1e-12 else None


def remaining(a: Array, s: float) -> float:
    """Return the largest fraction of its way that a client has still to go after a step."""
    return float(np.max(np.abs(1.0 - s * a)))


def local_steps(s: float, K: int, curvatures: tuple[float, float] = (1.0, 3.0)) -> Case:
    """Return FedAvg with K steps on two clients whose minima are 0 and 1."""
    listed = ", ".join(f"{a:g}" for a in curvatures)
    return on_quadratics(
        f"curvatures {listed}, s = {s:g}, K = {K}",
        FedAvg(solver=Gradient(step=s), stop=Steps(steps=K)),
        scalars(curvatures, [0.0, 1.0]),
        limit=weighted(weights_of_fedavg(np.array(curvatures), s, K), np.array([0.0, 1.0])),
        theta0=-1.0,
    )


def fedprox_biased_point_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Weak and strong proximal terms, and equal curvatures."""
    for w in (0.1, 1.0, 10.0) if quick else (0.1, 1.0, 10.0, 100.0):
        yield ExpectedVerdict(proximal(w))
    yield ExpectedVerdict(proximal(10.0, (2.0, 2.0)))


@claim(
    source="FedProx (Li et al. 2020), derived",
    statement=r"FedProx with exact local solutions and the weight $w$ on $\frac{a_1}2(x - m_1)^2$ and"
    r" $\frac{a_2}2(x - m_2)^2$ converges to $\theta_\infty$ with $\frac{\theta_\infty - \theta^*}{m_2 - m_1} ="
    r" \frac{a_1a_2(a_1 - a_2)}{(a_1 + a_2)(2a_1a_2 + w(a_1 + a_2))}$, by the factor $1 - \frac12\sum_j"
    r" \frac{a_j}{a_j + w}$ per round. The bias is zero for equal curvatures only.",
    cases=fedprox_biased_point_cases,
)
def fedprox_biased_point(run: Case) -> Iterator[Inequality]:
    r"""FedProx ends at a wrong point: two clients of one variable.

    The proximal step of weight w brings a client a fraction :math:`w_j = a_j/(a_j + w)` of the way to its minimum. A
    stronger proximal term makes the bias smaller, of the order of 1/w, and the method slower by the same order: the
    factor of a round is :math:`1 - \frac12\sum_j a_j/(a_j + w)`. There is no weight with which the limit is the
    solution.

    Follow the model to the point with the bias of the weight.
    """
    w = run.algorithm.mu_prox
    return follow_weighted(run, weights_of_fedprox(run.curvatures, w), bias_of_fedprox(run, w))


def weights_of_fedprox(a: Array, w: float) -> Array:
    """Return the fraction of the way to its minimum that each client goes."""
    return a / (a + w)


def bias_of_fedprox(run: Case, w: float) -> float:
    """Return the difference of the limit from the solution."""
    (a1, a2), (m1, m2) = run.curvatures, minima(run)
    return (m2 - m1) * a1 * a2 * (a1 - a2) / ((a1 + a2) * (2.0 * a1 * a2 + w * (a1 + a2)))


def proximal(w: float, curvatures: tuple[float, float] = (1.0, 3.0)) -> Case:
    """Return FedProx with exact local solutions on two clients whose minima are 0 and 1."""
    listed = ", ".join(f"{a:g}" for a in curvatures)
    return on_quadratics(
        f"curvatures {listed}, w = {w:g}",
        FedProx(mu_prox=w, solver=Exact()),
        scalars(curvatures, [0.0, 1.0]),
        limit=weighted(weights_of_fedprox(np.array(curvatures), w), np.array([0.0, 1.0])),
        theta0=-1.0,
    )
