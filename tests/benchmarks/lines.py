"""How much of the methods' files is box: ``python -m tests.benchmarks.lines [COMMIT ...]``, by file and in total.

A line of code is one on which a token of the program stands: comments, docstrings, blank lines, imports and ``__all__``
are none. The files are those in ``dualopt/methods`` that define a method, or steps that methods share, at the commits
named, or as they are.

* *Box*: the states (classes that are a ``NamedTuple``), the steps ``init``, ``local``, ``server``, ``receive``,
  ``receive_inactive``, ``prepare``, ``prepared`` and ``local_objective``, and every function and constant of the file
  that a step uses and nothing else but steps, or functions that are box themselves.
* *Rest*: everything else, such as fields, the head of the class, ``suggested``, ``check``, ``fixed_point``, theorems.

The last figure is the share of the states and steps alone.
"""

from __future__ import annotations

import ast
import io
import subprocess
import sys
import tokenize
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

ROOMS = ("dualopt/methods", "dualopt/algorithms")  # today, and until 9dd4919
STEPS = {"init", "local", "server", "receive", "receive_inactive", "prepare", "prepared", "local_objective"}
BLANK = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
Definition = ast.FunctionDef | ast.ClassDef


class Count(NamedTuple):
    """Lines of code of a file."""

    box: int
    rest: int
    steps: int = 0  # of the box: states and steps alone

    @property
    def share(self) -> float:
        """How much of it is box, in percent."""
        return 100.0 * self.box / max(1, self.box + self.rest)


def count(source: str) -> Count:
    """Count the lines of a file.

    Examples
    --------
    >>> step = "class A(Algorithm):\\n    step: float\\n\\n    def local(self, x):\\n        return far(x)\\n"
    >>> count(step + "\\ndef far(x):\\n    return 2 * x\\n")
    Count(box=4, rest=2, steps=2)
    """
    tree = ast.parse(source)
    code, box = _code(source, tree), _box(tree)
    boxed, steps = _lines(box), _lines(node for node in box if getattr(node, "name", "") in STEPS or _is_state(node))
    return Count(len(code & boxed), len(code - boxed), len(code & steps))


def _lines(nodes: Iterable[Definition | ast.stmt]) -> set[int]:
    return {n for node in nodes for n in range(_first(node), (node.end_lineno or 0) + 1)}


def _is_state(node: ast.stmt) -> bool:
    return isinstance(node, ast.ClassDef) and "NamedTuple" in {ast.unparse(base) for base in node.bases}


def _first(node: Definition | ast.stmt) -> int:
    return min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])


def _code(source: str, tree: ast.Module) -> set[int]:
    """Return the lines on which a token stands that counts."""
    found: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in BLANK:
            found |= set(range(token.start[0], token.end[0] + 1))
    for node in (node for node in ast.walk(tree) if isinstance(node, ast.stmt)):
        if isinstance(node, ast.Import | ast.ImportFrom) or _is_text(node) or _assigns(node) == {"__all__"}:
            found -= set(range(node.lineno, (node.end_lineno or 0) + 1))
    return found


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _assigns(node: ast.AST) -> set[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return {n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)}


def _box(tree: ast.Module) -> list[Definition | ast.stmt]:
    """Return the statements that are box."""
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    states = [node for node in classes if _is_state(node)]
    methods = [node for node in classes if node not in states]
    named: dict[str, ast.stmt] = {}  # what a step may use: functions of the class and the file, constants of the file
    users: dict[str, ast.stmt] = {}
    for node in [*tree.body, *(part for kind in methods for part in kind.body)]:
        if isinstance(node, ast.FunctionDef):
            users[node.name] = named[node.name] = node
        elif node in tree.body and (names := _assigns(node)):
            named |= dict.fromkeys(names - {"__all__"}, node)
            users["\n".join(names)] = node
        elif node not in classes:
            users[f"line {node.lineno}"] = node
    uses = {name: _used(node) & named.keys() - {name} for name, node in users.items()}
    box = STEPS & named.keys()
    while more := {
        name
        for name in named.keys() - box
        if (by := {user for user, used in uses.items() if name in used and named.get(user) is not named[name]})
        and by <= box
    }:
        box |= more
    return [*states, *dict.fromkeys(named[name] for name in box)]


def _used(node: ast.stmt) -> set[str]:
    names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    return names | {n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute)}


def files(commit: str | None) -> dict[str, str]:
    """Return the sources of the methods by name, at a commit or as they are."""
    if commit is None:
        every = {path.stem: path.read_text() for path in Path(ROOMS[0]).glob("*.py")}
    else:
        listed = _git("ls-tree", "--name-only", commit, *(f"{room}/" for room in ROOMS)).split()
        every = {Path(path).stem: _git("show", f"{commit}:{path}") for path in listed if path.endswith(".py")}
    shared = {"_base", "oracle", "participation"}
    return {
        name: text for name, text in sorted(every.items()) if name not in shared and (name[0] != "_" or _shares(text))
    }


def _shares(source: str) -> bool:
    """Whether a file defines steps that methods inherit."""
    classes = [node for node in ast.parse(source).body if isinstance(node, ast.ClassDef)]
    return any(isinstance(part, ast.FunctionDef) and part.name in STEPS for kind in classes for part in kind.body)


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], capture_output=True, text=True, check=True).stdout


def main() -> None:
    """Print the counts."""
    for commit in sys.argv[1:] or [None]:
        counts = {name: count(source) for name, source in files(commit).items()}
        for name, found in counts.items():
            print(f"{name:32} {found.box:5} {found.rest:5} {found.share:5.0f}%")
        total = Count(*(sum(column) for column in zip(*counts.values(), strict=True)))
        title = f"{len(counts)} files, {commit or 'as they are'}"
        alone = 100.0 * total.steps / (total.box + total.rest)
        print(f"{title:32} {total.box:5} {total.rest:5} {total.share:5.1f}%; states and steps alone {alone:.1f}%")


if __name__ == "__main__":
    main()
