"""The extra `docs` brings what the cells of the site import: they are executed where nothing else is installed."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
IMPORTED_AS = {"scikit-learn": "sklearn"}


def brought(extra: str, project: dict) -> Iterator[str]:
    """Yield the packages of an extra, of those that it names, and those that are always there."""
    for requirement in (*project["dependencies"], *project["optional-dependencies"][extra]):
        found = re.match(r"([\w.-]+)(?:\[([\w,]+)\])?", requirement)
        assert found, requirement
        name, extras = found.groups()
        if name != "dualopt":
            yield IMPORTED_AS.get(name, name.replace("-", "_"))
        for other in (extras or "").split(",") if name == "dualopt" else ():
            yield from brought(other, project)


def imported(source: str) -> Iterator[str]:
    """Yield the packages that code imports; lines that notebooks alone understand are left out."""
    tree = ast.parse(re.sub(r"^[%!].*$", "", source, flags=re.MULTILINE))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name.partition(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.partition(".")[0]


def test_the_extra_docs_brings_what_the_site_imports() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    known = {*brought("docs", project), "dualopt", *sys.stdlib_module_names}
    found, written = set(), set()
    for page in (ROOT / "docs" / "site").glob("*/*.md"):
        for cell in re.findall(r"^```\{code-cell\} \w+\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE):
            found |= set(imported(cell))
            written |= set(re.findall(r"^%%writefile (\w+)\.py", cell, re.MULTILINE))
    assert {"pandas", "statsmodels", "numpy", "sklearn"} <= found
    assert found <= known | written
    assert not found <= {*brought("app", project), "dualopt", *sys.stdlib_module_names} | written
