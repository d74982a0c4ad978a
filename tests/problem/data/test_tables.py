"""Tables in files: what NumPy arrays give is what csv and Parquet give, and each defect has its sentence."""

from __future__ import annotations

import bz2
import gzip
import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dualopt import Trace, linear_model
from dualopt.app.cli import main
from dualopt.problem.build import build_problem
from dualopt.problem.data import load
from dualopt.problem.options import ProblemOptions
from tests.programs import ended, refusal

RNG = np.random.default_rng(3)
M = 40
X = RNG.standard_normal((M, 3))
HOSPITALS = np.array(["Lyon", "Basel", "NA"])[RNG.integers(0, 3, M)]
SICK = np.where(RNG.random(M) < 0.5, "yes", "no")
TABLE = pd.DataFrame({"age": X[:, 0], "größe": X[:, 1], "dose": X[:, 2], "hospital": HOSPITALS, "sick": SICK})


def semicolons(path: Path) -> Path:
    TABLE.to_csv(path / "t.csv", index=False, sep=";")
    return path / "t.csv"


def compressed(path: Path, module: Any, end: str) -> Path:
    file = path / f"t.csv.{end}"
    file.write_bytes(module.compress(TABLE.to_csv(index=False).encode()))
    return file


def written(path: Path, name: str, text: str, encoding: str = "utf-8") -> Path:
    (path / name).write_bytes(text.encode(encoding))
    return path / name


def saved(path: Path, name: str, save: Any) -> Path:
    save(path / name)
    return path / name


WRITERS = {
    "csv": lambda p: saved(p, "t.csv", lambda f: TABLE.to_csv(f, index=False)),
    "csv of polars": lambda p: saved(p, "t.csv", pl.DataFrame(TABLE.to_dict("list")).write_csv),
    "semicolons": semicolons,
    "tabs": lambda p: saved(p, "t.tsv", lambda f: TABLE.to_csv(f, index=False, sep="\t")),
    "bars": lambda p: saved(p, "t.csv", lambda f: TABLE.to_csv(f, index=False, sep="|")),
    "quotes": lambda p: saved(p, "t.csv", lambda f: TABLE.to_csv(f, index=False, quoting=1)),
    "gz": lambda p: compressed(p, gzip, "gz"),
    "bz2": lambda p: compressed(p, bz2, "bz2"),
    "Windows": lambda p: written(p, "t.csv", TABLE.to_csv(index=False, lineterminator="\r\n"), "utf-8-sig"),
    "Parquet": lambda p: saved(p, "t.parquet", TABLE.to_parquet),
    "Parquet with an index": lambda p: saved(p, "t.parquet", TABLE.set_index(np.arange(M)[::-1]).to_parquet),
    "Parquet of polars": lambda p: saved(p, "t.parquet", pl.DataFrame(TABLE.to_dict("list")).write_parquet),
    "Parquet categories": lambda p: saved(p, "t.pq", TABLE.astype({"hospital": "category"}).to_parquet),
}


@pytest.mark.parametrize("name", WRITERS)
def test_a_table_is_the_arrays_that_it_holds(name: str, tmp_path: Path) -> None:
    path = WRITERS[name](tmp_path)
    problem = build_problem(ProblemOptions(data=str(path), label="sick", client="hospital", scale="none", mu=0.1))
    reference = linear_model(X, SICK, loss="logistic", mu=0.1, clients=HOSPITALS)
    theta = RNG.standard_normal(4)
    for one, other in zip(problem.rows.value_and_gradient(theta), reference.value_and_gradient(theta), strict=True):
        np.testing.assert_array_equal(one, other)
    model: Any = problem.rows
    assert model.classes == ("no", "yes")
    assert model.client_names == ("Basel", "Lyon", "NA")  # a word, not a missing one
    assert model.feature_names == ("age", "größe", "dose")


def test_names_written_as_integers_are_in_their_order(tmp_path: Path) -> None:
    path = written(tmp_path, "t.csv", "x,y,site\n1,0,9\n2,1,10\n3,0,9\n4,1,10\n")
    data = load(path, label="y", client="site")
    assert data.client_names == (9, 10)
    path = written(tmp_path, "t.csv", "x,y,site\n1,0,09\n2,1,9\n3,0,09\n4,1,9\n")
    assert load(path, label="y", client="site").client_names == ("09", "9")


