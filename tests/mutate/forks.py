"""One process per mutant, forked from one that has imported the package and collected the tests.

The files that are asked for have one process, forked from one that has imported the libraries and nothing of this
package. It imports them with statements that say that they are run, and collects the judges of all; a fork of it runs
each judge once and notes which statements it runs. Every mutant is a fork: functions get the code of the mutated ones,
and the judges that run the changed statement judge, those of most kills for their time first, until one fails. Where a
change is in what a module runs as it is imported, or is not noticed and in what is run as tests are collected, all is
imported anew from the mutated source. What a mutant does to memory or to its time stays in its process: the time is
that of the processor, which other programs do not change.
"""

from __future__ import annotations

import ast
import builtins
import functools
import gc
import importlib
import importlib.abc
import importlib.machinery
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from time import process_time
from types import CodeType, FunctionType
from typing import Any, NamedTuple

from tests.mutate.mapping import ROOT, Judges
from tests.mutate.operators import Mutant

__all__ = ["Outcome", "Task", "judge_in_forks", "judge_source", "warm_up"]

LIBRARIES = (
    "numpy",
    "numpy.linalg",
    "numpy.random",
    "scipy.linalg",
    "scipy.optimize",
    "scipy.sparse",
    "scipy.special",
    "array_api_compat.numpy",
    "array_api_strict",
    "hypothesis",
    "hypothesis.strategies",
    "hypothesis.extra.numpy",
    "mpmath",
    "cvxpy",
    "sklearn.datasets",
    "threadpoolctl",
    "pytest",
    "doctest",
    "typer",
    "rich.progress",
    "rich.table",
)
OPTIONS = ("-q", "-s", "--tb=no", "--assert=plain", "--hypothesis-profile=mutants", "-p_hypothesis_pytestplugin")
OPTIONS += tuple(f"-pno:{plugin}" for plugin in ("cacheprovider", "unraisableexception", "threadexception"))
OPTIONS += ("-oaddopts=--doctest-modules --strict-markers",)
MEMORY = 8 << 30  # bytes of addresses
PATIENCE, LAST_SECONDS = 10.0, 5.0  # a judge has ten times as long as without a mutant, and five seconds
IMPORTS = 60.0  # seconds for what is imported

Run = Callable[[], str | None]  # runs a judge, and returns what failed


class Outcome(NamedTuple):
    """What happened to a mutant."""

    killed_by: str | None  # a test, "claim NAME" or "time"; None if it survived
    seconds: float  # of processor time


class Task(NamedTuple):
    """Mutants of a file that are to be judged."""

    file: str
    judges: Judges
    source: str
    mutants: Sequence[Mutant]
    kills: Sequence[str] = ()  # what killed mutants of this file before, once for each


class Noted(NamedTuple):
    """What the judges do with the source as it is, and what they killed."""

    seconds: dict[str, float]  # of each judge
    lines: dict[str, set[int]]  # of the file that each judge runs
    kills: Counter[str]

    def ordered(self, judges: Iterable[str], near: Counter[str]) -> list[str]:
        """Return judges in the order of their time for a kill; kills in the same function count ten times."""
        return sorted(judges, key=lambda n: (self.seconds.get(n, 1.0) + 0.01) / (1 + self.kills[n] + 10 * near[n]))

    def parts(self, judges: Judges) -> list[Judges]:
        """Return judges file by file, first that of most kills for its time, and claims at the end."""
        costs = {}
        for path in judges.paths:
            own = [name for name in self.seconds if name.partition("::")[0] == path]
            costs[path] = (0.5 + sum(self.seconds[n] for n in own)) / (1 + sum(self.kills[n] for n in own))
        parts = [
            Judges(tuple(tests for tests in judges.tests if tests.path == path))
            for path in sorted(costs, key=lambda path: costs[path])
        ]
        return [*parts, Judges((), judges.claims)] if judges.claims else parts


def warm_up() -> None:
    """Import the libraries, those that are there."""
    for name in LIBRARIES:
        try:
            importlib.import_module(name)
        except ImportError:
            continue
    own = [name for name in sys.modules if name.partition(".")[0] in ("dualopt", "theory", "figures")]
    gc.collect()
    gc.freeze()
    assert not own, f"{own} would not be imported from the mutated source."


# ---- processes ----


