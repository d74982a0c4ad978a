r"""Idle clients: what is left of Theorem 1 of the A-FedPD paper when P of N clients are active.

The printed proof covers full participation only (A8), one active client is not enough (A3), and the range of
:math:`\rho` depends on P and N (``afedpd_range_of_rho``): there is no multiple of L beyond which all problems converge.
What holds is the rate on quadratic clients for which a round contracts in mean square. With the error :math:`w =
(\theta, \lambda_1, \dots, \lambda_N) - (\theta^*, \lambda^*)` a round with the clients S is :math:`w^+ = Z_Sw`, and
:math:`\nabla E(\bar\theta) = Gw`. If :math:`w \mapsto \mathbb E|Z_Sw|^2` contracts, the equation

.. math:: Y = \frac1{|\mathcal S|}\sum_S Z_S^\top(Y + G^\top G)Z_S

has one solution, which is positive semidefinite, and :math:`w^\top Yw = \sum_{t\ge1}\mathbb E|\nabla
E(\bar\theta^t)|^2` from the error w. So the mean over T rounds is at most that sum over T: the order of the theorem,
with the best constant.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate

import numpy as np

from dualopt.arrays.xp import Array
from dualopt.lab.claims import Inequality, claim
from dualopt.objectives import Quadratic
from theory._cases import Case
from theory._claims import ROUNDING, ExpectedVerdict, deviation
from theory._problems import indefinite, logistic, lopsided, one_concave_client, one_flat_client, quadratic
from theory._rounds import mean_square_radius
from theory.afedpd._runs import (
    afedpd_case,
    fixed_point,
    gradient_form,
    matrices,
    one_concave,
    pulled_apart,
    squared_gradients,
    start_vector,
    two_signs,
)


def contracts(case: Case) -> list[str]:
    """Return what fails: quadratic clients, and a round that contracts in mean square."""
    if not isinstance(case.objective, Quadratic):
        return ["quadratic clients"]
    return [] if mean_square_radius(matrices(case)) < 1.0 - ROUNDING else ["a round contracts in mean square"]


def theorem_1_partial_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Two and more active clients, unequal ones among them; one alone, small weights, and rows of data."""
    for f, active in ((quadratic(), 2), (indefinite(), 2), (pulled_apart(5), 3), (one_concave(5), 2)):
        yield ExpectedVerdict(afedpd_case(f, rho=4.0 * f.L, active=active, rounds=300))
    for f in (lopsided(), one_flat_client(), one_concave_client()):
        for active in (2,) if quick else (2, 3, 4):
            yield ExpectedVerdict(afedpd_case(f, rho=4.0 * f.L, active=active, rounds=300))
    for f, rho, active in ((pulled_apart(3), 4.0, 1), (two_signs(), 1.2, 1), (one_concave(5), 1.25, 2)):
        yield ExpectedVerdict(afedpd_case(f, rho=rho, active=active, rounds=5), "outside assumptions")
    yield ExpectedVerdict(afedpd_case(logistic(), rho=2.0, active=2, rounds=2), "outside assumptions")


@claim(
    name="afedpd_theorem_1_partial",
    source="Sun, Shen and Tao, Theorem 1 (partial participation, quadratic clients)",
    statement=r"Quadratic $f_j$, exact local solutions, P of N clients, rounds that contract in mean square:"
    r" $\frac1T\sum_{t=1}^T\mathbb{E}|\nabla E(\bar\theta^t)|^2 \le \frac1Tw^\top Yw$, $w = (\theta^0,\lambda^0)"
    r" - (\theta^*,\lambda^*)$, $Y = \mathbb{E}[Z_S^\top(Y + G^\top G)Z_S]$, the best constant: equality as"
    r" $T \to \infty$. Expectations over the clients are exact. For which rho rounds contract is afedpd_range_of_rho.",
    assumptions=contracts,
    rtol=1e-8,
    trivial=lambda case: case.squared_gradient(case.theta0),
    cases=theorem_1_partial_cases,
)
def theorem_1_partial(case: Case) -> Iterator[Inequality]:
    """Theorem 1 with idle clients, as far as it holds: the order 1/T on quadratic clients.

    Compare the exact expectation of the mean, from second moments forward in time, with the sum of all, from the
    equation for Y; after making sure that every choice of clients leaves the solution where it is.
    """
    z = fixed_point(case)
    for Z in matrices(case):
        yield Inequality(0, deviation(Z @ z, z), 1e-12, "a round from the fixed point")
    w = (start_vector(case) - z)[:-1]
    total = float(w @ all_gradients(case) @ w)
    for T, summed in enumerate(accumulate(squared_gradients(case)), start=1):
        yield Inequality(T, summed / T, total / T, "mean of E|grad E|^2")


def all_gradients(case: Case) -> Array:
    """Return Y, by the linear system for its entries."""
    linear = [Z[:-1, :-1] for Z in matrices(case)]
    G = gradient_form(case)[:, :-1]
    n = G.shape[1]
    operator = np.mean([np.kron(A.T, A.T) for A in linear], axis=0)
    right = np.mean([A.T @ G.T @ G @ A for A in linear], axis=0)
    return np.linalg.solve(np.eye(n * n) - operator, right.ravel()).reshape(n, n)
