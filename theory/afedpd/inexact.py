r"""Inexact local solutions: Theorem 1 of the A-FedPD paper with its error term, and Remarks 1.1 and 1.2.

The paper admits local solutions with :math:`|r_j|^2 \le \epsilon` for the residuals :math:`r_j = \nabla f_j(\theta_j^+)
+ \lambda_j + \rho(\theta_j^+ - \theta)`. With all clients active, the proof of ``afedpd_descent`` carries their errors
along. From the second round on :math:`\lambda_j = r_j - \nabla f_j(\theta_j)`, with the residuals of the round before.
Write :math:`e_+^2` and :math:`e^2` for the means of the :math:`|r_j|^2` of a round and of the one before it, :math:`D^2
= \frac1N\sum_j|\theta_j^+ - \theta_j|^2` and :math:`s = |\theta^+ - \theta|`.

* The local problems are :math:`(\rho-L)`-strongly convex, so that their Lagrangians fall by at least
  :math:`\frac{\rho-L}2D^2 - e_+D`.
* The dual step adds :math:`\frac1{\rho N}\sum_j|\lambda_j^+-\lambda_j|^2`, at most :math:`\frac1\rho(LD+e_++e)^2`.
* The new :math:`\theta` takes away :math:`\frac\rho2s^2`.

.. math:: \tfrac{\rho-L}2D^2 + \tfrac\rho2s^2
          \le \mathcal L - \mathcal L^+ + e_+D + \tfrac1\rho(LD + e_+ + e)^2. \tag{1}

The gradient is :math:`\nabla E(\bar\theta^+) = \frac1N\sum_j[\nabla f_j(\bar\theta^+) - \nabla f_j(\theta_j^+) +
r_j] - \rho(\theta^+ - \bar\theta^+)`, and :math:`\frac1N\sum_j|\theta_j^+-\theta|^2 \le (LD + e_+ + e)^2/\rho^2`, hence

.. math:: |\nabla E(\bar\theta^+)| \le \tfrac{\sqrt{L^2+\rho^2}}\rho(LD + e_+ + e) + \rho s + e_+. \tag{2}

Smoothness and :math:`\lambda_j^+ = r_j - \nabla f_j(\theta_j^+)` bound :math:`\mathcal L^+` from below:

.. math:: \mathcal L^+ \ge E(\theta^+) + \tfrac{\rho-L}2d^2 - e_+d, \qquad
          d^2 = \tfrac1N\textstyle\sum_j|\theta_j^+-\theta^+|^2. \tag{3}

Let :math:`e_+^2, e^2 \le \epsilon`, :math:`c = \frac{(\rho-2L)(\rho+L)}{2\rho}` and :math:`k =
\frac{(1+4L/\rho)^2}{2c} + \frac4\rho`. Young's inequality in (1) gives :math:`\frac c2D^2 + \frac\rho2s^2 \le
\mathcal L - \mathcal L^+ + k\epsilon`; the inequality of Cauchy and Schwarz in (2)

.. math:: |\nabla E(\bar\theta^+)|^2 \le C_\epsilon(\mathcal L - \mathcal L^+ + 2k\epsilon), \qquad
          C_\epsilon = 2\rho + \tfrac{2L^2(L^2+\rho^2)}{\rho^2c}
          + \tfrac1k\bigl(1 + \tfrac2\rho\sqrt{L^2+\rho^2}\bigr)^2.

The first round, from zero duals, gives :math:`\mathcal L^1 \le E(\theta^0) + \frac{\rho+L}2R_0 + \sqrt{\epsilon R_0}`
and :math:`|\nabla E(\bar\theta^1)| \le \sqrt{(L^2+\rho^2)R_0} + \sqrt\epsilon`, and (3) at the end :math:`\mathcal L^T
\ge \min E - \frac\epsilon{2(\rho-L)}`. The sum over the rounds is the theorem. Only means of squares enter, so that it
holds for random local solutions too, with :math:`\epsilon` a bound of their conditional expectations.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from dualopt.arrays.xp import Array
from dualopt.lab.claims import Inequality, claim
from dualopt.losses import Squared
from dualopt.methods.participation import Round
from dualopt.objectives import LocalProblem, linear_model
from dualopt.solvers import Exact, Gradient, LocalSolution
from dualopt.solvers._loop import solution
from dualopt.solvers.stopping import GradientNorm, Stop
from theory._cases import Case
from theory._claims import ExpectedVerdict, Form
from theory._problems import indefinite, logistic, lopsided, one_concave_client, penalised_logistic, quadratic
from theory._rounds import affine
from theory.afedpd._runs import afedpd_case, mean_square, one_client, path, two_signs
from theory.afedpd.optimization import (
    descent_constant,
    full_participation,
    lagrangian,
    proved,
    theorem_1,
    unequal_cases,
)


def inexact_case(instance: Case, *, factor: float, share: float, rounds: int, active: int | None = None) -> Case:
    r"""Start A-FedPD with gradient descent as local solver, down to residuals of ``share`` times the first gradient.

    Parameters
    ----------
    instance : Case
        The problem.
    factor : float
        :math:`\rho/L`.
    share : float
        :math:`\sqrt\epsilon` in units of :math:`|\nabla E(\theta^0)|`.
    rounds : int
        How many rounds to look at.
    active : int, optional
        Number of active clients; all when not given.
    """
    participants = instance.objective.n_clients if active is None else active
    case = afedpd_case(
        instance, rho=factor * instance.L, active=participants, rounds=rounds, note=f"residuals {share:g}"
    )
    tol = share * math.sqrt(case.squared_gradient(case.first().server.theta))
    return case.but(algorithm=replace(case.algorithm, solver=Gradient(), stop=GradientNorm(tol=tol)))


def admitted_error(case: Case) -> float:
    r"""Return :math:`\epsilon`."""
    return case.algorithm.stop.tol**2


def inexact_cases(rounds: int, share: float) -> Iterator[ExpectedVerdict]:
    """Convex and nonconvex clients, unequal ones among them; outside the range nothing is proved."""
    for f in (two_signs(), quadratic(), lopsided(), one_concave_client(), logistic(), penalised_logistic()):
        yield ExpectedVerdict(inexact_case(f, factor=3.0, share=share, rounds=rounds))
    few = inexact_case(indefinite(), factor=3.0, share=share, rounds=5, active=2)
    low = inexact_case(two_signs(), factor=1.9, share=share, rounds=5)
    for case in (few, low):
        yield ExpectedVerdict(case, "outside assumptions")


def descent_inexact_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Residuals that are a large part of the first gradient, and small ones."""
    for share in (0.3, 0.01):
        yield from inexact_cases(10 if quick else 40, share)
        yield ExpectedVerdict(inexact_case(indefinite(), factor=2.1, share=share, rounds=10))


