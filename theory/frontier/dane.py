r"""AndersonDANE on quadratics: the mean of inverse Hessians as a preconditioner, and mixtures in its own inner product.

Write :math:`H = \frac1N\sum_j H_j`, :math:`K = \frac1N\sum_j (H_j + w)^{-1}`. With mean gradient
:math:`g = H(\theta - \theta^*)` a client's solution is :math:`x_j = \theta - (H_j + w)^{-1}g`, so that
:math:`r = \bar x - \theta = -Kg`.

**Spectrum.** For :math:`\mu \le H_j \le L`, :math:`(H_j - \mu)(L - H_j) \ge 0` reads :math:`H_j^{-1} \le \frac{L + \mu
- H_j}{L\mu}`. In the mean :math:`K \le \frac{L + \mu - H}{L\mu} \le \frac{(L + \mu)^2}{4L\mu}H^{-1}`, since
:math:`(L + \mu)h - h^2 \le (L + \mu)^2/4`; and :math:`K \ge H^{-1}`, the inverse being operator convex. So

.. math:: H^{-1} \le K \le \tfrac{(\kappa + 1)^2}{4\kappa} H^{-1} \quad (w = 0), \tag{1}

and with :math:`H_j + w`, whose bounds are :math:`\mu + w` and :math:`L + w`, the eigenvalues of KH lie between
:math:`\frac\mu{\mu + w}` and :math:`\frac{(L + \mu + 2w)^2}{4(L + w)(\mu + w)}\frac L{L + w}`. If :math:`(1 -
\epsilon)H \le H_j \le (1 + \epsilon)H`, then :math:`H^{1/2}H_j^{-1}H^{1/2} = (I + E_j)^{-1} = I - E_j + E_j^2(I +
E_j)^{-1}` with :math:`|E_j| \le \epsilon`, :math:`\sum E_j = 0`, and the mean gives

.. math:: H^{-1} \le K \le \bigl(1 + \tfrac{\epsilon^2}{1 - \epsilon}\bigr)H^{-1}. \tag{2}

**The iteration.** :math:`\theta \mapsto \theta + \eta r` is affine and takes r to :math:`(I - \eta KH)r`, which is
self-adjoint in :math:`\langle u, v\rangle_{K^{-1}} = u^TK^{-1}v` because :math:`K^{-1}(I - \eta KH) = K^{-1} - \eta H`
is symmetric: it contracts by :math:`q = \max_k|1 - \eta k|` over the eigenvalues k of KH. In that product
:math:`\langle r^i, r^k\rangle_{K^{-1}} = -\langle r^i, g^k\rangle`, which the server knows. As for AndersonFedSplit,

.. math:: |r^{n+1}|_{K^{-1}} \le q\,\bigl|\textstyle\sum a_i r^i\bigr|_{K^{-1}}
          \le q\sqrt{1 + \lambda}\,|r^n|_{K^{-1}}. \tag{3}

DANE is :math:`\eta = 1` without memory, and :math:`q \le \frac{\epsilon^2}{1 - \epsilon}` by (2). By (1) a client's
difference alone makes it diverge where :math:`\frac{(\kappa + 1)^2}{4\kappa} > 2`, two clients are enough.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dualopt.arrays.xp import Array
from dualopt.lab.claims import Inequality, claim
from dualopt.methods import AndersonDANE
from dualopt.methods._anderson import regularisation
from dualopt.objectives import Quadratic
from theory._cases import EPSILON, Case, accurately
from theory._claims import ROUNDING, ExpectedVerdict
from theory._problems import flat_quadratic, hard_quadratic, logistic, lopsided, quadratic, solved
from theory.baselines._runs import baseline_case, smooth_and_strongly_convex

__all__ = ["anderson_dane_quadratics", "dane_spectrum"]

ROUNDS = 30
VISIBLE = 1e-7  # of the first residual


def opposite(kappa: float) -> Case:
    """Return two clients with the curvatures 1 and kappa in exchanged directions: as different as they can be."""
    A = np.stack([np.diag([1.0, kappa]), np.diag([kappa, 1.0])])
    return solved(f"opposite clients (kappa={kappa:g})", Quadratic(A=A, b=np.array([[1.0, -2.0], [3.0, 1.0]])))


def alike(epsilon: float, *, n: int = 4, L: float = 1000.0) -> Case:
    """Return clients within ``epsilon`` of their mean, whose eigenvalues are from 1 to L."""
    rng = np.random.default_rng(5)
    root = np.diag(np.sqrt(np.geomspace(1.0, L, 5)))
    E = rng.standard_normal((n, 5, 5))
    E = E + np.swapaxes(E, 1, 2)
    E = E - np.mean(E, axis=0)
    E = epsilon * E / max(np.linalg.norm(part, 2) for part in E)
    A = root @ (np.eye(5) + E) @ root
    f = Quadratic(A=0.5 * (A + np.swapaxes(A, 1, 2)), b=rng.standard_normal((n, 5)) * np.diag(root))
    return solved(f"alike clients (epsilon={epsilon:g})", f)


def preconditioner(f: Quadratic, weight: float) -> Array:
    """Return ``K``."""
    return np.mean(np.linalg.inv(f.A + weight * np.eye(f.shape[0])), axis=0)


def eigenvalues(f: Quadratic, weight: float) -> Array:
    """Return the eigenvalues of KH in ascending order, by the symmetric matrix that is similar to it."""
    root = np.linalg.cholesky(np.mean(f.A, axis=0))
    return np.linalg.eigvalsh(root.T @ preconditioner(f, weight) @ root)


# The spectrum.


@dataclass(frozen=True, kw_only=True)
class Spectrum:
    """Clients, the weight of the proximal term, and how alike they are, if that is known."""

    name: str
    objective: Quadratic
    weight: float = 0.0
    epsilon: float | None = None
    attained: bool = False


def spectrum(mu: float, L: float, w: float) -> tuple[float, float]:
    """Return the bounds of the eigenvalues of KH."""
    return mu / (mu + w), (L + mu + 2.0 * w) ** 2 / (4.0 * (L + w) * (mu + w)) * L / (L + w)


def dane_spectrum_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Different clients with and without a proximal term, the most different ones, and alike ones."""
    for f in (quadratic(), lopsided(), hard_quadratic()):
        for weight in (0.0, 3.0):
            case = Spectrum(name=f"{f.name}, w = {weight:g}", objective=f.objective, weight=weight)
            yield ExpectedVerdict(case)
    for kappa in (4.0, 100.0):
        f = opposite(kappa)
        yield ExpectedVerdict(Spectrum(name=f.name, objective=f.objective, attained=True))
    for epsilon in (0.05, 0.3, 0.8):
        f = alike(epsilon)
        yield ExpectedVerdict(Spectrum(name=f.name, objective=f.objective, epsilon=epsilon))


