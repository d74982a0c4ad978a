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
from dualopt.methods.participation import Round
from dualopt.objectives import Quadratic
from dualopt.runs.reference import newton
from dualopt.solvers import Exact, Gradient
from dualopt.solvers.stopping import GradientReduction, Steps
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


def decided(before: Server, *, slope: float = -9.0, energy: float = 3.0, dual: float = 8.0, **met: float) -> Any:
    """What becomes of a state with nu = 2 at the model (3, 4): with a dual value of 8 + 25 the gap is 36."""
    scalars = {name: np.asarray(met.get(name, 0.0)) for name in ("product", "square", "slope_product", "slope_square")}
    mean = Upload(np.array([3.0, 4.0]), np.asarray(slope), np.asarray(energy), np.asarray(dual), **scalars)
    round = Round(n=5, n_clients=3, clients=(0, 1, 2), communicate=True, seed=0)
    server, message = AdaptiveDualFL(nu=2.0).server(before, mean, round)
    np.testing.assert_array_equal(server.theta, [3.0, 4.0])
    np.testing.assert_array_equal(message.theta, [3.0, 4.0])
    assert all(type(x) is float for x in (*server[1:], *message[1:]))
    return server, message


GROWING = Server(np.array([3.0, 3.0]), t=1.5, s=0.5, left=0.0, gap=36.0, dual=40.0, energy=4.0)
HELD = GROWING._replace(t=2.0, left=0.5, gap=64.0)  # whose gap may be up to left times 260


def test_the_first_round_knows_its_gap_alone() -> None:
    first = GROWING._replace(t=1.0, s=1.0, gap=math.inf, dual=math.inf, energy=math.inf)
    server, message = decided(first, slope=9.0, product=1.0, square=4.0)
    assert server[1:] == first._replace(gap=36.0, dual=33.0, energy=3.0)[1:]
    assert message[1:] == (0.0, 1.0)


def test_the_larger_of_what_points_and_half_of_what_gradients_meet() -> None:
    """The first quotient is 1/4 each time; half of the second one is less, and then more."""
    for before in (GROWING._replace(t=1.0, s=1.5), HELD._replace(s=1.5)):
        for gradients, expected in ((0.4, 0.25), (0.6, 0.3), (2.0, 1.0), (4.0, 1.5)):
            server, _ = decided(before, product=1.0, square=4.0, slope_product=gradients, slope_square=1.0)
            assert server.s == expected
        server, _ = decided(before, product=-1.0, square=4.0, slope_product=-1.0, slope_square=1.0)
        assert server.s == 1.5


@pytest.mark.parametrize("t", [1.0, 2.0, 4.0, 8.0])
@pytest.mark.parametrize("gap", [0.0, 0.25, 9.0, 36.0, 64.0])
def test_what_the_gap_says_of_the_curvature(t: float, gap: float) -> None:
    """While the momentum grows, at most (6 + sqrt G_0)^2/(36 t^2); for a gap of 1/4 at most (1/2 + sqrt G_0)^2 4/t^2.

    A gap that is rounding, of 128 here to 128 times 256 units in the last place, says nothing.
    """
    before = GROWING._replace(t=t, s=3.0, gap=gap)
    root, rounding = math.sqrt(gap), 128.0 * 256.0 * 2.0**-52
    for dual, known in ((8.0, (6.0 + root) ** 2 / (36.0 * t**2)), (-27.75, 4.0 * (0.5 + root) ** 2 / t**2)):
        assert decided(before, dual=dual)[0].s == pytest.approx(min(3.0, known), rel=1e-14)
    for gap, told in ((-1e-13, False), (0.98 * rounding, False), (1.02 * rounding, True)):
        server, _ = decided(before, energy=39.0 + 12.5, dual=-76.5 + gap)
        assert (server.s < 3.0) == (told and (root + math.sqrt(gap)) ** 2 < 3.0 * t**2 * gap)
    assert decided(before, energy=51.5, dual=-76.5, product=1.0, square=16.0)[0].s == 0.0625  # which is met


