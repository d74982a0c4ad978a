"""Reading a csv by blocks of rows takes no more than 1.3 times reading it as a whole.

Run with ``pytest tests/benchmarks/test_tables.py --benchmark-only -s``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dualopt.problem.data import load
from dualopt.problem.data._dataset import check_features
from dualopt.problem.inputs import as_features

from .race import race

csv = pytest.importorskip("pyarrow.csv")


def test_reading_by_blocks(benchmark: Any, tmp_path: Path) -> None:
    X = np.random.default_rng(0).standard_normal((20_000, 100))
    path = tmp_path / "t.csv"
    names = ",".join([*(f"x{j}" for j in range(100)), "y"])
    np.savetxt(path, np.c_[X, np.arange(len(X)) % 2], "%.17g", delimiter=",", header=names, comments="")

    def whole() -> Any:
        with path.open("rb") as file:
            table = csv.read_csv(file, parse_options=csv.ParseOptions(newlines_in_values=True))
        features, _ = as_features(table.drop_columns(["y"]))
        check_features(features)
        return features

    found = race(benchmark, {"blocks": lambda: load(str(path), label="y").X, "whole": whole}, repetitions=9)
    np.testing.assert_array_equal(found.results["blocks"], found.results["whole"])
    ratio = found.seconds["blocks"] / found.seconds["whole"]
    print(f"\nseconds {found.seconds}, ratio {ratio:.2f}")
    assert ratio < 1.3
