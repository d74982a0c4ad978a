r"""Local steps that suffice: Theorems 3.4 and 3.5 of the DualFL paper (Section 3.3).

The paper puts the accuracies (3.7) and (3.8) into the orders of optimal first-order methods. Here the methods are the
averaged subgradient method and Nesterov's method with constant momentum, whose constants are known. Steps are counted
on the local problems (3.1) of a run with exact local solutions; in terms of the accuracy :math:`\epsilon_\text{out}`
of the model, with smoothness, on a run in which Nesterov's method is the local solver.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from dualopt.arrays.xp import Array
from dualopt.engine.rounds import Snapshot
from dualopt.lab.claims import Inequality, claim
from dualopt.methods import CorrectedDualFL
from dualopt.methods.participation import Round
from dualopt.objectives import LocalProblem
from dualopt.objectives.local_problem import client_dot, per_client
from dualopt.solvers import LocalSolution
from dualopt.solvers._loop import solution
from dualopt.solvers.stopping import Gap, LinearSchedule, Stop, SublinearSchedule
from theory._cases import Case
from theory._claims import ExpectedVerdict
from theory._problems import (
    absolute_deviation,
    breast_cancer,
    hard_quadratic,
    hinge,
    logistic,
    lopsided,
    quadratic,
)
from theory.dualfl._runs import dual_optimum, exact, initial_bound, linear_regime, sublinear_regime

GAMMA = 0.1  # of Theorem 3.5
SCALE = 0.05  # of (3.7) in Theorem 3.4; the printed one is so loose on these instances that most clients need no step
LIMIT = 30_000  # subgradient steps


class Posed(NamedTuple):
    """The local problems of a round."""

    snapshot: Snapshot  # after the round: clients.theta are the solutions
    problem: LocalProblem  # (3.1)
    start: Array  # where the clients were before


def local_problems(case: Case) -> Iterator[Posed]:
    """Yield the local problems of all rounds."""
    zeta = start = np.zeros_like(case.subgradients)
    for s in case.snapshots():
        yield Posed(s, LocalProblem(objective=case.objective, linear=-case.algorithm.nu * zeta), start)
        zeta, start = s.clients.zeta, s.clients.theta


# Without smoothness.


class Subgradient(NamedTuple):
    """Steps of the subgradient method and the largest norm of a subgradient on its way, for each client.

    Infinite steps are more than the limit.
    """

    steps: Array
    largest: Array


def averaged_subgradient_steps(problem: LocalProblem, start: Array, best: Array, tol: float, limit: int) -> Subgradient:
    r"""Count steps until :math:`F_j(\bar\theta_j) - \min F_j \le \text{tol}`; infinite beyond the limit.

    The method is :math:`\theta^{k+1} = \theta^k - \frac{2}{\mu(k+1)} s^k` with the average
    :math:`\bar\theta^k = \frac{2}{k(k+1)}\sum_{i\le k} i\,\theta^i`, for which
    :math:`F(\bar\theta^k) - \min F \le \frac{2 G^2}{\mu(k+1)}` when :math:`|s^i| \le G` (Lacoste-Julien, Schmidt and
    Bach 2012): the order :math:`1/\varepsilon` that is optimal for nonsmooth strongly convex functions. The average of
    ``k`` points takes ``k - 1`` steps.

    Parameters
    ----------
    problem : LocalProblem
        The ``F_j``.
    start : array, shape (N, *shape)
        First points.
    best : array, shape (N,)
        ``min F_j``.
    tol : float
        Accuracy.
    limit : int
        Largest number of steps.
    """
    theta, average = start, np.zeros_like(start)
    counts, largest = np.full(problem.n_clients, np.inf), np.zeros(problem.n_clients)
    for k in range(1, limit + 2):
        slope = problem.gradient(theta)
        largest = np.maximum(largest, np.sqrt(client_dot(slope, slope)))
        average = average + 2.0 / (k + 1.0) * (theta - average)
        done = (problem.value(average) - best <= tol) & np.isinf(counts)
        counts = np.where(done, k - 1.0, counts)
        if np.isfinite(counts).all():
            break
        theta = theta - per_client(decreasing_step(problem.mu, k), theta) * slope
    return Subgradient(counts, largest)


def decreasing_step(mu: Array, k: int) -> Array:
    r"""Return :math:`\frac{2}{\mu(k+1)}`."""
    return 2.0 / (mu * (k + 1.0))


def theorem_3_4_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Two nonsmooth losses, with a ridge that makes the counts affordable."""
    for instance in (hinge(mu=0.3), absolute_deviation(mu=0.5)):
        yield ExpectedVerdict(instance.case(exact(instance, rho=0.0), 3 if quick else 5))


