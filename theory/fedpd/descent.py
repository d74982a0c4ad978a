r"""FedPD without skipped rounds: Theorems 1 and 2 of the FedPD paper, with their lemmas.

The paper's proof of Theorems 1 and 3, with every constant, and with what it leaves out. Write :math:`a = L\eta`,
:math:`c = 1 - 2a - 4a^2` (positive exactly for :math:`a < (\sqrt5-1)/4`), :math:`\bar x_0^r` for the mean of the copies
:math:`x_{0,j}^r`, :math:`d_j^r = x_{0,j}^r - \bar x_0^r`, :math:`D_r` for the mean of :math:`|d_j^r|^2`, :math:`u_r`
for that of :math:`|x_j^{r+1} - x_j^r|^2`, :math:`V^r` for that of the augmented Lagrangians
:math:`\mathcal L_j(x_j^r, x_{0,j}^r, \lambda_j^r)`, and :math:`|e_j^r|^2 \le \varepsilon` for the squared gradients
that local solvers leave, so that :math:`\lambda_j^r = e_j^r - \nabla f_j(x_j^r)` for :math:`r \ge 1`.

Descent. With respect to :math:`x_j` (Lemma 1) :math:`\mathcal L_j` falls by at least
:math:`\frac{1-2a}{2\eta}|\Delta x_j|^2 - \frac{\varepsilon}{2L}`; the dual step adds :math:`\eta|\Delta\lambda_j|^2`,
at most :math:`\eta(2L^2|\Delta x_j|^2 + 8\varepsilon)` (the paper has 4 in (26), too little for the difference of two
errors). In :math:`x_0` the function is :math:`\frac{1}{2\eta}|\cdot - x_{0,j}^+|^2` plus a constant. Hence in rounds
that skip as in rounds that communicate

.. math:: V^{r+1} - V^r \le -\tfrac{c}{2\eta} u_r - \tfrac{1}{2\eta} |\bar x_0^{r+1} - \bar x_0^r|^2
          + (\tfrac{1}{2L} + 8\eta)\varepsilon + \iota_r,

where :math:`\iota_r = \frac{1}{2\eta}` mean of :math:`2\langle d_j^r, d_j^{r+}\rangle - |d_j^r|^2` if the round
communicates, else 0: averaging costs something only after a skipped round. The first round starts from
:math:`\lambda_j = 0`, which is not :math:`-\nabla f_j`: there :math:`\eta|\Delta\lambda_j|^2 = |\Delta x_j|^2/\eta`,
and the inequality holds with :math:`(1 - 2a^2) u_0/\eta` added, where :math:`u_0 \le \eta^2 H_0/(1-a)^2` and
:math:`H_0` is the mean of :math:`(|\nabla f_j(x^0)| + \sqrt\varepsilon)^2`. The paper leaves this term out.

Below. By Lemma 4 and :math:`x_{0,j}^T = x_{0,j}^{T-1,+}` after a skipped round,
:math:`V^T \ge \inf E - \frac{\varepsilon}{2L} - \frac{D_T}{2\eta}`.

Gradient. As the mean of :math:`\lambda_j + (x_j - x_{0,j})/\eta` vanishes in all rounds,

.. math:: |\nabla E(\bar x_0^r)|^2 \le 2L^2\,\mathrm{mean}\,|x_j^r - \bar x_0^r|^2
          + 2\,\mathrm{mean}\,|\nabla_{x_j}\mathcal L_j^r|^2
          \le 4a^2\,\mathrm{mean}\,|\Delta\lambda_j^{r-1}|^2 + 4L^2 |\bar x_0^r - \bar x_0^{r-1}|^2 + 4L^2 D_{r-1}
          + \tfrac{4(1+a)^2}{\eta^2} u_r + 4\varepsilon,

because :math:`x_j^r - \bar x_0^r = \eta\Delta\lambda_j + (\bar x_0^{r-1} - \bar x_0^r) + d_j^{r-1}`, whose last term
has mean zero. Everything summed, with :math:`C = \frac{8}{\eta c}((1+a)^2 + 2a^4)` and
:math:`s = \frac{1-2a^2}{(1-a)^2}`,

.. math:: \sum_{r<T} |\nabla E(\bar x_0^r)|^2 \le C\Bigl(E(x^0) - \inf E + \eta s H_0 + \tfrac{\varepsilon}{2L}
          + \tfrac{D_T}{2\eta} + \sum_{r<T} \iota_r\Bigr) + 4a^2 s H_0 + 4L^2\sum_{r<T} D_r
          + T\Bigl(C(\tfrac{1}{2L} + 8\eta) + 4 + 32a^2\Bigr)\varepsilon.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from dualopt.arrays.xp import Array
from dualopt.lab.claims import Inequality, claim
from dualopt.lab.rates import estimate_order
from dualopt.losses import Logistic, Squared
from dualopt.methods import FedPD
from dualopt.methods.participation import Round
from dualopt.objectives import LinearModel, LocalProblem, Quadratic, linear_model
from dualopt.objectives.local_problem import client_dot
from dualopt.solvers import Exact, LocalSolution, Sarah
from dualopt.solvers.stopping import Steps, Stop
from theory._cases import Case
from theory._claims import ROUNDING, ExpectedVerdict, Form, deviation
from theory.fedpd._runs import (
    admitted,
    equal_hessians,
    fedpd_case,
    heterogeneous,
    known_of,
    lagrangians,
    nonconvex,
    path,
    penalised,
    spread,
    unequal,
)

# Every round: the optimality condition, the copies, and how far duals and gradients move.


def equation_28_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Convex and nonconvex clients, exact and inexact, in rounds that may skip communication."""
    for case in unequal(skip=0.5):
        yield ExpectedVerdict(case)
    yield ExpectedVerdict(fedpd_case("nonconvex quadratics", nonconvex(), skip=0.5, tol=1e-2))
    yield ExpectedVerdict(fedpd_case("penalised logistic", penalised(), rounds=10, skip=0.5))


