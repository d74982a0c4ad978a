"""The commands of ``docs/plug_ins.md`` run, and print what the page says."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lab.test_contracts import environment

PAGE = (Path(__file__).parents[2] / "docs" / "plug_ins.md").read_text()
(SOURCE,) = re.findall(r"```python\n(# my_method\.py\n.*?)```", PAGE, re.DOTALL)
CONSOLES = re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)
# each command with the lines that follow it
COMMANDS = [entry.partition("\n")[::2] for block in CONSOLES for entry in re.split(r"^\$ ", block, flags=re.M)[1:]]


def test_the_page_has_its_commands() -> None:
    kinds = [" ".join(command.split()[:3]) for command, _ in COMMANDS]
    assert len(COMMANDS) == 5
    assert {"compare", "tune", "verify"} <= {kind.split()[1] for kind in kinds}
    assert "python -m dualopt.lab.contracts" in kinds


@pytest.mark.parametrize(("command", "shown"), COMMANDS, ids=lambda text: text[:60])
def test_a_command_prints_what_the_page_says(tmp_path: Path, command: str, shown: str) -> None:
    (tmp_path / "my_method.py").write_text(SOURCE)
    words = shlex.split(command)
    words = words[1:] if words[0] == "python" else ["-m", *words]
    done = subprocess.run([sys.executable, *words], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == (1 if "contradicted by" in shown else 0), done.stdout[-3000:] + done.stderr[-1000:]
    for line in shown.splitlines():
        assert line in done.stdout
