"""docs/site/guide/own_method.md, in an empty folder: its cells in turn, and what they show."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.docs.cells import cells, ran

CONTRADICTED = {"--out averaged": 1, "--out searched": 1}


def recorded(folder: str) -> dict[str, Any]:
    """Return what verify has written."""
    return json.loads(Path(folder, "verify.json").read_text())


def test_the_cells_show_what_the_page_says(tmp_path, monkeypatch, undrawn, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    for cell in cells("own_method.md"):
        ran(cell, {}, CONTRADICTED)
    out = capsys.readouterr().out
    assert any("stalls at a floor of" in found["reason"] for found in recorded("averaged")["instances"])
    for name in ("consensus.py:Consensus", "expectile.py:Expectile", "ranges.py:ranges", "potential.py:never_grows"):
        assert f"{name} keeps its contract" in out
    assert Path("compared/compare.pdf").read_bytes().startswith(b"%PDF")
    plug_ins = json.loads(Path("compared/compare.json").read_text())["plug_ins"]
    assert set(plug_ins) == {
        "averaged.py:Averaged",
        "consensus.py:Consensus",
        "expectile.py:Expectile",
        "ranges.py:ranges",
    }
    assert [case["verdict"] for case in recorded("never_grows")["cases"]] == ["holds", "holds", "violated"]
    (attacked,) = json.loads(Path("found.json").read_text())["attacks"]
    assert attacked["violated"]
    assert recorded("searched")["instances"][-1]["verdict"] == "contradicted"
    assert "def counterexample():" in out
