"""``dualopt run --summary`` and ``estimator.summary()`` give what `dualopt.inference` does."""

from __future__ import annotations

import csv
import json
import pickle
import re
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from dualopt import inference, linear_model
from dualopt.app.cli import main
from dualopt.app.cli.output import SUMMARY
from dualopt.app.estimators import FederatedClassifier, FederatedRegressor
from dualopt.problem.build import build_problem
from dualopt.problem.options import ProblemOptions
from dualopt.runs.trace import Trace
from tests.programs import called

OPTIONS = {
    "data": "breast_cancer",
    "scale": "standard",
    "clients": 5,
    "client_weights": "rows",
    "rows": 300,
    "mu": 0.02,
}
QUICK = [word for name, x in OPTIONS.items() for word in (f"--{name.replace('_', '-')}", str(x))]
QUICK += ["--algorithm", "anderson-dane", "--tol", "1e-9"]


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any, undrawn: None) -> Any:
    monkeypatch.chdir(tmp_path)
    return partial(called, capsys, main)


def test_a_summary_is_that_of_the_library(program: Any) -> None:
    code, out, err = program("run", *QUICK, "--summary")
    assert (code, err) == (0, "")
    trace, problem = Trace.from_npz("out/trace.npz"), build_problem(ProblemOptions(**OPTIONS))
    expected = inference(problem.objective, trace.theta, gap=trace.last["certificate"])
    record = json.loads(Path("out/summary.json").read_text())
    with Path("out/summary.csv").open() as file:
        lines = list(csv.DictReader(file))
    names = [*(f"x{i}" for i in range(1, 31)), "intercept"]
    assert [row["name"] for row in lines] == [row["name"] for row in record["coefficients"]] == names
    for name, values in expected.columns().items():
        assert [float(row[name]) for row in lines] == [row[name] for row in record["coefficients"]] == values
    assert record["aic"] == expected.aic
    assert f"{expected.aic:.8g}" in out
    assert re.search(r"intercept *│ +" + re.escape(f"{expected.columns()['estimate'][-1]:.5g}"), out)
    assert "1,031 numbers" in out
    assert "summary.json, summary.csv" in re.sub(r"\s*│\n│\s*│\s*", " ", out)
    options = json.loads(Path("out/run.json").read_text())["options"]
    assert options["summary"] is True
    program("run", "--from", "out/run.json", "--out", "again")
    for name in SUMMARY:
        assert Path("again", name).read_bytes() == Path("out", name).read_bytes()


def test_without_it_nothing_changes(program: Any) -> None:
    _, out, _ = program("run", *QUICK)
    assert "standard errors" not in out
    assert not Path("out/summary.json").exists()
    assert "summary" not in json.loads(Path("out/run.json").read_text())["options"]


def test_many_parameters_are_in_the_file(program: Any) -> None:
    code, out, _ = program("run", "--rows", "300", "--clients", "3", "--rounds", "3", "--summary", "--scale", "16")
    assert code == 0
    assert "and 610 more parameters in summary.json" in out
    assert "0: x1 " in out
    assert "run to a smaller tol" in " ".join(re.split(r"[\s│]+", out))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--data", "breast_cancer", "--loss", "hinge"], "Hinge has kinks"),
        (["--model", "mlp=3", "--algorithm", "fedavg"], "objective must be a linear model"),
        (["--penalty", "0.1", "--algorithm", "fedavg"], "objective must be a linear model"),
        (["--regulariser", "l1=0.1", "--algorithm", "feddr"], "regulariser must be L2 or none"),
    ],
)
def test_what_has_no_summary_is_refused_before_it_is_solved(program: Any, options: list[str], words: str) -> None:
    code, out, err = program("run", "--rows", "100", "--clients", "2", "--summary", *options)
    assert (code, out) == (2, "")
    assert words in err
    assert err.count("\n") == 1
    assert not Path("out").exists()


def breast_cancer() -> tuple[np.ndarray, Any]:
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X)[:, :3], y


def test_a_classifier_says_how_sure_it_is() -> None:
    X, y = breast_cancer()
    groups = np.repeat([0, 1, 2, 3], [20, 149, 300, 100])
    model = FederatedClassifier(mu=1e-3, tol=1e-8).fit(X, y, groups=groups)
    found = model.summary()
    f = linear_model(X, y, loss="logistic", mu=1e-3, clients=groups, client_weights="rows")
    expected = inference(f, np.append(model.coef_[0], model.intercept_), gap=model.certified_gap_)
    np.testing.assert_allclose(found.standard_errors, expected.standard_errors, rtol=1e-10)
    assert found.names == ("x1", "x2", "x3", "intercept")
    assert found.distance == pytest.approx(model.certified_distance_, rel=1e-9)
    clients = model.summary(kind="clients", level=0.9)
    assert (clients.kind, clients.level, clients.degrees) == ("clients", 0.9, 3)
    np.testing.assert_allclose(clients.standard_errors, expected.by("clients").standard_errors, rtol=1e-10)


def test_a_regressor_names_the_columns_of_a_frame() -> None:
    pandas = pytest.importorskip("pandas")
    X, _ = breast_cancer()
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    y = X @ [1.0, 2.0, 3.0] + 0.1 * np.sin(np.arange(len(X)))
    found = FederatedRegressor(mu=1e-4, tol=1e-8, algorithm="anderson-dane", intercept="none").fit(frame, y).summary()
    assert found.names == ("a", "b", "c")
    assert found.family == "gaussian"
    assert np.abs(found.estimate - [1.0, 2.0, 3.0]).max() < 5 * found.standard_errors.max()


def test_rows_are_neither_pickled_nor_cloned() -> None:
    X, y = breast_cancer()
    model = FederatedClassifier(tol=1e-6).fit(X, y)
    other = pickle.loads(pickle.dumps(model))
    assert (other.predict(X) == model.predict(X)).all()
    assert len(pickle.dumps(model)) < X.nbytes / 1.2
    with pytest.raises(ValueError, match="summary needs the rows of fit"):
        other.summary()
    assert not hasattr(clone(model), "_fitted_on")
    model.summary()
    with pytest.raises(ValueError, match="Hinge has kinks"):
        FederatedClassifier(loss="hinge", tol=1e-1).fit(X, y).summary()