@claim(
    name="afedpd_descent_inexact",
    source="Sun, Shen and Tao, Theorem 1: a proof for full participation and inexact local solutions",
    statement=r"$P = N$, L-smooth $f_j$, $\rho > 2L$, residuals with the means of squares $e_+^2$ and, in the round"
    r" before, $e^2$; from the second round on: $\frac{\rho-L}2D^2 + \frac\rho2s^2 \le \mathcal{L} - \mathcal{L}^+"
    r" + e_+D + \frac1\rho(LD + e_+ + e)^2$,"
    r" $|\nabla E(\bar\theta^+)| \le \frac{\sqrt{L^2+\rho^2}}\rho(LD + e_+ + e) + \rho s + e_+$ and"
    r" $\mathcal{L}^+ \ge E(\theta^+) + \frac{\rho-L}2d^2 - e_+d$.",
    assumptions=full_participation,
    cases=descent_inexact_cases,
)
def descent_inexact(case: Case) -> Iterator[Inequality]:
    """Descent with errors: what residuals add to the fall of the Lagrangian, and to the gradient.

    Compare (1), (2) and (3) with the residuals that were left.
    """
    rho, L = case.rho, case.L
    for last, step in pairwise(path(case)):
        before, after = step.before, step.taken
        e_before, e = (math.sqrt(mean_square(s.residuals)) for s in (last, step))
        D = math.sqrt(mean_square(after.points - before.points))
        s = float(np.linalg.norm(after.theta - before.theta))
        fall, duals = lagrangian(case, before) - lagrangian(case, after), L * D + e + e_before
        moved = 0.5 * (rho - L) * D * D + 0.5 * rho * s * s  # products of floats may be infinite, powers raise
        yield Inequality(step.n, moved, fall + e * D + duals * duals / rho, "(1)")
        gradient = math.sqrt(case.squared_gradient(after.bar))
        yield Inequality(step.n, gradient, math.hypot(L, rho) / rho * duals + rho * s + e, "(2)")
        d = math.sqrt(mean_square(after.points - after.theta))
        above = lagrangian(case, after) - case.lowest + e * d
        yield Inequality(step.n, case.error(after.theta) + 0.5 * (rho - L) * d * d, above, "(3)")


