"""A chapter in a notebook, which is executed as Jupyter does it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed (extra: docs)")
nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed (extra: docs)")
pytest.importorskip("ipykernel", reason="ipykernel is not installed (extra: docs)")

ROOT = Path(__file__).resolve().parents[2]
CODE = 'from figures.lessons import show\nshow("chain", height=700)'


# Jupyter's own warnings, of which this project has no part.
@pytest.mark.filterwarnings("ignore")
def test_a_notebook_that_is_executed_holds_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(CODE)])
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute(cwd=str(ROOT))
    (output,) = notebook.cells[0].outputs
    assert output["output_type"] == "execute_result"
    html = output["data"]["text/html"]
    assert html.startswith('<iframe title="lesson" style="width: 100%; height: 700px')
    assert "One round, one link" in html