@claim(
    name="fedpd_equation_28",
    source="Zhang et al., (20), (28) and (29); first version (74), (91) and (92)",
    statement=r"$\lambda_j^{r+1} = e_j^{r+1} - \nabla f_j(x_j^{r+1})$, $e_j^{r+1} = \nabla_{x_j}\mathcal L_j(x_j^{r+1},"
    r" x_{0,j}^r, \lambda_j^r)$. After a round that skips, $\lambda_j + \frac1\eta(x_j - x_{0,j}) = 0$; after one that"
    r" communicates, its mean over the clients is zero, and all copies are one (checked to 1e-10).",
    cases=equation_28_cases,
)
def equation_28(case: Case) -> Iterator[Inequality]:
    """Equations (20), (28) and (29): what duals and copies are after a round.

    Compare after both sides of the coin, in units of the duals.
    """
    for step in path(case):
        for branch in step.E.found:
            s, error = branch.state.clients, branch.solution.evaluation.gradient
            scale = float(np.max(np.abs(s.dual))) + float(np.max(np.abs(s.theta))) / case.eta
            slope = error - case.objective.gradient(s.theta)
            yield Inequality(step.n, deviation(s.dual, slope, scale=scale), ROUNDING, "duals and gradients")
            pull = (s.x0 - s.theta) / case.eta
            if branch.round.communicate:
                mean = deviation(np.mean(s.dual, axis=0), np.mean(pull, axis=0), scale=scale)
                yield Inequality(step.n, mean, ROUNDING, "mean slope in the copies")
                ends = (np.max(s.x0, axis=0) / case.eta, np.min(s.x0, axis=0) / case.eta)
                yield Inequality(step.n, deviation(*ends, scale=scale), ROUNDING, "distance of the copies")
            else:
                yield Inequality(step.n, deviation(s.dual, pull, scale=scale), ROUNDING, "slope in the own copy")


def equation_26_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Yield errors that turn round, for which (26) is attained, and runs with exact and inexact solutions."""
    yield ExpectedVerdict(turning())
    for case in unequal(skip=0.5):
        yield ExpectedVerdict(case)
    yield ExpectedVerdict(fedpd_case("nonconvex quadratics", nonconvex(), skip=0.5, tol=1e-2))
    yield ExpectedVerdict(fedpd_case("penalised logistic", penalised(), rounds=10, skip=0.5, tol=1e-2))


@dataclass(frozen=True, kw_only=True, eq=False)
class Leaving:
    """Exact solutions but for a gradient that is left.

    Attributes
    ----------
    error : array, shape (N, *shape)
        What is left.
    """

    error: Array

    def initial_state(self, objective: Any) -> Any:
        """Return ``()``."""
        return ()

    def __call__(
        self, problem: LocalProblem, start: Array, stop: Stop, solver_state: Any = (), round: Round | None = None
    ) -> LocalSolution:
        """Solve the problem with a linear term that moves the solution."""
        moved = replace(problem, linear=(0.0 if problem.linear is None else problem.linear) - self.error)
        found = Exact()(moved, start, stop)
        return found._replace(evaluation=problem.evaluate(found.theta))


def turning() -> Case:
    r"""Return one client :math:`\frac12x^2` at 0 with :math:`e = 1`, which moves to 2 with :math:`e = -1`."""
    f = Quadratic(A=np.ones((1, 1, 1)), b=np.zeros((1, 1)))
    case = fedpd_case("errors that turn round", f, rounds=1, a=0.2, theta0=np.zeros(1))
    first = case.first()
    before = first.clients._replace(dual=np.ones((1, 1)), x0=np.array([[2.0 + 4.0 * case.eta]]))
    method = replace(case.algorithm, solver=Leaving(error=-np.ones((1, 1))))
    return case.but(algorithm=method, state=first._replace(clients=before))


@claim(
    name="fedpd_equation_26",
    source="Zhang et al., (26), with the factor of two errors, (27) and (30); first version (89), (90) and (93)",
    statement=r"With $|e_j^r|^2, |e_j^{r+1}|^2 \le \varepsilon$: $|\lambda_j^{r+1} - \lambda_j^r|^2 \le 2L^2|x_j^{r+1}"
    r" - x_j^r|^2 + 8\varepsilon$ for $r \ge 1$, and $|x_j^{r+1} - x_{0,j}^{r+1}| \le \eta(L|x_j^{r+1} - x_j^r| +"
    r" 2\sqrt\varepsilon) + |x_{0,j}^{r+1} - x_{0,j}^r|$; $|\nabla_{x_j}\mathcal L_j^r| \le \frac{1+L\eta}\eta"
    r" |x_j^{r+1} - x_j^r| + \sqrt\varepsilon$ for all r.",
    rtol=1e-10,
    cases=equation_26_cases,
)
def equation_26(case: Case, *, as_printed: bool = False) -> Iterator[Inequality]:
    """Equations (26), (27) and (30): steps of the duals and gradients of the Lagrangian, by steps of the models.

    The first round is left out in (26) and (30), if its duals are zero: they are no gradients.

    Compare client by client.
    """
    eta, L = case.eta, case.L
    for step in path(case):
        old, new = step.before.clients, step.after.clients
        error = old.dual + case.objective.gradient(old.theta)
        slope = _norms(error + (old.theta - old.x0) / eta)
        moves = (new.theta - old.theta, new.x0 - old.x0, new.dual - old.dual)
        model, copy, dual = (_norms(move) for move in moves)
        left = np.sqrt(np.maximum(client_dot(error, error), step.errors))
        for j in range(case.n_clients):
            bound = (1.0 + case.a) / eta * model[j] + math.sqrt(step.errors[j])
            yield Inequality(step.n, slope[j], bound, f"(27), client {j}")
            if step.n == 0 and case.state is None:
                continue
            errors = (4.0 if as_printed else 8.0) * left[j] ** 2
            yield Inequality(step.n, dual[j] ** 2, 2.0 * (L * model[j]) ** 2 + errors, f"(26), client {j}")
            away = _norms(new.theta - new.x0)[j]
            yield Inequality(step.n, away, eta * (L * model[j] + 2.0 * left[j]) + copy[j], f"(30), client {j}")


def _norms(points: Array) -> list[float]:
    return np.linalg.norm(points.reshape(len(points), -1), axis=1).tolist()


def p10_two_errors_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Yield errors that turn round."""
    yield ExpectedVerdict(Form(turning(), printed=True), "violated")
    yield ExpectedVerdict(Form(turning(), printed=False))


