r"""FedPD that skips communication: Theorem 3 of the FedPD paper, with Lemma 2 and Table III.

How far the clients drift apart: with :math:`a = L\eta`, :math:`h = \eta(G + 2\sqrt\varepsilon)`,
:math:`z = \max|x_{0,i} - x_{0,j}|`, :math:`y = \max|x_i - x_j|` and :math:`S = ay + z`, steps (49) to (51) of the paper
give

.. math:: y' \le \frac{S + 2h}{1-a}, \qquad
          z^+ \le \psi(S) = \frac{(1+a)S + (3+a)h}{1-a}, \qquad z' = z^+ \text{ if the round skips, else } 0,

so that the matrix of Lemma 2 is :math:`A = (p(1+a), 1)^\top (1, a)`, and

.. math:: S' \le \frac{aS + 2ah}{1-a} \text{ (communication)}, \qquad
          S' \le \frac{(1+2a)S + 3(1+a)h}{1-a} \text{ (skipped)}.

The right-hand sides increase in ``S``: the first two moments of the chain that attains them bound those of ``S``,
and they obey an exact recursion, in which no expectation is squared and no random number of rounds is replaced by its
mean. They stay bounded if and only if :math:`(1-p)a^2 + p(1+2a)^2 < (1-a)^2`.

Theorem 3 is the proof of Theorem 1 (``descent``) with these moments: the mean :math:`D_r` of the squared distances of
the copies from their mean is at most :math:`\frac{N-1}{2N} z_r^2`, and averaging costs at most
:math:`\frac{1-p}{2\eta}\frac{N-1}{N} z_r z_r^+`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq

from dualopt.arrays.xp import Array
from dualopt.engine.rounds import State
from dualopt.lab.claims import Inequality, claim
from theory._cases import Case
from theory._claims import ExpectedVerdict, Form
from theory._problems import lopsided
from theory._rounds import histories
from theory.fedpd._runs import (
    LIMIT,
    admitted,
    concave,
    equal_hessians,
    fedpd_case,
    logistic,
    one_hessian,
    path,
    penalised,
    residuals,
    similar,
    spread,
)
from theory.fedpd.descent import H_0, Mean, accuracy_factor, decrease_factor, mean_gradients, start_factor

# Lemma 2: the drift in one round.


def matrix(p: float, a: float, *, as_printed: bool = False) -> Array:
    """Return ``A`` of Lemma 2, for ``(z, y)``.

    Examples
    --------
    >>> matrix(0.5, 0.2).round(9).tolist(), matrix(0.5, 0.2, as_printed=True).round(9).tolist()
    ([[0.6, 0.12], [1.0, 0.2]], [[0.6, 0.08], [1.0, 0.2]])
    """
    corner = p * a * (1.0 - a) if as_printed else p * (1.0 + a) * a
    return np.array([[p * (1.0 + a), corner], [1.0, a]])


def offset(p: float, a: float) -> Array:
    """Return ``B`` of Lemma 2.

    Examples
    --------
    >>> offset(0.5, 0.2).round(9).tolist()
    [1.6, 2.0]
    """
    return np.array([p * (3.0 + a), 2.0])


def lemma_2_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Yield clients with one Hessian, logistic losses with G from the data, and a state where the lemma is attained."""
    for p in (0.1, 0.9):
        yield ExpectedVerdict(fedpd_case("equal Hessians", equal_hessians(), skip=p))
        yield ExpectedVerdict(fedpd_case("ten clients, equal Hessians", equal_hessians(10), skip=p))
        yield ExpectedVerdict(concave(p=p))
    yield ExpectedVerdict(fedpd_case("equal Hessians", equal_hessians(), skip=0.5, tol=1e-2))
    yield ExpectedVerdict(fedpd_case("similar clients", equal_hessians(G=0.1), skip=0.5, tol=1.0))  # residuals matter
    for name, f in (("logistic", logistic()), ("penalised logistic", penalised())):
        yield ExpectedVerdict(fedpd_case(name, f, rounds=8 if quick else 40, skip=0.5))
    yield ExpectedVerdict(fedpd_case("lopsided quadratics", lopsided().objective, skip=0.5), "outside assumptions")


