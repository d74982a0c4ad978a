"""Where blocks of a table end changes no number and no sentence; rows that stay in a file are not copied."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest

from dualopt.problem.data import _npz, _table_files, load
from dualopt.problem.data._registry import open_source

M = 400
RNG = np.random.default_rng(5)
CELLS: dict[str, list[str]] = {
    "number": [repr(float(x)) for x in RNG.standard_normal(M) * 10.0 ** RNG.integers(-300, 300, M)],
    "long": [str(2**53 + int(n)) for n in RNG.integers(0, 2**60, M)],
    "longer": [str(n) for n in 2**64 + np.arange(M, dtype=object)],
    "blank": [f" {n} " for n in RNG.integers(-9, 9, M)],
    "truth": [["true", "False", "0", "TRUE"][n] for n in [0, *RNG.integers(0, 4, M - 1)]],
    "quoted": [f'"{x}"' for x in RNG.standard_normal(M)],
    "label": [["a, or\nnot", "b"][n] for n in RNG.integers(0, 2, M)],
}


def written(path: Path, cells: dict[str, list[str]]) -> str:
    quoted = {**cells, "label": [f'"{x}"' for x in cells["label"]]} if "label" in cells else cells
    rows = [",".join(row) for row in zip(*quoted.values(), strict=True)]
    (path / "t.csv").write_text("\n".join([",".join(cells), *rows]) + "\n")
    return str(path / "t.csv")


def typed(path: Path) -> str:
    columns: dict[str, Any] = {
        "single": pa.array(RNG.standard_normal(M).astype(np.float32)),
        "long": pa.array([2**53 + int(n) for n in RNG.integers(0, 2**60, M)]),
        "truth": pa.array(RNG.random(M) < 0.5),
        "decimal": pa.array([float(n) / 8 for n in RNG.integers(0, 99, M)]).cast(pa.decimal128(9, 3)),
        **{f"x{j}": pa.array(RNG.standard_normal(M)) for j in range(20)},
        "label": pa.array(["yes", "no"] * (M // 2)),
    }
    pq.write_table(pa.table(columns), path / "t.parquet", row_group_size=130)
    return str(path / "t.parquet")


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_blocks_give_what_the_whole_gives(
    kind: str, dtype: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = CELLS if dtype == "float64" else {name: CELLS[name] for name in ("long", "blank", "truth", "label")}
    path = written(tmp_path, cells) if kind == "csv" else typed(tmp_path)
    whole = load(path, label="label", dtype=dtype)
    if kind == "csv":
        options = pc.ParseOptions(newlines_in_values=True)
        read = [pc.read_csv(path, parse_options=options)[name].to_numpy() for name in cells if name != "label"]
    else:
        columns = pq.read_table(path).drop_columns(["label"]).columns
        read = [np.asarray(column.to_pylist(), dtype=np.float64) for column in columns]
    expected = np.stack([column.astype(np.float64) for column in read], axis=1).astype(dtype)
    np.testing.assert_array_equal(whole.X, expected)
    rows = np.sort(RNG.choice(M, 90, replace=False))
    for size in (1, 700, 5000):
        monkeypatch.setattr(_table_files, "BLOCK", size)
        parts = load(path, label="label", dtype=dtype)
        np.testing.assert_array_equal(parts.X, whole.X)
        np.testing.assert_array_equal(parts.y, whole.y)
        some = open_source(path, label="label", dtype=dtype).read(rows)
        np.testing.assert_array_equal(some, whole.X[rows])


WRONG: dict[str, tuple[dict[tuple[str, int], str], str]] = {
    "a word in the last row": ({("b", M - 1): "many"}, f"X: column 'b' must hold numbers, but row {M - 1} (.*'many'"),
    "of two columns the first": (
        {("c", 3): "x", ("b", 390): "", ("b", 395): "y"},
        "X: column 'b' must not have missing values, but row 390 ",
    ),
    "infinite before a gap": (
        {("a", 300): "inf", ("a", 301): ""},
        "X: column 'a' must not have missing or infinite values, but row 300 ",
    ),
    "a truth value among numbers": ({("c", 350): "true"}, "X: column 'c' must hold numbers, but row 350 .*'true'"),
    "a number among truth values": (
        {("c", n): "true" if n < 399 else "5" for n in range(M)},
        "X: column 'c' must hold true and false like its first row, but row 399 .* holds '5'",
    ),
    "a time": (
        {("a", 200): "2020-01-01"},
        "X: column 'a' must hold numbers, not times such as '2020-01-01' in row 200",
    ),
    "a short row": ({("c", 399): "1\n1,2"}, "path .* cannot be read as a table: CSV parse error"),
    "a label is missing": ({("y", 333): ""}, "y must have no missing label, but row 333 "),
}


@pytest.mark.parametrize("name", WRONG)
def test_where_blocks_end_changes_no_sentence(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changes, sentence = WRONG[name]
    cells = {column: [str(n % 7) for n in range(M)] for column in ("a", "b", "c", "y")}
    for (column, row), cell in changes.items():
        cells[column][row] = cell
    path, said = written(tmp_path, cells), []
    for size in (1, 300, 2**20):
        monkeypatch.setattr(_table_files, "BLOCK", size)
        with pytest.raises(ValueError, match=f"^{sentence.replace('(.*', '.*')}") as found:
            load(path, label="y")
        said.append(str(found.value))
    assert len({*said}) == 1


def test_rows_of_an_archive_stay_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = RNG.standard_normal((50, 3)), np.arange(50)
    np.savez(tmp_path / "a.npz", y=y, X=X)
    monkeypatch.setattr(_npz, "MAPPED", 1)
    data = load(tmp_path / "a.npz")
    assert not data.X.flags.writeable
    np.testing.assert_array_equal(data.X, X)
    for rows in (np.arange(7, 30), np.array([0, 4, 9])):
        np.testing.assert_array_equal(open_source(tmp_path / "a.npz").read(rows), X[rows])
    np.testing.assert_array_equal(load(tmp_path / "a.npz", scale=2).X, X / 2)
    content = bytearray((tmp_path / "a.npz").read_bytes())
    content[content.index(X.tobytes()) + 100] ^= 1
    (tmp_path / "a.npz").write_bytes(content)
    with pytest.raises(ValueError, match=r"^path .* cannot be read as a NumPy archive: Bad CRC-32"):
        load(tmp_path / "a.npz")


MEASURE = """
import resource, sys
import numpy as np
from dualopt.problem.build import build_problem
from dualopt.problem.options import ProblemOptions
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
options = {"partition": "consecutive", "intercept": "none", "mu": 0.1, "loss": "squared", "clients": 4}
build_problem(ProblemOptions(data="synthetic-regression", clients=4))
before = peak()
build_problem(ProblemOptions(data=sys.argv[1], **options)).objective.value(np.zeros(int(sys.argv[2])))
print(peak() - before)
"""


def test_a_problem_of_an_archive_takes_no_copy(tmp_path: Path) -> None:
    """Pages of the file that were touched count as resident: once the features, and with a copy they were twice."""
    m, d = 40_000, 250
    np.savez(tmp_path / "a.npz", X=RNG.standard_normal((m, d)), y=RNG.standard_normal(m))
    words = [sys.executable, "-c", MEASURE, str(tmp_path / "a.npz"), str(d)]
    taken = int(subprocess.run(words, capture_output=True, text=True, check=True, timeout=120).stdout)
    assert taken < 1.6 * 8 * m * d
