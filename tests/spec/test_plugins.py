"""Discovery and plug-ins: what is found, what is refused and how, and that commands use them like what is built in."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import dualopt.losses
import dualopt.methods
import dualopt.regularisers
import dualopt.solvers
from dualopt.spec import KINDS, Spec, names, plugins
from dualopt.spec.discover import discover, summary
from dualopt.spec.plugins.requirements import fault
from tests.app import test_cli
from tests.app.test_cli import refusal
from tests.programs import ended

program = test_cli.program
QUICK = ["--rows", "200", "--clients", "3", "--rounds", "5"]
METHOD = """
from dataclasses import dataclass
from dualopt import FedPD

@dataclass(frozen=True, kw_only=True)
class Damped(FedPD):
    "FedPD under another name."
    alpha: float = 1.0
    def __post_init__(self):
        super().__post_init__()
        if self.alpha <= 0:
            raise ValueError(f"alpha must be positive, not {self.alpha}.")
"""
OTHERS = {
    "loss.py": """
from dataclasses import dataclass
from dualopt.losses import Multinomial

@dataclass(frozen=True, kw_only=True)
class Mine(Multinomial):
    "The softmax loss again."
""",
    "solver.py": """
from dataclasses import dataclass
from dualopt.solvers import LBFGS

@dataclass(frozen=True, kw_only=True)
class Mine(LBFGS):
    "L-BFGS again."
""",
    "ridge.py": """
from dataclasses import dataclass
from dualopt.regularisers import L1

@dataclass(frozen=True, kw_only=True)
class Mine(L1):
    "The norm again."
""",
    "rows.py": """
import numpy as np
from dualopt.problem.data import RawData

NAMES = {"two-blobs": "two clouds of points"}

