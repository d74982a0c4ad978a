"""Input that cannot be used: each kind gives one sentence, which names the argument, the column and the row."""

from __future__ import annotations

import builtins
import datetime
import re
import sys
from collections.abc import Callable
from typing import Any

import array_api_strict
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from dualopt import (
    L1,
    Composite,
    DualFL,
    FedAvg,
    Full,
    Hinge,
    Multinomial,
    Quadratic,
    UniformSubset,
    iterate,
    linear_model,
    run,
)
from dualopt.methods.compressors import RandK, TopK
from dualopt.objectives import mlp
from dualopt.solvers import LBFGS
from dualopt.solvers.stopping import Steps

X = np.arange(12.0).reshape(6, 2) / 10
Y = np.array([1.0, -1.0, 1.0, 1.0, -1.0, -1.0])
TABLE = pd.DataFrame({"a": X[:, 0], "b": X[:, 1]})


def with_column(**columns: Any) -> pd.DataFrame:
    return TABLE.assign(**columns)


def replaced(values: Any, row: int, value: Any) -> list[Any]:
    return [value if i == row else v for i, v in enumerate(values)]


ZONED = pd.Series(pd.date_range("2020", periods=6, tz="UTC"))
MASKED = np.ma.masked_array(X, X > 1.0)

FEATURES: dict[str, tuple[Any, str]] = {
    "ragged lists": ([[1.0, 2.0], [1.0]] * 3, "X must be a matrix, but its rows are not all equally long sequences"),
    "a list of numbers": ([1.0] * 6, "X must be a matrix with at least one row and one column, not of shape (6,)"),
    "a dict": ({"a": [1.0] * 6}, "X must be a matrix, not a dict: pandas.DataFrame(X) makes one of its columns."),
    "a path": ("data.csv", "X must be a matrix, not the text 'data.csv': dualopt.problem.data.load reads files."),
    "None": (None, "X must not be a single NoneType."),
    "a number": (3.0, "X must not be a single float."),
    "a set": ({1, 2}, "X must not be a single set."),
    "empty rows": ([[]] * 6, "X must be a matrix with at least one row and one column, not of shape (6, 0)."),
    "images": (np.zeros((6, 2, 2)), "X must be a matrix with one row per sample, not of shape (6, 2, 2)"),
    "words among numbers": (replaced(X.tolist(), 2, [1.0, "x"]), "X: column 1 must hold numbers, but row 2 (counted"),
    "None among numbers": (replaced(X.tolist(), 4, [None, 1.0]), "X: column 0 must not have missing values, but row 4"),
    "NaN": (np.where(X > 1.05, np.nan, X), "X must not contain NaN or infinite features."),
    "too large for a number": ([[10**400, 1]] * 6, "X: column 0 must hold finite numbers, but row 0"),
    "masked": (MASKED, "X must not have masked values."),
    "complex in a list": ((X * 1j).tolist(), "X: column 0 must hold numbers, but row 0 (counted from 0) holds 0j."),
    "times": (X.astype("datetime64[s]"), "X: column 0 must hold numbers, not times"),
    "records": (np.zeros(6, dtype=[("a", float)]), "X must be a matrix with at least one row and one column"),
    "a Series": (TABLE["a"], "X must be a matrix or a DataFrame, not a Series: X.to_frame() makes one of one column."),
    "polars Series": (pl.Series([1.0] * 6), "X must be a matrix or a DataFrame, not a Series"),
    "complex of a library": (
        array_api_strict.asarray(X * 1j),
        "X must hold floating-point numbers, not array_api_strict.complex128.",
    ),
    "words in a column": (with_column(city="Basel"), "X: column 'city' must hold numbers, but row 0 (counted from 0)"),
    "a category": (with_column(c=pd.Categorical(list("ababab"))), "X: column 'c' must hold numbers, but row 0"),
    "times in a column": (with_column(when=ZONED), "X: column 'when' must hold numbers, not times (Datetime("),
    "durations in a column": (with_column(d=ZONED - ZONED[0]), "X: column 'd' must hold numbers, not times (Duration"),
    "NaN in a column": (with_column(n=replaced(Y, 3, np.nan)), "X: column 'n' must not have missing values, but row 3"),
    "infinite in a column": (with_column(n=replaced(Y, 1, np.inf)), "X: column 'n' must not have missing or infinite"),
    "mixed column": (with_column(m=replaced([1] * 6, 2, "x")), "X: column 'm' must hold numbers, but row 2 (counted"),
    "lists in a column": (pl.DataFrame({"p": [[1.0]] * 6}), "X: column 'p' must hold numbers, but row 0"),
    "null of PyArrow": (pa.table({"q": replaced([1] * 6, 0, None)}), "X: column 'q' must not have missing values"),
    "columns of one name": (
        pd.concat([TABLE, TABLE[["b"]]], axis=1),
        "X has two columns named 'b': rename or drop one.",
    ),
    "no columns": (pd.DataFrame(index=range(6)), "X must be a matrix with at least one row and one column"),
    "no rows": (TABLE.iloc[:0], "X must be a matrix with at least one row and one column, not of shape (0, 2)."),
    "sparse with NaN": (
        sparse.csr_array(np.where(X > 1.05, np.nan, X)),
        "X must not contain NaN or infinite features.",
    ),
    "sparse complex": (sparse.coo_array(X * 1j), "X must hold floating-point numbers, not complex128"),
}