@equation_26.as_printed(
    source="FedPD (26), with (34) and C4",
    statement=r"$|\lambda_j^{r+1} - \lambda_j^r|^2 \le 2L^2|x_j^{r+1} - x_j^r|^2 + c\varepsilon_1$ with"
    r" $\lambda_j = e_j - \nabla f_j(x_j)$, $|e_j|^2 \le \varepsilon_1$. Printed: c = 4, which is for one error."
    r" Corrected: c = 8, since $|e_j^{r+1} - e_j^r|^2$ may be $4\varepsilon_1$. So (34) has $1 + 16L\eta$ for"
    r" $1 + 8L\eta$.",
    rtol=1e-10,
    cases=p10_two_errors_cases,
)
def p10_two_errors(form: Form) -> Iterable[Inequality]:
    """P10: the difference of two errors in (26) of the FedPD paper.

    Compare the duals' steps with either factor.
    """
    return [q for q in equation_26(form.case, as_printed=form.printed) if q.what.startswith("(26)")]


# Lemmas on the augmented Lagrangian.


def lemma_1_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Convex and nonconvex clients, exact and inexact, with and without skipped rounds."""
    for skip in (0.0, 0.5):
        yield ExpectedVerdict(fedpd_case("nonconvex quadratics", nonconvex(), skip=skip))
        yield ExpectedVerdict(fedpd_case("quadratics", heterogeneous(), a=0.3, skip=skip))
        yield ExpectedVerdict(fedpd_case("equal Hessians", equal_hessians(), skip=skip))
    yield ExpectedVerdict(fedpd_case("nonconvex quadratics", nonconvex(), tol=1e-2, skip=0.5))
    yield ExpectedVerdict(fedpd_case("nonconvex quadratics", nonconvex(), tol=2.0))  # residuals matter
    yield ExpectedVerdict(fedpd_case("penalised logistic", penalised(), rounds=15 if quick else 60, skip=0.5))
    yield ExpectedVerdict(fedpd_case("quadratics", heterogeneous(), a=2.0))  # A1 is all that is assumed
    for case in unequal(skip=0.5):
        yield ExpectedVerdict(case)


@claim(
    name="fedpd_lemma_1",
    source="Zhang et al., Lemma 1, (21)",
    statement=r"If $|\nabla_{x_j}\mathcal L_j(x_j^{r+1}, x_{0,j}^r, \lambda_j^r)|^2 \le \varepsilon_j$, then"
    r" $\frac{1-2L\eta}{2\eta}|x_j^{r+1} - x_j^r|^2 + \frac{1}{2\eta}|x_{0,j}^{r+} - x_{0,j}^r|^2 \le \mathcal L_j^r -"
    r" \mathcal L_j^{r+} + \eta|\lambda_j^{r+1} - \lambda_j^r|^2 + \frac{\varepsilon_j}{2L}$.",
    cases=lemma_1_cases,
)
def lemma_1(case: Case) -> Iterator[Inequality]:
    """Lemma 1: the augmented Lagrangian of a client decreases.

    Compare, client by client, the squared steps with the decrease of the Lagrangian that bounds them.
    """
    eta, L = case.eta, case.L
    for step in path(case):
        old, new = step.before.clients, step.after.clients
        decrease = lagrangians(case, old.theta, old.x0, old.dual) - lagrangians(case, new.theta, step.copies, new.dual)
        moves = (new.theta - old.theta, step.copies - old.x0, new.dual - old.dual)
        model, copy, dual = (client_dot(move, move) for move in moves)
        squares = (1.0 - 2.0 * case.a) / (2.0 * eta) * model + copy / (2.0 * eta)
        available = decrease + eta * dual + step.errors / (2.0 * L)
        for j, (left, right) in enumerate(zip(squares, available, strict=True)):
            yield Inequality(step.n, float(left), float(right), f"squared steps of client {j}")


def lemma_3_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Two clients, where half of the bound is attained, and more; exact and inexact."""
    for skip in (0.0, 0.5):
        yield ExpectedVerdict(fedpd_case("two clients", heterogeneous(2), skip=skip))
        yield ExpectedVerdict(fedpd_case("nonconvex quadratics", nonconvex(), skip=skip))
        yield ExpectedVerdict(fedpd_case("equal Hessians", equal_hessians(), skip=skip, tol=1e-2))
    yield ExpectedVerdict(fedpd_case("penalised logistic", penalised(), rounds=10 if quick else 40))
    for case in unequal(skip=0.5):
        yield ExpectedVerdict(case)


