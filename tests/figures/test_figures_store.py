"""The store: it returns what was stored for a description, and nothing else."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dualopt.runs.trace import Trace
from figures import _store
from figures._store import stored_number, stored_trace

ERRORS = [1.0, 0.1, 1 / 3]


def made() -> Trace:
    columns = {"round": [0, 1, 2], "error": ERRORS}
    return Trace(columns=columns, status="max_rounds", theta=np.arange(100.0), parameters={"rounds": 2})


def only_file(folder: Path) -> Path:
    (path,) = folder.iterdir()
    return path


def test_a_trace_comes_back_as_it_was(tmp_path):
    stored_trace(tmp_path / "new", "x", {"rho": 0.1}, made)
    again = stored_trace(tmp_path / "new", "x", {"rho": 0.1}, None)
    np.testing.assert_array_equal(again["error"], ERRORS)
    np.testing.assert_array_equal(again.theta, np.arange(100.0))
    assert again.parameters["key"]["rho"] == 0.1
    assert again.parameters["rounds"] == 2


def test_other_descriptions_have_other_traces(tmp_path):
    stored_trace(tmp_path, "x", {"rho": 0.1, "clients": 8}, made)
    for other in ({"rho": 0.1 + 1e-16, "clients": 8}, {"rho": 0.1, "clients": 9}, {"rho": 0.1}):
        with pytest.raises(ValueError, match="redraw: x is not stored"):
            stored_trace(tmp_path, "x", other, None)
    stored_trace(tmp_path, "x", {"clients": 8, "rho": 0.1}, None)  # the order does not matter


@pytest.mark.parametrize("damage", ["empty", "cut", "flipped", "text", "directory", "another"])
def test_a_damaged_trace_is_computed_again(tmp_path, damage):
    stored_trace(tmp_path / "a", "x", {"rho": 0.1}, made)
    stored_trace(tmp_path / "b", "x", {"rho": 0.2}, made)
    path = only_file(tmp_path / "a")
    content = path.read_bytes()
    start, end = content.index(np.array(ERRORS).tobytes()), content.index(b"PK\x01\x02")
    flip = {"flipped": start, "directory": end}.get(damage, 0)
    path.write_bytes(
        {
            "empty": b"",
            "cut": content[: len(content) // 2],
            "text": b"not an archive",
            "another": only_file(tmp_path / "b").read_bytes(),
        }.get(damage, content[:flip] + bytes([content[flip] ^ 255]) + content[flip + 1 :])
    )
    with pytest.raises(ValueError, match="is not stored"):
        stored_trace(tmp_path / "a", "x", {"rho": 0.1}, None)
    trace = stored_trace(tmp_path / "a", "x", {"rho": 0.1}, made)
    np.testing.assert_array_equal(trace["error"], ERRORS)
    stored_trace(tmp_path / "a", "x", {"rho": 0.1}, None)


def test_a_number_is_that_of_its_description(tmp_path):
    assert stored_number(tmp_path, "x", {"a": 1}, lambda: 1 / 3) == 1 / 3
    assert stored_number(tmp_path, "x", {"a": 2}, lambda: 0.2) == 0.2
    assert stored_number(tmp_path, "x", {"a": 1}, None) == 1 / 3
    with pytest.raises(ValueError, match="x is not stored"):
        stored_number(tmp_path, "x", {"a": 3}, None)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"number": 1.0}', '{"number": null, "key": null}'])
def test_a_damaged_number_is_computed_again(tmp_path, content):
    stored_number(tmp_path, "x", {"a": 1}, lambda: 0.5)
    only_file(tmp_path).write_text(content)
    with pytest.raises(ValueError, match="x is not stored"):
        stored_number(tmp_path, "x", {"a": 1}, None)
    assert stored_number(tmp_path, "x", {"a": 1}, lambda: 0.5) == 0.5


def test_a_result_of_other_code_is_computed_again_unless_it_is_kept(tmp_path, monkeypatch):
    stored_trace(tmp_path, "x", {"a": 1}, made)
    stored_number(tmp_path, "n", {"a": 1}, lambda: 0.5)
    monkeypatch.setattr(_store, "sources", lambda packages: "other")
    said: list[str] = []
    with pytest.raises(ValueError, match="x is not stored"):
        stored_trace(tmp_path, "x", {"a": 1}, None)
    with pytest.raises(ValueError, match="n is not stored"):
        stored_number(tmp_path, "n", {"a": 1}, None)
    assert stored_trace(tmp_path, "x", {"a": 1}, None, said.append)["error"].tolist() == ERRORS
    assert stored_number(tmp_path, "n", {"a": 1}, None, said.append) == 0.5
    assert said == ["x", "n"]
    with pytest.raises(ValueError, match="y is not stored"):
        stored_trace(tmp_path, "y", {"a": 2}, None, said.append)
    assert stored_number(tmp_path, "n", {"a": 1}, lambda: 0.25) == 0.25
    assert stored_number(tmp_path, "n", {"a": 1}, None) == 0.25
    assert len(list(tmp_path.iterdir())) == 2  # the stale ones were replaced
