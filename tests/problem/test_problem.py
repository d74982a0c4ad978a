"""From options to the objective and to the algorithm, without the program; the partition that the data bring."""

from __future__ import annotations

import os
import re
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
from dualopt.problem.build import build_problem
from dualopt.problem.data import load, natural, subsample
from dualopt.problem.options import ProblemOptions

FEW = ProblemOptions(rows=120, clients=3, seed=2)


def test_neither_needs_the_packages_of_the_program() -> None:
    code = """
import sys
for name in ("typer", "rich", "matplotlib"):
    sys.modules[name] = None
from dualopt.problem.build import build_problem
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
    problem = build_problem(ProblemOptions(**FEDPD, clients=clients, intercept="none"))
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


def people(folder: Path) -> tuple[Path, np.ndarray, list[str], list[str], np.ndarray]:
    """Write a table of 60 people of three sites, of whom few are ill; return what is in it."""
    rng = np.random.default_rng(4)
    X, w = rng.standard_normal((60, 2)).round(3), rng.integers(0, 4, 60)
    ill, site = ["yes" if row % 5 == 0 else "no" for row in range(60)], [f"s{min(row // 10, 2)}" for row in range(60)]
    lines = [f"{a},{b},{i},{s},{n}" for (a, b), i, s, n in zip(X.tolist(), ill, site, w.tolist(), strict=True)]
    path = folder / "people.csv"
    path.write_text("\n".join(["age,height,ill,site,times", *lines]) + "\n")
    return path, X, ill, site, w.astype(float)


@pytest.mark.parametrize("text", ["balanced", "yes=3", "yes=3,no=0.5", None])
def test_weights_of_rows_and_classes(tmp_path: Path, text: str | None) -> None:
    """The sums of what rows count are the weights of the sites, and the column is no feature."""
    path, X, ill, site, w = people(tmp_path)
    options = ProblemOptions(
        data=str(path), label="ill", client="site", sample_weight="times", class_weight=text, client_weights="rows",
        intercept="free",
    )  # fmt: skip
    f = build_problem(options).objective
    is_ill = np.array(ill) == "yes"
    numbers = {
        "balanced": (w.sum() / (2 * w[is_ill].sum()), w.sum() / (2 * w[~is_ill].sum())),
        "yes=3": (3.0, 1.0),
        "yes=3,no=0.5": (3.0, 0.5),
        None: (1.0, 1.0),
    }[text]
    counts = w * np.where(is_ill, *numbers)
    sums = [counts[np.array(site) == s].sum() for s in ("s0", "s1", "s2")]
    assert f.weights == pytest.approx(sums, rel=1e-14)
    theta = np.array([0.3, -0.2, 0.7])
    z = np.where(is_ill, 1.0, -1.0) * (X @ theta[:2] + 0.7)
    energy = counts @ np.log1p(np.exp(-z)) / counts.sum() + 0.005 * theta[:2] @ theta[:2]
    assert float(f.mean(f.value(theta))) == pytest.approx(energy, rel=1e-14)
    assert f.feature_names == ("age", "height")


def test_balanced_classes_are_counted_among_the_rows_that_take_part() -> None:
    options = ProblemOptions(data="breast_cancer", rows=80, clients=3, class_weight="balanced", client_weights="rows")
    f = build_problem(options).objective
    by_class = {-1.0: 0.0, 1.0: 0.0}
    for weight, (_, y, w) in zip(f.weights, f.client_rows(), strict=True):
        for label in by_class:
            by_class[label] += weight * float(w[y == label].sum())
    assert by_class[1.0] == pytest.approx(40.0, rel=1e-12)
    assert by_class[-1.0] == pytest.approx(40.0, rel=1e-12)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"class_weight": "yes"}, "class_weight must be balanced, or numbers by class such as yes=3,no=1, not yes."),
        ({"class_weight": "ill=2"}, "class_weight must name classes, some of 'no', 'yes', not ill."),
        ({"class_weight": "yes=-1"}, "class_weight of 'yes' must be a positive finite number, not -1.0."),
        ({"sample_weight": "weight"}, "sample_weight"),
        ({"sample_weight": "site"}, "site"),
        ({"sample_weight": "age"}, "sample_weight must be 60 finite nonnegative numbers, one for each row of X."),
        ({"intercept": "yes"}, "intercept must be True, False, 'penalised', 'free' or 'none', not yes."),
        ({"model": "mlp=3", "class_weight": "balanced"}, "class_weight, sample_weight, offset and exposure are for"),
    ],
)
def test_weights_that_do_not_fit(tmp_path: Path, changes: dict[str, str], sentence: str) -> None:
    path, *_ = people(tmp_path)
    with pytest.raises(ValueError, match=re.escape(sentence)):
        build_problem(replace(ProblemOptions(data=str(path), label="ill", client="site"), **changes))
