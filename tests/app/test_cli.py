"""The program: what it writes, what it shows, and how it refuses."""

from __future__ import annotations

import inspect
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tomllib
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib import image

import dualopt.losses
import dualopt.methods
import dualopt.solvers
from dualopt.app.cli import listing, main
from dualopt.app.cli import prepared as commands
from dualopt.app.cli.options import LoopOptions, MethodOptions, PreparationOptions, option_groups
from dualopt.app.cli.resume import KeepOptions
from dualopt.app.cli.tune import SearchOptions
from dualopt.engine.rounds import resolve
from dualopt.methods import DualFL, participation
from dualopt.objectives import Quadratic, linear_model
from dualopt.problem import data
from dualopt.problem.build import automatic_loss
from dualopt.problem.data import load
from dualopt.problem.options import ProblemOptions
from dualopt.runs.recording import run as run_federation
from dualopt.runs.trace import Trace
from dualopt.solvers import LBFGS, NewtonCG
from dualopt.solvers.stopping import Gap, GradientNorm, LinearSchedule
from dualopt.spec import Spec
from dualopt.spec.discover import discover
from tests.programs import called

QUICK = ["--rows", "200", "--clients", "3", "--rounds", "5"]
RUN_FILES = {"convergence.png", "run.json", "trace.csv", "trace.npz", "model.json", "model.npz"}


@pytest.fixture
def program(tmp_path, monkeypatch, capsys):
    """Return a function that runs the program in an empty folder and returns exit code, output and errors."""
    monkeypatch.chdir(tmp_path)

    return partial(called, capsys, main)


def refusal(program, *arguments):
    """Return the one sentence with which the program refuses."""
    code, out, err = program(*arguments)
    assert code == 2, (out, err)
    assert out == ""
    assert re.fullmatch(r"dualopt: [^\n]+[.?]\n", err), err
    return err.removeprefix("dualopt: ").rstrip("\n")


def shown(out, name):
    """Return what the closing table says of ``name``."""
    return next(cells[2].strip() for line in out.splitlines() if (cells := line.split("│"))[1:] and name in cells[1])


# What is written and shown.


def test_run_writes_files_that_agree_with_each_other_and_with_the_library(program):
    code, out, err = program("run", *QUICK, "--tol", "0", "--certify-every", "2", "--seed", "3")
    assert (code, err) == (0, "")
    assert {path.name for path in Path("out").iterdir()} == RUN_FILES
    assert image.imread("out/convergence.png").shape[2] in (3, 4)
    table, archive = Trace.from_csv("out/trace.csv"), Trace.from_npz("out/trace.npz")
    assert table.status == archive.status == "max_rounds"
    assert archive.theta.shape == (10, 65)
    for name in archive.columns:
        np.testing.assert_array_equal(table[name], archive[name])
    assert np.isfinite(archive["certificate"]).tolist() == [True, False, True, False, True, True]

    record = json.loads(Path("out/run.json").read_text(), parse_constant=pytest.fail)
    assert record["command"] == "run"
    assert record["status"] == "max_rounds"
    assert record["options"]["rows"] == 200
    assert record["options"]["seed"] == 3
    assert record["options"]["loss"] == "auto"
    assert record["problem"]["loss"] == "multinomial"
    assert sum(record["problem"]["client_rows"]) == 200
    assert record["final"] == archive.last
    assert record["wall_seconds"] >= record["final"]["seconds"] > 0
    assert record["versions"]["numpy"] == np.__version__
    assert record["parameters"]["hyperparameters"]["dualfl"]["nu"] == 0.01

    # The same by hand: a wrong seed, partition, weight or intercept anywhere shows here.
    digits = load("digits")
    chosen = data.subsample(digits.y, 200, 3)
    clients = data.partition("iid", digits.y[chosen], 3, seed=3)
    objective = linear_model(
        digits.X[chosen],
        data.encode_labels(digits.y, "class")[chosen],
        loss=dualopt.losses.Multinomial(classes=10),
        mu=0.01,
        clients=[part.tolist() for part in clients],
    )
    expected = run_federation(DualFL(), objective, rounds=5, seed=3)
    assert archive.last["energy"] == expected.last["energy"]

    assert shown(out, "rounds") == "5"
    assert shown(out, "status").startswith("max_rounds: all rounds were run")
    assert float(shown(out, "energy E")) == pytest.approx(archive.last["energy"], rel=1e-9)
    assert "chosen for the labels" in shown(out, "loss")
    scores = np.concatenate([archive.theta @ X.T for X, _, _ in objective.client_rows()], axis=1)
    labels = np.concatenate([y for _, y, _ in objective.client_rows()])
    assert shown(out, "training accuracy") == f"{np.mean(scores.argmax(axis=0) == labels):.2%}"
    for name in RUN_FILES:
        assert name in out  # the files take more than a line


