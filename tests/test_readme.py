"""What the README shows is true."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

README = (Path(__file__).parents[1] / "README.md").read_text()
DOCS = Path(__file__).parents[1] / "docs"


def test_python_examples_run(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict = {}
    blocks = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    assert len(blocks) == 5
    for block in blocks:
        exec(block, names)  # the second block goes on where the first ends, as a reader would
    assert capsys.readouterr().out.startswith("converged ")


def test_the_first_command_names_options_that_exist(tmp_path, capsys: pytest.CaptureFixture[str]) -> None:
    from dualopt.cli import main

    line = r'^python -m pip install -e "\.\[app,theory\]" && dualopt (.*)$'
    (command,) = re.findall(line, README, flags=re.MULTILINE)
    assert command.endswith("--out out")
    with pytest.raises(SystemExit) as end:
        main([*command.removesuffix("out").split(), str(tmp_path)])
    assert end.value.code in (None, 0)
    assert "converged" in capsys.readouterr().out
    written = {path.name for path in tmp_path.iterdir()}
    assert written == {"convergence.png", "trace.csv", "trace.npz", "run.json"}


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", *(f"docs/{p.name}" for p in DOCS.glob("*.md"))])
def test_links_lead_somewhere(page: str) -> None:
    path = Path(__file__).parents[1] / page
    links = re.findall(r"\]\(([^)#\s]+)\)|^\[[^]]+\]: (\S+)$", path.read_text(), flags=re.MULTILINE)
    targets = [a or b for a, b in links if not (a or b).startswith("http")]
    assert [target for target in targets if not (path.parent / target).exists()] == []
    assert targets or page == "CONTRIBUTING.md"


def test_the_test_command_is_the_one_of_ci() -> None:
    assert re.search(r'^python -m pip install -e "\.\[dev\]" && python -m pytest.*$', README, flags=re.MULTILINE)
