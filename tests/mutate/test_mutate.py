"""The operators of ``python -m tests.mutate``, its tables, and the few mutants that every run of the tests judges."""

from __future__ import annotations

import ast
import builtins
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.mutate import forks
from tests.mutate import score as scores
from tests.mutate.fixed import FIXED, Fixed
from tests.mutate.forks import Noted
from tests.mutate.mapping import ROOT, UNJUDGED, Judges, Selected, files, judges, mathematics
from tests.mutate.operators import Mutant, mutants


def becomes(source: str, operator: str = "") -> list[str]:
    return [m.becomes for m in mutants(source) if operator in ("", m.operator)]


def of(expression: str, operator: str) -> list[str]:
    """What the operator makes of an expression that a function of many names returns."""
    found = becomes(f"def f(a, b, c, x, xp, round, oracle):\n    return {expression}\n", operator)
    return [text.removeprefix("return ") for text in found]


@pytest.mark.parametrize(
    ("operator", "expression", "expected"),
    [
        ("sign", "a + b", ["a - b"]),
        ("sign", "a - b", ["a + b"]),
        ("sign", "-a", ["a"]),
        ("factor", "a + b * c", ["2 * a + b * c", "a + 2 * b * c"]),
        ("factor", "a * b / c", ["2 * a * b / c"]),
        ("factor", "3.0 * b", []),  # the constant is changed instead
        ("factor", "oracle.solve(a, weight=b)", ["oracle.solve(2 * (a), weight=b)", "oracle.solve(a, weight=2 * (b))"]),
        ("constant", "3.0 * b", ["6.0 * b"]),
        ("constant", "b + 1.0", ["b + 0.0", "b + 2.0"]),
        ("constant", "b + 1e-12", ["b + 0.0", "b + 1e-06"]),
        ("constant", "x[2]", ["x[1]", "x[3]"]),
        ("constant", "xp.sum(x, keepdims=True)", []),
        ("ratio", "a * b", ["a / b"]),
        ("ratio", "a / b", ["a * b"]),
        ("power", "(a + b) ** 2", ["(a + b)"]),
        ("reduction", "xp.mean(x)", ["xp.sum(x)"]),
        ("reduction", "xp.max(x)", ["xp.min(x)"]),
        ("reduction", "smallest(x)", ["largest(x)"]),
        ("reduction", "sum(x)", []),  # the mean is no builtin
        ("call", "abs(a - b)", ["(a - b)"]),
        ("participation", "round.n_active", ["round.n_clients"]),
        ("participation", "round.fraction * a", ["1.0 * a"]),
        ("round", "round.n", ["(round.n + 1)", "(round.n - 1)"]),
        ("boundary", "a < b", ["a <= b"]),
        ("comparison", "a < b", ["a > b"]),
        ("comparison", "a is not b", ["a is b"]),
        ("condition", "a and b", ["((b))", "((a))"]),
        ("condition", "a if b else c", ["a if (not (b)) else c"]),
        ("order", "xp.f(a, b)", ["xp.f(b, a)"]),
        ("order", "max(a, b)", []),
        ("keyword", "oracle.solve(a, weight=b, center=c)", ["oracle.solve(a, center=c)", "oracle.solve(a, weight=b)"]),
        ("stale", "x._replace(a=(a + b), b=b)", ["x._replace(b=b)", "x._replace(a=(a + b))"]),
    ],
)
def test_operators(operator: str, expression: str, expected: list[str]) -> None:
    assert of(expression, operator) == expected


METHOD = """
class Server(NamedTuple):
    theta: Array
    h: Array

class Client(NamedTuple):
    dual: Array

class Method:
    def local(self, c: Client, message: Array):
        dual = c.dual + message
        return Client(dual), dual

    def server(self, server: Server, mean: Array):
        h = server.h - mean
        return Server(mean, h)

def momentum(t):
    t_next = t * t
    return t_next
"""


def test_states_of_before_for_those_of_after() -> None:
    assert becomes(METHOD, "stale") == [
        "return Client(c.dual), dual",
        "return Server(server.theta, h)",
        "return Server(mean, server.h)",
    ]
    assert becomes(METHOD, "time") == [
        "return Client(dual), c.dual",  # that in Client(dual) is the stale field
        "h = server.h - server.theta",
        "return t",
    ]


def test_statements_conditions_and_guards() -> None:
    source = """
def f(a, b):
    check(a)
    if a < 0:
        raise ValueError(f"a must not be {a - 1}.")
    a = b
    a += b
    if a == b:
        return 1.5
    return -1.5
"""
    assert becomes(source, "guard") == ["if False:"]
    assert becomes(source, "condition") == ["if (not (a == b)):"]
    assert becomes(source, "statement") == ["pass", "pass", "pass"]
    assert becomes(source, "sign") == ["a -= b", "return 1.5"]