@claim(
    name="fedpd_lemma_2",
    source="Zhang et al., Lemma 2, (22), with the matrix of its proof, (52)",
    statement=r"Under A4, with $\triangle = (\max|x_{0,i} - x_{0,j}|, \max|x_i - x_j|)$ and $a = L\eta < 1$:"
    r" $\mathbb E\triangle^{r+1} \le \frac{1}{1-a}(A\triangle^r + \eta B(G + 2\sqrt{\varepsilon_1}))$,"
    r" $A = (p(1+a), 1)^\top(1, a)$, $B = (p(3+a), 2)^\top$.",
    assumptions=similar,
    rtol=1e-12,
    cases=lemma_2_cases,
)
def lemma_2(case: Case, *, as_printed: bool = False) -> Iterator[Inequality]:
    """Lemma 2: how fast clients drift apart when rounds are skipped, with the matrix corrected.

    Compare the drift that is expected after one round, both sides of the coin, from every state of a path.
    """
    a, p = case.a, case.skip
    A, B = matrix(p, a, as_printed=as_printed), offset(p, a)
    for step in path(case):
        G = case.dissimilarity + 2.0 * math.sqrt(step.accuracy)
        bound = (A @ distances(step.before) + case.eta * B * G) / (1.0 - a)
        expected = step.E[lambda branch: distances(branch.state)]
        for left, right, what in zip(expected, bound, ("copies", "models"), strict=True):
            yield Inequality(step.n, float(left), float(right), f"distance between {what}")


def distances(state: State) -> Array:
    """Return ``(z, y)``: the largest distances between two copies of the global model, and between two models."""
    return np.array([spread(state.clients.x0), spread(state.clients.theta)])


class Entries(NamedTuple):
    """Where the matrix is evaluated."""

    name: str
    p: float
    a: float


def p2_matrix_of_lemma_2_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Yield the numbers that are stated, and a run on which the lemma is attained."""
    for case in (Entries("eigenvalues, p = 0.5, L eta = 0.2", 0.5, 0.2), concave(p=0.5)):
        yield ExpectedVerdict(Form(case, printed=True), "violated")
        yield ExpectedVerdict(Form(case, printed=False))


@lemma_2.as_printed(
    source="FedPD Lemma 2, (22)",
    statement=r"$\mathbb E\triangle^{r+1} \le \frac{1}{1-a}(A\triangle^r + \eta B(G + 2\sqrt{\varepsilon_1}))$, $a ="
    r" L\eta$, where A has rank one and the eigenvalues 0 and $a + p(1+a)$. Printed: $A_{12} = pa(1-a)$, with which it"
    r" has rank two and is too small. Corrected: $A_{12} = p(1+a)a$, as in (52).",
    rtol=1e-12,
    cases=p2_matrix_of_lemma_2_cases,
)
def p2_matrix_of_lemma_2(form: Form) -> Iterator[Inequality]:
    """P2: the matrix A of Lemma 2 in the FedPD paper.

    Compare the drift of a run with the lemma, or the eigenvalues with those that the paper states.
    """
    case = form.case
    if isinstance(case, Case):
        yield from lemma_2(case, as_printed=form.printed)
        return
    least, largest = sorted(np.linalg.eigvals(matrix(case.p, case.a, as_printed=form.printed)), key=abs)
    yield Inequality(0, float(abs(least)), 1e-12, "smaller eigenvalue")
    yield Inequality(0, float(abs(largest - case.a - case.p * (1.0 + case.a))), 1e-12, "error of the larger eigenvalue")


# Theorem 3: the second moments of the drift, and what they cost.


class Drift(NamedTuple):
    """Bounds of second moments before round ``r``."""

    copies: float  # of E z_r^2
    crossed: float  # of E z_r z_r^+


def drift(p: float, *, a: float, h: float) -> Iterator[Drift]:
    """Yield the bounds for ``r = 0, 1, ...`` from a common start, without end.

    Examples
    --------
    >>> from itertools import islice
    >>> [tuple(round(float(x), 6) for x in d) for d in islice(drift(0.5, a=0.1, h=1.0), 3)]
    [(0.0, 0.0), (5.932099, 13.650206), (19.157331, 35.244754)]
    """
    psi = np.poly1d([1.0 + a, (3.0 + a) * h]) / (1.0 - a)
    skips = np.poly1d([1.0 + 2.0 * a, 3.0 * (1.0 + a) * h]) / (1.0 - a)
    communicates = np.poly1d([a, 2.0 * a * h]) / (1.0 - a)
    square, mixed = psi * psi, psi * np.polyval(psi, skips)
    powers = [(communicates**k, skips**k) for k in (1, 2)]
    moments, copies, crossed = np.array([0.0, 0.0, 1.0]), 0.0, 0.0  # of S^2, S and 1
    while True:
        yield Drift(copies, crossed)
        copies = p * _mean(square, moments)
        crossed = p * _mean(mixed, moments)
        first, second = ((1.0 - p) * _mean(one, moments) + p * _mean(other, moments) for one, other in powers)
        moments = np.array([second, first, 1.0])


def _mean(polynomial: np.poly1d, moments: Array) -> float:
    """Return the expectation of a polynomial in S, of degree two or less."""
    coefficients = polynomial.coefficients
    return float(coefficients @ moments[3 - len(coefficients) :])


def theorem_3_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Yield similar clients, for which the bound says something; others, or too much skipping, where it does not."""
    rounds = 300 if quick else 3000
    alike = equal_hessians(G=0.01)
    yield ExpectedVerdict(fedpd_case("similar clients", alike, skip=0.3, rounds=rounds))
    yield ExpectedVerdict(fedpd_case("similar clients", alike, a=0.05, skip=0.7, rounds=2 * rounds))
    yield ExpectedVerdict(fedpd_case("similar clients", alike, skip=0.3, rounds=rounds, tol=1e-3))
    yield ExpectedVerdict(fedpd_case("equal Hessians", equal_hessians(), skip=0.3, rounds=100), "vacuous")
    yield ExpectedVerdict(fedpd_case("similar clients", alike, skip=0.3, rounds=100, tol=1.0), "vacuous")
    yield ExpectedVerdict(fedpd_case("similar clients", alike, skip=0.8, rounds=100), "vacuous")
    few = 5 if quick else 9  # of 2^few histories
    yield ExpectedVerdict(fedpd_case("logistic", logistic(), skip=0.5, rounds=few), "vacuous")
    yield ExpectedVerdict(fedpd_case("penalised logistic", penalised(), skip=0.2, rounds=few), "vacuous")
    yield ExpectedVerdict(fedpd_case("lopsided quadratics", lopsided().objective, skip=0.3), "outside assumptions")


