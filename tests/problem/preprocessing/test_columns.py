"""Words and gaps of tables: what scikit-learn makes of them, refusals with their cure, and the same in a model."""

from datetime import date
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import pytest
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from dualopt import load_model
from dualopt.problem.build import build_problem
from dualopt.problem.data import load
from dualopt.problem.options import ProblemOptions
from dualopt.problem.preprocessing import TableOptions, fitted_columns
from dualopt.runs.recording import run
from tests.engine.thread_communicator import on_each


def patients(m=120, seed=0):
    """A table with numbers, counts and words, of which some are missing."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "age": rng.integers(20, 90, m).astype(float),
            "stage": rng.choice(["I", "II", "III"], m, p=[0.6, 0.3, 0.1]).astype(object),
            "dose": rng.uniform(0, 3, m),
            "drug": rng.choice(["none", "b", "a"], m).astype(object),
            "hospital": rng.choice(["Lyon", "Basel", "Bern"], m),
        }
    )
    sick = table["age"] / 40 + table["dose"] + (table["stage"] == "III") + rng.normal(0, 0.5, m) > 3
    for name in ("age", "dose", "stage"):
        table.loc[rng.random(m) < 0.1, name] = None
    return table.assign(sick=np.where(sick, "yes", "no"))


@pytest.mark.parametrize("missing", ["mean", "median"])
@pytest.mark.parametrize("end", ["csv", "parquet"])
def test_features_are_those_of_scikit_learn(missing, end, tmp_path):
    table, path = patients(), tmp_path / f"patients.{end}"
    table.to_csv(path, index=False) if end == "csv" else table.to_parquet(path)
    found = load(path, label="sick", client="hospital", missing=missing, categories="indicators", scale="standard")
    assert found.feature_names == (
        "age",
        "stage=I",
        "stage=II",
        "stage=III",
        "dose",
        *(f"drug={x}" for x in ("a", "b", "none")),
    )
    filled = SimpleImputer(strategy=missing).fit_transform(table[["age", "dose"]])
    known: Any = [["I", "II", "III"], ["a", "b", "none"]]
    encoder = OneHotEncoder(sparse_output=False, handle_unknown="ignore", categories=known)
    coded = encoder.fit(table[["stage", "drug"]].dropna()).transform(table[["stage", "drug"]])
    expected = np.column_stack([filled[:, 0], coded[:, :3], filled[:, 1], coded[:, 3:]])
    np.testing.assert_allclose(found.X, StandardScaler().fit_transform(expected), rtol=1e-12, atol=1e-12)


def test_listed_categories_need_not_occur_and_numbers_may_be_words(tmp_path):
    path = tmp_path / "t.csv"
    table = pd.DataFrame({"sex": ["f", "m", "f"], "age": [5, 6, 7], "stage": [1, 2, 1], "y": [0, 1, 0]})
    table.to_csv(path, index=False)
    found = load(path, label="y", categories="stage=1,2,3; sex=m,f,x")
    assert found.feature_names == ("sex=m", "sex=f", "sex=x", "age", "stage=1", "stage=2", "stage=3")
    assert found.X.tolist() == [[0, 1, 0, 5, 1, 0, 0], [1, 0, 0, 6, 0, 1, 0], [0, 1, 0, 7, 1, 0, 0]]


def test_a_model_of_numbers_takes_no_words():
    """Also where it has words in other columns."""
    options = TableOptions(missing="mean", categories="indicators")
    frame = nw.from_native(pd.DataFrame({"age": [5.0, None], "sex": ["f", "m"]}))
    columns = fitted_columns(options.table(frame), options)
    assert columns.matrix(columns.table(frame)).tolist() == [[5.0, 1.0, 0.0], [5.0, 0.0, 1.0]]
    words = nw.from_native(pd.DataFrame({"age": ["old", "young"], "sex": ["f", "m"]}))
    with pytest.raises(
        ValueError, match=r"^X: column 'age' must hold numbers, but row 0 \(counted from 0\) holds 'old'"
    ):
        columns.table(words)


def test_one_number_is_enough_for_the_others(tmp_path):
    pd.DataFrame({"age": [None, 7.0, None], "y": [0, 1, 0]}).to_parquet(tmp_path / "t.parquet")
    assert load(tmp_path / "t.parquet", label="y", missing="mean").X.tolist() == [[7.0]] * 3


@pytest.mark.parametrize(
    ("columns", "options", "sentence"),
    [
        (
            {"sex": ["f", "m"]},
            {},
            "X: column 'sex' must hold numbers, but row 0 .* holds 'f': .* categories = \"indicators\"",
        ),
        ({"age": [1.0, None]}, {}, "X: column 'age' must not have missing values, but row 1 .* missing = \"mean\""),
        ({"age": [1.0, None]}, {"categories": "indicators"}, "must not have missing values"),
        ({"sex": ["f", None]}, {"categories": "indicators"}, "must not have missing values"),
        ({"age": [None, None]}, {"missing": "mean"}, "column 'age' must not be missing in all rows: drop it"),
        (
            {"sex": [None, None]},
            {"missing": "mean", "categories": "indicators"},
            "column 'sex' must not be missing in all",
        ),
        ({"day": [date(2020, 1, 1)] * 2}, {"categories": "indicators"}, "not times .*: make numbers of it or drop it"),
        ({"age": [1.0, np.inf]}, {"missing": "mean"}, "column 'age' must hold finite numbers, but row 1"),
        (
            {"sex": ["f", "m"]},
            {"categories": "sex=f,x"},
            "column 'sex' must hold one of its categories f, x, but row 1",
        ),
        ({"sex": ["f", "m"]}, {"categories": "age=1,2"}, "no 'age'"),
        ({"name": [f"{i}x" for i in range(1001)]}, {"categories": "indicators"}, "at most 1000 categories: drop it"),
        ({"a": ["b", "c"], "a=b": [1, 2]}, {"categories": "indicators"}, "must not be named like features of others"),
    ],
)
def test_refusals_name_the_cure(columns, options, sentence, tmp_path):
    m = len(next(iter(columns.values())))
    pd.DataFrame({**columns, "y": np.arange(m) % 2}).to_parquet(tmp_path / "t.parquet")
    with pytest.raises(ValueError, match=sentence) as found:
        load(tmp_path / "t.parquet", label="y", **options)
    assert str(found.value).count(". ") == 0


@pytest.mark.parametrize(
    "text", ["sometimes", "sex", "sex=", "sex=f", "sex=f,f", "=f,m", "sex=f,,m", "sex=f,m; sex=f,x"]
)
def test_rules_that_are_none_are_refused(text):
    with pytest.raises(ValueError, match=r"^categories must be refuse, indicators, or words of columns"):
        TableOptions(categories=text)
    with pytest.raises(ValueError, match=r"^missing must be one of refuse, mean, median"):
        TableOptions(missing=text)


def test_mixed_words_and_numbers_are_refused():
    frame = nw.from_native(pd.DataFrame({"x": [1, "a", 2]}))
    with pytest.raises(ValueError, match=r"row 1 .* holds 'a': its other rows hold numbers"):
        TableOptions(categories="indicators").table(frame)
    listed = TableOptions(categories="x=1,2,a")
    assert fitted_columns(listed.table(frame), listed).words == (("1", "2", "a"),)


def test_processes_find_what_one_finds_and_the_model_takes_raw_tables(tmp_path):
    """From the table to a prediction for rows with gaps, and the same bits on three processes."""
    patients().to_csv(tmp_path / "patients.csv", index=False)
    options = ProblemOptions(
        data=str(tmp_path / "patients.csv"),
        label="sick",
        client="hospital",
        scale="standard",
        missing="median",
        categories="indicators",
        mu=0.1,
    )
    alone = build_problem(options)
    together = on_each(3, lambda peers: build_problem(options, peers=peers))
    for part in together:
        assert part.schema.columns == alone.schema.columns
        for name in ("mean", "peak", "factor"):
            np.testing.assert_array_equal(getattr(part.schema.scaling, name), getattr(alone.schema.scaling, name))
    rows = np.concatenate([X for part in together for X, _, _ in part.rows.client_rows()])
    np.testing.assert_array_equal(rows, np.concatenate([X for X, _, _ in alone.rows.client_rows()]))
    trace = run("fedsplit", alone.objective, rounds=300)
    alone.model(trace, {}).save(tmp_path / "model")
    model = load_model(tmp_path / "model")
    new: Any = patients(30, seed=1)[["drug", "dose", "stage", "age"]]
    assert new.isna().to_numpy().any()
    columns: Any = alone.schema.columns
    X = alone.schema.scaling.apply_in_place(
        columns.matrix(columns.table(nw.from_native(new[["age", "stage", "dose", "drug"]])))
    )
    np.testing.assert_array_equal(model.decision_function(new), X @ model.coef[0] + model.intercept[0])
    with pytest.raises(ValueError, match="must hold one of its categories I, II, III, but row 0"):
        model.predict(new.assign(stage="IV"))
    features = alone.schema.rows(new)
    np.testing.assert_array_equal(model.decision_function(features), model.decision_function(new))
    with pytest.raises(ValueError, match="X must have the 8 features of the model, not 4"):
        model.predict(np.ones((2, 4)))
    with pytest.raises(ValueError, match="to_sklearn needs a model of numbers without gaps"):
        model.to_sklearn()