def small_residuals(case: Case) -> list[str]:
    """Return what fails of the assumptions, those of the proof first."""
    largest = max(mean_square(step.residuals) for step in path(case))
    return full_participation(case) or ([] if largest <= admitted_error(case) else ["mean |r_j|^2 <= epsilon"])


def theorem_1_inexact_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Small residuals; and large ones, for which the error term is more than what is known without the theorem."""
    yield from inexact_cases(60, 0.01)
    if not quick:
        yield ExpectedVerdict(inexact_case(indefinite(), factor=3.0, share=1e-3, rounds=1000))
        yield ExpectedVerdict(inexact_case(quadratic(), factor=2.2, share=1e-3, rounds=1000))
    yield ExpectedVerdict(inexact_case(two_signs(), factor=3.0, share=0.5, rounds=20), "vacuous")


@claim(
    name="afedpd_theorem_1_inexact",
    source="Sun, Shen and Tao, Theorem 1 (full participation, inexact local solutions)",
    statement=r"$P = N$, L-smooth $f_j$, $\rho > 2L$, $\frac1N\sum_j|r_j|^2 \le \epsilon$ in every round:"
    r" $\frac1T\sum_{t=1}^T|\nabla E(\bar\theta^t)|^2 \le \frac1T\bigl(C_\epsilon[E(\theta^0) - E^* + \frac{\rho+L}2R_0"
    r" + \sqrt{\epsilon R_0} + \frac\epsilon{2(\rho-L)}] + (\sqrt{(L^2+\rho^2)R_0} + \sqrt\epsilon)^2\bigr)"
    r" + 2kC_\epsilon\epsilon$, $k = \frac{(1+4L/\rho)^2}{2c} + \frac4\rho$, $c = \frac{(\rho-2L)(\rho+L)}{2\rho}$,"
    r" $C_\epsilon = 2\rho + \frac{2L^2(L^2+\rho^2)}{\rho^2c} + \frac1k(1 + \frac2\rho\sqrt{L^2+\rho^2})^2$,"
    r" $R_0 = \frac1N\sum_j|\theta_j^1-\theta^0|^2$.",
    assumptions=small_residuals,
    trivial=lambda case: case.squared_gradient(case.theta0),
    cases=theorem_1_inexact_cases,
)
def theorem_1_inexact(case: Case) -> Iterator[Inequality]:
    """Theorem 1 with local solutions of a given accuracy: a sum that is bounded, and an error in every round.

    Compare the mean of the squared gradients with the bound, for every number of rounds.
    """
    epsilon = admitted_error(case)
    start, error = proved_inexact(case, epsilon)
    measured = (case.squared_gradient(step.taken.bar) for step in path(case))
    for T, summed in enumerate(accumulate(measured), start=1):
        yield Inequality(T, summed / T, start / T + error, "mean of |grad E|^2")


def error_constant(rho: float, L: float) -> float:
    r"""Return :math:`k`.

    Examples
    --------
    >>> error_constant(4.0, 1.0)
    2.6
    """
    return (1.0 + 4.0 * L / rho) ** 2 / (2.0 * descent_constant(rho, L)) + 4.0 / rho


def proved_inexact(case: Case, epsilon: float) -> tuple[float, float]:
    """Return what is divided by T, and the error term."""
    rho, L, R_0 = case.rho, case.L, path(case)[0].spread
    c, k, root = descent_constant(rho, L), error_constant(rho, L), math.hypot(L, rho)
    C = 2.0 * rho + 2.0 * (L * root / rho) ** 2 / c + (1.0 + 2.0 * root / rho) ** 2 / k
    lagrangians = case.error(case.theta0) + 0.5 * (rho + L) * R_0 + math.sqrt(epsilon * R_0)
    first = (root * math.sqrt(R_0) + math.sqrt(epsilon)) ** 2
    return C * (lagrangians + 0.5 * epsilon / (rho - L)) + first, 2.0 * k * C * epsilon


@dataclass(frozen=True, kw_only=True)
class Biased:
    r"""Solutions of quadratic local problems whose residual is ``tol`` times the first unit vector, in every round."""

    tol: float

    def initial_state(self, objective: Any) -> Any:
        """Return ``()``."""
        return ()

    def __call__(
        self, problem: LocalProblem, start: Array, stop: Stop, solver_state: Any = (), round: Round | None = None
    ) -> LocalSolution:
        """Solve the problem with another linear term."""
        residual = np.zeros_like(start)
        residual[:, 0] = self.tol
        linear = 0.0 if problem.linear is None else problem.linear
        theta = Exact()(replace(problem, linear=linear - residual), start, stop).theta
        ones = np.ones(problem.n_clients)
        status = ("converged",) * problem.n_clients
        return solution(problem, theta, problem.evaluate(theta), gradients=ones, status=status)


def a9_error_term_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """One client of curvature 1, for two weights; the residual is the same in every round."""
    f = one_client(1.0)
    for rho in (3.0, 10.0):
        case = afedpd_case(f, rho=rho, active=1, rounds=400, note="constant residual")
        case = case.but(algorithm=replace(case.algorithm, solver=Biased(tol=0.3), stop=GradientNorm(tol=0.3)))
        yield ExpectedVerdict(Form(case, printed=True), "violated")
        yield ExpectedVerdict(Form(case, printed=False))


@theorem_1_inexact.as_printed(
    source="A-FedPD Theorem 1, the error term in its proof",
    statement=r"One client $Lx^2/2$, $|r|^2 = \epsilon$ in every round. Printed: $\frac1T\sum_{t=1}^T"
    r"|\nabla E(\bar\theta^t)|^2 \le \frac1T(\ldots) + \frac\epsilon{8L^2\rho}$, which is no squared gradient and"
    r" vanishes as $\rho \to \infty$. Corrected: the $2kC_\epsilon\epsilon$ of afedpd_theorem_1_inexact; no constant"
    r" below 1 can do, whatever $\rho$ is. The part over T is that of afedpd_theorem_1_inexact in both forms.",
    cases=a9_error_term_cases,
)
def a9_error_term(form: Form) -> Iterator[Inequality]:
    r"""A9: the error of inexact local solutions in the proof of Theorem 1 of the A-FedPD paper.

    A residual r that is the same in every round moves the fixed point to where :math:`\lambda = r - \nabla E(\theta)`
    and :math:`\lambda = 0`, that is :math:`|\nabla E|^2 = \epsilon`. The print loses the factor with :math:`q =
    \rho/(32L^2)`, as in A4.

    Compare the mean of the squared gradients with either error term.
    """
    case, epsilon = form.case, admitted_error(form.case)
    start, error = proved_inexact(case, epsilon)
    error = epsilon / (8.0 * case.L**2 * case.rho) if form.printed else error
    for T, summed in enumerate(accumulate(case.squared_gradient(step.taken.bar) for step in path(case)), start=1):
        yield Inequality(T, summed / T, start / T + error, "mean of |grad E|^2")


# How many rounds, and how many local steps (Remarks 1.1 and 1.2).


def remark_1_1_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Convex and nonconvex clients, unequal ones among them."""
    for f, few in ((two_signs(), 100), (indefinite(), 100), (quadratic(), 100), (logistic(), 20)):
        rounds = few if quick else 600
        yield ExpectedVerdict(afedpd_case(f, rho=3.0 * f.L, active=f.objective.n_clients, rounds=rounds))
    yield from unequal_cases(100, everybody=True)


