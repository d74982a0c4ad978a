"""Convex chains: gradients, local minimisers, and the same numbers from every array library."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dualopt.arrays.xp import to_numpy
from dualopt.engine.rounds import iterate
from dualopt.lab.verification import chains
from dualopt.methods import DualFL
from dualopt.objectives import ConvexChain, LocalProblem

CHAINS = {"squares": chains.geometric(50.0, 7, pairs=2)[0], "kinks": chains.power(7, pairs=2)[0]}
every_chain = pytest.mark.parametrize("f", CHAINS.values(), ids=list(CHAINS))


@every_chain
def test_local_minimisers_are_minima(f: ConvexChain) -> None:
    rng = np.random.default_rng(1)
    linear, center = rng.standard_normal((2, f.n_clients, *f.shape))
    problem = LocalProblem(objective=f, linear=linear, weight=rng.uniform(0.5, 2.0, f.n_clients), center=center)
    theta = f.exact_minimiser(problem)
    lowest = problem.value(theta)
    for size in (1e-4, 1e-2, 1.0):
        change = size * rng.standard_normal(theta.shape)
        # strong convexity holds about a minimiser of a nonsmooth function, too
        assert np.all(problem.value(theta + change) >= lowest + 0.5 * np.sum(change**2, axis=1) - 1e-12 * abs(lowest))


@every_chain
def test_every_array_library_gets_the_same(f: ConvexChain, backend) -> None:
    other = replace(f, ratios=backend(f.ratios))
    rng = np.random.default_rng(2)
    theta, linear, center = rng.standard_normal((3, f.n_clients, *f.shape))
    weight = rng.uniform(0.5, 2.0, f.n_clients)
    here, there = (
        [*g.value_and_gradient(a(theta)), g.L, g.mu, g.zeros()]
        + [
            g.exact_minimiser(LocalProblem(objective=g, linear=a(linear), weight=w, center=a(center)))
            for w in (0.5, a(weight))
        ]
        for g, a in ((f, np.array), (other, backend))
    )
    for a, b in zip(here, there, strict=True):
        assert type(b) is type(other.ratios)
        np.testing.assert_allclose(to_numpy(b), a, rtol=1e-13, atol=1e-13)
    runs = (iterate(DualFL(rho=0.0), g) for g in (f, other))
    for _, a, b in zip(range(4), *runs, strict=False):
        np.testing.assert_allclose(to_numpy(b.server.theta), a.server.theta, rtol=1e-11, atol=1e-13)
