"""``python -m tests.theory.terms [PACKAGE]...``: terms of bounds that no case of a claim depends on.

In the functions of the claims every term of a sum is doubled, and so is every other number of a formula, one at a time.
The claims that run the function are judged again, and the table of worst ratios must complain; if it does not, a
derivation of ``test_symbolic_PACKAGE`` must fail. What survives is a term that never matters on the quick cases and is
not derived, or does not belong to an inequality; it is printed with its line. This takes some minutes a package, each
mutant in a process of its own, and is not part of the test suite.
"""

from __future__ import annotations

import ast
import copy
import importlib
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

import pytest

from tests.theory.worst_ratios import complaints, evaluate, rows
from theory._claims import Chapter, discover
from theory._witnesses import Table, load

__all__ = ["Mutant", "main", "mutants"]

SECONDS = 60  # for the claims of one mutant
TOLERANCE = 1e-5  # smaller numbers allow for rounding


class Mutant(NamedTuple):
    """A change of one expression of a module."""

    module: str
    line: int  # of the expression
    function: str  # with its class, at the top level of the module
    doubled: str
    tree: ast.Module


def mutants(module: ModuleType) -> Iterator[Mutant]:
    """Yield the module with one number or one term changed at a time, functions that make cases left out."""
    assert module.__file__
    tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
    for holder in [tree, *(node for node in tree.body if isinstance(node, ast.ClassDef))]:
        for function in holder.body:
            if not isinstance(function, ast.FunctionDef) or function.name.endswith("_cases"):
                continue
            name = f"{holder.name}.{function.name}" if isinstance(holder, ast.ClassDef) else function.name
            pairs = [n for line in function.body for n in ast.walk(line) if isinstance(n, ast.BinOp)]
            products = [p for n in pairs if _is_sum(n) for side in (n.left, n.right) for p in _products(side)]
            for parent in pairs:
                for side in ("left", "right") if parent not in products else ():
                    yield from _changed(module.__name__, name, tree, parent, side)


def _is_sum(node: ast.AST) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub)


def _products(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the products that make up a term, which are doubled with it."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div):
        yield node
        yield from _products(node.left)
        yield from _products(node.right)


def _changed(module: str, name: str, tree: ast.Module, parent: ast.BinOp, side: str) -> Iterator[Mutant]:
    """Yield the module with one operand doubled, if it is a term or a number."""
    operand = getattr(parent, side)
    value = operand.value if isinstance(operand, ast.Constant) else None
    if isinstance(value, float) and value < TOLERANCE:
        return
    if not _is_sum(parent) and not (isinstance(value, int | float) and value != 0):
        return
    setattr(parent, side, ast.BinOp(left=ast.Constant(value=2), op=ast.Mult(), right=copy.deepcopy(operand)))
    changed = ast.fix_missing_locations(copy.deepcopy(tree))
    setattr(parent, side, operand)
    yield Mutant(module, operand.lineno, name, ast.unparse(operand), changed)


def _install(mutant: Mutant) -> None:
    """Give the function of the module the changed code."""
    module: Any = sys.modules[mutant.module]
    owner, _, name = mutant.function.rpartition(".")
    found = vars(getattr(module, owner) if owner else module)[name]
    for attribute in ("compare", "__wrapped__", "fget", "func", "__func__"):
        found = getattr(found, attribute, found)
    code = compile(mutant.tree, str(module.__file__), "exec")
    for part in mutant.function.split("."):
        code = next(c for c in code.co_consts if isinstance(c, CodeType) and c.co_name == part)
    assert isinstance(found, FunctionType)
    found.__code__ = code
    for other in list(sys.modules.values()):
        if getattr(other, "__name__", "").startswith(mutant.module.rpartition(".")[0]):
            for value in vars(other).values():
                getattr(value, "cache_clear", lambda: None)()


def _noticed(mutant: Mutant, chapters: list[Chapter], table: Table) -> bool:
    """Return whether a claim complains, from a process of its own."""
    child = os.fork()
    if child == 0:
        answer = 1
        try:
            sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115
            _install(mutant)
            evaluate.cache_clear()
            end = time.monotonic() + SECONDS
            for chapter in chapters:
                expected = table[chapter.claim.name]
                evaluations = evaluate(chapter)
                found = rows(evaluations, {what: rows.kind for what, rows in expected.items()})
                if complaints(found, expected) or not all(e.result.as_expected for e in evaluations):
                    break
                if time.monotonic() > end:
                    break
            else:
                answer = _derivation_fails(mutant)
        except BaseException:
            answer = 1
        os._exit(answer)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0


def _derivation_fails(mutant: Mutant) -> int:
    """Return whether the derivations of the package, if there are any, reject the mutant."""
    file = Path(__file__).with_name(f"test_symbolic_{mutant.module.split('.')[1]}.py")
    if not file.exists():
        return 0
    # plain assertions: hypothesis is imported already, and cannot be rewritten
    ended = pytest.main(["-x", "-q", "-p", "no:cacheprovider", "--assert=plain", str(file)])
    return int(ended == pytest.ExitCode.TESTS_FAILED)


def _called(chapter: Chapter) -> set[CodeType]:
    """Judge a claim and return the code that it runs."""
    called: set[CodeType] = set()
    sys.setprofile(lambda frame, event, _: called.add(frame.f_code) if event == "call" else None)
    evaluate(chapter)
    sys.setprofile(None)
    return called


def main(packages: list[str]) -> None:
    """Print the mutants that no claim notices, and how many there were."""
    table, chapters = load(), discover()
    packages = packages or sorted({chapter.module.split(".")[1] for chapter in chapters.values()})
    chosen = [chapter for chapter in chapters.values() if chapter.module.split(".")[1] in packages]
    users: dict[tuple[str, str], list[Chapter]] = {}
    seconds = {}
    for chapter in chosen:
        start = time.process_time()
        called = _called(chapter)
        seconds[chapter.claim.name] = time.process_time() - start
        for code in called:
            users.setdefault((code.co_filename, code.co_qualname), []).append(chapter)
    total = survived = 0
    for name in sorted(
        m for m in sys.modules if m.split(".")[0] == "theory" and m.split(".")[1:2] in [[p] for p in packages]
    ):
        module = importlib.import_module(name)
        for mutant in mutants(module):
            judges = users.get((str(module.__file__), mutant.function), [])
            judges = sorted(judges, key=lambda chapter: seconds[chapter.claim.name])
            if not judges:
                continue
            total += 1
            if not _noticed(mutant, judges, table):
                survived += 1
                print(f"{name}:{mutant.line} {mutant.function}: {mutant.doubled}", flush=True)
    print(f"{survived} of {total} survive")


if __name__ == "__main__":
    main(sys.argv[1:])