@claim(
    name="afedpd_remark_1_1",
    source="Sun, Shen and Tao, Remark 1.1",
    statement=r"$P = N$, exact local solutions, $\rho > 2L$:"
    r" $\frac1T\sum_{t=1}^T|\nabla E(\bar\theta^t)|^2 \le \epsilon$ for all"
    r" $T \ge B/\epsilon$, with B the constant of afedpd_theorem_1: $O(\epsilon^{-1})$ rounds.",
    assumptions=full_participation,
    cases=remark_1_1_cases,
)
def remark_1_1(case: Case) -> Iterator[Inequality]:
    """Remark 1.1: how many rounds are needed for a given accuracy.

    Count them for accuracies over several orders of magnitude, as far as the run goes.
    """
    bound = proved(case)
    means = [inequality.lhs for inequality in theorem_1(case)]
    for power in range(12):
        epsilon = means[0] * 0.5**power
        reached = next((T for T, mean in enumerate(means, start=1) if mean <= epsilon), math.inf)
        if math.isinf(reached) and 1.0 + bound / epsilon > case.rounds:
            break
        yield Inequality(power, float(reached), 1.0 + bound / epsilon, "rounds to epsilon")


@dataclass(frozen=True, kw_only=True, eq=False)
class RowsCase:
    r"""Stochastic gradient steps on a local problem, one row each.

    Attributes
    ----------
    name : str
        For tables.
    problem : LocalProblem
        Of one client with quadratic losses of its rows.
    start : array, shape (1, d)
        Where the client begins.
    steps : int
        How many steps to follow.
    """

    name: str
    problem: LocalProblem
    start: Array
    steps: int

    @property
    def X(self) -> Array:
        """Features of the rows."""
        objective: Any = self.problem.objective
        ((X, _, _),) = objective.client_rows()
        return X

    @property
    def L(self) -> float:
        """Smoothness constant of the loss of a row."""
        return float(np.max(np.sum(self.X**2, axis=1)))

    @property
    def rho(self) -> float:
        """Weight of the proximal term."""
        return float(np.max(self.problem.weight))

    def row_gradient(self, row: int, theta: Array) -> Array:
        """Return the gradient of the Lagrangian of a row at a point, shape (d,)."""
        return self.problem.sample_gradient(theta[None], (np.asarray([row]),))[0]


