"""Jobs that are more than a command: ``python scripts.py NAME``, by the Python of an environment with the package."""

import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

import numpy as np

rng = np.random.default_rng(0)


def readme_job(readme: str) -> None:
    """Run the main job of the README, without its installation."""
    command = re.search(r"^python -m pip install .* && (dualopt run .*)$", Path(readme).read_text(), re.MULTILINE)
    assert command is not None, "README.md has no main job"
    print(subprocess.run(command[1], shell=True, check=True, capture_output=True, text=True).stdout)


def readme_example(readme: str) -> None:
    """Run the example of the README."""
    example = re.search(r"^```python\n(.*?)^```", Path(readme).read_text(), re.MULTILINE | re.DOTALL)
    assert example is not None, "README.md has no example"
    exec(example[1], {})


def tables() -> None:
    """Write a table to train on, and one to predict for."""
    age, dose = rng.integers(20, 90, 320), rng.uniform(0, 3, 320).round(2)
    sick = np.where(age / 40 + dose + rng.normal(0, 0.3, 320) > 3, "yes", "no")
    rows = [f"{a},{d},{h},{s}" for a, d, h, s in zip(age, dose, rng.choice(["Lyon", "Basel"], 320), sick, strict=True)]
    Path("patients.csv").write_text("\n".join(["age,dose,hospital,sick", *rows[:300]]) + "\n")
    Path("new.csv").write_text(
        "\n".join(["dose,age", *(f"{d},{a}" for a, d in zip(age[300:], dose[300:], strict=True))])
    )
    print("tables are written")


def frames() -> None:
    """Read a table from a file, and one from memory."""
    import pyarrow

    from dualopt import linear_model
    from dualopt.problem.data import load

    tables()
    found = load("patients.csv", label="sick", client="hospital")
    table = pyarrow.table({"x": [1.0, 2.0, 3.0, 4.0], "y": ["no", "no", "yes", "yes"]})
    print("read", found.X.shape, linear_model(table, "y", loss="logistic", mu=0.1, clients=2).shape)


def sparse() -> None:
    """Train on a sparse matrix."""
    from scipy.sparse import random_array

    from dualopt import linear_model, run

    X = random_array((200, 20), density=0.2, rng=rng).tocsr()
    f = linear_model(X, np.where(rng.random(200) > 0.5, 1, -1), loss="logistic", mu=0.1, clients=4)
    print(run("fedsplit", f, rounds=300, tol=1e-6).status)


def fast() -> None:
    """Train with compiled products, where the processor has them."""
    from dualopt import Multinomial, linear_model, run
    from dualopt.objectives._compiled import numba_version

    X, y = rng.standard_normal((300, 40)), rng.integers(0, 10, 300)
    f = linear_model(X, y, loss=Multinomial(classes=10), mu=0.1, clients=4)
    print(run("fedsplit", f, rounds=300, tol=1e-6).status, "Numba", numba_version())


def networks() -> None:
    """Train a module of PyTorch."""
    from dualopt import FedDyn, run, torch_module

    torch = import_module("torch")
    X, y = rng.standard_normal((200, 4)), rng.integers(0, 3, 200)
    X[np.arange(200), y] += 4.0
    f = torch_module(torch.nn.Linear(4, 3, dtype=torch.float64), X, y, clients=4, ridge=1e-2)
    trace = run(FedDyn(alpha=0.1), f, rounds=20, seed=1)
    assert trace["energy"][-1] < 0.5 * trace["energy"][0], trace["energy"]
    print("trained", trace.status)


def proved() -> None:
    """Prove a rate, and find a reference solution."""
    import dualopt
    from dualopt.lab.proofs import prove

    f = dualopt.linear_model(rng.standard_normal((40, 3)), rng.standard_normal(40), loss="squared", mu=0.1, clients=4)
    assert dualopt.cvxpy(f).energy >= dualopt.newton(f).energy - 1e-9
    print("proved", prove("fedsplit", mu=1, L=10, clients=2))


def drawn() -> None:
    """Draw a random problem, and attack nothing."""
    from hypothesis import find

    from dualopt.lab import attack
    from dualopt.lab.testing import quadratics

    print("drawn", find(quadratics(n_clients=3), lambda f: True).shape, attack.Attack.__name__)


def secure() -> None:
    """Add uploads in masked sums."""
    from dualopt import linear_model, run

    y = np.where(rng.random(200) > 0.5, 1, -1)
    f = linear_model(rng.standard_normal((200, 3)), y, loss="logistic", mu=0.1, clients=4)
    print(run("fedsplit", f, rounds=300, tol=1e-4, engine="secure-blocks=4").status)


def opened() -> None:
    """Make the course without a browser, and read the page of all chapters and one of them."""
    command = ["dualopt", "lessons", "--no-browser"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[-1]
    index = Path(url2pathname(urlsplit(said).path))
    pages = [file.read_text(encoding="utf-8") for file in (index, index.with_name("momentum.html"))]
    assert all(page.startswith("<!doctype html>") for page in pages)
    print("opened", "momentum" in pages[0], "Momentum on the dual" in pages[1])


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