LABELS: dict[str, tuple[Any, str]] = {
    "too few": (Y[:5], "y must have one label for each of the 6 rows of X, not shape (5,)."),
    "a column": (Y[:, None], "y must have one label for each of the 6 rows of X, not shape (6, 1)."),
    "none": ([], "y must have one label for each of the 6 rows of X, not shape (0,)."),
    "a column of objects": (Y[:, None].astype(object), "y must hold numbers or words, not list such as [1.0]."),
    "one truth value": (
        [True] * 6,
        "y must hold only -1 and +1, or two other labels, for the loss Hinge(), but it has 1",
    ),
    "two columns": (pd.DataFrame({"a": Y, "b": Y}), "y must be one column, not the 2 of a DataFrame."),
    "None": (replaced(Y, 2, None), "y must have no missing label, but row 2 (counted from 0) has none."),
    "all missing": ([None] * 6, "y must have no missing label, but row 0 (counted from 0) has none."),
    "NaN among words": (replaced(list("ababab"), 1, np.nan), "y must have no missing label, but row 1"),
    "NaN": (
        np.where(np.arange(6) == 4, np.nan, Y),
        "y must hold finite numbers, but row 4 (counted from 0) is missing",
    ),
    "NA": (pd.array(replaced([0, 1] * 3, 3, None), dtype="Int64"), "y must have no missing label, but row 3"),
    "NA in a list": (replaced(list("ababab"), 2, pd.NA), "y must have no missing label, but row 2"),
    "null": (pl.Series(replaced(list("ababab"), 0, None)), "y must have no missing label, but row 0"),
    "infinite": (replaced(Y, 5, np.inf), "y must hold finite numbers, but row 5 (counted from 0) holds inf."),
    "numbers and words": ([1, "a"] * 3, "y must not mix numbers and words, such as 1 and 'a'."),
    "words and bytes": (["a", b"a"] * 3, "y must not mix words and bytes, such as 'a' and b'a'."),
    "lists": ([[1], [2]] * 3, "y must hold numbers or words, not list such as [1]."),
    "times": (
        [datetime.date(2020, 1, 1)] * 6,
        "y must hold numbers or words, not date such as datetime.date(2020, 1, 1).",
    ),
    "NumPy times": (np.arange(6).astype("datetime64[D]"), "y must hold numbers or words, not datetime64[D]."),
    "complex": (Y * 1j, "y must hold numbers or words, not complex128."),
    "a number": (1.0, "y must not be a single float."),
    "a set": ({1, 2}, "y must be a vector, not a set."),
    "a dict": ({"a": 1}, "y must be a vector, not a dict."),
    "sparse": (sparse.csr_array(Y[:, None]), "y must be a vector, not a csr_array."),
    "masked": (np.ma.masked_array(Y, Y > 0), "y must not have masked values."),
    "the name of a column of an array": ("target", "y = 'target' names a column, but X is a ndarray and no DataFrame."),
    "one class": (
        ["a"] * 6,
        "y must hold only -1 and +1, or two other labels, for the loss Hinge(), but it has 1 ('a').",
    ),
}

