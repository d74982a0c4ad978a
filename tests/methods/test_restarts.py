"""Restarts of DualFL and OptimizedDualFL: their rules from the definitions, what they gain, and what they refuse."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dualopt import run
from dualopt.engine.rounds import iterate
from dualopt.methods import (
    DualFL,
    GapRestartedDualFL,
    OptimizedDualFL,
    RestartedDualFL,
    RestartedOptimizedDualFL,
    parameters,
)
from dualopt.methods._restarts import slope
from dualopt.methods.dualfl import momentum
from dualopt.methods.gap_restarted_dualfl import Server, Upload, conjugate
from dualopt.methods.optimized_dualfl import coefficients
from dualopt.methods.participation import Round
from dualopt.objectives import ObjectiveWrapper, Quadratic
from dualopt.runs.reference import newton
from dualopt.solvers import Exact
from tests.problems import digits, hinge, logistic, quadratic
from theory._problems import breast_cancer, lopsided
from theory.frontier import restarts
from theory.frontier.scaled_dualfl import unequal

RESTARTED: dict[str, Any] = {
    "dualfl, gradient": RestartedDualFL,
    "dualfl, gap": GapRestartedDualFL,
    "optimized-dualfl, gradient": RestartedOptimizedDualFL,
}
BY_GRADIENT = {RestartedDualFL: DualFL, RestartedOptimizedDualFL: OptimizedDualFL}
by_gradient = pytest.mark.parametrize("kind", BY_GRADIENT)
every_restart = pytest.mark.parametrize("name", RESTARTED)


def restarted_loop(f: Quadratic, nu: np.ndarray, kind: type) -> Iterator[tuple[np.ndarray, bool]]:
    """The gradient restart from its definition, everything in one place: models, and whether it restarts."""
    zeta, v, t, A = np.zeros_like(f.b), np.zeros_like(f.b), 1.0, 0.0
    while True:
        local = np.stack([np.linalg.solve(f.A[j], f.b[j] + nu[j] * zeta[j]) for j in range(len(nu))])
        theta = nu @ local / nu.sum()
        before, v = v, zeta + theta - local
        uphill = float(np.sum(nu[:, None] * (zeta - v) * (v - before)))
        if uphill > 0:
            zeta, t, A = v, 1.0, 0.0
        elif issubclass(kind, DualFL):
            t, beta = momentum(t, 0.0)
            zeta = v + beta * (v - before)
        else:
            A, b, c = coefficients(A, 0.0)
            zeta = v + b * (v - before) + c * (v - zeta)
        yield theta, uphill > 0


def began(kind: type, server: Any) -> bool:
    """Whether a new epoch begins after a round."""
    return server.t == 1.0 if issubclass(kind, DualFL) else server.A == 0.0


@by_gradient
@pytest.mark.parametrize("scaled", [False, True])
def test_gradient_restarts_are_those_of_the_definition(kind: type, scaled: bool) -> None:
    f = lopsided().objective
    nu = f.mu if scaled else np.full(4, f.mu.min())
    method = kind(solver=Exact())
    found = 0
    for s, (theta, again) in islice(
        zip(iterate(method, f, scales=nu), restarted_loop(f, nu, kind), strict=False), 60
    ):  # then rounding decides
        np.testing.assert_allclose(s.server.theta, theta, rtol=0, atol=1e-12)
        assert began(kind, s.server) == again
        found += again
    assert found >= 2


def test_gap_restarts_are_those_of_the_definition() -> None:
    """The gap as the claims compute it, from averages of their own; the slope from the states."""
    ends = []
    for f, n, scaled in ((lopsided(), 60, False), (lopsided(), 40, True), (unequal(), 350, False)):
        case = restarts.restarted(f, "gap", n, scaled=scaled)
        nu = restarts.parameters(case)[:, None]
        zeta, before, first = np.zeros_like(case.subgradients), np.zeros_like(case.subgradients), math.inf
        for step, s in zip(restarts.path(case), case.snapshots(), strict=True):
            assert step.found.gap > restarts.TELLING * step.found.rounding
            v = s.clients.v
            uphill = float(np.sum(nu * (zeta - v) * (v - before))) > 0
            assert step.ends == (math.isinf(first) or step.found.gap <= first / (9.0 if uphill else 100.0))
            if step.ends:
                ends.append(uphill)
                first = step.found.gap
            assert s.server.gap * case.n_clients == pytest.approx(first, rel=1e-9, abs=step.found.rounding)
            zeta, before = s.clients.zeta, v
    assert set(ends) == {True, False}
    assert len(ends) >= 10


def test_slopes_without_the_model_add_up_to_those_with_it() -> None:
    """(1) of the module: both are the weighted sums of <theta_j - theta, v_j - v_j of the round before>."""
    rng, w = np.random.default_rng(0), np.array([0.5, 0.2, 0.3])
    before, local, zeta, last = rng.standard_normal(4), *rng.standard_normal((3, 3, 4))
    zeta, last = zeta - w @ zeta, last - w @ last
    theta = w @ local
    v = zeta - (local - theta)
    expected = w @ np.sum((local - theta) * (v - last), axis=1)
    moved = theta - before
    assert w @ slope(local, before, zeta, last) + moved @ moved == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("gap", "uphill", "first", "again"),
    [
        (4.0, -0.75, 36.0, True),  # a ninth, and the momentum leads uphill
        (4.0, -1.0, 36.0, False),
        (4.0, -1.0, 400.0, True),  # a hundredth
        (4.0, -1.0, 399.0, False),
        (4.0, -0.75, 35.9, False),
        (4.0, -1.0, math.inf, True),  # the first round, whatever its gap is
        (-1.0, -1.0, math.inf, True),
        (0.5, -0.75, 4.6, True),
        (0.0, -0.75, 36.0, False),  # rounding
        (-1.0, -0.75, 36.0, False),
    ],
)
def test_when_an_epoch_ends(gap: float, uphill: float, first: float, again: bool) -> None:
    """With nu = 2 at the model (3, 4), 25 are added to what the clients send; uphill is above minus its move, 1."""
    before = Server(np.array([3.0, 3.0]), t=2.0, gap=first)
    mean = Upload(np.array([3.0, 4.0]), np.asarray(uphill), np.asarray(gap - 25.0))
    round = Round(n=5, n_clients=3, clients=(0, 1, 2), communicate=True, seed=0)
    server, message = GapRestartedDualFL(nu=2.0).server(before, mean, round)
    assert server.theta.tolist() == message.theta.tolist() == [3.0, 4.0]
    t, beta = (1.0, 0.0) if again else momentum(2.0, 0.0)
    assert (server.t, message.t, message.beta) == (t, t, beta)
    assert server.gap == (gap if again else first)


@pytest.mark.parametrize("excess", [None, np.array([0.5, 0.25])])
def test_conjugates_at_the_gradients(excess: np.ndarray | None) -> None:
    """g_j = f_j - |.|^2 at (3, 4) and (1, 0), nu = 2: what an inexact subgradient is off by is added."""
    theta, f, gradient = np.array([[3.0, 4.0], [1.0, 0.0]]), np.array([7.0, 5.0]), np.array([[2.0, 1.0], [-1.0, 9.0]])
    solution: Any = SimpleNamespace(theta=theta, evaluation=SimpleNamespace(f=f, grad_f=gradient), excess=excess)
    expected = np.array([10.0 - 7.0 - 25.0, -1.0 - 5.0 - 1.0]) + (0.0 if excess is None else excess)
    assert conjugate(solution, 2.0).tolist() == expected.tolist()


@cache
def rounds(method: Any) -> int:
    trace = run(method, breast_cancer().objective, rounds=600, tol=1e-8)
    return len(trace) - 1 if trace.status == "converged" else 1000


@pytest.mark.parametrize(
    ("kind", "plain"), [*BY_GRADIENT.items(), (GapRestartedDualFL, DualFL)], ids=lambda kind: kind.__name__
)
def test_restarts_need_fewer_rounds(kind: type, plain: type) -> None:
    """Than no restart and, although they do not know L, than the suggested rho."""
    assert rounds(kind()) < 0.75 * min(rounds(plain(rho=0.0)), rounds(plain()))


@pytest.mark.parametrize("scales", ["none", "suggested"])
@every_restart
def test_certificates_hold_through_restarts(name: str, scales: str) -> None:
    f = digits(rows=240)
    f = f if scales == "none" else replace(f, weights=(5.0, 0.3, 1.0, 2.0, 1.0, 1.0, 8.0, 0.1))
    optimum = newton(f, tol=1e-13)
    method = RESTARTED[name]()
    trace = run(method, f, rounds=600, tol=1e-9, reference=optimum.energy, scales=scales)
    assert trace.status == "converged"
    assert np.all(trace["certificate"] >= trace["energy"] - optimum.energy - optimum.gap)
    assert any(began(type(method), s.server) for s in islice(iterate(method, f, scales=scales), 2, len(trace)))


def test_the_gap_restart_costs_half_a_gradient() -> None:
    f = quadratic()
    charged = []
    for kind in (DualFL, GapRestartedDualFL):
        solution = next(iterate(kind(solver=Exact()), f)).solution
        assert solution is not None
        charged.append(solution.gradients)
    assert np.subtract(charged[1], charged[0]).tolist() == [0.5] * f.n_clients


@dataclass
class Unknown(ObjectiveWrapper):
    """Of whose curvature nothing is known."""

    objective: Any

    @property
    def mu(self):
        return self.objective.mu - np.inf

    @property
    def L(self):
        return self.objective.L + np.inf


@pytest.mark.parametrize("kind", [DualFL, OptimizedDualFL])
def test_unknown_curvature_names_the_method_to_take(kind: type) -> None:
    unknown = Unknown(logistic())
    with pytest.raises(ValueError, match=r"^rho must be given: L is not known; restarted-dualfl needs neither\.$"):
        kind(nu=0.05).suggested(unknown)
    assert kind(nu=0.05, rho=0.01).suggested(unknown).rho == 0.01


@every_restart
def test_a_restart_needs_no_rho_and_no_L(name: str) -> None:
    assert "rho" not in parameters(RESTARTED[name])
    for f in (logistic(), hinge(mu=0.5), Unknown(logistic())):
        assert RESTARTED[name](nu=0.05).suggested(f).rho == 0.0
