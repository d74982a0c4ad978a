"""What is printed of an inference: pages, tables, JSON and CSV of numbers that are made up, and so known."""

from __future__ import annotations

import csv
import io
import json
import math
from typing import Any

import numpy as np
import pytest

from dualopt.runs._inference import Inference, table_of


def made(**changes: Any) -> Inference:
    """Two parameters with the standard errors 0.5 and 10 by the likelihood, 1 and 2 by 3 clients; z is 2 and -2."""
    given: dict[str, Any] = {
        "estimate": np.array([1.0, -20.0]),
        "names": ("dose", "a long name"),
        "kind": "likelihood",
        "covariances": {"likelihood": np.diag([0.25, 100.0]), "clients": np.diag([1.0, 4.0])},
        "all_degrees": {"likelihood": math.inf, "clients": 2.0},
        "level": 0.95,
        "ratio": "odds ratio",
        "rows": 40.0,
        "clients": 3,
        "parameters": 1.75,
        "small_sample": True,
        "ridge": 0.5,
        "family": "binomial",
        "dispersion": 1.0,
        "deviance": 21.0,
        "log_likelihood": -10.5,
        "aic": 24.5,
        "ridge_shift": np.array([-0.125, 1.0]),
        "newton_step": np.array([1e-6, -1e-6]),
        "distance": 0.003,
        "estimate_bounds": np.array([0.002, 0.001]),
        "likelihood_error_bounds": (np.array([0.49, 9.9]), np.array([0.505, 10.3])),
        "model_size": 2,
    }
    return Inference(**given | changes)


PAGE = """\
covariance: by the likelihood, (H + P)^-1 H (H + P)^-1, H the observed information, P the ridge
data: 40 rows of 3 clients
parameters: 2, 1.75 with the ridge (tr S)
ridge: moves a parameter by up to 0.25 of its standard error (to first order): intervals are for the mean of the \
minimiser with the ridge
likelihood: binomial: log-likelihood -10.5, deviance 21, AIC 24.5, dispersion 1
accuracy: a Newton step moves a parameter by up to 2.0e-06 of its standard error; the minimiser is within 3.0e-03 of \
the model (certified); no parameter is farther than 2.0e-03 from it; standard errors at the minimiser are within \
3.0e-02 of these, relatively
sent by each client: 16 numbers, once: a Hessian of 2 x 2, its gradient, its ridge and 8 sums; a Hessian tells more of \
the rows than a gradient (docs/security.md)

parameter    estimate  std. error      z   P>|z|  95% from        to  odds ratio   95% from       to
dose                1         0.5   2.00  0.0455  0.020018      1.98      2.7183      1.0202   7.2426
a long name       -20          10  -2.00  0.0455     -39.6  -0.40036  2.0612e-09  6.3401e-18  0.67008"""


def test_a_page() -> None:
    assert str(made()) == PAGE


WORDS = [
    ({}, "covariance", "by the likelihood, (H + P)^-1 H (H + P)^-1, H the observed information, P the ridge"),
    ({"ridge": 0.0}, "covariance", "by the likelihood, H^-1, H the observed information"),
    ({"ridge": 0.0, "dispersion": 2.5}, "covariance", "by the likelihood, s H^-1, H the observed information"),
    (
        {"kind": "clients"},
        "covariance",
        "by the clients, (H + P)^-1 B (H + P)^-1, times N/(N-1) (n-1)/(n - tr S), H the Hessian of the loss, P the "
        "ridge, B the outer products of the clients' gradients",
    ),
    (
        {"kind": "clients", "ridge": 0.0, "small_sample": False, "clients": 2},
        "covariance",
        "by the clients, H^-1 B H^-1, H the Hessian of the loss, B the outer products of the clients' gradients; of "
        "rank below 2, the number of clients",
    ),
    ({"ridge": 0.0}, "parameters", "2"),
    ({"ridge": 0.0}, "ridge", None),
    ({"family": None}, "likelihood", "none: no log-likelihood, deviance or AIC"),
    (
        {"newton_step": np.array([0.001, 0.2]), "distance": None, "estimate_bounds": None},
        "accuracy",
        "a Newton step moves a parameter by up to 2.0e-02 of its standard error, so that this is not the minimiser: "
        "run to a smaller tol; standard errors at the minimiser are within 3.0e-02 of these, relatively",
    ),
    (
        {"distance": None, "likelihood_error_bounds": (np.array([0.0, 1.0]), np.array([1.1, 10.0]))},
        "accuracy",
        "a Newton step moves a parameter by up to 2.0e-06 of its standard error; no parameter is farther than 2.0e-03 "
        "from it",
    ),
    (
        {"kind": "clients"},
        "accuracy",
        "a Newton step moves a parameter by up to 1.0e-06 of its standard error; the minimiser is within 3.0e-03 of "
        "the model (certified); no parameter is farther than 2.0e-03 from it",
    ),
    (
        {"model_size": 1200},
        "sent by each client",
        "1,442,408 numbers, once: a Hessian of 1,200 x 1,200, its gradient, its ridge and 8 sums; a Hessian tells more "
        "of the rows than a gradient (docs/security.md)",
    ),
]


