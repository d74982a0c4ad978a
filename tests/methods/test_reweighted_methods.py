"""Methods on reweighted and weighted clients: equal to what they replace, to copies of clients, and to plain loops."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dualopt.methods
from dualopt.engine.rounds import iterate
from dualopt.methods import (
    AdaptiveDualFL,
    ConsensusFedSplit,
    CorrectedDualFL,
    DualFL,
    FedDR,
    FedDyn,
    FedSplit,
    GapRestartedDualFL,
    OptimizedDualFL,
    RestartedDualFL,
    RestartedOptimizedDualFL,
    SampledDualFL,
)
from dualopt.methods.participation import UniformSubset, WeightedSubset
from dualopt.objectives import Composite, Quadratic
from dualopt.regularisers import L2
from dualopt.solvers import Exact
from dualopt.spec.discover import discover
from tests.problems import lopsided

RECORDED = json.loads((Path(__file__).parent / "scaled_trajectories.json").read_text())
"""Trajectories of ``scaled`` and ``scales``, which were parameters of five methods once, with exact local solutions."""

IMPORTANCE, SKEW = WeightedSubset(size=2), WeightedSubset(size=3, weights=(1.0, 2.0, 3.0, 4.0))
COHORTS = {"full": None, "subset": UniformSubset(size=2), "importance": IMPORTANCE, "skew": SKEW}
METHODS: dict[str, Any] = {
    "dualfl": DualFL(),
    "dualfl own": DualFL(rho=0.01),
    "dualfl corrected": CorrectedDualFL(),
    "dualfl gradient restart": RestartedDualFL(),
    "dualfl gap restart": GapRestartedDualFL(),
    "dualfl adaptive": AdaptiveDualFL(),
    "optimized": OptimizedDualFL(),
    "optimized gradient restart": RestartedOptimizedDualFL(),
    "fedsplit": FedSplit(),
    "fedsplit own": ConsensusFedSplit(),
    "feddr": FedDR(relaxation=1.5),
    "feddr own": FedDR(relaxation=1.0),
    "feddyn": FedDyn(),
    "feddyn own": FedDyn(),
    "sampled": SampledDualFL(),
    "sampled own": SampledDualFL(rho=0.01),
}
UNITS = {FedDyn: "alpha", FedSplit: "step", FedDR: "eta"}  # of the others nu


@pytest.mark.parametrize("name", RECORDED)
def test_reweighted_clients_are_the_scaled_variants_of_five_methods(name: str) -> None:
    r"""The scales of DualFL and FedDyn are the :math:`s_j`, those of FedSplit and FedDR, steps, are their inverses."""
    old, (kind, _, last) = RECORDED[name], name.rpartition(" ")
    alike = last == "importance" and kind.startswith("fed") and kind[:6] != "feddyn"  # they had no weights to draw with
    who = WeightedSubset(size=2, weights=(1.0,) * 4) if alike else COHORTS.get(last)
    method = replace(METHODS[kind if last in COHORTS else name], solver=Exact())
    unit = next((unit for k, unit in UNITS.items() if isinstance(method, k)), "nu")
    steps = isinstance(method, FedSplit | FedDR)
    s = 1.0 / np.array(old["scales"]) if steps else np.array(old["scales"])
    m = float(np.mean(s))
    f = Composite(objective=lopsided(), regulariser=L2(weight=0.5)) if kind == "feddr" and last != "own" else lopsided()
    method = replace(method, **{unit: old[unit] / m if steps else old[unit] * m})
    for shot, theta in zip(iterate(method, f, participation=who, seed=3, scales=s), old["theta"], strict=False):
        np.testing.assert_allclose(shot.server.theta, theta, rtol=1e-12, atol=1e-12)
    if "own" not in name and last != "skew":  # what was suggested is suggested
        method = replace(METHODS[kind if last in COHORTS else name], solver=Exact())
        for shot, theta in zip(
            iterate(method, f, participation=who, seed=3, scales="suggested"), old["theta"], strict=False
        ):
            np.testing.assert_allclose(shot.server.theta, theta, rtol=1e-12, atol=1e-12)


# ---- clients of integer weight are copies ----

COPIES = (3.0, 1.0, 2.0, 1.0)


def copied(f: Quadratic) -> Quadratic:
    """Return every client as often as its weight says."""
    return f.select([j for j, copies in enumerate(COPIES) for _ in range(int(copies))])


@pytest.mark.parametrize("name", discover(dualopt.methods))
def test_a_client_of_weight_three_is_three_copies(name: str) -> None:
    """Whatever the method does with means, sums and fractions, it does with the weights of the clients."""
    f = lopsided()
    method = discover(dualopt.methods)[name]()
    weighted, plain = replace(f, weights=COPIES), copied(f)
    runs = (islice(iterate(method, g, seed=1), 12) for g in (weighted, plain))
    moved = 0.0
    for one, other in zip(*runs, strict=True):
        np.testing.assert_allclose(one.server.theta, other.server.theta, rtol=1e-8, atol=1e-9)
        moved = max(moved, float(np.max(np.abs(one.server.theta))))
    assert moved > 0.05
    unweighted = list(islice(iterate(method, f, seed=1), 12))[-1]
    assert np.max(np.abs(unweighted.server.theta - one.server.theta)) > 1e-3  # the weights matter
