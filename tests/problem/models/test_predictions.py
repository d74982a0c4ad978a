"""A saved model predicts as the run's own model does, here, elsewhere, and as a pipeline of scikit-learn."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import dualopt
from dualopt import Model, Multinomial, SketchedMetric, Squared, Trace, linear_model, run
from dualopt.problem.build import build_problem
from dualopt.problem.data import load
from dualopt.problem.data._scaling import Scaling
from dualopt.problem.models import Schema
from dualopt.problem.models._model import PIECE
from dualopt.problem.options import ProblemOptions
from dualopt.spec._kinds import names

CLASSES = ("breast_cancer", "digits")
CASES: list[dict[str, Any]] = [
    *({"data": "breast_cancer", "loss": loss} for loss in ("logistic", "hinge", "smoothed-hinge: gamma=0.5")),
    {"data": "breast_cancer", "loss": "multinomial"},  # two classes, two outputs
    {"data": "digits"},
    {"data": "digits", "scale": "standard"},  # has constant columns
    {"data": "digits", "scale": "unit-rows", "dtype": "float32"},
    {"data": "digits", "scale": "standard", "dtype": "float32"},
    {"data": "digits", "scale": "max", "intercept": False},
    {"data": "digits", "scale": "none", "regulariser": "l2=0.1"},
    *({"data": "synthetic-regression", "loss": loss} for loss in ("squared", "huber: delta=0.3")),
    {"data": "synthetic-regression", "loss": "absolute-deviation", "data_param": ["m=30", "d=3"], "mu": 1.0},
    {"data": "synthetic-regression", "loss": "squared", "scale": "standard", "intercept": False},
    {"data": "digits", "model": "mlp=12,7"},
    {"data": "breast_cancer", "model": "mlp=5"},  # scikit-learn has one output for two classes
]


def trained(case: dict[str, Any]) -> tuple[Any, Trace, Model]:
    """Return a problem, a run and its model."""
    problem = build_problem(ProblemOptions(rows=None if "data_param" in case else 300, clients=3, **case))
    method = "fedavg: solver=lbfgs" if "model" in case else "feddr" if "regulariser" in case else "dualfl"
    trace = run(method, problem.objective, rounds=15, check_assumptions=False)
    return problem, trace, problem.model(trace, {})


def scaled_rows(case: dict[str, Any]) -> tuple[Any, np.ndarray]:
    """Return all rows of a case, and what its objective multiplies by the model."""
    own: dict[str, Any] = {"m": 30, "d": 3} if "data_param" in case else {}
    raw = load(case["data"], scale="none", **own)
    X = load(case["data"], scale=case.get("scale", "auto"), dtype=case.get("dtype", "float64"), **own).X
    ones = np.ones((len(X), 1), X.dtype)
    return raw.X, np.hstack([X, ones]) if case.get("intercept", True) and "model" not in case else X


@pytest.fixture(scope="module", params=CASES, ids=str)
def done(request: pytest.FixtureRequest) -> tuple[dict[str, Any], Any, Trace, Model]:
    """Return a case with its problem, run and model."""
    return request.param, *trained(request.param)


def test_the_file_predicts_as_the_run_does(done: tuple[Any, ...], tmp_path: Path) -> None:
    case, problem, trace, model = done
    X, own = scaled_rows(case)
    eps = float(np.finfo(own.dtype).eps)
    if "model" in case:
        assert np.array_equal(model.predict(X), problem.network.predict(trace.theta, own))
    else:
        z = np.atleast_2d(trace.theta) @ own.T
        np.testing.assert_allclose(model.predictors(X), z, rtol=0, atol=8 * eps * np.abs(z).max())
    model.save(tmp_path)
    first = (tmp_path / "model.npz").read_bytes()
    again = dualopt.load_model(tmp_path)
    assert np.array_equal(again.predictors(X), model.predictors(X))
    assert np.array_equal(again.predict(X), model.predict(X))
    assert (again.certificate, repr(again)) == (dict(model.certificate), repr(model))
    again.save(tmp_path)
    assert (tmp_path / "model.npz").read_bytes() == first
    assert pickle.loads(pickle.dumps(again)).predict(X[:3]).tolist() == model.predict(X[:3]).tolist()


def test_scikit_learn_predicts_the_same(done: tuple[Any, ...]) -> None:
    case, _, _, model = done
    X, own = scaled_rows(case)
    X = X.astype(own.dtype)
    tolerance = 200 * float(np.finfo(own.dtype).eps)
    other = pickle.loads(pickle.dumps(model.to_sklearn()))
    if model.classes is None:
        np.testing.assert_allclose(other.predict(X), model.predict(X), rtol=tolerance, atol=tolerance)
        return
    near = np.abs(np.diff(np.sort(np.atleast_2d(model.decision_function(X).T), axis=0)[-2:], axis=0)) < 1e-4
    differ = other.predict(X) != model.predict(X)
    assert not differ[~near.all(axis=0)].any() if own.dtype == np.float32 else not differ.any()
    if "model" not in case:
        z = model.decision_function(X)
        np.testing.assert_allclose(other.decision_function(X), z, rtol=0, atol=tolerance * np.abs(z).max())
    if model.has_probabilities:
        np.testing.assert_allclose(other.predict_proba(X), model.predict_proba(X), rtol=0, atol=20 * tolerance)
        np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0, rtol=tolerance)


def test_every_loss_is_saved(tmp_path: Path) -> None:
    """Also those that come later: what a loss of this package predicts is the same from its file."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 3))
    for name in names("loss"):
        kind = names("loss")[name]
        loss = kind(**kind.example)
        layers = ((rng.normal(size=(loss.outputs, 3)), rng.normal(size=loss.outputs)),)
        model = Model(layers=layers, loss=loss, schema=Schema(n_features=3))
        model.save(tmp_path / name)
        again = Model.load(tmp_path / name)
        assert again.loss == loss
        assert np.array_equal(again.predict(X), model.predict(X))
        np.testing.assert_allclose(model.to_sklearn().predict(X), model.predict(X), rtol=1e-12)


