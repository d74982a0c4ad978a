"""One scale for each client, whatever the method: what is suggested and refused, fixed points, and what it gains."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from typing import Any

import numpy as np
import pytest

import dualopt.methods
from dualopt import run
from dualopt.arrays.tree import leaves
from dualopt.engine.rounds import State, advance, initial_state, iterate, resolve, scaled
from dualopt.losses import Multinomial
from dualopt.methods import AFedPD, DualFL, FedAvg, FedDR, FedDyn, FedSplit, OptimizedDualFL, SampledDualFL
from dualopt.methods._base import UNKNOWN
from dualopt.methods._feddyn_theorems import best_weight, best_weights
from dualopt.methods._parameters import constants
from dualopt.methods.oracle import Oracle
from dualopt.methods.participation import INDEPENDENT, Law, UniformSubset, WeightedSubset, first_round
from dualopt.objectives import Composite, Quadratic, linear_model, reweighted
from dualopt.problem.data import lognormal_sizes
from dualopt.regularisers import L2
from dualopt.solvers import Exact
from dualopt.spec.discover import discover
from tests.problems import hinge, lopsided, one_flat_client

METHODS: dict[str, Any] = discover(dualopt.methods)
WEIGHTS = (5.0, 0.3, 1.0, 2.0)
SCALES = (1.0, 20.0, 0.3, 4.0)


def weighted() -> Quadratic:
    return replace(lopsided(), weights=WEIGHTS)


def test_scales_of_feddyn_are_those_of_who_takes_part() -> None:
    """Theorem A' has weights of its own for a part of the clients; everybody has the scales of all methods."""
    f = weighted()
    common = FedSplit().suggested_scales(f)
    assert FedDyn().suggested_scales(f) == FedDyn(fraction=1.0).suggested_scales(f) == common
    part = best_weights(constants(f), 2, f.weights)
    assert FedDyn(fraction=0.5).suggested_scales(f) == part != common
    flat = one_flat_client()
    assert FedDyn(fraction=0.5).suggested_scales(flat) == FedSplit().suggested_scales(flat)


# ---- every method ----