@claim(
    source="Park and Xu, Theorem 3.4; Lacoste-Julien, Schmidt and Bach 2012",
    statement=r"The averaged subgradient method with steps $\frac{2}{\mu(k+1)}$ and subgradients of norm at most $G$"
    r" reaches the local energy error $\frac{s}{N\nu(n+1)^{4+\gamma}}$ of round $n$, (3.7) for s = 1, within"
    r" $M_n \le \frac{2G^2}{\mu s}\,N\nu(n+1)^{4+\gamma}$ steps (checked for s = 0.05, gamma = 0.1). After exact"
    r" rounds $|\theta^n-\theta^*|^2 \le \epsilon_{out}$ for all $n \ge x - 1$, $x^2 ="
    r" \frac{4|\xi^*|^2}{N\nu^2\epsilon_{out}}$, so that until then $M_n \le \frac{2G^2N\nu}{\mu s}"
    r" \bigl(\frac{4|\xi^*|^2}{N\nu^2\epsilon_{out}}\bigr)^{2+\gamma/2}$.",
    assumptions=sublinear_regime,
    cases=theorem_3_4_cases,
)
def theorem_3_4(case: Case) -> Iterator[Inequality]:
    r"""Theorem 3.4: how many subgradient steps a client needs without smoothness.

    By Theorem 3.2 the accuracy :math:`\epsilon_\text{out}` is reached once :math:`n + 1 \ge x`. A round before that has
    an index n with :math:`n + 1 < x`, which bounds :math:`(n+1)^{4+\gamma}` by :math:`x^{4+\gamma}`. The subgradient
    method has no dual point, so that the rounds of its own run would have no gap (3.6): they are exact.

    Count the steps on every local problem, from where the client was. Then, for accuracies that Theorem 3.2 promises
    after 1, 2, ... rounds, compare the distances from there on, and the largest number of steps before.
    """
    nu, mu = case.algorithm.nu, case.objective.mu
    admitted = SublinearSchedule(nu=nu, scale=SCALE)
    distances, steps = [], []  # the latter in units of 2 G^2 N nu/(mu s)
    for s, problem, start in local_problems(case):
        tol = admitted(s.round)
        counts, largest = averaged_subgradient_steps(problem, start, problem.value(s.clients.theta), tol, LIMIT)
        counts = np.minimum(counts, LIMIT + 1.0)  # so many at least: a bound beyond the limit is not refuted by it
        for count, bound in zip(counts, 2.0 * largest**2 / (mu * tol), strict=True):
            yield Inequality(s.round.n, float(count), float(bound), "M_n")
        distances.append(case.distance(s.server.theta))
        unit = 2.0 * largest**2 * case.n_clients * nu / (mu * SCALE)
        steps.append(float(np.max(counts / np.where(unit > 0, unit, 1.0))))
    for x, most in enumerate(accumulate(steps, max), start=2):
        target = 8.0 * initial_bound(case) / (case.n_clients * nu * x**2)
        yield Inequality(x - 1, max(distances[x - 2 :]), target, "|theta^n - theta*|^2 and eps_out")
        power = (8.0 * initial_bound(case) / (case.n_clients * nu * target)) ** (2.0 + 0.5 * admitted.gamma)
        yield Inequality(x - 1, most, power, "M_n until eps_out, in units of 2 G^2 N nu/(mu s)")


# With smoothness.


class Accelerated(NamedTuple):
    """Steps of the accelerated gradient method and where it ended, for each client."""

    steps: Array
    theta: Array


