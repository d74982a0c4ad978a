r"""The local oracles of the FedPD paper: how many steps reach (8) and (9), and Remarks 3 and 4.

With :math:`a = L\eta < 1` the local problem :math:`F_j(x) = f_j(x) + \langle\lambda_j, x\rangle +
\frac{1}{2\eta}|x - x_{0,j}|^2` has curvature between :math:`m = \frac{1-a}\eta` and :math:`M = \frac{1+a}\eta`; let
:math:`x^*` be its solution.

Option I. A step of length :math:`\eta_1` multiplies the gradient of :math:`F_j` by :math:`I - \eta_1 H`, H a mean of
Hessians, whose norm is at most :math:`1 - \eta_1 m` for :math:`\eta_1 \le 2/(m + M) = \eta`:

.. math:: |\nabla F_j(x^q)| \le \Bigl(1 - \tfrac{\eta_1}{\eta}(1 - a)\Bigr)^q |\nabla F_j(x^0)|,

so that :math:`q = \log(|\nabla F_j(x^0)|^2/\varepsilon_1)/(2\log\frac1a)` steps of length :math:`\eta` reach (8).

Option II. Let :math:`\sigma^2` bound :math:`\mathbb E|h_j(x; \xi) - \nabla f_j(x)|^2` for all x. A step of length
:math:`s \le \eta` gives :math:`\mathbb E|x^{q+1} - x^*|^2 \le (1 - sm)^2\,\mathbb E|x^q - x^*|^2 + s^2\sigma^2`. With
:math:`s_q = \frac{1}{m(q+k)}`, :math:`k = \frac{1}{1-a}`, this times :math:`(q+k)^2` is a sum that telescopes:

.. math:: \mathbb E|\nabla F_j(x^q)|^2 \le M^2\,\mathbb E|x^q - x^*|^2
          \le \Bigl(\frac{1+a}{1-a}\Bigr)^2 \frac{L^2|x^0 - x^*|^2 + q\sigma^2}{(q + k - 1)^2},

at most K/q for :math:`K = (\frac{1+a}{1-a})^2(L^2|x^0 - x^*|^2 + \sigma^2)`: :math:`q = K/\varepsilon_1` steps reach
(9). The steps of Algorithm 3 have one length s. On :math:`F(x) = \frac m2x^2` and with additive noise of variance
:math:`\sigma^2`, :math:`u = sm`,

.. math:: \mathbb E|\nabla F(x^q)|^2 = m^2(1-u)^{2q}|x^0|^2 + \frac{u}{2-u}\bigl(1 - (1-u)^{2q}\bigr)\sigma^2,

whose minimum over u is of order :math:`\sigma^2\log q/q`: the number of steps is of order
:math:`\frac1{\varepsilon_1}\log\frac1{\varepsilon_1}`.

Remark 3. The bound of Theorem 1 has two terms. To make each of them :math:`\epsilon/2` takes twice the rounds and half
the :math:`\varepsilon_1` of the remark. With T rounds of order :math:`1/\epsilon` and :math:`\varepsilon_1` of order
:math:`\epsilon` the number of gradients is of order :math:`\frac1\epsilon\log\frac1\epsilon`, and of single rows of
order :math:`\frac1{\epsilon^2}` (Remark 4 of the first version).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

from dualopt.arrays.xp import Array
from dualopt.lab.claims import Inequality, claim
from dualopt.losses import Squared
from dualopt.methods import FedPD
from dualopt.objectives import LocalProblem, Quadratic, linear_model
from dualopt.objectives.local_problem import client_dot
from dualopt.solvers import Exact, Gradient, Sarah
from dualopt.solvers.stopping import GradientNorm, Steps
from theory._cases import Case
from theory._claims import ExpectedVerdict, Form
from theory._problems import lopsided, one_concave_client, one_flat_client
from theory._rounds import path as rounds_of
from theory.fedpd._draws import Rows, rows, similar_rows
from theory.fedpd._runs import (
    admitted,
    fedpd_case,
    heterogeneous,
    known_of,
    nonconvex,
)
from theory.fedpd.descent import H_0, accuracy_factor, appendix_constants, decrease_factor, mean_gradients, start_factor

# (8): gradient steps.


class Local(NamedTuple):
    """Local problems: the clients, ``a = L eta``, where duals and models are, and how many steps are looked at."""

    name: str
    objective: Quadratic
    a: float
    steps: int
    length: float = 1.0  # of the steps, in units of eta

    @property
    def L(self) -> float:
        """Largest smoothness constant."""
        return float(np.max(self.objective.L))

    @property
    def eta(self) -> float:
        """The step of FedPD."""
        return self.a / self.L

    def problem(self) -> LocalProblem:
        """Return the local problems from some duals, the same for all cases of a size."""
        f, rng = self.objective, np.random.default_rng(6)
        duals = rng.standard_normal((f.n_clients, *f.shape))
        center = rng.standard_normal((f.n_clients, *f.shape))
        return LocalProblem(objective=f, linear=duals, weight=1.0 / self.eta, center=center)

    def start(self) -> Array:
        """Return the points that the local solvers start from."""
        return np.ones((self.objective.n_clients, *self.objective.shape))


def convex_local(case: Local) -> list[str]:
    """Return what fails of ``L eta < 1`` and ``eta_1 <= eta``."""
    steep = [] if case.a < 1 else ["L eta < 1"]
    return steep + ([] if case.length <= 1 else ["eta_1 <= eta"])


def equation_8_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Yield clients with curvature L or -L, where the bound is attained, unequal ones, and a step that is too long."""
    extreme = Quadratic(A=np.stack([np.eye(2), -np.eye(2)]), b=np.zeros((2, 2)))
    for length in (0.5, 1.0):
        yield ExpectedVerdict(Local(f"curvatures L and -L, eta_1 = {length:g} eta", extreme, 0.3, 6, length))
    for instance in (lopsided(), one_flat_client(), one_concave_client()):
        yield ExpectedVerdict(Local(instance.name, instance.objective, 0.3, 6))
    yield ExpectedVerdict(Local("nonconvex quadratics", nonconvex(), 0.3, 6))
    yield ExpectedVerdict(Local("eta_1 = 2 eta", nonconvex(), 0.3, 6, 2.0), "outside assumptions")