@claim(
    name="fedpd_lemma_3",
    source="Zhang et al., Lemma 3, (23)",
    statement=r"$\frac1N\sum_j[\mathcal L_j(x_j, \bar x_0, \lambda_j) - \mathcal L_j(x_j, x_{0,j}^+, \lambda_j)] \le"
    r" \frac{N-1}{2N\eta}\max|x_{0,i}^+ - x_{0,j}^+|^2$. It is an equality with the mean of $|x_{0,j}^+ - \bar x_0|^2$"
    r" over $2\eta$, which is at most half of this.",
    cases=lemma_3_cases,
)
def lemma_3(case: Case) -> Iterator[Inequality]:
    """Lemma 3: what averaging may cost.

    Compare the increase of the Lagrangian from the clients' copies to their mean.
    """
    N = case.n_clients
    for step in path(case):
        s, average = step.after.clients, _mean_of(step.copies)
        increase = lagrangians(case, s.theta, average, s.dual) - lagrangians(case, s.theta, step.copies, s.dual)
        bound = (N - 1) / (2.0 * N * case.eta) * spread(step.copies) ** 2
        yield Inequality(step.n, float(np.mean(increase)), bound, "increase of the mean Lagrangian")


def _mean_of(copies: Array) -> Array:
    """Return the mean over clients, for every client."""
    return np.broadcast_to(np.mean(copies, axis=0), copies.shape)


def lemma_4_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Convex and nonconvex clients, exact and inexact."""
    yield ExpectedVerdict(fedpd_case("nonconvex quadratics", nonconvex()))
    yield ExpectedVerdict(fedpd_case("nonconvex quadratics", nonconvex(), skip=0.5, tol=1e-2))
    yield ExpectedVerdict(fedpd_case("nonconvex quadratics", nonconvex(), tol=2.0))  # residuals matter
    yield ExpectedVerdict(fedpd_case("quadratics", heterogeneous(), a=0.3))
    yield ExpectedVerdict(fedpd_case("equal Hessians", equal_hessians(), a=0.05))
    yield ExpectedVerdict(fedpd_case("penalised logistic", penalised(), rounds=15 if quick else 60))
    for case in unequal():
        yield ExpectedVerdict(case)


@claim(
    name="fedpd_lemma_4",
    source="Zhang et al., Lemma 4, with the factor of its proof, (54)",
    statement=r"With $\varepsilon$ the mean of the squared local residuals, $\frac{1-2L\eta}{2\eta N}\sum_j|x_j^r -"
    r" x_0^r|^2 \le \frac1N\sum_j\mathcal L_j(x_j^r, x_0^r, \lambda_j^r) - E(x_0^r) + \frac{\varepsilon}{2L}$.",
    cases=lemma_4_cases,
)
def lemma_4(case: Case, *, as_printed: bool = False) -> Iterator[Inequality]:
    """Lemma 4: the energy lies below the augmented Lagrangian.

    Compare the squared distance from the model with the Lagrangian's excess over the energy, at the mean copy.
    """
    factor = (1.0 - 2.0 * case.a) / ((1.0 if as_printed else 2.0) * case.eta)
    for step in path(case):
        s, x0 = step.after.clients, _mean_of(step.after.clients.x0)
        distance = float(np.mean(client_dot(s.theta - x0, s.theta - x0)))
        excess = float(np.mean(lagrangians(case, s.theta, x0, s.dual) - case.objective.value(x0)))
        bound = excess + float(np.mean(step.errors)) / (2.0 * case.L)
        yield Inequality(step.n, factor * distance, bound, "distance between models, squared")


class Averaging(NamedTuple):
    """A case on which the first or the second relation of (35) is looked at."""

    name: str
    run: Case
    relation: int


def p3_factor_of_lemma_4_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Yield the lemma, then the two relations of (35), the second with a step of 15."""
    lemma = fedpd_case("Lemma 4", heterogeneous(), rounds=10)
    flat = fedpd_case("", nonconvex(2, L=0.01), rounds=10)
    relations = (("first", 1), ("second", 2))
    for case in (lemma, *(Averaging(f"(35), {nth} relation, eta = {flat.eta:.3g}", flat, k) for nth, k in relations)):
        yield ExpectedVerdict(Form(case, printed=True), "violated")
        yield ExpectedVerdict(Form(case, printed=False))