@pytest.mark.usefixtures("undrawn")
def test_options_reach_what_they_name(program):
    code, out, _ = program(
        *("run", "--data", "synthetic-regression", "--data-param", "m=60", "--data-param", "d=4", "--clients", "3"),
        *("--loss", "huber", "--loss-param", "delta=0.5", "--mu", "0.2", "--dtype", "float32", "--intercept", "none"),
        *(
            "--partition",
            "lognormal",
            "--sigma",
            "0.5",
            "--client-weights",
            "rows",
            "--rounds",
            "2",
            "--out",
            "deep/er",
        ),
        *("--solver", "newton", "--solver-param", "max_cg=7", "--stop", "gradient=1e-3", "--threads", "1"),
        *("-p", "rho=1e-3", "--param", "nu=0.1"),
    )
    assert code == 0, out
    archive = Trace.from_npz("deep/er/trace.npz")
    used = archive.parameters["hyperparameters"]["dualfl"]
    assert archive.theta.shape == (4,)
    assert archive.theta.dtype == np.float32
    assert (used["rho"], used["nu"]) == (1e-3, 0.1)
    assert used["solver"]["newton"]["max_cg"] == 7
    assert used["stop"] == {"gradient": {"tol": 1e-3}}
    record = json.loads(Path("deep/er/run.json").read_text())
    assert record["training_accuracy"] is None
    assert len(set(record["problem"]["client_rows"])) > 1
    assert "accuracy" not in out


@pytest.mark.usefixtures("undrawn")
def test_binary_labels_and_a_nonsmooth_loss(program):
    arguments = ["run", "--data", "breast_cancer", "--clients", "4", "--rounds", "5"]
    code, out, _ = program(*arguments, "--loss", "hinge", "--solver", "dual-coordinate")
    assert code == 0
    assert 0.9 < float(shown(out, "training accuracy").rstrip("%")) / 100 <= 1
    assert "inf" in shown(out, "mu, kappa")
    assert json.loads(Path("out/run.json").read_text())["problem"]["kappa"] is None


WRONG = """
from dualopt import L1
class Wrong(L1):
    def minimal_subgradient(self, theta, gradient):
        return 0.0 * theta
"""
FALSE = ["--data", "breast_cancer", "--scale", "standard", "--regulariser", "wrong.py:Wrong=0.05", "--rounds", "3"]


@pytest.mark.usefixtures("undrawn")
def test_a_false_certificate_is_told(program, monkeypatch):
    """In red, in the record, by the exit code, and again when the command is repeated; unknown without a reference."""
    Path("wrong.py").write_text(WRONG)
    run = ["run", *FALSE, "--algorithm", "feddr", "--certify-every", "0", "--tol", "0"]
    assert program(*run)[0] == 0
    monkeypatch.setenv("FORCE_COLOR", "1")
    for words in (["--reference", "--overwrite"], ["--reference", "--resume"]):
        code, shown, said = program(*run, *words)
        record = json.loads(Path("out/run.json").read_text())
        assert (code, record["status"], record["complete"]) == (3, "contradicted", False)
        assert "contradicted: the certificate is below the error" in shown
        assert re.search(r"\x1b\[1;31mdualopt: feddr: E - E\* = \S+ by the reference, where at most \S+ is cert", said)
        assert not Path("out/run.checkpoint").exists()
    code, shown, said = program("compare", *FALSE, "--algorithm", "feddr", "--algorithm", "b@feddr:eta=1",
                                "--reference", "--out", "both")  # fmt: skip
    runs = json.loads(Path("both/compare.json").read_text())["runs"]
    assert (code, runs["feddr"]["status"], said.count("by the reference")) == (3, "contradicted", len(runs))


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("reference", [[], ["--reference"]])
def test_a_minimum_of_zero_is_said_and_has_a_tolerance(program, reference):
    X = np.random.default_rng(0).standard_normal((12, 3))
    np.savez("zero.npz", X=X, y=np.zeros(12))
    zero = ["run", "--data", "zero.npz", "--loss", "squared", "--clients", "3", *reference]
    code, out, _ = program(*zero)
    assert code == 0
    assert "undefined: nothing shows that E* > 0" in shown(out, "certified relative error")
    assert shown(out, "status").startswith("stalled")
    code, out, _ = program(*zero, "--atol", "1e-9", "--overwrite")
    assert code == 0
    assert shown(out, "status").startswith("converged")
    assert shown(out, "rounds") == "1"
    if reference:
        assert shown(out, "error E - E*, E* = 0") == "0.00e+00"
    assert program("compare", *zero[1:], "--algorithm", "dualfl", "--algorithm", "fedpd")[0] == 0
    assert "atol must be at least 0" in refusal(program, *zero, "--atol", "-1", "--overwrite")


