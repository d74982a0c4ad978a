"""Tables held in memory: each column written out as what it becomes, and each refusal with the row that it names."""

from __future__ import annotations

import math
import re
from datetime import datetime, timedelta
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import pytest

from dualopt.problem.preprocessing import TableOptions, fitted_columns, united
from dualopt.problem.preprocessing._columns import Columns, Table
from dualopt.problem.preprocessing._questions import Question


def frame(**columns: Any) -> Any:
    return nw.from_native(pd.DataFrame({name: pd.Series(x) for name, x in columns.items()}))


def words(*values: Any) -> pd.Series:
    return pd.Series(values, dtype=object)


MIXED: dict[str, Any] = {
    "age": [50.0, math.nan, 71.0, 20.0],
    "sex": words("m", None, "f", "m"),
    "old": [True, False, True, True],
    "stage": [1.0, 2.0, math.nan, 10.0],
    "none": [math.nan] * 4,
    "count": words(3, 5, None, -1),
}


def test_what_columns_hold() -> None:
    """Numbers, also those that stand between gaps, words, and words that look like numbers where they are listed."""
    table = Table(frame(**MIXED), gaps=True, words=True, listed={"stage": ("1", "2", "10")})
    assert (tuple(table.names), table.rows) == (tuple(MIXED), 4)
    assert table.words == (None, ("f", "m"), None, ("1", "10", "2"), (), None)
    assert table.answer(Question("words")) == table.words
    assert table.columns[1].tolist() == ["m", None, "f", "m"]
    assert table.columns[3].tolist() == ["1", "2", None, "10"]
    assert sorted(table.counts()) == [1, 1, 1, 1, 2]
    gap = [math.nan] * 4
    expected = [MIXED["age"], gap, [1.0, 0.0, 1.0, 1.0], gap, gap, [3.0, 5.0, math.nan, -1.0]]
    np.testing.assert_array_equal(table.numbers.X, np.transpose(expected))
    assert table.numbers.X.dtype == np.float64
    assert table.answer(Question("count")).tolist() == [[3.0, 0.0, 4.0, 0.0, 0.0, 3.0]]


@pytest.mark.parametrize(("missing", "fills"), [("mean", (47.0, 7 / 3)), ("median", (50.0, 3.0))])
def test_features_written_out(missing: str, fills: tuple[float, float]) -> None:
    given = {name: x for name, x in MIXED.items() if name != "none"}
    options = TableOptions(missing=missing, categories="stage=1,2,3,10; sex=m,f")
    table = options.table(frame(**given))
    columns = fitted_columns(table, options)
    assert columns.fills == (pytest.approx(fills[0]), None, 0.75 if missing == "mean" else 1.0, None, fills[1])
    assert (columns.names, columns.missing) == (tuple(given), missing)
    names = ("age", "sex=m", "sex=f", "old", "stage=1", "stage=2", "stage=3", "stage=10", "count")
    assert columns.feature_names == names
    assert columns.listed == {"sex": ("m", "f"), "stage": ("1", "2", "3", "10")}
    rows = [
        [50.0, 1.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 3.0],
        [fills[0], 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 5.0],
        [71.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, fills[1]],
        [20.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, -1.0],
    ]
    np.testing.assert_allclose(columns.matrix(columns.table(frame(**given))), rows, rtol=1e-15)
    empty = frame(**{**given, "sex": [math.nan] * 4})  # of which the other tables have words
    np.testing.assert_allclose(columns.matrix(columns.table(empty))[:, 1:3], np.zeros((4, 2)))


def test_gaps_are_refused_where_nothing_fills_them() -> None:
    columns = Columns(names=("x",), words=(None,), fills=(None,), missing="refuse")
    assert columns.matrix(columns.table(frame(x=[1.0, 2.0]))).tolist() == [[1.0], [2.0]]
    with pytest.raises(ValueError, match=r"column 'x' must not have missing values, but row 1 \(counted from 0\) has"):
        columns.table(frame(x=[1.0, math.nan, math.nan]))


