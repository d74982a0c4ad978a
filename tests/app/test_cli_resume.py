"""Commands continue what was interrupted or killed, repeat records, and overwrite nothing unasked."""

from __future__ import annotations

import json
import random
import signal
from pathlib import Path

import numpy as np
import pytest

from dualopt.app import cli
from dualopt.app.cli import prepared as commands
from dualopt.app.cli import resume
from dualopt.runs import plotting
from dualopt.runs.recording import run as run_federation
from dualopt.runs.trace import Trace
from tests import kill
from tests.app import test_cli

program = test_cli.program
refusal = test_cli.refusal
RUN = ["run", "--rows", "200", "--clients", "4", "--rounds", "8", "--tol", "0", "--seed", "3"]
PARTIAL = [*RUN, "--algorithm", "feddyn", "--participation", "subset=2", "--reference"]
METHODS = ["--algorithm", "feddyn", "--algorithm", "b@fedavg", "--algorithm", "c@feddr"]
COMPARE = ["compare", *RUN[1:], "--participation", "subset=2", "--reference", *METHODS]
pytestmark = pytest.mark.usefixtures("undrawn")


def contents(folder="out"):
    """What results say, but for the time that they took."""
    found = {}
    for path in sorted(Path(folder).iterdir()):
        if path.suffix == ".csv":
            lines = path.read_text().splitlines()
            start = next(n for n, line in enumerate(lines) if not line.startswith("#"))
            skip = lines[start].split(",").index("seconds")
            rows = [[x for n, x in enumerate(line.split(",")) if n != skip] for line in lines[start:]]
            found[path.name] = lines[:start], rows
        elif path.suffix == ".npz":
            with np.load(path) as archive:
                found[path.name] = {n: archive[n].tobytes() for n in archive.files if n != "column_seconds"}
        elif path.suffix == ".dat":
            first, *lines = path.read_text().splitlines()
            skip = [name.split()[-1] for name in first.split(", ")].index("seconds")
            found[path.name] = [[x for n, x in enumerate(line.split()) if n != skip] for line in lines]
        elif path.suffix == ".json":
            found[path.name] = timeless(json.loads(path.read_text()))
        else:
            found[path.name] = path.read_bytes()
    return found


def timeless(x):
    if isinstance(x, dict):
        return {k: timeless(v) for k, v in x.items() if k not in ("seconds", "wall_seconds", "out")}
    return [timeless(v) for v in x] if isinstance(x, list) else x


def interrupt(monkeypatch, after, number=signal.SIGINT, run=1):
    """Send a signal in a round of the ``run``-th run of a command."""
    ran = []

    def pressing(*arguments, callback, **options):
        ran.append(arguments)

        def pressed(snapshot, row):
            if len(ran) == run and row["round"] == after:
                signal.raise_signal(number)
            return callback(snapshot, row)

        return run_federation(*arguments, callback=pressed, **options)

    monkeypatch.setattr(commands, "run_federation", pressing)
    return ran


def calm(monkeypatch):
    """Send no signal any more."""
    monkeypatch.setattr(commands, "run_federation", run_federation)


@pytest.mark.parametrize(("number", "code", "word"), [(signal.SIGINT, 130, "Ctrl-C"), (signal.SIGTERM, 143, "SIGTERM")])
def test_a_run_is_resumed_with_the_same_digits(program, monkeypatch, number, code, word):
    assert program(*PARTIAL, "--out", "whole")[0] == 0
    handler = signal.getsignal(number)
    interrupt(monkeypatch, 3, number)
    found, out, err = program(*PARTIAL)
    assert found == code
    assert f"stopped: interrupted by {word}" in out
    assert "stopping after this round" in err
    assert "--resume continues" in err
    assert json.loads(Path("out/run.json").read_text())["complete"] is False
    assert len(Trace.from_npz("out/trace.npz")) == 4
    assert signal.getsignal(number) is handler
    calm(monkeypatch)
    rounds = interrupt(monkeypatch, -1)
    code, out, err = program(*PARTIAL, "--resume")
    assert (code, len(rounds)) == (0, 1)
    assert contents() == contents("whole")
    code, out, _ = program(*PARTIAL, "--resume")
    assert (code, len(rounds)) == (0, 1)
    assert out.startswith("out: complete, trace.npz")