@claim(
    source="derived here (operator forms of the inequalities of Jensen and Kantorovich)",
    statement=r"The eigenvalues of $\frac1N\sum_j(H_j + w)^{-1}\,H$, $H = \frac1N\sum_jH_j$,"
    r" $\mu \le H_j \le L$, lie in $[\frac\mu{\mu + w}, \frac{(L + \mu + 2w)^2}{4(L + w)(\mu + w)}\frac L{L + w}]$; for"
    r" $w = 0$ that is $[1, \frac{(\kappa + 1)^2}{4\kappa}]$, and two clients attain the upper end. If"
    r" $(1 - \epsilon)H \le H_j \le (1 + \epsilon)H$, they are at most $1 + \frac{\epsilon^2}{1 - \epsilon}$ for"
    r" $w = 0$.",
    rtol=ROUNDING,
    cases=dane_spectrum_cases,
)
def dane_spectrum(case: Spectrum) -> Iterator[Inequality]:
    """DANE: the mean of inverse Hessians is more than the inverse of the mean, and by how much.

    Compare the extreme eigenvalues with their bounds.
    """
    found = eigenvalues(case.objective, case.weight)
    least, most = spectrum(float(np.min(case.objective.mu)), float(np.max(case.objective.L)), case.weight)
    yield Inequality(0, least, float(found[0]), "least eigenvalue")
    yield Inequality(0, float(found[-1]), most, "largest eigenvalue")
    if case.attained:
        yield Inequality(0, most, float(found[-1]), "largest eigenvalue, attained")
    if case.epsilon is not None:
        bound = 1.0 + case.epsilon**2 / (1.0 - case.epsilon)
        yield Inequality(0, float(found[-1]), bound, "largest eigenvalue, alike clients")


# The iteration.


def dane_case(f: Case, *, memory: int = 10, eta: float = 0.2, weight: float = 0.0, attained: bool = False) -> Case:
    """Return the method, started away from the minimiser."""
    method = AndersonDANE(weight=weight, eta=eta, memory=memory, **accurately(f.objective))
    start = f.theta + np.random.default_rng(3).standard_normal(f.theta.shape)
    note = f"m = {memory}, eta = {eta:g}, w = {weight:g}"
    return baseline_case(f, method, ROUNDS, note, theta0=start, attained=attained)


def contracts(case: Case) -> list[str]:
    """Return what fails: quadratic clients, and a plain step that contracts."""
    if not isinstance(case.objective, Quadratic):
        return ["quadratic clients"]
    missing = smooth_and_strongly_convex(case)
    if not missing and factor_of(case) >= 1:
        missing.append("eta below 2 over the largest eigenvalue")
    return missing


