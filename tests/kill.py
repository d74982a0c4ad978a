"""Kill commands at random moments, continue them, and compare: ``python -m tests.kill --times 20`` (half an hour).

Each of run, compare, tune and figures is ended by SIGKILL, SIGTERM and SIGINT, once or twice in a row, at moments drawn
from its whole time; then it is continued to its end. Afterwards

* the results are byte for byte those of a command that nobody disturbed, but for seconds;
* no process that it has started is left, neither after a signal nor at the end;
* no temporary file and no checkpoint is left.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path
from typing import Any

import numpy as np

from dualopt.arrays._files import SUFFIX

ROOT = Path(__file__).parents[1]
PROBLEM = ["--rows", "600", "--clients", "12", "--mu", "1e-3", "--seed", "1"]
KEPT = ["--participation", "subset=4", "--tol", "0", "--checkpoint-every", "0.1", "--resume"]
COMMANDS = {
    "run": ["dualopt", "run", *PROBLEM, *KEPT, "--algorithm", "feddyn", "--rounds", "200"],
    "compare": [
        *("dualopt", "compare", *PROBLEM, *KEPT, "--rounds", "60", "--reference"),
        *("--algorithm", "feddyn", "--algorithm", "fedavg", "--algorithm", "feddr"),
    ],
    "tune": [
        *("dualopt", "tune", *PROBLEM, "--algorithm", "feddyn", "--grid", "alpha=0.01,0.1", "--jobs", "2"),
        *("--grid", "stop=steps=3,steps=10", "--rounds", "40", "--target", "1e-5"),
    ],
    "figures": [
        *("figures", "fig1a_methods", "--quick", "--rounds", "2", "--rows", "100", "--part", "100", "--jobs", "2"),
        *("--most-gradients", "30"),
    ],
}
# What a process may return. At the first moments it is still Python that starts, and ends as Python does.
CODES = {
    signal.SIGKILL: {0, -signal.SIGKILL},
    signal.SIGTERM: {0, 143, -signal.SIGTERM},
    signal.SIGINT: {0, 130, 1, -signal.SIGINT},
}
TIMES = ("seconds", "wall_seconds", "sec", "column_seconds")
PATIENCE = 20.0  # seconds for processes to end


class Victim:
    """A command that is run in a folder of its own, and the processes that it starts."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.folder = name, folder
        self.mark = f"DUALOPT_VICTIM={uuid.uuid4().hex}"
        self.arguments = [sys.executable, "-m", *COMMANDS[name], "--out", str(folder)]

    def start(self) -> subprocess.Popen[str]:
        """Start it; processes that it starts in turn inherit the mark."""
        variable, _, value = self.mark.partition("=")
        environment = {**os.environ, variable: value, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"}
        environment |= {"SOURCE_DATE_EPOCH": "0"}  # in the files of pictures
        return subprocess.Popen(
            self.arguments, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def finish(self) -> float:
        """Run it to its end; return the seconds that it takes."""
        start = time.monotonic()
        with self.start() as process:
            out, _ = process.communicate()
        assert process.returncode == 0, f"{self.name} has ended with {process.returncode}:\n{out}"
        self.require_no_process()
        return time.monotonic() - start

    def kill(self, number: signal.Signals, after: float) -> int | None:
        """Run it, send a signal after so many seconds, and return how it has ended; None if that was before."""
        with self.start() as process:
            try:
                process.wait(after)
                code = None
            except subprocess.TimeoutExpired:
                process.send_signal(number)
                code = 0
            out, _ = process.communicate()
        if code is None:
            assert process.returncode == 0, f"{self.name} has ended with {process.returncode}:\n{out}"
            return None
        code = process.returncode
        assert code in CODES[number], f"{self.name} after {number.name} has ended with {code}:\n{out}"
        own = "" if "in spawn_main" in out else out  # a process whose parent is gone before it has begun says so
        starts = "KeyboardInterrupt" in own and ", in program\n" not in own  # Python, not yet the program
        assert "Traceback" not in own or starts, f"{self.name} after {number.name}:\n{out}"
        assert code != 1 or starts, f"{self.name} after {number.name}:\n{out}"
        self.require_no_process()
        if number != signal.SIGKILL:
            assert self.temporary_files() == [], f"{number.name} leaves {self.temporary_files()}."
        return code

    def require_no_process(self) -> None:
        """Wait for all processes with the mark to end."""
        deadline = time.monotonic() + PATIENCE
        while found := self.processes():
            assert time.monotonic() < deadline, f"{self.name} leaves the processes {found}."
            time.sleep(0.05)

    def processes(self) -> list[int]:
        """Return the processes with the mark."""
        found = []
        for path in Path("/proc").glob("[0-9]*/environ"):
            try:
                if self.mark.encode() in path.read_bytes():
                    found.append(int(path.parent.name))
            except OSError:  # it has ended meanwhile, or is not ours
                continue
        return found

    def temporary_files(self) -> list[Path]:
        """Return what must not be left in the folder."""
        return [p for p in self.folder.rglob("*") if p.name.endswith(SUFFIX) or p.name.startswith((".", "tmp"))]


def contents(folder: Path) -> dict[str, Any]:
    """Return what the files of a folder say, but for times, and the folder itself."""
    return {str(p.relative_to(folder)): _content(p, folder) for p in sorted(folder.rglob("*")) if p.is_file()}


def _content(path: Path, folder: Path) -> Any:
    if path.suffix == ".json":
        return _timeless(json.loads(path.read_text().replace(str(folder), "OUT")))
    if path.suffix == ".npz":
        with np.load(path) as archive:
            own = {name: archive[name] for name in archive.files if name not in TIMES}
            return {name: str(x) if name == "head" else x.tobytes() for name, x in own.items()}
    if path.suffix == ".csv":
        head, rows = [], []
        for line in path.read_text().splitlines():
            (head if line.startswith("#") else rows).append(line)
        names = rows[0].split(",")
        kept = [n for n, name in enumerate(names) if name not in TIMES]
        return head, [[row.split(",")[n] for n in kept] for row in rows]
    if path.suffix == ".dat":  # of gnuplot: the names of the columns, with their numbers, in a comment
        head, *lines = path.read_text().splitlines()
        kept = [n for n, name in enumerate(head.removeprefix("# ").split(", ")) if name.split()[1] not in TIMES]
        tables = [line.split() if line[:1].isdigit() else [line] for line in lines]
        return head, [row if len(row) == 1 else [row[n] for n in kept] for row in tables]
    return path.read_bytes()


def _timeless(x: Any) -> Any:
    if isinstance(x, dict):
        return {key: _timeless(value) for key, value in x.items() if key not in TIMES}
    return [_timeless(value) for value in x] if isinstance(x, list) else x


def trial(name: str, number: signal.Signals, whole: dict[str, Any], lasts: float, rng: random.Random, at: Path) -> str:
    """Disturb a command, continue it, and compare; return in words what happened."""
    victim, said = Victim(name, at), []
    while not said:
        shutil.rmtree(at, ignore_errors=True)
        for _ in range(rng.choice((1, 1, 1, 2))):
            after = rng.uniform(0.0, lasts)
            if (code := victim.kill(number, after)) is None:
                lasts = 0.9 * after  # it has become faster: the machine was busy
                break
            said.append(f"{after:.2f} s -> {code}")
    victim.finish()
    assert victim.temporary_files() == [], f"{name} leaves {victim.temporary_files()}."
    assert not list(at.glob("*.checkpoint")), f"{name} leaves a checkpoint."
    found = contents(at)
    assert found.keys() == whole.keys(), f"{name}: files {sorted(found)} instead of {sorted(whole)}."
    for file, content in whole.items():
        assert found[file] == content, f"{name}: {file} differs after {number.name}, {', '.join(said)}."
    return ", ".join(said)


def undisturbed(name: str, folder: Path) -> tuple[dict[str, Any], float]:
    """Return the results of a command that is left alone, and its time."""
    lasts = Victim(name, folder).finish()
    return contents(folder), lasts


def main() -> None:
    """Run the program."""
    parser = argparse.ArgumentParser(prog="python -m tests.kill", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--times", type=int, default=20, help="trials of each command, the signals in turn")
    parser.add_argument("--each", action="store_true", help="every trial with each of the three signals")
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    parser.add_argument("--only", choices=COMMANDS, action="append", help="a command; all by default")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as folder:
        for name in options.only or COMMANDS:
            whole, lasts = undisturbed(name, Path(folder, f"{name}-whole"))
            again, faster = undisturbed(name, Path(folder, f"{name}-again"))
            assert again == whole, f"{name} is not repeatable."
            lasts = min(lasts, faster)  # on a busy machine
            print(f"{name}: {lasts:.1f} s undisturbed, {len(whole)} files", flush=True)
            for n in range(options.times):
                for number in CODES if options.each else [list(CODES)[n % 3]]:
                    said = trial(name, number, whole, lasts, rng, Path(folder, name))
                    print(f"  {n + 1}, {number.name}: {said}: the same", flush=True)
    print("all the same; no process and no temporary file was left")


if __name__ == "__main__":
    main()