def load(name, *, seed=0, m=60):
    rng = np.random.default_rng(seed)
    y = np.repeat([-1.0, 1.0], m // 2)
    return RawData(X=rng.standard_normal((m, 2)) + y[:, None], y=y, scale="none", description="two clouds")
""",
    "step.py": """
from dataclasses import dataclass
from dualopt.methods.preparation import OneShotAverage

@dataclass(frozen=True, kw_only=True)
class Mine(OneShotAverage):
    "The one-shot average again."
""",
    "half.py": """
from dataclasses import dataclass
from dualopt.methods.participation import Bernoulli

@dataclass(frozen=True, kw_only=True)
class Mine(Bernoulli):
    "Coins again."
""",
    "coins.py": """
from dataclasses import dataclass
from dualopt.methods.compressors import NaturalCompression

@dataclass(frozen=True, kw_only=True)
class Mine(NaturalCompression):
    "Powers of two again."
""",
    "model.py": """
from dataclasses import dataclass
from dualopt.objectives import Objective, ObjectiveWrapper

@dataclass(frozen=True, kw_only=True)
class Mine(ObjectiveWrapper):
    "The clients again."
    forwarded = frozenset()
    objective: Objective
    mu = property(lambda self: self.objective.mu)
    L = property(lambda self: self.objective.L)
    def value(self, theta):
        return self.objective.value(theta)
    def gradient(self, theta):
        return self.objective.gradient(theta)
    def value_and_gradient(self, theta):
        return self.objective.value_and_gradient(theta)
""",
    "deal.py": """
import numpy as np

def mine(m, n_clients):
    "Deal out the rows in turn."
    return [np.arange(j, m, n_clients) for j in range(n_clients)]
""",
}
FIGURE = """
"A parabola."
from matplotlib.figure import Figure

def compute(settings):
    columns = {"round": [0, 1], "error": [1.0, EXACT]}
    return {"curve": settings.stored_columns("a curve", {"figure": "parabola"}, lambda: columns)}

def draw(traces, settings):
    figure = Figure()
    figure.subplots().plot(traces["curve"]["round"], traces["curve"]["error"])
    return figure
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("my_method.py").write_text(METHOD)
    for name, source in OTHERS.items():
        Path(name).write_text(source)
    return tmp_path


def package(folder: Path, monkeypatch, name: str, groups: dict[str, dict[str, str]], **modules: str) -> None:
    """Install a package that declares entry points, as pip leaves it on the disk."""
    site = folder / "site"
    (site / f"{name}-1.0.dist-info").mkdir(parents=True)
    (site / f"{name}-1.0.dist-info" / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = [
        f"[{group}]\n" + "".join(f"{n} = {value}\n" for n, value in points.items()) for group, points in groups.items()
    ]
    (site / f"{name}-1.0.dist-info" / "entry_points.txt").write_text("\n".join(lines))
    for module, source in modules.items():
        (site / f"{module}.py").write_text(source)
    monkeypatch.syspath_prepend(str(site))


# What is found.


@pytest.mark.usefixtures("folder", "undrawn")
def test_a_method_in_a_file_runs_and_results_say_which_file(program):
    code, out, err = program("run", "--algorithm", "my_method.py:Damped", "-p", "alpha=2", *QUICK)
    assert (code, err) == (0, "")
    assert "alpha = 2" in out
    record = json.loads(Path("out/run.json").read_text())
    assert record["options"]["algorithm"] == "my_method.py:Damped"
    (source,) = record["plug_ins"].values()
    assert source["file"] == str(Path("my_method.py").absolute())
    before = source["sha256"]
    Path("my_method.py").write_text(METHOD + "\n")
    program("run", "--algorithm", "my_method.py:Damped", *QUICK, "--overwrite")
    assert json.loads(Path("out/run.json").read_text())["plug_ins"]["my_method.py:Damped"]["sha256"] != before
    assert not Path("__pycache__").exists()


@pytest.mark.usefixtures("folder", "undrawn")
def test_it_gives_the_same_numbers_as_the_method_it_copies(program):
    text = [
        "--algorithm",
        "mine@my_method.py:Damped:eta=0.5,solver=solver.py:Mine",
        "--algorithm",
        "fedpd:eta=0.5,solver=lbfgs",
    ]
    code, _, err = program("compare", *text, *QUICK)
    assert (code, err) == (0, "")
    record = json.loads(Path("out/compare.json").read_text())
    mine, theirs = record["runs"].values()
    assert mine["final"]["energy"] == theirs["final"]["energy"]
    assert set(record["plug_ins"]) == {"my_method.py:Damped", "solver.py:Mine"}


@pytest.mark.usefixtures("folder", "undrawn")
@pytest.mark.parametrize(
    "options",
    [
        ["--loss", "loss.py:Mine"],
        ["--algorithm", "fedpd", "--solver", "solver.py:Mine"],
        ["--algorithm", "feddr", "--regulariser", "ridge.py:Mine=0.01"],
        ["--data", "rows.py:two-blobs", "--data-param", "m=210"],
        ["--algorithm", "dualopt.methods.fedpd:FedPD"],
        ["--start", "step.py:Mine"],
        ["--coordinates", "step.py:Mine"],
        ["--start", "one-shot: solver=solver.py:Mine"],
        ["--algorithm", "fedavg", "--participation", "half.py:Mine=0.5"],
        ["--algorithm", "fedsplit", "--compressor", "coins.py:Mine"],
        ["--algorithm", "fedavg", "--model", "model.py:Mine"],
        ["--partition", "deal.py:mine"],
    ],
)
def test_every_kind_has_a_spelling(program, options):
    code, _, err = program("run", *options, *QUICK)
    assert (code, err) == (0, "")
    assert len(json.loads(Path("out/run.json").read_text())["plug_ins"]) == 1


@pytest.mark.usefixtures("folder")
def test_worker_processes_import_it_and_a_changed_file_is_another_search():
    """In a process of its own: spawned workers import the main module."""
    options = [
        "--algorithm",
        "my_method.py:Damped",
        "--grid",
        "alpha=1,2",
        "--jobs",
        "2",
        "--target",
        "0.5",
        "--rows",
        "60",
    ]
    command = [sys.executable, "-m", "dualopt", "tune", *options]
    done = subprocess.run(command, capture_output=True, text=True)
    said = [line for line in done.stderr.splitlines() if not line.startswith("my_method.py:Damped ")]  # slow: progress
    assert (done.returncode, said) == (0, [])
    assert "--algorithm 'my_method.py:Damped: alpha=" in done.stdout
    Path("my_method.py").write_text(METHOD + "\n")
    again = subprocess.run(command, capture_output=True, text=True)
    assert again.returncode == 2
    assert "holds another search (plug_ins is" in again.stderr


@pytest.mark.parametrize(
    ("text", "name", "arguments"),
    [
        ("my.py:Damped", "my.py:Damped", {}),
        ("/x/my.py:Damped:alpha=3,solver=b.py:S", "/x/my.py:Damped", {"alpha": "3", "solver": "b.py:S"}),
        ("pack.mod:Damped:alpha=3", "pack.mod:Damped", {"alpha": "3"}),
        ("dualfl:rho=0,solver=b.py:S", "dualfl", {"rho": "0", "solver": "b.py:S"}),
        ("declared:rho=0", "declared", {"rho": "0"}),
        ('"odd, (1).py:Damped": alpha=3', "odd, (1).py:Damped", {"alpha": "3"}),
    ],
)
def test_spellings_are_read(text, name, arguments):
    assert Spec.parse(text) == Spec(name, arguments)


@pytest.mark.parametrize("kind", [kind for kind, known in KINDS.items() if known.plug_ins])
def test_what_this_package_has_would_do_as_a_plug_in(kind):
    """What a plug-in must have is what the interface of its kind names, and no more."""
    classes = {name: known for name, known in names(kind).items() if isinstance(known, type) and name != "zero"}
    assert {name: fault(KINDS[kind].plug_ins, known, name) for name, known in classes.items()} == dict.fromkeys(classes)


# Entry points.


@pytest.mark.usefixtures("undrawn")
def test_entry_points_are_listed_and_run_and_a_broken_one_harms_nobody(folder, monkeypatch, program):
    groups = {
        "dualopt.methods": {
            "damped": "damped_package:Damped",
            "broken": "no_such_module:X",
            "dualfl": "damped_package:Damped",
        },
        "dualopt.data": {"two-blobs": "rows_package:two-blobs"},
    }
    package(folder, monkeypatch, "damped-package", groups, damped_package=METHOD, rows_package=OTHERS["rows.py"])
    code, out, _ = program("list")
    assert code == 0
    flat = " ".join(out.replace("│", " ").split())
    assert "damped FedPD under another name. (damped_package:Damped of package damped-package)" in flat
    assert "broken cannot be used: methods 'broken' (no_such_module:X of package damped-package)" in flat
    assert "dualfl (hidden) hidden by dualopt's own dualfl" in flat
    assert "two-blobs two clouds of points" in flat
    code, _, err = program("run", "--algorithm", "damped", "--data", "two-blobs", "--clients", "3", "--rounds", "5")
    assert (code, err) == (0, "")
    assert set(json.loads(Path("out/run.json").read_text())["plug_ins"]) == {"damped", "two-blobs"}
    sentence = refusal(program, "run", "--algorithm", "broken", *QUICK, "--overwrite")
    assert sentence.startswith("algorithm 'broken' (no_such_module:X of package damped-package): there is no module")
    assert Spec("dualfl").target("algorithm") is dualopt.methods.DualFL
    sentence = refusal(program, "run", "--algorithm", "dampd", *QUICK, "--overwrite")
    assert "did you mean damped?" in sentence


def test_what_packages_declare_is_read_only_for_names_that_nobody_knows(monkeypatch):
    """To read the files of all installed packages takes longer than the problem."""
    asked = []
    monkeypatch.setattr(plugins, "entry_points", lambda kind: asked.append(kind) or {})
    known = {"methods": ["dualfl"], "losses": ["logistic"]}
    assert plugins.record({"methods": ["dualfl", None], "losses": ["logistic"]}, known) == {}
    assert asked == []
    assert plugins.record({"methods": ["dualfl", "other"]}, known) == {}
    assert asked == ["methods"]


DECLARED = {  # of every kind: the option that takes it, what goes with it, and an entry point
    "methods": ("--algorithm", [], "my_method:Damped"),
    "losses": ("--loss", [], "loss:Mine"),
    "regularisers": ("--regulariser", ["--algorithm", "feddr"], "ridge:Mine"),
    "partitions": ("--partition", [], "deal:mine"),
    "compressors": ("--compressor", ["--algorithm", "fedsplit"], "coins:Mine"),
    "preparation": ("--start", [], "step:Mine"),
    "objectives": ("--model", ["--algorithm", "fedavg"], "model:Mine"),
    "data": ("--data", [], "rows:declared-data"),
}


@pytest.mark.usefixtures("undrawn")
def test_every_kind_is_found_where_an_installed_package_declares_it(folder, monkeypatch, program):
    """Listed, run, and recorded with its file, by the name of its entry point alone."""
    sources = {name.removesuffix(".py"): source for name, source in OTHERS.items()} | {"my_method": METHOD}
    sources["rows"] = sources["rows"].replace("two-blobs", "declared-data").replace("m=60", "m=300")
    modules = {f"installed_{name}": source for name, source in sources.items()}
    groups = {f"dualopt.{kind}": {f"declared-{kind}": f"installed_{at}"} for kind, (*_, at) in DECLARED.items()}
    package(folder, monkeypatch, "everything", groups, **modules)
    listed = " ".join(program("list")[1].replace("│", " ").split())
    for kind, (option, others, place) in DECLARED.items():
        name = f"declared-{kind}"
        assert re.search(rf"{name}\S* [^()]+ \(installed_{place} of package everything\)", listed), kind
        argument = f"{name}=0.01" if kind == "regularisers" else name
        code, _, err = program("run", option, argument, *others, *QUICK, "--out", kind)
        assert (code, err) == (0, ""), kind
        recorded = json.loads(Path(kind, "run.json").read_text())["plug_ins"]
        assert list(recorded) == [name]
        assert recorded[name]["file"] == str(folder / "site" / f"installed_{place.partition(':')[0]}.py")


def test_two_packages_with_one_name_are_named(folder, monkeypatch, program):
    for name in ("first-package", "second-package"):
        package(folder, monkeypatch, name, {"dualopt.methods": {"damped": f"{name.replace('-', '_')}:Damped"}})
    sentence = refusal(program, "run", "--algorithm", "damped", *QUICK)
    assert sentence.startswith("algorithm 'damped' is the name of two plug-ins: ")
    assert "first-package" in sentence
    assert "second-package" in sentence


def test_two_files_of_one_name_do_not_hide_each_other(folder):
    Path("other").mkdir()
    Path("other/my_method.py").write_text(METHOD.replace("1.0", "7.0"))
    one, two = (plugins.load("methods", f"{place}my_method.py:Damped", "algorithm") for place in ("", "other/"))
    assert (one().alpha, two().alpha) == (1.0, 7.0)


# What is refused.


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("source", "name", "sentence"),
    [
        (None, "Damped", r"algorithm 'm\.py:Damped': there is no file 'm\.py'\."),
        ("x = 1\ndef f(:\n", "Damped", r"algorithm 'm\.py:Damped': file '.*m\.py', line 2 is no .*: def f\(:\."),
        ("x = 1\n\ny = z\n", "D", r"algorithm 'm\.py:D': importing it raises NameError: .*, line 3 of m\.py\."),
        ("import nowhere\n", "D", r"algorithm 'm\.py:D': there is no module 'nowhere', line 1 of m\.py\."),
        ("raise SystemExit(3)\n", "D", r"algorithm 'm\.py:D': importing it raises SystemExit: 3, line 1 of m\.py\."),
        (METHOD, "Dampd", r".*: m\.py has no class Dampd \(did you mean Damped\?\); it has Damped\."),
        ("def Damped(): ...\n", "Damped", r".*: m\.py has no class Damped; it has none\."),
        (
            "class D: ...\n",
            "D",
            r".*: D is no Algorithm: it must be a subclass of dualopt\.Algorithm that defines init, .*",
        ),
        (
            "from dualopt import Algorithm\nclass D(Algorithm):\n  def init(self, theta0, copies): ...\n",
            "D",
            r".*: D is no complete Algorithm: it must define local, server\.",
        ),
        (
            "from dualopt import FedPD\nclass D(FedPD):\n  a: float = 1\n",
            "D",
            r".*: D has fields and is no dataclass: .*",
        ),
    ],
)
def test_mistakes_in_a_file_are_one_sentence(program, source, name, sentence):
    if source is not None:
        Path("m.py").write_text(source)
    assert re.fullmatch(sentence, refusal(program, "run", "--algorithm", f"m.py:{name}", *QUICK))


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--loss", "solver.py:Mine"], "loss 'solver.py:Mine': Mine is no loss: it lacks labels, nonnegative"),
        (
            ["--algorithm", "fedpd", "--solver", "loss.py:Mine"],
            "solver 'loss.py:Mine': Mine is no local solver: it lacks",
        ),
        (
            ["--algorithm", "feddr", "--regulariser", "loss.py:Mine=1"],
            "regulariser 'loss.py:Mine': Mine is no regulariser",
        ),
        (["--data", "loss.py:Mine"], "data 'loss.py:Mine': a file of data sets must define NAMES"),
        (["--data", "rows.py:three"], "data 'rows.py:three': its NAMES are two-blobs, not 'three'."),
    ],
)
def test_a_plug_in_of_another_kind_is_refused(program, options, sentence):
    assert refusal(program, "run", *options, *QUICK).startswith(sentence)


