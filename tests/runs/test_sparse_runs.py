"""Sparse files from the command line to the results: what is written is that of dense rows, to rounding."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from dualopt.app.cli import main
from dualopt.losses import Hinge, Logistic, Multinomial
from dualopt.methods import DualFL, FedAvg, Scaffnew
from dualopt.objectives import linear_model
from dualopt.problem.build import build_problem
from dualopt.problem.data import load
from dualopt.problem.options import ProblemOptions
from dualopt.runs.recording import run
from dualopt.runs.reference import cvxpy, newton
from dualopt.solvers import Gradient, RowLBFGS, default_solver
from dualopt.solvers.stopping import Steps
from tests.programs import ended

pytest.importorskip("sklearn")
sparse = pytest.importorskip("scipy.sparse")


def write(path: Path, m: int, seed: int) -> None:
    """Write rows of 80 features, 5 percent of them not zero, whose label is the class of the largest of three sums."""
    rng = np.random.default_rng(seed)
    X = rng.integers(1, 9, (m, 80)) / 8 * (rng.random((m, 80)) < 0.05)
    y = 5 + np.argmax(X[:, :78].reshape(m, 26, 3).sum(axis=1), axis=1)
    rows = [" ".join(f"{i + 1}:{x}" for i, x in enumerate(row) if x) for row in X]
    lines = [f"{label} {row}" for row, label in zip(rows, y, strict=True)]
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return a folder with a training and a test part, which is the current one."""
    write(tmp_path / "words.svm", 90, 0)
    write(tmp_path / "words.t.svm", 40, 1)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def recorded(*arguments: str, file: str = "run.json") -> dict:
    assert ended(main, *arguments, "--out", "out") == 0
    return json.loads(Path("out", file).read_text())


DATA = ["--data", "words.svm", "--scale", "unit-rows", "--clients", "4", "--mu", "1e-2"]


def test_run_says_that_rows_are_sparse_and_gives_what_dense_ones_give(folder, capsys):
    options = ["run", *DATA, "--rounds", "4", "--test-accuracy", "--reference", "--tol", "0"]
    found = recorded(*options)
    assert "sparse, 4.9% not zero" in capsys.readouterr().out
    assert "sparse" in found["problem"]["data"]
    assert found["options"]["storage"] == "auto"
    assert "scipy" in found["versions"]
    dense = recorded(*options, "--storage", "dense", "--overwrite")
    assert "stored dense" in capsys.readouterr().out
    assert found["training_accuracy"] == dense["training_accuracy"]
    for name in ("energy", "test_accuracy", "error"):  # 4 rounds of solves to a tenth: rounding stays rounding
        assert found["final"][name] == pytest.approx(dense["final"][name], rel=1e-9, abs=1e-12)
    assert found["problem"]["kappa"] == pytest.approx(dense["problem"]["kappa"], rel=1e-12)


def test_test_accuracy_is_that_of_the_predictors(folder):
    problem = build_problem(ProblemOptions(data="words.svm", clients=4), test=True)
    assert problem.test is not None
    X, y = problem.test
    assert sparse.issparse(X)
    theta = np.random.default_rng(0).normal(size=problem.objective.shape)
    scores = theta[:, :-1] @ X.toarray().T + theta[:, -1:]
    assert problem.accuracy(theta, X, y) == np.mean(scores.argmax(axis=0) == y)


@pytest.mark.parametrize("method", [DualFL(), FedAvg(solver=Gradient(), stop=Steps(steps=3)), Scaffnew()])
def test_methods_follow_the_same_path(folder, method):
    data = load("words.svm", scale="unit-rows")
    y = (data.y - 5).astype(np.int64)
    options = {"loss": Multinomial(classes=3), "mu": 0.1, "clients": [[*range(60)], [60], [*range(61, 90)]]}
    a = run(method, linear_model(data.X, y, **options), rounds=4)
    b = run(method, linear_model(data.X.toarray(), y, **options), rounds=4)
    np.testing.assert_allclose(a["energy"], b["energy"], rtol=1e-12)


def test_references(folder):
    pytest.importorskip("cvxpy")
    data = load("words.svm")
    y = np.where(data.y == 5, 1.0, -1.0)
    for loss, solve, tol in ((Logistic(), newton, 1e-10), (Logistic(), cvxpy, 1e-6), (Hinge(), cvxpy, 1e-6)):
        a, b = (solve(linear_model(X, y, loss=loss, mu=0.1, clients=3), tol=tol) for X in (data.X, data.X.toarray()))
        assert abs(a.energy - b.energy) <= a.gap + b.gap


def test_the_default_solver_of_wide_sparse_rows():
    X = sparse.random_array((1200, 3000), density=0.002, random_state=np.random.default_rng(0), format="csr")
    y = np.random.default_rng(0).integers(0, 3, 1200)
    loss = Multinomial(classes=3)
    wide = linear_model(X, y, loss=loss, mu=1e-2, clients=2)
    assert default_solver(wide) == RowLBFGS()
    for other in (
        linear_model(X, y, loss=loss, mu=0.0, clients=2),
        linear_model(X, y, loss=loss, mu=1e-2, clients=3),
        linear_model(X[:, :500], y, loss=loss, mu=1e-2, clients=2),
    ):
        assert type(default_solver(other)).__name__ == "LBFGS"
    trace = run(DualFL(), wide, tol=1e-6)
    assert trace.status == "converged"
    assert newton(wide).energy <= trace.last["energy"] <= newton(wide).energy * (1 + 2e-6)
