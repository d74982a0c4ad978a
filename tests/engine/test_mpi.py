"""Runs over MPI have the digits of one process, and end in good order whatever happens to a process."""

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from dualopt.app.cli import main
from dualopt.runs.trace import Trace

ROOT = Path(__file__).parents[2]
RUNS = Path(__file__).with_name("mpi_runs.py")
SECONDS = 300  # after which a process hangs: on a free machine all takes a few

LAUNCHER = shutil.which("mpiexec")
try:
    import mpi4py.MPI  # noqa: F401 # pyright: ignore[reportMissingImports]

    MISSING = "" if LAUNCHER else "mpiexec is not installed"
except (ImportError, RuntimeError) as error:
    MISSING = f"mpi4py cannot be used: {error}"

needs_mpi = pytest.mark.skipif(bool(MISSING), reason=MISSING or "MPI is here")


def command(n, *words):
    """Return the words that start a Python program on ``n`` processes."""
    about = subprocess.run([str(LAUNCHER), "--version"], capture_output=True, text=True, check=False).stdout
    more = ["--oversubscribe"] if "Open" in about else []
    return [str(LAUNCHER), *more, "-n", str(n), sys.executable, *map(str, words)]


def environment(**more):
    """Return the environment of such a program; processes that wait leave the processor to others."""
    own = {"PYTHONPATH": str(ROOT), "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    own |= {"OMPI_MCA_mpi_yield_when_idle": "1", "OPENBLAS_NUM_THREADS": "1", "MPLBACKEND": "Agg", "COLUMNS": "120"}
    return os.environ | own | more


def on(n, *words, **more):
    """Run a program on ``n`` processes, and return what it has said and its exit code."""
    return subprocess.run(
        command(n, *words), capture_output=True, text=True, timeout=SECONDS, env=environment(**more), check=False
    )


def unlike(*programs):
    """Run programs that are not the same, one on each process, and return the sentences and the exit code."""
    words = command(1, *programs[0])
    for program in programs[1:]:
        words += [":", "-n", "1", sys.executable, *map(str, program)]
    found = subprocess.run(
        words, capture_output=True, text=True, timeout=SECONDS, env=environment(), check=False, stdin=subprocess.DEVNULL
    )
    assert "Traceback" not in found.stdout + found.stderr or "mpi4py" in str(programs)
    return sentences(found.stdout + found.stderr), found.returncode


def dualopt(n, *words):
    """Run the command line on ``n`` processes."""
    return on(n, "-m", "dualopt", words[0], "--engine", "mpi", *words[1:])


def here(*words):
    """Run the command line in this process."""
    with pytest.raises(SystemExit) as end:
        main(list(map(str, words)))
    return end.value.code


def differing(a, b):
    """Name what differs between two traces in files, seconds apart."""
    a, b = Trace.from_npz(a), Trace.from_npz(b)
    names = [n for n in a.columns if n != "seconds" and not np.array_equal(a[n], b[n], equal_nan=True)]
    return names + ["theta"] * (not np.array_equal(a.theta, b.theta)) + ["status"] * (a.status != b.status)


def cells(path):
    """Return the lines of a table without the column of seconds, and without the description before them."""
    lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    rows = list(csv.DictReader(lines))
    return [{name: cell for name, cell in row.items() if name != "seconds"} for row in rows]


def sentences(text):
    """Return the lines of dualopt's own among those of mpiexec."""
    return [line[line.index("dualopt: ") :] for line in text.splitlines() if "dualopt: " in line]


PLUG_IN = """
import os, signal, time
from dataclasses import dataclass
from dualopt import DualFL, FedAvg

@dataclass(frozen=True, kw_only=True)
class Raises(FedAvg):
    \"\"\"Fails where client 5 is, in round 3.\"\"\"
    def local(self, clients, message, oracle, round):
        if round.n == 3 and 5 in round.clients:
            raise ZeroDivisionError("division by zero")
        return super().local(clients, message, oracle, round)

@dataclass(frozen=True, kw_only=True)
class Dies(DualFL):
    \"\"\"Is killed where client 5 is, in round 12, if a file says so.\"\"\"
    def local(self, clients, message, oracle, round):
        if round.n == 12 and 5 in round.clients and os.path.exists("kill"):
            os.remove("kill")
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.05)
        return super().local(clients, message, oracle, round)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a plug-in, where everything is run."""
    (tmp_path / "methods.py").write_text(PLUG_IN)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@needs_mpi
@pytest.mark.parametrize(("n", "head"), [(1, 2048), (2, 64), (3, 2048)])
def test_runs_have_the_digits_of_one_process(n, head):
    """Certified, corrected, partial, listening, silent, regularised, accelerated: every column and the model."""
    found = on(n, "-m", "mpi4py", RUNS, HEAD=str(head))
    lines = found.stdout.splitlines()
    assert found.returncode == 0, found.stdout + found.stderr[-2000:]
    assert len(lines) >= 11
    assert all(line.endswith(" equal") for line in lines)
    assert "converged" in lines[0]


@needs_mpi
@pytest.mark.parametrize(("mutant", "name"), [("weights", "dualfl corrected"), ("order", "anderson_fedsplit")])
def test_the_comparison_finds_what_is_done_wrong(mutant, name):
    """Weights of the clients of each process alone; sums of each process, added in the order of the processes."""
    found = on(3, "-m", "mpi4py", RUNS, name, MUTANT=mutant)
    assert found.returncode == 1
    assert "theta" in found.stdout


@needs_mpi
@pytest.mark.parametrize(("mutant", "equal"), [("", 18), ("memory", 0)])
def test_compressed_runs_have_the_bits_of_one_host(mutant, equal):
    """The contract of all methods and compressors, for one method here; one that forgets what was uploaded is found."""
    found = on(3, "-m", "mpi4py", "-m", "tests.methods.compressors.mpi_contract", "scaffold", MUTANT=mutant)
    assert found.returncode == bool(mutant)
    assert f"{equal} of 18 runs on 3 processes are those of one host" in found.stdout


OPTIONS = ["--data", "digits", "--rows", 300, "--clients", 7, "--partition", "dirichlet", "--client-weights", "rows"]


@needs_mpi
def test_the_command_writes_the_same_files(folder):
    """Trace, model and record are those of one process; the record says where the clients were."""
    options = [*OPTIONS, "--mu", 0.1, "--tol", 1e-4, "--reference", "--participation", "subset=3", "-p", "alpha=0.1"]
    options += ["--algorithm", "feddyn", "--rounds", 60, "--scale", "standard"]
    assert here("run", *options, "--out", "one") == 0
    found = dualopt(3, "run", *options, "--out", "three")
    assert found.returncode == 0, found.stderr[-2000:]
    assert differing("one/trace.npz", "three/trace.npz") == []
    one, three = (json.loads((folder / name / "run.json").read_text()) for name in ("one", "three"))
    assert three.pop("engine") == "MPI, 3 processes"
    assert three["parameters"].pop("hosts") == 3
    assert three["parameters"].pop("reduce") == "client order"
    assert three["parameters"].pop("contradictions_looked_for") == "yes"
    for record in (one, three):
        record["options"].pop("out")
        record.pop("wall_seconds")
        record["final"].pop("seconds")
    assert one == three
    assert sorted(p.name for p in Path("one").iterdir()) == sorted(p.name for p in Path("three").iterdir())
    for name in ("model.json", "model.npz"):
        assert Path("one", name).read_bytes() == Path("three", name).read_bytes()
    fast = dualopt(2, "run", *OPTIONS, "--mu", 0.1, "--tol", "1e-4", "--reduce", "fast", "--out", "fast")
    assert fast.returncode == 0, fast.stderr[-2000:]
    record = json.loads(Path("fast/run.json").read_text())
    assert (record["status"], record["parameters"]["reduce"], record["options"]["reduce"]) == (
        "converged",
        "fast",
        "fast",
    )


@needs_mpi
def test_compare_and_tune_write_the_same_files(folder):
    """Several methods one after the other, and a search."""
    options = [*OPTIONS, "--mu", 0.1, "--rounds", 8]
    methods = ["--algorithm", "dualfl", "--algorithm", "fedavg:solver=sgd,solver.step=0.1,stop=steps=3"]
    assert here("compare", *options, *methods, "--out", "one") == 0
    found = dualopt(2, "compare", *options, *methods, "--out", "two")
    assert found.returncode == 0, found.stderr[-2000:]
    for path in Path("one").glob("*.csv"):
        assert cells(path) == cells(Path("two", path.name))
    search = ["tune", *OPTIONS, "--mu", 0.5, "--rounds", 8, "--target", 1e-2, "--grid", "rho=0,0.1"]
    assert here(*search, "--out", "tuned") == 0
    found = dualopt(2, *search, "--out", "tuned2")
    assert found.returncode == 0, found.stderr[-2000:]
    points = [json.loads(Path(name, "tune.json").read_text())["points"] for name in ("tuned", "tuned2")]
    for point in (*points[0], *points[1]):
        point.pop("seconds")
    assert points[0] == points[1]


@needs_mpi
@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--mu", -1], "mu must be a finite number, at least 0, not -1.0."),
        (["--rows", 50, "--clients", 1], "clients must be at least the 2 processes, not 1."),
        (["--rows", 50, "--start", "one-shot"], "start and coordinates must be zero and plain with --engine mpi: "),
        (["--rows", 60, "--algorithm", "methods.py:Raises"], "host 1 refuses round 3: process 1 has failed: ZeroDiv"),
    ],
)
def test_what_is_wrong_ends_all_processes_with_one_sentence(folder, options, sentence):
    """A mistake that every process sees, that all see together, and an exception in one of them."""
    found = dualopt(2, "run", *options)
    assert found.returncode == 2
    said = sentences(found.stdout + found.stderr)
    assert len(said) == 1
    assert said[0].startswith(f"dualopt: {sentence}")
    assert "Traceback" not in found.stdout + found.stderr


