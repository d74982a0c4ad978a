"""Rates that AutoLyap finds of methods in state space, written by hand, beside those from our code.

AutoLyap (GPL-3.0, CVXPY and Clarabel) is in no extra of this package: ``python -m pip install autolyap==0.2.1``, or
these tests are skipped. A method is x+ = Ax + Bu, y = Cx + Du with gradients u_j of f_j at y_j. Its Lyapunov functions
have values of functions and gradients too, ours (``memory=False``) have not.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dualopt.lab.proofs import prove

pytest.importorskip("clarabel")
autolyap = pytest.importorskip("autolyap", reason="AutoLyap is not installed: python -m pip install autolyap==0.2.1")

from autolyap.algorithms import Algorithm  # pyright: ignore[reportMissingImports] # noqa: E402
from autolyap.problemclass import InclusionProblem, SmoothStronglyConvex  # pyright: ignore # noqa: E402

EQUAL = 1e-6
CLARABEL = {"backend": "cvxpy", "cvxpy_solver": "CLARABEL"}  # with its tolerances of 1e-8; an early stop is accepted


class StateSpace(Algorithm):
    """Matrices A, B, C, D of two clients."""

    def __init__(self, A: Any, B: Any, C: Any, D: Any) -> None:
        self.matrices = tuple(np.array(M, dtype=float) for M in (A, B, C, D))
        super().__init__(len(self.matrices[0]), 2, [1, 1], [1, 2], [])

    def get_ABCD(self, k: int) -> Any:
        return self.matrices


def gradient_descent(step: float) -> StateSpace:
    return StateSpace([[1]], [[-step / 2, -step / 2]], [[1], [1]], np.zeros((2, 2)))


def dual_ascent(nu: float) -> StateSpace:
    """Gradient descent with step nu on the dual problem: the sum of f_1*(xi) and f_2*(-xi)."""
    return gradient_descent(nu)


def feddyn(alpha: float) -> StateSpace:
    """The state is (theta, g_1, g_2): h is the mean of g, and g_j becomes the gradient at the local solution."""
    C, D = np.array([[1, 1 / alpha, 0], [1, 0, 1 / alpha]]), -np.eye(2) / alpha
    A, B = np.zeros((3, 3)), np.zeros((3, 2))
    A[0], B[0], B[1:] = C.mean(axis=0), D.mean(axis=0) - 0.5 / alpha, np.eye(2)
    return StateSpace(A, B, C, D)


UNEQUAL = ((1.0, 10.0), (0.5, 3.0))
CONJUGATES = tuple((1.0 / L, 1.0 / mu) for mu, L in UNEQUAL)
CASES = {
    "gradient-descent: step=0.15": (gradient_descent(0.15), UNEQUAL),
    "dual-ascent: nu=0.5": (dual_ascent(0.5), CONJUGATES),
    "feddyn: alpha=3.0": (feddyn(3.0), UNEQUAL),
}


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
@pytest.mark.parametrize("method", CASES)
def test_autolyap_finds_the_same(method: str) -> None:
    """Its program has no objective: at the least factor Clarabel stops at its tolerance, which leaves a few 1e-7."""
    algorithm, constants = CASES[method]
    linear = autolyap.IterationIndependent.LinearConvergence
    P, p, T, t = linear.get_parameters_distance_to_solution(algorithm)
    functions = InclusionProblem([SmoothStronglyConvex(mu, L) for mu, L in constants])
    options = {"S_equals_T": True, "s_equals_t": True, "remove_C3": True, "tol": 1e-8, "verbosity": 0}
    found = linear.bisection_search_rho(
        functions, algorithm, P, T, p, t, solver_options=autolyap.SolverOptions(**CLARABEL), **options
    )
    mu, L = zip(*UNEQUAL, strict=True)
    ours = prove(method, mu=mu, L=L, memory=False, tolerance=1e-8)
    assert found["status"] == "feasible"
    assert ours.factor == pytest.approx(found["rho"], rel=EQUAL)
    assert ours.factor == pytest.approx(ours.lower_bound, rel=EQUAL)  # and some quadratic clients are as slow
