r"""FedPD, A-FedPD, FedADMM and Scaffnew with parameters beyond their theorems, on clients of one variable.

FedPD is A-FedPD if all clients take part. On :math:`\frac{a_j}2x^2` its dual is :math:`\lambda_j = -a_j\theta_j` after
a round. Let :math:`w_j = \theta - \lambda_j/\rho` and :math:`r_j = \frac{\rho - a_j}{\rho + a_j}`, the factor of a
reflection in the proximal map. A round is

.. math:: \theta^+ = \tfrac1N \textstyle\sum_i r_i w_i, \qquad w_j^+ = \theta^+ + \tfrac12(1 - r_j) w_j.

For two kinds of clients, in the fractions :math:`q_1 + q_2 = 1`, this is a matrix of trace
:math:`1 + \frac12(q_1 - q_2)(r_1 - r_2)` and determinant
:math:`\frac14(1-r_1)(1-r_2) + \frac12(1-r_1)q_2r_2 + \frac12(1-r_2)q_1r_1`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import repeat

import numpy as np

from dualopt.arrays.xp import Array
from dualopt.engine.rounds import Snapshot, State
from dualopt.lab.claims import Inequality, claim
from dualopt.methods import AFedPD, FedADMM, FedPD, Scaffnew
from dualopt.methods.participation import CommunicateWithProbability, Schedule
from dualopt.solvers import Exact, Gradient
from theory._cases import Case
from theory._claims import ROUNDING, ExpectedVerdict, deviation
from theory._rounds import histories
from theory.counterexamples._recursion import follow, on_quadratics, scalars
from theory.limits import afedpd_least_rho as least_rho
from theory.limits import fedadmm_drift as drift
from theory.limits import fedadmm_limit


def polynomial(rho: float, curvatures: tuple[float, float], fraction: float = 0.5) -> Array:
    """Return the characteristic polynomial for clients of two kinds, ``fraction`` of them of the first.

    Examples
    --------
    >>> polynomial(2.0, (2.0, 2.0)).tolist()
    [1.0, -1.0, 0.25]
    """
    r1, r2 = ((rho - a) / (rho + a) for a in curvatures)
    trace = 1.0 + 0.5 * (2.0 * fraction - 1.0) * (r1 - r2)
    mixed = 0.5 * (1.0 - r1) * (1.0 - fraction) * r2 + 0.5 * (1.0 - r2) * fraction * r1
    return np.array([1.0, -trace, 0.25 * (1.0 - r1) * (1.0 - r2) + mixed])


def fedpd_large_eta_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Both sides of the largest eta, and the range of Theorem 1; local problems that are not convex."""
    for multiple in (0.97, 1.03) if quick else (0.99, 1.01):
        for N in (3, 5, 20):
            yield ExpectedVerdict(one_concave(multiple * largest_eta(N), N))
    yield ExpectedVerdict(one_concave(0.3))
    yield ExpectedVerdict(one_concave(0.95))
    yield ExpectedVerdict(one_concave(1.1), "outside assumptions")


