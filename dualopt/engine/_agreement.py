"""What the clients of all hosts must have in common, and their numbers; what the processes of a program must."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from dualopt.arrays.communicator import Communicator
from dualopt.arrays.xp import is_array, to_numpy
from dualopt.engine import _protocol as protocol
from dualopt.runs._sources import sources

__all__ = ["agree", "numbered", "require_agreement"]

LISTED = 8  # processes that a sentence names


def agree(peers: Communicator, facts: Mapping[str, Any]) -> None:
    """End with an error in all processes where facts are not the same in all, or the versions of the code are not.

    Parameters
    ----------
    peers : Communicator
        The processes, all of which call this.
    facts : dict
        What must be the same, by name. The sentence of the error quotes text, numbers and lists of these. Bytes, arrays
        and tuples of arrays are data, which it does not: it says whose are others. Names of these are plural.

    Raises
    ------
    ValueError
        In all processes, with one sentence that says what differs, and between which processes.
    """
    if peers.size == 1:
        return
    with peers.together():
        hashes = {name: _hash(x) for name, x in facts.items()}
        shown, hidden = _versions()
        shown |= {name: x for name, x in facts.items() if hashes[name] is None}
        hidden |= {name: found for name, found in hashes.items() if found is not None}
        text = json.dumps([shown, hidden], default=str)
    collected = peers.collected(np.frombuffer(text.encode(), np.uint8))
    with peers.together():
        if collected is not None:
            _require_same([json.loads(x.tobytes()) for x in collected])


def _hash(x: Any) -> str | None:
    """Return a hash of bytes, of an array, or of a tuple of arrays, with their types and shapes; None of what is shown.

    >>> _hash(np.arange(3)) == _hash((np.arange(3),)), _hash(np.arange(3)) == _hash(np.arange(3.0)), _hash((1, 2))
    (True, False, None)
    """
    arrays = x if isinstance(x, tuple) else (x,)
    if isinstance(x, bytes):
        return hashlib.sha256(x).hexdigest()
    if not arrays or not all(is_array(part) for part in arrays):
        return None
    found = hashlib.sha256()
    for part in map(to_numpy, arrays):
        if part.dtype.hasobject:
            part = np.array([json.dumps(value, default=str) for value in part.ravel().tolist()])
        found.update(f"{part.dtype} {part.shape} ".encode())
        found.update(part.ravel().view(np.uint8).data)
    return found.hexdigest()


def _versions() -> tuple[dict[str, Any], dict[str, str]]:
    """Return the versions of what a run depends on, and a hash of the code of this package."""
    try:
        own = version("dualopt")
    except PackageNotFoundError:
        own = "not installed"
    python = ".".join(platform.python_version_tuple()[:2])
    return {"version of dualopt": own, "version of NumPy": np.__version__, "version of Python": python}, {
        "sources of dualopt": sources()
    }


def _require_same(facts: Sequence[Sequence[Mapping[str, Any]]]) -> None:
    """Refuse facts of processes that differ from those of the first one."""
    clauses = []
    for kind in range(2):
        for name in dict.fromkeys(name for own in facts for name in own[kind]):
            values = [own[kind].get(name) for own in facts]
            others: list[Any] = []
            for value in values:
                others += [value] * (value != values[0] and value not in others)
            of = [[rank for rank, x in enumerate(values) if x == value] for value in others]
            if others and kind:
                unlike = [rank for ranks in of for rank in ranks]
                clauses.append(f"{name} of {_processes(unlike)} are not those of process 0")
            elif others:
                found = zip([values[0], *others], [[0], *of], strict=True)
                clauses.append(f"{name} is " + " and ".join(f"{x!r} in {_processes(ranks)}" for x, ranks in found))
    if clauses:
        raise ValueError(f"processes must agree, but {', and '.join(clauses)}.")


def _processes(ranks: Sequence[int]) -> str:
    """Name processes.

    >>> _processes([1]), _processes([3, 1, 2])
    ('process 1', 'processes 1, 2, 3')
    """
    listed = ", ".join(map(str, sorted(ranks)[:LISTED])) + (", ..." if len(ranks) > LISTED else "")
    return f"process{'es' if len(ranks) > 1 else ''} {listed}"


def require_agreement(found: Sequence[protocol.ClientInfo], hosts: Sequence[Any], project: str) -> None:
    """Refuse hosts whose clients are of another project, or differ in what must be the same everywhere."""
    for h, other in enumerate(found):  # first of all: other differences come from this one
        if other.project != project:
            raise ValueError(
                f"project must be the same everywhere, but it is {project!r} here and {other.project!r} "
                f"on host {hosts[h]}."
            )
    first = _common(found[0])
    for h, other in enumerate(found):
        for name, value in _common(other).items():
            if value != first[name]:
                where = f"host {hosts[0]} and {value} on host {hosts[h]}"
                raise ValueError(f"clients must agree on {name}, but it is {first[name]} on {where}.")


def _common(info: protocol.ClientInfo) -> dict[str, Any]:
    """Return what must be the same on all hosts."""
    further = {name: getattr(info, name) for name in ("is_sparse", *protocol.KIND)}
    return {"shape": tuple(info.zero.shape), "dtype": str(info.zero.dtype).rpartition(".")[2]} | further


def numbered(found: Sequence[protocol.ClientInfo], hosts: Sequence[Any]) -> list[tuple[int, ...]]:
    """Return the numbers of the clients of each host: those that hosts know, or in the order of the hosts."""
    blocks: list[tuple[int, ...]] = []
    if all(x.clients is None for x in found):
        first = 0
        for x in found:
            blocks.append(tuple(range(first, first + x.n_clients)))
            first += x.n_clients
        return blocks
    for h, x in enumerate(found):
        if x.clients is None:
            raise ValueError(f"clients of host {hosts[h]} have no numbers, and those of others have.")
        if len(x.clients) != x.n_clients:
            raise ValueError(f"clients of host {hosts[h]} must be {x.n_clients} numbers.")
        blocks.append(x.clients)
    ids = sorted(j for own in blocks for j in own)
    if ids != list(range(len(ids))):
        raise ValueError(f"clients of all hosts together must have the numbers 0 to {len(ids) - 1}, each once.")
    return blocks