@claim(
    name="fedpd_theorem_3",
    source="Zhang et al., Theorem 3, with the second moments of Lemma 2",
    statement=r"Under A4, if rounds skip communication with probability p, the bound of Theorem 1 holds for"
    r" $\frac1T\sum_{r<T}\mathbb E|\nabla E(\bar x_0^r)|^2$ with $\frac{N-1}{2NT}\bigl(\frac{C}{2\eta}Z_T +"
    r" \sum_{r<T}(\frac{C(1-p)}{\eta}X_r + 4L^2Z_r)\bigr)$ added. Here $Z_r \ge \mathbb E z_r^2$ and $X_r \ge"
    r" \mathbb Ez_rz_r^+$ are second moments of the chain $S_0 = 0$, $z^+ = \psi(S) ="
    r" \frac{(1+a)S+(3+a)h}{1-a}$, $h = \eta(G+2\sqrt{\varepsilon_1})$, $S' = \frac{aS+2ah}{1-a}$ plus, with"
    r" probability p, $\psi(S)$. They are bounded if $(1-p)a^2 + p(1+2a)^2 < (1-a)^2$.",
    assumptions=lambda case: admitted(case) + similar(case),
    trivial=lambda case: case.squared_gradient(case.theta0),
    cases=theorem_3_cases,
)
def theorem_3(case: Case) -> Iterator[Inequality]:
    """Theorem 3: what skipping costs when the clients' gradients differ by a bounded amount.

    Compare exact expectations of the means over the first T rounds.
    """
    means = list(expected_gradients(case))
    accuracy = max((mean.accuracy for mean in means), default=0.0)
    for mean, bound in zip(means, bounds(case, accuracy), strict=False):
        yield Inequality(mean.T, mean.squared_gradient, bound, "E mean of |grad E|^2")


