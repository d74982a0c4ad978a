"""The program ``python -m figures``: its files, its store, and what it refuses."""

from __future__ import annotations

import csv
import re
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

import figures._curves
from dualopt.runs import recording
from dualopt.runs.trace import Trace
from figures import (
    _contestants,
    _drift,
    _making,
    _program,
    advice,
    fig1b_clients,
    fig1c_rho,
    phase_diagrams,
    scales,
    table1,
    table1_logistic,
    which_method,
    zero_chain,
)
from figures._settings import Settings
from tests.figures.test_figures_which_method import FEW
from tests.programs import ended, refusal
from tests.runs.test_plotting import kinds_of_fonts

PNG, PDF = b"\x89PNG", b"%PDF"


run_program = partial(ended, _program.main)


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    return refusal(capsys, _program.main, *arguments)


def quick(out: Path, *arguments: str) -> int:
    return run_program(*(arguments or ["fig1c_rho"]), "--out", str(out), "--quick", "--threads", "1")


def compute(figure: ModuleType, out: Path, rounds: int = 3, data: str = "digits") -> None:
    figure.compute(Settings(out=out, rounds=rounds, quick=True, data=data))


@pytest.fixture(autouse=True)
def _few_rounds(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(_program.ROUNDS, True, 12)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The ``rho`` of every run that is really computed."""
    computed: list[float] = []
    genuine = recording.run

    def counted(algorithm, *arguments, **options):
        computed.append(algorithm.rho)
        return genuine(algorithm, *arguments, **options)

    monkeypatch.setattr(figures._curves.recording, "run", counted)
    return computed


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of figures that share what they store."""
    return tmp_path_factory.mktemp("shared")


def draw_pdf_only_unless(both: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw a figure once, for print, which finds what cannot be drawn; one of them as PNG too."""
    genuine = Figure.savefig

    def savefig(self: Figure, file: Any, **options: Any) -> None:
        if both or options["format"] == "pdf":
            genuine(self, file, **{**options, "dpi": 20})
        else:
            file.write(PNG)

    monkeypatch.setattr(Figure, "savefig", savefig)


USUAL = [name for name in _program.discover() if not _program._by_name(name)]  # others: test_figures_cnn.py


@pytest.mark.parametrize("name", USUAL)
def test_every_figure_leaves_its_files(name, shared, three_classes, monkeypatch, capsys):
    # Of figures with many runs or cells, a part: their own tests count every row and compute cells.
    monkeypatch.setattr(table1, "ROWS", {label: table1.ROWS[label] for label in ("FedPD", "FedProx")})
    monkeypatch.setattr(table1, "ALPHA", 0.1)
    monkeypatch.setattr(table1_logistic, "ROWS", {"FedSplit": table1_logistic.ROWS["FedSplit"]})
    monkeypatch.setitem(phase_diagrams.CELLS, True, (3, 2))
    monkeypatch.setitem(zero_chain.ENTRIES, True, 4)
    monkeypatch.setattr(_drift, "CLIENTS", 10)
    monkeypatch.setattr(scales, "ACTIVE", (5,))
    monkeypatch.setattr(advice, "SENT", ("distributed-lbfgs",))
    for module in (_contestants, which_method):
        monkeypatch.setattr(module, "contestants", lambda: FEW)
    draw_pdf_only_unless(name == "fig1c_rho", monkeypatch)
    arguments = ("--data", three_classes, "--rounds", "3", "--out", str(shared))
    assert run_program(name, *arguments, "--quick", "--threads", "1") == 0
    said = capsys.readouterr().out
    assert f"{name}.png, {name}.pdf, {name}.csv" in said
    assert (shared / f"{name}.png").read_bytes().startswith(PNG)
    pdf = (shared / f"{name}.pdf").read_bytes()
    assert pdf.startswith(PDF)
    assert kinds_of_fonts(pdf) == {b"Type0", b"CIDFontType2"}  # journals refuse Type 3
    with (shared / f"{name}.csv").open(newline="") as file:
        assert next(csv.reader(file))[0] == "curve"
        assert len(list(file)) > 1
    assert "\x1b" not in said
    numbers = (shared / f"{name}.csv").read_bytes()
    monkeypatch.setattr(Figure, "savefig", lambda self, file, **options: file.write(PNG))
    assert run_program(name, *arguments, "--quick", "--threads", "1", "--redraw") == 0  # from what is stored
    assert (shared / f"{name}.csv").read_bytes() == numbers


@pytest.mark.usefixtures("undrawn")
def test_the_numbers_in_the_file_are_those_on_the_screen(tmp_path, capsys):
    assert quick(tmp_path, "fig1b_clients") == 0
    said = capsys.readouterr().out
    with (tmp_path / "fig1b_clients.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["curve"] for row in rows] == ["N = 8"] * 13 + ["N = 32"] * 13
    assert [float(row["round"]) for row in rows] == [*range(13), *range(13)]
    errors = np.array([float(row["error"]) for row in rows]).reshape(2, 13)
    assert (errors > 0).all()
    assert (errors[:, -1] < 1e-3).all()
    np.testing.assert_allclose(errors[:, 0], np.log(10) / 0.7410569338310145 - 1, rtol=1e-12)  # E(0) = log 10
    table_row = next(line for line in said.splitlines() if line.startswith("│ N = 8 "))
    first = np.flatnonzero(errors[0] <= 1e-3)[0]
    cells = [cell.strip() for cell in table_row.strip("│").split("│")]
    assert cells[:6] == ["N = 8", "12", *(f"{errors[0, n]:.1e}" for n in (1, 10, 12)), str(first)]


@pytest.mark.usefixtures("undrawn")
class TestEarlierFigures:
    """A command replaces files of its own; those of other options or data, or of something else, only if it is told."""

    def contents(self, out: Path) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()}

    def test_the_same_command_replaces_its_own_files(self, tmp_path):
        assert quick(tmp_path) == 0
        before = self.contents(tmp_path)
        assert before.keys() == {f"fig1c_rho.{end}" for end in ("csv", "json", "pdf", "png")}
        (tmp_path / "fig1c_rho.csv").unlink()
        assert quick(tmp_path, "fig1c_rho", "--jobs", "2") == 0  # has no effect on the figure
        assert self.contents(tmp_path) == before

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            (["--rounds", "3"], "rounds is 12 there and 3 here"),
            (["--data", "breast_cancer"], "data is 'digits' there and 'breast_cancer' here"),
            (["--rounds", "3", "--part", "50"], "rounds is 12 there and 3 here, part is 6000 there and 50 here"),
        ],
    )
    def test_other_options_are_refused_before_anything_is_computed(self, tmp_path, capsys, runs, options, words):
        assert quick(tmp_path) == 0
        before = self.contents(tmp_path)
        runs.clear()
        said = refused(capsys, "fig1c_rho", "--quick", *options, "--out", str(tmp_path))
        assert f"holds 'fig1c_rho.json' of other options ({words}): give another --out, or --overwrite." in said
        assert runs == []
        assert self.contents(tmp_path) == before
        assert quick(tmp_path, "fig1b_clients", *options) == 0  # other files
        assert quick(tmp_path, "fig1c_rho", *options, "--overwrite") == 0
        assert self.contents(tmp_path)["fig1c_rho.csv"] != before["fig1c_rho.csv"]
        assert quick(tmp_path, "fig1c_rho", *options) == 0  # they are its own now

    @pytest.mark.parametrize("file", ["fig1c_rho.png", "fig1c_rho.csv", "fig1c_rho_table.csv", "fig1c_rho.json"])
    def test_a_file_of_something_else_stays(self, tmp_path, capsys, file):
        (tmp_path / file).write_text("mine")
        words = "is no record of dualopt" if file.endswith("json") else f"holds '{file}' of something else"
        assert words in refused(capsys, "fig1b_clients", "fig1c_rho", "--quick", "--out", str(tmp_path))
        assert self.contents(tmp_path) == {file: b"mine"}
        assert quick(tmp_path, "fig1c_rho", "--overwrite") == 0

    def test_what_is_killed_between_two_files_is_repeated(self, tmp_path, monkeypatch):
        def killed(*_):
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(_making, "write_all", killed)
            assert quick(tmp_path) == 130
        (tmp_path / "fig1c_rho.png").write_bytes(PNG)  # the first of its files
        assert quick(tmp_path) == 0

    def test_another_figure_of_the_same_name_is_refused(self, tmp_path, capsys):
        for folder in ("a", "b"):
            (tmp_path / folder).mkdir()
            (tmp_path / folder / "mine.py").write_text(Path(fig1c_rho.__file__).read_text())
        assert quick(tmp_path / "out", str(tmp_path / "a" / "mine.py")) == 0
        said = refused(capsys, str(tmp_path / "b" / "mine.py"), "--quick", "--out", str(tmp_path / "out"))
        assert f"file is '{tmp_path / 'a' / 'mine.py'}' there" in said


def test_without_names_all_figures_are_drawn(tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(_making, "_make", lambda name, *others: drawn.append(name) or 0.0)
    assert run_program("--out", str(tmp_path)) == 0
    assert drawn == USUAL
    assert {*_program.discover()} - {*USUAL} == {"afedpd_table2", "feddyn_table5"}


@pytest.mark.usefixtures("undrawn")
def test_stored_curves_are_not_computed_again(tmp_path, runs):
    assert quick(tmp_path) == 0
    assert runs == [0.0, 0.003, None]
    before = (tmp_path / "fig1c_rho.csv").read_bytes()
    (tmp_path / "fig1c_rho.png").unlink()
    runs.clear()
    assert quick(tmp_path) == 0
    assert runs == []
    assert (tmp_path / "fig1c_rho.csv").read_bytes() == before
    assert (tmp_path / "fig1c_rho.png").exists()


def test_curves_of_changed_data_are_not_mistaken(tmp_path, runs):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), np.arange(60) % 3
    file = tmp_path / "mine.npz"
    for scale in (1.0, 2.0):
        np.savez(file, X=scale * X, y=y)
        compute(fig1c_rho, tmp_path / "out", data=str(file))
    assert len(runs) == 6


def test_figures_share_their_curves(tmp_path, runs):
    compute(fig1b_clients, tmp_path)
    compute(fig1c_rho, tmp_path)
    assert runs == [0.003, 0.003, 0.0, None]  # N = 8 with rho = 0.003 is in both


def test_an_interrupted_computation_resumes(tmp_path, runs, monkeypatch):
    counted = recording.run

    def interrupted(algorithm, *arguments, **options):
        if algorithm.rho is None:
            raise KeyboardInterrupt
        return counted(algorithm, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(figures._curves.recording, "run", interrupted)
        with pytest.raises(KeyboardInterrupt):
            compute(fig1c_rho, tmp_path)
    assert runs == [0.0, 0.003]
    compute(fig1c_rho, tmp_path)
    assert runs == [0.0, 0.003, None]


@pytest.mark.usefixtures("undrawn")
def test_redraw_computes_nothing(tmp_path, runs, capsys):
    said = refused(capsys, "fig1c_rho", "--redraw", "--quick", "--out", str(tmp_path))
    assert "the reference energy is not stored" in said
    assert quick(tmp_path, "fig1b_clients") == 0
    runs.clear()
    said = refused(capsys, "fig1c_rho", "--redraw", "--quick", "--out", str(tmp_path))
    assert "'rho = 0' is not stored" in said
    assert quick(tmp_path, "fig1b_clients", "--redraw") == 0
    traces = ("fig1b_clients", "--traces", str(tmp_path / "cache"))
    assert quick(tmp_path / "elsewhere", *traces, "--redraw") == 0
    assert runs == []
    assert not (tmp_path / "elsewhere" / "cache").exists()
    assert (tmp_path / "elsewhere" / "fig1b_clients.csv").read_bytes() == (tmp_path / "fig1b_clients.csv").read_bytes()


def test_list_names_every_figure(capsys):
    assert run_program("--list") == 0
    said = capsys.readouterr().out
    for name, module in _program.discover().items():
        assert name in said
        assert re.fullmatch(r"(about )?(\d+|half an|an) (seconds|minutes?|hours?)", module.TIME)
    assert "8 seconds" in said


def test_the_caption_is_printed_and_stands_beside_the_picture(tmp_path, capsys):
    assert quick(tmp_path, "fig1b_clients") == 0
    found = (tmp_path / "fig1b_clients.txt").read_text()
    assert found.startswith("Rounds to a relative error of 1e-06: N = 8: ")
    assert "fig1b_clients.txt" in (said := capsys.readouterr().out)
    assert " ".join(found.split()) in " ".join(said.split())


def test_the_caption_of_numbers_of_clients_names_the_slowest():
    def made(*errors: float) -> Trace:
        return Trace(columns={"round": range(len(errors)), "error": errors}, status="max_rounds", theta=None)

    traces = {"N = 8": made(1.0, 1e-7), "N = 16": made(1.0, 1e-3, 1e-4, 1e-9)}
    words = fig1b_clients.caption(traces, Settings())
    assert words.endswith("N = 8: 1, N = 16: 3. The slowest takes 3.00 times the rounds of the fastest.")
    assert fig1b_clients.caption(traces | {"N = 32": made(1.0)}, Settings()).endswith("N = 16: 3, N = 32: -.")


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["fig1b"], f"figure must be one of {', '.join(_program.discover())}; not 'fig1b'"),
        (["--data", "digit"], "did you mean 'digits'"),
        (["--data", "mnist"], "data_home"),
        (["--data", "no/such/file.npz"], "data 'no/such/file.npz' is not a file"),
    ],
)
def test_wrong_names_are_refused_before_anything_is_written(tmp_path, capsys, arguments, part):
    out = tmp_path / "out"
    assert part in refused(capsys, *arguments, "--out", str(out))
    assert not out.exists()


def test_a_file_in_the_way_is_refused(tmp_path, capsys):
    blocked = tmp_path / "out"
    blocked.write_text("mine")
    assert "out " in refused(capsys, "--out", str(blocked))
    assert blocked.read_text() == "mine"


def test_too_few_rows_are_refused(tmp_path, capsys):
    np.savez(tmp_path / "mine.npz", X=np.eye(5), y=np.arange(5) % 3)
    said = refused(capsys, "fig1c_rho", "--data", str(tmp_path / "mine.npz"), "--out", str(tmp_path / "out"))
    assert "8" in said
    assert not (tmp_path / "out" / "fig1c_rho.png").exists()


@pytest.mark.usefixtures("undrawn")
def test_check_reports_the_deviation_and_fails_above_ten_percent(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(_program.ROUNDS, True, 4)
    assert quick(tmp_path, "fig1c_rho", "--check") == 0
    said = capsys.readouterr().out
    found = [float(x) for x in re.findall(r"([\d.]+)% │$", said, re.MULTILINE)]
    assert len(found) == 3
    assert 0 < max(found) < 10
    monkeypatch.setattr(_program, "LARGEST_DEVIATION", 0.5e-2 * max(found))
    assert quick(tmp_path, "fig1c_rho", "--check") == 1


@pytest.mark.usefixtures("undrawn")
def test_worst_cases_lie_between_measurements_and_theorems(shared):
    assert quick(shared, "worst_case", "--overwrite") == 0
    rows = list(csv.DictReader((shared / "worst_case.csv").read_text().splitlines()))
    curves = {label: [float(r["error"]) for r in rows if r["curve"] == label] for label in {r["curve"] for r in rows}}
    for method in ("DualFL", "OptimizedDualFL"):
        theorem, worst, measured = (curves[f"{method}: {kind}"] for kind in ("theorem", "worst case", "measured"))
        assert len(worst) == 6
        assert all(m <= w * (1 + 1e-4) and w <= t for t, w, m in zip(theorem, worst, measured, strict=True))
        assert measured[0] > 0.7 * worst[0]
    assert curves["OptimizedDualFL: worst case"][-1] < 0.75 * curves["DualFL: worst case"][-1]
