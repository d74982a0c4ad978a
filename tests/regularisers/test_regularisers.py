"""Regularisers, the composite objective, and everything that must know of ``g``: certificate, references, the loop."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace
from functools import cache

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dualopt.methods
import dualopt.regularisers
from dualopt.arrays.xp import to_numpy
from dualopt.engine.rounds import iterate
from dualopt.lab.contracts.test_regularisers import *  # noqa: F403
from dualopt.lab.contracts.test_regularisers import drawn
from dualopt.methods import FedDR
from dualopt.objectives import Composite, NonconvexPenalty, Objective, Quadratic, SharpnessAware
from dualopt.objectives.composite import without_regulariser
from dualopt.objectives.objective import OPTIONAL_MEMBERS
from dualopt.regularisers import L1, L2, Zero
from dualopt.runs.certificates import DualPoint, certificate
from dualopt.runs.recording import run
from dualopt.runs.reference import cvxpy, solve
from dualopt.solvers import DualCoordinate, Exact, default_solver
from dualopt.spec.discover import discover
from tests.problems import converted, hinge, logistic, quadratic

REGULARISERS = [kind(**kind.example) for kind in discover(dualopt.regularisers).values()]
every = pytest.mark.parametrize("g", REGULARISERS, ids=lambda g: type(g).__name__)


@every
@given(seed=st.integers(0, 10_000))
def test_nothing_larger_than_mu_would_do(g, seed: int) -> None:
    x, _ = drawn(seed, (6,))
    slopes = [g.minimal_subgradient(point, np.zeros(6)) for point in (2 * x, x)]
    assert float(np.sum((slopes[0] - slopes[1]) * x)) <= g.mu * float(np.sum(x**2)) + 1e-12


def test_zero_is_l1_of_weight_zero(backend) -> None:
    """The default of every objective changes nothing, to the last bit."""
    theta, gradient = (backend(x) for x in drawn(4, (2, 3)))
    zero, weightless = Zero(), L1(weight=0.0)
    assert (zero.mu, zero.value(theta), zero.cvxpy(cp.Variable(3))) == (0.0, weightless.value(theta), 0.0)
    assert to_numpy(zero.prox(theta, 0.3)).tobytes() == to_numpy(weightless.prox(theta, 0.3)).tobytes()
    found, expected = (g.minimal_subgradient(theta, gradient) for g in (zero, weightless))
    assert to_numpy(found).tobytes() == to_numpy(expected).tobytes()


@pytest.mark.parametrize("kind", [L1, L2])
@pytest.mark.parametrize("weight", [-1.0, np.nan, np.inf])
def test_bad_weights_are_refused(kind, weight: float) -> None:
    with pytest.raises(ValueError, match=r"^weight must be a finite number, at least 0, not"):
        kind(weight=weight)


# The composite objective


@pytest.mark.parametrize("f", [quadratic(), logistic(), hinge()], ids=["quadratic", "logistic", "hinge"])
def test_composite_is_its_objective_with_a_regulariser(f) -> None:
    F = Composite(objective=f, regulariser=L1(weight=0.1))
    theta = np.linspace(-1.0, 1.0, f.shape[0])
    assert isinstance(F, Objective)
    for name in ("value", "gradient"):
        assert getattr(F, name)(theta).tobytes() == getattr(f, name)(theta).tobytes()
    assert F.value_and_gradient(theta)[1].tobytes() == f.gradient(theta).tobytes()
    assert (F.n_clients, F.shape, F.mu.tolist(), F.L.tolist()) == (f.n_clients, f.shape, f.mu.tolist(), f.L.tolist())
    part = F.select([2, 0])
    assert part.regulariser == F.regulariser
    assert part.value(theta).tolist() == f.value(theta)[[2, 0]].tolist()
    optional = [name for names in OPTIONAL_MEMBERS.values() for name in names]
    assert [hasattr(F, name) for name in optional] == [hasattr(f, name) for name in optional]
    assert F.offers == f.offers
    for other in (pickle.loads(pickle.dumps(F)), copy.deepcopy(F)):
        assert (other.regulariser, other.value(theta).tolist()) == (F.regulariser, f.value(theta).tolist())
    assert without_regulariser(F) is f
    with pytest.raises(ValueError, match=r"^objective has a regulariser already\.$"):
        Composite(objective=F, regulariser=L2(weight=1.0))
    for wrapper in (NonconvexPenalty, SharpnessAware):
        with pytest.raises(ValueError, match="put Composite around the whole"):
            wrapper(objective=F)


def test_what_is_optional_stays_optional() -> None:
    penalised = Composite(objective=NonconvexPenalty(objective=logistic()), regulariser=L1(weight=0.1))
    assert not hasattr(penalised, "preconditioner")
    assert not hasattr(penalised, "exact_minimiser")
    assert [
        type(default_solver(Composite(objective=f, regulariser=L1(weight=0.1)))) for f in (quadratic(), hinge())
    ] == [Exact, DualCoordinate]
    assert quadratic().regulariser == Zero()


# Certificates


def minimum(f: Quadratic, g: L1 | L2) -> np.ndarray:
    """The minimiser of ``E + g`` by linear algebra: for L1, on the signs that another solver found."""
    A, b = f.A.mean(axis=0), f.b.mean(axis=0)
    if isinstance(g, L2):
        return np.linalg.solve(A + g.weight * np.eye(len(b)), b)
    signs = np.sign(cvxpy(Composite(objective=f, regulariser=g)).theta)
    on, theta = signs != 0, np.zeros(len(b))
    theta[on] = np.linalg.solve(A[np.ix_(on, on)], (b - g.weight * signs)[on])
    assert np.array_equal(np.sign(theta), signs)
    assert np.all(np.abs(A @ theta - b)[~on] <= g.weight)
    return theta


def energy(F: Composite, theta: np.ndarray) -> float:
    return float(F.value(theta).mean()) + F.regulariser.value(theta)


PLAIN = quadratic(n=4, d=6, mu=0.5, L=20.0, seed=1)
SPARSE, SQUARED = L1(weight=0.25), L2(weight=0.7)
solved = pytest.mark.parametrize("g", [SPARSE, SQUARED], ids=["L1", "L2"])


@cache
def solution(g: L1 | L2) -> tuple[Composite, np.ndarray]:
    return Composite(objective=PLAIN, regulariser=g), minimum(PLAIN, g)


@solved
@given(seed=st.integers(0, 10_000), scale=st.floats(1e-8, 1e3))
def test_both_forms_bound_the_error_anywhere(g, seed: int, scale: float) -> None:
    F, optimum = solution(g)
    rng = np.random.default_rng(seed)
    theta = optimum + scale * rng.standard_normal(F.shape) * rng.choice([0.0, 1.0], size=F.shape)
    points = theta + scale * rng.standard_normal((F.n_clients, *F.shape))
    dual = F.gradient(points) - F.mu[:, None] * points
    conjugate = (dual * points).sum(axis=-1) - F.value(points) + 0.5 * F.mu * (points**2).sum(axis=-1)
    true = energy(F, theta) - energy(F, optimum)
    for bound in (certificate(F, theta), certificate(F, theta, DualPoint(dual, conjugate))):
        assert bound.energy == energy(F, theta)
        assert bound.gap >= true


@solved
def test_the_gradient_form_is_tight_at_the_solution(g) -> None:
    """Zero where the minimiser is, and about the true gap beside it, within the condition number of 40."""
    F, optimum = solution(g)
    assert certificate(F, optimum).gap <= 1e-13
    assert certificate(F, optimum).gradient_norm <= 1e-13
    beside = optimum * (1.0 + 1e-3)
    true = energy(F, beside) - energy(F, optimum)
    assert 0 < true <= certificate(F, beside).gap <= 40 * true


@pytest.mark.parametrize("g", [L1(weight=0.25), L2(weight=0.7)], ids=["L1", "L2"])
def test_the_constant_of_the_gradient_form_is_attained(g) -> None:
    """For ``E = |theta - b|^2`` beside a solution without zeros: the bound is the true gap."""
    F = Composite(objective=Quadratic(A=2 * np.eye(3)[None], b=np.array([[4.0, -2.0, 6.0]])), regulariser=g)
    optimum = minimum(F.objective, g)
    theta = optimum + np.array([0.1, -0.3, 0.2])
    assert certificate(F, theta).gap == pytest.approx(energy(F, theta) - energy(F, optimum), rel=1e-12)


@solved
def test_the_dual_form_knows_of_the_regulariser(g) -> None:
    """At the solution its points give a gap of zero; those of ``E`` alone do not."""
    F, optimum = solution(g)
    right = F.gradient(optimum) - F.mu[:, None] * optimum
    conjugate = (right * optimum).sum(axis=-1) - F.value(optimum) + 0.5 * F.mu * (optimum**2).sum(axis=-1)
    moved = optimum + 1e-2  # where the gradient form is large, so that the dual one is returned
    bound = certificate(F, moved, DualPoint(right, conjugate))
    assert bound.kind == "dual"
    assert bound.gap == pytest.approx(energy(F, moved) - energy(F, optimum), rel=1e-9)


@solved
def test_certificates_of_array_libraries_agree(g, backend) -> None:
    F, optimum = solution(g)
    theta = optimum * 1.01
    found = certificate(replace(F, objective=converted(PLAIN, backend)), backend(theta))
    expected = certificate(F, theta)
    assert (found.energy, found.gap) == (
        pytest.approx(expected.energy, rel=1e-14),
        pytest.approx(expected.gap, rel=1e-9),
    )


@solved
def test_a_certificate_in_single_precision_is_a_bound(g) -> None:
    """Of the problem whose data are those that are stored, which is another one than that in double precision."""
    F, optimum = solution(g)
    single = replace(F, objective=converted(PLAIN, lambda x: x.astype(np.float32)))
    stored = replace(F, objective=converted(PLAIN, lambda x: x.astype(np.float32).astype(np.float64)))
    for factor in (1.0, 1.001, 1.5):
        theta = (factor * optimum).astype(np.float32)
        bound = certificate(single, theta)
        assert bound.gap >= bound.energy - energy(stored, optimum)
        assert bound.gap >= energy(stored, theta.astype(np.float64)) - energy(stored, optimum)


# References


@solved
def test_references_include_the_regulariser(g) -> None:
    F, optimum = solution(g)
    found = [cvxpy(F), solve(F)]
    for reference in found:
        np.testing.assert_allclose(reference.theta, optimum, atol=1e-6)
        assert np.array_equal(reference.theta == 0, optimum == 0)
        assert reference.energy - energy(F, optimum) <= reference.gap <= 1e-7
    assert found[1].solver == ("newton" if g is SQUARED else "cvxpy")
    assert F.regulariser.value(optimum) > 1e-3  # leaving it out would be seen
    if g is SPARSE:
        assert 0 < np.sum(optimum == 0) < optimum.size


def test_without_strong_convexity_scaled_dual_points_certify() -> None:
    found = cvxpy(Composite(objective=logistic(mu=0.0), regulariser=L1(weight=0.1)), tol=1e-5)
    assert 0 < found.gap <= 1e-5 * found.energy
    assert (found.gradient_norm < 1e-6, np.sum(found.theta == 0)) == (True, 3)


def test_a_nonsmooth_loss_with_a_regulariser() -> None:
    F = Composite(objective=hinge(mu=0.3), regulariser=L1(weight=0.1))
    found = solve(F)
    assert (found.solver, found.gap <= 1e-7) == ("cvxpy", True)
    rng = np.random.default_rng(0)
    for scale in (1e-4, 1e-2, 1.0):
        for _ in range(50):
            assert energy(F, found.theta + scale * rng.standard_normal(F.shape)) >= found.energy - found.gap


# The loop


@every
def test_recorded_energies_include_the_regulariser(g) -> None:
    F = Composite(objective=logistic(), regulariser=replace(g, weight=0.1))
    points = []
    options = {"rounds": 4, "callback": lambda snapshot, row: points.append(snapshot.server.theta)}
    for trace in (run(FedDR(), F, **options), run(FedDR(), F, certify_every=1, **options)):
        expected = [energy(F, theta) for theta in (F.zeros(), *points[-4:])]
        np.testing.assert_allclose(trace["energy"], expected, rtol=1e-15)
    assert trace["energy"][-1] - F.value(points[-1]).mean() > 0.01


def test_methods_without_support_refuse() -> None:
    F = Composite(objective=quadratic(), regulariser=L1(weight=0.1))
    supporting = set()
    for name, kind in discover(dualopt.methods).items():
        if "regulariser" in kind.supports:
            supporting.add(name)
            next(iterate(kind(), F))
            continue
        with pytest.raises(ValueError, match=rf"^algorithm {kind.__name__} does not support an objective with a reg"):
            next(iterate(kind(), F))
        with pytest.raises(ValueError, match="does not support an objective with a regulariser"):
            run(kind(), F, rounds=1)
    assert "feddr" in supporting