def expected_gradients(case: Case) -> Iterator[Mean]:
    """Yield the expected means for T = 1, 2, ...

    On quadratics with one Hessian the mean of the clients obeys a recursion of its own, in which the coin does not
    occur: one path is the expectation. Otherwise all ``2^T`` histories are followed.
    """
    if one_hessian(case.objective):
        yield from mean_gradients(case)
        return
    expected, total, accuracy = case.squared_gradient(case.theta0), 0.0, 0.0
    for T, E in enumerate(histories(case), start=1):
        total += expected
        accuracy = max(accuracy, *(float(np.max(residuals(branch))) for branch in E.found))
        yield Mean(T, total / T, accuracy)
        expected = E[lambda branch: case.squared_gradient(np.mean(branch.state.clients.x0, axis=0))]


def bounds(case: Case, accuracy: float, moments: Iterator[Drift] | None = None) -> Iterator[float]:
    """Yield the bound for T = 1, 2, ...: Theorem 1's, and what the drift adds, by default :func:`drift`."""
    L, eta, p, N = case.L, case.eta, case.skip, case.n_clients
    C, pairs = decrease_factor(L=L, eta=eta), (N - 1) / (2.0 * N)
    start = C * case.error(case.theta0) + start_factor(L=L, eta=eta) * H_0(case, accuracy)
    if moments is None:
        moments = drift(p, a=case.a, h=eta * (case.dissimilarity + 2.0 * math.sqrt(accuracy)))
    before = next(moments)
    averaging = apart = 0.0
    for T, after in enumerate(moments, start=1):
        averaging += (1.0 - p) / eta * pairs * before.crossed
        apart += pairs * before.copies
        total = start + C * (averaging + pairs * after.copies / (2.0 * eta)) + 4.0 * L**2 * apart
        yield total / T + accuracy_factor(L=L, eta=eta, rounds=T) * accuracy
        before = after


def growth(p: float, *, a: float) -> float:
    r"""Return :math:`C_3 = (p(1+a)+a)/(1-a)`, by which the drift is bounded to grow from round to round.

    Examples
    --------
    >>> round(growth((1 - 2 * TABLE_A) / (1 + TABLE_A), a=TABLE_A), 12)  # the border of the two regimes of Table III
    1.0
    """
    return (p * (1.0 + a) + a) / (1.0 - a)


def skipped_drift(p: float, *, a: float) -> float:
    r"""Return :math:`p(1+a)(2a+p(3+a)) \frac{1-C_3^{1/(1-p)}}{1-C_3}`; infinite where it overflows.

    Half of what (41) puts for the distance of the copies, in units of :math:`\eta(G^2 + \varepsilon_1)^{1/2}`.

    Examples
    --------
    >>> round(skipped_drift(0.5, a=0.2), 9)  # C3 is 1 here, and the fraction 2
    2.4
    """
    ratio, rounds = growth(p, a=a), 1.0 / (1.0 - p)
    exponent = rounds * math.log(ratio)
    if exponent > 300.0:
        return math.inf
    # (1 - C3^k)/(1 - C3), which is k at C3 = 1
    series = math.expm1(exponent) / (ratio - 1.0) if abs(ratio - 1.0) > 1e-12 else rounds
    return p * (1.0 + a) * (2.0 * a + p * (3.0 + a)) * series


