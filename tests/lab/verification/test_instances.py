"""The problems of ``dualopt verify`` are what their names say, and their minimisers are right."""

from __future__ import annotations

import numpy as np
import pytest

from dualopt.lab.rates import estimate_order
from dualopt.lab.verification.chains import kinked
from dualopt.lab.verification.instances import Instance, linear_instances, sublinear_instances
from dualopt.lab.verification.verdict import ROUNDING
from dualopt.methods import GradientDescent

LINEAR, SUBLINEAR = list(linear_instances()), list(sublinear_instances())


@pytest.mark.parametrize("instance", LINEAR + SUBLINEAR[1:], ids=lambda i: i.name)
def test_the_mean_gradient_vanishes_at_the_minimiser(instance: Instance):
    gradients = instance.objective.gradient(instance.theta)
    mean = np.linalg.norm(gradients.mean(axis=0))
    assert mean <= 1e-6 * np.linalg.norm(gradients)
    assert np.linalg.norm(gradients) > 0.1  # clients differ, or consensus would be no problem
    if instance.measure == "distance":  # strong convexity bounds the distance; it is less than what counts as rounding
        assert (mean / instance.values()["mu"]) ** 2 <= ROUNDING * instance.error(instance.objective.zeros())
    assert instance.error(instance.theta) == 0
    assert instance.objective.n_clients == 4


def test_the_kinked_chain_is_least_at_its_minimiser():
    f, theta = SUBLINEAR[0].objective, SUBLINEAR[0].theta
    least = f.value(theta).mean()
    rng = np.random.default_rng(0)
    for scale in (1e-6, 1e-3, 1.0):
        for step in scale * rng.standard_normal((20, theta.size)) * theta:
            # strong convexity 1, wherever the subgradient that vanishes is
            assert f.value(theta + step).mean() >= least + 0.5 * np.sum(step**2) - 1e-12 * least


def test_a_short_kinked_chain_is_least_at_its_minimiser():
    theta = np.array([1.0, 0.7, 0.4])
    f, _ = kinked(theta)
    for step in 1e-3 * np.concatenate([np.eye(3), -np.eye(3)]):
        assert f.value(theta + step).mean() >= f.value(theta).mean() + 0.5e-6 * (1 - 1e-6)


def test_constants_are_those_of_all_clients():
    for instance in LINEAR + SUBLINEAR:
        f, values = instance.objective, instance.values()
        assert (values["mu"], values["L"]) == (min(f.mu), max(f.L))


def test_linear_instances_have_finite_kappa_and_chains_differ_in_it_alone():
    kappas = [instance.values()["kappa"] for instance in LINEAR]
    assert max(kappas) < 1000
    assert [round(k) for k, instance in zip(kappas, LINEAR, strict=True) if instance.is_chain] == [16, 64, 256]


def test_a_linear_rate_is_impossible_on_the_sublinear_instances():
    assert [np.isinf(instance.values()["kappa"]) for instance in SUBLINEAR] == [True] * 3
    assert [np.isinf(instance.values()["L"]) for instance in SUBLINEAR] == [True, False, False]
    assert [instance.values()["mu"] for instance in SUBLINEAR] == [1.0, 0.0, 0.0]


@pytest.mark.parametrize("instance", SUBLINEAR[1:], ids=lambda i: i.name)
def test_flat_quadratics_leave_gradient_descent_at_the_order_one_and_acceleration_at_two(instance: Instance):
    """Of the quadratic itself, by hand: what is left of every curvature after n steps."""
    A, theta = instance.objective.A.mean(axis=0), instance.theta
    L = np.linalg.eigvalsh(A)[-1]
    plain = accelerated = last = np.zeros_like(theta)
    errors = [[instance.error(plain)], [instance.error(plain)]]
    for n in range(1, 300):
        plain = plain - A @ (plain - theta) / L
        ahead = accelerated + (n - 1) / (n + 2) * (accelerated - last)
        accelerated, last = ahead - A @ (ahead - theta) / L, accelerated
        errors[0].append(instance.error(plain))
        errors[1].append(instance.error(accelerated))
    assert estimate_order(errors[0]).value == pytest.approx(1.0, abs=0.05)
    assert estimate_order(errors[1]).value == pytest.approx(2.0, abs=0.2)
    assert GradientDescent().suggested(instance.objective).step > 0
