"""Three hospitals prepare their rows together: nothing is pooled, and every digit is that of one process."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dualopt.engine import RefusedError
from dualopt.engine import _protocol as protocol
from dualopt.engine.rounds import resolve
from dualopt.engine.wire import encode
from dualopt.federation import Project, SiteSettings
from dualopt.federation.model import model_of
from dualopt.federation.preparing import Preparing, SitePreparing, _request, _words, prepared_by
from dualopt.federation.settings import site_rows
from dualopt.problem.build import build_problem
from dualopt.problem.inputs import OffsetOrigin
from dualopt.problem.options import ProblemOptions
from dualopt.runs.recording import run
from tests.federation.problems import SITES
from tests.federation.test_in_memory import Memory, memory

SIZES = {"lyon": 60, "basel": 45, "bern": 80}


def hospital(site: str) -> pd.DataFrame:
    """The table of a hospital: means differ, basel has nobody of stage III, and bern does not measure the pulse."""
    place = SITES.index(site)
    rng, m = np.random.default_rng(place), SIZES[site]
    table = pd.DataFrame(
        {
            "age": rng.integers(30 + 10 * place, 90, m).astype(float),
            "stage": rng.choice(["I", "II"] if site == "basel" else ["I", "II", "III"], m).astype(object),
            "dose": rng.uniform(0, 1 + place, m) + 1e8,
            "pulse": rng.normal(70, 5, m),
            "smokes": rng.random(m) < 0.3,
        }
    )
    sick = table["age"] / 30 + table["dose"] - 1e8 + rng.normal(0, 0.5, m) > 3
    for name in ("age", "stage"):
        table.loc[rng.random(m) < 0.1, name] = None
    if site == "bern":
        table["pulse"] = np.nan
    return table.assign(sick=np.where(sick, "yes", "no"))


def project_of(**changes: Any) -> Project:
    given: dict[str, Any] = {"scale": "standard", "missing": "median", "categories": "indicators"}
    given |= {"mu": 0.1, "rounds": 30, "certify_every": 1}
    names = tuple(hospital("lyon").columns[:-1])
    given |= {"features": len(names), "feature_names": names, "classes": ("no", "yes"), "tol": 0.0} | changes
    return Project(name="trio", sites=SITES, loss="logistic", deadline=30.0, **given)


@contextmanager
def tables(folder: Path, project: Project) -> Iterator[Memory]:
    with memory(folder, project) as m:
        for site in SITES:
            path = folder / f"{site}.csv"
            hospital(site).to_csv(path, index=False)
            kit = folder / site
            settings = SiteSettings(
                project=str(kit / "project.toml"), data=str(path), state=str(kit / "state"), label="sick"
            )
            settings.write(kit)
        yield m


def pooled(folder: Path, project: Project) -> Any:
    """The same in one process, which has all the rows: what this package has a federation for."""
    path = folder / "all.csv"
    pd.concat([hospital(site).assign(site=f"{n}") for n, site in enumerate(SITES)]).to_csv(path, index=False)
    return build_problem(
        ProblemOptions(
            data=str(path),
            label="sick",
            client="site",
            scale=project.scale,
            missing=project.missing,
            categories=project.categories,
            mu=project.mu,
            loss=project.loss,
            dtype=project.dtype,
        )
    )


RULES = {
    "as in the docs": {},
    "means, robust": {"missing": "mean", "scale": "robust"},
    "listed, minmax": {"categories": "stage=I,II,III,IV", "scale": "minmax"},
    "the largest, float32": {"scale": "max", "dtype": "float32"},
    "words alone": {"scale": "none"},
}


@pytest.mark.parametrize("rules", RULES)
def test_three_hospitals_have_the_digits_of_one_process(tmp_path: Path, rules: str) -> None:
    project = project_of(**RULES[rules])
    with tables(tmp_path, project) as m:
        assert m.serve()["refused"] is None
        record = (tmp_path / "result" / "prepared.json").read_text()
        trace = m.trace
    problem = pooled(tmp_path, project)
    expected = run(
        resolve(project.method, problem.objective), problem.objective, rounds=project.rounds, tol=0.0, certify_every=1
    )
    np.testing.assert_array_equal(trace.theta, expected.theta)
    np.testing.assert_array_equal(trace["energy"], expected["energy"])
    model = model_of(project, trace, Preparing.from_text(project, record).found)
    alone = problem.model(expected, {})
    assert model.schema.columns == alone.schema.columns
    assert model.schema.feature_names == alone.schema.feature_names
    new = hospital("basel").drop(columns="sick")
    np.testing.assert_array_equal(model.decision_function(new), alone.decision_function(new))


@pytest.mark.parametrize("rules", [{}, {"missing": "refuse", "categories": "refuse"}], ids=["table", "numbers"])
def test_exposures_of_the_sites_are_those_of_one_process(tmp_path: Path, rules: dict[str, str]) -> None:
    """A column of each site's table, which no feature is made of and no message tells."""

    def visits(site: str) -> pd.DataFrame:
        table, rng = hospital(site), np.random.default_rng(7 + SITES.index(site))
        table = table[["age", "stage", "dose"]] if not rules else table[["dose", "smokes"]].astype(float)
        return table.assign(days=rng.uniform(1, 9, len(table)), sick=rng.poisson(3.0, len(table)))

    names = tuple(visits("lyon").columns[:-2])
    given = {"loss": "poisson", "exposure": "days", "classes": (), "features": len(names), "feature_names": names}
    project = replace(project_of(), **given, **rules, algorithm="fedsplit")
    with tables(tmp_path, project) as m:
        for site in SITES:
            visits(site).to_csv(tmp_path / f"{site}.csv", index=False)
        assert m.serve()["refused"] is None
        record = (tmp_path / "result" / "prepared.json").read_text()
        trace = m.trace
    path = tmp_path / "all.csv"
    pd.concat([visits(site).assign(site=f"{n}") for n, site in enumerate(SITES)]).to_csv(path, index=False)
    options = ProblemOptions(
        data=str(path),
        label="sick",
        client="site",
        scale="standard",
        loss="poisson",
        mu=0.1,
        exposure="days",
        missing=project.missing,
        categories=project.categories,
    )
    problem = build_problem(options)
    method = resolve(project.method, problem.objective)
    expected = run(method, problem.objective, rounds=project.rounds, tol=0.0, certify_every=1)
    np.testing.assert_array_equal(trace.theta, expected.theta)
    np.testing.assert_array_equal(trace["energy"], expected["energy"])
    model = model_of(project, trace, Preparing.from_text(project, record).found)
    assert model.schema.offset == problem.model(expected, {}).schema.offset == OffsetOrigin("exposure", "days")