@pytest.mark.usefixtures("folder")
def test_a_refusal_of_the_plug_in_says_where_it_stands(program):
    sentence = refusal(program, "run", "--algorithm", "my_method.py:Damped", "-p", "alpha=-1", *QUICK)
    assert re.fullmatch(
        r"algorithm my_method.py:Damped: alpha must be positive, not -1\.0 \(.*my_method\.py, line 12\)\.", sentence
    )


# Figures.


@pytest.mark.usefixtures("undrawn")
def test_a_figure_in_a_file_is_drawn_and_what_it_stored_is_not_taken_for_that_of_a_changed_file(tmp_path, monkeypatch):
    from figures import _program

    monkeypatch.chdir(tmp_path)
    for exact in ("0.5", "0.25"):
        Path("parabola.py").write_text(FIGURE.replace("EXACT", exact))
        assert ended(_program.main, "parabola.py", "--rows", "200") == 0
        assert exact in Path("figures-out/parabola.csv").read_text()


# Discovery of losses, solvers and algorithms.


PACKAGES = [dualopt.methods, dualopt.losses, dualopt.regularisers, dualopt.solvers]


def package_with(tmp_path, monkeypatch, name, **sources):
    """Make an importable package whose modules have the given sources."""
    folder = tmp_path / name
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    for module, source in sources.items():
        (folder / f"{module}.py").write_text("from dataclasses import dataclass\n" + source)
    monkeypatch.syspath_prepend(tmp_path)
    return importlib.import_module(name)