@lemma_4.as_printed(
    source="FedPD Lemma 4, (24), and (35)",
    statement=r"Lemma 4. Printed: $E(x_0) \le \mathcal L - \frac{1-2L\eta}{\eta}\cdots$. Corrected, as in its"
    r" proof: $\frac{1-2L\eta}{2\eta}$. In (35), where $\delta$, $\delta^+$, $\delta^a$ are the mean squared"
    r" distances from $x_{0,j}^r$ to $x_{0,j}^{r+1}$, from $x_{0,j}^r$ to $x_{0,j}^{r+}$, and from there to"
    r" $x_{0,j}^{r+1}$. Printed: $\delta = 2\delta^+ + 2\delta^a$, $2\delta^a \le \frac{N-1}{\eta N}\triangle^2$."
    r" Corrected: $\delta \le 2\delta^+ + 2\delta^a$, $2\delta^a \le \frac{2(N-1)}{N}\triangle^2$.",
    cases=p3_factor_of_lemma_4_cases,
)
def p3_factor_of_lemma_4(form: Form) -> Iterator[Inequality]:
    """P3: the factor of Lemma 4, and (35), in the FedPD paper.

    Compare what Lemma 4 or (35) relates, round by round.
    """
    if isinstance(form.case, Case):
        yield from lemma_4(form.case, as_printed=form.printed)
        return
    case, N = form.case.run, form.case.run.n_clients
    for step in path(case):
        old, own, new = step.before.clients.x0, step.copies, step.after.clients.x0
        whole, local, averaged = (float(np.mean(client_dot(d, d))) for d in (old - new, old - own, own - new))
        if form.case.relation == 2:
            bound = (1.0 / case.eta if form.printed else 2.0) * (N - 1) / N * spread(own) ** 2
            yield Inequality(step.n, 2.0 * averaged, bound, "squared move by averaging")
            continue
        split = 2.0 * local + 2.0 * averaged
        if form.printed:
            yield Inequality(step.n, abs(whole - split), 1e-9 * whole, "difference of the two sides")
        else:
            yield Inequality(step.n, whole, split, "squared move of the copies")


# Theorem 1: Oracle I.


def decrease_factor(*, L: float, eta: float) -> float:
    """Return ``C``, by which the fall of the mean Lagrangian bounds the squared gradients; infinite from c = 0 on.

    Examples
    --------
    >>> round(decrease_factor(L=1.0, eta=0.1), 3), decrease_factor(L=1.0, eta=0.4)
    (127.389, inf)
    """
    a = L * eta
    c = 1.0 - 2.0 * a - 4.0 * a**2
    return 8.0 * ((1.0 + a) ** 2 + 2.0 * a**4) / (eta * c) if c > 0 else math.inf


def start_factor(*, L: float, eta: float) -> float:
    """Return the factor of ``H_0``: what starting from zero duals costs.

    Examples
    --------
    >>> round(start_factor(L=1.0, eta=0.1), 3)
    15.461
    """
    a = L * eta
    return (1.0 - 2.0 * a**2) / (1.0 - a) ** 2 * (decrease_factor(L=L, eta=eta) * eta + 4.0 * a**2)


def accuracy_factor(*, L: float, eta: float, rounds: int) -> float:
    """Return the factor of ``epsilon`` in the mean over ``rounds`` rounds.

    Examples
    --------
    >>> round(accuracy_factor(L=1.0, eta=0.1, rounds=10), 3)
    176.296
    """
    C = decrease_factor(L=L, eta=eta)
    return C * (0.5 / L + 8.0 * eta) + 4.0 + 32.0 * (L * eta) ** 2 + C / (2.0 * L * rounds)


def H_0(case: Case, accuracy: float) -> float:
    r"""Return the mean of :math:`(|\nabla f_j(x^0)| + \sqrt{\varepsilon_1})^2`."""
    norms = np.linalg.norm(case.objective.gradient(case.theta0).reshape(case.n_clients, -1), axis=1)
    return float(np.mean((norms + np.sqrt(accuracy)) ** 2))


class Mean(NamedTuple):
    """What is known after T rounds."""

    T: int
    squared_gradient: float  # the mean of |grad E|^2 at the mean copies of the rounds r < T
    accuracy: float  # epsilon_1 so far


def mean_gradients(case: Case) -> Iterator[Mean]:
    """Yield the means along a path for T = 1, 2, ..."""
    total = 0.0
    for T, step in enumerate(path(case), start=1):
        total += case.squared_gradient(np.mean(step.before.clients.x0, axis=0))
        yield Mean(T, total / T, step.accuracy)