class Sites:
    """A session with sites that are objects of this process; ``lies`` says what a site makes of its answers."""

    def __init__(self, folder: Path, project: Project, **lies: Any) -> None:
        self.lies, self.sites = lies, {}
        for site in project.sites:
            path = folder / f"{site}.csv"
            if not path.exists():
                hospital(site).to_csv(path, index=False)
            rows = site_rows(project, site, path, label="sick")
            self.sites[site] = SitePreparing(project, rows, folder / f"{site}.prepared")

    def ask_all(self, request: protocol.Prepare) -> list[protocol.Summary]:
        answers = {site: preparing.answer(request) for site, preparing in self.sites.items()}
        for site, lie in self.lies.items():
            answers[site] = lie(answers[site])
        return list(answers.values())


def test_sites_remember_what_they_were_told(tmp_path: Path) -> None:
    """A run that is submitted again asks the same, also of sites that were started again, and finds the same."""
    project = project_of()
    first = prepared_by(project, Sites(tmp_path, project))
    kept = {site: (tmp_path / f"{site}.prepared").read_bytes() for site in SITES}
    assert len({*kept.values()}) == 1
    sites = Sites(tmp_path, project)
    assert all(site.found is not None for site in sites.sites.values())
    assert prepared_by(project, sites).to_text() == first.to_text()
    assert {site: (tmp_path / f"{site}.prepared").read_bytes() for site in SITES} == kept