def p5_expectations_in_theorem_3_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Clients with one Hessian, where G is exact; often and seldom skipped."""
    for p, a in ((0.1, 0.1), (0.3, 0.05)):
        case = fedpd_case("equal Hessians", equal_hessians(), skip=p, a=a, rounds=5 if quick else 8)
        yield ExpectedVerdict(Form(case, printed=True), "violated")
        yield ExpectedVerdict(Form(case, printed=False))


@theorem_3.as_printed(
    source="FedPD (41), Theorem 3",
    statement=r"$\mathbb E(\triangle x_0^r)^2$ for exact local solutions, $a = L\eta$, $C_3 ="
    r" \frac{p(1+a)+a}{1-a}$. Printed: at most $4p^2\eta^2(1+a)^2(2a+p(3+a))^2"
    r"\bigl(\frac{1-C_3^{1/(1-p)}}{1-C_3}\bigr)^2G^2$, which squares an expectation, puts the mean 1/(1-p) for a number"
    r" of rounds, and loses the term that a single skipped round leaves, of order $p\eta^2G^2$. Corrected: at most"
    r" the second moment of the chain in Theorem 3.",
    cases=p5_expectations_in_theorem_3_cases,
)
def p5_expectations_in_theorem_3(form: Form) -> Iterator[Inequality]:
    """P5: the second moment (41) of the drift in the proof of Theorem 3 in the FedPD paper.

    Compare the exact second moment, over all histories of the coin, with (41) or with the recursion.
    """
    case: Case = form.case
    h, p = case.eta * case.dissimilarity, case.skip
    printed = (2.0 * h * skipped_drift(p, a=case.a)) ** 2
    corrected = drift(p, a=case.a, h=h)
    next(corrected)
    for T, (E, moments) in enumerate(zip(histories(case), corrected, strict=False), start=1):
        second = E[lambda branch: spread(branch.state.clients.x0) ** 2]
        yield Inequality(T, second, printed if form.printed else moments.copies, "E max|x_0i - x_0j|^2")


# Remark 5 and Table III: how many rounds may be skipped.

TABLE_A = 0.5 * LIMIT  # L eta in Table III: half of what the theorems admit
BORDER = (1.0 - 2.0 * TABLE_A) / (1.0 + TABLE_A)  # p with C3 = 1, where the regimes of the table meet


def penalty(p: float, *, L: float, eta: float, n_clients: float = math.inf, C5: float = 1.0) -> float:
    r"""Return ``C(p)`` as printed; infinite where it overflows.

    .. math:: C(p) = \eta^2 (1-p)\tfrac{N-1}{N} C_5 \Bigl(\tfrac{1 - C_3^{1/(1-p)}}{1-2a-p(1+a)}\Bigr)^2
                     p^2 (1+a)^2 (2a + p(3+a))^2,

    so that :math:`C(p)(G^2 + \varepsilon_1)` is what Theorem 3 adds for skipping with probability ``p``.

    Parameters
    ----------
    p : float
        Probability of skipping, in [0, 1).
    L, eta : float
        Smoothness constant and step, ``L eta < 1``.
    n_clients : float, default infinity
        Number of clients.
    C5 : float, default 1
        The constant of Theorem 3; 1 is what Table III takes.

    Examples
    --------
    >>> [round(penalty(p, L=1.0, eta=TABLE_A) / TABLE_A**2, 3) for p in (0.0, 0.1, 0.5, 0.9)]
    [0.0, 0.007, 2.886, 8178.741]
    """
    a = L * eta
    drift = skipped_drift(p, a=a) / (1.0 - a)
    return eta**2 * (1.0 - p) * (1.0 - 1.0 / n_clients) * C5 * drift**2


def table_penalty(p: float, *, L: float, eta: float) -> float:
    r"""Return what Table III puts for ``C(p)``: :math:`12\eta^2p^2`, or :math:`14\eta^2 C_3^{2/(1-p)}` from C3 = 1 on.

    Examples
    --------
    >>> [round(table_penalty(p, L=1.0, eta=TABLE_A) / TABLE_A**2, 3) for p in (0.1, 0.5, 0.9)]
    [0.12, 3.0, 13831.616]
    """
    ratio = growth(p, a=L * eta)
    if ratio < 1.0:
        return 12.0 * eta**2 * p**2
    return 14.0 * eta**2 * math.exp(min(2.0 / (1.0 - p) * math.log(ratio), 700.0))


def largest_skip(ratio: float, *, L: float, eta: float, n_clients: float = math.inf, C5: float = 1.0) -> float:
    r"""Return the largest ``p`` with :math:`C(p) \le \tfrac13 \varepsilon/G^2`, what may be skipped.

    Parameters
    ----------
    ratio : float
        :math:`\varepsilon/G^2`, positive; infinite for clients that agree.
    L, eta, n_clients, C5
        As in :func:`penalty`.

    Raises
    ------
    ValueError
        If ``ratio`` is not positive.

    Examples
    --------
    >>> [round(largest_skip(10.0**k, L=1.0, eta=TABLE_A), 3) for k in (-6, -3, 0, 3, 6)]
    [0.008, 0.123, 0.648, 0.906, 0.948]
    """
    if not ratio > 0:
        raise ValueError(f"ratio must be positive, not {ratio}.")
    if math.isinf(ratio):
        return 1.0
    known = {"L": L, "eta": eta, "n_clients": n_clients, "C5": C5}
    # C(p) increases in p and overflows before 1: the cut keeps the bisection finite
    root: Any = brentq(lambda p: max(ratio / 3.0 - penalty(p, **known), -ratio), 0.0, 1.0 - 1e-12)
    return float(root)


def table_skip(ratio: float, *, eta: float) -> float:
    r"""Return the last column of Table III for ``ratio`` :math:`= \varepsilon/G^2`, the larger of its two rows.

    They are :math:`\sqrt{\text{ratio}/(36\eta^2)}` up to the border of the regimes, and
    :math:`1 - 2/\log(\text{ratio}/(42\eta^2))` beyond, which misses the factor :math:`\log C_3` of its second term.

    Examples
    --------
    >>> [round(table_skip(10.0**k, eta=TABLE_A), 3) for k in (-6, -3, 0, 3, 6)]
    [0.001, 0.034, 0.599, 0.71, 0.855]
    """
    linear = math.sqrt(ratio / 36.0) / eta
    argument = ratio / (42.0 * eta**2)
    logarithmic = 1.0 - 2.0 / math.log(argument) if argument > 1.0 else 0.0
    return max(min(linear, BORDER), logarithmic)


class Table(NamedTuple):
    """The table for one L and ``low <= p <= high``, with its entries multiplied by ``factor``."""

    name: str
    L: float
    low: float
    high: float
    factor: float = 1.0


def table_iii_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Yield both regimes; and the upper part of the first one, as printed and with a factor that holds there."""
    for L in (1.0, 50.0):
        yield ExpectedVerdict(Table(f"L = {L:g}: 0 < p <= 1/2", L, 1e-3, 0.5))
        yield ExpectedVerdict(Table(f"L = {L:g}: C3 >= 1", L, BORDER * (1.0 + 1e-9), 0.99))
    yield ExpectedVerdict(Table("1/2 < p, C3 < 1", 1.0, 0.51, BORDER * (1.0 - 1e-9)), "violated")
    yield ExpectedVerdict(Table("1/2 < p, C3 < 1, 22.5 for 12", 1.0, 0.51, BORDER * (1.0 - 1e-9), factor=22.5 / 12.0))


