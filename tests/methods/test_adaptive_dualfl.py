"""AdaptiveDualFL: its rule from the definitions, what it gains, and what it refuses."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import pytest

from dualopt import run
from dualopt.engine.rounds import iterate
from dualopt.methods import AdaptiveDualFL, DualFL, GapRestartedDualFL, RestartedDualFL
from dualopt.methods.adaptive_dualfl import Server, Upload, quotient
from dualopt.methods.dualfl import momentum
from dualopt.methods.gap_restarted_dualfl import Message
from dualopt.methods.participation import Round
from dualopt.objectives import Quadratic
from dualopt.runs.reference import newton
from dualopt.solvers import Exact
from dualopt.solvers.stopping import GradientReduction
from tests.problems import digits, quadratic
from theory._problems import breast_cancer, lopsided
from theory.frontier.adaptive_dualfl import faint
from theory.frontier.scaled_dualfl import unequal


class Row(NamedTuple):
    """A round of the definition."""

    theta: np.ndarray
    s: float
    event: str


def by_definition(f: Quadratic, nu: np.ndarray, first: float) -> Iterator[Row]:
    """The method on quadratics, everything in one place, in the dual points xi and the models of DualFL's theorems."""
    column, S = nu[:, None], float(nu.sum())
    constants = np.zeros(len(nu)) if f.c is None else f.c

    def energy(w: np.ndarray) -> float:
        return float(np.sum(f.value(w)))

    def dual(xi: np.ndarray) -> float:
        values = 0.0
        for j in range(len(nu)):
            H = f.A[j] - nu[j] * np.eye(len(f.b[j]))
            x = np.linalg.lstsq(H, xi[j] + f.b[j], rcond=None)[0]  # where the gradient of g_j is xi_j
            values += xi[j] @ x - (0.5 * x @ H @ x - f.b[j] @ x + constants[j])
        return values + float(np.sum(np.sum(xi, axis=0) ** 2)) / (2.0 * S)

    eta, before, last = np.zeros_like(f.b), np.zeros_like(f.b), np.zeros_like(f.b)
    t, s, held, B, G0, best = 1.0, first, False, 1.0, math.inf, math.inf
    mean, known, E_before = np.zeros(f.b.shape[1]), False, math.inf
    while True:
        w = -eta.sum(axis=0) / S
        mean = mean + (w - mean) / t
        B *= 1.0 - 1.0 / t
        # the minimiser of f_j - <eta_j + nu_j w, .>
        local = np.stack([np.linalg.solve(f.A[j], f.b[j] + eta[j] + nu[j] * w) for j in range(len(nu))])
        xi = eta + column * (w - local)
        E, D = energy(mean), dual(xi)
        gap, best, event = E + D, min(best, E), ""
        if known:
            change = xi - before
            s = min(s, float(np.sum(change * (local - last)) / np.sum(change**2 / column)))
        else:
            G0 = gap
        both = (math.sqrt(max(gap, 0.0)) + math.sqrt(max(G0, 0.0))) ** 2
        theta = local.T @ nu / S
        if not known:
            known, eta_next = True, xi
        elif not held:
            s = min(s, both / (t * t * gap))
            uphill = float(np.sum((eta - xi) * (xi - before) / column)) > 0 and t > 1
            if gap <= G0 and (uphill or t * t * s >= 4.0):
                held, B, G0, t, eta_next, event = True, 1.0, gap, math.sqrt(1.0 + 1.0 / s), xi, "held"
            else:
                t, beta = momentum(t, 0.0)
                eta_next = xi + beta * (xi - before)
        elif gap > B * (G0 + both):
            s, held, t, G0, eta_next, event = 0.5 * s, False, 1.0, best + E_before, before, "failed"
        else:
            t, beta = momentum(t, s / (1.0 + s))
            eta_next = xi + beta * (xi - before)
        yield Row(theta, s, event)
        before, last, eta, E_before = xi, local, eta_next, D