def theorem_1_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Enough rounds for the bound to say something; too few; and a step that is too long."""
    rounds = 300 if quick else 3000
    yield ExpectedVerdict(fedpd_case("nonconvex quadratics", nonconvex(), rounds=2 * rounds))
    yield ExpectedVerdict(fedpd_case("quadratics", heterogeneous(), rounds=rounds))
    yield ExpectedVerdict(fedpd_case("equal Hessians", equal_hessians(), rounds=rounds))
    yield ExpectedVerdict(fedpd_case("quadratics", heterogeneous(), a=0.25, rounds=2 * rounds, tol=1e-3))
    yield ExpectedVerdict(fedpd_case("penalised logistic", penalised(), rounds=500))
    for case in unequal(rounds=rounds):
        yield ExpectedVerdict(case)
    yield ExpectedVerdict(fedpd_case("quadratics, too few rounds", heterogeneous(), rounds=30), "vacuous")
    yield ExpectedVerdict(fedpd_case("quadratics, rough solutions", heterogeneous(), rounds=rounds, tol=1.0), "vacuous")
    yield ExpectedVerdict(fedpd_case("quadratics", heterogeneous(), a=0.5), "outside assumptions")


@claim(
    name="fedpd_theorem_1",
    source="Zhang et al., Theorem 1, with the constants derived again",
    statement=r"With $a = L\eta$, $0 < a < (\sqrt5-1)/4$, p = 0, duals that start at zero, $H_0 ="
    r" \frac1N\sum_j(|\nabla f_j(x^0)| + \sqrt{\varepsilon_1})^2$, $C = \frac{8((1+a)^2+2a^4)}{\eta(1-2a-4a^2)}$, $s ="
    r" \frac{1-2a^2}{(1-a)^2}$: $\frac1T\sum_{r<T}|\nabla E(x_0^r)|^2 \le \frac1T(C(E(x^0)-E^*) + s(C\eta+4a^2)H_0) +"
    r" (\frac{C}{2L}(1+\frac1T) + 8C\eta + 4 + 32a^2)\varepsilon_1$.",
    assumptions=admitted,
    trivial=lambda case: case.squared_gradient(case.theta0),
    cases=theorem_1_cases,
)
def theorem_1(case: Case) -> Iterator[Inequality]:
    """Theorem 1: without skipping the mean squared gradient falls like 1/T, with every constant.

    Compare the means over the first T rounds, T = 1, 2, ...
    """
    return means_and_bounds(case, mean_gradients(case))


def means_and_bounds(case: Case, means: Iterable[Mean]) -> Iterator[Inequality]:
    """Compare means over the first T rounds, or their expectations, with the bound."""
    known = {"L": case.L, "eta": case.eta}
    for T, mean, accuracy in means:
        start = decrease_factor(**known) * case.error(case.theta0) + start_factor(**known) * H_0(case, accuracy)
        bound = start / T + accuracy_factor(rounds=T, **known) * accuracy
        yield Inequality(T, mean, bound, "mean of |grad E|^2")


def appendix_constants(*, L: float, eta: float, repaired: bool = False) -> tuple[float, float]:
    """Return ``C2`` and ``C4`` of Appendix B-C, with ``max(4 L^2, 2)`` for ``4 L^2`` in the first when repaired.

    Examples
    --------
    >>> [round(float(C), 3) for C in appendix_constants(L=0.1, eta=0.1)]
    [4.998, 53.983]
    """
    a = L * eta
    C6 = 3.0 * max(((1.0 + a) / eta) ** 2, (1.0 + 2.0 * eta) ** 2, a**2)
    C7 = 2.0 * C6 / min((1.0 - 2.0 * a - 4.0 * a**2) / (2.0 * eta), 1.0 / (2.0 * eta), (1.0 + 8.0 * a) / (2.0 * L))
    C2 = (max(4.0 * L**2, 2.0) if repaired else 4.0 * L**2) * C7
    return C2, C2 * (1.0 + 8.0 * a) / L


def theorem_1_of_the_appendix(case: Case, *, repaired: bool) -> Iterator[Inequality]:
    """Compare as in Theorem 1, with the constants of the appendix."""
    C2, C4 = appendix_constants(L=case.L, eta=case.eta, repaired=repaired)
    for T, mean, accuracy in mean_gradients(case):
        yield Inequality(T, mean, C2 * case.error(case.theta0) / T + C4 * accuracy, "mean of |grad E|^2")


def p1_scale_of_constants_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Yield small curvature, where the printed constant is too small, and a large one, where it is not."""
    for L, eta in ((0.01, 0.3), (0.05, 0.3)):
        yield ExpectedVerdict(Form(two_alike(L, eta), printed=True), "violated")
        yield ExpectedVerdict(Form(two_alike(L, eta), printed=False))
    yield ExpectedVerdict(Form(two_alike(1.0, 0.2), printed=True))


def two_alike(L: float, eta: float) -> Case:
    """Return two clients with the same quadratic of curvature ``L``, far from its minimum."""
    f = Quadratic(A=L * np.ones((2, 1, 1)), b=np.zeros((2, 1)))
    return fedpd_case(f"L = {L:g}, eta = {eta:g}", f, a=L * eta, rounds=400, theta0=np.ones(1))


