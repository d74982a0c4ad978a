"""One process per mutant, forked from one that has imported the libraries and nothing of this package.

A fork starts in milliseconds with NumPy, SciPy, pytest and Hypothesis in memory. It then imports the package afresh,
one module of it from the mutated source, and runs the judges until the first failure. What a mutant does to memory or
to its time stays in its process: the time is that of the processor, which other programs do not change.
"""

from __future__ import annotations

import gc
import importlib
import importlib.abc
import importlib.machinery
import json
import os
import resource
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple

from tests.mutate.mapping import ROOT, Judges

__all__ = ["Outcome", "judge_in_forks", "warm_up"]

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
OPTIONS = ("-x", "-q", "--tb=no", "--assert=plain", "--hypothesis-profile=mutants", "-p_hypothesis_pytestplugin")
OPTIONS += tuple(f"-pno:{plugin}" for plugin in ("cacheprovider", "unraisableexception", "threadexception"))
OPTIONS += ("-oaddopts=--doctest-modules --strict-markers",)
MEMORY = 8 << 30  # bytes of addresses
LAST_SECONDS = 5.0  # that any mutant is given


class Outcome(NamedTuple):
    """What happened to a mutant."""

    killed_by: str | None  # a test, "claim NAME" or "time"; None if it survived
    seconds: float  # of processor time
    durations: dict[str, float]  # of the tests that passed


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


def judge_in_forks(
    file: str,
    judges: Judges,
    sources: Iterable[tuple[Any, str | None]],
    *,
    jobs: int = 1,
    limit: Callable[[], float] = lambda: float("inf"),
    order: Callable[[], Sequence[str]] = tuple,
) -> Iterator[tuple[Any, Outcome]]:
    """Judge sources of a file, ``jobs`` at a time, and yield them as they end.

    Parameters
    ----------
    sources : iterable of (name, text)
        ``None`` for the source as it is.
    limit : callable
        Seconds of processor time for the next one.
    order : callable
        All tests in the order in which the next one runs them; as they stand when empty.
    """
    running: dict[int, tuple[Any, Path, float]] = {}
    pending = iter(sources)
    try:
        while True:
            while len(running) < jobs and (entry := next(pending, None)) is not None:
                name, source = entry
                handle, path = tempfile.mkstemp(prefix="mutant-", suffix=".json")
                os.close(handle)
                seconds = limit()
                pid = os.fork()
                if pid == 0:
                    _child(Path(path), file, judges, source, seconds, order())
                running[pid] = (name, Path(path), seconds)
            if not running:
                return
            pid, status, used = os.wait4(next(iter(running)) if len(running) == 1 else -1, 0)
            if pid not in running:
                continue
            name, answer, _ = running.pop(pid)
            yield name, _outcome(status, used.ru_utime + used.ru_stime, answer)
    finally:
        for pid, (_, answer, _) in running.items():
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            answer.unlink(missing_ok=True)


def _outcome(status: int, seconds: float, answer: Path) -> Outcome:
    text = answer.read_text()
    answer.unlink()
    if os.WIFSIGNALED(status):
        late = os.WTERMSIG(status) == signal.SIGPROF
        return Outcome("time" if late else f"signal {os.WTERMSIG(status)}", seconds, {})
    if not text:
        raise RuntimeError(f"A process ended without an answer, with exit code {os.WEXITSTATUS(status)}.")
    said = json.loads(text)
    if "error" in said:
        raise RuntimeError(said["error"])
    return Outcome(**said, seconds=seconds)


def _child(answer: Path, file: str, judges: Judges, source: str | None, seconds: float, order: Sequence[str]) -> None:
    """Judge one source and end the process."""
    code = 1
    try:
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nowhere, stream)
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        if seconds < float("inf"):
            signal.setitimer(signal.ITIMER_PROF, seconds)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, resource.RLIM_INFINITY))
        os.chdir(ROOT)
        if source is not None:
            sys.meta_path.insert(0, _Substitute(file, source))
        killed_by, durations = _judge(judges, order)
        answer.write_text(json.dumps({"killed_by": killed_by, "durations": durations}))
        code = 0
    except Exception:  # of the tool, not of what it judges
        answer.write_text(json.dumps({"error": traceback.format_exc()}))
    finally:
        os._exit(code)


class _Substitute(importlib.abc.MetaPathFinder):
    """Finds one module in a source that is in memory."""

    def __init__(self, file: str, source: str) -> None:
        self.path, self.source = str(ROOT / file), source
        self.name = file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")

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


def _judge(judges: Judges, order: Sequence[str]) -> tuple[str | None, dict[str, float]]:
    """Run the files of tests in order, one after the other, then the claims, until something fails."""
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
    durations: dict[str, float] = {}
    leading = dict.fromkeys(nodeid.partition("::")[0] for nodeid in order)
    for path in [path for path in leading if path in judges.paths] or judges.paths:
        plugin = _Plugin(judges, order)
        ended = pytest.main([*OPTIONS, path], plugins=[plugin])
        durations |= plugin.durations
        if ended not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            return plugin.failed or f"pytest: {pytest.ExitCode(ended).name}", durations
    for name in judges.claims:
        if not _claim_is_as_expected(name):
            return f"claim {name}", durations
    return None, durations


def _claim_is_as_expected(name: str) -> bool:
    from theory._claims import discover, judge

    try:
        chapter = discover()[name]
    except KeyError:
        raise ValueError(f"claim {name!r} of tests/mutate/mapping.py is not in theory/.") from None
    try:
        return all(result.as_expected for result in judge(chapter, quick=True))
    except Exception:
        return False


class _Plugin:
    """Selects and orders tests, and notes what failed."""

    def __init__(self, judges: Judges, order: Sequence[str]) -> None:
        self.judges, self.rank = judges, {nodeid: i for i, nodeid in enumerate(order)}
        self.failed: str | None = None
        self.durations: dict[str, float] = {}

    def pytest_collection_modifyitems(self, config: Any, items: list[Any]) -> None:
        chosen = [item for item in items if any(tests.holds(item.nodeid) for tests in self.judges.tests)]
        last = len(self.rank)
        items[:] = sorted(chosen, key=lambda item: self.rank.get(item.nodeid, last))

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.durations[report.nodeid] = self.durations.get(report.nodeid, 0.0) + report.duration
        if report.failed:
            self.failed = report.nodeid

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.failed = f"import of {report.nodeid}"
