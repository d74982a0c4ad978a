"""Methods with compressors: exact limits, refusals, one process per client, array libraries, bits."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest

import dualopt.methods.compressors
from dualopt.arrays.xp import array_namespace, to_numpy
from dualopt.engine.rounds import State, advance, as_compressor, iterate, resolve
from dualopt.methods import DualFL, FedDyn, FedSplit, GradientDescent, SampledDualFL
from dualopt.methods._feddyn_theorems import best_weight
from dualopt.methods._parameters import reflection_factor
from dualopt.methods.compressors import CoordinateCohorts, Identity, NaturalCompression, RandK, Rounding, TopK
from dualopt.methods.participation import Bernoulli, Full, UniformSubset, first_round
from dualopt.runs.recording import run
from dualopt.solvers import Exact
from dualopt.spec.discover import discover
from tests.problems import converted, lopsided, quadratic

# Of models with three coordinates or more.
EVERY = [kind(**kind.example) for kind in discover(dualopt.methods.compressors).values()]
UNBIASED = [compressor for compressor in EVERY if compressor.unbiased]
PAIRS = [(FedSplit(), compressor) for compressor in EVERY] + [(FedDyn(), CoordinateCohorts(size=2))]
pairs = pytest.mark.parametrize(("method", "compressor"), PAIRS, ids=str)


def last(algorithm, objective, rounds, **options):
    return next(islice(iterate(algorithm, objective, **options), rounds - 1, None))


def enough(f, compressor, fraction: float = 1.0) -> int:
    """The rounds in which Theorem D with sampling gives thirty digits of the expected square, fifteen of the model."""
    delta = reflection_factor(f, 1.0 / math.sqrt(f.L.max() * f.mu.min()))
    assert delta is not None
    factor = 1.0 - fraction * (1.0 - delta**2) / (1.0 + compressor.omega(f.shape, f.n_clients))
    return math.ceil(-30.0 / math.log10(factor))


@pytest.mark.parametrize("participation", [Full(), UniformSubset(size=2), Bernoulli(probability=0.4)], ids=str)
@pytest.mark.parametrize("compressor", UNBIASED, ids=str)
def test_fedsplit_ends_at_the_minimiser(compressor, participation) -> None:
    f = quadratic(L=4.0)
    rounds = enough(f, compressor, participation.law(f.n_clients).fraction)
    theta = last(FedSplit(solver=Exact()), f, rounds, participation=participation, compressor=compressor).server.theta
    np.testing.assert_allclose(theta, f.minimiser(), atol=1e-13)


@pytest.mark.parametrize("c", [1, 2, 5])
def test_feddyn_with_cohorts_of_coordinates_ends_at_the_minimiser(c: int) -> None:
    f = quadratic(L=4.0)
    method = resolve(FedDyn(solver=Exact()), f, None, CoordinateCohorts(size=c))
    assert isinstance(method, FedDyn)
    assert method.alpha == pytest.approx(best_weight(1.0, 4.0, c / 5), rel=1e-12)
    theta = last(method, f, 250, compressor=CoordinateCohorts(size=c)).server.theta
    np.testing.assert_allclose(theta, f.minimiser(), atol=1e-13)


@pytest.mark.parametrize("compressor", UNBIASED, ids=str)
def test_clients_of_unequal_constants_with_a_scale_each(compressor) -> None:
    """mu_j from 0.5 to 6; the changes of reweighted clients are compressed."""
    f, method = lopsided(), FedSplit(solver=Exact())
    for scales in ("none", "suggested"):
        theta = last(method, f, enough(f, compressor), compressor=compressor, scales=scales).server.theta
        np.testing.assert_allclose(theta, f.minimiser(), atol=1e-12)


def test_all_of_the_clients_in_every_cohort_is_feddyn() -> None:
    f = quadratic()
    plain, whole = (last(FedDyn(solver=Exact()), f, 9, compressor=c) for c in (None, CoordinateCohorts(size=5)))
    np.testing.assert_allclose(whole.server.theta, plain.server.theta, rtol=1e-12)


def test_all_of_the_coordinates_is_fedsplit() -> None:
    f = quadratic()
    plain = last(FedSplit(solver=Exact()), f, 9).server.theta
    for compressor in (RandK(size=4), TopK(size=4), CoordinateCohorts(size=5)):
        found = last(FedSplit(solver=Exact()), f, 9, compressor=compressor)
        np.testing.assert_allclose(found.server.theta, plain, rtol=1e-12)


@pairs
def test_what_the_server_knows_is_the_mean_of_the_states(method, compressor) -> None:
    """Both ends add the same compressed steps: rounding alone parts them."""
    f = quadratic(L=4.0)
    for shot in islice(iterate(replace(method, solver=Exact()), f, compressor=compressor), 40):
        known = shot.server.consensus if isinstance(method, FedSplit) else shot.server.h
        of_clients = shot.clients.z if isinstance(method, FedSplit) else shot.clients.gradient
        np.testing.assert_allclose(known, of_clients.mean(axis=0), atol=1e-12)


@pairs
def test_stays_at_the_minimiser(method, compressor) -> None:
    f = quadratic()
    method = resolve(replace(method, solver=Exact()), f, None, compressor)
    state = State(*method.fixed_point(f, f.minimiser()))
    for n in range(8):
        state, _, _ = advance(method, f, state, replace(first_round(f.n_clients), n=n), as_compressor(compressor, f))
        np.testing.assert_allclose(state.server.theta, f.minimiser(), atol=1e-13)


@pairs
def test_array_libraries_agree(method, compressor, backend) -> None:
    f = quadratic()
    method = replace(method, solver=Exact())
    expected = last(method, f, 5, compressor=compressor)
    other = converted(f, backend)
    found = last(method, other, 5, compressor=compressor)
    assert array_namespace(found.server.theta) is array_namespace(other.b)
    assert found.server.theta.device == other.b.device
    np.testing.assert_allclose(to_numpy(found.server.theta), expected.server.theta, rtol=1e-11, atol=1e-12)
    assert (found.bits_up, found.bits_down) == (expected.bits_up, expected.bits_down)


def test_runs_count_bits() -> None:
    """Five clients, four coordinates: 64 bits each way, 32 with single precision; nine up; 128 for two of four."""
    f = quadratic()
    single = converted(f, lambda x: x.astype(np.float32))
    for compressor, objective, up, width, numbers in (
        (None, f, 20 * 64, 64, 20),
        (Identity(), f, 20 * 64, 64, 20),
        (None, single, 20 * 32, 32, 20),
        (NaturalCompression(), f, 20 * 9, 64, 20),
        (NaturalCompression(), single, 20 * 9, 32, 20),
        (RandK(size=2), f, 10 * 64, 64, 10),
        (CoordinateCohorts(size=2), single, 8 * 32, 32, 8),
    ):
        trace = run(FedSplit(solver=Exact()), objective, rounds=3, compressor=compressor)
        assert trace["bits_up"].tolist() == [0, up, 2 * up, 3 * up]
        assert trace["floats_up"].tolist() == [0, numbers, 2 * numbers, 3 * numbers]
        assert trace["bits_down"].tolist() == (width * trace["floats_down"]).tolist()
        assert trace["floats_down"].tolist() == [0, 20, 40, 60]


def test_a_scalar_counts_as_64_bits() -> None:
    trace = run(SampledDualFL(), converted(quadratic(), lambda x: x.astype(np.float32)), rounds=1)
    scalars = trace["floats_down"][-1] - 4 * round(trace["floats_down"][-1] / 5)
    assert trace["bits_down"][-1] == 32 * (trace["floats_down"][-1] - scalars) + 64 * scalars


@pytest.mark.parametrize(
    ("method", "options", "sentence"),
    [
        (FedSplit(), {"compressor": RandK(size=5)}, "size of the compressor must be at most the number of coordinates"),
        (
            FedDyn(),
            {"compressor": CoordinateCohorts(size=6)},
            "size of the compressor must be at most the number of cl",
        ),
    ],
)
def test_what_does_not_fit_is_refused(method, options, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        run(method, quadratic(), rounds=1, **options)


def test_guarantees_say_what_the_theorem_says() -> None:
    f = quadratic(L=4.0)  # delta = 1/3

    def said(method, compressor, participation=None):
        return method.guarantee(f, participation, compressor)

    assert said(FedSplit(), NaturalCompression()).endswith("0.209877 per round")  # 17/81
    assert said(FedSplit(), RandK(size=1)).endswith("0.777778 per round")  # 7/9
    assert said(FedSplit(), TopK(size=1)) == (
        "none: Theorem D needs an unbiased compressor; its theorem needs |C(v) - v| <= q |v|,"
        " q < (1 - delta)/(1 + delta) = 0.5"
    )
    assert said(FedSplit(), Rounding(digits=8)) == "E of the squared distances falls by a factor of 0.117256 per round"
    assert said(GradientDescent(), Rounding(digits=8)) == "none: its theorem needs step <= s(q) = 0.25"
    assert said(GradientDescent(step=0.15), Rounding(digits=8)) == (
        "E - E* plus the mean square of what has not arrived falls by a factor of 0.850000 per round;"
        " 3 bits are enough for this step, and 8 are used"
    )
    assert said(GradientDescent(step=0.1), NaturalCompression()).startswith("none: its theorem needs a compressor that")
    cohorts, fifth = CoordinateCohorts(size=1), UniformSubset(size=1)
    assert said(FedDyn(), cohorts) == FedDyn().guarantee(f, fifth).replace("A", "D", 1)
    assert said(FedDyn(alpha=1e6), cohorts).startswith("Theorem D")
    for method, compressor in ((FedDyn(alpha=1e-3), cohorts), (FedDyn(), RandK(size=1))):
        assert said(method, compressor).startswith("none: Theorem D")
    assert said(FedDyn(), cohorts, fifth) == (
        "none: Theorem D needs everybody in every round, not uniform cohorts of one size"
    )
    assert said(DualFL(), cohorts) == "none: no theorem covers its uploads with a compressor"
    for method in (DualFL(), FedDyn(), FedSplit()):
        assert said(method, Identity()) == method.guarantee(f)