@theorem_1.as_printed(
    source="FedPD Theorem 1, Appendix B-C and (44)",
    statement=r"$\frac1T\sum_{r<T}|\nabla E(x_0^r)|^2 \le \frac{C_2}{T}(E(x^0) - E^*) + C_4\varepsilon_1$. Printed:"
    r" $C_2 = 4L^2C_7$, which the step after (44) allows for $4L^2 \ge 2$ only. Corrected: $C_2 = \max\{4L^2, 2\}C_7$.",
    cases=p1_scale_of_constants_cases,
)
def p1_scale_of_constants(form: Form) -> Iterable[Inequality]:
    """P1: the constant C2 of Theorem 1 in the FedPD paper.

    Compare with either constant.
    """
    return theorem_1_of_the_appendix(form.case, repaired=not form.printed)


def p8_initial_duals_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Clients that disagree, from the minimiser of their mean."""
    for name, f in (("quadratics", heterogeneous()), ("nonconvex quadratics", nonconvex())):
        case = fedpd_case(f"{name}, from the minimiser", f, rounds=30, theta0=f.minimiser())
        yield ExpectedVerdict(Form(case, printed=True), "violated")
        yield ExpectedVerdict(Form(case, printed=False))


@theorem_1.as_printed(
    source="FedPD Theorem 1, (26) at r = 1",
    statement=r"From duals zero, $\frac1T\sum_{r<T}|\nabla E(x_0^r)|^2$ is bounded, for exact local solutions."
    r" Printed: by $\frac{C_2}{T}(E(x^0) - E^*)$, so that a run from the minimiser stays there; (26)"
    r" takes $\lambda_j^0 = -\nabla f_j(x_j^0)$. Corrected: a multiple of"
    r" $\frac1N\sum_j|\nabla f_j(x^0)|^2$ is added.",
    cases=p8_initial_duals_cases,
)
def p8_initial_duals(form: Form) -> Iterable[Inequality]:
    """P8: Theorem 1 of the FedPD paper measures the start by the energy alone.

    Compare with the bound from the energy alone, or with that of the theorem.
    """
    return theorem_1_of_the_appendix(form.case, repaired=True) if form.printed else theorem_1(form.case)


# Theorem 2: Oracle II.

ORDER = 1.0
RUNS = 3  # with samples


def step_limit(*, L: float, steps: int, refresh: int, batch: float) -> float:
    """Return the limit of ``eta``.

    Examples
    --------
    >>> round(step_limit(L=1.0, steps=2, refresh=8, batch=4), 6)
    0.083333
    """
    return 1.0 / (3.0 * (steps + math.sqrt(steps * refresh / batch)) * L)


def length_limit(*, L: float, eta: float, batch: float) -> float:
    """Return what ``gamma`` must exceed, as printed.

    Examples
    --------
    >>> length_limit(L=4.0, eta=0.1, batch=1)
    0.25
    """
    return 5.0 * eta / (batch * math.sqrt(L))


def oracle_2_admitted(case: Case) -> list[str]:
    """Return what fails of the ranges of both steps."""
    solver, steps = case.algorithm.solver, case.algorithm.stop.steps
    known = {"L": case.L, "batch": solver.batch or min(case.objective.sizes)}
    short = case.eta < step_limit(steps=steps, refresh=solver.refresh, **known)
    eta = [] if short else ["eta < 1/(3(Q+sqrt(QI/B))L)"]
    return eta + ([] if solver.gamma > length_limit(eta=case.eta, **known) else ["gamma > 5 eta/(B sqrt(L))"])


def oracle_2(
    name: str,
    objective: Any,
    theta0: Array,
    *,
    steps: int,
    rounds: int,
    refresh: int = 8,
    batch: int | None = None,
) -> Case:
    """Start FedPD with Oracle II and samples of ``batch`` rows, or of every row, so that nothing is random."""
    known = {"L": float(np.max(objective.L)), "batch": batch or min(objective.sizes)}
    eta = 0.9 * step_limit(steps=steps, refresh=refresh, **known)
    solver = Sarah(gamma=1.1 * length_limit(eta=eta, **known), batch=batch, refresh=refresh)
    return Case(
        name=f"{name}, Q = {steps}" + (f", B = {batch}" if batch else ""),
        algorithm=FedPD(eta=eta, solver=solver, stop=Steps(steps=steps)),
        objective=objective,
        lowest=0.0,
        theta0=theta0,
        rounds=rounds,
        known=known_of(objective, 0.0),
    )


def _noisy_rows() -> tuple[LinearModel, Array]:
    """Return least squares with noise, and a point so near the solution that samples without memory would show."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((12, 2))
    X = X / np.linalg.norm(X, axis=1, keepdims=True)
    y = X @ np.array([1.0, -2.0]) + rng.standard_normal(12)
    f = linear_model(X, y, loss=Squared(), mu=0.0, clients=3, intercept=False)
    return f, np.linalg.solve(X.T @ X, X.T @ y) + 0.1