@claim(
    name="fedpd_equation_8",
    source="Zhang et al., (8), Algorithm 3 with Option I, and Remark 3",
    statement=r"For $a = L\eta < 1$ and steps of length $\eta_1 \le \eta$: $|\nabla_{x_j}\mathcal L_j(x_j^{r,q})|^2 \le"
    r" (1 - \frac{\eta_1}\eta(1-a))^{2q}|\nabla_{x_j}\mathcal L_j(x_j^{r,0})|^2$; with $\eta_1 = \eta$, (8) holds after"
    r" $q = \frac{\log(|\nabla_{x_j}\mathcal L_j(x_j^{r,0})|^2/\varepsilon_1)}{2\log(1/a)}$ steps.",
    assumptions=convex_local,
    rtol=1e-10,
    cases=equation_8_cases,
)
def equation_8(case: Local) -> Iterator[Inequality]:
    """Equation (8): gradient steps solve the local problems at a linear rate, convex or not.

    Compare client by client after every number of steps, and at the number of steps that is stated for 1e-3 of the
    first squared gradient.
    """
    problem, start, length = case.problem(), case.start(), case.length * case.eta
    first = _squares(problem, start)
    factor = 1.0 - case.length * (1.0 - case.a)
    needed = math.ceil(math.log(1e3) / (2.0 * math.log(1.0 / factor)))
    for q in range(1, max(case.steps, needed) + 1):
        found = _squares(problem, Gradient(step=length)(problem, start, Steps(steps=q)).theta)
        for j, (square, before) in enumerate(zip(found, first, strict=True)):
            yield Inequality(q, square, factor ** (2 * q) * before, f"squared gradient of client {j}")
            if q == needed:
                yield Inequality(q, square, 1e-3 * before, f"accuracy of client {j}")


def _squares(problem: LocalProblem, theta: Array) -> list[float]:
    gradient = problem.gradient(theta)
    return client_dot(gradient, gradient).tolist()


# (9): stochastic gradient steps.


class Sampled(NamedTuple):
    """Local problems whose clients are means of rows with the client's Hessian."""

    name: str
    data: Rows
    a: float
    steps: int

    @property
    def local(self) -> Local:
        """The local problems of the means."""
        return Local(self.name, self.data.objective, self.a, self.steps)


def one_hessian_each(case: Sampled) -> list[str]:
    """Return what fails of a bounded variance and of ``L eta < 1``."""
    bounded = [] if not np.ptp(case.data.A, axis=1).any() else ["bounded variance"]
    return bounded + convex_local(case.local)