def factor_of(case: Case) -> float:
    """Return ``q``."""
    return float(np.max(np.abs(1.0 - case.algorithm.eta * eigenvalues(case.objective, case.algorithm.weight))))


def anderson_dane_quadratics_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Alike and different clients, memories, steps and a proximal term; steps that are too long."""
    for memory in (1, 3, 10):
        yield ExpectedVerdict(dane_case(quadratic(), memory=memory, eta=0.1))
        yield ExpectedVerdict(dane_case(alike(0.3), memory=memory, eta=1.0))
    yield ExpectedVerdict(dane_case(lopsided()))
    yield ExpectedVerdict(dane_case(hard_quadratic(), weight=20.0))
    yield ExpectedVerdict(dane_case(opposite(4.0), eta=1.0, memory=1, attained=True))
    yield ExpectedVerdict(dane_case(opposite(100.0), eta=1.0), "outside assumptions")
    for f in (flat_quadratic(), logistic()):
        yield ExpectedVerdict(dane_case(f, weight=1.0), "outside assumptions")


@claim(
    source="derived here; without memory Shamir, Srebro and Zhang 2014 (recalled)",
    statement=r"For strongly convex quadratic clients, exact solutions, $K = \frac1N\sum_j(H_j + w)^{-1}$ and any"
    r" memory, in the norm of $K^{-1}$, with the least over $\sum_ia_i = 1$:"
    r" $|r^{n+1}|^2 \le q^2\min(|\sum_ia_ir^i|^2 + \lambda\sum_ia_i^2|r^i|^2) \le (1 + \lambda)q^2|r^n|^2$,"
    r" $q = \max_k|1 - \eta k| < 1$ over the eigenvalues $k$ of $KH$. After a mixture that its value refuses, the"
    r" sum is $r^n$; no value refuses a plain step for $\eta k \le 2(1 - 10^{-4})$, so that $\eta$ stays.",
    assumptions=contracts,
    cases=anderson_dane_quadratics_cases,
)
def anderson_dane_quadratics(case: Case) -> Iterator[Inequality]:
    """AndersonDANE on quadratics: it contracts at least as fast as its plain step.

    Compare residuals in the product of K's inverse with the least mixture of the earlier ones and with the one before,
    up to rounding: 8 units in the last place of the points, times the condition of the clients and the weights.
    """
    inverse = np.linalg.inv(preconditioner(case.objective, case.algorithm.weight))
    root = np.linalg.cholesky(inverse).T
    q, lam = factor_of(case), regularisation(float(np.finfo(float).eps))
    unit = 16.0 * EPSILON * case.L / case.mu * float(np.linalg.norm(root, 2))
    last = least = weights = math.nan
    server, residuals = case.first().server, []
    for n, s in enumerate(case.snapshots(), start=1):
        yield Inequality(n, case.algorithm.eta, s.server.eta, "eta stays")
        if server.solving and server.started:  # not the round of the own minimisers, and not one of gradients
            residuals.append(root @ s.server.residuals[-1])
            size = float(np.linalg.norm(residuals[-1]))
            if size < VISIBLE * float(np.linalg.norm(residuals[0])):
                break
            if len(residuals) > 1:
                error = unit * weights * float(np.linalg.norm(server.theta) + np.linalg.norm(case.theta))
                yield Inequality(n, size, q * least, "residual and the least mixture", error)
                yield Inequality(n, size, math.sqrt(1.0 + lam) * q * last, "successive residuals", error)
                if case.attained and len(residuals) == 2:
                    yield Inequality(n, q * last, size, "successive residuals, attained", error)
            last = size
            least, weights = mixed(residuals[-s.server.history.known :], lam)
        if s.server.history.age == 0:  # a plain step comes next
            least, weights = last, 1.0
        server = s.server


def mixed(residuals: list[Array], lam: float) -> tuple[float, float]:
    r"""Return the least :math:`(|\sum a_ir^i|^2 + \lambda\sum a_i^2|r^i|^2)^{1/2}` with its :math:`\sum|a_i|`.

    Examples
    --------
    >>> least, weights = mixed([np.array([1.0, 0.0]), np.array([0.0, 1.0])], 0.0)
    >>> round(least**2, 12), round(weights, 12)
    (0.5, 1.0)
    """
    R = np.stack(residuals, axis=1)
    rows = np.concatenate([R, math.sqrt(lam) * np.diag(np.linalg.norm(R, axis=0))])
    others = np.linalg.lstsq(rows[:, :-1] - rows[:, -1:], -rows[:, -1], rcond=None)[0]
    a = np.append(others, 1.0 - np.sum(others))
    return float(np.linalg.norm(rows @ a)), float(np.sum(np.abs(a)))