@claim(
    source="Zhang et al., Theorem 1: what large eta does",
    statement=r"FedPD with exact local solutions, communication in every round, on $N - 1$ clients"
    r" $\frac{x^2}{N - 1}$ and one $-\frac{x^2}2$, $N \ge 3$, $\eta < 1 = 1/L$: it converges if and only if $\eta <"
    r" \eta_N$, $2N = (4N - 5 - \frac8{N - 1})\eta_N + \frac{4N}{N - 1}\eta_N^2$. $\eta_3 = \frac{\sqrt{17} - 1}4$, and"
    r" $\eta_N$ decreases to $\frac12$.",
    assumptions=lambda run: [] if run.algorithm.eta < 1 else ["eta < 1/L"],
    cases=fedpd_large_eta_cases,
)
def fedpd_large_eta(run: Case) -> Iterator[Inequality]:
    r"""FedPD with large eta: one concave client among convex ones, whose local problem is still strongly convex.

    Take N - 1 clients of curvature :math:`\frac2{N-1}` and one of curvature -1: E is :math:`\frac1{2N}x^2`, L is 1, and
    all local problems are strongly convex for :math:`\eta < 1`. For clients of any curvatures :math:`a_j` a round of
    FedPD has the characteristic root -1 if

    .. math:: \sum_j \frac{2 + \eta a_j}{1 + 2\eta a_j} = 0,

    which needs :math:`\eta > 1/(2L)`. Here it is the first root to leave the unit circle; in :math:`\rho = 1/\eta` the
    equation is :math:`2N\rho^2 - (4N - 5 - \frac8{N-1})\rho - \frac{4N}{N-1} = 0`. Three clients, :math:`\frac12x^2`
    twice and :math:`-\frac12x^2`, converge up to :math:`\eta = (\sqrt{17} - 1)/4 = 0.781`, where Theorem 1 asks for
    :math:`\eta < (\sqrt5 - 1)/4 = 0.309`; for many clients the limit tends to 1/2.

    Compare the largest eta with the equation that it solves, and follow the model.
    """
    N, eta, end = run.objective.n_clients, run.algorithm.eta, largest_eta(run.objective.n_clients)
    terms = (2.0 + end * run.curvatures) / (1.0 + 2.0 * end * run.curvatures)
    up, down = float(np.sum(terms[terms > 0])), float(np.sum(terms[terms < 0]))
    size = float(np.max(np.abs(terms)))
    yield Inequality(0, deviation(up, -down, scale=size), ROUNDING, "equation of the root -1")
    recursion = polynomial(1.0 / eta, (2.0 / (N - 1), -1.0), 1.0 - 1.0 / N)
    factor = float(np.max(np.abs(np.roots(recursion))))
    # the first model is not yet what a round makes of the duals
    yield from follow(run, repeat(recursion), factor, first=1)


def largest_eta(N: int) -> float:
    """Return the eta up to which the method converges."""
    linear, constant = 4.0 * N - 5.0 - 8.0 / (N - 1), 4.0 * N / (N - 1)
    return 4.0 * N / (linear + math.sqrt(linear**2 + 8.0 * N * constant))


def one_concave(eta: float, N: int = 3) -> Case:
    """Return FedPD with exact local solutions on the N clients."""
    return on_quadratics(
        f"N = {N}, eta = {eta:.4g}",
        FedPD(eta=eta, solver=Exact()),
        scalars([2.0 / (N - 1)] * (N - 1) + [-1.0]),
        converges=eta < largest_eta(N),
    )


def opposite_curvatures(run: Case) -> list[str]:
    """Return what fails: E is convex, one client is not, and the local problems are strongly convex."""
    a1, a2 = run.curvatures
    signs = [] if a1 + a2 > 0 > a2 else ["a_1 > -a_2 > 0"]
    return signs + ([] if run.algorithm.rho > -a2 else ["rho > -a_2"])