def equation_9_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Yield unequal and nonconvex clients with two rows or three, all noise or little; and rows with other Hessians."""
    steps = 6 if quick else 10
    for noise in (0.01, 1.0):
        yield ExpectedVerdict(Sampled(f"two clients, noise {noise:g}", similar_rows(noise=noise), 0.2, steps))
    f, rng = one_concave_client().objective, np.random.default_rng(1)
    noise = rng.standard_normal((4, 3, 4))
    b = f.b[:, None] + 4.0 * (noise - np.mean(noise, axis=1, keepdims=True))
    data = Rows(np.repeat(f.A[:, None], 3, axis=1), b)
    yield ExpectedVerdict(Sampled("one concave client, three rows", data, 0.3, 4 if quick else 6))
    still = Rows(np.array([[[[1.0]], [[1.0]]], [[[-1.0]], [[-1.0]]]]), np.array([[[1.0], [-1.0]], [[1.0], [-1.0]]]))
    yield ExpectedVerdict(Sampled("curvatures 1 and -1", still, 0.05, steps))
    yield ExpectedVerdict(Sampled("rows with other Hessians", rows(), 0.2, steps), "outside assumptions")


@claim(
    name="fedpd_equation_9",
    source="Zhang et al., (9), Algorithm 3 with Option II, and Remark 3; constants derived, lengths vanish",
    statement=r"For $a = L\eta < 1$, $\mathbb E|h_j(x;\xi) - \nabla f_j(x)|^2 \le \sigma^2$ and steps of length $s_q ="
    r" \frac{\eta}{1 + (1-a)q}$: $\mathbb E|\nabla_{x_j}\mathcal L_j(x_j^{r,q})|^2 \le (\frac{1+a}{1-a})^2"
    r" \frac{L^2|x_j^{r,0} - x_j^*|^2 + q\sigma^2}{(q + \frac{a}{1-a})^2}$, where $x_j^*$ is the local solution: (9)"
    r" holds after $q = (\frac{1+a}{1-a})^2\frac{L^2|x_j^{r,0} - x_j^*|^2 + \sigma^2}{\varepsilon_1}$ steps.",
    assumptions=one_hessian_each,
    rtol=1e-10,
    cases=equation_9_cases,
)
def equation_9(case: Sampled) -> Iterator[Inequality]:
    """Equation (9): stochastic gradient steps solve the local problems like 1/q, convex or not.

    The steps are taken here: those of the package's solver have one length throughout a round.

    Compare exact expectations over all draws, client by client, with the bound.
    """
    local, a = case.local, case.a
    problem, start = local.problem(), local.start()
    away = start - Exact()(problem, start, GradientNorm(tol=1e-14)).theta
    offsets = case.data.b - np.mean(case.data.b, axis=1, keepdims=True)
    for j in range(local.objective.n_clients):
        H = local.objective.A[j] + np.eye(len(away[j])) / local.eta
        noise = float(np.mean(np.sum(offsets[j] ** 2, axis=-1)))
        distance = float(np.sum(away[j] ** 2))
        points = away[j][None]  # x - x* for all sequences of rows
        for q in range(1, case.steps + 1):
            length = local.eta / (1.0 + (1.0 - a) * (q - 1))
            kept = points - length * points @ H
            points = np.concatenate([kept + length * offset for offset in offsets[j]])
            measured = float(np.mean(np.sum((points @ H) ** 2, axis=1)))
            bound = (local.L**2 * distance + q * noise) / (q + a / (1.0 - a)) ** 2
            yield Inequality(
                q, measured, ((1.0 + a) / (1.0 - a)) ** 2 * bound, f"E of the squared gradient, client {j}"
            )


class Noise(NamedTuple):
    r"""The local problem of :math:`f = -\frac12x^2` at distance ``distance``, with noise of variance 1."""

    name: str
    a: float = 0.05
    distance: float = 1.0

    @property
    def K(self) -> float:
        """The constant of (9)."""
        return ((1.0 + self.a) / (1.0 - self.a)) ** 2 * (self.distance**2 + 1.0)

    def constant(self, q: int) -> float:
        """Return the least expected squared gradient after q steps of one length."""
        m = (1.0 - self.a) / self.a

        def after(u: float) -> float:
            left = math.exp(2.0 * q * math.log1p(-u))
            return (m * self.distance) ** 2 * left + u / (2.0 - u) * (1.0 - left)

        grid = np.geomspace(1e-3 / q, 0.999, 400)
        best = grid[int(np.argmin([after(u) for u in grid]))]
        found = minimize_scalar(after, bounds=(0.9 * best, min(1.1 * best, 0.9999)), method="bounded")
        return min(float(found.fun), after(best))

    def vanishing(self, q: int) -> float:
        """Return the expected squared gradient after q steps of vanishing length."""
        m, square = (1.0 - self.a) / self.a, self.distance**2
        for i in range(q):
            u = 1.0 / (i + 1.0 / (1.0 - self.a))
            square = (1.0 - u) ** 2 * square + (u / m) ** 2
        return m**2 * square


def p13_constant_steps_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Yield a concave client."""
    case = Noise("a concave function, L eta = 0.05")
    yield ExpectedVerdict(Form(case, printed=True), "violated")
    yield ExpectedVerdict(Form(case, printed=False))


