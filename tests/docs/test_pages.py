"""The pages run as they are written: README, CONTRIBUTING, your_data, resuming and plug_ins."""

from __future__ import annotations

import importlib
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import dualopt.methods
from dualopt import Multinomial, iterate, linear_model, newton, run
from dualopt.app.cli import main
from dualopt.methods import DualFL
from dualopt.runs.trace import Trace
from dualopt.spec.discover import discover
from figures._program import main as figures
from tests.kill import contents
from tests.lab.test_contracts import environment
from tests.programs import called, ended

README = (Path(__file__).parents[2] / "README.md").read_text()
DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize(
    ("page", "count", "first"), [("README.md", 1, "<Trace of DualFL: "), ("docs/in_python.md", 5, "converged ")]
)
def test_python_examples_run(page: str, count: int, first: str, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict = {}
    blocks = re.findall(r"```python\n(.*?)```", (DOCS.parent / page).read_text(), flags=re.DOTALL)
    assert len(blocks) == count
    for block in blocks:
        exec(block, names)  # the second block goes on where the first ends, as a reader would
    assert capsys.readouterr().out.startswith(first)


def test_the_first_command_names_options_that_exist(tmp_path, capsys: pytest.CaptureFixture[str]) -> None:
    line = r'^python -m pip install -e "\.\[app,theory\]" && dualopt (.*)$'
    (command,) = re.findall(line, README, flags=re.MULTILINE)
    assert command.endswith("--out out")
    assert ended(main, *command.removesuffix("out").split(), tmp_path) == 0
    assert "converged" in capsys.readouterr().out
    written = {path.name for path in tmp_path.iterdir()}
    assert written == {
        "convergence.png",
        "trace.csv",
        "trace.npz",
        "run.json",
        "model.json",
        "model.npz",
    }
    trace = Trace.from_csv(tmp_path / "trace.csv")
    above = trace["certified_error"][1:] / trace["error"][1:]  # nothing is certified before the first round
    assert "It is never below the error and follows it within a factor of 7, 3 in the median." in " ".join(
        README.split()
    )
    assert min(above) >= 1.0
    assert (round(max(above)), round(float(np.median(above)))) == (7, 3)


def test_the_rounds_of_both_methods_are_those_of_the_command(tmp_path) -> None:
    said = r"take (\d+) rounds to a certified (\S+) where DualFL takes (\d+):\n`dualopt (.*)`\."
    ((ours, level, dualfl, command),) = re.findall(said, README)
    assert ended(main, *command.split(), "--out", tmp_path) == 0
    for name, rounds in (("optimized-dualfl", ours), ("dualfl", dualfl)):
        trace = Trace.from_csv(tmp_path / f"{name}.csv")
        assert trace.last["round"] == int(rounds)
        assert trace.last["certified_error"] <= float(level)


def test_the_number_of_methods_is_the_one_there_is() -> None:
    (count,) = re.findall(r"has a row for each of the (\d+) methods", README)
    assert int(count) == len(discover(dualopt.methods))


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", *(f"docs/{p.name}" for p in DOCS.glob("*.md"))])
def test_links_lead_somewhere(page: str) -> None:
    path = Path(__file__).parents[2] / page
    links = re.findall(r"\]\(([^)#\s]+)\)|^\[[^]]+\]: (\S+)$", path.read_text(), flags=re.MULTILINE)
    targets = [a or b for a, b in links if not (a or b).startswith("http")]
    assert [target for target in targets if not (path.parent / target).exists()] == []
    assert targets or page not in ("README.md", "docs/methods.md", "docs/which_method.md", "docs/theorems.md")


def test_every_picture_stands_on_a_page_with_words_for_it_and_a_caption() -> None:
    """Words in its place for those who do not see it; a caption in italics below."""
    pages = [DOCS.parent / "README.md", *DOCS.glob("*.md"), *DOCS.glob("lessons/*.md"), *DOCS.glob("site/*.md")]
    shown = set()
    for page in (page for page in pages if page.is_file()):
        for words, picture, below in re.findall(
            r"!\[([^\]]*)\]\(([^)\s]+\.png)\)\n*([^\n]*(?:\n[^\n]+)*)", page.read_text()
        ):
            shown.add(Path(picture).name)
            assert len(words.split()) >= 5, (page.name, picture)
            assert re.fullmatch(r"\*[^*\s].*[^*\s]\*", below, flags=re.DOTALL), (page.name, picture, below)
            assert len(below.split()) >= 10, (page.name, picture)
    assert shown == {picture.name for picture in DOCS.glob("*.png")}


def test_the_test_command_is_the_one_of_ci() -> None:
    assert re.search(r'^python -m pip install -e "\.\[dev\]" && python -m pytest.*$', README, flags=re.MULTILINE)


# The method that CONTRIBUTING writes in a file outside the repository.


ROOT = Path(__file__).parents[2]
(SOURCE,) = re.findall(r"```python\n(.*?)```", (ROOT / "CONTRIBUTING.md").read_text(), re.DOTALL)


def test_a_method_of_ones_own_is_short_and_runs_anywhere(tmp_path: Path, monkeypatch, capsys) -> None:
    assert sum(bool(line.strip()) for line in SOURCE.splitlines()) < 40
    (tmp_path / "dual_ascent.py").write_text(SOURCE)
    monkeypatch.chdir(tmp_path)
    runpy.run_path("dual_ascent.py", run_name="__main__")
    status, certified = capsys.readouterr().out.split()
    assert status == "converged"
    assert 0 < float(certified) <= 1e-4
    assert (tmp_path / "dual_ascent.png").stat().st_size > 10_000


def test_the_method_is_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """DualFL without momentum, in every iterate; the certificate bounds the error; no theorem is claimed."""
    (tmp_path / "dual_ascent.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    method = importlib.import_module("dual_ascent").DualAscent()
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 3)), rng.integers(0, 3, 60)
    f = linear_model(X, y, loss=Multinomial(classes=3), mu=0.1, clients=[range(5), range(5, 40), range(40, 60)])

    class WithoutMomentum(DualFL):
        def server(self, server, mean, round):
            server, message = super().server(server, mean, round)
            return server, message._replace(beta=0.0)

    own, ours = iterate(method, f), iterate(WithoutMomentum(rho=0.0, stop=method.stop), f)
    for _, a, b in zip(range(8), own, ours, strict=False):
        np.testing.assert_allclose(a.server.theta, b.server.theta, rtol=0.0, atol=1e-13)
    trace = run(method, f, rounds=60, tol=1e-6)
    assert trace.status == "converged"
    assert trace["certificate"][-1] >= trace["energy"][-1] - newton(f).energy
    assert method.guarantee(f).startswith("none")