def afedpd_small_rho_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Both sides of the least rho for two pairs of clients; a rho with which a local problem has no solution."""
    for multiple in (0.97, 1.03, 4.0) if quick else (0.8, 0.99, 1.01, 4.0):
        yield ExpectedVerdict(opposed(multiple * least_rho(3.0, -1.0)))
    for multiple in (0.97, 1.03):
        yield ExpectedVerdict(opposed(multiple * least_rho(1.5, -1.0), (1.5, -1.0)))
    yield ExpectedVerdict(opposed(0.9), "outside assumptions")


@claim(
    source="Sun, Shen and Tao, Theorem 1: what small rho does",
    statement=r"A-FedPD with exact local solutions and all clients active on $\frac{a_1}2x^2$ and $\frac{a_2}2x^2$,"
    r" $a_1 > -a_2 > 0$, $\rho > -a_2$: the model obeys a recursion of the roots $\frac12(1 \pm \sqrt{r_1r_2})$, $r_j ="
    r" \frac{\rho - a_j}{\rho + a_j}$, and converges if and only if $\rho^2 + \frac{a_1 + a_2}2\rho + a_1a_2 > 0$. For"
    r" $\frac32x^2$ and $-\frac12x^2$: $\rho > \frac{\sqrt{13} - 1}2$.",
    assumptions=opposite_curvatures,
    cases=afedpd_small_rho_cases,
)
def afedpd_small_rho(run: Case) -> Iterator[Inequality]:
    r"""A-FedPD with small rho: two clients of opposite curvature, all of them active.

    With two clients the trace of a round is 1, and the determinant is :math:`\frac14(1 - r_1r_2)`:
    the characteristic roots are :math:`\frac12(1 \pm \sqrt{r_1r_2})`. Real ones stay below 1, as :math:`r_1r_2 < 1` for
    :math:`a_1 + a_2 > 0`. Complex ones have the modulus :math:`\frac12\sqrt{1 - r_1r_2}`, so the method converges if
    and only if :math:`r_1r_2 > -3`, which is :math:`\rho^2 + \frac{a_1 + a_2}2\rho + a_1a_2 > 0`. For
    :math:`\frac32x^2` and :math:`-\frac12x^2` that means :math:`\rho > \frac{\sqrt{13} - 1}2 = 1.303`; the local
    problems have solutions for all :math:`\rho > 1`.

    Follow the model by the roots of two clients.
    """
    a1, a2 = (float(a) for a in run.curvatures)
    rho = run.algorithm.rho
    rooted = np.emath.sqrt((rho - a1) / (rho + a1) * (rho - a2) / (rho + a2))
    roots = 0.5 * np.array([1.0 + rooted, 1.0 - rooted])
    # the first model is not yet what a round makes of the duals
    return follow(run, repeat(np.real(np.poly(roots))), float(np.max(np.abs(roots))), first=1)


def opposed(rho: float, curvatures: tuple[float, float] = (3.0, -1.0)) -> Case:
    """Return A-FedPD with exact local solutions on two clients."""
    return on_quadratics(
        f"curvatures {curvatures[0]:g}, {curvatures[1]:g}, rho = {rho:.4g}",
        AFedPD(rho=rho, solver=Exact()),
        scalars(curvatures),
        converges=rho > least_rho(*curvatures),
    )


def fedadmm_two_clients_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Both regimes of a server step of 1, close to their border and far from it; other steps; and the right one."""
    for rho in (0.5, 1.94, 2.06, 20.0) if quick else (0.5, 1.5, 1.96, 2.04, 20.0):
        yield ExpectedVerdict(in_turn(rho, 1.0))
    for rho in (2.7, 3.3):  # c = rho/3
        yield ExpectedVerdict(in_turn(rho, 0.75))
    yield ExpectedVerdict(in_turn(5.0, 0.25))
    for rho in (0.5, 20.0):
        yield ExpectedVerdict(in_turn(rho, 0.5))


@claim(
    source="Sun, Shen and Tao, Section 3.2 (dual drift), derived",
    statement=r"FedADMM from zero duals on $\frac a2(x - m_1)^2$ and $\frac a2(x - m_2)^2$, which are active in turn,"
    r" with $\eta_s \le 1$ and $c = \rho(1 - \frac1{2\eta_s})$: for $c < a$ the model converges to $\frac{a\theta^* -"
    r" c\theta^0}{a - c}$, the solution for $\eta_s = \frac12 = P/N$ only; for $c > a$ it diverges. With $\eta_s = 1$"
    r" these are $\rho < 2a$ and $\rho > 2a$. The factor of a round is the larger root of $x^2 - kx - (\frac a{a +"
    r" \rho} + k)$, $k = \eta_s\frac{\rho - a}{\rho + a}$.",
    assumptions=lambda run: [] if run.algorithm.server_step <= 1 else ["eta_s <= 1"],
    cases=fedadmm_two_clients_cases,
)
def fedadmm_two_clients(run: Case) -> Iterator[Inequality]:
    r"""FedADMM with a server step of 1: two clients that take turns, and the two regimes of dual drift.

    Clients :math:`\frac a2(x - m_j)^2`. A client that has been active has :math:`\lambda_j = -a(\theta_j - m_j)`, so
    with :math:`\alpha = \frac\rho{a+\rho}` its next solution is :math:`\theta_j^+ = (1 - \alpha)\theta_j +
    \alpha\theta`, and :math:`\Delta_j = (1 - \frac a\rho)(\theta_j^+ - \theta_j)`. Let u and v be the distances from
    the model of the client whose turn it is, and of the other one. With :math:`k = \eta_s\frac{\rho-a}{\rho+a}` a round
    makes of them

    .. math:: (u, v) \mapsto (v + ku,\; (1 - \alpha + k)u), \qquad x^2 - kx - (1 - \alpha + k) = 0.

    For :math:`\eta_s \le 1` both roots are real and above -1, and the larger one is below 1 as long as :math:`2k <
    \alpha`. The fixed point solves :math:`\nabla E(\theta) = c(\theta - \theta^0)`, :math:`c = \rho(1 -
    \frac1{2\eta_s})` (``fedadmm_dual_drift``), and :math:`2k < \alpha` is the same as :math:`c < a`: the method
    minimises :math:`E - \frac c2|\cdot - \theta^0|^2`, as long as that has a minimum.

    Follow the model to the minimum of E - c|. - theta0|^2/2, or away from its stationary point.
    """
    a, rho, server_step = float(run.curvatures[0]), run.algorithm.rho, run.algorithm.server_step
    k = server_step * (rho - a) / (rho + a)
    roots = np.roots([1.0, -k, -(1.0 - rho / (a + rho) + k)])
    # both clients have been active after two rounds
    return follow(run, repeat(np.poly(roots)), float(np.max(np.abs(roots))), first=2)