@equation_9.as_printed(
    source="FedPD Algorithm 3 and Remark 3; first version, Remark 4",
    statement=r"Some steps reach $\mathbb E|\nabla_{x_j}\mathcal L_j|^2 \le K/q$ after q of them, for every q. Printed:"
    r" steps of one length $\eta_1$, whose best expectation is of order $\log q/q$, so that $O(1/\varepsilon_1)$ steps"
    r" are too few by a logarithm. Corrected: steps of length $\eta/(1 + (1-L\eta)q)$.",
    cases=p13_constant_steps_cases,
)
def p13_constant_steps(form: Form) -> Iterator[Inequality]:
    """P13: the number of stochastic gradient steps in Remark 3 of the FedPD paper.

    Compare the closed form for the best constant length, or the recursion for vanishing ones, with K/q.
    """
    case: Noise = form.case
    for q in (10, 100, 1000, 10_000):
        yield Inequality(q, case.constant(q) if form.printed else case.vanishing(q), case.K / q, "E |grad F|^2")


# Remark 3: rounds and accuracy.


class Target(NamedTuple):
    """FedPD and the accuracy that is asked for, as a fraction of the first squared gradient."""

    name: str
    run: Case
    fraction: float


def remark_3_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Half of the first squared gradient, on convex, unequal and nonconvex clients."""
    families = {"quadratics": heterogeneous(), "lopsided quadratics": lopsided().objective}
    for name, f in (families if quick else families | {"nonconvex quadratics": nonconvex()}).items():
        yield ExpectedVerdict(Target(name, fedpd_case(name, f, a=0.1), 0.5))


@claim(
    name="fedpd_remark_3",
    source="Zhang et al., Remark 3, with the constants of fedpd_theorem_1",
    statement=r"With the constants of Theorem 1, $S = C(E(x^0) - E^*) + s(C\eta + 4a^2)H_0$ and $\varepsilon_1 ="
    r" \frac{\epsilon}{2}\bigl(\frac CL + 8C\eta + 4 + 32a^2\bigr)^{-1}$: $\frac1T\sum_{r<T}|\nabla E(x_0^r)|^2 \le"
    r" \epsilon$ for $T \ge 2S/\epsilon$. Gradient steps of length $\eta$ find the local solutions (fedpd_equation_8).",
    assumptions=lambda case: admitted(case.run),
    cases=remark_3_cases,
)
def remark_3(case: Target) -> Iterator[Inequality]:
    """Remark 3: how many rounds, and how accurate local solutions, make the mean squared gradient as small as asked.

    Compare the mean after T rounds with the accuracy, and the local residuals with theirs.
    """
    run = case.run
    asked = case.fraction * run.squared_gradient(run.theta0)
    accuracy = 0.5 * asked / accuracy_factor(L=run.L, eta=run.eta, rounds=1)
    known = {"L": run.L, "eta": run.eta}
    start = decrease_factor(**known) * run.error(run.theta0) + start_factor(**known) * H_0(run, accuracy)
    inexact = replace(run.algorithm, solver=Gradient(step=run.eta), stop=GradientNorm(tol=math.sqrt(accuracy)))
    long = run.but(algorithm=inexact, rounds=math.ceil(2.0 * start / asked))
    *_, last = mean_gradients(long)
    yield Inequality(last.T, last.squared_gradient, asked, "mean of |grad E|^2")
    yield Inequality(last.T, last.accuracy, accuracy, "squared local residuals")


class Budget(NamedTuple):
    """Constants of a problem and the accuracy that is asked for."""

    name: str
    L: float
    eta: float
    excess: float
    asked: float


def p11_halves_of_remark_3_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Two accuracies."""
    for asked in (1.0, 1e-6):
        case = Budget(f"epsilon = {asked:g}", 1.0, 0.2, 3.0, asked)
        yield ExpectedVerdict(Form(case, printed=True), "violated")
        yield ExpectedVerdict(Form(case, printed=False))


