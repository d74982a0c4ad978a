"""One step for each client: what is suggested and refused, and that a client alone does what it does among others."""

from __future__ import annotations

import pickle
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest

from dualopt.algorithms import DualFL, FedSplit, OptimizedDualFL
from dualopt.engine import State, advance, complete, initial_state, iterate
from dualopt.objectives import Quadratic
from dualopt.oracle import Oracle
from dualopt.participation import UniformSubset, first_round
from dualopt.solvers import Exact
from dualopt.tree import leaves
from dualopt.xp import to_numpy
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
    assert replace(method, rho=1.01 * method.rho).guarantee(f).startswith("none: rho exceeds")
    method.check(f)
    larger = replace(method, nu=1.01 * method.nu)
    assert larger.guarantee(f) == "none: nu exceeds mu"
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
