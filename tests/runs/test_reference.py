"""Reference solutions agree with each other and refuse to answer when they are not good enough."""

from __future__ import annotations

import numpy as np
import pytest

import dualopt.losses
import dualopt.runs.reference
from dualopt.losses import Squared
from dualopt.objectives import linear_model
from dualopt.runs.reference import NotOptimalError, cvxpy, newton, solve
from dualopt.spec.discover import discover
from tests.problems import hinge, logistic, quadratic

LOSSES = {name: loss(**loss.example) for name, loss in discover(dualopt.losses).items()}
SMOOTH = [name for name, loss in LOSSES.items() if np.isfinite(loss.curvature) or hasattr(loss, "differentiable")]
ROUGH = [name for name in LOSSES if name not in SMOOTH]


def problem(name: str):
    rng = np.random.default_rng(1)
    loss = LOSSES[name]
    X = rng.standard_normal((90, 4))
    score = X @ np.array([1.0, -0.5, 0.2, 0.0]) + 0.5 * rng.standard_normal(90)
    if loss.labels == "class":
        y = np.digitize(score, [-1.0, 0.0, 1.0])
    else:
        y = np.sign(score) if loss.labels == "binary" else np.exp(score) if hasattr(loss, "label_domain") else score
    return linear_model(
        X, y, loss=loss, mu=0.02, clients=[range(20), range(20, 50), range(50, 90)], client_weights="rows"
    )


@pytest.mark.parametrize("name", SMOOTH)
def test_newton_and_cvxpy_agree(name: str) -> None:
    f = problem(name)
    a, b = newton(f), cvxpy(f)
    assert a.gap <= 1e-11 * a.energy
    assert abs(a.energy - b.energy) <= a.gap + b.gap
    np.testing.assert_allclose(a.theta, b.theta, atol=1e-5)
    assert solve(f).solver == "newton"


@pytest.mark.parametrize("name", ROUGH)
def test_cvxpy_certifies_nonsmooth_solutions(name: str) -> None:
    f = problem(name)
    found = solve(f)
    assert (found.solver, found.gap <= 1e-7 * found.energy) == ("cvxpy", True)
    with pytest.raises(ValueError, match="smooth"):
        newton(f)
    rng = np.random.default_rng(0)  # no nearby point is better than the certificate allows
    for scale in (1e-4, 1e-2, 1.0):
        for _ in range(50):
            assert f.value(found.theta + scale * rng.standard_normal(f.shape)).mean() >= found.energy - found.gap


def test_quadratic() -> None:
    f = quadratic()
    for found in (newton(f), cvxpy(f)):
        np.testing.assert_allclose(found.theta, f.minimiser(), atol=1e-6)


def test_without_ridge_the_gradient_is_checked() -> None:
    f = logistic(mu=0.0)
    found = newton(f)
    assert found.gap == np.inf
    assert found.gradient_norm <= 1e-11
    assert abs(found.energy - cvxpy(f, tol=1e-6).energy) <= 1e-9


@pytest.mark.parametrize("mu", [0.0, 1e-9, 0.1])
@pytest.mark.parametrize("y", [0.0, 1.0])
def test_a_minimum_of_zero(mu: float, y: float) -> None:
    """The tolerance is then one of the energy of the zero model, and ``is_positive`` says what is not certain."""
    X = np.random.default_rng(0).standard_normal((12, 3))
    f = linear_model(X, y * X @ np.ones(3), loss=Squared(), mu=mu, intercept=False)
    found = newton(f)
    assert found.is_positive == (mu > 0 and y > 0)
    assert found.energy == pytest.approx(0.0 if not found.is_positive else 1.5 * mu, abs=mu**1.5)


def test_refuses_to_answer_when_not_optimal() -> None:
    with pytest.raises(NotOptimalError, match="certified only"):
        newton(logistic(), max_iter=1)
    with pytest.raises(NotOptimalError, match="certified only"):
        cvxpy(hinge(), tol=1e-16)


def test_a_wrong_answer_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A solver that reports "optimal" for a wrong point does not get past the certificate."""
    monkeypatch.setattr(dualopt.runs.reference, "asarray_like", lambda values, like: np.asarray(values) + 1e-3)
    with pytest.raises(NotOptimalError, match="certified only"):
        cvxpy(logistic())


def test_other_objectives_are_refused() -> None:
    class Strange:
        shape = (2,)

    with pytest.raises(ValueError, match="linear model or a quadratic"):
        cvxpy(Strange())  # pyright: ignore[reportArgumentType]