@pytest.mark.parametrize("name", METHODS)
def test_reweighted_clients_are_ones_that_are_written_out(name: str) -> None:
    """The same states and models; the local problems are those of the user's own clients."""
    f = weighted()
    g = reweighted(f, SCALES)
    s = np.array(g.scales)
    out = Quadratic(A=f.A / s[:, None, None], b=f.b / s[:, None], c=None if f.c is None else f.c / s, weights=g.weights)
    method = resolve(METHODS[name](), out)
    who = WeightedSubset(size=2) if "unequal" in method.supports else None
    runs = (islice(iterate(method, each, participation=who, seed=2), 8) for each in (g, out))
    for one, other in zip(*runs, strict=True):
        assert one.round.clients == other.round.clients
        for a, b in zip(leaves((one.server, one.clients)), leaves((other.server, other.clients)), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-9)
        if one.local_gradients is not None and other.local_gradients is not None:
            own = s[list(one.round.clients), None] * other.local_gradients
            np.testing.assert_allclose(one.local_gradients, own, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("scales", [SCALES, "suggested"], ids=["numbers", "suggested"])
@pytest.mark.parametrize("name", ["dualfl", "feddyn", "fedsplit"])
def test_fixed_points_stay_and_scales_are_an_option_of_iterate(name: str, scales) -> None:
    f, at = weighted(), weighted().minimiser()
    clients = scaled(METHODS[name](), f, scales)
    method = resolve(METHODS[name](), clients)
    runs = (islice(iterate(METHODS[name](), f, scales=scales), 4), islice(iterate(METHODS[name](), clients), 4))
    for one, other in zip(*runs, strict=True):
        np.testing.assert_array_equal(one.server.theta, other.server.theta)
    point = method.fixed_point(clients, at)
    if point is None or point is UNKNOWN:
        return
    state = State(*point)
    for n in range(5):
        state, _, _ = advance(method, clients, state, replace(first_round(4), n=n))
        np.testing.assert_allclose(state.server.theta, at, atol=1e-7)


# ---- cohorts ----

SAMPLED: list[Any] = [FedDyn(solver=Exact()), SampledDualFL(solver=Exact()), FedSplit(solver=Exact())]
SAMPLED += [FedDR(solver=Exact()), FedDR(relaxation=2.0, solver=Exact())]
COHORTS = [WeightedSubset(size=2), WeightedSubset(size=3), UniformSubset(size=2), None]


@pytest.mark.parametrize("chance", COHORTS, ids=lambda x: type(x).__name__)
@pytest.mark.parametrize("method", SAMPLED, ids=lambda x: type(x).__name__)
def test_cohorts_stay_at_the_minimiser_and_reach_it(method, chance) -> None:
    f = weighted()
    at, who = f.minimiser(), chance or UniformSubset(size=4)
    if isinstance(method, SampledDualFL) and isinstance(chance, UniformSubset):
        pytest.skip("refused")
    clients = scaled(method, f, "suggested", who)
    complete = resolve(method, clients, who)
    drawn = replace(who, weights=clients.weights) if isinstance(who, WeightedSubset) else who
    state = State(*complete.fixed_point(clients, at))
    for round in islice(drawn.rounds(4, seed=0), 6):
        state, _, _ = advance(complete, clients, state, round)
        np.testing.assert_allclose(state.server.theta, at, atol=1e-12)
    shots = islice(iterate(method, f, participation=chance, scales="suggested"), 1500)
    assert any(np.max(np.abs(s.server.theta - at)) <= 1e-9 for s in shots)


def test_a_run_draws_cohorts_with_the_weights_of_the_clients() -> None:
    for f, scales in ((weighted(), None), (lopsided(), SCALES), (weighted(), "suggested")):
        clients = scaled(FedDyn(), f, scales, WeightedSubset(size=1))
        shots = islice(iterate(FedDyn(), f, participation=WeightedSubset(size=1), scales=scales), 3000)
        drawn = np.bincount([s.round.clients[0] for s in shots], minlength=4) / 3000
        expected = np.array(clients.shares)
        assert np.max(np.abs(drawn - expected)) < 4 * 0.5 / np.sqrt(3000)  # four standard deviations at most
        assert max(expected) > 1.2 * min(expected)


def test_rounds_tell_the_weight_of_a_cohort_and_how_it_was_drawn() -> None:
    f, who = weighted(), WeightedSubset(size=2)
    for s in islice(iterate(FedDyn(), f, participation=who), 5):
        assert s.round.fraction == pytest.approx(sum(WEIGHTS[j] for j in s.round.clients) / sum(WEIGHTS), rel=1e-14)
        assert s.round.turnout == 0.5
        assert s.round.inclusion == pytest.approx(replace(who, weights=WEIGHTS).inclusion(4), rel=1e-14)
    (plain,) = islice(iterate(FedDyn(), lopsided(), participation=UniformSubset(size=3)), 1)
    assert (plain.round.fraction, plain.round.turnout, plain.round.inclusion) == (0.75, 0.75, None)


def test_sampled_dualfl_refuses_cohorts_that_are_not_drawn_with_the_weights() -> None:
    wrong = [UniformSubset(size=2), WeightedSubset(size=2, weights=(4.0, 3.0, 2.0, 1.0))]
    for f, scales in ((weighted(), None), (lopsided(), SCALES)):
        for who in wrong:
            with pytest.raises(ValueError, match=r"^participation must be importance=P for SampledDualFL"):
                next(iterate(SampledDualFL(), f, participation=who, scales=scales))
        next(iterate(SampledDualFL(), f, participation=WeightedSubset(size=2), scales=scales))
    next(iterate(SampledDualFL(), lopsided(), participation=UniformSubset(size=2)))
    next(iterate(SampledDualFL(), replace(lopsided(), weights=(2.0,) * 4), participation=UniformSubset(size=2)))


def test_sampled_dualfl_refuses_cohorts_of_other_sizes_whatever_their_chances_are() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Independently(WeightedSubset):
        def law(self, n_clients: int) -> Law:
            return replace(super().law(n_clients), name=INDEPENDENT)

    given = WeightedSubset(size=2, weights=WEIGHTS), Independently(size=2, weights=WEIGHTS)
    assert given[0].law(4).inclusion == given[1].law(4).inclusion
    SampledDualFL().check_participation(weighted(), given[0])
    with pytest.raises(ValueError, match=r"^participation must be importance=P for SampledDualFL"):
        SampledDualFL().check_participation(weighted(), given[1])


@pytest.mark.parametrize("method", [FedDyn(), SampledDualFL()], ids=lambda x: type(x).__name__)
def test_a_guarantee_needs_cohorts_that_are_drawn_with_the_weights(method) -> None:
    f = weighted()
    for who, covered in (
        (WeightedSubset(size=2), True),
        (WeightedSubset(size=2, weights=WEIGHTS), True),
        (WeightedSubset(size=2, weights=tuple(3.0 * w for w in WEIGHTS)), True),
        (UniformSubset(size=2), False),
        (WeightedSubset(size=2, weights=(4.0, 3.0, 2.0, 1.0)), False),
    ):
        assert method.guarantee(f, who).startswith("none") != covered, (who, method.guarantee(f, who))
    uniform = UniformSubset(size=2)
    equal = WeightedSubset(size=2, weights=(1.0,) * 4)
    assert method.guarantee(lopsided(), equal) == method.guarantee(lopsided(), uniform)
    assert not method.guarantee(lopsided(), uniform).startswith("none")


@pytest.mark.parametrize("method", [DualFL(), AFedPD(rho=1.0), FedAvg()], ids=lambda x: type(x).__name__)
def test_methods_whose_fixed_point_depends_on_who_is_active_refuse(method) -> None:
    with pytest.raises(ValueError, match=r"^algorithm \w+ does not support (partial|unequal) participation\.$"):
        resolve(method, lopsided(), WeightedSubset(size=2))
    resolve(method, lopsided(), WeightedSubset(size=4))


def test_one_vector_goes_up() -> None:
    f = lopsided()
    for method in (FedDyn(), SampledDualFL()):
        for scales in ("suggested", None):
            shot = next(iterate(method, f, participation=WeightedSubset(size=2), scales=scales))
            assert shot.floats_up == 2 * f.shape[0]


# ---- what is suggested ----


@pytest.mark.parametrize("method", [DualFL(), OptimizedDualFL(), SampledDualFL()], ids=lambda x: type(x).__name__)
def test_dual_methods_have_the_curvature_of_each_client(method) -> None:
    f = weighted()
    clients: Any = scaled(method, f, "suggested")
    found = method.suggested(clients)
    np.testing.assert_allclose(found.nu * np.array(clients.scales), f.mu, rtol=1e-12)
    if not isinstance(method, SampledDualFL):
        assert found.rho == pytest.approx(float(np.min(f.mu / f.L)), rel=1e-12)
        assert replace(found, rho=1.01 * found.rho).guarantee(clients).endswith("needs rho <= nu/L = 0.05")
    assert not found.guarantee(clients).startswith("none")
    found.check(clients)
    larger = replace(found, nu=1.01 * found.nu)
    assert larger.guarantee(clients).endswith("needs nu <= mu = 1.25")
    with pytest.raises(ValueError, match=r"^nu = .* must not exceed mu"):
        larger.check(clients)


@pytest.mark.parametrize("method", [FedSplit(), FedDR()], ids=lambda x: type(x).__name__)
def test_splitting_methods_have_the_best_step_of_each_client(method) -> None:
    f = weighted()
    clients: Any = scaled(method, f, "suggested")
    found = method.suggested(clients)
    step = found.step if isinstance(found, FedSplit) else found.eta
    np.testing.assert_allclose(step / np.array(clients.scales), 1.0 / np.sqrt(f.mu * f.L), rtol=1e-12)


def test_feddyn_has_the_least_weights_of_its_theorem() -> None:
    f, who = weighted(), WeightedSubset(size=2)
    clients: Any = scaled(FedDyn(), f, "suggested", who)
    method: Any = resolve(FedDyn(), clients, who)
    alphas, chances = method.alpha * np.array(clients.scales), replace(who, weights=clients.weights).inclusion(4)
    wanted = [best_weight(mu, L, p) for mu, L, p in zip(f.mu, f.L, chances, strict=True)]
    np.testing.assert_allclose(alphas, wanted, rtol=1e-12)
    assert method.guarantee(clients, who).startswith("Theorem A")
    assert replace(method, alpha=0.99 * method.alpha).guarantee(clients, who).startswith("none: ")
    everybody: Any = scaled(FedDyn(), f, "suggested")
    alpha: Any = FedDyn().suggested(everybody).alpha
    np.testing.assert_allclose(alpha * np.array(everybody.scales), np.sqrt(f.mu * f.L), rtol=1e-12)


def test_feddr_reaches_the_regularised_minimiser() -> None:
    f = weighted()
    both = Composite(objective=f, regulariser=L2(weight=0.5))
    shots = iterate(FedDR(solver=Exact()), both, participation=UniformSubset(size=2), scales="suggested")
    *_, last = islice(shots, 900)
    expected = replace(f, A=f.A + 0.5 * np.eye(f.shape[0])).minimiser()
    np.testing.assert_allclose(last.server.theta, expected, atol=1e-10)


# ---- refusals ----


@pytest.mark.parametrize(
    ("scales", "sentence"),
    [
        ((1.0, 2.0), "scales must be 4 numbers, one for each client, not 2"),
        ((1.0, 2.0, 3.0, 0.0), "scales must be positive finite numbers, one for each client"),
        ("own", "scales must be none, suggested or a number for each client, not own"),
    ],
)
def test_scales_that_are_none_are_refused(scales, sentence: str) -> None:
    with pytest.raises(ValueError, match=f"^{sentence}"):
        next(iterate(DualFL(), lopsided(), scales=scales))
    with pytest.raises(ValueError, match=f"^{sentence}"):
        run(DualFL(), lopsided(), scales=scales)


def test_scales_are_not_given_twice() -> None:
    g = reweighted(lopsided(), SCALES)
    with pytest.raises(ValueError, match=r"^scales must not be given for clients that are reweighted already\.$"):
        run("fedsplit", g, scales="suggested")
    alone, given = run("fedsplit", g, rounds=5), run("fedsplit", lopsided(), rounds=5, scales=SCALES)
    np.testing.assert_array_equal(alone.theta, given.theta)
    assert alone.parameters["scales"] == given.parameters["scales"] == list(g.scales)
    assert "scales" not in run("fedsplit", lopsided(), rounds=1).parameters


def test_dual_methods_suggest_none_without_curvature() -> None:
    with pytest.raises(ValueError, match=r"^scales must be none or numbers for clients that are not strongly convex"):
        scaled(DualFL(), one_flat_client(), "suggested")
    np.testing.assert_allclose(scaled(DualFL(), hinge(), "suggested").mu, scaled(DualFL(), hinge(), "suggested").mu[0])
    of_one_smoothness: Any = scaled(FedSplit(), one_flat_client(), "suggested")
    np.testing.assert_allclose(of_one_smoothness.L, of_one_smoothness.L[0], rtol=1e-14)  # mu is 0 for one of them


# ---- elsewhere and alone ----


def test_a_client_alone_does_what_it_does_among_others() -> None:
    f, chance = weighted(), UniformSubset(size=2)
    clients = scaled(FedSplit(), f, "suggested")
    method = resolve(FedSplit(solver=Exact()), clients, chance)
    state = initial_state(method, clients)
    for round in islice(chance.rounds(4, seed=0), 5):
        after, upload, _ = advance(method, clients, state, round)
        for i, j in enumerate(round.clients):
            alone, one = replace(round, clients=(j,)), clients.select((j,))
            client = type(state.clients)(*(leaf[j : j + 1] for leaf in state.clients))
            oracle = Oracle(one, method.solver, method.stop, (), alone)
            new, sent = method.local(pickle.loads(pickle.dumps(client)), state.message, oracle, alone)
            np.testing.assert_array_equal(sent[0], upload[i])
            for a, b in zip(leaves(new), leaves(after.clients), strict=True):
                np.testing.assert_array_equal(a[0], b[j])
        state = after


# ---- what weights cost ----


@cache
def rounds_of_dualfl(seed: int, client_weights: str) -> int:
    """Rounds to a certified 1e-8 on the handwritten digits of eight clients of unequal sizes."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    parts = lognormal_sizes(len(y), 8, sigma=1.0, seed=seed)
    clients = [part.tolist() for part in parts]
    assert max(map(len, clients)) > 4 * min(map(len, clients))
    f = linear_model(X / 16.0, y, loss=Multinomial(classes=10), mu=1e-2, clients=clients, client_weights=client_weights)
    trace = run(DualFL(), f, rounds=400, tol=1e-8)
    assert trace.status == "converged"
    return len(trace) - 1


@pytest.mark.parametrize("seed", [0, 8])
def test_weights_of_clients_cost_no_rounds(seed: int) -> None:
    """Inside the losses they took 1.24 to 1.75 times as many as equal weights: the worst clients set the pace."""
    assert rounds_of_dualfl(seed, "rows") <= 1.05 * rounds_of_dualfl(seed, "equal")