@pytest.mark.parametrize("package", PACKAGES, ids=lambda p: p.__name__)
def test_every_class_is_exported_and_documented(package):
    found = discover(package)
    assert found, "a package without modules would make every other test empty"
    for name, cls in found.items():
        assert name == cls.__module__.rpartition(".")[2].replace("_", "-")
        assert cls.__name__ in package.__all__
        assert cls.__doc__ is not None
        assert cls.__doc__.strip().partition("\n")[0].endswith(".")


@pytest.mark.parametrize("package", PACKAGES, ids=lambda p: p.__name__)
def test_summaries_are_plain_text(package):
    for cls in discover(package).values():
        line = summary(cls)
        assert len(line) > 10
        assert not set(line) & set("\\`\n")
        assert not re.search(":[a-z]+:", line)


def test_a_new_file_is_found_and_private_ones_are_not(tmp_path, monkeypatch):
    source = (
        "__all__ = ['New', 'helper']\ndef helper(): ...\n@dataclass\nclass State: ...\n@dataclass\nclass New: ...\n"
    )
    package = package_with(tmp_path, monkeypatch, "found_package", brand_new=source, _private="raise AssertionError")
    assert {name: cls.__name__ for name, cls in discover(package).items()} == {"brand-new": "New"}


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("two_classes", "__all__ = ['A', 'B']\n@dataclass\nclass A: ...\n@dataclass\nclass B: ...\n"),
        ("no_class", "__all__ = ['f']\ndef f(): ...\n"),
        ("borrowed_class", "from dualopt.losses import Huber\n__all__ = ['Huber']\n"),
    ],
)
def test_a_module_without_exactly_one_class_is_refused(tmp_path, monkeypatch, name, source):
    package = package_with(tmp_path, monkeypatch, f"refused_{name}", module=source)
    with pytest.raises(TypeError, match="exactly one public dataclass"):
        discover(package)


