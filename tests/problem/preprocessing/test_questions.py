"""What rows answer, in exact numbers, whatever the pieces are that are worked on at once; and what no rows answer."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dualopt.problem.preprocessing import _questions
from dualopt.problem.preprocessing._exact import LARGEST
from dualopt.problem.preprocessing._questions import NOTHING, Numbers, Question, combined, require_sound

GAP = math.nan
ROWS = [
    [1.0, -2.0, GAP, 0.5, 3.0],
    [2.0**60, GAP, GAP, -8.0, 3.0],
    [-5.0, 7.0, GAP, 0.25, 3.0],
    [1.0, 6.0, GAP, GAP, 3.0],
    [-(2.0**60), -1.0, GAP, 9.0, 3.0],
    [0.125, 7.0, GAP, 4.0, 3.0],
    [1.0, 0.0, GAP, 0.0, 3.0],
]
WHOLE = [[row[0], row[4], abs(row[3] if row[3] == row[3] else 2.0)] for row in ROWS]
CENTRES, UNITS = [1.0, -2.0, 0.0, 1.0, 3.0], [2.0, 4.0, 1.0, 0.5, 8.0]
THRESHOLDS = [[1.0, 6.0, 0.0, 9.0, 2.0], [0.0, -3.0, 0.0, 0.25, 3.0]]


def exact(found: np.ndarray) -> list[Fraction]:
    """Return the sums of columns."""
    return [sum(map(Fraction, column), Fraction(0)) for column in found.T.tolist()]


def power(x: float) -> float:
    return NOTHING if x == 0 else float(math.frexp(x)[1] - 1)


@pytest.mark.parametrize("rows", [ROWS, WHOLE, [[GAP, GAP]], [[0.0, -3.0], [-0.0, -1.0]]], ids=len)
@pytest.mark.parametrize(("width", "piece"), [(1, 1), (2, 6), (3, 7), (256, 2**17)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_answers(monkeypatch: pytest.MonkeyPatch, rows: Any, width: int, piece: int, dtype: Any) -> None:
    monkeypatch.setattr(_questions, "WIDTH", width)
    monkeypatch.setattr(_questions, "PIECE", piece)
    columns = [[x for x in column if x == x] for column in zip(*rows, strict=True)]
    d, given = len(columns), np.array(rows, dtype=dtype)
    own = Numbers(given)
    centres, units, at = np.array(CENTRES[:d]), np.array(UNITS[:d]), np.array([row[:d] for row in THRESHOLDS])
    expected = {
        "count": [[len(x) for x in columns]],
        "least": [[min(x, default=math.inf) for x in columns]],
        "largest": [[max(x, default=-math.inf) for x in columns]],
        "size": [[max((abs(x) for column in columns for x in column), default=0.0)]],
        "exponent": [[power(max((abs(x - c) for x in column), default=0.0)) for column, c in zip(columns, CENTRES)]],  # noqa: B905
        "below": [[sum(x <= t for x in column) for column, t in zip(columns, row)] for row in THRESHOLDS],  # noqa: B905
    }
    for kind, answer in expected.items():
        found = own.answer(Question(kind, {"exponent": (centres,), "below": (at,)}.get(kind, ())))
        assert found.dtype == np.float64
        assert found.tolist() == answer, kind
        require_sound(Question(kind, (at,) if kind == "below" else ()), found, d)
    sums = own.answer(Question("sum"))
    assert exact(sums) == [sum(map(Fraction, column), Fraction(0)) for column in columns]
    squares = own.answer(Question("squares", (centres, units)))
    quotients = [[Fraction(float(dtype(x - c)) / u) for x in col] for col, c, u in zip(columns, CENTRES, UNITS)]  # noqa: B905
    assert exact(squares) == [sum((Fraction(float(q) ** 2) for q in column), Fraction(0)) for column in quotients]
    np.testing.assert_array_equal(own.X, np.array(rows, dtype=dtype))  # nothing is written in place


def test_no_rows_answer_too() -> None:
    none = Numbers(np.zeros((0, 2)))
    assert none.answer(Question("count")).tolist() == [[0.0, 0.0]]
    assert none.answer(Question("size")).tolist() == [[0.0]]
    assert none.answer(Question("least")).tolist() == [[math.inf, math.inf]]
    assert exact(none.answer(Question("sum"))) == [0, 0]


def test_what_answers_come_to() -> None:
    one, other = np.array([[1.0, 5.0]]), np.array([[3.0, 2.0]])
    for kind in ("count", "below"):
        assert combined(Question(kind), [one, other]).tolist() == [[4.0, 7.0]]
    for kind in ("largest", "exponent", "size"):
        assert combined(Question(kind), [one, other]).tolist() == [[3.0, 5.0]]
    assert combined(Question("least"), [one, other]).tolist() == [[1.0, 2.0]]
    tiny = np.array([[2.0**-1000, 0.0], [1.0, 1.0]])
    for kind in ("sum", "squares"):
        assert exact(combined(Question(kind), [one, tiny, other])) == [5 + Fraction(2) ** -1000, 8]


MOST = LARGEST * 2.0**20
AT = (np.zeros((3, 2)),)
SOUND = [
    (Question("count"), [[0.0, 7.0]]),
    (Question("sum"), [[-MOST, MOST], [1.0, -0.5]]),
    (Question("squares"), [[4.0, 0.5], [-1.0, 0.0]]),
    (Question("squares"), [[1.0, 0.0], [-1.0, 0.0]]),
    (Question("least"), [[math.inf, -2.5]]),
    (Question("largest"), [[-math.inf, -2.5]]),
    (Question("exponent"), [[NOTHING, 1023.0]]),
    (Question("size"), [[0.0]]),
    (Question("below", AT), [[0.0, 2.0], [1.0, 2.0], [1.0, 3.0]]),
]
LIES = [
    (Question("least"), [[-math.inf, 1.0]], "not finite"),
    (Question("largest"), [[math.inf, 1.0]], "not finite"),
    (Question("largest"), [[math.nan, 1.0]], "not finite"),
    (Question("largest"), [[math.nextafter(MOST, math.inf), 1.0]], "too large"),
    (Question("least"), [[-2 * MOST, 1.0]], "too large"),
    (Question("exponent"), [[1024.0, 0.0]], "too large"),
    (Question("exponent"), [[0.5, 0.0]], "whole numbers"),
    (Question("below", AT), [[0.0, 2.0], [1.0, 2.0], [1.0, 2.5]], "whole numbers"),
    (Question("below", AT), [[0.0, 2.0], [1.0, -5.0], [1.0, 2.0]], "not be negative"),
    (Question("below", AT), [[0.0, 2.0], [1.0, 2.0]], "another shape"),
    (Question("below"), [[0.0, 2.0]], "another shape"),
    (Question("count"), [[1.0, -1.0]], "not be negative"),
    (Question("squares"), [[1.0, 1.0], [-1.5, 0.0]], "not be negative"),
    (Question("size"), [[-1.0]], "not be negative"),
    (Question("size"), [[1.0], [1.0]], "another shape"),
    (Question("exponent"), [[1.0, 2.0, 3.0]], "another shape"),
    (Question("sum"), [1.0, 2.0], "another shape"),
    (Question("sum"), [[[1.0, 2.0]]], "another shape"),
]


@pytest.mark.parametrize(("question", "answer"), SOUND)
def test_answers_that_rows_can_give(question: Question, answer: Any) -> None:
    require_sound(question, np.array(answer), 2)
    with pytest.raises(ValueError, match=f"its answer to {question.kind} has another shape"):
        require_sound(question, np.zeros(np.shape(answer), dtype=np.float32), 2)


@pytest.mark.parametrize(("question", "answer", "words"), LIES)
def test_answers_that_no_rows_give(question: Question, answer: Any, words: str) -> None:
    with pytest.raises(ValueError, match=f"its answer to {question.kind} .*{words}"):
        require_sound(question, np.array(answer), 2)
