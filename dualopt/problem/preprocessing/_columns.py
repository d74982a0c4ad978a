"""Columns of tables as features: words become columns of zeros and ones, and gaps are filled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dualopt.arrays._checks import require
from dualopt.problem.inputs._frames import as_matrix, column_names, series_values
from dualopt.problem.inputs._values import as_numbers, is_missing, kind_of, object_array, shown
from dualopt.problem.preprocessing._plans import Plan, answered, fills
from dualopt.problem.preprocessing._questions import Numbers, Question, combined

__all__ = ["Columns", "Table", "TableOptions", "Words", "fitted_columns", "plan_of_columns", "united"]

MISSING = ("refuse", "mean", "median")
REFUSE, INDICATORS = "refuse", "indicators"
MOST = 1000  # categories of a column: one with more holds names, or numbers of patients

Words = tuple[tuple[str, ...] | None, ...]
"""The categories of each column, in ascending order: None for one of numbers, () for one that is empty."""


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """What becomes of gaps and words in a table.

    Parameters
    ----------
    missing : {"refuse", "mean", "median"}
        A gap in a column of numbers: refused, or filled with the mean or the median of the others. One in a column of
        words is then zero in all its features.
    categories : str
        A column of words: "refuse"; "indicators", a feature of zeros and ones for each of its categories, in ascending
        order; or the same with given categories of named columns, such as ``"sex=f,m; stage=1,2,3"``.

    Raises
    ------
    ValueError
        If they are none of these.

    Examples
    --------
    >>> TableOptions(categories="sex=f,m; stage=1,2,3").listed
    {'sex': ('f', 'm'), 'stage': ('1', '2', '3')}
    """

    missing: str = REFUSE
    categories: str = REFUSE

    def __post_init__(self) -> None:
        """Refuse what is none of these."""
        require(self.missing in MISSING, f"missing must be one of {', '.join(MISSING)}", self.missing)
        _ = self.listed

    @property
    def listed(self) -> dict[str, tuple[str, ...]]:
        """The columns of words whose categories are given."""
        if self.categories in (REFUSE, INDICATORS):
            return {}
        found: dict[str, tuple[str, ...]] = {}
        for text in self.categories.split(";"):
            name, _, words = (part.strip() for part in text.rpartition("="))
            listed = tuple(word.strip() for word in words.split(","))
            good = bool(name) and name not in found and all(listed) and len({*listed}) == len(listed) > 1
            sentence = "categories must be refuse, indicators, or words of columns such as sex=f,m; stage=1,2,3"
            require(good, sentence, self.categories)
            found[name] = listed
        return found

    @property
    def refuse_all(self) -> bool:
        """Whether tables hold numbers alone, without gaps."""
        return (self.missing, self.categories) == (REFUSE, REFUSE)

    def table(self, frame: Any) -> Table:
        """Return the columns of a DataFrame of narwhals, and refuse what these options refuse."""
        return Table(frame, gaps=self.missing != REFUSE, words=self.categories == INDICATORS, listed=self.listed)


class Table:
    """The columns of a table that are features: numbers, NaN where one is missing, or words, None where one is.

    Parameters
    ----------
    frame : DataFrame of narwhals
        The columns.
    gaps : bool
        Whether something may be missing.
    words : bool
        Whether a column may hold words.
    listed : mapping of str to tuple of str
        Categories of columns that are known; numbers in these are taken for words.

    Raises
    ------
    ValueError
        If a column holds times, infinite numbers, or words or gaps where it may not; the sentence names it, and the
        cure.
    """

    def __init__(self, frame: Any, *, gaps: bool, words: bool = False, listed: Mapping[str, Sequence[str]]) -> None:
        self.names, self.rows = column_names(frame), len(frame)
        for name in listed:
            require(name in self.names, f"categories must be those of columns of the table, which has no {name!r}")
        self.columns: list[np.ndarray] = []
        for series, name in zip(frame.iter_columns(), self.names, strict=True):
            self.columns.append(
                _column(series, name, gaps=gaps, words=words or name in listed, all_words=name in listed)
            )

    def answer(self, question: Question) -> Any:
        """Return what these rows answer to a question of a plan of columns."""
        return self.words if question.kind == "words" else self.numbers.answer(question)

    @property
    def words(self) -> Words:
        """The categories of each column."""
        return tuple(_categories(column) for column in self.columns)

    def counts(self) -> list[int]:
        """Return how many rows have a category, for each one in each column of words."""
        words = (column[~_gaps(column)].tolist() for column in self.columns if column.dtype.kind == "O")
        return [count for column in words for count in Counter(column).values()]

    @cached_property
    def numbers(self) -> Numbers:
        """The columns of numbers; those of words have none."""
        gaps = np.full(self.rows, np.nan)
        return Numbers(
            as_matrix([gaps if x.dtype.kind == "O" else x.astype(np.float64) for x in self.columns], self.rows)
        )


@dataclass(frozen=True, kw_only=True)
class Columns:
    """How the columns of a table become features.

    Parameters
    ----------
    names : tuple of str
        The columns, in their order.
    words : tuple
        For each column its categories, or None for one of numbers.
    fills : tuple
        For each column of numbers what is put in a gap; None where gaps are refused, and for words.
    missing : str
        The rule by which gaps are filled (`TableOptions`).

    Examples
    --------
    >>> columns = Columns(names=("age", "sex"), words=(None, ("f", "m")), fills=(63.0, None), missing="mean")
    >>> columns.feature_names
    ('age', 'sex=f', 'sex=m')
    >>> import narwhals as nw
    >>> import pandas as pd
    >>> table = nw.from_native(pd.DataFrame({"age": [50, 70, None], "sex": ["m", None, "f"]}))
    >>> columns.matrix(columns.table(table)).tolist()
    [[50.0, 0.0, 1.0], [70.0, 0.0, 0.0], [63.0, 1.0, 0.0]]
    """

    names: tuple[str, ...]
    words: tuple[tuple[str, ...] | None, ...]
    fills: tuple[float | None, ...]
    missing: str

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The names of the features: a column, or ``column=category``."""
        each = zip(self.names, self.words, strict=True)
        return tuple(x for name, words in each for x in ([name] if words is None else [f"{name}={w}" for w in words]))

    @property
    def listed(self) -> dict[str, tuple[str, ...]]:
        """The categories of the columns of words, by name."""
        return {name: words for name, words in zip(self.names, self.words, strict=True) if words is not None}

    def table(self, frame: Any) -> Table:
        """Return the columns of a DataFrame of narwhals that are exactly these."""
        return Table(frame, gaps=self.missing != REFUSE, listed=self.listed)

    def matrix(self, table: Table) -> np.ndarray:
        """Return the features of a table with exactly these columns, shape ``(rows, features)``.

        Raises
        ------
        ValueError
            If a column holds a word that is none of its categories.
        """
        found: list[np.ndarray] = []
        for name, words, fill, column in zip(self.names, self.words, self.fills, table.columns, strict=True):
            if words is not None:
                found += _indicators(column, words, name)
            elif fill is None or not (gaps := _gaps(column)).any():
                found.append(column)
            else:
                found.append(np.where(gaps, fill, column.astype(np.float64)))
        return as_matrix(found, table.rows)