class _Fork:
    """A process that calls a function with a pipe to here, in a folder of its own for temporary files."""

    def __init__(self, work: Callable[[Callable[[Any], None]], None]) -> None:
        sys.stdout.flush()
        self.folder = tempfile.mkdtemp(prefix="mutant-")
        reading, writing = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            self._work(work, writing)
        os.close(writing)
        self.lines = os.fdopen(reading)

    def _work(self, work: Callable[[Callable[[Any], None]], None], pipe: int) -> None:
        def say(value: Any) -> None:
            os.write(pipe, (json.dumps(value) + "\n").encode())

        code = 1
        try:
            os.environ["TMPDIR"] = os.environ["PYTEST_DEBUG_TEMPROOT"] = tempfile.tempdir = self.folder
            nowhere = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(nowhere, stream)
            signal.signal(signal.SIGPROF, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.chdir(ROOT)
            work(say)
            code = 0
        except BaseException:  # of the tool, not of what it judges
            say({"error": traceback.format_exc()})
        finally:
            os._exit(code)

    def said(self) -> Iterator[Any]:
        """Yield what the process says until it ends."""
        for line in self.lines:
            value = json.loads(line)
            if isinstance(value, dict) and "error" in value:
                raise RuntimeError(value["error"])
            yield value

    def ended(self) -> Outcome:
        """Wait for its end; its last words are what killed a mutant."""
        text = [*self.said()]
        _, status, used = os.wait4(self.pid, 0)
        self._forget()
        seconds = used.ru_utime + used.ru_stime
        if os.WIFSIGNALED(status):
            late = os.WTERMSIG(status) == signal.SIGPROF
            return Outcome("time" if late else f"signal {os.WTERMSIG(status)}", seconds)
        if not text:
            raise RuntimeError(f"A process ended without an answer, with exit code {os.WEXITSTATUS(status)}.")
        return Outcome(text[-1], seconds)

    def close(self) -> None:
        """End it."""
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        self._forget()

    def _forget(self) -> None:
        self.lines.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def _limit(seconds: float) -> None:
    """End this process after some seconds of the processor."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, resource.RLIM_INFINITY))
    signal.setitimer(signal.ITIMER_PROF, seconds)


# ---- judges ----


def _with_judges(judges: Judges, use: Callable[[dict[str, Run]], str | None]) -> str | None:
    """Collect the judges and hand them over; return what failed, or what failed to be imported."""
    if not judges.tests:
        return use(_claims(judges.claims))
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # one of them asks git eight times at every start
    import pytest
    from hypothesis import HealthCheck, Phase, settings

    settings.register_profile(
        "mutants",
        derandomize=True,
        deadline=None,
        max_examples=10,
        phases=[Phase.explicit, Phase.generate],  # a failure need not be made small
        suppress_health_check=list(HealthCheck),
    )
    plugin = _Plugin(judges, use)
    ended = pytest.main([*OPTIONS, *judges.paths], plugins=[plugin])
    if plugin.error is not None:
        raise plugin.error
    return plugin.failed or (None if plugin.ran else f"pytest: {pytest.ExitCode(ended).name}")


class _Plugin:
    """Selects tests, makes judges of them and of the claims, and notes what failed."""

    def __init__(self, judges: Judges, use: Callable[[dict[str, Run]], str | None]) -> None:
        self.judges, self.use = judges, use
        self.failed: str | None = None
        self.error: BaseException | None = None
        self.ran = False

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        items[:] = [item for item in items if any(tests.holds(item.nodeid) for tests in self.judges.tests)]

    def pytest_runtestloop(self, session: Any) -> bool:
        if self.failed is None:
            self.ran = True
            runs: dict[str, Run] = {item.nodeid: functools.partial(self._run, item) for item in session.items}
            runs |= _claims(self.judges.claims)
            try:
                self.failed = self.use(runs)
            except BaseException as error:
                self.error = error
        return True

    def _run(self, item: Any) -> str | None:
        """Run a test with fixtures of its own: what it says depends on no test before it."""
        self.failed = None
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
        return self.failed

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self.failed = report.nodeid

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.failed = f"import of {report.nodeid}"


def _claims(names: Sequence[str]) -> dict[str, Run]:
    if not names:
        return {}
    from theory._claims import discover, judge

    chapters = discover()

    def run(name: str) -> str | None:
        try:
            right = all(result.as_expected for result in judge(chapters[name], quick=True))
        except Exception:
            right = False
        return None if right else f"claim {name}"

    if unknown := set(names) - chapters.keys():
        raise ValueError(f"claims {unknown} of tests/mutate/mapping.py are not in theory/.")
    return {f"claim {name}": functools.partial(run, name) for name in names}


def _first_failure(runs: dict[str, Run], seconds: dict[str, float], order: Sequence[str]) -> str | None:
    for name in order:
        _limit(LAST_SECONDS + PATIENCE * seconds.get(name, IMPORTS))
        if (failed := runs[name]()) is not None:
            return failed
    return None


# ---- what runs which statements ----


class _Telling(ast.NodeTransformer):
    """Puts before every statement of a function one that notes its first line, without a call: calls are counted."""

    def __init__(self, file: str) -> None:
        self.file, self.inside = file, False

    def _told(self, body: list[ast.stmt]) -> list[ast.stmt]:
        found: list[ast.stmt] = []
        for node in body:
            if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):  # a docstring stays the first
                note = ast.parse(f"__ran__[{self.file!r}, {node.lineno}] = True").body[0]
                for part in ast.walk(note):
                    ast.copy_location(part, node)
                found.append(note)
            found.append(self.visit(node))
        return found

    def generic_visit(self, node: ast.AST) -> ast.AST:
        outside, self.inside = self.inside, self.inside or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        for name, value in ast.iter_fields(node):
            if self.inside and isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                setattr(node, name, self._told(value))
            elif isinstance(value, list):
                setattr(node, name, [self.visit(part) if isinstance(part, ast.AST) else part for part in value])
            elif isinstance(value, ast.AST):
                self.visit(value)
        self.inside = outside
        return node


def _telling(file: str, source: str) -> CodeType:
    """Return the code of a module whose functions note in ``__ran__`` which statements they run."""
    return compile(_Telling(file).visit(ast.parse(source)), str(ROOT / file), "exec", dont_inherit=True)


def _by_file(ran: Iterable[tuple[str, int]]) -> dict[str, list[int]]:
    found = defaultdict[str, list[int]](list)
    for file, line in ran:
        found[file].append(line)
    return found


def _note(runs: Mapping[str, Run], ran: dict[tuple[str, int], bool], tell: Callable[[Any], None]) -> None:
    """Run judges, each as if it were the first, and tell what failed, its seconds and its lines of each file."""
    memories = [found for found in gc.get_objects() if isinstance(found, functools._lru_cache_wrapper)]
    for name, run in runs.items():
        for memory in memories:
            memory.cache_clear()
        ran.clear()
        start = process_time()
        failed = run()
        tell([name, failed, process_time() - start, _by_file(ran)])


def _statement(source: str, changed: str) -> range:
    """Return the lines of the statement in which two sources differ; of a compound one those of its head."""
    old, new = source.splitlines(), changed.splitlines()
    first = next(i for i, (a, b) in enumerate(zip([*old, ""], [*new, None], strict=False)) if a != b) + 1
    last = len(old) - next(i for i, (a, b) in enumerate(zip(old[::-1], new[::-1], strict=False)) if a != b)
    found = range(1, len(old) + 1)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            end = body[0].lineno - 1 if body else node.end_lineno or node.lineno
            lines = range(node.lineno, max(end, node.lineno) + 1)
            if lines.start <= first and last < lines.stop and len(lines) <= len(found):
                found = lines
    return found


# ---- mutants without imports ----


def _own(code: CodeType) -> tuple[Any, ...]:
    """What a code does, without the functions in it and where they stand."""
    constants = [(type(c), repr(c)) for c in code.co_consts if not isinstance(c, CodeType)]
    return code.co_code, constants, code.co_names, code.co_varnames, code.co_freevars


def _inner(*codes: CodeType) -> Iterator[tuple[CodeType, ...]]:
    """Yield the functions and classes in some codes, side by side.

    Raises
    ------
    LookupError
        If they do not have the same number of them.
    """
    found = [[c for c in code.co_consts if isinstance(c, CodeType)] for code in codes]
    if len({len(inner) for inner in found}) > 1:
        raise LookupError
    return zip(*found, strict=True)


def _changes(old: CodeType, new: CodeType, told: CodeType) -> Iterator[tuple[CodeType, CodeType, bool]]:
    """Yield the functions that differ as they are in ``told``, with the new ones, and whether they are in no other.

    Raises
    ------
    LookupError
        If what a module or a class runs as it is imported differs.
    """
    if old == new:
        return
    function = bool(old.co_flags & 1)
    if function:
        yield told, new, True
    elif _own(old) != _own(new):
        raise LookupError
    for codes in _inner(old, new, told):
        for before, after, outermost in _changes(*codes):
            yield before, after, outermost and not function


def _exchanges(task: Task, changed: str) -> list[tuple[FunctionType, CodeType]]:
    """Return the functions of a mutant with their new codes.

    Raises
    ------
    LookupError
        If it cannot be made by other codes alone.
    """
    path = str(ROOT / task.file)
    old, new = (compile(text, path, "exec", dont_inherit=True) for text in (task.source, changed))
    pairs = {told: (code, outermost) for told, code, outermost in _changes(old, new, _telling(task.file, task.source))}
    found = [f for f in _functions(path) if f.__code__ in pairs]
    if not {told for told, (_, outermost) in pairs.items() if outermost} <= {f.__code__ for f in found}:
        raise LookupError
    if any(len(f.__code__.co_freevars) != len(pairs[f.__code__][0].co_freevars) for f in found):
        raise LookupError
    return [(f, pairs[f.__code__][0]) for f in found]


@functools.cache
def _functions(path: str) -> list[FunctionType]:
    return [o for o in gc.get_objects() if isinstance(o, FunctionType) and o.__code__.co_filename == path]


class _Codes(importlib.abc.MetaPathFinder):
    """Finds the modules of some files in codes that are in memory."""

    def __init__(self, codes: Mapping[str, CodeType]) -> None:
        self.codes = {_module(file): (str(ROOT / file), code) for file, code in codes.items()}

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if fullname not in self.codes:
            return None
        origin, code = self.codes[fullname]
        loader = _Loader(fullname, origin)
        loader.code = code
        package = origin.endswith("__init__.py")
        found = importlib.machinery.ModuleSpec(fullname, loader, origin=origin, is_package=package)
        found.has_location = True
        if package:
            found.submodule_search_locations = [str(Path(origin).parent)]
        return found


class _Loader(importlib.machinery.SourceFileLoader):
    code: CodeType

    def get_code(self, fullname: str) -> CodeType:
        return self.code


def _module(file: str) -> str:
    return file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


# ---- judging ----


def judge_source(file: str, judges: Judges, source: str, noted: Noted | None = None) -> _Fork:
    """Start judging a source with which the package is imported anew."""
    noted = noted or Noted({}, {}, Counter())

    def work(say: Callable[[Any], None]) -> None:
        sys.meta_path.insert(0, _Codes({file: compile(source, str(ROOT / file), "exec", dont_inherit=True)}))
        for part in noted.parts(judges):
            _limit(IMPORTS)
            failed = _with_judges(
                part, lambda runs: _first_failure(runs, noted.seconds, noted.ordered(runs, Counter()))
            )
            if failed is not None:
                break
        say(failed)

    return _Fork(work)


def judge_in_forks(
    tasks: Sequence[Task], put: Callable[[str, Mutant, Outcome], None], *, jobs: int = 1
) -> Iterator[str | None]:
    """Judge the mutants of some files, ``jobs`` at a time; after each file yield a judge that fails on it as it is.

    Parameters
    ----------
    put : callable
        Gets the file, the mutant and the outcome as it ends.
    """
    waiting, going_on = os.pipe()

    def work(say: Callable[[Any], None]) -> None:
        os.close(going_on)  # so that it ends with this process, whatever happens
        _serve(tasks, jobs, say, lambda: bool(os.read(waiting, 1)))

    server = _Fork(work)
    seconds: dict[str, float] = {}
    said = server.said()
    for task in tasks:
        noted = Noted(seconds, {}, Counter(task.kills))
        anew: list[Mutant] = []
        for what, *rest in said:
            if what == "noted":
                seconds[rest[0]] = rest[1]
            elif what == "anew":
                anew.append(task.mutants[rest[0]])
            elif what == "end":
                break
            else:
                noted.kills[rest[0]] += rest[0] is not None
                put(task.file, task.mutants[what], Outcome(*rest))
        for mutant, outcome in _side_by_side(functools.partial(_anew, task, noted), anew, jobs):
            put(task.file, mutant, outcome)
        os.write(going_on, b".")
        yield rest[0]


def _anew(task: Task, noted: Noted, mutant: Mutant) -> _Fork:
    return judge_source(task.file, task.judges, mutant.source, noted)


def _serve(tasks: Sequence[Task], jobs: int, say: Callable[[Any], None], wait: Callable[[], bool]) -> None:
    """Import and collect, note what the judges run, and judge the mutants that need no import."""
    ran: dict[tuple[str, int], bool] = {}
    builtins.__dict__["__ran__"] = ran
    lines = defaultdict[str, dict[str, set[int]]](dict)  # of each file, by judge
    seconds: dict[str, float] = {}
    failing: dict[str, str] = {}

    def use(runs: dict[str, Run]) -> None:
        imported = {file: set(found) for file, found in _by_file(ran).items()}
        gc.freeze()
        for task in tasks:
            chosen = [name for name in runs if task.judges.hold(name)]
            missing = {name: runs[name] for name in chosen if name not in seconds}
            baseline = _Fork(functools.partial(_note, missing, ran))
            for name, failed, took, found in baseline.said():
                seconds[name] = took
                if failed is not None:
                    failing[name] = failed
                for file, of in found.items():
                    lines[file][name] = set(of)
                say(["noted", name, took])
            baseline.close()
            failed = next((failing[name] for name in chosen if name in failing), None)
            if failed is None and not chosen:
                failed = "no test"
            if failed is None:
                noted = Noted(seconds, lines[task.file], Counter(task.kills))
                own = {name: runs[name] for name in chosen}
                _judge_loaded(task, own, noted, imported.get(task.file, set()), jobs, say)
            say(["end", failed])
            if not wait():
                return

    sys.meta_path.insert(0, _Codes({task.file: _telling(task.file, task.source) for task in tasks}))
    every = Judges(
        tuple(dict.fromkeys(tests for task in tasks for tests in task.judges.tests)),
        tuple(dict.fromkeys(claim for task in tasks for claim in task.judges.claims)),
    )
    failed = _with_judges(every, use)
    if failed is not None:
        raise ValueError(f"The files as they are fail {failed}.")


def _judge_loaded(
    task: Task, runs: dict[str, Run], noted: Noted, imported: set[int], jobs: int, say: Callable[[Any], None]
) -> None:
    """Judge mutants by other codes of functions where their file is imported; name those that need an import."""
    loaded = _module(task.file) in sys.modules
    near = defaultdict[str, Counter[str]](Counter)

    def start(number: int) -> _Fork | None:
        mutant = task.mutants[number]
        lines = _statement(task.source, mutant.source)
        try:
            exchanges = _exchanges(task, mutant.source) if loaded else []
        except LookupError:
            exchanges = None
        if exchanges is None:
            say(["anew", number])
            return None

        def judge(tell: Callable[[Any], None]) -> None:
            if not loaded:
                path = str(ROOT / task.file)
                code = compile(mutant.source, path, "exec", dont_inherit=True)
                sys.meta_path.insert(0, _Codes({task.file: code}))
            for function, code in exchanges:
                function.__code__ = code
            chosen = [name for name in runs if not loaded or not noted.lines.get(name, set()).isdisjoint(lines)]
            tell(_first_failure(runs, noted.seconds, noted.ordered(chosen, near[mutant.function])))

        return _Fork(judge)

    for number, outcome in _side_by_side(start, range(len(task.mutants)), jobs):
        if outcome.killed_by is None and not imported.isdisjoint(_statement(task.source, task.mutants[number].source)):
            say(["anew", number])  # the problems of the tests, and which tests there are, were made before the change
            continue
        if outcome.killed_by is not None:
            noted.kills[outcome.killed_by] += 1
            near[task.mutants[number].function][outcome.killed_by] += 1
        say([number, *outcome])


def _side_by_side(
    start: Callable[[Any], _Fork | None], names: Iterable[Any], jobs: int
) -> Iterator[tuple[Any, Outcome]]:
    running: list[tuple[Any, _Fork]] = []
    pending = iter(names)
    try:
        while True:
            while len(running) < jobs and (name := next(pending, None)) is not None:
                if (process := start(name)) is not None:
                    running.append((name, process))
            if not running:
                return
            name, process = running.pop(0)
            yield name, process.ended()
    finally:
        for _, process in running:
            process.close()