@pytest.mark.usefixtures("undrawn")
def test_assumptions_can_be_waived(program):
    assert program("run", *QUICK, "-p", "nu=0.02", "--no-check-assumptions")[0] == 0
    assert Trace.from_csv("out/trace.csv").parameters["hyperparameters"]["dualfl"]["nu"] == 0.02


def test_compare_runs_variants_on_one_problem(program):
    code, out, err = program(
        *("compare", *QUICK, "--tol", "0", "--solver", "newton"),
        *("--algorithm", "dualfl", "--algorithm", "plain@dualfl:rho=0,solver=lbfgs,solver.history=4,stop=steps=3"),
    )
    assert (code, err) == (0, "")
    names = {"compare.png", "compare.pdf", "compare.csv", "compare.dat", "compare.json", "dualfl.csv", "plain.csv"}
    names |= {f"{name}.model.{end}" for name in ("dualfl", "plain") for end in ("json", "npz")}
    assert {path.name for path in Path("out").iterdir()} == names
    first, second = Trace.from_csv("out/dualfl.csv"), Trace.from_csv("out/plain.csv")
    assert first["energy"][0] == second["energy"][0]
    assert first.parameters["hyperparameters"]["dualfl"]["solver"].keys() == {"newton"}
    used = second.parameters["hyperparameters"]["dualfl"]
    assert (used["rho"], used["solver"]["lbfgs"]["history"], used["stop"]) == (0.0, 4, {"steps": {"steps": 3}})
    record = json.loads(Path("out/compare.json").read_text(), parse_constant=pytest.fail)
    assert {label: run["final"]["energy"] for label, run in record["runs"].items()} == {
        "dualfl": first.last["energy"],
        "plain": second.last["energy"],
    }
    (row,) = (line for line in out.splitlines() if line.startswith("│ plain "))
    assert [cell.strip() for cell in row.split("│")[2:5]] == ["max_rounds", "5", f"{second.last['energy']:.8g}"]
    assert image.imread("out/compare.png").shape[1] == 7.2 * 150


def read_blocks(path):
    """Return the blocks of a file as gnuplot reads it without options: words at spaces, two empty lines between blocks.

    As ``help data`` has it: what begins with ``#`` is a comment, quotes hold text together, ``using`` counts columns.
    """
    blocks = Path(path).read_text().split("\n\n\n")
    lines = [[line for line in block.splitlines() if line and not line.startswith("#")] for block in blocks]
    return {shlex.split(first)[0]: np.array([line.split() for line in rest], dtype=float) for first, *rest in lines}


