"""Imports run one way, ``dualopt <- theory <- figures``, and array libraries stay behind ``dualopt.arrays.xp``."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]
FORBIDDEN = {"dualopt": {"theory", "figures", "tests"}, "theory": {"figures", "tests"}, "figures": {"tests"}}
ARRAYS = {"numpy", "cupy", "array_api_compat", "array_api_strict"}
HOST_MODULES = {
    "arrays/xp.py",
    "arrays/codec.py",  # writes arrays to files and reads them
    "arrays/client_states.py",  # positions of clients are host integers, here and in the next one
    "arrays/tree.py",
    "engine",  # what travels between server and hosts, or into a file, is in host memory
    "methods/participation.py",
    "runs/_data_hash.py",  # of bytes in host memory
    "runs/trace.py",
    "runs/reference.py",
    "runs/plotting.py",
    "lab",
    "problem/inputs",  # data as people have them, before they are arrays of any library
    "problem/data",
    "app/estimators",  # for scikit-learn, whose arrays are NumPy's
    "federation",  # reads the data of a site, which are files
}


def imported(source: str) -> set[str]:
    """Top-level names of everything that a source imports, anywhere in it."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names.add(node.module.split(".")[0])
    return names


def may_use_numpy(path: Path) -> bool:
    relative = path.relative_to("dualopt")
    return any(relative.is_relative_to(name) for name in HOST_MODULES)


# What every file imports, by its path from the root.
IMPORTED = {
    path.relative_to(ROOT): imported(path.read_text())
    for package in FORBIDDEN
    for path in sorted((ROOT / package).rglob("*.py"))
}


def offenders(forbidden: dict[Path, set[str]]) -> dict[str, set[str]]:
    """Return the files that import what they must not, and what that is."""
    return {str(path): found for path, names in forbidden.items() if (found := IMPORTED[path] & names)}


def test_every_package_is_read() -> None:
    assert {path.parts[0] for path in IMPORTED} == set(FORBIDDEN)
    assert {"dualopt", "theory"} < IMPORTED[Path("figures/table1.py")]


def test_imports_run_one_way() -> None:
    assert offenders({path: FORBIDDEN[path.parts[0]] for path in IMPORTED}) == {}


def test_only_named_modules_know_numpy() -> None:
    numerical = [path for path in IMPORTED if path.parts[0] == "dualopt" and not may_use_numpy(path)]
    assert offenders(dict.fromkeys(numerical, ARRAYS)) == {}


def test_only_the_strategies_need_hypothesis() -> None:
    assert set(offenders({path: {"hypothesis"} for path in IMPORTED})) == {"dualopt/lab/testing.py"}


@pytest.mark.parametrize(
    ("module", "package", "sentence"),
    [
        ("lab.testing", "hypothesis", 'dualopt.lab.testing needs Hypothesis: pip install "dualopt[testing]".'),
        ("runs.plotting", "matplotlib", 'dualopt.runs.plotting needs matplotlib: pip install "dualopt[app]".'),
    ],
)
def test_a_module_without_its_extra_names_it(module: str, package: str, sentence: str) -> None:
    code = f"import sys\nsys.modules[{package!r}] = None\nimport dualopt.{module}"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stderr.splitlines()[-1] == f"ModuleNotFoundError: {sentence}"


def test_the_check_sees_hidden_imports() -> None:
    assert imported("def f():\n    import theory.worst_case\n") == {"theory"}
    assert imported("from figures.fig1 import draw") == {"figures"}


def test_no_module_is_hidden_by_something_of_its_own_name() -> None:
    """``import package.name as m`` gives the module: a function of that name in the package would be given instead."""
    hidden = []
    for package in pkgutil.walk_packages([str(ROOT / "dualopt")], "dualopt."):
        if package.name.startswith("dualopt.federation.flare.") and find_spec("nvflare") is None:
            continue  # what another program starts, and needs that program
        parent, _, name = package.name.rpartition(".")
        importlib.import_module(package.name)
        if not isinstance(getattr(importlib.import_module(parent), name), ModuleType):
            hidden.append(package.name)
    assert hidden == []
