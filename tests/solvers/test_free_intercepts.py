"""Losses with kinks and an intercept without penalty: dual solvers, certificates, and other programs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import QuantileRegressor

from dualopt import FedDR, linear_model, run
from dualopt.objectives import LocalProblem
from dualopt.runs.reference import solve
from dualopt.solvers import DualCoordinate, InteriorPoint
from dualopt.solvers.stopping import Gap

SIZES = [range(9), range(9, 30), range(30, 80)]
rng = np.random.default_rng(0)
X = rng.normal(size=(80, 3))
REAL = 5.0 + X @ [1.0, -0.5, 0.0] + rng.standard_t(3, size=80)
SIGNS = np.where(X[:, 0] + 1.0 + rng.normal(size=80) > 0, 1.0, -1.0)
LABELS: dict[str, Any] = {"quantile:level=0.9": REAL, "absolute-deviation": REAL, "hinge": SIGNS}


def model(loss: str, **options: Any) -> Any:
    own: dict[str, Any] = {"mu": 0.05, "clients": SIZES, "intercept": "free", **options}
    return linear_model(X, LABELS[loss], loss=loss, **own)


@pytest.mark.parametrize("loss", LABELS)
@pytest.mark.parametrize(
    ("solver", "storage"), [(InteriorPoint(), "dense"), (DualCoordinate(), "dense"), (DualCoordinate(), "sparse")]
)
def test_local_problems_have_the_solutions_of_cvxpy(solver: Any, storage: str, loss: str) -> None:
    cp = pytest.importorskip("cvxpy")
    f = model(loss, storage=storage)
    linear, center = np.random.default_rng(1).normal(size=(2, 3, 4)) * 0.1
    weight = np.array([0.5, 0.02, 2.0])
    problem = LocalProblem(objective=f, linear=linear, weight=weight, center=center)
    found = solver(problem, np.zeros((3, 4)), Gap(schedule=lambda round: 1e-8))
    assert set(found.status) == {"converged"}
    for j, rows in enumerate(SIZES):
        own, theta = list(rows), cp.Variable(4)
        z = X[own] @ theta[:3] + theta[3]
        energy = cp.sum(f.loss.cvxpy(z, LABELS[loss][own])) / len(own) + 0.025 * cp.sum_squares(theta[:3])
        energy = energy + linear[j] @ theta + 0.5 * weight[j] * cp.sum_squares(theta - center[j])
        least = cp.Problem(cp.Minimize(energy)).solve()
        assert -1e-8 <= problem.value(found.theta)[j] - least <= 2e-8
        slope = np.asarray(found.evaluation.grad_f[j]) + linear[j] + weight[j] * (found.theta[j] - center[j])
        np.testing.assert_allclose(slope, 0.0, atol=1e-12)  # no ridge on the intercept


@pytest.mark.parametrize("loss", LABELS)
def test_certificates_hold_and_reach_the_tolerance(loss: str) -> None:
    f = model(loss)
    least = solve(f)
    assert least.gap <= 1e-7
    trace = run(FedDR(eta=5.0), f, rounds=400, tol=1e-3)
    assert trace.status == "converged"
    for energy, gap in zip(trace["energy"][1:], trace["certificate"][1:], strict=True):
        assert energy - gap <= least.energy + 1e-12
        assert least.energy - least.gap <= energy + 1e-12


def test_quantiles_are_those_of_a_linear_program() -> None:
    """Without a penalty but for a ridge of 1e-6; a ridge on the intercept would move the share of rows above."""
    program = QuantileRegressor(quantile=0.9, alpha=0.0).fit(X, REAL)
    f = model("quantile:level=0.9", mu=1e-6, clients=1)
    trace = run(FedDR(eta=20.0), f, rounds=100, tol=1e-5)
    assert trace.status == "converged"
    theirs = np.append(program.coef_, program.intercept_)
    ours, best = (float(f.mean(f.value(theta))) for theta in (trace.theta, theirs))
    assert abs(ours - best) <= trace["certificate"][-1] + 1e-6 * theirs @ theirs  # the program knows of no ridge
    above = float(np.mean(X @ trace.theta[:3] + trace.theta[3] + 1e-9 < REAL))
    assert 0.05 <= above <= 0.1


def test_without_a_proximal_term_nothing_holds_the_intercept() -> None:
    for solver in (InteriorPoint(), DualCoordinate()):
        with pytest.raises(
            ValueError, match="needs a proximal term, such as that of FedDR, where an intercept is free"
        ):
            solver(LocalProblem(objective=model("hinge")), np.zeros((3, 4)), Gap(schedule=lambda round: 1e-8))
