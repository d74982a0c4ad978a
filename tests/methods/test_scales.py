"""One step for each client: what is suggested and refused, and that a client alone does what it does among others."""

from __future__ import annotations

import pickle
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import pytest

from dualopt.arrays.tree import leaves
from dualopt.arrays.xp import to_numpy
from dualopt.engine.rounds import State, advance, complete, initial_state, iterate
from dualopt.methods import AFedPD, DualFL, FedAvg, FedDR, FedDyn, FedSplit, OptimizedDualFL, SampledDualFL
from dualopt.methods._feddyn_theorems import best_weight
from dualopt.methods.oracle import Oracle
from dualopt.methods.participation import UniformSubset, WeightedSubset, first_round
from dualopt.objectives import Composite, Quadratic
from dualopt.regularisers import L2
from dualopt.solvers import Exact
from tests.problems import converted, hinge, lopsided, one_flat_client


def test_scales_are_suggested_where_they_are_asked_for() -> None:
    f = lopsided()
    method = FedSplit(scaled=True).suggested(f)
    assert method.scales is not None
    np.testing.assert_allclose(method.step * np.array(method.scales), 1.0 / np.sqrt(f.mu * f.L), rtol=1e-12)
    assert FedSplit().suggested(f).scales is None
    assert FedSplit(scaled=True, scales=(1.0, 2.0, 3.0, 4.0)).suggested(f).scales == (1.0, 2.0, 3.0, 4.0)


@pytest.mark.parametrize("kind", [DualFL, OptimizedDualFL])
def test_dualfl_suggests_the_curvature_of_each_client(kind: type) -> None:
    f = lopsided()
    method = kind(scaled=True).suggested(f)
    np.testing.assert_allclose(method.nu * np.array(method.scales), f.mu, rtol=1e-12)
    assert method.rho == pytest.approx(float(np.min(f.mu / f.L)), rel=1e-12)
    assert not method.guarantee(f).startswith("none")
    assert replace(method, rho=1.01 * method.rho).guarantee(f).rpartition(" = ")[0].endswith("needs rho <= nu/L")
    method.check(f)
    larger = replace(method, nu=1.01 * method.nu)
    assert larger.guarantee(f).endswith(" needs nu <= mu")
    with pytest.raises(ValueError, match=r"^nu = 0\.505 times scales must not exceed every mu_j"):
        larger.check(f)
    with pytest.raises(ValueError, match=r"^scales must be 4 numbers, one for each client, not 2"):
        replace(method, scales=(1.0, 2.0)).check(f)


@pytest.mark.parametrize("kind", [DualFL, OptimizedDualFL])
def test_dualfl_with_scales_stays_at_the_minimiser_and_reaches_it(kind: type) -> None:
    f = lopsided()
    method = kind(scaled=True, solver=Exact()).suggested(f)
    state = State(*method.fixed_point(f, f.minimiser()))
    for n in range(5):
        state, _, _ = advance(method, f, state, replace(first_round(4), n=n))
        np.testing.assert_allclose(state.server.theta, f.minimiser(), atol=1e-13)
    *_, last = islice(iterate(method, f), 300)
    np.testing.assert_allclose(last.server.theta, f.minimiser(), atol=1e-11)
    assert np.max(np.abs(np.sum(f.mu[:, None] * last.clients.zeta, axis=0))) < 1e-9  # the weighted sum is zero


def test_equal_scales_change_nothing() -> None:
    f = lopsided()
    plain, scaled = FedSplit(step=0.2, solver=Exact()), FedSplit(step=0.2, scales=(1.0,) * 4, solver=Exact())
    for chance in (None, UniformSubset(size=2)):
        for a, b in zip(
            islice(iterate(plain, f, participation=chance), 9), iterate(scaled, f, participation=chance), strict=False
        ):
            np.testing.assert_allclose(a.server.theta, b.server.theta, rtol=1e-13)


@pytest.mark.parametrize("build", [hinge, one_flat_client])
def test_clients_without_constants_have_no_scales(build) -> None:
    with pytest.raises(ValueError, match=r"^scaled must be False for clients that are not smooth and strongly convex"):
        FedSplit(step=0.1, scaled=True).suggested(build())


def test_scales_of_other_clients_and_for_some_averages_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^scales must be 4 numbers, one for each client, not 2"):
        FedSplit(step=0.1, scales=(1.0, 2.0), solver=Exact()).check(lopsided())
    for scaled, scales in ((True, None), (False, (1.0, 2.0))):
        with pytest.raises(ValueError, match=r"^average must be 'all' with one scale for each client"):
            FedSplit(average="active", scaled=scaled, scales=scales)