CLIENTS: dict[str, tuple[Any, str]] = {
    "too few names": (["a", "b"], "clients must have one name for each of the 6 rows of X, not shape (2,)."),
    "None": (None, "clients must be a number, rows or names of clients, not None."),
    "a fraction": (2.0, "clients must be a number, rows or names of clients, not 2.0."),
    "True": (True, "clients must be a number, rows or names of clients, not True."),
    "a missing name": (
        replaced(list("ababab"), 2, None),
        "clients must have no missing name, but row 2 (counted from 0)",
    ),
    "NaN": ([1.0, np.nan] * 3, "clients must have no missing name, but row 1 (counted from 0) has none."),
    "NaT": (replaced(ZONED, 3, pd.NaT), "clients must have no missing name, but row 3"),
    "NA": (pd.array(replaced([1] * 6, 4, None), dtype="Int64"), "clients must have no missing name, but row 4"),
    "dicts": ([{}] * 6, "clients must have hashable names, but row 0 (counted from 0) has a dict."),
    "a client without rows": ([[0, 1, 2], [], [3, 4, 5]], "clients: client 1 has no rows."),
    "a name without rows": ({"a": [0, 1, 2], "b": []}, "clients: client 1 has no rows."),
    "rows out of range": ([[0, 1], [6]], "clients: client 1 has a row index outside 0 to 5."),
    "more than rows": (7, "clients must be between 1 and the number of rows 6, not 7."),
    "a column of an array": ("site", "clients = 'site' names a column, but X is a ndarray and no DataFrame."),
    "a table": (TABLE, "clients must be one column, not the 2 of a DataFrame."),
    "a set": ({1, 2}, "clients must be a vector, not a set."),
    "bytes": (b"site", "clients must be a vector, not a bytes."),
    "rows and names": ([[0, 1], "a", "b", "c", "d", "e"], "clients must have hashable names, but row 0"),
    "numbers and rows": ([0, 1, 2, 3, 4, [5]], "clients must have hashable names, but row 5"),
    "masked": (np.ma.masked_array(Y, Y > 0), "clients must not have masked values."),
    "a short mask": (
        [Y[:5] > 0, Y < 0],
        "clients: client 0 must have a truth value for each of the 6 rows of X, not 5.",
    ),
    "a short list of truth values": ({"a": [True, False]}, "clients: client 0 must have a truth value for each of the"),
    "rows by clients": (
        np.stack([Y > 0, Y < 0], axis=1),
        "clients: client 0 must have a truth value for each of the 6",
    ),
    "a mask of nothing": ([Y > 0, Y > 9], "clients: client 1 has no rows."),
    "a mask with a missing value": (
        [Y > 0, pd.array(replaced(Y < 0, 3, None), dtype="boolean")],
        "clients: client 1 must have row numbers or truth values, not both, and none missing.",
    ),
    "truth values and rows": ([[0, 3], [True, 2]], "clients: client 1 must have row numbers or truth values, not both"),
    "a masked mask": ([np.ma.masked_array(Y > 0, Y < 0)], "clients: client 0 must not have masked values."),
    "masked rows": ([[0], np.ma.masked_array([1, 2], [False, True])], "clients: client 1 must not have masked values."),
    "fractions of rows": ([[0, 1], [0.5, 2.0]], "clients: client 1 must have whole numbers of rows, or a truth value"),
    "rows without end": ([[0, 1], [10**400]], "clients: client 1 must hold finite numbers, but row 0"),
    "long rows": ([[0, 1], [10**30]], "clients: client 1 has a row index outside 0 to 5."),
    "words in a client": (
        [[0, 1], ["a"]],
        "clients: client 1 must hold numbers, but row 0 (counted from 0) holds 'a'.",
    ),
    "a word for rows": ({"a": [0], "b": "rows"}, "clients: client 1 must be a vector, not a str."),
    "a number for rows": ({"a": [0], "b": 3}, "clients: client 1 must not be a single int."),
    "matrices of rows": (
        np.zeros((2, 2, 2), int),
        "clients: client 0 must be a vector of row numbers or a mask, not of",
    ),
    "a table of masks": (
        pd.DataFrame({"a": Y > 0, "b": Y < 0}),
        "clients must be one column, not the 2 of a DataFrame.",
    ),
    "a column in arrays": (list(np.arange(6)[:, None] % 2), "clients must not be 6 lists of one row that is in two of"),
    "a column in lists": ([[0], [1]] * 3, "clients must not be 6 lists of one row that is in two of them: names are a"),
}

F = Quadratic(A=np.ones((2, 1, 1)), b=np.array([[1.0], [3.0]]))


NO_ROWS = "X must be a matrix with at least one row and one column, not of shape"


def model(**changes: Any) -> Any:
    arguments: dict[str, Any] = {"X": X, "y": Y, "loss": "hinge", "mu": 0.1, **changes}
    return linear_model(arguments.pop("X"), arguments.pop("y"), **arguments)


wrong_run: Any = run  # what types forbid is tried
wrong_iterate: Any = iterate
AnyDualFL: Any = DualFL

