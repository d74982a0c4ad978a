"""The commands that run ``theory`` and ``figures``, in a checkout and laid out as a wheel has them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the files of the wheel, and a module ``theory`` of somebody else."""
    folder = tmp_path_factory.mktemp("wheel")
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    for package in settings["only-include"]:
        place = folder / settings["sources"].get(package, package)
        shutil.copytree(ROOT / package, place, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "theory.py").write_text("raise SystemExit('the wrong module')")
    return folder


def said(folder: Path, *words: str) -> tuple[int, str, str]:
    """Run Python with the package in a folder, from elsewhere; return its exit code and what it says."""
    environment = {**os.environ, "PYTHONPATH": str(folder), "COLUMNS": "120"}
    command = [sys.executable, "-P", *words]
    done = subprocess.run(command, cwd=folder.parent, env=environment, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def test_a_wheel_has_the_programs_of_a_checkout(wheel: Path) -> None:
    ours = said(wheel, "-m", "dualopt", "attack", "--list")
    assert ours == said(ROOT, "-m", "theory.attack", "--list")
    assert (ours[0], ours[2]) == (0, "")


def test_theory_and_figures_are_no_modules_there(wheel: Path) -> None:
    checkouts = "os.path.isdir(os.path.join(place, 'figures'))"  # this one or another, installed to be edited
    elsewhere = f"import os, sys; sys.path = [place for place in sys.path if not {checkouts}]; "
    code, shown, error = said(wheel, "-c", elsewhere + "import dualopt; print(dualopt.__file__); import figures")
    assert shown.startswith(str(wheel))
    assert (code, error.splitlines()[-1]) == (1, "ModuleNotFoundError: No module named 'figures'")


def test_help_and_mistakes_are_of_the_program_that_runs(wheel: Path) -> None:
    code, shown, _ = said(wheel, "-m", "dualopt", "theory", "--help")
    assert code == 0
    assert "Usage: dualopt theory [OPTIONS]" in shown
    assert "--statements" in shown
    code, shown, error = said(wheel, "-m", "dualopt", "theory", "--bogus")
    assert (code, shown) == (2, "")
    assert error.startswith("theory: No such option: --bogus")
    assert said(wheel, "-m", "dualopt", "lessons", "none")[0] == 2