@remark_3.as_printed(
    source="FedPD Remarks 3 and 5",
    statement=r"The bound $\frac{C_2}TD_0 + C_4\varepsilon_1$ of Theorem 1 is at most $\epsilon$. Printed: with $T ="
    r" C_2D_0/\epsilon$ and $\varepsilon_1 = \epsilon/C_4$, where it is $2\epsilon$. Corrected: with $T ="
    r" 2C_2D_0/\epsilon$ and $\varepsilon_1 = \epsilon/(2C_4)$.",
    rtol=1e-12,
    cases=p11_halves_of_remark_3_cases,
)
def p11_halves_of_remark_3(form: Form) -> Iterator[Inequality]:
    """P11: rounds and local accuracy in Remark 3 of the FedPD paper (and in Remark 5, which adds a third term).

    Compare the bound with the accuracy.
    """
    case: Budget = form.case
    C2, C4 = appendix_constants(L=case.L, eta=case.eta, repaired=True)
    share = 1.0 if form.printed else 0.5
    T, accuracy = C2 * case.excess / (share * case.asked), share * case.asked / C4
    yield Inequality(0, C2 * case.excess / T + C4 * accuracy, case.asked, "bound of Theorem 1")


# Remark 4: rows that Oracle II looks at.


class Counted(NamedTuple):
    """FedPD with Oracle II on M rows."""

    name: str
    run: Case
    batch: int
    local_steps: int
    refresh: int

    @property
    def size(self) -> int:
        """Number ``M`` of rows of all clients."""
        return sum(self.run.objective.sizes)


def counted(root: int, local_steps: int, n: int) -> Counted:
    """Return ``n`` clients with ``root^2`` rows, ``I = root`` and ``B = root/(Q n)``."""
    M, batch = root**2, root // (local_steps * n)
    rng = np.random.default_rng(0)
    f = linear_model(rng.standard_normal((M, 2)), rng.standard_normal(M), loss=Squared(), mu=0.0, clients=n)
    eta = 0.9 / (3.0 * (local_steps + math.sqrt(local_steps * root / batch)) * float(np.max(f.L)))
    solver = Sarah(gamma=10.0 * eta, batch=batch, refresh=root)
    run = Case(
        name=f"M = {M}, N = {n}, Q = {local_steps}, B = {batch}, I = {root}",
        algorithm=FedPD(eta=eta, solver=solver, stop=Steps(steps=local_steps)),
        objective=f,
        rounds=2 * root + 1,
        known=known_of(f, 0.0),
    )
    return Counted(run.name, run, batch, local_steps, root)


def remark_4_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Square numbers of rows that two or three clients share."""
    for root, local_steps, n in ((8, 2, 2), (12, 2, 3), (6, 1, 2)):
        yield ExpectedVerdict(counted(root, local_steps, n))


@claim(
    name="fedpd_remark_4",
    source="Zhang et al., Remark 4",
    statement=r"T rounds of Oracle II look at no more than $M(\frac TI + 1) + 2TQBN$ rows; with $I = \sqrt M$ and"
    r" $B = \frac{\sqrt M}{QN}$ that is $M + 3\sqrt M\,T$, so that T of order $1/\epsilon$ (Theorem 2) needs"
    r" $O(M + \sqrt M/\epsilon)$ rows.",
    rtol=1e-12,
    cases=remark_4_cases,
)
def remark_4(case: Counted) -> Iterator[Inequality]:
    """Remark 4: how many rows Oracle II looks at.

    Compare what the local solvers count in the first T rounds.
    """
    f, used = case.run.objective, 0.0
    for T, step in enumerate(rounds_of(case.run), start=1):
        used += sum(m * count for m, count in zip(f.sizes, step.taken.solution.gradients, strict=True))
        samples = 2.0 * T * case.local_steps * case.batch * f.n_clients
        yield Inequality(T, used, case.size * (T / case.refresh + 1.0) + samples, "rows, I and B given")
        yield Inequality(T, used, case.size + 3.0 * math.sqrt(case.size) * T, "rows, I and B as in the remark")
