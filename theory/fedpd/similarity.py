"""A3 and A4 of the FedPD paper, clients whose gradients differ by a bounded amount, and who satisfies them.

Appendix A of the first version, where it is A5: logistic losses always, least squares with one Hessian only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from dualopt.arrays.xp import Array
from dualopt.lab.claims import Inequality, claim
from dualopt.losses import Logistic
from dualopt.objectives import Quadratic, linear_model
from dualopt.problem.data import load
from theory._claims import ROUNDING, ExpectedVerdict, Form, deviation
from theory._problems import lopsided, one_concave_client
from theory.fedpd._runs import (
    dissimilarity,
    equal_hessians,
    logistic,
    logistic_bound,
    logistic_bound_v1,
    one_hessian,
)


class Rays(NamedTuple):
    """Clients, and along how many rays to look."""

    name: str
    objective: Any
    directions: int

    def gradients(self, *lengths: float) -> Iterator[tuple[int, float, Array]]:
        """Yield the number of a direction, a length, and the gradients of the clients there."""
        rng = np.random.default_rng(0)
        for k in range(self.directions):
            direction = rng.standard_normal(self.objective.shape)
            direction = direction / np.linalg.norm(direction)
            for length in lengths:
                yield k, length, self.objective.gradient(length * direction)


class Balance(NamedTuple):
    """Quadratic clients, and how A3 divides between its two constants."""

    name: str
    objective: Quadratic
    c: float


def assumption_3_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Convex clients and clients of which one is concave, with most of the bound in D or in G."""
    for f in (lopsided(), one_concave_client()):
        for c in (0.05, 20.0):
            yield ExpectedVerdict(Balance(f"{f.name}, c = {c:g}", f.objective, c))


@claim(
    name="fedpd_assumption_3",
    source="Zhang et al., A3, (3)",
    statement=r"For quadratics with Hessians $A_j$, an invertible mean $\bar A$, $s_j = \nabla f_j(x^*)$ and every"
    r" $c > 0$: $\frac1N\sum_j|\nabla f_j|^2 \le G^2 + D^2|\nabla E|^2$ with $G^2 = (1 + \frac1c)\frac1N\sum_j|s_j|^2$,"
    r" $D^2 = (1 + c)\lambda$, $\lambda$ the largest eigenvalue of $\bar A^{-1}\frac1N\sum_jA_j^2\bar A^{-1}$; no"
    r" $D^2 < \lambda$ will do with any G: along $\bar A^{-1}$ times its eigenvector the left-hand side is at least"
    r" $((\lambda t^2)^{1/2} - (\frac1N\sum_j|s_j|^2)^{1/2})^2$, where $|\nabla E| = t$.",
    rtol=1e-10,
    cases=assumption_3_cases,
)
def assumption_3(case: Balance) -> Iterator[Inequality]:
    """A3: the pairs (G, D) that quadratics admit.

    By Minkowski's inequality. Compare at the minimiser and along the worst direction, from above and below.
    """
    f, c = case.objective, case.c
    mean, inverse = np.mean(f.A, axis=0), np.linalg.inv(np.mean(f.A, axis=0))
    eigenvalues, vectors = np.linalg.eigh(inverse @ np.mean(f.A @ f.A, axis=0) @ inverse)
    largest, best = float(eigenvalues[-1]), np.linalg.solve(mean, np.mean(f.b, axis=0))
    own = float(np.mean(np.sum(f.gradient(best) ** 2, axis=1)))
    for t in (0.0, 1.0, 1e2, 1e4):
        gradients = f.gradient(best + t * inverse @ vectors[:, -1])
        squares = float(np.mean(np.sum(gradients**2, axis=1)))
        slope = float(np.sum(np.mean(gradients, axis=0) ** 2))
        yield Inequality(int(t), squares, (1.0 + 1.0 / c) * own + (1.0 + c) * largest * slope, "mean square")
        below = (np.sqrt(largest) * t - np.sqrt(own)) ** 2
        yield Inequality(int(t), float(below), squares, "mean square from below")