@pytest.mark.parametrize(
    ("name", "scaled", "first", "rounds", "events"),
    [
        ("lopsided", False, 1.0, 40, ["held"]),
        ("lopsided", True, 1.0, 25, ["held"]),
        ("unequal", False, 0.002, 100, ["held"]),
        ("faint", False, 1.0, 100, ["held", "failed", "held"]),
    ],
)
def test_rounds_are_those_of_the_definition(
    name: str, scaled: bool, first: float, rounds: int, events: list[str]
) -> None:
    f: Any = {"lopsided": lopsided, "unequal": unequal, "faint": faint}[name]().objective
    nu = f.mu if scaled else np.full(f.n_clients, f.mu.min())
    method = AdaptiveDualFL(solver=Exact(), first=first)
    found = []
    turns = iterate(method, f, scales=nu)
    for s, row in islice(zip(turns, by_definition(f, nu, first), strict=False), rounds):
        scale = float(np.max(np.abs(row.theta)))
        np.testing.assert_allclose(s.server.theta, row.theta, rtol=0, atol=1e-8 * scale)
        assert s.server.s == pytest.approx(row.s, rel=1e-5)
        found += [row.event] if row.event else []
        assert (s.server.left > 0.0) == (found[-1:] == ["held"])
    assert found == events


def decided(*, t: float, s: float, slope: float = -9.0, **met: float) -> tuple[Server, Message]:
    """What a growing momentum becomes with nu = 2 at the model (3, 4), after (3, 3): the gap is 36, as at first."""
    numbers = {"slope": slope, "energy": 3.0, "dual": 8.0, "product": 0.0, "square": 0.0}
    numbers = {**numbers, "slope_product": 0.0, "slope_square": 0.0, **met}
    mean = Upload(np.array([3.0, 4.0]), **{name: np.asarray(number) for name, number in numbers.items()})
    before = Server(np.array([3.0, 3.0]), t, s, left=0.0, gap=36.0, dual=40.0, energy=4.0)
    round = Round(n=5, n_clients=3, clients=(0, 1, 2), communicate=True, seed=0)
    return AdaptiveDualFL(nu=2.0).server(before, mean, round)


def test_the_larger_of_what_points_and_half_of_what_gradients_meet() -> None:
    """The first quotient is 1/4 each time; half of the second one is less, and then more."""
    for gradients, expected in ((0.4, 0.25), (0.6, 0.3), (2.0, 1.0)):
        server, _ = decided(t=1.0, s=1.5, product=1.0, square=4.0, slope_product=gradients, slope_square=1.0)
        assert (server.s, server.left) == (expected, 0.0)


def test_when_the_momentum_is_held() -> None:
    """Of a gap that is no larger than the first one: where slopes say uphill, or the momentum is as long as s bears.

    A model that moved by 1 leads uphill where the mean of the slopes is above -1.
    """
    for t, s, slope, held in (
        (1.5, 0.5, -0.75, True),
        (1.5, 0.5, -1.25, False),
        (1.0, 0.5, -0.75, False),  # there is no momentum yet
        (2.0, 1.0, -1.25, True),
        (2.0, 0.75, -1.25, False),
    ):
        server, message = decided(t=t, s=s, slope=slope)
        assert server.s == s
        assert server.gap == 36.0
        if held:
            steady = math.sqrt(1.0 + 1.0 / s)
            assert (server.t, server.left, message.beta) == (steady, 1.0 - 1.0 / steady, 0.0)
        else:
            assert (server.t, message.beta, server.left) == (*momentum(t, 0.0), 0.0)


@cache
def rounds(method: Any) -> int:
    trace = run(method, breast_cancer().objective, rounds=600, tol=1e-8)
    return len(trace) - 1 if trace.status == "converged" else 1000


def test_it_needs_fewer_rounds_than_what_is_suggested() -> None:
    """Than rho = nu/L, which knows L, and rho = 0."""
    assert rounds(AdaptiveDualFL()) < 0.75 * min(rounds(DualFL()), rounds(DualFL(rho=0.0)))


