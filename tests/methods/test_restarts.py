"""Restarts of DualFL and OptimizedDualFL: their rules from the definitions, what they gain, and what they refuse."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
import pytest

from dualopt import run
from dualopt.engine.rounds import State, advance, iterate
from dualopt.methods import (
    DualFL,
    GapRestartedDualFL,
    OptimizedDualFL,
    RestartedDualFL,
    RestartedOptimizedDualFL,
    parameters,
)
from dualopt.methods.dualfl import momentum
from dualopt.methods.optimized_dualfl import coefficients
from dualopt.methods.participation import CommunicateWithProbability, Full, UniformSubset
from dualopt.objectives import ObjectiveWrapper, Quadratic
from dualopt.runs.reference import newton
from dualopt.solvers import LBFGS, SGD, Exact
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
            assert step.gap > restarts.TELLING * step.rounding
            v = s.clients.v
            uphill = float(np.sum(nu * (zeta - v) * (v - before))) > 0
            assert step.ends == (math.isinf(first) or step.gap <= first / (9.0 if uphill else 100.0))
            if step.ends:
                ends.append(uphill)
                first = step.gap
            zeta, before = s.clients.zeta, v
    assert set(ends) == {True, False}
    assert len(ends) >= 10


def rounds(method: Any, f: Any, tol: float = 1e-8) -> int:
    trace = run(method, f, rounds=600, tol=tol)
    return len(trace) - 1 if trace.status == "converged" else 1000


@by_gradient
def test_restarts_need_fewer_rounds(kind: type) -> None:
    """Than no restart and, although they do not know L, than the suggested rho."""
    f = breast_cancer().objective
    plain = BY_GRADIENT[kind]
    assert rounds(kind(), f) < 0.75 * min(rounds(plain(rho=0.0), f), rounds(plain(), f))


def test_the_gap_restart_needs_fewer_rounds() -> None:
    f = breast_cancer().objective
    assert rounds(GapRestartedDualFL(), f) < 0.75 * min(rounds(DualFL(rho=0.0), f), rounds(DualFL(), f))


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


@every_restart
def test_stays_at_the_optimum(name: str) -> None:
    f = quadratic()
    method = RESTARTED[name](solver=Exact()).suggested(f)
    state = State(*method.fixed_point(f, f.minimiser()))
    for round in islice(Full().rounds(f.n_clients, seed=0), 8):
        state, _, _ = advance(method, f, state, round)
        np.testing.assert_allclose(state.server.theta, f.minimiser(), atol=1e-13)


@pytest.mark.parametrize(
    ("kind", "up", "down"),
    [
        (DualFL, 20, 21),
        (RestartedDualFL, 21, 21),
        (GapRestartedDualFL, 22, 22),
        (RestartedOptimizedDualFL, 21, 22),
    ],
)
def test_scalars_are_counted(kind: type, up: int, down: int) -> None:
    f = quadratic(n=3, d=20)
    s = next(islice(iterate(kind(), f), 1, None))
    assert (s.floats_up, s.floats_down) == (3 * up, 3 * down)


def test_the_gap_restart_costs_half_a_gradient() -> None:
    f = quadratic()
    charged = []
    for kind in (DualFL, GapRestartedDualFL):
        solution = next(iterate(kind(solver=Exact()), f)).solution
        assert solution is not None
        charged.append(solution.gradients)
    assert np.subtract(charged[1], charged[0]).tolist() == [0.5] * f.n_clients


@pytest.mark.parametrize(
    ("kind", "options", "sentence"),
    [
        (GapRestartedDualFL, {"solver": SGD(step=0.1)}, "solver must compute local gradients"),
        (GapRestartedDualFL, {"nu": -1.0}, "nu must be a positive finite number, not -1.0"),
    ],
)
def test_refusals(kind: type, options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        kind(**options)


@every_restart
def test_everybody_takes_part_in_every_round(name: str) -> None:
    for participation in (UniformSubset(size=2), CommunicateWithProbability(probability=0.5)):
        with pytest.raises(ValueError, match="does not support"):
            next(iterate(RESTARTED[name](), logistic(), participation=participation))


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
def test_what_is_suggested(kind: type) -> None:
    smooth = logistic()
    assert kind().suggested(smooth).rho == pytest.approx(smooth.mu.min() / smooth.L.max())
    assert kind().suggested(hinge(mu=0.5)).rho == 0.0


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


def test_unknown_curvature_is_served_best_by_a_restart() -> None:
    known = breast_cancer().objective
    f, optimum = Unknown(known), newton(known, tol=1e-13).energy
    needed = []
    for method in (RestartedDualFL(nu=0.01, solver=LBFGS()), DualFL(nu=0.01, rho=0.0, solver=LBFGS())):
        trace = run(method, f, rounds=120, reference=optimum, check_assumptions=False)
        needed.append(int(np.argmax(trace["error"] <= 1e-8)))
    assert 0 < needed[0] < needed[1]


@pytest.mark.parametrize(
    ("kind", "nonsmooth", "said"),
    [
        (
            GapRestartedDualFL,
            False,
            "Theorem E: the certified gap falls by 100 in at most 95 rounds",
        ),
        (GapRestartedDualFL, True, "Theorem E: O(1/n^2) at the mean models"),
        (RestartedDualFL, False, "linear for smooth clients (theory/frontier/restarts.py), without a useful factor"),
        (RestartedDualFL, True, "none: its theorem needs smooth clients"),
        (RestartedOptimizedDualFL, False, "none: no theorem of this package covers it"),
    ],
)
def test_guarantees(kind: type, nonsmooth: bool, said: str) -> None:
    f = (
        hinge(mu=0.5)
        if nonsmooth
        else Quadratic(A=np.stack([np.diag([0.5, 4.0]), np.diag([1.0, 10.0])]), b=np.ones((2, 2)))
    )
    assert kind().guarantee(f) == said
    assert kind(nu=2.0 * float(f.mu.min())).guarantee(f).startswith("none: ")
