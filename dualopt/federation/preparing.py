"""Preparing the rows of all sites before the first round: means, deviations, quantiles, categories, fills.

A plan (`dualopt.problem.preprocessing`) follows from the project. Server and sites go through it together: the server
tells what the answers of all come to, and each site finds by itself what is asked next. A site thus answers the
questions of its project and no others, and each of them once: what it was told is in a file, and another answer of all
to the same question is refused. Who has the same project finds the same numbers in the same record.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dualopt.arrays._checks import require
from dualopt.arrays._files import write_atomically
from dualopt.arrays.xp import is_sparse
from dualopt.engine import RefusedError
from dualopt.engine import _protocol as protocol
from dualopt.federation.project import Project
from dualopt.federation.refusals import refusing
from dualopt.problem.data._registry import converted
from dualopt.problem.data._scaling import SHIFTS, Scaling, require_dense
from dualopt.problem.data.scaling import OF_ALL_ROWS, scaling_of
from dualopt.problem.preprocessing import (
    Columns,
    Numbers,
    Plan,
    Question,
    combined,
    plan_of_columns,
    plan_of_numbers,
    require_sound,
    united,
)

__all__ = ["Prepared", "Preparing", "SitePreparing", "prepared_by"]


class Prepared(NamedTuple):
    """How the data of a site become features."""

    columns: Columns | None
    scaling: Scaling

    def features(self, rows: Any, dtype: str) -> Any:
        """Return the features of a site's data, scaled, in the memory of the data where that can be."""
        return self.scaling.apply_in_place(_unscaled(rows, self.columns, dtype))


class Asked(NamedTuple):
    """A question, and whether it is about the columns of tables or about features, of which there are ``width``."""

    question: Question
    of_tables: bool
    width: int
    columns: Columns | None  # how columns became features, where these are asked for


class Preparing:
    """The plan of a project, as far as it has come.

    Parameters
    ----------
    project : Project
        What the parties agree on.

    Attributes
    ----------
    asked : list of Asked
        The questions so far.
    totals : list
        What the answers to them came to.
    found : Prepared, optional
        What the plan has found, at its end.

    Examples
    --------
    >>> preparing = Preparing(Project(name="a", sites=("b",), classes=(0, 1), features=1, scale="max"))
    >>> preparing.asked[0].question.kind
    'size'
    >>> preparing.tell(np.array([[4.0]]))
    >>> preparing.found.scaling.divisor
    4.0
    """

    def __init__(self, project: Project) -> None:
        self.project = project
        self.asked: list[Asked] = []
        self.totals: list[Any] = []
        self.found: Prepared | None = None
        self._plan = _plan(project)
        self._advance(None)

    def tell(self, total: Any) -> None:
        """Go on with what the answers to the latest question came to.

        Raises
        ------
        ValueError
            If no features can be made with it.
        """
        self.totals.append(total)
        self._advance(total)

    def to_text(self) -> str:
        """Return the record: what the answers came to, in JSON."""
        return json.dumps([x.tolist() if isinstance(x, np.ndarray) else x for x in self.totals]) + "\n"

    @classmethod
    def from_text(cls, project: Project, text: str) -> Preparing:
        """Read what :meth:`to_text` wrote.

        Raises
        ------
        ValueError
            If it is no record of this project.
        """
        found = cls(project)
        try:
            for total in json.loads(text):
                asked = found.asked[len(found.totals)]
                of_words = asked.question.kind == "words"
                numbers = None if of_words else np.array(total, dtype=np.float64)
                found.tell(_told(asked, numbers, json.dumps(total) if of_words else ""))
        except (ValueError, TypeError, IndexError, RecursionError):
            raise ValueError("the record of how rows are prepared is damaged, or of another project.") from None
        return found

    def _advance(self, total: Any) -> None:
        try:
            self.asked.append(self._plan.send(total))
        except StopIteration as end:
            self.found = end.value