@pytest.mark.parametrize(("run", "after"), [(1, 8), (2, 1), (3, 5)])
def test_a_comparison_is_resumed_where_it_was(program, monkeypatch, run, after):
    assert program(*COMPARE, "--out", "whole")[0] == 0
    interrupt(monkeypatch, after, run=run)
    assert program(*COMPARE)[0] == 130
    calm(monkeypatch)
    ran = interrupt(monkeypatch, -1)
    assert program(*COMPARE, "--resume")[0] == 0
    assert len(ran) == 3 - (run - 1)
    assert contents() == contents("whole")


def test_an_interrupted_run_may_get_more_rounds(program, monkeypatch):
    more = ["12" if word == "8" else word for word in PARTIAL]
    assert program(*more, "--out", "whole")[0] == 0
    interrupt(monkeypatch, 3)
    assert program(*PARTIAL)[0] == 130
    calm(monkeypatch)
    assert program(*more, "--resume")[0] == 0
    assert contents() == contents("whole")


def test_a_run_that_was_not_begun_is_begun(program):
    code, _, err = program(*PARTIAL, "--resume")
    assert code == 0
    assert "nothing is there to be resumed in 'out'" in err
    program(*PARTIAL, "--out", "whole")
    assert contents() == contents("whole")


def test_progress_is_not_thrown_away_unasked(program, monkeypatch):
    interrupt(monkeypatch, 3)
    assert program(*PARTIAL)[0] == 130
    calm(monkeypatch)
    before = contents("out/run.checkpoint")
    assert refusal(program, *PARTIAL) == (
        "out 'out' holds an unfinished dualopt run: --resume continues it, --overwrite starts over."
    )
    assert "holds 'session.json' of other options (mu is 0.01 there and 0.02 here)" in refusal(
        program, *PARTIAL, "--mu", "0.02", "--resume"
    )
    assert "resume must not be given with overwrite" in refusal(program, *PARTIAL, "--resume", "--overwrite")
    with monkeypatch.context() as changed:
        changed.setattr(resume, "sources", lambda parts: "other")
        assert "unfinished dualopt run of other code" in refusal(program, *PARTIAL, "--resume")
        assert contents("out/run.checkpoint") == before
        code, _, err = program(*PARTIAL, "--resume", "--keep-stale")
    assert code == 0
    assert "part of this was computed by other code" in err
    assert program(*PARTIAL, "--overwrite")[0] == 0
    assert not Path("out/run.checkpoint").exists()


STEP = """
from dataclasses import dataclass
from dualopt.methods.preparation import OneShotAverage

@dataclass(frozen=True, kw_only=True)
class Mine(OneShotAverage):
    "The one-shot average again."
"""


def test_a_run_is_not_resumed_with_another_preparation(program, monkeypatch):
    """Neither one that is named otherwise nor one whose file has changed; the sentence says which."""
    for name in ("step.py", "other.py"):
        Path(name).write_text(STEP)
    command = [*PARTIAL, "--start", "step.py:Mine"]
    interrupt(monkeypatch, 3)
    assert program(*command)[0] == 130
    calm(monkeypatch)
    (recorded,) = json.loads(Path("out/run.json").read_text())["plug_ins"].values()
    assert recorded["file"] == str(Path("step.py").absolute())
    said = refusal(program, *PARTIAL, "--start", "other.py:Mine", "--resume")
    assert "of other options (start is 'step.py:Mine' there and 'other.py:Mine' here)" in said
    Path("step.py").write_text(STEP.replace("again", "once more"))
    said = refusal(program, *command, "--resume")
    assert "holds an unfinished dualopt run of other code (step.py:Mine has changed), which would not end" in said
    Path("step.py").write_text(STEP)
    assert program(*command, "--resume")[0] == 0