def decreasing_step(k: int, *, m: float, M: float) -> float:
    r"""Return :math:`\eta_k = \frac2{m(k + 4M/m)}`.

    Examples
    --------
    >>> decreasing_step(0, m=1.0, M=5.0)
    0.1
    """
    return 2.0 / (m * k + 4.0 * M)


def remark_1_2_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Two weights, from the server's model and from far away; rho = L is not enough."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((6, 2)), rng.standard_normal(6)
    f = linear_model(X, y, loss=Squared(), mu=0.0, clients=1, intercept=False)
    L = float(np.max(np.sum(X**2, axis=1)))
    center, dual = rng.standard_normal((1, 2)), rng.standard_normal((1, 2))
    for factor, away in ((1.5, 0.0), (3.0, 0.0), (3.0, 5.0)):
        problem = LocalProblem(objective=f, linear=dual, weight=factor * L, center=center)
        name = f"6 rows, rho = {factor:g} L" + (", far away" if away else "")
        yield ExpectedVerdict(RowsCase(name=name, problem=problem, start=center + away, steps=300 if quick else 3000))
    problem = LocalProblem(objective=f, linear=dual, weight=L, center=center)
    yield ExpectedVerdict(
        RowsCase(name="6 rows, rho = L", problem=problem, start=center, steps=1), "outside assumptions"
    )