def test_pandas_and_gnuplot_read_what_compare_writes_without_options(program):
    algorithms = ("--algorithm", "dualfl", "--algorithm", "two words@fedsplit:step=0.1")
    code, _, err = program("compare", *QUICK, "--certify-every", "2", *algorithms)
    assert (code, err) == (0, "")
    traces = {"dualfl": Trace.from_csv("out/dualfl.csv"), "two words": Trace.from_csv("out/two-words.csv")}
    columns = list(traces["dualfl"].columns)
    table = pytest.importorskip("pandas").read_csv("out/compare.csv")
    assert list(table.columns) == ["run", *columns]
    assert all(kind.kind in "if" for kind in table.dtypes[1:])
    blocks = read_blocks("out/compare.dat")
    comment = Path("out/compare.dat").read_text().partition("\n")[0]
    assert comment == "# " + ", ".join(f"{n} {column}" for n, column in enumerate(columns, start=1))
    assert list(blocks) == list(traces)
    for label, trace in traces.items():
        expected = np.column_stack(list(trace.columns.values()))
        # pandas before 3 reads the last digit in its own way
        np.testing.assert_allclose(table[table["run"] == label].iloc[:, 1:].to_numpy(float), expected, rtol=1e-14)
        np.testing.assert_array_equal(blocks[label], expected)


def test_pictures_are_as_wide_as_asked_for(program):
    assert program("run", *QUICK, "--width", "column")[0] == 0
    assert image.imread("out/convergence.png").shape[1] == 3.5 * 150
    assert json.loads(Path("out/run.json").read_text())["options"]["width"] == "column"
    assert program("compare", *QUICK, "--algorithm", "dualfl", "--out", "compared")[0] == 0
    pdf = Path("compared/compare.pdf").read_bytes()
    assert b"/Subtype /CIDFontType2" in pdf
    assert b"Type3" not in pdf
    assert "width must be column or page, not 'wide'." in refusal(program, "run", *QUICK, "--width", "wide")


def test_a_label_does_not_take_the_name_of_the_table(program):
    refused = refusal(program, "compare", *QUICK, "--algorithm", "Compare@dualfl")
    assert "algorithm 'Compare' has no name of its own for its file" in refused


def test_list_names_everything(program):
    code, out, _ = program("list")
    assert code == 0
    names = {line.split("│")[1].strip() for line in out.splitlines() if "│" in line}
    for package in (dualopt.methods, dualopt.losses, dualopt.solvers):
        assert set(discover(package)) <= names
    assert set(data.available()) <= names
    _, losses, _ = program("list", "losses")
    assert {line.split("│")[1].strip() for line in losses.splitlines() if "│" in line} == set(discover(dualopt.losses))


@pytest.mark.parametrize(
    "group", [ProblemOptions, MethodOptions, PreparationOptions, LoopOptions, KeepOptions, SearchOptions]
)
def test_every_option_is_explained_and_keeps_its_default(group):
    def command(*, group): ...

    command.__annotations__ = {"group": group}
    options = inspect.signature(option_groups(command)).parameters
    assert list(options) == [*(f.name for f in fields(group)), "help_all"]
    for name in (f.name for f in fields(group)):
        option = options[name]
        (typed,) = option.annotation.__metadata__
        assert len(typed.help) > 10
        assert typed.help.endswith(".")
        assert option.default == getattr(group(), name)


def test_output_that_is_no_terminal_has_no_control_characters(tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(Path(dualopt.__path__[0]).parent), "PYTHONIOENCODING": "utf-8"}
    command = [sys.executable, "-m", "dualopt", "run", *QUICK]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", done.stdout)
    assert max(map(len, done.stdout.splitlines())) <= 120
    assert "status" in done.stdout


# What is refused.


@pytest.fixture
def earlier(program):
    """Make results of an earlier run, and check after the test that they are as they were."""
    Path("out").mkdir()
    for name in RUN_FILES:
        (Path("out") / name).write_text(f"earlier {name}")
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in Path("out").iterdir()}
    yield
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in Path("out").iterdir()} == before


@pytest.mark.usefixtures("earlier")
@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("--algorithm dulafl", r"algorithm must be one of .*; not 'dulafl' \(did you mean dualfl\?\)"),
        ("--data-home missing --data mnist", r"data_home 'missing'"),
        ("--data-param seed=3", r"data_param must not be seed"),
        ("--partition alphabetical", r"partition must be one of iid, .*'alphabetical'"),
        ("--clients 1798", r"clients must be between 1 and the 1797 rows"),
        ("--mu 0", r"mu is 0"),
        ("--loss-param classes=3", r"classes of the loss must be at least the 10 classes"),
        ("-p rho", r"param must be of the form name=value, not 'rho'"),
        ("-p nu=0.02", r"nu = 0.02 must not exceed mu = 0.01"),
        ("--solver exact", r"solver 'exact' needs quadratic local problems"),
        ("--rounds -1", r"rounds must be at least 0, not -1"),
    ],
)
def test_a_mistake_gives_one_sentence_and_leaves_earlier_results_alone(program, arguments, sentence):
    assert re.search(sentence, refusal(program, "run", "--overwrite", *arguments.split()))