# docs/your_data.md, in an empty folder: its snippets in order, then its commands.


DATA_PAGE = (Path(__file__).parents[2] / "docs/your_data.md").read_text()
SNIPPETS = re.findall(r"```python\n(.*?)```", DATA_PAGE, flags=re.DOTALL)
DATA_COMMANDS = re.findall(r"^dualopt (.*)$", DATA_PAGE, flags=re.MULTILINE)


def run_snippets() -> dict:
    names: dict = {}
    for snippet in SNIPPETS:
        exec(snippet, names)
    return names


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_the_snippets_print_what_they_say(capsys: pytest.CaptureFixture[str]) -> None:
    names = run_snippets()
    printed = capsys.readouterr().out.splitlines()
    said = [line.rpartition("  # ")[2] for snippet in SNIPPETS for line in snippet.splitlines() if "print(" in line]
    assert printed[:2] == said[:2]
    fitted = names["fitted"]
    assert printed[2] == f"{fitted.n_iter_} {fitted.certified_gap_}"
    assert printed[3] == str(fitted.certified_distance_)
    assert 0 < fitted.certified_gap_ < 1e-6
    assert names["trace"].status == "converged"


def test_the_commands_run(undrawn: None, capsys: pytest.CaptureFixture[str]) -> None:
    run_snippets()
    capsys.readouterr()
    assert len(DATA_COMMANDS) == 3
    for command in DATA_COMMANDS:
        assert ended(main, *shlex.split(command)) == 0
        out = capsys.readouterr().out
        assert "converged" in out
        assert "3 (natural)" in out


