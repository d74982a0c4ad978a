"""Files are written whole or not at all, locks exclude, and what killed writers leave is removed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import dualopt
from dualopt.arrays import _files
from dualopt.arrays._files import SUFFIX, InUseError, locked, remove_leftovers, write_atomically

pytest.importorskip("fcntl")
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(dualopt.__path__[0]).parent)}
WRITER = """
import sys, time
from dualopt.arrays._files import write_atomically

def slow(file):
    file.write("half")
    file.flush()
    print("writing", flush=True)
    time.sleep(600)

write_atomically(sys.argv[1], slow)
"""
HOLDER = """
import sys, time
from dualopt.arrays._files import locked
with locked(sys.argv[1], "run"):
    print("held", flush=True)
    time.sleep(600)
"""


def start(program: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", program, *map(str, arguments)]
    process = subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() in ("writing\n", "held\n")
    return process


def test_what_a_killed_writer_leaves_is_removed_and_what_a_live_one_writes_is_not(tmp_path):
    (tmp_path / "a.csv").write_text("earlier")
    with start(WRITER, tmp_path / "a.csv") as dead:
        assert remove_leftovers(tmp_path) == []  # it is at work
        dead.send_signal(signal.SIGKILL)
    (left,) = tmp_path.glob(f".a.csv.*{SUFFIX}")
    with start(WRITER, tmp_path / "b.csv") as live:
        assert remove_leftovers(tmp_path) == [left]
        (other,) = tmp_path.glob(f".*{SUFFIX}")
        live.send_signal(signal.SIGKILL)
    assert remove_leftovers(tmp_path) == [other]
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]
    assert (tmp_path / "a.csv").read_text() == "earlier"


def test_files_of_other_names_are_left_alone(tmp_path):
    for name in (".a.csv.x", f"a{SUFFIX}", ".hidden"):
        (tmp_path / name).touch()
    (tmp_path / f".folder{SUFFIX}").mkdir()
    assert remove_leftovers(tmp_path) == []
    assert remove_leftovers(tmp_path / "nowhere") == []


def test_a_file_that_is_taken_for_a_leftover_before_it_is_locked_is_made_again(tmp_path, monkeypatch):
    made = _files.tempfile.mkstemp
    calls = []

    def sweeping(**options):
        handle, name = made(**options)
        if not calls:
            Path(name).unlink()  # by another process, between the two system calls
        calls.append(name)
        return handle, name

    monkeypatch.setattr(_files.tempfile, "mkstemp", sweeping)
    write_atomically(tmp_path / "a", lambda file: file.write("whole"))
    assert len(calls) == 2
    assert (tmp_path / "a").read_text() == "whole"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_lock_excludes_others_and_is_given_back_by_the_killed(tmp_path):
    with start(HOLDER, tmp_path) as holder:
        with (
            pytest.raises(InUseError, match=r"is in use by another dualopt run\."),
            locked(tmp_path, "run", wait=False),
        ):
            pytest.fail("both hold it")
        with locked(tmp_path, "tune", wait=False):
            pass
        holder.send_signal(signal.SIGKILL)
    with locked(tmp_path, "run", wait=False):
        assert remove_leftovers(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def test_waiting_for_a_lock_loses_no_turn(tmp_path):
    """Four threads add to a number in a file: without the lock some additions are lost."""
    path = tmp_path / "number"
    path.write_text("0")

    def add():
        for _ in range(50):
            with locked(tmp_path, "tune"):
                number = int(path.read_text())
                path.write_text(str(number + 1))

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert path.read_text() == "200"
    assert [p.name for p in tmp_path.iterdir()] == ["number"]
