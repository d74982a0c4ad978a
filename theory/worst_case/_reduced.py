"""The program for all numbers of clients at once: two small Gram matrices, one of means and one of deviations.

The literal program is convex and does not change when clients are permuted, so its solution may be averaged over all
permutations. Then every inner product summed over clients splits into one of means and one of deviations from the mean.
With p the mean of the gradients xi_j and q_j = xi_j - p: zeta_j and v_j have mean zero, v = q, the mean of theta_j is
-p, its deviation is zeta - q, and the optimality condition says that the mean of xi_j* is -theta*.
"""

from __future__ import annotations

from dataclasses import dataclass

import cvxpy
import numpy as np

from theory.worst_case._semidefinite import TOLERANCES, Program, WorstCase, accept, solving

__all__ = ["solve"]


@dataclass(frozen=True, kw_only=True)
class Form:
    """A linear form in the Gram matrices of p and of q and in the values of g, each over (theta*, rounds 1 to n)."""

    mean: np.ndarray
    deviation: np.ndarray
    values: np.ndarray

    def __add__(self, other: Form) -> Form:
        return Form(
            mean=self.mean + other.mean,
            deviation=self.deviation + other.deviation,
            values=self.values + other.values,
        )

    def __rmul__(self, factor: float) -> Form:
        return Form(mean=factor * self.mean, deviation=factor * self.deviation, values=factor * self.values)

    def __sub__(self, other: Form) -> Form:
        return self + (-1.0) * other


def solve(program: Program) -> WorstCase:
    """Solve the program twice, the second time in the unit of the first answer, for tolerances are absolute."""
    error, size, constraints = _forms(program)
    rough = _solved(error, size, constraints, unit=program.guess)
    return accept(_solved(error, size, constraints, unit=abs(rough.value)))


def _solved(error: Form, size: Form, constraints: list[Form], *, unit: float) -> WorstCase:
    m = len(error.mean)
    P, Q = cvxpy.Variable((m, m), PSD=True), cvxpy.Variable((m, m), PSD=True)
    values = cvxpy.Variable(len(error.values))

    def of(*forms: Form) -> cvxpy.Expression:
        mean, deviation = (np.stack([getattr(f, name).ravel() for f in forms]) for name in ("mean", "deviation"))
        linear = np.stack([f.values for f in forms])
        return mean @ cvxpy.vec(P, order="C") + deviation @ cvxpy.vec(Q, order="C") + linear @ values

    # only differences of values enter, so that of theta* is set to 0
    demands = [of(size) <= 1.0, of(*constraints) <= 0.0, values[0] == 0.0]
    objective = of(error)[0] / unit
    problem = cvxpy.Problem(cvxpy.Maximize(objective), demands)
    with solving():
        problem.solve(solver=cvxpy.CLARABEL, **TOLERANCES)
    bound, multipliers = unit * float(demands[0].dual_value[0]), unit * demands[1].dual_value
    return WorstCase(
        value=bound,
        example=unit * float(np.asarray(objective.value)),
        multipliers=(bound, *multipliers.tolist()),
        status=problem.status,
    )


def _forms(program: Program) -> tuple[Form, Form, list[Form]]:
    """Return the error, the size of the start, and what must be at most 0."""
    n = len(program.coefficients) + 1
    gradient = np.eye(n + 1)  # row a: that of point a, 0 being theta*
    deviation = _zeta(program.coefficients) - gradient  # of theta_j, in terms of the q
    deviation[0] = 0.0
    infimum = np.eye(n + 2)[n + 1]

    def product(a: int, b: int) -> Form:
        """<xi^a, theta^b>."""
        return Form(
            mean=_symmetric(gradient[a], -gradient[b]),
            deviation=_symmetric(gradient[a], deviation[b]),
            values=np.zeros(n + 2),
        )

    def squared(mean: np.ndarray, deviation: np.ndarray) -> Form:
        return Form(mean=np.outer(mean, mean), deviation=np.outer(deviation, deviation), values=np.zeros(n + 2))

    def value(weights: np.ndarray) -> Form:
        zero = np.zeros((n + 1, n + 1))
        return Form(mean=zero, deviation=zero, values=weights)

    def dual(a: int) -> Form:
        """E_d(xi^a), with g* by Fenchel's equality."""
        return product(a, a) - value(np.eye(n + 2)[a]) + 0.5 * squared(gradient[a], 0.0 * gradient[a])

    drop = 0.0 if program.kappa is None else 0.5 / (program.kappa - 1.0)
    constraints = [
        value(np.eye(n + 2)[a] - np.eye(n + 2)[b])
        + product(a, b)
        - product(a, a)
        + drop * squared(gradient[a] - gradient[b], gradient[a] - gradient[b])
        for a in range(n + 1)
        for b in range(n + 1)
        if a != b
    ]
    size = squared(gradient[0] if program.start == "xi" else 0.0 * gradient[0], gradient[0])
    if program.start == "energy":
        size = (0.5 / (1.0 - program.rho)) * squared(gradient[0], gradient[0]) - value(infimum) - dual(0)
        # E_d(0) is minus the infimum, which lies below every point by what a gradient step gains there. That is all:
        # the point that attains it may have any inner products if it is far enough away
        constraints += [
            value(infimum - np.eye(n + 2)[a]) + drop * squared(gradient[a], gradient[a]) for a in range(n + 1)
        ]
    change = gradient[n] - gradient[0]
    if program.measure == "distance":
        return (1.0 / program.n_clients) * squared(change, 0.0 * change), size, constraints
    return dual(n) - dual(0), size, constraints


def _zeta(coefficients: tuple[tuple[float, float], ...]) -> np.ndarray:
    """Return zeta of rounds 1 to n in terms of the q, from the start at zero; row 0 is not used."""
    v = np.eye(len(coefficients) + 2)
    zeta = np.zeros_like(v)
    for k, (b, c) in enumerate(coefficients, start=1):
        before = v[k - 1] if k > 1 else 0.0 * v[0]
        zeta[k + 1] = v[k] + b * (v[k] - before) + c * (v[k] - zeta[k])
    return zeta


def _symmetric(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return 0.5 * (np.outer(a, b) + np.outer(b, a))
