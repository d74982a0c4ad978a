"""Every test asserts something: by itself, or by a helper whose name says so and which does."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("tests", "dualopt/lab/contracts")
BY_OTHERS = {"tests/app/estimators/test_in_sklearn.py::test_checks"}  # the checks of scikit-learn assert

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Sources:
    """Texts of modules by name."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.texts = texts
        self.module = functools.cache(self._module)

    def without_assertion(self, name: str) -> Iterator[str]:
        """Yield the names of the tests of a module that assert nothing."""
        functions, _ = self.module(name)
        for test, function in functions.items():
            if test.startswith("test_") and not self._asserts(name, function):
                yield test

    def _module(self, name: str) -> tuple[dict[str, Function], dict[str, tuple[str, str]]]:
        """Return the functions of a module, and where those that it imports come from."""
        body = ast.parse(self.texts[name]).body
        parts = [node for part in body for node in (part.body if isinstance(part, ast.ClassDef) else [part])]
        imported: dict[str, tuple[str, str]] = {}
        for node in body:
            if isinstance(node, ast.ImportFrom):
                beside = f"{name.rpartition('.')[0]}.{node.module}"  # pytest finds the neighbours of a test
                origin = beside if beside in self.texts else str(node.module)
                imported |= {x.asname or x.name: (origin, x.name) for x in node.names}
        return {node.name: node for node in parts if isinstance(node, Function)}, imported

    def _asserts(self, module: str, function: Function, above: tuple[Function, ...] = ()) -> bool:
        for node in ast.walk(function):
            match node:
                case ast.Assert() | ast.Attribute(ast.Name("pytest"), "raises" | "warns" | "fail"):
                    return True
                case ast.Attribute(ast.Attribute(ast.Name("np"), "testing"), name) if name.startswith("assert_"):
                    return True
                case ast.Name(name) if name.startswith("assert_") and self._helps(module, name, (function, *above)):
                    return True
        return False

    def _helps(self, module: str, name: str, above: tuple[Function, ...]) -> bool:
        """Tell whether the function of a name asserts; those of other packages that say so do."""
        functions, imported = self.module(module)
        if name in functions:
            return functions[name] not in above and self._asserts(module, functions[name], above)
        if name not in imported:
            return False
        origin, own = imported[name]
        return origin not in self.texts or self._helps(origin, own, above)


def sources() -> Sources:
    paths = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")]
    return Sources({".".join(path.relative_to(ROOT).with_suffix("").parts): path.read_text() for path in paths})


def test_every_test_asserts() -> None:
    found = sources()
    modules = [name for name in found.texts if name.rpartition(".")[2].startswith("test_")]
    empty = {f"{name.replace('.', '/')}.py::{test}" for name in modules for test in found.without_assertion(name)}
    assert len(modules) > 200
    assert empty == BY_OTHERS


HELPERS = """
def assert_equal(x):
    assert x

def assert_nothing(x):
    assert_nothing(x)

def looks(x):
    assert x
"""


@pytest.mark.parametrize(
    ("body", "asserts"),
    [
        ("assert x", True),
        ("with pytest.raises(ValueError):\n        x()", True),
        ("np.testing.assert_array_equal(x, x)", True),
        ("assert_allclose(x, x)", True),
        ("assert_equal(x)", True),
        ("assert_that(x)", True),  # under another name
        ("each(x, assert_equal)", True),
        ("assert_own(x)", True),
        ("assert_nothing(x)", False),
        ("looks(x)", False),  # its name does not say so
        ("assert_unknown(x)", False),
        ("x()", False),
    ],
)
def test_tests_without_an_assertion_are_found(body: str, asserts: bool) -> None:
    imports = "from numpy.testing import assert_allclose\nfrom helpers import assert_equal, assert_nothing, looks\n"
    own = "from helpers import assert_equal as assert_that\ndef assert_own(x):\n    assert_that(x)\n"
    tests = f"def test(x):\n    pass\ndef test_x():\n    {body}\n"
    found = Sources({"a.helpers": HELPERS, "a.test_x": f"{imports}{own}{tests}"})
    assert [*found.without_assertion("a.test_x")] == ([] if asserts else ["test_x"])