def in_turn(rho: float, server_step: float) -> Case:
    """Return FedADMM on x^2/2 and (x - 2)^2/2, from 0; the solution is 1."""
    c = drift(rho, server_step)
    return on_quadratics(
        f"rho = {rho:g}, server step {server_step:g}",
        FedADMM(rho=rho, server_step=server_step, solver=Exact()),
        scalars([1.0, 1.0], [0.0, 2.0]),
        converges=c < 1.0,
        limit=fedadmm_limit(c),
        theta0=0.0,
        participation=Schedule(clients=((0,), (1,))),
    )


def scaffnew_long_step_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Both sides of the longest step, rare and frequent communication."""
    for times in (0.5, 1.97, 2.03, 3.0) if quick else (0.5, 1.98, 2.02, 3.0):
        for p in (0.1, 0.6):
            yield ExpectedVerdict(steps_of(times, p))


@claim(
    source="Mishchenko et al. 2022 (recalled): what long steps do",
    statement=r"Scaffnew on $\frac L2(x - m_j)^2$: the mean of the clients' models satisfies $\bar x^n - \theta^* ="
    r" (1 - sL)^n(\theta^0 - \theta^*)$ for every probability and every outcome of the coins; it converges if and only"
    r" if $s < 2/L$.",
    assumptions=lambda run: [] if np.ptp(run.curvatures) == 0 else ["equal curvatures"],
    cases=scaffnew_long_step_cases,
)
def scaffnew_long_step(run: Case) -> Iterator[Inequality]:
    r"""Scaffnew beyond the step 2/L: clients of equal curvature, whatever the sequence of communications.

    On :math:`\frac L2(x - m_j)^2` the mean of the clients' models moves as in gradient descent: the controls have sum
    zero, and averaging does not change it. So its distance from the solution is multiplied by :math:`1 - sL` in every
    round, with any probability and any sequence of communications; the method diverges for :math:`s > 2/L`. Up to 2/L
    all states converge in mean square (``scaffnew_one_step``).

    Compare the mean model with its closed form for all histories of five rounds, and follow it along a long one.
    """
    rate, rounds = factor(run.algorithm.solver.step, float(run.curvatures[0])), 5
    (start,) = run.first().server.theta
    expected = run.solution + rate**rounds * (start - run.solution)
    *_, last = histories(run.but(rounds=rounds))
    for branch in last.found:
        yield Inequality(rounds, deviation(mean_model(branch.state), expected), ROUNDING, "mean model")
    yield from follow(run, repeat(np.array([1.0, -rate])), abs(rate))


def factor(s: float, L: float) -> float:
    """Return what a round multiplies the distance from the solution by."""
    return 1.0 - s * L


def longest_step(L: float) -> float:
    """Return the step up to which the method converges."""
    return 2.0 / L


def mean_model(state: State | Snapshot) -> float:
    """Return the mean of the clients' models."""
    return float(np.mean(state.clients.theta))


def steps_of(times: float, p: float, L: float = 4.0) -> Case:
    """Return Scaffnew with a step of ``times/L`` on three clients."""
    return on_quadratics(
        f"s = {times:g}/L, p = {p:g}",
        Scaffnew(probability=p, solver=Gradient(step=times / L)),
        scalars([L] * 3, [-1.0, 0.0, 4.0]),
        converges=times / L < longest_step(L),
        theta0=-2.0,
        participation=CommunicateWithProbability(probability=p),
        read=mean_model,
    )