def prepared_by(project: Project, session: Any) -> Preparing:
    """Ask the sites of a project, through a session with them, until the plan is at its end.

    Parameters
    ----------
    project : Project
        What the parties agree on.
    session : dualopt.engine._session.Session
        With the sites.

    Raises
    ------
    LostError
        If a site does not answer, or refuses.
    ValueError
        If an answer is one that no rows can give, which names the site; or no features can be made of the answers.
    """
    preparing, latest = Preparing(project), None
    while preparing.found is None:
        latest = _together(preparing, session.ask_all(_request(preparing, latest)), project.sites)
        preparing.tell(latest)
    if preparing.totals:
        session.ask_all(_request(preparing, latest))
    return preparing


class SitePreparing:
    """A site's end: it answers what its project asks, and keeps what it is told.

    Parameters
    ----------
    project : Project
        What the parties agree on.
    rows : SiteRows
        The site's data, and in their ``X`` a table, or features.
    file : Path
        Where it keeps what it is told.

    Raises
    ------
    ValueError
        If the file is damaged.
    """

    def __init__(self, project: Project, rows: Any, file: Path) -> None:
        self._data: Any = rows  # None when they were given up
        self._file = file
        self._answers: list[protocol.Summary] = []
        self._features: Numbers | None = None
        self._preparing = Preparing.from_text(project, file.read_text()) if file.exists() else Preparing(project)
        self._kept = len(self._preparing.totals)  # in the file

    @property
    def found(self) -> Prepared | None:
        """How rows become features, at the end."""
        return self._preparing.found

    @property
    def asks(self) -> bool:
        """Whether the project asks for anything."""
        return bool(self._preparing.asked)

    def given_up(self) -> Any:
        """Return the site's data, for what is made of them; only answers that were given can be given again."""
        data, self._data, self._features = self._data, None, None
        return data

    def answer(self, request: protocol.Prepare) -> protocol.Summary:
        """Take what the answers of all came to, and return that of this site to the next question.

        Raises
        ------
        RefusedError
            If the request does not follow, few rows are behind an answer, or rows cannot be prepared.
        """
        known = self._preparing
        if request.project != known.project.fingerprint:
            raise RefusedError(f"the server prepares the project {request.project}", code="project")
        if not 0 <= request.step <= len(known.totals) + (known.found is None):
            raise RefusedError(f"step {request.step} does not follow {len(known.totals)}", code="order")
        if request.step > 0:
            self._take(request)
        if request.step == len(known.asked):  # there is no other question
            return protocol.Summary(request.step, None, "")
        while len(self._answers) <= request.step:
            self._answers.append(self._answer(len(self._answers)))
        return self._answers[request.step]

    def _take(self, request: protocol.Prepare) -> None:
        known = self._preparing
        with refusing("prepare"):
            total = _told(known.asked[request.step - 1], request.numbers, request.words)
            if request.step > len(known.totals):
                self._require_own(known.asked[-1], total)
                known.tell(total)
        if self._kept < len(known.totals):
            write_atomically(self._file, lambda file: file.write(known.to_text()))
            self._kept = len(known.totals)
        before = known.totals[request.step - 1]
        same = np.array_equal(before, total) if isinstance(before, np.ndarray) else before == total
        if not same:
            raise RefusedError(f"what all answer to question {request.step} was another before", code="prepared")

    def _require_own(self, asked: Asked, total: Any) -> None:
        """Refuse categories of all that leave out some of this site."""
        if asked.question.kind == "words":
            pairs = zip(self._data.X.words, total, strict=True)
            whole = all({*(own or ())} <= {*(everybody or ())} for own, everybody in pairs)
            require(whole, "categories of all leave out some of this site")

    def _answer(self, step: int) -> protocol.Summary:
        asked, least = self._preparing.asked[step], self._preparing.project.least_rows
        if self._data is None:
            raise RefusedError("its rows are prepared, and in use", code="order")
        with refusing("prepare"):
            rows = self._data.X if asked.of_tables else self._numbers(asked.columns)
            found = rows.answer(asked.question)
            fewest = self._fewest(asked)
        if fewest < least:
            raise RefusedError(f"{fewest} rows are behind an answer, and {least} must be", code="few")
        if asked.question.kind == "words":
            return protocol.Summary(step, None, json.dumps(found))
        return protocol.Summary(step, found, "")

    def _numbers(self, columns: Columns | None) -> Numbers:
        """Return the features, not scaled, which answer questions."""
        if self._features is None:
            X = _unscaled(self._data.X, columns, self._preparing.project.dtype)
            if self._preparing.project.divisor in SHIFTS:
                require_dense(X)
            self._features = Numbers(X.data[:, None] if is_sparse(X) else X)
        return self._features

    def _fewest(self, asked: Asked) -> int:
        """Return the smallest number of rows that an answer is about, but 0."""
        rows = self._data.X
        if not asked.of_tables:
            return self._data.size
        counts = rows.counts() if asked.question.kind == "words" else rows.answer(Question("count"))[0].tolist()
        return min([rows.rows, *(int(n) for n in counts if n > 0)])