def accelerated_steps(problem: LocalProblem, start: Array, square: Array, limit: int) -> Accelerated:
    r"""Count steps until :math:`|\nabla F_j|^2 \le \text{square}_j`; infinite beyond the limit.

    The method is :math:`x^{k+1} = y^k - \frac1L\nabla F(y^k)`, :math:`y^{k+1} = x^{k+1} + \beta(x^{k+1} - x^k)` with
    constant momentum, for which :math:`F(x^k) - \min F \le (1-\sqrt{q})^k\,\frac{L+\mu}{2}|x^0 - x^*|^2` (Nesterov
    2004, Theorem 2.2.3).

    Parameters
    ----------
    problem : LocalProblem
        The ``F_j``.
    start : array, shape (N, *shape)
        First points.
    square : array, shape (N,)
        Accuracy.
    limit : int
        Largest number of steps.
    """
    beta = per_client(constant_momentum(problem.mu / problem.L), start)
    x = y = start
    counts, found = np.full(problem.n_clients, np.inf), start
    for k in range(limit + 1):
        gradient = problem.gradient(x)
        done = (client_dot(gradient, gradient) <= square) & np.isinf(counts)
        counts, found = np.where(done, float(k), counts), np.where(per_client(done, x), x, found)
        if np.isfinite(counts).all():
            break
        step = y - per_client(1.0 / problem.L, y) * problem.gradient(y)
        x, y = step, step + beta * (step - x)
    return Accelerated(counts, found)


def constant_momentum(q: Array) -> Array:
    r"""Return :math:`(1-\sqrt q)/(1+\sqrt q)`, the limit of Nesterov's momentum for :math:`q = \mu/L`."""
    return (1.0 - np.sqrt(q)) / (1.0 + np.sqrt(q))


