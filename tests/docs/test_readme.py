"""What the README shows is true."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import dualopt.methods
from dualopt.app.cli import main
from dualopt.runs.trace import Trace
from dualopt.spec.discover import discover
from tests.programs import ended

README = (Path(__file__).parents[2] / "README.md").read_text()
DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize(
    ("page", "count", "first"), [("README.md", 1, "<Trace of DualFL: "), ("docs/in_python.md", 5, "converged ")]
)
def test_python_examples_run(page: str, count: int, first: str, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict = {}
    blocks = re.findall(r"```python\n(.*?)```", (DOCS.parent / page).read_text(), flags=re.DOTALL)
    assert len(blocks) == count
    for block in blocks:
        exec(block, names)  # the second block goes on where the first ends, as a reader would
    assert capsys.readouterr().out.startswith(first)


def test_the_first_command_names_options_that_exist(tmp_path, capsys: pytest.CaptureFixture[str]) -> None:
    line = r'^python -m pip install -e "\.\[app,theory\]" && dualopt (.*)$'
    (command,) = re.findall(line, README, flags=re.MULTILINE)
    assert command.endswith("--out out")
    assert ended(main, *command.removesuffix("out").split(), tmp_path) == 0
    assert "converged" in capsys.readouterr().out
    written = {path.name for path in tmp_path.iterdir()}
    assert written == {"convergence.png", "trace.csv", "trace.npz", "run.json"}
    trace = Trace.from_csv(tmp_path / "trace.csv")
    above = trace["certified_error"][1:] / trace["error"][1:]  # nothing is certified before the first round
    assert "It is never below the error and follows it within a factor of 7, 3 in the median." in " ".join(
        README.split()
    )
    assert min(above) >= 1.0
    assert (round(max(above)), round(float(np.median(above)))) == (7, 3)


def test_the_rounds_of_both_methods_are_those_of_the_command(tmp_path) -> None:
    said = r"take (\d+) rounds to a certified (\S+) where DualFL takes (\d+):\n`dualopt (.*)`\."
    ((ours, level, dualfl, command),) = re.findall(said, README)
    assert ended(main, *command.split(), "--out", tmp_path) == 0
    for name, rounds in (("optimized-dualfl", ours), ("dualfl", dualfl)):
        trace = Trace.from_csv(tmp_path / f"{name}.csv")
        assert trace.last["round"] == int(rounds)
        assert trace.last["certified_error"] <= float(level)


def test_the_number_of_methods_is_the_one_there_is() -> None:
    (count,) = re.findall(r"has a row for each of the (\d+) methods", README)
    assert int(count) == len(discover(dualopt.methods))


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", *(f"docs/{p.name}" for p in DOCS.glob("*.md"))])
def test_links_lead_somewhere(page: str) -> None:
    path = Path(__file__).parents[2] / page
    links = re.findall(r"\]\(([^)#\s]+)\)|^\[[^]]+\]: (\S+)$", path.read_text(), flags=re.MULTILINE)
    targets = [a or b for a, b in links if not (a or b).startswith("http")]
    assert [target for target in targets if not (path.parent / target).exists()] == []
    assert targets or page not in ("README.md", "docs/methods.md", "docs/which_method.md", "docs/theorems.md")


def test_the_test_command_is_the_one_of_ci() -> None:
    assert re.search(r'^python -m pip install -e "\.\[dev\]" && python -m pytest.*$', README, flags=re.MULTILINE)