def _plan(project: Project) -> Generator[Asked, Any, Prepared]:
    """Return the plan of a project, which finds how the data of its sites become features."""
    columns, found, options = None, None, project.table_options
    if not options.refuse_all:
        plan = plan_of_columns(project.feature_names, options)
        columns = yield from _asking(plan, of_tables=True, width=project.features)
    if project.divisor in OF_ALL_ROWS:
        width = project.features if columns is None else len(columns.feature_names)
        plan = plan_of_numbers(str(project.divisor), project.dtype)
        found = yield from _asking(plan, of_tables=False, width=width, columns=columns)
    return Prepared(columns, scaling_of(project.divisor, found))


def _asking(plan: Plan, *, of_tables: bool, width: int, columns: Columns | None = None) -> Generator[Asked, Any, Any]:
    """Ask the questions of a plan, and return what it finds."""
    try:
        question = next(plan)
        while True:
            question = plan.send((yield Asked(question, of_tables, width, columns)))
    except StopIteration as end:
        return end.value


def _request(preparing: Preparing, latest: Any) -> protocol.Prepare:
    """Tell what the latest answers came to."""
    numbers = latest if isinstance(latest, np.ndarray) else None
    words = "" if latest is None or numbers is not None else json.dumps(latest)
    return protocol.Prepare(preparing.project.fingerprint, len(preparing.totals), numbers, words)


def _together(preparing: Preparing, answers: Sequence[protocol.Summary], sites: Sequence[str]) -> Any:
    """Return what answers come to, each of which rows can have."""
    asked, found = preparing.asked[-1], []
    for site, answer in zip(sites, answers, strict=True):
        try:
            require(answer.step == len(preparing.totals), "its answer is to another question")
            found.append(_told(asked, answer.numbers, answer.words))
        except (ValueError, TypeError, RecursionError) as error:
            raise ValueError(f"site {site} cannot be prepared: {str(error).rstrip('.')}.") from None
    if asked.question.kind == "words":
        return united(preparing.project.feature_names, found)
    return combined(asked.question, found)


def _told(asked: Asked, numbers: Any, words: str) -> Any:
    """Return what a message tells of a question, and refuse what no rows have."""
    if asked.question.kind == "words":
        told = json.loads(words)
        return _words(told, asked.width)
    require(numbers is not None, "its answer has no numbers")
    require_sound(asked.question, numbers, asked.width)
    return numbers


def _words(told: Any, width: int) -> tuple[tuple[str, ...] | None, ...]:
    """Return categories that were told as a list in JSON."""
    require(isinstance(told, list) and len(told) == width, "its categories are not those of its columns")
    for words in told:
        listed = isinstance(words, list) and all(isinstance(word, str) for word in words)
        require(words is None or (listed and words == sorted({*words})), "its categories are not words in order")
    return tuple(None if words is None else tuple(words) for words in told)


def _unscaled(rows: Any, columns: Columns | None, dtype: str) -> Any:
    """Return the features of a site's data before they are scaled."""
    return converted(rows if columns is None else columns.matrix(rows), dtype)
