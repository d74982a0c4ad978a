"""FedAvg in the FedPD paper: it converges where gradients are bounded (A3), and diverges where they are not.

Appendix D of the first version and Claim II.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dualopt.arrays.xp import Array
from dualopt.engine.rounds import advance, initial_state
from dualopt.lab.claims import Inequality, claim
from dualopt.methods import FedAvg
from dualopt.objectives import LinearModel, Quadratic
from dualopt.solvers import Gradient
from dualopt.solvers.stopping import Steps
from theory._cases import everybody
from theory._claims import ExpectedVerdict, Form
from theory.fedpd._runs import logistic

# Local steps.


class Vanishing(NamedTuple):
    """Steps ``first / (r + 1)^power``, constant for the power 0."""

    first: float
    power: float = 0.0

    def __call__(self, n: int) -> float:
        """Return the length of the steps of round ``n``."""
        return self.first / (n + 1.0) ** self.power


class LocalRound(NamedTuple):
    """One round: its step and the mean of the clients' models after 0, 1, ..., Q local steps."""

    n: int
    step: float
    means: list[Array]


def _gradient_steps(length: float, steps: int) -> FedAvg:
    return FedAvg(solver=Gradient(step=length), stop=Steps(steps=steps))


@dataclass(frozen=True, kw_only=True, eq=False)
class LocalSteps:
    """FedAvg with Q gradient steps of a length that may change from round to round.

    Attributes
    ----------
    name : str
        For tables.
    objective : Objective
        The clients.
    schedule : callable
        Maps the index of a round to the length of its steps.
    steps : int
        The paper's ``Q``.
    rounds : int
        How many rounds to look at.
    G : float
        Bound of all clients' gradients (A3 with D = 0).
    lowest : float, default 0
        A lower bound of ``E``.
    start : array, shape ``shape``, optional
        The first model; zero when not given.
    algorithm : callable
        Maps a length and a number of gradient steps to the method.
    """

    name: str
    objective: Any
    schedule: Callable[[int], float]
    steps: int
    rounds: int
    G: float
    lowest: float = 0.0
    start: Array | None = None
    algorithm: Callable[[float, int], FedAvg] = _gradient_steps

    @property
    def L(self) -> float:
        """Largest smoothness constant."""
        return float(np.max(self.objective.L))

    def run(self) -> Iterator[LocalRound]:
        """Follow the run; the mean after q local steps is the model of a round with q of them."""
        f = self.objective
        theta, round = f.zeros() if self.start is None else self.start, everybody(f.n_clients)
        for n in range(self.rounds):
            length, means = self.schedule(n), [theta]
            for q in range(1, self.steps + 1):
                method = self.algorithm(length, q)
                after, _, _ = advance(method, f, initial_state(method, f, theta), round)
                means.append(after.server.theta)
            yield LocalRound(n, length, means)
            theta = means[-1]

    def squared_gradient(self, theta: Array) -> float:
        r"""Return :math:`|\nabla E(\theta)|^2`."""
        return float(np.sum(np.mean(self.objective.gradient(theta), axis=0) ** 2))


def bounded_gradient(objective: LinearModel) -> float:
    r"""Return :math:`G \ge (\frac1N\sum_j |\nabla f_j|^2)^{1/2}` for losses of slope at most 1 without a ridge.

    Examples
    --------
    >>> from dualopt.losses import Logistic
    >>> from dualopt.objectives import linear_model
    >>> round(bounded_gradient(linear_model(np.eye(2), np.ones(2), loss=Logistic(), mu=0.0, intercept=False)), 9)
    1.0
    """
    assert objective.ridge == 0
    sizes = [float(np.sum(w * np.linalg.norm(X, axis=1))) for X, _, w in objective.client_rows()]
    return float(np.sqrt(np.mean(np.square(sizes))))