class Exponential(Squared):
    """A loss of somebody else's, with a logarithmic link."""

    def mean(self, z: Any) -> Any:
        return np.exp(z)


def test_a_loss_says_how_predictions_are_made(tmp_path: Path) -> None:
    model = Model(layers=((np.ones((1, 1)), np.zeros(1)),), loss=Exponential(), schema=Schema(n_features=1))
    assert model.predict([[2.0]]).tolist() == [np.exp(2.0)]
    model.save(tmp_path)
    with pytest.raises(ValueError, match=r"model '.*model.json' cannot be used here: loss names '.*Exponential'"):
        Model.load(tmp_path)
    assert Model.load(tmp_path, types=[Exponential]).predict([[2.0]]).tolist() == [np.exp(2.0)]


def test_rows_come_in_any_kind() -> None:
    _, _, model = trained({"data": "breast_cancer", "loss": "logistic"})
    X = load("breast_cancer", scale="none").X[:50]
    before = X.copy()
    expected = model.predictors(X)
    assert np.array_equal(X, before)
    for rows in (X.tolist(), np.asfortranarray(X), X[:, ::-1][:, ::-1]):
        np.testing.assert_allclose(model.predictors(rows), expected, rtol=1e-12, atol=1e-12)
    for rows in (sparse.csr_array(X), sparse.coo_matrix(X)):  # standardised, which fills in zeros
        np.testing.assert_allclose(model.predictors(rows), expected, rtol=1e-12, atol=1e-12)
    frozen = X.copy()
    frozen.flags.writeable = False
    assert np.array_equal(model.predictors(frozen), expected)
    with pytest.raises(ValueError, match=r"X must have the 30 features of the model, not 29\."):
        model.predict(X[:, 1:])
    with pytest.raises(ValueError, match=r"X must be finite, but row 2 "):
        model.predict(np.where(np.arange(50)[:, None] == 2, np.nan, X))
    with pytest.raises(ValueError, match="X must be a matrix with at least one row"):
        model.predict(X[0])


