"""Every file on ``docs/plug_ins.md`` runs and keeps its contract, and every command prints what is shown."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lab.test_contracts import environment

PAGE = (Path(__file__).parents[2] / "docs" / "plug_ins.md").read_text()
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
FILES = {re.match(r"# (\w+\.py)\n", text)[1]: text for kind, text in BLOCKS if kind == "python"}  # pyright: ignore
# each command with the lines that follow it
COMMANDS = [
    entry.partition("\n")[::2]
    for kind, text in BLOCKS
    if kind == "console"
    for entry in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]
]
OPTIONS = {
    "my_method.py": "algorithm",
    "squared_hinge.py": "loss",
    "elastic_net.py": "regulariser",
    "halving.py": "partition",
    "coins.py": "compressor",
    "anchored.py": "objective",
    "descent.py": "claim",
}


def test_every_block_is_a_file_a_command_or_the_entry_point() -> None:
    assert [kind for kind, _ in BLOCKS if kind not in ("python", "console")] == ["toml"]
    assert set(FILES) == set(OPTIONS)


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_run_from_python_and_the_command_line_and_held_to_its_contract(name: str) -> None:
    words = [shlex.split(command) for command, _ in COMMANDS if re.search(rf"(?<!\w){name}\b", command)]
    assert any(found[:3] == ["python", "-m", "dualopt.lab.contracts"] for found in words)
    assert any(f"--{OPTIONS[name]}" in found for found in words)
    assert any(found[0] == "dualopt" for found in words)
    assert ["python", name] in words or name == "my_method.py"


@pytest.mark.parametrize(("command", "shown"), COMMANDS, ids=lambda text: text[:60])
def test_a_command_prints_what_the_page_says(tmp_path: Path, command: str, shown: str) -> None:
    for name, source in FILES.items():
        (tmp_path / name).write_text(source)
    found = done(tmp_path, command)
    assert found.returncode == (1 if "contradicted by" in shown else 0), found.stdout[-3000:] + found.stderr[-1000:]
    for line in shown.splitlines():
        assert line in found.stdout


def done(folder: Path, command: str) -> subprocess.CompletedProcess[str]:
    """Run a command of the page."""
    words = shlex.split(command)
    words = words[1:] if words[0] == "python" else ["-m", *words]
    return subprocess.run([sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True)