def theorem_2_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Separable rows, whose gradients are squares of 1/n; the paper's nonconvex problem; samples of noisy rows."""
    X = np.array([[1.0, 0.2], [0.8, -0.1], [1.5, 0.3], [0.6, 0.0]])
    slow = linear_model(X, np.ones(4), loss=Logistic(), mu=0.0, clients=2, intercept=False)
    rounds = 250 if quick else 5000
    for name, f, start in (("separable logistic", slow, 0.0), ("penalised logistic", penalised(), 2.0)):
        for steps in (1, 4):
            yield ExpectedVerdict(oracle_2(name, f, start * np.ones(f.shape), steps=steps, rounds=rounds))
    f, start = _noisy_rows()
    for steps in (1,) if quick else (1, 4):
        rounds = 120 if steps == 1 else 1000
        yield ExpectedVerdict(oracle_2("least squares", f, start, steps=steps, rounds=rounds, batch=1))
    long = FedPD(eta=1.0, solver=Sarah(gamma=9.0), stop=Steps(steps=1))
    case = oracle_2("separable logistic, eta = 1", slow, np.zeros(2), steps=1, rounds=20)
    yield ExpectedVerdict(case.but(algorithm=long), "outside assumptions")


@claim(
    name="fedpd_theorem_2",
    source="Zhang et al., Theorem 2, (10)",
    statement=r"Oracle II with $p = 0$, $0 < \eta < \frac{1}{3(Q+\sqrt{QI/B})L}$ and $\gamma > \frac{5\eta}{B\sqrt L}$:"
    r" $\frac1T\sum_{r<T}\mathbb E|\nabla E(x_0^r)|^2 \le \frac{C_9}{T}(E(x^0)-E^*)$ with a constant that is not given;"
    r" checked is the order, with all rows in every sample, and with one of four rows in the mean of three runs.",
    assumptions=oracle_2_admitted,
    constant="hidden",
    cases=theorem_2_cases,
)
def theorem_2(case: Case) -> Iterator[Inequality]:
    """Theorem 2: Oracle II makes the mean squared gradient fall like 1/T; the constant is not given.

    The expectation over samples is estimated by the mean of a few runs: an order needs no more.

    Compare the order with the largest that the run allows; the mean can never fall faster than 1/T.
    """
    drawn = case.algorithm.solver.batch is not None
    runs = [case.but(seed=seed) for seed in range(RUNS)] if drawn else [case]
    means = np.mean([[mean for _, mean, _ in mean_gradients(run)] for run in runs], axis=0).tolist()
    falls = np.all(np.isfinite(means))
    order = estimate_order([means[0], *means]).high if falls else -math.inf
    yield Inequality(case.rounds, ORDER, order, "order")


FACTOR = 1024.0  # a power of two: multiplication by it does not round


class Pair(NamedTuple):
    """Oracle II on ``f`` and, with steps divided by ``FACTOR``, on ``FACTOR f``."""

    name: str
    plain: Case
    scaled: Case


def p7_dimension_of_gamma_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Logistic losses, and 1024 times them."""
    plain = oracle_2("logistic", _rows(1.0), np.ones(2), steps=2, rounds=10)
    solver = replace(plain.algorithm.solver, gamma=plain.algorithm.solver.gamma / FACTOR)
    divided = replace(plain.algorithm, eta=plain.eta / FACTOR, solver=solver)
    pair = Pair("f and 1024 f", plain, plain.but(objective=_rows(FACTOR), algorithm=divided))
    yield ExpectedVerdict(Form(pair, printed=True), "violated")
    yield ExpectedVerdict(Form(pair, printed=False))


def _rows(factor: float) -> LinearModel:
    rng = np.random.default_rng(4)
    X, y = rng.standard_normal((12, 2)), np.sign(rng.standard_normal(12))
    weights = np.full(12, factor / 4.0)
    return linear_model(X, y, loss=Logistic(), mu=0.0, clients=3, weights=weights, intercept=False)


@theorem_2.as_printed(
    source="FedPD Theorem 2",
    statement=r"FedPD with Oracle II makes the same models from $cf_j$ with $\eta/c$, $\gamma/c$ as from $f_j$ with"
    r" $\eta$, $\gamma$, so that a condition must admit both or neither. Printed: $\gamma > \frac{5\eta}{B\sqrt L}$."
    r" Corrected: a multiple of $\eta$ by a function of $L\eta$, B, Q and I, such as"
    r" $\gamma > \frac{5\eta}{B\sqrt{L\eta}}$.",
    cases=p7_dimension_of_gamma_cases,
)
def p7_dimension_of_gamma(form: Form) -> Iterator[Inequality]:
    """P7: the condition on gamma in Theorem 2 of the FedPD paper.

    Compare the models of both runs, and how far the condition leaves gamma from its limit.
    """
    plain, scaled = form.case.plain, form.case.scaled
    for one, other in zip(path(plain), path(scaled), strict=True):
        x, y = one.after.server.theta, other.after.server.theta
        apart = deviation(x, y, scale=float(np.max(np.abs(x))))
        yield Inequality(one.n, apart, 1e-12, "difference of the models")

    def limit_over_gamma(case: Case) -> float:
        known = {"eta": case.eta, "batch": min(case.objective.sizes)}
        return length_limit(L=case.L if form.printed else case.a, **known) / case.algorithm.solver.gamma

    ratio = limit_over_gamma(plain)
    yield Inequality(plain.rounds, abs(ratio - limit_over_gamma(scaled)), 1e-12 * ratio, "difference of limit/gamma")
