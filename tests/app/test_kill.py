"""Commands that are killed, in short; ``python -m tests.kill`` does it at many moments, with figures too."""

from __future__ import annotations

import random
import signal
from pathlib import Path

import pytest

from tests import kill

pytestmark = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="looks up processes in /proc")
PROBLEM = ["--rows", "200", "--clients", "6", "--mu", "1e-3", "--participation", "subset=2"]
SHORT = {
    "run": [*("dualopt", "run", *PROBLEM, "--tol", "0", "--checkpoint-every", "0.05", "--resume"),
            *("--algorithm", "feddyn", "--rounds", "150")],
    "tune": [*("dualopt", "tune", *PROBLEM, "--algorithm", "feddyn", "--grid", "alpha=0.01,0.1", "--jobs", "2"),
             *("--rounds", "30", "--target", "1e-5")],
}  # fmt: skip


@pytest.mark.parametrize(("name", "number"), [("run", signal.SIGKILL), ("tune", signal.SIGTERM)])
def test_a_killed_command_is_continued(tmp_path, monkeypatch, name, number):
    monkeypatch.setattr(kill, "COMMANDS", SHORT)
    whole, lasts = kill.undisturbed(name, tmp_path / "whole")
    assert len(whole) > 1
    kill.trial(name, number, whole, lasts, random.Random(0), tmp_path / number.name)
