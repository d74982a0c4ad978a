"""Commands that are killed, in short; ``python -m tests.kill`` does it at many moments, with figures too."""

from __future__ import annotations

import random
import signal
from pathlib import Path

import numpy as np
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


def test_differences_are_noticed(tmp_path, monkeypatch):
    """The comparison fails for a digit, a file, a temporary file and a process too many."""
    (tmp_path / "a.csv").write_text('# status: "x"\nround,seconds,energy\n0,1.5,2.5\n')
    (tmp_path / "b.json").write_text('{"seconds": 1, "energy": 2.5}')
    np.savez(tmp_path / "c.npz", theta=np.ones(2), column_seconds=np.ones(2))
    before = kill.contents(tmp_path)
    (tmp_path / "a.csv").write_text('# status: "x"\nround,seconds,energy\n0,7.5,2.5\n')
    (tmp_path / "b.json").write_text('{"seconds": 2, "energy": 2.5}')
    np.savez(tmp_path / "c.npz", theta=np.ones(2), column_seconds=np.zeros(2))
    assert kill.contents(tmp_path) == before
    (tmp_path / "a.csv").write_text('# status: "x"\nround,seconds,energy\n0,1.5,2.6\n')
    np.savez(tmp_path / "c.npz", theta=np.array([1.0, 1.0 + 2e-16]), column_seconds=np.ones(2))
    changed = kill.contents(tmp_path)
    assert {name for name in before if changed[name] != before[name]} == {"a.csv", "c.npz"}
    victim = kill.Victim("run", tmp_path)
    assert victim.temporary_files() == []
    (tmp_path / f".a.csv.x{kill.SUFFIX}").touch()
    assert len(victim.temporary_files()) == 1
    monkeypatch.setattr(kill, "PATIENCE", 0.1)
    victim.arguments = [kill.sys.executable, "-c", "import time; time.sleep(60)"]
    with victim.start() as process:
        try:
            with pytest.raises(AssertionError, match="leaves the processes"):
                victim.require_no_process()
        finally:
            process.kill()
