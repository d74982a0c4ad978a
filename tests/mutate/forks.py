"""One process per mutant, forked from one that has imported the package and collected the tests.

A file has one process of its own, forked from one that has imported the libraries and nothing of this package. It
collects the judges, and a fork of it runs them once and notes which of them run which lines of the file. Every mutant
is a fork: functions get the code of the mutated ones, and the judges that run the changed statement judge, those of
most kills for their time first, until one fails. What a module runs as it is imported, or as tests are collected, is
imported anew from the mutated source instead. What a mutant does to memory or to its time stays in its process: the
time is that of the processor, which other programs do not change.
"""

from __future__ import annotations

import ast
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
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from time import process_time
from types import CodeType, FrameType, FunctionType
from typing import Any, NamedTuple

from tests.mutate.mapping import ROOT, Judges
from tests.mutate.operators import Mutant

__all__ = ["Outcome", "judge_in_forks", "judge_source", "warm_up"]

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


# ---- what runs which lines ----


class _Lines:
    """The lines of a file, in functions, that are run while it is on."""

    def __init__(self, file: str) -> None:
        self.path, self.found = str(ROOT / file), set[int]()

    def __enter__(self) -> _Lines:
        sys.settrace(self._call)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)

    def _call(self, frame: FrameType, event: str, arg: Any) -> Any:
        code = frame.f_code
        if code.co_filename != self.path or not code.co_flags & 1:  # not a function, or of another file
            return None
        self.found.add(frame.f_lineno)
        return self._line

    def _line(self, frame: FrameType, event: str, arg: Any) -> Any:
        self.found.add(frame.f_lineno)
        return self._line


def _note(file: str, runs: dict[str, Run], tell: Callable[[Any], None]) -> None:
    """Run all judges, each as if it were the first, and tell its seconds and its lines."""
    memories = [found for found in gc.get_objects() if isinstance(found, functools._lru_cache_wrapper)]
    for name, run in runs.items():
        for memory in memories:
            memory.cache_clear()
        start = process_time()
        with _Lines(file) as lines:
            failed = run()
        if failed is not None:
            raise ValueError(f"{file} as it is fails {failed}.")
        tell([name, process_time() - start, sorted(lines.found)])


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


