"""The hash of the code: a changed line of a method changes it, one of what only draws does not."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from dualopt import FedAvg, _sources
from dualopt._sources import sources
from dualopt.solvers import LBFGS

ROOT = Path(__file__).parents[1]


@pytest.fixture
def package(tmp_path, monkeypatch):
    folder = tmp_path / "thing"
    (folder / "cli").mkdir(parents=True)
    for name in ("__init__.py", "method.py", "plotting.py", "cli/run.py"):
        (folder / name).write_text("x = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(_sources.LEFT_OUT, "thing", _sources.LEFT_OUT["dualopt"])
    return folder


def hashed() -> str:
    _sources._package.cache_clear()
    return sources(packages=["thing"])


@pytest.mark.parametrize(("file", "counts"), [("method.py", True), ("plotting.py", False), ("cli/run.py", False)])
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


@dataclass(frozen=True, kw_only=True)
class MySolver(LBFGS):
    """A solver that is a field of a method."""


def test_parts_of_a_method_count_too():
    assert sources([FedAvg(solver=MySolver())]) != sources([FedAvg(solver=LBFGS())])


def test_a_changed_line_of_dualfl_gives_a_new_curve(tmp_path):
    """The whole way, in a copy of the packages: the file of numbers, and what keeps the old one."""
    for name in ("dualopt", "theory", "figures"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", "*.md"))

    def draw(*options: str) -> tuple[str, str]:
        command = [sys.executable, "-m", "figures", "fig1c_rho", "--quick", "--rounds", "2", "--rows", "60", *options]
        environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
        return done.stdout, (tmp_path / "figures-out" / "fig1c_rho.csv").read_text()

    _, first = draw()
    assert draw()[1] == first
    path = tmp_path / "dualopt" / "algorithms" / "dualfl.py"
    lines = path.read_text()
    changed = lines.replace("4.0 * t * t", "3.0 * t * t")
    assert changed != lines
    path.write_text(changed)
    out, kept = draw("--keep-stale")
    assert kept == first
    assert "was computed by other code (--keep-stale)" in out
    assert draw()[1] != first
