r"""Certificates where an intercept is free, or where L1 takes the place of strong convexity.

The truth is Newton's method in 60 digits (``tests/fuzz_certificates.py``, which draws such cases too). Here are cases
of which more is known: how close a certificate comes, what a wrong one would say, and that clients elsewhere give the
same.
"""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import array_api_strict
import numpy as np
import pytest

from dualopt import FedDR, iterate, linear_model, run
from dualopt.engine import Host, Inline
from dualopt.engine._remote import RemoteClients
from dualopt.objectives import Composite
from dualopt.regularisers import L1, L2, WithoutIntercept, Zero
from dualopt.runs import cuts, reference
from dualopt.runs.certificates import certificate
from tests.fuzz_certificates import exactly, truth_of

RNG = np.random.default_rng(11)
X = RNG.standard_normal((40, 3)) * np.array([1.0, 3.0, 0.2]) + np.array([0.5, -1.0, 2.0])
CLIENTS = [list(range(3)), list(range(3, 13)), list(range(13, 40))]
LABELS = {
    "logistic": np.where(RNG.random(40) < 0.2, 1, 0),
    "squared": 3.0 + X @ np.array([1.0, -0.5, 0.1]) + RNG.standard_normal(40),
    "huber": 3.0 + X @ np.array([1.0, -0.5, 0.1]) + RNG.standard_normal(40),
    "multinomial": RNG.choice(4, p=[0.6, 0.2, 0.1, 0.1], size=40),
}


def problem(loss: str, **options: Any) -> Any:
    given = {"mu": 0.05, "clients": CLIENTS, "client_weights": [1.0, 4.0, 2.0], "intercept": "free"} | options
    return linear_model(X, LABELS[loss], loss=loss, **given)


@pytest.mark.parametrize("loss", sorted(LABELS))
@pytest.mark.parametrize("size", [1.0, 1e-2, 1e-5])
def test_it_is_above_the_error_and_not_far(loss: str, size: float) -> None:
    """The gradient alone says ``|grad E|^2/(2 mu)`` where the intercept is penalised; this is hardly more."""
    f = problem(loss)
    truth = truth_of(f)
    best = np.array([float(x) for x in truth.minimise(1.0)]).reshape(f.shape)
    theta = best + size * np.random.default_rng(5).standard_normal(f.shape)
    found = certificate(f, theta)
    error = truth.energy(exactly(theta.reshape(-1))) - truth.best
    assert error <= found.gap
    assert found.gap <= 16.0 * found.gradient_norm**2 / (2.0 * f.ridge) + 1e-13


def test_a_slope_in_the_intercept_must_not_be_forgotten() -> None:
    """A model that is best in the weights alone: the gradient in these is 0, the error is not."""
    f = problem("logistic")
    held = replace(f, free_intercept=False)
    far = reference.newton(held).theta
    for _ in range(60):  # Newton's method in the weights, the intercept stays
        H = np.stack([np.asarray(f.mean(f.hessian_product(far, np.eye(4)[i]))) for i in range(3)])[:, :3]
        far = far - np.append(np.linalg.solve(H, f.mean(f.gradient(far))[:3]), 0.0)
    slope = f.mean(f.gradient(far))
    assert np.linalg.norm(slope[:3]) < 1e-15 < 1e-3 < abs(slope[3])
    error = float(f.mean(f.value(far))) - reference.newton(f).energy
    assert 1e-4 < error <= certificate(f, far).gap < 4 * error


def test_without_a_minimiser_nothing_false_is_said() -> None:
    """All labels are alike: E falls to the ridge of 0 as the intercept grows, and the certificate covers that."""
    f = replace(problem("logistic"), classes=None)
    f = linear_model(X, np.ones(40), loss="logistic", mu=0.05, clients=CLIENTS, intercept="free")
    for b in (0.0, 3.0, 30.0):
        theta = np.array([0.0, 0.0, 0.0, b])
        assert certificate(f, theta).gap >= float(f.mean(f.value(theta)))