def test_the_page_about_data_is_short() -> None:
    assert len(DATA_PAGE.splitlines()) < 170


# docs/resuming.md.


RESUMING = (Path(__file__).parents[2] / "docs" / "resuming.md").read_text()


def blocks(language: str) -> list[str]:
    """Return the listings of the page in one language; commands have none."""
    found = re.findall(r"^```(\w*)\n(.*?)^```$", RESUMING, flags=re.DOTALL | re.MULTILINE)
    return [text for name, text in found if name == language]


@pytest.mark.usefixtures("undrawn")
def test_the_commands_run_in_turn(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    lines = [line for block in blocks("") for line in block.splitlines()]
    assert len(lines) == 4
    for line in lines:
        words = shlex.split(line)
        program, arguments = (main, words[1:]) if words[0] == "dualopt" else (figures, words[3:])
        assert ended(program, *arguments) == 0, (line, capsys.readouterr())
    first, second = contents(Path("long")), contents(Path("again"))
    files = {"convergence.png", "run.json", "trace.csv", "trace.npz", "model.json", "model.npz"}
    assert first.keys() == second.keys() == files
    assert all(first[name] == second[name] for name in first if name != "run.json")  # which says where it is
    assert {"tune.csv", "tune.json"} == set(contents(Path("search")))
    assert ended(main, *shlex.split(lines[0])[1:]) == 0
    assert "long: complete" in capsys.readouterr().out


def test_the_python_example_runs_and_resumes(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (code,) = blocks("python")
    exec(code, {})
    exec(code.replace('"federation.journal", seconds=30', '"federation.journal", seconds=1e-9'), {})
    exec(code, {})
    statuses = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [status for status, _ in statuses] == ["max_rounds"] * 3
    first, second, third = (int(rounds) for _, rounds in statuses)
    assert first == second == 0 < third < 40


# docs/plug_ins.md: every file runs and keeps its contract, and every command prints what is shown.


PLUG_INS = (Path(__file__).parents[2] / "docs" / "plug_ins.md").read_text()
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", PLUG_INS, re.DOTALL | re.MULTILINE)
FILES = {re.match(r"# (\w+\.py)\n", text)[1]: text for kind, text in BLOCKS if kind == "python"}  # pyright: ignore
# each command with the lines that follow it
COMMANDS = [
    entry.partition("\n")[::2]
    for kind, text in BLOCKS
    if kind == "console"
    for entry in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]
]
OPTIONS = {
    "my_method.py": "algorithm",
    "tube.py": "loss",
    "elastic_net.py": "regulariser",
    "halving.py": "partition",
    "coins.py": "compressor",
    "gradient_step.py": "start",
    "anchored.py": "objective",
    "two_clouds.py": "data",
    "descent.py": "claim",
}


def test_every_block_is_a_file_a_command_or_the_entry_point() -> None:
    assert [kind for kind, _ in BLOCKS if kind not in ("python", "console")] == ["toml"]
    assert set(FILES) == set(OPTIONS)


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_run_from_python_and_the_command_line_and_held_to_its_contract(name: str) -> None:
    words = [shlex.split(command) for command, _ in COMMANDS if re.search(rf"(?<!\w){name}\b", command)]
    assert any(found[:3] == ["python", "-m", "dualopt.lab.contracts"] for found in words)
    assert any(f"--{OPTIONS[name]}" in found for found in words)
    assert any(found[0] == "dualopt" for found in words)
    assert ["python", name] in words or name == "my_method.py"


@pytest.mark.parametrize(("command", "shown"), COMMANDS, ids=lambda text: text[:60])
def test_a_command_prints_what_the_page_says(tmp_path: Path, command: str, shown: str, undrawn: None, capsys) -> None:
    for name, source in FILES.items():
        (tmp_path / name).write_text(source)
    program, *words = shlex.split(command)
    if program == "dualopt":
        code, out, _ = called(capsys, main, *words)
    else:
        found = subprocess.run([sys.executable, *words], env=environment, capture_output=True, text=True)
        code, out = found.returncode, found.stdout
    assert code == (1 if "contradicted by" in shown else 0), out[-3000:]
    for line in shown.splitlines():
        assert line in out
