"""Clients that are not smooth, or merely convex: sublinear worst cases, what theorems allow, and where no rate is."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import pytest

from dualopt.engine.rounds import advance, initial_state
from dualopt.lab.proofs import prove, worst_case
from dualopt.lab.proofs._promised import claimed_bound
from dualopt.lab.proofs._setting import Setting
from dualopt.methods import DualAscent, DualFL, FedDyn, GrowingFedDyn, OptimizedDualFL, SampledDualFL
from dualopt.methods.participation import UniformSubset, first_round
from dualopt.objectives import Quadratic
from dualopt.solvers import Exact
from dualopt.solvers.stopping import GradientReduction

INF = math.inf
ONE_OF_TWO = UniformSubset(size=1)


@pytest.mark.parametrize(("mu", "rounds"), [(0.0, 1), (0.0, 4), (0.0, 8), (0.5, 1), (0.5, 3)])
def test_proximal_points_of_one_client(mu: float, rounds: int) -> None:
    """E - E* <= w R^2/(4n) for convex functions (Taylor, Hendrickx, Glineur 2017), (1 + mu/w)^(-2n) R^2 for others."""
    weight = 2.0
    measure, expected = ("distance", (1 + mu / weight) ** (-2 * rounds)) if mu else ("value", weight / (4 * rounds))
    found = worst_case(f"fedprox: mu_prox={weight}", mu=mu, L=INF, clients=1, rounds=rounds, measure=measure)
    assert found.value == pytest.approx(expected, rel=2e-5)


def mean_of_active(alpha: float):
    """Return the mean of the models of the active clients after a round, which FedDyn's states determine."""
    return lambda state: state.server.theta + state.server.h / alpha


@pytest.mark.parametrize("rounds", [1, 4])
def test_feddyn_of_one_client_is_the_proximal_point_method(rounds: int) -> None:
    """FedDyn's own model overshoots: its active one is the proximal point."""
    x = mean_of_active(2.0)
    what = {"mu": 0, "L": INF, "clients": 1, "rounds": rounds, "measure": "value"}
    found = worst_case(FedDyn(alpha=2.0), point=lambda states: x(states[-1]), **what)
    assert found.value == pytest.approx(2.0 / (4 * rounds), rel=2e-5)
    assert worst_case(FedDyn(alpha=2.0), **what).value == INF


BOUNDS = [  # method, L, who takes part, start, what the theorem allows after n rounds
    (DualFL(rho=0.0, nu=1.0), INF, None, (1.0, 0.5), lambda n: 4 / (n + 1) ** 2),
    (DualFL(rho=0.1, nu=1.0), 10, None, (1.0, 0.5), lambda n: (1 - math.sqrt(0.1)) ** (n - 1)),
    (OptimizedDualFL(rho=0.0, nu=1.0), INF, None, (0.0, 0.5), lambda n: 2 / (n + 1) ** 2),
    (DualAscent(nu=1.0), INF, None, (0.0, 0.5), lambda n: 1 / (2 * n - 1)),
    (SampledDualFL(rho=0.0, nu=0.5, least=0.5), INF, ONE_OF_TWO, (1.0, 0.5), None),
]


@pytest.mark.parametrize(("method", "L", "who", "start", "allowed"), BOUNDS, ids=[str(b[0])[:12] for b in BOUNDS])
def test_no_worst_case_is_above_its_theorem(method, L, who, start, allowed) -> None:
    before = INF
    for n in (1, 2, 4):
        found = worst_case(method, mu=1, L=L, clients=2, rounds=n, participation=who, start=start)
        assert found.claimed is not None
        assert 0.05 * found.claimed < found.value <= found.claimed
        assert allowed is None or found.claimed == pytest.approx(allowed(n), rel=1e-12)
        assert found.value < before
        before = found.value


@dataclass(frozen=True, kw_only=True)
class Hasty(DualFL):
    """DualFL with twice the momentum."""

    theorems = DualFL.theorems

    def server(self, server, mean, round):
        server, message = super().server(server, mean, round)
        return server, message._replace(beta=2.0 * message.beta)


def test_a_method_that_breaks_its_bound_is_seen() -> None:
    what = {"mu": 1, "L": INF, "clients": 2, "rounds": 8, "start": (1.0, 0.5)}
    right, wrong = (worst_case(kind(rho=0.0, nu=1.0), **what) for kind in (DualFL, Hasty))
    assert right.claimed is not None
    assert right.value < right.claimed < wrong.value
    assert right.claimed == wrong.claimed


@pytest.mark.parametrize("who", [None, ONE_OF_TWO])
def test_growing_feddyn_keeps_theorem_c(who) -> None:
    """alpha_n^2 E|x - theta*|^2 <= alpha_0^2 |theta0 - theta*|^2 + the mean of |grad f_j(theta*)|^2/p."""
    method, p = GrowingFedDyn(alpha=1.0, growth=math.sqrt(3.0) - 1.0), 1.0 if who is None else 0.5
    for n in (1, 2, 3):
        x = mean_of_active(method.alpha_of(n))
        what = {"mu": 1, "L": INF, "clients": 2, "rounds": n, "participation": who, "start": (1.0, 0.5 / p)}
        share = method.alpha_of(n) ** 2 * worst_case(method, point=lambda states, x=x: x(states[-1]), **what).value
        assert 0.5 < share <= 1