def test_other_totals_are_refused_for_good(tmp_path: Path) -> None:
    """A server that could ask twice would steer the search for a median to any row that it likes."""
    project = project_of()
    prepared_by(project, Sites(tmp_path, project))
    site = Sites(tmp_path, project).sites["lyon"]
    record = json.loads((tmp_path / "lyon.prepared").read_text())
    words, counts = json.dumps(record[0]), np.array(record[1])
    site.answer(protocol.Prepare(project.fingerprint, 2, counts, ""))
    for request, code in [
        (protocol.Prepare(project.fingerprint, 1, None, words.replace("III", "IV")), "prepared"),
        (protocol.Prepare(project.fingerprint, 2, counts + 1, ""), "prepared"),
        (protocol.Prepare(project.fingerprint, 1, None, words[:-1]), "prepare"),
        (protocol.Prepare(project.fingerprint, 1, counts, ""), "prepare"),
        (protocol.Prepare(project.fingerprint, 2, counts[:, 1:], ""), "prepare"),
        (protocol.Prepare(project.fingerprint, len(record) + 1, None, ""), "order"),
        (protocol.Prepare(project.fingerprint, -1, None, ""), "order"),
        (protocol.Prepare("another", 1, None, words), "project"),
    ]:
        with pytest.raises(RefusedError) as refused:
            site.answer(request)
        assert refused.value.code == code
    fresh = SitePreparing(project, site_rows(project, "lyon", tmp_path / "lyon.csv", label="sick"), tmp_path / "new")
    with pytest.raises(RefusedError, match="step 2 does not follow 0") as refused:
        fresh.answer(protocol.Prepare(project.fingerprint, 2, counts, ""))
    assert refused.value.code == "order"
    fresh.given_up()
    with pytest.raises(RefusedError, match="in use"):
        fresh.answer(protocol.Prepare(project.fingerprint, 0, None, ""))


def test_categories_that_leave_out_those_of_a_site_are_refused(tmp_path: Path) -> None:
    project = project_of(missing="refuse", scale="none")
    hospital("lyon").dropna().to_csv(tmp_path / "lyon.csv", index=False)
    alone = replace(project, sites=("lyon",))
    site = Sites(tmp_path, alone).sites["lyon"]
    site.answer(protocol.Prepare(alone.fingerprint, 0, None, ""))
    told = json.dumps([None, ["I"], None, None, None])
    with pytest.raises(RefusedError, match="categories of all leave out") as refused:
        site.answer(protocol.Prepare(alone.fingerprint, 1, None, told))
    assert refused.value.code == "prepare"


@pytest.mark.parametrize("what", ["a rare category", "few numbers", "few rows"])
def test_few_rows_tell_nothing(tmp_path: Path, what: str) -> None:
    """And a category that the project lists is told by nobody."""
    table = hospital("lyon")
    if what == "a rare category":
        table.loc[:3, "stage"] = "IV"
    elif what == "few numbers":
        table["pulse"] = table["pulse"].where(np.arange(len(table)) < 4)
    else:
        table = table[:4].assign(age=[40.0, 50, 60, 70], stage="I", sick=["no", "yes"] * 2)
    table.to_csv(tmp_path / "lyon.csv", index=False)
    project = project_of()
    with pytest.raises(RefusedError, match="4 rows are behind an answer, and 5 must be") as refused:
        prepared_by(project, Sites(tmp_path, project))
    assert refused.value.code == "few"
    for path in tmp_path.glob("*.prepared"):
        path.unlink()
    least = replace(project, least_rows=4)
    assert prepared_by(least, Sites(tmp_path, least)).found is not None
    if what == "a rare category":
        for path in tmp_path.glob("*.prepared"):
            path.unlink()
        listed = project_of(categories="stage=I,II,III,IV")
        assert prepared_by(listed, Sites(tmp_path, listed)).found is not None


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_features_are_scaled_and_of_the_type_of_the_project(dtype: str) -> None:
    project = Project(name="a", sites=("b",), classes=(0, 1), features=2, scale="max", dtype=dtype)
    preparing = Preparing(project)
    preparing.tell(np.array([[4.0]]))
    assert preparing.found is not None
    found = preparing.found.features(np.array([[4.0, -1.0], [2.0, 0.0]]), project.dtype)
    assert found.dtype == dtype
    assert found.tolist() == [[1.0, -0.25], [0.5, 0.0]]


@pytest.mark.parametrize("column", ["stage", "pulse"])
def test_one_row_tells_nothing(tmp_path: Path, column: str) -> None:
    table = hospital("lyon")
    table.loc[0, column] = "IV" if column == "stage" else 60.0
    table.loc[1:, column] = table.loc[1:, column] if column == "stage" else np.nan
    table.to_csv(tmp_path / "lyon.csv", index=False)
    project = project_of()
    with pytest.raises(RefusedError, match="1 rows are behind an answer, and 5 must be"):
        prepared_by(project, Sites(tmp_path, project))


