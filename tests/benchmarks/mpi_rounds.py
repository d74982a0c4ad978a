"""Milliseconds and bytes of a round over MPI, beside one process.

``mpiexec -n 2 python -m mpi4py tests/benchmarks/mpi_rounds.py [CLIENTS DIMENSION]...`` prints a row of a table for each
pair; without any, for 2, 8 and 64 clients and 650, 7850 and a million numbers in a model. Clients have one row of data
and send one gradient in a round: what is measured is the engine. The least time of all rounds of three runs counts.
"""

import os
import sys

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from dualopt import linear_model, run
from dualopt.arrays.communicator import ALONE, block
from dualopt.engine import MPI
from dualopt.losses import Squared
from dualopt.methods import GradientDescent

PAIRS = [(N, d) for d in (650, 7850, 1_000_000) for N in (2, 8, 64)]


def objective(N, d, mine, peers):
    """One row for each client."""
    X = np.stack([np.random.default_rng(j).standard_normal(d) for j in mine]) / np.sqrt(d)
    return linear_model(X, np.ones(len(mine)), loss=Squared(), mu=0.1, intercept=False, clients=len(mine), peers=peers)


def milliseconds(f, rounds, engine=None):
    """Return the least time of a round, the numbers that it sends up, and how many rounds there were."""
    best, up, done = np.inf, 0.0, 0
    for _ in range(3):
        trace = run(GradientDescent(), f, rounds=rounds, measure_every=rounds, engine=engine)
        best = min(best, 1e3 * float(np.diff(trace["seconds"]).min()))
        up = trace["floats_up"][-1] / (len(trace) - 1)
        done += len(trace) - 1  # it may have converged
    return best, up, done


def main(numbers):
    """Print the table."""
    pairs = list(zip(numbers[::2], numbers[1::2], strict=True)) or PAIRS
    engines = {"gather": MPI(), "fast": MPI(reduce="fast")}
    peers = engines["gather"].peers
    columns = (
        "clients | numbers | one process, ms | gather, ms | fast, ms | numbers up, kB | up, kB | up fast, kB | down, kB"
    )
    if peers.rank == 0:
        print(f"{peers.size} processes\n\n| {columns} |\n|{' ---: |' * (columns.count('|') + 1)}", flush=True)
    for N, d in pairs:
        rounds = 200 if N * d < 10**5 else 40 if N * d < 10**6 else 10 if N * d < 10**7 else 4
        f = objective(N, d, block(N, peers), peers)
        found = {}
        for name, engine in engines.items():
            engine.restart_counters()
            time, up, done = milliseconds(f, rounds, engine)
            found[name] = time, up, engine.bytes_up / 1e3 / done, engine.bytes_down / 1e3 / done
        if peers.rank == 0:
            alone, *_ = milliseconds(objective(N, d, range(N), ALONE), rounds)
            (gather, up, kB_up, kB_down), (fast, _, kB_fast, _) = found.values()
            print(
                f"| {N} | {d} | {alone:.2f} | {gather:.2f} | {fast:.2f} | {up * 8e-3:.1f} | {kB_up:.1f} | "
                f"{kB_fast:.1f} | {kB_down:.1f} |",
                flush=True,
            )
        peers.largest(0)


if __name__ == "__main__":
    main([int(word) for word in sys.argv[1:]])
