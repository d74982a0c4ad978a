"""The hash of the code: a changed line of a method changes it, one of what only draws does not."""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import partial
from importlib.metadata import EntryPoint
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

from dualopt import FedAvg
from dualopt.runs import _imports, _sources
from dualopt.runs._imports import own_files
from dualopt.runs._sources import module_sources, sources
from dualopt.solvers import LBFGS

ROOT = Path(__file__).parents[2]


@pytest.fixture
def package(tmp_path, monkeypatch):
    folder = tmp_path / "thing"
    (folder / "app/cli").mkdir(parents=True)
    (folder / "runs/plotting").mkdir(parents=True)
    for name in ("__init__.py", "method.py", "runs/plotting/page.py", "app/cli/run.py"):
        (folder / name).write_text("x = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(_sources.LEFT_OUT, "thing", _sources.LEFT_OUT["dualopt"])
    return folder


def hashed() -> str:
    _sources._package.cache_clear()
    return sources(packages=["thing"])


@pytest.mark.parametrize(
    ("file", "counts"), [("method.py", True), ("runs/plotting/page.py", False), ("app/cli/run.py", False)]
)
def test_every_byte_of_what_computes_counts(package, file, counts):
    before = hashed()
    assert hashed() == before
    (package / file).write_text("x = 2\n")
    assert (hashed() != before) is counts
    (package / file).write_text("x = 1\n")
    assert hashed() == before
    (package / "new.py").write_text("")
    assert hashed() != before


def test_a_class_from_a_file_of_ones_own_counts(tmp_path):
    def load():
        path = tmp_path / "mine.py"
        spec = spec_from_file_location("mine_for_this_test", path)
        assert spec is not None
        assert spec.loader is not None
        sys.modules["mine_for_this_test"] = module = module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    code = "from dualopt import FedAvg\nclass Mine(FedAvg):\n    pass\n"
    try:
        (tmp_path / "mine.py").write_text(code)
        mine = load()
        found = sources([mine.Mine()])
        assert found != sources([FedAvg()]) == sources()
        (tmp_path / "mine.py").write_text(code + "# changed\n")
        assert sources([mine.Mine()]) != found
    finally:
        del sys.modules["mine_for_this_test"]


PLUG_INS = {  # what is hashed, and where it begins
    "a file": ("mine.py", "mine_by_path"),
    "a module": ("mine.py", "mine"),
    "a package": ("kit/mine.py", "kit.mine"),
}
IMPORTS = {
    "a file": "import helper\ndef later():\n    from parts.inner import x\n",
    "a module": "import helper\ndef later():\n    from parts.inner import x\n",
    "a package": "from . import helper\ndef later():\n    from kit.parts import inner\n",
}


@pytest.mark.parametrize("kind", PLUG_INS)
def test_what_a_plug_in_imports_from_its_own_folder_counts(kind, tmp_path):
    file, name = PLUG_INS[kind]
    path = tmp_path / file
    folder = path.parent
    (folder / "parts").mkdir(parents=True)
    for other in ("__init__.py", "helper.py", "deeper.py", "unused.py", "parts/__init__.py", "parts/inner.py"):
        (folder / other).write_text("x = 1\n")
    (folder / "helper.py").write_text(
        "import os\nimport numpy\ntry:\n    from .deeper import x\nexcept ImportError:\n    x = 0\n"
    )
    path.write_text(IMPORTS[kind])
    (tmp_path / "numpy.py" if kind == "a package" else tmp_path / "kit.py").write_text("x = 1\n")
    module = ModuleType(name)
    module.__file__ = str(path)

    def changes(other: str) -> bool:
        before = module_sources(module)
        content = (tmp_path / other).read_text()
        (tmp_path / other).write_text(content + "y = 2\n")
        changed = module_sources(module) != before
        (tmp_path / other).write_text(content)
        assert module_sources(module) == before
        return changed

    inside = str(folder.relative_to(tmp_path))
    for other in ("mine.py", "helper.py", "deeper.py", "parts/__init__.py", "parts/inner.py"):
        assert changes(f"{inside}/{other}"), other
    assert not changes(f"{inside}/unused.py")
    assert changes(f"{inside}/__init__.py") is (kind == "a package")
    assert not changes("numpy.py" if kind == "a package" else "kit.py")


def test_this_package_is_nobodys_own_where_it_lies_beside_a_plug_in(tmp_path, monkeypatch):
    for name in ("helper", "dualopt"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("import dualopt, helper\n")
    monkeypatch.setattr(_imports, "PACKAGE", tmp_path / "dualopt")
    module = ModuleType("mine_by_path")
    module.__file__ = str(tmp_path / "mine.py")
    (tmp_path / "mine.py").write_text("import dualopt, helper\n")
    assert own_files(module) == [tmp_path / "helper" / "__init__.py", tmp_path / "mine.py"]


def test_a_plug_in_whose_imports_are_no_python_counts_itself(tmp_path):
    (tmp_path / "mine.py").write_text("import helper, link\n")
    (tmp_path / "helper.py").write_text("import (\n")
    (tmp_path / "link.py").symlink_to("mine.py")
    module = ModuleType("mine_by_path")
    module.__file__ = str(tmp_path / "mine.py")
    assert [path.name for path in own_files(module)] == ["helper.py", "link.py", "mine.py"]


def test_of_installed_packages_those_that_declare_plug_ins_are_followed(tmp_path, monkeypatch):
    (tmp_path / "kit").mkdir()
    for name in ("__init__", "mine", "helper"):
        (tmp_path / "kit" / f"{name}.py").write_text("import kit.helper\n")
    module = ModuleType("kit.mine")
    module.__file__ = str(tmp_path / "kit" / "mine.py")
    monkeypatch.setattr(_imports.sysconfig, "get_path", lambda _: str(tmp_path))
    assert [path.name for path in own_files(module)] == ["mine.py"]
    point = EntryPoint("mine", "kit.mine:Mine", "dualopt.methods")
    monkeypatch.setattr(_imports, "entry_points", lambda kind: {"mine": [point]} if kind == "methods" else {})
    assert [path.name for path in own_files(module)] == ["__init__.py", "helper.py", "mine.py"]


@dataclass(frozen=True, kw_only=True)
class MySolver(LBFGS):
    """A solver that is a field of a method."""


def test_a_package_that_is_installed_elsewhere_is_one_file(tmp_path, monkeypatch):
    folder = tmp_path / "site-packages/elsewhere"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("from elsewhere import more\n")
    (folder / "more.py").write_text("x = 1\n")
    monkeypatch.syspath_prepend(str(folder.parent))
    assert own_files(importlib.import_module("elsewhere")) == [folder / "__init__.py"]


def changed(images, rng, by=1.0):
    return images + by


def test_functions_count_and_what_partial_gives_them(tmp_path):
    path = tmp_path / "function_for_this_test.py"
    path.write_text("def f(x):\n    return x\n")
    spec = spec_from_file_location("function_for_this_test", path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["function_for_this_test"] = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
        given = [
            [module.f],
            [partial(module.f, 2)],
            [partial(changed, by=module.f)],
            [partial(partial(changed), module.f)],
        ]
        before = [sources(x) for x in given]
        assert sources() not in before
        path.write_text("def f(x):\n    return x + 1\n")
        after = [sources(x) for x in given]
        assert all(a != b for a, b in zip(before, after, strict=True))
    finally:
        del sys.modules["function_for_this_test"]


def test_parts_of_a_method_count_too():
    assert sources([FedAvg(solver=MySolver())]) != sources([FedAvg(solver=LBFGS())])


FIGURE = """'A number of DualFL beside a height.'
from matplotlib.figure import Figure
from dualopt.methods.dualfl import momentum
from helper import HEIGHT

def compute(settings):
    columns = {"round": [0, 1], "error": [momentum(2.0, 0.1)[0], HEIGHT]}
    return {"curve": settings.stored_columns("a curve", {"figure": "curve"}, lambda: columns)}

def draw(traces, settings):
    return Figure()
"""


def test_a_changed_line_gives_a_new_curve(tmp_path):
    """The whole way, in a copy of the packages: of a method, and of a helper of a figure in a file of one's own."""
    for name in ("dualopt", "theory", "figures"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("*.md"))
    own = tmp_path / "own"
    own.mkdir()
    (own / "mine.py").write_text(FIGURE)
    (own / "helper.py").write_text("HEIGHT = 0.125\n")

    def draw(*options: str) -> tuple[str, str]:
        command = [sys.executable, "-m", "figures", "own/mine.py", "--rows", "60", *options]
        environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
        return done.stdout, (tmp_path / "figures-out" / "mine.csv").read_text()

    _, first = draw()
    path = tmp_path / "dualopt" / "methods" / "dualfl.py"
    lines = path.read_text()
    changed = lines.replace("4.0 * t * t", "3.0 * t * t")
    assert changed != lines
    path.write_text(changed)
    out, kept = draw("--keep-stale")
    assert kept == first
    assert "was computed by other code (--keep-stale)" in out
    _, second = draw()
    assert second != first
    (own / "helper.py").write_text("HEIGHT = 0.25\n")
    assert draw()[1] == second.replace("0.125", "0.25") != second