def test_a_hull_needs_both_signs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps that are too short to turn the slope certify nothing, and longer ones are tried."""
    f = problem("logistic")
    theta = np.array([0.1, -0.1, 0.0, 2.0])
    asked = []
    value_and_gradient = type(f).value_and_gradient
    monkeypatch.setattr(type(f), "value_and_gradient", lambda self, x: asked.append(x) or value_and_gradient(self, x))
    monkeypatch.setattr(cuts, "STEP", 1e-3)
    monkeypatch.setattr(cuts, "STEPS", 1)
    assert certificate(f, theta).gap == math.inf
    assert len(asked) == 3
    monkeypatch.setattr(cuts, "STEPS", 4)
    assert certificate(f, theta).gap < 10.0


def test_an_intercept_of_every_output_costs_one_gradient_each() -> None:
    f = problem("multinomial")
    asked = []

    class Watching(type(f)):
        def value_and_gradient(self, theta: Any) -> Any:
            asked.append(np.array(theta))
            return super().value_and_gradient(theta)

    own = Watching(**{name: getattr(f, name) for name in f.__dataclass_fields__})
    theta = 0.1 * RNG.standard_normal(f.shape)
    assert math.isfinite(certificate(own, theta).gap)
    assert len(asked) == 5
    steps = np.array(asked[1:]) - theta
    assert np.all(steps[..., :-1] == 0.0)
    np.testing.assert_allclose(steps[..., -1].sum(axis=1), 0.0, atol=1e-12)


@pytest.mark.parametrize("loss", ["logistic", "multinomial"])
def test_clients_elsewhere_give_the_same_certificates(loss: str) -> None:
    f = problem(loss)
    there = RemoteClients(Inline([Host(f.select([j]), j) for j in range(3)], in_process=False))
    assert (there.free_intercept, there.shift_invariant, there.mean_mu) == (True, loss == "multinomial", f.mean_mu)
    assert there.mu.tolist() == f.mu.tolist() == [0.0] * 3
    here, elsewhere = (run("distributed-lbfgs", x, rounds=40, tol=1e-8, certify_every=1) for x in (f, there))
    assert here.status == elsewhere.status == "converged"
    np.testing.assert_array_equal(here["certificate"], elsewhere["certificate"])


def test_other_libraries_and_single_precision() -> None:
    f = problem("squared")
    theta = np.array([1.0, -0.5, 0.1, 3.1])
    gap = certificate(f, theta).gap
    xp = array_api_strict
    strict = linear_model(xp.asarray(X), xp.asarray(LABELS["squared"]), loss="squared", mu=0.05, clients=CLIENTS,
                          client_weights=[1.0, 4.0, 2.0], intercept="free")  # fmt: skip
    assert certificate(strict, xp.asarray(theta)).gap == pytest.approx(gap, rel=1e-9)
    single = linear_model(X.astype(np.float32), LABELS["squared"], loss="squared", mu=0.05, clients=CLIENTS,
                          client_weights=[1.0, 4.0, 2.0], intercept="free")  # fmt: skip
    assert certificate(single, theta.astype(np.float32)).gap == pytest.approx(gap, rel=1e-4)


def test_local_solutions_certify_too() -> None:
    """Late solutions of the clients bound E* to 1e-6, whatever the model is; its own gradient says less."""
    f = problem("logistic")
    truth = truth_of(f)
    best = np.array([float(x) for x in truth.minimise(1.0)])
    last: Any = list(zip(range(400), iterate("fedsplit", f), strict=False))[-1][1]
    theta = best + 0.05 * np.array([1.0, -1.0, 0.5, 1.0])
    error = float(truth.energy(exactly(theta)) - truth.best)
    found, own = certificate(f, theta, last.solution), certificate(f, theta)
    assert (found.kind, own.kind) == ("dual", "gradient")
    assert error <= found.gap <= error + 1e-6 < 1.1 * error < own.gap


def stated(**given: Any) -> Any:
    """An objective of one weight and an intercept, of which no more is asked than this."""
    f = SimpleNamespace(
        free_intercept=True, shift_invariant=False, mean_mu=1.0, shape=(2,), regulariser=Zero(), **given
    )
    f.held = lambda x: np.array([x[0], 0.0])
    return f


def test_the_numbers_of_a_combination() -> None:
    r"""``w^2/2 + b^2/2`` at ``(0, 1/2)``, worked out by hand.

    The cuts of ``b = 1, -2`` are ``-1/2 + b`` and ``-2 - 2b``, which are 0 and -3 at the model; their slopes have the
    singular value :math:`\sqrt5`, and 0 between them with the weights 2/3 and 1/3, so that intercepts of better models
    are within :math:`R = 2(1/8 + 3)/(\frac12\frac13\sqrt{5/2})` of 1/2. The cut of ``b = 1/2``, ``-1/8 + b/2``, has the
    weight 4/5 beside the second: ``-1/10 - 2/5``, less four fifths of an error of 3/100 times 1/2 and ``R``.
    """
    at = np.array([0.0, 0.5])
    asked = []

    def gradient_at(x: np.ndarray) -> cuts.Cut:
        asked.append(x[1])
        b = 1.0 if x[1] > 0.5 else -2.0
        return cuts.Cut(-0.5 * b * b, np.array([0.0, b]), 0.0)

    own = cuts.Cut(-0.125, np.array([0.0, 0.5]), 0.03)
    given = [own, own._replace(error=0.0), gradient_at(np.zeros(2))]
    found = cuts.lower_bound(stated(), at, 0.125, given, gradient_at)
    reach = 2.0 * (0.125 + 3.0) / (math.sqrt(2.5) / 6.0)
    np.testing.assert_allclose(found, [-0.5 - 0.024 * (0.5 + reach) - 0.5 * 0.024**2, -0.5, -1.0], rtol=1e-12)
    assert asked[1:] == [0.5 + 16 * 3.0, 0.5 - 16 * 3.0]  # a hundred errors are more than the slope of 1/2


def test_the_numbers_of_a_cut() -> None:
    f = stated(n_clients=1, unequal_weights=None)
    columns = np.array([10.0, 10.0, 0.1, 0.2, 5.0, -7.0, 7.0, 13.0, 0.3])
    sums = cuts.Sums(2.0 * columns, np.array([6.0, 8.0]), np.array([10.0, 24.0]), 2.0)
    cut = cuts.cut_of_gradient(f, np.array([3.0, -4.0]), sums)
    np.testing.assert_allclose(cut.constant, 10.0 - (9.0 - 16.0) + 4.5 - 0.1 - 0.2 * 5.0, rtol=1e-12)
    np.testing.assert_allclose((*cut.slope, cut.error), (0.0, 4.0, 0.2), rtol=1e-12)
    dual = cuts.cut_of_duals(f, np.zeros(2), sums)
    np.testing.assert_allclose((dual.constant, *dual.slope, dual.error), (7.0, 5.0, 12.0, 0.3), rtol=1e-12)


@pytest.mark.parametrize("intercept", ["free", "none"])
def test_the_lasso_has_a_certificate(intercept: str) -> None:
    f = Composite(objective=problem("squared", mu=0.0, intercept=intercept), regulariser=L1(weight=0.2))
    truth = truth_of(f)
    best = np.array([float(x) for x in truth.minimise(1.0)])
    trace = run(FedDR(), f, rounds=400, tol=1e-9)
    assert trace.status == "converged"
    assert trace["energy"][-1] - float(truth.best) <= trace["certificate"][-1]
    other = reference.cvxpy(f)
    assert -other.gap <= trace["energy"][-1] - other.energy <= trace["certificate"][-1]
    np.testing.assert_allclose(trace.theta, other.theta, atol=1e-4)
    for theta in (0.0 * best, best + 0.5, 1.1 * best):
        error = float(truth.energy(exactly(theta)) - truth.best)
        assert error <= certificate(f, theta).gap
    error = float(truth.energy(exactly(0.0 * best)) - truth.best)
    assert certificate(f, 0.0 * best).gap < 2.0 * error + 1e-9


def test_the_lasso_needs_losses_that_are_not_negative() -> None:
    f = Composite(objective=problem("squared", mu=0.0, intercept="none"), regulariser=L1(weight=0.2))
    theta = np.zeros(3)
    assert math.isfinite(certificate(f, theta).gap)
    below = replace(f, objective=Negative(**{n: getattr(f.objective, n) for n in f.objective.__dataclass_fields__}))
    assert certificate(below, theta).gap == math.inf
    ridge = Composite(objective=problem("squared", mu=0.0, intercept="free"), regulariser=L2(weight=0.2))
    assert certificate(ridge, np.zeros(4)).gap == math.inf  # of which this says nothing


class Negative(type(problem("squared"))):
    """A model that does not say that its values are not negative."""

    nonnegative = False  # pyright: ignore[reportAssignmentType, reportIncompatibleMethodOverride]


def test_a_regulariser_leaves_a_free_intercept_alone() -> None:
    f = Composite(objective=problem("squared"), regulariser="l1=0.5")
    assert f.regulariser == WithoutIntercept(regulariser=L1(weight=0.5))
    theta = np.array([2.0, -0.25, 0.0, 7.0])
    g = f.regulariser
    assert (g.value(theta), g.mu) == (1.125, 0.0)
    assert g.prox(theta, 1.0).tolist() == [1.5, 0.0, 0.0, 7.0]
    assert g.minimal_subgradient(theta, np.array([0.5, 0.5, 0.75, -3.0])).tolist() == [1.0, 0.0, 0.25, -3.0]
    assert g.share(np.array([1.0, 0.0, -4.0, 100.0]), 1.0) == pytest.approx(0.1, rel=1e-14)
    assert g.share(np.array([1.0, 0.0, -4.0, 100.0]), 1.0) <= 0.1
    assert g.prox(np.array([[2.0, 7.0], [-0.25, 9.0]]), 1.0).tolist() == [[1.5, 7.0], [0.0, 9.0]]
    penalised = Composite(objective=problem("squared", intercept="penalised"), regulariser="l1=0.5")
    assert penalised.regulariser == L1(weight=0.5)


def test_a_free_intercept_is_not_in_the_ridge() -> None:
    f, g = problem("squared"), problem("squared", intercept="penalised")
    theta = RNG.standard_normal((3, 4))
    b = theta[:, 3]
    np.testing.assert_allclose(g.value(theta) - f.value(theta), 0.025 * b * b, rtol=1e-12)
    np.testing.assert_allclose((g.gradient(theta) - f.gradient(theta))[:, 3], 0.05 * b, rtol=1e-12)
    np.testing.assert_array_equal(g.gradient(theta)[:, :3], f.gradient(theta)[:, :3])
    np.testing.assert_allclose((g.hessian_product(theta, theta) - f.hessian_product(theta, theta))[:, 3], 0.05 * b)
    assert (f.mu.tolist(), f.partial_mu.tolist(), g.partial_mu.tolist()) == ([0.0] * 3, [0.05] * 3, [0.05] * 3)
    assert "exact" in g.offers - f.offers
    assert f.select([1]).free_intercept