def plan_of_columns(names: Sequence[str], options: TableOptions) -> Plan:
    """Return the plan that finds the `Columns` of tables with these columns.

    Parameters
    ----------
    names : sequence of str
        The columns that are features.
    options : TableOptions
        What becomes of gaps and words.
    """
    words: Words = tuple(options.listed.get(name) for name in names)
    if options.categories == INDICATORS:
        words = yield Question("words")
    for name, categories in zip(names, words, strict=True):
        require(categories != (), f"column {name!r} must not be missing in all rows: drop it")
        few = f"column {name!r} must have at most {MOST} categories: drop it, or make numbers of it"
        require(len(categories or ()) <= MOST, few, len(categories or ()))
    found: list[float | None] = [None] * len(names)
    if options.missing != REFUSE:
        numbers_found, counts = yield from fills(options.missing)
        for place, name in enumerate(names):
            if words[place] is None:
                require(counts[place] > 0, f"column {name!r} must not be missing in all rows: drop it")
                found[place] = float(numbers_found[place])
    columns = Columns(names=tuple(names), words=tuple(words), fills=tuple(found), missing=options.missing)
    twice = len({*columns.feature_names}) < len(columns.feature_names)
    require(not twice, "columns must not be named like features of others, such as 'sex=f': rename them")
    return columns


def fitted_columns(table: Table, options: TableOptions) -> Columns:
    """Return how the columns of a table become features, by what is found in it.

    >>> import narwhals as nw
    >>> import pandas as pd
    >>> options = TableOptions(missing="median", categories="indicators")
    >>> table = options.table(nw.from_native(pd.DataFrame({"dose": [1, None, 3], "drug": ["b", "a", "b"]})))
    >>> fitted_columns(table, options).fills
    (2.0, None)
    """

    def ask(question: Question) -> Any:
        own = table.answer(question)
        return own if question.kind == "words" else combined(question, [own])

    return answered(plan_of_columns(table.names, options), ask)


