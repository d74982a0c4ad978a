"""Random problems have the constants they promise, and strategies draw them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

import dualopt.losses
from dualopt.lab import rates, testing
from dualopt.lab.testing import (
    federated_problems,
    linear_models,
    losses,
    quadratics,
    random_linear_model,
    random_quadratic,
)
from dualopt.losses import Hinge, Logistic, Multinomial, Squared
from dualopt.objectives import LinearModel, LocalProblem, Quadratic
from dualopt.spec.discover import discover

QUADRATIC: dict[str, Any] = {"seed": 0, "n_clients": 3, "dimension": 4, "mu": 1.0, "L": 20.0, "heterogeneity": 1.0}
MODEL: dict[str, Any] = {"seed": 0, "loss": Logistic(), "n_clients": 3, "rows": 20, "features": 2, "mu": 0.1}
EPS = float(np.finfo(float).eps)


def test_the_assertions_on_rates_are_found_here_too() -> None:
    assert set(rates.__all__) < set(testing.__all__)
    assert all(getattr(testing, name) is getattr(rates, name) for name in rates.__all__)


@given(
    problem=st.tuples(st.floats(0, 2), st.floats(2, 1e3), st.floats(0, 1e2)).flatmap(
        lambda given: st.tuples(
            st.just(given), quadratics(mu=given[0], L=given[1], heterogeneity=given[2], unequal=False)
        )
    )
)
def test_quadratics_have_the_constants_that_were_asked_for(problem) -> None:
    (mu, L, heterogeneity), f = problem
    eigenvalues = np.linalg.eigvalsh(f.A)
    np.testing.assert_allclose(eigenvalues[:, 0], mu, rtol=0, atol=50 * EPS * L)
    np.testing.assert_allclose(eigenvalues[:, -1], L, rtol=50 * EPS)
    # The optimum is known from the constant terms alone: f_j(theta) = 1 + <g_j, .> + quadratic, with sum g_j = 0.
    theta = np.linalg.solve(f.A.mean(axis=0), f.b.mean(axis=0))
    condition, scale = np.linalg.cond(f.A.mean(axis=0)), L + heterogeneity
    error = 50 * EPS * condition * scale
    gradients = f.A @ theta - f.b
    assert np.linalg.norm(theta) == pytest.approx(1.0, abs=error)
    assert np.sqrt((gradients**2).sum(axis=1).mean()) == pytest.approx(heterogeneity, abs=error)
    assert np.abs(gradients.sum(axis=0)).max() <= error * f.n_clients
    np.testing.assert_allclose(f.value(theta), 1.0, rtol=0, atol=error * (1 + heterogeneity))


@given(
    problem=st.tuples(st.floats(-0.49, 2), st.floats(2.01, 1e3), st.integers(2, 6)).flatmap(
        lambda given: st.tuples(
            st.just(given), quadratics(mu=given[0], L=given[1], n_clients=given[2], unequal=True, heterogeneity=1.0)
        )
    )
)
def test_of_unequal_quadratics_one_attains_each_end_and_the_mean_is_convex(problem) -> None:
    (mu, L, n_clients), f = problem
    eigenvalues, rounding = np.linalg.eigvalsh(f.A), 50 * EPS * L
    assert eigenvalues[0, 0] == pytest.approx(mu, abs=rounding)
    assert eigenvalues[-1, -1] == pytest.approx(L, abs=rounding)
    assert np.all(eigenvalues[1:, 0] > mu + rounding)
    assert np.all(eigenvalues[:-1, -1] < L - rounding)
    assert np.all(eigenvalues[1:, 0] > 0)
    least = np.linalg.eigvalsh(f.A)[:, 0]
    assert np.sum(least) > rounding
    if n_clients > 2:
        assert np.ptp(least[1:]) > rounding


def test_equal_is_what_unequal_clients_are_not() -> None:
    """Of a drawn problem with unequal clients the least, the mean and the greatest mu_j are three numbers."""
    f = find(quadratics(mu=1.0, L=20.0), lambda f: np.ptp(f.mu) > 0.5)
    assert f.mu.min() < f.mu.mean() - 0.1 < f.mu.max() - 0.2


def test_clients_differ() -> None:
    f = random_quadratic(**QUADRATIC)
    assert np.abs(f.A[0] - f.A[1]).max() > 1e-2
    assert np.linalg.eigvalsh(f.A)[:, 1:-1].std() > 1e-2


@pytest.mark.parametrize(("build", "given"), [(random_quadratic, QUADRATIC), (random_linear_model, MODEL)])
def test_the_seed_decides(build: Callable, given: dict[str, Any]) -> None:
    first, again, other = (build(**given | {"seed": seed}) for seed in (5, 5, 6))
    theta = np.ones(first.shape)
    np.testing.assert_array_equal(first.gradient(theta), again.gradient(theta))
    assert np.abs(first.gradient(theta) - other.gradient(theta)).max() > 1e-3


def test_examples_shrink() -> None:
    f = find(quadratics(), lambda f: f.n_clients >= 4)
    assert (f.b.shape, f.L.max().round(12)) == ((4, 2), 1.0)
    simplest = random_quadratic(seed=0, n_clients=4, dimension=2, mu=1.0, L=1.0, heterogeneity=0.0)
    np.testing.assert_array_equal(f.b, simplest.b)
    g = find(linear_models(), lambda g: g.n_features >= 4)
    assert (g.n_clients, sum(g.sizes), g.n_features, g.ridge) == (2, 10, 4, 1.0)


@given(f=linear_models(n_clients=4, rows=st.integers(4, 30), mu=0.3))
def test_linear_models_take_what_the_loss_takes(f: LinearModel) -> None:
    assert f.n_clients == 4
    assert 4 <= sum(f.sizes) <= 30
    assert min(f.sizes) >= 1
    np.testing.assert_array_equal(f.mu, 0.3)
    labels = np.concatenate([y for _, y, _ in f.client_rows()])
    kind = {
        "real": np.unique(labels).size == labels.size,
        "binary": set(labels) <= {-1.0, 1.0},
        "class": set(labels) <= set(range(f.loss.outputs)) and labels.dtype.kind == "i",
    }
    assert kind[f.loss.labels]


def test_clients_of_linear_models_are_unequal_in_size_and_in_law() -> None:
    given: dict[str, Any] = MODEL | {"rows": 3000}
    f = random_linear_model(**given)
    assert len(set(f.sizes)) == 3
    means = np.stack([X[:, :-1].mean(axis=0) for X, _, _ in f.client_rows()])
    assert means.std(axis=0).min() > 0.2  # equal laws would differ by 0.03
    labels = np.concatenate([y for _, y, _ in f.client_rows()])
    assert 0.1 < (labels > 0).mean() < 0.9


def test_labels_follow_the_features() -> None:
    given: dict[str, Any] = MODEL | {"loss": Squared(), "n_clients": 1, "rows": 500, "features": 6, "mu": 1e-3}
    f = random_linear_model(**given)
    best = f.exact_minimiser(LocalProblem(objective=f))
    assert f.value(best)[0] == pytest.approx(0.5, rel=0.1)  # the noise has variance 1
    assert f.value(f.zeros())[0] > 1.0


def drawn(strategy: st.SearchStrategy) -> list[Any]:
    """A hundred examples."""
    examples = []

    @settings(max_examples=100, phases=[Phase.generate], database=None)
    @given(example=strategy)
    def collect(example: Any) -> None:
        examples.append(example)

    collect()
    return examples


@pytest.mark.parametrize("smooth", [True, False, None])
def test_every_loss_of_the_package_is_drawn(smooth: bool | None) -> None:
    kinds: list[Any] = list(discover(dualopt.losses).values())
    wanted = {x for x in kinds if smooth is None or math.isfinite(x(**x.example).curvature) == smooth}
    assert {type(loss) for loss in drawn(losses(smooth=smooth))} == wanted


@pytest.mark.parametrize(
    ("smooth", "kinds"), [(True, {Quadratic, LinearModel}), (False, {LinearModel}), (None, {Quadratic, LinearModel})]
)
def test_federated_problems_are_strongly_convex_and_smooth_when_asked(smooth: bool | None, kinds: set[type]) -> None:
    problems = drawn(federated_problems(smooth=smooth))
    assert {type(f) for f in problems} == kinds
    assert min(f.mu.min() for f in problems) > 0
    assert {bool(np.isfinite(f.L).all()) for f in problems} == ({True, False} if smooth is None else {smooth})


def test_strategies_take_numbers_and_strategies() -> None:
    models = linear_models(loss=Multinomial(classes=4), n_clients=st.just(2), rows=9, features=3, mu=1.0)
    assert {(f.shape, sum(f.sizes), f.n_clients) for f in drawn(models)} == {((4, 4), 9, 2)}
    assert {f.loss for f in drawn(linear_models(loss=st.just(Hinge())))} == {Hinge()}
    assert {f.shape for f in drawn(quadratics(dimension=st.sampled_from([3, 5])))} == {(3,), (5,)}


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"n_clients": 0}, "n_clients must be at least 1, not 0."),
        ({"mu": -1.0}, "mu must be finite and at least 0, not -1.0."),
        ({"mu": math.nan}, "mu must be finite and at least 0, not nan."),
        ({"L": 0.5}, "L must be positive, finite and at least mu = 1.0, not 0.5."),
        ({"L": math.inf}, "L must be positive, finite and at least mu = 1.0, not inf."),
        ({"mu": 0.0, "L": 0.0}, "L must be positive, finite and at least mu = 0.0, not 0.0."),
        ({"dimension": 1}, "dimension must be at least 2 for mu = 1.0 and L = 20.0, not 1."),
        ({"dimension": 0, "L": 1.0}, "dimension must be at least 1 for mu = 1.0 and L = 1.0, not 0."),
        ({"heterogeneity": -2.0}, "heterogeneity must be finite and at least 0, not -2.0."),
        ({"n_clients": 1}, "heterogeneity must be 0 for a single client, not 1.0."),
        ({"mu": -5.0, "unequal": True}, "mu must be finite and above -L/4 = -5.0, not -5.0."),
        (
            {"n_clients": 1, "mu": -1.0, "heterogeneity": 0.0, "unequal": True},
            "mu must be finite and at least 0, not -1.0.",
        ),
    ],
)
def test_quadratics_refuse(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError) as error:  # noqa: PT011
        random_quadratic(**QUADRATIC | wrong)
    assert str(error.value) == said


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"n_clients": 0}, "n_clients must be at least 1, not 0."),
        ({"rows": 2}, "rows must be at least n_clients = 3, not 2."),
        ({"features": 0}, "features must be at least 1, not 0."),
        ({"mu": -1.0}, "mu must be a finite number, at least 0, not -1.0."),
    ],
)
def test_linear_models_refuse(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError) as error:  # noqa: PT011
        random_linear_model(**MODEL | wrong)
    assert str(error.value) == said


def test_one_dimension_and_one_client_are_possible() -> None:
    f = random_quadratic(seed=1, n_clients=1, dimension=1, mu=3.0, L=3.0, heterogeneity=0.0)
    assert f.A.item() == pytest.approx(3.0)
    assert abs(f.minimiser().item()) == pytest.approx(1.0)
