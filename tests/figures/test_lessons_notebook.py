"""The notebooks of the chapters: their numbers are those of the chapters; and a chapter in a notebook."""

from __future__ import annotations

import ast
import os
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest

from figures.lessons import CHAPTERS, load, worst, your_own
from figures.lessons._notebook import cells, notebook, source_of
from tests.figures.course import drawn

ROOT = Path(__file__).resolve().parents[2]
CODE = 'from figures.lessons import show\nshow("chain", height=700)'
CLOSE = 1e-9  # of the entry, and of the largest one up to 1
SOLVED = {"worst": 10 * worst.CERTIFIED, "proved": 2 * your_own.TOLERANCE}  # what stored programs may differ by


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_notebook_draws_the_numbers_of_its_chapter(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It runs, asserts for itself, and has every quantity that the pictures of the chapter draw."""
    if name in ("worst", "your_own"):
        pytest.importorskip("cvxpy")
    chapter, own = load(name), executed(name)
    plt.close("all")
    chosen = {s.name: own.get(s.name, s.start) for s in chapter.sliders}
    assert all(chosen[s.name] in s.values for s in chapter.sliders)
    if name == "your_own":  # which of several clients that are equally slow a solver finds is its own affair
        at, stored = (own["a"], own["active"]), your_own.machine()
        found = stored | {at: stored[at]._replace(slowest=tuple(own["slowest"]))}
        monkeypatch.setattr(your_own, "machine", lambda: found)
        your_own._run.cache_clear()
    for key, wanted in drawn(chapter, chosen).items():
        found = np.ravel(np.asarray(own["shown"][key], dtype=float))
        assert found.shape == wanted.shape, key
        assert np.array_equal(np.isnan(found), np.isnan(wanted)), key
        off, size = np.nan_to_num(found - wanted), np.abs(np.nan_to_num(wanted))
        assert np.all(np.abs(off) <= SOLVED.get(key, CLOSE) * (size + min(np.max(size), 1.0))), key
    your_own._run.cache_clear()
    assert capsys.readouterr().out.count("\n") >= 1  # a number is said, not only drawn


def executed(name: str) -> dict[str, Any]:
    """Return the names that the code of a notebook leaves."""
    own: dict[str, Any] = {"__name__": f"notebook_{name}"}
    with plt.rc_context({"backend": "agg"}):
        for kind, code in cells(name):
            if kind == "code":
                exec(compile(code, f"{name}.ipynb", "exec", dont_inherit=True), own)
    return own


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_notebook_needs_public_functions_only(name: str) -> None:
    code = "\n".join(text for kind, text in cells(name) if kind == "code")
    modules = {node.module for node in ast.walk(ast.parse(code)) if isinstance(node, ast.ImportFrom)}
    modules |= {a.name for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Import) for a in node.names}
    parts = {part for module in modules for part in str(module).split(".")}
    assert {str(module).split(".")[0] for module in modules} <= {
        *("dualopt", "numpy", "matplotlib", "dataclasses", "typing")
    }
    assert not any(part.startswith("_") for part in parts)
    assert source_of(name).read_text(encoding="utf-8").startswith("---\nfile_format: mystnb\n")
    assert next(cells(name))[1].splitlines()[0] == f"# {load(name).title}"


def test_notebooks_are_valid() -> None:
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed (extra: docs)")
    for name in CHAPTERS:
        found = nbformat.reads(notebook(name), as_version=4)
        nbformat.validate(found)
        assert [(cell.cell_type, cell.source) for cell in found.cells] == list(cells(name))


# Jupyter's own warnings, of which this project has no part.
@pytest.mark.filterwarnings("ignore")
def test_a_notebook_that_is_executed_holds_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed (extra: docs)")
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed (extra: docs)")
    pytest.importorskip("ipykernel", reason="ipykernel is not installed (extra: docs)")
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(CODE)])
    nbclient.NotebookClient(made, timeout=120, kernel_name="python3").execute(cwd=str(ROOT))
    (output,) = made.cells[0].outputs
    assert output["output_type"] == "execute_result"
    html = output["data"]["text/html"]
    assert html.startswith('<iframe title="lesson" style="width: 100%; height: 700px')
    assert "One round, one link" in html