@claim(
    name="afedpd_remark_1_2",
    source="Sun, Shen and Tao, Remark 1.2",
    statement=r"Rows with L-smooth losses, $\rho > L$, $m = \rho-L$, $M = \rho+L$: stochastic gradient steps"
    r" $\eta_k = \frac2{m(k+k_0)}$, $k_0 = 4M/m$, on rows drawn uniformly with replacement have"
    r" $\mathbb{E}|\nabla F_j(x_K)|^2 \le \frac{M^2Q}{K+k_0}$, $Q = \max\{k_0|x_0-x^*|^2, 8\sigma^2/m^2\}$,"
    r" $\sigma^2 = \mathbb{E}|g(x^*)|^2$. So residuals of $\mathbb{E}|r_j|^2 \le \epsilon$ take $K \le M^2Q/\epsilon$"
    r" steps, and with the $O(\epsilon^{-1})$ rounds of Remark 1.1 a client draws $O(\epsilon^{-2})$ rows. The"
    r" expectation is exact.",
    assumptions=lambda case: [] if case.rho > case.L else ["rho > L"],
    cases=remark_1_2_cases,
)
def remark_1_2(case: RowsCase) -> Iterator[Inequality]:
    r"""Remark 1.2: how many local steps leave a residual of the size that Theorem 1 admits.

    The Lagrangian of every row is m-strongly convex and M-smooth, so that :math:`\mathbb E|g(x)|^2 \le 2M\langle\nabla
    F(x), x-x^*\rangle + 2\sigma^2`, and for :math:`\eta M \le 1/2`

    .. math:: \mathbb E|x_{k+1}-x^*|^2 \le (1 - \eta_km)\,\mathbb E|x_k-x^*|^2 + 2\eta_k^2\sigma^2.

    By induction :math:`\mathbb E|x_k-x^*|^2 \le Q/(k+k_0)`, because :math:`\frac{k-1}{k^2} \le \frac1{k+1}`.

    Compare the exact expectation, from the affine maps of all rows, and count the steps for several accuracies.
    """
    M, m = case.rho + case.L, case.rho - case.L
    size, d = case.X.shape
    rows = np.stack([affine(lambda z, i=i: case.row_gradient(i, z), d) for i in range(size)])  # (S, d, d + 1)
    mean = np.mean(rows, axis=0)
    best = np.linalg.solve(mean[:, :d], -mean[:, d])
    z = np.append(case.start[0], 1.0)
    moments = np.outer(z, z)
    k_0, sigma = 4.0 * M / m, float(np.mean(np.sum((rows @ np.append(best, 1.0)) ** 2, axis=1)))
    Q = max(k_0 * float(np.sum((case.start[0] - best) ** 2)), 8.0 * sigma / m**2)
    squares = []
    for k in range(case.steps):
        maps = np.tile(np.eye(d + 1), (size, 1, 1))
        maps[:, :d] -= decreasing_step(k, m=m, M=M) * rows
        moments = np.mean(maps @ moments @ np.swapaxes(maps, 1, 2), axis=0)
        squares.append(float(np.trace(mean @ moments @ mean.T)))
        yield Inequality(k + 1, squares[-1], M**2 * Q / (k + 1 + k_0), "E|grad F|^2")
    for power in range(20):
        epsilon = squares[0] * 0.5**power
        reached = next((K for K, square in enumerate(squares, start=1) if square <= epsilon), math.inf)
        if math.isinf(reached) and 1.0 + M**2 * Q / epsilon > case.steps:
            break
        yield Inequality(power, float(reached), 1.0 + M**2 * Q / epsilon, "steps to epsilon")