def united(names: Sequence[str], found: Sequence[Words]) -> Words:
    """Return the categories of the columns of several tables together.

    >>> united(["sex", "age"], [(("f",), None), ((), ()), (("m",), None)])
    (('f', 'm'), None)
    """
    each: list[tuple[str, ...] | None] = []
    for name, answers in zip(names, zip(*found, strict=True), strict=True):
        of_numbers, words = any(x is None for x in answers), {word for x in answers for word in (x or ())}
        mixed = f"column {name!r} must not hold numbers in some tables and words in others: list its categories"
        require(not (of_numbers and words), mixed)
        each.append(None if of_numbers else tuple(sorted(words)))
    return tuple(each)


def _column(series: Any, name: str, *, gaps: bool, words: bool, all_words: bool) -> np.ndarray:
    """Return a column as numbers, NaN where one is missing, or as objects, words and None."""
    what = f"X: column {name!r}"
    if series.dtype.is_temporal():
        raise ValueError(f"{what} must hold numbers, not times ({series.dtype}): make numbers of it or drop it.")
    values = series_values(series)
    missing = _gaps(values)
    if missing.any() and not gaps:
        raise ValueError(gap(what, int(np.argmax(missing))))
    if all_words:
        return object_array([None if gone else _word(x) for x, gone in zip(values.tolist(), missing, strict=True)])
    if values.dtype.kind != "O":
        return _finite(values, missing, what)
    present = values[~missing]
    if present.size and words and all(kind_of(x) == "words" for x in present):
        return object_array([None if gone else x for x, gone in zip(values.tolist(), missing, strict=True)])
    for row, value in enumerate(values.tolist()):
        if kind_of(value) == "words":
            raise ValueError(no_number(what, row, value, words))
    found = np.full(len(values), np.nan)
    found[~missing] = as_numbers(present, what, np.flatnonzero(~missing))
    return found


def gap(what: str, row: int) -> str:
    """Say that a number is missing, and what helps."""
    return (
        f"{what} must not have missing values, but row {row} (counted from 0) has one: fill it, drop the row or "
        'the column, or choose missing = "mean" or "median".'
    )


def no_number(what: str, row: int, value: Any, words: bool = False) -> str:
    """Say that there is a word in a column of numbers, and what helps."""
    cure = (
        "its other rows hold numbers" if words else 'make numbers of it, drop it, or choose categories = "indicators"'
    )
    return f"{what} must hold numbers, but row {row} (counted from 0) holds {shown(value)}: {cure}."


def _finite(values: np.ndarray, missing: np.ndarray, what: str) -> np.ndarray:
    infinite = ~np.isfinite(values) & ~missing
    if infinite.any():
        row = int(np.argmax(infinite))
        raise ValueError(f"{what} must hold finite numbers, but row {row} (counted from 0) holds {values[row]}.")
    return values


def _gaps(column: np.ndarray) -> np.ndarray:
    """Tell what is missing."""
    if column.dtype.kind == "O":
        return np.fromiter(map(is_missing, column.tolist()), dtype=bool, count=len(column))
    return np.isnan(column) if column.dtype.kind == "f" else np.zeros(len(column), dtype=bool)


def _word(value: Any) -> str:
    """Write a category: whole numbers as such, also where a gap among them has made them fractions.

    >>> _word(3.0), _word(0.5), _word("a"), _word(True)
    ('3', '0.5', 'a', 'True')
    >>> _word(float("inf"))
    'inf'
    """
    whole = kind_of(value) == "numbers" and not isinstance(value, bool) and value % 1 == 0
    return str(int(value)) if whole else str(value)


def _categories(column: np.ndarray) -> tuple[str, ...] | None:
    gaps = _gaps(column)
    if gaps.all():
        return ()
    return tuple(sorted({*column[~gaps].tolist()})) if column.dtype.kind == "O" else None


def _indicators(column: np.ndarray, words: Sequence[str], name: str) -> list[np.ndarray]:
    """Return the columns of zeros and ones of a column of words; an empty one is zero in all."""
    if column.dtype.kind != "O":  # a table in which all of it is missing
        return [np.zeros(len(column), dtype=bool) for _ in words]
    known, found = {word: place for place, word in enumerate(words)}, np.full(len(column), -1)
    for row, word in enumerate(column.tolist()):
        if word is not None:
            if word not in known:
                raise ValueError(
                    f"X: column {name!r} must hold one of its categories {', '.join(words[:20])}"
                    f"{', ...' if len(words) > 20 else ''}, but row {row} (counted from 0) holds {shown(word)}."
                )
            found[row] = known[word]
    return [found == place for place in range(len(words))]