def test_when_the_momentum_is_held() -> None:
    """Of a gap that is no larger than the first one: where slopes say uphill, or the momentum is as long as s bears.

    A model that moved by 1 leads uphill where the mean of the slopes is above -1.
    """
    for t, s, slope, first, held in (
        (1.5, 0.5, -0.75, 36.0, True),
        (1.5, 0.5, -0.75, 64.0, True),
        (1.5, 0.5, -0.75, 35.0, False),
        (1.5, 0.5, -1.25, 36.0, False),
        (1.0, 0.5, -0.75, 36.0, False),  # there is no momentum yet
        (2.0, 1.0, -1.25, 36.0, True),
        (2.0, 1.0, -1.25, 64.0, True),
        (2.0, 1.0, -1.25, 35.0, False),
        (2.0, 0.75, -1.25, 36.0, False),
    ):
        before = GROWING._replace(t=t, s=s, gap=first)
        server, message = decided(before, slope=slope)
        if held:
            steady = math.sqrt(1.0 + 1.0 / s)
            expected = Server(server.theta, steady, s, 1.0 - 1.0 / steady, gap=36.0, dual=33.0, energy=3.0)
            beta = 0.0
        else:
            longer, beta = momentum(t, 0.0)
            expected = before._replace(t=longer, s=min(s, (6.0 + math.sqrt(first)) ** 2 / (36.0 * t**2)))
            expected = expected._replace(dual=33.0, energy=3.0)
        assert server[1:] == pytest.approx(expected[1:], rel=1e-15)
        assert message[1:] == (beta, server.t)


def test_held_momentum_follows_the_estimate() -> None:
    for energy, met, s in ((4.0, 4.0, 0.5), (2.0, 1.0, 0.25)):
        server, message = decided(HELD._replace(energy=energy), product=met, square=4.0)
        t, beta = momentum(2.0, s / (1.0 + s))
        assert server[1:] == (t, s, 0.5 * (1.0 - 1.0 / t), 64.0, 33.0, min(energy, 3.0))
        assert message[1:] == (beta, t)


def test_a_failure_takes_the_round_back() -> None:
    """Where the gap, 36, is more than left times G_0 + (6 + sqrt G_0)^2, 180 with G_0 = 36 and 260 with 64."""
    for first, left, fails in ((36.0, 0.2, False), (36.0, 0.199, True), (64.0, 0.139, False), (64.0, 0.138, True)):
        for energy, met in ((4.0, 4.0), (2.0, 1.0)):
            server, message = decided(HELD._replace(left=left, gap=first, energy=energy), product=met, square=4.0)
            assert (server.left == 0.0) == fails
            if fails:
                least = min(energy, 3.0)
                assert server[1:] == (1.0, 0.5 * min(0.5, met / 4.0), 0.0, least + 40.0, 40.0, least)
                assert message[1:] == (-1.0, 1.0)


def test_rounding_is_no_failure() -> None:
    """Of 128, the sizes of the two parts of the gap, 256 units in the last place."""
    for units, fails in ((0.0, False), (0.98, False), (1.02, True)):
        dual = -76.5 + units * 128.0 * 256.0 * 2.0**-52
        server, _ = decided(HELD._replace(left=1e-3, gap=0.0), energy=51.5, dual=dual)
        assert (server.left == 0.0) == fails


def test_the_least_estimate() -> None:
    """Where a run goes on after convergence what is met may be anything: 1e-12 leaves t finite, and is reached."""
    for before in (GROWING, HELD):
        for met, s in ((4e-9, 1e-9), (4e-12, 1e-12), (4e-13, 1e-12)):
            assert decided(before, product=met, square=4.0)[0].s == s
    for s, halved in ((4e-12, 2e-12), (1.5e-12, 1e-12)):
        assert decided(HELD._replace(s=s, left=0.1))[0].s == halved


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


def test_clients_send_what_rough_solutions_meet() -> None:
    """The parts of both quotients, weighted, from the models and the duals that the clients keep."""
    means = []

    class Recorded(AdaptiveDualFL):
        def server(self, server, mean, round):
            means.append(mean)
            return super().server(server, mean, round)

    f = replace(lopsided().objective, weights=(5.0, 0.3, 1.0, 2.0))
    nu = float(f.mu.min())
    method = Recorded(nu=nu, solver=Gradient(), stop=Steps(steps=3))
    zeta, known = np.zeros_like(f.b), None
    for s in islice(iterate(method, f), 12):
        theta = s.clients.theta
        now = theta, zeta - theta, f.gradient(theta) / nu - theta
        if known is not None:
            moved, change, bend = (x - y for x, y in zip(now, known, strict=True))
            assert np.abs(change - bend).max() > 1e-3 * np.abs(change).max()
            pairs = (moved, change), (change, change), (moved, bend), (bend, bend)
            expected = [float(f.mean(np.sum(x * y, axis=1))) for x, y in pairs]
            np.testing.assert_allclose([float(x) for x in means[-1][4:]], expected, rtol=1e-9)
        zeta, known = s.clients.zeta, now


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