# what is given to linear_model, in the place of arguments that are good
MODELS: list[tuple[dict[str, Any], str]] = [
    ({"loss": "logistics"}, "loss must be one of absolute-deviation, "),
    ({"loss": "squared", "y": list("ababab")}, "y must hold numbers, not words such as"),
    (
        {"loss": "multinomial", "y": np.arange(6) / 4},
        "y must hold classes, integers or words, for the loss Multinomial(classes=6), not fractions (0.0, 0.25, 0.5",
    ),
    (
        {"loss": Multinomial(classes=2), "y": [1, 2] * 3},
        "y must hold integers 0 to 1 for the loss Multinomial(classes=2), or as many words, but it has 2 labels (1, 2)",
    ),
    (
        {"loss": Multinomial(classes=2), "y": list("abcabc")},
        "y must hold integers 0 to 1 for the loss Multinomial(classes=2), or as many words, but it has 3 labels",
    ),
    ({"loss": "multinomial", "y": ["a"] * 6}, "y must have at least two different labels, but"),
    ({"X": TABLE.assign(y="a")[:0], "y": "y", "loss": "logistic"}, f"{NO_ROWS} (0, 2)."),
    ({"X": with_column(y="a", c="b")[:0], "y": "y", "loss": "multinomial", "clients": "c"}, f"{NO_ROWS} (0, 2)."),
    ({"mu": "small"}, "mu must be a finite number, at least 0, not small."),
    ({"mu": True}, "mu must be a finite number, at least 0, not True."),
    ({"weights": ["a"] * 6}, "weights must hold numbers, but row 0 (counted from 0) holds 'a'."),
    ({"weights": [1, 1]}, "weights must be 6 finite nonnegative numbers"),
    ({"weights": [0] * 6}, "weights must not be 0 for all rows."),
    ({"weights": [0, 0, 0, 0, 0, 1], "clients": [[0, 1], [2, 3]]}, "weights must not be 0 for all rows."),
    ({"weights": [np.nan] * 6}, "weights must not have missing values, but row 0"),
    ({"X": TABLE, "y": "c"}, "y must name a column, one of 'a', 'b'; not 'c'."),
    ({"X": TABLE, "clients": "c"}, "clients must name a column, one of 'a', 'b'; not"),
]
TOO_LARGE = "X must be scaled: mu + weight is lost beside features that large and dependent."
CALLS: list[tuple[Callable[[], Any], str]] = [
    (lambda: run("dualfl", model(X=np.full((20, 3), 2.0**30), y=np.arange(20.0), loss="squared"), rounds=1), TOO_LARGE),
    (lambda: run("dualfl", model(X=sparse.csr_array(np.full((6, 3), 2.0**30)), loss="squared"), rounds=1), TOO_LARGE),
    (lambda: mlp(X, np.arange(6) % 2, weights=np.zeros(6)), "weights must not be 0 for all rows."),
    (
        lambda: mlp(X, np.arange(6) % 2, clients=[Y[:5] > 0]),
        "clients: client 0 must have a truth value for each of the 6 rows of X, not 5.",
    ),
    (
        lambda: wrong_run("dualfl", F, checkpoint="c.npz"),
        "checkpoint must be a Checkpoint, such as Checkpoint('run.npz'), not 'c.npz'.",
    ),
    (lambda: wrong_run("dualfi", F), "algorithm must be one of a-fedpd, "),
    (lambda: wrong_run(F, DualFL()), "algorithm must be an Algorithm or its name, such as 'dualfl', not a Quadratic."),
    *(
        (
            lambda given=given: wrong_run("dualfl", given),
            f"objective must be an Objective, such as linear_model returns, not {named}.",
        )
        for given, named in ((Quadratic, "the class Quadratic"), (X, "a ndarray"))
    ),
    (lambda: wrong_run(AnyDualFL(solver="lbgfs"), F), "solver must be one of "),
    (lambda: wrong_run(AnyDualFL(solver="sgd"), F), "solver sgd needs step: write 'sgd: step=...'."),
    (lambda: wrong_run(AnyDualFL(stop="gap=0"), F), "stop gap: scale must be a positive finite number, not 0.0."),
    (lambda: run("fedsplit", F, compressor="top-k"), "compressor top-k needs size: write 'top-k: size=...'."),
    (lambda: wrong_run("feddyn", F, participation="few=1"), "participation must be one of full, subset"),
    (lambda: Composite(objective=F, regulariser="l1"), "regulariser l1 needs weight: write 'l1: weight=...'."),
]