@pytest.mark.parametrize(
    ("told", "sentence"),
    [
        ([["a", "b"]], "are not those of its columns"),
        ([None, ["a"], None], "are not those of its columns"),
        ("ab", "are not those of its columns"),
        ({"a": None, "b": None}, "are not those of its columns"),
        ([None, [1, 2]], "are not words in order"),
        ([["a", "a"], None], "are not words in order"),
        ([["b", "a"], None], "are not words in order"),
        (["ab", None], "are not words in order"),
    ],
)
def test_categories_that_no_table_has(told: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=f"its categories {sentence}"):
        _words(told, 2)
    assert _words([None, ["a", "b"]], 2) == (None, ("a", "b"))
    assert _words([[], ["b"]], 2) == ((), ("b",))


def test_what_is_asked_with_what_answers_came_to() -> None:
    """At first with nothing, then with categories, then with numbers."""
    project = project_of()
    preparing = Preparing(project)
    assert _request(preparing, None) == protocol.Prepare(project.fingerprint, 0, None, "")
    preparing.tell(categories := (None, ("I", "II"), None, None, None))
    found = _request(preparing, categories)
    assert (found.step, found.numbers, json.loads(found.words)) == (1, None, [None, ["I", "II"], None, None, None])
    preparing.tell(counts := np.array([[9.0, 0.0, 9.0, 9.0, 9.0]]))
    found = _request(preparing, counts)
    assert (found.step, found.numbers, found.words) == (2, counts, "")


def changed(numbers: Any) -> Any:
    return lambda answer: answer._replace(numbers=numbers(answer.numbers), words="")


LIES = {
    "nothing": lambda answer: answer._replace(numbers=None, words=""),
    "another step": lambda answer: answer._replace(step=7),
    "another shape": changed(lambda x: np.ones((1, 2))),
    "NaN": changed(lambda x: np.full((1, 5), np.nan)),
    "less than nothing": changed(lambda x: np.full((1, 5), -1.0)),
    "words in the place of numbers": lambda answer: answer._replace(numbers=None, words="[[]]"),
    "damaged words": lambda answer: answer._replace(numbers=None, words='[["b", "a"], 1'),
}


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("categories", ["indicators", "stage=I,II,III"])
def test_a_site_that_answers_what_no_rows_can_is_named(tmp_path: Path, lie: str, categories: str) -> None:
    project = project_of(categories=categories)
    with pytest.raises(ValueError, match=r"^site basel cannot be prepared: .*\.$"):
        prepared_by(project, Sites(tmp_path, project, basel=LIES[lie]))


def test_numbers_and_words_in_one_column_are_refused(tmp_path: Path) -> None:
    hospital("basel").assign(stage=2).to_csv(tmp_path / "basel.csv", index=False)
    project = project_of()
    with pytest.raises(ValueError, match="column 'stage' must not hold numbers in some tables and words in others"):
        prepared_by(project, Sites(tmp_path, project))


def test_a_column_that_is_missing_everywhere_is_refused(tmp_path: Path) -> None:
    for site in SITES:
        hospital(site).assign(pulse=np.nan).to_csv(tmp_path / f"{site}.csv", index=False)
    project = project_of()
    with pytest.raises(ValueError, match="column 'pulse' must not be missing in all rows: drop it"):
        prepared_by(project, Sites(tmp_path, project))


def test_only_its_own_questions_are_answered(tmp_path: Path) -> None:
    """A project with nothing to find asks nothing; another one asks what its plan has, in this order."""
    plain = project_of(scale="none", missing="refuse", categories="stage=I,II,III; smokes=False,True")
    assert Preparing(plain).asked == []
    assert not plain.is_prepared
    with pytest.raises(ValueError, match="damaged, or of another project"):
        Preparing.from_text(plain, "[[[1.0]]]")
    for text in ("", "[", "7", "[null]", '[["a"]]'):
        with pytest.raises(ValueError, match="damaged, or of another project"):
            Preparing.from_text(project_of(), text)
    project = project_of(missing="mean")
    found = prepared_by(project, Sites(tmp_path, project))
    kinds = [asked.question.kind for asked in found.asked]
    assert kinds == ["words", "count", "sum", "count", "sum", "exponent", "squares"]


def test_rounds_come_after(tmp_path: Path) -> None:
    """What a site is asked before its rows are prepared it refuses, and what prepares them together with a round."""
    project = project_of()
    with tables(tmp_path, project) as m:
        for requests in (
            [protocol.Describe()],
            [protocol.Prepare(project.fingerprint, 0, None, ""), protocol.Describe()],
        ):
            with pytest.raises(RefusedError) as refused:
                m.sites["lyon"]._answers(encode(requests))
            assert refused.value.code == "order"
