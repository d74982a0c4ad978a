"""Memory of a process that has the rows of its own clients, beside one process with all rows; reading is included.

``python tests/benchmarks/mpi_memory.py FOLDER make [CLIENTS ROWS FEATURES]`` writes a data set into a folder, of
100,000 clients with 20 rows of 50 features when not said otherwise. Then each of

``python -m mpi4py tests/benchmarks/mpi_memory.py FOLDER``
``mpiexec -n 2 python -m mpi4py tests/benchmarks/mpi_memory.py FOLDER``

reads it, runs some rounds of FedAvg with a tenth of the clients, and prints the largest resident memory of every
process (``resource.getrusage``), what the interpreter with its packages takes, and the energy.
"""

import os
import resource
import sys
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from dualopt import FedAvg, run
from dualopt.engine import MPI
from dualopt.problem.build import build_problem
from dualopt.problem.options import ProblemOptions
from dualopt.solvers import Gradient
from dualopt.solvers.stopping import Steps


def peak():
    """Return the largest resident memory so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def make(folder, clients=100_000, rows=20, features=50):
    """Write the data set; as a NumPy archive, which is written and read piece by piece."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((clients * rows, features))
    y = (X[:, 0] + 0.5 * rng.standard_normal(len(X)) > 0).astype(np.int8)
    np.savez(Path(folder, "many.npz"), X=X, y=y)
    Path(folder, "clients").write_text(str(clients))


def main(folder):
    """Read, run, and tell."""
    mpi = MPI()
    before = peak()
    clients = int(Path(folder, "clients").read_text())
    options = ProblemOptions(data=str(Path(folder, "many.npz")), clients=clients, partition="consecutive", mu=0.1)
    problem = build_problem(options, peers=mpi.peers)
    read = peak()
    method = FedAvg(solver=Gradient(), stop=Steps(steps=2))
    options = {"rounds": 5, "participation": f"subset={clients // 10}", "measure_every": 5}
    trace = run(method, problem.objective, engine=mpi, **options)
    for rank, numbers in enumerate(mpi.peers.collected(np.array([[before, read, peak()]])) or ()):
        start, built, all_ = numbers[0].tolist()
        print(
            f"process {rank} of {mpi.peers.size}: {all_:.0f} MB, {built:.0f} after reading, of which the interpreter "
            f"{start:.0f}; E = {trace.last['energy']!r}"
        )


if __name__ == "__main__":
    make(sys.argv[1], *map(int, sys.argv[3:])) if sys.argv[2:3] == ["make"] else main(sys.argv[1])