CLASSES: list[tuple[str, str, Callable[[Any], Any], type]] = [  # the argument, an instance, and the class in its place
    ("loss", "Hinge()", lambda kind: model(loss=kind), Hinge),
    ("loss", "Multinomial(classes=...)", lambda kind: model(loss=kind), Multinomial),
    ("algorithm", "DualFL()", lambda kind: wrong_run(kind, F), DualFL),
    ("algorithm", "FedAvg()", lambda kind: wrong_iterate(kind, F), FedAvg),
    ("solver", "LBFGS()", lambda kind: wrong_run(AnyDualFL(solver=kind), F), LBFGS),
    ("stop", "Steps(steps=...)", lambda kind: wrong_run(AnyDualFL(stop=kind), F), Steps),
    (
        "participation",
        "UniformSubset(size=...)",
        lambda kind: wrong_run("feddyn", F, participation=kind),
        UniformSubset,
    ),
    ("compressor", "TopK(size=...)", lambda kind: wrong_run("fedsplit", F, compressor=kind), TopK),
    ("regulariser", "L1(weight=...)", lambda kind: Composite(objective=F, regulariser=kind), L1),
]


def assert_refused(call: Callable[[], Any], sentence: str) -> None:
    with pytest.raises(ValueError, match="^" + re.escape(sentence)) as info:
        call()
    text = str(info.value)
    assert text.endswith(".")
    assert "\n" not in text
    assert ". " not in re.sub(r"\d\. ", "", text.replace("...", ""))  # one sentence


IDS = [*FEATURES, *LABELS, *CLIENTS, *(f"{said[:40]} {n}" for n, (_, said) in enumerate(MODELS))]
ROWS = [({"X": given}, said) for given, said in FEATURES.values()]
ROWS += [({"y": given}, said) for given, said in LABELS.values()]
ROWS += [({"clients": given}, said) for given, said in CLIENTS.values()]


@pytest.mark.parametrize(("changes", "sentence"), [*ROWS, *MODELS], ids=IDS)
def test_data(changes: dict[str, Any], sentence: str) -> None:
    assert_refused(lambda: model(**changes), sentence)


@pytest.mark.parametrize(("call", "sentence"), CALLS)
def test_calls(call: Callable[[], Any], sentence: str) -> None:
    assert_refused(call, sentence)


@pytest.mark.parametrize(("argument", "instance", "call", "kind"), CLASSES)
def test_classes_in_the_place_of_instances(
    argument: str, instance: str, call: Callable[[Any], Any], kind: type
) -> None:
    sentence = f"{argument} must be an instance, such as {instance}, not the class {kind.__name__}."
    assert_refused(lambda: call(kind), sentence)


def test_at_most_three_labels_are_shown() -> None:
    for labels, shown in ((list("abcabc"), "3 ('a', 'b', 'c')."), (list("abcdab"), "4 ('a', 'b', 'c', ...).")):
        with pytest.raises(ValueError, match=re.escape(shown) + "$"):
            model(y=labels)


def test_names_are_what_they_stand_for() -> None:
    by_name = run(AnyDualFL(solver="lbfgs", stop="steps=3"), F, rounds=3, participation="full")
    objects = run(DualFL(solver=LBFGS(), stop=Steps(steps=3)), F, rounds=3, participation=Full())
    np.testing.assert_array_equal(by_name.theta, objects.theta)
    assert by_name.parameters["hyperparameters"] == objects.parameters["hyperparameters"]
    np.testing.assert_array_equal(run("fedavg", F, rounds=3).theta, run(FedAvg(), F, rounds=3).theta)
    found = [run("fedsplit", F, rounds=3, compressor=packs).theta for packs in ("rand-k=1", RandK(size=1))]
    np.testing.assert_array_equal(*found)
    assert Composite(objective=F, regulariser="l1=0.5").regulariser == L1(weight=0.5)


@pytest.mark.parametrize("given", [TABLE, pl.DataFrame({"a": [1.0] * 6}), pa.table({"a": [1.0] * 6})])
def test_without_narwhals_the_sentence_says_what_to_install(given: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "narwhals", None)
    with pytest.raises(ModuleNotFoundError) as info:
        model(X=given)
    kind = type(given).__name__
    assert str(info.value) == f'X, a {kind}, needs narwhals: pip install "dualopt[frames]".'


def test_plain_arrays_need_neither_pandas_nor_narwhals(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def refuse(name: str, *rest: Any, **more: Any) -> Any:
        assert name.partition(".")[0] not in ("pandas", "polars", "pyarrow", "narwhals")
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", refuse)
    assert model(X=X.tolist(), y=list("ababab"), clients=list("xyxyxy")).client_names == ("x", "y")