def squares(steps: int) -> int:
    """Return ``0^2 + 1^2 + ... + (Q-1)^2``, which sums the drifts of one round.

    Examples
    --------
    >>> squares(4)
    14
    """
    return (steps - 1) * steps * (2 * steps - 1) // 6


def short(case: LocalSteps) -> list[str]:
    """Return what fails of ``eta <= 1/L``."""
    return [] if case.schedule(0) <= 1.0 / case.L else ["eta <= 1/L"]


def on_rows(name: str, multiple: float, power: float = 0.0, *, steps: int, rounds: int) -> LocalSteps:
    """Return FedAvg with steps ``multiple/(L (r+1)^power)`` on logistic losses, whose gradients are bounded."""
    f = logistic(mu=0.0)
    schedule = Vanishing(multiple / float(np.max(f.L)), power)
    return LocalSteps(name=name, objective=f, schedule=schedule, steps=steps, rounds=rounds, G=bounded_gradient(f))


# Lemma 5 and Claim D.1: FedAvg where gradients are bounded.


def lemma_5_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """One local step, where the bound is that of gradient descent, several, and a step that is too long."""
    for steps in (1, 2, 8):
        for multiple in (0.02, 1.0):
            name = f"logistic, Q = {steps}, eta = {multiple:g}/L"
            yield ExpectedVerdict(on_rows(name, multiple, steps=steps, rounds=20))
    yield ExpectedVerdict(on_rows("eta = 3/L", 3.0, steps=2, rounds=20), "outside assumptions")


@claim(
    name="fedpd_lemma_5",
    source="Zhang et al., first version, Lemma 5",
    statement=r"FedAvg with Q steps $\eta \le 1/L$ and $\frac1N\sum_j|\nabla f_j|^2 \le G^2$ everywhere:"
    r" $\frac\eta2\sum_{q<Q}|\nabla E(\bar x^q)|^2 \le E(\bar x^0) - E(\bar x^Q) + \frac{\eta^3L^2G^2}{2}"
    r" \frac{(Q-1)Q(2Q-1)}{6}$.",
    assumptions=short,
    cases=lemma_5_cases,
)
def lemma_5(case: LocalSteps) -> Iterator[Inequality]:
    r"""Lemma 5 of the first version: FedAvg decreases the energy when gradients are bounded.

    The text that is available has lost the formulas of the lemma; this is the statement that its proof leads to. The
    mean :math:`\bar x^q` of the clients after ``q`` local steps moves by :math:`-\eta\bar g^q`, the mean gradient at
    their own points. By A1 and :math:`2\langle\nabla E, \bar g\rangle = |\nabla E|^2 + |\bar g|^2 - |\nabla E - \bar
    g|^2`,

    .. math:: E(\bar x^{q+1}) \le E(\bar x^q) - \tfrac\eta2|\nabla E(\bar x^q)|^2 - \tfrac\eta2(1 - L\eta)|\bar g^q|^2
              + \tfrac{\eta L^2}{2}\,\mathrm{mean}\,|x_j^q - \bar x^q|^2,

    and :math:`x_j^q - \bar x^q` is a sum of ``q`` steps, whose squares are at most :math:`\eta^2G^2` on average (A3).

    Compare the squared gradients of every round with the decrease of the energy that bounds them.
    """
    f = case.objective
    for n, step, means in case.run():
        gradients = 0.5 * step * sum(case.squared_gradient(x) for x in means[:-1])
        decrease = float(np.mean(f.value(means[0])) - np.mean(f.value(means[-1])))
        drift = 0.5 * step**3 * case.L**2 * squares(case.steps) * case.G**2
        yield Inequality(n, gradients, decrease + drift, "eta/2 sum_q |grad E|^2")