def theorem_3_5_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Quadratics of increasing condition number, and data."""
    instances = [quadratic(), hard_quadratic(), lopsided(), logistic()]
    for instance in instances if quick else [*instances, breast_cancer()]:
        yield ExpectedVerdict(instance.case(exact(instance), 40))


@claim(
    source="Park and Xu, Theorem 3.5; Nesterov 2004, Theorem 2.2.3",
    statement=r"Nesterov's method with constant momentum from $\theta_j^n$ at squared distance $D^2$ from the local"
    r" solution reaches the accuracy (3.8) of round $n$, $|r_j|^2/(2\mu) \le \frac1N(\frac{1-\sqrt\rho}{1+\gamma})^n$,"
    r" within $M_n \le 1 + \sqrt\kappa\,\bigl(\log\frac{\kappa(L+\mu)D^2}{2} + \log(N(1+\gamma)^n)"
    r" - n\log(1-\sqrt\rho)\bigr)_+$ steps (gamma = 0.1).",
    assumptions=linear_regime,
    cases=theorem_3_5_cases,
)
def theorem_3_5(case: Case) -> Iterator[Inequality]:
    """Theorem 3.5: how many accelerated gradient steps a client needs with smoothness.

    Count the steps on every local problem, from where the client was.
    """
    rho, f = case.algorithm.rho, case.objective
    admitted = LinearSchedule(rho=rho, gamma=GAMMA)
    kappa = f.L / f.mu
    for s, problem, start in local_problems(case):
        n = s.round.n
        squared_distance = client_dot(s.clients.theta - start, s.clients.theta - start)
        accuracy = math.log(f.n_clients) + n * math.log((1.0 + GAMMA) / (1.0 - math.sqrt(rho)))
        first = np.log(np.maximum(0.5 * kappa * (f.L + f.mu) * squared_distance, 1e-300))
        bounds = 1.0 + np.sqrt(kappa) * np.maximum(first + accuracy, 0.0)
        square = 2.0 * f.mu * admitted(s.round)
        counts, _ = accelerated_steps(problem, start, square, limit=int(2.0 * np.max(bounds)))
        for count, bound in zip(counts, bounds, strict=True):
            yield Inequality(n, float(count), float(bound), "M_n")


# With smoothness, and Nesterov's method as the local solver.


@dataclass(frozen=True, kw_only=True)
class ConstantMomentum:
    r"""Nesterov's method with constant momentum, stopped when :math:`|r_j|^2/(2\nu)` is at most a schedule.

    It looks at nothing but the schedule of its stopping rule, a :class:`dualopt.solvers.stopping.Gap`.
    """

    nu: float

    def initial_state(self, objective: Any) -> Any:
        """Return ``()``."""
        return ()

    def __call__(
        self, problem: LocalProblem, start: Array, stop: Stop, solver_state: Any = (), round: Round | None = None
    ) -> LocalSolution:
        """Take as many steps as are needed from ``start``."""
        assert isinstance(stop, Gap)
        assert round is not None
        assert stop.schedule is not None
        square = np.full(problem.n_clients, 2.0 * self.nu * stop.schedule(round))
        steps, theta = accelerated_steps(problem, start, square, LIMIT)
        status = tuple("converged" if finite else "max_iter" for finite in np.isfinite(steps))
        return solution(problem, theta, problem.evaluate(theta), gradients=steps, status=status)


def with_constant_momentum(instance: Case, *, share: float = 1.0, scale: float) -> CorrectedDualFL:
    """Return the dual-corrected DualFL with this solver and the schedule (3.8); ``rho`` is ``share nu/L``."""
    nu = instance.mu
    rho = share * nu / instance.L
    stop = Gap(schedule=LinearSchedule(rho=rho, gamma=GAMMA, scale=scale))
    return CorrectedDualFL(rho=rho, nu=nu, solver=ConstantMomentum(nu=nu), stop=stop)


def admitted_size(case: Case, *, gamma: float, scale: float) -> float:
    r"""Return B: what stands in the place of :math:`|\xi^*|` in Theorem 3.3 if all errors are as large as is admitted.

    The errors of round i add up to :math:`\varepsilon_i \le s(\frac{1-\sqrt\rho}{1+\gamma})^{i-1}`. From the product
    in :func:`theory.dualfl.inexact_solutions.envelope`, :math:`R_i = t_{i-1}^{-2}\prod_{k<i}(1-\rho t_k) \ge
    \rho(1-\sqrt\rho)^{i-1}`, because :math:`t_k \le 1/\sqrt\rho`. So :math:`\varepsilon_i/R_i \le
    \frac s\rho(1+\gamma)^{1-i}`, and its sums are geometric:

    .. math:: B = a + \sqrt{|\xi^*|^2 + 2\nu e + a^2}, \qquad
              a = \frac{\sqrt{2\nu s/\rho}}{1 - (1+\gamma)^{-1/2}}, \quad e = \frac s\rho\,\frac{1+\gamma}\gamma.

    It grows like :math:`1/\gamma` as :math:`\gamma \to 0`.
    """
    rho, nu = case.algorithm.rho, case.algorithm.nu
    a = math.sqrt(2.0 * nu * scale / rho) / (1.0 - 1.0 / math.sqrt(1.0 + gamma))
    e = scale / rho * (1.0 + gamma) / gamma
    return a + math.sqrt(float(np.sum(dual_optimum(case) ** 2)) + 2.0 * nu * e + a * a)


def theorem_3_5_target_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Quadratics, unequal clients among them, and data; a smaller rho; rho = 0, for which there is no linear rate."""
    for instance, scale in [(quadratic(), 1.0), (hard_quadratic(L=300.0), 1.0), (lopsided(), 1.0), (logistic(), 1e-3)]:
        rounds = 40 if quick else 120
        yield ExpectedVerdict(instance.case(with_constant_momentum(instance, scale=scale), rounds))
    small = with_constant_momentum(lopsided(), share=0.3, scale=1.0)
    yield ExpectedVerdict(lopsided().case(small, 40, "rho = 0.3 nu/L"))
    none = with_constant_momentum(quadratic(), share=0.0, scale=1.0)
    yield ExpectedVerdict(quadratic().case(none, 5, "rho = 0"), "outside assumptions")


