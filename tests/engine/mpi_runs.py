"""A program for ``mpiexec``: runs whose clients are on several processes, compared with one process, bit for bit.

``mpiexec -n 3 python -m mpi4py tests/engine/mpi_runs.py [NAME...]`` prints a line for each run, and ends with exit
code 1 where one differs. The clients are unequal: in size, in mu_j, and in L_j.

What the environment variable MUTANT names is done wrong: "weights" has each process divide those of its clients by
their sum, "order" adds up what each process has first. The comparison must find both. HEAD is the size of the first
part of a header; the rest of a long one is sent behind it.
"""

import os
import sys
from dataclasses import replace
from itertools import pairwise

import numpy as np

from dualopt import (
    GIANT,
    AndersonFedSplit,
    Composite,
    CorrectedDualFL,
    DualFL,
    FedDR,
    FedDyn,
    FedSplit,
    Scaffnew,
    Scaffold,
    linear_model,
    run,
)
from dualopt.arrays.communicator import ALONE, block
from dualopt.engine import MPI, _mpi_wire
from dualopt.losses import Multinomial
from dualopt.objectives import Quadratic
from theory.identities._virtual_updates import VirtualUpdates

CLIENTS = 8


def rows(mine, peers):
    """Multinomial models of 3 to 45 rows, whose features differ in scale from client to client."""
    rng = np.random.default_rng(0)
    sizes = [3, 45, 7, 20, 9, 30, 5, 12]
    X = [rng.standard_normal((m, 6)) * (1.0 + j) for j, m in enumerate(sizes)]
    y = [rng.integers(0, 3, m) for m in sizes]
    starts = np.cumsum([0] + [sizes[j] for j in mine])
    clients = [np.arange(a, b) for a, b in pairwise(starts)]
    own = np.concatenate([X[j] for j in mine]), np.concatenate([y[j] for j in mine])
    return linear_model(*own, loss=Multinomial(classes=3), mu=0.1, clients=clients, client_weights="rows", peers=peers)


def mixed(mine, peers):
    """Rows whose local work is in single precision."""
    return replace(rows(mine, peers), precision="mixed")


def quadratics(mine, peers):
    """Quadratics whose strong convexity differs, too."""
    rng = np.random.default_rng(1)
    root = rng.standard_normal((CLIENTS, 5, 5))
    A = root @ root.transpose(0, 2, 1) + np.arange(1, CLIENTS + 1)[:, None, None] * 0.1 * np.eye(5)
    b = rng.standard_normal((CLIENTS, 5))
    return Quadratic(A=A[list(mine)], b=b[list(mine)])


def regularised(mine, peers):
    """The same with an l1 norm."""
    return Composite(objective=quadratics(mine, peers), regulariser="l1=0.1")


RUNS = {
    "dualfl": (rows, DualFL(), {"rounds": 300, "tol": 1e-8}),
    "dualfl, mixed precision": (mixed, DualFL(), {"rounds": 300, "tol": 1e-10}),
    "dualfl corrected": (rows, CorrectedDualFL(), {"rounds": 30, "certify_every": 10}),
    "feddyn 3 of 8": (rows, FedDyn(), {"rounds": 40, "certify_every": 5, "participation": "subset=3", "seed": 3}),
    "absent listen": (rows, VirtualUpdates(), {"rounds": 40, "certify_every": 7, "participation": "bernoulli=0.4"}),
    "scaffnew, silent rounds": (quadratics, Scaffnew(), {"rounds": 120, "participation": "communicate=0.3"}),
    "scaffold 3 of 8": (rows, Scaffold(), {"rounds": 30, "participation": "subset=3"}),
    "feddr, l1": (regularised, FedDR(), {"rounds": 60, "tol": 1e-9}),
    "scaffold 3 of 8, compressed": (
        rows,
        Scaffold(),
        {"rounds": 12, "participation": "subset=3", "compressor": "natural"},
    ),
    "giant, compressed": (rows, GIANT(), {"rounds": 12, "compressor": "rounding=6"}),
    "fedsplit, compressed": (quadratics, FedSplit(), {"rounds": 20, "tol": 1e-9, "compressor": "cohorts=3"}),
    "anderson_fedsplit": (quadratics, AndersonFedSplit(), {"rounds": 60, "tol": 1e-9}),
}


def differing(a, b):
    """Name the columns, seconds apart, and theta, where two traces differ in a bit."""
    names = [n for n in a.columns if n != "seconds" and not np.array_equal(a[n], b[n], equal_nan=True)]
    names += ["length"] * (len(a) != len(b)) + ["status"] * (a.status != b.status)
    return names + ["theta"] * (not np.array_equal(a.theta, b.theta))


def main(names):
    """Compare."""
    mutant = os.environ.get("MUTANT")
    _mpi_wire.HEAD = int(os.environ.get("HEAD", _mpi_wire.HEAD))
    mpi, wrong = MPI(reduce="fast" if mutant == "order" else "gather"), 0
    for name in names or RUNS:
        make, method, options = RUNS[name]
        own = make(block(CLIENTS, mpi.peers), mpi.peers)
        if mutant == "weights":
            own = replace(own, weights=tuple(w / sum(own.weights) for w in own.weights))
        found = run(method, own, engine=mpi, **options)
        if mpi.peers.rank == 0:
            expected = run(method, make(range(CLIENTS), ALONE), **options)
            differs = differing(expected, found)
            wrong += bool(differs)
            print(f"{name}: {len(found) - 1} rounds, {found.status}, {', '.join(differs) or 'equal'}", flush=True)
    return int(mpi.peers.largest(wrong) > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