def assumption_4_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Yield two clients and three, where the factors are attained, and four."""
    pull = np.array([[1.0, 0.0], [-0.5, 0.5], [-0.5, -0.5]])  # one against two
    one_hessian = np.tile(np.eye(2), (3, 1, 1))
    yield ExpectedVerdict(Rays("two clients, one Hessian", equal_hessians(2), 5))
    yield ExpectedVerdict(Rays("one against two", Quadratic(A=one_hessian, b=pull * np.array([1.0, 0.0])), 5))
    yield ExpectedVerdict(Rays("lopsided quadratics", lopsided().objective, 20))
    yield ExpectedVerdict(Rays("logistic", logistic(), 20))


@claim(
    name="fedpd_assumption_4",
    source="Zhang et al., A4, (11); first version, A5, (6)",
    statement=r"$\max_i|\nabla f_i - \nabla E| \le \frac{N-1}N\max_{i \ne j}|\nabla f_i - \nabla f_j|$ and"
    r" $\max_{i \ne j}|\nabla f_i - \nabla f_j| \le 2\max_i|\nabla f_i - \nabla E|$ at every point.",
    rtol=1e-10,
    cases=assumption_4_cases,
)
def assumption_4(rays: Rays, *, as_printed: bool = False) -> Iterator[Inequality]:
    """A4: what the two forms of the assumption have to do with each other.

    Compare along rays.
    """
    factor = 1.0 if as_printed else 2.0
    for k, length, gradients in rays.gradients(0.0, 1.0, 100.0):
        N = len(gradients)
        pairs = max(float(np.linalg.norm(a - b)) for a, b in combinations(gradients, 2))
        mean = float(np.max(np.linalg.norm(gradients - np.mean(gradients, axis=0), axis=1)))
        if not as_printed:
            yield Inequality(k, mean, (N - 1) / N * pairs, f"distance from the mean at {length:g}")
        yield Inequality(k, pairs, factor * mean, f"distance of two clients at {length:g}")


def p9_forms_of_a4_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Yield two clients, of which the mean is half-way."""
    case = Rays("two clients, one Hessian", equal_hessians(2), 5)
    yield ExpectedVerdict(Form(case, printed=True), "violated")
    yield ExpectedVerdict(Form(case, printed=False))


@assumption_4.as_printed(
    source="FedPD A4, (11); first version, A5, (6)",
    statement=r"$|\nabla f_i - \nabla f_j| \le G$ for all pairs follows from $|\nabla f_i - \nabla E| \le G'$ for all"
    r" i. Printed: with $G = G'$, the two being equivalent. Corrected: with $G = 2G'$. Lemma 2 uses the pairs.",
    rtol=1e-10,
    cases=p9_forms_of_a4_cases,
)
def p9_forms_of_a4(form: Form) -> Iterable[Inequality]:
    """P9: the two forms of A4 in the FedPD paper.

    Compare along rays.
    """
    return assumption_4(form.case, as_printed=form.printed)


