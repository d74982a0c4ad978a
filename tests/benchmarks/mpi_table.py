"""Memory of processes that read a table in a file, each the rows of its own clients.

``python tests/benchmarks/mpi_table.py FOLDER make [ROWS FEATURES]`` writes a table as csv and as Parquet, of 90,000
rows of 100 features (177 MB of csv) when not said otherwise. Then each of

``python -m mpi4py tests/benchmarks/mpi_table.py FOLDER/table.csv``
``mpiexec -n 2 python -m mpi4py tests/benchmarks/mpi_table.py FOLDER/table.csv``

builds a problem of ten clients, and prints the seconds and the largest resident memory of every process
(``resource.getrusage``).
"""

import os
import resource
import sys
from pathlib import Path
from time import perf_counter

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from dualopt.engine import MPI
from dualopt.problem.build import build_problem
from dualopt.problem.options import ProblemOptions


def make(folder, rows=90_000, features=100):
    """Write the table."""
    import pandas as pd  # whose memory is none of reading

    X = np.random.default_rng(0).standard_normal((rows, features))
    table = pd.DataFrame(X, columns=[f"x{i}" for i in range(features)]).assign(y=np.where(X[:, 0] > 0, 1, 0))
    table.to_csv(Path(folder, "table.csv"), index=False)
    table.to_parquet(Path(folder, "table.parquet"))


def main(path):
    """Read, and tell."""
    mpi, start = MPI(), perf_counter()
    problem = build_problem(ProblemOptions(data=path, label="y", clients=10, mu=0.1), peers=mpi.peers)
    own = [resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, perf_counter() - start]
    for rank, numbers in enumerate(mpi.peers.collected(np.array([own])) or ()):
        most, seconds = numbers[0].tolist()
        print(f"process {rank} of {mpi.peers.size}: {most:.0f} MB, {seconds:.1f} s, {sum(problem.sizes)} rows")


if __name__ == "__main__":
    make(sys.argv[1], *map(int, sys.argv[3:])) if sys.argv[2:3] == ["make"] else main(sys.argv[1])