def test_feddyn_of_convex_clients_keeps_theorem_2() -> None:
    """The mean of the first models has E - E* <= 10 alpha/T |theta0 - theta*|^2 + 100/(T p alpha) mean |g*|^2."""
    alpha, x = 25.0, mean_of_active(25.0)
    for T, who, p in ((1, None, 1.0), (2, None, 1.0), (2, ONE_OF_TWO, 0.5)):
        what = {"mu": 0, "L": 1, "clients": 2, "rounds": T, "participation": who, "measure": "value"}
        start = 1.0, 10.0 / (2 * p * alpha**2)
        found = worst_case(
            FedDyn(alpha=alpha), start=start, point=lambda states: sum(map(x, states[:-1])) / (len(states) - 1), **what
        )
        assert 0.001 < found.value / (10.0 * alpha / T) < 0.01  # that is how loose it is


@pytest.mark.parametrize(
    "method",
    [DualFL(rho=0.0, nu=1.0, stop=GradientReduction()), DualAscent(nu=1.0), GrowingFedDyn(alpha=1.0, growth=0.5)],
)
def test_runs_on_steep_clients_are_not_worse(method) -> None:
    """The error is linear in the minimiser and the gradients there, largest where the start is proportional to it."""
    method, rounds, plane = replace(method, solver=Exact()), 4, np.linalg.svd(np.ones((1, 3)))[2][1:]
    bound = worst_case(method, mu=1, L=INF, clients=3, rounds=rounds, start=(1.0, 1 / 3)).value

    def error(h: np.ndarray, star: float, g: np.ndarray) -> float:
        f = Quadratic(A=h[:, None, None], b=(h * star - g)[:, None])
        state = initial_state(method, f, np.zeros(1))
        for n in range(rounds):
            state = advance(method, f, state, replace(first_round(3), n=n))[0]
        return float(state.server.theta[0] - star)

    runs = []
    for h in product((1.0, 4.0, 30.0, 1e6), repeat=3):
        of_star = error(np.array(h), 1.0, np.zeros(3))
        of_gradients = np.array([error(np.array(h), 0.0, g) for g in plane])
        runs.append(of_star**2 + 3 * of_gradients @ of_gradients)
    assert 0.1 * bound < max(runs) <= bound * (1 + 1e-6)


def test_values_of_nonsmooth_clients_are_bounded_at_their_own_points_alone() -> None:
    what = {"mu": 1, "L": INF, "rounds": 2, "measure": "value", "start": (1.0, 1.0)}
    assert worst_case("feddr: eta=1.0", clients=1, point=lambda s: s[-1].clients.x[0], **what).value < INF
    two = worst_case("feddr: eta=1.0", clients=2, point=lambda s: s[-1].clients.x[0], **what)
    assert two.value == two.example == INF


@pytest.mark.parametrize(
    ("point", "sentence"),
    [
        (lambda s: s[-1].server.theta[:1], "point must be one vector, of the shape of the model, not (1,)."),
        (lambda s: s[-1].server.theta * s[-1].server.theta[0], "algorithm must be linear algebra on models"),
        (lambda s: np.abs(s[-1].server.theta), "algorithm must be linear algebra on models"),
    ],
)
def test_a_point_that_is_no_linear_function_of_the_states_is_refused(point, sentence: str) -> None:
    with pytest.raises(ValueError, match=re.escape(sentence)):
        worst_case("dual-ascent", mu=1, L=10, clients=2, point=point)


def test_bounds_of_other_forms_are_left_out() -> None:
    assert claimed_bound(Setting.of("dual-ascent", 1, 10, None, weights=(1, 2, 3)), 3, (0.0, 1.0)) is None
    two = claimed_bound(Setting.of("dual-ascent", 1, 10, None, weights=(1, 2)), 3, (0.0, 1.0))
    assert two == pytest.approx((4 / 3 + 2 / 3) / 5 / 5)  # gradients 2 and -1
    assert claimed_bound(Setting.of("gradient-descent: step=0.1", 1, 10, 2), 3, (1.0, 0.0)) is None
    assert claimed_bound(Setting.of("dual-ascent", 1, 10, 2), 3, (1.0, 0.0)) == INF


@pytest.mark.parametrize(
    ("method", "mu", "L", "curvature"),
    [
        ("feddyn: alpha=1.0", 1, INF, "100000"),
        ("feddyn: alpha=1.0", 0, 1, "1e-05"),
        ("gradient-descent: step=0.5", 0, 1, "1e-05"),
        ("dual-ascent", 1, INF, "100000"),
    ],
)
def test_where_there_is_no_linear_rate(method: str, mu: float, L: float, curvature: str) -> None:
    found = prove(method, mu=mu, L=L, clients=2, memory=False)
    words = f"no factor below 0.9999 is provable: such are quadratic clients of curvatures {curvature}, {curvature}"
    assert str(found) == f"{words}, and curvatures are not bounded here"
    assert not found.proved


def test_linear_rates_of_nonsmooth_clients_that_there_are() -> None:
    found = prove("fedpd: eta=1.0", mu=1, L=INF, clients=1, memory=False)
    assert found.factor == pytest.approx(0.25, abs=2e-5)  # proximal points: (1 + eta mu)^-2
    one_flat = prove("gradient-descent: step=0.5", mu=(0, 1), L=(1, 2), memory=False)
    assert one_flat.factor == pytest.approx(0.75**2, abs=2e-5)  # of the mean, which has mu 1/2
