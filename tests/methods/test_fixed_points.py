"""Fixed points of the methods on clients of unequal constants, none of them 1: all states stay, not the model alone."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

import dualopt.methods
from dualopt.arrays.tree import leaves
from dualopt.engine.rounds import State, advance
from dualopt.methods.participation import Bernoulli, Full, Participation, UniformSubset
from dualopt.solvers import Exact
from dualopt.spec.discover import discover
from tests.problems import lopsided

ALGORITHMS = discover(dualopt.methods)
F = lopsided()
START = F.minimiser()
EVERY: list[Participation] = [Full(), UniformSubset(size=2), Bernoulli(probability=0.4)]


def exactly(name: str):
    try:
        return ALGORITHMS[name](solver=Exact()).suggested(F)
    except (TypeError, ValueError):
        return ALGORITHMS[name]().suggested(F)


UNBIASED = [name for name in ALGORITHMS if exactly(name).fixed_point(F, START) is not None]


@pytest.mark.parametrize("name", UNBIASED)
def test_every_state_stays(name: str) -> None:
    method = exactly(name)
    for chance in (chance for chance in EVERY if chance.needs() <= method.supports):
        first = State(*method.fixed_point(F, START))
        state = first
        for round in islice(chance.rounds(F.n_clients, seed=0), 6):
            state, _, _ = advance(method, F, state, round)
            np.testing.assert_allclose(state.server.theta, START, rtol=0, atol=1e-12)
            for before, after in zip(leaves(first.clients), leaves(state.clients), strict=True):
                np.testing.assert_allclose(after, before, rtol=0, atol=1e-10)
            for before, after in zip(leaves(first.server), leaves(state.server), strict=True):
                if hasattr(before, "shape"):  # momentum goes on
                    np.testing.assert_allclose(after, before, rtol=0, atol=1e-10)


@pytest.mark.parametrize("name", UNBIASED)
def test_momentum_is_that_of_the_start(name: str) -> None:
    method = exactly(name)
    fixed, start = method.fixed_point(F, START), method.init(START, np.tile(START, (F.n_clients, 1)))
    for a, b in zip(leaves(fixed[:2]), leaves(start[:2]), strict=True):
        if not hasattr(a, "shape"):
            assert a == b