def quadratic_dissimilarity_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Yield clients with one Hessian, and with Hessians of their own."""
    yield ExpectedVerdict(Rays("one Hessian", equal_hessians(), 20))
    yield ExpectedVerdict(Rays("lopsided quadratics", lopsided().objective, 20))
    yield ExpectedVerdict(Rays("one concave client", one_concave_client().objective, 20))


@claim(
    name="fedpd_quadratic_dissimilarity",
    source="Zhang et al., first version, Appendix A, linear regression",
    statement=r"For $f_j = \frac12\langle x, A_jx\rangle - \langle b_j, x\rangle$, as $A_j = X_j^\top X_j$, $b_j ="
    r" X_j^\top y_j$: A4 holds if and only if all $A_j$ agree, with $G = \max_{i,j}|b_i - b_j|$, attained everywhere;"
    r" else, with v a unit vector such that $|(A_i - A_j)v| = \|A_i - A_j\|$, $|\nabla f_i(tv) - \nabla f_j(tv)| \ge"
    r" t\|A_i - A_j\| - |b_i - b_j|$.",
    rtol=1e-10,
    cases=quadratic_dissimilarity_cases,
)
def quadratic_dissimilarity(rays: Rays) -> Iterator[Inequality]:
    """Appendix A of the first version: when A4 holds for least squares.

    Compare along rays with the bound, or from below.
    """
    f, G = rays.objective, dissimilarity(rays.objective)
    if one_hessian(f):
        for k, length, gradients in rays.gradients(0.0, 1.0, 1e4):
            largest = max(float(np.linalg.norm(a - b)) for a, b in combinations(gradients, 2))
            yield Inequality(k, largest, G, f"difference of gradients at {length:g}")
            yield Inequality(k, G, largest, f"G and the difference at {length:g}")
        return
    for k, (i, j) in enumerate(combinations(range(f.n_clients), 2)):
        values, vectors = np.linalg.eigh(f.A[i] - f.A[j])
        extreme = int(np.argmax(np.abs(values)))
        apart = float(np.linalg.norm(f.b[i] - f.b[j]))
        for t in (1.0, 1e2, 1e4):
            a, b = f.gradient(t * vectors[:, extreme])[[i, j]]
            below = t * abs(float(values[extreme])) - apart
            yield Inequality(k, max(below, 0.0), float(np.linalg.norm(a - b)), f"growth at {t:g}")
    yield Inequality(0, deviation(float(np.isinf(G)), 1.0), ROUNDING, "G is infinite")


def logistic_dissimilarity_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Synthetic and real rows; and rows for which the bound is attained at infinity."""
    directions = 100 if quick else 2000
    yield ExpectedVerdict(Rays("logistic", logistic(), directions))
    X, y, clients = np.array([[1.0], [1.0], [3.0]]), np.array([1.0, 1.0, -1.0]), [[0, 1], [2]]
    opposed = linear_model(X, y, loss=Logistic(), mu=0.0, clients=clients, intercept=False)
    yield ExpectedVerdict(Rays("opposed labels", opposed, 4))
    X, y = np.array([[1.0, 0.3], [-3.0, 0.9]]), np.ones(2)  # far along -e_2 both slopes are one
    almost = linear_model(X, y, loss=Logistic(), mu=0.0, clients=[[0], [1]], intercept=False)
    yield ExpectedVerdict(Rays("rows that are almost opposed", almost, 100))
    data = load("breast_cancer")
    y = np.where(data.y == np.max(data.y), 1.0, -1.0)
    order = np.argsort(y, kind="stable")
    by_label = linear_model(data.X[order], y[order], loss=Logistic(), mu=0.01, clients=4)
    yield ExpectedVerdict(Rays("breast_cancer by label", by_label, directions))


@claim(
    name="fedpd_logistic_dissimilarity",
    source="Zhang et al., first version, Appendix A",
    statement=r"For logistic losses $\sum_i w_i\log(1+e^{-y_i\langle x_i,\theta\rangle})$, clients $X_j$, $W_j$, and"
    r" all $\theta$: $|\nabla f_i - \nabla f_j| \le G = \max_{i,j}|\nabla f_i(0) - \nabla f_j(0)| + r_i + r_j \le"
    r" \max_{i \ne j} 2r_i + 2r_j$, $r_j = \frac12\|X_j^\top W_j^{1/2}\|\,|W_j^{1/2}1|$.",
    cases=logistic_dissimilarity_cases,
)
def logistic_dissimilarity(rays: Rays) -> Iterator[Inequality]:
    """Appendix A of the first version: A4 holds for logistic losses, with G from the data.

    Compare the largest difference of two gradients, along rays from near zero to almost infinity.
    """
    f = rays.objective
    bound, plain = logistic_bound(f), logistic_bound_v1(f)
    for k, length, gradients in rays.gradients(0.0, 0.3, 3.0, 1e4):
        largest = max(float(np.linalg.norm(a - b)) for a, b in combinations(gradients, 2))
        yield Inequality(k, largest, bound, f"difference of gradients at a distance of {length:g}")
    yield Inequality(rays.directions, bound, plain, "G and the sum of two norms")