@claim(
    name="fedpd_table_iii",
    source="Zhang et al., Remark 5 and Table III",
    statement=r"For $L\eta = (\sqrt5-1)/8$, $N \to \infty$, $C_5 = 1$: $C(p) \le 12\eta^2p^2$ for $p \le \frac12$"
    r" (beyond, up to $C_3 = 1$ at p = 0.5985, the factor is 22.5), and $C(p) \le 14\eta^2C_3^{2/(1-p)}$ for"
    r" $C_3 \ge 1$; the p of the last column, put into C(p), is within $\varepsilon/(3G^2)$.",
    cases=table_iii_cases,
)
def table_iii(table: Table) -> Iterator[Inequality]:
    r"""Remark 5 and Table III: how many rounds may be skipped.

    Remark 5 asks for :math:`C(p) \le \varepsilon/(3G^2)`. The table evaluates it with :math:`a = (\sqrt5-1)/8`,
    :math:`N \to \infty` and :math:`C_5 = 1` (its numbers fit no other value), although the appendix has
    :math:`C_5 = 8C_2`, which is more than a thousand: a smaller ``p`` then.

    Compare C(p) with what the table puts for it, and the p of its last column with what Remark 5 asks for.
    """
    L, eta = table.L, TABLE_A / table.L
    for k, p in enumerate(np.linspace(table.low, table.high, 60)):
        entry = table.factor * table_penalty(p, L=L, eta=eta)
        yield Inequality(k, penalty(p, L=L, eta=eta), entry, f"C({p:.3f})")
        ratio = 3.0 * entry  # the accuracy over G^2 for which the table would have this p
        yield Inequality(k, p, largest_skip(ratio, L=L, eta=eta), f"p for the accuracy of p = {p:.3f}")
        p = table_skip(ratio / table.factor, eta=eta)
        yield Inequality(k, penalty(p, L=L, eta=eta), ratio / 3.0, f"C at the table's p = {p:.3f}")
