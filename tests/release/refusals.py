"""What needs a package that is missing says so in one sentence, and which extra brings it.

It is run by the Python of an environment that has the package, outside of the repository. Of what is there nothing is
asked; the exit code is 1, with the wrong sentences, if a missing package is told in another way.
"""

import importlib.util
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import dualopt
from dualopt import Logistic, linear_model, run

rng = np.random.default_rng(0)
X, y = rng.standard_normal((40, 3)), np.where(rng.random(40) > 0.5, 1, -1)
f = linear_model(X, y, loss=Logistic(), mu=1e-2, clients=4)


class Table:
    """A table of a library that nobody knows."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        raise NotImplementedError


def file(name: str, content: str) -> Any:
    from dualopt.problem.data import load

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.write_text(content)
        return load(path) if name.endswith("svm") else load(path, label="b")


def module(name: str) -> Any:
    return importlib.import_module(name)


def digits() -> Any:
    return module("dualopt.problem.data").load("digits")


def sparse() -> Any:
    return module("dualopt.arrays.xp").csr_matrix(np.ones(1), np.zeros(1, int), np.array([0, 1]), (1, 1))


def fast() -> Any:
    os.environ["DUALOPT_FAST"] = "1"
    try:
        return linear_model(X, y, loss=Logistic(), mu=1e-2, clients=4)
    finally:
        del os.environ["DUALOPT_FAST"]


def to_sklearn() -> Any:
    return dualopt.Model.of(f, run("dualfl", f, rounds=3)).to_sklearn()


def proved(name: str) -> Any:
    more = {"rounds": 2} if name == "worst_case" else {}
    return getattr(module("dualopt.lab.proofs"), name)("fedsplit", mu=1, L=10, clients=2, **more)


APP, THEORY, FRAMES = (
    'pip install "dualopt[app]".',
    'pip install "dualopt[theory]".',
    'pip install "dualopt[frames]".',
)
FEDERATION = 'pip install "dualopt[federation]".'
USES: list[tuple[str, str, Callable[[], Any]]] = [  # what is missing, the sentence, and the use
    ("sklearn", f"data 'digits' needs scikit-learn: {APP}", digits),
    ("sklearn", f"data 'a.svm' needs scikit-learn: {APP}", lambda: file("a.svm", "1 1:2\n-1 2:3\n")),
    ("sklearn", f"to_sklearn needs scikit-learn: {APP}", to_sklearn),
    ("sklearn", f"dualopt.app.estimators needs scikit-learn: {APP}", lambda: module("dualopt.app.estimators")),
    ("matplotlib", f"dualopt.runs.plotting needs matplotlib: {APP}", lambda: module("dualopt.runs.plotting")),
    ("narwhals", f"X, a Table, needs narwhals: {FRAMES}", lambda: linear_model(Table(), y, loss=Logistic(), mu=1)),
    ("pyarrow", f"data 'a.csv' needs pyarrow: {FRAMES}", lambda: file("a.csv", "a,b\n1,2\n")),
    ("pyarrow", f"data 'a.parquet' needs pyarrow: {FRAMES}", lambda: file("a.parquet", "PAR1")),
    ("cvxpy", f"the reference solution needs CVXPY: {THEORY}", lambda: dualopt.cvxpy(f)),
    ("cvxpy", f"a worst case or a proof needs CVXPY: {THEORY}", lambda: proved("prove")),
    ("cvxpy", f"a worst case or a proof needs CVXPY: {THEORY}", lambda: proved("worst_case")),
    ("scipy", 'a sparse matrix needs SciPy: pip install "dualopt[sparse]".', sparse),
    ("scipy", 'dualopt.lab.attack needs SciPy: pip install "dualopt[sparse]".', lambda: module("dualopt.lab.attack")),
    (
        "hypothesis",
        'dualopt.lab.testing needs Hypothesis: pip install "dualopt[testing]".',
        lambda: module("dualopt.lab.testing"),
    ),
    ("mpi4py", 'engine mpi needs mpi4py: pip install "dualopt[mpi]".', lambda: module("dualopt.engine.mpi").MPI()),
    (
        "cryptography",
        f"a secure sum needs cryptography: {FEDERATION}",
        lambda: run("dualfl", f, rounds=3, engine="secure-blocks=4"),
    ),
    (
        "cryptography",
        f"the identity of a site needs cryptography: {FEDERATION}",
        lambda: module("dualopt.federation.identity").KitIdentity("kit"),
    ),
    ("numba", 'DUALOPT_FAST=1 needs Numba: pip install "dualopt[fast]".', fast),
    (
        "torch",
        'a module as an objective needs torch: pip install "dualopt[torch]".',
        lambda: dualopt.torch_module(None, X, y),
    ),
    (
        "torch",
        'a convolutional network needs torch: pip install "dualopt[torch]".',
        lambda: module("dualopt.objectives.torch_networks").cnn(64, 10),
    ),
    (
        "cupy",
        'device cuda needs CuPy and a CUDA GPU: pip install "dualopt[gpu]".',
        lambda: module("dualopt.arrays.xp").uploader("cuda"),
    ),
]


def said(use: Callable[[], Any]) -> str:
    """Return what is said when something is used."""
    try:
        use()
    except (ModuleNotFoundError, ValueError) as error:
        return str(error)
    return "nothing"


if __name__ == "__main__":
    missing = [row for row in USES if importlib.util.find_spec(row[0]) is None]
    wrong = [f"{package} is missing: {words!r}" for package, text, use in missing if (words := said(use)) != text]
    print(f"{len(missing)} of {len(USES)} refused", *wrong, sep="\n")
    sys.exit(bool(wrong))