@pytest.mark.parametrize(
    ("variants", "sentence"),
    [
        (["dualfl:rho=2"], r"rho must lie in"),
        (["dualfl", "dualfl"], r"algorithm 'dualfl' has no name of its own .*LABEL@"),
        (["a/b@dualfl", "a:b@dualfl"], r"algorithm 'a:b' has no name of its own"),
        (["@dualfl"], r"algorithm must be of the form LABEL@NAME"),
    ],
)
def test_a_wrong_variant_is_refused_before_any_runs(program, variants, sentence):
    options = [part for variant in variants for part in ("--algorithm", variant)]
    assert re.search(sentence, refusal(program, "compare", *options))
    assert list(Path().iterdir()) == []


def test_a_file_in_the_way_of_the_folder_is_reported_before_computing(program, monkeypatch):
    Path("taken").write_text("mine")
    monkeypatch.setattr(commands, "run_federation", lambda *_, **__: pytest.fail("computed something"))
    assert re.match(r"out 'taken' is not a folder that can be written", refusal(program, "run", "--out", "taken"))
    assert re.match(r"out 'taken/a' is not a folder", refusal(program, "run", "--out", "taken/a"))
    assert Path("taken").read_text() == "mine"


def test_an_option_of_the_wrong_type_is_a_usage_error(program):
    code, _, err = program("run", "--rounds", "many")
    assert code == 2
    assert "--rounds" in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (OSError(28, "No space left on device", "out/trace.csv"), "file 'out/trace.csv' cannot be used: No space left"),
        (MemoryError("Unable to allocate 9 EiB"), "memory is too small: Unable to allocate 9 EiB."),
        (
            ModuleNotFoundError("No module named 'rich'", name="rich"),
            'package rich is missing: pip install "dualopt[app]"',
        ),
        (ModuleNotFoundError("data needs scikit-learn."), "data needs scikit-learn."),
    ],
)
def test_what_the_machine_lacks_is_said_in_one_sentence(program, monkeypatch, error, sentence):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(commands, "run_federation", fail)
    assert sentence in refusal(program, "run", *QUICK)


@pytest.mark.parametrize(
    "bug",
    [lambda: int("x" + json.dumps([])), lambda: json.loads("{"), lambda: [][1], lambda: __import__("no_such_one")],
)
def test_a_bug_keeps_its_traceback(monkeypatch, bug):
    monkeypatch.setattr(listing, "discover", lambda _: bug())
    with pytest.raises((ValueError, IndexError, ModuleNotFoundError)):
        main(["list"])


def test_the_lowest_typer_that_is_promised_is_one_that_starts():
    """Up to 0.15.3 it allows every click, and help, or all of it, fails beside the newest one (8.5)."""
    extras = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    (lowest,) = (need for need in extras["optional-dependencies"]["app"] if need.startswith("typer"))
    assert tuple(map(int, lowest.removeprefix("typer>=").split("."))) >= (0, 15, 4)


