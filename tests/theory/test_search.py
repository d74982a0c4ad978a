"""The search for better methods: its families hold the methods that they extend, and it finds a known best number."""

from __future__ import annotations

import math
from itertools import islice

import numpy as np
import pytest

pytest.importorskip("cvxpy")

from dualopt.engine.rounds import iterate
from dualopt.methods import FedDyn, FedSplit
from dualopt.methods.participation import UniformSubset
from dualopt.solvers import Exact
from tests.problems import lopsided
from theory.proofs._search import ExtrapolatedFedSplit, RelaxedFedDyn, best

WHO = UniformSubset(size=2)


def states(method, active=WHO) -> list:
    return list(islice(iterate(method, lopsided(), participation=active), 6))


def test_feddyn_is_a_member_of_its_family() -> None:
    ours, theirs = states(RelaxedFedDyn(alpha=3.0, solver=Exact())), states(FedDyn(alpha=3.0, solver=Exact()))
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a.server.theta, b.server.theta, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(a.clients.gradient, b.clients.gradient, rtol=1e-12, atol=1e-12)


def test_fedsplit_is_a_member_of_its_family_but_for_the_model() -> None:
    ours, theirs = states(ExtrapolatedFedSplit(step=0.3, solver=Exact())), states(FedSplit(step=0.3, solver=Exact()))
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a.clients.z, b.clients.z, rtol=1e-12)
        np.testing.assert_allclose(a.server.theta, b.server.consensus, rtol=1e-12)


@pytest.mark.parametrize("change", [{"memory": 1.5}, {"model": 1.5}, {"correction": 1.5}])
def test_each_number_of_the_family_of_feddyn_counts(change: dict) -> None:
    ours = states(RelaxedFedDyn(alpha=3.0, solver=Exact(), **change))[-1]
    theirs = states(FedDyn(alpha=3.0, solver=Exact()))[-1]
    assert np.linalg.norm(ours.server.theta - theirs.server.theta) > 1e-3


@pytest.mark.parametrize("change", [{"relaxation": 1.5}, {"momentum": 0.1}])
def test_members_have_the_same_limit(change: dict) -> None:
    f = lopsided()
    method = ExtrapolatedFedSplit(step=0.3, solver=Exact(), **change)
    last = list(islice(iterate(method, f, participation=WHO), 400))[-1]
    np.testing.assert_allclose(last.server.theta, f.minimiser(), rtol=1e-9)


def test_the_best_step_of_fedsplit_is_found() -> None:
    """Two clients of four: s = 1/sqrt(kappa), with the factor of Theorem B."""
    found = best("FedSplit", 2, 4, 9.0, evaluations=60)
    assert found.numbers[0] == pytest.approx(1.0 / 3.0, rel=2e-3)
    assert found.rate.factor == pytest.approx(1.0 - 0.5 * (1.0 - 0.25), abs=1e-3)
    assert found.cells()["needed by some clients"] == f"{found.rate.lower_bound:.5f}"
    assert math.isclose(float(found.cells()["proved"]), found.rate.factor, abs_tol=1e-5)