def test_a_name_that_is_unknown_proposes_a_close_name():
    assert Spec("huber").target("loss") is dualopt.losses.Huber
    with pytest.raises(ValueError, match=r"^loss must be one of .*huber.*; not 'hubert' \(did you mean huber\?\)\.$"):
        Spec("hubert").target("loss")
    with pytest.raises(ValueError, match=r"^solver must be one of .*; not 'zzz'\.$"):
        Spec("zzz").target("solver")


@pytest.mark.parametrize(
    ("doc", "plain"),
    [
        (r"Loss, :math:`\phi(z; y) = \log(1 + e^{-y z})`.", "Loss, phi(z; y) = log(1 + e^(-y z))."),
        (r"Step ``1/L``, :math:`\theta \leftarrow \theta - \text{step}\, \nabla F(\theta)`.",
         "Step 1/L, theta <- theta - step grad F(theta)."),
        ("As :class:`dualopt.methods.DualFL`, :func:`~dualopt.run` and :mod:`theory`.", "As DualFL, run and theory."),
        ("A label in {-1, +1}.\n\nMore.", "A label in {-1, +1}."),
    ],
)  # fmt: skip
def test_summary_writes_formulas_in_plain_text(doc, plain):
    assert summary(type("Documented", (), {"__doc__": doc})) == plain
