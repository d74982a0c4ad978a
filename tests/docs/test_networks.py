"""``docs/networks.md``, in an empty folder: its listings in turn."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

from dualopt.app.cli import main
from tests.programs import ended

PAGE = (Path(__file__).parents[2] / "docs/networks.md").read_text()


def test_the_listings_run_in_turn(tmp_path, monkeypatch, undrawn, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    known: dict = {}
    run = 0
    for kind, text in re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, flags=re.DOTALL | re.MULTILINE):
        if text.startswith("# my_net.py"):
            (tmp_path / "my_net.py").write_text(text)
        elif kind == "python":
            exec(text, known)
            run += 1
        else:
            for line in text.splitlines():
                if line.startswith("dualopt ") and "cifar10" not in line:
                    assert ended(main, *shlex.split(line)[1:]) == 0, (line, capsys.readouterr())
                    run += 1
    assert run == 6
    said = capsys.readouterr().out
    right = [float(line.split("│")[2].split("%")[0]) / 100 for line in said.splitlines() if "│ accuracy" in line]
    assert right[0] > 0.8  # of the network of the first command
    of_python, of_file = (float(line) for line in said.splitlines()[-2:])
    assert abs(of_python - right[0]) < 1e-3  # the same run
    assert abs(of_file - right[0]) < 1e-3
    assert "training accuracy" in said


def test_the_options_are_those_that_there_are() -> None:
    from dualopt.objectives.torch_networks import TORCH_NETWORKS
    from dualopt.problem.networks import OF_OBJECTIVE

    for name in OF_OBJECTIVE:
        assert f"`{name}=" in PAGE
    for name in TORCH_NETWORKS:
        assert f"`--model {name}`" in PAGE
