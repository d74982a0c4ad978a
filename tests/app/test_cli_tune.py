"""The command tune: what it writes, how it resumes, and how it refuses."""

from __future__ import annotations

import csv
import itertools
import json
import re
import shlex
import signal
from pathlib import Path

import numpy as np
import pytest

from dualopt.app.cli import main, tune
from dualopt.runs import tuning
from dualopt.runs.recording import run as run_federation
from tests.app import test_cli

bare_program = test_cli.program
refusal = test_cli.refusal
SINGLE = ("--algorithm", "--rounds", "--target", "--rows", "--clients")

QUICK = ["tune", "--rows", "200", "--clients", "3", "--rounds", "30", "--target", "1e-2", "--algorithm", "fedpd"]
GRID = ["--grid", "eta=0.3,10,30", "--grid", "solver.history=5,20", "--solver", "lbfgs"]


@pytest.fixture
def program(bare_program):
    """Return the function of `test_cli.program`, for words that replace those of ``QUICK``: none is given twice."""

    def call(*words):
        kept = [str(word) for word in words]
        for name in SINGLE if kept[0] == "tune" else ():
            while kept.count(name) > 1:
                del kept[(first := kept.index(name)) : first + 2]
        return bare_program(*kept)

    return call


def table(folder="out"):
    with Path(folder, "tune.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def timeless(rows):
    return [{name: value for name, value in row.items() if name != "seconds"} for row in rows]


def contents(folder="out"):
    return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


@pytest.fixture
def runs(monkeypatch):
    """The hyperparameters of every run of a search in this process."""
    ran = []

    def recorded(algorithm, *arguments, **options):
        ran.append(algorithm)
        return run_federation(algorithm, *arguments, **options)

    monkeypatch.setattr(tuning, "run", recorded)
    return ran


# What is written and shown.


@pytest.mark.usefixtures("undrawn")
def test_the_winner_is_that_of_runs_one_by_one(program, runs):
    code, out, err = program(*QUICK, *GRID)
    assert (code, err) == (0, "")
    rows = table()
    assert [(row["eta"], row["solver.history"]) for row in rows] == list(
        itertools.product(["0.3", "10", "30"], ["5", "20"])
    )
    assert list(rows[0]) == ["eta", "solver.history", "status", "rounds", "error", "seconds"]
    points = {
        (row["eta"], row["solver.history"]): f"fedpd:eta={row['eta']},solver.history={row['solver.history']}"
        for row in rows
    }
    words = [word for text in points.values() for word in ("--algorithm", text)]
    assert program("compare", *QUICK[1:7], "--tol", "1e-2", "--solver", "lbfgs", *words, "--out", "each")[0] == 0
    each = json.loads(Path("each/compare.json").read_text())["runs"]
    reached = {point: each[text] for point, text in points.items() if each[text]["status"] == "converged"}
    rounds = {point: run["final"]["round"] for point, run in reached.items()}
    cost = min(rounds.values())
    best = next(point for point in rounds if rounds[point] == cost)
    assert len(set(rounds.values())) > 1
    assert f"winner, {cost:.0f} rounds:\n" in out
    row = next(row for row in rows if (row["eta"], row["solver.history"]) == best)
    assert (row["status"], float(row["rounds"])) == ("converged", cost)
    assert 0 < float(row["error"]) <= 1e-2
    cells = [line.split("│") for line in out.splitlines() if line.startswith("│")]
    assert [cell.strip() for cell in cells[0][1:4]] == [*best, "converged"]  # the table begins with the winner
    assert len(cells) == 6


@pytest.mark.usefixtures("undrawn")
def test_a_false_certificate_is_told(program):
    Path("wrong.py").write_text(test_cli.WRONG)
    words = ["tune", *test_cli.FALSE, "--algorithm", "feddr", "--grid", "eta=1,5", "--reference", "--target", "1e-3"]
    for _ in range(2):  # it is kept
        code, shown, said = program(*words)
        found = json.loads(Path("out/tune.json").read_text())["points"]
        assert (code, [point["status"] for point in found]) == (3, ["contradicted"] * 2)
        assert "eta=5: the certificate is below the error that the reference shows" in said
        assert "no winner" in shown


@pytest.mark.parametrize("reference", [[], ["--reference"]])
def test_the_command_of_the_winner_does_what_the_table_says(program, reference):
    code, out, _ = program(
        *QUICK, *reference, "--metric", "gradients", "--grid", "eta=10,30", "--grid", "stop=steps=3,steps=6",
        "--grid", "solver=gradient,lbfgs", "--partition", "by-label", "--intercept", "none", "--mu", "0.1",
    )  # fmt: skip
    assert code == 0
    words = shlex.split(out.splitlines()[-1])
    assert words[:2] == ["dualopt", "run"]
    assert program(*words[1:], "--out", "again")[0] == 0
    record = json.loads(Path("again/run.json").read_text())
    best = min((row for row in table() if row["status"] == "converged"), key=lambda row: float(row["gradients"]))
    assert f"{record['final']['gradients']:.12g}" == best["gradients"]
    assert record["final"]["error" if reference else "certified_error"] == pytest.approx(float(best["error"]))


def test_who_takes_part_can_be_searched(program):
    code, out, _ = program(
        *QUICK, "--algorithm", "scaffnew", "--grid", "participation=full,communicate=0.5", "-p", "probability=0.5",
        "--metric", "floats",
    )  # fmt: skip
    assert code == 0
    full, half = (float(row["floats"]) for row in table())
    assert full == 30 * 3 * 2 * 650 + 3 * 650  # up and down, and the start
    assert 0.2 < half / full < 0.8
    assert "no winner: no point has reached the relative error 0.01." in out


def test_compressors_can_be_searched_by_bits(program):
    """The command for the winner repeats its run."""
    code, out, _ = program(
        *QUICK, "--algorithm", "fedsplit", "--grid", "compressor=identity,natural", "--metric", "bits",
    )  # fmt: skip
    assert code == 0
    words = shlex.split(out.splitlines()[-1])
    assert words[words.index("--compressor") + 1] == "natural"
    assert program(*words[1:], "--out", "again")[0] == 0
    final = json.loads(Path("again/run.json").read_text())["final"]
    best = min((row for row in table() if row["status"] == "converged"), key=lambda row: float(row["bits"]))
    assert f"{final['bits_up'] + final['bits_down']:.12g}" == best["bits"]


# Resuming.


def test_a_search_is_resumed_without_doing_work_twice(program, runs):
    program(*QUICK, *GRID)
    rows, before = table(), contents()
    assert len(runs) == 6
    runs.clear()
    code, out, _ = program(*QUICK, *GRID, "--jobs", "2")
    assert (code, runs, contents()) == (0, [], before)
    assert "winner" in out
    program(*QUICK, *GRID[2:], "--grid", "eta=0.3,3,10,30")  # one more value
    assert sorted({algorithm.eta for algorithm in runs}) == [3.0]
    assert len(runs) == 2
    assert len(table()) == 8
    program(*QUICK, *GRID, "--fresh")
    assert timeless(table()) == timeless(rows)
    assert len(runs) == 8


def test_points_of_an_earlier_grid_stay_and_still_dominate(program, runs):
    program(*QUICK, *GRID)
    (best, *_) = sorted(float(row["rounds"]) for row in table() if row["status"] == "converged")
    code, out, _ = program(*QUICK, "--solver", "lbfgs", "--grid", "eta=0.01")
    assert code == 0
    rows = table()
    assert len(rows) == 7
    assert (rows[0]["eta"], rows[0]["solver.history"], rows[0]["status"]) == ("0.01", "", "dominated")
    assert float(rows[0]["rounds"]) == best + 1
    assert f"winner, {best:.0f} rounds:" in out


def test_ctrl_c_keeps_what_is_done_and_the_next_call_does_the_rest(program, monkeypatch):
    program(*QUICK, *GRID, "--out", "whole")
    ran = []

    def pressing(algorithm, *arguments, callback, **options):
        def pressed(snapshot, row):
            if len(ran) == 3 and row["round"] == 2:
                signal.raise_signal(signal.SIGINT)
            return callback(snapshot, row)

        ran.append(algorithm)
        return run_federation(algorithm, *arguments, callback=pressed, **options)

    monkeypatch.setattr(tuning, "run", pressing)
    code, _, err = program(*QUICK, *GRID)
    assert code == 130
    assert "stopping after this round" in err
    assert len(ran) == 3
    assert len(table()) == 2
    assert program(*QUICK, *GRID)[0] == 0
    assert len(ran) == 3 + 4
    assert timeless(table()) == timeless(table("whole"))


def test_each_point_is_written_when_it_is_done(program, monkeypatch):
    ran = []

    def short_of_memory(*arguments, **options):
        ran.append(arguments)
        if len(ran) == 3:
            raise MemoryError
        return run_federation(*arguments, **options)

    monkeypatch.setattr(tuning, "run", short_of_memory)
    assert refusal(program, *QUICK, *GRID) == "memory is too small."
    assert len(table()) == len(json.loads(Path("out/tune.json").read_text())["points"]) == 2


def test_another_search_in_the_folder_is_refused(program):
    program(*QUICK, "--grid", "eta=10")
    before = contents()
    for changed, sentence in [
        (["--mu", "0.02"], r"mu is 0.01 there and 0.02 here"),
        (["--rows", "201"], r"rows is 200 there and 201 here"),
        (["--algorithm", "fedadmm", "--grid", "rho=1"], r"algorithm is 'fedpd' there and 'fedadmm' here"),
        (["--metric", "floats", "--grid", "eta=10"], r"metric is 'rounds' there and 'floats' here"),
        (["--target", "1e-3", "--grid", "eta=10"], r"target is 0.01 there and 0.001 here"),
        (["--seed", "1", "--grid", "eta=10"], r"seed is 0 there and 1 here"),
        (["--param", "stop=steps:3"], r"param is \{\} there and \{'stop': 'steps:3'\} here"),
    ]:
        grid = [] if "--grid" in changed else ["--grid", "eta=10"]
        said = rf"out 'out' holds another search \({sentence}\): give another --out, or --fresh .*"
        assert re.fullmatch(said, refusal(program, *QUICK, *changed, *grid))
        assert contents() == before
    assert program(*QUICK, *changed, *grid, "--fresh")[0] == 0


def test_other_data_under_the_same_name_are_refused(program):
    X = np.random.default_rng(0).standard_normal((60, 2))
    search = ["tune", "--data", "mine.npz", "--clients", "3", "--rounds", "2", "--grid", "rho=0"]
    np.savez("mine.npz", X=X, y=np.sign(X[:, 0]))
    assert program(*search)[0] == 0
    assert program(*search)[0] == 0
    np.savez("mine.npz", X=X, y=np.sign(X[:, 1]))
    assert "holds another search (data hash is" in refusal(program, *search)


def test_other_clients_of_the_same_rows_are_other_data(program):
    rng = np.random.default_rng(0)
    X, owners = rng.standard_normal((60, 2)), np.repeat([0, 1, 2], 20)
    search = ["tune", "--data", "mine.npz", "--partition", "natural", "--client-weights", "rows", "--rounds", "2"]
    search += ["--grid", "rho=0"]
    np.savez("mine.npz", X=X, y=np.sign(X[:, 0]), clients=owners)
    assert program(*search)[0] == 0
    np.savez("mine.npz", X=X, y=np.sign(X[:, 0]), clients=rng.permutation(owners))
    assert "holds another search (data hash is" in refusal(program, *search)
    np.savez("mine.npz", X=X, y=np.sign(X[:, 0]), clients=owners)
    assert program(*search)[0] == 0
    other = ["equal" if word == "rows" else word for word in search]
    assert "client_weights is 'rows' there and 'equal' here" in refusal(program, *other)


def test_other_code_is_another_search_unless_it_is_kept(program, runs, monkeypatch):
    program(*QUICK, *GRID)
    rows = table()
    monkeypatch.setattr(tune, "sources", lambda parts: "other")
    assert "(sources is" in (words := refusal(program, *QUICK, *GRID))
    assert "--keep-stale" in words
    runs.clear()
    code, out, _ = program(*QUICK, *GRID, "--keep-stale")
    assert (code, runs, table()) == (0, [], rows)
    assert "Part of this was computed by other code" in out
    assert "(sources is" in refusal(program, *QUICK, *GRID)  # it remains stale
    assert program(*QUICK, *GRID, "--fresh")[0] == 0
    assert len(runs) == 6
    assert program(*QUICK, *GRID)[0] == 0


def test_two_searches_in_one_folder_lose_nothing(program, monkeypatch):
    """Another process writes its points while this one computes; an outcome that either has is in the file."""
    program(*QUICK, *GRID, "--out", "whole")
    ran = []

    def meanwhile(*arguments, **options):
        ran.append(arguments)
        if len(ran) == 1:
            with pytest.raises(SystemExit):
                main([*QUICK, "--grid", "eta=10,30", *GRID[2:]])
        return run_federation(*arguments, **options)

    monkeypatch.setattr(tuning, "run", meanwhile)
    assert program(*QUICK, "--grid", "eta=0.3", *GRID[2:])[0] == 0
    assert len(ran) == 6
    found = timeless(table())
    assert sorted(map(str, found)) == sorted(map(str, timeless(table("whole"))))


def test_a_damaged_record_is_refused(program):
    program(*QUICK, "--grid", "eta=10")
    for text in ("", "{", "[]", '{"search": {}}', '{"search": {}, "points": [{"parameters": {}}]}'):
        Path("out/tune.json").write_text(text)
        before = contents()
        assert "is not the record of a search" in refusal(program, *QUICK, "--grid", "eta=10")
        assert contents() == before


# Mistakes.


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("", "grid must be given, as NAME=VALUE,VALUE."),
        ("--grid eta=", "grid must be of the form name=value, not 'eta='"),
        ("--grid eta=1,,2", "grid eta must be of the form VALUE,VALUE without gaps, not '1,,2'"),
        ("--grid eta=1,2,1", "grid eta has the value 1 twice"),
        ("--grid eta=1 --grid eta=2", "grid eta is given twice"),
        (
            "--grid eat=1",
            "parameter of algorithm fedpd must be one of solver, stop, eta; not 'eat' (did you mean eta?)",
        ),
        ("--grid eta=1,-1", "algorithm fedpd: eta must be a positive finite number, not -1.0"),
        ("--grid eta=1 -p eta=2", "param eta is in the grid already"),
        ("--grid participation=full,subset=2", "algorithm fedpd does not support participation subset=2"),
        (
            "--grid eta=1 --metric round",
            "metric must be one of rounds, communications, floats, bits, gradients; not 'round' (did you",
        ),
        ("--grid eta=1 --target 0", "target must be positive"),
        ("--grid eta=1 --jobs 0", "jobs must be at least 1"),
        ("--grid eta=1 --mu 0", "target needs --reference when E is not strongly convex"),
        ("--grid eta=1 --penalty 9 --reference", "reference must not be asked for when E is not convex"),
        ("--grid nu=0.001,0.02 --algorithm dualfl", "nu = 0.02 must not exceed mu = 0.01"),
    ],
)
def test_a_mistake_gives_one_sentence_before_anything_runs(program, runs, arguments, sentence):
    assert refusal(program, *QUICK, *arguments.split()).startswith(sentence)
    assert runs == []
    assert list(Path().iterdir()) == []


def test_a_file_in_the_way_is_reported_before_computing(program, runs):
    Path("taken").write_text("mine")
    assert "taken" in refusal(program, *QUICK, "--grid", "eta=1", "--out", "taken")
    assert (runs, Path("taken").read_text()) == ([], "mine")
