"""The program as it reads: N functions, one proximal step per client and round, in PEPit's terms."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add, sub
from typing import Any

from PEPit import PEP, Constraint, Expression, Function, Point
from PEPit.functions import ConvexFunction, SmoothConvexFunction
from PEPit.primitive_steps import proximal_step

from theory.worst_case._semidefinite import TOLERANCES, Program, WorstCase, accept, solving

__all__ = ["solve"]


def solve(program: Program) -> WorstCase:
    """Solve the program twice, as the reduced one."""
    return accept(_solved(program, unit=_solved(program, unit=program.guess).value))


def _solved(program: Program, *, unit: float) -> WorstCase:
    problem, start = _problem(program, unit)
    answer: Any = problem  # PEPit fills in its attributes when it solves
    with solving():
        value = answer.solve(wrapper="cvxpy", solver="CLARABEL", verbose=0, **TOLERANCES)
    return WorstCase(
        value=float(unit * value),
        example=float(unit * answer.objective.eval()),
        multipliers=tuple(
            float(unit * c.eval_dual())
            for c in (start, *(c for f in problem.list_of_functions for c in f.list_of_class_constraints))
        ),
        status=answer.wrapper.prob.status,
    )


def _problem(program: Program, unit: float) -> tuple[PEP, Constraint]:
    problem, N = PEP(), program.n_clients
    if program.kappa is None:
        g: Sequence[Function] = [problem.declare_function(ConvexFunction) for _ in range(N)]
    else:
        g = [problem.declare_function(SmoothConvexFunction, L=program.kappa - 1.0) for _ in range(N)]

    # theta* may be any point where the gradients satisfy sum_j xi_j* = -N theta*
    theta_star = problem.set_initial_point()
    xi_star: list[Any] = [Point() for _ in range(N - 1)]
    xi_star.append(reduce(sub, xi_star, -1.0 * N * theta_star))
    values = [Expression() for _ in g]
    for function, gradient, value in zip(g, xi_star, values, strict=True):
        function.add_point((theta_star, gradient, value))
    dual_star = _dual_energy(xi_star, [theta_star] * N, values)

    theta, dual = _rounds(g, program.coefficients)
    size = reduce(add, [gradient**2 for gradient in xi_star])
    if program.start == "zeta":
        size = size - N * theta_star**2
    elif program.start == "energy":
        size = _dual_energy_at_zero(problem, g, program.kappa) - dual_star + size / (2.0 * (1.0 - program.rho))
    start = size <= 1.0
    problem.set_initial_condition(start)
    error = (theta - theta_star) ** 2 if program.measure == "distance" else dual - dual_star
    problem.set_performance_metric(error / unit)
    return problem, start


def _rounds(g: Sequence[Function], coefficients: tuple[tuple[float, float], ...]) -> tuple[Any, Any]:
    """Return theta^n and E_d(xi^n), from the start at zero."""
    zero = Point(is_leaf=False, decomposition_dict={})
    zeta = v_before = [zero] * len(g)
    theta, dual = zero, Expression(is_leaf=False, decomposition_dict={})
    for b, c in (*coefficients, (0.0, 0.0)):
        points, xi, values = zip(
            *(proximal_step(z, function, 1.0) for z, function in zip(zeta, g, strict=True)), strict=True
        )
        theta, dual = reduce(add, points) / len(g), _dual_energy(xi, points, values)
        v = [z + theta - point for z, point in zip(zeta, points, strict=True)]
        zeta = [w + b * (w - old) + c * (w - z) for w, old, z in zip(v, v_before, zeta, strict=True)]
        v_before = v
    return theta, dual


def _dual_energy(xi: Sequence[Any], points: Sequence[Any], values: Sequence[Any]) -> Any:
    """Return E_d(xi) for gradients xi_j of g_j at the points: Fenchel's equality gives g_j*."""
    conjugates = [gradient * point - value for gradient, point, value in zip(xi, points, values, strict=True)]
    return reduce(add, conjugates) + reduce(add, xi) ** 2 / (2.0 * len(xi))


def _dual_energy_at_zero(problem: PEP, g: Sequence[Function], kappa: float | None) -> Expression:
    """Return E_d(0) = -sum_j inf g_j.

    The point that attains the infimum is left out: only its inner products matter, which a long enough vector can give
    any value, and the solver would chase it to infinity.
    """
    infima = [Expression() for _ in g]
    for function, infimum in zip(g, infima, strict=True):
        for _, gradient, value in function.list_of_points:
            drop = 0.0 if kappa is None else gradient**2 / (2.0 * (kappa - 1.0))  # of a step 1/(L - nu)
            problem.add_constraint(infimum <= value - drop)
    return -1.0 * reduce(add, infima)