def test_a_damaged_session_and_one_of_another_version_are_refused(program, monkeypatch):
    """The runs of other versions are in files that this one does not read; nothing is lost unasked."""
    interrupt(monkeypatch, 3)
    assert program(*PARTIAL)[0] == 130
    calm(monkeypatch)
    path = Path("out/run.checkpoint/session.json")
    session = json.loads(path.read_text())
    for version in ({}, {"version": 1}, {"version": 3}):
        path.write_text(json.dumps({name: value for name, value in session.items() if name != "version"} | version))
        for more in ([], ["--resume"], ["--resume", "--keep-stale"]):
            said = refusal(program, *PARTIAL, *more)
            assert said.endswith("session.json' is of another version of dualopt: --overwrite starts over.")
    for content in ("", "[]", "{}", '{"command": "run", "options": {}}'):
        path.write_text(content)
        said = refusal(program, *PARTIAL, "--resume")
        assert "session.json' is no record of dualopt: --overwrite starts over" in said
    assert Path("out/run.checkpoint/run.journal").exists()
    path.unlink()
    assert program(*PARTIAL, "--overwrite")[0] == 0


def test_ctrl_c_while_modules_are_imported_ends_quietly(capsys):
    def interrupted(**_):
        raise KeyboardInterrupt

    with pytest.raises(SystemExit) as end:
        cli.program(interrupted, "dualopt", ["run"])
    assert end.value.code == 130
    assert capsys.readouterr() == ("", "")


def test_a_disk_without_room_for_the_first_checkpoint_keeps_nothing(program, monkeypatch):
    genuine = resume.output.write_json

    def full(path, content):
        if path.name == "session.json":
            raise OSError(28, "No space left on device")
        genuine(path, content)

    monkeypatch.setattr(resume.output, "write_json", full)
    assert refusal(program, *PARTIAL) == "file cannot be used: No space left on device."
    assert not Path("out").exists()


# Results.


def test_results_of_other_options_stay(program):
    program(*RUN)
    before = contents()
    assert refusal(program, *RUN, "--mu", "0.02", "--alpha", "0.5") == (
        "out 'out' holds 'run.json' of other options (alpha is 0.3 there and 0.5 here, "
        "mu is 0.01 there and 0.02 here): "
        "give another --out, or --overwrite."
    )
    assert "algorithm is 'dualfl' there and 'fedavg' here" in refusal(program, *RUN, "--algorithm", "fedavg")
    assert contents() == before
    assert program(*RUN)[0] == 0  # the same again
    assert contents() == before
    assert program(*RUN, "--mu", "0.02", "--overwrite")[0] == 0
    assert contents() != before
    assert program("compare", *RUN[1:], "--algorithm", "dualfl")[0] == 0  # other files


def test_files_of_others_stay(program):
    Path("out").mkdir()
    Path("out/trace.csv").write_text("mine")
    sentence = "out 'out' holds 'trace.csv' of something else: give another --out, or --overwrite."
    assert refusal(program, *RUN) == sentence
    assert refusal(program, *RUN, "--resume") == sentence
    assert Path("out/trace.csv").read_text() == "mine"
    Path("out/run.json").write_text("{}")
    assert "run.json' is no record of dualopt" in refusal(program, *RUN)
    assert program(*RUN, "--overwrite")[0] == 0


def test_results_of_other_data_stay(program):
    X = np.random.default_rng(0).standard_normal((60, 2))
    mine = ["run", "--data", "mine.npz", "--clients", "3", "--rounds", "2"]
    np.savez("mine.npz", X=X, y=np.sign(X[:, 0]))
    assert program(*mine)[0] == 0
    assert program(*mine)[0] == 0
    for changed in ({"X": X, "y": np.sign(X[:, 1])}, {"X": X * [1, 1.001], "y": np.sign(X[:, 0])}):
        np.savez("mine.npz", **changed)
        assert "holds results of other data" in refusal(program, *mine)


def test_two_commands_do_not_share_a_folder(program, monkeypatch):
    def at_once(*arguments, **options):
        with resume.locked("elsewhere", "run", wait=False):
            pass
        with resume.locked("out", "compare", wait=False):
            pass
        taken = resume.locked("out", "run", wait=False)
        with pytest.raises(ValueError, match=r"out 'out' is in use by another dualopt run\."):
            taken.__enter__()
        return run_federation(*arguments, **options)

    Path("elsewhere").mkdir()
    monkeypatch.setattr(commands, "run_federation", at_once)
    assert program(*RUN)[0] == 0
    assert list(Path("elsewhere").iterdir()) == []