def test_what_says_nothing_to_a_computer_is_left_alone() -> None:
    source = '''
"""A docstring of 2 + 2."""

from __future__ import annotations

__all__ = ["f"]

@decorated(1)
def f(a: Array[2], b: Literal[3]) -> Array[1 + 1]:
    """Return 1 + 1."""
    require(a, f"not {b + 1}")
    raise ValueError(1 + 1)

def __repr__(self):
    return 1 + 1
'''
    assert becomes(source) == ["pass"]


def test_numbers_that_a_sentence_says_are_changed() -> None:
    assert "return f'a factor of {1 + a:.4f}'" in becomes("def f(a):\n    return f'a factor of {1 - a:.4f}'\n", "sign")


def test_every_mutant_is_another_program_in_one_place() -> None:
    source = (ROOT / "dualopt/methods/feddr.py").read_text()
    found = mutants(source)
    programs = {ast.dump(ast.parse(m.source)) for m in found}
    assert len(programs) == len(found) > 50
    for m in found:
        assert m.line in source
        assert m.becomes in m.source
        assert scores.diff("feddr.py", source, m).count("\n-") == 1
    assert {m.function for m in found} >= {"FedDR.local", "FedDR.server", "FedDR.fixed_point"}


def test_mutants_are_found_again_after_lines_were_added() -> None:
    source = "def f(a, b):\n    return a - b\n"
    assert [m.key for m in mutants(source)] == [m.key for m in mutants("import math\n\n\n" + source)]


MUTANTS = [Mutant("sign", "f", "a - b", "a + b", "a + b"), Mutant("sign", "f", "a * b", "a / b", "a / b")]


def test_scores_count_every_mutant_once() -> None:
    assert scores.score("x.py", [(MUTANTS[0], "time"), (MUTANTS[1], None)], {}, 5) == (5, 2, 1, 1, 0, 1)
    of = scores.score("x.py", [(MUTANTS[0], "a test"), (MUTANTS[1], None)], {MUTANTS[1].key: "They agree."}, 2)
    assert of == (2, 2, 1, 0, 1, 0)
    assert of.share == "100.0 %"


def test_stale_and_wrong_explanations_are_refused() -> None:
    with pytest.raises(ValueError, match="explains a mutant of x"):
        scores.score("x.py", [(MUTANTS[0], None)], {("g", "a", "b"): "They agree."}, 1)
    assert scores.score("x.py", [(MUTANTS[0], None)], {("g", "a", "b"): "Not drawn."}, 2).survivors == 1
    with pytest.raises(ValueError, match="equivalent that a test kills"):
        scores.score("x.py", [(MUTANTS[0], "a test")], {MUTANTS[0].key: "They agree."}, 2)


def test_explanations_are_found_by_file_function_and_lines(tmp_path: Path) -> None:
    table = tmp_path / "equivalent.toml"
    entry = scores.toml("x.py", MUTANTS).replace('why = ""', 'why = "They agree."')
    table.write_text(entry)
    assert scores.explanations("x.py", table) == {m.key: "They agree." for m in MUTANTS}
    assert scores.explanations("y.py", table) == {}
    table.write_text(entry + entry)
    with pytest.raises(ValueError, match="explains twice"):
        scores.explanations("x.py", table)


@pytest.mark.parametrize("file", sorted(set(scores.explained_files())))
def test_every_explanation_belongs_to_a_mutant(file: str) -> None:
    explained = scores.explanations(file)
    assert file in files()
    assert explained.keys() <= {m.key for m in mutants((ROOT / file).read_text())}
    assert all(why.endswith(".") for why in explained.values())


def test_mapped_tests_are_there() -> None:
    assert set(mathematics()) > {"dualopt/lab/rates.py", "dualopt/methods/compressors/top_k.py"}
    for file in files():
        assert judges(file).tests, file
    with pytest.raises(ValueError, match="file must be one of those in"):
        judges("dualopt/arrays/xp.py")


def test_results_are_kept_until_what_they_depend_on_changes(tmp_path: Path) -> None:
    wanted = Judges((Selected("tests/losses/test_losses.py"), Selected("tests/arrays/test_tree.py")))
    cache = scores.Cache("x.py", wanted, tmp_path)
    assert not cache.holds(MUTANTS[0])
    cache.put(MUTANTS[0], "tests/losses/test_losses.py::test_a")
    cache.put(MUTANTS[1], None)
    again = scores.Cache("x.py", wanted, tmp_path)
    assert [again.holds(m) for m in MUTANTS] == [True, True]
    assert [again.killed_by(m) for m in MUTANTS] == ["tests/losses/test_losses.py::test_a", None]
    fewer = scores.Cache("x.py", Judges(wanted.tests[:1]), tmp_path)
    assert [fewer.holds(m) for m in MUTANTS] == [True, False]