def test_the_fixed_point_stays_whoever_is_active() -> None:
    f = lopsided()
    method = FedSplit(scaled=True, solver=Exact()).suggested(f)
    state = State(*method.fixed_point(f, f.minimiser()))
    for round in islice(UniformSubset(size=2).rounds(4, seed=0), 8):
        state, _, _ = advance(method, f, state, round)
        np.testing.assert_allclose(state.server.theta, f.minimiser(), atol=1e-13)


def test_the_minimiser_is_reached() -> None:
    f = lopsided()
    for chance in (None, UniformSubset(size=2)):
        *_, last = islice(iterate(FedSplit(scaled=True, solver=Exact()), f, participation=chance), 300)
        np.testing.assert_allclose(last.server.theta, f.minimiser(), atol=1e-12)


def test_a_client_alone_does_what_it_does_among_others() -> None:
    f, chance = lopsided(), UniformSubset(size=2)
    method = complete(FedSplit(scaled=True, solver=Exact()), f, chance)
    state = initial_state(method, f)
    for round in islice(chance.rounds(4, seed=0), 5):
        after, upload, _ = advance(method, f, state, round)
        for i, j in enumerate(round.clients):
            alone, one = replace(round, clients=(j,)), f.select((j,))
            client = type(state.clients)(*(leaf[j : j + 1] for leaf in state.clients))
            oracle = Oracle(one, method.solver, method.stop, (), alone)
            new, sent = method.local(pickle.loads(pickle.dumps(client)), state.message, oracle, alone)
            np.testing.assert_array_equal(sent[0], upload[i])
            for a, b in zip(leaves(new), leaves(after.clients), strict=True):
                np.testing.assert_array_equal(a[0], b[j])
        state = after


def test_array_libraries_agree(backend) -> None:
    f: Quadratic = lopsided()
    method = FedSplit(scaled=True, solver=Exact())
    *_, expected = islice(iterate(method, f), 5)
    *_, found = islice(iterate(method, converted(f, backend)), 5)
    assert type(found.server.theta) is type(converted(f, backend).zeros())
    for a, b in zip(leaves(expected.clients), leaves(found.clients), strict=True):
        np.testing.assert_allclose(to_numpy(a), to_numpy(b), rtol=1e-11, atol=1e-12)


# ---- cohorts drawn with weights ----

SAMPLED = [FedDyn(scaled=True, solver=Exact()), SampledDualFL(scaled=True, solver=Exact())]
OTHERS = [FedDR(scaled=True, solver=Exact()), FedDR(scaled=True, relaxation=2.0, solver=Exact())]
COHORTS = [WeightedSubset(size=2), WeightedSubset(size=3, weights=(1.0, 2.0, 3.0, 4.0)), UniformSubset(size=2), None]


@pytest.mark.parametrize("chance", COHORTS)
@pytest.mark.parametrize("method", [*SAMPLED, *OTHERS])
def test_methods_with_scales_stay_at_the_minimiser_and_reach_it(method, chance) -> None:
    f = lopsided()
    at, complete_ = f.minimiser(), complete(method, f, chance)
    state = State(*complete_.fixed_point(f, at))
    for round in islice((chance or UniformSubset(size=4)).rounds(4, seed=0), 6):
        state, _, _ = advance(complete_, f, state, round)
        np.testing.assert_allclose(state.server.theta, at, atol=1e-12)
    *_, last = islice(iterate(method, f, participation=chance), 1500)
    np.testing.assert_allclose(last.server.theta, at, atol=1e-9)


def test_feddr_with_scales_reaches_the_regularised_minimiser() -> None:
    f: Quadratic = lopsided()
    both = Composite(objective=f, regulariser=L2(weight=0.5))
    *_, last = islice(iterate(FedDR(scaled=True, solver=Exact()), both, participation=UniformSubset(size=2)), 600)
    expected = replace(f, A=f.A + 0.5 * np.eye(f.shape[0])).minimiser()
    np.testing.assert_allclose(last.server.theta, expected, atol=1e-11)


def test_feddyn_suggests_the_least_weights_of_its_theorem() -> None:
    f = lopsided()
    method: Any = complete(FedDyn(scaled=True), f, WeightedSubset(size=2))
    alphas = method.alpha * np.array(method.scales)
    chances = WeightedSubset(size=2, weights=method.sampling_weights()).inclusion(4)
    wanted = [best_weight(mu, L, p) for mu, L, p in zip(f.mu, f.L, chances, strict=True)]
    np.testing.assert_allclose(alphas, wanted, rtol=1e-12)
    assert method.guarantee(f, WeightedSubset(size=2)).startswith("Theorem A': E Psi falls by a factor of 0.")
    assert method.guarantee(f, UniformSubset(size=2)) == "none: Theorem A' needs cohorts drawn with the weights alpha_j"
    lighter = replace(method, alpha=0.99 * method.alpha)
    assert lighter.guarantee(f, WeightedSubset(size=2)) == "none: Theorem A' needs alpha_j >= alpha*_j"
    everybody = FedDyn(scaled=True).suggested(f)
    np.testing.assert_allclose(everybody.alpha * np.array(everybody.scales), np.sqrt(f.mu * f.L), rtol=1e-12)