@pytest.mark.parametrize(("changes", "about", "words"), WORDS)
def test_what_is_said(changes: Any, about: str, words: str | None) -> None:
    assert made(**changes).described().get(about) == words


def test_a_parameter_without_a_standard_error_moves_by_none() -> None:
    """A column of zeros: nothing is told of it, and the ridge makes it 0."""
    found = made(
        estimate=np.array([0.0, -20.0]),
        covariances={"likelihood": np.diag([0.0, 100.0])},
        newton_step=np.array([7.0, 1e-5]),
        ridge_shift=np.array([-3.0, 0.1]),
        likelihood_error_bounds=None,
    )
    assert "up to 0.01 of" in found.described()["ridge"]
    assert "up to 1.0e-06 of" in found.described()["accuracy"]


@pytest.mark.filterwarnings("ignore:invalid value")
def test_what_has_no_number_is_none_in_json_and_a_dash_in_the_table() -> None:
    found = made(estimate=np.array([0.0, 1.0]), covariances={"likelihood": np.diag([0.0, 1.0])})
    first, second = json.loads(found.to_text())["coefficients"]
    assert (first["statistic"], first["p_value"]) == (None, None)
    assert second["statistic"] == 1.0
    assert [row["z"] for row in found.table()] == ["-", "1.00"]


def test_json_and_csv_have_all_numbers() -> None:
    found = made(kind="clients", likelihood_error_bounds=None)
    t = math.sqrt(2 * 0.95**2 / (1 - 0.95**2))  # with 2 degrees of freedom |T| <= t has probability t / sqrt(2 + t^2)
    ends = {"lower": [1 - t, -20 - 2 * t], "upper": [1 + t, -20 + 2 * t]}
    p = [1 - z / math.sqrt(2 + z * z) for z in (1.0, 10.0)]
    columns = {"estimate": [1.0, -20.0], "standard_error": [1.0, 2.0], "statistic": [1.0, -10.0], "p_value": p, **ends}
    columns |= {"odds_ratio": np.exp([1.0, -20.0])}
    columns |= {f"odds_ratio_{end}": np.exp(values) for end, values in ends.items()}
    columns |= {"estimate_bound": [0.002, 0.001], "ridge_shift": [-0.125, 1.0]}
    record = json.loads(found.to_text())
    rows = list(csv.DictReader(io.StringIO(found.to_csv())))
    for i, name in enumerate(("dose", "a long name")):
        for row in (record["coefficients"][i], rows[i]):
            assert list(row) == ["name", *columns]
            assert row["name"] == name
            values = [float(row[column]) for column in columns]
            assert values == pytest.approx([values[i] for values in columns.values()], rel=1e-12)
    numbers = {"kind": "clients", "level": 0.95, "degrees": 2.0, "rows": 40.0, "clients": 3, "parameters": 1.75}
    numbers |= {"family": "binomial", "ratio": "odds ratio", "dispersion": 1.0, "deviance": 21.0, "aic": 24.5}
    numbers |= {"log_likelihood": -10.5, "distance": 0.003, "numbers_sent": 16, "small_sample": True, "ridge": 0.5}
    assert {name: record[name] for name in numbers} == numbers
    assert record["described"] == found.described()
    assert {*record} == {*numbers, "described", "coefficients"}