def test_a_failure_saves_the_run() -> None:
    """Where the curvature met misleads, a run without (4) is behind one with it."""
    f = faint().objective

    def error(method: Any) -> float:
        return float(np.sum((run(method, f, rounds=200).theta - faint().theta) ** 2))

    class Blind(AdaptiveDualFL):
        def server(self, server, mean, round):
            return super().server(server._replace(left=min(1.0, 1e9 * server.left)), mean, round)

    assert error(AdaptiveDualFL(solver=Exact())) < 1e-2 * error(Blind(solver=Exact()))


def test_gradients_show_what_dual_points_of_rough_solutions_do_not() -> None:
    """Their quotient is at least sigma whatever the solutions are; that of the dual points falls below a half of it."""
    met = []

    class Recorded(AdaptiveDualFL):
        def server(self, server, mean, round):
            if round.n > 0:
                met.append((quotient(mean.product, mean.square), quotient(mean.slope_product, mean.slope_square)))
            return super().server(server, mean, round)

    f = digits(rows=240)
    method = Recorded(stop=GradientReduction(factor=0.9, first=0.9)).suggested(f)
    sigma = method.nu / (float(f.L.max()) - method.nu)
    for _ in islice(iterate(method, f), 150):
        pass
    by_points, by_gradients = zip(*met, strict=True)
    assert min(by_gradients) >= sigma
    assert min(by_points) < 0.5 * sigma


@pytest.mark.parametrize("scales", ["none", "suggested"])
def test_certificates_hold(scales: str) -> None:
    f = digits(rows=240)
    f = f if scales == "none" else replace(f, weights=(5.0, 0.3, 1.0, 2.0, 1.0, 1.0, 8.0, 0.1))
    optimum = newton(f, tol=1e-13)
    trace = run(AdaptiveDualFL(), f, rounds=600, tol=1e-9, reference=optimum.energy, scales=scales)
    assert trace.status == "converged"
    assert np.all(trace["certificate"] >= trace["energy"] - optimum.energy - optimum.gap)


def test_it_costs_half_a_gradient_and_seven_scalars() -> None:
    f = quadratic()
    charged, sent = [], []
    for kind in (DualFL, RestartedDualFL, GapRestartedDualFL, AdaptiveDualFL):
        trace = run(kind(solver=Exact()), f, rounds=3)
        charged.append(trace["gradients"][-1])
        sent.append(trace["floats_up"][-1] / (3 * f.n_clients))
    assert np.subtract(charged, charged[0]).tolist() == [0.0, 0.0, 1.5, 1.5]
    assert np.subtract(sent, sent[0]).tolist() == [0.0, 1.0, 2.0, 7.0]


def test_it_goes_on_after_convergence() -> None:
    """Where gaps and changes are rounding, neither the estimate nor the model runs away."""
    f = quadratic()
    method = AdaptiveDualFL(solver=Exact())
    last = list(islice(iterate(method, f), 3000))[-1]
    assert last.server.s > 0
    np.testing.assert_allclose(last.server.theta, f.minimiser(), rtol=0, atol=1e-12 * float(np.max(np.abs(f.b))))


def test_one_client_and_clients_that_are_their_quadratic_part() -> None:
    """Where L = nu the dual points never change: no curvature is met."""
    f = Quadratic(A=np.stack([np.eye(2), np.eye(2)]), b=np.array([[3.0, 1.0], [1.0, -1.0]]))
    trace = run(AdaptiveDualFL(solver=Exact()), f, rounds=5)
    np.testing.assert_allclose(trace.theta, [2.0, 0.0], rtol=0, atol=1e-14)


@pytest.mark.parametrize("first", [0.0, -1.0, math.inf, math.nan])
def test_a_first_estimate_that_is_none(first: float) -> None:
    with pytest.raises(ValueError, match=r"^first must be a positive finite number"):
        AdaptiveDualFL(first=first)
