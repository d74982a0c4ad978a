"""How far DualFL and A-FedPD solve local problems: less far with L-BFGS, whose pairs are kept, than with others."""

from __future__ import annotations

import pytest

from dualopt.engine.rounds import resolve
from dualopt.methods import (
    AdaptiveDualFL,
    AFedPD,
    CorrectedDualFL,
    DualFL,
    GapRestartedDualFL,
    OptimizedDualFL,
    RestartedDualFL,
)
from dualopt.problem.build import build_problem
from dualopt.problem.options import ProblemOptions
from dualopt.runs.recording import run
from dualopt.solvers import NewtonCG
from dualopt.solvers.stopping import GradientReduction

USUAL = GradientReduction()


def cancer(loss: str = "logistic"):
    return build_problem(ProblemOptions(data="breast_cancer", clients=8, partition="by-label", loss=loss)).objective


@pytest.mark.parametrize(
    ("method", "factor"),
    [
        (DualFL(), 0.3),
        (RestartedDualFL(), 0.3),
        (AdaptiveDualFL(), 0.1),
        (GapRestartedDualFL(), 0.1),
        (CorrectedDualFL(), 0.1),
        (OptimizedDualFL(), 0.1),
        (AFedPD(), 0.2),
    ],
    ids=lambda x: type(x).__name__,
)
def test_local_problems_of_smooth_clients(method, factor: float) -> None:
    assert resolve(method, cancer(), None).stop == GradientReduction(factor=factor)


@pytest.mark.parametrize("kind", [DualFL, RestartedDualFL, AFedPD])
def test_other_solvers_and_kinks_stop_as_usual(kind) -> None:
    smooth = cancer()
    assert resolve(kind(solver=NewtonCG()), smooth, None).stop == USUAL
    assert resolve(kind(stop=USUAL), smooth, None).stop == USUAL
    assert resolve(kind(), cancer("hinge"), None).stop == USUAL


def test_early_stops_save_gradients_and_cost_no_rounds() -> None:
    f = cancer()
    early, late = (run(method, f, rounds=200, tol=1e-8) for method in (DualFL(), DualFL(stop=USUAL)))
    assert early.status == late.status == "converged"
    assert len(early) <= 1.05 * len(late)
    assert early.last["gradients"] < 0.95 * late.last["gradients"]