def test_bounds_of_standard_errors_are_columns_by_the_likelihood() -> None:
    columns = made(ratio=None, estimate_bounds=None).columns()
    assert (columns["standard_error_least"], columns["standard_error_largest"]) == ([0.49, 9.9], [0.505, 10.3])
    assert not [name for name in columns if "ratio" in name or name == "estimate_bound"]
    assert "standard_error_least" not in made(kind="clients").columns()


def test_a_table() -> None:
    """The first rows, of a record that was written."""
    row = {"name": "a", "estimate": 1.23456789, "standard_error": None, "statistic": 2.345, "p_value": 0.00012345}
    record = {"level": 0.9, "ratio": None, "degrees": 5.0, "coefficients": [{**row, "lower": 1.0, "upper": 1e9}] * 50}
    cells = {"parameter": "a", "estimate": "1.2346", "std. error": "-", "t": "2.35", "P>|t|": "0.000123"}
    assert table_of(record, 2) == [{**cells, "90% from": "1", "to": "1e+09"}] * 2
    assert (len(table_of(record)), len(made().table(1)), len(made().table())) == (40, 1, 2)


@pytest.mark.parametrize("kind", ["likelihood", "clients"])
def test_contrasts(kind: str) -> None:
    """C V C', and bounds that add up."""
    V = {"likelihood": np.array([[0.25, 0.5], [0.5, 100.0]]), "clients": np.array([[1.0, -1.0], [-1.0, 4.0]])}
    found = made(covariances=V, kind=kind).contrasts([[1.0, -2.0], [3.0, 0.0], [0.0, 0.5]], ["x", "y", "z"])
    assert (found.names, found.kind, found.distance, found.error_bounds) == (("x", "y", "z"), kind, None, None)
    assert found.estimate.tolist() == [41.0, 3.0, -10.0]
    expected = [398.25, 2.25, 25.0] if kind == "likelihood" else [21.0, 9.0, 1.0]
    np.testing.assert_allclose(found.standard_errors, np.sqrt(expected), rtol=1e-15)
    np.testing.assert_allclose(found.ridge_shift, [-2.125, -0.375, 0.5], rtol=1e-15)
    np.testing.assert_allclose(found.newton_step, [3e-6, 3e-6, -5e-7], rtol=1e-15)
    assert found.estimate_bounds is not None
    np.testing.assert_allclose(found.estimate_bounds, [0.004, 0.006, 0.0005], rtol=1e-15)
    assert made(estimate_bounds=None).contrasts([[1.0, 0.0]], ["x"]).estimate_bounds is None
    for matrix, names in (([1.0, 0.0], ["x"]), ([[1.0]], ["x"]), ([[1.0, 0.0]], ["x", "y"]), ([[[1.0, 0.0]]], ["x"])):
        with pytest.raises(ValueError, match="matrix must have 2 columns, and a row for each of the"):
            made().contrasts(matrix, names)


def test_differences_of_classes() -> None:
    """Three classes, two columns; against the last one, and against the first."""
    estimate = np.array([[1.0, 2.0], [4.0, 8.0], [16.0, 32.0]])
    names = tuple(f"{k}{c}" for k in "abc" for c in "xy")
    V = {"clients": np.diag([1.0, 2.0, 4.0, 8.0, 16.0, 32.0])}
    shape: dict[str, Any] = {"ridge_shift": estimate, "newton_step": estimate, "estimate_bounds": estimate}
    found = made(estimate=estimate, names=names, covariances=V, kind="clients", **shape)
    last, first = found.against(2), found.against()
    assert last.names == ("ax", "ay", "bx", "by")
    assert last.estimate.tolist() == [-15.0, -30.0, -12.0, -24.0]
    assert first.estimate.tolist() == [3.0, 6.0, 15.0, 30.0]
    np.testing.assert_allclose(last.standard_errors**2, [17.0, 34.0, 20.0, 40.0], rtol=1e-15)
    assert last.estimate_bounds is not None
    assert last.estimate_bounds.tolist() == [17.0, 34.0, 20.0, 40.0]
    with pytest.raises(ValueError, match="reference must be the number of one of the 3 classes"):
        found.against(-1)