def test_rows_are_scaled_some_at_a_time() -> None:
    """The same to rounding, however many there are."""
    d = 64
    rng = np.random.default_rng(1)
    X = rng.normal(size=(PIECE // d + 3, d))
    model = Model(layers=((rng.normal(size=(1, d)), np.ones(1)),), loss=Squared(), schema=Schema(n_features=d))
    found = model.predict(X)
    assert found.shape == (len(X),)
    np.testing.assert_allclose(found[-5:], X[-5:] @ model.coef[0] + 1.0, rtol=1e-12)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_columns_are_found_by_name(library: str) -> None:
    frames = pytest.importorskip(library)
    columns = {"age": [63, 35, 47, 58], "dose": [1.0, 0.5, 0.2, 1.5], "sick": ["yes", "no", "no", "yes"]}
    make = frames.table if library == "pyarrow" else frames.DataFrame
    f = linear_model(make(columns), "sick", loss="logistic", mu=0.1)
    model = Model.of(f, run("dualfl", f, rounds=5))
    expected = model.predictors([[63, 1.0], [35, 0.5]])
    new = {"name": ["a", "b"], "dose": [1.0, 0.5], "age": [63, 35]}
    assert np.array_equal(model.predictors(make(new)), expected)
    assert model.predict(make(new)).tolist() == ["yes", "no"]
    with pytest.raises(ValueError, match=r"X must have the columns of the model, but 'dose' is missing\."):
        model.predict(make({"age": [63], "doses": [1.0]}))
    with pytest.raises(ValueError, match=r"X: column 'age' must hold numbers, but row 0"):
        model.predict(make({"age": ["63", "x"], "dose": [1.0, 2.0]}))
    if library == "pandas":
        assert model.to_sklearn().predict(make(new)[["age", "dose"]]).tolist() == ["yes", "no"]


@pytest.mark.parametrize("labels", [[3, 7] * 2, [True, False] * 2, ["b", "a"] * 2, [-1, 1] * 2, [0.5, 2.0] * 2])
def test_labels_are_predicted_as_they_were(labels: list[Any], tmp_path: Path) -> None:
    f = linear_model([[0.0], [1.0], [0.1], [0.9]], labels, loss="hinge", mu=0.01)
    model = Model.of(f, run("dualfl", f, tol=1e-6, rounds=500))
    model.save(tmp_path)
    for one in (model, Model.load(tmp_path)):
        found = one.predict([[0.0], [1.0]]).tolist()
        assert found == labels[:2]
        assert [type(label) for label in found] == [type(label) for label in labels[:2]]


def test_what_prepares_a_run_leaves_the_model_alone() -> None:
    """With another metric it is in the user's coordinates: as near to the minimiser as it is certified to be."""
    problem = build_problem(ProblemOptions(data="breast_cancer", clients=4, mu=0.1))
    X = load("breast_cancer", scale="none").X
    plain, changed = (
        problem.model(run("distributed-lbfgs", problem.objective, tol=1e-10, rounds=200, prepare=steps), {})
        for steps in (None, SketchedMetric(rank=5))
    )
    apart = np.linalg.norm(np.append(plain.coef - changed.coef, plain.intercept - changed.intercept))
    assert 0 < apart <= plain.certificate["distance"] + changed.certificate["distance"] < 1e-3
    np.testing.assert_allclose(plain.predict_proba(X), changed.predict_proba(X), atol=1e-4)


def test_the_certificate_is_that_of_the_run() -> None:
    problem, trace, model = trained({"data": "breast_cancer", "loss": "logistic", "mu": 0.05})
    gap = trace.last["certificate"]
    assert model.certificate["gap"] == gap
    assert model.certificate["certified"]
    np.testing.assert_allclose(model.certificate["distance"], np.sqrt(2 * gap / 0.05), rtol=1e-12)
    best = dualopt.newton(problem.objective)
    assert np.linalg.norm(trace.theta - best.theta) <= model.certificate["distance"]
    diverged = Trace(columns=trace.columns, status="diverged", theta=trace.theta, parameters=trace.parameters)
    assert problem.model(diverged, {}).certificate["gap"] is None
    wrong = Trace(columns=trace.columns, status="contradicted", theta=trace.theta, parameters=trace.parameters)
    assert not problem.model(wrong, {}).certificate["certified"]


def test_a_free_intercept_has_no_distance() -> None:
    """The ridge holds the other weights alone."""
    f = linear_model(np.eye(4), np.array([-1.0, 1.0, 1.0, -1.0]), loss="logistic", mu=0.2, intercept="free")
    trace = run("distributed-lbfgs", f, rounds=30, tol=1e-6)
    model = Model.of(f, trace)
    assert model.certificate["certified"]
    assert model.certificate["gap"] > 0
    assert model.certificate["distance"] is None


def test_the_distance_counts_the_regulariser() -> None:
    problem, trace, model = trained({"data": "digits", "scale": "none", "mu": 0.2, "regulariser": "l2=0.3"})
    gap = model.certificate["gap"]
    np.testing.assert_allclose(model.certificate["distance"], np.sqrt(2 * gap / (0.2 + 0.3)), rtol=1e-12)
    assert problem.objective.shape == trace.theta.shape


def test_what_is_no_model_is_refused() -> None:
    f = dualopt.Quadratic(A=np.stack([np.eye(2)]), b=np.ones((1, 2)))
    with pytest.raises(ValueError, match="objective must be one of rows and labels, not a Quadratic"):
        Model.of(f, run("dualfl", f, rounds=1))
    g = linear_model(np.eye(3), np.array([0, 1, 2]), loss=Multinomial(classes=3), mu=0.1)
    with pytest.raises(ValueError, match=r"trace must hold a model of shape \(3, 4\)"):
        Model.of(g, run("dualfl", f, rounds=1))
    nowhere = Trace(columns={"energy": [1.0]}, status="stopped", theta=np.full((3, 4), np.nan))
    with pytest.raises(ValueError, match="trace must hold a model that is finite, and its run has stopped"):
        Model.of(g, nowhere)
    hinge = Model(layers=((np.ones((1, 1)), np.zeros(1)),), loss=dualopt.Hinge(), schema=Schema(n_features=1))
    with pytest.raises(ValueError, match="predict_proba needs a loss that is a likelihood of classes, not hinge"):
        hinge.predict_proba([[1.0]])
    network = Model(
        layers=((np.ones((2, 1)), np.zeros(2)), (np.ones((2, 2)), np.zeros(2))),
        loss=Multinomial(classes=2),
        schema=Schema(n_features=1),
    )
    with pytest.raises(AttributeError, match="a network has layers"):
        _ = network.coef


def test_a_column_that_was_constant_says_nothing_of_new_rows() -> None:
    """Standardised, it is 0 whatever it holds later, here and in scikit-learn, whatever its weight."""
    scaling = Scaling(how="standard", mean=np.array([1.0, 2.0]), peak=np.array([1.0, 2.0]), factor=np.array([0.0, 3.0]))
    schema = Schema(n_features=2, scaling=scaling)
    model = Model(layers=((np.array([[5.0, 7.0]]), np.zeros(1)),), loss=Squared(), schema=schema)
    assert model.predict([[9.0, 4.0]]).tolist() == [7.0 * 3.0]
    np.testing.assert_allclose(model.to_sklearn().predict([[9.0, 4.0]]), [21.0], rtol=1e-12)