OF_ONE_KIND = ["-m", "dualopt", "run", "--engine", "mpi", "--rows", 60, "--rounds", 3]
ALONE = "engine must be mpi under mpiexec: otherwise each process would do all of the work."
OTHER_NUMPY = """
from dualopt.app.cli import main
from dualopt.engine import _agreement

shown, code = _agreement._versions()
_agreement._versions = lambda: ({**shown, "version of NumPy": "0.1"}, code)
main()
"""
AGREE = "dualopt: processes must agree, but "


@needs_mpi
@pytest.mark.parametrize(
    ("first", "second", "sentence"),
    [
        ([], ["--seed", 1], f"{AGREE}seed is 0 in process 0 and 1 in process 1."),
        (["--scale", "none"], ["--scale", "max"], f"{AGREE}scale is 'none' in process 0 and 'max' in process 1."),
        ([], ["--partition", "dirichlet"], f"{AGREE}partition is 'auto' in process 0 and 'dirichlet' in process 1."),
        ([], ["--client-weights", "rows"], f"{AGREE}client_weights is 'equal' in process 0 and 'rows' in process 1."),
        ([], ["--nonsense"], "dualopt: process 1 refuses its options: No such option: --nonsense"),
        (["--nonsense"], [], "dualopt: No such option: --nonsense"),
        ([], None, f"dualopt: process 1 refuses its options: {ALONE}"),
        (None, [], f"dualopt: {ALONE}"),
        (None, None, f"dualopt: {ALONE}"),
        (["--data", "a.npz"], ["--data", "b.npz"], f"{AGREE}contents of the file of process 1 are not those of"),
        (["--data", "a.npz", "--loss", "a.py:Own"], ["--data", "copy.npz", "--loss", "a.py:Own"], ""),
    ],
)
def test_processes_that_do_not_agree_end_with_one_sentence(folder, first, second, sentence):
    """None waits for another, and nothing is written; process 0 of three has the same options as process 2."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 3)), rng.integers(0, 2, 60)
    for name in ("a", "b"):
        X[7, 1] += name == "b"
        np.savez(folder / f"{name}.npz", X=X, y=y)
    shutil.copy(folder / "a.npz", folder / "copy.npz")
    (folder / "a.py").write_text("from dualopt.losses import Logistic\n\nclass Own(Logistic):\n    pass\n")
    alone = [*OF_ONE_KIND[:3], *OF_ONE_KIND[5:]]  # without --engine mpi
    said, code = unlike(*(alone if more is None else [*OF_ONE_KIND, *more] for more in (first, second, first)))
    if not sentence:
        assert (said, code) == ([], 0)
        return
    assert code == 2
    assert len(said) == 1
    assert said[0].startswith(sentence)
    assert not (folder / "out").exists()


@needs_mpi
def test_another_version_on_one_node_is_noticed(folder):
    """Before anything of the data is read."""
    said, code = unlike(OF_ONE_KIND, ["-c", OTHER_NUMPY, *OF_ONE_KIND[2:]])
    assert code == 2
    assert len(said) == 1
    assert said[0].startswith(f"{AGREE}version of NumPy is {np.__version__!r} in process 0 and '0.1' in process 1")


@needs_mpi
def test_programs_whose_processes_run_other_methods_end(folder):
    """From Python, where every process raises the same error, and ``-m mpi4py`` ends them."""
    (folder / "own.py").write_text(
        "import numpy as np, dualopt\nfrom dualopt.engine import MPI\nmpi = MPI()\n"
        "f = dualopt.Quadratic(A=np.ones((2, 1, 1)), b=np.ones((2, 1)))\n"
        "dualopt.run(dualopt.DualFL(rho=0.1 * (1 + mpi.peers.rank)), f, engine=mpi)\n"
    )
    found = on(2, "-m", "mpi4py", "own.py")
    assert found.returncode != 0
    assert "ValueError: processes must agree, but algorithm is " in found.stderr


@needs_mpi
def test_a_process_that_is_killed_ends_all_and_the_run_goes_on_from_the_checkpoint(folder):
    """On another number of processes, too, to the digits of an unbroken run; and after SIGTERM."""
    options = ["run", "--rows", 100, "--clients", 6, "--algorithm", "methods.py:Dies", "--rounds", 30, "--tol", 0]
    options += ["--mu", 0.3, "--checkpoint-every", 0.01]
    assert here(*options, "--out", "whole") == 0
    Path("kill").touch()
    found = dualopt(3, *options, "--out", "killed")
    assert found.returncode != 0
    assert "Traceback" not in found.stdout + found.stderr
    assert Path("killed/run.checkpoint/run.journal").exists()
    found = dualopt(2, *options, "--out", "killed", "--resume")
    assert found.returncode == 0, found.stderr[-2000:]
    assert differing("whole/trace.npz", "killed/trace.npz") == []

    words = command(2, "-m", "dualopt", options[0], "--engine", "mpi", *options[1:], "--out", "ended")
    process = subprocess.Popen(words, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until = time.monotonic() + SECONDS
        while not Path("ended/run.checkpoint/run.journal").exists() and time.monotonic() < until:
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        assert process.wait(SECONDS) != 0
    finally:
        process.kill()
    assert here(*options, "--out", "ended", "--resume") == 0  # in one process
    assert differing("whole/trace.npz", "ended/trace.npz") == []


def test_without_mpi4py_a_sentence_names_the_extra(monkeypatch, capsys):
    """The package itself needs nothing of it."""
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    assert here("run", "--engine", "mpi", "--rows", 50) == 2
    assert capsys.readouterr().err == 'dualopt: engine mpi needs mpi4py: pip install "dualopt[mpi]".\n'


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--engine", "mpj"], "engine must be one of inline, mpi, not mpj."),
        (["--reduce", "fast"], "reduce is for --engine mpi."),
        (["--engine", "mpi", "--reduce", "slow"], "reduce must be one of gather, fast, not slow."),
    ],
)
def test_options_are_refused(options, sentence, capsys):
    """With one sentence each."""
    assert here("run", *options) == 2
    assert capsys.readouterr().err == f"dualopt: {sentence}\n"


def test_importing_dualopt_does_not_start_mpi():
    """MPI is started by the engine alone."""
    words = "import sys, dualopt, dualopt.engine, dualopt.app.cli.run; sys.exit('mpi4py' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", words], cwd=ROOT, check=False).returncode == 0