def test_a_closed_output_is_no_error(tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(Path(dualopt.__path__[0]).parent)}
    command = f"{shlex.quote(sys.executable)} -m dualopt list losses >&-"
    done = subprocess.run(["sh", "-c", command], env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


# Ctrl-C.


def test_ctrl_c_twice_ends_at_once(program, monkeypatch):
    def press_twice(*_, **__):
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        pytest.fail("went on")

    monkeypatch.setattr(commands, "run_federation", press_twice)
    code, _, _ = program("run", *QUICK)
    assert code == 130
    assert list(Path("out").iterdir()) == []


# Parts.


def test_methods_take_what_they_do_not_name_from_the_options():
    objective = Quadratic(A=np.eye(2)[None] * [[[0.5]]], b=np.ones((1, 2)))

    def made(text: str, **options: Any) -> Any:
        return resolve(MethodOptions(**options).given_to(Spec.parse(text)).build("algorithm"), objective)

    defaults = {"solver": "newton", "solver_param": ["max_cg=3"], "stop": "gradient=1e-5"}
    taken = made("dualfl:nu=0.25", **defaults)
    assert taken.solver == NewtonCG(max_cg=3)
    assert taken.stop == GradientNorm(tol=1e-5)
    assert (taken.nu, taken.rho) == (0.25, 0.5)
    own = made("dualfl:solver=lbfgs", **defaults)
    assert own.solver == LBFGS()  # max_cg belongs to the default solver alone
    assert made("dualfl:solver.max_cg=7", **defaults).solver == NewtonCG(max_cg=7)
    assert made("dualfl: rho=0.5", stop="gap=2").stop == Gap(scale=2.0, schedule=LinearSchedule(rho=0.5, scale=2.0))


@pytest.mark.parametrize(
    ("labels", "loss"),
    [([0, 1, 2], "multinomial"), ([-1.0, 1.0], "logistic"), ([0.5, 1.0], "squared"), (["a", "b"], "logistic")],
)
def test_labels_choose_the_loss(labels, loss):
    assert automatic_loss(np.array(labels)) == loss


# Participation, networks, penalties.


@pytest.mark.usefixtures("undrawn")
def test_compressed_uploads_are_counted_in_bits(program):
    code, out, _ = program("run", *QUICK, "--algorithm", "fedsplit", "--compressor", "natural", "--tol", "0")
    assert code == 0
    assert shown(out, "compressor") == "natural"
    assert shown(out, "theory").startswith("Theorem D")
    trace = Trace.from_csv("out/trace.csv")
    assert np.diff(trace["bits_up"]).tolist() == [3 * 650 * 9] * 5
    assert np.diff(trace["bits_down"]).tolist() == [3 * 650 * 64] * 5
    assert shown(out, "bits sent") == f"{5 * 3 * 650 * 9:,} up, {5 * 3 * 650 * 64:,} down"
    record = json.loads(Path("out/run.json").read_text())
    assert record["parameters"]["compressor"] == {"natural": {}}


@pytest.mark.usefixtures("undrawn")
def test_methods_can_be_compared_with_a_compressor(program):
    """Values of L-BFGS at the server are sent in full, and its vectors are compressed."""
    names = ("fedsplit", "dualfl", "distributed-lbfgs")
    runs = [word for name in names for word in ("--algorithm", name)]
    code, out, _ = program("compare", *QUICK, *runs, "--compressor", "rand-k=65", "--tol", "0")
    assert code == 0
    assert len(re.findall(r"\bbits\b", out)) == 2  # up and down, a column each
    up = [Trace.from_csv(f"out/{name}.csv")["bits_up"][-1] for name in names]
    assert up == [5 * 3 * 65 * 64] * 2 + [5 * 3 * (65 + 1) * 64]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("--algorithm fedsplit --compressor rand-k", "compressor rand-k needs size: write 'rand-k: size=...'."),
        ("--algorithm fedsplit --compressor naturel", "compressor must be one of cohorts, identity, natural, "),
        ("--algorithm fedsplit --compressor rand-k=651", "size of the compressor must be at most the number of coord"),
    ],
)
def test_compressors_that_cannot_be_used_are_refused(program, arguments, sentence):
    assert refusal(program, "run", *QUICK, *arguments.split()).startswith(sentence)
    assert not Path("out").exists()


@pytest.mark.usefixtures("undrawn")
def test_participation_is_that_of_the_library(program):
    _, out, _ = program(
        "run", *QUICK, "--algorithm", "a-fedpd", "--participation", "bernoulli=0.5", "--seed", "4", "--tol", "0"
    )
    assert shown(out, "participation") == "bernoulli=0.5"
    up = np.diff(Trace.from_csv("out/trace.csv")["floats_up"]) / 650
    chance = participation.Bernoulli(probability=0.5).rounds(3, seed=4)
    assert up.tolist() == [next(chance).n_active for _ in range(5)]


