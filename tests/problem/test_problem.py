"""From options to the objective and to the algorithm, without the program; the partition that the data bring."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import dualopt
from dualopt.losses import Multinomial
from dualopt.objectives import Composite, NonconvexPenalty, linear_model
from dualopt.problem import data
from dualopt.problem.data import load, natural, subsample
from dualopt.problem.options import ProblemOptions, build_problem

FEW = ProblemOptions(rows=120, clients=3, seed=2)


def test_neither_needs_the_packages_of_the_program() -> None:
    code = """
import sys
for name in ("typer", "rich", "matplotlib"):
    sys.modules[name] = None
from dualopt.problem.options import build_problem
from dualopt.spec import Spec
build_problem("problem: synthetic-logistic, clients=3")
print(type(Spec.parse("dualfl:rho=0").build("algorithm")).__name__)
"""
    environment = {**os.environ, "PYTHONPATH": str(Path(dualopt.__path__[0]).parent)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "DualFL\n"), done.stderr


def test_the_objective_is_that_of_the_library() -> None:
    problem = build_problem(FEW)
    digits = data.load("digits")
    chosen = data.subsample(digits.y, 120, 2)
    expected = linear_model(
        digits.X[chosen],
        data.encode_labels(digits.y, "class")[chosen],
        loss=Multinomial(classes=10),
        mu=0.01,
        clients=[part.tolist() for part in data.iid(120, 3, 2)],
    )
    theta = np.random.default_rng(0).standard_normal(expected.shape)
    np.testing.assert_array_equal(problem.objective.value(theta), expected.value(theta))
    assert problem.rows is problem.objective
    assert (problem.network, problem.test, problem.added) == (None, None, {})
    assert (problem.is_convex, problem.quality) == (True, "certified_error")
    assert problem.condition == pytest.approx(float(np.max(expected.L)) / 0.01)


def test_what_is_added_to_the_losses() -> None:
    problem = build_problem(replace(FEW, penalty=0.5, regulariser="l1=0.1"))
    assert isinstance(problem.objective, Composite)
    assert set(problem.added) == {"penalty", "regulariser"}
    problem = build_problem(replace(FEW, penalty=9.0))
    assert isinstance(problem.objective, NonconvexPenalty)
    assert (problem.is_convex, problem.quality) == (False, "gradient_norm")


def test_a_network_and_its_test_rows(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((90, 2)), rng.integers(0, 3, 90)
    np.savez(tmp_path / "mine.npz", X_train=X[:60], y_train=y[:60], X_test=X[:60], y_test=y[:60])  # the same rows
    options = ProblemOptions(data=str(tmp_path / "mine.npz"), scale="none", clients=2, model="mlp=4,3", mu=0.0)
    problem = build_problem(options, test=True)
    assert problem.network is problem.objective
    assert problem.loss.endswith("network 4-3")
    assert problem.test is not None
    theta = rng.standard_normal(problem.objective.shape)
    right = problem.accuracy(theta, *problem.test)
    assert right == problem.training_accuracy(theta)
    assert 0 < right < 1


# The partition that the data bring.


FEDPD = {"data": "synthetic-fedpd-weak", "data_param": ["clients=10", "rows=6", "d=3"], "partition": "natural"}


def stacked_rows(problem):
    """Return the features, client by client."""
    return np.concatenate([np.reshape(X, (-1, X.shape[-1])) for X, _, _ in problem.objective.client_rows()])


@pytest.mark.parametrize("clients", [8, 10])
def test_the_data_decide_the_number_of_clients(clients):
    problem = build_problem(ProblemOptions(**FEDPD, clients=clients, intercept=False))
    assert problem.objective.sizes == (6,) * 10
    assert problem.partition == "10 (natural), 6 rows each"
    np.testing.assert_array_equal(stacked_rows(problem), load("synthetic-fedpd-weak", clients=10, rows=6, d=3).X)


def test_sizes_follow_the_owners():
    options = ProblemOptions(data="synthetic-feddyn", data_param=["setting=sizes", "rows=20"], partition="natural")
    parts = natural(load("synthetic-feddyn", setting="sizes", rows=20).clients)
    assert list(build_problem(options).objective.sizes) == [len(rows) for rows in parts]


def test_rows_keep_their_owners():
    problem = build_problem(ProblemOptions(**FEDPD, rows=50, seed=1))
    data = load("synthetic-fedpd-weak", clients=10, rows=6, d=3, seed=1)
    chosen = subsample(data.y, 50, 1)
    assert list(problem.objective.sizes) == np.bincount(chosen // 6, minlength=10).tolist()
    assert len(set(problem.objective.sizes)) > 1


def test_dirichlet_clients_have_equal_sizes_unless_told_otherwise():
    options = {"data": "synthetic-multinomial", "data_param": ["m=400"], "partition": "dirichlet-clients"}
    assert set(build_problem(ProblemOptions(**options, alpha=0.1)).objective.sizes) == {50}
    assert len(set(build_problem(ProblemOptions(**options, sigma=0.5)).objective.sizes)) > 4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (FEDPD | {"clients": 9}, "^clients must be the 10 clients of the data, not 9"),
        (FEDPD | {"rows": 5}, "^rows = 5 leaves [0-9]+ of the 10 clients without rows"),
        ({"data": "synthetic-logistic", "partition": "natural"}, '^partition must not be "natural", because the data'),
        ({"data": "synthetic-logistic", "partition": "natural", "clients": 0}, "^clients must be between 1 and"),
    ],
)
def test_wrong_options(options, message):
    with pytest.raises(ValueError, match=message):
        build_problem(ProblemOptions(**options))
