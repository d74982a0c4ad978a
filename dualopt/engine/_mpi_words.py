"""What processes of an MPI program tell each other: answers of hosts in few words, and traces."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread
from typing import Any

import numpy as np

from dualopt.arrays.tree import leaves
from dualopt.engine import _protocol as protocol
from dualopt.engine._host import Host, answered
from dualopt.engine._mpi_communicator import sentence
from dualopt.runs.trace import Trace

__all__ = [
    "all_upload",
    "answers_of",
    "told_apart",
    "trace_of",
    "tree_of",
    "undisturbed",
    "without_sums",
]


def all_upload(everything: tuple[Any, ...]) -> bool:
    """Tell whether every process has clients that upload in this call."""
    last = [own[-1] if own else None for own in everything]
    return all(isinstance(x, protocol.Propose) and x.communicate for x in last)


def answers_of(host: Host, requests: tuple[Any, ...], rank: int) -> Any:
    """Return the answers of a host, without what the requests say already, or why there are none."""
    try:
        answers = answered(host, requests)
    except Exception as error:  # whatever it is, it ends the run with one sentence
        return protocol.Failed(sentence(error, rank).rstrip("."), True)
    if isinstance(answers, protocol.Failed):
        return answers
    return tuple(map(_brief, requests, answers))


def _brief(request: Any, answer: Any) -> Any:
    """Leave out the run and the round, so that the header of an answer is the same in most rounds."""
    changes: dict[str, Any] = {}
    if getattr(answer, "run", None) == getattr(request, "run", ""):
        changes["run"] = ""
    if getattr(answer, "n", None) == getattr(request, "n", -1):
        changes["n"] = -1
    return answer._replace(**changes) if changes else answer


def told_apart(requests: Any, answers: Any) -> Any:
    """Undo `_brief` for all answers of a host."""
    if requests is None or isinstance(answers, protocol.Failed):
        return answers
    return [_whole(request, answer) for request, answer in zip(requests, answers, strict=True)]


def _whole(request: Any, answer: Any) -> Any:
    changes: dict[str, Any] = {}
    if getattr(answer, "run", None) == "":
        changes["run"] = request.run
    if getattr(answer, "n", None) == -1:
        changes["n"] = request.n
    return answer._replace(**changes) if changes else answer


def without_sums(answers: Any) -> tuple[Any, list[np.ndarray] | None]:
    """Return answers without the sums of the uploads in the last one, and these; None where there are none."""
    if isinstance(answers, protocol.Failed) or answers[-1].upload is None:
        return answers, None
    sums = [np.ascontiguousarray(x) for x in leaves(answers[-1].upload)]
    return (*answers[:-1], answers[-1]._replace(upload=None)), sums


def tree_of(trace: Trace) -> Any:
    """Return a trace as a tree."""
    names = tuple(trace.columns)
    rows = np.array([trace.columns[name] for name in names], dtype=float)
    return names, rows, trace.status, trace.theta, json.dumps(trace.parameters)


def trace_of(tree: Any) -> Trace:
    names, rows, status, theta, parameters = tree
    columns = dict(zip(names, rows, strict=True))
    return Trace(columns=columns, status=status, theta=theta, parameters=json.loads(parameters))


@contextmanager
def undisturbed() -> Iterator[None]:
    """Put off Ctrl-C and SIGTERM: others wait for what this process is about to send."""
    if current_thread() is not main_thread():
        yield
        return
    came: list[int] = []
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, lambda n, _: came.append(n)) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    for number in came[:1]:
        signal.raise_signal(number)
