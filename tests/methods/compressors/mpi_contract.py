"""A program for ``mpiexec``: the contract of every method with every compressor, its clients on processes.

``mpiexec -n 3 python -m mpi4py -m tests.methods.compressors.mpi_contract [METHOD...]`` runs all pairs of
``test_contract.py`` with all its scales, and compares states, memories of compressed uploads, messages and counts of
every round with those of one host, bit for bit. The clients are dealt out in blocks that are not equal. It names the
runs that differ, and ends with exit code 1 where one does. All 684 took five minutes on a loaded machine of two cores.

With the environment variable MUTANT=memory, the last process forgets to note what its clients have uploaded; the
comparison must find it.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from typing import Any

from dualopt.engine import MPI, _host
from tests.methods.compressors.test_contract import (
    COMPRESSORS,
    PAIRS,
    SCALES,
    assert_equal_runs,
    chance,
    objective,
    recorded,
)


def differing(clients: Any, names: Sequence[str]) -> tuple[int, list[str]]:
    """Return how many runs were compared, and those that are not the runs of one host."""
    f, found, count = objective(), [], 0
    for name, compressor in PAIRS:
        if names and name not in names:
            continue
        for label, scales in SCALES.items():
            options = {"participation": chance(name), "scales": scales}
            expected = recorded(name, f, COMPRESSORS[compressor], **options)
            try:
                assert_equal_runs(expected, recorded(name, clients, COMPRESSORS[compressor], **options))
            except AssertionError:
                found.append(f"{name}, {compressor}, scales {label}")
            count += 1
    return count, found


def forget() -> None:
    """Keep what clients remember as it was after their first upload."""
    right: Any = _host.remembered
    setattr(_host, "remembered", lambda memory, *rest: memory if memory.tree else right(memory, *rest))  # noqa: B010


def main(names: Sequence[str]) -> int:
    """Compare, and say what differs."""
    mpi, f, start = MPI(), objective(), time.perf_counter()
    rank, size = mpi.peers.rank, mpi.peers.size
    if os.environ.get("MUTANT") == "memory" and rank == size - 1:
        forget()
    cuts = [0, *(1 + (f.n_clients - 1) * k // size for k in range(1, size)), f.n_clients]
    wrong = 0
    with mpi.sharing(f.select(range(cuts[rank], cuts[rank + 1]))) as clients:
        if clients is not None:
            count, found = differing(clients, names)
            wrong = len(found)
            print(*found, sep="\n", end="\n" if found else "")
            took = f"{time.perf_counter() - start:.0f} s"
            print(f"{count - wrong} of {count} runs on {size} processes are those of one host, {took}", flush=True)
    return int(mpi.peers.largest(wrong) > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
