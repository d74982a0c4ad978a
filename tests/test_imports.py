"""Imports run one way, ``dualopt <- theory <- figures``, and array libraries stay behind ``dualopt.xp``."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FORBIDDEN = {"dualopt": {"theory", "figures", "tests"}, "theory": {"figures", "tests"}, "figures": {"tests"}}
HOST_MODULES = {
    "xp.py",
    "participation.py",
    "trace.py",
    "reference.py",
    "plotting.py",
    "testing.py",
    "attack.py",
    "cli.py",
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
    relative = path.relative_to(ROOT / "dualopt")
    return relative.parts[0] in HOST_MODULES | {"data"} or relative.name.startswith("_cli")


SOURCES = [path for package in FORBIDDEN for path in sorted((ROOT / package).rglob("*.py"))]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_run_one_way(path: Path) -> None:
    package = path.relative_to(ROOT).parts[0]
    assert not imported(path.read_text()) & FORBIDDEN[package]


@pytest.mark.parametrize(
    "path",
    [p for p in SOURCES if p.is_relative_to(ROOT / "dualopt") and not may_use_numpy(p)],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_only_named_modules_know_numpy(path: Path) -> None:
    assert not imported(path.read_text()) & {"numpy", "cupy", "array_api_compat", "array_api_strict"}


def test_the_check_sees_hidden_imports() -> None:
    assert imported("def f():\n    import theory.worst_case\n") == {"theory"}
    assert imported("from figures.fig1 import draw") == {"figures"}