@pytest.mark.parametrize(
    ("column", "options", "sentence"),
    [
        (words("f", None, "m"), {"categories": "x=f,m"}, "must not have missing values, but row 1"),
        (words(3, 5, "many", "few"), {}, r"must hold numbers, but row 2 .* holds 'many': make numbers of it, drop it"),
        (words("f", "m", 3), {"categories": "indicators"}, "row 0 .* holds 'f': its other rows hold numbers"),
        ([1.0, math.nan, -math.inf, math.inf], {"missing": "mean"}, r"finite numbers, but row 2 .* holds -inf"),
        ([1.0, 2.0, math.inf], {"categories": "indicators"}, "finite numbers, but row 2"),
        (pd.Series([datetime(2020, 1, 1)] * 2), {}, r"'x' must hold numbers, not times \(Datetime"),
        (pd.Series([timedelta(days=1)] * 2), {"categories": "x=1,2"}, r"'x' must hold numbers, not times \(Duration"),
        ([1.0, 2.0], {"categories": "sex=f,m"}, "which has no 'sex'"),
    ],
)  # fmt: skip
def test_refusals_name_the_row(column: Any, options: dict[str, str], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        TableOptions(**options).table(frame(x=column))


@pytest.mark.parametrize("known", [20, 21])
def test_a_word_that_is_no_category_is_named_with_the_first_twenty(known: int) -> None:
    categories = tuple(f"c{i:02d}" for i in range(known))
    columns = Columns(names=("a", "x"), words=(None, categories), fills=(None, None), missing="refuse")
    first = ", ".join(categories[:20]) + (", ..." if known > 20 else "")
    expected = f"X: column 'x' must hold one of its categories {first}, but row 2 (counted from 0) holds 'z'."
    with pytest.raises(ValueError, match=f"^{re.escape(expected)}$"):
        columns.matrix(columns.table(frame(a=[1, 2, 3], x=words("c03", "c00", "z"))))


@pytest.mark.parametrize("number", [1000, 1001])
def test_a_thousand_categories_are_enough(number: int) -> None:
    options = TableOptions(categories="indicators")
    table = options.table(frame(a=range(number), x=words(*(f"{i}x" for i in range(number)))))
    if number > 1000:
        with pytest.raises(ValueError, match=r"column 'x' must have at most 1000 categories: .* not 1001"):
            fitted_columns(table, options)
    else:
        assert len(fitted_columns(table, options).feature_names) == 1001


def test_a_column_that_is_missing_in_all_rows() -> None:
    given = frame(a=[1.0, 2.0], x=[math.nan, math.nan])
    for categories in ("refuse", "indicators"):
        options = TableOptions(missing="median", categories=categories)
        with pytest.raises(ValueError, match="column 'x' must not be missing in all rows: drop it"):
            fitted_columns(options.table(given), options)
    listed = TableOptions(missing="median", categories="x=f,m")
    assert fitted_columns(listed.table(given), listed).fills == (1.5, None)


def test_rules() -> None:
    assert TableOptions().refuse_all
    assert not TableOptions(missing="mean").refuse_all
    assert not TableOptions(categories="indicators").refuse_all
    assert TableOptions(categories="indicators").listed == {}
    assert TableOptions(categories=" a=b = f , m;x y=1,2").listed == {"a=b": ("f", "m"), "x y": ("1", "2")}
    for text in ("a=f,m;", "a=f,m; =1,2", "a=f", "a=f,f", "a=f,g; a=1,2", "f,m"):
        with pytest.raises(ValueError, match=r"^categories must be"):
            TableOptions(categories=text)


def test_tables_together() -> None:
    found = [(("f", "b"), None, (), ()), ((), None, (), None), (("m", "b"), None, (), ())]
    assert united(["a", "n", "e", "o"], found) == (("b", "f", "m"), None, (), None)
    with pytest.raises(ValueError, match="column 'y' must not hold numbers in some tables and words in others"):
        united(["x", "y"], [(None, ("a",)), (None, None)])


def test_features_of_one_name_are_refused() -> None:
    options = TableOptions(categories="indicators")
    given: dict[str, Any] = {"a": words("b", "c"), "a=b": [1, 2]}
    with pytest.raises(ValueError, match="columns must not be named like features of others"):
        fitted_columns(options.table(frame(**given)), options)