def test_a_given_alpha_is_the_mean_of_all() -> None:
    f = lopsided()
    method: Any = FedDyn(scaled=True, alpha=3.0).suggested(f)
    assert (method.alpha, np.mean(method.scales)) == (3.0, pytest.approx(1.0, rel=1e-12))


@pytest.mark.parametrize("kind", [FedDyn, SampledDualFL])
def test_cohorts_that_the_theorem_does_not_mean_have_no_guarantee(kind: type) -> None:
    f = lopsided()
    for scaled in (True, False):
        given = WeightedSubset(size=2, weights=(4.0, 3.0, 2.0, 1.0))
        assert complete(kind(scaled=scaled), f, given).guarantee(f, given).startswith("none: ")
        assert kind(scaled=scaled).guarantee(f, given).startswith("none: ")
        equal = WeightedSubset(size=2, weights=(1.0,) * 4)
        assert kind().guarantee(f, equal) == kind().guarantee(f, UniformSubset(size=2))
        assert not kind().guarantee(f, equal).startswith("none")
    own = WeightedSubset(size=2, weights=kind(scaled=True, fraction=0.5).suggested(f).sampling_weights())
    assert not complete(kind(scaled=True), f, own).guarantee(f, own).startswith("none")
    assert complete(kind(scaled=True), f, own).guarantee(f).startswith("none")


def test_a_run_draws_cohorts_with_the_weights_of_the_method() -> None:
    f = lopsided()
    method: Any = complete(FedDyn(scaled=True, solver=Exact()), f, WeightedSubset(size=1))
    drawn = [s.round.clients[0] for s in islice(iterate(method, f, participation=WeightedSubset(size=1)), 4000)]
    shares, expected = (
        np.bincount(drawn, minlength=4) / 4000,
        WeightedSubset(size=1, weights=method.scales).inclusion(4),
    )
    assert np.max(np.abs(shares - expected)) < 4 * 0.5 / np.sqrt(4000)  # four standard deviations at most
    assert max(expected) > 1.2 * min(expected)


def test_feddyn_with_one_scale_for_all_changes_nothing() -> None:
    f = lopsided()
    plain, scaled = FedDyn(alpha=2.0, solver=Exact()), FedDyn(alpha=1.0, scales=(2.0,) * 4, solver=Exact())
    for chance in (None, UniformSubset(size=2)):
        runs = (islice(iterate(method, f, participation=chance), 9) for method in (plain, scaled))
        for a, b in zip(*runs, strict=True):
            np.testing.assert_allclose(a.server.theta, b.server.theta, rtol=1e-12)


def test_what_goes_up_is_two_vectors_with_scales() -> None:
    f = lopsided()
    for method in SAMPLED:
        for scaled, vectors in ((True, 2), (False, 1)):
            shot = next(iterate(replace(method, scaled=scaled), f, participation=WeightedSubset(size=2)))
            assert shot.floats_up == 2 * vectors * f.shape[0]


@pytest.mark.parametrize("method", [DualFL(), AFedPD(rho=1.0), FedAvg()])
def test_methods_whose_fixed_point_depends_on_who_is_active_refuse(method) -> None:
    with pytest.raises(ValueError, match=r"^algorithm \w+ does not support (partial|unequal) participation\.$"):
        complete(method, lopsided(), WeightedSubset(size=2))
    complete(method, lopsided(), WeightedSubset(size=4))


def test_scales_and_growth_are_refused_together() -> None:
    with pytest.raises(ValueError, match=r"^growth must be 0 with one scale for each client: no theorem has both\.$"):
        FedDyn(growth=0.1, scaled=True)


@pytest.mark.parametrize("build", [hinge, one_flat_client])
def test_feddyn_suggests_no_scales_without_constants(build) -> None:
    with pytest.raises(ValueError, match=r"^scaled must be False for clients that are not smooth and strongly convex"):
        FedDyn(scaled=True).suggested(build())


@pytest.mark.parametrize("method", [*SAMPLED, OTHERS[0]])
def test_array_libraries_agree_on_weighted_cohorts(method, backend) -> None:
    f, chance = lopsided(), WeightedSubset(size=2)
    *_, expected = islice(iterate(method, f, participation=chance), 5)
    *_, found = islice(iterate(method, converted(f, backend), participation=chance), 5)
    for a, b in zip(leaves(expected.clients), leaves(found.clients), strict=True):
        np.testing.assert_allclose(to_numpy(a), to_numpy(b), rtol=1e-11, atol=1e-12)