def test_a_picture_that_cannot_be_drawn_does_not_cost_the_model(program, monkeypatch):
    program(*RUN, "--out", "whole")

    def full_disk(*_):
        raise OSError(28, "No space left on device", "out/convergence.png")

    for name in ("save", "save_for_print"):
        monkeypatch.setattr(plotting, name, full_disk)
    assert "No space left on device" in refusal(program, *RUN)
    assert {**contents(), "convergence.png": b"\x89PNG"} == contents("whole")
    assert "No space left on device" in refusal(program, "compare", *RUN[1:], "--algorithm", "dualfl")
    assert {"compare.json", "dualfl.csv"} < set(contents())


# Repeating.


@pytest.mark.parametrize("command", [PARTIAL, COMPARE])
def test_a_record_is_repeated(program, command):
    options = [*command, "--mu", "0.02", "--solver", "lbfgs", "--solver-param", "history=4", "--intercept", "none"]
    assert program(*options, "--out", "first")[0] == 0
    assert program(command[0], "--from", f"first/{command[0]}.json", "--out", "second")[0] == 0
    assert contents("first") == contents("second")


def test_what_is_no_record_or_has_other_data_is_refused(program):
    X = np.random.default_rng(0).standard_normal((60, 2))
    np.savez("mine.npz", X=X, y=np.sign(X[:, 0]))
    program("run", "--data", "mine.npz", "--clients", "3", "--rounds", "2", "--out", "first")
    again = ["run", "--from", "first/run.json", "--out", "second"]
    assert "mu must not be given with --from, which repeats" in refusal(program, *again, "--mu", "0.01")
    assert "is a record of dualopt run: use that" in refusal(program, "compare", *again[1:], "--algorithm", "dualfl")
    Path("moved").mkdir()
    Path("mine.npz").rename("moved/yours.npz")
    code, _, err = program(*again, "--data", "moved/yours.npz")
    assert (code, err) == (0, "")
    np.savez("moved/yours.npz", X=X, y=np.sign(X[:, 1]))
    words = refusal(program, *again, "--data", "moved/yours.npz", "--overwrite")
    assert words.startswith("from 'first/run.json' has other data: their hash is ")
    record = json.loads(Path("first/run.json").read_text())
    Path("bad.json").write_text(json.dumps(record | {"options": record["options"] | {"colour": "red"}}))
    assert "has the option colour, which this version does not know" in refusal(program, "run", "--from", "bad.json")
    Path("bad.json").write_text("nonsense")
    assert "file 'bad.json' is no record of dualopt" in refusal(program, "run", "--from", "bad.json")
    assert "no.json" in refusal(program, "run", "--from", "no.json")


# Killed, in short; ``python -m tests.kill`` does it at many moments, with figures too.


PROBLEM = ["--rows", "200", "--clients", "6", "--mu", "1e-3", "--participation", "subset=2"]
SHORT = {
    "run": [*("dualopt", "run", *PROBLEM, "--tol", "0", "--checkpoint-every", "0.05", "--resume"),
            *("--algorithm", "feddyn", "--rounds", "150")],
    "tune": [*("dualopt", "tune", *PROBLEM, "--algorithm", "feddyn", "--grid", "alpha=0.01,0.1", "--jobs", "2"),
             *("--rounds", "30", "--target", "1e-5")],
}  # fmt: skip


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="looks up processes in /proc")
@pytest.mark.parametrize(("name", "number"), [("run", signal.SIGKILL), ("tune", signal.SIGTERM)])
def test_a_killed_command_is_continued(tmp_path, monkeypatch, name, number):
    monkeypatch.setattr(kill, "COMMANDS", SHORT)
    whole, lasts = kill.undisturbed(name, tmp_path / "whole")
    assert len(whole) > 1
    kill.trial(name, number, whole, lasts, random.Random(0), tmp_path / number.name)