def claim_d_1_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Yield steps that vanish slowly; faster; and a constant one, whose bound does not vanish."""
    rounds = 150 if quick else 1500
    for multiple, power, steps in ((0.3, 0.5, 3), (0.5, 1 / 3, 2)):
        name = f"logistic, Q = {steps}, eta = {multiple:g}/(L (r+1)^{power:.2g})"
        yield ExpectedVerdict(on_rows(name, multiple, power, steps=steps, rounds=rounds))
    yield ExpectedVerdict(on_rows("logistic, Q = 8, eta = 1/L", 1.0, steps=8, rounds=30), "vacuous")


@claim(
    name="fedpd_claim_d_1",
    source="Zhang et al., first version, Claim D.1",
    statement=r"FedAvg with Q steps of length $\eta_r \le 1/L$ in round r and $\frac1N\sum_j|\nabla f_j|^2 \le G^2$:"
    r" $\frac{\sum_r\eta_r\sum_{q<Q}|\nabla E(\bar x^{r,q})|^2}{Q\sum_r\eta_r} \le \frac{2(E(x^0) - \inf E) +"
    r" L^2G^2\frac{(Q-1)Q(2Q-1)}{6}\sum_r\eta_r^3}{Q\sum_r\eta_r}$, which vanishes if $\eta_r \to 0$ and $\sum\eta_r ="
    r" \infty$.",
    assumptions=short,
    trivial=lambda case: case.squared_gradient(case.objective.zeros()),
    cases=claim_d_1_cases,
)
def claim_d_1(case: LocalSteps) -> Iterator[Inequality]:
    """Claim D.1 of the first version: with bounded gradients FedAvg converges for every vanishing step.

    Compare the mean squared gradient, weighted by the steps, with Lemma 5 summed over the rounds.
    """
    f, Q = case.objective, case.steps
    excess = float(np.mean(f.value(f.zeros()))) - case.lowest
    total = weight = cubes = 0.0
    for n, step, means in case.run():
        total += step * sum(case.squared_gradient(x) for x in means[:-1])
        weight += step
        cubes += step**3
        bound = (2.0 * excess + case.L**2 * case.G**2 * squares(Q) * cubes) / (Q * weight)
        yield Inequality(n, total / (Q * weight), bound, "weighted mean of |grad E|^2")


# Claim II.2: FedAvg where gradients are not bounded.


def p4_factors_of_fedavg_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Two steps and more; the conclusion, divergence, is the same."""
    f = Quadratic(A=np.array([[[2.0]], [[-2.0]]]), b=np.zeros((2, 1)))
    for eta, Q in ((0.1, 2), (0.05, 6)):
        name, schedule, start = f"eta = {eta:g}, Q = {Q}", Vanishing(eta), np.ones(1)
        case = LocalSteps(name=name, objective=f, schedule=schedule, steps=Q, rounds=5, G=np.inf, start=start)
        yield ExpectedVerdict(Form(case, printed=True), "violated")
        yield ExpectedVerdict(Form(case, printed=False))


@claim(
    source="FedPD Appendix A, (14)",
    statement=r"On $f_1 = x^2$, $f_2 = -x^2$ a round of FedAvg multiplies the model by $\frac12((1-c\eta)^Q +"
    r" (1+c\eta)^Q)$, which exceeds 1 for $Q \ge 2$. Printed: c = 1. Corrected: c = 2.",
    corrects="Appendix A",
    cases=p4_factors_of_fedavg_cases,
)
def p4_factors_of_fedavg(form: Form) -> Iterator[Inequality]:
    """P4: the factors of FedAvg on f = x^2 and f = -x^2 in Appendix A of the FedPD paper.

    Compare the factor of a round with the mean of the two clients' factors, and with 1.
    """
    case: LocalSteps = form.case
    move = (1.0 if form.printed else 2.0) * case.schedule(0)
    stated = 0.5 * ((1.0 - move) ** case.steps + (1.0 + move) ** case.steps)
    for n, _, means in case.run():
        factor = float(means[-1][0] / means[0][0])
        yield Inequality(n, abs(factor - stated), 1e-12 * stated, "error of the factor")
        yield Inequality(n, 1.0, factor, "1 and the factor")
