"""What a user waits for before anything is computed: imports, help, a list, and a whole run on the digits.

Run with ``pytest tests/benchmarks/test_start.py --benchmark-only -s``. Each program is a process of its own, with its
compiled files in place as after an installation; they take turns, and each figure is a median.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from .race import report

TURNS = 9
PROGRAMS = {  # what a user types, and the most seconds of CPU time
    'python -c "import numpy"': None,
    'python -c "import numpy, dualopt; dualopt.run, dualopt.DualFL, dualopt.linear_model"': 0.2,  # beyond the first
    "python -m dualopt --help": 0.4,
    "python -m figures --list": 0.5,
    "python -m dualopt run --data digits --clients 8 --partition by-label --tol 1e-10 --rounds 400 --reference": 2.0,
}


def seconds(program: str, folder: str) -> float:
    """Return the CPU time of a process with one thread."""
    words = [program.split('"')[1]] if '"' in program else program.split()[2:]
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    environment |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "PYTHONPATH": os.getcwd()}
    environment |= {"PYTHONPYCACHEPREFIX": f"{folder}/compiled"}
    out = ["--overwrite", "--out", f"{folder}/out"] if " run " in program else []
    command = [sys.executable, "-c" if '"' in program else "-m", *words, *out]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def test_start(benchmark):
    """No program takes longer than its limit."""
    spent: dict[str, list[float]] = {program: [] for program in PROGRAMS}
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(TURNS + 1):
            for program, times in spent.items():
                used = seconds(program, folder)
                if turn:  # the first one compiles
                    times.append(used)
        assert (Path(folder) / "out" / "convergence.png").exists()
    benchmark.pedantic(lambda: None, rounds=1)
    medians = {program: statistics.median(times) for program, times in spent.items()}
    report(
        f"Whole processes, medians of {TURNS} that take turns",
        ["program", "s of CPU time", "least", "limit"],
        [
            [f"`{program}`", f"{medians[program]:.2f}", f"{min(spent[program]):.2f}", "" if most is None else f"{most}"]
            for program, most in PROGRAMS.items()
        ],
    )
    numpy, dualopt, *_ = PROGRAMS
    medians[dualopt] -= medians[numpy]
    assert [p for p, most in PROGRAMS.items() if most is not None and medians[p] > most] == []