@pytest.mark.usefixtures("undrawn")
def test_a_network_is_trained_and_tested(program, tmp_path):
    X = np.random.default_rng(0).standard_normal((400, 2))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    np.savez(tmp_path / "xor.npz", X_train=X[:300], y_train=y[:300], X_test=X[300:], y_test=y[300:])
    code, out, err = program(
        "run", "--data", "xor.npz", "--model", "mlp=16", "--mu", "0", "--algorithm", "fedavg", "--test-accuracy",
        "--solver", "sgd", "--solver-param", "step=0.3", "--solver-param", "batch=10", "--solver-param", "epochs=3",
        "--participation", "subset=4", "--rounds", "40", "--tol", "0",
    )  # fmt: skip
    assert code == 0, err
    trace = Trace.from_csv("out/trace.csv")
    assert trace["test_accuracy"][-1] > 0.9  # no linear model does better than chance on this pattern
    assert shown(out, "test accuracy") == f"{trace['test_accuracy'][-1]:.2%}"
    assert shown(out, "certified gap") == "none"


def test_the_column_to_draw_is_chosen(program):
    both = ["--algorithm", "feddyn", "--algorithm", "fedavg"]
    assert program("compare", *QUICK, *both, "--plot", "energy")[0] == 0
    assert Path("out/compare.png").exists()
    sentence = refusal(program, "compare", *QUICK, *both, "--plot", "test_accuracy")
    assert sentence.startswith("plot must be one of energy, certificate, certified_error, gradient_norm; not")


def test_a_nonconvex_penalty_is_named_and_drawn_by_its_gradient(program):
    code, out, _ = program(
        "run", *QUICK, "--loss", "multinomial", "--mu", "0", "--penalty", "0.1", "--algorithm", "fedpd"
    )
    assert code == 0
    assert shown(out, "penalty") == "0.1 sum t^2/(1 + t^2), nonconvex"
    gradients = Trace.from_csv("out/trace.csv")["gradient_norm"]
    assert np.all(np.diff(gradients) < 0)


def test_what_a_method_does_not_support_is_refused_before_the_data_are_loaded(program):
    missing = ["--data", "nowhere.npz"]
    sentence = refusal(program, "run", *missing, "--algorithm", "fedpd", "--participation", "subset=2")
    assert sentence.startswith("algorithm fedpd does not support participation subset=2; a-fedpd, ")
    sentence = refusal(program, "run", *missing, "--algorithm", "feddyn", "--regulariser", "l1=0.1")
    assert sentence == "algorithm feddyn does not support a regulariser; feddr, feddualavg do."


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--participation", "few"], "participation must be one of full, subset, "),
        (["--algorithm", "feddyn", "--participation", "subset=9"], "size must not exceed the number of clients, 8"),
        (["--model", "resnet"], "model must be linear, mlp=WIDTH,WIDTH"),
        (["--model", "mlp=4,1000001"], "model must have layers of at most 1000000 units, not 1000001."),
        (["--model", "mlp=20", "--loss", "logistic"], "loss must be multinomial for model mlp=20, not 'logistic'"),
        (["--test-accuracy", "--split", "train"], "split must not be given with --test-accuracy"),
        (["--reference", "--model", "mlp=5", "--algorithm", "fedavg"], "reference must not be asked for when E is not"),
        (["--reference", "--penalty", "9", "--algorithm", "fedpd"], "reference must not be asked for when E is not"),
        (["--solver", "sgd"], "solver sgd needs step: write 'sgd: step=...'."),
        (["--penalty", "-1"], "lam must be a finite number, at least 0"),
    ],
)
def test_bad_problems_get_one_sentence(program, options, sentence):
    assert refusal(program, "run", *options).startswith(sentence)


@pytest.mark.usefixtures("undrawn")
def test_rounds_that_send_nothing_are_told_apart(program):
    chance = ["--participation", "communicate=0.3", "--seed", "1", "--tol", "0"]
    _, out, _ = program("run", *QUICK, "--algorithm", "scaffnew", *chance)
    coins = participation.CommunicateWithProbability(probability=0.3).rounds(3, seed=1)
    assert shown(out, "rounds") == f"5 ({sum(next(coins).communicate for _ in range(5))} sent)"
    _, out, _ = program("run", *QUICK, "--tol", "0", "--overwrite")
    assert shown(out, "rounds") == "5"