def _changes(old: CodeType, new: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    """Yield the outermost functions that differ.

    Raises
    ------
    LookupError
        If what a module or a class runs as it is imported differs.
    """
    if old == new:
        return
    if old.co_flags & 1:
        yield old, new
        return
    inner = [[c for c in code.co_consts if isinstance(c, CodeType)] for code in (old, new)]
    if _own(old) != _own(new) or len(inner[0]) != len(inner[1]):
        raise LookupError
    for pair in zip(*inner, strict=True):
        yield from _changes(*pair)


def _exchanges(file: str, source: str, changed: str) -> list[tuple[FunctionType, CodeType]]:
    """Return the functions of a mutant with their new codes.

    Raises
    ------
    LookupError
        If it cannot be made by other codes alone.
    """
    path = str(ROOT / file)
    old, new = (compile(text, path, "exec", dont_inherit=True) for text in (source, changed))
    pairs = dict(_changes(old, new))
    found = [f for f in _functions(path) if f.__code__ in pairs]
    if {f.__code__ for f in found} != pairs.keys():
        raise LookupError
    if any(len(f.__code__.co_freevars) != len(pairs[f.__code__].co_freevars) for f in found):
        raise LookupError
    return [(f, pairs[f.__code__]) for f in found]


@functools.cache
def _functions(path: str) -> list[FunctionType]:
    return [o for o in gc.get_objects() if isinstance(o, FunctionType) and o.__code__.co_filename == path]


class _Substitute(importlib.abc.MetaPathFinder):
    """Finds one module in a source that is in memory."""

    def __init__(self, file: str, source: str) -> None:
        self.path, self.source = str(ROOT / file), source
        self.name = _module(file)

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if fullname != self.name:
            return None
        loader = _Loader(fullname, self.path)
        loader.source = self.source
        package = self.path.endswith("__init__.py")
        found = importlib.machinery.ModuleSpec(fullname, loader, origin=self.path, is_package=package)
        found.has_location = True
        if package:
            found.submodule_search_locations = [str(Path(self.path).parent)]
        return found


class _Loader(importlib.machinery.SourceFileLoader):
    source = ""

    def get_code(self, fullname: str) -> CodeType:
        return compile(self.source, self.path, "exec", dont_inherit=True)


def _module(file: str) -> str:
    return file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


# ---- judging ----


def judge_source(file: str, judges: Judges, source: str, noted: Noted | None = None) -> _Fork:
    """Start judging a source with which the package is imported anew."""
    noted = noted or Noted({}, {}, Counter())

    def work(say: Callable[[Any], None]) -> None:
        sys.meta_path.insert(0, _Substitute(file, source))
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
    file: str, judges: Judges, source: str, mutants: Sequence[Mutant], *, jobs: int = 1, kills: Iterable[str] = ()
) -> Iterator[tuple[Mutant, Outcome]]:
    """Judge mutants of a file, ``jobs`` at a time, and yield them as they end.

    Parameters
    ----------
    kills : iterable of str
        What killed mutants of this file before, once for each.
    """
    noted = Noted({}, {}, Counter(kills))
    anew: list[Mutant] = []
    server = _Fork(lambda say: _serve(file, judges, source, mutants, jobs, noted, say))
    for what, *rest in server.said():
        if what == "noted":
            noted.seconds[rest[0]] = rest[1]
        elif what == "anew":
            anew.append(mutants[rest[0]])
        else:
            yield mutants[what], Outcome(*rest)
    server.close()
    yield from _side_by_side(lambda mutant: judge_source(file, judges, mutant.source, noted), anew, jobs)


def _serve(
    file: str,
    judges: Judges,
    source: str,
    mutants: Sequence[Mutant],
    jobs: int,
    noted: Noted,
    say: Callable[[Any], None],
) -> None:
    """Import and collect, note what the judges run, and judge the mutants that need no import."""

    def use(runs: dict[str, Run]) -> None:
        sys.settrace(None)
        baseline = _Fork(lambda tell: _note(file, runs, tell))
        for name, seconds, lines in baseline.said():
            noted.seconds[name], noted.lines[name] = seconds, set(lines)
            say(["noted", name, seconds])
        baseline.close()
        if not runs:
            raise ValueError(f"{file} has no test.")
        loaded = _module(file) in sys.modules
        _functions(str(ROOT / file))
        gc.freeze()
        near = defaultdict[str, Counter[str]](Counter)

        def start(number: int) -> _Fork | None:
            mutant = mutants[number]
            lines = _statement(source, mutant.source)
            try:
                exchanges = _exchanges(file, source, mutant.source) if loaded else []
            except LookupError:
                exchanges = None
            if exchanges is None or not imported.found.isdisjoint(lines):
                say(["anew", number])
                return None

            def judge(tell: Callable[[Any], None]) -> None:
                if not loaded:
                    sys.meta_path.insert(0, _Substitute(file, mutant.source))
                for function, code in exchanges:
                    function.__code__ = code
                chosen = [name for name in runs if not loaded or not noted.lines[name].isdisjoint(lines)]
                tell(_first_failure(runs, noted.seconds, noted.ordered(chosen, near[mutant.function])))

            return _Fork(judge)

        for number, outcome in _side_by_side(start, range(len(mutants)), jobs):
            if outcome.killed_by is not None:
                noted.kills[outcome.killed_by] += 1
                near[mutants[number].function][outcome.killed_by] += 1
            say([number, *outcome])

    with _Lines(file) as imported:
        failed = _with_judges(judges, use)
    if failed is not None:
        raise ValueError(f"{file} as it is fails {failed}.")


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
