r"""The regulariser g in equation (6) of the A-FedPD paper: FedADMM on :math:`\frac1N\sum_jf_j + g`.

The term :math:`g(\theta^t)` of the local problem is a constant and does nothing. The server's step minimises the
augmented Lagrangian over the model, :math:`g(\theta) + \frac1N\sum_j(\langle\lambda_j, \theta_j - \theta\rangle +
\frac\rho2|\theta_j - \theta|^2) = g(\theta) + \frac\rho2|\theta - \bar\theta|^2 + \text{const}` with :math:`\bar\theta
= \frac1N\sum_j(\theta_j + \lambda_j/\rho)`. Printed is :math:`\frac1{2\rho}|\theta - \bar\theta|^2` (A11): there a
fixed point has :math:`\lambda_j = -\nabla f_j(\theta)`, :math:`\bar\theta - \theta = -\nabla E(\theta)/\rho`, and so
:math:`-\nabla E(\theta) \in \rho^2\,\partial g(\theta)`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from dualopt.arrays.xp import Array
from dualopt.lab.claims import Inequality, claim
from theory._cases import Case
from theory._claims import ExpectedVerdict, Form, deviation
from theory._problems import lopsided, quadratic


def composite_case(f: Case, rho: float, *, ridge: float, rounds: int = 400) -> Case:
    """Return quadratic clients with the regulariser ``(ridge/2)|.|^2``, and the weight ``rho``."""
    name = f"{f.name}, ridge {ridge:g}, rho = {rho:g}"
    return Case(name=name, objective=f.objective, rounds=rounds, known={"rho": rho, "ridge": ridge})


def models(case: Case, *, as_printed: bool = False) -> Iterator[Array]:
    """Yield the models of (6) with all clients and exact local solutions, by its letters."""
    f, rho, m = case.objective, case.rho, case.ridge
    N, d = f.b.shape
    inverse = np.linalg.inv(f.A + rho * np.eye(d))
    theta, duals = np.zeros(d), np.zeros((N, d))
    for _ in range(case.rounds):
        local = np.einsum("jkl,jl->jk", inverse, f.b - duals + rho * theta)
        duals = duals + rho * (local - theta)
        bar = np.mean(local + duals / rho, axis=0)
        weight = 1.0 / rho if as_printed else rho
        theta = weight * bar / (weight + m)
        yield theta


def equation_6_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Weights below and above one."""
    for f, rho in ((quadratic(), 8.0), (lopsided(), 3.0), (lopsided(), 0.7)):
        yield ExpectedVerdict(composite_case(f, rho, ridge=2.0))


@claim(
    name="afedpd_equation_6",
    source="Sun, Shen and Tao, equation (6) with g (corrected)",
    statement=r"With all clients, exact local solutions and $\theta^{t+1} = \arg\min g(\theta) + \frac\rho2|\theta -"
    r" \bar\theta^{t+1}|^2$, $g = \frac m2|\cdot|^2$ on quadratics, the models of (6) tend to the minimiser of"
    r" $\frac1N\sum_jf_j + g$ (checked to 1e-9).",
    cases=equation_6_cases,
)
def equation_6(case: Case, *, as_printed: bool = False) -> Iterator[Inequality]:
    """Equation (6): where FedADMM with a regulariser ends.

    Compare the last model with the minimiser.
    """
    f = case.objective
    best = np.linalg.solve(np.mean(f.A, axis=0) + case.ridge * np.eye(f.shape[0]), np.mean(f.b, axis=0))
    *_, last = models(case, as_printed=as_printed)
    yield Inequality(case.rounds, deviation(last, best), 1e-9, "limit")


def a11_weight_of_the_server_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Yield a weight other than one; with rho = 1 both forms agree."""
    case = composite_case(lopsided(), 3.0, ridge=2.0)
    yield ExpectedVerdict(Form(case, printed=True), "violated")
    yield ExpectedVerdict(Form(case, printed=False))


@equation_6.as_printed(
    source="A-FedPD (6)",
    statement=r"FedADMM with g tends to the minimiser of $\frac1N\sum_jf_j + g$. Printed: $\theta^{t+1} = \arg\min"
    r" g(\theta) + \frac1{2\rho}|\theta - \bar\theta^{t+1}|^2$, whose fixed points solve"
    r" $-\nabla E \in \rho^2\partial g$. Corrected: $\frac\rho2$ in the place of $\frac1{2\rho}$.",
    cases=a11_weight_of_the_server_cases,
)
def a11_weight_of_the_server(form: Form) -> Iterable[Inequality]:
    """A11: the weight of the server's proximal step in (6) of the A-FedPD paper.

    Compare the last model of either form.
    """
    return equation_6(form.case, as_printed=form.printed)