def test_kinds_of_labels(tmp_path: Path) -> None:
    for labels, expected in {
        "truth": (["true", "false"] * 2, [True, False] * 2),
        "integers": (["3", "7"] * 2, [3, 7] * 2),
        "numbers": (["0.5", "-1e3"] * 2, [0.5, -1000.0] * 2),
    }.values():
        text = "x,y\n" + "".join(f"{i},{label}\n" for i, label in enumerate(labels))
        np.testing.assert_array_equal(load(written(tmp_path, "t.csv", text), label="y").y, expected)


def test_without_clients_rows_are_dealt_out(tmp_path: Path) -> None:
    path = WRITERS["csv"](tmp_path)
    table = TABLE.drop(columns="hospital")
    table.to_csv(path, index=False)
    problem = build_problem(ProblemOptions(data=str(path), label="sick", clients=4))
    assert problem.rows.n_clients == 4
    assert "(iid)" in problem.partition


def test_an_archive_with_named_clients(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", X=X, y=SICK, clients=HOSPITALS)
    problem = build_problem(ProblemOptions(data=str(tmp_path / "a.npz"), partition="natural", mu=0.1))
    reference = linear_model(X, SICK, loss="logistic", mu=0.1, clients=HOSPITALS)
    theta = RNG.standard_normal(4)
    np.testing.assert_array_equal(problem.rows.value(theta), reference.value(theta))
    model: Any = problem.rows
    assert model.client_names == reference.client_names


def test_the_program_keeps_the_classes(tmp_path: Path, capsys, undrawn) -> None:
    path, out = WRITERS["csv"](tmp_path), tmp_path / "out"
    words = ("run", "--data", path, "--label", "sick", "--client", "hospital", "--rounds", 2, "--out", out)
    assert ended(main, *words) == 0
    assert "3 (natural)" in capsys.readouterr().out
    trace = Trace.from_npz(out / "trace.npz")
    assert trace.parameters["classes"] == ["no", "yes"]
    assert trace.parameters["dtype"] == "float64"
    with np.load(out / "trace.npz") as archive:
        assert archive["classes"].tolist() == ["no", "yes"]
    options = json.loads((out / "run.json").read_text())["options"]
    assert (options["label"], options["client"]) == ("sick", "hospital")
    assert Trace.from_csv(out / "trace.csv").parameters["classes"] == ["no", "yes"]


def test_features_of_very_different_scale_get_a_hint(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    TABLE.assign(dose=1e5 * TABLE["dose"]).to_csv(path, index=False)
    options: dict[str, Any] = {"data": str(path), "label": "sick", "client": "hospital"}
    problem = build_problem(ProblemOptions(**options))
    assert problem.condition > 1e6
    assert problem.added["hint"].endswith("which makes kappa large: try --scale standard")
    assert build_problem(ProblemOptions(**options, scale="standard")).added == {}
    TABLE.to_csv(path, index=False)  # a small mu makes kappa large, and scaling would not help
    problem = build_problem(ProblemOptions(**options, mu=1e-8))
    assert problem.condition > 1e6
    assert problem.added == {}


GOOD = "x,y,c\n1,0,a\n2,1,b\n3,0,a\n4,1,b\n"
BAD: dict[str, tuple[Any, ...]] = {  # the file, the sentence, options other than the label y, another name
    "no label": (GOOD, "label must name the column of labels, one of 'x', 'y', 'c'.", {}),
    "another label": (GOOD, "label must name a column, one of 'x', 'y', 'c'; not 'z'.", {"label": "z"}),
    "another client": (GOOD, "client must name a column, one of 'x', 'c'; not 'z'.", {"label": "y", "client": "z"}),
    "one column twice": (GOOD, "client must name a column, one of 'x', 'c'; not", {"label": "y", "client": "y"}),
    "words": (GOOD, "X: column 'c' must hold numbers, but row 0 (counted from 0) holds 'a': make numbers"),
    "decimal commas": ("x;y\n1,5;0\n2,5;1\n", "X: column 'x' must hold numbers, but row 0"),
    "an empty cell": ("x,y\n1,0\n,1\n", "X: column 'x' must not have missing values, but row 1"),
    "an empty label": ("x,y\n1,0\n2,\n", "y must have no missing label, but row 1"),
    "an empty client": (
        "x,y,c\n1,0,a\n2,1,\n",
        "clients must have no missing name, but row 1",
        {"label": "y", "client": "c"},
    ),
    "nan": ("x,y\n1,0\nnan,1\n", "X: column 'x' must not have missing values, but row 1"),
    "dates": ("x,y\n2020-01-01,0\n2020-01-02,1\n", "X: column 'x' must hold numbers, not times"),
    "no names": ("1,0\n2,1\n", "path .* must begin with a line of column names, not with numbers."),
    "names twice": ("x,x,y\n1,1,0\n", "X has two columns named 'x': rename or drop one."),
    "row numbers": (",x,y\n0,1,0\n1,2,1\n", "path .* has a column without a name, perhaps row numbers"),
    "ragged": ("x,y\n1,0\n2\n", "path .* cannot be read as a table: CSV parse error: .*Expected 2 col"),
    "empty": ("", "path .* cannot be read as a table: Empty CSV file."),
    "no rows": ("x,y\n", "X must be a matrix with at least one row and one column"),
    "no rows of clients": (
        "x,y,c\n",
        "X must be a matrix with at least one row and one column, but its shape is (0, 1).",
        {"label": "y", "client": "c"},
    ),
    "labels alone": ("y\n1\n0\n", "X must be a matrix with at least one row and one column"),
    "no Parquet": (
        GOOD,
        "path .* cannot be read as a table: Parquet magic bytes not found",
        {"label": "y"},
        "t.parquet",
    ),
    "no gzip": (GOOD, "path .* cannot be read", {"label": "y"}, "t.csv.gz"),
    "an option of another kind": (GOOD, "option 'split' is not known for data", {"label": "y", "split": "test"}),
}


@pytest.mark.parametrize("name", BAD)
def test_each_defect_has_its_sentence(name: str, tmp_path: Path) -> None:
    found: tuple[Any, ...] = (*BAD[name], *({"label": "y"}, "t.csv")[len(BAD[name]) - 2 :])
    text, sentence, options, file = found
    path = written(tmp_path, file, text)
    pattern = re.escape(sentence).replace(r"\.\*", ".*")
    with pytest.raises(ValueError, match="^" + pattern) as info:
        load(str(path), **options)
    assert str(info.value).endswith(".")
    assert "\n" not in str(info.value)


def test_the_program_says_that_a_table_has_no_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    TABLE[:0].to_csv(tmp_path / "t.csv", index=False)
    TABLE[:0].to_parquet(tmp_path / "t.parquet")
    shape = (0, TABLE.shape[1] - 2)
    for file in ("t.csv", "t.parquet"):
        sentence = f"X must be a matrix with at least one row and one column, but its shape is {shape}."
        words = ("run", "--data", tmp_path / file, "--label", "sick", "--client", "hospital")
        assert refusal(capsys, main, *words) == sentence


def test_latin_1_is_named(tmp_path: Path) -> None:
    path = written(tmp_path, "t.csv", "größe,y\n1,0\n2,1\n", "latin-1")
    with pytest.raises(ValueError, match=r"^path .* cannot be read as a table: it is not in UTF-8\.$"):
        load(str(path), label="größe")


def test_a_partition_beside_a_column_is_refused(tmp_path: Path) -> None:
    path = WRITERS["csv"](tmp_path)
    with pytest.raises(ValueError, match=r"^partition must be natural where client names a column, not 'by-label'\.$"):
        build_problem(ProblemOptions(data=str(path), label="sick", client="hospital", partition="by-label"))
    with pytest.raises(ValueError, match=r"^data_param must not be label, which has an option of its own\.$"):
        build_problem(ProblemOptions(data=str(path), data_param=["label=sick"]))
    with pytest.raises(ValueError, match=r"^option 'label' is not known for data 'digits', which takes none\.$"):
        build_problem(ProblemOptions(data="digits", label="sick"))


def test_without_pyarrow_the_sentence_says_what_to_install(tmp_path: Path, monkeypatch, capsys) -> None:
    path = WRITERS["csv"](tmp_path)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    said = refusal(capsys, main, "run", "--data", path, "--label", "sick")
    assert said == "data 't.csv' needs pyarrow: pip install \"dualopt[frames]\"."


def test_what_takes_more_than_the_memory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small compressed file may hold any number of rows: reading ends early, or does not begin."""
    text = written(tmp_path, "t.csv", "x,y\n" + "0,1\n0,2\n" * 5000)
    packed = tmp_path / "t.csv.gz"
    packed.write_bytes(gzip.compress(text.read_bytes()))
    table = tmp_path / "t.parquet"
    pd.DataFrame({"x": np.zeros(10**4), "y": np.tile([1.0, 2.0], 5000)}).to_parquet(table)
    assert packed.stat().st_size < 1000
    labels, features = ("dualopt.problem.data._table_files", 4 * 10**5), ("dualopt.problem.data._registry", 16 * 10**4)
    for path in (text, packed, table):
        for (where, enough), too_little in ((labels, 10**5), (features, 16 * 10**4 - 8)):
            with monkeypatch.context() as patch:
                patch.setattr(f"{where}.free_memory", lambda room=enough: room)
                assert load(str(path), label="y").X.shape == (10**4, 1)
                patch.setattr(f"{where}.free_memory", lambda room=too_little: room)
                with pytest.raises(ValueError, match=r"^path .* does not fit: .*\.$"):
                    load(str(path), label="y")


def test_what_does_not_fit_has_a_cure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the free memory holds the features; fewer rows fit, and so do all in single precision."""
    path = written(tmp_path, "t.csv", "x,y\n" + "0,1\n0,2\n" * 500)
    monkeypatch.setattr("dualopt.problem.data._registry.free_memory", lambda: 2 * 8 * 999)
    options = ProblemOptions(data=str(path), label="y", clients=2)
    sentence = (
        "its features, 1000 x 1, take 8e[+]03 bytes, more than half of the free memory: read fewer rows [(]--rows[)]"
    )
    with pytest.raises(ValueError, match=rf"^path .* does not fit: {sentence}.*\.$"):
        build_problem(options)
    assert sum(build_problem(replace(options, rows=999)).sizes) == 999
    assert sum(build_problem(replace(options, dtype="float32")).sizes) == 1000


def test_a_changed_bit_of_a_parquet_page_with_a_checksum_is_found(tmp_path: Path) -> None:
    path, x = tmp_path / "t.parquet", np.linspace(0.0, 1.0, 8)
    table = pa.table({"x": x, "y": np.tile([1.0, 2.0], 4)})
    pq.write_table(table, path, use_dictionary=False, compression="none", write_page_checksum=True)
    content = bytearray(path.read_bytes())
    assert load(str(path), label="y").X[:, 0].tolist() == x.tolist()
    content[content.index(x.tobytes()) + 20] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"^path .* cannot be read as a table: could not verify page integrity"):
        load(str(path), label="y")


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_columns_that_are_dropped_may_hold_anything(tmp_path: Path, kind: str) -> None:
    path, plain = tmp_path / f"t.{kind}", TABLE.drop(columns=["dose", "hospital"])
    wide = plain.assign(name=[f"P{i}" for i in range(M)], note=None, dose=X[:, 2])
    getattr(wide, f"to_{kind}")(path, index=False)
    data = load(path, label="sick", drop=["name", "note", "dose"])
    assert data.feature_names == ("age", "größe")
    np.testing.assert_allclose(data.X, X[:, :2], rtol=1e-12)
    options = ProblemOptions(data=str(path), label="sick", drop=["name", "note"], clients=4)
    assert build_problem(options).schema.feature_names == ("age", "größe", "dose")
    for dropped, words in ((["nme"], "not 'nme'"), (["sick"], "not 'sick'"), (["note", "note"], "not 'note'")):
        with pytest.raises(ValueError, match=rf"^drop must name a column, one of .*; {words}\.$"):
            load(path, label="sick", drop=dropped)


def test_a_table_without_columns_is_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({}), tmp_path / "t.parquet")
    with pytest.raises(ValueError, match=r"^path .* has no columns\.$"):
        load(str(tmp_path / "t.parquet"), label="y")


@pytest.mark.parametrize(
    ("cells", "shown"), [([b"1", b"\xff"], "b'1'"), ([[1.0], [2.0]], "[1.0]"), ([{"a": 1}] * 2, "{'a': 1}")]
)
def test_cells_that_are_no_numbers_are_refused_in_one_sentence(cells: Any, shown: str, tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"x": cells, "y": [0, 1]}), path)
    with pytest.raises(ValueError, match=r"^X: column .x. must hold numbers, but row 0 .* holds ") as info:
        np.asarray(load(str(path), label="y").X)
    assert shown in str(info.value)