@claim(
    source="Park and Xu, Theorem 3.5 in terms of eps_out",
    statement=r"DualFL with rho in (0, nu/L], nu in (0, mu] and Nesterov's method with constant momentum, from"
    r" $\theta_j^n$ with residual $g_j$ to $|r_j|^2/(2\nu) \le \frac sN(\frac{1-\sqrt\rho}{1+\gamma})^n$, and dual"
    r" correction: $|\theta^n-\theta^*|^2 \le (1-\sqrt\rho)^{n-1}\frac{B^2}{N\nu^2}$; so $\epsilon_{out}$ is reached"
    r" within $2 + \frac{\Lambda}{-\log(1-\sqrt\rho)}$ rounds,"
    r" $\Lambda = (\log\frac{B^2}{N\nu^2\epsilon_{out}})_+$, and until then"
    r" $M_n \le 1 + \sqrt{\kappa_j}\bigl(\log\frac{\kappa_jg_j^2}{\nu s} + \log\frac{N(1+\gamma)^n}{1-\sqrt\rho}"
    r" + \Lambda\bigr)_+$; $B = a + \sqrt{|\xi^*|^2 + 2\nu e + a^2}$,"
    r" $a = \frac{\sqrt{2\nu s/\rho}}{1-(1+\gamma)^{-1/2}}$, $e = \frac{s(1+\gamma)}{\rho\gamma}$.",
    assumptions=lambda case: linear_regime(case) + ([] if case.algorithm.rho > 0 else ["rho > 0"]),
    cases=theorem_3_5_target_cases,
)
def theorem_3_5_target(case: Case) -> Iterator[Inequality]:
    r"""Theorem 3.5 in terms of the accuracy of the model: rounds, and steps until it is reached.

    Nesterov's method has :math:`|\nabla F(x^k)|^2 \le 2L(F(x^k) - \min F) \le \frac{2Lg^2}\mu(1-\kappa^{-1/2})^k`. In a
    round before the accuracy is reached, :math:`n\log\frac1{1-\sqrt\rho} \le \Lambda + \log\frac1{1-\sqrt\rho}`.
    The paper lets :math:`\gamma \to 0` in the end, but then B grows without limit. With :math:`\gamma = \sqrt\rho`,
    where B is of the order :math:`1/\rho` at most and :math:`(1+\gamma)^n \le (1-\sqrt\rho)^{-n}`, the last bound is of
    the order :math:`\sqrt\kappa\log\frac{N\kappa}{\epsilon_\text{out}}`.

    Compare the distance in every round; for accuracies over many orders of magnitude, the rounds and all steps.
    """
    f, nu, rho, N = case.objective, case.algorithm.nu, case.algorithm.rho, case.n_clients
    schedule = case.algorithm.stop.schedule
    kappa, contraction = f.L / f.mu, 1.0 - math.sqrt(rho)
    first = admitted_size(case, gamma=schedule.gamma, scale=schedule.scale) ** 2 / (N * nu**2)
    distances, steps, excess = [], [], []
    for s, problem, start in local_problems(case):
        n = s.round.n
        distances.append(case.distance(s.server.theta))
        yield Inequality(n + 1, distances[-1], contraction**n * first, "|theta^n - theta*|^2")
        gradient = problem.gradient(start)
        square = np.maximum(client_dot(gradient, gradient), 1e-300)
        growth = np.log(kappa * square / (nu * schedule.scale)) + math.log(N / contraction)
        excess.append(growth + n * math.log(1.0 + schedule.gamma))
        assert s.solution is not None  # everybody takes part
        steps.append(s.solution.gradients)
    for power in range(0, 30, 3):
        target = first * 10.0**-power
        logarithm = math.log(first / target)
        bound = 2.0 + logarithm / -math.log(contraction)
        reached = next((n for n, distance in enumerate(distances, start=1) if distance <= target), math.inf)
        if math.isinf(reached) and bound > case.rounds:
            break
        yield Inequality(power, float(reached), bound, "rounds to eps_out")
        for n in range(min(int(bound), len(steps)) if math.isinf(reached) else int(reached)):
            most = 1.0 + np.sqrt(kappa) * np.maximum(excess[n] + logarithm, 0.0)
            for count, limit in zip(steps[n], most, strict=True):
                yield Inequality(n, float(count), float(limit), "M_n until eps_out")