def test_judges_go_by_their_time_for_a_kill() -> None:
    noted = Noted({"a::slow": 9.0, "a::fast": 0.1, "b::one": 2.0, "b::two": 1.0}, {}, Counter({"b::one": 2}))
    assert noted.ordered(noted.seconds, Counter()) == ["a::fast", "b::one", "b::two", "a::slow"]
    assert noted.ordered(noted.seconds, Counter({"a::slow": 9})) == ["a::slow", "a::fast", "b::one", "b::two"]
    parts = noted.parts(Judges((Selected("a"), Selected("b"), Selected("a", "fast")), ("claim",)))
    assert [part.paths for part in parts] == [["b"], ["a"], []]
    assert parts[1].tests == (Selected("a"), Selected("a", "fast"))


SOURCE = """LIMIT = 3.0


def f(a, b):
    if a > LIMIT:
        return sum(
            x + 1.0
            for x in (a, b)
        )
    return a - b


class C:
    low = 1.0

    def g(self, a=2.0):
        return max(a, self.low)
"""


@pytest.mark.parametrize(
    ("old", "new", "lines", "anew"),
    [
        ("a > LIMIT", "a < LIMIT", [5], False),
        ("x + 1.0", "x - 1.0", [6, 7, 8, 9], False),
        ("a - b", "a + b", [10], False),
        ("max(a, self.low)", "max(self.low, a)", [17], False),
        ("LIMIT = 3.0", "LIMIT = 6.0", [1], True),
        ("low = 1.0", "low = 2.0", [14], True),
        ("a=2.0", "a=4.0", [16], True),
    ],
)
def test_statements_that_change_and_which_need_an_import(old: str, new: str, lines: list[int], anew: bool) -> None:
    changed = SOURCE.replace(old, new)
    assert [*forks._statement(SOURCE, changed)] == lines
    before, after = (compile(text, "x.py", "exec") for text in (SOURCE, changed))
    if anew:
        with pytest.raises(LookupError):
            list(forks._changes(before, after, before))
    else:
        assert len([*forks._changes(before, after, before)]) == 1 + ("x" in old and "max" not in old)


def test_statements_of_functions_say_that_they_are_run(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: dict[tuple[str, int], bool] = {}
    monkeypatch.setattr(builtins, "__ran__", ran, raising=False)
    names: dict[str, Any] = {}
    exec(forks._telling("x.py", SOURCE), names)
    assert ran == {}
    assert (names["f"](4.0, 1.0), names["C"]().g(0.5)) == (7.0, 1.0)
    assert ran.keys() == {("x.py", 5), ("x.py", 6), ("x.py", 17)}
    source = "def outer():\n    'text'\n    def inner(x):\n        return x + 1\n    return inner\n"
    old, new = (compile(text, "x.py", "exec") for text in (source, source.replace("+", "-")))
    found = [*forks._changes(old, new, forks._telling("x.py", source))]
    assert [(told.co_name, code.co_name, outermost) for told, code, outermost in found] == [
        ("outer", "outer", True),
        ("inner", "inner", False),  # functions that were made before the change have it too
    ]


def test_the_table_of_scores_keeps_other_files(tmp_path: Path) -> None:
    page = tmp_path / "SCORE.md"
    one, two = "dualopt/methods/dualfl.py", "dualopt/methods/fedpd.py"
    scores.update({one: scores.Score(30, 10, 8, 1, 1, 1)}, page)
    scores.update({two: scores.Score(4, 4, 4, 0, 0, 0)}, page)
    table, missing, *unjudged = page.read_text().rsplit("\n\n", 1 + len(set(UNJUDGED.values())))
    assert table.splitlines()[-3:] == [
        f"| `{one}` | 30 | 10 | 8 | 1 | 1 | 1 | 88.9 % |",
        f"| `{two}` | 4 | 4 | 4 | 0 | 0 | 0 | 100.0 % |",
        "| all | 34 | 14 | 12 | 1 | 1 | 1 | 92.3 % |",
    ]
    assert missing.startswith("Without a row: ")
    assert "`dualopt/methods/feddr.py`" in missing
    assert one not in missing
    assert "`dualopt/engine/mpi.py`" in unjudged[0]
    assert "dualopt/engine/mpi.py" not in missing
    lacking = scores.lacking(page)
    assert f"{one}: 1 survivors" in lacking
    assert "dualopt/methods/feddr.py: no row" in lacking
    assert not any(two in line for line in lacking)


def test_changes_that_do_not_fit_once_are_refused() -> None:
    for old in ("no such text", "self"):
        with pytest.raises(ValueError, match="must fit once in"):
            Fixed("name", FIXED[-1].file, old, "", FIXED[-1].judges).source()


def test_the_fixed_mutants_are_killed() -> None:
    """In a process of its own, which has not imported the package: one fork for each mutant."""
    command = [sys.executable, "-m", "tests.mutate", "--fixed"]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert found.returncode == 0, found.stdout + found.stderr
    assert len(found.stdout.splitlines()) == len(FIXED)
