"""Worst cases of methods that PEPit is told by hand, each as its paper writes it, beside those from our code."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from functools import reduce
from itertools import product
from operator import add
from typing import Any, NamedTuple

import pytest

from dualopt.lab.proofs import worst_case
from dualopt.methods.participation import CommunicateWithProbability, UniformSubset

pytest.importorskip("clarabel")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # escapes in docstrings, where it was not compiled when it was installed
    pytest.importorskip("PEPit")

    from PEPit import PEP, Expression, Function, Point
    from PEPit.functions import SmoothStronglyConvexFunction, StronglyConvexFunction
    from PEPit.primitive_steps import proximal_step

INF = math.inf
EQUAL = 1e-6
TOLERANCES = (1e-8, 3e-8, 1e-7)  # the first one that Clarabel reaches: on some processors it stops before 1e-8


class Clients:
    """Functions of a federation, the minimiser of their mean with their gradients there, and the model zero.

    Written out in points and not by ``stationary_point``, which would make equal questions in several histories, or
    another subgradient at the minimiser, of what is one vector.
    """

    def __init__(self, constants: Sequence[tuple[float, float]], weights: Sequence[float] | None = None) -> None:
        self.problem, weights = PEP(), weights or [1.0] * len(constants)
        self.shares = [w / sum(weights) for w in weights]
        self.f: list[Function] = [
            self.problem.declare_function(StronglyConvexFunction, mu=mu)
            if math.isinf(L)
            else self.problem.declare_function(SmoothStronglyConvexFunction, mu=mu, L=L)
            for mu, L in constants
        ]
        self.zero: Any = Point(is_leaf=False, decomposition_dict={})
        self.star: Any = Point()
        self.slopes: list[Any] = [Point() for _ in weights[1:]]
        of_others = reduce(add, [w * g for w, g in zip(weights[1:], self.slopes, strict=True)])
        self.slopes.insert(0, -1.0 / weights[0] * of_others)
        self.least: list[Any] = [Expression() for _ in weights]
        for f, g, value in zip(self.f, self.slopes, self.least, strict=True):
            f.add_point((self.star, g, value))
        self.solutions: dict[Any, Any] = {}

    def mean(self, points: Sequence[Any]) -> Any:
        return reduce(add, [a * x for a, x in zip(self.shares, points, strict=True)])

    def all(self, x: Any) -> list[Any]:
        return [x] * len(self.f)

    def prox(self, j: int, center: Any, step: float) -> Any:
        """Return a proximal point; the same question, in another history, has the same answer."""
        question = j, step, frozenset(center.decomposition_dict.items())
        if question not in self.solutions:
            self.solutions[question] = proximal_step(center, self.f[j], step)[0]
        return self.solutions[question]

    def tilted(self, j: int, slope: Any) -> Any:
        """Return the point where the gradient of a client is ``slope``."""
        x = Point()
        self.f[j].add_point((x, slope, Expression()))
        return x


Error = Callable[[Clients], Any]


class Case(NamedTuple):
    """A method as its paper writes it, which returns the error, and what our program is asked."""

    error: Error
    method: str
    constants: Sequence[tuple[float, float]]
    what: dict[str, Any]


def distance(c: Clients, theta: Any) -> Any:
    return (theta - c.star) ** 2


def gradient_descent(c: Clients) -> Any:
    x = c.zero
    for _ in range(3):
        x = x - 0.15 * c.mean([f.gradient(x) for f in c.f])
    return distance(c, x)


def energy_of_gradient_descent(c: Clients) -> Any:
    x = c.zero
    for _ in range(3):
        x = x - 0.8 * c.mean([f.gradient(x) for f in c.f])
    return c.mean([f(x) for f in c.f]) - c.mean(c.least)


def dual_ascent(c: Clients) -> Any:
    zeta, nu, theta = c.all(c.zero), 0.8, c.zero
    for _ in range(3):
        x = [c.tilted(j, nu * z) for j, z in enumerate(zeta)]
        theta = c.mean(x)
        zeta = [z + theta - own for z, own in zip(zeta, x, strict=True)]
    return distance(c, theta)


def dualfl(rho: float, rounds: int) -> Error:
    """Algorithm 1 of its paper with nu = 1, and the momentum (3.4)."""

    def error(c: Clients) -> Any:
        zeta = before = c.all(c.zero)
        t, theta = 1.0, c.zero
        for _ in range(rounds):
            x = [c.tilted(j, z) for j, z in enumerate(zeta)]
            theta = c.mean(x)
            now = [z + theta - own for z, own in zip(zeta, x, strict=True)]
            after = (1.0 - rho * t**2 + math.sqrt((1.0 - rho * t**2) ** 2 + 4.0 * t**2)) / 2.0
            beta = (t - 1.0) / after * (1.0 - after * rho) / (1.0 - rho)
            zeta = [(1.0 + beta) * v - beta * old for v, old in zip(now, before, strict=True)]
            before, t = now, after
        return distance(c, theta)

    return error


def dual_energy_of_dual_ascent(c: Clients) -> Any:
    """With mu = (1, 2): the mean of g_j*(xi_j), g_j = f_j - mu_j |.|^2/2, and |mean of xi_j|^2/3."""

    def energy(points: Sequence[Any], slopes: Sequence[Any], values: Sequence[Any]) -> Any:
        xi = [g - mu * x for mu, g, x in zip((1.0, 2.0), slopes, points, strict=True)]
        g = [v - mu * x**2 / 2 for mu, x, v in zip((1.0, 2.0), points, values, strict=True)]
        return c.mean([a * x - own for a, x, own in zip(xi, points, g, strict=True)]) + c.mean(xi) ** 2 / 3

    zeta, x = c.all(c.zero), c.all(c.zero)
    for n in range(3):
        if n:
            zeta = [z + c.mean(x) - own for z, own in zip(zeta, x, strict=True)]
        x = [c.tilted(j, z) for j, z in enumerate(zeta)]
    return energy(x, zeta, [f(own) for f, own in zip(c.f, x, strict=True)]) - energy(c.all(c.star), c.slopes, c.least)


def fedsplit(c: Clients) -> Any:
    """Its model is the mean of the local points."""
    z, consensus, theta = c.all(c.zero), c.zero, c.zero
    for _ in range(3):
        x = [c.prox(j, 2 * consensus - own, 0.3) for j, own in enumerate(z)]
        z = [own + 2 * (point - consensus) for own, point in zip(z, x, strict=True)]
        theta, consensus = c.mean(x), c.mean(z)
    return distance(c, theta)


def feddyn(c: Clients) -> Any:
    """One client of two in a round: the mean over all four histories of the same functions."""
    alpha, errors = 4.0, []
    for history in product((0, 1), repeat=2):
        theta, h, g = c.zero, c.zero, c.all(c.zero)
        for j in history:
            x = c.prox(j, theta + g[j] / alpha, 1.0 / alpha)
            g[j] = g[j] - alpha * (x - theta)
            h = h - alpha / 2.0 * (x - theta)
            theta = x - h / alpha
        errors.append(distance(c, theta))
    return reduce(add, errors) / len(errors)


def weighted_feddyn(c: Clients) -> Any:
    alpha, theta, h, g = 3.0, c.zero, c.zero, c.all(c.zero)
    for _ in range(2):
        x = [c.prox(j, theta + own / alpha, 1.0 / alpha) for j, own in enumerate(g)]
        g = [own - alpha * (point - theta) for own, point in zip(g, x, strict=True)]
        h = h - alpha * (c.mean(x) - theta)
        theta = c.mean(x) - h / alpha
    return distance(c, theta)


def fedpd(c: Clients) -> Any:
    """A coin decides whether the copies are averaged; the model is the last average."""
    eta, errors = 0.4, []
    for history in product((False, True), repeat=2):
        model, copies, duals = c.zero, c.all(c.zero), c.all(c.zero)
        for communicates in history:
            x = [c.prox(j, copies[j] - eta * duals[j], eta) for j in range(2)]
            duals = [duals[j] + (x[j] - copies[j]) / eta for j in range(2)]
            copies = [x[j] + eta * duals[j] for j in range(2)]
            if communicates:
                model = c.mean(copies)
                copies = c.all(model)
        errors.append(distance(c, model))
    return reduce(add, errors) / len(errors)


def fedadmm(c: Clients) -> Any:
    """One client of two in a round, and the server step P/N = 1/2."""
    rho, errors = 3.0, []
    for history in product((0, 1), repeat=2):
        theta, models, duals = c.zero, c.all(c.zero), c.all(c.zero)
        for j in history:
            x = c.prox(j, theta - duals[j] / rho, 1.0 / rho)
            dual = duals[j] + rho * (x - theta)
            theta = theta + ((x + dual / rho) - (models[j] + duals[j] / rho)) / 2.0
            models[j], duals[j] = x, dual
        errors.append(distance(c, theta))
    return reduce(add, errors) / len(errors)


def scaffold(c: Clients) -> Any:
    """One local step s, and the server step 1: the new control of a client is its gradient at the model."""
    theta, controls = c.zero, c.all(c.zero)
    for _ in range(3):
        common = c.mean(controls)
        gradients = [f.gradient(theta) for f in c.f]
        theta = c.mean([theta - 0.12 * (g - own + common) for g, own in zip(gradients, controls, strict=True)])
        controls = gradients
    return distance(c, theta)


TWO = [(1.0, 10.0)] * 2
UNEQUAL = [(1.0, 10.0), (0.5, 4.0), (2.0, 3.0)]
SHARES = (1.0, 3.0, 2.0)
ONE, COIN = UniformSubset(size=1), CommunicateWithProbability(probability=0.5)
CASES = {
    "gradient descent, unequal clients with weights": Case(
        gradient_descent, "gradient-descent: step=0.15", UNEQUAL, {"rounds": 3, "weights": SHARES}
    ),
    "gradient descent, energy of convex clients": Case(
        energy_of_gradient_descent, "gradient-descent: step=0.8", [(0.0, 1.0)] * 2, {"rounds": 3, "measure": "value"}
    ),
    "dual ascent": Case(dual_ascent, "dual-ascent: nu=0.8", TWO, {"rounds": 3, "start": (0.0, 1.0)}),
    "dual ascent, dual energy": Case(
        dual_energy_of_dual_ascent,
        "dual-ascent: nu=1.0",
        [(1.0, 10.0), (2.0, 5.0)],
        {"rounds": 3, "measure": "dual", "start": (2.0, 1.0)},
    ),
    "DualFL": Case(dualfl(0.1, 3), "dualfl: rho=0.1, nu=1.0", TWO, {"rounds": 3, "start": (2.0, 1.0)}),
    "DualFL, any convex loss": Case(
        dualfl(0.0, 4), "dualfl: rho=0.0, nu=1.0", [(1.0, INF)] * 2, {"rounds": 4, "start": (2.0, 1.0)}
    ),
    "FedSplit": Case(fedsplit, "fedsplit: step=0.3", TWO, {"rounds": 3, "start": (1.0, 0.1)}),
    "FedDyn, one client of two": Case(
        feddyn, "feddyn: alpha=4.0", TWO, {"rounds": 2, "participation": ONE, "start": (1.0, 0.1)}
    ),
    "FedDyn, unequal clients with weights": Case(
        weighted_feddyn, "feddyn: alpha=3.0", UNEQUAL, {"rounds": 2, "weights": SHARES, "start": (1.0, 0.1)}
    ),
    "FedPD with a coin": Case(fedpd, "fedpd: eta=0.4", TWO, {"rounds": 2, "participation": COIN, "start": (1.0, 0.1)}),
    "FedADMM, one client of two": Case(
        fedadmm, "fedadmm: rho=3.0", TWO, {"rounds": 2, "participation": ONE, "start": (1.0, 0.1)}
    ),
    "Scaffold, one local step": Case(
        scaffold,
        "scaffold: solver=(gradient: step=0.12), stop=(steps: steps=1)",
        [(1.0, 10.0), (2.0, 5.0)],
        {"rounds": 3, "start": (1.0, 0.1)},
    ),
}


def of_pepit(case: Case) -> tuple[float, float]:
    """Return the values of the program and of its dual: the worst case lies between them."""
    for tolerance in TOLERANCES:
        status, *values = solved_by_pepit(case, tolerance)
        if status == "optimal":
            return values[0], values[1]
    raise AssertionError(f"Clarabel says {status} at {tolerance}")


def solved_by_pepit(case: Case, tolerance: float) -> tuple[str, float, float]:
    """Return the status, and the values of the program and of its dual."""
    c, (a, b) = Clients(case.constants, case.what.get("weights")), case.what.get("start", (1.0, 0.0))
    size = reduce(add, [b * g**2 for g in c.slopes], a * c.star**2)
    c.problem.set_initial_condition(size <= 1.0)
    c.problem.set_performance_metric(case.error(c))
    answer: Any = c.problem  # it gets its attributes when it is solved
    given = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), tolerance)
    with warnings.catch_warnings(action="ignore"):  # of a solution that may be inaccurate, as the status says
        dual = answer.solve(wrapper="cvxpy", solver="CLARABEL", verbose=0, **given)
    return answer.wrapper.prob.status, float(answer.objective.eval()), float(dual)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_pepit_finds_the_same(case: Case) -> None:
    mu, L = zip(*case.constants, strict=True)
    ours, (primal, dual) = worst_case(case.method, mu=mu, L=L, **case.what), of_pepit(case)
    assert primal == pytest.approx(dual, rel=EQUAL)
    assert ours.value == pytest.approx(dual, rel=EQUAL)
    assert ours.example == pytest.approx(primal, rel=EQUAL)
